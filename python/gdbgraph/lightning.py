"""Data modules of Lightning over gdb's loaders.

    module = gdbgraph.lightning.NodeData(data, num_neighbors=[10, 10], batch_size=512)
    lightning.Trainer(max_epochs=10).fit(model, module)
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import torch

try:
    from lightning import LightningDataModule
except ImportError:
    from pytorch_lightning import LightningDataModule

from .loaders import LinkNeighborLoader, NeighborLoader, _opened
from .store import Store


class _Splits(LightningDataModule):  # type: ignore[misc]
    """A loader for each of train, val and test."""

    def __init__(self, data: Any, num_neighbors: Any, options: dict[str, Any]) -> None:
        super().__init__()
        if "shuffle" in options:  # as in PyG's modules
            warnings.warn(f"shuffle={options.pop('shuffle')!r} is not used: batches of train are "
                          "shuffled, and others are not", stacklevel=3)
        self.data, self.num_neighbors, self.options = data, num_neighbors, options

    def _loader(self, split: str) -> Any:
        raise NotImplementedError

    def train_dataloader(self) -> Any:
        """Shuffled batches of train."""
        return self._loader("train")

    def val_dataloader(self) -> Any:
        """Batches of val."""
        return self._loader("val")

    def test_dataloader(self) -> Any:
        """Batches of test."""
        return self._loader("test")


class NodeData(_Splits):
    """Batches around the nodes of train, val, test and predict, by :class:`NeighborLoader`.

    ``data`` is a store, a path, a Data or a HeteroData. Of a Data the splits are its train_mask,
    val_mask and test_mask where they are not given, and nodes to predict are all; a HeteroData
    wants ``(type, nodes)``, and a store ids or masks. ``options`` are NeighborLoader's. Batches of
    train are shuffled.
    """

    def __init__(self, data: Any, num_neighbors: Any, *, train: Any = None, val: Any = None,
                 test: Any = None, predict: Any = None, **options: Any) -> None:
        super().__init__(data, num_neighbors, options)
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

    def predict_dataloader(self) -> NeighborLoader:
        """Batches of the nodes to predict, in their order."""
        return self._loader("predict")


class LinkData(_Splits):
    """Batches of the edges of train, val and test, and the neighborhoods of their ends, by
    :class:`LinkNeighborLoader`.

    ``data`` is a store, a path, a Data or a HeteroData. A store has splits of its edges, made by
    ``gdb ingest --edge-split``, which count where no others are given; a Data wants ``(2, L)``
    nodes, and a HeteroData ``(type, nodes)``. ``options`` are LinkNeighborLoader's,
    ``neg_sampling_ratio`` or ``neg_sampling`` among them: without these there are no negatives.
    Batches of train are shuffled. Edges of a store's split take 16 bytes in this process;
    :class:`LinkLoader` takes 8, and has their types.
    """

    def __init__(self, data: Any, num_neighbors: Any, *, train: Any = None, val: Any = None,
                 test: Any = None, **options: Any) -> None:
        for name in ("edge_label_index", "edge_label", "edge_label_time"):
            if options.get(name) is not None:
                raise ValueError(f"{name} is of the edges of one split: give edges as train=, val= "
                                 "and test=, or take a LinkNeighborLoader for each split")
        super().__init__(_opened(data, options.get("threads")), num_neighbors, options)
        self.edges = {"train": train, "val": val, "test": test}

    def _loader(self, split: str) -> LinkNeighborLoader:
        edges = self.edges[split]
        if edges is None:
            edges = self._stored(split)
        return LinkNeighborLoader(self.data, self.num_neighbors, edges, shuffle=split == "train",
                                  **self.options)

    def _stored(self, split: str) -> torch.Tensor:
        """The edges of a split of the store."""
        if not isinstance(self.data, Store):
            raise ValueError(f"only a store has splits of edges: give {split}=, the edges of the "
                             "split")
        if not self.data.edge_splits.get(split):
            raise ValueError(f"the store has no split {split} of the edges: gdb ingest "
                             f"--edge-split makes it, or give {split}=, the edges of the split")
        return torch.from_numpy(self.data._edges_of(split)[0].astype(np.int64))


def _mask(data: Any, split: str) -> Any:
    """The mask of a split; None where data has none, or one of several columns."""
    if isinstance(data, Store) or not hasattr(data, "get"):
        return None
    return data.get(f"{split}_mask")
