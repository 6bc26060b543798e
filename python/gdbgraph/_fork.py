"""What happens to connections in a process that was forked: they are the other process's."""

from __future__ import annotations

import os
import sys
import weakref
from typing import Any, Protocol


class Forked(Protocol):
    """What has something of the process that it was made in."""

    def forked(self) -> None:
        """It is in a child now: what it shares with the parent is let go, and nothing is sent."""


_known: weakref.WeakSet[Any] = weakref.WeakSet()


def follow(it: Forked) -> None:
    """Has ``it.forked()`` called in each process that is forked from this one."""
    _known.add(it)


def _in_child() -> None:
    for it in list(_known):
        it.forked()


os.register_at_fork(after_in_child=_in_child)


def worker() -> Any:
    """What torch says of this worker of a DataLoader; None where it is none."""
    data = sys.modules.get("torch.utils.data")
    return None if data is None else data.get_worker_info()
