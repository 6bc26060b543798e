"""Batches of a store by the types of their nodes and edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._connection import Opened

#: A type of edges: the types of its ends around the name of its relation.
EdgeType = tuple[str, str, str]
#: The type of nodes, and of edges, where there is one, as PyG says it.
ONE = None


@dataclass
class Parts:
    """Where the nodes and edges of each type are in a batch."""

    nodes: dict[str, np.ndarray]  # places in n_id, ascending
    edges: dict[EdgeType, np.ndarray]  # places in edge_index, ascending
    numbers: np.ndarray  # (N,) int64: of each node among those of its type

    def ends(self, batch: Any, kind: EdgeType) -> np.ndarray:
        """The edges of a type, (2, E) int64, counted among the nodes of their types."""
        return self.numbers[batch.edge_index[:, self.edges[kind]]]


class Types:
    """The types of a store, which part its batches."""

    def __init__(self, store: Opened, called: Mapping[EdgeType, EdgeType] | None = None) -> None:
        self._store = store
        #: The names of the types of nodes, and the types of edges.
        self.nodes, self.edges = store.metadata()
        kinds = {name: i for i, name in enumerate(self.nodes)}
        relations = {name: i for i, name in enumerate(store.edge_types or ["to"])}
        self._relations, self._firsts = len(relations), store.first_nodes or {}
        codes = {t: self._code(kinds[t[0]], relations[t[1]], kinds[t[2]]) for t in self.edges}
        if called is not None:  # what types of edges are called that have other names in the store
            codes = {called[t]: code for t, code in codes.items()}
            self.edges = list(codes)
        self._codes = codes

    def counts(self) -> dict[str, int]:
        """The number of nodes of each type of a store whose types are ranges."""
        firsts = [*self._firsts.values(), self._store.num_nodes]
        return {name: b - a for name, a, b in zip(self.nodes, firsts, firsts[1:], strict=False)}

    def in_store(self, kind: str, nodes: np.ndarray) -> np.ndarray:
        """The numbers in the store of nodes of a type, where types are ranges."""
        return nodes + self._firsts[kind]

    def in_type(self, kind: str, nodes: np.ndarray) -> np.ndarray:
        """The numbers among those of their type of nodes of the store, where types are ranges."""
        return nodes - self._firsts[kind]

    def _code(self, source: Any, relation: Any, target: Any) -> Any:
        """The number of a type of edges."""
        return (source * self._relations + relation) * len(self.nodes) + target

    def parts(self, batch: Any) -> Parts:
        """The parts of a batch."""
        kinds = self._store._types_of(batch.n_id)
        nodes, numbers = {}, np.empty(len(kinds), np.int64)
        for kind, name in enumerate(self.nodes):
            nodes[name] = here = np.flatnonzero(kinds == kind)
            numbers[here] = np.arange(len(here))
        source, target = batch.edge_index
        relation = 0 if batch.edge_type is None else batch.edge_type
        codes = self._code(kinds[source], relation, kinds[target])
        edges = {kind: np.flatnonzero(codes == code) for kind, code in self._codes.items()}
        return Parts(nodes, edges, numbers)


def by_hop(places: np.ndarray, sizes: Sequence[int]) -> list[int]:
    """How many of the places are in each hop, of which sizes are given."""
    return np.diff(np.searchsorted(places, np.cumsum(sizes)), prepend=0).tolist()
