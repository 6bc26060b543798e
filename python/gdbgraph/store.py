"""An opened store."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from . import _wire
from ._convert import as_ids, like
from ._server import Server, shared_socket
from .batch import arrays_of
from .loader import Loader

_ROW_BYTES = 64 << 20  # of features that are asked for at a time
_IDS = 1 << 20  # node ids likewise


class Store:
    """A store, and the process of gdb that reads it. Lookups may be made from any thread."""

    def __init__(self, path: str | os.PathLike[str], *, socket: str | None = None,
                 threads: int | None = None) -> None:
        self.path = str(Path(path).resolve())
        if not Path(self.path, "catalog").exists():
            raise FileNotFoundError(f"{self.path} is no store: gdb ingest makes one")
        self._server = Server(self.path, socket or shared_socket(self.path), threads)
        self._lock = threading.Lock()
        self._loaders: weakref.WeakSet[Loader] = weakref.WeakSet()
        self._wire = self._server.connect()
        about = self._wire.welcome["store"]
        #: The number of nodes, N.
        self.num_nodes: int = about["nodes"]
        #: The number of edges, as they are stored.
        self.num_edges: int = about["edges"]
        #: The width of features, D; 0 for none.
        self.num_features: int = about["dim"]
        #: class, multi or target; empty without labels.
        self.labels: str = about["labels"]
        #: The names of the classes, in the order of their numbers.
        self.classes: list[str] = about["classes"] or []
        #: The names of the types of edges, in the order of their numbers.
        self.edge_types: list[str] = about["types"] or []
        #: The number of nodes of each stored split.
        self.splits: dict[str, int] = about["splits"]
        #: The features of all nodes, which are read as they are asked for.
        self.features = Features(self)

    def loader(self, fanout: Sequence[int], batch_size: int = 1000, split: str = "train",
               **options: Any) -> Loader:
        """The batches of a split; see :class:`Loader`.

        ``fanout`` is the neighbors drawn at each hop, the first next to the seeds; -1 for all.
        Options: ``input_nodes`` are seeds in the place of a split (ids, or a mask of all nodes);
        ``memory`` bounds the server's process, such as "2GiB", and the first loader of a store
        sets it; ``cache`` is its policy; ``seed``; ``rank`` and ``world_size`` among the processes
        of this machine (torchrun's, if they are not given); ``output`` is pyg, torch, numpy, or
        hetero: a ``HeteroData`` of nodes "node" whose edges stand by their type.
        """
        loader = Loader(self, fanout, batch_size, split, **options)
        self._loaders.add(loader)
        return loader

    def neighbors(self, ids: Any, fanout: int = -1, seed: int = 1) -> tuple[Any, Any]:
        """The in-neighbors of nodes: ``(indptr, neighbors)``, int64.

        Those of ``ids[i]`` are ``neighbors[indptr[i]:indptr[i + 1]]``: all of them, or ``fanout``
        at most, drawn without replacement.
        """
        nodes, offsets, found = as_ids(ids, self.num_nodes), [np.zeros(1, np.int64)], []
        for first in range(0, len(nodes), _IDS):
            arrays = self._arrays(
                _wire.NEIGHBORS, {"fanout": int(fanout), "seed": int(seed)},
                nodes[first : first + _IDS],
            )
            offsets.append(arrays["indptr"][1:] + offsets[-1][-1])
            found.append(arrays["n_id"])
        every = np.concatenate(found) if found else np.empty(0, np.int64)
        return like(ids, np.concatenate(offsets)), like(ids, every)

    def labels_of(self, ids: Any) -> Any:
        """The labels of nodes: (len(ids),) int64 classes, -1 for none; or float32 numbers, NaN for
        none; or (len(ids), C) float32 of 0 and 1. A store without labels is a ``ValueError``.
        """
        nodes, parts = as_ids(ids, self.num_nodes), []
        step = max(1, _IDS // max(1, len(self.classes) if self.labels == "multi" else 1))
        for first in range(0, max(1, len(nodes)), step):
            parts.append(self._arrays(_wire.LABELS, {}, nodes[first : first + step])["y"])
        return like(ids, np.concatenate(parts))

    def external_ids(self, ids: Any) -> list[str]:
        """The ids that nodes had when they were ingested."""
        nodes, names = as_ids(ids, self.num_nodes), []
        for first in range(0, len(nodes), _IDS):
            names += self._ask(_wire.NAMES, {}, nodes[first : first + _IDS],
                               answer=_wire.NAMED).body["names"]
        return names

    def node_ids(self, external: Sequence[Any]) -> np.ndarray:
        """The nodes, (len(external),) int64, of ids as they were ingested."""
        names = [str(e) for e in external]
        return self._arrays(_wire.NODES, {"names": names})["n_id"]

    def query(self, statement: str, to: str | None = None) -> Any:
        """The result of a statement of ``gdb shell``, such as a MATCH.

        ``to`` is "pandas", "arrow", or "dict" of lists by column; None is pandas where it is
        installed.
        """
        table = self._ask(_wire.QUERY, {"statement": statement}, answer=_wire.TABLE).body
        names = table["columns"] or []
        columns = {n: [row[i] for row in table["rows"]] for i, n in enumerate(names)}
        if to == "dict":
            return columns
        if to == "arrow":
            import pyarrow

            return pyarrow.table(columns)
        try:
            import pandas
        except ImportError:
            if to is not None:
                raise
            return columns
        return pandas.DataFrame(columns, columns=names)

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
                return self._wire.ask(kind, body, data, answer=answer)
        except _wire.ServerError as error:
            raise self._server.gone() from error

    def close(self) -> None:
        """Ends the connections, those of loaders too, and the server with its last client.

        Batches that were received stay valid.
        """
        for loader in list(self._loaders):
            loader.close()
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
    """The features of a store: ``features[ids]`` reads rows, (len(ids), D) float32."""

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
