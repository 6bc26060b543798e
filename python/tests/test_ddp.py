"""Ranks of a torchrun: examples/sage_ddp.py as it is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from .test_docs import REPOSITORY

PROGRAM = REPOSITORY / "examples" / "sage_ddp.py"


def torchrun(*args: str) -> str:
    """What two ranks print; the test skips where they cannot run."""
    pytest.importorskip("torch_geometric")
    distributed = pytest.importorskip("torch.distributed")
    if not distributed.is_available() or not distributed.is_gloo_available():
        pytest.skip("this torch has no gloo: torchrun cannot be tested")
    if int(pytest.importorskip("torch").__version__.split(".")[0]) < 2:
        pytest.skip("torchrun of this torch does not run on Python from 3.11 on")
    if not PROGRAM.exists():
        pytest.skip("the repository is not here")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "torch.distributed.run", "--standalone",
         "--nproc_per_node", "2", str(PROGRAM), *args], capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=240)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_two_ranks(store_path, tmp_path) -> None:
    """Equal counts of batches; what goes on in the middle of an epoch ends as the whole did."""
    options = [str(store_path), "--batch", "16", "--epochs", "2",
               "--checkpoint", str(tmp_path / "state.pt"), "--save-every", "8"]
    whole, resumed = torchrun(*options), torchrun(*options)  # there are 12 steps
    for rank in range(2):
        assert f"rank {rank} of 2: epochs of 6 batches, from 0 of epoch 0\n" in whole
        assert f"rank {rank} of 2: epochs of 6 batches, from 2 of epoch 1\n" in resumed
    assert re.findall(r"test [\d.]+", whole) == re.findall(r"test [\d.]+", resumed) != []
