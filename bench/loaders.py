#!/usr/bin/env python3
"""Batches of a store beside those of PyTorch Geometric's NeighborLoader over the same arrays.

    bench/loaders.py STORE ARRAYS --system gdb,pyg [--workers 0,1,2] [--fanout 10,10,10]

STORE is made of ARRAYS: `gdb bench gen rmat --scale 20 --edges 16777216 --dim 128 --out ARRAYS`,
then `gdb ingest ARRAYS --out STORE`. Both sample without replacement each node once, and gather the
rows of all nodes; the consumer only receives. The systems take turns: a line of JSON for each
repetition of each. Give one at a time where memory does not hold all, and --system gdb where there
are no ARRAYS.

The first repetition of gdb fills its caches. own_cpu_ms is what a batch takes of the cores in the
process that receives it, which for PyG without workers is all. read_mb is what gdb's server has
read; with --ranks 2 the batches are dealt to two loaders that share it.

PyG samples with pyg-lib or torch-sparse, whichever is installed: the line says which. With --mapped
its features are a memory map, with the advice for random access, and only its lists are in memory.
Sorting the edges to lists takes more: do that before, without a limit, with --sort. In a memory
cgroup, of 2 GiB for the graph of 2^22 nodes, 67,108,864 edges and 256 features:

    bench/loaders.py STORE --system gdb --output numpy --memory 2010MiB --repeat 5
    bench/loaders.py STORE ARRAYS --system pyg --mapped --batches 6
"""

import argparse
import json
import mmap
import resource
import time
from pathlib import Path


class Gdb:
    """Batches of gdb."""

    def __init__(self, args, _):
        import gdbgraph

        self.name = "gdb"
        self.store = gdbgraph.open(args.store, threads=args.threads)
        self.loaders = [self.store.loader(args.fanout, args.batch, memory=args.memory, rank=rank,
                                          normalize="none", world_size=args.ranks,
                                          output=args.output, cache=args.cache)
                        for rank in range(args.ranks)]
        self.about, self.read = {"ranks": args.ranks}, 0

    def epoch(self):
        """The batches of all ranks, in turn. Each rank keeps one until it has the next."""
        ranks = [iter(loader) for loader in self.loaders]
        kept = [None] * len(ranks)
        while True:
            for rank, batches in enumerate(ranks):
                kept[rank] = next(batches, None)
                if kept[rank] is None:
                    return
                yield kept[rank]

    def used(self):
        """What the server has read since the last call, and its memory."""
        stats = self.store.stats()
        before, self.read = self.read, stats["bytes_read"]
        return {"read_mb": round((self.read - before) / 1e6, 1),
                "rss_mb": round(stats["rss_peak_bytes"] / 1e6)}


class PyG:
    """Batches of NeighborLoader, over lists as it keeps them: sorted by destination."""

    def __init__(self, args, workers):
        import numpy as np
        import torch
        import torch_geometric
        from torch_geometric.data import Data
        from torch_geometric.loader import NeighborLoader
        from torch_geometric.typing import WITH_PYG_LIB, SparseTensor

        torch.set_num_threads(args.threads)
        self.name = f"PyG {torch_geometric.__version__}"
        self.about = {"by": "pyg-lib" if WITH_PYG_LIB else "torch-sparse", "workers": workers,
                      "mapped": args.mapped}
        colptr, row = (torch.from_numpy(array) for array in lists_of(args.arrays))
        data = Data(x=torch.from_numpy(features_of(args)),
                    y=torch.from_numpy(np.load(f"{args.arrays}/labels.npy")))
        seeds = torch.from_numpy(np.load(f"{args.arrays}/train_idx.npy")).long()
        nodes = len(colptr) - 1
        adjacent = SparseTensor(rowptr=colptr, col=row, sparse_sizes=(nodes, nodes),
                                is_sorted=True, trust_data=True)
        self.loader = NeighborLoader(
            Data(adj_t=adjacent, num_nodes=nodes), args.fanout, input_nodes=seeds,
            batch_size=args.batch, shuffle=True, num_workers=workers,
            persistent_workers=workers > 0)
        # Batches are to have edge_index, without a sort: so they are cut out of other data.
        data.edge_index = torch.empty((2, 0), dtype=torch.long)
        self.loader.data = data

    def epoch(self):
        """The batches of an epoch."""
        return iter(self.loader)

    def used(self):
        """The most memory that this process has had."""
        return {"rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3)}


def features_of(args):
    """The features: in memory, or a map of them."""
    import numpy as np

    path = f"{args.arrays}/features.npy"
    if not args.mapped:
        return np.load(path)
    x = np.load(path, mmap_mode="c")  # torch wants to be able to write
    x._mmap.madvise(mmap.MADV_RANDOM)
    return x


def lists_of(arrays):
    """The edges as lists of in-neighbors: where those of each node begin, and neighbors. What was
    sorted before is read."""
    import numpy as np

    kept = [Path(arrays) / f"{name}.npy" for name in ("colptr", "row")]
    if all(path.exists() for path in kept):
        return [np.load(path) for path in kept]
    edges = np.load(f"{arrays}/edges.npy", mmap_mode="r")
    source, target = edges if edges.shape[0] == 2 else edges.T
    nodes = len(np.load(f"{arrays}/labels.npy", mmap_mode="r"))
    colptr = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(target, minlength=nodes), out=colptr[1:])
    keys = target.astype(np.uint64) << np.uint64(32) | source.astype(np.uint64)
    keys.sort()
    row = (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)
    for path, array in zip(kept, (colptr, row)):
        np.save(path, array)
    return [colptr, row]


def receive(system, repetition, most):
    """Receives up to so many batches and prints what they were and what they took."""
    begun, used, count, nodes, edges = time.perf_counter(), time.process_time(), 0, 0, 0
    for batch in system.epoch():
        assert batch.x.shape[0] == batch.n_id.shape[0]
        count += 1
        nodes += batch.n_id.shape[0]
        edges += batch.edge_index.shape[1]
        if count == most:
            break
    took, used = time.perf_counter() - begun, time.process_time() - used
    print(json.dumps({"system": system.name, **system.about, "repetition": repetition,
                      "batches": count, "nodes_per_batch": nodes // count,
                      "edges_per_batch": edges // count,
                      "ms_per_batch": round(1e3 * took / count, 2),
                      "own_cpu_ms": round(1e3 * used / count, 2), **system.used()}), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("arrays", nargs="?")
    parser.add_argument("--system", default="gdb,pyg")
    parser.add_argument("--fanout", default="10,10,10")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", default="0", help="processes of NeighborLoader, as 0,1,2")
    parser.add_argument("--memory", default="4GiB")
    parser.add_argument("--cache", default="auto", help="the policy of gdb's cache")
    parser.add_argument("--output", help="what gdb's batches are: pyg, torch or numpy")
    parser.add_argument("--ranks", type=int, default=1, help="loaders that share gdb's batches")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--batches", type=int, default=10**9, help="of a repetition, at most")
    parser.add_argument("--mapped", action="store_true", help="PyG's features stay on disk")
    parser.add_argument("--sort", action="store_true", help="sort the edges for PyG, and no more")
    args = parser.parse_args()
    args.fanout = [int(k) for k in args.fanout.split(",")]
    if args.sort:
        lists_of(args.arrays)
        return
    systems = []
    for name in args.system.split(","):
        settings = [int(k) for k in args.workers.split(",")] if name == "pyg" else [0]
        systems += [{"gdb": Gdb, "pyg": PyG}[name](args, workers) for workers in settings]
    for repetition in range(args.repeat):
        for system in systems:
            receive(system, repetition, args.batches)


if __name__ == "__main__":
    main()
