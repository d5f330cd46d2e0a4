"""Which objects of a project name which others: by the ids that stand in what they say.

Ids name an object without doubt, wherever they stand: in a field's options, a source, an endpoint's connection, a
scenario's program. Only the newest versions count; earlier ones are history.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
from sqlalchemy import ColumnElement, Select, Text, cast, or_, select

from webapp.extensions import db
from webapp.models import (
    Connection,
    Dataset,
    DatasetVersion,
    Endpoint,
    Scenario,
    ScenarioVersion,
    Template,
    TemplateVersion,
    WorkspaceFile,
)

# What lies in a project, by the front of its ids.
KINDS: Final[Mapping[str, Any]] = {
    "tpl": Template, "dst": Dataset, "scn": Scenario, "con": Connection, "end": Endpoint, "fil": WorkspaceFile,
}  # fmt: skip
_VERSIONS: Final[Mapping[Any, Any]] = {
    Template: TemplateVersion, Dataset: DatasetVersion, Scenario: ScenarioVersion,
}  # fmt: skip
_ID: Final = re.compile(rb"(?:tpl|dst|scn|con|end)_[0-9A-Za-z]{26}")


def word_of(model: Any) -> str:
    """What an object of this kind is called: `template`."""
    return "file" if model is WorkspaceFile else str(model.__name__).lower()


def kind_of(object_id: str) -> Any:
    """The kind whose ids look like this one; None for none."""
    return KINDS.get(object_id.partition("_")[0])


def named_in(said: Any) -> set[str]:
    """The ids that stand anywhere in a JSON value."""
    return {found.decode() for found in _ID.findall(orjson.dumps(said))}


def files_of(spec: Mapping[str, Any]) -> set[str]:
    """The names of the workspace files that the spec of a template reads."""

    def inside(fields: Iterable[Any]) -> Iterable[str]:
        for field in fields:
            options = field.get("options") or {}
            if field.get("type") == "dataset_column" and isinstance(options.get("file"), str):
                yield options["file"]
            if isinstance(options.get("fields"), list):
                yield from inside(options["fields"])

    source = (spec.get("source") or {}).get("file")
    return {*inside(spec["fields"]), *([source] if source else [])}


def of_project(project_id: str) -> dict[str, set[str]]:
    """For each live object of a project the ids that it names, whether those lie in the project or not. Files, which
    templates name by their names, count as far as they belong to the project."""
    found: dict[str, set[str]] = {}
    read_files: dict[str, set[str]] = {}
    for model, version in _VERSIONS.items():
        owner = getattr(version, f"{word_of(model)}_id")
        more = [Scenario.env] if model is Scenario else [Template.made_from_id] if model is Template else []
        newest = (
            select(model.id, version.spec, *more)
            .join(version, owner == model.id)
            .where(model.project_id == project_id, model.deleted_at.is_(None), version.number == model.version)
        )
        for row in db.session.execute(newest):
            found[row[0]] = named_in(list(row[1:])) - {row[0]}
            if model is Template:
                read_files[row[0]] = files_of(row.spec)
    ends = select(Endpoint.id, Endpoint.connection_id).where(
        Endpoint.project_id == project_id, Endpoint.deleted_at.is_(None)
    )
    found |= {row.id: {row.connection_id} for row in db.session.execute(ends)}
    files = select(WorkspaceFile.name, WorkspaceFile.id).where(
        WorkspaceFile.project_id == project_id, WorkspaceFile.deleted_at.is_(None)
    )
    by_name = {row.name: row.id for row in db.session.execute(files)}
    for template_id, named in read_files.items():
        found[template_id] |= {by_name[name] for name in named & by_name.keys()}
    found |= {one: set() for one in by_name.values()}
    own = select(Connection.id).where(Connection.project_id == project_id, Connection.deleted_at.is_(None))
    return found | {one: set() for one in db.session.scalars(own)}


def naming(model: Any, workspace_id: str, text: str) -> Select[Any]:
    """A select of `id, name, team_id` of the live templates, datasets or scenarios of a workspace whose newest version
    holds a text anywhere."""
    version = _VERSIONS[model]
    owner = getattr(version, f"{word_of(model)}_id")
    stored = json.dumps(text)[1:-1]  # as it stands in a JSON column, which is ASCII
    there: ColumnElement[bool] = cast(version.spec, Text).contains(stored, autoescape=True)
    if model is Scenario:
        there = or_(there, cast(Scenario.env, Text).contains(stored, autoescape=True))
    return (
        select(model.id, model.name, model.team_id)
        .join(version, owner == model.id)
        .where(model.workspace_id == workspace_id, model.deleted_at.is_(None))
        .where(version.number == model.version, there)
        .order_by(model.id)
    )


def closed(start: Iterable[str], names: Mapping[str, set[str]]) -> set[str]:
    """`start` with all that it names, and all that names it, and so on, among the keys of `names`."""
    around: dict[str, set[str]] = {one: set() for one in names}
    for one, named in names.items():
        for other in named & names.keys():
            around[one].add(other)
            around[other].add(one)
    found, waiting = set(start), list(start)
    while waiting:
        fresh = around.get(waiting.pop(), set()) - found
        found |= fresh
        waiting += fresh
    return found
