"""`./rowsmith key new | list | revoke`: API keys, for the operator."""

from __future__ import annotations

import argparse
import sys
from datetime import timedelta

from sqlalchemy import select

from webapp import clock
from webapp.access import actors
from webapp.access.models import NEWEST_VERSION, ApiKey, User
from webapp.accounts.services import api_keys
from webapp.cli import operator
from webapp.cli.datadir import CliError
from webapp.extensions import db


def run(arguments: argparse.Namespace) -> int:
    """Run the action. Only the new key is printed to standard output, so that `$(./rowsmith key new)` works."""
    with operator.application(arguments.data_dir):
        {"new": _new, "list": _list, "revoke": _revoke}[arguments.action](arguments)
    return 0


def make(owner: operator.Owner, name: str) -> str:
    """Return the text of a new key with all permissions of its user; commits."""
    _, text = api_keys.create(owner.actor, name, api_version=NEWEST_VERSION, user_id=owner.user.id)
    return text


def _new(arguments: argparse.Namespace) -> None:
    owner = operator.owner(arguments.email, arguments.project)
    expires = clock.now() + timedelta(days=arguments.days) if arguments.days else None
    scopes = [scope.strip() for scope in arguments.scopes.split(",")] if arguments.scopes else None
    key, text = api_keys.create(
        owner.actor,
        arguments.name,
        api_version=NEWEST_VERSION,
        scopes=scopes,
        expires_at=expires,
        user_id=owner.user.id,
    )
    print(text)
    print(f"rowsmith: key {key.handle} of {owner.user.email}; it is shown only now", file=sys.stderr)


def _list(_arguments: argparse.Namespace) -> None:
    statement = select(ApiKey, User).join(User, User.id == ApiKey.created_by)
    statement = statement.where(ApiKey.run_id.is_(None)).order_by(
        ApiKey.id
    )  # the key of a run expires with the run
    for key, user in db.session.execute(statement).tuples():
        used = clock.to_text(key.last_used_at) or "never used"
        print(f"{key.handle}  {_state(key):<8}  {user.email}  {key.name}  ({used})")


def _state(key: ApiKey) -> str:
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= clock.now() else "active"


def _revoke(arguments: argparse.Namespace) -> None:
    if not arguments.handle:
        raise CliError("Name the key to revoke: ./rowsmith key list shows them.")
    handle = arguments.handle.removeprefix("rws_").partition("_")[0]
    key = db.session.scalar(select(ApiKey).where(ApiKey.handle == handle))
    if key is None:
        raise CliError(f"There is no key {handle}.")
    api_keys.revoke(actors.system(key.workspace_id, key.project_id, key.team_id), key)
    print(f"{handle} is revoked")
