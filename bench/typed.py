#!/usr/bin/env python3
"""Models of typed graphs beside PyTorch Geometric: test accuracy, and the time of an epoch.

    gdb bench gen typed --scale 16 --edges 1e6 --dim 64 --classes 8 --train-frac 0.3 --out shop
    python3 bench/typed.py --gdb ./gdb --work DIR shop [--model hsage] [--seeds 5] [--epochs 20]
    python3 bench/typed.py --gdb ./gdb --work DIR --graph ldbc ldbc-snb-sample
    python3 bench/typed.py --gdb ./gdb --work DIR --graph triples --model rgcn codex-s

shop is what `gdb bench gen typed` writes: the kind of a user. Both sides read the vectors of users,
items and tags alone. ldbc is the sample of LDBC's social network: the continent that a comment comes
from, without the edges that say it; places, tags, persons and the like have random vectors. Types
without a vector get a 1. triples are facts (head, relation, tail): the country of whom P27 has one of
the eight most frequent for, without the edges of P27; vectors of entities are learned.
PyG trains HeteroConv of SAGEConv (hsage), HGTConv (hgt), RGATConv (rgat) or RGCNConv (rgcn) on batches
of its NeighborLoader, and evaluates over all neighbors at once (hgt and rgat: over those it draws, as
gdb does). RGATConv has a matrix of each edge in memory: take a small --hidden and --batch. Both take the same fanout, width, batch, rate, dropout and epochs, and the test figure at the best
validation. Needs torch, torch_geometric with torch-sparse or pyg-lib, else gdbgraph, which then draws PyG's
batches; pyarrow.
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import time

import numpy as np
import pyarrow
import pyarrow.parquet as parquet
import torch
import torch.nn.functional as F
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import HeteroConv, HGTConv, Linear, RGATConv, RGCNConv, SAGEConv
from torch_geometric.transforms import ToUndirected
from torch_geometric.typing import WITH_PYG_LIB, WITH_TORCH_SPARSE

if WITH_PYG_LIB or WITH_TORCH_SPARSE:
    from torch_geometric.loader import NeighborLoader
else:
    from gdbgraph import NeighborLoader

class Graph:
    """Tables of Parquet, and what they are: keys of node types, ends of relations, what is learned."""

    def __init__(self, path, nodes, edges, target, label):
        self.path, self.nodes, self.edges = path, nodes, edges
        self.target, self.label = target, label

    def table(self, name):
        return parquet.read_table(os.path.join(self.path, name + ".parquet"))

    def has(self, kind, column):
        file = os.path.join(self.path, self.nodes[kind][0] + ".parquet")
        return column in parquet.read_schema(file).names

    def read(self):
        """Returns the tables as HeteroData with reverse edges, and the number of classes."""
        data, number = HeteroData(), {}
        for kind, (name, key) in self.nodes.items():
            table = self.table(name)
            ids = table[key].to_numpy()
            order = np.argsort(ids)
            number[kind] = ids[order], order
            data[kind].x = torch.ones(len(ids), 1)
            if "embedding" in table.column_names:
                column = table["embedding"].combine_chunks()
                data[kind].x = torch.from_numpy(column.values.to_numpy().reshape(len(ids), -1).copy())
        for (src, name, dst), (table, a, b) in self.edges.items():
            table, ends = self.table(table), []
            for kind, column in ((src, a), (dst, b)):
                ids, order = number[kind]
                ends.append(order[np.searchsorted(ids, table[column].to_numpy())])
            data[src, name, dst].edge_index = torch.from_numpy(np.stack(ends))
        if not self.edges:
            data = self.relations(data)
        table = self.table(self.nodes[self.target][0])
        labels, split = table[self.label].to_pylist(), np.array(table["split"].to_pylist(), dtype=object)
        classes = sorted({y for y in labels if y is not None})
        part = data[self.target] if self.edges else data
        part.y = torch.tensor([classes.index(y) if y is not None else -1 for y in labels])
        for name in ("train", "val", "test"):
            part[name] = torch.from_numpy(split == name)
        return ToUndirected(merge=False)(data) if self.edges else data, len(classes)

    def relations(self, nodes):
        """Returns the one table of edges as Data with their types."""
        table = self.table("edges")
        ends = np.stack([table["src"].to_numpy(), table["dst"].to_numpy()])
        names, types = np.unique(table["relation"].to_numpy(), return_inverse=True)
        return Data(edge_index=torch.from_numpy(ends), edge_type=torch.from_numpy(types),
                    num_nodes=nodes[self.target].num_nodes)


def shop(path, work):
    """Returns what gdb bench gen typed wrote."""
    nodes = {"user": ("users", "user_id"), "item": ("items", "item_id"), "tag": ("tags", "tag"),
             "order": ("orders", "order_id")}
    edges = {("user", "views", "item"): ("views", "user_id", "item_id"),
             ("item", "tagged", "tag"): ("tagged", "item_id", "tag"),
             ("user", "places", "order"): ("orders", "user_id", "order_id"),
             ("order", "of", "item"): ("orders", "order_id", "item_id")}
    return Graph(path, nodes, edges, "user", "kind")


def write(path, name, columns):
    table = pyarrow.table({k: v for k, v in columns.items() if v is not None})
    parquet.write_table(table, os.path.join(path, name + ".parquet"))


def vectors(rng, count, width):
    values = pyarrow.array(rng.standard_normal(count * width, dtype=np.float32))
    return pyarrow.FixedSizeListArray.from_arrays(values, width)


def splits(rng, labels):
    """Returns the split of each row: 3 of 10 train, 2 val, 5 test, none without a label."""
    drawn = rng.choice(["train", "train", "train", "val", "val"] + ["test"] * 5, len(labels))
    return [s if y is not None else None for s, y in zip(drawn.tolist(), labels)]


def ldbc(source, work):
    """Writes LDBC's sample as tables: the continent of comments is theirs by a place that is left out."""
    load = lambda name: np.load(os.path.join(source, name + ".npy"))
    lines = lambda name: [line.split() for line in open(os.path.join(source, name + ".tsv"))]
    all_edges, node_type, rng = load("edges_typed"), load("node_type"), np.random.default_rng(1)
    kinds = [name for _, name, _ in lines("node_types")]
    relations = [tuple(line[1:4]) for line in lines("edge_types")]
    of = lambda name: all_edges[all_edges[:, 2] == relations.index(name)][:, :2]
    part = dict(of(("Place", "isPartOf", "Place")).tolist())
    hidden = ("Comment", "isLocatedIn", "Place")
    continent = {c: part.get(p) for c, p in of(hidden).tolist()}
    path = os.path.join(work, "ldbc")
    os.makedirs(path, exist_ok=True)
    nodes, edges = {}, {}
    for i, kind in enumerate(kinds):
        ids, plain = np.flatnonzero(node_type == i), kind in ("Comment", "Post")
        labels = [continent.get(c) for c in ids.tolist()] if kind == "Comment" else None
        labels = labels and [y and f"c{y}" for y in labels]
        write(path, kind, {"id": ids, "embedding": None if plain else vectors(rng, len(ids), 32),
                           "continent": labels, "split": labels and splits(rng, labels)})
        nodes[kind] = kind, "id"
    for src, name, dst in relations:
        if (src, name, dst) == hidden:
            continue
        relation = name if (src, dst) in edges else f"{src}_{name}_{dst}"
        ends = of((src, name, dst))
        write(path, relation, {"src": ends[:, 0], "dst": ends[:, 1]})
        edges[src, relation, dst] = relation, "src", "dst"
    return Graph(path, nodes, edges, "Comment", "continent")


def triples(source, work):
    """Writes facts as tables: an edge has a relation, and each its reverse; P27 is learned."""
    facts = [line.rstrip("\n").split("\t") for name in ("train", "valid", "test")
             for line in open(os.path.join(source, name + ".tsv"))]
    rng, names = np.random.default_rng(1), sorted({e for f in facts for e in (f[0], f[2])})
    countries = {h: t for h, r, t in facts if r == "P27"}
    counts = collections.Counter(countries.values())
    frequent = {c for c, _ in counts.most_common(8)}
    labels = [countries.get(n) if countries.get(n) in frequent else None for n in names]
    number = {n: i for i, n in enumerate(names)}
    kept = [(number[h], r, number[t]) for h, r, t in facts if r != "P27"]
    kept += [(t, "rev_" + r, h) for h, r, t in kept]
    path = os.path.join(work, "triples")
    os.makedirs(path, exist_ok=True)
    write(path, "nodes", {"id": np.arange(len(names)), "country": labels, "split": splits(rng, labels)})
    write(path, "edges", {"src": [h for h, _, _ in kept], "dst": [t for _, _, t in kept],
                          "relation": [r for _, r, _ in kept]})
    return Graph(path, {"entity": ("nodes", "id")}, {}, "entity", "country")


GRAPHS = {"shop": shop, "ldbc": ldbc, "triples": triples}


class Sage(torch.nn.Module):
    """A SAGEConv a relation, summed up: one product with the node itself for each."""

    def __init__(self, data, args, classes):
        super().__init__()
        self.dropout, self.target = args.dropout, args.target
        widths = [{t: data[t].x.size(1) for t in data.node_types}]
        widths += [dict.fromkeys(data.node_types, args.hidden)] * (len(args.fanout) - 1)
        self.layers = torch.nn.ModuleList()
        for i, w in enumerate(widths):
            out = args.hidden if i + 1 < len(widths) else classes
            self.layers.append(HeteroConv({e: SAGEConv((w[e[0]], w[e[2]]), out)
                                           for e in data.edge_types}, aggr="sum"))

    def forward(self, batch):
        x, edges = batch.x_dict, batch.edge_index_dict
        for i, layer in enumerate(self.layers):
            if i > 0:
                x = {t: h.relu() for t, h in x.items()}
            x = layer({t: F.dropout(h, self.dropout, self.training) for t, h in x.items()}, edges)
        return x[self.target]


class HGT(torch.nn.Module):
    """A product by type, HGTConvs, and a product to the classes."""

    def __init__(self, data, args, classes):
        super().__init__()
        self.dropout, self.target = args.dropout, args.target
        self.first = torch.nn.ModuleDict({t: Linear(data[t].x.size(1), args.hidden)
                                          for t in data.node_types})
        self.layers = torch.nn.ModuleList(HGTConv(args.hidden, args.hidden, data.metadata(), 4)
                                          for _ in args.fanout)
        self.last = Linear(args.hidden, classes)

    def forward(self, batch):
        x, edges = batch.x_dict, batch.edge_index_dict
        x = {t: F.dropout(self.first[t](h).relu(), self.dropout, self.training)
             for t, h in x.items()}
        for layer in self.layers:
            x = layer(x, edges)
        return self.last(x[self.target])


class RGAT(torch.nn.Module):
    """A product by type, and RGATConvs beside a product of the node itself by type."""

    def __init__(self, data, args, classes):
        super().__init__()
        self.dropout, self.target, self.relations = args.dropout, args.target, data.edge_types
        self.first = torch.nn.ModuleDict({t: Linear(data[t].x.size(1), args.hidden)
                                          for t in data.node_types})
        self.layers, self.own = torch.nn.ModuleList(), torch.nn.ModuleList()
        for i in range(len(args.fanout)):
            last = i + 1 == len(args.fanout)
            self.layers.append(RGATConv(args.hidden, classes if last else args.hidden // 4,
                                        len(self.relations), heads=4, concat=not last,
                                        dropout=args.dropout))
            self.own.append(torch.nn.ModuleDict(
                {t: Linear(args.hidden, classes if last else args.hidden) for t in data.node_types}))

    def forward(self, batch):
        drop = lambda h: F.dropout(h, self.dropout, self.training)
        x = {t: self.first[t](drop(h)).relu() for t, h in batch.x_dict.items()}
        counts = [len(h) for h in x.values()]
        first = dict(zip(x, np.cumsum([0] + counts)))
        ends, types = [], []
        for r, (s, name, d) in enumerate(self.relations):
            e = batch[s, name, d].edge_index
            ends.append(torch.stack([e[0] + first[s], e[1] + first[d]]))
            types.append(torch.full((e.size(1),), r))
        ends, types = torch.cat(ends, 1), torch.cat(types)
        for i, layer in enumerate(self.layers):
            if i > 0:
                x = {t: drop(F.elu(h)) for t, h in x.items()}
            both = layer(torch.cat(list(x.values())), ends, types).split(counts)
            x = {t: h + self.own[i][t](x[t]) for t, h in zip(x, both)}
        return x[self.target]


class RGCN(torch.nn.Module):
    """Learned vectors of entities, and RGCNConvs with bases."""

    def __init__(self, data, args, classes):
        super().__init__()
        self.dropout = args.dropout
        self.vectors = torch.nn.Embedding(data.num_nodes, args.hidden)
        torch.nn.init.xavier_uniform_(self.vectors.weight)
        widths = [args.hidden] * len(args.fanout) + [classes]
        self.layers = torch.nn.ModuleList(
            RGCNConv(a, b, int(data.edge_type.max()) + 1, num_bases=8)
            for a, b in zip(widths, widths[1:]))

    def forward(self, batch):
        x = self.vectors(batch.n_id if "n_id" in batch else torch.arange(batch.num_nodes))
        for i, layer in enumerate(self.layers):
            x = F.dropout(x.relu() if i > 0 else x, self.dropout, self.training)
            x = layer(x, batch.edge_index, batch.edge_type)
        return x


MODELS = {"hsage": Sage, "hgt": HGT, "rgat": RGAT, "rgcn": RGCN}
SAMPLED = ("hgt", "rgat")  # are evaluated over the neighbors that are drawn


def of_target(data, args):
    """Returns the part of data, or of a batch, that has the labels."""
    return data[args.target] if isinstance(data, HeteroData) else data


def loader(data, args, split, shuffle):
    seeds = of_target(data, args)[split]
    if isinstance(data, HeteroData):
        seeds = args.target, seeds
    return NeighborLoader(data, args.fanout, seeds, batch_size=args.batch, shuffle=shuffle)


@torch.no_grad()
def evaluate(model, data, args, split):
    model.eval()
    if args.model not in SAMPLED:
        part = of_target(data, args)
        return (model(data)[part[split]].argmax(1) == part.y[part[split]]).float().mean().item()
    right = total = 0
    for batch in loader(data, args, split, False):
        part = of_target(batch, args)
        out = model(batch)[:part.batch_size]
        right += (out.argmax(1) == part.y[:part.batch_size]).sum().item()
        total += part.batch_size
    return right / total


def pyg(data, classes, args, seed):
    """Returns the test accuracy at the best validation, and the least time of an epoch."""
    torch.manual_seed(seed)
    model = MODELS[args.model](data, args, classes)
    optimizer = torch.optim.AdamW(model.parameters(), args.lr, weight_decay=args.weight_decay)
    batches, best, test, least = loader(data, args, "train", True), -1, 0, float("inf")
    for _ in range(args.epochs):
        begun = time.time()
        model.train()
        for batch in batches:
            optimizer.zero_grad()
            part = of_target(batch, args)
            out = model(batch)[:part.batch_size]
            F.cross_entropy(out, part.y[:part.batch_size]).backward()
            optimizer.step()
        least = min(least, time.time() - begun)
        if args.time:
            continue
        val = evaluate(model, data, args, "val")
        if val > best:
            best, test = val, evaluate(model, data, args, "test")
    return test, least


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(" ".join(command) + "\n" + done.stderr)
    return done.stdout


def ingest(graph, args):
    """Makes the store, if it is not there yet, and returns its path."""
    store = os.path.join(args.work, os.path.basename(graph.path.rstrip("/")) + ".gdb")
    if os.path.exists(store):
        return store
    file = lambda name: os.path.join(graph.path, name + ".parquet")
    split = ["--label-col", graph.label, "--split-col", "split"]
    if not graph.edges:
        run(args.gdb, "ingest", "--nodes", file("nodes"), "--edges", file("edges"), "--rel-col",
            "relation", "--id-col", "id", *split, "--quiet", "--out", store)
        return store
    nodes = [f for t, (name, _) in graph.nodes.items() for f in ("--nodes", f"{t}={file(name)}")]
    edges = [f for (s, r, d), (name, _, _) in graph.edges.items()
             for f in ("--edges", f"{s}:{r}:{d}={file(name)}")]
    ends = [",".join(f"{r}.{column[i]}" for (_, r, _), column in graph.edges.items()) for i in (1, 2)]
    keys = ",".join(f"{t}.{key}" for t, (_, key) in graph.nodes.items())
    features = ",".join(t + ".embedding" for t in graph.nodes if graph.has(t, "embedding"))
    run(args.gdb, "ingest", *nodes, *edges, "--id-col", keys, "--src-col", ends[0], "--dst-col", ends[1],
        "--label-col", f"{graph.target}.{graph.label}", "--split-col", graph.target + ".split",
        "--feature-cols", features, "--reverse", "--quiet", "--out", store)
    return store


def gdb(store, args, seed):
    """Returns the test accuracy at the best validation, and the least time of an epoch."""
    more = {"hgt": ["--eval-mode", "sampled"], "rgat": ["--eval-mode", "sampled"], "hsage": [],
            "rgcn": ["--node-embedding", str(args.hidden), "--bases", "8"]}[args.model]
    lines = run(args.gdb, "train", store, "--json", "--quiet", "--seed", str(seed), "--model", args.model,
                "--fanout", ",".join(map(str, args.fanout)), "--hidden", str(args.hidden), "--batch",
                str(args.batch), "--lr", str(args.lr), "--weight-decay", str(args.weight_decay),
                "--dropout", str(args.dropout), "--epochs", str(args.epochs), *more).splitlines()
    records = [json.loads(line) for line in lines]
    run(args.gdb, "runs", store, "rm", records[-1]["run"])
    return records[-1]["test"], min(r["time"] for r in records if "time" in r)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gdb", default="./gdb")
    p.add_argument("--work", required=True)
    p.add_argument("--model", default="hsage", choices=MODELS)
    p.add_argument("--graph", default="shop", choices=GRAPHS)
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--fanout", type=lambda s: [int(n) for n in s.split(",")], default=[10, 10])
    for name, value in (("hidden", 64), ("batch", 1024), ("epochs", 20)):
        p.add_argument("--" + name, type=int, default=value)
    for name, value in (("lr", .01), ("weight-decay", 5e-4), ("dropout", .2)):
        p.add_argument("--" + name, type=float, default=value)
    p.add_argument("--time", action="store_true", help="PyG does not evaluate: for large graphs")
    p.add_argument("source")
    args = p.parse_args()
    graph = GRAPHS[args.graph](args.source, args.work)
    args.target = graph.target
    store, (data, classes) = ingest(graph, args), graph.read()
    print("PyG draws by", "pyg-lib" if WITH_PYG_LIB else
          "torch-sparse" if WITH_TORCH_SPARSE else "gdbgraph", flush=True)
    both = []
    for seed in range(1, args.seeds + 1):
        ours, theirs = gdb(store, args, seed), pyg(data, classes, args, seed)
        both.append((ours[0], theirs[0]))
        print(f"seed {seed}: gdb {ours[0]:.4f} in {ours[1]:.2f} s an epoch, PyG {theirs[0]:.4f} in "
              f"{theirs[1]:.2f} s", flush=True)
    by = [a - b for a, b in both]
    error = statistics.stdev(by) / len(by) ** .5 if len(by) > 1 else 0
    print(f"gdb {statistics.mean(a for a, _ in both):.4f}, PyG {statistics.mean(b for _, b in both):.4f}: "
          f"gdb has {100 * statistics.mean(by):+.2f} ± {100 * error:.2f} points")


if __name__ == "__main__":
    main()
