"""Builds gdb into the package: with Go, where this folder is in the repository of gdb.

GDB_BINARY names a program to take in its place. Without either nothing is built: a package without
gdb would fail at its first use only.
"""

import os
import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

REPOSITORY = Path(__file__).resolve().parent.parent


class BuildWithBinary(build_py):
    """Puts gdb into the built package."""

    def run(self) -> None:
        super().run()
        base = Path(__file__).parent if getattr(self, "editable_mode", False) else self.build_lib
        target = Path(base).resolve() / "gdbgraph" / "bin" / "gdb"  # go runs in another folder
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)  # one that an earlier build has left
        given = os.environ.get("GDB_BINARY")
        if given:
            shutil.copy2(given, target)
        elif not (REPOSITORY / "cmd" / "gdb").is_dir():
            raise SystemExit(f"gdb is not in the package, and {REPOSITORY} is not its repository: "
                             "install from there, or set GDB_BINARY to the program")
        elif not shutil.which("go"):
            raise SystemExit("Go is not in PATH, which builds gdb into the package: install it from "
                             "https://go.dev/dl, or set GDB_BINARY to a gdb that is built")
        else:
            subprocess.run(
                ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", str(target), "./cmd/gdb"],
                cwd=REPOSITORY, check=True, env={**os.environ, "CGO_ENABLED": "0"},
            )


class PlatformWheel(bdist_wheel):
    """A wheel for this kind of machine, and for every Python: it holds a program."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(cmdclass={"build_py": BuildWithBinary, "bdist_wheel": PlatformWheel})
