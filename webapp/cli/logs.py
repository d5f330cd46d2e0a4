"""Log files of the parts: kept from growing without end, and read back when a part dies."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from webapp import limits


def turn_over(path: Path) -> None:
    """Keep a log under LOG_FILE_BYTES: past it, its content moves to `<name>.1` and the file starts empty.

    The writer keeps its file open in append mode, so the file is emptied in place; a line written in the very moment
    between copy and emptying is lost.
    """
    with suppress(FileNotFoundError):
        if path.stat().st_size > limits.LOG_FILE_BYTES:
            old = path.with_name(f"{path.name}.1")
            shutil.copyfile(path, old)
            os.chmod(old, 0o600)
            os.truncate(path, 0)


def tail(path: Path, offset: int, lines: int) -> list[str]:
    """The last lines of what was written after byte `offset`."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(offset if offset <= size else 0, size - 64 * 1024))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
