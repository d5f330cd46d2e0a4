"""Scenarios: programs, their versions, and how they are run; made, read, changed, deleted.

A scenario is a head, which says how its program is run, and one row for each version, which never changes and says
what the program is: name, description and code, with what its requirements were resolved to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import or_, select

from webapp import clock, limits
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.models import Scenario, ScenarioVersion, Secret
from webapp.services import audit, audit_changes, requirements, schedules, tenancy, versioned
from webapp.services.actors import Actor, require
from webapp.services.requirements import Resolved
from webapp.services.run_variables import env_faults, name_fault
from webapp.services.scenario_code import size_faults, syntax_fault

PROGRAM: Final = ("name", "description", "code")
"""What a version says; changing any of it makes one."""

SETTINGS: Final = ("timeout_seconds", "env", "secrets", "writable_secrets", "network", "schedule")
"""What the head says; it has no versions."""


def as_json(scenario: Scenario, version: ScenarioVersion) -> dict[str, Any]:
    """A scenario as of one version, as the API shows it; how it is run is always as it is now."""
    spec, pins = version.spec, Resolved.of_pins(version.pins)
    newest = version.number == scenario.version
    return {
        "id": scenario.id,
        "name": spec["name"],
        "description": spec["description"],
        "code": spec["code"],
        "version": version.number,
        **{key: getattr(scenario, key) for key in SETTINGS},
        "next_run_at": clock.to_text(scenario.next_run_at),
        "requirements": pins.requirements,
        "lock": {"environment": pins.environment, "packages": requirements.packages(pins.lock)}
        if pins.lock
        else None,
        "project_id": scenario.project_id,
        "team_id": scenario.team_id,
        "created_by": scenario.created_by,
        "created_at": clock.to_text(scenario.created_at),
        "updated_at": clock.to_text(scenario.updated_at if newest else version.created_at),
        "deleted_at": clock.to_text(scenario.deleted_at),
        "warnings": [*spec["warnings"], *schedules.warnings(scenario)],
    }


class _Scenarios(versioned.Kind[Scenario, ScenarioVersion]):
    """Scenarios among the objects with versions."""

    def restore(self, actor: Actor, head: Scenario) -> dict[str, Any]:
        """As its parent; what was due meanwhile is not run."""
        head.next_run_at = schedules.next_run(head.schedule, clock.now())
        return super().restore(actor, head)


KIND: Final = _Scenarios(Scenario, ScenarioVersion, as_json, lambda _head, _spec: None)
listing, get, show, versions, version_of = KIND.listing, KIND.get, KIND.show, KIND.versions, KIND.version_of
restore_version, delete, restore = KIND.restore_version, KIND.delete, KIND.restore


def create(
    actor: Actor,
    *,
    name: str,
    code: str,
    description: str = "",
    timeout_seconds: int = limits.DEFAULT_RUN_SECONDS,
    env: Mapping[str, Any] | None = None,
    secrets: Sequence[str] = (),
    writable_secrets: Sequence[str] = (),
    network: str = "full",
    schedule: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A new scenario in the actor's project, with its first version; commits. Returns it as the API shows it.

    Resolves the program's requirements first, which may take seconds: call it outside of any transaction. Errors:
    validation_error with every fault, forbidden (naming a secret needs the scope `secrets`), unavailable.
    """
    place = tenancy.here(actor)
    settings = {
        "timeout_seconds": timeout_seconds,
        "env": dict(env or {}),
        "secrets": _each_once(secrets),
        "writable_secrets": _each_once(writable_secrets),
        "network": network,
        "schedule": dict(schedule) if schedule else None,
    }
    _check(actor, {"code": code, **settings}, None)
    db.session.rollback()  # nobody shall wait with us for the package index
    resolved = requirements.resolved(code)
    spec = {"name": name, "description": description, "code": code, "warnings": code_warnings(code)}
    _check(actor, settings, None)  # a secret may be gone since
    moment = clock.now()
    scenario = Scenario(**place, created_by=actor.user_id, created_at=moment, **settings)
    scenario.next_run_at = schedules.next_run(scenario.schedule, moment)
    return KIND.save(actor, scenario, spec, resolved.as_pins(), "create", moment, **_told({}, settings))


def prepared(
    actor: Actor, scenario: Scenario, changes: Mapping[str, Any], *, anew: bool = False
) -> tuple[Resolved, list[dict[str, Any]]] | None:
    """What `change` needs to know of new code (or, `anew`, of the present one) beforehand, since it takes seconds:
    what its requirements come to, and its warnings. None where the code stays.

    Ends the transaction in which the scenario was read. Errors: as `change`, and unavailable.
    """
    newest = version_of(scenario)
    before, old = Resolved.of_pins(newest.pins), newest.spec
    _check(actor, changes, scenario)
    code = changes.get("code", old["code"] if anew else None)
    db.session.rollback()
    if code is None:
        return None
    return requirements.resolved(code, before, anew=anew), code_warnings(code)


def change(
    actor: Actor,
    scenario: Scenario,
    changes: Mapping[str, Any],
    program: tuple[Resolved, list[dict[str, Any]]] | None = None,
) -> dict[str, Any]:
    """Change a locked scenario: any of `PROGRAM` and `SETTINGS`; commits. Returns it as the API shows it.

    New code, or another name or description, makes a version; what only says how it is run does not. `program` is
    what `prepared` made of the code. Errors: validation_error, forbidden.
    """
    moment, newest = clock.now(), version_of(scenario)
    _check(actor, {key: value for key, value in changes.items() if key != "code"}, scenario)
    settings = {key: _plain(key, changes[key]) for key in SETTINGS if key in changes}
    told = _told({key: getattr(scenario, key) for key in SETTINGS}, settings)
    for key, value in settings.items():
        setattr(scenario, key, value)
    if "schedule" in settings:
        scenario.next_run_at = schedules.next_run(scenario.schedule, moment)
        scenario.schedule_problem = None
    spec = {key: changes.get(key, newest.spec[key]) for key in PROGRAM}
    renamed = any(spec[key] != newest.spec[key] for key in ("name", "description"))
    if program and "code" not in changes and program[0].lock == newest.pins.get("lock"):
        program = None  # its packages were the newest already
    if program is None and not renamed:
        return _settled(actor, scenario, newest, told, moment)
    resolved, warnings = program or (Resolved.of_pins(newest.pins), newest.spec["warnings"])
    spec["warnings"] = warnings
    return KIND.save(actor, scenario, spec, resolved.as_pins(), "change", moment, **told)


def _settled(
    actor: Actor, scenario: Scenario, newest: ScenarioVersion, told: dict[str, Any], moment: datetime
) -> dict[str, Any]:
    """A change of the head alone."""
    if told:
        scenario.updated_at = moment
        audit.record(
            actor,
            "scenario.change",
            scenario,
            join=True,
            name=scenario.name,
            version=scenario.version,
            **told,
        )
    db.session.commit()
    return as_json(scenario, newest)


def check(code: str, *, resolve: bool = False) -> dict[str, Any]:
    """What saving a program would say, without saving it: `{requirements, packages, faults, warnings}`.

    `packages` are the names and versions that the requirements come to; None without `resolve` or without any.
    Error: unavailable.
    """
    too_large = size_faults(code)
    if too_large:
        return _checked([], None, [one.as_dict() for one in too_large], code)
    said = requirements.read(code)
    found = said.faults
    packages = None
    if resolve and not found and said.requirements:
        try:
            packages = requirements.packages(requirements.resolved(code).lock)
        except ApiError as error:
            if error.code != "validation_error":
                raise
            return _checked(said.requirements, None, error.details["fields"], code)
    return _checked(said.requirements, packages, [one.as_dict() for one in found], code)


def _checked(
    wanted: list[str], packages: dict[str, str] | None, faults: list[dict[str, Any]], code: str
) -> dict[str, Any]:
    return {"requirements": wanted, "packages": packages, "faults": faults, "warnings": code_warnings(code)}


def code_warnings(code: str) -> list[dict[str, Any]]:
    """What will surprise whoever runs a program, and is no reason not to save it."""
    if size_faults(code):
        return []
    found = [syntax_fault(code), *requirements.read(code).warnings]
    return [one.as_dict() for one in found if one]


# --- Checks -------------------------------------------------------------------------------------------------


def _each_once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _plain(key: str, value: Any) -> Any:
    if key in ("secrets", "writable_secrets"):
        return _each_once(value)
    return dict(value) if isinstance(value, Mapping) else value


def _told(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """For the audit trail: which settings changed, and which secrets were given or taken; no values of variables."""
    changed = [key for key in after if key not in before or before[key] != after[key]] if before else []
    told: dict[str, Any] = {"settings": changed} if changed else {}
    if changed:
        plain = {key: value for key, value in after.items() if key not in ("secrets", "writable_secrets")}
        told["changes"] = audit_changes.between({key: before[key] for key in plain}, plain)
    for key in ("secrets", "writable_secrets"):
        old, new = set(before.get(key, ())), set(after.get(key, before.get(key, ())))
        if new - old:
            told[f"{key}_given"] = sorted(new - old)
        if old - new:
            told[f"{key}_taken"] = sorted(old - new)
    return told


def _check(actor: Actor, said: Mapping[str, Any], scenario: Scenario | None) -> None:
    """`validation_error` with every fault of what is said, `forbidden` for a secret that may not be given."""
    held = {key: said[key] if key in said else getattr(scenario, key, None) or () for key in SETTINGS}
    faults: list[Fault] = []
    if "code" in said:
        faults += size_faults(said["code"]) or requirements.read(said["code"]).faults
    if "env" in said or "secrets" in said:
        faults += env_faults(dict(held["env"]), "env", set(held["secrets"]))
    for key in ("secrets", "writable_secrets"):
        if key in said:
            project_id = scenario.project_id if scenario is not None else actor.project_id
            faults += _secret_faults(actor, said[key], key, project_id, set(getattr(scenario, key, None) or ()))
    if held["schedule"] and ("schedule" in said or "secrets" in said):
        faults += schedules.faults(dict(held["schedule"]), set(held["secrets"]))
    if faults:
        raise validation_error(faults[: limits.MAX_FAULTS])
    for key in ("secrets", "writable_secrets"):
        if set(said.get(key, ())) - set(getattr(scenario, key, None) or ()):
            require(actor, "secrets")


def _secret_faults(
    actor: Actor, names: Sequence[str], key: str, project_id: str | None, held: set[str]
) -> list[Fault]:
    """A fault for each secret that is not there, is another project's, or may not be a variable's name."""
    statement = select(Secret.name).where(
        Secret.workspace_id == actor.workspace_id,
        Secret.name.is_not(None),
        or_(Secret.project_id.is_(None), Secret.project_id == project_id, Secret.name.in_(held)),
    )
    known = {name for name in db.session.scalars(statement) if name}
    faults = []
    for place, name in enumerate(names):
        path = f"{key}[{place}]"
        if name not in known:
            # Who may not see the names of secrets is not told which there are.
            close = did_you_mean(name, known) if actor.can("secrets") else None
            hint = close or "An admin can add it under Settings, Secrets."
            faults.append(Fault(path, "unknown_secret", f'There is no secret "{name[:60]}".', hint))
        elif fault := name_fault(name, path):
            faults.append(fault)
    return faults
