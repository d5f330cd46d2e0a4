"""Folders of the clone that the application runs from."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


# Where the launcher puts static/ with the browser code when the clone itself cannot be written.
STATIC_COPY = Path(sys.prefix) / "share" / "rowsmith" / "static"


def static_folder() -> Path:
    """Return static/ of the clone, or the launcher's copy if only that has the browser code."""
    own = ROOT / "static"
    return STATIC_COPY if STATIC_COPY.is_dir() and not (own / "vendor").is_dir() else own
