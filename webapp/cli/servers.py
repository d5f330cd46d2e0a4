"""`./rowsmith release | assets | migrate | web | worker | sweeper`: a single process, configured by the environment."""

from __future__ import annotations

import argparse
import os
import sys

from webapp.cli import assets
from webapp.cli.datadir import DataDir, resolve
from webapp.config import Settings
from webapp.paths import ROOT


def run(arguments: argparse.Namespace) -> int:
    """Replace this process with the command. Returns only after `release`, `assets` and `migrate`, which end."""
    if arguments.command == "assets":
        assets.ensure_built()
        return 0
    data = DataDir(resolve(arguments.data_dir, os.environ))
    env = data.environment(os.environ)
    if arguments.command == "web":
        env |= {
            name: str(value)
            for name, value in (("ROWSMITH_HOST", arguments.host), ("ROWSMITH_PORT", arguments.port))
            if value is not None
        }
    settings = Settings.from_env(env)
    if arguments.command in ("release", "migrate"):
        from webapp.cli.prepare import migrate

        if arguments.command == "release":
            assets.ensure_built()
        migrate(settings)
        return 0
    module = ["jobs." + arguments.command]
    if arguments.command == "worker" and arguments.queues is not None:
        module += ["--queues", arguments.queues]
    if arguments.command == "web":
        assets.ensure_built()
        module = ["gunicorn", "--config", str(ROOT / "gunicorn.conf.py"), "wsgi:app"]
    os.execve(sys.executable, [sys.executable, "-m", *module], env)
