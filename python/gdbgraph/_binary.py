"""Finds the program gdb that serves stores, and not the debugger of that name."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

from ._wire import GdbError

_ADVICE = (
    "set GDB_BINARY to the program, or install this package from its repository where Go is, "
    "which builds it"
)


def find() -> str:
    """The path of gdb: $GDB_BINARY, the one in this package, or one in $PATH."""
    given = os.environ.get("GDB_BINARY")
    if given:
        if not is_ours(given):
            raise GdbError(f"GDB_BINARY={given}: this is not gdb, the store for graphs: {_ADVICE}")
        return given
    inside = Path(__file__).parent / "bin" / "gdb"
    if inside.is_file() and is_ours(str(inside)):
        return str(inside)
    for folder in os.get_exec_path():
        found = shutil.which("gdb", path=folder)
        if found and is_ours(found):
            return found
    raise GdbError(f"gdb, the store for graphs, is not there: {_ADVICE}")


@lru_cache
def is_ours(path: str) -> bool:
    """Whether a program is gdb: it can say its version, as the debugger cannot."""
    try:
        done = subprocess.run(
            [path, "serve", "--help"], capture_output=True, text=True, timeout=20, check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and "--socket" in done.stdout
