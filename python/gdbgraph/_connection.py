"""What an opened store is to those who make batches of it, and their connections to its server."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from . import _wire
from ._present import Present
from ._server import Server
from .batch import Arenas, Batch, batch_of


class Opened(Protocol):
    """An opened store: a ``Store``."""

    num_nodes: int
    edge_types: list[str]
    node_types: list[str]
    node_dims: dict[str, int] | None
    first_nodes: dict[str, int] | None
    _server: Server

    def metadata(self) -> tuple[list[str], list[tuple[str, str, str]]]:
        """The types of nodes, and of edges with those of their ends."""

    def _present(self) -> Present:
        """The nodes that were not deleted."""

    def _types_of(self, nodes: np.ndarray) -> np.ndarray:
        """The types of nodes, by number."""

    def _edges_of(self, split: str) -> tuple[np.ndarray, np.ndarray | None]:
        """The edges of a split of the edges, (2, E), and their types."""


class Connection:
    """A connection of one loader, in one process."""

    def __init__(self, server: Server) -> None:
        self._server, self._wire = server, server.connect()
        self._arenas = Arenas(self._wire.teller(_wire.RETURN))

    @property
    def closed(self) -> bool:
        return self._wire.closed

    @property
    def lent(self) -> int:
        """The number of its batches that are in use."""
        return self._arenas.lent

    def take_done(self) -> list[int]:
        """The arenas of batches that nobody has any more."""
        return self._arenas.take_done()

    def ask(self, kind: int, body: dict[str, Any], data: Any = b"", *,
            answer: int) -> _wire.Frame:
        self.send(kind, body, data)
        return self.answer(answer)

    def send(self, kind: int, body: dict[str, Any], data: Any = b"") -> None:
        self._arenas.check_interrupt()
        try:
            self._wire.send(kind, body, data)
        except _wire.ServerError as error:
            raise self._server.gone() from error

    def answer(self, kind: int) -> _wire.Frame:
        try:
            return self._wire.receive(kind)
        except _wire.ServerError as error:
            raise self._server.gone() from error

    def batch(self, frame: _wire.Frame) -> Batch:
        """The batch of an answer."""
        return batch_of(frame.body, self._arenas.arrays(frame.body, frame.file))

    def close(self, bye: bool) -> None:
        """Ends it; bye tells the server that nothing went wrong."""
        if bye and not self._wire.closed:
            self._wire.tell(_wire.BYE, {})
        self._wire.close()
