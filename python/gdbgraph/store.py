"""An opened store."""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _fork, _wire
from ._convert import as_ids, like
from ._present import Present
from ._pyg_arguments import fanout_of, settle
from ._server import Server, shared_socket
from .batch import arrays_of
from .link import LinkLoader
from .loader import Loader
from .result import Result

# What is asked for at a time. The server has a sixteenth of its memory for all who ask.
_ROW_BYTES = 1 << 20  # of features and of labels
_IDS = 1 << 16  # node ids
_LISTS = 1 << 12  # nodes whose lists, or names, are asked for
_NAME_BYTES = 1 << 16  # of names
_EDGES = 1 << 16


class Store:
    """A store, and the process of gdb that reads it. Lookups may be made from any thread, and in
    processes that were forked or that the store was sent to: each has a connection of its own, as
    long as the process that opened the store has it open."""

    def __init__(self, path: str | os.PathLike[str], *, socket: str | None = None,
                 threads: int | None = None) -> None:
        self.path = str(Path(path).resolve())
        if not Path(self.path, "catalog").exists():
            raise FileNotFoundError(f"{self.path} is no store: gdb ingest makes one")
        self._server = Server(self.path, socket or shared_socket(self.path), threads)
        self._begin()
        about = self._connected().welcome["store"]
        #: The number of nodes, N, with deleted ones, which keep their numbers: see ``nodes()``.
        self.num_nodes: int = about["nodes"]
        #: The number of nodes that were deleted.
        self.num_deleted: int = about.get("deleted", 0)
        #: The number of edges, as they are stored.
        self.num_edges: int = about["edges"]
        #: The width of features, D; 0 for none.
        self.num_features: int = about["dim"]
        #: The names of the columns of features, D of them, as the source has them; None where it
        #: has none.
        self.feature_names: list[str] | None = about.get("feature_names")
        #: class, multi or target; empty without labels.
        self.labels: str = about["labels"]
        #: The names of the classes, in the order of their numbers.
        self.classes: list[str] = about["classes"] or []
        #: The names of the types of edges, in the order of their numbers.
        self.edge_types: list[str] = about["types"] or []
        #: The names of the types of nodes, which ids begin with; empty where they have none.
        self.node_types: list[str] = about["node_types"] or []
        #: The width of the features of each type of nodes, where they differ; else None. Rows are
        #: ``num_features`` wide, and end with zeros.
        self.node_dims: dict[str, int] | None = None
        if about.get("node_dims"):
            self.node_dims = dict(zip(self.node_types, about["node_dims"], strict=True))
        #: The number of nodes of each stored split.
        self.splits: dict[str, int] = about["splits"]
        #: The number of edges of each split of the edges; empty where they have none.
        self.edge_splits: dict[str, int] = about["edge_splits"]
        self._of_type: np.ndarray | None = None
        self._there: Present | None = None
        #: The first node of each type, where each type is a range of nodes; else None.
        self.first_nodes: dict[str, int] | None = None
        if about.get("node_firsts"):
            self.first_nodes = dict(zip(self.node_types, about["node_firsts"], strict=True))
        # The types of the ends of each type of edges there, by number.
        self._ends: list[list[int]] = about.get("relations") or []
        self._metadata: tuple[list[str], list[tuple[str, str, str]]] | None = None
        #: The features of all nodes, which are read as they are asked for.
        self.features = Features(self)

    def _begin(self) -> None:
        """It has no connection yet in this process."""
        self._lock = threading.Lock()
        self._loaders: weakref.WeakSet[Loader] = weakref.WeakSet()
        self._wire: _wire.Wire | None = None
        _fork.follow(self)

    def forked(self) -> None:
        """The connection is the parent's: this process makes one of its own when it asks."""
        if self._wire is not None and not self._wire.closed:
            self._wire.close()
            self._wire = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items()
                if name not in ("_lock", "_loaders", "_wire")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    def _connected(self) -> _wire.Wire:
        """The connection of this process."""
        if self._wire is None:
            self._wire = self._server.connect()
        return self._wire

    def loader(self, fanout: Any = None, batch_size: int = 1000, split: str = "train", *,
               num_neighbors: Any = None, **options: Any) -> Loader:
        """The batches of a split; see :class:`Loader`.

        ``fanout`` is the neighbors drawn at each hop, the first next to the seeds; -1 for all. Of
        typed stores it may be given by relation, ``{"buys": [10, 5], "rev_buys": [5, 0]}``.
        Options: ``input_nodes`` are seeds in the place of a split (ids, or a mask of all nodes);
        ``memory`` bounds the server's process, such as "2GiB", and the first loader of a store
        sets it; ``normalize`` is how features are scaled: auto, as ``gdb train`` does (rows of
        counts are divided by their sum, columns of very different ranges get mean 0 and deviation
        1), none, row or zscore; the first loader of a store sets it too. ``cache`` is its policy:
        auto, static, sieve, none, or belady, which draws all batches of an epoch before the
        first one comes and leaves no memory to other loaders; ``seed``; ``rank`` and
        ``world_size`` among the processes of this machine (torchrun's, if they are not given);
        ``transform`` is called with each batch, and gives what is returned in its place;
        ``drop_last`` leaves out a last batch of fewer seeds. Other arguments of PyG's
        NeighborLoader are taken if they ask for what is done anyway, else the error says what
        there is instead. ``output`` is what a batch is:

        - pyg: a ``Data``, where PyG is installed; torch and numpy: a :class:`Batch`;
        - hetero: a ``HeteroData`` with nodes and edges by their type, as in ``metadata()``: n_id,
          x, y and batch_size (those of the type's seeds, its first nodes), num_sampled_nodes;
          edge_index, edge_weight, num_sampled_edges. Nodes without a type are "node";
        - dgl: ``(input_nodes, output_nodes, blocks)`` as DGL's DataLoader gives it, with ``x`` of
          the first block's sources, ``y`` of the last one's targets, and ``edge_type`` and
          ``edge_weight`` of edges.
        """
        settle(options)
        fanout = fanout_of(fanout, num_neighbors, self.edge_types)
        return self._kept(Loader(self, fanout, batch_size, split, **options))

    def link_loader(self, fanout: Any = None, batch_size: int = 1000, split: str = "train", *,
                    num_neighbors: Any = None, **options: Any) -> LinkLoader:
        """Batches of edges to predict; see :class:`LinkLoader`.

        ``batch_size`` edges are of a split of the edges (``gdb ingest --edge-split`` makes them),
        or of ``edge_label_index``, (2, L) node ids. Options: ``neg_sampling_ratio`` negatives are
        drawn for each edge, 1 if it is not given; and those of ``loader`` but input_nodes. A batch
        is one of ``loader`` with the fields edge_label_index, edge_label, input_id and, where the
        edges have types, edge_label_type of :class:`Batch`.
        """
        settle(options)
        fanout = fanout_of(fanout, num_neighbors, self.edge_types)
        return self._kept(LinkLoader(self, fanout, batch_size, split, **options))

    def _kept(self, loader: Any) -> Any:
        """A loader that is closed with the store."""
        self._loaders.add(loader)
        return loader

    def metadata(self) -> tuple[list[str], list[tuple[str, str, str]]]:
        """The types of nodes, and of edges with those of their ends, as ``to_hetero`` takes them.

        Nodes without a type are "node", edges without one "to". Where only ids have types, the
        first call reads all lists, to see which types of edges are between them.
        """
        if self._metadata is not None:
            return self._metadata
        relations = self.edge_types or ["to"]
        if not self.node_types:
            self._metadata = ["node"], [("node", r, "node") for r in relations]
            return self._metadata
        if self._ends:
            self._metadata = list(self.node_types), [
                (self.node_types[s], r, self.node_types[t])
                for r, (s, t) in zip(relations, self._ends, strict=True)]
            return self._metadata
        kinds = self._kinds()
        shape = (len(self.node_types), len(relations), len(self.node_types))
        seen = np.zeros(int(np.prod(shape)), bool)
        for first in range(0, self.num_nodes, _LISTS):
            nodes = np.arange(first, min(self.num_nodes, first + _LISTS), dtype=np.uint32)
            found = self._arrays(_wire.NEIGHBORS, {"fanout": -1, "seed": 1}, nodes)
            target = np.repeat(kinds[nodes].astype(np.int64), np.diff(found["indptr"]))
            relation = found.get("edge_type", np.zeros_like(target))
            source = kinds[found["n_id"]].astype(np.int64)
            seen[np.unique(np.ravel_multi_index((source, relation, target), shape))] = True
        places = np.argwhere(seen.reshape(shape))
        self._metadata = list(self.node_types), [
            (self.node_types[s], relations[r], self.node_types[t]) for s, r, t in places.tolist()]
        return self._metadata

    def nodes(self) -> np.ndarray:
        """The numbers of all nodes but those that were deleted, int64, ascending. Deleted ones are
        seeds of no loader; their rows are still in ``features``, and they have no neighbors."""
        return self._present().all()

    def _present(self) -> Present:
        """The nodes that are there. Which are not is read once: 8 bytes each."""
        if self._there is None:
            parts = [np.empty(0, np.int64)]
            for first in range(0, self.num_deleted, _IDS):
                parts.append(self._arrays(_wire.DELETED, {
                    "first": first, "count": min(_IDS, self.num_deleted - first)})["n_id"])
            self._there = Present(self.num_nodes, np.concatenate(parts),
                                  (self.first_nodes or {}).values())
        return self._there

    def node_types_of(self, ids: Any) -> Any:
        """The types of nodes, (len(ids),) int64, in the numbers of ``node_types``."""
        nodes, parts = as_ids(ids, self.num_nodes), [np.empty(0, np.int64)]
        for first in range(0, len(nodes), _IDS):
            parts.append(self._arrays(_wire.NODE_TYPES, {}, nodes[first : first + _IDS])
                         ["node_type"])
        return like(ids, np.concatenate(parts))

    def _types_of(self, nodes: np.ndarray) -> np.ndarray:
        """The types of nodes of this store, int64."""
        if not self.node_types:
            return np.zeros(len(nodes), np.int64)
        if self.first_nodes is not None:
            return np.searchsorted(list(self.first_nodes.values()), nodes, side="right") - 1
        return self._kinds()[nodes].astype(np.int64)

    def _kinds(self) -> np.ndarray:
        """The types of all nodes, which are read once: a byte each."""
        if self._of_type is None:
            every = np.empty(self.num_nodes, np.min_scalar_type(len(self.node_types)))
            for first in range(0, self.num_nodes, _IDS):
                nodes = np.arange(first, min(self.num_nodes, first + _IDS))
                every[first : first + len(nodes)] = self.node_types_of(nodes)
            self._of_type = every
        return self._of_type

    def _edges_of(self, split: str) -> tuple[np.ndarray, np.ndarray | None]:
        """The edges of a split of the edges, (2, E) uint32, and their types, uint16, or None."""
        count = self.edge_splits.get(split, 0)
        if not count:
            raise ValueError(
                f"there is no split {split!r} of the edges: the store has "
                f"{', '.join(self.edge_splits) or 'none'}; gdb ingest --edge-split makes them, or "
                "give edge_label_index")
        edges, types = np.empty((2, count), np.uint32), None
        for first in range(0, count, _EDGES):
            got = self._arrays(_wire.EDGES, {"split": split, "first": first,
                                             "count": min(_EDGES, count - first)})
            edges[:, first : first + _EDGES] = got["edge_index"]
            if "edge_type" in got:
                types = np.empty(count, np.uint16) if types is None else types
                types[first : first + _EDGES] = got["edge_type"]
        return edges, types

    def neighbors(self, ids: Any, fanout: int = -1, seed: int = 1) -> tuple[Any, Any]:
        """The in-neighbors of nodes: ``(indptr, neighbors)``, int64.

        Those of ``ids[i]`` are ``neighbors[indptr[i]:indptr[i + 1]]``: all of them, or ``fanout``
        at most, drawn without replacement.
        """
        nodes, offsets, found = as_ids(ids, self.num_nodes), [np.zeros(1, np.int64)], []
        for first in range(0, len(nodes), _LISTS):
            arrays = self._arrays(
                _wire.NEIGHBORS, {"fanout": int(fanout), "seed": int(seed)},
                nodes[first : first + _LISTS],
            )
            offsets.append(arrays["indptr"][1:] + offsets[-1][-1])
            found.append(arrays["n_id"])
        every = np.concatenate(found) if found else np.empty(0, np.int64)
        return like(ids, np.concatenate(offsets)), like(ids, every)

    def labels_of(self, ids: Any) -> Any:
        """The labels of nodes: (len(ids),) int64 classes, -1 for none; or float32 numbers, NaN for
        none; or (len(ids), C) float32 of 0 and 1, NaN where it is unknown. A store without labels
        is a ``ValueError``.
        """
        nodes, parts = as_ids(ids, self.num_nodes), []
        width = len(self.classes) if self.labels == "multi" else 1
        step = max(1, min(_IDS, _ROW_BYTES // (8 * max(1, width))))
        for first in range(0, max(1, len(nodes)), step):
            parts.append(self._arrays(_wire.LABELS, {}, nodes[first : first + step])["y"])
        return like(ids, np.concatenate(parts))

    def external_ids(self, ids: Any) -> list[str]:
        """The ids that nodes had when they were ingested."""
        nodes, names = as_ids(ids, self.num_nodes), []
        for first in range(0, len(nodes), _LISTS):
            names += self._ask(_wire.NAMES, {}, nodes[first : first + _LISTS],
                               answer=_wire.NAMED).body["names"]
        return names

    def node_ids(self, external: Sequence[Any]) -> np.ndarray:
        """The nodes, (len(external),) int64, of ids as they were ingested."""
        parts, names, size = [np.empty(0, np.int64)], [], 0
        for name in map(str, external):
            names.append(name)
            size += len(name) + 4
            if size >= _NAME_BYTES:
                parts.append(self._arrays(_wire.NODES, {"names": names})["n_id"])
                names, size = [], 0
        if names:
            parts.append(self._arrays(_wire.NODES, {"names": names})["n_id"])
        return np.concatenate(parts)

    def query(self, statement: str, params: dict[str, Any] | None = None) -> Result:
        """The rows of a statement of ``gdb shell``, such as a MATCH: see ``Result``, whose
        ``arrow()``, ``pandas()`` and ``dict()`` give them.

        ``params`` are the values of $NAME in a statement of openCypher: numbers, strings, lists,
        dicts and arrays of numpy. What ``gdb shell`` would note beside the rows arrives as
        warnings.
        """
        frame = self._ask(_wire.QUERY, {"statement": statement, "params": params},
                          answer=_wire.TABLE)
        for note in frame.body["notes"] or ():
            warnings.warn(note, stacklevel=2)
        return Result(frame.body["rows"], frame.body["columns"], frame.data)

    def stats(self) -> dict[str, Any]:
        """Counters of the server: bytes read, hits of the cache, times, memory."""
        return self._ask(_wire.STATS, {}, answer=_wire.STATS_NOW).body

    def _arrays(self, kind: int, body: dict[str, Any], data: Any = b"") -> dict[str, np.ndarray]:
        frame = self._ask(kind, body, data, answer=_wire.ARRAYS)
        return arrays_of(frame.data, frame.body["arrays"])

    def _ask(self, kind: int, body: dict[str, Any], data: Any = b"", *,
             answer: int) -> _wire.Frame:
        try:
            with self._lock:
                wire = self._connected()
                if wire.closed:
                    raise ValueError(f"the store {self.path} was closed")
                return wire.ask(kind, body, data, answer=answer)
        except _wire.ServerError as error:
            raise self._server.gone() from error

    def append(self, edges: Any = None, nodes: Any = None, **columns: Any) -> dict[str, Any]:
        """Adds edges and nodes to the store, as :func:`gdbgraph.append` does, and returns what it
        does. This Store goes on reading what it has opened; open the store again to read all."""
        from ._append import append

        return append(self.path, edges, nodes, **columns)

    def close(self) -> None:
        """Ends the connections, those of loaders too, and the server with its last client.

        Batches that were received stay valid.
        """
        for loader in list(self._loaders):
            loader.close()
        if self._wire is not None:
            self._wire.close()
        self._server.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (f"Store({self.path!r}, num_nodes={self.num_nodes}, num_edges={self.num_edges}, "
                f"num_features={self.num_features})")


class Features:
    """The features of a store: ``features[ids]`` reads rows, (len(ids), D) float32, as they are
    stored. Loaders may scale theirs."""

    dtype = np.dtype(np.float32)

    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def shape(self) -> tuple[int, int]:
        """(N, D)."""
        return self._store.num_nodes, self._store.num_features

    def __len__(self) -> int:
        return self._store.num_nodes

    def __getitem__(self, ids: Any) -> Any:
        """Rows of nodes: of ids, a mask or a slice; of one id its row, (D,)."""
        if isinstance(ids, slice):
            ids = np.arange(*ids.indices(len(self)))
        if isinstance(ids, (int, np.integer)):
            return self[np.asarray([ids])][0]
        nodes, width = as_ids(ids, len(self)), self._store.num_features
        out = np.empty((len(nodes), width), np.float32)
        step = max(1, _ROW_BYTES // max(1, 4 * width))
        for first in range(0, len(nodes), step):
            part = self._store._arrays(_wire.ROWS, {}, nodes[first : first + step])["x"]
            out[first : first + step] = part
        return like(ids, out)
