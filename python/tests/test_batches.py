"""Batches: their meaning, and how long they are there."""

from __future__ import annotations

import numpy as np
import pytest

import gdbgraph
from gdbgraph.batch import Arenas


def lists(arrays: dict[str, np.ndarray]) -> dict[int, list[int]]:
    """The in-neighbors of each node."""
    found: dict[int, list[int]] = {v: [] for v in range(len(arrays["features"]))}
    for source, target in arrays["edges"].T:
        found[int(target)].append(int(source))
    return found


def check(batch: gdbgraph.Batch, arrays: dict[str, np.ndarray], fanout: list[int],
          neighbors: dict[int, list[int]]) -> None:
    """Holds a batch against the graph."""
    n_id, edges = batch.n_id, batch.edge_index
    assert n_id.dtype == edges.dtype == batch.indptr.dtype == np.int64
    assert len(set(n_id.tolist())) == len(n_id) == sum(batch.num_sampled_nodes)
    assert np.array_equal(batch.x, arrays["features"][n_id])
    assert np.array_equal(batch.y, arrays["labels"][n_id[: batch.batch_size]])
    assert batch.num_sampled_nodes[0] == batch.batch_size
    assert edges.shape == (2, sum(batch.num_sampled_edges))
    assert np.array_equal(np.repeat(np.arange(len(batch.indptr) - 1), np.diff(batch.indptr)),
                          edges[1])
    assert edges[1].max() < len(batch.indptr) - 1
    start = 0
    for k, most in enumerate(fanout):
        indptr, indices = batch.hop(k)
        for i in range(batch.num_sampled_nodes[k]):
            drawn = sorted(n_id[indices[indptr[i] : indptr[i + 1]]].tolist())
            whole = neighbors[int(n_id[start + i])]
            assert len(drawn) == (len(whole) if most < 0 else min(most, len(whole)))
            left = list(whole)
            for v in drawn:
                left.remove(v)  # without replacement
        start += batch.num_sampled_nodes[k]


@pytest.mark.parametrize("fanout", [[4, 3], [-1], [3, 2, 2]])
def test_batches_are_of_the_graph(store, arrays, fanout) -> None:
    neighbors, seen = lists(arrays), []
    loader = store.loader(fanout, 64, output="numpy")
    assert len(loader) == 4 and loader.num_seeds == 200
    for i, batch in enumerate(loader):
        assert (batch.epoch, batch.index) == (0, i)
        check(batch, arrays, fanout, neighbors)
        seen += batch.n_id[: batch.batch_size].tolist()
    assert sorted(seen) == list(range(200))


def test_same_seed_same_batches(store) -> None:
    def epochs(seed):
        loader = store.loader([3, 3], 64, output="numpy", seed=seed)
        return [[(b.n_id.tolist(), b.edge_index.tolist()) for b in loader] for _ in range(2)]

    assert epochs(1) == epochs(1)
    assert epochs(1) != epochs(2)
    first, second = epochs(1)
    assert first != second


def test_splits_and_input_nodes(store) -> None:
    def seeds(**options):
        loader = store.loader([2], 50, output="numpy", **options)
        return sorted(v for b in loader for v in b.n_id[: b.batch_size].tolist())

    assert seeds(split="val") == list(range(200, 300))
    assert seeds(input_nodes=[3, 499, 7]) == [3, 7, 499]
    mask = np.zeros(500, bool)
    mask[[5, 6]] = True
    assert seeds(input_nodes=mask) == [5, 6]
    with pytest.raises(ValueError, match="empty"):
        seeds(input_nodes=[])
    with pytest.raises(IndexError, match="500"):
        seeds(input_nodes=[500])
    with pytest.raises(ValueError, match='split "all"'):
        seeds(split="all")


def test_batches_last_as_long_as_they_are_kept(store) -> None:
    loader = store.loader([4, 4], 10, output="numpy")
    kept = list(loader)
    copies = [b.clone() for b in kept]
    edges = kept[0].edge_index[0]  # a view keeps its batch
    kept = kept[1:]
    for batch in loader:
        del batch
    assert np.array_equal(edges, copies[0].edge_index[0])
    for a, b in zip(kept, copies[1:], strict=True):
        assert np.array_equal(a.x, b.x) and np.array_equal(a.n_id, b.n_id)
    loader.close()
    assert np.array_equal(kept[-1].x, copies[-1].x)


def test_memory_is_used_again(store) -> None:
    loader = store.loader([4, 4], 10, output="numpy")
    places = set()
    for _ in range(5):
        for batch in loader:
            places.add(batch.x.ctypes.data)
    assert len(places) <= 8


@pytest.mark.parametrize("output", ["numpy", "torch", "pyg"])
def test_arrays_lie_where_the_server_wrote_them(store, output: str) -> None:
    """Nothing of a batch is copied: its arrays lie in memory that the server has lent."""
    for package in {"numpy": [], "torch": ["torch"], "pyg": ["torch", "torch_geometric"]}[output]:
        pytest.importorskip(package)
    for batch in store.loader([4, 4], 64, output=output):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            lent = [[int(end, 16) for end in line.split()[0].split("-")] for line in maps
                    if "/memfd:gdb" in line]
        for name in ("x", "n_id", "edge_index", "y"):
            array = batch[name] if output == "pyg" else getattr(batch, name)
            array = array if output == "numpy" else array.numpy()
            first = array.ctypes.data
            assert any(a <= first and first + array.nbytes <= b for a, b in lent), name


def test_close_ends_loaders(store_path) -> None:
    store = gdbgraph.open(store_path)
    process = store._server.process
    batches = iter(store.loader([3], 10, output="numpy"))
    batch = next(batches)
    store.close()
    assert process.poll() == 0 and batch.x.shape[1] == 6
    with pytest.raises(RuntimeError):
        next(batches)


def test_leaving_an_epoch(store) -> None:
    loader = store.loader([3], 10, output="numpy")
    for _ in range(5):
        for batch in loader:
            break
    assert batch.epoch == 4 and len(list(loader)) == 20
    first, second = iter(loader), iter(loader)
    next(second)
    with pytest.raises(RuntimeError, match="another iteration"):
        next(first)


def test_state(store) -> None:
    loader = store.loader([3, 3], 30, output="numpy")
    want = [[b.n_id.tolist() for b in loader] for _ in range(3)]
    other = store.loader([3, 3], 30, output="numpy")
    list(other)
    for i, _ in enumerate(other):
        if i == 2:
            break
    state = other.state_dict()
    assert (state["epoch"], state["batch"]) == (1, 3)
    again = store.loader([3, 3], 30, output="numpy")
    again.load_state_dict(state)
    assert [b.n_id.tolist() for b in again] == want[1][3:]
    assert [b.n_id.tolist() for b in again] == want[2]
    again.set_epoch(0)
    assert [b.n_id.tolist() for b in again] == want[0]
    with pytest.raises(ValueError, match="batch 30"):
        store.loader([3, 3], 20, output="numpy").load_state_dict(state)


def test_ranks_share_the_batches(store) -> None:
    want = [b.n_id.tolist() for b in store.loader([3], 16, output="numpy")]
    ranks = [store.loader([3], 16, output="numpy", rank=r, world_size=2) for r in range(2)]
    assert [len(r) for r in ranks] == [6, 6] and len(want) == 13
    both = [iter(r) for r in ranks]
    got = [next(both[i % 2]).n_id.tolist() for i in range(12)]
    assert got == want[:12]
    assert [list(b) for b in both] == [[], []]


def test_two_servers_share_a_store(store_path) -> None:
    """Machines that see one store divide its seeds."""
    with gdbgraph.open(store_path) as one, gdbgraph.open(store_path) as other:
        ids = np.arange(200)
        loaders = [s.loader([3, 3], 16, input_nodes=ids[m::2], output="numpy")
                   for m, s in enumerate((one, other))]
        seen = [v for pair in zip(*loaders) for b in pair for v in b.n_id[: b.batch_size].tolist()]
        assert one._server.process.pid != other._server.process.pid
        assert sorted(seen) == ids.tolist()


def test_loaders_share_one_memory(store) -> None:
    loader = store.loader([3], 16, memory="200MiB", output="numpy")
    assert "memory 1" in loader.plan  # what lookups leave
    store.loader([3], 16, split="val", output="numpy")
    with pytest.raises(ValueError, match="share memory of 200"):
        store.loader([3], 16, memory="300MiB", output="numpy")


def test_torch(store, arrays) -> None:
    torch = pytest.importorskip("torch")
    for batch in store.loader([3, 3], 64, output="torch"):
        assert batch.x.dtype == torch.float32 and batch.edge_index.dtype == torch.int64
        assert np.array_equal(batch.x.numpy(), arrays["features"][batch.n_id.numpy()])
    assert torch.equal(store.features[batch.n_id], batch.x)
    kept = batch.clone()
    assert kept.x.data_ptr() != batch.x.data_ptr() and torch.equal(kept.x, batch.x)


def test_pyg(store) -> None:
    pytest.importorskip("torch_geometric")
    torch = pytest.importorskip("torch")
    from torch_geometric.nn import SAGEConv

    conv = SAGEConv(6, 4)
    for data in store.loader([3, 3], 64):
        data.validate()
        out = conv(data.x, data.edge_index)[: data.batch_size]
        assert torch.nn.functional.cross_entropy(out, data.y).isfinite()


def test_interrupt_while_memory_is_given_back() -> None:
    """Errors in what ends an array are only printed: Ctrl-C is raised by the next request."""
    def interrupted(done: list[int]) -> bool:
        raise KeyboardInterrupt

    arenas = Arenas(interrupted)
    arenas._over(1)
    with pytest.raises(KeyboardInterrupt):
        arenas.check_interrupt()
    arenas.check_interrupt()
    assert arenas.take_done() == []


def test_one_iteration_at_a_time(store) -> None:
    loader = store.loader([4], 50, output="numpy")
    first, second = iter(loader), iter(loader)
    assert len(list(second)) == 4
    with pytest.raises(RuntimeError, match="another loader"):
        next(first)
    assert len(list(loader)) == 4
    assert repr(loader) == ("Loader([4], batch_size=50, split='train', num_seeds=200, batches=4, "
                            "normalize='none')")
    assert "input_nodes" in repr(store.loader([4], 50, input_nodes=[1, 2], output="numpy"))


def test_arguments_of_pyg(store) -> None:
    """They are taken where a loader does so anyway; else an error or a warning answers."""
    with pytest.warns(UserWarning, match="num_workers=4, pin_memory=True: this changes nothing"):
        loader = store.loader(num_neighbors=[4, 3], batch_size=30, shuffle=True, replace=False,
                              num_workers=4, persistent_workers=False, pin_memory=True,
                              directed=True, subgraph_type="directed", output="numpy",
                              transform=lambda b: b.n_id[: b.batch_size].tolist(), drop_last=True)
    for _ in range(2):
        seeds = list(loader)
        assert [len(s) for s in seeds] == [30] * 6 and len(loader) == 6
    for name, value in (("shuffle", False), ("replace", True), ("directed", False),
                        ("subgraph_type", "induced"), ("disjoint", True), ("time_attr", "time"),
                        ("num_neighbors", {("a", "b", "c"): [4]}), ("sampler", [1])):
        fanout = None if name == "num_neighbors" else [4]
        with pytest.raises(ValueError, match=name):
            store.loader(fanout, 30, **{name: value})
    with pytest.raises(ValueError, match="fanout"):
        store.loader(batch_size=30)
    with pytest.raises(TypeError, match="nonsense"):
        store.loader([4], nonsense=1)


def test_features_are_scaled_as_by_train(gdb, arrays, tmp_path) -> None:
    """Counts are divided by their sum, uneven columns have mean 0; the first loader decides."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(0.4, (500, 6)).astype(np.float32)
    uneven = arrays["features"] * np.float32([1, 1000, 1, 1, 0.01, 1]) + 7
    for x, name, want in (
        (counts, "row", counts / np.maximum(counts.sum(1, keepdims=True), 1)),
        (uneven, "zscore", (uneven - uneven.mean(0, float)) / uneven.std(0, float)),
        (arrays["features"], "none", arrays["features"]),
    ):
        path = gdbgraph.ingest(tmp_path / f"{name}.gdb", edge_index=arrays["edges"], x=x,
                               y=arrays["labels"], splits={"train": range(200)})
        with gdbgraph.open(path, threads=1) as store:
            loader = store.loader([4], 64, output="numpy")
            other = store.loader([4], 64, input_nodes=[3, 5], normalize="auto", output="numpy")
            for batch in [*loader, *other]:
                assert np.allclose(batch.x, want[batch.n_id], atol=1e-3)
            assert loader.normalize == other.normalize == name
            assert np.array_equal(store.features[:], x)  # as they are stored
            if name != "none":
                with pytest.raises(ValueError, match="share its features"):
                    store.loader([4], 64, normalize="none")
        with gdbgraph.open(path, threads=1) as store:
            for batch in store.loader([4], 64, normalize="none", output="numpy"):
                assert np.array_equal(batch.x, x[batch.n_id])
            with pytest.raises(ValueError, match="normalize"):
                store.loader([4], 64, normalize="much")
