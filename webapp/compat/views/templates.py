"""Templates, and rows of a definition that is sent along."""

from __future__ import annotations

from functools import partial
from typing import Any

from flask import Response

from webapp.access.actors import Actor
from webapp.builder.inputs import TemplateIn, TemplatePatch
from webapp.builder.views.templates import more_of_template
from webapp.compat.views.folders import TEMPLATES, Folders
from webapp.compat.views.objects import masked
from webapp.compat.views.routing import ROOT, call
from webapp.compat.views.words import (
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
from webapp.generation.services import generate
from webapp.generation.views import DraftIn, more_of_draft
from webapp.row_templates.services import templates
from webapp.versioning.views import matched
from webapp.web.responses import reply

ONE = f"{ROOT}/templates/<template_id>"
_OURS = frozenset({"seed", "warnings", "references", "version", "deleted_at", "label"})


def out(template: dict[str, Any], folders: Folders | None = None) -> dict[str, Any]:
    """A template in the compatible format. `folders`: the folders of its project, if they were loaded already."""
    folders = folders or Folders(TEMPLATES, template["project_id"])
    shown = {
        key: value for key, value in template.items() if key not in ("fields", "deleted_at", "references")
    }
    return {
        **camelled(shown),
        "fields": fields_out(template["fields"]),
        "seed": None,
        "simulationConfig": None,
        "dbOrderIdx": 0,
        **folders.shown(template["name"]),
    }


def _said(body: Loose, *dropped: str) -> dict[str, Any]:
    return {key: value for key, value in body.said().items() if key not in dropped}


def _put_fields(actor: Actor, said: dict[str, Any], present: Any = None) -> None:
    """Convert the fields of the request to those of the native API, with the masking of the named policy. `present`:
    the fields that a template has, which are masked if the request has none."""
    policy_id = said.pop("masking_policy_id", None)
    if "fields" in said:
        said["fields"] = fields_in(actor, said["fields"])
    if policy_id is not None:
        said["fields"] = masked(actor, str(policy_id), said.get("fields", present))


@call(f"{ROOT}/templates", scope="read")
def templates_list(actor: Actor, query: Anything) -> Response:
    """List the templates of the project."""
    here = placed(actor, "read", query.projectId)
    folders = Folders(TEMPLATES, here.project_id or "")
    return reply([out(one, folders) for one in everything(templates.listing, here)])


@call(f"{ROOT}/templates", ["POST"], scope="write", body=Loose, idempotent=True)
def template_create(actor: Actor, body: Loose) -> Response:
    """Create a template."""
    said = _said(body, *_OURS)
    here = settled(actor, "write", said)
    _put_fields(here, said)
    Folders(TEMPLATES, here.project_id or "").put(said, body)
    given = read(TemplateIn, said, partial(more_of_template, here))
    return reply(out(templates.create(here, **given.model_dump())))


@call(ONE, scope="read")
def template_show(actor: Actor, template_id: str) -> Response:
    """Get a template."""
    return reply(out(templates.show(templates.get(actor, template_id))), tag=True)


@call(ONE, ["PUT"], scope="write", body=Loose)
def template_change(actor: Actor, template_id: str, body: Loose) -> Response:
    """Change a template, which creates its next version."""
    template = matched(actor, templates.KIND, template_id)
    said = _said(body, *_OURS, "project_id", "team_id")
    _put_fields(placed(actor, "write", template.project_id), said, templates.show(template)["fields"])
    Folders(TEMPLATES, template.project_id).put(said, body, template.name)
    more = partial(more_of_template, actor, template_id=template_id)
    changes = read(TemplatePatch, said, more).model_dump(exclude_unset=True)
    return reply(out(templates.change(actor, template, changes)))


@call(ONE, ["DELETE"], scope="write")
def template_delete(actor: Actor, template_id: str) -> Response:
    """Delete a template."""
    gone = templates.delete(actor, matched(actor, templates.KIND, template_id))
    return reply({"message": f"Template {gone['name']} deleted"})


@call(f"{ROOT}/datamaker", ["POST"], scope="generate", body=Loose, reads=True)
def rows(actor: Actor, body: Loose) -> Response:
    """Rows of the definition in the body, as one bare array."""
    said = _said(body, "format", "warnings", "references", "label")
    _put_fields(actor, said)
    if isinstance(said.get("seed"), int | float):
        said["seed"] = str(said["seed"])
    made = generate.draft(actor, read(DraftIn, said, partial(more_of_draft, actor)), "json")
    headers = {**made.recipe.headers(), "X-Accel-Buffering": "no"}
    return Response(made.body, headers=headers, content_type=made.recipe.content_type)
