"""`./rowsmith sign-in [email]`: a new one-time sign-in link, for who has lost their second factor too."""

from __future__ import annotations

import argparse
import sys

from webapp.access.models import User
from webapp.accounts.services import sign_in, two_factor
from webapp.cli import operator
from webapp.cli.datadir import CliError
from webapp.config import Settings


def run(arguments: argparse.Namespace) -> int:
    """Print only the link to standard output, for scripts, and messages to standard error."""
    if arguments.reset_two_factor and not arguments.email:
        raise CliError("Say whose second factor to take away: ./rowsmith sign-in <email> --reset-two-factor.")
    with operator.application(arguments.data_dir) as settings:
        user = operator.owner(arguments.email).user
        made = link(settings, user)
        if arguments.reset_two_factor:
            had = two_factor.reset(user)
            said = "is taken away" if had else "was not there"
            print(f"The second factor of {user.email} {said}; their sessions have ended.", file=sys.stderr)
        print(made)
    return 0


def link(settings: Settings, user: User) -> str:
    """A fresh one-time link for a user; commits. CliError if the address of the service is unknown."""
    if not settings.public_url:
        raise CliError("Set PUBLIC_URL, so that links have an address.")
    return f"{settings.public_url}/sign-in/{sign_in.make_link(user)}"
