"""Builds gdb into the package: with Go, where this folder is in the repository of gdb.

GDB_BINARY names a program to take in its place. Where there is neither, the package is built
without, and looks for gdb in $PATH.
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
        if getattr(self, "editable_mode", False):
            target = Path(__file__).resolve().parent / "gdbgraph" / "bin" / "gdb"
        else:
            target = Path(self.build_lib) / "gdbgraph" / "bin" / "gdb"
        given = os.environ.get("GDB_BINARY")
        if given:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(given, target)
        elif shutil.which("go") and (REPOSITORY / "cmd" / "gdb").is_dir():
            target.parent.mkdir(parents=True, exist_ok=True)
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
