"""The command `rowsmith-server` of the package of the same name.

The package contains the files of a release (`webapp`, `templates`, the browser code and so on) in this folder. The
command does what `./rowsmith` does in a clone, except installing anything. Data is in `$XDG_DATA_HOME/rowsmith`
(`~/.local/share/rowsmith`) unless `--data-dir` or ROWSMITH_DATA_DIR names another folder.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn


def main() -> NoReturn:
    """Become the command, in the folder where its modules are."""
    environment = dict(os.environ)
    environment.setdefault("ROWSMITH_CALLER_DIR", os.getcwd())  # relative paths are the caller's
    data = Path(environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "rowsmith"
    environment.setdefault("ROWSMITH_DATA_DIR", str(data))
    environment.pop("PYTHONSAFEPATH", None)  # with it, Python would not find the modules there
    os.chdir(Path(__file__).resolve().parent)
    os.execve(sys.executable, [sys.executable, "-m", "webapp.cli", *sys.argv[1:]], environment)
