"""Shared parts of worker processes: settings, logging, and ending with the parent process."""

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
from webapp.monitoring import process_log

PR_SET_PDEATHSIG = 1  # prctl(2)


def create_application() -> Flask:
    """Create the application from the environment's settings, without routes, logging to standard error. Exit
    with status 1 if the settings are invalid."""
    try:
        settings = Settings.from_env(os.environ)
    except SettingsError as error:
        print("\n".join(f"rowsmith: {fault}" for fault in error.faults), file=sys.stderr)
        raise SystemExit(1) from None
    process_log.configure(settings)
    return create_app(settings, routes=False)


def import_function(dotted: str) -> Callable[..., Any]:
    """Import and return the function with this dotted name."""
    module, _, name = dotted.rpartition(".")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def exit_with_parent(parent: int) -> None:
    """Ask the kernel to kill this process when `parent` ends (Linux only).

    Exit immediately if the parent has already ended.
    """
    if not sys.platform.startswith("linux"):
        return
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(1)
