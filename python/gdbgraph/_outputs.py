"""Batches as PyTorch, PyTorch Geometric and DGL have them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import accumulate
from typing import Any

import numpy as np

from ._bytype import Types, by_hop
from ._connection import Opened
from .batch import Batch

KINDS = ("pyg", "hetero", "dgl", "torch", "numpy")
_ARRAYS = ("x", "n_id", "edge_index", "indptr", "y", "edge_type", "edge_weight",
           "edge_label_index", "edge_label", "edge_label_type", "input_id")


def converter(output: str | None, store: Opened) -> Callable[[Batch], Any]:
    """What makes a batch of the kind that is asked for; None is the richest that is installed."""
    if output not in (None, *KINDS):
        raise ValueError(f"output {output!r}: want {', '.join(KINDS[:-1])} or {KINDS[-1]}")
    if output == "hetero":
        return Hetero(store)
    if output == "dgl":
        import_module("dgl")  # an error now if it is not there

        return blocks
    if output == "numpy":
        return lambda batch: batch
    try:
        import_module("torch")
    except ImportError:
        if output is not None:
            raise
        return lambda batch: batch
    if output == "torch":
        return tensors
    try:
        import_module("torch_geometric.data")
    except ImportError:
        if output is not None:
            raise
        return tensors
    return data


def tensors(batch: Batch) -> Batch:
    """The batch with tensors in the place of arrays; nothing is copied."""
    import torch

    for name in _ARRAYS:
        value = getattr(batch, name)
        if value is not None:
            setattr(batch, name, torch.from_numpy(value))
    return batch


def data(batch: Batch) -> Any:
    """The batch as PyG's Data."""
    from torch_geometric.data import Data

    batch = tensors(batch)
    extras = {name: getattr(batch, name) for name in _ARRAYS[5:]
              if getattr(batch, name) is not None}
    return Data(
        **extras, x=batch.x, edge_index=batch.edge_index, y=batch.y, n_id=batch.n_id,
        batch_size=batch.batch_size, num_sampled_nodes=batch.num_sampled_nodes,
        num_sampled_edges=batch.num_sampled_edges, num_nodes=len(batch.n_id),
    )


def blocks(batch: Batch) -> tuple[Any, Any, list[Any]]:
    """The batch as DGL's DataLoader gives one: input nodes, output nodes, and a block for each
    layer, outermost first. A block has the nodes and edges of all hops up to its own."""
    import dgl

    batch = tensors(batch)
    nodes = list(accumulate(batch.num_sampled_nodes))
    made = []
    for sources, targets, edges in zip(nodes[:0:-1], nodes[-2::-1],
                                       [*accumulate(batch.num_sampled_edges)][::-1]):
        block = dgl.create_block(
            ("csc", (batch.indptr[: targets + 1], batch.edge_index[0, :edges], [])),
            num_src_nodes=sources, num_dst_nodes=targets,
        )
        block.srcdata[dgl.NID], block.dstdata[dgl.NID] = batch.n_id[:sources], batch.n_id[:targets]
        for name in ("edge_type", "edge_weight"):
            if getattr(batch, name) is not None:
                block.edata[name] = getattr(batch, name)[:edges]
        made.append(block)
    if batch.x is not None:
        made[0].srcdata["x"] = batch.x
    if batch.y is not None:
        made[-1].dstdata["y"] = batch.y
    return batch.n_id, batch.n_id[: batch.batch_size], made


class Hetero:
    """Makes PyG's HeteroData of batches: their nodes and edges by type."""

    def __init__(self, store: Opened) -> None:
        import_module("torch_geometric.data")

        if not store.edge_types and not store.node_types:
            raise ValueError("output 'hetero': neither edges nor nodes of this store have types")
        self._types = Types(store)
        self._one = not store.node_types  # type of nodes
        self._dims = store.node_dims or {}

    def __call__(self, batch: Batch) -> Any:
        """The batch; the numbers of nodes are those of their type."""
        import torch
        from torch_geometric.data import HeteroData

        made, parts = HeteroData(), self._types.parts(batch)
        for name, here in parts.nodes.items():
            self._nodes(batch, made[name], name, here)
        for kind, here in parts.edges.items():
            edges = made[kind]
            edges.edge_index = torch.from_numpy(parts.ends(batch, kind))
            if batch.edge_weight is not None:
                edges.edge_weight = torch.from_numpy(batch.edge_weight[here])
            edges.num_sampled_edges = by_hop(here, batch.num_sampled_edges)
        return made

    def _nodes(self, batch: Batch, to: Any, name: str, here: np.ndarray) -> None:
        """Fills in the nodes of a type."""
        import torch

        to.num_nodes = len(here)
        to.n_id = torch.from_numpy(batch.n_id[here])
        seeds = here[: np.searchsorted(here, batch.batch_size)]
        to.batch_size = len(seeds)
        dim = self._dims.get(name)
        if batch.x is not None and dim != 0:
            to.x = torch.from_numpy(batch.x if self._one else rows_of(batch, here, dim))
        if batch.y is not None:
            to.y = torch.from_numpy(batch.y[seeds])
        to.num_sampled_nodes = by_hop(here, batch.num_sampled_nodes)


def rows_of(batch: Any, here: np.ndarray, dim: int | None) -> np.ndarray:
    """The features of some nodes of a batch, as wide as those of their type."""
    return batch.x[here] if dim is None else np.ascontiguousarray(batch.x[:, :dim][here])
