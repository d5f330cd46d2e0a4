"""`python -m webapp.cli COMMAND`: what `./rowsmith COMMAND` becomes once everything is installed."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final

from webapp.cli.arguments import help_text, parse
from webapp.cli.datadir import CliError
from webapp.config import SettingsError
from webapp.paths import ROOT

# Command -> the module whose run(arguments) executes it; imported on demand.
MODULES: Final = {
    "up": "webapp.cli.up",
    "test": "webapp.cli.testing",
    "soak": "webapp.cli.soak",
    "setup": "webapp.cli.setup",
    "sign-in": "webapp.cli.sign_in",
    "key": "webapp.cli.key",
    "plan": "webapp.cli.plan",
    "workspace": "webapp.cli.workspace",
    "release": "webapp.cli.servers",
    "assets": "webapp.cli.servers",
    "migrate": "webapp.cli.servers",
    "web": "webapp.cli.servers",
    "worker": "webapp.cli.servers",
    "sweeper": "webapp.cli.servers",
    "vocab": "webapp.cli.vocab",
    "vault": "webapp.cli.vault",
    "audit": "webapp.cli.audit",
    "backup": "webapp.cli.backup",
    "restore": "webapp.cli.restore",
    "doctor": "webapp.cli.doctor",
    "upgrade": "webapp.cli.upgrade",
    "format": "webapp.cli.formatting",
    "lock": "webapp.cli.lock",
    "build": "webapp.cli.build",
}
OF_CLONES: Final = ("test", "soak", "format", "lock", "build")


def main(argv: Sequence[str]) -> int:
    """Run a command. An error that users can fix is printed as one sentence, with exit status 1."""
    arguments, rest = parse(argv)
    if arguments.command == "help":
        print(help_text(arguments.topic), end="")
        return 0
    arguments.rest = rest
    if arguments.command in OF_CLONES and not (ROOT / "tests").is_dir():
        print(f"rowsmith: {arguments.command} needs a clone: it is not part of the package.", file=sys.stderr)
        return 1
    try:
        return int(importlib.import_module(MODULES[arguments.command]).run(arguments))
    except CliError as error:
        print(f"rowsmith: {error}", file=sys.stderr)
    except SettingsError as error:
        for fault in error.faults:
            print(f"rowsmith: {fault}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
