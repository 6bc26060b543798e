"""Stores of graphs with types: a HeteroData of PyG, and DataFrames by type."""

from __future__ import annotations

import numpy as np
import pytest

import gdbgraph


@pytest.fixture
def hetero():
    """Papers, authors and institutes; y and masks of papers; weights, times, features of edges."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("pyarrow")
    HeteroData = pytest.importorskip("torch_geometric.data").HeteroData
    torch.manual_seed(3)
    data = HeteroData()
    data["paper"].x, data["paper"].y = torch.randn(50, 8), torch.randint(0, 3, (50,))
    data["paper"].train_mask = torch.arange(50) < 30
    data["paper"].test_mask = torch.arange(50) >= 40
    data["author"].x, data["author"].time = torch.randn(20, 5), torch.arange(20) * 10
    data["author"].name = [f"a{i}" for i in range(20)]
    data["inst"].num_nodes = 7
    writes, cites = data["author", "writes", "paper"], data["paper", "cites", "paper"]
    writes.edge_index = torch.stack([torch.randint(0, 20, (100,)), torch.randint(0, 50, (100,))])
    writes.edge_weight, writes.edge_attr = torch.rand(100), torch.rand(100, 2)
    cites.edge_index, cites.time = torch.randint(0, 50, (2, 90)), torch.randint(0, 50, (90,))
    data["inst", "has", "author"].edge_index = torch.arange(7).repeat(2, 1)
    return data


def test_hetero(hetero, tmp_path) -> None:
    """Types, rows of each width, labels, splits, weights, times and columns are those given."""
    with gdbgraph.open(gdbgraph.ingest(tmp_path / "h.gdb", hetero), threads=1) as store:
        assert store.node_types == ["paper", "author", "inst"]
        assert sorted(store.metadata()[1]) == sorted(hetero.edge_types)
        assert store.node_dims == {"paper": 8, "author": 5, "inst": 0}
        assert store.splits == {"train": 30, "test": 10}
        first = {"paper": 0, "author": 50, "inst": 70}
        x = store.features[np.arange(77)]
        assert np.array_equal(x[:50], hetero["paper"].x)
        assert np.array_equal(x[50:70, :5], hetero["author"].x) and not x[50:70, 5:].any()
        classes = np.array(store.classes, int)[store.labels_of(np.arange(50))]
        assert np.array_equal(classes, hetero["paper"].y)
        found = store.query(
            "MATCH (a:author)-[w:writes]->(p:paper) RETURN a.id AS a, p.id AS p, w.weight AS w, "
            "w.edge_attr_0 AS f, w.edge_attr_1 AS g, a.time AS t, a.name AS n").dict()
        writes = hetero["author", "writes", "paper"]
        want = [(int(a), int(p), round(w, 6), round(f, 6), round(g, 6), int(a) * 10, f"a{a}")
                for a, p, w, (f, g) in zip(*writes.edge_index.tolist(),
                                           writes.edge_weight.tolist(), writes.edge_attr.tolist(),
                                           strict=True)]
        got = [(a, p, round(w, 6), round(f, 6), round(g, 6), t, n)
               for a, p, w, f, g, t, n in zip(*found.values(), strict=True)]
        assert sorted(got) == sorted(want)
        times = store.query("MATCH (:paper)-[c:cites]->(:paper) RETURN c.time AS t").dict()["t"]
        assert sorted(times) == sorted(hetero["paper", "cites", "paper"].time.tolist())
        for batch in store.loader([5, 5], 10, output="hetero", normalize="none"):
            assert batch["paper"].x.shape[1] == 8 and batch["author"].x.shape[1] == 5
            assert "x" not in batch["inst"]
            for kind in ("paper", "author"):
                rows = batch[kind].n_id - first[kind]
                assert np.array_equal(batch[kind].x, hetero[kind].x[rows])


def test_hetero_forms(hetero, tmp_path) -> None:
    """A sparse x is stored as a dense one is; what is no column is named."""
    torch = pytest.importorskip("torch")
    hetero["paper"].x = (hetero["paper"].x > 0).float()
    whole = gdbgraph.ingest(tmp_path / "a.gdb", hetero)
    hetero["paper"].x = hetero["paper"].x.to_sparse()
    cites = hetero["paper", "cites", "paper"]
    source, target = cites.edge_index.unique(dim=1)
    del cites.time
    cites.adj_t = torch.sparse_coo_tensor(torch.stack([target, source]), torch.ones(len(source)),
                                          (50, 50)).to_sparse_csr()
    hetero["paper"].odd = torch.zeros(2, 2)
    with pytest.raises(ValueError, match="adj_t has values"):
        del cites.edge_index
        gdbgraph.ingest(tmp_path / "b.gdb", hetero)
    cites.adj_t, cites.edge_index = None, torch.stack([source, target])
    with pytest.warns(UserWarning, match=r"not stored: data\['paper'\].odd"):
        other = gdbgraph.ingest(tmp_path / "b.gdb", hetero)
    with gdbgraph.open(whole, threads=1) as a, gdbgraph.open(other, threads=1) as b:
        assert np.array_equal(a.features[np.arange(77)], b.features[np.arange(77)])
        assert b.num_edges == 100 + len(source) + 7


@pytest.mark.parametrize("change, said", [
    (lambda d: d["author"].update({"y": np.zeros(20, int)}), 'label_column="paper.y"'),
    (lambda d: d["paper"].update({"y": np.zeros((50, 2))}), r"y of shape \(50, 2\)"),
    (lambda d: d["paper"].update({"x": np.zeros((49, 2))}), "for 49 nodes"),
    (lambda d: d["paper"].update({"test_mask": np.ones(50, bool)}), "train and test"),
    (lambda d: d["paper", "cites", "paper"].update({"edge_index": np.array([[0], [50]])}),
     "node 50 is out of range: 'paper' has 50 nodes"),
    (lambda d: d["paper", "cites", "paper"].update({"edge_weight": np.ones(3)}),
     "edge_weight of shape"),
    (lambda d: d["paper", "by", "none"].update({"edge_index": np.array([[0], [0]])}),
     "no nodes of type 'none'"),
    (lambda d: d["paper", "writes", "paper"].update({"edge_index": np.array([[0], [0]])}),
     "have edge_weight, and the others none"),
    (lambda d: d["a b"].update({"num_nodes": 3}), "without :"),
])
def test_hetero_mistakes(hetero, tmp_path, change, said) -> None:
    change(hetero)
    with pytest.raises(ValueError, match=said):
        gdbgraph.ingest(tmp_path / "h.gdb", hetero)
    assert not list(tmp_path.iterdir())


def test_label_of_several(hetero, tmp_path) -> None:
    """Of several y one is the label, the others are columns."""
    hetero["author"].y = np.arange(20) % 2
    path = gdbgraph.ingest(tmp_path / "h.gdb", hetero, label_column="author.y")
    with gdbgraph.open(path, threads=1) as store:
        assert store.classes == ["0", "1"]
        assert store.query("MATCH (p:paper) RETURN sum(p.y) AS s").dict()["s"] == [
            int(hetero["paper"].y.sum())]
    with pytest.raises(ValueError, match="want one of paper.y, author.y"):
        gdbgraph.ingest(tmp_path / "i.gdb", hetero, label_column="inst.y")


@pytest.fixture
def frames():
    """Users, items and what they buy."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    users = pandas.DataFrame({"user_id": ["ann", "bob", "cy"], "age": [3, 4, 5],
                              "churned": ["no", "yes", "no"], "split": ["train", "val", None]})
    items = pandas.DataFrame({"id": [7, 9], "price": [1.5, 2.5], "title": ["x", "y"]})
    buys = pandas.DataFrame({"user_id": ["ann", "bob", "ann"], "item": [7, 9, 9], "at": [1, 2, 3],
                             "stars": [1.0, None, 3.0]})
    return {"nodes": {"user": users, "item": items}, "edges": {("user", "buys", "item"): buys}}


def test_frames(frames, tmp_path) -> None:
    path = gdbgraph.ingest(tmp_path / "f.gdb", **frames, label_column="churned", time_column="at",
                           options=["--reverse"])
    with gdbgraph.open(path, threads=1) as store:
        assert store.metadata() == (["user", "item"], [("user", "buys", "item"),
                                                       ("item", "rev_buys", "user")])
        assert (store.splits, sorted(store.classes)) == ({"train": 1, "val": 1}, ["no", "yes"])
        assert store.node_dims == {"user": 1, "item": 1}
        assert store.features[np.arange(5)].ravel().tolist() == [3, 4, 5, 1.5, 2.5]
        found = store.query("MATCH (u:user)-[r:buys]->(i:item) RETURN u.id AS u, i.id AS i, "
                            "i.title AS t, r.stars AS s, r.time AS at ORDER BY u, i").dict()
        assert list(zip(*found.values(), strict=True)) == [
            ("ann", 7, "x", 1, 1), ("ann", 9, "y", 3, 3), ("bob", 9, "y", None, 2)]


@pytest.mark.parametrize("change, said", [
    (lambda f: f.update(nodes=f["nodes"]["user"]), "give nodes={type: frame}"),
    (lambda f: f["edges"].update(buys=[]), "with the key 'buys'"),
    (lambda f: f.update(label_column="sort"), "0 types of nodes have it"),
    (lambda f: f["nodes"].update(item=f["nodes"]["item"].rename(columns={"id": "sku"})),
     "no column id or item_id, it has sku, price, title"),
    (lambda f: f.update(source_column="who"), "no column 'who'"),
    (lambda f: f.update(type_column="kind"), "their keys are the types"),
    (lambda f: f.update(splits={"train": [0]}), "leave splits out"),
    (lambda f: f["nodes"].update(tag=[1]), "nodes 'tag': want a DataFrame, not a list"),
])
def test_frames_mistakes(frames, tmp_path, change, said) -> None:
    change(frames)
    with pytest.raises(ValueError, match=said):
        gdbgraph.ingest(tmp_path / "f.gdb", **frames)
    assert not list(tmp_path.iterdir())


def test_key_without_row(frames, tmp_path) -> None:
    """What gdb says names the argument and not a file, and nothing is left behind."""
    frames["nodes"]["item"] = frames["nodes"]["item"][:1]
    with pytest.raises(gdbgraph.GdbError) as error:
        gdbgraph.ingest(tmp_path / "f.gdb", **frames)
    assert "edges ('user', 'buys', 'item')" in str(error.value) and "9" in str(error.value)
    assert ".parquet" not in str(error.value) and not list(tmp_path.iterdir())


def test_dicts_that_are_no_frames(tmp_path) -> None:
    ends = {"u": [1], "v": [2]}
    for given in ({"edges": ends}, {"edges": {"buys": ends}, "nodes": {"user": ends}}):
        with pytest.raises(ValueError, match="edges is a dict with the key"):
            gdbgraph.ingest(tmp_path / "a.gdb", **given)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="nodes is a dict"):
        gdbgraph.ingest(tmp_path / "a.gdb", edges=pandas.DataFrame(ends), nodes={"user": ends})
    assert not list(tmp_path.iterdir())
