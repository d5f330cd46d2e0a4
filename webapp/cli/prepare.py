"""Steps of `./rowsmith up` before the first process starts: migrate the schema, create the demo and a sign-in link.

`python -m webapp.cli.prepare [PLAN]` runs as a separate process and prints one JSON object on standard output:
`sign_in_url`, `template_id` (to try it with), and `api_key` if it was created now.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import flask_migrate
from sqlalchemy import make_url, select
from sqlalchemy.exc import DatabaseError

from webapp import create_app, limits
from webapp.access.models import ApiKey, Workspace
from webapp.backup import database
from webapp.cli import accounts, operator
from webapp.cli.datadir import CliError
from webapp.config import Settings
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.operations import demo_workspace
from webapp.row_templates.models import Template
from webapp.row_templates.services import vocabularies


def migrate(settings: Settings) -> None:
    """Migrate the database to this version's schema. Existing data stays."""
    if settings.is_sqlite:
        file = Path(make_url(settings.sqlalchemy_url).database or "")
        try:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise CliError(
                f"The folder of the database, {file.parent}, cannot be created ({error.strerror})."
            ) from error
    app = create_app(settings, routes=False)
    database.init_app(app)
    with app.app_context():
        _upgrade()


def _upgrade() -> None:
    flask_migrate.upgrade()
    secure_vocabularies()


def secure_vocabularies() -> None:
    """Copy the vocabularies that template versions pin to the storage. Failures are reported and ignored."""
    try:
        missing = vocabularies.store_pinned()
    except ApiError as error:
        print(f"rowsmith: {error.message}", file=sys.stderr)
        return
    for vocabulary_id in missing:
        print(
            f"rowsmith: vocabulary {vocabulary_id} is pinned by versions of templates and is missing: "
            f"./rowsmith vocab install {vocabulary_id}",
            file=sys.stderr,
        )


def create_demo_access(settings: Settings, plan: str | None) -> dict[str, str]:
    """Create the demo in an empty service, set its plan, and return how to sign in. Needs an application context."""
    demo_workspace.ensure_demo(plan or limits.DEMO_PLAN)
    owner = operator.find_owner()
    workspace = db.session.get_one(Workspace, owner.actor.workspace_id)
    if plan and workspace.plan != plan:
        accounts.change_plan(workspace, plan, {})
    found = {"sign_in_url": accounts.create_sign_in_link(settings, owner.user)}
    keys = select(ApiKey.id).where(ApiKey.workspace_id == workspace.id).limit(1)
    if db.session.scalar(keys) is None:
        found["api_key"] = accounts.create_key(owner, "first key")
    templates = select(Template.id).where(
        Template.project_id == owner.actor.project_id, Template.deleted_at.is_(None)
    )
    if template_id := db.session.scalar(templates.order_by(Template.id).limit(1)):
        found["template_id"] = template_id
    return found


def main(argv: Sequence[str]) -> None:
    """Migrate, then make sure that there is a user who can sign in. `argv` is the plan of the demo, or nothing."""
    settings = Settings.from_env(os.environ)
    app = create_app(settings, routes=False)
    database.init_app(app)
    with app.app_context():
        try:
            _upgrade()
        except DatabaseError as error:
            sys.exit(
                f"rowsmith: The database cannot be brought up to date: {error.orig}. See docs/runbook.md."
            )
        try:
            found = create_demo_access(settings, argv[0] if argv else None)
        except CliError as error:
            sys.exit(f"rowsmith: {error}")
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
