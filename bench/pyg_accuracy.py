#!/usr/bin/env python3
"""A model of PyTorch Geometric on batches of a store, beside the same on PyG's own NeighborLoader.

    bench/pyg_accuracy.py ARRAYS [--seeds 5] [--epochs 30] [--ranks 2] [--parts 2]

ARRAYS has edges.npy, features.npy, labels.npy and the splits, as `gdb ingest` reads them; stores
are made in a temporary directory. Each seed trains GraphSAGE (2 layers, 64 units, rows of features
divided by their sum) on each kind of batches, from the same weights; a line has the test accuracy at
the best validation, and the last ones have by how much kinds differ from pyg, seed by seed, with the
standard error of that.

With --ranks N also on smaller batches that N ranks share, and with --parts K on the parts that
`gdb partition` makes, a rank and a server of 1 GiB for each: gradients are averaged after each step
as DistributedDataParallel does, and the whole store evaluates.
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


class ScaledSage(Sage):
    """Sage over rows of features that are divided by their sum."""

    def forward(self, x, edge_index):
        return super().forward(x / x.sum(-1, keepdim=True).clamp(min=1), edge_index)


def train(store, epochs_of, args, seed):
    """The test accuracy at the best validation. epochs_of gives the steps of an epoch: a list of
    batches, one for each rank."""
    torch.manual_seed(seed)
    model = ScaledSage([store.num_features, args.hidden, len(store.classes)])
    optimizer = torch.optim.Adam(model.parameters(), args.lr, weight_decay=args.weight_decay)
    val, test = (store.loader(FANOUT, 512, name, seed=seed, rank=0, world_size=1, normalize="none")
                 for name in ("val", "test"))
    best, weights = -1.0, {}
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
            best, weights = score, {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(weights)
    tested = accuracy(model, test)
    val.close()
    test.close()
    return tested


def of_gdb(stores, args, seed, ranks=1):
    """Steps of the loaders of all ranks of stores, which go on as long as all have a batch."""
    batch = args.batch // (ranks * len(stores))
    loaders = [s.loader(FANOUT, batch, memory="1GiB", seed=seed, rank=rank, world_size=ranks,
                        normalize="none") for s in stores for rank in range(ranks)]
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
    batches = store.loader([1], 512, normalize="none")
    seeds = torch.cat([b.n_id[: b.batch_size].clone() for b in batches])
    loader = NeighborLoader(data, FANOUT, input_nodes=seeds, batch_size=args.batch, shuffle=True)
    return lambda: ([batch] for batch in loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("arrays")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--weight-decay", type=float, default=5e-4)
    parser.add_argument("--ranks", type=int, default=0)
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
        if args.ranks:
            results["ranks"] = []
        for seed in range(1, args.seeds + 1):
            results["gdb"].append(train(store, of_gdb([store], args, seed), args, seed))
            results["pyg"].append(train(store, of_pyg(store, args.arrays, args), args, seed))
            if args.ranks:
                results["ranks"].append(
                    train(store, of_gdb([store], args, seed, args.ranks), args, seed))
            if parts:
                results["parts"].append(train(store, of_gdb(parts, args, seed), args, seed))
            print(json.dumps({"seed": seed, **{k: round(v[-1], 4) for k, v in results.items()}}),
                  flush=True)
        for part in parts:
            part.close()
    for name, scores in results.items():
        less = [a - b for a, b in zip(scores, results["pyg"])]
        error = statistics.stdev(less) / len(less) ** 0.5 if len(less) > 1 else 0.0
        print(f"{name}: {statistics.mean(scores):.4f} over {len(scores)} seeds, beside pyg "
              f"{statistics.mean(less):+.4f}, standard error {error:.4f}")


if __name__ == "__main__":
    main()
