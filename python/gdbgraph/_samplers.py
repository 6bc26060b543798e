"""Samplers in the place of those of PyTorch Geometric: over lists in memory, and over a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import torch
import torch_geometric.typing
from torch_geometric.sampler import (
    BaseSampler,
    EdgeSamplerInput,
    HeteroSamplerOutput,
    NegativeSampling,
    NodeSamplerInput,
    SamplerOutput,
)
from torch_geometric.sampler import NeighborSampler as OfPyG
from torch_geometric.sampler.base import SubgraphType
from torch_geometric.sampler.neighbor_sampler import edge_sample, node_sample
from torch_geometric.sampler.utils import to_hetero_csc

from ._around import Around, AroundBatch, Asked
from ._bytype import Types, by_hop
from ._neighbors import Drawing, Graph, Lists, Sample, sample_by_budget
from ._present import Present


def generator() -> np.random.Generator:
    """Random numbers that ``torch.manual_seed`` decides, in workers of a DataLoader too."""
    return np.random.default_rng(int(torch.randint(2**63 - 1, ())))


def _numpy(values: Any) -> np.ndarray:
    return values.detach().cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


class NeighborSampler(OfPyG):  # type: ignore[misc]
    """PyG's sampler of a Data, a HeteroData or of stores, which draws with numpy. It needs neither
    pyg-lib nor torch-sparse; lists take 16 bytes an edge in this process."""

    def __init__(self, *args: Any, **options: Any) -> None:
        with mock.patch.multiple(  # PyG asks these whether there is something that samples
                torch_geometric.typing, create=True, WITH_PYG_LIB=True,
                WITH_EDGE_TIME_NEIGHBOR_SAMPLE=True, WITH_WEIGHTED_NEIGHBOR_SAMPLE=True):
            super().__init__(*args, **options)
        if not self.is_temporal and self.disjoint and self.subgraph_type == SubgraphType.induced:
            raise ValueError("'disjoint' sampling is not supported with subgraph_type='induced'")
        self._graph: Graph | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_graph": None}

    @property
    def graph(self) -> Graph:
        """The lists as arrays."""
        if self._graph is None:
            self._graph = self._hetero_graph() if self.is_hetero else self._plain_graph()
        return self._graph

    def _plain_graph(self) -> Graph:
        lists = _lists(None, None, self.colptr, self.row, self.edge_time, self.edge_weight)
        return Graph({None: lists}, {None: len(self.colptr) - 1})

    def _hetero_graph(self) -> Graph:
        lists = {}
        for kind in self.edge_types:
            name = self.to_rel_type[kind]
            source, _, target = kind
            lists[kind] = _lists(source, target, self.colptr_dict[name], self.row_dict[name],
                                 (self.edge_time or {}).get(name),
                                 (self.edge_weight or {}).get(name))
        return Graph(lists, self.num_nodes)

    def _how(self) -> Drawing:
        times = self.node_time if self.is_hetero else {None: self.node_time}
        return Drawing(self.replace, self.disjoint, self.temporal_strategy == "last",
                       {k: _numpy(t) for k, t in (times or {}).items() if t is not None})

    def _sample(self, seed: Any, seed_time: Any = None, **_: Any) -> Any:
        graph, hetero = self.graph, isinstance(seed, dict)
        seeds = {k: _numpy(v).astype(np.int64)
                 for k, v in (seed if hetero else {None: seed}).items()}
        times = seed_time if hetero or seed_time is None else {None: seed_time}
        if times is not None:
            times = {k: _numpy(v) for k, v in times.items() if v is not None}
        values = (self.num_neighbors.get_mapped_values(self.edge_types) if hetero
                  else self.num_neighbors.get_mapped_values())
        fanout = values if hetero else {None: values}
        if hetero:  # by the names that PyG has for lists, or by types
            fanout = {kind: fanout.get(self.to_rel_type[kind], fanout.get(kind, ()))
                      for kind in self.edge_types}
        drawn = graph.sample(seeds, fanout, self._how(), times, generator())
        if self.subgraph_type == SubgraphType.induced:
            graph.induced(drawn)
            drawn.hop_edges = {}
        if getattr(self, "sample_direction", "forward") == "backward":
            self._turn(drawn, hetero)
        return _hetero_output(drawn) if hetero else _plain_output(drawn, self.row.dtype)


    def _turn(self, drawn: Sample, hetero: bool) -> None:
        """Turns the edges of lists of out-neighbors."""
        drawn.row, drawn.col = drawn.col, drawn.row
        if hetero:
            back = self.to_restored_edge_type
            drawn.row, drawn.col, drawn.edge, drawn.hop_edges = (
                {back[k]: v for k, v in values.items()}
                for values in (drawn.row, drawn.col, drawn.edge, drawn.hop_edges))


def _lists(source: Any, target: Any, starts: Any, row: Any, time: Any, weight: Any) -> Lists:
    return Lists(source, target, _numpy(starts).astype(np.int64, copy=False), _numpy(row),
                 None if time is None else _numpy(time),
                 None if weight is None else _numpy(weight).astype(np.float64))


def _plain_output(drawn: Sample, dtype: Any) -> SamplerOutput:
    def tensor(values: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(values).to(dtype)

    return SamplerOutput(
        node=tensor(drawn.nodes[None]), row=tensor(drawn.row[None]), col=tensor(drawn.col[None]),
        edge=tensor(drawn.edge[None]),
        batch=None if drawn.batch is None else tensor(drawn.batch[None]),
        num_sampled_nodes=drawn.hop_nodes[None], num_sampled_edges=drawn.hop_edges.get(None))


def _hetero_output(drawn: Sample) -> HeteroSamplerOutput:
    def tensors(values: Mapping[Any, np.ndarray]) -> dict[Any, torch.Tensor]:
        return {k: torch.from_numpy(v) for k, v in values.items()}

    return HeteroSamplerOutput(
        node=tensors(drawn.nodes), row=tensors(drawn.row), col=tensors(drawn.col),
        edge=tensors(drawn.edge), batch=None if drawn.batch is None else tensors(drawn.batch),
        num_sampled_nodes=drawn.hop_nodes, num_sampled_edges=drawn.hop_edges or None)


class HGTSampler(BaseSampler):  # type: ignore[misc]
    """PyG's sampler of a number of nodes of each type, without torch-sparse."""

    def __init__(self, data: Any, num_samples: Sequence[int] | Mapping[str, Sequence[int]],
                 is_sorted: bool = False, share_memory: bool = False) -> None:
        from torch_geometric.data import HeteroData

        if not isinstance(data, HeteroData):
            raise NotImplementedError(f"HGTSampler is for a HeteroData, not a {type(data)}")
        node_types, self.edge_types = data.metadata()
        self.num_samples = (dict(num_samples) if isinstance(num_samples, Mapping)
                            else dict.fromkeys(node_types, num_samples))
        starts, rows, self._perm = to_hetero_csc(data, device="cpu", share_memory=share_memory,
                                                 is_sorted=is_sorted)
        self._graph = Graph({k: _lists(k[0], k[2], starts[k], rows[k], None, None)
                             for k in self.edge_types},
                            {k: data[k].num_nodes for k in node_types})

    def sample_from_nodes(self, inputs: NodeSamplerInput) -> HeteroSamplerOutput:
        """The nodes that are drawn around nodes of a type, and all edges between them."""
        out = _hetero_output(sample_by_budget(
            self._graph, inputs.input_type, _numpy(inputs.node).astype(np.int64),
            self.num_samples, generator()))
        out.metadata = (inputs.input_id, inputs.time)
        return out

    def sample_from_edges(self, inputs: EdgeSamplerInput,
                          neg_sampling: NegativeSampling | None = None) -> HeteroSamplerOutput:
        """It is for nodes, as in PyG."""
        raise NotImplementedError("HGTSampler draws around nodes; LinkNeighborLoader is for edges")

    @property
    def edge_permutation(self) -> Any:
        """The numbers of the entries of lists in edge_index."""
        return self._perm


def new_epoch() -> int:
    """A number of an epoch, which follows from the seed of torch."""
    return int(torch.randint(2**62, ()))


class _AmongPresent(NegativeSampling):  # type: ignore[misc]
    """Negatives of a store with deleted nodes, which are drawn among the others."""

    def __init__(self, like: NegativeSampling, nodes: Present) -> None:
        vars(self).update(vars(like))
        self._nodes = nodes

    def sample(self, num_samples: int, *of: Any) -> torch.Tensor:
        """``of`` are the end, where PyG has weights for each, and the number of nodes."""
        weight = self.weight if len(of) < 2 else getattr(self, f"{of[0]}_weight")
        if weight is not None:
            return super().sample(num_samples, *of)
        drawn = super().sample(num_samples, *of[:-1], self._nodes.count)
        return torch.from_numpy(self._nodes.at(drawn.numpy()))


@dataclass
class Pending:
    """A sample that the server was asked for; metadata are PyG's, of what it is about."""

    asked: Asked | None  # None of an epoch that is prepared
    metadata: Any = None


class StoreSampler(BaseSampler):  # type: ignore[misc]
    """Samples that the server of a store draws, with the rows of its features."""

    def __init__(self, around: Around, bidirectional: bool = False,
                 types: Types | None = None) -> None:
        self.around, self.bidirectional = around, bidirectional
        self._types = types  # of nodes and edges, which samples are parted by; None for one
        self._nodes: Any = around.num_nodes
        if types is not None:
            self._nodes = types.counts()

    def sample_from_nodes(self, inputs: NodeSamplerInput) -> SamplerOutput:
        """The neighborhood of nodes."""
        return self.receive(self.ask_nodes(inputs))

    def sample_from_edges(self, inputs: EdgeSamplerInput,
                          neg_sampling: NegativeSampling | None = None) -> SamplerOutput:
        """The neighborhood of the ends of edges, and of those that are drawn as negatives."""
        return self.receive(self.ask_edges(inputs, neg_sampling))

    def ask_nodes(self, inputs: NodeSamplerInput, at: tuple[int, int] | None = None) -> Pending:
        """Asks for what ``sample_from_nodes`` gives; at is an epoch and a number of a batch, which
        decide the draws."""
        return node_sample(inputs, self._asking(at))

    def ask_edges(self, inputs: EdgeSamplerInput, neg_sampling: NegativeSampling | None = None,
                  at: tuple[int, int] | None = None) -> Pending:
        """Asks for what ``sample_from_edges`` gives."""
        return edge_sample(inputs, self._asking(at), self._nodes, False, None,
                           self._negatives(neg_sampling))

    def _negatives(self, neg_sampling: NegativeSampling | None) -> NegativeSampling | None:
        """How negatives are drawn: among the nodes that were not deleted."""
        nodes = self.around.store._present()
        if neg_sampling is None or nodes.count == self.around.num_nodes:
            return neg_sampling
        return _AmongPresent(neg_sampling, nodes)

    def _asking(self, at: tuple[int, int] | None) -> Callable[..., Pending]:
        """What asks for a batch around seeds."""
        def ask(seed: torch.Tensor | dict[str, torch.Tensor], _: Any = None) -> Pending:
            epoch, index = at or (new_epoch(), 0)
            return Pending(self.around.ask(self._seeds(seed), epoch, index))
        return ask

    def _seeds(self, seed: torch.Tensor | dict[str, torch.Tensor]) -> np.ndarray:
        """The numbers of seeds in the store."""
        if not isinstance(seed, dict):
            return _numpy(seed)
        assert self._types is not None
        return np.concatenate([self._types.in_store(kind, _numpy(s)) for kind, s in seed.items()])

    def begin(self, inputs: Sequence[NodeSamplerInput | EdgeSamplerInput],
              neg_sampling: NegativeSampling | None = None) -> Iterator[SamplerOutput]:
        """What ``sample_from_nodes`` or ``sample_from_edges`` gives of each, where the server
        prepares them together."""
        epoch, seeds, pendings = new_epoch(), [], []

        def collect(seed: torch.Tensor | dict[str, torch.Tensor], _: Any = None) -> Pending:
            seeds.append(self._seeds(seed))
            return Pending(None)

        for one in inputs:
            pendings.append(
                node_sample(one, collect) if isinstance(one, NodeSamplerInput)
                else edge_sample(one, collect, self._nodes, False, None,
                                 self._negatives(neg_sampling)))
        asked = self.around.begin(seeds, epoch)
        try:
            for pending in pendings:
                yield self._output(self.around.following(asked), pending)
        finally:
            self.around.leave(asked)

    def receive(self, pending: Pending) -> SamplerOutput:
        """Receives a sample that was asked for; its field ``served`` is the batch of the server."""
        return self._output(self.around.receive(pending.asked), pending)

    def _output(self, batch: AroundBatch, pending: Pending) -> SamplerOutput | HeteroSamplerOutput:
        if self._types is not None:
            return self._by_type(self._types, batch, pending)
        row, col = torch.from_numpy(batch.edge_index)
        out = SamplerOutput(
            node=torch.from_numpy(batch.n_id), row=row, col=col,
            edge=None if batch.e_id is None else torch.from_numpy(batch.e_id), batch=None,
            num_sampled_nodes=list(batch.num_sampled_nodes),
            num_sampled_edges=list(batch.num_sampled_edges), metadata=pending.metadata)
        if self.bidirectional:
            out = out.to_bidirectional(keep_orig_edges=False)
            batch.edge_index = torch.stack([out.row, out.col]).numpy()
        out.served = batch
        return out

    @staticmethod
    def _by_type(types: Types, batch: AroundBatch, pending: Pending) -> HeteroSamplerOutput:
        """A sample by types of nodes and edges."""
        parts, ids = types.parts(batch), batch.e_id
        ends = {kind: torch.from_numpy(parts.ends(batch, kind)) for kind in parts.edges}
        out = HeteroSamplerOutput(
            node={kind: torch.from_numpy(types.in_type(kind, batch.n_id[here]))
                  for kind, here in parts.nodes.items()},
            row={kind: row for kind, (row, _) in ends.items()},
            col={kind: col for kind, (_, col) in ends.items()},
            edge={kind: None if ids is None else torch.from_numpy(ids[here])
                  for kind, here in parts.edges.items()}, batch=None,
            num_sampled_nodes={kind: by_hop(here, batch.num_sampled_nodes)
                               for kind, here in parts.nodes.items()},
            num_sampled_edges={kind: by_hop(here, batch.num_sampled_edges)
                               for kind, here in parts.edges.items()},
            metadata=pending.metadata)
        out.served, out.parts = batch, parts
        return out

    @property
    def edge_permutation(self) -> None:
        """Edges have their numbers in edge_index already."""
        return None
