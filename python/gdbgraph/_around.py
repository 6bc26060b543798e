"""Batches around seeds that are asked for one by one, as samplers of PyG are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _fork, _wire
from ._connection import Connection, Opened
from ._convert import parse_size
from ._pyg_arguments import Fanout, drawn
from .batch import Batch

#: Batches that are asked for ahead, each over a connection of its own, so that the server makes as
#: many at a time.
AHEAD = 2
# Batches of a connection that lie in memory of the server: others are copied, so that a program
# may keep as many as it wants.
_LENT = 2


@dataclass
class EdgeNumbers:
    """The numbers of edges as they were given: those of node v are from starts[v] on in order, as
    its list in the store is."""

    starts: np.ndarray
    order: np.ndarray

    def at(self, targets: np.ndarray, places: np.ndarray) -> np.ndarray:
        """The numbers, int64, of edges by the place in the list of their target."""
        return self.order[self.starts[targets] + places].astype(np.int64, copy=False)

    def of(self, batch: Batch) -> np.ndarray:
        """The numbers of the edges of a batch."""
        return self.at(batch.n_id[batch.edge_index[1]], batch.edge_place)


@dataclass
class RelationNumbers:
    """The numbers of the edges of each relation, in which nodes are those of their type."""

    relations: list[EdgeNumbers]
    firsts: list[int]  # the first node of the type of the targets of each relation

    def of(self, batch: Batch) -> np.ndarray:
        """The numbers of the edges of a batch, each counted in its relation."""
        made = np.empty(batch.edge_index.shape[1], np.int64)
        targets = batch.n_id[batch.edge_index[1]]
        for relation, (numbers, first) in enumerate(zip(self.relations, self.firsts, strict=True)):
            here = np.flatnonzero(batch.edge_type == relation)
            made[here] = numbers.at(targets[here] - first, batch.edge_place[here])
        return made


@dataclass
class AroundBatch:
    """What was drawn around seeds. The first nodes are the seeds as they were given, even if one is
    there twice; fields are those of :class:`gdbgraph.Batch`."""

    n_id: np.ndarray
    edge_index: np.ndarray
    e_id: np.ndarray | None
    x: np.ndarray | None
    y: np.ndarray | None
    edge_type: np.ndarray | None
    edge_weight: np.ndarray | None
    num_sampled_nodes: list[int]
    num_sampled_edges: list[int]


@dataclass
class Asked:
    """A batch that was asked for."""

    connection: Connection
    places: np.ndarray | None  # of each seed among the distinct ones; None where all are


class Around:
    """Draws batches around seeds with a fanout, by the server of a store: one by one, or with
    ``prepares`` those of an epoch, whose seeds the server knows before it begins. It is for one
    thread, and has connections of its own in each process."""

    def __init__(self, store: Opened, fanout: Fanout, batch_size: int, seeds: np.ndarray, *,
                 memory: int | str | None = None,
                 numbers: EdgeNumbers | RelationNumbers | None = None, normalize: str = "none",
                 cache: str = "auto") -> None:
        self.store, self.num_nodes, self._numbers = store, store.num_nodes, numbers
        self.prepares = cache == "belady"
        self._seeds = np.unique(seeds).astype(np.uint32)
        self.batch_size = max(1, min(batch_size, len(self._seeds)))
        self._body = {"split": "given", **drawn(fanout),
                      "batch": self.batch_size, "seed": 1,
                      "memory": parse_size(memory), "cache": cache, "normalize": normalize,
                      "rank": 0, "world": 1 if self.prepares else AHEAD + 2, "own": "around",
                      "places": numbers is not None}
        self._free: list[Connection] = []
        _fork.follow(self)
        connection = self._connect()  # so that errors come now
        #: How the memory of the server is split, for people.
        self.plan: str = self._opened["plan"]
        self._free.append(connection)

    def forked(self) -> None:
        """The connections are the parent's."""
        for connection in self._free:
            connection.close(bye=False)
        self._free = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_free": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _fork.follow(self)

    def _connect(self) -> Connection:
        connection = Connection(self.store._server)
        try:
            self._opened = connection.ask(_wire.OPEN, self._body, self._seeds,
                                          answer=_wire.OPENED).body
        except BaseException:
            connection.close(bye=False)
            raise
        return connection

    def ask(self, seeds: np.ndarray, epoch: int, index: int = 0) -> Asked:
        """Asks for the batch around seeds; epoch and its number there decide the draws."""
        if self.prepares:
            raise ValueError("one batch is asked for: with cache=\"belady\" whole epochs are "
                             "prepared; iterate over the loader")
        distinct, first, inverse = np.unique(seeds, return_index=True, return_inverse=True)
        places = None
        if len(distinct) < len(seeds):
            places = inverse.reshape(-1)
        else:
            distinct = seeds  # in their order
        self._check(distinct)
        connection = self._free.pop() if self._free else self._connect()
        connection.send(_wire.SAMPLE, {"epoch": epoch, "index": index,
                                       "done": connection.take_done()},
                        np.ascontiguousarray(distinct, np.uint32))
        return Asked(connection, places)

    def _check(self, seeds: np.ndarray) -> None:
        if len(seeds) and not 0 <= int(seeds.min()) <= int(seeds.max()) < self.num_nodes:
            raise IndexError(f"seeds are from {seeds.min()} to {seeds.max()}: there are "
                             f"nodes 0 to {self.num_nodes - 1}")

    def begin(self, seeds: Sequence[np.ndarray], epoch: int) -> Asked:
        """Begins an epoch of the seeds of each batch; epoch decides the draws. ``following``
        gives one batch after the other."""
        sizes = [len(part) for part in seeds]
        for i, part in enumerate(seeds):
            if len(part) > self.batch_size:
                raise ValueError(f"batch {i} has {len(part)} seeds: with cache=\"belady\" none has "
                                 f"more than batch_size, which is {self.batch_size}")
            if len(np.unique(part)) < len(part):
                raise ValueError(f"batch {i} has a seed twice: with cache=\"belady\" each is there "
                                 "once; the sampler must not draw with replacement")
            self._check(part)
        connection = self._free.pop() if self._free else self._connect()
        if all(n == self.batch_size for n in sizes[:-1]):
            sizes = []  # as the server cuts them
        try:
            connection.ask(_wire.START, {"epoch": epoch, "first": 0, "sizes": sizes,
                                         "done": connection.take_done()},
                           np.concatenate(seeds).astype(np.uint32), answer=_wire.DONE)
        except BaseException:
            connection.close(bye=False)
            raise
        return Asked(connection, None)

    def leave(self, asked: Asked) -> None:
        """Ends an epoch, of which no more batches are wanted."""
        connection = asked.connection
        if not connection.closed:
            connection.ask(_wire.LEAVE, {"done": connection.take_done()}, answer=_wire.DONE)
            self._free.append(connection)

    def following(self, asked: Asked) -> AroundBatch:
        """The next batch of an epoch that was begun."""
        connection = asked.connection
        connection.send(_wire.NEXT, {"done": connection.take_done()})
        batch = connection.batch(connection.answer(_wire.BATCH))
        return self._numbered(batch.clone() if connection.lent > _LENT else batch)

    def receive(self, asked: Asked) -> AroundBatch:
        """Receives a batch that was asked for."""
        made = self._numbered(self._receive(asked))
        return made if asked.places is None else _repeated(made, asked.places)

    def _numbered(self, batch: Batch) -> AroundBatch:
        """A batch with the numbers of its edges."""
        made = AroundBatch(batch.n_id, batch.edge_index, None, batch.x, batch.y, batch.edge_type,
                           batch.edge_weight, batch.num_sampled_nodes, batch.num_sampled_edges)
        if self._numbers is not None and batch.edge_place is None:
            made.e_id = np.empty(0, np.int64)  # no edge was drawn
        elif self._numbers is not None:
            made.e_id = self._numbers.of(batch)
        return made

    def drop(self, asked: Asked) -> None:
        """Receives a batch that is not wanted."""
        if not asked.connection.closed:
            self._receive(asked)

    def _receive(self, asked: Asked) -> Batch:
        connection = asked.connection
        try:
            batch = connection.batch(connection.answer(_wire.BATCH))
        except _wire.ServerError:
            raise
        except BaseException:
            self._free.append(connection)
            raise
        self._free.append(connection)
        return batch.clone() if connection.lent > _LENT else batch

    def close(self) -> None:
        """Ends the connections. Batches stay valid."""
        for connection in self._free:
            connection.close(bye=True)
        self._free = []

    def __del__(self) -> None:
        if hasattr(self, "_free"):
            self.close()


def _repeated(batch: AroundBatch, places: np.ndarray) -> AroundBatch:
    """The batch around seeds of which some are there twice: seed i is the distinct seed places[i].
    All have the edges of the first hop; other edges lead to the first of them."""
    count, distinct = len(places), batch.num_sampled_nodes[0]
    kept = np.concatenate([places, np.arange(distinct, len(batch.n_id))])  # what each node was
    first = np.empty(len(batch.n_id), np.int64)  # the place of each node that was
    first[kept[::-1]] = np.arange(len(kept) - 1, -1, -1)
    row, col = batch.edge_index
    hop = batch.num_sampled_edges[0] if batch.num_sampled_edges else 0
    # The edges of hop 1 follow each other by target: each seed takes those of what it was.
    starts = np.searchsorted(col[:hop], places)
    lengths = np.searchsorted(col[:hop], places, side="right") - starts
    ends = np.cumsum(lengths)
    taken = (np.arange(int(ends[-1]) if count else 0)
             + np.repeat(starts - (ends - lengths), lengths))
    edges = np.concatenate([taken, np.arange(hop, len(col))])
    target = np.concatenate([np.repeat(np.arange(count), lengths), first[col[hop:]]])

    def of(values: np.ndarray | None, at: np.ndarray) -> np.ndarray | None:
        return None if values is None else values[at]

    sizes = batch.num_sampled_edges
    return replace(
        batch, n_id=batch.n_id[kept], edge_index=np.stack([first[row[edges]], target]),
        e_id=of(batch.e_id, edges), x=of(batch.x, kept), y=of(batch.y, places),
        edge_type=of(batch.edge_type, edges), edge_weight=of(batch.edge_weight, edges),
        num_sampled_nodes=[count, *batch.num_sampled_nodes[1:]],
        num_sampled_edges=[len(taken), *sizes[1:]] if sizes else sizes)
