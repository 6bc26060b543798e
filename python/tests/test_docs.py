"""The pages about this package: what they show runs, and the reference is that of the docstrings.

The repository is found above the tests, or in GDB_REPOSITORY where they were copied.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(os.environ.get("GDB_REPOSITORY", Path(__file__).resolve().parents[2]))
pytestmark = pytest.mark.skipif(not (REPOSITORY / "docs" / "python.md").exists(),
                                reason="the repository is not here")


def test_gat_in_40_lines(store_path) -> None:
    page = (REPOSITORY / "docs" / "python.md").read_text()
    shown = page.split("```python\n")[1].split("```")[0]
    program = REPOSITORY / "examples" / "gat.py"
    assert shown == program.read_text() and len(shown.splitlines()) <= 40
    pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    done = subprocess.run([sys.executable, "-W", "ignore", str(program), str(store_path)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("epoch 1  val 0.") and done.stdout.count("\n") == 10


def test_reference() -> None:
    path = REPOSITORY / "python" / "reference.py"
    spec = importlib.util.spec_from_file_location("reference", path)
    assert spec is not None and spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    assert reference.PAGE.read_text() == reference.page(), "run python3 python/reference.py"
