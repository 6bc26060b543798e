"""Graphs of several types of nodes and edges, as ``gdb ingest`` reads tables of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ._arrays import SPLITS, _coo, _is_sparse, _mask, array, check_apart

#: A type of edges: the types of its ends around the name of its relation.
EdgeType = tuple[str, str, str]
#: What the columns of ends are called in files.
_ENDS = ("source_id", "target_id")


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("a graph with types is handed over as Parquet: install pyarrow, or give "
                          "gdb ingest files, --nodes user=FILE --edges user:buys:item=FILE"
                          ) from error
    return pyarrow


class Tables:
    """A graph of a table for each type of nodes and of edges. ``unused`` is what is not stored."""

    def __init__(self) -> None:
        self.nodes: dict[str, Any] = {}  # Arrow tables, whose first columns are ids
        self.edges: dict[EdgeType, Any] = {}  # with the ends in columns called _ENDS
        self.unused: list[str] = []
        self.splits: dict[str, Any] = {}
        #: What each file holds, for messages.
        self.names: dict[str, str] = {}
        self.features: list[str] = []  # TYPE.COLUMN, as below
        self.label: str | None = None
        self.split: str | None = None
        self.weights: dict[str, str] = {}  # columns by relation
        self.times: dict[str, str] = {}

    def write(self, folder: Path) -> list[str]:
        """Writes a file for each table, and returns the arguments of ``gdb ingest``."""
        if self.splits:
            raise ValueError("splits of a graph with types are masks or a column split of a type: "
                             "leave splits out")
        flags = self.write_more(folder)
        if self.features:
            flags += ["--feature-cols", ",".join(self.features)]
        flags += ["--label-col", self.label or "none", "--split-col", self.split or "none"]
        return [*flags, "--normalize", "none"]

    def write_more(self, folder: Path) -> list[str]:
        """Writes a file for each table, and returns the arguments of ``gdb append``: what other
        columns are is known to the store."""
        write = _arrow().parquet.write_table
        flags = []
        for number, (name, table) in enumerate(self.nodes.items()):
            file = f"nodes{number}.parquet"
            write(table, folder / file)
            self.names[file] = f"nodes {name!r}"
            flags += ["--nodes", f"{name}={folder / file}"]
        for number, (key, table) in enumerate(self.edges.items()):
            file = f"edges{number}.parquet"
            write(table, folder / file)
            self.names[file] = f"edges {key!r}"
            flags += ["--edges", f"{':'.join(key)}={folder / file}"]
        relations = dict.fromkeys(key[1] for key in self.edges)
        for flag, listed in (("--id-col", [f"{name}.{table.column_names[0]}"
                                           for name, table in self.nodes.items()]),
                             ("--src-col", [f"{relation}.{_ENDS[0]}" for relation in relations]),
                             ("--dst-col", [f"{relation}.{_ENDS[1]}" for relation in relations]),
                             ("--weight-col", _named(self.weights)),
                             ("--time-col", _named(self.times))):
            if listed:
                flags += [flag, ",".join(listed)]
        return flags


def _named(columns: Mapping[str, str]) -> list[str]:
    return [f"{relation}.{column}" for relation, column in columns.items()]


def is_name(name: Any) -> bool:
    """Whether this can be the name of a type: it has nothing that separates names in flags."""
    return isinstance(name, str) and bool(name) and not any(c in name for c in ":=,./ \t\n")


def check_name(kind: str, name: Any) -> str:
    """A name of a type."""
    if not is_name(name):
        raise ValueError(f"{kind} {name!r}: want a name without : = , . / and spaces")
    return name


def of_hetero(data: Any, label: str | None) -> Tables:
    """The graph of a PyG HeteroData. label says which y is the label, as TYPE.y, if several are."""
    made = Tables()
    labels = [t for t in data.node_types if data[t].get("y") is not None]
    if label is not None:
        kind, _, column = label.partition(".")
        if kind not in labels or column != "y":
            raise ValueError(f"label_column {label!r}: want one of "
                             f"{', '.join(f'{t}.y' for t in labels) or 'none: data has no y'}")
        labels = [kind]
    if len(labels) > 1:
        raise ValueError(f"y is of the types {', '.join(labels)}: say which is the label, as in "
                         f'label_column="{labels[0]}.y"; the others are stored as columns')
    for kind in data.node_types:
        _hetero_nodes(made, kind, data[kind], kind in labels)
    for key in data.edge_types:
        _hetero_edges(made, key, data)
    if not made.edges:
        raise ValueError("data has no edges")
    return made


def _hetero_nodes(made: Tables, kind: str, store: Any, labeled: bool) -> None:
    check_name("the type of nodes", kind)
    count = store.num_nodes
    if count is None:
        raise ValueError(f"data[{kind!r}] says nowhere how many nodes it has: set num_nodes")
    pa, count = _arrow(), int(count)
    columns: dict[str, Any] = {"id": np.arange(count)}
    members: dict[str, np.ndarray] = {}
    for name, value in store.items():
        where = f"data[{kind!r}].{name}"
        if value is None or name == "num_nodes":
            continue
        if name in (f"{s}_mask" for s in SPLITS) and labeled:
            members[name.removesuffix("_mask")] = _rows(where, _mask(where, value), count)
        elif name == "x":
            x = _rows(where, _dense(where, value), count)
            if x.ndim != 2 or not x.shape[1]:
                raise ValueError(f"{where} of shape {x.shape}: want (N, D), a row for each node")
            columns["x"] = pa.FixedSizeListArray.from_arrays(
                pa.array(x.astype(np.float32, copy=False).reshape(-1)), x.shape[1])
            made.features.append(f"{kind}.x")
        elif (column := _column(where, value, count, name == "y")) is not None:
            columns["id_" if name == "id" else name] = column
        else:
            made.unused.append(where)
    if labeled:
        if "y" not in columns:
            raise ValueError(f"data[{kind!r}].y: want a class or a number for each node")
        made.label = f"{kind}.y"
    if members:
        check_apart({name: np.flatnonzero(mask) for name, mask in members.items()})
        made.split = f"{kind}.split"
        columns["split"] = pa.array(_split_words(members, count))
    made.nodes[kind] = pa.table(columns)


def _split_words(members: Mapping[str, np.ndarray], count: int) -> list[str | None]:
    words = np.full(count, None, dtype=object)
    for name, mask in members.items():
        words[mask] = name
    return words.tolist()


def _dense(where: str, value: Any) -> np.ndarray:
    """x as an array, sparse or not."""
    if not _is_sparse(value):
        return array(where, value)
    row, col, values, shape = _coo(where, value)
    row, col = array(where, row), array(where, col)
    dense = np.zeros(shape, np.float32)
    np.add.at(dense, (row, col), 1 if values is None else array(where, values))
    return dense


def _rows(where: str, value: np.ndarray, count: int) -> np.ndarray:
    if value.shape[:1] != (count,):
        raise ValueError(f"{where} of shape {value.shape} for {count} nodes: want a row for each")
    return value


def _column(where: str, value: Any, count: int, wanted: bool) -> Any:
    """What has a number, or a text, for each node or edge; None of what has not. wanted makes that
    an error."""
    if isinstance(value, (list, tuple)) and len(value) == count and all(
            isinstance(v, str) for v in value):
        return list(value)
    if not (hasattr(value, "shape") or isinstance(value, (list, tuple))) or _is_sparse(value):
        return None
    try:
        made = array(where, value)
    except ValueError:
        if wanted:
            raise
        return None
    if made.ndim == 2 and made.shape[1] == 1:
        made = made.reshape(-1)
    if made.shape == (count,):
        return made
    if wanted:
        raise ValueError(f"{where} of shape {made.shape} for {count} nodes: want ({count},), a "
                         "class or a number for each")
    return None


#: Names of what edges weigh and when they are, as a Data has them too.
_WEIGHT, _TIMES = "edge_weight", ("edge_time", "time")


def _hetero_edges(made: Tables, key: EdgeType, data: Any) -> None:
    for name in key:
        check_name("the type of edges", name)
    store, (source, relation, target) = data[key], key
    ends = store.get("edge_index")
    if ends is None and store.get("adj_t") is not None:
        row, col, weights, _ = _coo(f"data[{key!r}].adj_t", store["adj_t"])
        ends = np.stack([array("adj_t", col), array("adj_t", row)])  # its rows are targets
        if weights is not None:
            raise ValueError(f"data[{key!r}].adj_t has values: give edge_index and edge_weight")
    if ends is None:
        raise ValueError(f"data[{key!r}] has no edge_index")
    ends = array(f"data[{key!r}].edge_index", ends)
    if ends.ndim != 2 or ends.shape[0] != 2 or ends.dtype.kind not in "iu":
        raise ValueError(f"data[{key!r}].edge_index of shape {ends.shape} and type {ends.dtype}: "
                         "want (2, E) integers")
    for kind, row in ((source, ends[0]), (target, ends[1])):
        if kind not in made.nodes:
            raise ValueError(f"data[{key!r}]: data has no nodes of type {kind!r}")
        outside = (row < 0) | (row >= len(made.nodes[kind]))
        if outside.any():
            raise ValueError(f"data[{key!r}].edge_index: node {row[outside][0]} is out of range: "
                             f"{kind!r} has {len(made.nodes[kind])} nodes")
    columns: dict[str, Any] = dict(zip(_ENDS, ends, strict=True))
    for name, value in store.items():
        where = f"data[{key!r}].{name}"
        if value is None or name in ("edge_index", "adj_t"):
            continue
        for column, part in _parts(name, value):
            found = _column(where, part, ends.shape[1], name in (_WEIGHT, *_TIMES))
            if found is None:
                made.unused.append(where)
                break
            columns[column] = found
            if column == _WEIGHT:
                made.weights[relation] = column
            elif column in _TIMES:
                made.times.setdefault(relation, column)
    _add_edges(made, key, _arrow().table(columns))


def _parts(name: str, value: Any) -> list[tuple[str, Any]]:
    """The columns of an attribute: of edge_attr one for each of its own."""
    if name == "edge_attr" and getattr(value, "ndim", 0) == 2 and value.shape[1] > 1:
        return [(f"{name}_{i}", value[:, i]) for i in range(value.shape[1])]
    return [(name, value)]


def _add_edges(made: Tables, key: EdgeType, table: Any) -> None:
    """Adds a table. Relations of one name have the same weights and times: flags name them so."""
    for other, known in made.edges.items():
        if other[1] != key[1]:
            continue
        for what in (made.weights.get(key[1]), made.times.get(key[1])):
            if what is not None and (what in known.column_names) != (what in table.column_names):
                raise ValueError(f"edges of {other} or of {key} have {what}, and the others none: "
                                 "give both, or another name to one of the relations")
    made.edges[key] = table


def of_frames(nodes: Any, edges: Mapping[EdgeType, Any], roles: Mapping[str, str | None]) -> Tables:
    """The graph of DataFrames by type. roles are the arguments that name columns."""
    if nodes is not None and not isinstance(nodes, Mapping):
        raise ValueError("edges are given by type, and nodes are not: give nodes={type: frame}")
    for key in edges:
        if not isinstance(key, tuple) or len(key) != 3:
            raise ValueError(f"edges is a dict with the key {key!r}: want a DataFrame, or one for "
                             "each (source type, relation, target type)")
    made, pa = Tables(), _arrow()
    for kind, frame in (nodes or {}).items():
        check_name("the type of nodes", kind)
        made.nodes[kind] = _frame_nodes(made, kind, frame, roles)
    label = roles["label"]
    if label is not None:
        kinds = [k for k, t in made.nodes.items() if label.removeprefix(f"{k}.") in t.column_names]
        if len(kinds) != 1:
            raise ValueError(f"label_column {label!r}: {len(kinds)} types of nodes have it: want "
                             "TYPE.COLUMN")
        made.label = f"{kinds[0]}.{label.removeprefix(f'{kinds[0]}.')}"
        made.features = [f for f in made.features if f != made.label]
    for key, frame in edges.items():
        for name in key:
            check_name("the type of edges", name)
        table = pa.Table.from_pandas(_plain(f"edges {key!r}", frame), preserve_index=False)
        source, target = _frame_ends(key, table.column_names, roles)
        rest = [c for c in table.column_names if c not in (source, target)]
        for role, to in (("weight", made.weights), ("time", made.times)):
            if roles[role] is not None and roles[role] in rest:
                to[key[1]] = str(roles[role])
        _add_edges(made, key, table.select([source, target, *rest]).rename_columns([*_ENDS, *rest]))
    return made


def more_frames(nodes: Any, edges: Any, roles: Mapping[str, Any]) -> Tables:
    """DataFrames by type that a store of several types gets. roles are the arguments that name
    columns."""
    for name, what in (("label", "label_column"), ("type", "type_column"), ("splits", "splits")):
        if roles[name] is not None:
            raise ValueError(f"{what} beside frames by type: the store knows what columns of its "
                             f"types are, and relations are keys of edges: leave {what} out")
    if edges is not None and not isinstance(edges, Mapping):
        raise ValueError("nodes are given by type, and edges are not: give edges={(source type, "
                         "relation, target type): frame}")
    keys = {key: tuple(key.split(":")) if isinstance(key, str) and key.count(":") == 2 else key
            for key in edges or {}}
    if len(set(keys.values())) < len(keys):
        raise ValueError("edges have a relation twice, as a tuple and as one name: put the rows "
                         "into one frame")
    if not keys and not nodes:
        raise ValueError("nodes and edges have no frame: nothing would be added")
    for role, of, frames in (("weight", "edges", edges), ("time", "edges", edges),
                             ("source", "edges", edges), ("target", "edges", edges),
                             ("id", "nodes", nodes)):
        if roles[role] is not None and isinstance(frames or {}, Mapping) and not any(
                roles[role] in getattr(frame, "columns", ()) for frame in (frames or {}).values()):
            raise ValueError(f"{role}_column {roles[role]!r}: no {of} have the column")
    return of_frames(nodes, {keys[key]: frame for key, frame in (edges or {}).items()}, roles)


def _plain(what: str, frame: Any) -> Any:
    if not hasattr(frame, "columns") or not hasattr(frame, "to_dict"):
        raise ValueError(f"{what}: want a DataFrame, not a {type(frame).__name__}")
    bad = [c for c in frame.columns if not isinstance(c, str) or "," in c]
    if bad:
        raise ValueError(f"{what}: the column {bad[0]!r}: want a name without commas")
    return frame


def _frame_nodes(made: Tables, kind: str, frame: Any, roles: Mapping[str, str | None]) -> Any:
    frame = _plain(f"nodes {kind!r}", frame)
    usual = (roles["id"], "id", f"{kind}_id", f"{kind}Id", kind)
    node = next((c for c in usual if c in frame.columns), None)
    if node is None:
        raise ValueError(f"nodes {kind!r} has no column id or {kind}_id, it has "
                         f"{', '.join(frame.columns)}: say which has the ids with id_column")
    if "split" in frame.columns:
        if made.split is not None:
            raise ValueError(f"{made.split} and {kind}.split are splits: want them in one type")
        made.split = f"{kind}.split"
    rest = [c for c in frame.columns if c != node]
    made.features += [f"{kind}.{c}" for c in rest
                      if c != "split" and getattr(frame[c].dtype, "kind", "O") in "iufb"]
    return _arrow().Table.from_pandas(frame[[node, *rest]], preserve_index=False)


def _frame_ends(key: EdgeType, columns: list[str], roles: Mapping[str, str | None],
                ) -> tuple[str, str]:
    """The columns of both ends: those that are named, or called as usual or as the types are, else
    the first two."""
    found = []
    for role, usual, kind in (("source", ("source", "src"), key[0]),
                              ("target", ("target", "dst"), key[2])):
        given = roles[role]
        if given is not None and given not in columns:
            raise ValueError(f"edges {key!r} has no column {given!r}, it has {', '.join(columns)}")
        names = [given] if given else [*usual, *(f"{u}_id" for u in usual), f"{kind}_id",
                                       f"{kind}Id", kind]
        found.append(next((n for n in names if n in columns and n not in found), None))
    rest = [c for c in columns if c not in found]
    ends = [end if end is not None else rest.pop(0) if rest else None for end in found]
    if None in ends:
        raise ValueError(f"edges {key!r} has the columns {', '.join(columns)}: want two ends")
    return str(ends[0]), str(ends[1])
