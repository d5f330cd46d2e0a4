"""Waiting for another process, without guessing how long it takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")


def eventually(condition: Callable[[], Found], within: float = 20.0) -> Found:
    """What `condition` returns once that is true; AssertionError if it does not become so."""
    deadline = time.monotonic() + within
    pause = threading.Event()
    while not (found := condition()):
        assert time.monotonic() < deadline, f"not within {within} s: {condition}"
        pause.wait(0.02)
    return found
