"""Graphs of PyTorch Geometric that are put to a store on first use."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import warnings
import weakref
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ._around import EdgeNumbers
from ._ingest import ingest
from .store import Store

#: What was put, by the id of its edge_index, as long as that is there.
_puts: dict[int, Put] = {}


class Put:
    """The store of a Data, and what of it is in the store: edges, and features if they are (N, D)
    float32."""

    def __init__(self, data: Any, root: str | os.PathLike[str] | None, threads: int | None) -> None:
        self._versions = _versions(data)
        self._x = weakref.ref(data.x) if has_rows(data) else None
        #: Whether features are in the store.
        self.rows = self._x is not None
        folder = Path(root) if root is not None else Path(tempfile.mkdtemp(prefix="gdbgraph-"))
        if root is None:
            self._removed = weakref.finalize(self, _remove, folder, os.getpid())
        self.path = folder / "graph.gdb"
        _write(data, self.path, self.rows, kept=root is not None)
        self.store = Store(self.path, threads=threads)
        self.numbers = _numbers(data.edge_index, self.store.num_nodes)

    def holds(self, data: Any) -> bool:
        """Whether it is of this data as it is now."""
        x = data.x if self.rows and has_rows(data) else None
        return (self._versions == _versions(data) and self.rows == has_rows(data)
                and (self._x is None or self._x() is x))


def has_rows(data: Any) -> bool:
    """Whether a Data has features that a store gives back as they are."""
    x = data._store.get("x")
    return (isinstance(x, torch.Tensor) and x.dtype == torch.float32 and x.dim() == 2
            and x.numel() > 0 and x.layout == torch.strided and x.device.type == "cpu"
            and not x.requires_grad)


def put(data: Any, root: str | os.PathLike[str] | None, threads: int | None) -> Put:
    """The store of a Data. One that was put is taken again, as long as the tensors are the same."""
    key = id(data.edge_index)
    known = _puts.get(key)
    if known is not None and known.holds(data) and (
            root is None or Path(root) == known.path.parent):
        return known
    made = Put(data, root, threads)
    if known is None:
        weakref.finalize(data.edge_index, _puts.pop, key, None)
    _puts[key] = made
    return made


def _versions(data: Any) -> tuple[int, ...]:
    """Numbers that change with what is in the tensors."""
    rows = data.x._version if has_rows(data) else 0
    return data.edge_index._version, rows, int(data.num_nodes)


def _write(data: Any, path: Path, rows: bool, kept: bool) -> None:
    """Makes the store, or takes the one that is there if it is of the same graph."""
    if not kept:
        _make(data, path, rows)
        print(f"gdbgraph: the graph is in {path} ({_size(path) / 1e6:.1f} MB) as long as this "
              "process uses it; root=DIR keeps it", file=sys.stderr)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    record = path.parent / "graph.json"
    about = {"nodes": int(data.num_nodes), "edges": _checksum(data.edge_index),
             "x": _checksum(data.x) if rows else None}
    if record.exists() and path.exists():
        if json.loads(record.read_text()) != about:
            raise ValueError(f"root {path.parent} has the store of another graph: take another "
                             "root, or remove it")
        return
    shutil.rmtree(path, ignore_errors=True)  # one whose record was not written
    _make(data, path, rows)
    record.write_text(json.dumps(about))


def _make(data: Any, path: Path, rows: bool) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*of edges have their reverse")  # as PyG takes them
        ingest(path, edge_index=data.edge_index, x=data.x if rows else None,
               num_nodes=int(data.num_nodes))


def _checksum(values: torch.Tensor) -> list[int]:
    array = np.ascontiguousarray(values.detach().numpy())
    return [*array.shape, zlib.crc32(array.view(np.uint8).reshape(-1).data)]


def _numbers(edge_index: torch.Tensor, num_nodes: int) -> EdgeNumbers:
    """The numbers of edges by list. Lists of a store are in the order of sources; edges that are
    there twice differ in nothing that it knows, so either number will do."""
    source, target = edge_index.long()
    _, order = torch.sort(target * num_nodes + source)
    starts = torch.zeros(num_nodes + 1, dtype=torch.long)
    starts[1:] = torch.bincount(target, minlength=num_nodes).cumsum(0)
    small = order.numel() <= np.iinfo(np.int32).max
    return EdgeNumbers(starts.numpy(), (order.int() if small else order).numpy())


def _size(path: Path) -> int:
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a process that was forked has nothing to remove
        shutil.rmtree(folder, ignore_errors=True)
