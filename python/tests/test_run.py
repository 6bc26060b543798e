"""Runs of gdb train as modules."""

from __future__ import annotations

import csv
import subprocess

import numpy as np
import pytest

import gdbgraph


@pytest.mark.parametrize("model", ["sage", "gcn", "gat"])
def test_same_outputs(gdb, store, store_path, tmp_path, model) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
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
    with torch.no_grad():
        got = gdbgraph.load_run(store_path, model)(store.features[nodes], edges).softmax(-1)
    assert [row[0] for row in rows[1:]] == [str(v) for v in range(500)]
    assert np.abs(got.numpy() - want).max() < 1e-4


def test_other_runs(store_path) -> None:
    pytest.importorskip("torch_geometric")
    with pytest.raises(FileNotFoundError):
        gdbgraph.load_run(store_path, "nosuch")
