"""Loaders: the batches of epochs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from . import _fork, _wire
from ._connection import Connection, Opened
from ._convert import as_ids, parse_size
from ._outputs import converter
from ._pyg_arguments import Fanout, drawn
from .batch import Batch


class Epochs(Protocol):
    """How the batches of an epoch come to a loader."""

    def begin(self, to: Connection, epoch: int, batch: int, share: tuple[int, int]) -> None:
        """Begins an epoch with one of its batches; share is the number of a worker among all."""

    def receive(self, to: Connection) -> Batch | None:
        """The next batch; None after the last."""

    def leave(self, to: Connection) -> None:
        """Tells that the rest of the epoch is not wanted."""

    def forget(self) -> None:
        """The connection is gone."""


class Dealt:
    """Epochs whose batches the server deals to the ranks."""

    def begin(self, to: Connection, epoch: int, batch: int, share: tuple[int, int]) -> None:
        to.ask(_wire.START, {"epoch": epoch, "first": batch, "done": to.take_done()},
               answer=_wire.DONE)

    def receive(self, to: Connection) -> Batch | None:
        frame = to.ask(_wire.NEXT, {"done": to.take_done()}, answer=_wire.BATCH)
        return None if frame.kind == _wire.END else to.batch(frame)

    def leave(self, to: Connection) -> None:
        to.ask(_wire.LEAVE, {"done": to.take_done()}, answer=_wire.DONE)

    def forget(self) -> None:
        pass


class Loader:
    """The batches of a store; each iteration is an epoch, of which the order is another.

    Batches are those of ``gdb train`` with the same seed, batch and fanout. A loader is for one
    thread, and has one iteration at a time: where another is begun the one before ends with a
    ``RuntimeError``. In a process that was forked, or that it was sent to, it has a connection of
    its own and all batches; workers of a torch DataLoader share the batches of an epoch.
    """

    def __init__(
        self,
        store: Opened,
        fanout: Fanout,
        batch_size: int = 1000,
        split: str = "train",
        *,
        input_nodes: Any = None,
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
        seeds: Any = b""
        if input_nodes is not None:
            seeds = as_ids(input_nodes, store.num_nodes)
            if not len(seeds):
                raise ValueError("input_nodes is empty: there is nothing to sample around")
        rank, world_size = place(rank, world_size)
        self._given = "" if input_nodes is None else "input_nodes"
        self._start(
            store, Dealt(), seeds, rank,
            {"split": split, **drawn(fanout), "batch": int(batch_size),
             "seed": int(seed), "world": world_size},
            {"batch": int(batch_size), "memory": parse_size(memory), "cache": cache,
             "normalize": normalize}, output, transform)
        self._cut = drop_last and is_short(self.num_seeds, int(batch_size), world_size)
        self._batches -= self._cut
        self._counted = f"num_seeds={self.num_seeds}"

    def _start(self, store: Opened, epochs: Epochs, seeds: Any, rank: int,
               settings: dict[str, Any], asked: dict[str, Any], output: str | None,
               transform: Callable[[Any], Any] | None) -> None:
        """Opens the loader. settings are those of which a state is, and asked what the server is
        asked for besides."""
        self.store = store
        self._output, self._transform = output, transform
        self._convert: Callable[[Any], Any] = converter(output, store)
        self._epochs, self._seeds, self._settings = epochs, seeds, settings
        self._asked_for = {**asked, "rank": rank}
        self._parted = False  # it is in another process than the one it was made in
        self._worker, self._workers = 0, 1  # of a DataLoader, which share the batches
        self._connection: Connection | None = None
        self._cut = False
        opened = self._open()
        #: How the memory of the server is split, for people.
        self.plan: str = opened["plan"]
        #: How the features of batches are scaled: none, row or zscore.
        self.normalize: str = opened["normalize"]
        #: The number of seeds of an epoch, of all ranks.
        self.num_seeds: int = opened["seeds"]
        self._settings.update(seeds=self.num_seeds, normalize=self.normalize)
        self._batches: int = opened["batches"]
        self._next = (0, 0)  # the epoch and batch that the next iteration begins with
        self._chosen = False  # the user has said so
        self._at: tuple[int, int] | None = None  # where the one under way stands
        self._iteration = 0
        _fork.follow(self)

    def _open(self) -> dict[str, Any]:
        """Connects to the server, and has it open the loader."""
        own, rank, world = self._place()
        self._connection = Connection(self.store._server)
        try:
            return self._connection.ask(
                _wire.OPEN, {**self._settings, **self._asked_for, "own": own, "rank": rank,
                             "world": world},
                self._seeds, answer=_wire.OPENED,
            ).body
        except BaseException:
            self._connection.close(bye=False)
            raise

    def _place(self) -> tuple[str, int, int]:
        """Which clients of the server it is one of, its number among them, and how many they are."""
        rank, world = self._asked_for["rank"], self._settings["world"]
        if not self._parted:
            return "", rank, world
        if world > 1:
            raise RuntimeError("a loader that is one of several ranks is for the process that made "
                               "it: make it in this one")
        worker = _fork.worker()
        if worker is None:
            return f"process {os.getpid()}", 0, 1
        begun = worker.seed - worker.id  # is the same for all of them, and another each time
        self._worker, self._workers = worker.id, worker.num_workers
        if not self._chosen:
            self._next = (begun & 0x7FFFFFFF, 0)  # else all epochs would be alike
        return f"workers {begun}", worker.id, worker.num_workers

    def forked(self) -> None:
        """The connection is the parent's: this process makes one of its own when it asks."""
        if self._connection is not None and not self._connection.closed:
            self._connection.close(bye=False)
            self._part()

    def _part(self) -> None:
        self._connection, self._parted, self._at = None, True, None
        self._epochs.forget()
        self._iteration += 1  # one that is under way is the parent's

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items()
                if name not in ("_connection", "_convert")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._convert = converter(self._output, self.store)
        self._part()
        _fork.follow(self)

    def __repr__(self) -> str:
        settings = self._settings
        seeds = self._given or f"split={settings['split']!r}"
        return (f"{type(self).__name__}({settings['fanout']}, batch_size={settings['batch']}, "
                f"{seeds}, {self._counted}, batches={len(self)}, normalize={self.normalize!r})")

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("a loader gives batches, one after the other: for batch in loader. It needs "
                        "no DataLoader around it")

    def __len__(self) -> int:
        """The number of batches of an epoch, for this rank."""
        return self._batches

    def __iter__(self) -> Iterator[Any]:
        if self._connection is None:
            self._open()
        epoch, batch = self._at = self._next
        self._next = (epoch + 1, 0)
        self._iteration += 1
        return self._batches_of(self._iteration, epoch, batch)

    def _batches_of(self, iteration: int, epoch: int, done: int) -> Iterator[Any]:
        self._check(iteration)
        connection = self._connection
        assert connection is not None
        self._epochs.begin(connection, epoch, done // self._workers,
                           (self._worker, self._workers))
        while True:
            self._check(iteration)
            batch: Any = (None if self._leaves_last(iteration)
                          else self._epochs.receive(connection))
            if batch is None:
                self._at = None
                return
            batch = self._convert(batch)
            self._mark(batch)
            if self._transform is not None:
                batch = self._transform(batch)
            epoch, done = self._at or self._next
            self._at = (epoch, done + self._workers)
            box = [batch]
            del batch  # this frame of the generator must not keep it
            try:
                yield box.pop()
            except GeneratorExit:
                self._leave(iteration)
                raise

    def _check(self, iteration: int) -> None:
        if iteration != self._iteration:
            raise RuntimeError(
                "another iteration of this loader was begun, which has ended this one: a loader has "
                "one at a time, and another loader of the store is cheap")

    def _leaves_last(self, iteration: int) -> bool:
        """Leaves an epoch of which only a short batch is left that is not wanted."""
        if not self._cut or self._at is None or self._at[1] < self._batches:
            return False
        self._leave(iteration)
        return True

    def _mark(self, batch: Any) -> None:
        """Has features say how they were scaled, for models that would scale them again."""
        x = getattr(batch, "x", None)
        if hasattr(x, "detach"):
            x.gdb_normalize = self.normalize

    def _leave(self, iteration: int) -> None:
        """Tells the server that the rest of the epoch is not wanted, so that it can go on."""
        to = self._connection
        if iteration == self._iteration and to is not None and not to.closed:
            with contextlib.suppress(_wire.GdbError):  # the next request says so
                self._epochs.leave(to)

    def set_epoch(self, epoch: int) -> None:
        """Has the next iteration be that epoch, from its beginning."""
        self._next, self._at, self._chosen = (int(epoch), 0), None, True

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
        self._next, self._at, self._chosen = (state["epoch"], state["batch"]), None, True

    def close(self) -> None:
        """Ends the connection: the server frees what this loader had. Batches stay valid."""
        self._iteration += 1
        if self._connection is not None:
            self._connection.close(bye=True)

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


def is_short(count: int, size: int, world: int) -> bool:
    """Whether the last batch of an epoch of so many seeds, or edges, has fewer than others."""
    return count % size != 0 and -(-count // size) % world == 0
