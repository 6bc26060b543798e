#!/usr/bin/env python3
"""Batches of a store beside those of PyTorch Geometric's NeighborLoader over the same arrays.

    bench/loaders.py STORE ARRAYS --system gdb,pyg [--fanout 10,10,10] [--batch 1000] [--threads 2]

STORE is made of ARRAYS: `gdb bench gen rmat --scale 20 --edges 16777216 --dim 128 --out ARRAYS`,
then `gdb ingest ARRAYS --out STORE`. Both sample without replacement each node once, and gather the
rows of all nodes; the consumer only receives. A line of JSON for each repetition: the first of gdb
fills its caches. With --system gdb alone ARRAYS may be left out.

PyG samples with pyg-lib or torch-sparse, whichever is installed: the line says which.
"""

import argparse
import json
import time


def gdb_batches(args, fanout):
    """Epochs of gdb: nodes, edges of each batch."""
    import gdbgraph

    store = gdbgraph.open(args.store, threads=args.threads)
    loader = store.loader(fanout, args.batch, memory=args.memory)
    return {"system": "gdb"}, lambda: loader


def pyg_batches(args, fanout):
    """Epochs of PyG, with the graph in memory as it likes it best: sorted by destination."""
    import numpy as np
    import torch
    import torch_geometric
    from torch_geometric import typing
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    torch.set_num_threads(args.threads)

    def load(name):
        return torch.from_numpy(np.load(f"{args.arrays}/{name}.npy"))

    edges = load("edges").long()
    if edges.shape[0] != 2:
        edges = edges.t()
    x = load("features")
    data = Data(x=x, edge_index=edges.contiguous(), y=load("labels"), num_nodes=len(x))
    loader = NeighborLoader(data, num_neighbors=fanout, input_nodes=load("train_idx").long(),
                            batch_size=args.batch, shuffle=True, num_workers=args.workers)
    by = "pyg-lib" if typing.WITH_PYG_LIB else "torch-sparse"
    return {"system": f"PyG {torch_geometric.__version__}", "by": by,
            "workers": args.workers}, lambda: loader


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("store")
    parser.add_argument("arrays", nargs="?")
    parser.add_argument("--system", default="gdb,pyg")
    parser.add_argument("--fanout", default="10,10,10")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=0, help="processes of NeighborLoader")
    parser.add_argument("--memory", default="4GiB")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--batches", type=int, default=10**9, help="of a repetition, at most")
    args = parser.parse_args()
    fanout = [int(k) for k in args.fanout.split(",")]
    for name in args.system.split(","):
        about, epoch = {"gdb": gdb_batches, "pyg": pyg_batches}[name](args, fanout)
        for repetition in range(args.repeat):
            begun, count, nodes, edges = time.perf_counter(), 0, 0, 0
            for batch in epoch():
                assert batch.x.shape[0] == batch.n_id.shape[0]
                count += 1
                nodes += batch.n_id.shape[0]
                edges += batch.edge_index.shape[1]
                if count == args.batches:
                    break
            took = time.perf_counter() - begun
            print(json.dumps({**about, "repetition": repetition, "batches": count,
                              "nodes_per_batch": nodes // count, "edges_per_batch": edges // count,
                              "ms_per_batch": round(1e3 * took / count, 2)}), flush=True)


if __name__ == "__main__":
    main()
