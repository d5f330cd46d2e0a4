"""Every command, in the order of the help."""

from __future__ import annotations

from rowsmith.cli import (
    accounts,
    completion,
    files,
    generating,
    keys,
    pushing,
    running,
    schedules,
    signing_in,
    template_commands,
)
from rowsmith.cli.parser import Branch


def add(root: Branch) -> None:
    """Add the commands to the parser."""
    signing_in.add(root)
    accounts.add(root)
    template_commands.add(root)
    generating.add(root)
    pushing.add(root)
    running.add(root)
    schedules.add(root)
    files.add(root)
    keys.add(root)
    completion.add(root)
