"""Forward and backward pass of GraphSAGE (mean), computed apart from gdb, for its tests.

    python3 sage.py > sage.json        (numpy only; fixed seed)

A small graph is sampled to DENSE by plain dictionaries. The passes then run node by node over
those dictionaries, in float64, without using DENSE's layout: a hidden state for each node and
layer, the chain rule written out for each edge.
"""
import json
import numpy as np

rng = np.random.default_rng(7)
NODES, DIMS, FANOUT, SEEDS = 40, [6, 8, 5, 4], [3, 4, 2], [3, 17, 9, 30, 22]
LAYERS = len(FANOUT)

nbrs_of = {v: sorted(rng.choice(NODES, size=rng.integers(0, 7), replace=False).tolist())
           for v in range(NODES)}
nbrs_of[9] = []  # a seed without neighbors

# --- sample: a node is drawn for once, at the hop where it first appears
hops, drawn, known = [list(SEEDS)], {}, set(SEEDS)
for fanout in FANOUT:
    new = []
    for v in hops[-1]:
        full = nbrs_of[v]
        take = full if len(full) <= fanout else rng.choice(full, fanout, replace=False).tolist()
        drawn[v] = take
        for u in take:
            if u not in known:
                known.add(u)
                new.append(u)
    hops.append(new)

deltas = hops[::-1]  # outermost first
node_ids = [v for delta in deltas for v in delta]
offsets = np.cumsum([0] + [len(d) for d in deltas]).tolist()
place = {v: i for i, v in enumerate(node_ids)}
nbr_offsets, nbrs = [0], []
for v in node_ids[offsets[1]:]:
    nbrs += drawn[v]
    nbr_offsets.append(len(nbrs))

# --- parameters, features, labels
weights = []
for a, b in zip(DIMS, DIMS[1:]):
    weights.append({"self": rng.normal(size=(a, b)) * .5, "nbr": rng.normal(size=(a, b)) * .5,
                    "bias": rng.normal(size=b) * .1})
for w in weights:  # what gdb sees are float32
    for k in w:
        w[k] = w[k].astype(np.float32).astype(np.float64)
x = rng.normal(size=(len(node_ids), DIMS[0])).astype(np.float32).astype(np.float64)
labels = [2, -1, 0, 3, 1]
targets = (rng.random((len(SEEDS), DIMS[-1])) < .4).astype(np.float64)

# --- forward: state[l][v], for the nodes that later layers need
state = [{v: x[place[v]] for v in node_ids}]
pre = []
for l, w in enumerate(weights):
    outputs = [v for delta in deltas[l + 1:] for v in delta]
    z = {}
    for v in outputs:
        mean = np.zeros(DIMS[l])
        for u in drawn[v]:
            mean = mean + state[l][u] / len(drawn[v])
        z[v] = state[l][v] @ w["self"] + mean @ w["nbr"] + w["bias"]
    pre.append(z)
    state.append({v: z[v] if l == LAYERS - 1 else np.maximum(z[v], 0) for v in outputs})
logits = np.array([state[-1][v] for v in SEEDS])


def backward(dlogits):
    grads = [{k: np.zeros_like(w[k]) for k in w} for w in weights]
    dstate = {v: g for v, g in zip(SEEDS, dlogits)}
    for l in reversed(range(LAYERS)):
        w, g, below = weights[l], grads[l], {}
        for v, dh in dstate.items():
            dz = dh if l == LAYERS - 1 else dh * (pre[l][v] > 0)
            g["bias"] += dz
            g["self"] += np.outer(state[l][v], dz)
            below[v] = below.get(v, 0) + w["self"] @ dz
            for u in drawn[v]:
                g["nbr"] += np.outer(state[l][u], dz) / len(drawn[v])
                below[u] = below.get(u, 0) + w["nbr"] @ dz / len(drawn[v])
        dstate = below
    return grads


counted = [i for i, y in enumerate(labels) if y >= 0]
dsoft, loss = np.zeros_like(logits), 0.0
for i in counted:
    p = np.exp(logits[i] - logits[i].max())
    p /= p.sum()
    loss -= np.log(p[labels[i]]) / len(counted)
    dsoft[i] = p / len(counted)
    dsoft[i, labels[i]] -= 1 / len(counted)

sig = 1 / (1 + np.exp(-logits))
bce = -(targets * np.log(sig) + (1 - targets) * np.log(1 - sig)).mean()
dbce = (sig - targets) / logits.size


def flat(a):
    return np.asarray(a, dtype=np.float64).ravel().tolist()


def tensors(ws):
    return [{k: flat(w[k]) for k in w} for w in ws]


print(json.dumps({
    "dims": DIMS, "seeds": SEEDS, "node_id_offsets": offsets, "node_ids": node_ids,
    "nbr_offsets": nbr_offsets, "nbrs": nbrs, "repr_map": [place[u] for u in nbrs],
    "x": flat(x), "weights": tensors(weights), "labels": labels, "targets": flat(targets),
    "logits": flat(logits), "softmax_loss": loss, "softmax_grads": tensors(backward(dsoft)),
    "bce_loss": bce, "bce_grads": tensors(backward(dbce))}))
