"""Batches by type: PyG's HeteroData, and DGL's blocks."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

import gdbgraph


@pytest.fixture(scope="module")
def shop_path(gdb, tmp_path_factory):
    """A store of users and items: edges by type, the types of their ends before the ids."""
    base = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(5)
    ends = {("user", "buys", "item"): (60, 40, 400), ("item", "of", "user"): (40, 60, 300),
            ("user", "knows", "user"): (60, 60, 200)}
    flags, edges = [], {}
    for (a, relation, b), (sources, targets, count) in ends.items():
        pairs = np.stack([rng.integers(0, sources, count), rng.integers(0, targets, count)], 1)
        edges[a, relation, b] = pairs
        np.savetxt(base / f"{relation}.csv", pairs, "%d", delimiter=",")
        flags += ["--edges", f"{a}:{relation}:{b}={base}/{relation}.csv"]
    rows = [f"user:{i},{i % 3},{i},0.5" for i in range(60)]
    rows += [f"item:{i},{i % 3},-{i},0.25" for i in range(40)]
    (base / "nodes.csv").write_text("id,kind,a,b\n" + "\n".join(rows))
    done = subprocess.run(
        [gdb, "ingest", *flags, "--header", "no", "--out", str(base / "s.gdb"), "--quiet",
         "--keep-duplicates"], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return base / "s.gdb", edges


@pytest.fixture
def shop(shop_path):
    with gdbgraph.open(shop_path[0], threads=1) as store:
        yield store, shop_path[1]


def names(store, ids) -> list[str]:
    return store.external_ids(ids)


def test_node_types(shop) -> None:
    store, edges = shop
    assert store.node_types == ["item", "user"]
    every = names(store, range(store.num_nodes))
    kinds = store.node_types_of(range(store.num_nodes))
    assert [store.node_types[k] for k in kinds] == [n.split(":")[0] for n in every]
    types, triples = store.metadata()
    assert types == ["item", "user"] and sorted(triples) == sorted(edges)


def test_hetero_of_typed_nodes(shop) -> None:
    pytest.importorskip("torch_geometric")
    store, edges = shop
    known = {(r, f"{a}:{i}", f"{b}:{j}") for (a, r, b), pairs in edges.items()
             for i, j in pairs.tolist()}
    seeds, seen = store.node_ids([f"user:{i}" for i in range(20)]), 0
    for data in store.loader([4, 3], 8, input_nodes=seeds, output="hetero"):
        data.validate()
        assert set(data.node_types) == {"item", "user"} and len(data.edge_types) == 3
        assert data["item"].batch_size == 0 and data["user"].batch_size > 0
        seen += data["user"].batch_size
        called = {t: names(store, data[t].n_id) for t in data.node_types}
        for t in data.node_types:
            assert all(n.startswith(f"{t}:") for n in called[t])
            assert sum(data[t].num_sampled_nodes) == data[t].num_nodes
        for a, r, b in data.edge_types:
            pairs = data[a, r, b].edge_index.t().tolist()
            assert {(r, called[a][i], called[b][j]) for i, j in pairs} <= known
            assert sum(data[a, r, b].num_sampled_edges) == len(pairs)
    assert seen == 20


def train(model, loader, kind) -> list[float]:
    """The losses of an epoch or two of a heterogeneous model."""
    import torch

    optimizer, losses = None, []
    for _ in range(4):
        for data in loader:
            out = model(data.x_dict, data.edge_index_dict)[kind][: data[kind].batch_size]
            loss = torch.nn.functional.cross_entropy(out, data[kind].y)
            if optimizer is None:  # lazy layers have parameters now
                optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@pytest.mark.parametrize("how", ["to_hetero", "HeteroConv"])
def test_models_train(arrays, tmp_path, how) -> None:
    """Typed edges alone: the nodes are all of one type."""
    torch = pytest.importorskip("torch")
    nn = pytest.importorskip("torch_geometric.nn")
    labels = (arrays["features"][:, 0] > 0).astype(np.int64)
    path = gdbgraph.ingest(tmp_path / "t.gdb", edge_index=arrays["edges"],
                           edge_type=np.arange(4000) % 3, x=arrays["features"], y=labels,
                           splits={"train": range(400)})
    torch.manual_seed(1)
    with gdbgraph.open(path, threads=1) as store:
        metadata = store.metadata()
        assert metadata == (["node"], [("node", str(k), "node") for k in range(3)])

        class Net(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first = nn.SAGEConv((-1, -1), 16)
                self.last = nn.SAGEConv((-1, -1), 2)

            def forward(self, x, edge_index):
                return self.last(self.first(x, edge_index).relu(), edge_index)

        if how == "to_hetero":
            model = nn.to_hetero(Net(), metadata)
        else:
            model = nn.HeteroConv({t: nn.SAGEConv((-1, -1), 2) for t in metadata[1]})
        losses = train(model, store.loader([5, 5], 100, output="hetero"), "node")
        assert len(losses) == 16 and losses[-1] < 0.7 * losses[0]
    with pytest.raises(ValueError, match="neither edges nor nodes"):
        raise_hetero(arrays, tmp_path)


def raise_hetero(arrays, tmp_path) -> None:
    path = gdbgraph.ingest(tmp_path / "u.gdb", edge_index=arrays["edges"])
    with gdbgraph.open(path) as store:
        store.loader([3], input_nodes=[1], output="hetero")


def test_dgl(store, arrays) -> None:
    dgl = pytest.importorskip("dgl")
    torch = pytest.importorskip("torch")
    known = set(zip(*arrays["edges"].tolist()))
    for inputs, outputs, blocks in store.loader([4, 3, 2], 64, output="dgl"):
        assert len(blocks) == 3
        assert torch.equal(blocks[0].srcdata[dgl.NID], inputs)
        assert torch.equal(blocks[-1].dstdata[dgl.NID], outputs)
        assert torch.equal(blocks[0].srcdata["x"], torch.from_numpy(arrays["features"])[inputs])
        assert torch.equal(blocks[-1].dstdata["y"], torch.from_numpy(arrays["labels"])[outputs])
        for block, after in zip(blocks, [*blocks[1:], None]):
            ids, (source, target) = block.srcdata[dgl.NID], block.edges()
            count = block.num_dst_nodes()
            assert torch.equal(ids[:count], block.dstdata[dgl.NID])
            assert after is None or after.num_src_nodes() == count
            pairs = zip(ids[source].tolist(), ids[target].tolist())
            assert set(pairs) <= known and int(block.in_degrees().max()) <= 4
        conv = dgl.nn.SAGEConv(6, 5, "mean")
        assert conv(blocks[0], blocks[0].srcdata["x"]).isfinite().all()
    drawn = [b.num_sampled_edges for b in store.loader([4, 3, 2], 64, output="numpy")]
    assert [sum(n) for n in drawn][-1] == blocks[0].num_edges()
