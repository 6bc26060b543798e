"""The nodes that a store has: those that were deleted keep their numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np


class Present:
    """The nodes of a store that were not deleted, in the order of their numbers. ``first_nodes``
    are the first of each type, where each type is a range of nodes."""

    def __init__(self, num_nodes: int, deleted: np.ndarray,
                 first_nodes: Iterable[int] = ()) -> None:
        self._numbers, self._deleted = num_nodes, deleted  # int64, ascending
        #: How many they are.
        self.count = num_nodes - len(deleted)
        self._firsts = np.asarray(list(first_nodes) or [0])
        bounds = np.append(self._firsts, num_nodes)
        self._places = bounds - np.searchsorted(deleted, bounds)  # of each type, and the end

    def like(self, nodes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A node of the type of each node, drawn evenly."""
        if len(self._firsts) == 1:
            return self.at(rng.integers(0, self.count, len(nodes), dtype=np.uint32))
        types = np.searchsorted(self._firsts, nodes, side="right") - 1
        low, high = self._places[types], self._places[types + 1]
        return self.at(rng.integers(low, high, dtype=np.uint32))

    def at(self, ranks: np.ndarray) -> np.ndarray:
        """The numbers of nodes by their places among all that are there."""
        if not len(self._deleted):
            return ranks
        below = self._deleted - np.arange(len(self._deleted))  # nodes that are there, below each
        return ranks + np.searchsorted(below, ranks, side="right")

    def all(self) -> np.ndarray:
        """The numbers of all of them, int64."""
        return np.delete(np.arange(self._numbers), self._deleted)
