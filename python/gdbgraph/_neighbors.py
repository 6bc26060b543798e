"""Neighbor sampling over lists in memory, by the semantics of PyTorch Geometric.

It is for what the server does not draw: lists of several types, times, weights, draws with
replacement, disjoint and induced subgraphs. All is done for a whole hop at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

_NO_EDGES = (np.empty(0, np.int64),) * 3  # row, col, edge

Kind = Any  # the type of nodes: a string, or None where there is one


@dataclass
class Lists:
    """The in-neighbors of the nodes of a type: those of node v are row[starts[v]:starts[v + 1]]."""

    source: Kind
    target: Kind
    starts: np.ndarray
    row: np.ndarray
    time: np.ndarray | None = None  # of each entry
    weight: np.ndarray | None = None


@dataclass
class Drawing:
    """How entries of a list are drawn."""

    replace: bool = False
    disjoint: bool = False
    last: bool = False  # those of the latest times
    node_time: Mapping[Kind, np.ndarray] = field(default_factory=dict)


class Found:
    """The nodes of a type that a sample has found, in the order in which it found them."""

    def __init__(self, place: np.ndarray | None, nodes: int) -> None:
        self._place = place  # of each node among those found, or -1; None for disjoint samples
        self._nodes = nodes
        self.ids = np.empty(0, np.int64)
        self.batch = np.empty(0, np.int64)  # the seed that each is of, in a disjoint sample

    def seed(self, ids: np.ndarray, batch: np.ndarray) -> None:
        """Adds seeds, each of which is a node of the sample even if it occurs twice."""
        first = len(self.ids)
        self.ids = np.concatenate([self.ids, ids])
        self.batch = np.concatenate([self.batch, batch])
        if self._place is not None:
            # The first place of an id that occurs twice counts, so it is written last.
            self._place[ids[::-1]] = np.arange(first + len(ids) - 1, first - 1, -1)

    def add(self, ids: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """Adds nodes that are not there yet, and returns the places of all."""
        if self._place is None:
            return self._add_disjoint(ids, batch)
        new = ids[self._place[ids] < 0]
        if len(new):
            _, first = np.unique(new, return_index=True)
            new = new[np.sort(first)]
            self._place[new] = len(self.ids) + np.arange(len(new))
            self.ids = np.concatenate([self.ids, new])
        return self._place[ids].astype(np.int64)

    def _add_disjoint(self, ids: np.ndarray, batch: np.ndarray) -> np.ndarray:
        had = self.batch * self._nodes + self.ids
        keys = np.concatenate([had, batch * self._nodes + ids])
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        new = np.sort(first[first >= len(had)])
        self.ids = np.concatenate([self.ids, ids[new - len(had)]])
        self.batch = np.concatenate([self.batch, batch[new - len(had)]])
        place = first.copy()  # of each distinct key: where it was, or behind what was there
        place[first >= len(had)] = len(had) + np.searchsorted(new, first[first >= len(had)])
        return place[inverse.reshape(-1)[len(had):]]

    def forget(self) -> None:
        """Clears the places for the next sample."""
        if self._place is not None:
            self._place[self.ids] = -1


@dataclass
class Sample:
    """A sampled neighborhood, by type of nodes or of lists. Edges are numbered as entries of the
    lists; row and col are places among the nodes of the type."""

    nodes: dict[Kind, np.ndarray]
    batch: dict[Kind, np.ndarray] | None
    row: dict[Any, np.ndarray]
    col: dict[Any, np.ndarray]
    edge: dict[Any, np.ndarray]
    hop_nodes: dict[Kind, list[int]]
    hop_edges: dict[Any, list[int]]


class Graph:
    """Lists by type, from which samples are drawn by one thread at a time."""

    def __init__(self, lists: Mapping[Any, Lists], num_nodes: Mapping[Kind, int]) -> None:
        self.lists, self.num_nodes = dict(lists), dict(num_nodes)
        self._places: dict[Kind, np.ndarray] = {}

    def found(self, disjoint: bool = False) -> dict[Kind, Found]:
        """An empty sample of each type of nodes."""
        return {kind: Found(None if disjoint else self._place(kind), count)
                for kind, count in self.num_nodes.items()}

    def _place(self, kind: Kind) -> np.ndarray:
        if kind not in self._places:
            self._places[kind] = np.full(self.num_nodes[kind], -1, np.int32)
        return self._places[kind]

    def sample(self, seeds: Mapping[Kind, np.ndarray], fanout: Mapping[Any, Sequence[int]],
               how: Drawing, seed_time: Mapping[Kind, np.ndarray] | None,
               rng: np.random.Generator) -> Sample:
        """Draws the neighborhood of seeds, hop by hop; fanout has a number for each hop."""
        found, times = self.found(how.disjoint), []
        for kind, ids in seeds.items():
            count = sum(len(f.ids) for f in found.values())
            found[kind].seed(ids, np.arange(count, count + len(ids)))
            times.append(_times_of(kind, ids, how, seed_time))
        limit = (np.concatenate(times) if times and all(t is not None for t in times) else None)
        out = Sample({}, None, {}, {}, {}, {k: [len(f.ids)] for k, f in found.items()},
                     {name: [] for name in self.lists})
        drawn: dict[Any, list[tuple[np.ndarray, ...]]] = {name: [] for name in self.lists}
        begin = dict.fromkeys(found, 0)
        hops = max((len(f) for f in fanout.values()), default=0)
        for hop in range(hops):
            end = {kind: len(f.ids) for kind, f in found.items()}
            for name, lists in self.lists.items():
                k = fanout[name][hop]
                part = _hop(lists, found, slice(begin[lists.target], end[lists.target]), k, how,
                            limit, rng)
                drawn[name].append(part)
                out.hop_edges[name].append(len(part[0]))
            for kind, f in found.items():
                out.hop_nodes[kind].append(len(f.ids) - end[kind])
            begin = end
        for name, parts in drawn.items():
            for to, arrays in zip((out.row, out.col, out.edge), zip(_NO_EDGES, *parts)):
                to[name] = np.concatenate(arrays)
        for kind, f in found.items():
            out.nodes[kind] = f.ids
            f.forget()
        if how.disjoint:
            out.batch = {kind: f.batch for kind, f in found.items()}
        return out

    def induced(self, sample: Sample) -> None:
        """Replaces the edges of a sample by all that are between its nodes."""
        places = {kind: self._place(kind) for kind in sample.nodes}
        for kind, ids in sample.nodes.items():
            places[kind][ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
        for name, lists in self.lists.items():
            at, of = _entries(lists, sample.nodes[lists.target])
            row = places[lists.source][lists.row[at]].astype(np.int64)
            inside = row >= 0
            sample.row[name], sample.col[name] = row[inside], of[inside]
            sample.edge[name] = at[inside]
        for kind, ids in sample.nodes.items():
            places[kind][ids] = -1


def _times_of(kind: Kind, ids: np.ndarray, how: Drawing,
              seed_time: Mapping[Kind, np.ndarray] | None) -> np.ndarray | None:
    """The times up to which the lists of seeds count; None for all."""
    if seed_time is not None and seed_time.get(kind) is not None:
        return seed_time[kind]
    if kind in how.node_time:
        return how.node_time[kind][ids]
    return None


def _entries(lists: Lists, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All entries of the lists of nodes, and the number of the node that each is of."""
    starts = lists.starts[nodes]
    degrees = lists.starts[nodes + 1] - starts
    of = np.repeat(np.arange(len(nodes)), degrees)
    return _ranges(starts, degrees), of


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """starts[0], starts[0] + 1, … for the first length, and so on."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total) + np.repeat(starts - (ends - lengths), lengths)


def _hop(lists: Lists, found: Mapping[Kind, Found], front: slice, k: int, how: Drawing,
         limit: np.ndarray | None, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Draws k entries of each list of a frontier: (row, col, edge)."""
    to = found[lists.target]
    nodes, batch = to.ids[front], to.batch[front] if how.disjoint else to.batch[:0]
    if k == 0 or not len(nodes) or not len(lists.row):
        return _NO_EDGES
    times = lists.time
    if times is None and lists.source in how.node_time:
        times = how.node_time[lists.source]
        times = times[lists.row] if len(nodes) > len(lists.starts) else _Sources(times, lists.row)
    if times is not None and limit is None:
        raise ValueError("edges have times and the seeds none: give input_time, or "
                         "edge_label_time of edges")
    if times is not None or lists.weight is not None:
        at, of = _selected(lists, nodes, times, None if limit is None else limit[batch], k, how,
                           rng)
    else:
        at, of = _uniform(lists, nodes, k, how.replace, rng)
    source = lists.row[at].astype(np.int64)
    row = found[lists.source].add(source, batch[of] if how.disjoint else batch)
    return row, of + front.start, at


class _Sources:
    """The times of entries whose sources have times."""

    def __init__(self, times: np.ndarray, row: np.ndarray) -> None:
        self._times, self._row = times, row

    def __getitem__(self, at: np.ndarray) -> np.ndarray:
        return self._times[self._row[at]]


def _uniform(lists: Lists, nodes: np.ndarray, k: int, replace: bool,
             rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """k entries of each list, or all where it has no more."""
    starts = lists.starts[nodes]
    degrees = lists.starts[nodes + 1] - starts
    if replace and k > 0:
        of = np.repeat(np.flatnonzero(degrees), k)
        return starts[of] + rng.integers(0, degrees[of]), of
    if k < 0:
        return _ranges(starts, degrees), np.repeat(np.arange(len(nodes)), degrees)
    counts = np.minimum(degrees, k)
    at, of = _ranges(starts, counts), np.repeat(np.arange(len(nodes)), counts)
    long = np.flatnonzero(degrees > k)
    if len(long):
        first = (np.cumsum(counts) - counts)[long]
        at[first[:, None] + np.arange(k)] = starts[long, None] + _floyd(degrees[long], k, rng)
    return at, of


def _floyd(degrees: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """k distinct positions of each list, (lists, k), every subset as likely: Floyd's algorithm."""
    chosen = np.empty((len(degrees), k), np.int64)
    for j in range(k):
        last = degrees - k + j
        drawn = rng.integers(0, last + 1)
        taken = (chosen[:, :j] == drawn[:, None]).any(1)
        chosen[:, j] = np.where(taken, last, drawn)
    chosen.sort(1)
    return chosen


def _selected(lists: Lists, nodes: np.ndarray, times: Any, limit: np.ndarray | None, k: int,
              how: Drawing, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """k entries of each list among those that are not later than its limit, by weight or uniformly,
    or the latest ones."""
    at, of = _entries(lists, nodes)
    if times is not None:
        assert limit is not None
        inside = times[at] <= limit[of]
        at, of = at[inside], of[inside]
    weight = None if lists.weight is None else lists.weight[at]
    if weight is not None:
        if (weight < 0).any() or not np.isfinite(weight).all():
            raise ValueError("weights to draw by must be finite and not negative")
        at, of, weight = at[weight > 0], of[weight > 0], weight[weight > 0]
    if k < 0:
        return at, of
    if how.replace and not how.last:
        return _with_replacement(at, of, weight, k, len(nodes), rng)
    if how.last and times is not None:
        key = -np.argsort(np.argsort(times[at], kind="stable"), kind="stable").astype(np.float64)
    elif weight is not None:  # Efraimidis and Spirakis: the k smallest exponential variables
        key = rng.standard_exponential(len(at)) / weight
    else:
        key = rng.random(len(at))
    order = np.lexsort((key, of))
    counts = np.bincount(of, minlength=len(nodes))
    rank = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = np.sort(order[rank < k])
    return at[kept], of[kept]


def _with_replacement(at: np.ndarray, of: np.ndarray, weight: np.ndarray | None, k: int,
                      lists: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """k draws from the entries of each list that has some, by weight or uniformly."""
    sums = np.cumsum(np.ones(len(at)) if weight is None else weight)
    ends = np.cumsum(np.bincount(of, minlength=lists))
    has = np.flatnonzero(np.diff(ends, prepend=0))
    sums = np.concatenate([[0.0], sums])
    first = np.where(has > 0, ends[has - 1], 0)
    low, high = sums[first], sums[ends[has]]
    drawn = np.repeat(low, k) + rng.random(len(has) * k) * np.repeat(high - low, k)
    places = np.searchsorted(sums, drawn, side="right") - 1
    places = np.clip(places, np.repeat(first, k), np.repeat(ends[has] - 1, k))
    return at[places], np.repeat(has, k)


def sample_by_budget(graph: Graph, kind: Kind, seeds: np.ndarray,
                     counts: Mapping[Kind, Sequence[int]], rng: np.random.Generator) -> Sample:
    """Draws nodes of each type layer by layer, as "Heterogeneous Graph Transformer" (Hu et al.,
    algorithms 1 and 2) has it, and takes all edges between them.

    A node that was not drawn yet has a budget: the sum of 1 / degree over the lists of drawn nodes
    that it is in. Of each type counts[type][layer] nodes are drawn, in proportion to its square.
    """
    found = graph.found()
    budget = {k: np.zeros(n) for k, n in graph.num_nodes.items()}
    added: dict[Kind, np.ndarray] = {kind: seeds}
    found[kind].seed(seeds, np.zeros(len(seeds), np.int64))
    hops = {k: [len(f.ids)] for k, f in found.items()}
    for layer in range(max((len(c) for c in counts.values()), default=0)):
        for lists in graph.lists.values():
            nodes = added.get(lists.target)
            if nodes is not None and len(nodes):
                at, of = _entries(lists, nodes)
                degrees = lists.starts[nodes + 1] - lists.starts[nodes]
                np.add.at(budget[lists.source], lists.row[at], 1 / degrees[of])
        added = {}
        for k, f in found.items():
            budget[k][f.ids] = 0
            wanted = counts[k][layer] if layer < len(counts.get(k, ())) else 0
            candidates = np.flatnonzero(budget[k])
            if wanted < len(candidates):
                keys = rng.standard_exponential(len(candidates)) / budget[k][candidates] ** 2
                candidates = candidates[np.argpartition(keys, wanted)[:wanted]]
            added[k] = candidates
            f.add(candidates, candidates[:0])
            hops[k].append(len(candidates))
    out = Sample({k: f.ids for k, f in found.items()}, None, {}, {}, {}, hops, {})
    for f in found.values():
        f.forget()
    graph.induced(out)
    return out
