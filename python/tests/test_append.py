"""Edges and nodes that are added to stores."""

from __future__ import annotations

import subprocess

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


@pytest.fixture
def shop(tmp_path):
    """A store of users and items, with labels, splits, weights and times."""
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    users = pd.DataFrame({"id": [1, 2, 3], "age": [20.0, 30.0, 40.0], "kind": ["x", "y", "x"],
                          "split": ["train", "val", "train"]})
    items = pd.DataFrame({"id": ["a", "b"], "name": ["Pen", "Lamp"]})
    buys = pd.DataFrame({"user_id": [1, 2], "item_id": ["a", "b"], "price": [1.5, 2.0],
                         "n": [1, 2]})
    return gdbgraph.ingest(tmp_path / "shop.gdb", edges={("user", "buys", "item"): buys},
                           nodes={"user": users, "item": items}, label_column="user.kind",
                           weight_column="price")


BOUGHT = ("MATCH (u:user)-[r:buys]->(i:item) RETURN u.id AS u, u.age AS age, i.id AS i, "
          "r.weight AS w, r.n AS n ORDER BY u.id, i.id")


def test_types(shop) -> None:
    """New users, other values and edges come by frames, the relation named in either way."""
    import pandas as pd

    with gdbgraph.open(shop) as store:
        done = store.append(
            nodes={"user": pd.DataFrame({"id": [7, 2], "age": [70.0, 31.0], "kind": ["y", "x"],
                                         "split": ["val", None]})},
            edges={("user", "buys", "item"): pd.DataFrame(
                {"user_id": [7], "item_id": ["a"], "price": [9.5], "n": [5]})},
            weight_column="price")
        assert done == {"snapshot": 1, "nodes": 1, "edges": 1, "replaced": 1}
    done = gdbgraph.append(shop, {"user:buys:item": pd.DataFrame(
        {"source": [3], "target": ["b"], "price": [4.0]})})
    assert done == {"snapshot": 2, "nodes": 0, "edges": 1, "replaced": 0}
    with gdbgraph.open(shop) as store:
        rows = store.query(BOUGHT).dict()
        assert rows == {"u": [1, 2, 3, 7], "age": [20, 31, 40, 70], "i": ["a", "b", "b", "a"],
                        "w": [1.5, 2, 4, 9.5], "n": [1, 2, None, 5]}
        assert store.splits == {"train": 2, "val": 1}
        assert [store.classes[k] for k in store.labels_of(np.arange(4))] == ["x", "x", "x", "y"]


def test_types_refused(shop) -> None:
    """What a store with types cannot get is refused by its name, and nothing is added."""
    import pandas as pd

    one = pd.DataFrame({"user_id": [1], "item_id": ["a"]})
    new = pd.DataFrame({"id": [9], "age": [1.0]})
    for edges, nodes, more, why in (
            ({("user", "buys", "item"): one, "user:buys:item": one}, None, {}, "a relation twice"),
            ({"buys": one}, None, {}, "the key 'buys'"),
            (one, {"user": new}, {}, "edges are not: give edges="),
            ({"user:buys:item": one}, new, {}, "give nodes={type: frame}"),
            (None, {"user": new}, {"label_column": "kind"}, "label_column beside frames by type"),
            (None, {"user": new}, {"splits": {"val": [9]}}, "splits beside frames by type"),
            ({"user:buys:item": one}, None, {"type_column": "n"}, "type_column beside"),
            ({"user:buys:item": one}, None, {"weight_column": "cost"}, "no edges have the column"),
            (None, {"user": new}, {"id_column": "key"}, "no nodes have the column"),
            ({}, {}, {}, "no frame"),
    ):
        with pytest.raises(ValueError, match=why):
            gdbgraph.append(shop, edges, nodes, **more)
    for edges, nodes, why in (
            ({"user:sells:item": one}, None, "user:sells:item: the store has no such relation"),
            (None, {"shop": new}, "no nodes of type shop"),
            (None, {"user": new.assign(size=1)}, "nodes 'user'.* has a column size"),
            ({"user:buys:item": one.assign(colour="red")}, None, "a column colour"),
            ({"user:buys:item": one.assign(user_id=8)}, None, "edges .*user:8|user:8"),
    ):
        with pytest.raises(gdbgraph.GdbError, match=why):
            gdbgraph.append(shop, edges, nodes)
    with gdbgraph.open(shop) as store:
        assert store.num_edges == 2 and store.num_nodes == 5


def test_edge_splits(gdb, arrays, tmp_path) -> None:
    """A store whose edges are in splits takes edges and deletions, which the link loader has."""
    np.savetxt(tmp_path / "e.csv", arrays["edges"].T, "%d", ",", header="src,dst", comments="")
    path = str(tmp_path / "l.gdb")
    subprocess.run([gdb, "ingest", "--edges", str(tmp_path / "e.csv"), "--out", path, "--quiet",
                    "--edge-split", "random=80/10/10"], check=True)
    with gdbgraph.open(path) as store:
        was = dict(store.edge_splits)
    new = np.stack([np.arange(500, 600), np.arange(100)])
    assert gdbgraph.append(path, new)["nodes"] == 100
    with gdbgraph.open(path) as store:
        now = store.edge_splits
        assert sum(now.values()) == sum(was.values()) + 100
        assert all(now[name] > was[name] for name in was)
        seen = sum(len(batch.input_id) for batch in store.link_loader([3], 64, "val"))
        assert seen == now["val"]
    (tmp_path / "gone").write_text("0\n500\n")
    subprocess.run([gdb, "append", path, "--delete-nodes", str(tmp_path / "gone"), "--quiet"],
                   check=True)
    with gdbgraph.open(path) as store:
        assert store.num_nodes == 598 and store.num_deleted == 0
        assert store.node_ids([1, 501]).tolist() == [0, 499]
