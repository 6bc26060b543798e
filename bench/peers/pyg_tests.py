"""Runs the tests of PyTorch Geometric of loaders, samplers, stores and metrics with the classes of
gdb in the place of its own, and prints what passes and why others do not.

    python bench/peers/pyg_tests.py SOURCE [--json FILE]

SOURCE is a directory with PyG's source and its folder test, of the version that is installed. The
source distribution of 2.8 has no tests: take the archive of its tag. Nothing of it is changed, and
pytest runs on a copy. The packages torch_geometric, gdbgraph and pytest must be installed, and
torch-sparse for the tests that compare with its matrices.

A test counts as reaching gdb if it makes one of gdb's loaders or samplers. Tests that are skipped
count apart, with the reason.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

FILES = ("loader", "sampler", "metrics", "data/test_feature_store.py", "data/test_graph_store.py")
NAMES = ("NeighborLoader", "LinkNeighborLoader", "HGTLoader", "NeighborSampler", "HGTSampler")
#: Tests that are not of what gdb replaces, and why.
APART = {
    "test_pyg_lib_and_torch_sparse": "compares the operators of pyg-lib with those of torch-sparse",
}
#: Tests of which PyG says that they need torch-sparse, and that need its sampler alone.
SAMPLER_ALONE = ("test_hgt_loader_disconnected",)


# What follows runs inside pytest, which takes this file as a plugin.

_reached: set[str] = set()
_running = ""


def pytest_configure(config: Any) -> None:
    """Puts gdb's classes in the place of PyG's before tests are imported."""
    for mark in ("dataset", "rag", "online"):
        config.addinivalue_line("markers", mark)
    import torch_geometric.testing.decorators as decorators
    import torch_geometric.typing as typing

    from gdbgraph import _samplers, loaders

    for flag in ("WITH_PYG_LIB", "WITH_EDGE_TIME_NEIGHBOR_SAMPLE",
                 "WITH_WEIGHTED_NEIGHBOR_SAMPLE"):
        setattr(typing, flag, True)  # tests ask these whether there is something that samples
    decorators.WITH_PYG_LIB = True
    has = decorators.has_package
    decorators.has_package = lambda package: package == "pyg_lib" or has(package)
    ours = {n: getattr(loaders, n) for n in NAMES if n.endswith("Loader")}
    ours |= {n: getattr(_samplers, n) for n in NAMES if n.endswith("Sampler")}
    for name, made in ours.items():
        _count(made)
        for module in list(sys.modules.values()):
            theirs = getattr(module, "__dict__", {}).get(name)
            if module.__name__.startswith("torch_geometric.") and isinstance(theirs, type) and \
                    "loader.neighbor_sampler" not in theirs.__module__:
                setattr(module, name, made)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Runs tests that are skipped without torch-sparse though they take nothing but its sampler."""
    for item in items:
        if item.name in SAMPLER_ALONE:
            item.own_markers = [m for m in item.own_markers if m.name != "skipif"]


def _count(kind: type) -> None:
    """Notes which tests make one of a kind."""
    begin = kind.__init__

    def counted(self: Any, *args: Any, **options: Any) -> None:
        _reached.add(_running)
        begin(self, *args, **options)

    kind.__init__ = counted  # type: ignore[misc]


def pytest_runtest_setup(item: Any) -> None:
    """Notes which test runs."""
    global _running
    _running = item.nodeid


def pytest_runtest_logreport(report: Any) -> None:
    """Writes what became of a test, a line each."""
    why = ""
    if report.skipped:
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    elif report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        why = crash.message.splitlines()[0] if crash else str(report.longrepr)[-300:]
    if report.when == "call" or not report.passed:
        with Path("results.jsonl").open("a") as out:
            out.write(json.dumps({"test": report.nodeid, "outcome": report.outcome, "why": why,
                                  "gdb": report.nodeid in _reached}) + "\n")


# What follows is the script.


def run(source: Path) -> list[dict[str, Any]]:
    """The outcome of each test."""
    if not (source / "test" / "loader").is_dir():
        raise SystemExit(f"{source} has no test/loader: want PyG's source with its tests")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        shutil.copytree(source / "test", work / "test")
        files = [f"test/{f}" for f in FILES]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "pyg_tests", "-c", "/dev/null",
                   "--rootdir", str(work), "-o", "faulthandler_timeout=120", *files]
        (work / "pyg_tests.py").write_text(Path(__file__).read_text())
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        with contextlib.suppress(FileNotFoundError):
            return [json.loads(line) for line in (work / "results.jsonl").open()]
    raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])


def by_function(results: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The outcome of each function: the worst of its parameters; skipped if all of them are."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for result in results:
        groups[re.sub(r"\[.*", "", result["test"])].append(result)
    made = {}
    for name, group in groups.items():
        failed = [r for r in group if r["outcome"] == "failed"]
        passed = [r for r in group if r["outcome"] == "passed"]
        worst = (failed or passed or group)[0]
        apart = next((why for part, why in APART.items() if part in name), "")
        made[name] = {"outcome": "apart" if apart else worst["outcome"],
                      "why": apart or worst["why"], "gdb": any(r["gdb"] for r in group),
                      "cases": len(group), "failed": len(failed)}
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("--json", type=Path, help="write the outcome of each function there")
    args = parser.parse_args()
    functions = by_function(run(args.source.resolve()))
    if args.json:
        args.json.write_text(json.dumps(functions, indent=1))
    for reached, what in ((True, "reach gdb"), (False, "are PyG's alone")):
        of = {n: f for n, f in functions.items() if f["gdb"] == reached}
        count = Counter(f["outcome"] for f in of.values())
        applied = count["passed"] + count["failed"]
        share = 100 * count["passed"] / applied if applied else 0
        print(f"{len(of)} functions {what}: {count['passed']} of {applied} pass ({share:.1f} %), "
              f"{count['skipped'] + count['apart']} do not apply")
    for name, f in sorted(functions.items()):
        if f["outcome"] != "passed":
            print(f"{f['outcome']:8} {'gdb' if f['gdb'] else '   '} {name} "
                  f"({f['failed']} of {f['cases']} cases fail): {f['why'][:200]}")


if __name__ == "__main__":
    main()
