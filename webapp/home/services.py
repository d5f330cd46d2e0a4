"""What the home page shows: the checklist of first steps, a live sample, what was edited lately."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import orjson
from sqlalchemy import exists, select

from webapp import clock
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.audit.models import AuditEntry
from webapp.connections.models import Connection
from webapp.datasets.models import Dataset
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.generation.services import external_values, generate
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import GenerateInput
from webapp.scenarios.models import Scenario

SAMPLE_ROWS: Final = 9
_SAMPLE_COLUMNS: Final = 6
# The audited actions that complete each step. The demo's own entries have no address: no request made them.
_ACTIONS: Final = {
    "change": ("template.update", "template.create"),
    "download": ("template.generate", "template.export", "dataset.export", "export.create"),
    "connect": ("connection.create",),
    "fill": ("template.push", "dataset.push", "connection.fill"),
}


@dataclass(frozen=True, slots=True)
class RecentObject:
    """An object that was changed lately."""

    kind: str
    id: str
    name: str
    at: datetime


def completed_steps(actor: Actor) -> dict[str, bool]:
    """Return which of the first steps the workspace has done: see, change, download, connect, fill."""
    conditions = [
        exists().where(
            AuditEntry.workspace_id == actor.workspace_id,
            AuditEntry.action.in_(actions),
            AuditEntry.address != "",
        )
        for actions in _ACTIONS.values()
    ]
    has_template = tenancy.listing(actor, Template).exists()
    row = db.session.execute(select(has_template, *conditions)).one()
    return dict(zip(("see", *_ACTIONS), map(bool, row), strict=True))


def sample_template(actor: Actor) -> Template | None:
    """Return the template whose rows the home page shows: the oldest of the project; None if there is none."""
    statement = tenancy.listing(actor, Template).order_by(Template.id).limit(1)
    return db.session.scalar(statement)


def sample_rows(actor: Actor, template_id: str, seed: str | None) -> dict[str, Any]:
    """Return the first rows of a template for display: `{columns, rows, seed}`, or `{error}`. They are not counted.

    Errors: not_found, forbidden.
    """
    found = generate.find_template(actor, template_id, "read")
    try:
        source = generate.saved_source(found, None)
        body = GenerateInput(count=min(SAMPLE_ROWS, source.row_count(None)), seed=seed, format="json")
        recipe = external_values.build_recipe(actor, source, body, fetch=False)
        rows = orjson.loads(recipe.open().read())
    except ApiError as error:
        return {"error": error.message}
    columns = list(rows[0])[:_SAMPLE_COLUMNS] if rows else []
    return {"columns": columns, "rows": rows, "seed": recipe.pins.seed}


def recent(actor: Actor, limit: int = 4) -> list[RecentObject]:
    """Return the objects of the project that were changed last."""
    found: list[RecentObject] = []
    for kind, model in (
        ("template", Template),
        ("dataset", Dataset),
        ("scenario", Scenario),
        ("connection", Connection),
    ):
        table: Any = model
        moment = table.updated_at if hasattr(table, "updated_at") else table.created_at
        statement = tenancy.listing(actor, table).with_only_columns(
            table.id, table.name, moment, maintain_column_froms=True
        )
        rows = db.session.execute(statement.order_by(moment.desc()).limit(limit))
        found += [RecentObject(kind, row[0], row[1], row[2]) for row in rows]
    return sorted(found, key=lambda item: item.at or clock.now(), reverse=True)[:limit]
