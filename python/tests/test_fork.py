"""Processes that were forked, or that a store was sent to: each has connections of its own."""

from __future__ import annotations

import multiprocessing
import os
import pickle

import numpy as np
import pytest

import gdbgraph


def in_child(work) -> object:
    """What a function returns in a forked process."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            said = work()
        except BaseException as error:  # noqa: BLE001
            said = repr(error)
        with os.fdopen(write, "wb") as out:
            out.write(pickle.dumps(said))
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        said = pickle.loads(answer.read())
    os.waitpid(pid, 0)
    return said


def test_lookups(store, arrays) -> None:
    """Parent and child ask at the same time, and get what they asked for."""
    want = arrays["features"]

    def ask(first: int) -> bool:
        for _ in range(50):
            ids = np.arange(first, first + 100)
            assert np.array_equal(store.features[ids], want[ids])
        return True

    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(write, b"1" if ask(200) else b"0")
        finally:
            os._exit(0)
    assert ask(0)
    os.close(write)
    assert os.read(read, 1) == b"1"
    os.close(read)
    os.waitpid(pid, 0)
    assert ask(300)


def test_loader_in_the_middle_of_an_epoch(store) -> None:
    """The child gets its own batches, and the parent goes on with its epoch."""
    loader = store.loader([4, 3], 30, output="numpy")
    want = [b.n_id.tolist() for b in loader]
    loader.set_epoch(0)
    it = iter(loader)
    kept = next(it)
    assert kept.n_id.tolist() == want[0]

    def work() -> object:
        loader.set_epoch(0)
        return [b.n_id.tolist() for b in loader]

    assert in_child(work) == want
    assert "another iteration" in str(in_child(lambda: next(it)))
    assert [b.n_id.tolist() for b in it] == want[1:]
    assert kept.n_id.tolist() == want[0]


def test_links(arrays, tmp_path) -> None:
    path = gdbgraph.ingest(tmp_path / "a.gdb", edge_index=arrays["edges"], num_nodes=500,
                           options=["--edge-split=random=80/10/10"])
    with gdbgraph.open(path, threads=1) as store:
        loader = store.link_loader([3], 100, split="val", output="numpy")
        want = [b.n_id.tolist() for b in loader]
        it = iter(loader)
        next(it)

        def work() -> object:
            loader.set_epoch(0)
            return [b.n_id.tolist() for b in loader]

        assert in_child(work) == want
        assert len(list(it)) == len(want) - 1


def test_closed(store_path) -> None:
    with gdbgraph.open(store_path, threads=1) as store:
        assert in_child(store.close) is None
        assert len(store.features[[0]]) == 1
    assert "was closed" in str(in_child(lambda: store.features[[0]]))


def _spawned(store: gdbgraph.Store, loader: gdbgraph.Loader) -> tuple[list[float], int]:
    return store.features[3].tolist(), sum(b.batch_size for b in loader)


def test_sent_to_another_process(store, arrays) -> None:
    loader = store.loader([4], 64, output="numpy")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        row, seeds = pool.apply(_spawned, (store, loader))
    assert row == arrays["features"][3].tolist() and seeds == 200


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_of_a_dataloader(store, workers: int) -> None:
    """They share the batches of an epoch, and another epoch has another order."""
    torch = pytest.importorskip("torch")

    class Batches(torch.utils.data.IterableDataset):
        def __init__(self, loader) -> None:
            self.loader = loader

        def __iter__(self):
            for batch in self.loader:
                yield batch.n_id[: batch.batch_size].clone(), batch.y.clone()

    loader = store.loader([4, 3], 30, output="torch")
    for chosen in (None, 0):
        if chosen is not None:
            loader.set_epoch(chosen)
            one = [b.n_id[: b.batch_size].tolist() for b in loader]
            loader.set_epoch(chosen)
        epochs = []
        for _ in range(2):
            seen = list(torch.utils.data.DataLoader(Batches(loader), batch_size=None,
                                                    num_workers=workers))
            assert len(seen) == 7
            assert sorted(torch.cat([ids for ids, _ in seen]).tolist()) == list(range(200))
            assert all((store.labels_of(ids) == y).all() for ids, y in seen)
            epochs.append([ids.tolist() for ids, _ in seen])
        assert (epochs[0] == epochs[1]) == (chosen is not None)
    assert epochs[0] == one
    with pytest.raises(TypeError, match="DataLoader"):
        loader[0]
