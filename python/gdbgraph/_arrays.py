"""Graphs of arrays and tensors, as ``gdb ingest`` reads them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

SPLITS = ("train", "val", "test")


def array(name: str, value: Any) -> np.ndarray:
    """A tensor, an array or a list as an array in the order of rows."""
    if _is_sparse(value):
        raise ValueError(f"{name} is sparse: only x may be, so make it dense")
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if value.is_floating_point() and value.element_size() < 4:
            value = value.float()  # numpy has no bfloat16
        value = value.numpy()
    try:
        made = np.ascontiguousarray(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if made.dtype.kind == "O" or made.dtype.kind in "USV":
        raise ValueError(f"{name} of type {made.dtype}: want numbers; DataFrames may have ids and "
                         "classes that are text")
    if made.dtype.kind == "c":
        raise ValueError(f"{name} of type {made.dtype}: want real numbers")
    return made.astype(np.float32) if made.dtype == np.float16 else made


def _is_sparse(value: Any) -> bool:
    return (getattr(value, "is_sparse", False) or hasattr(value, "tocsr") or _of_torch_sparse(value)
            or "sparse" in str(getattr(value, "layout", "")))


def _of_torch_sparse(value: Any) -> bool:
    return hasattr(value, "sparse_sizes") and hasattr(value, "coo")


def _coo(name: str, value: Any) -> tuple[Any, Any, Any, tuple[int, ...]]:
    """Rows, columns, values (or None) and shape of a sparse matrix."""
    if _of_torch_sparse(value):  # torch_sparse.SparseTensor
        row, col, values = value.coo()
        return row, col, values, tuple(value.sparse_sizes())
    if hasattr(value, "tocoo"):  # scipy
        value = value.tocoo()
        return value.row, value.col, value.data, value.shape
    if getattr(value, "is_sparse", False) or hasattr(value, "to_sparse_coo"):
        value = value.detach()
        value = (value if value.is_sparse else value.to_sparse_coo()).coalesce()
        row, col = value.indices()
        return row, col, value.values(), tuple(value.shape)
    raise ValueError(f"{name} is sparse in a form that is not known: {type(value).__name__}")


@dataclass
class Arrays:
    """A graph of arrays. ``unused`` are names of what is not stored."""

    edge_index: Any
    edge_type: Any = None
    edge_weight: Any = None
    edge_time: Any = None
    num_nodes: int | None = None
    x: Any = None
    y: Any = None
    splits: dict[str, Any] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    #: The argument that each file holds, for messages.
    names: dict[str, str] = field(default_factory=dict)

    def write(self, folder: Path) -> list[str]:
        """Writes a directory of arrays, and returns the arguments of ``gdb ingest``."""
        edges = array("edge_index", self.edge_index)
        if edges.ndim != 2 or edges.shape[0] != 2 or edges.dtype.kind not in "iu":
            raise ValueError(f"edge_index of shape {edges.shape} and type {edges.dtype}: "
                             "want (2, E) integers")
        if not edges.shape[1]:
            raise ValueError("edge_index has no edges")
        x = None if self.x is None else self._features()
        y = None if self.y is None else self._labels()
        nodes, counted = self._count(edges, x, y)
        _check_range("edge_index", edges, nodes, counted)
        for file, row in zip(("src", "dst"), edges):
            self._save(folder, file, "edge_index", row)
        for file, name, value in (("edge_type", "edge_type", self._types(edges.shape[1])),
                                  ("weights", "edge_weight", self._weights(edges.shape[1])),
                                  ("times", "edge_time", self._times(edges.shape[1])),
                                  ("labels", "y", y)):
            if value is not None:
                self._save(folder, file, name, value)
        if isinstance(x, dict):
            for part, value in x.items():
                self._save(folder, f"features_{part}", "x", value)
        elif x is not None:
            self._save(folder, "features", "x", x)
        self._save(folder, "num_nodes", "num_nodes", np.asarray([nodes], np.int64))
        for split, ids in self._members(nodes, counted).items():
            self._save(folder, f"{split}_idx", f"split {split}", ids)
        return [str(folder)]

    def _save(self, folder: Path, file: str, name: str, value: np.ndarray) -> None:
        np.save(folder / f"{file}.npy", value, allow_pickle=False)
        self.names[f"{file}.npy"] = name

    def _count(self, edges: np.ndarray, x: Any, y: np.ndarray | None) -> tuple[int, str]:
        """The number of nodes and what says it; what has a row for each must agree."""
        nodes = self.num_nodes
        if nodes is not None and (int(nodes) != nodes or nodes < 1):
            raise ValueError(f"num_nodes {nodes}: want an integer from 1 on")
        rows = {} if x is None else {"x": int(x["shape"][0] if isinstance(x, dict) else len(x))}
        if y is not None:
            rows["y"] = len(y)
        rows.update((f"the mask of {name}", np.shape(value)[0]) for name, value in
                    self.splits.items() if _is_mask(value))
        counted = "num_nodes"
        if nodes is None and rows:
            counted, nodes = next(iter(rows.items()))
        elif nodes is None:
            counted, nodes = "edge_index", max(int(edges.max()) + 1, 1)
        for name, count in rows.items():
            if count != nodes:
                raise ValueError(f"{name} has {count} rows for {nodes} nodes, which {counted} says")
        return int(nodes), counted

    def _features(self) -> Any:
        """x as float32, or the arrays of it in compressed rows."""
        if not _is_sparse(self.x):
            x = array("x", self.x)
            if x.ndim != 2 or not x.shape[1]:
                raise ValueError(f"x of shape {x.shape}: want (N, D), a row for each node")
            return x.astype(np.float32, copy=False)
        row, col, values, shape = _coo("x", self.x)
        row, col = array("x", row), array("x", col)
        values = np.ones(len(row), np.float32) if values is None else array("x", values)
        if len(shape) != 2 or values.ndim != 1:
            raise ValueError(f"x is sparse, of shape {shape}: want (N, D)")
        order = np.lexsort((col, row))
        starts = np.searchsorted(row[order], np.arange(shape[0] + 1))
        return {"indptr": starts.astype(np.int64), "indices": col[order].astype(np.int64),
                "values": values[order].astype(np.float32), "shape": np.asarray(shape, np.int64)}

    def _labels(self) -> np.ndarray:
        y = array("y", self.y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y.reshape(-1)
        if y.ndim not in (1, 2) or not y.size:
            raise ValueError(f"y of shape {y.shape}: want (N,), or (N, labels) of 0 and 1")
        return y.astype(np.int64) if y.dtype == np.bool_ else y

    def _of_edges(self, name: str, value: Any, edges: int) -> np.ndarray | None:
        """An array with a value for each edge."""
        if value is None:
            return None
        made = array(name, value)
        if made.shape not in ((edges,), (edges, 1)):
            raise ValueError(f"{name} of shape {made.shape} for {edges} edges: want ({edges},)")
        made = made.reshape(-1)
        if made.dtype.kind == "f" and not np.isfinite(made).all():
            at = int(np.flatnonzero(~np.isfinite(made))[0])
            raise ValueError(f"{name}[{at}] is {made[at]}: want a number for each edge")
        return made

    def _types(self, edges: int) -> np.ndarray | None:
        types = self._of_edges("edge_type", self.edge_type, edges)
        if types is None:
            return None
        if types.dtype.kind not in "iu" or types.min() < 0:
            raise ValueError(f"edge_type of type {types.dtype}, the least is {types.min()}: want "
                             "integers from 0 on")
        return types.astype(np.int64, copy=False)

    def _weights(self, edges: int) -> np.ndarray | None:
        weights = self._of_edges("edge_weight", self.edge_weight, edges)
        if weights is not None and weights.dtype.kind not in "fiu":
            raise ValueError(f"edge_weight of type {weights.dtype}: want numbers")
        return weights

    def _times(self, edges: int) -> np.ndarray | None:
        times = self._of_edges("edge_time", self.edge_time, edges)
        if times is None:
            return None
        if times.dtype.kind == "M":
            if np.isnat(times).any():
                at = int(np.flatnonzero(np.isnat(times))[0])
                raise ValueError(f"edge_time[{at}] is NaT: want a time for each edge")
            return times.astype("datetime64[s]").astype(np.int64)
        if times.dtype.kind not in "fiu":
            raise ValueError(f"edge_time of type {times.dtype}: want seconds, or datetime64")
        return np.floor(times).astype(np.int64) if times.dtype.kind == "f" else times

    def _members(self, nodes: int, counted: str) -> dict[str, np.ndarray]:
        """The ids of each split."""
        found: dict[str, np.ndarray] = {}
        for name, value in self.splits.items():
            if name not in SPLITS:
                raise ValueError(f"split {name!r}: want one of {', '.join(SPLITS)}")
            ids = array(f"split {name}", value)
            if ids.dtype == np.bool_:
                if ids.ndim != 1:
                    raise ValueError(f"the mask of {name} has shape {ids.shape}: choose one split, "
                                     "as in data.train_mask[:, 0]")
                ids = np.flatnonzero(ids)
            if ids.ndim != 1 or ids.size and ids.dtype.kind not in "iu":
                raise ValueError(f"split {name} of shape {ids.shape} and type {ids.dtype}: want "
                                 "ids, integers in a row, or a mask of bools")
            if ids.dtype == np.uint8 and len(ids) == nodes > 2 and ids.max(initial=0) <= 1:
                raise ValueError(f"split {name} has 0 and 1 for each node: make a mask of bools of "
                                 "it, or ids")
            _check_range(f"split {name}", ids, nodes, counted)
            found[name] = ids.astype(np.int64, copy=False)
        check_apart(found)
        return found


def check_apart(members: Mapping[str, np.ndarray]) -> None:
    """Reports a node that is in two of the splits."""
    names = list(members)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            both = np.intersect1d(members[one], members[other])
            if len(both):
                raise ValueError(f"node {both[0]} is in the splits {one} and {other}: a node is in "
                                 f"one of them, and {len(both)} are in both")


def _is_mask(value: Any) -> bool:
    """Whether members of a split are given by a mask."""
    if isinstance(value, (list, tuple)):
        return bool(value) and isinstance(value[0], (bool, np.bool_))
    return str(getattr(value, "dtype", "")) in ("bool", "torch.bool")


def _check_range(name: str, ids: np.ndarray, nodes: int, counted: str) -> None:
    """Reports an id that is no node."""
    outside = (ids < 0) | (ids >= nodes)
    if outside.any():
        raise ValueError(f"{name}: node {ids[outside][0]} is out of range: there are nodes 0 to "
                         f"{nodes - 1}, which {counted} says")


#: Attributes of PyG's Data that are stored, besides the masks.
_STORED = ("edge_index", "edge_type", "edge_weight", "edge_time", "time", "num_nodes", "x", "y")


def of_data(data: Any) -> Arrays:
    """The graph of a PyG Data."""
    has = _attributes(data)
    if "edge_index" not in has and "adj_t" in has:
        _take_adjacency(has)
    if "edge_index" not in has:
        raise ValueError(f"data has no edge_index: it has {', '.join(has) or 'nothing'}")
    if "edge_attr" in has:
        shape = tuple(np.shape(has["edge_attr"]))
        do = ("data.edge_weight, data.edge_attr = data.edge_attr, None stores it as weights"
              if len(shape) == 1 or shape[1:] == (1,) else "data.edge_attr = None leaves it out")
        raise ValueError(f"edge_attr of shape {shape} is not stored, a store has a type, a weight "
                         f"and a time for each edge: {do}")
    _take_time(has)
    graph = Arrays(**{name: has[name] for name in _STORED if name in has and name != "time"})
    if "num_nodes" not in has:
        graph.num_nodes = _inferred(data)
    for split in SPLITS:
        mask = has.get(f"{split}_mask")
        if mask is not None:
            graph.splits[split] = _mask(f"{split}_mask", mask)
    known = (*_STORED, *(f"{split}_mask" for split in SPLITS))
    graph.unused = [name for name in has if name not in known]
    return graph


def _attributes(data: Any) -> dict[str, Any]:
    """The attributes of a PyG Data that are not None. Another object is an error."""
    kinds = [kind.__name__ for kind in type(data).__mro__]
    if "TemporalData" in kinds:
        raise ValueError("data is a TemporalData: give edge_index=torch.stack([data.src, data.dst])"
                         " and edge_time=data.t; its messages are not stored")
    if "Dataset" in kinds:
        raise ValueError(f"data is a dataset, {kinds[0]}: give one of its graphs, as dataset[0]")
    if "Data" not in kinds and (isinstance(data, Mapping) or not hasattr(data, "edge_index")):
        raise ValueError(f"data is a {kinds[0]}: want a Data of PyG; edge_index=, x=, y= and so on "
                         "take arrays, edges= and nodes= DataFrames, gdb ingest files")
    found = data.to_dict() if hasattr(data, "to_dict") else vars(data)
    return {name: value for name, value in found.items() if value is not None}


def _inferred(data: Any) -> int | None:
    """The number of nodes as PyG counts them by what has a row for each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # by the edges alone, as here
        return getattr(data, "num_nodes", None)


def _take_adjacency(has: dict[str, Any]) -> None:
    """Replaces adj_t, whose rows are targets, by edges."""
    target, source, values, shape = _coo("adj_t", has.pop("adj_t"))
    has["edge_index"] = np.stack([array("adj_t", source), array("adj_t", target)])
    has.setdefault("num_nodes", int(shape[0]))
    if values is not None:
        if "edge_weight" in has or np.ndim(values) != 1:
            raise ValueError(f"adj_t has values of shape {tuple(values.shape)}: want one weight for "
                             "each edge, or none")
        has["edge_weight"] = values


def _take_time(has: dict[str, Any]) -> None:
    """Takes a time of each edge for edge_time."""
    if "time" not in has:
        return
    length, edges = len(has["time"]), np.shape(has["edge_index"])[-1]
    if "edge_time" in has or length != edges:
        raise ValueError(f"time has {length} values for {edges} edges: a store has times of edges, "
                         "edge_time, and none of nodes; data.time = None leaves it out")
    has["edge_time"] = has.pop("time")


def _mask(name: str, value: Any) -> Any:
    """A mask of nodes; older ones are of 0 and 1."""
    mask = array(name, value)
    if mask.dtype != np.bool_ and (mask.dtype.kind not in "iuf" or
                                   not np.isin(mask, (0, 1)).all()):
        raise ValueError(f"{name} of type {mask.dtype}: want a mask of bools, one for each node")
    return mask.astype(np.bool_)
