#!/usr/bin/env python3
"""Ratings of edges beside PyTorch Geometric: rmse, or how well distrust is told.

    python3 bench/edges.py --gdb ./gdb --work DIR bitcoin-otc/ratings.csv [--learn sign] [--seeds 5]
        [--columns]

The file has source, target, rating and time, as that of SNAP's bitcoin-otc (Kumar and others, 2016).
Ratings of zero and more are edges of one type, those below of another; both have reverse edges. Each
edge is learned from what its ends had strictly before it: the first eight tenths train, the next
validates, the last tests. Users have a 1 and a learned vector. Both sides train a GraphSAGE a
relation and a perceptron over both ends and their product, with the same fanout, width, batch, rate
and epochs; the test figures are those at the best validation. With --columns both read the ratings
of the drawn edges and log(1+n) of the n earlier ones of the same list: gdb by --edge-features
weight,degree, PyG behind the row of the neighbor in each message.
PyG's HeteroConv of SAGEConv computes; its loaders draw by times of edges only with pyg-lib, which has
no wheel for every machine, so the neighbors are drawn here, by the same rule. The figures of both are
computed here from predictions. Needs torch, torch_geometric.
"""
import argparse
import csv
import json
import os
import statistics
import subprocess
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch_geometric.nn import HeteroConv, Linear, MessagePassing, SAGEConv

RELATIONS = "trusts", "distrusts"


class Graph:
    """Edges in the order of their times, and for each relation lists of a node by time."""

    def __init__(self, path):
        rows = np.loadtxt(path, delimiter=",", skiprows=1)
        rows = rows[np.argsort(rows[:, 3], kind="stable")]
        self.users, ends = np.unique(rows[:, :2].astype(np.int64), return_inverse=True)
        self.ends, self.rating = ends.reshape(-1, 2), rows[:, 2].astype(np.float32)
        self.time = rows[:, 3].astype(np.int64)
        at = self.time[[int(.8 * len(rows)), int(.9 * len(rows))]]
        part = np.searchsorted(at, self.time, "right")
        self.split = {name: np.flatnonzero(part == i) for i, name in enumerate(("train", "val", "test"))}
        train, self.lists = self.rating[self.split["train"]], {}
        self.scale = train.mean(), train.std()
        for name, of in zip(RELATIONS, (self.rating >= 0, self.rating < 0)):
            for reverse, (a, b) in (("", (0, 1)), ("rev_", (1, 0))):
                src, dst, when = self.ends[of, a], self.ends[of, b], self.time[of]
                order = np.lexsort((when, dst))
                first = np.searchsorted(dst[order], np.arange(len(self.users) + 1))
                rating = (self.rating[of][order] - self.scale[0]) / self.scale[1]
                self.lists[reverse + name] = src[order], first, (dst[order] << 32) + when[order], rating

    def drawn(self, relation, nodes, times, most, rng):
        """Returns, for nodes as of times, rows of at most so many earlier neighbors, their nodes, and
        ratings and log degrees."""
        src, first, key, rating = self.lists[relation]
        begin = first[nodes]
        degree = np.searchsorted(key, (nodes << 32) + times) - begin
        few = np.flatnonzero(degree <= most)
        row = np.repeat(few, degree[few])
        at = np.arange(len(row)) - np.repeat(np.cumsum(degree[few]) - degree[few], degree[few])
        many = np.flatnonzero(degree > most)
        picked, left = np.empty((len(many), most), np.int64), np.arange(len(many))
        again = np.ones(picked.shape, bool)
        while len(left):  # what was picked before is picked anew
            fresh = (rng.random((len(left), most)) * degree[many[left], None]).astype(np.int64)
            picked[left] = part = np.where(again, fresh, picked[left])
            order = np.argsort(part, 1, kind="stable")
            ordered, again = np.take_along_axis(part, order, 1), np.zeros(part.shape, bool)
            np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], 1)
            some = again.any(1)
            left, again = left[some], again[some]
        row = np.concatenate([row, np.repeat(many, most)])
        at = begin[row] + np.concatenate([at, picked.ravel()])
        return row, src[at], np.stack([rating[at], np.log1p(degree[row])], 1).astype(np.float32)

    def batch(self, edges, fanout, rng):
        """Returns the nodes of a batch, its edges by relation, where the ends of edges are, and the columns
        of edges by relation."""
        pairs = (self.ends[edges] << 32) + self.time[edges, None]
        known, ends = np.unique(pairs, return_inverse=True)
        hop, lists, columns = known, {name: [] for name in self.lists}, {name: [] for name in self.lists}
        for most in fanout:
            drawn = [self.drawn(name, hop >> 32, hop & 0xffffffff, most, rng) for name in self.lists]
            pairs = [(node << 32) + (hop & 0xffffffff)[row] for row, node, _ in drawn]
            fresh = np.setdiff1d(np.concatenate(pairs), known)
            both = np.concatenate([known, fresh])
            order = np.argsort(both)
            place = lambda pair: order[np.searchsorted(both, pair, sorter=order)]
            at = place(hop)
            for name, (row, _, of), pair in zip(self.lists, drawn, pairs):
                lists[name].append(np.stack([place(pair), at[row]]))
                columns[name].append(of)
            known, hop = both, fresh
        of = lambda lists, axis: {("user", name, "user"): torch.from_numpy(np.concatenate(parts, axis))
                                  for name, parts in lists.items()}
        return (torch.from_numpy(known >> 32), of(lists, 1), torch.from_numpy(ends.reshape(-1, 2)),
                of(columns, 0))


class EdgeSage(MessagePassing):
    """SAGEConv with the columns of an edge behind the row of the neighbor."""

    def __init__(self, width, out):
        super().__init__(aggr="mean")
        self.of_neighbors, self.own = Linear(width + 2, out), Linear(width, out, bias=False)

    def forward(self, x, edge_index, edge_attr):
        return self.of_neighbors(self.propagate(edge_index, x=x, edge_attr=edge_attr)) + self.own(x)

    def message(self, x_j, edge_attr):
        return torch.cat([x_j, edge_attr], 1)


class Sage(torch.nn.Module):
    """A SAGEConv a relation, summed up, then a perceptron over both ends and their product."""

    def __init__(self, graph, args):
        super().__init__()
        self.dropout, self.vectors, self.columns = args.dropout, None, args.columns
        if args.vectors:
            self.vectors = torch.nn.Embedding(len(graph.users), args.vectors)
            torch.nn.init.xavier_uniform_(self.vectors.weight)
        widths = [1 + args.vectors] + [args.hidden] * len(args.fanout)
        conv = EdgeSage if args.columns else SAGEConv
        self.layers = torch.nn.ModuleList(
            HeteroConv({("user", name, "user"): conv(a, b) for name in graph.lists}, aggr="sum")
            for a, b in zip(widths, widths[1:]))
        self.first = torch.nn.Linear(3 * args.hidden, args.hidden)
        self.last = torch.nn.Linear(args.hidden, 2 if args.learn == "sign" else 1)

    def forward(self, nodes, edges, ends, columns):
        x = torch.ones(len(nodes), 1)
        if self.vectors is not None:
            x = torch.cat([x, self.vectors(nodes)], 1)
        for i, layer in enumerate(self.layers):
            x = F.dropout(x.relu() if i > 0 else x, self.dropout, self.training)
            x = layer({"user": x}, edges, *([columns] if self.columns else []))["user"]
        u, v = x[ends[:, 0]], x[ends[:, 1]]
        h = self.first(torch.cat([u, v, u * v], 1)).relu()
        return self.last(F.dropout(h, self.dropout, self.training))


def predict(graph, model, args, split, scale):
    """Returns a number for each edge of a split: its rating, or the odds of distrust."""
    model.eval()
    out, rng = [], np.random.default_rng(0)
    with torch.no_grad():
        for part in np.array_split(graph.split[split], len(graph.split[split]) // args.batch + 1):
            y = model(*graph.batch(part, args.fanout, rng))
            out.append(y[:, 1] - y[:, 0] if args.learn == "sign" else y[:, 0] * scale[1] + scale[0])
    return torch.cat(out).numpy()


def pyg(graph, args, seed):
    """Returns the predictions for val and test at the best validation, and the least time of an epoch."""
    torch.manual_seed(seed)
    rng, model, train = np.random.default_rng(seed), Sage(graph, args), graph.split["train"]
    optimizer = torch.optim.AdamW(model.parameters(), args.lr, weight_decay=args.weight_decay)
    scale = graph.scale
    y = torch.from_numpy((graph.rating - scale[0]) / scale[1])
    if args.learn == "sign":
        y = torch.from_numpy((graph.rating < 0).astype(np.int64))
    best, kept, least = -np.inf, None, np.inf
    for _ in range(args.epochs):
        begun = time.time()
        model.train()
        for part in np.array_split(rng.permutation(train), len(train) // args.batch + 1):
            optimizer.zero_grad()
            out = model(*graph.batch(part, args.fanout, rng))
            loss = F.cross_entropy(out, y[part]) if args.learn == "sign" else F.mse_loss(out[:, 0], y[part])
            loss.backward()
            optimizer.step()
        least = min(least, time.time() - begun)
        val = predict(graph, model, args, "val", scale)
        judged = judge(graph, args, "val", val, val)
        score = judged["roc-auc"] if args.learn == "sign" else -judged["rmse"]
        if score > best:
            best, kept = score, (val, predict(graph, model, args, "test", scale))
    return *kept, least


def judge(graph, args, split, said, val):
    """Returns the figures of predictions; the threshold of the last one comes from those for val."""
    rating = graph.rating[graph.split[split]]
    if args.learn == "rating":
        return {"rmse": float(np.sqrt(np.mean((said - rating) ** 2)))}
    of = graph.rating[graph.split["val"]] < 0
    at, precision, recall = curve(val, of)
    enough = np.flatnonzero(precision >= args.precision)
    least = at[enough[-1]] if len(enough) else np.inf
    is_so, yes = rating < 0, said >= least
    hit = (is_so & yes).sum()
    _, precision, recall = curve(said, is_so)
    return {"roc-auc": area(said, is_so), "pr-auc": float(np.sum(precision * np.diff(recall, prepend=0))),
            "recall": float(hit / is_so.sum()), "precision": float(hit / max(1, yes.sum()))}


def area(said, of):
    _, place, count = np.unique(said, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    return float((rank[of].sum() - of.sum() * (of.sum() + 1) / 2) / (of.sum() * (~of).sum()))


def curve(said, of):
    """Returns the different scores, descending, with precision and recall from each of them up."""
    order = np.argsort(-said, kind="stable")
    last = np.flatnonzero(np.diff(said[order], append=-np.inf))
    hit = np.cumsum(of[order])[last]
    return said[order][last], hit / (last + 1), hit / of.sum()


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(" ".join(command) + "\n" + done.stderr)
    return done.stdout


def ingest(graph, args):
    """Makes the store, if it is not there yet, and returns its path."""
    store, file = os.path.join(args.work, "edges.gdb"), lambda name: os.path.join(args.work, name + ".csv")
    if os.path.exists(store):
        return store
    np.savetxt(file("users"), np.stack([graph.users, np.ones_like(graph.users)], 1), "%d", ",",
               header="id,one", comments="")
    for name, of in zip(RELATIONS, (graph.rating >= 0, graph.rating < 0)):
        table = np.column_stack([graph.users[graph.ends[of]], graph.rating[of], graph.time[of]])
        np.savetxt(file(name), table, "%d", ",", header="src,dst,rating,time", comments="")
    edges = [f for name in RELATIONS for f in ("--edges", f"user:{name}:user={file(name)}")]
    of_each = lambda column: ",".join(f"{name}.{column}" for name in RELATIONS)
    run(args.gdb, "ingest", "--nodes", "user=" + file("users"), *edges, "--reverse", "--weight-col",
        of_each("rating"), "--time-col", of_each("time"), "--feature-cols", "user.one", "--label-col",
        "none", "--split-col", "none", "--quiet", "--out", store)
    return store


def gdb(graph, store, args, seed):
    """Returns the predictions for val and test at the best validation, and the least time of an epoch."""
    target = ",".join(name + ".weight" for name in RELATIONS) + ("<0" if args.learn == "sign" else "")
    lines = run(args.gdb, "train", store, "--json", "--quiet", "--seed", str(seed), "--task", "edge",
                "--target", target, "--metric", "roc-auc" if args.learn == "sign" else "rmse", "--model",
                "hsage", "--node-embedding", str(args.vectors), "--fanout",
                ",".join(map(str, args.fanout)), "--hidden", str(args.hidden), "--batch", str(args.batch),
                "--lr", str(args.lr), "--weight-decay", str(args.weight_decay), "--dropout",
                str(args.dropout), "--epochs", str(args.epochs),
                *(["--edge-features", "weight,degree"] if args.columns else [])).splitlines()
    records, said = [json.loads(line) for line in lines], []
    number = {int(user): i for i, user in enumerate(graph.users)}
    for split in ("val", "test"):
        out = os.path.join(args.work, split + ".csv")
        run(args.gdb, "predict", store, "--run", records[-1]["run"], "--split", split, "--quiet", "--force",
            *(["--probabilities"] if args.learn == "sign" else []), "--out", out)
        rows = list(csv.DictReader(open(out)))
        ends = [[number[int(r[end].split(":")[1])] for end in ("src", "dst")] for r in rows]
        value = {tuple(e): float(r["p:yes" if args.learn == "sign" else "prediction"])
                 for e, r in zip(ends, rows)}
        said.append(np.array([value[tuple(e)] for e in graph.ends[graph.split[split]].tolist()]))
    run(args.gdb, "runs", store, "rm", records[-1]["run"])
    return *said, min(r["time"] for r in records if "time" in r)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gdb", default="./gdb")
    p.add_argument("--work", required=True)
    p.add_argument("--learn", default="rating", choices=("rating", "sign"))
    p.add_argument("--precision", type=float, default=.7, help="at which recall is said")
    p.add_argument("--fanout", type=lambda s: [int(n) for n in s.split(",")], default=[5, 5])
    for name, value in (("seeds", 5), ("hidden", 32), ("batch", 256), ("epochs", 2), ("vectors", 8)):
        p.add_argument("--" + name, type=int, default=value)
    for name, value in (("lr", .01), ("weight-decay", 5e-4), ("dropout", .2)):
        p.add_argument("--" + name, type=float, default=value)
    p.add_argument("--columns", action="store_true", help="read ratings of earlier edges, and counts")
    p.add_argument("source")
    args = p.parse_args()
    graph = Graph(args.source)
    store, both = ingest(graph, args), []
    for seed in range(1, args.seeds + 1):
        both.append([])
        for name, (val, test, least) in (("gdb", gdb(graph, store, args, seed)),
                                         ("PyG", pyg(graph, args, seed))):
            both[-1].append(judge(graph, args, "test", test, val))
            print(f"seed {seed}: {name} {show(both[-1][-1])}, {least:.2f} s an epoch", flush=True)
    for metric in both[0][0]:
        ours, theirs = ([pair[i][metric] for pair in both] for i in (0, 1))
        by = [a - b for a, b in zip(ours, theirs)]
        error = statistics.stdev(by) / len(by) ** .5 if len(by) > 1 else 0
        print(f"{metric}: gdb {statistics.mean(ours):.4f}, PyG {statistics.mean(theirs):.4f}: "
              f"{statistics.mean(by):+.4f} ± {error:.4f}")


def show(figures):
    return ", ".join(f"{name} {value:.4f}" for name, value in figures.items())


if __name__ == "__main__":
    main()
