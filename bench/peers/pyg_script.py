"""One training script with PyG's loader or gdb's, in memory or past it: seconds an epoch of each.

    python bench/peers/pyg_script.py ARRAYS --loader pyg|gdb [--workers N] [--batches N] [--no-train]
        [--mapped LIMIT [--store STORE [--cache belady]] [--disk READS,BYTES]]

ARRAYS is a directory as `gdb bench gen rmat --dim 128` writes it. The script is the same but for the
line that imports NeighborLoader. PyG samples with pyg-lib, else with torch-sparse; --sampler FILE
is a library with the operator torch_sparse::neighbor_sample alone, where torch-sparse is not
installed whole. --no-train receives batches only.

--mapped LIMIT leaves the features on disk: PyG reads them in a memory map advised for random access,
gdb those of --store STORE, which `gdb ingest` made of the same arrays. Both run in a memory cgroup of
LIMIT bytes, which takes root, and begin with nothing of either file in the page cache. PyG has its
lists of edges in memory beside the limit: it enters the cgroup once they are made. gdb has its own
within it, and is given --gdb-memory. --disk READS,BYTES bounds what they read from the disk a second,
as a network volume does: 2000,500e6.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch_geometric.typing
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

from cgroup import Group, SlowDisk


class SAGE(torch.nn.Module):
    """Three layers, 256 wide."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        sizes = [width, 256, 256, classes]
        self.convs = torch.nn.ModuleList(SAGEConv(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        for conv in self.convs[:-1]:
            x = conv(x, edge_index).relu()
        return self.convs[-1](x, edge_index)


def forget(path: Path) -> None:
    """Drops a file, or those of a directory, from the page cache."""
    for file in path.rglob("*") if path.is_dir() else [path]:
        if file.is_file():
            with open(file, "rb") as f:
                os.fsync(f.fileno())
                os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def mapped(file: Path) -> torch.Tensor:
    """The features of a file, in a memory map."""
    forget(file)
    rows = np.load(file, mmap_mode="c")
    rows._mmap.madvise(mmap.MADV_RANDOM)
    return torch.from_numpy(rows)


def read(folder: Path, map_features: bool) -> Data:
    """The graph of a directory of arrays."""
    def array(name: str) -> np.ndarray:
        return np.load(folder / f"{name}.npy")

    if (folder / "edges.npy").exists():
        edges = array("edges")
        edges = edges if edges.shape[0] == 2 else edges.T
    else:
        edges = np.stack([array("src"), array("dst")])
    x = mapped(folder / "features.npy") if map_features else torch.from_numpy(
        array("features").astype(np.float32))
    data = Data(x=x,
                edge_index=torch.from_numpy(np.ascontiguousarray(edges).astype(np.int64)),
                y=torch.from_numpy(array("labels").astype(np.int64)))
    data.train_nodes = torch.from_numpy(array("train_idx").astype(np.int64))
    return data


def loader_of(args: argparse.Namespace) -> Any:
    """The class of the loader."""
    if args.loader == "gdb":
        from gdbgraph import NeighborLoader
    else:
        if args.sampler:
            torch.ops.load_library(args.sampler)
            torch_geometric.typing.WITH_TORCH_SPARSE = True
        from torch_geometric.loader import NeighborLoader
    return NeighborLoader


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("arrays", type=Path)
    parser.add_argument("--loader", choices=("pyg", "gdb"), required=True)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batches", type=int, default=0, help="of an epoch; 0 for all")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--fanout", type=int, nargs="+", default=[10, 10, 10])
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--no-train", action="store_true")
    parser.add_argument("--sampler", help="a library with torch_sparse::neighbor_sample")
    parser.add_argument("--mapped", type=int, metavar="LIMIT", help="bytes of the memory cgroup")
    parser.add_argument("--store", type=Path, help="what gdb reads with --mapped")
    parser.add_argument("--cache", help="the policy of gdb's loader: belady prepares epochs")
    parser.add_argument("--disk", metavar="READS,BYTES", help="most of both a second")
    parser.add_argument("--gdb-memory", help="what gdb may take, such as 512MiB")
    args = parser.parse_args()
    if (args.store is not None) != (args.mapped is not None and args.loader == "gdb"):
        parser.error("--store goes with --mapped and --loader gdb")
    data = read(args.arrays, args.mapped is not None)
    nodes, width, classes = data.train_nodes, data.num_features, int(data.y.max()) + 1
    del data.train_nodes
    source: Any = data
    options: dict[str, Any] = {"num_workers": args.workers}
    group = Group(args.mapped) if args.mapped else None
    slow = None
    if args.disk:
        reads, bandwidth = map(float, args.disk.split(","))
        slow = SlowDisk(args.store or args.arrays, int(reads), int(bandwidth))
    if args.store:
        forget(args.store)
        source, options = str(args.store), {"memory": args.gdb_memory, "cache": args.cache}
        del data
        group.join()
        slow and slow.join()
    begun = time.perf_counter()
    torch.manual_seed(1)
    loader = loader_of(args)(source, args.fanout, nodes, batch_size=args.batch, shuffle=True,
                             **options)
    made = time.perf_counter() - begun
    if group and not args.store:
        group.join()
        slow and slow.join()
    model = SAGE(width, classes)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(args.epochs):
        begun, edges, count = time.perf_counter(), 0, 0
        for batch in loader:
            if not args.no_train:
                optimizer.zero_grad()
                out = model(batch.x, batch.edge_index)[: batch.batch_size]
                cross_entropy(out, batch.y[: batch.batch_size]).backward()
                optimizer.step()
            edges, count = edges + batch.edge_index.shape[1], count + 1
            if count == args.batches:
                break
        took = time.perf_counter() - begun
        print(json.dumps({"loader": args.loader, "epoch": epoch, "batches": count,
                          "seconds": round(took, 3), "ms_per_batch": round(1e3 * took / count, 2),
                          "edges_per_batch": edges // count, "opened_s": round(made, 2),
                          "cgroup_peak_bytes": group.peak() if group else None}))


if __name__ == "__main__":
    main()
