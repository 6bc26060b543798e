"""Arguments of PyTorch Geometric's loaders, which those of a store take or answer."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

#: How many neighbors are drawn at each hop: of all relations alike, or of each by its name.
Fanout = Sequence[int] | Sequence[Mapping[str, int]]

#: Values with which an argument asks for what a loader does anyway, and what to say of others.
_FIXED: dict[str, tuple[tuple[Any, ...], str]] = {
    "shuffle": ((True,), "each epoch has another order; batch.n_id[:batch.batch_size] are the nodes "
                         "that a batch is about, so results can be put in order by them"),
    "replace": ((False,), "neighbors are drawn without replacement"),
    "directed": ((True,), "a batch has the edges that were drawn"),
    "subgraph_type": (("directed",), "a batch has the edges that were drawn, towards the seeds"),
    "disjoint": ((False,), "a node that several seeds reach is once in a batch"),
    "temporal_strategy": (("uniform",), "neighbors are drawn uniformly"),
}
#: Arguments of processes that PyG would start.
_WORKERS = ("num_workers", "persistent_workers", "prefetch_factor", "pin_memory", "worker_init_fn",
            "multiprocessing_context", "timeout", "generator", "filter_per_worker", "is_sorted",
            "pin_memory_device")
#: Arguments of what a store has otherwise or not at all.
_INSTEAD = {
    "input_type": "give input_nodes=ids: nodes of all types are numbered in one row",
    "input_time": "gdb train --before takes edges before a time",
    "time_attr": "gdb train --before takes edges before a time",
    "weight_attr": "gdb train --sample weighted draws by weight",
    "neighbor_sampler": "gdb samples", "custom_cls": "transform=... changes batches",
    "transform_sampler_output": "transform=... changes batches",
    "collate_fn": "transform=... changes batches",
    "sampler": "input_nodes=ids gives the seeds", "batch_sampler": "input_nodes=ids gives the seeds",
    "edge_label": "edges of edge_label_index are all true: negatives are drawn",
    "edge_label_time": "gdb train --before takes edges before a time",
    "neg_sampling": "neg_sampling_ratio=1.0 draws a negative for each edge",
}


def settle(options: dict[str, Any]) -> None:
    """Takes the arguments of PyG's out of options that ask for nothing else than a loader does. A
    warning names those that change nothing; one that asks for another thing is a ``ValueError``."""
    nothing = []
    for name in list(options):
        value = options[name]
        if name in _FIXED:
            usual, why = _FIXED[name]
            if getattr(value, "value", value) not in usual:
                raise ValueError(f"{name}={value!r} is not for the loaders of a store: {why}")
        elif name in _INSTEAD:
            if value is not None:
                raise ValueError(f"{name} is not for the loaders of a store: {_INSTEAD[name]}")
        elif name in _WORKERS:
            if value:
                nothing.append(f"{name}={value!r}")
        else:
            continue
        del options[name]
    if nothing:
        warnings.warn(
            f"{', '.join(nothing)}: this changes nothing, a server of gdb makes batches ahead, in "
            "memory that is shared; threads of gdbgraph.open says on how many cores", stacklevel=4)


def fanout_of(fanout: Any, num_neighbors: Any, relations: Sequence[str]) -> Fanout:
    """The fanout under either of its names."""
    if (fanout is None) == (num_neighbors is None):
        raise ValueError("give fanout, such as [10, 10], or num_neighbors, which is its name in PyG")
    given = fanout if num_neighbors is None else num_neighbors
    if isinstance(given, Mapping):
        return _by_relation(given, relations)
    return [int(k) for k in ([given] if isinstance(given, int) else given)]


def _by_relation(given: Mapping[Any, Sequence[int]], relations: Sequence[str]) -> Fanout:
    """The numbers of each hop, of numbers by type of edges or by name of a relation."""
    if not relations:
        raise ValueError("num_neighbors by type of edges: this store has no such types: give a "
                         "number for each hop")
    by = {kind[1] if isinstance(kind, tuple) else kind: of for kind, of in given.items()}
    if set(by) != set(relations) or len(by) < len(given):
        raise ValueError(f"num_neighbors is of the relations {', '.join(map(str, by))}: the store "
                         f"has {', '.join(relations)}, and each wants its numbers")
    hops = {len(of) for of in by.values()}
    if len(hops) != 1:
        raise ValueError("num_neighbors by type of edges: each wants a number for as many hops")
    return [{name: int(of[h]) for name, of in by.items()} for h in range(hops.pop())]


def drawn(fanout: Fanout) -> dict[str, Any]:
    """The fields of a request that say how many neighbors are drawn at each hop."""
    if not fanout or not isinstance(fanout[0], Mapping):
        return {"fanout": [int(k) for k in fanout]}  # type: ignore[call-overload]
    hops = [{name: int(k) for name, k in hop.items()} for hop in fanout]  # type: ignore[union-attr]
    return {"fanout": [-1 if -1 in hop.values() else max(hop.values()) for hop in hops],
            "fanout_by": hops}
