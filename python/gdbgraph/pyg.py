"""A store as the FeatureStore and GraphStore of PyTorch Geometric.

    feature_store, graph_store = gdbgraph.pyg.stores(store)
    loader = NeighborLoader(data=(feature_store, graph_store), num_neighbors=[10, 10],
                            input_nodes=ids, batch_size=1000)

PyG then samples, from lists that it holds in memory: 8 bytes an edge and 8 a node. Features and
labels are read from the store as batches need them. ``Store.loader`` does both inside gdb, which is
faster, and needs no lists in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch_geometric.data import FeatureStore, GraphStore
from torch_geometric.data.feature_store import TensorAttr
from torch_geometric.data.graph_store import EdgeAttr, EdgeLayout

from .store import Store

_LISTS = 1 << 16  # nodes whose lists are asked for at a time


def stores(store: Store) -> tuple[StoreFeatures, StoreGraph]:
    """The features and the graph of a store, as ``NeighborLoader(data=...)`` takes them."""
    return StoreFeatures(store), StoreGraph(store)


class StoreFeatures(FeatureStore):  # type: ignore[misc]
    """The tensors ``x``, (N, D) float32, and ``y``, the labels, of all nodes. They cannot be
    written."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.__dict__["_of"] = store

    def _get_tensor(self, attr: TensorAttr) -> torch.Tensor | None:
        if attr.attr_name not in self._names():
            return None
        ids = attr.index
        if not isinstance(ids, (slice, range, list, np.ndarray, torch.Tensor)):
            ids = slice(None)  # None, or PyG's word for an index that was not given
        if isinstance(ids, slice):
            ids = torch.arange(*ids.indices(self._of.num_nodes))
        ids = torch.as_tensor(ids).reshape(-1)
        return self._of.features[ids] if attr.attr_name == "x" else self._of.labels_of(ids)

    def _names(self) -> list[str]:
        return (["x"] if self._of.num_features else []) + (["y"] if self._of.labels else [])

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...]:
        if attr.attr_name == "x":
            return self._of.features.shape
        return (self._of.num_nodes,)

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """One of x and one of y, where the store has them."""
        return [TensorAttr(group_name=None, attr_name=name) for name in self._names()]

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        return False

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        return False

    def __len__(self) -> int:
        return len(self._names())


class StoreGraph(GraphStore):  # type: ignore[misc]
    """The edges of a store as compressed columns, read once. They cannot be written."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self._of = store
        self._lists: tuple[torch.Tensor, torch.Tensor] | None = None

    def _get_edge_index(self, edge_attr: EdgeAttr) -> tuple[torch.Tensor, torch.Tensor] | None:
        if edge_attr.layout != EdgeLayout.CSC:
            return None
        if self._lists is None:
            self._lists = self._read()
        return self._lists

    def _read(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(sources, where the edges of each node begin), int64."""
        nodes = self._of.num_nodes
        rows = np.empty(self._of.num_edges, np.int64)
        starts = np.zeros(nodes + 1, np.int64)
        for first in range(0, nodes, _LISTS):
            last = min(nodes, first + _LISTS)
            indptr, found = self._of.neighbors(np.arange(first, last))
            begin = starts[first]
            starts[first : last + 1] = indptr + begin
            rows[begin : begin + len(found)] = found
        return torch.from_numpy(rows), torch.from_numpy(starts)

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """One, of all edges."""
        nodes = self._of.num_nodes
        return [EdgeAttr(edge_type=None, layout=EdgeLayout.CSC, is_sorted=True,
                         size=(nodes, nodes))]

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        return False

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        return False
