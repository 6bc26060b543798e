"""The rows of a statement, by columns in the format of Apache Arrow."""

from __future__ import annotations

import datetime
import importlib.util
import zoneinfo
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

#: A column as gdb describes it: its name, type, rows, and where its buffers are.
_Layout = dict[str, Any]
#: What the values of a column are in memory, by its type.
_VALUES = {"int64": "<i8", "float64": "<f8", "date": "<i4", "timestamp": "<i8", "time": "<i8"}


class Result:
    """The rows of a statement.

    The columns have types: bool, int64, float64, string, date, timestamp, time, list, struct, and
    null where no row has a value. A node is a struct of id (its number, as in ``batch.n_id``),
    labels and properties; a relationship one of start, end, type and properties; a path one of
    nodes and relationships; a map one of its keys. Values of different types in a column become
    text, but whole numbers beside others float64.

    ``len`` is the number of rows, and iterating gives them as tuples. What takes Arrow's
    ``__arrow_c_stream__``, such as polars and DuckDB, takes a result.
    """

    def __init__(self, rows: int, columns: list[_Layout], data: bytearray) -> None:
        #: The names of the columns, in order.
        self.columns: list[str] = [c["name"] for c in columns]
        self._rows = rows
        self._columns = [_Column(c, memoryview(data)) for c in columns]

    def arrow(self) -> Any:
        """A ``pyarrow.Table`` over the bytes that came from gdb, of which none are copied."""
        import pyarrow

        return pyarrow.Table.from_arrays([c.arrow() for c in self._columns], names=self.columns)

    def pandas(self) -> Any:
        """A ``pandas.DataFrame``.

        Numbers are not copied. Strings, lists, structs and times stay Arrow's where pyarrow is
        installed, and are objects of Python elsewhere. Whole numbers with nulls are Int64, bools
        with nulls boolean; a null is NaN among float64 and NaT among dates and timestamps.
        """
        import pandas

        series = [pandas.Series(c.pandas()) for c in self._columns]
        frame = pandas.concat(series, axis=1) if series else pandas.DataFrame()
        return frame.set_axis(self.columns, axis=1)

    def dict(self) -> Mapping[str, list[Any]]:
        """The values of each column as a list; of two columns of one name the later."""
        return {c.name: c.objects() for c in self._columns}

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return zip(*(c.objects() for c in self._columns))

    def __repr__(self) -> str:
        return f"Result({self._rows} rows of {', '.join(self.columns)})"

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.arrow().__arrow_c_stream__(requested_schema)


class _Column:
    """A column, or a field of one, as gdb describes it."""

    def __init__(self, layout: _Layout, data: memoryview) -> None:
        self.name: str = layout["name"]
        self.type: str = layout["type"]
        self.zone: str | None = layout.get("zone")
        self.rows: int = layout["rows"]
        self.nulls: int = layout["nulls"]
        self._valid, self._offsets, self._values = (
            data[at : at + size] for at, size in
            (layout["valid"], layout["offsets"], layout["values"]))
        self.fields = [_Column(f, data) for f in layout.get("fields", ())]

    def arrow_type(self) -> Any:
        """The type in Arrow."""
        import pyarrow as pa

        if self.type == "list":
            return pa.list_(self.fields[0].arrow_type())
        if self.type == "struct":
            return pa.struct([(f.name, f.arrow_type()) for f in self.fields])
        return {"null": pa.null(), "bool": pa.bool_(), "int64": pa.int64(),
                "float64": pa.float64(), "string": pa.string(), "date": pa.date32(),
                "timestamp": pa.timestamp("us", self.zone), "time": pa.time64("us")}[self.type]

    def arrow(self) -> Any:
        """The column over the same memory."""
        import pyarrow as pa

        if self.type == "null":
            return pa.nulls(self.rows)
        buffers = [pa.py_buffer(self._valid) if self.nulls else None]
        if self.type in ("string", "list"):
            buffers.append(pa.py_buffer(self._offsets))
        if self.type not in ("list", "struct"):
            buffers.append(pa.py_buffer(self._values))
        return pa.Array.from_buffers(self.arrow_type(), self.rows, buffers, self.nulls,
                                     children=[f.arrow() for f in self.fields])

    def _null(self) -> np.ndarray:
        """Which rows are null."""
        if not self.nulls:
            return np.zeros(self.rows, bool)
        return ~_bits(self._valid, self.rows)

    def _numpy(self) -> np.ndarray:
        """The numbers, whatever those of nulls are; dates and times as numpy has them."""
        if self.type == "bool":
            return _bits(self._values, self.rows)
        numbers = np.frombuffer(self._values, _VALUES[self.type])
        if self.type == "date":
            return numbers.astype("datetime64[D]")
        return numbers.view("datetime64[us]") if self.type == "timestamp" else numbers

    def pandas(self) -> Any:
        """The column as pandas takes it."""
        import pandas

        if self.type in ("null", "string", "list", "struct", "time"):
            if importlib.util.find_spec("pyarrow") is None:
                return pandas.Series(self.objects(), dtype=object)
            return pandas.arrays.ArrowExtensionArray(self.arrow())
        values, null = self._numpy(), self._null()
        if self.type == "bool":
            return pandas.arrays.BooleanArray(values, null) if self.nulls else values
        if self.type == "int64":
            return pandas.arrays.IntegerArray(values, null) if self.nulls else values
        if self.type == "date":
            values = values.astype("datetime64[s]")
        if self.nulls:
            values = values.copy()
            values[null] = np.nan if self.type == "float64" else np.datetime64("NaT")
        series = pandas.Series(values)
        return series.dt.tz_localize("UTC").dt.tz_convert(self.zone) if self.zone else series

    def objects(self) -> list[Any]:
        """The values as objects of Python."""
        if self.type == "null":
            return [None] * self.rows
        if self.type == "string":
            ends = np.frombuffer(self._offsets, "<i4").tolist()
            text = self._values
            values = [str(text[a:b], "utf-8") for a, b in zip(ends, ends[1:])]
        elif self.type == "list":
            ends = np.frombuffer(self._offsets, "<i4").tolist()
            elements = self.fields[0].objects()
            values = [elements[a:b] for a, b in zip(ends, ends[1:])]
        elif self.type == "struct":
            columns = [f.objects() for f in self.fields]
            names = [f.name for f in self.fields]
            values = [{n: c[i] for n, c in zip(names, columns)} for i in range(self.rows)]
        else:
            values = self._scalars()
        for i in np.flatnonzero(self._null()).tolist() if self.nulls else ():
            values[i] = None
        return values

    def _scalars(self) -> list[Any]:
        """Numbers, dates and times. What Python's dates do not reach stays numpy's."""
        found = self._numpy()
        values = found.tolist()
        if self.type in ("date", "timestamp"):
            values = [found[i] if isinstance(v, int) else v for i, v in enumerate(values)]
        if self.type == "timestamp" and self.zone:
            zone, utc = _zone(self.zone), datetime.timezone.utc
            values = [v.replace(tzinfo=utc).astimezone(zone)
                      if isinstance(v, datetime.datetime) else v for v in values]
        if self.type == "time":
            midnight = datetime.datetime(1970, 1, 1)
            values = [(midnight + datetime.timedelta(microseconds=v)).time() for v in values]
        return values


def _bits(data: memoryview, rows: int) -> np.ndarray:
    return np.unpackbits(np.frombuffer(data, np.uint8), count=rows, bitorder="little").view(bool)


def _zone(name: str) -> datetime.tzinfo:
    """A zone by its name, or by an offset such as +02:00."""
    if name == "UTC":
        return datetime.timezone.utc
    if name[0] in "+-":
        east = datetime.timedelta(hours=int(name[1:3]), minutes=int(name[4:6]))
        return datetime.timezone(east if name[0] == "+" else -east)
    return zoneinfo.ZoneInfo(name)
