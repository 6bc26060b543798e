"""The loaders with PyG's arguments."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import gdbgraph

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric", minversion="2.5")
from torch_geometric.data import Data, HeteroData  # noqa: E402

from gdbgraph import _put  # noqa: E402
from gdbgraph._neighbors import Drawing, Graph, Lists, _floyd, sample_by_budget  # noqa: E402
from gdbgraph.loaders import HGTLoader, LinkNeighborLoader, NeighborLoader  # noqa: E402

NODES, EDGES = 300, 2400


@pytest.fixture(autouse=True)
def nothing_put(nothing_left):
    """What was put goes with its loaders, which refer to themselves."""
    yield
    _put._puts.clear()
    gc.collect()


@pytest.fixture
def data():
    """A Data with attributes that say which row they are of."""
    torch.manual_seed(3)
    made = Data(x=torch.randn(NODES, 5), edge_index=torch.randint(0, NODES, (2, EDGES)),
                edge_attr=torch.arange(EDGES), y=torch.arange(NODES), name="a")
    made.edge_index[:, 7] = made.edge_index[:, 5]  # one that is there twice
    return made


def check(data, batch, seeds) -> None:
    """A batch has what its nodes and edges have."""
    assert batch.n_id[: batch.batch_size].tolist() == seeds.tolist()
    assert torch.equal(batch.x, data.x[batch.n_id]) and torch.equal(batch.y, batch.n_id)
    assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])
    assert torch.equal(batch.edge_attr, batch.e_id) and batch.name == "a"
    assert sum(batch.num_sampled_nodes) == batch.num_nodes == len(batch.n_id)
    assert sum(batch.num_sampled_edges) == batch.num_edges
    assert batch.num_sampled_nodes[0] == batch.batch_size and "num_nodes" not in batch


def edges(batch) -> list[tuple[int, int]]:
    return sorted(zip(*batch.n_id[batch.edge_index].tolist()))


def test_batches_are_pygs(data) -> None:
    mask = torch.arange(NODES) % 3 == 0
    loader = NeighborLoader(data, [4, 3], mask, batch_size=30)
    ids = mask.nonzero().view(-1)
    assert loader._server is not None and len(loader) == 4 and str(loader) == "NeighborLoader()"
    for i, batch in enumerate(loader):
        seeds = ids[30 * i : 30 * i + 30]
        check(data, batch, seeds)
        assert batch.input_id.tolist() == seeds.tolist()
        assert int(torch.bincount(batch.edge_index[1]).max()) <= 4
        assert len(set(batch.e_id.tolist())) == batch.num_edges
    given = NeighborLoader(data, [4], ids.flip(0), batch_size=30, drop_last=True, shuffle=True)
    seen = torch.cat([b.input_id for b in given])
    assert len(given) == 3 and len(set(seen.tolist())) == 90
    assert not torch.equal(seen, torch.arange(90))
    check(data, given([1, 0]), ids.flip(0)[[1, 0]])


def short(data, **options):
    """A loader that prepares epochs in a memory that does not hold all features."""
    for mib in range(72, 200, 2):
        try:
            loader = NeighborLoader(data, [4, 3], cache="belady", memory=f"{mib}MiB", threads=1,
                                    **options)
        except gdbgraph.GdbError as error:
            assert "memory" in str(error) and "raise --memory" in str(error)
            continue
        assert "cache belady" in loader._server.around.plan
        return loader
    raise AssertionError("no memory is enough")


def test_prepared_epochs() -> None:
    torch.manual_seed(3)
    nodes = 3000
    data = Data(x=torch.randn(nodes, 2048), edge_index=torch.randint(0, nodes, (2, 15000)),
                edge_attr=torch.arange(15000), y=torch.arange(nodes), name="a")
    ids = torch.arange(0, nodes, 50)
    loader = short(data, input_nodes=ids, batch_size=16)
    for _ in range(2):
        batches = list(loader)
        assert [b.batch_size for b in batches] == [16, 16, 16, 12]
        for i, batch in enumerate(batches):
            check(data, batch, ids[16 * i : 16 * i + 16])
    for batch in loader:  # the rest is not wanted
        check(data, batch, ids[:16])
        break
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        drawn.append([b.e_id.tolist() for b in loader])
    assert drawn[0] == drawn[1] != drawn[2]
    with pytest.raises(ValueError, match="iterate over the loader"):
        loader([1, 0])
    loader.close()
    loader = short(data, input_nodes=ids, batch_size=16, shuffle=True, drop_last=True)
    orders = [torch.cat([b.input_id for b in loader]).tolist() for _ in range(2)]
    assert orders[0] != orders[1] and len(set(orders[0])) == len(orders[0]) == 48


@pytest.mark.parametrize("negatives", [None, "binary", ("triplet", 2)])
def test_prepared_epochs_have_the_same_bits(data, negatives) -> None:
    """Batches that are prepared are those that are asked for one by one, of nodes and of edges."""
    edges = torch.randint(0, 100, (2, 50))

    def batches(kind: type, **options) -> list:
        torch.manual_seed(5)
        loader = kind(data, [3, 2], batch_size=16, shuffle=True, **options)
        made = [{k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in b.to_dict().items()}
                for _ in range(2) for b in loader]
        loader.close()
        return made

    for kind, options in ((NeighborLoader, {"input_nodes": torch.arange(70)}),
                          (LinkNeighborLoader, {"edge_label_index": edges,
                                                "neg_sampling": negatives})):
        plain, prepared = batches(kind, **options), batches(kind, **options, cache="belady")
        assert len(plain) == len(prepared) == (10 if kind is NeighborLoader else 8)
        for a, b in zip(plain, prepared, strict=True):
            assert a.keys() == b.keys()
            for name, value in a.items():
                same = torch.equal if isinstance(value, torch.Tensor) else lambda x, y: x == y
                assert same(value, b[name]), name


def test_prepared_links(arrow, shop) -> None:
    """Edges of a relation of a HeteroData, of which negatives may be any items."""
    kind = ("user", "buys", "item")
    drawn = []
    for cache in (None, "belady"):
        torch.manual_seed(7)
        loader = LinkNeighborLoader(shop, [3, 3], kind, batch_size=50, neg_sampling="binary",
                                    cache=cache)
        assert loader._server.around.prepares == (cache == "belady")
        drawn.append([(b[kind].edge_label_index.tolist(), b["item"].n_id.tolist(),
                       b[kind].edge_index.tolist()) for b in loader])
        loader.close()
    assert drawn[0] == drawn[1] and len(drawn[0]) > 1
    with pytest.raises(ValueError, match="cache"):
        LinkNeighborLoader(shop, [3], kind, cache="belady", replace=True)


def test_epochs_that_cannot_be_prepared(data) -> None:
    def epoch(batches):
        loader = NeighborLoader(data, [4], torch.arange(20), batch_size=1, cache="belady",
                                batch_sampler=batches)
        return list(loader)

    with pytest.raises(ValueError, match="batch 0 has 2 seeds.*batch_size, which is 1"):
        epoch([[1, 2], [3]])
    with pytest.raises(ValueError, match="has a seed twice"):
        list(NeighborLoader(data, [4], torch.tensor([0, 0, 1, 2]), batch_size=3, cache="belady",
                            sampler=[0, 1, 2]))
    store = _put.put(data, None, None).store
    one = NeighborLoader(store, [4], torch.arange(20), batch_size=5, cache="belady")
    other = NeighborLoader(store, [4], torch.arange(20), batch_size=5)  # has its server
    assert len(list(one)) == len(list(other)) == 4 and one._server.around.prepares
    with pytest.raises(ValueError, match="cache"):
        NeighborLoader(data, [4], torch.arange(20), cache="belady", replace=True)


def test_draws_follow_the_seed_of_torch(data) -> None:
    drawn = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        loader = NeighborLoader(data, [2, 2], batch_size=50, shuffle=True)
        drawn.append([(b.n_id.tolist(), b.e_id.tolist()) for b in loader])
    assert drawn[0] == drawn[1] != drawn[2]
    again = [(b.n_id.tolist(), b.e_id.tolist()) for b in loader]
    assert again != drawn[2] and len(again) == 6


@pytest.mark.parametrize("kind", ["directional", "bidirectional"])
def test_server_draws_as_this_process_does(data, kind) -> None:
    """With whole lists both have the same nodes and edges in each hop."""
    seeds = torch.tensor([5, 17, 200, 17])
    served = NeighborLoader(data, [-1, -1], seeds, batch_size=4, subgraph_type=kind)
    plain = NeighborLoader(data, [-1, -1], seeds, batch_size=4, subgraph_type=kind,
                           transform_sampler_output=lambda out: out)
    assert served._server is not None and plain._server is None
    a, b = next(iter(served)), next(iter(plain))
    assert a.n_id[:4].tolist() == b.n_id[:4].tolist() == [5, 17, 200, 17]
    assert sorted(a.n_id.tolist()) == sorted(b.n_id.tolist()) and edges(a) == edges(b)
    if kind == "directional":
        assert a.num_sampled_nodes == b.num_sampled_nodes
        assert a.num_sampled_edges == b.num_sampled_edges
    assert torch.equal(a.x, data.x[a.n_id]) and torch.equal(b.x, data.x[b.n_id])
    if kind == "directional":
        assert torch.equal(a.n_id[a.edge_index], data.edge_index[:, a.e_id])
        assert sorted(a.e_id.tolist()) == sorted(b.e_id.tolist())
        hop = a.edge_index[1, : a.num_sampled_edges[0]]
        assert (hop == 1).sum() == (hop == 3).sum() > 0  # the seed that is there twice


def test_batches_may_be_kept(data) -> None:
    loader = NeighborLoader(data, [3], batch_size=10)
    kept = [(b, b.n_id.tolist()) for b in loader]
    assert len(kept) == 30
    for i, (batch, ids) in enumerate(kept):
        assert batch.n_id.tolist() == ids
        check(data, batch, torch.arange(10 * i, 10 * i + 10))
    for a, b in zip(loader, loader):  # two iterations at a time
        assert a.input_id.tolist() == b.input_id.tolist()
    begun = iter(loader)
    next(begun)
    del begun  # what was asked for ahead is dropped
    assert len(list(loader)) == 30


def test_arguments_that_change_nothing(data) -> None:
    with pytest.warns(UserWarning, match="num_workers=2, persistent_workers=True: no workers"):
        loader = NeighborLoader(data, [3], batch_size=100, num_workers=2, persistent_workers=True,
                                transform=lambda b: b.num_nodes)
    assert loader.num_workers == 0 and all(isinstance(n, int) for n in loader)
    with pytest.raises(ValueError, match="root: what is asked for is drawn in this process"):
        NeighborLoader(data, [3], disjoint=True, root="somewhere")
    with pytest.raises(ValueError, match="input_time gives seeds a time"):
        NeighborLoader(data, [3], input_time=torch.arange(NODES))


def test_a_data_is_put_once(data, tmp_path) -> None:
    one, two = (NeighborLoader(data, [3], batch_size=10) for _ in range(2))
    assert one._server.around.store is two._server.around.store
    data.x += 1
    three = NeighborLoader(data, [3], batch_size=10)
    assert three._server.around.store is not one._server.around.store
    check(data, three([4]), torch.tensor([4]))
    root = tmp_path / "kept"
    for _ in range(2):
        check(data, NeighborLoader(data, [3], root=root)([4]), torch.tensor([4]))
        written = (root / "graph.gdb" / "catalog").stat().st_mtime_ns
        _put._puts.clear()
    assert written == (root / "graph.gdb" / "catalog").stat().st_mtime_ns
    data.x -= 1
    with pytest.raises(ValueError, match="store of another graph"):
        NeighborLoader(data, [3], root=root)


def test_the_store_goes_with_the_process(tmp_path) -> None:
    program = """
import torch
from torch_geometric.data import Data
from gdbgraph import NeighborLoader
loader = NeighborLoader(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3), [2],
                        batch_size=3)
print(next(iter(loader)).n_id.tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.stdout == "[0, 1, 2]\n", done.stderr
    assert "gdbgraph: the graph is in " in done.stderr
    assert not [p for p in tmp_path.iterdir() if p.name.startswith("gdbgraph-") and
                (p / "graph.gdb").exists()]


def test_over_a_store(store_path, arrays) -> None:
    with gdbgraph.open(store_path, threads=1) as store:
        loader = NeighborLoader(store, [4, 3], torch.arange(20, 80), batch_size=20)
        for i, batch in enumerate(loader):
            ids = batch.n_id.numpy()
            assert ids[:20].tolist() == list(range(20 + 20 * i, 40 + 20 * i))
            np.testing.assert_array_equal(batch.x.numpy(), arrays["features"][ids])
            np.testing.assert_array_equal(batch.y.numpy(), arrays["labels"][ids[:20]])
            known = set(zip(*arrays["edges"].tolist()))
            assert set(zip(*batch.n_id[batch.edge_index].tolist())) <= known
        assert i == 2
        with pytest.raises(ValueError, match="weight_attr: over a store"):
            NeighborLoader(store, [4], torch.arange(3), weight_attr="w")
        links = LinkNeighborLoader(store, [4], torch.tensor([[1, 2], [3, 4]]), batch_size=2,
                                   neg_sampling_ratio=1)
        batch = next(iter(links))
        assert batch.n_id[batch.edge_label_index[:, :2]].tolist() == [[1, 2], [3, 4]]
        assert batch.edge_label.tolist() == [1, 1, 0, 0]
        links.close()
        loader.close()


@pytest.mark.parametrize("mode", [None, "binary", "triplet"])
def test_links(data, mode) -> None:
    loader = LinkNeighborLoader(data, [3, 2], batch_size=100, shuffle=True,
                                neg_sampling=mode and {"mode": mode, "amount": 2})
    assert loader._server is not None and len(loader) == 24
    for batch in loader:
        check(data, Data.from_dict({**batch.to_dict(), "batch_size": batch.num_sampled_nodes[0]}),
              batch.n_id[: batch.num_sampled_nodes[0]])
        wanted = data.edge_index[:, batch.input_id]
        if mode == "triplet":
            assert torch.equal(batch.n_id[batch.src_index], wanted[0])
            assert torch.equal(batch.n_id[batch.dst_pos_index], wanted[1])
            assert batch.dst_neg_index.shape == (100, 2)
            continue
        assert torch.equal(batch.n_id[batch.edge_label_index[:, :100]], wanted)
        labels = [] if mode is None else [1.0] * 100 + [0.0] * 200
        assert batch.get("edge_label") is None if mode is None else (
            batch.edge_label.tolist() == labels)


def lists(count: int, degree: int, **columns) -> Graph:
    """count nodes with a list of degree nodes each."""
    starts = np.arange(count + 1) * degree
    row = np.tile(np.arange(degree), count)
    of = {name: np.tile(values, count) for name, values in columns.items()}
    return Graph({None: Lists(None, None, starts, row, **of)}, {None: max(count, degree)})


def shares(graph: Graph, k: int, how: Drawing, limit: int | None = None) -> np.ndarray:
    """How often each node is drawn for a list, in 2,000 lists."""
    seeds = {None: np.arange(2000)}
    times = None if limit is None else {None: np.full(2000, limit)}
    out = graph.sample(seeds, {None: [k]}, how, times, np.random.default_rng(1))
    assert (np.diff(out.col[None]) >= 0).all()
    return np.bincount(graph.lists[None].row[out.edge[None]], minlength=8) / 2000


def test_draws_in_this_process() -> None:
    # Of 8 entries 3: each with 3/8, and all subsets of two of them as often. 2,000 lists leave a
    # deviation of .011.
    chosen = _floyd(np.full(20000, 5), 2, np.random.default_rng(1))
    pairs = np.bincount(chosen[:, 0] * 5 + chosen[:, 1], minlength=25) / 20000
    assert np.allclose(pairs[pairs > 0], 0.1, atol=0.01) and (pairs > 0).sum() == 10
    assert np.allclose(shares(lists(2000, 8), 3, Drawing()), 3 / 8, atol=0.04)
    twice = shares(lists(2000, 8), 3, Drawing(replace=True))
    assert np.allclose(twice, 3 / 8, atol=0.06) and twice.sum() == 3
    # Of weights 1, 2, 3, 0 one: by weight.
    weight = np.array([1.0, 2, 3, 0])
    for replace in (False, True):
        got = shares(lists(2000, 4, weight=weight), 1, Drawing(replace=replace))
        assert np.allclose(got[:4], weight / 6, atol=0.04) and got[3] == 0
    # As of time 4 there are entries 0 to 4; the last two are 3 and 4.
    timed = lists(2000, 8, time=np.arange(8))
    got = shares(timed, 2, Drawing(disjoint=True), limit=4)
    assert np.allclose(got[:5], 2 / 5, atol=0.04) and got[5:].sum() == 0
    got = shares(timed, 2, Drawing(disjoint=True, last=True), limit=4)
    assert got.tolist() == [0, 0, 0, 1, 1, 0, 0, 0]
    with pytest.raises(ValueError, match="finite and not negative"):
        shares(lists(2000, 4, weight=-weight), 1, Drawing())


def test_disjoint_and_induced(data) -> None:
    out = next(iter(NeighborLoader(data, [-1, -1], torch.tensor([5, 5, 9]), batch_size=3,
                                   disjoint=True)))
    of = [sorted(out.n_id[out.batch == k].tolist()) for k in range(3)]
    alone = next(iter(NeighborLoader(data, [-1, -1], torch.tensor([5]))))
    assert of[0] == of[1] == sorted(alone.n_id.tolist()) != of[2]
    assert (out.batch[out.edge_index[0]] == out.batch[out.edge_index[1]]).all()
    assert torch.equal(out.n_id[out.edge_index], data.edge_index[:, out.e_id])
    out = next(iter(NeighborLoader(data, [3], torch.tensor([5, 9]), batch_size=2,
                                   subgraph_type="induced")))
    inside = torch.isin(data.edge_index, out.n_id).all(0)
    assert sorted(out.e_id.tolist()) == inside.nonzero().view(-1).tolist()


@pytest.fixture
def arrow():
    """By pyarrow a HeteroData is put to a store."""
    return pytest.importorskip("pyarrow")


@pytest.fixture
def shop():
    """A HeteroData of users and items, with widths and columns of their own."""
    torch.manual_seed(4)
    made = HeteroData()
    made["user"].x, made["item"].x = torch.randn(40, 3), torch.randn(60, 7)
    made["user"].time, made["item"].time = torch.arange(40), torch.arange(60)
    made["user", "buys", "item"].edge_index = torch.stack(
        [torch.randint(0, 40, (400,)), torch.randint(0, 60, (400,))])
    made["user", "buys", "item"].edge_attr = torch.arange(400)
    made["item", "of", "user"].edge_index = torch.stack(
        [torch.randint(0, 60, (300,)), torch.randint(0, 40, (300,))])
    return made


@pytest.mark.parametrize("served", [True, False])
def test_types(shop, served: bool) -> None:
    fanout = {("user", "buys", "item"): [2, 0], ("item", "of", "user"): [3, 4]}
    if served:
        pytest.importorskip("pyarrow")
    else:
        shop["item", "user"].edge_index = shop["item", "user"].edge_index.short()
    loader = NeighborLoader(shop, fanout, ("item", torch.arange(10, 40)), batch_size=10)
    assert (loader._server is not None) == served
    for i, out in enumerate(loader):
        assert out["item"].n_id[:10].tolist() == list(range(10 + 10 * i, 20 + 10 * i))
        assert out["item"].batch_size == 10 and out["item"].x.shape[1] == 7
        for kind in ("user", "item"):
            assert torch.equal(out[kind].x, shop[kind].x[out[kind].n_id])
        for kind in shop.edge_types:
            ends = out[kind].edge_index
            ids = torch.stack([out[kind[0]].n_id[ends[0]], out[kind[2]].n_id[ends[1]]])
            assert torch.equal(ids, shop[kind].edge_index[:, out[kind].e_id])
        assert out["user", "item"].num_sampled_edges[1] == 0
        assert out["item", "user"].num_sampled_edges[0] == 0
        assert int(torch.bincount(out["user", "item"].edge_index[1]).max()) == 2
        assert torch.equal(out["user", "item"].edge_attr, out["user", "item"].e_id)
        assert sum(out["user"].num_sampled_nodes) == len(out["user"].n_id) == out["user"].num_nodes
        assert sum(out["item", "user"].num_sampled_edges) == out["item", "user"].edge_index.shape[1]


def test_all_neighbors_of_types(shop) -> None:
    """All neighbors of both hops are all that PyG finds."""
    out = next(iter(NeighborLoader(shop, [-1, -1], ("user", torch.tensor([7, 3])), batch_size=2)))
    buys, of = shop["user", "item"].edge_index, shop["item", "user"].edge_index
    items = of[0, torch.isin(of[1], torch.tensor([7, 3]))].unique()
    users = buys[0, torch.isin(buys[1], items)].unique()
    assert out["user"].n_id[:2].tolist() == [7, 3] and out["user"].input_id.tolist() == [0, 1]
    assert out["item"].n_id.sort().values.tolist() == items.tolist()
    assert set(out["user"].n_id.tolist()) == {7, 3, *users.tolist()}
    wanted = torch.isin(of[1], torch.tensor([7, 3])).nonzero().view(-1)
    assert out["item", "user"].e_id.sort().values.tolist() == wanted.tolist()
    assert out["item", "user"].num_sampled_edges == [len(wanted), 0]


@pytest.mark.parametrize("cache", [None, "belady"])
def test_typed_store(arrow, shop, tmp_path: Path, cache: str | None) -> None:
    """A path of a store with types gives the batches of its HeteroData, without it in memory."""
    shop["user"].y = torch.arange(40) % 3
    shop["item"].num_nodes = 60
    del shop["item"].x
    path = gdbgraph.ingest(tmp_path / "shop.gdb", shop)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loader = NeighborLoader(path, [4, 2], ("user", torch.arange(30)), batch_size=8, cache=cache)
    seen = []
    for out in loader:
        assert isinstance(out, HeteroData) and "x" not in out["item"]
        assert torch.equal(out["user"].x, shop["user"].x[out["user"].n_id])
        seeds = out["user"].n_id[: out["user"].batch_size]
        assert torch.equal(out["user"].y, shop["user"].y[seeds]) and "y" not in out["item"]
        seen += seeds.tolist()
        for kind in shop.edge_types:
            ends = out[kind].edge_index
            ids = torch.stack([out[kind[0]].n_id[ends[0]], out[kind[2]].n_id[ends[1]]])
            held = {tuple(e) for e in shop[kind].edge_index.T.tolist()}
            assert {tuple(e) for e in ids.T.tolist()} <= held and len(ends.T) > 0
    assert seen == list(range(30))
    loader.close()
    plain = next(iter(NeighborLoader(path, [4], torch.arange(5), batch_size=5)))
    assert isinstance(plain, Data) and plain.n_id[:5].tolist() == list(range(5))


def test_fanouts_by_relation_of_a_store(arrow, shop, tmp_path: Path) -> None:
    with gdbgraph.open(gdbgraph.ingest(tmp_path / "shop.gdb", shop)) as store:
        users = torch.arange(20)
        for given in ({"buys": [3, 4], "of": [2, 0]},
                      {("user", "buys", "item"): [3, 4], ("item", "of", "user"): [2, 0]}):
            out = next(iter(store.loader(num_neighbors=given, batch_size=20, input_nodes=users,
                                         output="hetero", seed=4)))
            first, second = out["item", "user"].num_sampled_edges
            into = torch.bincount(shop["item", "user"].edge_index[1], minlength=40)[:20]
            assert first == int(into.clamp(max=2).sum()) and second == 0
            assert out["user", "item"].num_sampled_edges[0] == 0
            assert int(torch.bincount(out["user", "item"].edge_index[1]).max()) <= 4
        for wrong, says in (({"buys": [3]}, "the store has buys, of"),
                            ({"buys": [3], "of": [2, 1]}, "as many hops")):
            with pytest.raises(ValueError, match=says):
                store.loader(num_neighbors=wrong)


def test_one_type(arrow) -> None:
    """A HeteroData of one type of nodes and one of edges is served too."""
    made = HeteroData()
    made["v"].x = torch.randn(30, 4)
    made["v", "to", "v"].edge_index = torch.randint(0, 30, (2, 90))
    loader = NeighborLoader(made, [3, 2], ("v", None), batch_size=10)
    assert loader._server is not None
    for out in loader:
        assert torch.equal(out["v"].x, made["v"].x[out["v"].n_id])
        ends = out["v"].n_id[out["v", "v"].edge_index]
        assert torch.equal(ends, made["v", "v"].edge_index[:, out["v", "v"].e_id])


def test_relations_without_a_name(arrow) -> None:
    """PyG calls all relations "to" that are given without one."""
    made = HeteroData()
    made["a"].x, made["b"].x = torch.randn(20, 4), torch.randn(30, 2)
    made["a", "b"].edge_index = torch.stack(
        [torch.randint(0, 20, (90,)), torch.randint(0, 30, (90,))])
    made["b", "a"].edge_index = made["a", "b"].edge_index.flip(0)
    fanout = {("a", "to", "b"): [2, 2], ("b", "to", "a"): [3, 0]}
    loader = NeighborLoader(made, fanout, ("b", None), batch_size=10)
    assert loader._server is not None
    for out in loader:
        assert out.edge_types == made.edge_types
        for kind in made.edge_types:
            ends = out[kind].edge_index
            ids = torch.stack([out[kind[0]].n_id[ends[0]], out[kind[2]].n_id[ends[1]]])
            assert torch.equal(ids, made[kind].edge_index[:, out[kind].e_id])
        assert out["a", "b"].num_sampled_edges[0] > 0 == out["b", "a"].num_sampled_edges[1]
        assert int(torch.bincount(out["a", "b"].edge_index[1]).max()) <= 2


def test_links_of_types(arrow, shop, tmp_path: Path) -> None:
    kind = ("user", "buys", "item")
    loader = LinkNeighborLoader(shop, [3, 3], kind, batch_size=50, neg_sampling="binary")
    assert loader._server is not None
    for out in loader:
        pairs = out[kind].edge_label_index
        ids = torch.stack([out["user"].n_id[pairs[0]], out["item"].n_id[pairs[1]]])
        true = out[kind].edge_label == 1
        assert int(true.sum()) == 50 == int((~true).sum())
        assert torch.equal(ids[:, true], shop[kind].edge_index[:, out[kind].input_id])
        assert torch.equal(out["item"].x, shop["item"].x[out["item"].n_id])
    path = gdbgraph.ingest(tmp_path / "shop.gdb", shop)
    ends = shop[kind].edge_index[:, :20]
    out = next(iter(LinkNeighborLoader(path, [3], (kind, ends), batch_size=20)))
    assert torch.equal(out["user"].n_id[out[kind].edge_label_index[0]], ends[0])
    with pytest.raises(ValueError, match="a store has no edge_index"):
        LinkNeighborLoader(path, [3], kind, batch_size=20)


def test_put_of_types_is_kept_until_it_changes(arrow, shop) -> None:
    first = NeighborLoader(shop, [2], ("user", None), batch_size=8)
    again = NeighborLoader(shop, [2], ("item", None), batch_size=8)
    assert first._server.around.store is again._server.around.store
    shop["item"].x[3] = 5
    changed = NeighborLoader(shop, [-1], ("item", None), batch_size=60)
    assert changed._server.around.store is not first._server.around.store
    assert next(iter(changed))["item"].x[3].tolist() == [5] * 7
    shop["item"].x = torch.full((60, 7), 2.0)
    other = next(iter(NeighborLoader(shop, [-1], ("item", None), batch_size=60)))
    assert (other["item"].x == 2).all() and "num_nodes" not in other["item"]


def test_times_of_nodes(shop) -> None:
    loader = NeighborLoader(shop, [-1, -1], "item", batch_size=6, time_attr="time")
    for out in loader:
        seed_time = out["item"].time[:6]
        for kind in ("user", "item"):
            assert (out[kind].time <= seed_time[out[kind].batch]).all()
    links = LinkNeighborLoader(shop, [5], ("user", "buys", "item"), batch_size=8,
                               edge_label_time=torch.arange(400), time_attr="time",
                               neg_sampling="binary", drop_last=True)
    out = next(iter(links))
    assert int(out["user"].batch.max()) == 7 and out["user", "item"].edge_label.sum() == 8


def test_hgt(shop) -> None:
    out = next(iter(HGTLoader(shop, [4, 5], ("item", torch.arange(6)), batch_size=6)))
    assert out["item"].batch_size == 6 and out["item"].n_id[:6].tolist() == list(range(6))
    assert len(out["user"].n_id) == 9 and len(set(out["item"].n_id.tolist())) == 6 + 5
    for kind in shop.edge_types:
        index = shop[kind].edge_index
        inside = torch.isin(index[0], out[kind[0]].n_id) & torch.isin(index[1], out[kind[2]].n_id)
        assert sorted(out[kind].e_id.tolist()) == inside.nonzero().view(-1).tolist()


def test_budgets() -> None:
    """A node that three lists have is drawn nine times as often as one that one has."""
    row = np.array([1, 1, 1, 2])
    graph = Graph({0: Lists("a", "b", np.array([0, 1, 2, 4]), row)}, {"a": 3, "b": 3})
    drawn = [sample_by_budget(graph, "b", np.arange(3), {"a": [1]}, np.random.default_rng(i))
             .nodes["a"].tolist() for i in range(3000)]
    # Budgets are 1 + 1 + 1/2 and 1/2.
    assert abs(drawn.count([1]) / 3000 - 25 / 26) < 0.02
