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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import HeteroData

from ._around import EdgeNumbers, RelationNumbers
from ._bytype import ONE, EdgeType
from ._ingest import ingest
from .store import Store

#: What was put, by the id of its first edge_index, as long as that is there.
_puts: dict[int, Put] = {}


class Put:
    """The store of a Data or a HeteroData, and what of it is in the store: edges, and features of
    nodes if they are (N, D) float32."""

    def __init__(self, data: Any, root: str | os.PathLike[str] | None, threads: int | None) -> None:
        held = _Held(data)
        self._held = [weakref.ref(t) for t in held.tensors()]
        self._versions = held.versions()
        #: The types of nodes whose features are in the store, and how wide these are.
        self.rows = {kind: x.shape[1] for kind, x in held.rows.items()}
        #: What the types of edges of the store are called in the data.
        self.called = {stored: kind for kind, stored in held.stored.items()}
        folder = Path(root) if root is not None else Path(tempfile.mkdtemp(prefix="gdbgraph-"))
        if root is None:
            self._removed = weakref.finalize(self, _remove, folder, os.getpid())
        self.path = folder / "graph.gdb"
        _write(held, self.path, kept=root is not None)
        self.store = Store(self.path, threads=threads)
        self.numbers = held.numbers(self.store)

    def holds(self, data: Any) -> bool:
        """Whether it is of this data as it is now."""
        held = _Held(data)
        tensors = held.tensors()
        return (self._versions == held.versions() and len(self._held) == len(tensors)
                and all(ref() is t for ref, t in zip(self._held, tensors, strict=True)))


class _Held:
    """What a store has of a Data or a HeteroData."""

    def __init__(self, data: Any) -> None:
        self.typed = isinstance(data, HeteroData)
        nodes = {t: data[t] for t in data.node_types} if self.typed else {ONE: data._store}
        edges = {t: data[t] for t in data.edge_types} if self.typed else {ONE: data}
        self.counts = {name: int((store if self.typed else data).num_nodes)
                       for name, store in nodes.items()}
        self.rows = {name: store["x"] for name, store in nodes.items() if has_rows(store)}
        self.edges = {kind: store.edge_index for kind, store in edges.items()}
        #: The names of the types of edges in the store.
        self.stored = stored_kinds(data.edge_types) if self.typed else {}

    def tensors(self) -> list[torch.Tensor]:
        """All that is in the store."""
        return [*self.edges.values(), *self.rows.values()]

    def versions(self) -> tuple[Any, ...]:
        """What changes with what is in the tensors."""
        return (*self.counts.items(), *self.edges, *self.rows, *(t._version for t in self.tensors()))

    def about(self) -> dict[str, Any]:
        """What the record of a store that is kept says of it."""
        if not self.typed:
            return {"nodes": self.counts[ONE], "edges": _checksum(self.edges[ONE]),
                    "x": _checksum(self.rows[ONE]) if self.rows else None}
        return {"nodes": self.counts,
                "edges": {":".join(kind): _checksum(e) for kind, e in self.edges.items()},
                "x": {name: _checksum(x) for name, x in self.rows.items()}}

    def make(self, path: Path) -> None:
        """Makes the store."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*of edges have their reverse")  # as PyG takes them
            if not self.typed:
                ingest(path, edge_index=self.edges[ONE], x=self.rows.get(ONE),
                       num_nodes=self.counts[ONE])
                return
            graph = HeteroData()
            for name, count in self.counts.items():
                graph[name].num_nodes = count
                if name in self.rows:
                    graph[name].x = self.rows[name]
            for kind, ends in self.edges.items():
                graph[self.stored[kind]].edge_index = ends
            ingest(path, graph)

    def numbers(self, store: Store) -> EdgeNumbers | RelationNumbers:
        """The numbers of edges by list."""
        if not self.typed:
            return _numbers(self.edges[ONE], self.counts[ONE], self.counts[ONE])
        called = {stored: kind for kind, stored in self.stored.items()}
        kinds = [called[stored] for stored in store.metadata()[1]]
        firsts = store.first_nodes
        assert firsts is not None
        return RelationNumbers(
            [_numbers(self.edges[k], self.counts[k[0]], self.counts[k[2]]) for k in kinds],
            [firsts[k[2]] for k in kinds])


def stored_kinds(kinds: Sequence[EdgeType]) -> dict[EdgeType, EdgeType]:
    """What types of edges are called in a store, where each has a relation of its own: PyG calls
    the relation "to" where none is given."""
    names = [kind[1] for kind in kinds]
    return {(s, r, t): (s, r if names.count(r) == 1 else f"{s}_{r}_{t}", t) for s, r, t in kinds}


def has_rows(store: Any) -> bool:
    """Whether nodes have features that a store gives back as they are."""
    x = store.get("x")
    return (isinstance(x, torch.Tensor) and x.dtype == torch.float32 and x.dim() == 2
            and x.numel() > 0 and x.layout == torch.strided and x.device.type == "cpu"
            and not x.requires_grad)


def put(data: Any, root: str | os.PathLike[str] | None, threads: int | None) -> Put:
    """The store of a Data or a HeteroData. One that was put is taken again, as long as the tensors
    are the same."""
    first = next(iter(_Held(data).edges.values()))
    key = id(first)
    known = _puts.get(key)
    if known is not None and known.holds(data) and (
            root is None or Path(root) == known.path.parent):
        return known
    made = Put(data, root, threads)
    if known is None:
        weakref.finalize(first, _puts.pop, key, None)
    _puts[key] = made
    return made


def _write(held: _Held, path: Path, kept: bool) -> None:
    """Makes the store, or takes the one that is there if it is of the same graph."""
    if not kept:
        held.make(path)
        print(f"gdbgraph: the graph is in {path} ({_size(path) / 1e6:.1f} MB) as long as this "
              "process uses it; root=DIR keeps it", file=sys.stderr)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    record = path.parent / "graph.json"
    about = held.about()
    if record.exists() and path.exists():
        if json.loads(record.read_text()) != about:
            raise ValueError(f"root {path.parent} has the store of another graph: take another "
                             "root, or remove it")
        return
    shutil.rmtree(path, ignore_errors=True)  # one whose record was not written
    held.make(path)
    record.write_text(json.dumps(about))


def _checksum(values: torch.Tensor) -> list[int]:
    array = np.ascontiguousarray(values.detach().numpy())
    return [*array.shape, zlib.crc32(array.view(np.uint8).reshape(-1).data)]


def _numbers(edge_index: torch.Tensor, sources: int, targets: int) -> EdgeNumbers:
    """The numbers of edges by list. Lists of a store are in the order of sources; edges that are
    there twice differ in nothing that it knows, so either number will do."""
    source, target = edge_index.long()
    _, order = torch.sort(target * sources + source)
    starts = torch.zeros(targets + 1, dtype=torch.long)
    starts[1:] = torch.bincount(target, minlength=targets).cumsum(0)
    small = order.numel() <= np.iinfo(np.int32).max
    return EdgeNumbers(starts.numpy(), (order.int() if small else order).numpy())


def _size(path: Path) -> int:
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # a process that was forked has nothing to remove
        shutil.rmtree(folder, ignore_errors=True)
