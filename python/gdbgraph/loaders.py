"""Loaders with the arguments of PyTorch Geometric's.

    from gdbgraph import NeighborLoader  # in the place of torch_geometric.loader

They take a Data, a HeteroData, a (FeatureStore, GraphStore), or a store of gdb. The server draws
and gathers what it can: see :func:`served`. The rest is drawn in this process, with numpy.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.loader import LinkLoader as LinkLoaderOfPyG
from torch_geometric.loader import NodeLoader
from torch_geometric.loader.utils import get_edge_label_index, get_input_nodes
from torch_geometric.sampler.base import NumNeighbors, SubgraphType

from ._around import AHEAD, Around
from ._put import put
from ._samplers import HGTSampler, NeighborSampler, StoreSampler
from ._server import own_socket
from .store import Store

#: Arguments of how a store is made and opened.
_OF_STORE = ("root", "memory", "threads", "cache")
#: Arguments of the processes that a DataLoader would start.
_OF_WORKERS = ("num_workers", "persistent_workers", "prefetch_factor", "multiprocessing_context",
               "timeout", "worker_init_fn")
#: Arguments of PyG's sampler.
_OF_SAMPLER = ("replace", "subgraph_type", "disjoint", "temporal_strategy", "time_attr",
               "weight_attr", "is_sorted", "directed")


def served(data: Any, fanout: Any, options: dict[str, Any]) -> bool:
    """Whether the server of a store draws what is asked for: a number of neighbors, or all, of one
    type of nodes and edges, uniformly, without replacement, times and weights."""
    if isinstance(data, Data):
        edges = data._store.get("edge_index")
        if (not isinstance(edges, torch.Tensor) or edges.device.type != "cpu"
                or edges.dtype not in (torch.int64, torch.int32) or type(edges) is not torch.Tensor
                or edges.dim() != 2 or not edges.numel()
                or "adj_t" in data or "adj" in data):
            return False
    elif not isinstance(data, Store):
        return False
    usual = {"replace": False, "disjoint": False, "time_attr": None, "weight_attr": None,
             "directed": True}
    return (isinstance(fanout, (list, tuple)) and len(fanout) > 0
            and all(int(k) == -1 or int(k) > 0 for k in fanout)
            and all(options.get(name, value) == value for name, value in usual.items())
            and SubgraphType(options.get("subgraph_type", "directional")) != SubgraphType.induced)


class _Ahead:
    """What loaders over a server have in common: batches are asked for while the one before is
    worked on, and rows of features come with them."""

    _server: StoreSampler | None = None
    _served_data: Any = None  # what the server does not have of a Data
    _rows = False  # whether x comes from the server
    _after: Any = None  # the transform

    def _serve(self, store: Store, fanout: Any, seeds: Any, options: dict[str, Any],
               kwargs: dict[str, Any], numbers: Any = None) -> StoreSampler:
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
        if options.get("cache") == "belady":  # it leaves no memory to other loaders
            store = Store(store.path, socket=own_socket(), threads=options.get("threads"))
        around = Around(store, fanout, int(kwargs.get("batch_size") or 1), seeds,
                        memory=options.get("memory"), numbers=numbers,
                        cache=options.get("cache") or "auto")
        self._server = StoreSampler(around, bidirectional)
        return self._server

    def _ask(self, index: Any) -> Any:
        raise NotImplementedError

    def filter_fn(self, out: Any) -> Any:
        """Joins a sample with what its nodes and edges have."""
        data = super().filter_fn(out)  # type: ignore[misc]
        batch = getattr(out, "served", None)
        if batch is None:
            return data
        if self._rows:
            data.x = torch.from_numpy(batch.x)
            if "num_nodes" not in self._given:
                del data.num_nodes  # x says it
        if isinstance(self._given, Store):
            _fill(data, batch)
        return data if self._after is None else self._after(data)

    def _get_iterator(self) -> Iterator[Any]:
        if self._server is None:
            return super()._get_iterator()  # type: ignore[misc]
        indices = iter(self._index_sampler)  # type: ignore[attr-defined]
        if self._server.around.prepares:
            return self._prepared(list(map(_indices, indices)))
        return self._batches(indices)

    def _prepared(self, indices: list[Any]) -> Iterator[Any]:
        """The batches of an epoch, all of whose seeds the server knows beforehand."""
        assert self._server is not None
        pin = self.pin_memory and torch.cuda.is_available()  # type: ignore[attr-defined]
        inputs = [self.input_data[index] for index in indices]  # type: ignore[attr-defined]
        for out in self._server.begin(inputs) if inputs else ():
            box = [self.filter_fn(out)]
            del out  # this frame must not keep it
            if pin:
                box[0] = box[0].pin_memory()
            yield box.pop()

    def _batches(self, indices: Iterator[Any]) -> Iterator[Any]:
        assert self._server is not None
        asked: deque[Any] = deque()
        pin = self.pin_memory and torch.cuda.is_available()  # type: ignore[attr-defined]
        try:
            while True:
                for index in indices:
                    asked.append(self._ask(_indices(index)))
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

    ``data`` may also be a :class:`gdbgraph.Store`, or its path. A Data is put to a store on first
    use: one that goes with this process, or in ``root``, where it stays. ``memory`` bounds the
    server, such as "2GiB", and ``threads`` is on how many cores it works. ``cache="belady"`` is for
    features past memory: all batches of an epoch are drawn before the first one comes, so that each
    row is read once for many of them; the loader has a server of its own, with ``memory`` for it.
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
            raise ValueError("input_time gives seeds a time, but time_attr does not say which "
                             "attribute has the times of edges or nodes: give both")
        options = {"replace": replace, "subgraph_type": subgraph_type, "disjoint": disjoint,
                   "temporal_strategy": temporal_strategy, "time_attr": time_attr,
                   "weight_attr": weight_attr, "is_sorted": is_sorted, "directed": directed,
                   "root": root, "memory": memory, "threads": threads, "cache": cache}
        self._given = data = _opened(data, threads)
        if neighbor_sampler is None and transform_sampler_output is None and served(
                data, num_neighbors, options):
            nodes = _nodes_of(data, input_nodes)
            data, neighbor_sampler = _served(self, data, num_neighbors, nodes, options, kwargs)
            self._after, transform = transform, None
        elif neighbor_sampler is None:
            neighbor_sampler = _in_process(data, num_neighbors, options, kwargs)
        super().__init__(data=data, node_sampler=neighbor_sampler, input_nodes=input_nodes,
                         input_time=input_time, transform=transform,
                         transform_sampler_output=transform_sampler_output,
                         filter_per_worker=filter_per_worker, **kwargs)

    def _ask(self, index: Any) -> Any:
        return self._server.ask_nodes(self.input_data[index])  # type: ignore[union-attr]


class LinkNeighborLoader(_Ahead, LinkLoaderOfPyG):  # type: ignore[misc]
    """``torch_geometric.loader.LinkNeighborLoader`` over gdb: its arguments, and its batches. See
    :class:`NeighborLoader` for ``root``, ``memory`` and ``threads``."""

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
                 **kwargs: Any) -> None:
        if (edge_label_time is not None) != (time_attr is not None):
            raise ValueError("edge_label_time gives edges to predict a time, and time_attr names "
                             "the attribute with the times of the graph: give both, or neither")
        options = {"replace": replace, "subgraph_type": subgraph_type, "disjoint": disjoint,
                   "temporal_strategy": temporal_strategy, "time_attr": time_attr,
                   "weight_attr": weight_attr, "is_sorted": is_sorted, "directed": directed,
                   "root": root, "memory": memory, "threads": threads}
        self._given = data = _opened(data, threads)
        if neighbor_sampler is None and transform_sampler_output is None and served(
                data, num_neighbors, options):
            if isinstance(data, Store) and edge_label_index is None:
                raise ValueError("a store has no edge_index: give edge_label_index, or take "
                                 "Store.link_loader for a split of its edges")
            ends = edge_label_index
            if isinstance(data, Data):
                _, ends = get_edge_label_index(data, edge_label_index)
            data, neighbor_sampler = _served(self, data, num_neighbors,
                                             np.asarray(ends).reshape(-1), options, kwargs)
            self._after, transform = transform, None
        elif neighbor_sampler is None:
            neighbor_sampler = _in_process(data, num_neighbors, options, kwargs)
        super().__init__(data=data, link_sampler=neighbor_sampler,
                         edge_label_index=edge_label_index, edge_label=edge_label,
                         edge_label_time=edge_label_time, neg_sampling=neg_sampling,
                         neg_sampling_ratio=neg_sampling_ratio, transform=transform,
                         transform_sampler_output=transform_sampler_output,
                         filter_per_worker=filter_per_worker, **kwargs)

    def _ask(self, index: Any) -> Any:
        return self._server.ask_edges(  # type: ignore[union-attr]
            self.input_data[index], self.neg_sampling)


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


def _nodes_of(data: Any, input_nodes: Any) -> np.ndarray:
    """The nodes of batches, as ids."""
    _, nodes, _ = get_input_nodes(_frame(data) if isinstance(data, Store) else data, input_nodes)
    return nodes.numpy()


def _frame(store: Store) -> Data:
    """A Data of a store without what the server gives."""
    return Data(num_nodes=store.num_nodes)


def _served(loader: _Ahead, data: Any, fanout: Any, seeds: np.ndarray, options: dict[str, Any],
            kwargs: dict[str, Any]) -> tuple[Data, StoreSampler]:
    """What PyG's loader takes for data and its sampler, over the server of a store."""
    if isinstance(data, Store):
        return _frame(data), loader._serve(data, fanout, seeds, options, kwargs)
    made = put(data, options["root"], options["threads"])
    loader._rows = made.rows
    rest = data
    if made.rows:
        rest = Data.from_dict({**data.to_dict(), "num_nodes": data.num_nodes})
        del rest.x
    return rest, loader._serve(made.store, fanout, seeds, options, kwargs, made.numbers)


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
