"""A batch as arrays, and the memory that it lies in."""

from __future__ import annotations

import math
import mmap
import os
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

_TYPES = {name: np.dtype(name) for name in ("f4", "i8", "u4")}


class _Lease(np.ndarray):
    """The bytes of a batch. Arrays made of it keep it alive; when it goes, the arena is given back.

    A subclass, so that numpy keeps it as the base of views and not the mapping below it.
    """


class Arenas:
    """The memory that a server has lent to a connection, and what is to be given back.

    ``give_back`` gets the arenas of a batch that is no longer used, at once, and says whether it
    could take them: else they are given back with the next request.
    """

    def __init__(self, give_back: Callable[[list[int]], bool]) -> None:
        self._maps: dict[int, mmap.mmap] = {}
        self._done: deque[int] = deque()
        self._give_back = give_back
        #: The number of batches that are in use.
        self.lent = 0
        self._interrupted = False  # Ctrl-C came while an arena was given back

    def arrays(self, body: dict[str, Any], file: int) -> dict[str, np.ndarray]:
        """The arrays of a batch, where the server has written them."""
        try:
            for gone in body["gone"] or ():
                self._maps.pop(gone, None)
            if body["new"]:
                flags = mmap.MAP_SHARED | getattr(mmap, "MAP_POPULATE", 0)
                self._maps[body["arena"]] = mmap.mmap(file, body["bytes"], flags=flags)
        finally:
            if file >= 0:
                os.close(file)
        lease = np.frombuffer(self._maps[body["arena"]], dtype=np.uint8).view(_Lease)
        self.lent += 1
        weakref.finalize(lease, self._over, body["arena"]).atexit = False
        return {a["name"]: _array(lease, a) for a in body["arrays"]}

    def _over(self, arena: int) -> None:
        """Gives an arena back that is no longer used. It is called wherever the last reference
        goes, in the middle of a request too."""
        self.lent -= 1
        try:
            given = self._give_back([arena])
        except KeyboardInterrupt:  # nothing that is raised here reaches anybody
            self._interrupted = given = True
        if not given:
            self._done.append(arena)

    def check_interrupt(self) -> None:
        """Raises the KeyboardInterrupt that came while an arena was given back."""
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt

    def take_done(self) -> list[int]:
        """The arenas that are no longer used since the last call."""
        done = []
        while self._done:
            done.append(self._done.popleft())
        return done


def _array(data: np.ndarray, place: dict[str, Any]) -> np.ndarray:
    """An array in bytes, without a copy."""
    kind, shape, first = _TYPES[place["type"]], place["shape"], place["offset"]
    end = first + math.prod(shape) * kind.itemsize
    return data[first:end].view(kind, np.ndarray).reshape(shape)


def arrays_of(data: bytearray, places: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """The arrays in the data of a frame."""
    whole = np.frombuffer(data, dtype=np.uint8)
    return {a["name"]: _array(whole, a) for a in places}


@dataclass
class Batch:
    """A sampled neighborhood: N nodes, the seeds first, and E edges, those of the first hop first.

    Arrays are numpy's or torch's, as the loader was asked for. They lie in memory that the server
    uses again once none of them is referenced: :meth:`clone` what you keep for long.
    """

    #: (N, D) float32: the features of all nodes, or None where the store has none.
    x: Any
    #: (N,) int64: the nodes, in the numbers of the store.
    n_id: Any
    #: (2, E) int64: from neighbor to the node whose neighbor it is, counted in n_id.
    edge_index: Any
    #: (M + 1,) int64: where the edges of each of the first M nodes begin, and E. The others are of
    #: the last hop, and have no edges of their own.
    indptr: Any
    #: (batch_size,) int64 classes, -1 for none, or float32 numbers, NaN for none; or
    #: (batch_size, C) float32 of 0 and 1. None where the store has no labels.
    y: Any
    #: (E,) int64: the type of each edge, in the numbers of ``Store.edge_types``; None without.
    edge_type: Any
    #: (E,) float32: the weight of each edge, or None.
    edge_weight: Any
    #: The number of seeds: the first nodes.
    batch_size: int
    #: Nodes that each hop adds; the first are the seeds.
    num_sampled_nodes: list[int]
    #: Edges of each hop.
    num_sampled_edges: list[int]
    #: The epoch, and the number of the batch in it, over all ranks.
    epoch: int
    index: int
    #: Of a link loader, L edges to predict: (2, L) int64, their source and target, counted in n_id,
    #: the edges of the split first and then those that were drawn.
    edge_label_index: Any = None
    #: (L,) float32: 1 for an edge of the split, 0 for one that was drawn.
    edge_label: Any = None
    #: (L,) int64: the type of each, of a drawn edge that of the edge whose target was replaced.
    edge_label_type: Any = None
    #: The numbers of the edges of the split, int64.
    input_id: Any = None
    #: (E,) int64: the place of each edge in the list of its target, where it was asked for.
    edge_place: Any = None

    def hop(self, k: int) -> tuple[Any, Any]:
        """Hop k, from 0, as compressed columns: ``(indptr, indices)``.

        Column i is node ``sum(num_sampled_nodes[:k]) + i``; indices are counted in n_id.
        """
        first = sum(self.num_sampled_nodes[:k])
        last = first + self.num_sampled_nodes[k]
        start = sum(self.num_sampled_edges[:k])
        end = start + self.num_sampled_edges[k]
        return self.indptr[first : last + 1] - start, self.edge_index[0, start:end]

    def clone(self) -> Batch:
        """A copy in memory of its own."""
        changes = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if hasattr(value, "clone"):
                changes[field.name] = value.clone()
            elif isinstance(value, np.ndarray):
                changes[field.name] = value.copy()
        return replace(self, **changes)


def batch_of(body: dict[str, Any], arrays: dict[str, np.ndarray]) -> Batch:
    """The batch that a frame describes."""
    return Batch(
        x=arrays.get("x"), n_id=arrays["n_id"], edge_index=arrays["edge_index"],
        indptr=arrays["indptr"], y=arrays.get("y"), edge_type=arrays.get("edge_type"),
        edge_weight=arrays.get("edge_weight"), batch_size=body["seeds"],
        num_sampled_nodes=body["hop_nodes"], num_sampled_edges=body["hop_edges"] or [],
        epoch=body["epoch"], index=body["index"], edge_place=arrays.get("edge_place"),
    )
