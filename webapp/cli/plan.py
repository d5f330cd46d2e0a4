"""`./rowsmith plan [workspace] [free|pro|enterprise]`: which limits a workspace has."""

from __future__ import annotations

import argparse
from typing import Final

from sqlalchemy import select

from webapp import limits
from webapp.access import actors
from webapp.access.models import Workspace
from webapp.accounts.services import workspaces
from webapp.cli import operator
from webapp.cli.datadir import CliError
from webapp.extensions import db

OWN: Final = ("requests_per_minute", "rows_per_hour", "rows_per_generation")


def run(arguments: argparse.Namespace) -> int:
    """Show, or change and show. New limits hold from the next request on."""
    own = {name: value for name in OWN if (value := getattr(arguments, name)) is not None}
    if own and arguments.plan != "enterprise":
        raise CliError(
            "Limits can only be set for the enterprise plan: ./rowsmith plan WORKSPACE enterprise ..."
        )
    for name, value in own.items():
        if value > (most := getattr(limits.ENTERPRISE_MAX, name)):
            raise CliError(
                f"{value:,} is more than this service carries: --{name.replace('_', '-')} up to {most:,}."
            )
    with operator.application(arguments.data_dir):
        if arguments.workspace is None:
            shown = list(db.session.scalars(select(Workspace).order_by(Workspace.id)))
        else:
            shown = [operator.workspace(arguments.workspace)]
        if arguments.plan:
            change(shown[0], arguments.plan, own)
        for workspace in shown:
            print(line(workspace))
    return 0


def change(workspace: Workspace, plan: str, own: dict[str, int]) -> None:
    """Change the plan and the limits of a workspace, and commit."""
    workspaces.change_workspace(actors.system(workspace.id), {"plan": plan, "own_limits": own})


def line(workspace: Workspace) -> str:
    """One workspace and its limits."""
    now = workspace.limits
    return (
        f"{workspace.id}  {workspace.name}  {workspace.plan}: {now.requests_per_minute:,} requests a minute, "
        f"{now.rows_per_hour:,} rows per hour, {now.rows_per_generation:,} rows per job"
    )
