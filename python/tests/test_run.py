"""Runs of gdb train as modules."""

from __future__ import annotations

import csv
import json
import shutil
import struct
import subprocess

import numpy as np
import pytest

import gdbgraph


def check_exported(gdb, store_path, run, path, loaded) -> None:
    """Holds the exported weights against those of the module."""
    subprocess.run([gdb, "runs", str(store_path), "export", run, "--out", str(path), "--quiet"],
                   check=True)
    (length,) = struct.unpack("<Q", path.read_bytes()[:8])
    head = json.loads(path.read_bytes()[8 : 8 + length])
    about = head.pop("__metadata__")
    assert about["model"] == run and json.loads(about["dims"])[0] == 6
    data = path.read_bytes()[8 + length :]
    arrays = {name: np.frombuffer(data[slice(*e["data_offsets"])], "<f4").reshape(e["shape"])
              for name, e in head.items()}
    values = [p.detach().numpy() for p in loaded.parameters()]
    want = {v.tobytes() for p in values for v in (p, p.squeeze().T)}
    assert arrays and {a.tobytes() for a in arrays.values()} <= want
    try:
        from safetensors.numpy import load_file
    except ImportError:
        return
    theirs = load_file(path)
    assert theirs.keys() == arrays.keys()
    assert all(np.array_equal(theirs[name], a) for name, a in arrays.items())


@pytest.fixture(params=["none", "row", "zscore"])
def scaled(request, arrays, tmp_path):
    """A store whose features training scales so, by itself."""
    rng = np.random.default_rng(1)
    x = {"none": arrays["features"], "row": rng.poisson(0.4, (500, 6)),
         "zscore": arrays["features"] * [1, 1000, 1, 1, 0.01, 1] + 7}[request.param]
    path = gdbgraph.ingest(tmp_path / "s.gdb", edge_index=arrays["edges"], x=x, y=arrays["labels"],
                           splits={"train": range(200), "val": range(200, 300)})
    with gdbgraph.open(path, threads=1) as store:
        yield store, request.param


def test_scaled_features(gdb, scaled, tmp_path) -> None:
    """The model of a run scales features as the run did, and wants them as they are stored."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    store, normalize = scaled
    check_outputs(torch, gdb, store, store.path, tmp_path, "sage")
    loaded = gdbgraph.load_run(store.path, "sage")
    assert loaded.normalize == normalize
    batch = next(iter(store.loader([4, 4], 50)))
    if normalize == "none":
        loaded(batch.x, batch.edge_index)
        return
    with pytest.raises(ValueError, match='normalize="none"'):
        loaded(batch.x, batch.edge_index)


@pytest.mark.parametrize("model", ["sage", "gcn", "gat"])
def test_same_outputs(gdb, store, store_path, tmp_path, model) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    check_outputs(torch, gdb, store, store_path, tmp_path, model)


def check_outputs(torch, gdb, store, store_path, tmp_path, model) -> None:
    """Trains a model, and holds what the module says of all nodes against gdb predict."""
    options = ["--heads=2"] if model == "gat" else []
    subprocess.run([gdb, "train", str(store_path), "--run", model, "--model", model, "--epochs=2",
                    "--fanout=4,4", "--hidden=8", "--quiet", *options], check=True,
                   capture_output=True)
    out = tmp_path / "p.csv"
    subprocess.run([gdb, "predict", str(store_path), "--run", model, "--probabilities", "--out",
                    str(out), "--quiet"], check=True)
    with out.open() as file:
        rows = list(csv.reader(file))
    want = np.array([[float(v) for v in row[2:]] for row in rows[1:]])
    nodes = torch.arange(store.num_nodes)
    starts, sources = store.neighbors(nodes)
    edges = torch.stack([sources, torch.repeat_interleave(nodes, starts.diff())])
    loaded = gdbgraph.load_run(store_path, model)
    with torch.no_grad():
        got = loaded(store.features[nodes], edges).softmax(-1)
    check_exported(gdb, store_path, model, tmp_path / "w.safetensors", loaded)
    assert [row[0] for row in rows[1:]] == [str(v) for v in range(500)]
    assert np.abs(got.numpy() - want).max() < 1e-4


def test_damaged_weights(gdb, store_path, tmp_path) -> None:
    """Weights of which a bit has changed are no weights."""
    pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    path = tmp_path / "s.gdb"
    shutil.copytree(store_path, path, ignore=shutil.ignore_patterns("runs"))
    subprocess.run([gdb, "train", str(path), "--run", "once", "--model=sage", "--epochs=1",
                    "--fanout=4,4", "--hidden=8", "--quiet"], check=True, capture_output=True)
    assert len(list(gdbgraph.load_run(path, "once").parameters())) == 6
    for state in path.glob("runs/once/*/state"):
        data = bytearray(state.read_bytes())
        data[-40] ^= 1
        state.write_bytes(data)
    with pytest.raises(gdbgraph.DamagedError, match="checksum"):
        gdbgraph.load_run(path, "once")


def test_other_runs(store_path) -> None:
    pytest.importorskip("torch_geometric")
    with pytest.raises(FileNotFoundError):
        gdbgraph.load_run(store_path, "nosuch")


def test_no_such_run(store_path, tmp_path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    with pytest.raises(FileNotFoundError, match="has no run nope: it has "):
        gdbgraph.load_run(store_path, "nope")
    folder = tmp_path / "s.gdb" / "runs" / "links"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"config": {}, "dims": [], "link": {"decoder": "dot"}}')
    with pytest.raises(ValueError, match="predicts links"):
        gdbgraph.load_run(tmp_path / "s.gdb", "links")
