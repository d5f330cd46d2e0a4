"""The pages of one version of a template, which are for reading: what it says, and what changed since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson
from flask import Response, render_template

from webapp.access.actors import Actor
from webapp.builder.services import diff
from webapp.engine.types.registry import find
from webapp.errors import ApiError
from webapp.row_templates.models import Template
from webapp.row_templates.services import field_ids, relations
from webapp.web import row_tables
from webapp.web.forms.controls import as_text

_PLAIN: Final = frozenset({"id", "name", "type", "label", "options", "description"})


def page(actor: Actor, template: Template, shown: Mapping[str, Any]) -> Response:
    """A version, to be read and restored."""
    reached = relations.names_of(actor, [one["template_id"] for one in shown["references"]])
    names = {one: name for one, (name, _) in reached.items()}
    text = {key: shown[key] for key in ("name", "description", "quantity", "locale", "anchor", "fields")}
    html = render_template(
        "templates/version.html",
        data=shown,
        newest=template.version,
        names=names,
        fields=list(_fields(shown["fields"], names)),
        json_text=orjson.dumps(text, option=orjson.OPT_INDENT_2).decode(),
        can_write=actor.can("write", template.team_id),
    )
    return Response(html, mimetype="text/html")


def _fields(fields: Any, names: Mapping[str, str], depth: int = 0) -> Iterator[dict[str, Any]]:
    for field in fields:
        kind = find(field["type"])
        said = [(key, value) for key, value in field["options"].items() if key != "fields"]
        said += [
            (key, field[key]) for key in field if key not in _PLAIN and field[key] not in (None, "", False, 0)
        ]
        yield {
            "name": field["name"],
            "depth": depth,
            "label": kind.label if kind else field["type"],
            "description": field["description"],
            "said": [
                (key.replace("_", " "), "" if value is True else names.get(str(value)) or as_text(value))
                for key, value in said
            ],
        }
        yield from _fields(field_ids.children(field), names, depth + 1)


def diff_page(template: Template, number: int, other: int, seed: str) -> Response:
    """Show the differences between two versions."""
    context = compared(template, number, other, seed)
    return Response(render_template("templates/version_diff.html", **context), mimetype="text/html")


def compared(template: Template, number: int, other: int, seed: str) -> dict[str, Any]:
    """Return the context of templates/diff.html: the differences, and the previews of both cell by cell. Error:
    not_found."""
    try:
        found = diff.between(template, number, other, seed)
    except ApiError as error:
        if error.status >= 500 or error.code == "not_found":
            raise
        found = {**diff.between(template, number, other), "problem": error.message}
    grids = row_tables.compared(found["preview"]) if found["preview"] else None
    return {"diff": found, "grids": grids, "seed": seed, "template": template}
