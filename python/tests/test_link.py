"""Batches of edges."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import gdbgraph

from .test_batches import check, lists


@pytest.fixture(scope="module")
def typed_path(arrays, tmp_path_factory) -> str:
    """A store whose edges have types and splits."""
    types = np.arange(arrays["edges"].shape[1]) % 3
    return gdbgraph.ingest(tmp_path_factory.mktemp("link") / "l.gdb", edge_index=arrays["edges"],
                           edge_type=types, x=arrays["features"], y=arrays["labels"],
                           options=["--edge-split", "random=80/10/10"])


@pytest.fixture
def typed(typed_path):
    with gdbgraph.open(typed_path, threads=1) as store:
        yield store


def plain(batch) -> list[list[int]]:
    return [batch.n_id.tolist(), batch.edge_index.tolist(), batch.edge_label_index.tolist()]


def test_split(typed, arrays) -> None:
    known = set(zip(*arrays["edges"].tolist(), (np.arange(4000) % 3).tolist()))
    assert sum(typed.edge_splits.values()) == 4000
    loader, seen = typed.link_loader([3, 2], 300, "val", output="numpy"), []
    assert len(loader) == -(-typed.edge_splits["val"] // 300)
    for batch in loader:
        count = len(batch.input_id)
        assert batch.edge_label.tolist() == [1.0] * count + [0.0] * count
        assert np.array_equal(batch.x, arrays["features"][batch.n_id])
        ends = batch.n_id[batch.edge_label_index]
        assert set(batch.n_id[: batch.batch_size]) == set(ends.ravel())
        edges = list(zip(*ends.tolist(), batch.edge_label_type.tolist()))
        assert set(edges[:count]) <= known
        assert [(a, t) for a, _, t in edges[:count]] == [(a, t) for a, _, t in edges[count:]]
        assert np.array_equal(batch.y, arrays["labels"][batch.n_id[: batch.batch_size]])
        seen += batch.input_id.tolist()
    assert sorted(seen) == list(range(typed.edge_splits["val"]))


def test_negatives_of_a_type(gdb, tmp_path) -> None:
    (tmp_path / "user.csv").write_text("id\n" + "".join(f"u{i}\n" for i in range(90)))
    (tmp_path / "item.csv").write_text("id\n" + "".join(f"i{i}\n" for i in range(10)))
    rows = [f"u{i % 90},i{i * 7 % 10}\n" for i in range(500)]
    (tmp_path / "buys.csv").write_text("user,item\n" + "".join(rows))
    subprocess.run([gdb, "ingest", "--nodes", "user=user.csv", "--nodes", "item=item.csv",
                    "--edges", "user:buys:item=buys.csv", "--reverse", "--edge-split",
                    "random=80/10/10", "--out", "shop.gdb", "--quiet"], check=True, cwd=tmp_path)
    with gdbgraph.open(tmp_path / "shop.gdb", threads=1) as shop:
        for batch in shop.link_loader([3], 64, neg_sampling_ratio=2, output="numpy"):
            ends = shop._types_of(batch.n_id)[batch.edge_label_index]
            assert (ends[0] != ends[1]).all() and (batch.edge_label == 0).sum() > 1


def test_given_edges(store, arrays) -> None:
    neighbors = lists(arrays)
    edges = arrays["edges"][:, :100]
    loader = store.link_loader([4, 3], 30, edge_label_index=edges, neg_sampling_ratio=0.5,
                               output="numpy")
    sizes = []
    for batch in loader:
        sizes.append(len(batch.edge_label))
        check(batch, arrays, [4, 3], neighbors)
        count = len(batch.input_id)
        assert np.array_equal(batch.n_id[batch.edge_label_index[:, :count]],
                              edges[:, batch.input_id])
        assert batch.edge_label_type is None
    assert sizes == [45, 45, 45, 15]
    with pytest.raises(ValueError, match="no split 'train' of the edges"):
        store.link_loader([3])
    with pytest.raises(ValueError, match="not for edges"):
        store.link_loader([3], edge_label_index=edges, output="dgl")


def test_same_seed_ranks_and_state(typed) -> None:
    def loader(**options):
        return typed.link_loader([3, 2], 400, output="numpy", **options)

    one = loader()
    first, second = ([plain(b) for b in one] for _ in range(2))
    count = -(-typed.edge_splits["train"] // 400)
    assert first != second and len(first) == len(second) == count
    again = loader()
    for i, batch in enumerate(again):
        if i == 2:
            break
    state = again.state_dict()
    assert [plain(b) for b in again] == second  # a batch that was asked for ahead is dropped
    again.load_state_dict(state)
    assert [plain(b) for b in again] == first[3:]
    ranks = [loader(rank=r, world_size=3) for r in range(3)]
    assert [len(r) for r in ranks] == [count // 3] * 3
    assert [[plain(b) for b in r] for r in ranks] == [
        first[r : count // 3 * 3 : 3] for r in range(3)]
    with pytest.raises(ValueError, match="negatives"):
        loader(neg_sampling_ratio=2).load_state_dict(state)


def test_trains(typed) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    from torch_geometric.nn import SAGEConv

    torch.manual_seed(1)
    conv = SAGEConv(6, 8)
    optimizer = torch.optim.Adam(conv.parameters(), lr=0.05)
    losses = []
    for _ in range(3):
        for data in typed.link_loader([4], 800):
            data.validate()
            source, target = conv(data.x, data.edge_index)[data.edge_label_index]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                (source * target).sum(-1), data.edge_label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < losses[0]
