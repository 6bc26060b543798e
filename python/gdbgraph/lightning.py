"""A data module of Lightning over gdb's loaders.

    module = gdbgraph.lightning.NodeData(data, num_neighbors=[10, 10], batch_size=512)
    lightning.Trainer(max_epochs=10).fit(model, module)
"""

from __future__ import annotations

from typing import Any

try:
    from lightning import LightningDataModule
except ImportError:
    from pytorch_lightning import LightningDataModule

from .loaders import NeighborLoader
from .store import Store


class NodeData(LightningDataModule):  # type: ignore[misc]
    """Batches around the nodes of train, val, test and predict, by :class:`NeighborLoader`.

    ``data`` is what that takes. Of a Data the splits are its train_mask, val_mask and test_mask
    where they are not given, and nodes to predict are all; a HeteroData wants ``(type, nodes)``,
    and a store ids or masks. ``options`` are NeighborLoader's. Batches of train are shuffled.
    """

    def __init__(self, data: Any, num_neighbors: Any, *, train: Any = None, val: Any = None,
                 test: Any = None, predict: Any = None, **options: Any) -> None:
        super().__init__()
        options.pop("shuffle", None)  # is what the split says
        self.data, self.num_neighbors, self.options = data, num_neighbors, options
        given = {"train": train, "val": val, "test": test}
        self.nodes = {name: nodes if nodes is not None else _mask(data, name)
                      for name, nodes in given.items()}
        self.nodes["predict"] = predict

    def _loader(self, split: str) -> NeighborLoader:
        nodes = self.nodes[split]
        if nodes is None and split != "predict":
            raise ValueError(f"data has no {split}_mask: give {split}=, the nodes of the split")
        return NeighborLoader(self.data, self.num_neighbors, nodes, shuffle=split == "train",
                              **self.options)

    def train_dataloader(self) -> NeighborLoader:
        """Shuffled batches of train."""
        return self._loader("train")

    def val_dataloader(self) -> NeighborLoader:
        """Batches of val."""
        return self._loader("val")

    def test_dataloader(self) -> NeighborLoader:
        """Batches of test."""
        return self._loader("test")

    def predict_dataloader(self) -> NeighborLoader:
        """Batches of the nodes to predict, in their order."""
        return self._loader("predict")


def _mask(data: Any, split: str) -> Any:
    """The mask of a split; None where data has none, or one of several columns."""
    if isinstance(data, Store) or not hasattr(data, "get"):
        return None
    return data.get(f"{split}_mask")
