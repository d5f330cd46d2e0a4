"""`./rowsmith workspace list` and `restore`: deleted workspaces, which only operators can restore."""

from __future__ import annotations

import argparse

from sqlalchemy import select

from webapp.access import actors
from webapp.access.models import Workspace
from webapp.accounts.services import workspaces
from webapp.cli import operator
from webapp.cli.datadir import CliError
from webapp.extensions import db


def run(arguments: argparse.Namespace) -> int:
    """List all workspaces, deleted ones marked; or take a deletion back."""
    # The list is also needed without a running service, such as after a restoration.
    with operator.application(arguments.data_dir, running=arguments.action != "list"):
        if arguments.action == "list":
            for one in db.session.scalars(select(Workspace).order_by(Workspace.id)):
                print(line(one))
            return 0
        if arguments.workspace is None:
            raise CliError("Name the workspace to restore: ./rowsmith workspace restore WORKSPACE")
        found = operator.workspace(arguments.workspace)
        if found.deleted_at is None:
            raise CliError(f"The workspace {found.name} is not deleted: there is nothing to restore.")
        workspaces.restore_workspace(actors.system(found.id), found)
        print(line(found))
    return 0


def line(workspace: Workspace) -> str:
    """One workspace."""
    state = f"deleted {workspace.deleted_at:%Y-%m-%d %H:%M} UTC" if workspace.deleted_at else workspace.plan
    return f"{workspace.id}  {workspace.name}  {state}"
