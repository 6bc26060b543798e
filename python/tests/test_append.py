"""Edges and nodes that are added to stores."""

from __future__ import annotations

import numpy as np
import pytest

import gdbgraph


def test_arrays(arrays, tmp_path) -> None:
    path = gdbgraph.ingest(tmp_path / "a.gdb", edge_index=arrays["edges"])
    with gdbgraph.open(path) as store:
        done = store.append(np.array([[0, 1, 2], [3, 4, 5]]))
        assert done == {"snapshot": 1, "nodes": 0, "edges": 3, "replaced": 0}
        assert store.num_edges == 4000
    with gdbgraph.open(path) as store:
        assert store.num_edges == 4003


def test_frames(tmp_path) -> None:
    pd = pytest.importorskip("pandas")
    people = pd.DataFrame({"name": ["ann", "bob", "cyd"], "age": [1.0, 2.0, 3.0],
                           "topic": ["x", "y", "x"], "split": ["train", "val", "train"]})
    path = gdbgraph.ingest(tmp_path / "f.gdb", nodes=people, id_column="name", label_column="topic",
                           edges=pd.DataFrame({"src": ["ann", "bob"], "dst": ["bob", "cyd"]}))
    more = pd.DataFrame({"name": ["bob", "dan"], "age": [7.0, 8.0], "topic": ["x", "y"],
                         "split": ["train", "val"]})
    done = gdbgraph.append(path, pd.DataFrame({"src": ["dan"], "dst": ["ann"]}), more,
                           id_column="name", label_column="topic")
    assert done == {"snapshot": 1, "nodes": 1, "edges": 1, "replaced": 1}
    done = gdbgraph.append(path, nodes=more[:1], id_column="name", label_column="topic")
    assert done == {"snapshot": 2, "nodes": 0, "edges": 0, "replaced": 1}
    with gdbgraph.open(path) as store:
        ids = store.node_ids(["ann", "bob", "cyd", "dan"])
        assert store.features[ids].ravel().tolist() == [1, 7, 3, 8]
        assert [store.classes[k] for k in store.labels_of(ids)] == ["x", "x", "x", "y"]
        assert store.splits == {"train": 3, "val": 1}


def test_mistakes(arrays, tmp_path) -> None:
    path = gdbgraph.ingest(tmp_path / "a.gdb", edge_index=arrays["edges"])
    with pytest.raises(ValueError, match="give edges, nodes"):
        gdbgraph.append(path)
    with pytest.raises(ValueError, match=r"\(2, E\) integers"):
        gdbgraph.append(path, np.zeros((3, 2)))
    with pytest.raises(FileNotFoundError, match="is no store"):
        gdbgraph.append(tmp_path / "b.gdb", np.array([[0], [1]]))
    with pytest.raises(gdbgraph.GdbError, match="the next new node is 500"):
        gdbgraph.append(path, np.array([[0], [900]]))
