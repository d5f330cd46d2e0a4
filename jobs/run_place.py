"""The folders of a run on the runner's machine: its program, its uploads, what it leaves behind. Gone with the run."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from flask import Flask
from sqlalchemy import select

from jobs.sandbox import outputs
from webapp.config import Settings
from webapp.extensions import reading
from webapp.models import Run

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Place:
    """The folders."""

    code: Path
    uploads: Path
    outputs: Path

    def open_up(self) -> None:
        """Let the user that the program runs as read what it is given, whatever our umask. Uploads are readable as they
        are; they may be shared with other runs."""
        for folder in (self.code, self.uploads):
            for path, _, _ in os.walk(folder):
                os.chmod(path, 0o755)  # noqa: S103 - nobody else comes into the folder above
        (self.code / "main.py").chmod(0o644)


def base(settings: Settings) -> Path:
    """Where the folders of all runs lie."""
    return settings.data_dir / "runs"


@contextmanager
def made(settings: Settings, run_id: str, epoch: int, code: str) -> Iterator[Place]:
    """The folders of one run, its program in its own as `main.py`; removed when the block ends."""
    root = base(settings) / f"{run_id}.{epoch}"
    place = Place(root / "code", root / "uploads", root / "outputs")
    root.mkdir(parents=True, mode=0o700)
    try:
        for folder in (place.code, place.uploads, place.outputs):
            folder.mkdir()
        (place.code / "main.py").write_text(code, encoding="utf-8", newline="")
        yield place
    finally:
        _remove(root)


def clear(app: Flask) -> None:
    """Remove the folders of runs that have ended: their runner was killed."""
    folder = base(app.config["SETTINGS"])
    held = {path.name.partition(".")[0]: path for path in folder.iterdir()} if folder.is_dir() else {}
    if not held:
        return
    with reading() as session:
        statement = select(Run.id).where(Run.id.in_(held), Run.status.in_(("queued", "running")))
        open_ones = set(session.scalars(statement))
    for run_id, path in held.items():
        if run_id not in open_ones:
            _remove(path)


def _remove(root: Path) -> None:
    """A folder, whatever a program left in it."""
    try:
        outputs.remove(root)
    except OSError as error:
        log.warning("%s is left behind: %s", root, error)
