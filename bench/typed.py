#!/usr/bin/env python3
"""Models of typed graphs beside PyTorch Geometric: test accuracy, and the time of an epoch.

    gdb bench gen typed --scale 16 --edges 1e6 --dim 64 --classes 8 --train-frac 0.3 --out shop
    python3 bench/typed.py --gdb ./gdb --work DIR shop [--model hsage] [--seeds 5] [--epochs 20]

shop is what `gdb bench gen typed` writes. Both sides read the vectors of users, items and tags alone;
orders have none, and get a 1. PyG trains HeteroConv of SAGEConv (hsage) or HGTConv (hgt) on batches
of its NeighborLoader, and evaluates over all neighbors at once (hgt: over those it draws, as gdb
does). Both take the same fanout, width, batch, rate, dropout and epochs, and the test figure at the
best validation. Needs torch, torch_geometric with torch-sparse or pyg-lib, pyarrow.
"""
import argparse
import json
import os
import statistics
import subprocess
import time

import numpy as np
import pyarrow.parquet as parquet
import torch
import torch.nn.functional as F
from torch_geometric.data import HeteroData
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import HeteroConv, HGTConv, Linear, SAGEConv
from torch_geometric.transforms import ToUndirected
from torch_geometric.typing import WITH_PYG_LIB

EDGES = {("user", "views", "item"): ("views", "user_id", "item_id"),
         ("item", "tagged", "tag"): ("tagged", "item_id", "tag"),
         ("user", "places", "order"): ("orders", "user_id", "order_id"),
         ("order", "of", "item"): ("orders", "order_id", "item_id")}
KEYS = {"user": "user_id", "item": "item_id", "tag": "tag", "order": "order_id"}


def read(path):
    """Returns the tables as HeteroData, with reverse edges."""
    tables = {name: parquet.read_table(os.path.join(path, name + ".parquet"))
              for name in ("users", "items", "tags", "orders", "views", "tagged")}
    data, number = HeteroData(), {}
    for kind, key in KEYS.items():
        table = tables[kind + "s"]
        ids = table[key].to_numpy()
        order = np.argsort(ids)
        number[kind] = ids[order], order
        data[kind].x = torch.ones(len(ids), 1)
        if "embedding" in table.column_names:
            column = table["embedding"].combine_chunks()
            data[kind].x = torch.from_numpy(column.values.to_numpy().reshape(len(ids), -1).copy())
    for (src, name, dst), (table, a, b) in EDGES.items():
        ends = []
        for kind, column in ((src, a), (dst, b)):
            ids, order = number[kind]
            ends.append(order[np.searchsorted(ids, tables[table][column].to_numpy())])
        data[src, name, dst].edge_index = torch.from_numpy(np.stack(ends))
    classes, y = np.unique(tables["users"]["kind"].to_numpy(zero_copy_only=False), return_inverse=True)
    data["user"].y = torch.from_numpy(y)
    split = np.array(tables["users"]["split"].to_pylist(), dtype=object)
    for name in ("train", "val", "test"):
        data["user"][name] = torch.from_numpy(split == name)
    return ToUndirected()(data), len(classes)


class Sage(torch.nn.Module):
    """A SAGEConv a relation, summed up: one product with the node itself for each."""

    def __init__(self, data, args, classes):
        super().__init__()
        self.dropout = args.dropout
        widths = [{t: data[t].x.size(1) for t in data.node_types}]
        widths += [dict.fromkeys(data.node_types, args.hidden)] * (len(args.fanout) - 1)
        self.layers = torch.nn.ModuleList()
        for i, w in enumerate(widths):
            out = args.hidden if i + 1 < len(widths) else classes
            self.layers.append(HeteroConv({e: SAGEConv((w[e[0]], w[e[2]]), out)
                                           for e in data.edge_types}, aggr="sum"))

    def forward(self, x, edges):
        for i, layer in enumerate(self.layers):
            if i > 0:
                x = {t: h.relu() for t, h in x.items()}
            x = layer({t: F.dropout(h, self.dropout, self.training) for t, h in x.items()}, edges)
        return x["user"]


class HGT(torch.nn.Module):
    """A product by type, HGTConvs, and a product to the classes."""

    def __init__(self, data, args, classes):
        super().__init__()
        self.dropout = args.dropout
        self.first = torch.nn.ModuleDict({t: Linear(data[t].x.size(1), args.hidden)
                                          for t in data.node_types})
        self.layers = torch.nn.ModuleList(HGTConv(args.hidden, args.hidden, data.metadata(), 4)
                                          for _ in args.fanout)
        self.last = Linear(args.hidden, classes)

    def forward(self, x, edges):
        x = {t: F.dropout(self.first[t](h).relu(), self.dropout, self.training)
             for t, h in x.items()}
        for layer in self.layers:
            x = layer(x, edges)
        return self.last(x["user"])


def loader(data, args, split, shuffle):
    return NeighborLoader(data, args.fanout, ("user", data["user"][split]), batch_size=args.batch,
                          shuffle=shuffle)


@torch.no_grad()
def evaluate(model, data, args, split):
    model.eval()
    if args.model != "hgt":
        out = model(data.x_dict, data.edge_index_dict)[data["user"][split]]
        return (out.argmax(1) == data["user"].y[data["user"][split]]).float().mean().item()
    right = total = 0
    for batch in loader(data, args, split, False):
        n = batch["user"].batch_size
        out = model(batch.x_dict, batch.edge_index_dict)[:n]
        right += (out.argmax(1) == batch["user"].y[:n]).sum().item()
        total += n
    return right / total


def pyg(data, classes, args, seed):
    """Returns the test accuracy at the best validation, and the least time of an epoch."""
    torch.manual_seed(seed)
    model = (HGT if args.model == "hgt" else Sage)(data, args, classes)
    optimizer = torch.optim.AdamW(model.parameters(), args.lr, weight_decay=args.weight_decay)
    batches, best, test, least = loader(data, args, "train", True), -1, 0, float("inf")
    for _ in range(args.epochs):
        begun = time.time()
        model.train()
        for batch in batches:
            optimizer.zero_grad()
            n = batch["user"].batch_size
            out = model(batch.x_dict, batch.edge_index_dict)[:n]
            F.cross_entropy(out, batch["user"].y[:n]).backward()
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


def ingest(args):
    """Makes the store, if it is not there yet, and returns its path."""
    store = os.path.join(args.work, os.path.basename(args.source.rstrip("/")) + ".gdb")
    if os.path.exists(store):
        return store
    table = lambda name: os.path.join(args.source, name + ".parquet")
    nodes = [f for t in KEYS for f in ("--nodes", f"{t}={table(t + 's')}")]
    edges = [f for (s, r, d), (t, _, _) in EDGES.items() for f in ("--edges", f"{s}:{r}:{d}={table(t)}")]
    run(args.gdb, "ingest", *nodes, *edges, "--src-col", "places.user_id,of.order_id",
        "--dst-col", "places.order_id,of.item_id", "--label-col", "user.kind",
        "--feature-cols", "user.embedding,item.embedding,tag.embedding", "--split-col", "user.split",
        "--reverse", "--quiet", "--out", store)
    return store


def gdb(store, args, seed):
    """Returns the test accuracy at the best validation, and the least time of an epoch."""
    evaluation = ["--eval-mode", "sampled"] if args.model == "hgt" else []
    lines = run(args.gdb, "train", store, "--json", "--quiet", "--seed", str(seed), "--model", args.model,
                "--fanout", ",".join(map(str, args.fanout)), "--hidden", str(args.hidden), "--batch",
                str(args.batch), "--lr", str(args.lr), "--weight-decay", str(args.weight_decay),
                "--dropout", str(args.dropout), "--epochs", str(args.epochs), *evaluation).splitlines()
    records = [json.loads(line) for line in lines]
    run(args.gdb, "runs", store, "rm", records[-1]["run"])
    return records[-1]["test"], min(r["time"] for r in records if "time" in r)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--gdb", default="./gdb")
    p.add_argument("--work", required=True)
    p.add_argument("--model", default="hsage", choices=("hsage", "hgt"))
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--fanout", type=lambda s: [int(n) for n in s.split(",")], default=[10, 10])
    for name, value in (("hidden", 64), ("batch", 1024), ("epochs", 20)):
        p.add_argument("--" + name, type=int, default=value)
    for name, value in (("lr", .01), ("weight-decay", 5e-4), ("dropout", .2)):
        p.add_argument("--" + name, type=float, default=value)
    p.add_argument("--time", action="store_true", help="PyG does not evaluate: for large graphs")
    p.add_argument("source")
    args = p.parse_args()
    store, (data, classes) = ingest(args), read(args.source)
    print("PyG draws by", "pyg-lib" if WITH_PYG_LIB else "torch-sparse", flush=True)
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
