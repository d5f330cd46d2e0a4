"""`./rowsmith sign-in [email]`: a new one-time sign-in link."""

from __future__ import annotations

import argparse

from webapp.cli import operator
from webapp.cli.datadir import CliError
from webapp.config import Settings
from webapp.models import User
from webapp.services import sign_in


def run(arguments: argparse.Namespace) -> int:
    """Print the link alone, so that a program can use it."""
    with operator.application(arguments.data_dir) as settings:
        print(link(settings, operator.owner(arguments.email).user))
    return 0


def link(settings: Settings, user: User) -> str:
    """A fresh one-time link for a user; commits. CliError when nobody knows the service's address."""
    if not settings.public_url:
        raise CliError("PUBLIC_URL is not set, so a link would lead nowhere.")
    return f"{settings.public_url}/sign-in/{sign_in.make_link(user)}"
