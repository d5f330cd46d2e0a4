"""Templates, and rows of a definition that is sent along."""

from __future__ import annotations

from typing import Any

from flask import Response

from webapp.services import generate, templates
from webapp.services.actors import Actor
from webapp.views.compat.door import ROOT, call
from webapp.views.compat.words import (
    Anything,
    Loose,
    camelled,
    everything,
    fields_in,
    fields_out,
    placed,
    read,
    settled,
)
from webapp.views.generate import DraftIn
from webapp.views.reply import reply
from webapp.views.templates import TemplateIn, TemplatePatch
from webapp.views.versioned import matched

ONE = f"{ROOT}/templates/<template_id>"
_OURS = frozenset({"seed", "warnings", "references", "version", "deleted_at", "label"})


def out(template: dict[str, Any]) -> dict[str, Any]:
    """A template as the clients know it."""
    shown = {
        key: value for key, value in template.items() if key not in ("fields", "deleted_at", "references")
    }
    return {
        **camelled(shown),
        "fields": fields_out(template["fields"]),
        "seed": None,
        "simulationConfig": None,
        "templateFolderId": None,
        "dbOrderIdx": 0,
    }


def _said(body: Loose, *dropped: str) -> dict[str, Any]:
    said = {key: value for key, value in body.said().items() if key not in dropped}
    if "fields" in said:
        said["fields"] = fields_in(said["fields"])
    return said


@call(f"{ROOT}/templates", scope="read")
def templates_list(actor: Actor, query: Anything) -> Response:
    """List the templates of the project."""
    here = placed(actor, "read", query.projectId)
    return reply([out(one) for one in everything(templates.listing, here)])


@call(f"{ROOT}/templates", ["POST"], scope="write", body=Loose, status=201, idempotent=True)
def template_create(actor: Actor, body: Loose) -> Response:
    """Make a template."""
    said = _said(body, *_OURS)
    here = settled(actor, "write", said)
    return reply(out(templates.create(here, **read(TemplateIn, said).model_dump())), status=201)


@call(ONE, scope="read")
def template_show(actor: Actor, template_id: str) -> Response:
    """Read a template."""
    return reply(out(templates.show(templates.get(actor, template_id))), tag=True)


@call(ONE, ["PUT"], scope="write", body=Loose)
def template_change(actor: Actor, template_id: str, body: Loose) -> Response:
    """Change a template, which makes its next version."""
    template = matched(actor, templates.KIND, template_id)
    said = _said(body, *_OURS, "project_id", "team_id")
    changes = read(TemplatePatch, said).model_dump(exclude_unset=True)
    return reply(out(templates.change(actor, template, changes)))


@call(ONE, ["DELETE"], scope="write")
def template_delete(actor: Actor, template_id: str) -> Response:
    """Soft-delete a template."""
    gone = templates.delete(actor, matched(actor, templates.KIND, template_id))
    return reply({"message": f"Template {gone['name']} deleted"})


@call(f"{ROOT}/datamaker", ["POST"], scope="generate", body=Loose, reads=True)
def rows(actor: Actor, body: Loose) -> Response:
    """Rows of the definition in the body, as one bare array."""
    said = _said(body, "format", "warnings", "references", "label")
    if isinstance(said.get("seed"), int | float):
        said["seed"] = str(said["seed"])
    made = generate.draft(actor, read(DraftIn, said), "json")
    headers = {**made.recipe.headers(), "X-Accel-Buffering": "no"}
    return Response(made.body, headers=headers, content_type=made.recipe.content_type)
