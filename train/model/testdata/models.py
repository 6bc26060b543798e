"""Logits, loss and gradients of every model, computed apart from gdb, for its tests.

    pip install torch && python3 models.py > models.json      (any recent torch; fixed seed)

The committed models.json was made so; tests read that file, and need neither Python nor torch.

A small graph is sampled by plain dictionaries: for each node the neighbors that were drawn. Models
run node by node over those dictionaries, in float64, as the equations of train/model say, without
DENSE's layout and without an order of aggregation and product; gradients are those of autograd.
Names of parameters are those of gdb.
"""
import itertools
import json
import random

import torch

rng = random.Random(11)
NODES, WIDTH, CLASSES, SEEDS = 34, 6, 3, [3, 17, 9, 30, 22]
LABELS = [2, -1, 0, 2, 1]
FANOUTS = [[100], [4, 3], [3, 4, 2]]  # of the batches, from the seeds on; the first takes all


def normal(rows, cols, mean=0., scale=1.):
    """A matrix of numbers that have two decimals."""
    return torch.tensor([[round(rng.gauss(mean, scale), 2) for _ in range(cols)]
                         for _ in range(rows)], dtype=torch.float64)


def make_graph():
    """In-neighbors: few, none, many (3 and 12), one twice, a node itself, two in most lists."""
    nbrs_of = {}
    for v in range(NODES):
        nbrs = rng.sample(range(NODES), rng.randrange(6))
        nbrs_of[v] = nbrs + [u for u in (5, 12) if rng.random() < .6]
    nbrs_of[9] = nbrs_of[20] = []
    nbrs_of[3] = rng.sample(range(NODES), 27)
    nbrs_of[12] = rng.sample(range(NODES), 19)
    nbrs_of[17] = [8, 12, 8]
    nbrs_of[22] = [22, 5, 12, 20]
    return nbrs_of


def sample(nbrs_of, fanouts):
    """A node is drawn for once, at the hop where it first appears."""
    hops, drawn, known = [list(SEEDS)], {}, set(SEEDS)
    for fanout in fanouts:
        new = []
        for v in hops[-1]:
            full = nbrs_of[v]
            drawn[v] = full if len(full) <= fanout else rng.sample(full, fanout)
            for u in drawn[v]:
                if u not in known:
                    known.add(u)
                    new.append(u)
        hops.append(new)
    return hops[::-1], drawn


class Batch:
    """A batch, and its features."""

    def __init__(self, nbrs_of, fanouts):
        self.deltas, self.drawn = sample(nbrs_of, fanouts)
        self.nodes = [v for delta in self.deltas for v in delta]
        self.degree = {v: len(nbrs_of[v]) for v in self.nodes}
        self.x = normal(len(self.nodes), WIDTH)

    def lists_of(self, layer):
        """The nodes whose rows a layer computes."""
        return [v for delta in self.deltas[layer + 1:] for v in delta]

    def record(self):
        place = {v: i for i, v in enumerate(self.nodes)}
        offsets = [0] + list(itertools.accumulate(len(d) for d in self.deltas))
        nbr_offsets, nbrs = [0], []
        for v in self.nodes[offsets[1]:]:
            nbrs += self.drawn[v]
            nbr_offsets.append(len(nbrs))
        return {"node_id_offsets": offsets, "node_ids": self.nodes, "nbr_offsets": nbr_offsets,
                "nbrs": nbrs, "repr_map": [place[u] for u in nbrs],
                "degrees": [self.degree[v] for v in self.nodes], "x": rounded(self.x)}


class Model:
    """A model with its options, on a batch. Parameters are drawn where they are first used."""

    def __init__(self, case, batch):
        self.case, self.batch, self.params = case, batch, {}
        hidden = case["hidden"]
        if case["model"] == "sgc":
            hidden = [WIDTH] * len(hidden)
        self.dims = [WIDTH] + hidden + [CLASSES]

    def option(self, name, default):
        return self.case.get(name) or default

    def param(self, name, rows, cols, mean=0.):
        if name not in self.params:
            scale = .6 if rows > 1 else .3
            self.params[name] = normal(rows, cols, mean, scale).requires_grad_()
        return self.params[name]

    def last(self, layer):
        return layer == len(self.dims) - 2

    def reduce(self, h, v, own):
        """The rows of v's list as one; a sum of some is scaled to that of all."""
        way, drawn = self.option("aggregate", own), self.batch.drawn[v]
        if not drawn:
            return torch.zeros_like(h[v])
        rows = torch.stack([h[u] for u in drawn])
        if way == "max":
            return rows.max(0).values
        if way == "mean":
            return rows.mean(0)
        return rows.sum(0) * self.batch.degree[v] / len(drawn)

    def finish(self, layer, x, y, activation):
        """Bias, shortcut, norm and activation of one node."""
        at, cols = f"layer {layer + 1} ", y.shape[0]
        y = y + self.param(at + "bias", 1, cols)[0]
        if self.case.get("residual"):
            if x.shape[0] == cols:
                y = y + x
            else:
                y = y + x @ self.param(at + "residual", x.shape[0], cols)
        if self.last(layer):
            return y
        if self.option("norm", "none") == "layer":
            gamma = self.param(at + "norm scale", 1, cols, 1.)[0]
            beta = self.param(at + "norm shift", 1, cols)[0]
            centred = y - y.mean()
            y = centred / torch.sqrt((centred ** 2).mean() + 1e-5) * gamma + beta
        activation = self.option("activation", activation)
        if activation == "elu":
            return torch.where(y > 0, y, torch.expm1(y))
        if activation == "gelu":
            return y * .5 * (1 + torch.erf(y / 2 ** .5))
        return torch.clamp(y, min=0)

    def sage(self, layer, h, v):
        at, a, b = f"layer {layer + 1} ", self.dims[layer], self.dims[layer + 1]
        self_w, nbr_w = self.param(at + "self", a, b), self.param(at + "neighbors", a, b)
        y = h[v] @ self_w + self.reduce(h, v, "mean") @ nbr_w
        return self.finish(layer, h[v], y, "relu")

    def propagate(self, h, v):
        """A row of (D+1)^-1/2 (A+I) (D+1)^-1/2 h, or of (D+1)^-1 (A+I) h for the mean."""
        drawn, degree = self.batch.drawn[v], self.batch.degree
        y = h[v] / (1 + degree[v])
        for u in drawn:
            scale = degree[v] / len(drawn)
            if self.option("aggregate", "sum") == "mean":
                y = y + h[u] * scale / (1 + degree[v])
            else:
                y = y + h[u] * scale / ((1 + degree[u]) * (1 + degree[v])) ** .5
        return y

    def gcn(self, layer, h, v):
        w = self.param(f"layer {layer + 1} weights", self.dims[layer], self.dims[layer + 1])
        return self.finish(layer, h[v], self.propagate(h, v) @ w, "relu")

    def sgc(self, layer, h, v):
        y = self.propagate(h, v)
        if not self.last(layer):
            return y
        return y @ self.param("weights", WIDTH, CLASSES) + self.param("bias", 1, CLASSES)[0]

    def mlp(self, layer, h, v):
        w = self.param(f"layer {layer + 1} weights", self.dims[layer], self.dims[layer + 1])
        return self.finish(layer, h[v], h[v] @ w, "relu")

    def gin(self, layer, h, v):
        at, a, b = f"layer {layer + 1} ", self.dims[layer], self.dims[layer + 1]
        inner = a if self.last(layer) else b
        first, bias = self.param(at + "weights 1", a, inner), self.param(at + "bias 1", 1, inner)
        y = (h[v] + self.reduce(h, v, "sum")) @ first + bias[0]
        y = torch.clamp(y, min=0) @ self.param(at + "weights 2", inner, b)
        return self.finish(layer, h[v], y, "relu")

    def width(self, layer):
        """Heads, and the width of each."""
        heads, cols = self.option("heads", 4), self.dims[layer + 1]
        return heads, cols if self.last(layer) else cols // heads

    def attend(self, layer, h, v, z, score):
        """Heads beside each other, of which the last layer takes the mean."""
        heads, d = self.width(layer)
        nodes, parts = self.batch.drawn[v] + [v], []
        for k in range(heads):
            s = torch.stack([score(u, k) for u in nodes])
            s = torch.exp(s - s.max())
            a = s / s.sum()
            parts.append(sum(a[i] * z(u)[k * d:k * d + d] for i, u in enumerate(nodes)))
        y = torch.stack(parts).mean(0) if self.last(layer) else torch.cat(parts)
        return self.finish(layer, h[v], y, "elu")

    def gat(self, layer, h, v):
        at, (heads, d) = f"layer {layer + 1} ", self.width(layer)
        w = self.param(at + "weights", self.dims[layer], heads * d)
        source = self.param(at + "attention of sources", d, heads)
        target = self.param(at + "attention of targets", d, heads)

        def score(u, k):
            head = slice(k * d, k * d + d)
            s = (h[u] @ w)[head] @ source[:, k] + (h[v] @ w)[head] @ target[:, k]
            return torch.where(s > 0, s, .2 * s)
        return self.attend(layer, h, v, lambda u: h[u] @ w, score)

    def gatv2(self, layer, h, v):
        at, (heads, d) = f"layer {layer + 1} ", self.width(layer)
        source = self.param(at + "weights of sources", self.dims[layer], heads * d)
        target = self.param(at + "weights of targets", self.dims[layer], heads * d)
        attention = self.param(at + "attention", 1, heads * d)[0]

        def score(u, k):
            head = slice(k * d, k * d + d)
            s = (h[u] @ source + h[v] @ target)[head]
            return torch.where(s > 0, s, .2 * s) @ attention[head]
        return self.attend(layer, h, v, lambda u: h[u] @ source, score)

    def logits(self):
        h = dict(zip(self.batch.nodes, self.batch.x))
        for layer in range(len(self.dims) - 1):
            step = getattr(self, self.case["model"])
            h = {v: step(layer, h, v) for v in self.batch.lists_of(layer)}
        return torch.stack([h[v] for v in SEEDS])

    def record(self):
        logits = self.logits()
        loss, counted = 0., [i for i, y in enumerate(LABELS) if y >= 0]
        for i in counted:
            loss = loss + (torch.logsumexp(logits[i], 0) - logits[i, LABELS[i]]) / len(counted)
        loss.backward()
        return self.case | {
            "dims": self.dims, "logits": rounded(logits), "loss": rounded(loss)[0],
            "params": [{"name": n, "values": rounded(w), "grad": rounded(w.grad)}
                       for n, w in self.params.items()]}


def rounded(t):
    return [float(f"{x:.6g}") for x in t.detach().flatten().tolist()]


# Widths of 12 and 4 around 6 features and 3 classes: products come before some aggregations and
# after others.
DEEP = {1: [], 2: [12], 3: [12, 4]}
NARROW = {"hidden": [4]}
CASES = []
for name in ["sage", "gcn", "sgc", "gin", "mlp", "gat", "gatv2"]:
    heads = {"heads": 2} if name in ("gat", "gatv2") else {}
    plain = {"model": name} | heads
    CASES += [plain | {"hidden": DEEP[n]} for n in (1, 2, 3)] + [plain | NARROW]
    if name != "mlp" and not heads:
        CASES.append(plain | NARROW | {"aggregate": "mean" if name != "sage" else "sum"})
    if name in ("sage", "gin"):
        CASES.append(plain | NARROW | {"aggregate": "max"})
        CASES.append(plain | {"hidden": [12, 6], "aggregate": "max", "residual": True})
    if name != "sgc":
        CASES.append(plain | {"hidden": [4, 6], "residual": True, "norm": "layer"})
        CASES.append(plain | NARROW | {"residual": True, "activation": "gelu"})
        CASES.append(plain | NARROW | {"norm": "layer",
                                       "activation": "relu" if heads else "elu"})
    if heads:
        CASES += [plain | NARROW | {"heads": 1}, {"model": name, "hidden": [8]}]

graph = make_graph()
BATCHES = [Batch(graph, fanouts) for fanouts in FANOUTS]
results = [Model(case, BATCHES[len(case["hidden"])]).record() for case in CASES]
print('{"labels": %s,\n"batches": [' % json.dumps(LABELS))
print(",\n".join(json.dumps(b.record()) for b in BATCHES) + '],\n"cases": [')
print(",\n".join(json.dumps(r, separators=(",", ":")) for r in results) + "]}")
