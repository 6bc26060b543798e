"""Makes stores of graphs that are in memory."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import _binary
from ._wire import GdbError

_SPLITS = ("train", "val", "test")


def ingest(out: str | os.PathLike[str], data: Any = None, *, edge_index: Any = None,
           edge_type: Any = None, x: Any = None, y: Any = None,
           splits: Mapping[str, Any] | None = None, edges: Any = None, nodes: Any = None,
           id_column: str = "id", label_column: str | None = None,
           undirected: bool = False, memory: str | None = None,
           options: list[str] | tuple[str, ...] = ()) -> str:
    """Makes a store at ``out`` and returns its path. The graph is one of:

    - ``data``: a PyG ``Data`` with edge_index, and edge_type, x, y, train_mask, val_mask
      and test_mask where it has them;
    - ``edge_index`` (2, E) integers, with ``edge_type`` (E,) integers, ``x`` (N, D),
      ``y`` (N,) and ``splits``: for train, val and test ids or masks of N; tensors or arrays. Nodes
      are numbered as the rows;
    - ``edges`` and ``nodes``, DataFrames: the first two columns of edges are the ends, in ids of
      any kind. ``id_column`` and ``label_column`` are columns of nodes; its other columns of
      numbers are features, and one called ``split`` has train, val or test. The store keeps the
      ids: ``Store.node_ids`` and ``Store.external_ids`` translate.

    Edges go from source to target, and a node draws from the sources of its edges; ``undirected``
    adds the reverse of each. ``options`` are flags of ``gdb ingest``, such as "--dedup". What is in
    the arrays is written to a temporary directory beside ``out`` first: files that are on disk
    already need no detour, ``gdb ingest`` takes them. A ``GdbError`` says what is wrong.
    """
    out = Path(out)
    given = [name for name, value in (("data", data), ("edge_index", edge_index), ("edges", edges))
             if value is not None]
    if len(given) != 1:
        raise ValueError(f"give one of data, edge_index and edges, not {given or 'none'}")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}-", dir=out.parent) as name:
        folder = Path(name)
        if edges is not None:
            flags = _frames(folder, edges, nodes, id_column, label_column)
        else:
            if data is not None:
                edge_index, edge_type, x, y, splits = _of_data(data)
            _arrays(folder, edge_index, edge_type, x, y, splits or {})
            flags = [str(folder)]
        if undirected:
            flags.append("--undirected")
        if memory is not None:
            flags.append(f"--memory={memory}")
        command = [_binary.find(), "ingest", *flags, "--out", str(out), "--quiet", *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        said = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise GdbError(said.removeprefix("gdb: "))
    return str(out)


def _of_data(data: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
    """What a PyG Data has."""
    splits = {}
    for name in _SPLITS:
        mask = getattr(data, f"{name}_mask", None)
        if mask is not None:
            splits[name] = mask
    edge_type, x, y = (getattr(data, name, None) for name in ("edge_type", "x", "y"))
    return data.edge_index, edge_type, x, y, splits


def _array(value: Any) -> np.ndarray:
    if hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    return np.ascontiguousarray(value)


def _arrays(folder: Path, edge_index: Any, edge_type: Any, x: Any, y: Any,
            splits: Mapping[str, Any]) -> None:
    """Writes a directory of arrays, as ``gdb ingest`` reads it."""
    edge_index = _array(edge_index)
    if edge_index.ndim != 2 or edge_index.shape[0] != 2 or edge_index.dtype.kind not in "iu":
        raise ValueError(f"edge_index of shape {edge_index.shape} and type {edge_index.dtype}: "
                         "want (2, E) integers")
    if edge_type is None:
        np.save(folder / "edges.npy", edge_index)
    else:
        typed = np.stack([*edge_index, _array(edge_type).reshape(-1)], axis=1)
        np.save(folder / "edges_typed.npy", typed.astype(np.int64))
    if x is not None:
        np.save(folder / "features.npy", _array(x).astype(np.float32, copy=False))
    if y is not None:
        labels = _array(y)
        np.save(folder / "labels.npy", labels.reshape(-1) if labels.ndim == 2
                and labels.shape[1] == 1 else labels)
    for name, members in splits.items():
        if name not in _SPLITS:
            raise ValueError(f"split {name!r}: want one of {', '.join(_SPLITS)}")
        ids = _array(members)
        if ids.dtype == np.bool_:
            if ids.ndim != 1:
                raise ValueError(f"the mask of {name} has shape {ids.shape}: choose one split, as "
                                 "in data.train_mask[:, 0]")
            ids = np.flatnonzero(ids)
        np.save(folder / f"{name}_idx.npy", ids.astype(np.int64, copy=False))


def _frames(folder: Path, edges: Any, nodes: Any, id_column: str,
            label_column: str | None) -> list[str]:
    """Writes DataFrames as tables, and says how they are read."""
    names = [str(c) for c in edges.columns]
    if len(names) < 2:
        raise ValueError("edges has fewer than two columns: the ends of the edges")
    edges.to_csv(folder / "edges.csv", index=False)
    flags = ["--edges", str(folder / "edges.csv"), "--src-col", names[0], "--dst-col", names[1],
             "--header", "yes"]
    if nodes is None:
        return flags
    if id_column not in nodes.columns:
        raise ValueError(f"nodes has no column {id_column!r}: say which with id_column")
    features = [str(c) for c in nodes.columns if c not in (id_column, label_column, "split")
                and nodes[c].dtype.kind in "iufb"]
    nodes.to_csv(folder / "nodes.csv", index=False)
    flags += ["--nodes", str(folder / "nodes.csv"), "--id-col", id_column]
    if features:
        flags += ["--feature-cols", ",".join(features)]
    if label_column is not None:
        flags += ["--label-col", label_column]
    if "split" in nodes.columns:
        flags += ["--split-col", "split"]
    return flags
