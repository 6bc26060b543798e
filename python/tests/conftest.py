"""Stores for tests, and what is left behind by servers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gdbgraph
from gdbgraph import _binary, _server

NODES, EDGES, WIDTH, CLASSES = 500, 4000, 6, 4


@pytest.fixture(scope="session")
def gdb() -> str:
    """The program."""
    return _binary.find()


@pytest.fixture(scope="session")
def arrays() -> dict[str, np.ndarray]:
    """A graph: edges (2, E), features, labels, splits."""
    rng = np.random.default_rng(7)
    return {
        "edges": rng.integers(0, NODES, (2, EDGES)).astype(np.int64),
        "features": rng.standard_normal((NODES, WIDTH)).astype(np.float32),
        "labels": rng.integers(0, CLASSES, NODES).astype(np.int64),
        "train_idx": np.arange(0, 200), "val_idx": np.arange(200, 300),
        "test_idx": np.arange(300, NODES),
    }


@pytest.fixture(scope="session")
def store_path(gdb: str, arrays: dict[str, np.ndarray], tmp_path_factory: pytest.TempPathFactory,
               ) -> Path:
    """A store of that graph."""
    base = tmp_path_factory.mktemp("store")
    source = base / "source"
    source.mkdir()
    for name, array in arrays.items():
        np.save(source / f"{name}.npy", array)
    out = base / "graph.gdb"
    subprocess.run([gdb, "ingest", str(source), "--out", str(out), "--quiet"], check=True)
    return out


@pytest.fixture
def store(store_path: Path) -> Iterator[gdbgraph.Store]:
    """The store, opened."""
    with gdbgraph.open(store_path, threads=1) as opened:
        yield opened


def servers(pids: bool = False) -> list[str]:
    """The servers of this user that run."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        if b"serve" in words[1:2] and b"--until-idle" in words and state != "Z":
            found.append(entry.name if pids else b" ".join(words).decode())
    return found


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Tests leave no server, no socket and no shared memory."""
    shared = set(os.listdir("/dev/shm"))
    before = set(servers(pids=True))
    yield
    _wait_until(lambda: set(servers(pids=True)) <= before)
    _server.sweep()
    mine = [p.name for p in _server.folder().iterdir() if p.name.startswith(f"{os.getpid()}-")]
    assert not mine and set(os.listdir("/dev/shm")) <= shared


def _wait_until(so, seconds: float = 60.0) -> None:
    import time

    end = time.monotonic() + seconds
    while not so():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.01)
