"""The data modules of Lightning. What they load is tested without it too."""

from __future__ import annotations

import gc
import importlib
import sys
import types

import pytest

import gdbgraph

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric", minversion="2.5")
from torch_geometric.data import Data  # noqa: E402
from torch_geometric.nn import SAGEConv  # noqa: E402

from gdbgraph import _put  # noqa: E402


@pytest.fixture
def modules(monkeypatch):
    """gdbgraph.lightning over a class that stands for Lightning's."""
    stub = types.ModuleType("lightning")
    stub.LightningDataModule = type("LightningDataModule", (), {})
    monkeypatch.setitem(sys.modules, "lightning", stub)
    monkeypatch.delitem(sys.modules, "gdbgraph.lightning", raising=False)
    yield importlib.import_module("gdbgraph.lightning")
    sys.modules.pop("gdbgraph.lightning", None)


@pytest.fixture(scope="module")
def split_path(arrays, tmp_path_factory) -> str:
    """A store whose edges have splits."""
    return gdbgraph.ingest(tmp_path_factory.mktemp("split") / "s.gdb", edge_index=arrays["edges"],
                           x=arrays["features"], y=arrays["labels"],
                           options=["--edge-split", "random=80/10/10"])


def edges_of(batch, split) -> list[int]:
    """The numbers of a batch's edges in their split. There is a negative for each."""
    ends = batch.n_id[batch.edge_label_index]
    count = len(batch.input_id)
    assert batch.edge_label.tolist() == [1.0] * count + [0.0] * count
    assert torch.equal(ends[:, :count], split[:, batch.input_id])
    return batch.input_id.tolist()


def test_shuffle_is_what_the_split_says(modules, split_path) -> None:
    with gdbgraph.open(split_path, threads=1) as store:
        for module in (modules.NodeData, modules.LinkData):
            with pytest.warns(UserWarning, match="shuffle=True is not used"):
                assert "shuffle" not in module(store, [3], shuffle=True).options


def test_links_of_a_store(modules, split_path) -> None:
    with gdbgraph.open(split_path, threads=1) as store:
        assert store.edge_splits["train"] == store.num_edges  # the lists are those of train
        module = modules.LinkData(store, [3, 2], batch_size=100, neg_sampling_ratio=1.0)
        for name in ("train", "val", "test"):
            split = torch.from_numpy(store._edges_of(name)[0].astype("int64"))
            loader = getattr(module, f"{name}_dataloader")()
            assert loader._server is not None  # which draws neighbors
            seen = [i for batch in loader for i in edges_of(batch, split)]
            assert (seen == list(range(store.edge_splits[name]))) == (name != "train")
            assert sorted(seen) == list(range(store.edge_splits[name]))
            loader.close()
        given = torch.tensor([[1, 2, 3], [4, 5, 6]])
        loader = modules.LinkData(store, [3], val=given, batch_size=2).val_dataloader()
        ends = [b.n_id[b.edge_label_index].tolist() for b in loader]
        assert ends == [[[1, 2], [4, 5]], [[3], [6]]]
        loader.close()
        with pytest.raises(ValueError, match="edge_label is of the edges of one split"):
            modules.LinkData(store, [3], edge_label=torch.ones(3))


def test_links_without_splits(modules, store) -> None:
    with pytest.raises(ValueError, match="no split val of the edges: gdb ingest --edge-split"):
        modules.LinkData(store, [3]).val_dataloader()
    data = Data(x=torch.ones(9, 1), edge_index=torch.tensor([[1, 2], [3, 4]]))
    with pytest.raises(ValueError, match="only a store has splits of edges: give train="):
        modules.LinkData(data, [3]).train_dataloader()


def trainer_in(tmp_path):
    """A trainer of four epochs, where Lightning is installed. No fixture: it keeps loaders."""
    lightning = pytest.importorskip("lightning")
    return lightning.Trainer(max_epochs=4, accelerator="cpu", logger=False,
                             enable_checkpointing=False, enable_progress_bar=False,
                             num_sanity_val_steps=0, default_root_dir=tmp_path)


def net(width: int, loss_of):
    """One layer, which counts what loss_of says that the batches of each split have."""
    import lightning

    class Net(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(width, 2)
            self.seen: dict[str, list[int]] = {"train": [], "val": [], "test": []}
            self.losses: list[float] = []

        def loss(self, batch, split):
            loss, seen = loss_of(self.conv(batch.x, batch.edge_index), batch)
            self.seen[split] += seen
            return loss

        def training_step(self, batch):
            loss = self.loss(batch, "train")
            self.losses.append(loss.item())
            return loss

        def validation_step(self, batch):
            self.loss(batch, "val")

        def test_step(self, batch):
            self.loss(batch, "test")

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.1)

    return Net()


def test_trainer(nothing_left, tmp_path) -> None:
    trainer = trainer_in(tmp_path)
    from gdbgraph.lightning import NodeData

    def loss_of(out, batch):
        size = batch.batch_size
        return (torch.nn.functional.cross_entropy(out[:size], batch.y[:size]),
                batch.n_id[:size].tolist())

    torch.manual_seed(2)
    x, part = torch.randn(120, 4), torch.arange(120) % 3
    data = Data(x=x, y=(x[:, 0] > 0).long(), edge_index=torch.randint(0, 120, (2, 600)),
                train_mask=part == 0, val_mask=part == 1)
    module = NodeData(data, [3, 3], batch_size=16, test=torch.arange(2, 120, 3))
    model = net(4, loss_of)
    trainer.fit(model, module)
    trainer.test(model, module, verbose=False)
    ids = {k: (part == i).nonzero().view(-1).tolist() for i, k in enumerate(model.seen)}
    assert sorted(model.seen["train"]) == sorted(4 * ids["train"])
    assert model.seen["train"][:40] != ids["train"]
    assert model.seen["val"] == 4 * ids["val"] and model.seen["test"] == ids["test"]
    assert len(model.losses) == 12 and model.losses[-1] < 0.7 * model.losses[0]
    with pytest.raises(ValueError, match="no test_mask"):
        NodeData(data, [3]).test_dataloader()
    del module, trainer, model
    _put._puts.clear()
    gc.collect()


def test_trainer_of_links(nothing_left, tmp_path, split_path) -> None:
    trainer = trainer_in(tmp_path)
    from gdbgraph.lightning import LinkData

    def loss_of(out, batch):
        head, tail = out[batch.edge_label_index]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            (head * tail).sum(1), batch.edge_label)
        return loss, batch.input_id.tolist()

    module = LinkData(split_path, [3, 3], batch_size=400, neg_sampling_ratio=1.0, threads=1)
    counts, width = module.data.edge_splits, module.data.num_features
    model = net(width, loss_of)
    trainer.fit(model, module)
    trainer.test(model, module, verbose=False)
    train = model.seen["train"]
    assert sorted(train) == sorted(4 * list(range(counts["train"])))
    assert train[: counts["train"]] != train[counts["train"] : 2 * counts["train"]]
    assert model.seen["val"] == 4 * list(range(counts["val"]))
    assert model.seen["test"] == list(range(counts["test"]))
    module.data.close()
    del module, trainer, model
    gc.collect()
