"""What the processes of this package share: settings, logging, and dying with their parent."""

from __future__ import annotations

import ctypes
import importlib
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from flask import Flask

from webapp import create_app
from webapp.config import Settings, SettingsError
from webapp.operations import process_log

PR_SET_PDEATHSIG = 1  # prctl(2)


def application() -> Flask:
    """The application of the environment's settings, without routes, logging to standard error. Leaves with 1 when they
    are wrong."""
    try:
        settings = Settings.from_env(os.environ)
    except SettingsError as error:
        print("\n".join(f"rowsmith: {fault}" for fault in error.faults), file=sys.stderr)
        raise SystemExit(1) from None
    process_log.configure(settings)
    return create_app(settings, routes=False)


def named(dotted: str) -> Callable[..., Any]:
    """The function that a dotted string names, imported now."""
    module, _, name = dotted.rpartition(".")
    return getattr(importlib.import_module(module), name)


def die_with(parent: int) -> None:
    """Let the kernel kill this process as soon as `parent`, its maker, is gone (Linux; elsewhere nothing happens).

    Ends at once if the parent went before the kernel was told.
    """
    if not sys.platform.startswith("linux"):
        return
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(1)
