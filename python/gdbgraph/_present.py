"""The nodes that a store has: those that were deleted keep their numbers."""

from __future__ import annotations

import numpy as np


class Present:
    """The nodes of a store that were not deleted, in the order of their numbers."""

    def __init__(self, num_nodes: int, deleted: np.ndarray) -> None:
        self._numbers, self._deleted = num_nodes, deleted  # int64, ascending
        #: How many they are.
        self.count = num_nodes - len(deleted)

    def at(self, ranks: np.ndarray) -> np.ndarray:
        """The numbers of nodes by their places among all that are there."""
        if not len(self._deleted):
            return ranks
        below = self._deleted - np.arange(len(self._deleted))  # nodes that are there, below each
        return ranks + np.searchsorted(below, ranks, side="right")

    def all(self) -> np.ndarray:
        """The numbers of all of them, int64."""
        return np.delete(np.arange(self._numbers), self._deleted)
