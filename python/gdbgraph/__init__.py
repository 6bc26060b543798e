"""Batches of graphs larger than memory, for PyTorch.

``gdbgraph.open(store).loader(fanout=[10, 10])`` gives batches that a process of gdb samples and
gathers; see docs/python.md of the repository.
"""

from __future__ import annotations

import os
from typing import Any

from ._wire import BatchesHeldError, DamagedError, GdbError, ServerError
from .batch import Batch
from ._append import append
from ._ingest import ingest
from .link import LinkLoader
from .loader import Loader
from .result import Result
from .store import Features, Store

__all__ = [
    "Batch", "BatchesHeldError", "DamagedError", "Features", "GdbError", "HGTLoader", "LinkLoader",
    "LinkNeighborLoader", "Loader", "NeighborLoader", "Result", "ServerError", "Store", "append",
    "ingest", "load_run", "open",
]
__version__ = "0.1.0"


def open(path: str | os.PathLike[str], *, socket: str | None = None,  # noqa: A001
         threads: int | None = None) -> Store:
    """Opens a store.

    It starts a process of gdb, which ends with this one. ``socket`` is where to find a server that
    others share: the first who opens it starts it. Ranks of a torchrun on one machine share one by
    themselves. ``threads`` is how many cores the server uses.
    """
    return Store(path, socket=socket, threads=threads)


def load_run(store: str | os.PathLike[str], run: str) -> Any:
    """The model of a run of ``gdb train``, as a module of PyTorch Geometric: see
    :func:`gdbgraph.run.load_run`."""
    from .run import load_run as load

    return load(store, run)


def __getattr__(name: str) -> Any:
    """The loaders with PyG's arguments, which are imported when they are asked for, since PyG
    takes seconds."""
    if name in ("HGTLoader", "LinkNeighborLoader", "NeighborLoader"):
        from . import loaders

        return getattr(loaders, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
