"""Batches of a store whose nodes were deleted in part."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gdbgraph
from gdbgraph import _wire
from gdbgraph._present import Present

GONE = [0, 1, 2, 77, *range(200, 260), 498, 499]


@pytest.fixture(scope="module", params=["levels", "compacted"])
def path(request, gdb, arrays, tmp_path_factory) -> Path:
    """A store whose nodes GONE are deleted."""
    base = tmp_path_factory.mktemp("deleted")
    made = gdbgraph.ingest(base / "d.gdb", edge_index=arrays["edges"], x=arrays["features"])
    for part in (GONE[:40], GONE[40:]):
        (base / "gone").write_text("".join(f"{v}\n" for v in part))
        subprocess.run([gdb, "append", made, "--delete-nodes", str(base / "gone"), "--quiet"],
                       check=True)
    if request.param == "compacted":
        subprocess.run([gdb, "compact", made, "--quiet"], check=True)
    return Path(made)


@pytest.fixture
def deleted(path) -> Iterator[gdbgraph.Store]:
    with gdbgraph.open(path, threads=1) as store:
        yield store


@pytest.fixture
def there() -> np.ndarray:
    return np.setdiff1d(np.arange(500), GONE)


def test_places_among_present() -> None:
    rng = np.random.default_rng(1)
    for count in (1, 2, 9, 100):
        for gone in range(count):
            deleted = np.sort(rng.choice(count, gone, replace=False))
            present, want = Present(count, deleted), np.setdiff1d(np.arange(count), deleted)
            assert present.count == len(want) and np.array_equal(present.all(), want)
            assert np.array_equal(present.at(np.arange(count - gone, dtype=np.uint32)), want)


def test_nodes_of_a_type() -> None:
    firsts, gone = [0, 10, 10, 30], np.array([0, 1, 2, 9, 10, 29, 39])
    present, rng = Present(40, gone, firsts), np.random.default_rng(3)
    for node, low, high in ((3, 0, 10), (8, 0, 10), (11, 10, 30), (28, 10, 30), (30, 30, 40)):
        counts = np.bincount(present.like(np.full(9000, node), rng), minlength=40)
        want = np.setdiff1d(np.arange(low, high), gone)
        assert np.array_equal(np.flatnonzero(counts), want)
        assert abs(counts[want] - 9000 / len(want)).max() < 200


def test_nodes(deleted, there) -> None:
    assert deleted.num_nodes == 500 and deleted.num_deleted == len(GONE)
    assert np.array_equal(deleted.nodes(), there)
    for first, count in ((0, 0), (3, 5), (63, 3), (66, 0)):
        found = deleted._arrays(_wire.DELETED, {"first": first, "count": count})["n_id"]
        assert found.tolist() == GONE[first : first + count]
    for first, count in ((0, 67), (67, 0), (66, 1), (0, 2**63)):
        with pytest.raises(ValueError, match="there are 66"):
            deleted._arrays(_wire.DELETED, {"first": first, "count": count})


def test_no_nodes_are_deleted(store) -> None:
    assert store.num_deleted == 0 and np.array_equal(store.nodes(), np.arange(500))


def test_negatives(deleted, there, arrays) -> None:
    edges = arrays["edges"][:, ~np.isin(arrays["edges"], GONE).any(axis=0)]
    loader = deleted.link_loader([3], 500, edge_label_index=edges, neg_sampling_ratio=2,
                                 output="numpy")
    drawn = []
    for batch in loader:
        ends = batch.n_id[batch.edge_label_index]
        assert not np.isin(batch.n_id, GONE).any()
        assert np.array_equal(ends[:, batch.edge_label == 1], edges[:, batch.input_id])
        drawn.append(ends[1, batch.edge_label == 0])
    counts = np.bincount(np.concatenate(drawn), minlength=500)
    assert np.array_equal(np.flatnonzero(counts), there)
    mean = counts[there].mean()  # of about 15 draws a node
    assert ((counts[there] - mean) ** 2 / mean).sum() < 550  # chi-squared of 433 degrees


def test_deleted_seeds_are_refused(deleted) -> None:
    with pytest.raises(ValueError, match="node 77 was deleted"):
        deleted.loader([3], input_nodes=[5, 77])
    with pytest.raises(ValueError, match="node 0 was deleted"):
        deleted.link_loader([3], edge_label_index=[[5, 0], [6, 7]])
    assert len(deleted.loader([3], 100, input_nodes=deleted.nodes())) == 5
    assert deleted.features[:].shape == (500, 6)  # rows of all numbers are still read


def test_loaders_of_pyg(deleted, there) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    from gdbgraph import NeighborLoader

    loader = NeighborLoader(deleted, [3], batch_size=50)
    seeds = torch.cat([b.n_id[: b.batch_size] for b in loader])
    assert seeds.tolist() == there.tolist()
    loader.close()
    with pytest.raises(ValueError, match="node 77 was deleted"):
        NeighborLoader(deleted, [3], torch.tensor([5, 77]), batch_size=2)


@pytest.mark.parametrize("mode", ["binary", "triplet"])
@pytest.mark.parametrize("cache", [None, "belady"])
def test_links_of_pyg(path, there, mode, cache) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    from gdbgraph import LinkNeighborLoader

    torch.manual_seed(2)
    edges = torch.from_numpy(there[:400].reshape(2, 200))
    with gdbgraph.open(path, threads=1) as store:
        loader = LinkNeighborLoader(store, [3], edges, batch_size=100, cache=cache,
                                    neg_sampling={"mode": mode, "amount": 20})
        drawn = []
        for batch in loader:
            if mode == "binary":
                drawn.append(batch.n_id[batch.edge_label_index[:, 100:]].reshape(-1))
            else:
                drawn.append(batch.n_id[batch.dst_neg_index].reshape(-1))
        assert torch.cat(drawn).unique().tolist() == there.tolist()
        weight = torch.zeros(500)
        weight[9] = 1
        loader.close()
        if cache is not None:
            return
        weighted = LinkNeighborLoader(
            store, [3], edges, batch_size=100, neg_sampling=by_weight(mode, weight))
        batch = next(iter(weighted))
        where = batch.edge_label_index[1, 100:] if mode == "binary" else batch.dst_neg_index
        assert (batch.n_id[where] == 9).all()
        weighted.close()


def by_weight(mode: str, weight):
    """A negative for each edge, by weights of nodes."""
    from torch_geometric.sampler import NegativeSampling

    name = "dst_weight" if hasattr(NegativeSampling, "dst_weight") else "weight"
    return NegativeSampling(mode, 1, **{name: weight})
