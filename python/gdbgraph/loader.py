"""Loaders: the batches of epochs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any


from . import _wire
from ._convert import as_ids, parse_size
from ._outputs import converter
from .batch import Arenas, Batch, batch_of

if TYPE_CHECKING:
    from .store import Store


class Loader:
    """The batches of a store; each iteration is an epoch, of which the order is another.

    Batches are those of ``gdb train`` with the same seed, batch and fanout. A loader is for one
    thread, and has one iteration at a time.
    """

    def __init__(
        self,
        store: Store,
        fanout: Sequence[int],
        batch_size: int = 1000,
        split: str = "train",
        *,
        input_nodes: Any = None,
        memory: int | str | None = None,
        cache: str = "auto",
        seed: int = 1,
        rank: int | None = None,
        world_size: int | None = None,
        output: str | None = None,
    ) -> None:
        self.store = store
        self._convert: Callable[[Any], Any] = converter(output, store)
        rank, world_size = place(rank, world_size)
        seeds = b"" if input_nodes is None else as_ids(input_nodes, store.num_nodes)
        if input_nodes is not None and not len(seeds):
            raise ValueError("input_nodes is empty: there is nothing to sample around")
        self._settings = {
            "split": split, "fanout": [int(k) for k in fanout], "batch": int(batch_size),
            "seed": int(seed), "world": world_size,
        }
        self._wire = store._server.connect()
        self._arenas = Arenas(self._wire.teller(_wire.RETURN))
        try:
            opened = self._ask(
                _wire.OPEN,
                {**self._settings, "memory": parse_size(memory), "cache": cache, "rank": rank},
                seeds, answer=_wire.OPENED,
            ).body
        except BaseException:
            self._wire.close()
            raise
        #: How the memory of the server is split, for people.
        self.plan: str = opened["plan"]
        #: The number of seeds of an epoch, of all ranks.
        self.num_seeds: int = opened["seeds"]
        self._settings["seeds"] = self.num_seeds
        self._batches: int = opened["batches"]
        self._next = (0, 0)  # the epoch and batch that the next iteration begins with
        self._at: tuple[int, int] | None = None  # where the one under way stands
        self._iteration = 0

    def __len__(self) -> int:
        """The number of batches of an epoch, for this rank."""
        return self._batches

    def __iter__(self) -> Iterator[Any]:
        epoch, batch = self._at = self._next
        self._next = (epoch + 1, 0)
        self._iteration += 1
        self._begin(epoch, batch)
        return self._batches_of(self._iteration)

    def _begin(self, epoch: int, batch: int) -> None:
        """Begins an epoch with one of its batches."""
        self._ask(
            _wire.START, {"epoch": epoch, "first": batch, "done": self._arenas.take_done()},
            answer=_wire.DONE,
        )

    def _receive(self) -> Batch | None:
        """The next batch; None after the last."""
        frame = self._ask(_wire.NEXT, {"done": self._arenas.take_done()}, answer=_wire.BATCH)
        return None if frame.kind == _wire.END else self._batch_of(frame)

    def _batch_of(self, frame: _wire.Frame) -> Batch:
        return batch_of(frame.body, self._arenas.arrays(frame.body, frame.file))

    def _batches_of(self, iteration: int) -> Iterator[Any]:
        while True:
            if iteration != self._iteration:
                raise RuntimeError("another iteration of this loader was begun")
            batch: Any = self._receive()
            if batch is None:
                self._at = None
                return
            batch = self._convert(batch)
            epoch, done = self._at or self._next
            self._at = (epoch, done + 1)
            box = [batch]
            del batch  # this frame of the generator must not keep it
            try:
                yield box.pop()
            except GeneratorExit:
                self._leave(iteration)
                raise

    def _leave(self, iteration: int) -> None:
        """Tells the server that the rest of the epoch is not wanted, so that it can go on."""
        if iteration == self._iteration and not self._wire.closed:
            try:
                self._ask(_wire.LEAVE, {"done": self._arenas.take_done()}, answer=_wire.DONE)
            except _wire.GdbError:
                pass  # the next request says so

    def set_epoch(self, epoch: int) -> None:
        """Has the next iteration be that epoch, from its beginning."""
        self._next, self._at = (int(epoch), 0), None

    def state_dict(self) -> dict[str, Any]:
        """Where the loader stands: the next batch that it gives, as in torchdata."""
        epoch, batch = self._at or self._next
        return {"epoch": epoch, "batch": batch, "settings": dict(self._settings)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Has the next iteration go on where a loader with the same settings stood."""
        for name, value in self._settings.items():
            if state["settings"].get(name) != value:
                raise ValueError(
                    f"the state is of a loader with {name} {state['settings'].get(name)}, this one "
                    f"has {value}: its batches would be others"
                )
        self._next, self._at = (state["epoch"], state["batch"]), None

    def _ask(self, kind: int, body: dict[str, Any], data: Any = b"", *,
             answer: int) -> _wire.Frame:
        self._send(kind, body, data)
        return self._answer(answer)

    def _send(self, kind: int, body: dict[str, Any], data: Any = b"") -> None:
        self._arenas.check_interrupt()
        try:
            self._wire.send(kind, body, data)
        except _wire.ServerError as error:
            raise self.store._server.gone() from error

    def _answer(self, kind: int) -> _wire.Frame:
        try:
            return self._wire.receive(kind)
        except _wire.ServerError as error:
            raise self.store._server.gone() from error

    def close(self) -> None:
        """Ends the connection: the server frees what this loader had. Batches stay valid."""
        self._iteration += 1
        if not self._wire.closed:
            self._wire.tell(_wire.BYE, {})
        self._wire.close()

    def __del__(self) -> None:
        if hasattr(self, "_iteration"):  # it was opened
            self.close()

    def __enter__(self) -> Loader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def place(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """The rank among those of this machine: as given, or as torchrun has it."""
    if (rank is None) != (world_size is None):
        raise ValueError("give rank and world_size, or neither")
    if rank is None or world_size is None:
        rank = int(os.environ.get("LOCAL_RANK", "0"))
        world_size = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return int(rank), int(world_size)
