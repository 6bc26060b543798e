"""Starts the server of a store, and tells what became of it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from collections import deque
from pathlib import Path
from typing import Any

from . import _binary, _fork
from ._wire import GdbError, ServerError, Wire

_START_SECONDS = 60.0
_numbers = iter(range(1 << 30))


def folder() -> Path:
    """The folder of this user's sockets, which nobody else can read."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    path = Path(base) if base and os.access(base, os.W_OK) else Path(tempfile.gettempdir())
    path = path / f"gdbgraph-{os.getuid()}"
    path.mkdir(mode=0o700, exist_ok=True)
    status = path.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise GdbError(f"{path} can be used by others: remove it, or make it 0700")
    return path


def sweep() -> None:
    """Removes the sockets of servers that were killed, and their locks."""
    for path in {Path(str(p).removesuffix(".lock")) for p in folder().glob("*.sock*")}:
        lock = Path(f"{path}.lock")
        if _answers(path):
            continue
        with contextlib.suppress(OSError), lock.open("a") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where a server begins or ends
            if not _answers(path):
                path.unlink(missing_ok=True)
                lock.unlink()


def _answers(path: Path) -> bool:
    """Whether a server is at a socket, or something that must not be removed."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            pass
        return True


def shared_socket(store: str) -> str | None:
    """The socket that the ranks of a torchrun on this machine share; None for one process."""
    if int(os.environ.get("LOCAL_WORLD_SIZE", "1")) < 2:
        return None
    job = [os.environ.get(k, "") for k in ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT")]
    name = hashlib.sha256("\0".join([*job, store]).encode()).hexdigest()[:16]
    return str(folder() / f"job-{name}.sock")


def own_socket() -> str:
    """A socket that nothing else uses."""
    return str(folder() / f"{os.getpid()}-{next(_numbers)}.sock")


class Server:
    """A server of a store: one that this process has started, or one that is there already."""

    def __init__(self, store: str, path: str | None, threads: int | None) -> None:
        self.store = store
        self.process: subprocess.Popen[bytes] | None = None
        self._first: Wire | None = None
        self._said: deque[str] = deque(maxlen=20)
        self._reader: threading.Thread | None = None
        if path is None:
            sweep()
            self.path = own_socket()
            self._first = self._start(threads)
        else:
            self.path = path
            self._first = self._share(threads)
        self._ended = weakref.finalize(self, _end, self.process)
        _fork.follow(self)

    def forked(self) -> None:
        """The server is the parent's: this process connects to it while it is there."""
        self._ended.detach()
        self.process = self._reader = None
        if self._first is not None:
            self._first.close()
            self._first = None

    def __reduce__(self) -> Any:
        return _found, (self.store, self.path)

    def _share(self, threads: int | None) -> Wire:
        """Connects to the server at the path; the first who comes starts it."""
        lock = os.open(Path(self.path).resolve().parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                return Wire(self.path)
            except (FileNotFoundError, ConnectionRefusedError):
                return self._start(threads)
        finally:
            os.close(lock)

    def _start(self, threads: int | None) -> Wire:
        command = [_binary.find(), "serve", self.store, "--socket", self.path, "--until-idle"]
        if threads is not None:
            command += ["--threads", str(threads)]
        # In a session of its own: Ctrl-C reaches this process, whose end is the server's.
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end:
            try:
                return Wire(self.path)
            except (FileNotFoundError, ConnectionRefusedError):
                pass
            except BaseException:
                self.process.kill()  # it may wait for a client that it understands
                raise
            if self.process.poll() is not None:
                raise GdbError(self._why())
            time.sleep(0.005)
        self.process.kill()
        raise GdbError(f"gdb serve did not begin within {_START_SECONDS:.0f} s")

    def _listen(self) -> None:
        assert self.process is not None and self.process.stderr is not None
        for line in self.process.stderr:
            self._said.append(line.decode(errors="replace").rstrip())

    def connect(self) -> Wire:
        """A connection to the server."""
        if self._first is not None:
            wire, self._first = self._first, None
            return wire
        try:
            return Wire(self.path)
        except OSError as error:
            raise self.gone() from error

    def gone(self) -> ServerError:
        """The exception that says why the server is gone."""
        return ServerError(self._why())

    def _why(self) -> str:
        if self.process is None:
            return f"the server of gdb at {self.path} is gone: it was killed, or failed"
        try:
            code = self.process.wait(2)
        except subprocess.TimeoutExpired:
            return "the server of gdb has ended the connection"
        if self._reader is not None:
            self._reader.join(1)
        said = " ".join(s for s in self._said if not s.startswith("serving "))
        how = f"killed by signal {-code}" if code < 0 else f"exit code {code}"
        return f"gdb serve has ended ({how})" + (f": {said}" if said else "")

    def close(self) -> None:
        """Ends the server, if this process has started it and nobody else uses it."""
        if self._first is not None:
            self._first.close()
        self._ended()


def _found(store: str, path: str) -> Server:
    """The server that another process has started, in a process that was spawned."""
    return Server(store, path, None)


def _end(process: subprocess.Popen[bytes] | None) -> None:
    """Waits for a server that ends with its last client."""
    if process is None:
        return
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(0.5)
    if process.stderr is not None and process.poll() is not None:
        process.stderr.close()
