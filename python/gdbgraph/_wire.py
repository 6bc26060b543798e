"""The protocol between gdb and this package: frames over a Unix socket.

A frame is a header of 12 bytes, a JSON body and bytes. A descriptor of shared memory may come
beside the header. The Go package serve/protocol has the other side, and describes the bodies.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

VERSION = 6

WELCOME, HELLO, FAILED, DONE = 1, 2, 3, 4
OPEN, OPENED, START, NEXT, BATCH, END, LEAVE = 5, 6, 7, 8, 9, 10, 11
ROWS, NEIGHBORS, ARRAYS, QUERY, TABLE, NAMES, NODES = 12, 13, 14, 15, 16, 17, 18
STATS, STATS_NOW, NAMED, LABELS = 19, 20, 21, 22
SAMPLE, EDGES, NODE_TYPES, RETURN, BYE, DELETED = 23, 24, 25, 26, 27, 28

_HEADER = struct.Struct("<IIHH")


class GdbError(RuntimeError):
    """gdb could not do what was asked; the message says what, where, and what to do."""


class ServerError(GdbError):
    """The server of gdb has ended: it was killed, or failed."""


class BatchesHeldError(GdbError):
    """All memory for batches is with the program: keep fewer, or clone what you keep."""


class DamagedError(GdbError):
    """Data of the store are damaged: ``gdb check`` says which."""


@dataclass
class Frame:
    """A message of the server. ``file`` is a descriptor that the caller closes, or -1."""

    kind: int
    body: dict[str, Any]
    data: bytearray
    file: int = -1


def _listed(value: Any) -> Any:
    """An array or a number of numpy as JSON takes it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a {type(value).__name__} can't be sent")


class Wire:
    """A connection to a server. It is for one thread at a time."""

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._asking = threading.Lock()  # held from a request to its answer
        try:
            self._socket.connect(path)
            self.welcome = self.receive(WELCOME).body
            if self.welcome["protocol"] != VERSION:
                raise GdbError(
                    f"gdb {self.welcome['version']} speaks version {self.welcome['protocol']} of "
                    f"the protocol, this package version {VERSION}: install both of one version"
                )
            self.ask(HELLO, {"protocol": VERSION}, answer=DONE)
        except BaseException:
            self._socket.close()
            raise

    def ask(self, kind: int, body: dict[str, Any], data: Any = b"", *, answer: int) -> Frame:
        """Sends a request and returns the answer of that kind, or END where it may be one."""
        with self._asking:
            self.send(kind, body, data)
            return self.receive(answer)

    def teller(self, kind: int) -> Callable[[list[int]], bool]:
        """What gives arenas back as long as the connection is there; it does not keep that."""
        weak = weakref.ref(self)

        def tell(done: list[int]) -> bool:
            wire = weak()
            return wire is not None and wire.tell(kind, {"done": done})

        return tell

    def tell(self, kind: int, body: dict[str, Any]) -> bool:
        """Sends what has no answer, unless a request is under way: whether it was sent."""
        if not self._asking.acquire(blocking=False):
            return False
        try:
            self.send(kind, body)
            return True
        except ServerError:
            return False  # the next request says so
        finally:
            self._asking.release()

    def send(self, kind: int, body: dict[str, Any], data: Any = b"") -> None:
        """Sends a frame."""
        encoded = json.dumps(body, default=_listed).encode()
        view = memoryview(data).cast("B")
        try:
            self._socket.sendall(_HEADER.pack(len(encoded), len(view), kind, 0) + encoded)
            if len(view):
                self._socket.sendall(view)
        except OSError as error:
            raise ServerError(f"the server of gdb is gone: {error}") from error

    def receive(self, kind: int) -> Frame:
        """Receives a frame of a kind; END in the place of BATCH. A failure is raised."""
        head, files = self._header()
        body_bytes, data_bytes, got, _ = _HEADER.unpack(head)
        frame = Frame(got, {}, bytearray(), files[0] if files else -1)
        try:
            encoded = self._bytes(body_bytes)
            frame.body = json.loads(encoded) if encoded else {}
            frame.data = self._bytes(data_bytes)
            if got == FAILED:
                raise _failure(frame.body)
            if got != kind and not (kind == BATCH and got == END):
                raise GdbError(f"the server answered with frame {got}, not {kind}")
        except BaseException:
            if frame.file >= 0:
                os.close(frame.file)
            raise
        return frame

    def _header(self) -> tuple[bytes, list[int]]:
        room = socket.CMSG_SPACE(array.array("i").itemsize)
        try:
            head, ancillary, _, _ = self._socket.recvmsg(
                _HEADER.size, room, socket.MSG_CMSG_CLOEXEC
            )
        except OSError as error:
            raise ServerError(f"the server of gdb is gone: {error}") from error
        files = array.array("i")
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                files.frombytes(data[: len(data) - len(data) % files.itemsize])
        if not head:
            raise ServerError("the server of gdb is gone")
        return bytes(head) + bytes(self._bytes(_HEADER.size - len(head))), list(files)

    def _bytes(self, count: int) -> bytearray:
        out = bytearray(count)
        view = memoryview(out)
        while view:
            try:
                got = self._socket.recv_into(view)
            except OSError as error:
                raise ServerError(f"the server of gdb is gone: {error}") from error
            if not got:
                raise ServerError("the server of gdb is gone")
            view = view[got:]
        return out

    @property
    def closed(self) -> bool:
        """Whether the connection was closed here."""
        return self._socket.fileno() < 0

    def close(self) -> None:
        """Ends the connection: the server frees what this client had. In a process that was forked
        it goes on, for the one that has made it."""
        self._socket.close()


def _failure(body: dict[str, Any]) -> Exception:
    message, what = body.get("message", "failed"), body.get("what")
    if what == "held":
        return BatchesHeldError(
            f"{message}; drop batches before you ask for more, and clone() what you keep"
        )
    if what == "usage":
        return ValueError(message)
    if what == "damaged":
        return DamagedError(message)
    return GdbError(message)
