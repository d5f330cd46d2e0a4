"""What applies to all kinds of objects: what depends on them, moving them between projects, and the trash.

**Usages.** The dependents of an object are shown before it is deleted, and are in the error if that is rejected. A
dependent that `blocks` must be removed first; others lose the reference until the object is restored.

**Moves.** Related objects stay in one project: a template and those it references, its datasets, the connection it
reads, the scenario that names it. So objects move together with all that reference them or that they reference; if some
of them were not selected, nothing moves and they are reported. Within one team they can be separated (`leave`), because
members can access both projects. A file shared with the whole workspace moves if it is selected, and then belongs to
the project. Secrets are not in a project in this sense, and finished exports and pushes stay where they were created.

**Trash.** Deleted objects that can be restored, with the user who deleted them and their expiry.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import orjson
from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    String,
    Text,
    and_,
    cast,
    false,
    func,
    literal,
    null,
    or_,
    select,
    union_all,
    update,
)

from webapp import clock, limits, pagination
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.access.models import ApiKey, Membership, Project, Team, User
from webapp.audit.models import AuditEntry
from webapp.audit.services import audit_log
from webapp.connections.models import Connection, Endpoint, Secret
from webapp.connections.services import secrets
from webapp.datasets.models import Dataset, DatasetVersion
from webapp.errors import ApiError, Fault, validation_error
from webapp.exports.models import Export
from webapp.extensions import db
from webapp.files import services as files
from webapp.files.models import WorkspaceFile
from webapp.notifications.models import Webhook
from webapp.pushes.models import Push
from webapp.row_templates.models import Template, TemplateVersion
from webapp.scenarios.models import Run, Scenario, ScenarioVersion
from webapp.versioning.services import Dependent, DependentsFinder, ids_in
from webapp.work.models import END_STATES

# Objects of a project, by the prefix of their ids.
MODELS: Final[Mapping[str, Any]] = {
    "tpl": Template, "dst": Dataset, "scn": Scenario, "con": Connection, "end": Endpoint, "fil": WorkspaceFile,
}  # fmt: skip
_VERSIONS: Final[Mapping[Any, Any]] = {
    Template: TemplateVersion, Dataset: DatasetVersion, Scenario: ScenarioVersion,
}  # fmt: skip


def kind_name(model: Any) -> str:
    """Return the name of an object's kind: `template`."""
    return "file" if model is WorkspaceFile else str(model.__name__).lower()


def model_of_id(object_id: str) -> Any:
    """Return the kind of object that has such ids; None for an unknown one."""
    return MODELS.get(object_id.partition("_")[0])


def read_file_names(spec: Mapping[str, Any]) -> set[str]:
    """Return the names of the workspace files that the spec of a template reads."""

    def inside(fields: Iterable[Any]) -> Iterable[str]:
        for field in fields:
            options = field.get("options") or {}
            if field.get("type") == "dataset_column" and isinstance(options.get("file"), str):
                yield options["file"]
            if isinstance(options.get("fields"), list):
                yield from inside(options["fields"])

    source = (spec.get("source") or {}).get("file")
    return {*inside(spec["fields"]), *([source] if source else [])}


def references_in_project(project_id: str) -> dict[str, set[str]]:
    """Return for each object of a project the ids that it references, in the project or not. Files, which
    templates name by their names, count as far as they belong to the project."""
    found: dict[str, set[str]] = {}
    read_files: dict[str, set[str]] = {}
    for model, version in _VERSIONS.items():
        owner = getattr(version, f"{kind_name(model)}_id")
        more = [Scenario.env] if model is Scenario else [Template.made_from_id] if model is Template else []
        newest = (
            select(model.id, version.spec, *more)
            .join(version, owner == model.id)
            .where(
                model.project_id == project_id, model.deleted_at.is_(None), version.number == model.version
            )
        )
        for row in db.session.execute(newest):
            found[row[0]] = ids_in(list(row[1:])) - {row[0]}
            if model is Template:
                read_files[row[0]] = read_file_names(row.spec)
    endpoints = select(Endpoint.id, Endpoint.connection_id).where(
        Endpoint.project_id == project_id, Endpoint.deleted_at.is_(None)
    )
    found |= {row.id: {row.connection_id} for row in db.session.execute(endpoints)}
    files = select(WorkspaceFile.name, WorkspaceFile.id).where(
        WorkspaceFile.project_id == project_id, WorkspaceFile.deleted_at.is_(None)
    )
    by_name = {row.name: row.id for row in db.session.execute(files)}
    for template_id, file_names in read_files.items():
        found[template_id] |= {by_name[name] for name in file_names & by_name.keys()}
    found |= {item: set() for item in by_name.values()}
    connections = select(Connection.id).where(
        Connection.project_id == project_id, Connection.deleted_at.is_(None)
    )
    return found | {item: set() for item in db.session.scalars(connections)}


def select_mentioning(model: Any, workspace_id: str, text: str) -> Select[Any]:
    """Return a select of `id, name, team_id` of the templates, datasets or scenarios of a workspace that are not
    deleted and whose newest version contains a text."""
    version = _VERSIONS[model]
    owner = getattr(version, f"{kind_name(model)}_id")
    stored = json.dumps(text)[1:-1]  # as encoded in a JSON column, which is ASCII
    condition: ColumnElement[bool] = cast(version.spec, Text).contains(stored, autoescape=True)
    if model is Scenario:
        condition = or_(condition, cast(Scenario.env, Text).contains(stored, autoescape=True))
    return (
        select(model.id, model.name, model.team_id)
        .join(version, owner == model.id)
        .where(model.workspace_id == workspace_id, model.deleted_at.is_(None))
        .where(version.number == model.version, condition)
        .order_by(model.id)
    )


def connected_objects(start: Iterable[str], names: Mapping[str, set[str]]) -> set[str]:
    """Return `start` and everything that is connected to it by references in either direction, among the keys of
    `names`."""
    neighbours: dict[str, set[str]] = {name: set() for name in names}
    for name, references in names.items():
        for reference in references & names.keys():
            neighbours[name].add(reference)
            neighbours[reference].add(name)
    found, waiting = set(start), list(start)
    while waiting:
        fresh = neighbours.get(waiting.pop(), set()) - found
        found |= fresh
        waiting += fresh
    return found


SCOPES: Final[Mapping[str, tuple[Any, str]]] = {
    "tpl": (Template, "read"),
    "dst": (Dataset, "read"),
    "scn": (Scenario, "read"),
    "con": (Connection, "read"),
    "end": (Endpoint, "read"),
    "fil": (WorkspaceFile, "read"),
    "sec": (Secret, "secrets"),
    "prj": (Project, "member"),
    "team": (Team, "member"),
}
"""By the prefix of an id: its kind, and the permission that reading requires."""


def find_with_dependents(actor: Actor, object_id: str) -> tuple[Any, list[Dependent]]:
    """Return an object by its id, and what uses it. Errors: not_found, forbidden."""
    model, scope = SCOPES.get(object_id.partition("_")[0], (None, ""))
    if model is None or "\0" in object_id:
        raise tenancy.not_found("object", object_id)
    if model is Secret:
        require_scope(actor, scope)
    found = tenancy.get(actor, model, object_id, scope)
    if model is Secret and found.name is None:
        raise tenancy.not_found("secret", object_id)
    return found, list(FINDERS[model](actor, found))


# --- The kinds ----------------------------------------------------------------------------------------------


def _unfinished(column: Any, object_id: str, *, blocks: bool) -> Iterator[Dependent]:
    """Find exports and pushes that have not finished."""
    model = column.class_
    name = Push.target if model is Push else Export.file_name
    statement = select(model.id, name, model.team_id).where(
        column == object_id, model.status.not_in(END_STATES)
    )
    for row in db.session.execute(statement.order_by(model.id).limit(limits.LISTED_USES)):
        yield Dependent(kind_name(model), row[0], row[1] or row[0], "in progress", blocks, row[2])


def _mentions(model: Any, workspace_id: str, text: str, how: str) -> Iterator[Dependent]:
    rows = db.session.execute(select_mentioning(model, workspace_id, text).limit(limits.LISTED_USES))
    for row in rows:
        yield Dependent(kind_name(model), row.id, row.name, how, team_id=row.team_id)


def _dependents_of_template(_actor: Actor, template: Template) -> Iterator[Dependent]:
    workspace_id, template_id = template.workspace_id, template.id
    yield from _mentions(Dataset, workspace_id, template_id, "contains it as a table")
    yield from (
        mention
        for mention in _mentions(Template, workspace_id, template_id, "references it")
        if mention.id != template_id
    )
    yield from _mentions(Scenario, workspace_id, template_id, "mentions it in its code")
    yield from _unfinished(Push.template_id, template_id, blocks=False)
    yield from _unfinished(Export.template_id, template_id, blocks=False)


def _dependents_of_dataset(_actor: Actor, dataset: Dataset) -> Iterator[Dependent]:
    yield from _mentions(Scenario, dataset.workspace_id, dataset.id, "mentions it in its code")
    yield from _unfinished(Push.dataset_id, dataset.id, blocks=False)
    yield from _unfinished(Export.dataset_id, dataset.id, blocks=False)


def _dependents_of_scenario(_actor: Actor, scenario: Scenario) -> Iterator[Dependent]:
    if scenario.next_run_at is not None:
        yield Dependent("scenario", scenario.id, scenario.name, "has a schedule", team_id=scenario.team_id)
    unfinished = select(Run.id, Run.team_id).where(
        Run.scenario_id == scenario.id, Run.status.not_in(END_STATES)
    )
    for row in db.session.execute(unfinished.limit(limits.LISTED_USES)):
        yield Dependent("run", row.id, scenario.name, "in progress", team_id=row.team_id)
    yield from (
        dependent
        for dependent in _mentions(Scenario, scenario.workspace_id, scenario.id, "mentions it in its code")
        if dependent.id != scenario.id
    )


def find_connection_dependents(connection: Connection) -> list[Dependent]:
    """Find the dependents of a connection: unfinished pushes, endpoints and templates of its team that read from it
    block its deletion. Scenarios that name it, templates that were created from its tables, and references from other
    teams do not, because its team may not even see them."""
    team_id = connection.team_id
    found = list(_unfinished(Push.connection_id, connection.id, blocks=True))
    endpoints = select(Endpoint.id, Endpoint.name, Endpoint.team_id).where(
        Endpoint.connection_id == connection.id, Endpoint.deleted_at.is_(None)
    )
    found += [
        Dependent("endpoint", row.id, row.name, "sends over it", row.team_id == team_id, row.team_id)
        for row in db.session.execute(endpoints)
    ]
    reading = set()
    quoted_id = orjson.dumps(connection.id)
    newest = select_mentioning(Template, connection.workspace_id, connection.id).add_columns(
        TemplateVersion.spec
    )
    for row in db.session.execute(newest):
        readers = [row.spec["fields"], row.spec.get("source")]
        if quoted_id in orjson.dumps(readers):  # and not merely in its description
            reading.add(row.id)
            found.append(
                Dependent("template", row.id, row.name, "reads from it", row.team_id == team_id, row.team_id)
            )
    created = select(Template.id, Template.name, Template.team_id).where(
        Template.made_from_id == connection.id, Template.deleted_at.is_(None), Template.id.not_in(reading)
    )
    for row in db.session.execute(created.order_by(Template.id).limit(limits.LISTED_USES)):
        found.append(
            Dependent("template", row.id, row.name, "was created from one of its tables", team_id=row.team_id)
        )
    found += _mentions(Scenario, connection.workspace_id, connection.id, "mentions it in its code")
    return found


def _dependents_of_endpoint(_actor: Actor, endpoint: Endpoint) -> Iterator[Dependent]:
    yield from _unfinished(Push.endpoint_id, endpoint.id, blocks=True)
    yield from _mentions(Scenario, endpoint.workspace_id, endpoint.id, "mentions it in its code")


def _dependents_of_file(_actor: Actor, file: WorkspaceFile) -> Iterator[Dependent]:
    """Find the dependents of a file in its project, or of a shared file in all projects."""

    def in_scope(model: Any, text: str) -> Select[Any]:
        found = select_mentioning(model, file.workspace_id, text)
        return found if file.project_id is None else found.where(model.project_id == file.project_id)

    for row in db.session.execute(in_scope(Template, file.name).add_columns(TemplateVersion.spec)):
        if (row.spec.get("source") or {}).get("file") == file.name:
            yield Dependent("template", row.id, row.name, "reads its rows from it", team_id=row.team_id)
        elif file.name in read_file_names(row.spec):
            yield Dependent("template", row.id, row.name, "reads values from it", team_id=row.team_id)
    programs = in_scope(Scenario, file.name.rpartition("/")[2]).limit(limits.LISTED_USES)
    for row in db.session.execute(programs):
        yield Dependent("scenario", row.id, row.name, "mentions it in its code", team_id=row.team_id)


def _dependents_of_secret(_actor: Actor, secret: Secret) -> Iterator[Dependent]:
    name = secret.name or ""
    for connection in secrets.connections_using(secret.workspace_id, name):
        yield Dependent("connection", connection.id, connection.name, "uses it", True)
    statement = select(Scenario.id, Scenario.name, Scenario.secrets, Scenario.writable_secrets).where(
        Scenario.workspace_id == secret.workspace_id, Scenario.deleted_at.is_(None)
    )
    for row in db.session.execute(statement.order_by(Scenario.id)):
        if name in (*row.secrets, *row.writable_secrets):
            yield Dependent("scenario", row.id, row.name, "uses it", True)


def _dependents_of_project(actor: Actor, project: Project) -> Iterator[Dependent]:
    for model in (Template, Dataset, Scenario, Connection, Endpoint):
        inside = select(model.id, model.name).where(
            model.project_id == project.id, model.deleted_at.is_(None)
        )
        if model is Connection:
            inside = inside.where(Connection.of_endpoint.is_(False))
        for row in db.session.execute(inside.order_by(model.id.desc()).limit(limits.LISTED_USES)):
            yield Dependent(kind_name(model), row.id, row.name, "is in it", team_id=project.team_id)
    keys = select(ApiKey.id, ApiKey.name).where(
        ApiKey.project_id == project.id, ApiKey.revoked_at.is_(None), ApiKey.run_id.is_(None)
    )
    if not actor.can("admin"):
        keys = keys.where(ApiKey.created_by == actor.user_id)
    for row in db.session.execute(keys.order_by(ApiKey.id.desc()).limit(limits.LISTED_USES)):
        yield Dependent("api_key", row.id, row.name, "works in it", team_id=project.team_id)


def _dependents_of_team(_actor: Actor, team: Team) -> Iterator[Dependent]:
    inside = select(Project.id, Project.name).where(Project.team_id == team.id, Project.deleted_at.is_(None))
    for row in db.session.execute(inside.order_by(Project.id)):
        yield Dependent("project", row.id, row.name, "is in it", True, team.id)
    roles = select(Membership.id, Membership.role, User.email).join(User, User.id == Membership.user_id)
    for member in db.session.execute(roles.where(Membership.team_id == team.id).limit(limits.LISTED_USES)):
        yield Dependent("member", member.id, member.email, f"is {member.role} in it", team_id=team.id)


FINDERS: Final[Mapping[Any, DependentsFinder]] = {
    Template: _dependents_of_template,
    Dataset: _dependents_of_dataset,
    Scenario: _dependents_of_scenario,
    Connection: lambda _actor, connection: find_connection_dependents(connection),
    Endpoint: _dependents_of_endpoint,
    WorkspaceFile: _dependents_of_file,
    Secret: _dependents_of_secret,
    Project: _dependents_of_project,
    Team: _dependents_of_team,
}


# --- Moves between projects ---------------------------------------------------------------------------------

Related = Literal["refuse", "take", "leave"]


def move(
    actor: Actor, project: Project, object_ids: Sequence[str], related: Related = "refuse"
) -> list[dict[str, str]]:
    """Move templates, datasets, connections, endpoints, scenarios and files to a locked project; commits. Returns the
    moved objects, `{type, id, name}`.

    `related`: related objects are reported (`refuse`), moved as well (`take`) or left (`leave`). Errors: not_found and
    forbidden (as for each single object), in_use with `related` objects that also have to be moved, or with unfinished
    runs; conflict for a file whose name exists in the project; validation_error.
    """
    requested = [_find_movable(actor, place, item) for place, item in enumerate(dict.fromkeys(object_ids))]
    moving = [item for item in requested if item.project_id != project.id]
    if related == "leave" and any(item.team_id != project.team_id for item in moving):
        text = "Related objects can be separated only within one team."
        hint = "Set `take`, or include the related objects."
        raise validation_error([Fault("related", "not_allowed", text, hint)])
    if related != "leave":
        rest = _related_objects(actor, moving)
        if rest and related == "refuse":
            entries = [_moved_entry(item) for item in rest]
            names = ", ".join(f'{item["type"]} "{item["name"]}"' for item in entries[:3])
            more = f" and {len(entries) - 3} more" if len(entries) > 3 else ""
            text = f"{names}{more} are related to it and must move as well."
            raise ApiError("in_use", text, {"related": entries})
        moving += rest
    if len(moving) > limits.MAX_MOVED:
        text = f"You can move at most {limits.MAX_MOVED:,} objects in one request, not {len(moving):,}."
        raise validation_error([Fault("objects", "too_long", text)])
    scenarios = [item.id for item in moving if isinstance(item, Scenario)]
    going = select(Run.id, Scenario.name).join(Scenario, Scenario.id == Run.scenario_id)
    going = going.where(Run.scenario_id.in_(scenarios), Run.status.not_in(END_STATES))
    if runs := db.session.execute(going).all():
        text = f"{runs[0].name} is running. Wait until it has finished."
        users = [{"type": "run", "id": run.id, "name": run.name} for run in runs]
        raise ApiError("in_use", text, {"used_by": users})
    if any(isinstance(item, WorkspaceFile) for item in moving):
        files.lock(actor.workspace_id)
    destination = {"project_id": project.id, "team_id": project.team_id}
    for item in moving:
        before = item.project_id
        if isinstance(item, WorkspaceFile):
            _check_name(item, project)
        if isinstance(item, Scenario):
            db.session.execute(update(Run).where(Run.scenario_id == item.id).values(**destination))
        if isinstance(item, Endpoint):
            connections = update(Connection).where(
                Connection.id == item.connection_id, Connection.of_endpoint.is_(True)
            )
            db.session.execute(connections.values(**destination))
        item.project_id, item.team_id, item.updated_at = project.id, project.team_id, clock.now()
        db.session.flush()
        audit_log.record(
            actor, f"{kind_name(type(item))}.move", item, join=True, name=item.name,
            project={"from": before, "to": project.id},
        )  # fmt: skip
    entries = [_moved_entry(item) for item in moving]
    db.session.commit()
    return entries


def _find_movable(actor: Actor, index: int, object_id: str) -> Any:
    model = model_of_id(object_id)
    if model is None:
        text = "This object is not in a project."
        hint = "Only templates, datasets, connections, endpoints, scenarios and files are in a project."
        raise validation_error([Fault(f"objects[{index}]", "not_allowed", text, hint)])
    found = tenancy.get(actor, model, object_id, "write", lock=True)
    if model is WorkspaceFile and found.project_id is None:
        files.require_shared(actor)
    if model is Connection and found.of_endpoint:
        raise tenancy.not_found("connection", object_id)  # hidden; it moves with its endpoint
    return found


def _related_objects(actor: Actor, moving: Sequence[Any]) -> list[Any]:
    """Return the objects of the same projects that are related to these, locked."""
    ids = {item.id for item in moving}
    related_ids: set[str] = set()
    for project_id in sorted({item.project_id for item in moving}):
        names = references_in_project(project_id)
        related_ids |= connected_objects(ids & names.keys(), names)
    rest = []
    for object_id in sorted(related_ids - ids):
        item = tenancy.get(actor, model_of_id(object_id), object_id, "write", lock=True)
        if not (isinstance(item, Connection) and item.of_endpoint):
            rest.append(item)
    return rest


def _check_name(file: WorkspaceFile, project: Project) -> None:
    """Check for duplicate names. Error: conflict if the project has a file or folder of that name."""
    rivals = files.name_conflict_scope(file.workspace_id, project.id) & (WorkspaceFile.id != file.id)
    taken = db.session.scalar(select(WorkspaceFile.id).where(rivals, WorkspaceFile.name == file.name))
    if taken is not None:
        text = f"The project {project.name} already has a file named `{file.name}`. Delete one of the two files first."
        raise ApiError("conflict", text, {"name": file.name, "id": taken})
    files.check_name_conflict(file.workspace_id, file.name, project.id)


def _moved_entry(item: Any) -> dict[str, str]:
    return {"type": kind_name(type(item)), "id": item.id, "name": item.name}


# --- Trash --------------------------------------------------------------------------------------------------

TRASH: Final[Mapping[str, tuple[Any, str]]] = {
    "template": (Template, "write"),
    "dataset": (Dataset, "write"),
    "scenario": (Scenario, "write"),
    "connection": (Connection, "write"),
    "endpoint": (Endpoint, "write"),
    "file": (WorkspaceFile, "write"),
    "webhook": (Webhook, "write"),
    "project": (Project, "admin"),
    "team": (Team, "admin"),
}
"""By kind: its table, and the scope that restoring requires. Projects and teams are those of the workspace, the others
those of the present project; files and webhooks also those of no project."""

_NAME: Final = "trash"
_SAME_TIME: Final = timedelta(seconds=5)
"""The trail's entry of a deletion is written in the same transaction, a moment later."""


def trash_page(
    actor: Actor,
    *,
    type: str | None = None,
    q: str | None = None,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
) -> pagination.Page[dict[str, Any]]:
    """Return a page of objects that can be restored, latest first. Error: invalid_request for an invalid cursor."""
    now = clock.now()
    parts = [_trash_statement(actor, kind, q, now) for kind in TRASH if type in (None, kind)]
    every = union_all(*parts).subquery()
    total = db.session.scalar(select(func.count()).select_from(every)) or 0
    statement = select(every)
    context = f"{actor.workspace_id} {actor.project_id} {actor.user_id} {type} {q}"
    if cursor:
        at, last = pagination.decode_cursor(_NAME, context, cursor)
        moment = datetime.fromisoformat(at)
        earlier = or_(every.c.deleted_at < moment, and_(every.c.deleted_at == moment, every.c.id < last))
        statement = statement.where(earlier)
    ordered = statement.order_by(every.c.deleted_at.desc(), every.c.id.desc()).limit(limit + 1)
    rows = db.session.execute(ordered).all()
    following = None
    if len(rows) > limit:
        end = rows[limit - 1]
        following = pagination.encode_cursor(_NAME, context, [end.deleted_at.isoformat(), end.id])
    visible = rows[:limit]
    # Who deleted each, according to the audit log. Separate queries, combined: each uses an index, which a planner may
    # not do for an OR.
    deletions = [
        select(AuditEntry.object_id, AuditEntry.user_id).where(
            AuditEntry.workspace_id == actor.workspace_id,
            AuditEntry.object_id == row.id,
            AuditEntry.at >= row.deleted_at,
            AuditEntry.at < row.deleted_at + _SAME_TIME,
            AuditEntry.action.like("%.delete"),
        )
        for row in visible
    ]
    deleted_by: dict[str, User] = {}
    if deletions:
        found = union_all(*deletions).subquery()
        people = select(found.c.object_id, User).join(User, User.id == found.c.user_id)
        deleted_by = {row[0]: row[1] for row in db.session.execute(people)}
    return pagination.Page([_trash_entry(actor, row, deleted_by, now) for row in visible], following, total)


def _trash_statement(actor: Actor, kind: str, q: str | None, now: datetime) -> Any:
    model, _ = TRASH[kind]
    team = model.id if model is Team else getattr(model, "team_id", null())
    project = getattr(model, "project_id", null())
    statement = tenancy.listing(actor, model, project=model not in (Project, Team), deleted=True)
    statement = statement.where(model.deleted_at > now - timedelta(days=limits.RESTORE_DAYS))
    if model is Connection:
        statement = statement.where(Connection.of_endpoint.is_(False))
    if model is Webhook:  # those of the project with the write scope; for admins those of the workspace too
        own_project = Webhook.project_id == actor.project_id if actor.can("write", actor.team_id) else false()
        visible = or_(own_project, Webhook.project_id.is_(None)) if actor.can("admin") else own_project
        statement = select(Webhook).where(
            Webhook.workspace_id == actor.workspace_id,
            Webhook.deleted_at > now - timedelta(days=limits.RESTORE_DAYS),
            visible,
        )
    name = Webhook.description if model is Webhook else model.name
    if q and q.strip():
        statement = statement.where(pagination.contains(name, q.strip()))
    return statement.with_only_columns(
        literal(kind, String).label("type"),
        model.id.label("id"),
        name.label("name"),
        model.deleted_at.label("deleted_at"),
        project.label("project_id"),
        team.label("team_id"),
        (Webhook.url if model is Webhook else literal("", String)).label("url"),
    )


def _trash_entry(
    actor: Actor, row: Row[Any], deleted_by: Mapping[str, User], now: datetime
) -> dict[str, Any]:
    expires = row.deleted_at + timedelta(days=limits.RESTORE_DAYS)
    by, scope = deleted_by.get(row.id), TRASH[row.type][1]
    if row.type == "webhook" and row.project_id is None:
        scope = "admin"
    restorable = actor.can(scope, row.team_id) if scope == "write" else actor.can(scope)
    if row.type == "file" and row.project_id is None:
        restorable = restorable and files.can_change_shared(actor)
    return {
        "type": row.type,
        "id": row.id,
        "name": row.name
        or urlsplit(row.url).hostname
        or row.id,  # only the host of a URL, which may contain a key
        "project_id": row.project_id,
        "deleted_at": clock.to_text(row.deleted_at),
        "deleted_by": by.id if by else None,
        "deleted_by_name": (by.name or by.email) if by else None,
        "gone_at": clock.to_text(expires),
        "days_left": max(0, (expires - now).days),
        "restorable": restorable,
    }
