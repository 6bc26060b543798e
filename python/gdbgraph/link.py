"""Loaders of edges: batches of edges to predict, and the neighborhoods of their ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _wire
from ._convert import as_ids
from .batch import Batch
from .loader import Loader, place

if TYPE_CHECKING:
    from .store import Store

_EDGES = 1 << 16  # that are asked for at a time


class LinkLoader(Loader):
    """Batches of edges with negatives, and the neighborhoods of their ends; each iteration is an
    epoch, in another order and with other negatives.

    The seeds of a batch are the ends of its edges, each once. A negative is an edge of the batch
    with another target, drawn uniformly among all nodes: it may be an edge by chance. Same seed,
    same batches. Of a split train, the lists that neighbors are drawn from have the edges of the
    batch too, as PyG's LinkNeighborLoader has it. Edges take 8 bytes in this process, 2 more with a
    type, and 8 more for the order of an epoch.
    """

    def __init__(
        self,
        store: Store,
        fanout: Sequence[int],
        batch_size: int = 1000,
        split: str = "train",
        *,
        edge_label_index: Any = None,
        neg_sampling_ratio: float = 1.0,
        seed: int = 1,
        rank: int | None = None,
        world_size: int | None = None,
        output: str | None = None,
        drop_last: bool = False,
        **options: Any,
    ) -> None:
        if output in ("hetero", "dgl"):
            raise ValueError(f"output {output!r} is not for edges: want pyg, torch or numpy")
        if neg_sampling_ratio < 0 or batch_size < 1:
            raise ValueError(f"{neg_sampling_ratio} negatives for each of {batch_size} edges of a "
                             "batch: want none or more, and at least 1")
        self._types: np.ndarray | None = None
        if edge_label_index is None:
            self._edges, self._types = store._edges_of(split)
        else:
            ends = [as_ids(row, store.num_nodes) for row in edge_label_index]
            if len(ends) != 2 or len(ends[0]) != len(ends[1]) or not len(ends[0]):
                raise ValueError("edge_label_index: want the sources and the targets of edges, "
                                 "(2, L)")
            self._edges, split = np.stack(ends), "given"
        self._size, self._negatives = int(batch_size), float(neg_sampling_ratio)
        #: The number of edges of an epoch, of all ranks.
        self.num_edges: int = self._edges.shape[1]
        self._rank, self._world = place(rank, world_size)
        batches = -(-self.num_edges // self._size)
        if self._world > 1:
            batches //= self._world
        if not batches:
            raise ValueError(f"{self.num_edges} edges are fewer batches of {batch_size} than there "
                             f"are clients ({self._world}): take smaller batches")
        ends = np.unique(self._edges)
        most = 2 * self._size + math.ceil(self._size * self._negatives)  # seeds of a batch
        super().__init__(
            store, fanout, max(1, min(most, len(ends) // self._world)), input_nodes=ends,
            seed=seed, rank=self._rank, world_size=self._world, output=output, **options)
        self._settings.update(split=split, batch=self._size, edges=self.num_edges,
                              negatives=self._negatives)
        self._given = "edge_label_index" if edge_label_index is not None else ""
        self._batches = batches - (drop_last and self._is_short(self.num_edges))
        self._order = np.empty(0, np.int64)
        self._epoch = self._index = 0  # of the batch that is asked for next
        self._asked: dict[str, np.ndarray] | None = None  # the edges of the one under way

    def _count(self) -> str:
        return f"num_edges={self.num_edges}, neg_sampling_ratio={self._negatives}"

    def _part(self) -> None:
        super()._part()
        self._asked = None

    def _begin(self, epoch: int, batch: int) -> None:
        self._drop()
        rng = np.random.default_rng([self._settings["seed"], epoch])
        self._order = rng.permutation(self.num_edges)
        self._epoch, self._index = epoch, batch * self._workers + self._worker
        self._request()

    def _request(self) -> None:
        """Asks for the next batch, so that it is made while the one before is worked on."""
        if self._index >= self._batches:
            return
        number = self._index * self._world + self._rank
        seeds, labels = self._labels(number)
        self._index += self._workers
        self._send(_wire.SAMPLE, {"epoch": self._epoch, "index": number,
                                  "done": self._arenas.take_done()}, seeds)
        self._asked = labels

    def _labels(self, number: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The seeds of a batch, and the edges among them."""
        chosen = self._order[number * self._size : (number + 1) * self._size]
        source, target = self._edges[:, chosen]
        drawn = math.ceil(len(chosen) * self._negatives)
        of = np.arange(drawn) % len(chosen)
        rng = np.random.default_rng([self._settings["seed"], self._epoch, number])
        other = rng.integers(0, self.store.num_nodes, drawn, dtype=np.uint32)
        ends = np.concatenate([source, source[of], target, other])
        seeds, places = np.unique(ends, return_inverse=True)
        label = np.zeros(len(chosen) + drawn, np.float32)
        label[: len(chosen)] = 1
        labels = {"edge_label_index": places.reshape(2, -1), "edge_label": label,
                  "input_id": chosen}
        if self._types is not None:
            types = self._types[chosen].astype(np.int64)
            labels["edge_label_type"] = np.concatenate([types, types[of]])
        return seeds, labels

    def _receive(self) -> Batch | None:
        if self._asked is None:
            return None
        batch = self._take()
        self._request()
        return batch

    def _take(self) -> Batch:
        """Receives the batch that was asked for."""
        labels, self._asked = self._asked or {}, None
        batch = self._batch_of(self._answer(_wire.BATCH))
        for name, value in labels.items():
            setattr(batch, name, value)
        return batch

    def _drop(self) -> None:
        """Receives what was asked for and is not wanted."""
        if self._asked is not None:
            self._take()

    def _leave(self, iteration: int) -> None:
        if iteration == self._iteration and self._wire is not None and not self._wire.closed:
            try:
                self._drop()
            except _wire.GdbError:
                pass  # the next request says so
