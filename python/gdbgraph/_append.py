"""Adds edges and nodes in memory to a store."""

from __future__ import annotations

import json
import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _binary
from ._frames import Frames, _write
from ._ingest import run
from ._tables import Tables, more_frames


def append(store: str | os.PathLike[str], edges: Any = None, nodes: Any = None, *,
           splits: Mapping[str, Any] | None = None, source_column: str | None = None,
           target_column: str | None = None, type_column: str | None = None,
           weight_column: str | None = None, time_column: str | None = None,
           id_column: str | None = None, label_column: str | None = None,
           memory: str | None = None, options: Sequence[str] = ()) -> dict[str, Any]:
    """Adds edges and nodes to the store at a path, all of them or none, and returns a dict:
    ``snapshot``, the number of the commit; ``nodes`` and ``edges`` that it added; ``replaced``, how
    many nodes that were there got other values. It is durable then.

    ``edges`` is a DataFrame, or integers (2, E): a tensor or an array. ``nodes`` is a DataFrame.
    Give columns, the arguments that name them, and ``splits`` as to :func:`gdbgraph.ingest`;
    features need the columns that the store's have, and other columns of edges are columns of
    edges of the store. ``options`` are flags of ``gdb append``.

    To a store with types give ``nodes={"user": frame}`` and ``edges={("user", "buys", "item"):
    frame}`` or ``{"user:buys:item": frame}``; this needs pyarrow. Ids and ends are found as
    :func:`gdbgraph.ingest` finds them. The store knows what all other columns mean, such as labels,
    splits and weights, so ``label_column``, ``type_column`` and ``splits`` are refused.
    A row whose id the store has replaces the values of the columns that the frame has.
    """
    if edges is None and nodes is None:
        raise ValueError("give edges, nodes, or both")
    if isinstance(options, str):
        raise ValueError(f"options {options!r}: want a list of flags, such as [\"--skip-bad=1\"]")
    path = Path(store)
    if not (path / "catalog").exists():
        raise FileNotFoundError(f"{path} is no store: gdb ingest makes one")
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.resolve().parent) as name:
        folder = Path(name)
        flags, arrays = [], edges is not None and not hasattr(edges, "columns")
        typed = isinstance(edges, Mapping) or isinstance(nodes, Mapping)
        made: Frames | Tables
        if typed:
            made = more_frames(nodes, edges, {
                "id": id_column, "label": label_column, "source": source_column,
                "target": target_column, "type": type_column, "weight": weight_column,
                "time": time_column, "splits": splits})
        else:
            if arrays:
                flags = _write_ends(folder, edges)
            made = Frames(None if arrays else edges, nodes, source=source_column,
                          target=target_column, kind=type_column, weight=weight_column,
                          time=time_column, node=id_column, label=label_column, typed=False)
            made.splits.update(splits or {})
        flags += made.write_more(folder) if isinstance(made, Tables) else made.write(folder)
        if made.unused:
            warnings.warn(f"not stored: {', '.join(made.unused)}", stacklevel=2)
        if memory is not None:
            flags.append(f"--memory={memory}")
        said = run([_binary.find(), "append", str(path), *flags, "--json", "--log=json",
                    *map(str, options)], folder, {"edges.csv": "edges", **made.names})
    done = json.loads(said)
    return {name: done[name] for name in ("snapshot", "nodes", "edges", "replaced")}


def _write_ends(folder: Path, edges: Any) -> list[str]:
    """Writes edges that are arrays, and returns the flags that name the file."""
    if hasattr(edges, "detach"):
        edges = edges.detach().cpu().numpy()
    ends = np.asarray(edges)
    if ends.ndim != 2 or ends.shape[0] != 2 or ends.dtype.kind not in "iu" or not ends.size:
        raise ValueError(f"edges of shape {ends.shape} and type {ends.dtype}: want a DataFrame, or "
                         "(2, E) integers")
    _write(folder / "edges.csv", {"src": ends[0], "dst": ends[1]})
    return ["--edges", str(folder / "edges.csv"), "--header", "yes"]
