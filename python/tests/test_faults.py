"""Processes that are killed or interrupted at many moments: an error at once, and nothing left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

import gdbgraph

from .conftest import _wait_until, servers

CLIENT = """
import sys, gdbgraph
store = gdbgraph.open(sys.argv[1], threads=1)
loader = store.loader([4, 4], 4, output="numpy")
print("ready", flush=True)
while True:
    for batch in loader:
        batch.x.sum()
"""


def client(path, *options) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(path), *options], stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("moment", range(20))
def test_server_killed(store_path, moment: int) -> None:
    with gdbgraph.open(store_path, threads=1) as store:
        loader = store.loader([4, 4], 4, output="numpy")
        pid = store._server.process.pid
        killed = []

        def kill() -> None:
            killed.append(time.monotonic())
            os.kill(pid, signal.SIGKILL)

        timer = threading.Timer(0.004 * moment, kill)
        timer.start()
        kept = None
        with pytest.raises(gdbgraph.ServerError, match="killed by signal 9"):
            while True:
                for batch in loader:
                    kept = batch
        assert time.monotonic() - killed[0] < 2
        if kept is not None:
            assert kept.x.sum() == kept.x.sum()  # what was received is still there
        with pytest.raises(gdbgraph.ServerError):
            store.features[[0]]
    with gdbgraph.open(store_path, threads=1) as store:  # the next start works
        assert len(store.features[[0]]) == 1


@pytest.mark.parametrize("moment", range(20))
def test_client_killed(store_path, moment: int) -> None:
    before = set(servers(pids=True))
    process = client(store_path)
    assert set(servers(pids=True)) - before
    time.sleep(0.005 * moment)
    process.kill()
    process.wait()
    _wait_until(lambda: set(servers(pids=True)) <= before, 2)
    process.communicate()


def test_interrupt_ends_both(store_path) -> None:
    before = set(servers(pids=True))
    process = client(store_path)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in said and process.returncode != 0
    _wait_until(lambda: set(servers(pids=True)) <= before, 2)


def test_one_of_two_clients_killed(store_path, tmp_path) -> None:
    path = str(tmp_path / "s")
    with gdbgraph.open(store_path, socket=path) as store:
        want = [b.n_id.tolist() for b in store.loader([3], 16, output="numpy")]
        other = subprocess.Popen(
            [sys.executable, "-c", CLIENT.replace("sys.argv[1],", f"sys.argv[1], socket={path!r},"),
             str(store_path)], stdout=subprocess.PIPE, text=True,
        )
        assert other.stdout is not None and other.stdout.readline() == "ready\n"
        assert sum(path in s for s in servers()) == 1
        other.kill()
        other.communicate()
        assert [b.n_id.tolist() for b in store.loader([3], 16, output="numpy")] == want


RANK = """
import sys, gdbgraph
store = gdbgraph.open(sys.argv[1], socket=sys.argv[2])
loader = store.loader([4, 4], 2, output="numpy", rank=1, world_size=2)
print("ready", flush=True)
sys.stdin.read(1)
for batch in loader:
    batch.x.sum()
"""


def test_rank_killed(store_path, tmp_path) -> None:
    """The other rank gets all of its batches, whenever this one dies."""
    path = str(tmp_path / "s")
    with gdbgraph.open(store_path, socket=path) as store:
        every = [b.n_id.tolist() for b in store.loader([4, 4], 2, output="numpy")]
        for moment in range(20):
            other = subprocess.Popen([sys.executable, "-c", RANK, str(store_path), path],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert other.stdout is not None and other.stdout.readline() == "ready\n"
            # Before that the server has forgotten the other one, and waits for it to come.
            loader = store.loader([4, 4], 2, output="numpy", rank=0, world_size=2)
            if moment == 0:
                other.kill()  # before it has begun
            assert other.stdin is not None
            other.stdin.close()
            other.stdin = None
            timer = threading.Timer(0.002 * moment, other.kill)
            timer.start()
            begun = time.monotonic()
            assert [b.n_id.tolist() for b in loader] == every[0::2]
            assert time.monotonic() - begun < 5
            timer.join()
            other.communicate()
            loader.close()


def test_server_is_told_to_end(store_path) -> None:
    with gdbgraph.open(store_path) as store:
        loader = store.loader([3], 16, output="numpy")
        store._server.process.terminate()
        with pytest.raises(gdbgraph.ServerError, match="exit code 130"):
            while True:
                list(loader)
