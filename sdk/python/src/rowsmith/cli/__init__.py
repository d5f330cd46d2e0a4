"""The `rowsmith` command: templates, rows, pushes, runs and files from a shell or a pipeline."""

from __future__ import annotations

from rowsmith.cli.command import main

__all__ = ["main"]
