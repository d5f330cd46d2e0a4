"""`./rowsmith soak`: hours of mixed load on one stack, with measurements and charts. Promise 25 requires four hours."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from webapp.cli import assets
from webapp.cli.datadir import CliError
from webapp.cli.testing import UNSEEN
from webapp.config import LAUNCHER_NAMES
from webapp.paths import ROOT

TEST: Final = "tests/soak/test_mixed_load.py"


def run(arguments: argparse.Namespace) -> int:
    """Returns 0 when all held. The measurements are written to `--out` in any case."""
    if not (ROOT / TEST).is_file():
        raise CliError(f"There is no {TEST} here: the soak is run from a clone of the project.")
    assets.ensure()
    folder = Path(arguments.out).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    env = {name: value for name, value in os.environ.items() if name not in (*UNSEEN, *LAUNCHER_NAMES)}
    env |= {
        "SOAK_MINUTES": str(60 * arguments.hours),
        "SOAK_STACK": arguments.stack,
        "SOAK_FOLDER": str(folder),
        "PYTHONPATH": str(ROOT / "sdk" / "python" / "src"),
    }
    print(
        f"{arguments.hours:g} h on {arguments.stack}; measurements go to {folder / arguments.stack}",
        flush=True,
    )
    command = [sys.executable, "-m", "pytest", "-s", "-o", "faulthandler_timeout=0", TEST]
    return subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, check=False).returncode
