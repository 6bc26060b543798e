#!/usr/bin/env python3
"""A model of PyTorch Geometric on batches of a store, beside the same on PyG's own NeighborLoader.

    bench/pyg_accuracy.py ARRAYS [--seeds 5] [--epochs 30] [--parts 2]

ARRAYS has edges.npy, features.npy, labels.npy and the splits, as `gdb ingest` reads them; stores
are made in a temporary directory. Each seed trains GraphSAGE (2 layers, 64 units) on each kind of
batches; a line has the test accuracy at the best validation. With --parts K also on the parts that
`gdb partition` makes, a rank and a server for each, gradients averaged after each batch as
DistributedDataParallel does, evaluated with the whole store.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

import gdbgraph
from gdbgraph import _binary

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))
from sage import Sage, accuracy  # noqa: E402

FANOUT = [10, 10]


def train(store, epochs_of, args, seed):
    """The test accuracy at the best validation. epochs_of gives the steps of an epoch: a list of
    batches, one for each rank."""
    torch.manual_seed(seed)
    model = Sage([store.num_features, 64, len(store.classes)])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    val, test = (store.loader(FANOUT, 512, name, seed=seed, rank=0, world_size=1)
                 for name in ("val", "test"))
    best, tested = -1.0, 0.0
    for _ in range(args.epochs):
        model.train()
        for step in epochs_of():
            optimizer.zero_grad()
            for batch in step:
                out = model(batch.x, batch.edge_index)[: batch.batch_size]
                loss = cross_entropy(out, batch.y[: batch.batch_size], ignore_index=-1)
                (loss / len(step)).backward()
            optimizer.step()
        score = accuracy(model, val)
        if score > best:
            best, tested = score, accuracy(model, test)
    val.close()
    test.close()
    return tested


def of_gdb(stores, args, seed):
    """Steps of the loaders of stores, which go on as long as all have a batch."""
    loaders = [s.loader(FANOUT, args.batch // len(stores), seed=seed, rank=0, world_size=1)
               for s in stores]
    return lambda: ([*step] for step in zip(*loaders))


def of_pyg(store, arrays, args):
    """Steps of NeighborLoader, over the lists, features and labels that the store has."""
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    nodes = torch.arange(store.num_nodes)
    starts, sources = store.neighbors(nodes)
    targets = torch.repeat_interleave(nodes, starts.diff())
    data = Data(x=store.features[nodes], y=store.labels_of(nodes),
                edge_index=torch.stack([sources, targets]))
    seeds = torch.cat([b.n_id[: b.batch_size].clone() for b in store.loader([1], 512)])
    loader = NeighborLoader(data, FANOUT, input_nodes=seeds, batch_size=args.batch, shuffle=True)
    return lambda: ([batch] for batch in loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("arrays")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--parts", type=int, default=0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(args, Path(folder))


def run(args, folder):
    gdb, path = _binary.find(), str(folder / "whole.gdb")
    subprocess.run([gdb, "ingest", args.arrays, "--out", path, "--undirected", "--quiet"],
                   check=True)
    results = {"gdb": [], "pyg": []}
    with gdbgraph.open(path) as store:
        parts = []
        if args.parts:
            subprocess.run([gdb, "partition", path, f"--parts={args.parts}",
                            f"--hops={len(FANOUT)}", "--out", str(folder / "parts"), "--quiet"],
                           check=True)
            parts = [gdbgraph.open(folder / "parts" / f"part{k}.gdb") for k in range(args.parts)]
            results["parts"] = []
        for seed in range(1, args.seeds + 1):
            results["gdb"].append(train(store, of_gdb([store], args, seed), args, seed))
            results["pyg"].append(train(store, of_pyg(store, args.arrays, args), args, seed))
            if parts:
                results["parts"].append(train(store, of_gdb(parts, args, seed), args, seed))
            print(json.dumps({"seed": seed, **{k: round(v[-1], 4) for k, v in results.items()}}),
                  flush=True)
        for part in parts:
            part.close()
    for name, scores in results.items():
        spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
        print(f"{name}: {statistics.mean(scores):.4f} ± {spread:.4f} over {len(scores)} seeds")


if __name__ == "__main__":
    main()
