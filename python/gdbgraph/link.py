"""Loaders of edges: batches of edges to predict, and the neighborhoods of their ends."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _wire
from ._connection import Connection, Opened
from ._convert import as_ids, parse_size
from ._present import Present
from ._pyg_arguments import Fanout, drawn
from .batch import Batch
from .loader import Loader, is_short, place


class LinkLoader(Loader):
    """Batches of edges with negatives, and the neighborhoods of their ends; each iteration is an
    epoch, in another order and with other negatives.

    The seeds of a batch are the ends of its edges, each once. A negative is an edge of the batch
    with another target, drawn uniformly among all nodes but deleted ones, of a typed store among
    those of the target's type: it may be an edge by chance. Same seed, same batches. Of a split
    train, the lists that neighbors are drawn from have the edges of the batch too, as PyG's
    LinkNeighborLoader has it. Edges take 8 bytes in this process, 2 more with a type, and 8 more
    for the order of an epoch.
    """

    def __init__(
        self,
        store: Opened,
        fanout: Fanout,
        batch_size: int = 1000,
        split: str = "train",
        *,
        edge_label_index: Any = None,
        neg_sampling_ratio: float = 1.0,
        memory: int | str | None = None,
        normalize: str = "auto",
        cache: str = "auto",
        seed: int = 1,
        rank: int | None = None,
        world_size: int | None = None,
        output: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        drop_last: bool = False,
    ) -> None:
        if output in ("hetero", "dgl"):
            raise ValueError(f"output {output!r} is not for edges: want pyg, torch or numpy")
        if neg_sampling_ratio < 0 or batch_size < 1:
            raise ValueError(f"{neg_sampling_ratio} negatives for each of {batch_size} edges of a "
                             "batch: want none or more, and at least 1")
        types: np.ndarray | None = None
        if edge_label_index is None:
            edges, types = store._edges_of(split)
        else:
            ends = [as_ids(row, store.num_nodes) for row in edge_label_index]
            if len(ends) != 2 or len(ends[0]) != len(ends[1]) or not len(ends[0]):
                raise ValueError("edge_label_index: want the sources and the targets of edges, "
                                 "(2, L)")
            edges, split = np.stack(ends), "given"
        size, negatives = int(batch_size), float(neg_sampling_ratio)
        #: The number of edges of an epoch, of all ranks.
        self.num_edges: int = edges.shape[1]
        rank, world_size = place(rank, world_size)
        batches = -(-self.num_edges // size)
        if world_size > 1:
            batches //= world_size
        if not batches:
            raise ValueError(f"{self.num_edges} edges are fewer batches of {batch_size} than there "
                             f"are clients ({world_size}): take smaller batches")
        batches -= drop_last and is_short(self.num_edges, size, world_size)
        ends = np.unique(edges)
        most = 2 * size + math.ceil(size * negatives)  # seeds of a batch
        epochs = EdgeEpochs(edges, types, store._present(), batches, size=size,
                            negatives=negatives, seed=int(seed), place=(rank, world_size))
        self._given = "edge_label_index" if edge_label_index is not None else ""
        self._start(
            store, epochs, ends, rank,
            {"split": split, **drawn(fanout), "batch": size, "seed": int(seed),
             "world": world_size, "edges": self.num_edges, "negatives": negatives},
            {"batch": max(1, min(most, len(ends) // world_size)), "memory": parse_size(memory),
             "cache": cache, "normalize": normalize}, output, transform)
        self._batches = batches
        self._counted = f"num_edges={self.num_edges}, neg_sampling_ratio={negatives}"


class EdgeEpochs:
    """Epochs of edges in a random order, with negatives: the server is asked for a batch around
    their ends, while the one before is worked on."""

    def __init__(self, edges: np.ndarray, types: np.ndarray | None, nodes: Present, batches: int,
                 *, size: int, negatives: float, seed: int, place: tuple[int, int]) -> None:
        self._edges, self._types, self._nodes = edges, types, nodes
        self._batches, self._size, self._negatives = batches, size, negatives
        self._seed, (self._rank, self._world) = seed, place
        self._order = np.empty(0, np.int64)
        self._epoch = self._index = 0  # of the batch that is asked for next
        self._workers = 1
        self._asked: dict[str, np.ndarray] | None = None  # the edges of the one under way

    def begin(self, to: Connection, epoch: int, batch: int, share: tuple[int, int]) -> None:
        self.leave(to)
        rng = np.random.default_rng([self._seed, epoch])
        self._order = rng.permutation(self._edges.shape[1])
        worker, self._workers = share
        self._epoch, self._index = epoch, batch * self._workers + worker
        self._request(to)

    def receive(self, to: Connection) -> Batch | None:
        if self._asked is None:
            return None
        batch = self._take(to, self._asked)
        self._request(to)
        return batch

    def leave(self, to: Connection) -> None:
        """Receives what was asked for and is not wanted."""
        if self._asked is not None:
            self._take(to, self._asked)

    def forget(self) -> None:
        self._asked = None

    def _request(self, to: Connection) -> None:
        """Asks for the next batch."""
        if self._index >= self._batches:
            return
        number = self._index * self._world + self._rank
        seeds, labels = self._labels(number)
        self._index += self._workers
        to.send(_wire.SAMPLE, {"epoch": self._epoch, "index": number, "done": to.take_done()},
                seeds)
        self._asked = labels

    def _take(self, to: Connection, labels: dict[str, np.ndarray]) -> Batch:
        """Receives the batch that was asked for."""
        self._asked = None
        batch = to.batch(to.answer(_wire.BATCH))
        for name, value in labels.items():
            setattr(batch, name, value)
        return batch

    def _labels(self, number: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The seeds of a batch, and the edges among them."""
        chosen = self._order[number * self._size : (number + 1) * self._size]
        source, target = self._edges[:, chosen]
        drawn = math.ceil(len(chosen) * self._negatives)
        of = np.arange(drawn) % len(chosen)
        rng = np.random.default_rng([self._seed, self._epoch, number])
        other = self._nodes.like(target[of], rng)
        ends = np.concatenate([source, source[of], target, other])
        seeds, places = np.unique(ends.astype(np.uint32, copy=False), return_inverse=True)
        label = np.zeros(len(chosen) + drawn, np.float32)
        label[: len(chosen)] = 1
        labels = {"edge_label_index": places.reshape(2, -1), "edge_label": label,
                  "input_id": chosen}
        if self._types is not None:
            types = self._types[chosen].astype(np.int64)
            labels["edge_label_type"] = np.concatenate([types, types[of]])
        return seeds, labels
