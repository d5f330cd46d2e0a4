"""Objects from one project into another of the same workspace.

Related objects stay in one project: a template and those it references, its datasets, the connection it reads, the
scenario that names it. So objects move together with all that reference them or that they reference; if some of them
were not selected, nothing moves and they are reported. Within one team they can be separated (`leave`), because members
can access both projects. A file shared with the whole workspace moves if it is selected, and then belongs to the
project. Secrets, and finished exports and pushes stay: the first are not in a project in this
sense, the others are what was done in theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy import select, update

from webapp import clock, limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.access.models import Project
from webapp.audit.services import audit_log
from webapp.connections.models import Connection, Endpoint
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.files.models import WorkspaceFile
from webapp.files.services import file_store
from webapp.objects.services import usages
from webapp.scenarios.models import Run, Scenario
from webapp.work.models import END_STATES

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
    asked = [_one(actor, place, one) for place, one in enumerate(dict.fromkeys(object_ids))]
    moving = [one for one in asked if one.project_id != project.id]
    faults = [] if related != "leave" else _apart(moving, project)
    if faults:
        raise validation_error(faults)
    if related != "leave":
        rest = _rest(actor, moving)
        if rest and related == "refuse":
            raise _also(rest)
        moving += rest
    if len(moving) > limits.MAX_MOVED:
        text = f"You can move at most {limits.MAX_MOVED:,} objects in one request, not {len(moving):,}."
        raise validation_error([Fault("objects", "too_long", text)])
    _check_runs(moving)
    if any(isinstance(one, WorkspaceFile) for one in moving):
        file_store.lock(actor.workspace_id)
    for one in moving:
        before = one.project_id
        if isinstance(one, WorkspaceFile):
            _check_name(one, project)
        _put(one, project)
        db.session.flush()
        audit_log.record(
            actor, f"{usages.word_of(type(one))}.move", one, join=True, name=one.name,
            project={"from": before, "to": project.id},
        )  # fmt: skip
    told = [_told(one) for one in moving]
    db.session.commit()
    return told


def _one(actor: Actor, place: int, object_id: str) -> Any:
    model = usages.kind_of(object_id)
    if model is None:
        text = "This object is not in a project."
        hint = "Templates, datasets, connections, endpoints, scenarios and files do."
        raise validation_error([Fault(f"objects[{place}]", "not_allowed", text, hint)])
    found = tenancy.get(actor, model, object_id, "write", lock=True)
    if model is WorkspaceFile and found.project_id is None:
        file_store.require_shared(actor)
    if model is Connection and found.of_endpoint:
        raise tenancy.not_found("connection", object_id)  # hidden; it moves with its endpoint
    return found


def _apart(moving: Sequence[Any], project: Project) -> list[Fault]:
    if all(one.team_id == project.team_id for one in moving):
        return []
    text = "Related objects can be separated only within one team."
    return [Fault("related", "not_allowed", text, "Send take, or move the rest as well.")]


def _rest(actor: Actor, moving: Sequence[Any]) -> list[Any]:
    """Return the objects of the same projects that are related to these, locked."""
    ids = {one.id for one in moving}
    wanted: set[str] = set()
    for project_id in sorted({one.project_id for one in moving}):
        names = usages.of_project(project_id)
        wanted |= usages.closed(ids & names.keys(), names)
    rest = []
    for object_id in sorted(wanted - ids):
        one = tenancy.get(actor, usages.kind_of(object_id), object_id, "write", lock=True)
        if not (isinstance(one, Connection) and one.of_endpoint):
            rest.append(one)
    return rest


def _also(rest: Sequence[Any]) -> ApiError:
    told = [_told(one) for one in rest]
    names = ", ".join(f'{one["type"]} "{one["name"]}"' for one in told[:3])
    more = f" and {len(told) - 3} more" if len(told) > 3 else ""
    return ApiError("in_use", f"{names}{more} are related to it and must move as well.", {"related": told})


def _check_runs(moving: Sequence[Any]) -> None:
    ids = [one.id for one in moving if isinstance(one, Scenario)]
    going = select(Run.id, Scenario.name).join(Scenario, Scenario.id == Run.scenario_id)
    found = db.session.execute(going.where(Run.scenario_id.in_(ids), Run.status.not_in(END_STATES))).all()
    if found:
        users = [{"type": "run", "id": row.id, "name": row.name} for row in found]
        raise ApiError(
            "in_use", f"{users[0]['name']} is running. Wait until it has finished.", {"used_by": users}
        )


def _check_name(file: WorkspaceFile, project: Project) -> None:
    """Check for duplicate names. Error: conflict if the project has a file or folder of that name."""
    others = file_store.rivals(file.workspace_id, project.id) & (WorkspaceFile.id != file.id)
    taken = db.session.scalar(select(WorkspaceFile.id).where(others, WorkspaceFile.name == file.name))
    if taken is not None:
        text = f"The project {project.name} has a file called `{file.name}`. Delete one of the two first."
        raise ApiError("conflict", text, {"name": file.name, "id": taken})
    file_store.refuse_clash(file.workspace_id, file.name, project.id)


def _put(one: Any, project: Project) -> None:
    """The object itself, and what goes with it: a scenario's runs, an endpoint's own connection."""
    there = {"project_id": project.id, "team_id": project.team_id}
    if isinstance(one, Scenario):
        db.session.execute(update(Run).where(Run.scenario_id == one.id).values(**there))
    if isinstance(one, Endpoint):
        own = update(Connection).where(Connection.id == one.connection_id, Connection.of_endpoint.is_(True))
        db.session.execute(own.values(**there))
    one.project_id, one.team_id, one.updated_at = project.id, project.team_id, clock.now()


def _told(one: Any) -> dict[str, str]:
    return {"type": usages.word_of(type(one)), "id": one.id, "name": one.name}
