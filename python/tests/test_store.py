"""Lookups, and mistakes of the user."""

from __future__ import annotations

import numpy as np
import pytest

import gdbgraph
from gdbgraph import _binary
from gdbgraph._convert import parse_size


def test_about(store, arrays) -> None:
    assert (store.num_nodes, store.num_edges, store.num_features) == (500, 4000, 6)
    assert store.feature_names is None
    assert store.labels == "class" and len(store.classes) == 4
    assert store.splits == {"train": 200, "val": 100, "test": 200}
    assert store.features.shape == (500, 6) and len(store.features) == 500


def test_features(store, arrays) -> None:
    want = arrays["features"]
    ids = np.array([5, 499, 5, 0])
    assert np.array_equal(store.features[ids], want[ids])
    assert np.array_equal(store.features[10:20], want[10:20])
    assert np.array_equal(store.features[7], want[7])
    assert np.array_equal(store.features[want[:, 0] > 0], want[want[:, 0] > 0])
    assert store.features[[]].shape == (0, 6)
    with pytest.raises(IndexError, match="-1"):
        store.features[[-1]]
    with pytest.raises(ValueError, match="integers"):
        store.features[[0.5]]


def test_neighbors(store, arrays) -> None:
    indptr, found = store.neighbors([3, 4, 3])
    for i, v in enumerate([3, 4, 3]):
        want = sorted(arrays["edges"][0][arrays["edges"][1] == v].tolist())
        assert found[indptr[i] : indptr[i + 1]].tolist() == want
    indptr, _ = store.neighbors(range(500), fanout=2)
    assert np.diff(indptr).max() == 2 and len(indptr) == 501
    indptr, found = store.neighbors([])
    assert indptr.tolist() == [0] and len(found) == 0


def test_names_and_query(store) -> None:
    assert store.external_ids([3, 0]) == ["3", "0"]
    assert store.node_ids([3, "0"]).tolist() == [3, 0]
    with pytest.raises(ValueError, match="900"):
        store.node_ids([900])
    table = store.query("NEIGHBORS 3").dict()
    assert table["neighbor"] == [str(v) for v in store.neighbors([3])[1]]
    for params in ({"x": 3, "at": [1.5]}, {"x": np.int64(3), "at": np.array([1.5])}):
        table = store.query("MATCH (a) WHERE a.id = $x RETURN a.id, $at[0]", params).dict()
        assert table == {"a.id": [3], "$at[0]": [1.5]}
    with pytest.raises(ValueError, match=r"no value for \$y"):
        store.query("RETURN $y", {"x": 1})
    with pytest.raises(ValueError, match="NONSENSE"):
        store.query("NONSENSE")
    assert store.stats()["rss_bytes"] > 0


def test_notes_of_statements_are_warnings(tmp_path) -> None:
    with pytest.warns(UserWarning):
        path = gdbgraph.ingest(tmp_path / "a.gdb", edge_index=[range(40), range(1, 41)],
                               options=["--edge-split", "random=50/25/25"])
    with gdbgraph.open(path) as store:
        with pytest.warns(UserWarning, match="train edges; 20 of val and test are apart") as caught:
            store.query("DEGREES IN TOP 1")
        assert caught[0].filename == __file__ and len(caught) == 1


def test_not_a_store(tmp_path) -> None:
    with pytest.raises(FileNotFoundError, match="no store"):
        gdbgraph.open(tmp_path)
    (tmp_path / "catalog").mkdir()
    with pytest.raises(gdbgraph.GdbError, match="gdb serve has ended"):
        gdbgraph.open(tmp_path)


def test_not_the_debugger(tmp_path, monkeypatch) -> None:
    debugger = tmp_path / "gdb"
    debugger.write_text("#!/bin/sh\necho GNU gdb\n")
    debugger.chmod(0o755)
    assert not _binary.is_ours(str(debugger))
    monkeypatch.setenv("GDB_BINARY", str(debugger))
    with pytest.raises(gdbgraph.GdbError, match="GDB_BINARY"):
        _binary.find()


def test_sizes() -> None:
    assert parse_size("2GiB") == 2 << 30 and parse_size("1.5 MB") == 1_500_000
    assert parse_size(None) == 0 and parse_size(7) == 7
    with pytest.raises(ValueError, match="much"):
        parse_size("much")


def test_damage(store_path, tmp_path) -> None:
    import shutil

    broken = tmp_path / "broken.gdb"
    shutil.copytree(store_path, broken)
    (rows,) = (broken / "features").glob("*.rows")
    data = bytearray(rows.read_bytes())
    data[-5000] ^= 0xFF
    rows.write_bytes(data)
    with gdbgraph.open(broken) as store, pytest.raises(gdbgraph.DamagedError, match="checksum"):
        for _ in store.loader([3], 10, output="numpy"):
            pass


def test_answers(store_path) -> None:
    """Ids of the user where numbers are wanted, and a store that was closed."""
    store = gdbgraph.open(store_path)
    with pytest.raises(ValueError, match="node_ids"):
        store.neighbors(["1", "2"])
    with pytest.raises(ValueError, match="node_ids"):
        _ = store.features[np.array(["1"], object)]
    store.close()
    with pytest.raises(ValueError, match="was closed"):
        store.neighbors([1])
