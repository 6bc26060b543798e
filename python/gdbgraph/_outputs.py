"""Batches as PyTorch, PyTorch Geometric and DGL have them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import accumulate
from typing import Any

import numpy as np

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
        self._names, triples = store.metadata()
        kinds = {name: i for i, name in enumerate(self._names)}
        relations = {name: i for i, name in enumerate(store.edge_types or ["to"])}
        self._relations = len(relations)
        self._triples = [(t, self._code(kinds[t[0]], relations[t[1]], kinds[t[2]]))
                         for t in triples]
        self._kinds = store._kinds() if store.node_types else None
        self._dims = store.node_dims or {}

    def _code(self, source: Any, relation: Any, target: Any) -> Any:
        """The number of a type of edges."""
        return (source * self._relations + relation) * len(self._names) + target

    def __call__(self, batch: Batch) -> Any:
        """The batch; the numbers of nodes are those of their type."""
        import torch
        from torch_geometric.data import HeteroData

        batch, made = tensors(batch), HeteroData()
        kinds = torch.zeros(len(batch.n_id), dtype=torch.int64)
        if self._kinds is not None:
            kinds = torch.from_numpy(self._kinds[batch.n_id.numpy()].astype(np.int64))
        numbers = torch.empty_like(kinds)  # of each node among those of its type
        for kind, name in enumerate(self._names):
            numbers = self._nodes(batch, made[name], kinds == kind, numbers)
            if made[name].get("x") is not None and name in self._dims:
                made[name].x = made[name].x[:, : self._dims[name]]
                if not self._dims[name]:
                    del made[name].x
        source, target = batch.edge_index
        relation = 0 if batch.edge_type is None else batch.edge_type
        codes = self._code(kinds[source], relation, kinds[target])
        for triple, code in self._triples:
            here, edges = codes == code, made[triple]
            edges.edge_index = torch.stack([numbers[source[here]], numbers[target[here]]])
            if batch.edge_weight is not None:
                edges.edge_weight = batch.edge_weight[here]
            edges.num_sampled_edges = [int(h.sum()) for h in here.split(batch.num_sampled_edges)]
        return made

    def _nodes(self, batch: Batch, to: Any, here: Any, numbers: Any) -> Any:
        """Fills in the nodes of a type, and their numbers."""
        import torch

        to.num_nodes = int(here.sum())
        numbers[here] = torch.arange(to.num_nodes)
        to.n_id = batch.n_id[here]
        seeds = here[: batch.batch_size]
        to.batch_size = int(seeds.sum())
        if batch.x is not None:
            to.x = batch.x if self._kinds is None else batch.x[here]
        if batch.y is not None:
            to.y = batch.y[seeds]
        to.num_sampled_nodes = [int(h.sum()) for h in here.split(batch.num_sampled_nodes)]
        return numbers
