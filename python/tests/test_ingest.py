"""Stores of graphs in memory, and stores as PyG's interfaces."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path

import numpy as np
import pytest

import gdbgraph


def test_arrays(arrays, tmp_path) -> None:
    train = np.zeros(500, bool)
    train[:200] = True
    path = gdbgraph.ingest(tmp_path / "a.gdb", edge_index=arrays["edges"], x=arrays["features"],
                           y=arrays["labels"], splits={"train": train, "test": range(300, 500)})
    assert [p.name for p in tmp_path.iterdir()] == ["a.gdb"]
    with gdbgraph.open(path) as store:
        assert (store.num_nodes, store.num_edges) == (500, 4000)
        assert store.splits == {"train": 200, "test": 200}
        ids = np.array([7, 3, 7])
        assert np.array_equal(store.features[ids], arrays["features"][ids])
        assert np.array_equal(store.labels_of(ids), arrays["labels"][ids])
        assert store.labels_of([]).shape == (0,)


def test_types(arrays, tmp_path) -> None:
    types = np.arange(4000) % 3
    path = gdbgraph.ingest(tmp_path / "t.gdb", edge_index=arrays["edges"], edge_type=types,
                           x=arrays["features"], splits={"train": range(50)})
    known = set(zip(*arrays["edges"].tolist(), types.tolist(), strict=True))
    with gdbgraph.open(path) as store:
        assert store.edge_types == ["0", "1", "2"]
        for batch in store.loader([5, 3], 20, output="numpy"):
            ends = batch.n_id[batch.edge_index]
            assert len(batch.edge_type) == ends.shape[1]
            assert set(zip(*ends.tolist(), batch.edge_type.tolist(), strict=True)) <= known


def test_mistakes(arrays, tmp_path) -> None:
    with pytest.raises(ValueError, match="give one of"):
        gdbgraph.ingest(tmp_path / "a.gdb")
    with pytest.raises(ValueError, match=r"\(2, E\) integers"):
        gdbgraph.ingest(tmp_path / "a.gdb", edge_index=[[0.5], [1.0]])
    with pytest.raises(ValueError, match="split 'valid'"):
        gdbgraph.ingest(tmp_path / "a.gdb", edge_index=[[0], [1]], splits={"valid": [0]})
    with pytest.raises(ValueError, match="node 9 is out of range"):
        gdbgraph.ingest(tmp_path / "a.gdb", edge_index=[[0], [9]], x=np.zeros((3, 2)))
    for argument, value in (("nodes", []), ("id_column", "id"), ("time_column", "t")):
        with pytest.raises(ValueError, match=f"{argument} beside edge_index"):
            gdbgraph.ingest(tmp_path / "a.gdb", edge_index=[[0], [1]], **{argument: value})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("given, said", [
    ({"edge_weight": [1, 2]}, r"edge_weight of shape \(2,\) for 3 edges"),
    ({"edge_weight": [1, np.nan, 2]}, r"edge_weight\[1\] is nan"),
    ({"edge_time": np.array(["2020-01-01", "NaT", "2020-01-01"], "M8[s]")}, r"edge_time\[1\]"),
    ({"edge_type": [0, -1, 1]}, "edge_type .* -1"),
    ({"x": np.ones((4, 2)), "y": [1, 2, 3]}, "y has 3 rows for 4 nodes"),
    ({"x": np.ones(4)}, r"x of shape \(4,\)"),
    ({"num_nodes": 3}, "node 3 is out of range"),
    ({"y": ["a", "b", "a", "b"]}, "y of type <U1"),
    ({"splits": {"train": [True, False]}}, "node 3 .* which the mask of train says"),
    ({"x": np.ones((4, 1)), "splits": {"train": [True, False]}}, "train has 2 rows for 4 nodes"),
    ({"x": np.ones((4, 1)), "splits": {"train": [1], "val": [1]}}, "node 1 is in the splits"),
    ({"x": np.ones((4, 1)), "splits": {"train": np.array([0, 1, 1, 0], np.uint8)}}, "mask of bools"),
    ({"splits": {"train": [4]}}, "split train: node 4"),
])
def test_arrays_that_are_wrong(given, said, tmp_path) -> None:
    with pytest.raises(ValueError, match=said):
        gdbgraph.ingest(tmp_path / "a.gdb", edge_index=[[0, 1, 3], [1, 3, 2]], **given)
    assert not list(tmp_path.iterdir())


def test_edges_of_arrays(tmp_path) -> None:
    """Two edges are two, and have what was given with them; nodes may be beyond the last edge."""
    path = gdbgraph.ingest(tmp_path / "a.gdb", edge_index=[[0, 2], [1, 3]], num_nodes=6,
                           edge_weight=[0.5, 2], edge_time=np.array(["1970-01-02", "2020-01-01"],
                                                                    "M8[ns]"))
    with gdbgraph.open(path) as store:
        assert (store.num_nodes, store.num_edges) == (6, 2)
        indptr, found = store.neighbors(range(6))
        assert np.diff(indptr).tolist() == [0, 1, 0, 1, 0, 0] and found.tolist() == [0, 2]
        table = store.query("NEIGHBORS #1,#3").dict()
        assert table["weight"] == [0.5, 2] and len(set(table["time"])) == 2


def test_notes_are_warnings(tmp_path) -> None:
    with pytest.warns(UserWarning, match="33 % of edges .* undirected=True") as caught:
        gdbgraph.ingest(tmp_path / "a.gdb", edge_index=[[0, 1, 1, 0], [1, 0, 2, 3]])
    assert caught[0].filename == __file__ and len(caught) == 1
    with pytest.raises(gdbgraph.GdbError) as error:  # of arguments, not of files and flags
        gdbgraph.ingest(tmp_path / "b.gdb", edge_index=[[0, 1], [1, 0]], x=[[1.0], [np.nan]])
    assert str(error.value) == ('ingest: x row 1: feature 0 is NaN; mend it, or allow it with '
                                'options=["--allow-nan"]')


def test_errors_of_a_program_of_another_name(gdb, tmp_path, monkeypatch) -> None:
    (tmp_path / "graphs").symlink_to(Path(gdb).resolve())
    monkeypatch.setenv("GDB_BINARY", str(tmp_path / "graphs"))
    with pytest.raises(gdbgraph.GdbError, match="^ingest: x row 1: feature 0 is NaN"):
        gdbgraph.ingest(tmp_path / "b.gdb", edge_index=[[0, 1], [1, 0]], x=[[1.0], [np.nan]])


def test_weights_that_float32_changes(tmp_path) -> None:
    weights = np.array([1, 16777217, 3])
    with pytest.warns(UserWarning, match="changes 1 of 3; .* row 1: 16777217 -> 16777216"):
        gdbgraph.ingest(tmp_path / "a.gdb", edge_index=[[0, 1, 2], [1, 2, 0]],
                        edge_weight=weights)


def test_frames(tmp_path) -> None:
    pandas = pytest.importorskip("pandas")
    edges = pandas.DataFrame({"from": ["ann", "bob", "bob"], "to": ["bob", "cy", "ann"]})
    nodes = pandas.DataFrame({"id": ["ann", "bob", "cy"], "age": [30.0, 40.0, 50.0],
                              "kind": ["x", "y", "x"], "split": ["train", "val", "test"]})
    path = gdbgraph.ingest(tmp_path / "f.gdb", edges=edges, nodes=nodes, label_column="kind")
    with gdbgraph.open(path) as store:
        ids = store.node_ids(["cy", "ann"])
        assert store.external_ids(ids) == ["cy", "ann"]
        assert store.features[ids].ravel().tolist() == [50.0, 30.0]
        assert store.feature_names == ["age"]
        assert [store.classes[k] for k in store.labels_of(ids)] == ["x", "x"]
        _, found = store.neighbors(ids)
        assert store.external_ids(found) == ["bob", "bob"]


def test_columns_of_edges(tmp_path) -> None:
    """Other columns of edges are stored with the types that they have, and appended to; what no
    store has is named."""
    pandas = pytest.importorskip("pandas")
    days = [datetime.date(2024, 1, 2), None]
    edges = pandas.DataFrame({
        "src": ["a", "b"], "dst": ["b", "a"], "note": ["two\nlines, \"x\"", None],
        "amount": [1.5, None], "count": pandas.array([None, 1 << 60], dtype="Int64"),
        "ok": [True, None], "sure": [True, False], "day": days, "a,b=c": ["05", "06"],
        "at": pandas.to_datetime(["2024-01-02 03:04:05.678", None]),
        "zone": pandas.to_datetime(["2024-01-02 03:04:05+02:00"] * 2),
        "price": [decimal.Decimal("0.25"), None], "kind": pandas.Categorical(["x", "y"]),
        "mixed": [1, "q"], "lists": [[1], [2]], "took": pandas.to_timedelta([1, 2])})
    with pytest.warns(UserWarning, match="not stored: edges.lists, edges.took"):
        path = gdbgraph.ingest(tmp_path / "f.gdb", edges=edges)
    del edges["lists"], edges["took"]
    edges["src"] = ["c", "d"]
    gdbgraph.append(path, edges)
    edges["other"] = 1
    with pytest.raises(gdbgraph.GdbError, match="have a column other"):
        gdbgraph.append(path, edges)
    want = {"note": ["two\nlines, \"x\"", None], "amount": [1.5, None], "count": [None, 1 << 60],
            "ok": [True, None], "sure": [True, False], "day": ["2024-01-02", None],
            "`a,b=c`": ["05", "06"], "at": ["2024-01-02T03:04:05.678Z", None],
            "zone": ["2024-01-02T01:04:05Z"] * 2, "price": [0.25, None], "kind": ["x", "y"],
            "mixed": ["1", "q"]}
    asked = ", ".join(f"toString(r.{name}) AS {name}" if name in ("day", "at", "zone") else
                      f"r.{name} AS {name}" for name in want)
    with gdbgraph.open(path) as store:
        for first in ("a", "c"):
            found = store.query(f"MATCH (a)-[r]->() WHERE a.id >= '{first}' RETURN {asked} "
                                "ORDER BY a.id LIMIT 2").dict()
            for name, values in want.items():
                assert list(found[name.strip("`")]) == values, name


def test_frames_of_pandas(tmp_path) -> None:
    """A label, a split and masks are no features; ids that pandas made numbers are integers."""
    pandas = pytest.importorskip("pandas")
    edges = pandas.DataFrame({"w": [0.5, 1, 2], "target": [2, 3, 1], "source": [1.0, 2, 3],
                              "when": pandas.to_datetime(["2020-01-01"] * 3), "note": list("abc")})
    nodes = pandas.DataFrame({"id": [1.0, 2, 3], "y": [1.0, None, 0], "age": [7, 8, 9],
                              "ok": [True, False, True], "name": ["#1", "a,b", 'q"'],
                              "train_mask": [True, False, False], "test_mask": [0, 1, 0]})
    with pytest.warns(UserWarning) as caught:
        path = gdbgraph.ingest(tmp_path / "f.gdb", edges=edges, nodes=nodes, time_column="when")
    assert "not stored: nodes.name" in {str(w.message) for w in caught}
    with gdbgraph.open(path) as store:
        ids = store.node_ids([1, 2, 3])
        assert store.num_nodes == 3 and store.splits == {"train": 1, "test": 1}
        assert store.features[ids].tolist() == [[7, 1], [8, 0], [9, 1]]
        assert store.feature_names == ["age", "ok"]
        assert store.classes == ["0", "1"] and store.labels_of(ids).tolist() == [1, -1, 0]
        table = store.query("NEIGHBORS 2").dict()
        assert table["neighbor"] == ["1"] and table["weight"] == [0.5] and "time" in table
    names = pandas.DataFrame({"a": ["#x", "x", 1], "b": [" x", "x,y", "p\nq"]})
    with pytest.warns(UserWarning), gdbgraph.open(
            gdbgraph.ingest(tmp_path / "n.gdb", edges=names)) as store:
        assert store.external_ids(range(6)) == ["#x", " x", "x", "x,y", "1", "p\nq"]


def test_feature_names_of_frames(tmp_path) -> None:
    """The features go by the names of the frame's columns, whatever signs these have."""
    pandas = pytest.importorskip("pandas")
    names = ["Age (years)", "a,b", 'say "hi"', '"', "x:y", "Avg. €", "*", " blanks ", "2", "a_b"]
    edges = pandas.DataFrame({"u": ["a", "b"], "v": ["b", "a"]})
    nodes = pandas.DataFrame({"id": ["a", "b"]} | {n: [i, i + 50] for i, n in enumerate(names)})
    with gdbgraph.open(gdbgraph.ingest(tmp_path / "f.gdb", edges=edges, nodes=nodes)) as store:
        assert store.feature_names == names
        assert store.features[store.node_ids(["b"])].tolist() == [[i + 50.0 for i in range(10)]]


@pytest.mark.parametrize("edges, nodes, said", [
    ({"u": [1, 2], "v": [2, 1], "weight": [1, None]}, None, "'weight' of edges is empty in row 1"),
    ({"u": [1, None], "v": [2, 1]}, None, "'u' of edges is empty in row 1"),
    ({"u": [1, 2.5], "v": [2, 1]}, None, "'u' of edges has 2.5"),
    ({"u": [1, 2], "v": [2, 1]}, {"id": [1, 2], "y": [0, 1], "label": [1, 0]}, "label_column"),
    ({"u": [1, 2], "v": [2, 1]}, {"key": [1, 2]}, "id_column"),
    ({"u": [1, 2], "v": [2, 1]}, {"id": [1, 2], "train_mask": [0, 3]}, "train_mask"),
    ({"u": [[1], [2]], "v": [2, 1]}, None, "lists"),
])
def test_frames_that_are_wrong(edges, nodes, said, tmp_path) -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=said):
        gdbgraph.ingest(tmp_path / "f.gdb", edges=pandas.DataFrame(edges),
                        nodes=None if nodes is None else pandas.DataFrame(nodes))
    with pytest.raises(ValueError, match="edges is a dict"):
        gdbgraph.ingest(tmp_path / "f.gdb", edges={"buys": pandas.DataFrame(edges)})
    assert not list(tmp_path.iterdir())


def test_rows_of_frames_are_named(tmp_path) -> None:
    pandas = pytest.importorskip("pandas")
    edges = pandas.DataFrame({"u": [1, 2], "v": [2, 1], "weight": ["1.5", "much"]})
    with pytest.raises(gdbgraph.GdbError, match='^ingest: edges row 1: column "weight", "much"'):
        gdbgraph.ingest(tmp_path / "f.gdb", edges=edges)


def test_attributes_of_data(tmp_path) -> None:
    """Each attribute of a Data is stored, or refused, or a warning names it."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    from torch_geometric.data import Data, HeteroData

    ends = torch.tensor([[0, 1, 1, 3], [1, 0, 2, 2]])
    x = torch.arange(8.0).reshape(4, 2)
    adjacency = torch.sparse_coo_tensor(ends.flip(0), torch.tensor([1.0, 2, 3, 4]), (4, 4))
    stored = {
        "dense": Data(edge_index=ends, x=x.bfloat16(), edge_weight=torch.tensor([1.0, 2, 3, 4])),
        "sparse": Data(edge_index=ends, x=x.to_sparse(), edge_weight=torch.tensor([1, 2, 3, 4])),
        "adj_t": Data(adj_t=adjacency, x=x),
    }
    for name, data in stored.items():
        data.train_mask = torch.tensor([1, 0, 1, 0], dtype=torch.uint8)
        with gdbgraph.open(gdbgraph.ingest(tmp_path / f"{name}.gdb", data)) as store:
            assert store.features[:].tolist() == x.tolist() and store.splits == {"train": 2}
            assert store.query("NEIGHBORS #2").dict()["weight"] == [3, 4]
    with pytest.warns(UserWarning, match="not stored: pos, batch"):
        path = gdbgraph.ingest(tmp_path / "w.gdb", Data(edge_index=ends, pos=torch.ones(5, 3),
                                                        batch=torch.zeros(5), time=torch.arange(4)))
    with gdbgraph.open(path) as store:
        assert store.num_nodes == 5 and "time" in store.query("NEIGHBORS #2").dict()
    for data, said in (
        (Data(edge_index=ends, edge_attr=torch.ones(4, 3)), "edge_attr of shape"),
        (Data(edge_index=ends, num_nodes=6, time=torch.arange(6)), "time has 6 values"),
        (Data(edge_index=ends, x=x, train_mask=torch.ones(3, dtype=torch.bool)), "train has 3 rows"),
        (Data(edge_index=ends, x=x, train_mask=torch.ones(4, 2, dtype=torch.bool)), "one split"),
        (Data(edge_index=ends, x=x, y=torch.tensor([1])), "y has 1 rows for 4"),
        (HeteroData(), "no edges"), ({"edge_index": ends}, "data is a dict"),
        (Data(x=x), "no edge_index"),
    ):
        with pytest.raises(ValueError, match=said):
            gdbgraph.ingest(tmp_path / "r.gdb", data)


def test_data_and_pyg_stores(arrays, tmp_path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    from torch_geometric.data import Data

    from gdbgraph import pyg

    mask = torch.zeros(500, dtype=torch.bool)
    mask[:100] = True
    data = Data(x=torch.from_numpy(arrays["features"]), y=torch.from_numpy(arrays["labels"]),
                edge_index=torch.from_numpy(arrays["edges"]), train_mask=mask)
    path = gdbgraph.ingest(tmp_path / "d.gdb", data)
    with gdbgraph.open(path) as store:
        assert store.splits == {"train": 100}
        features, graph = pyg.stores(store)
        ids = torch.tensor([5, 2])
        assert torch.equal(features.get_tensor(None, "x", index=ids), data.x[ids])
        assert torch.equal(features.get_tensor(None, "y", index=None), data.y)
        rows, starts, _ = graph.csc()
        for node in (0, 17, 499):
            want = sorted(arrays["edges"][0][arrays["edges"][1] == node].tolist())
            assert rows[starts[node] : starts[node + 1]].tolist() == want
        _neighbor_loader(data, (features, graph))


def _neighbor_loader(data, pair) -> None:
    from torch_geometric import typing
    from torch_geometric.loader import NeighborLoader

    if not (typing.WITH_PYG_LIB or typing.WITH_TORCH_SPARSE):
        return  # PyG cannot sample then
    loader = NeighborLoader(data=pair, num_neighbors=[4, 4], input_nodes=data.train_mask,
                            batch_size=32)
    seen = 0
    for batch in loader:
        assert (batch.x == data.x[batch.n_id]).all() and (batch.y == data.y[batch.n_id]).all()
        seen += batch.batch_size
    assert seen == 100
