"""Rows of statements: as Arrow, in pandas, and as objects of Python."""

from __future__ import annotations

import datetime
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gdbgraph
from gdbgraph.result import Result

#: Values of each type, and what they are as objects of Python.
STATEMENT = """
UNWIND [
  {i: 9007199254740993, x: 1.5, b: true, s: 'yö', d: date('2015-07-21'), l: [1, null],
   t: datetime('2015-07-21T12:00:00.5+02:00'), n: localdatetime('1969-12-31T23:59'),
   c: localtime('12:30:01'), m: {k: [{z: 'a'}]}, mix: 1},
  {},
  {i: -1, x: 0.0/0.0, b: false, s: '', d: date('0001-01-01'), l: [], mix: 'a',
   t: datetime('2015-07-21T12:00+02:00'), n: localdatetime('2000-01-01T00:00:00.000001'),
   c: localtime('00:00'), m: {k: [], j: 2}}] AS r
RETURN r.i AS i, r.x AS x, r.b AS b, r.s AS s, r.d AS d, r.l AS l, r.t AS t, r.n AS n, r.c AS c,
  r.m AS m, r.mix AS mix, null AS none"""
EAST = datetime.timezone(datetime.timedelta(hours=2))
WANT = {
    "i": [9007199254740993, None, -1], "b": [True, None, False], "s": ["yö", None, ""],
    "d": [datetime.date(2015, 7, 21), None, datetime.date(1, 1, 1)], "l": [[1, None], None, []],
    "t": [datetime.datetime(2015, 7, 21, 12, 0, 0, 500000, EAST), None,
          datetime.datetime(2015, 7, 21, 12, tzinfo=EAST)],
    "n": [datetime.datetime(1969, 12, 31, 23, 59), None,
          datetime.datetime(2000, 1, 1, 0, 0, 0, 1)],
    "c": [datetime.time(12, 30, 1), None, datetime.time(0)],
    "m": [{"k": [{"z": "a"}], "j": None}, None, {"k": [], "j": 2}],
    "mix": ["1", None, "a"], "none": [None, None, None],
}


@pytest.fixture
def shop(gdb: str, tmp_path: Path) -> Iterator[gdbgraph.Store]:
    """Users with properties who know each other."""
    base = tmp_path
    (base / "d").mkdir()
    (base / "d" / "user.csv").write_text("id,name,born\na,Ann,2001-02-03\nb,Bob,\n")
    (base / "d" / "knows.csv").write_text("src,dst,since\na,b,2020\n")
    (base / "schema.json").write_text("""{"tables": [{"name": "user", "key": "id"}],
      "edges": [{"name": "knows", "from": "user", "to": "user", "file": "knows.csv",
                 "source": "src", "target": "dst"}]}""")
    subprocess.run([gdb, "ingest", str(base / "d"), "--schema", str(base / "schema.json"),
                    "--out", str(base / "s.gdb"), "--quiet"], check=True)
    with gdbgraph.open(base / "s.gdb", threads=1) as store:
        yield store


def test_objects(store: gdbgraph.Store) -> None:
    found = store.query(STATEMENT)
    values = dict(found.dict())
    x = values.pop("x")
    assert x[:2] == [1.5, None] and math.isnan(x[2])
    assert values == WANT
    assert len(found) == 3 and found.columns[:3] == ["i", "x", "b"]
    assert list(store.query("UNWIND [1, 2] AS a RETURN a, -a AS b")) == [(1, -1), (2, -2)]
    assert repr(store.query("RETURN 1 AS a")) == "Result(1 rows of a)"
    none = store.query("UNWIND [] AS x RETURN x, x AS y")
    assert len(none) == 0 and list(none) == [] and none.dict() == {"x": [], "y": []}
    far = store.query("RETURN date('+20000-01-01') AS d").dict()["d"]
    assert far == [np.datetime64("20000-01-01")]


def test_arrow(store: gdbgraph.Store) -> None:
    pa = pytest.importorskip("pyarrow")
    found = store.query(STATEMENT)
    table = found.arrow()
    table.validate(full=True)
    assert {f.name: str(f.type) for f in table.schema} == {
        "i": "int64", "x": "double", "b": "bool", "s": "string", "d": "date32[day]",
        "l": "list<item: int64>", "t": "timestamp[us, tz=+02:00]", "n": "timestamp[us]",
        "c": "time64[us]", "m": "struct<k: list<item: struct<z: string>>, j: int64>",
        "mix": "string", "none": "null"}
    values = table.to_pydict()
    x = values.pop("x")
    assert x[:2] == [1.5, None] and math.isnan(x[2]) and values == WANT
    assert pa.table(found).schema == table.schema  # by __arrow_c_stream__
    many = store.query("UNWIND range(1, 1000) AS i RETURN 'row ' + i AS s, i")
    before = pa.total_allocated_bytes()
    table = many.arrow()
    assert table["s"].to_pylist()[999] == "row 1000" and pa.total_allocated_bytes() == before
    text = np.frombuffer(table["s"].chunk(0).buffers()[2], np.uint8)
    assert np.shares_memory(text, np.frombuffer(many._columns[0]._values, np.uint8))


def test_pandas(store: gdbgraph.Store) -> None:
    pd = pytest.importorskip("pandas")
    frame = store.query(STATEMENT).pandas()
    assert list(frame) == [*store.query(STATEMENT).columns]
    types = {n: str(t) for n, t in frame.dtypes.items()}
    assert (types["i"], types["x"], types["b"]) == ("Int64", "float64", "boolean")
    assert frame["i"].tolist()[0] == 9007199254740993 and frame["i"].isna().tolist()[1]
    assert frame["x"].isna().tolist() == [False, True, True]
    assert frame["d"][0] == pd.Timestamp("2015-07-21") and frame["d"].isna().tolist()[1]
    assert frame["t"][0] == pd.Timestamp("2015-07-21T12:00:00.5+02:00")
    assert frame["s"].tolist()[0] == "yö" and frame["s"].isna().tolist() == [False, True, False]
    assert frame["l"].isna().tolist() == [False, True, False]
    whole = store.query("UNWIND [1, 2] AS a RETURN a, a AS a2, a > 1 AS b").pandas()
    assert [str(t) for t in whole.dtypes] == ["int64", "int64", "bool"]
    assert whole["a"].tolist() == [1, 2] and whole["b"].tolist() == [False, True]
    assert len(store.query("UNWIND [] AS x RETURN x").pandas()) == 0


def test_entities(shop: gdbgraph.Store) -> None:
    ann = {"id": 0, "labels": ["user"], "properties": {
        "born": datetime.date(2001, 2, 3), "id": "a", "name": "Ann"}}
    bob = {"id": 1, "labels": ["user"], "properties": {"born": None, "id": "b", "name": "Bob"}}
    found = shop.query("MATCH p = (a)-[r:knows]->(b) RETURN a, r, p").dict()
    assert found["a"] == [ann]
    knows = {"start": 0, "end": 1, "type": "knows", "properties": {"since": 2020}}
    assert found["r"] == [knows]
    assert found["p"] == [{"nodes": [ann, bob], "relationships": [knows]}]
    table = shop.query("MATCH (a:user) RETURN a ORDER BY a.id")
    assert table.dict()["a"] == [ann, bob]
    pytest.importorskip("pyarrow")
    assert table.arrow()["a"].to_pylist() == [ann, bob]


def test_without_pyarrow(store: gdbgraph.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    found = store.query(STATEMENT)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    frame = found.pandas()
    assert frame["s"].tolist() == WANT["s"] and frame["m"].tolist() == WANT["m"]
    assert frame["c"].tolist() == WANT["c"]
    with pytest.raises(ImportError):
        found.arrow()


def test_no_columns() -> None:
    assert len(Result(0, [], bytearray())) == 0
