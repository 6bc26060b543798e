"""The data module of Lightning."""

from __future__ import annotations

import gc

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric", minversion="2.5")
lightning = pytest.importorskip("lightning")
from torch_geometric.data import Data  # noqa: E402
from torch_geometric.nn import SAGEConv  # noqa: E402

from gdbgraph import _put  # noqa: E402
from gdbgraph.lightning import NodeData  # noqa: E402


class Net(lightning.LightningModule):
    """One layer, which counts the seeds of each split."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SAGEConv(4, 2)
        self.seen: dict[str, list[int]] = {"train": [], "val": [], "test": []}
        self.losses: list[float] = []

    def loss(self, batch, split):
        self.seen[split] += batch.n_id[: batch.batch_size].tolist()
        out = self.conv(batch.x, batch.edge_index)[: batch.batch_size]
        return torch.nn.functional.cross_entropy(out, batch.y[: batch.batch_size])

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


def test_trainer(nothing_left, tmp_path) -> None:
    torch.manual_seed(2)
    x, part = torch.randn(120, 4), torch.arange(120) % 3
    data = Data(x=x, y=(x[:, 0] > 0).long(), edge_index=torch.randint(0, 120, (2, 600)),
                train_mask=part == 0, val_mask=part == 1)
    module = NodeData(data, [3, 3], batch_size=16, test=torch.arange(2, 120, 3))
    trainer = lightning.Trainer(max_epochs=4, accelerator="cpu", logger=False,
                                enable_checkpointing=False, enable_progress_bar=False,
                                num_sanity_val_steps=0, default_root_dir=tmp_path)
    net = Net()
    trainer.fit(net, module)
    trainer.test(net, module, verbose=False)
    ids = {k: (part == i).nonzero().view(-1).tolist() for i, k in enumerate(net.seen)}
    assert sorted(net.seen["train"]) == sorted(4 * ids["train"])
    assert net.seen["train"][:40] != ids["train"]
    assert net.seen["val"] == 4 * ids["val"] and net.seen["test"] == ids["test"]
    assert len(net.losses) == 12 and net.losses[-1] < 0.7 * net.losses[0]
    with pytest.raises(ValueError, match="no test_mask"):
        NodeData(data, [3]).test_dataloader()
    del module, trainer, net
    _put._puts.clear()
    gc.collect()
