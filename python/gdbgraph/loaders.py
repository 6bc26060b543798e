"""Loaders with the arguments of PyTorch Geometric's.

    from gdbgraph import NeighborLoader  # in the place of torch_geometric.loader

They take a Data, a HeteroData, a (FeatureStore, GraphStore), or a store of gdb. The server draws
and gathers what it can: see :func:`served`. The rest is drawn in this process, with numpy.
"""

from __future__ import annotations

import copy
import importlib.util
import math
import os
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import LinkLoader as LinkLoaderOfPyG
from torch_geometric.loader import NodeLoader
from torch_geometric.loader.utils import get_edge_label_index, get_input_nodes
from torch_geometric.sampler.base import NegativeSampling, NumNeighbors, SubgraphType

from ._around import AHEAD, Around
from ._bytype import ONE, Types
from ._outputs import rows_of
from ._put import put, stored_kinds
from ._samplers import HGTSampler, NeighborSampler, StoreSampler, new_epoch
from ._server import own_socket
from ._tables import is_name
from .store import Store

#: Arguments of how a store is made and opened.
_OF_STORE = ("root", "memory", "threads", "cache")
#: Arguments of the processes that a DataLoader would start.
_OF_WORKERS = ("num_workers", "persistent_workers", "prefetch_factor", "multiprocessing_context",
               "timeout", "worker_init_fn")
#: Arguments of PyG's sampler.
_OF_SAMPLER = ("replace", "subgraph_type", "disjoint", "temporal_strategy", "time_attr",
               "weight_attr", "is_sorted", "directed")


def served(data: Any, seeds: Any, fanout: Any, options: dict[str, Any]) -> bool:
    """Whether the server of a store draws what is asked for: a number of neighbors, or all, of each
    type of edges, uniformly, without replacement, times and weights. seeds are as PyG takes them."""
    usual = {"replace": False, "disjoint": False, "time_attr": None, "weight_attr": None,
             "directed": True}
    if not all(options.get(name, value) == value for name, value in usual.items()):
        return False
    way = SubgraphType(options.get("subgraph_type", "directional"))
    if isinstance(data, HeteroData) or isinstance(data, Store) and _typed(data, seeds):
        return (way == SubgraphType.directional
                and (isinstance(data, Store) or _storable(data))
                and by_relation(data, fanout) is not None)
    if isinstance(data, Data):
        if not _plain(data._store) or "adj_t" in data or "adj" in data:
            return False
    elif not isinstance(data, Store):
        return False
    return (way != SubgraphType.induced and isinstance(fanout, (list, tuple)) and len(fanout) > 0
            and all(int(k) == -1 or int(k) > 0 for k in fanout))


def _plain(store: Any) -> bool:
    """Whether edges are a tensor of integers in memory, and there are some."""
    edges = store.get("edge_index")
    return (isinstance(edges, torch.Tensor) and type(edges) is torch.Tensor
            and edges.device.type == "cpu" and edges.dtype in (torch.int64, torch.int32)
            and edges.dim() == 2 and edges.numel() > 0)


def _typed(store: Store, seeds: Any) -> bool:
    """Whether seeds of a store are of a type, as PyG says it: a type, or one and ids."""
    return store.first_nodes is not None and (
        isinstance(seeds, str) or isinstance(seeds, tuple) and len(seeds) in (2, 3)
        and isinstance(seeds[0], (str, tuple)))


def _storable(data: HeteroData) -> bool:
    """Whether a HeteroData can be put to a store: see :func:`gdbgraph.ingest`."""
    relations, used = [kind[1] for kind in stored_kinds(data.edge_types).values()], set()
    for kind in data.edge_types:
        used |= {kind[0], kind[2]}
    return (importlib.util.find_spec("pyarrow") is not None
            and len(set(relations)) == len(relations) > 0 and used == set(data.node_types)
            and all(is_name(n) for n in (*data.node_types, *relations))
            and all(data[t].num_nodes for t in data.node_types)
            and all(_plain(data[k]) and data[k].get("adj_t") is None for k in data.edge_types))


def by_relation(data: Any, fanout: Any) -> list[dict[str, int]] | None:
    """How many neighbors each hop draws of each relation; None of what the server does not draw."""
    kinds = data.metadata()[1] if isinstance(data, Store) else data.edge_types
    try:
        numbers = fanout if isinstance(fanout, NumNeighbors) else NumNeighbors(fanout)
        values = numbers.get_values(kinds)
    except (TypeError, ValueError, AssertionError):
        return None  # PyG says what is wrong
    stored = stored_kinds(kinds)
    hops = [{stored[kind][1]: int(of[h]) for kind, of in values.items()}
            for h in range(numbers.num_hops)]
    if not hops or not all(any(hop.values()) and min(hop.values()) >= -1 for hop in hops):
        return None
    return hops


class _Ahead:
    """What loaders over a server have in common: batches are asked for while the one before is
    worked on, and rows of features come with them."""

    _server: StoreSampler | None = None
    _own: Store | None = None  # the store of a server that no other loader has
    _rows: Mapping[Any, int] = {}  # the types of nodes whose x comes from the server, and its width
    _after: Any = None  # the transform

    def _serve(self, store: Store, fanout: Any, seeds: _Seeds, options: dict[str, Any],
               kwargs: dict[str, Any], made: Any = None) -> StoreSampler:
        """A sampler over the server of a store. kwargs of workers are taken out."""
        idle = {name: kwargs.pop(name) for name in _OF_WORKERS if kwargs.get(name)}
        for name in _OF_WORKERS:
            kwargs.pop(name, None)
        if idle:
            said = ", ".join(f"{k}={v!r}" for k, v in idle.items())
            warnings.warn(f"{said}: no workers are started, the server of gdb makes {AHEAD} "
                          "batches ahead, in memory that is shared; threads=N says on how many cores",
                          stacklevel=4)
        bidirectional = (SubgraphType(options.get("subgraph_type", "directional"))
                         == SubgraphType.bidirectional)
        prepares = options.get("cache") == "belady"
        if prepares:  # it leaves no memory to other loaders
            store = Store(store.path, socket=own_socket(), threads=options.get("threads"))
            self._own = store
        types = None
        if ONE not in seeds:
            types = Types(store, made and made.called)
            seeds = {ONE: np.concatenate([types.in_store(k, v) for k, v in seeds.items()])}
        size, negatives = int(kwargs.get("batch_size") or 1), options.get("negatives")
        if prepares and negatives is not None:  # both ends of edges, and of negatives
            size = 2 * size + 2 * math.ceil(size * negatives)
            if negatives:  # which may be any node
                seeds = {ONE: store.nodes()}
        around = Around(store, fanout, size, seeds[ONE],
                        memory=options.get("memory"), numbers=made and made.numbers,
                        cache=options.get("cache") or "auto")
        self._server = StoreSampler(around, bidirectional, types)
        return self._server

    def _ask(self, index: Any, at: tuple[int, int]) -> Any:
        raise NotImplementedError

    def filter_fn(self, out: Any) -> Any:
        """Joins a sample with what its nodes and edges have."""
        data = super().filter_fn(out)  # type: ignore[misc]
        batch = getattr(out, "served", None)
        if batch is None:
            return data
        if isinstance(data, HeteroData):
            self._fill_types(data, out)
        elif self._rows:
            data.x = torch.from_numpy(batch.x)
            if "num_nodes" not in self._given:
                del data.num_nodes  # x says it
        if isinstance(self._given, Store) and isinstance(data, Data):
            _fill(data, batch)
        return data if self._after is None else self._after(data)

    def _fill_types(self, data: HeteroData, out: Any) -> None:
        """What a batch of several types has of the server."""
        batch, parts, of_store = out.served, out.parts, isinstance(self._given, Store)
        for kind, here in parts.nodes.items():
            dim = self._rows.get(kind)
            if batch.x is not None and dim:
                data[kind].x = torch.from_numpy(rows_of(batch, here, dim))
                if of_store or "num_nodes" not in self._given[kind]:
                    del data[kind].num_nodes  # x says it
        if not of_store:
            return
        if batch.y is not None:
            self._label(data, batch, parts)
        if batch.edge_weight is not None:
            for kind, here in parts.edges.items():
                data[kind].edge_weight = torch.from_numpy(batch.edge_weight[here])

    @staticmethod
    def _label(data: HeteroData, batch: Any, parts: Any) -> None:
        """The labels of the seeds of each type, which are its first nodes."""
        for kind, here in parts.nodes.items():
            seeds = here[: np.searchsorted(here, batch.num_sampled_nodes[0])]
            if len(seeds):
                data[kind].y = torch.from_numpy(batch.y[seeds])

    def _get_iterator(self) -> Iterator[Any]:
        if self._server is None:
            return super()._get_iterator()  # type: ignore[misc]
        indices = iter(self._index_sampler)  # type: ignore[attr-defined]
        if self._server.around.prepares:
            return self._prepared(list(map(_indices, indices)))
        return self._batches(enumerate(indices))

    def _prepared(self, indices: list[Any]) -> Iterator[Any]:
        """The batches of an epoch, all of whose seeds the server knows beforehand."""
        assert self._server is not None
        pin = self.pin_memory and torch.cuda.is_available()  # type: ignore[attr-defined]
        inputs = [self.input_data[index] for index in indices]  # type: ignore[attr-defined]
        negatives = getattr(self, "neg_sampling", None)
        for out in self._server.begin(inputs, negatives) if inputs else ():
            box = [self.filter_fn(out)]
            del out  # this frame must not keep it
            if pin:
                box[0] = box[0].pin_memory()
            yield box.pop()

    def _batches(self, indices: Iterator[tuple[int, Any]]) -> Iterator[Any]:
        assert self._server is not None
        asked: deque[Any] = deque()
        pin = self.pin_memory and torch.cuda.is_available()  # type: ignore[attr-defined]
        epoch: int | None = None
        try:
            while True:
                for number, index in indices:
                    if epoch is None:  # after the sampler has drawn its order
                        epoch = new_epoch()
                    asked.append(self._ask(_indices(index), (epoch, number)))
                    if len(asked) >= AHEAD:
                        break
                if not asked:
                    return
                box = [self.filter_fn(self._server.receive(asked.popleft()))]
                if pin:
                    box[0] = box[0].pin_memory()
                yield box.pop()  # this frame must not keep it
        finally:
            for pending in asked:
                self._server.around.drop(pending.asked)

    def close(self) -> None:
        """Ends the connections to the server. Batches stay valid."""
        if self._server is not None:
            self._server.around.close()
        if self._own is not None:
            self._own.close()


def _indices(index: Any) -> list[int]:
    """The numbers of the inputs of a batch."""
    return index if isinstance(index, list) else [index]


def _fill(data: Any, batch: Any) -> None:
    """What a batch of a store has; y are the labels of the seeds, which are the first nodes."""
    for name in ("edge_index", "x", "y", "edge_type", "edge_weight"):
        value = getattr(batch, name)
        if value is not None:
            data[name] = torch.from_numpy(value)


def _opened(data: Any, threads: int | None) -> Any:
    """A store that is given by its path."""
    if isinstance(data, (str, os.PathLike)):
        return Store(Path(data), threads=threads)
    return data


class NeighborLoader(_Ahead, NodeLoader):  # type: ignore[misc]
    """``torch_geometric.loader.NeighborLoader`` over gdb: its arguments, and its batches.

    ``data`` may also be a :class:`gdbgraph.Store`, or its path, with seeds such as ("user", ids)
    where it is typed. A Data or HeteroData is put to a store on first use: one that goes with this
    process, or in ``root``, where it stays. ``memory`` bounds the server, such as "2GiB", and
    ``threads`` is on how many cores it works. ``cache="belady"`` is for features past memory: all
    batches of an epoch are drawn before the first one comes, so that each row is read once for many
    of them; the loader has a server of its own, with ``memory`` for it.
    """

    def __init__(self, data: Any, num_neighbors: Any, input_nodes: Any = None,
                 input_time: Any = None, replace: bool = False,
                 subgraph_type: SubgraphType | str = "directional", disjoint: bool = False,
                 temporal_strategy: str = "uniform", time_attr: str | None = None,
                 weight_attr: str | None = None, transform: Any = None,
                 transform_sampler_output: Any = None, is_sorted: bool = False,
                 filter_per_worker: bool | None = None, neighbor_sampler: Any = None,
                 directed: bool = True, *, root: str | os.PathLike[str] | None = None,
                 memory: int | str | None = None, threads: int | None = None,
                 cache: str | None = None, **kwargs: Any) -> None:
        if input_time is not None and time_attr is None:
            raise ValueError("input_time gives seeds a time, and 'time_attr' is not set: it says "
                             "which attribute has the times of edges or nodes")
        options = {"replace": replace, "subgraph_type": subgraph_type, "disjoint": disjoint,
                   "temporal_strategy": temporal_strategy, "time_attr": time_attr,
                   "weight_attr": weight_attr, "is_sorted": is_sorted, "directed": directed,
                   "root": root, "memory": memory, "threads": threads, "cache": cache}
        self._given = data = _opened(data, threads)
        if neighbor_sampler is None and transform_sampler_output is None and served(
                data, input_nodes, num_neighbors, options):
            frame = data
            if isinstance(data, Store):
                frame = _frame(data, _typed(data, input_nodes))
                if input_nodes is None and data.num_deleted:
                    input_nodes = torch.from_numpy(data.nodes())
            kind, nodes, _ = get_input_nodes(frame, input_nodes)
            data, neighbor_sampler = _served(self, data, frame, num_neighbors,
                                             {kind: nodes.numpy()}, options, kwargs)
            self._after, transform = transform, None
        elif neighbor_sampler is None:
            neighbor_sampler = _in_process(data, num_neighbors, options, kwargs)
        super().__init__(data=data, node_sampler=neighbor_sampler, input_nodes=input_nodes,
                         input_time=input_time, transform=transform,
                         transform_sampler_output=transform_sampler_output,
                         filter_per_worker=filter_per_worker, **kwargs)

    def _ask(self, index: Any, at: tuple[int, int]) -> Any:
        return self._server.ask_nodes(self.input_data[index], at)  # type: ignore[union-attr]


class LinkNeighborLoader(_Ahead, LinkLoaderOfPyG):  # type: ignore[misc]
    """``torch_geometric.loader.LinkNeighborLoader`` over gdb: its arguments, and its batches. See
    :class:`NeighborLoader` for ``root``, ``memory``, ``threads`` and ``cache``. With ``"belady"``
    the negatives of an epoch are drawn before its first batch, and held with its edges."""

    def __init__(self, data: Any, num_neighbors: Any, edge_label_index: Any = None,
                 edge_label: Any = None, edge_label_time: Any = None, replace: bool = False,
                 subgraph_type: SubgraphType | str = "directional", disjoint: bool = False,
                 temporal_strategy: str = "uniform", neg_sampling: Any = None,
                 neg_sampling_ratio: float | None = None, time_attr: str | None = None,
                 weight_attr: str | None = None, transform: Any = None,
                 transform_sampler_output: Any = None, is_sorted: bool = False,
                 filter_per_worker: bool | None = None, neighbor_sampler: Any = None,
                 directed: bool = True, *, root: str | os.PathLike[str] | None = None,
                 memory: int | str | None = None, threads: int | None = None,
                 cache: str | None = None, **kwargs: Any) -> None:
        if (edge_label_time is not None) != (time_attr is not None):
            absent = "edge_label_time" if edge_label_time is None else "time_attr"
            raise ValueError(f"{absent!r} is not set: edge_label_time gives edges to predict a "
                             "time, and time_attr names the attribute with the times of the graph")
        options = {"replace": replace, "subgraph_type": subgraph_type, "disjoint": disjoint,
                   "temporal_strategy": temporal_strategy, "time_attr": time_attr,
                   "weight_attr": weight_attr, "is_sorted": is_sorted, "directed": directed,
                   "root": root, "memory": memory, "threads": threads, "cache": cache,
                   "negatives": _negatives(neg_sampling, neg_sampling_ratio)}
        self._given = data = _opened(data, threads)
        if neighbor_sampler is None and transform_sampler_output is None and served(
                data, edge_label_index, num_neighbors, options):
            if isinstance(data, Store) and (edge_label_index is None or _without_ends(
                    edge_label_index)):
                raise ValueError("a store has no edge_index: give edge_label_index, or take "
                                 "Store.link_loader for a split of its edges")
            frame = data
            if isinstance(data, Store):
                frame = _frame(data, _typed(data, edge_label_index))
            kind, ends = get_edge_label_index(frame, edge_label_index)
            data, neighbor_sampler = _served(self, data, frame, num_neighbors,
                                             _ends(kind, ends.numpy()), options, kwargs)
            self._after, transform = transform, None
        elif neighbor_sampler is None:
            neighbor_sampler = _in_process(data, num_neighbors, options, kwargs)
        super().__init__(data=data, link_sampler=neighbor_sampler,
                         edge_label_index=edge_label_index, edge_label=edge_label,
                         edge_label_time=edge_label_time, neg_sampling=neg_sampling,
                         neg_sampling_ratio=neg_sampling_ratio, transform=transform,
                         transform_sampler_output=transform_sampler_output,
                         filter_per_worker=filter_per_worker, **kwargs)

    def _ask(self, index: Any, at: tuple[int, int]) -> Any:
        return self._server.ask_edges(  # type: ignore[union-attr]
            self.input_data[index], self.neg_sampling, at)


class HGTLoader(NodeLoader):  # type: ignore[misc]
    """``torch_geometric.loader.HGTLoader`` without torch-sparse: its arguments, and its batches.
    Nodes are drawn in this process."""

    def __init__(self, data: Any, num_samples: Any, input_nodes: Any, is_sorted: bool = False,
                 transform: Any = None, transform_sampler_output: Any = None,
                 filter_per_worker: bool | None = None, **kwargs: Any) -> None:
        sampler = HGTSampler(data, num_samples, is_sorted=is_sorted,
                             share_memory=kwargs.get("num_workers", 0) > 0)
        super().__init__(data=data, node_sampler=sampler, input_nodes=input_nodes,
                         transform=transform, transform_sampler_output=transform_sampler_output,
                         filter_per_worker=filter_per_worker, **kwargs)


#: Nodes by their type, which is ONE where there is one.
_Seeds = dict[Any, np.ndarray]


def _ends(kind: Any, ends: np.ndarray) -> _Seeds:
    """The ends of edges by the type of nodes."""
    if kind is None:
        return {ONE: ends.reshape(-1)}
    if kind[0] == kind[2]:
        return {kind[0]: ends.reshape(-1)}
    return {kind[0]: ends[0], kind[2]: ends[1]}


def _negatives(sampling: Any, ratio: float | None) -> float:
    """How many negatives are drawn for each edge."""
    if sampling is None and not ratio:
        return 0.0
    return float(NegativeSampling.cast(sampling or ("binary", ratio)).amount)


def _without_ends(edges: Any) -> bool:
    """Whether edges to predict are a type alone, or a type and None."""
    return isinstance(edges, tuple) and (isinstance(edges[0], str) or edges[1] is None)


def _frame(store: Store, typed: bool) -> Data | HeteroData:
    """A Data of a store without what the server gives, or a HeteroData."""
    if not typed:
        return Data(num_nodes=store.num_nodes)
    types, made = Types(store), HeteroData()
    for kind, count in types.counts().items():
        made[kind].num_nodes = count
    for edges in types.edges:
        made[edges].edge_index = torch.empty((2, 0), dtype=torch.long)
    return made


def _served(loader: _Ahead, data: Any, frame: Any, fanout: Any, seeds: _Seeds,
            options: dict[str, Any], kwargs: dict[str, Any]) -> tuple[Any, StoreSampler]:
    """What PyG's loader takes for data and its sampler, over the server of a store. frame is data,
    or what stands for a store."""
    if isinstance(frame, HeteroData):
        fanout = by_relation(data, fanout)
    if isinstance(data, Store):
        dims = data.node_dims or dict.fromkeys(data.node_types, data.num_features)
        if isinstance(frame, HeteroData):
            loader._rows = dims
        return frame, loader._serve(data, fanout, seeds, options, kwargs)
    made = put(data, options["root"], options["threads"])
    loader._rows, rest = made.rows, data
    if isinstance(data, HeteroData):
        rest = copy.copy(data)
        for kind in made.rows:
            rest[kind].num_nodes = data[kind].num_nodes
            del rest[kind].x
    elif made.rows:
        rest = Data.from_dict({**data.to_dict(), "num_nodes": data.num_nodes})
        del rest.x
    return rest, loader._serve(made.store, fanout, seeds, options, kwargs, made)


def _in_process(data: Any, fanout: Any, options: dict[str, Any],
                kwargs: dict[str, Any]) -> NeighborSampler:
    """A sampler that draws in this process, and in workers of a DataLoader."""
    if isinstance(data, Store):
        given = [name for name in _OF_SAMPLER if options[name] not in
                 (False, None, "directional", "uniform") and name != "directed"]
        raise ValueError(f"{', '.join(given) or 'num_neighbors'}: over a store neighbors are drawn "
                         "uniformly, a number of each hop; a Data in memory has all of PyG's ways")
    unused = [name for name in _OF_STORE if options.get(name) is not None]
    if unused:
        raise ValueError(f"{', '.join(unused)}: what is asked for is drawn in this process, from "
                         "the tensors of data, and no store is made: leave it out")
    return NeighborSampler(data, NumNeighbors(fanout) if not isinstance(fanout, NumNeighbors)
                           else fanout, **{k: options[k] for k in _OF_SAMPLER},
                           share_memory=kwargs.get("num_workers", 0) > 0)
