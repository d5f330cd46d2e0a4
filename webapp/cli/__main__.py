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

# Command -> module:function that executes it; imported on demand.
COMMAND_FUNCTIONS: Final = {
    "up": "webapp.cli.up:run",
    "test": "webapp.cli.development:run_test",
    "soak": "webapp.cli.development:run_soak",
    "setup": "webapp.cli.accounts:run_setup",
    "sign-in": "webapp.cli.accounts:run_sign_in",
    "key": "webapp.cli.accounts:run_key",
    "plan": "webapp.cli.accounts:run_plan",
    "workspace": "webapp.cli.accounts:run_workspace",
    "release": "webapp.cli.servers:run",
    "assets": "webapp.cli.servers:run",
    "migrate": "webapp.cli.servers:run",
    "web": "webapp.cli.servers:run",
    "worker": "webapp.cli.servers:run",
    "sweeper": "webapp.cli.servers:run",
    "vocab": "webapp.cli.vocab:run",
    "vault": "webapp.cli.vault:run",
    "audit": "webapp.cli.audit:run",
    "backup": "webapp.cli.backup:run_backup",
    "restore": "webapp.cli.backup:run_restore",
    "doctor": "webapp.cli.doctor:run",
    "upgrade": "webapp.cli.backup:run_upgrade",
    "format": "webapp.cli.development:run_format",
    "lock": "webapp.cli.development:run_lock",
    "build": "webapp.cli.development:run_build",
}
CLONE_COMMANDS: Final = ("test", "soak", "format", "lock", "build")


def main(argv: Sequence[str]) -> int:
    """Run a command. An error that users can fix is printed as one sentence, with exit status 1."""
    arguments, rest = parse(argv)
    if arguments.command == "help":
        print(help_text(arguments.topic), end="")
        return 0
    arguments.rest = rest
    if arguments.command in CLONE_COMMANDS and not (ROOT / "tests").is_dir():
        print(
            f"rowsmith: {arguments.command} requires a clone of the repository: it is not part of the package.",
            file=sys.stderr,
        )
        return 1
    try:
        module, _, function = COMMAND_FUNCTIONS[arguments.command].partition(":")
        return int(getattr(importlib.import_module(module), function)(arguments))
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
