"""Turn a starter into templates and a dataset, or one of its tables into a draft."""

from __future__ import annotations

from typing import Any

from webapp.access.actors import Actor, require_scope
from webapp.access.tenancy import not_found
from webapp.datasets.services import datasets
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.row_templates.services import templates
from webapp.starters.catalogue import STARTERS, Starter


def get(key: str) -> Starter:
    """Return a starter. Error: not_found."""
    try:
        return STARTERS[key]
    except KeyError:
        raise not_found("starter", key) from None


def table_draft(name: str) -> dict[str, Any] | None:
    """Return the definition of a table without references, by `starter.table`, as a draft; None if there is none.

    The number of rows is left out: that of the starter fits the other tables of its dataset, and a draft has none.
    """
    key, _, table = name.partition(".")
    starter = STARTERS.get(key)
    found = starter.table(table) if starter else None
    if starter is None or found is None or starter.parents(found):
        return None
    draft = {**found, "fields": [dict(field) for field in found["fields"]]}
    draft.pop("quantity", None)
    return draft


def standalone_tables() -> list[tuple[str, str]]:
    """Return the tables that can be opened as drafts, because they have no references: (`starter.table`, title)."""
    return [
        (f"{starter.key}.{table['name']}", starter.title(table))
        for starter in STARTERS.values()
        for table in starter.tables
        if not starter.parents(table)
    ]


def create(actor: Actor, starter: Starter) -> dict[str, Any]:
    """Create the templates of a starter and a dataset of them in the actor's project; commits.

    The names of its templates begin with the starter's folder, so that users can distinguish two
    starters, or two copies of one. If a table cannot be created, those before it are deleted again. Returns the
    dataset. Errors: forbidden, and those of templates and datasets.
    """
    require_scope(actor, "write", actor.team_id)
    ids: dict[str, str] = {}
    try:
        for table in starter.tables:
            fields = []
            for field in table["fields"]:
                options = field["options"]
                if name := options.get("template_id"):  # of a table that was created before
                    options = {**options, "template_id": ids[name]}
                fields.append({**field, "options": options})
            template = templates.create(
                actor,
                name=f"{starter.name}/{table['name']}",
                description=table["description"],
                quantity=table["quantity"],
                fields=fields,
            )
            ids[table["name"]] = template["id"]
        return datasets.create(
            actor,
            name=starter.name,
            description=starter.about,
            templates=[
                {"template_id": ids[table["name"]], "count": None, "name": table["name"]}
                for table in starter.tables
            ],
        )
    except ApiError:
        db.session.rollback()
        for template_id in reversed(ids.values()):
            templates.delete(actor, templates.get(actor, template_id, "write", lock=True))
        raise
