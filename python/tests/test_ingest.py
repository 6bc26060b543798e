"""Stores of graphs in memory, and stores as PyG's interfaces."""

from __future__ import annotations

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
    with pytest.raises(gdbgraph.GdbError, match="out of range"):
        gdbgraph.ingest(tmp_path / "a.gdb", edge_index=[[0], [9]], x=np.zeros((3, 2)))
    assert not list(tmp_path.iterdir())


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
        assert [store.classes[k] for k in store.labels_of(ids)] == ["x", "x"]
        _, found = store.neighbors(ids)
        assert store.external_ids(found) == ["bob", "bob"]


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
