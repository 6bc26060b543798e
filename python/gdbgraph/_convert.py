"""Between Python's values and those of the protocol."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

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
    if ids.dtype.kind in "USO":
        raise ValueError("nodes are asked for by their numbers, integers in a row: node_ids(...) "
                         "of the store gives those of ids as they were ingested")
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
