"""Every command, in the order that help tells them."""

from __future__ import annotations

from rowsmith.cli import (
    accounts,
    completion,
    files,
    generating,
    keys,
    pushing,
    running,
    signing_in,
    template_commands,
)
from rowsmith.cli.parser import Branch


def add(root: Branch) -> None:
    """Hang them under the root."""
    signing_in.add(root)
    accounts.add(root)
    template_commands.add(root)
    generating.add(root)
    pushing.add(root)
    running.add(root)
    files.add(root)
    keys.add(root)
    completion.add(root)
