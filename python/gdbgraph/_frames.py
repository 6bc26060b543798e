"""Graphs of DataFrames, as ``gdb ingest`` reads them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from ._arrays import SPLITS, check_apart

#: The names that columns go by, which are those of ``gdb ingest``.
_SOURCES = ("src", "source", "from", "head", "subject", "u", "src_id", "source_id", "from_id",
            "fromnodeid", "node1", "node_1", "citing")
_TARGETS = ("dst", "target", "to", "tail", "object", "v", "dst_id", "target_id", "to_id",
            "tonodeid", "node2", "node_2", "dest", "destination", "cited")
_TYPES = ("rel", "relation", "relation_type", "edge_type", "type", "predicate")
_WEIGHTS = ("weight", "edge_weight", "w")
_TIMES = ("time", "timestamp", "ts", "unixtime", "unix_time")
_IDS = ("id", "node", "node_id", "nodeid", "vertex", "vertex_id")
_LABELS = ("label", "labels", "class", "y", "target")
#: The name that pandas gives an index that it has read from a file.
_INDEX = re.compile(r"Unnamed: \d+|")
_ROWS = 1 << 16  # that are written at a time
#: Types of columns of a store, by the kinds of dtypes, and what objects have them.
_KINDS = {"b": "bool", "i": "int64", "u": "int64", "f": "float64", "M": "timestamp"}
_OBJECTS = {"bool": {bool}, "int64": {int}, "float64": {int, float, Decimal}, "date": {date},
            "string": {str, bool, int, float}}
_EXACT = 1 << 53  # up to which a float64 holds each integer


class Frames:
    """A graph of two tables. ``unused`` are the names of columns that are not stored. ``typed`` says
    whether flags name the types of other columns of edges, which a store that is there knows."""

    def __init__(self, edges: Any, nodes: Any, *, source: str | None, target: str | None,
                 kind: str | None, weight: str | None, time: str | None, node: str | None,
                 label: str | None, typed: bool) -> None:
        self.unused: list[str] = []
        self.splits: dict[str, Any] = {}
        #: What each file holds, for messages.
        self.names: dict[str, str] = {}
        self._edges = None if edges is None else _Table(
            "edges", edges, (source, target, *_SOURCES, *_TARGETS))
        self._nodes = None if nodes is None else _Table("nodes", nodes, (node,) if node else _IDS)
        if nodes is None and (node or label):
            raise ValueError("id_column and label_column are columns of nodes, which is not given")
        self._roles = {"source": source, "target": target, "type": kind, "weight": weight,
                       "time": time}
        self._id, self._label, self._typed = node, label, typed

    def write(self, folder: Path) -> list[str]:
        """Writes the tables, and returns the arguments of ``gdb ingest``."""
        flags = [] if self._edges is None else self._write_edges(folder)
        if self._nodes is not None:
            flags += self._write_nodes(folder)
        for name, ids in self._members().items():
            file = f"{name}.csv"
            self.names[file] = f"split {name}"
            _write(folder / file, {"id": ids})
            flags += ["--split", f"{name}={folder / file}"]
        return flags

    def _write_edges(self, folder: Path) -> list[str]:
        table = self._edges
        assert table is not None
        source, target = _ends(table, self._roles["source"], self._roles["target"])
        columns = {source: table.ids(source), target: table.ids(target)}
        flags = ["--src-col", source, "--dst-col", target, "--header", "yes"]
        for role, usual, flag, of in (("type", _TYPES, "--rel-col", table.words),
                                      ("weight", _WEIGHTS, "--weight-col", table.numbers),
                                      ("time", _TIMES, "--time-col", table.times)):
            column = self._roles[role] or table.usual(usual, columns)
            if column is None:
                continue
            if column in columns:
                raise ValueError(f"the column {column!r} of edges cannot be the {role} too")
            columns[column] = of(column)
            flags += [flag, column]
        types = []
        for column in table.names:
            if column in columns or _INDEX.fullmatch(column):
                continue
            stored = table.stored(column)
            if stored is None:
                self.unused.append(f"edges.{column}")
                continue
            columns[column] = stored[0]
            types.append(f"edges.{column}={stored[1]}")
        if types and self._typed:
            flags += ["--column-types", _list(types)]
        self.names["edges.csv"] = "edges"
        _write(folder / "edges.csv", columns)
        return ["--edges", str(folder / "edges.csv"), *flags]

    def _write_nodes(self, folder: Path) -> list[str]:
        table, node = self._nodes, self._id_column()
        assert table is not None
        columns: dict[str, Any] = {node: table.ids(node)}
        flags = ["--id-col", node]
        label = self._label or table.usual(_LABELS, columns)
        other = table.usual(_LABELS, (*columns, label))
        if self._label is None and other is not None:
            raise ValueError(f"nodes has the columns {label!r} and {other!r}: say which is the label "
                             "with label_column; the other is a feature then")
        if label is not None:
            if label == node:
                raise ValueError(f"the column {label!r} of nodes is the id and the label")
            columns[label] = table.classes(label)
            flags += ["--label-col", label]
        masks = [f"{s}_mask" for s in SPLITS if f"{s}_mask" in table.names]
        if "split" in table.names and "split" not in columns:
            if masks:
                raise ValueError(f"nodes has the column split and {masks[0]}: want one of them")
            columns["split"] = table.words("split", gaps=True)
            flags += ["--split-col", "split"]
        for mask in masks:
            self.splits.setdefault(mask.removesuffix("_mask"), table.mask(mask))
        features = self._features(columns, masks)
        columns.update(features)
        if features:
            flags += ["--feature-cols", _list(features)]
        self.names["nodes.csv"] = "nodes"
        _write(folder / "nodes.csv", columns)
        return ["--nodes", str(folder / "nodes.csv"), *flags]

    def _id_column(self) -> str:
        """The column of nodes with their ids."""
        assert self._nodes is not None
        found = self._id or self._nodes.usual(_IDS, ())
        if found is None or found not in self._nodes.names:
            raise ValueError(f"nodes has no column {found or 'id'!r}, it has "
                             f"{', '.join(self._nodes.names)}: say which has the ids with id_column")
        return found

    def _features(self, taken: Sequence[str] | dict[str, Any], masks: list[str]) -> dict[str, Any]:
        """The columns of features."""
        found: dict[str, Any] = {}
        assert self._nodes is not None
        for column in self._nodes.names:
            if column in taken or column in masks or _INDEX.fullmatch(column):
                continue
            if self._nodes.frame[column].dtype.kind not in "iufb":
                self.unused.append(f"nodes.{column}")
                continue
            found[column] = self._nodes.numbers(column, gaps=True)
        return found

    def _members(self) -> dict[str, Any]:
        """The ids of each split, of ids or of masks of the rows of nodes."""
        found = {}
        for name, value in self.splits.items():
            if name not in SPLITS:
                raise ValueError(f"split {name!r}: want one of {', '.join(SPLITS)}")
            if hasattr(value, "detach"):
                value = value.detach().cpu().numpy()
            members = np.asarray(value)
            if members.dtype == np.bool_:
                rows = 0 if self._nodes is None else len(self._nodes.frame)
                if members.shape != (rows,):
                    raise ValueError(f"the mask of {name} has shape {members.shape} for {rows} rows "
                                     "of nodes")
                assert self._nodes is not None
                members = np.asarray(self._nodes.ids(self._id_column()))[members]
            if members.ndim != 1:
                raise ValueError(f"split {name} of shape {members.shape}: want ids in a row")
            found[name] = members
        check_apart({name: ids.astype(str) for name, ids in found.items()})
        return found


def _ends(table: _Table, source: str | None, target: str | None) -> tuple[str, str]:
    """The columns of the ends: as given, with a usual name, or the first two."""
    named = table.usual(_SOURCES, ()), table.usual(_TARGETS, ())
    if source is None and target is None and None not in named:
        source, target = named
    rest = [c for c in table.names if c not in (source, target) and not _INDEX.fullmatch(c)]
    if len(rest) < (source is None) + (target is None):
        raise ValueError("edges has fewer than two columns: the ends of the edges")
    source = rest.pop(0) if source is None else source
    target = rest.pop(0) if target is None else target
    if source == target:
        raise ValueError(f"the column {source!r} of edges is the source and the target")
    return source, target


class _Table:
    """A DataFrame whose columns are known by their names, as text."""

    def __init__(self, name: str, frame: Any, index: Sequence[str | None]) -> None:
        self.name = name
        if hasattr(frame, "to_pandas"):  # Arrow's and polars'
            frame = frame.to_pandas()
        if not hasattr(frame, "to_csv") or not hasattr(frame, "columns"):
            raise ValueError(f"{name} is a {type(frame).__name__}: want a DataFrame; frames by "
                             "type are for edges and nodes both")
        named = [n for n in getattr(frame.index, "names", ()) if n is not None]
        if any((n in index or str(n).lower() in index) and n not in frame.columns for n in named):
            frame = frame.reset_index()
        self.frame = frame.set_axis([str(c) for c in frame.columns], axis=1)
        self.names = list(self.frame.columns)
        twice = sorted({c for c in self.names if self.names.count(c) > 1})
        if twice:
            raise ValueError(f"{name} has two columns {twice[0]!r}: rename one")
        if not len(frame):
            raise ValueError(f"{name} has no rows")

    def usual(self, names: Sequence[str], taken: Any) -> str | None:
        """The first column with one of these names that is not taken."""
        return next((c for c in self.names if c.lower() in names and c not in taken), None)

    def column(self, name: str, gaps: bool = False) -> Any:
        """A column as a Series. Without gaps an empty field is an error that says where."""
        if name not in self.names:
            raise ValueError(f"{self.name} has no column {name!r}: it has {', '.join(self.names)}")
        values = self.frame[name]
        if values.dtype.name == "category":
            values = values.astype(object)
        missing = np.asarray(values.isna())
        if missing.any() and not gaps:
            raise ValueError(f"the column {name!r} of {self.name} is empty in row "
                             f"{int(np.flatnonzero(missing)[0])}, and {int(missing.sum())} in all")
        if values.dtype.kind == "O" and values.map(
                lambda v: isinstance(v, (list, tuple, dict, set, np.ndarray, bytes))).any():
            raise ValueError(f"the column {name!r} of {self.name} has lists or bytes in it: want a "
                             "value in each row")
        return values

    def ids(self, name: str) -> Any:
        """A column of ids. pandas makes integers numbers with a point where one is missing, or was:
        they are the integers."""
        return self._whole(name, self.column(name), "ids are text or integers")

    def words(self, name: str, gaps: bool = False) -> Any:
        """A column of types of edges, or of splits."""
        return self._whole(name, self.column(name, gaps), "want words or integers")

    def _whole(self, name: str, values: Any, want: str) -> Any:
        if values.dtype.kind == "O":
            return values.map(_word)
        if values.dtype.kind == "f":
            numbers = values.astype(np.float64)
            known = numbers[numbers.notna()]
            odd = ~((known % 1 == 0) & (known.abs() <= _EXACT))
            if odd.any():
                raise ValueError(f"the column {name!r} of {self.name} has {known[odd].iloc[0]}, "
                                 f"which is not an integer that is exact: {want}")
            return numbers.astype("Int64")
        return values

    def classes(self, name: str) -> Any:
        """A column of labels, where gaps are nodes without one."""
        values = self.column(name, gaps=True)
        if values.dtype.kind == "O":
            return values.map(_word)
        if values.dtype.kind == "f":
            numbers = values.astype(np.float64)
            known = numbers[numbers.notna()]
            if ((known % 1 == 0) & (known.abs() <= _EXACT)).all():
                return numbers.astype("Int64")
        return values

    def numbers(self, name: str, gaps: bool = False) -> Any:
        """A column of numbers."""
        values = self.column(name, gaps)
        if values.dtype.kind == "b" or values.dtype.name == "boolean":
            return values.astype("Int64")
        return values

    def stored(self, name: str) -> tuple[Any, str] | None:
        """A column that is stored as it is, with gaps, and its type; None if it has no type that a
        store has."""
        values = self.frame[name]
        if values.dtype.name == "category":
            values = values.astype(values.cat.categories.dtype)
        values = values.infer_objects()
        kind = _KINDS.get(values.dtype.kind)
        if values.dtype.kind == "O":
            known = set(values.dropna().map(type))
            kind = next((k for k, of in _OBJECTS.items() if known <= of), None)
        if kind == "timestamp":
            if getattr(values.dt, "tz", None) is not None:
                values = values.dt.tz_convert("UTC").dt.tz_localize(None)
            values = values.dt.strftime("%Y-%m-%dT%H:%M:%S.%f")
        elif kind in ("date", "string"):
            values = values.map(_word)
        return None if kind is None else (values, kind)

    def times(self, name: str) -> Any:
        """A column of seconds, or of dates, which are seconds of UTC."""
        values = self.column(name)
        if values.dtype.kind == "M":
            if getattr(values.dt, "tz", None) is not None:
                values = values.dt.tz_convert("UTC").dt.tz_localize(None)
            return values.to_numpy("datetime64[s]").astype(np.int64)
        return values

    def mask(self, name: str) -> np.ndarray:
        """A column of a mask, of bools or of 0 and 1."""
        values = self.column(name)
        if not values.isin((0, 1)).all():
            raise ValueError(f"the column {name!r} of {self.name} has more than True and False")
        return values.to_numpy().astype(np.bool_)


def _list(words: Sequence[str] | dict[str, Any]) -> str:
    """A list as a value of a flag."""
    listed = io.StringIO()
    csv.writer(listed, lineterminator="").writerow(words)
    return listed.getvalue()


def _word(value: Any) -> Any:
    """A value of a column that has several kinds, as its text; None for a gap."""
    if value is None or value != value:
        return None
    if isinstance(value, (float, np.floating)) and value % 1 == 0 and abs(value) <= _EXACT:
        value = int(value)
    return str(value)


def _write(path: Path, columns: dict[str, Any]) -> None:
    """Writes columns as a file of text. Text has quotes, so that nothing in it is a remark."""
    rows = len(next(iter(columns.values())))
    with path.open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(columns)
        for first in range(0, rows, _ROWS):
            writer.writerows(zip(*(_cells(v[first : first + _ROWS]) for v in columns.values())))


def _cells(values: Any) -> list[Any]:
    """Some values of a column; None for gaps."""
    if hasattr(values, "isna") and np.asarray(values.isna()).any():
        values = values.to_numpy(dtype=object, na_value=None)
    return values.tolist()
