"""`./rowsmith sign-in [email]`: a new one-time sign-in link, for who has lost their second factor too."""

from __future__ import annotations

import argparse
import sys

from webapp.accounts.models import User
from webapp.accounts.services import sign_in, two_factor
from webapp.cli import operator
from webapp.cli.datadir import CliError
from webapp.config import Settings


def run(arguments: argparse.Namespace) -> int:
    """Print the link alone, so that a program can use it; what else happened goes to the standard error."""
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
    """A fresh one-time link for a user; commits. CliError when nobody knows the service's address."""
    if not settings.public_url:
        raise CliError("PUBLIC_URL is not set, so a link would lead nowhere.")
    return f"{settings.public_url}/sign-in/{sign_in.make_link(user)}"
