"""Between Python's values and those of the protocol."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .batch import Batch

_UNITS = {
    "": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}


def parse_size(size: int | str | None) -> int:
    """Bytes of a size such as "2GiB"; 0 for None."""
    if size is None:
        return 0
    if isinstance(size, str):
        found = re.fullmatch(r"\s*([0-9.]+)\s*([A-Za-z]*)\s*", size)
        if not found or found[2].lower() not in _UNITS:
            raise ValueError(f"memory {size!r}: want a size such as 2GiB or 500MB")
        size = float(found[1]) * _UNITS[found[2].lower()]  # type: ignore[assignment]
    return int(size)  # type: ignore[arg-type]


def as_ids(ids: Any, nodes: int) -> np.ndarray:
    """Node ids, or a mask of them, as uint32."""
    if hasattr(ids, "detach"):
        ids = ids.detach().cpu().numpy()
    ids = np.asarray(ids)
    if ids.dtype == np.bool_:
        if ids.shape != (nodes,):
            raise ValueError(f"a mask of shape {ids.shape} for {nodes} nodes")
        ids = np.flatnonzero(ids)
    if ids.size == 0:
        return np.empty(0, np.uint32)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise ValueError(f"node ids of shape {ids.shape} and type {ids.dtype}: want integers in a "
                         "row")
    least, most = int(ids.min()), int(ids.max())
    if least < 0 or most >= nodes:
        raise IndexError(f"node {least if least < 0 else most}: the store has 0 to {nodes - 1}")
    return np.ascontiguousarray(ids, dtype=np.uint32)


def like(asked: Any, array: np.ndarray) -> Any:
    """An array as a tensor, if what was asked with was one."""
    if hasattr(asked, "detach"):
        import torch

        return torch.from_numpy(array)
    return array


def converter(output: str | None, edge_types: list[str]) -> Callable[[Batch], Any]:
    """What makes a batch of the kind that is asked for; None is the richest that is installed."""
    if output not in (None, "pyg", "hetero", "torch", "numpy"):
        raise ValueError(f"output {output!r}: want pyg, hetero, torch or numpy")
    if output == "hetero" and not edge_types:
        raise ValueError("output 'hetero': the edges of this store have no types")
    if output == "numpy":
        return lambda batch: batch
    try:
        import torch
    except ImportError:
        if output is not None:
            raise
        return lambda batch: batch

    def to_torch(batch: Batch) -> Batch:
        for name in ("x", "n_id", "edge_index", "indptr", "y", "edge_type", "edge_weight"):
            value = getattr(batch, name)
            if value is not None:
                setattr(batch, name, torch.from_numpy(value))
        return batch

    if output == "torch":
        return to_torch
    try:
        from torch_geometric.data import Data, HeteroData
    except ImportError:
        if output is not None:
            raise
        return to_torch

    def to_pyg(batch: Batch) -> Any:
        batch = to_torch(batch)
        extras = {name: getattr(batch, name) for name in ("edge_type", "edge_weight")
                  if getattr(batch, name) is not None}
        return Data(
            **extras, x=batch.x, edge_index=batch.edge_index, y=batch.y, n_id=batch.n_id,
            batch_size=batch.batch_size, num_sampled_nodes=batch.num_sampled_nodes,
            num_sampled_edges=batch.num_sampled_edges, num_nodes=len(batch.n_id),
        )

    def to_hetero(batch: Batch) -> Any:
        batch, data = to_torch(batch), HeteroData()
        nodes = data["node"]
        nodes.n_id, nodes.num_nodes = batch.n_id, len(batch.n_id)
        nodes.batch_size = batch.batch_size
        for name in ("x", "y"):
            if getattr(batch, name) is not None:
                nodes[name] = getattr(batch, name)
        for number, name in enumerate(edge_types):
            of_type = batch.edge_type == number
            edges = data["node", name, "node"]
            edges.edge_index = batch.edge_index[:, of_type]
            if batch.edge_weight is not None:
                edges.edge_weight = batch.edge_weight[of_type]
        return data

    return to_hetero if output == "hetero" else to_pyg
