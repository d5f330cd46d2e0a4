"""Scenarios: programs, their versions and their settings; create, read, change and delete them.

A scenario consists of a head, which contains the settings of its runs, and one immutable row for each version, which
contains the program: name, description, code and resolved requirements.
"""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, Final

from sqlalchemy import or_, select

from webapp import clock, document_process, limits
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.audit.services import audit_log
from webapp.connections.models import Secret
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.metering import stored_json
from webapp.scenarios.models import Scenario, ScenarioVersion
from webapp.scenarios.services import requirements, schedules
from webapp.scenarios.services.environment_variables import env_faults, name_fault
from webapp.scenarios.services.requirements import ResolvedRequirements
from webapp.versioning import services as versioning

_UNREADABLE: Final = {
    "message": "it is too large or nested too deeply to be read in time", "line": None, "column": None,
}  # fmt: skip
_RECURSION_LIMIT: Final = 3_000  # chosen: Python's own parser needs some frames for each level


def size_faults(code: str) -> list[Fault]:
    """Return the fault that prevents a text from being saved as a program."""
    try:
        size = len(code.encode("utf-8"))
    except UnicodeEncodeError:
        return [Fault("code", "invalid", "The code contains an unpaired surrogate.")]
    if size > limits.MAX_CODE_BYTES:
        text = f"The program has {size:,} bytes; the maximum is {limits.MAX_CODE_BYTES:,}."
        return [Fault("code", "too_long", text, "Move data into a workspace file.")]
    if "\0" in code:
        return [Fault("code", "invalid", "The code contains the character U+0000.")]
    return []


def syntax_fault(code: str) -> Fault | None:
    """Return the warning for a syntax error. It does not prevent saving."""
    hint = "You can save it, but it won't run."
    try:
        error = document_process.run_cached(
            "webapp.scenarios.services.scenarios:in_process", code.encode(), seconds=limits.SYNTAX_SECONDS
        )
    except document_process.DocumentError:
        error = _UNREADABLE
    if error is None:
        return None
    location, position = "", None
    if error["line"]:
        location = f" (line {error['line']}, column {error['column'] or 1})"
        before = code.splitlines(keepends=True)[: error["line"] - 1]
        position = sum(map(len, before)) + max(1, error["column"] or 1)  # in characters, from 1
    text = f"Syntax error: {error['message']}{location}."
    return Fault("code", "syntax_error", text, hint, position)


def in_process(file: IO[bytes]) -> dict[str, Any] | None:
    """Return Python's syntax error for a program, or None. Runs in a document process."""
    sys.setrecursionlimit(_RECURSION_LIMIT)
    warnings.simplefilter("ignore")  # deprecations do not concern the user
    try:
        # Bytes, not text, so that an encoding declaration has the same effect as when the program runs.
        compile(file.read(), "main.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        return {"message": error.msg, "line": error.lineno, "column": error.offset}
    except (ValueError, RecursionError) as error:
        return {**_UNREADABLE, "message": str(error) or "it is nested too deeply"}
    return None


PROGRAM: Final = ("name", "description", "code")
"""Attributes of a version; changing one of them creates a new version."""

SETTINGS: Final = ("timeout_seconds", "env", "secrets", "writable_secrets", "network", "schedule")
"""Attributes of the head, without versions."""


def as_json(scenario: Scenario, version: ScenarioVersion) -> dict[str, Any]:
    """Return a version of a scenario as the API shows it. Settings are always the current ones."""
    spec, pins = version.spec, ResolvedRequirements.from_pins(version.pins)
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
        "lock": {"environment": pins.environment, "packages": requirements.packages_in(pins.lock)}
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


def _reject_programs(actor: Actor) -> None:
    """Raise forbidden for the program of a run: a scenario that it saves could have a wider network than its own, the
    secrets of another scenario, and a schedule that outlives the run."""
    if actor.run_id is not None:
        text = "The program of a run can start scenarios, but can't create, change or delete them."
        raise ApiError("forbidden", text, {"needs": "person"})


class _Scenarios(versioning.VersionedKind[Scenario, ScenarioVersion]):
    """Scenarios as versioned objects."""

    def get(
        self, actor: Actor, object_id: str, scope: str = "read", *, lock: bool = False, deleted: bool = False
    ) -> Scenario:
        """Like its parent. Error: forbidden, for programs that want to change one."""
        found = super().get(actor, object_id, scope, lock=lock, deleted=deleted)
        if scope == "write":
            _reject_programs(actor)
        return found

    def restore(self, actor: Actor, head: Scenario) -> dict[str, Any]:
        """Like its parent; runs that were due in the meantime are skipped."""
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
    """Create a scenario in the actor's project, with its first version; commits. Return it as the API shows it.

    Resolves the program's requirements first, which may take seconds: call it outside of any transaction. Errors:
    validation_error with every fault, forbidden (naming a secret needs the scope `secrets`), unavailable.
    """
    _reject_programs(actor)
    place = tenancy.current_scope(actor)
    settings = {
        "timeout_seconds": timeout_seconds,
        "env": dict(env or {}),
        "secrets": _unique(secrets),
        "writable_secrets": _unique(writable_secrets),
        "network": network,
        "schedule": dict(schedule) if schedule else None,
    }
    check_changes(actor, {"code": code, **settings}, None)
    db.session.rollback()  # release the transaction while we wait for the package index
    resolved = requirements.resolve(code)
    spec = {"name": name, "description": description, "code": code, "warnings": code_warnings(code)}
    check_changes(actor, settings, None)  # a secret may be gone since
    stored_json.reserve(actor, settings["env"], settings["schedule"])
    moment = clock.now()
    scenario = Scenario(**place, created_by=actor.user_id, created_at=moment, **settings)
    scenario.next_run_at = schedules.next_run(scenario.schedule, moment)
    return KIND.save(
        actor, scenario, spec, resolved.to_pins(), "create", moment, **_audit_details({}, settings)
    )


def prepare_change(
    actor: Actor, scenario: Scenario, changes: Mapping[str, Any], *, refresh: bool = False
) -> tuple[ResolvedRequirements, list[dict[str, Any]]] | None:
    """Prepare a change of the code (or, with `refresh`, of its resolved requirements) before the scenario is locked,
    because it takes seconds: resolve the requirements and collect warnings. Return None if the code does not change.

    Ends the transaction in which the scenario was read. Errors: as `change`, and unavailable.
    """
    newest = version_of(scenario)
    before, old = ResolvedRequirements.from_pins(newest.pins), newest.spec
    check_changes(actor, changes, scenario)
    code = changes.get("code", old["code"] if refresh else None)
    db.session.rollback()
    if code is None:
        return None
    return requirements.resolve(code, before, refresh=refresh), code_warnings(code)


def change(
    actor: Actor,
    scenario: Scenario,
    changes: Mapping[str, Any],
    program: tuple[ResolvedRequirements, list[dict[str, Any]]] | None = None,
) -> dict[str, Any]:
    """Change any of `PROGRAM` and `SETTINGS` of a locked scenario; commits. Returns it as the API shows it.

    A change of the code, name or description creates a version; a change of the settings does not. `program` is the
    result of `prepare_change`. Errors: validation_error, forbidden.
    """
    moment, newest = clock.now(), version_of(scenario)
    check_changes(actor, {key: value for key, value in changes.items() if key != "code"}, scenario)
    settings = {key: _stored_setting(key, changes[key]) for key in SETTINGS if key in changes}
    details = _audit_details({key: getattr(scenario, key) for key in SETTINGS}, settings)
    if settings:
        stored_json.reserve(actor, settings)
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
        if details:
            scenario.updated_at = moment
            name, number = scenario.name, scenario.version
            audit_log.record(
                actor, "scenario.change", scenario, join=True, name=name, version=number, **details
            )
        db.session.commit()
        return as_json(scenario, newest)
    resolved, warnings = program or (ResolvedRequirements.from_pins(newest.pins), newest.spec["warnings"])
    spec["warnings"] = warnings
    return KIND.save(actor, scenario, spec, resolved.to_pins(), "change", moment, **details)


def check(code: str, *, resolve: bool = False) -> dict[str, Any]:
    """Check a program without saving it: `{requirements, packages, faults, warnings}`.

    `packages` are the names and versions of the resolved requirements; None without `resolve` or without requirements.
    Error: unavailable.
    """
    too_large = size_faults(code)
    if too_large:
        return _check_result([], None, [item.as_dict() for item in too_large], code)
    parsed = requirements.read(code)
    found = parsed.faults
    packages = None
    if resolve and not found and parsed.requirements:
        try:
            packages = requirements.packages_in(requirements.resolve(code).lock)
        except ApiError as error:
            if error.code != "validation_error":
                raise
            return _check_result(parsed.requirements, None, error.details["fields"], code)
    return _check_result(parsed.requirements, packages, [item.as_dict() for item in found], code)


def _check_result(
    declared: list[str], packages: dict[str, str] | None, faults: list[dict[str, Any]], code: str
) -> dict[str, Any]:
    return {"requirements": declared, "packages": packages, "faults": faults, "warnings": code_warnings(code)}


def code_warnings(code: str) -> list[dict[str, Any]]:
    """Return problems that users will notice when they run the program, but that do not prevent saving it."""
    if size_faults(code):
        return []
    found = [syntax_fault(code), *requirements.read(code).warnings]
    return [item.as_dict() for item in found if item]


# --- Checks -------------------------------------------------------------------------------------------------


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _stored_setting(key: str, value: Any) -> Any:
    if key in ("secrets", "writable_secrets"):
        return _unique(value)
    return dict(value) if isinstance(value, Mapping) else value


def _audit_details(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return for the audit log which settings changed, and which secrets were added or removed; no values of
    variables."""
    changed = [key for key in after if key not in before or before[key] != after[key]] if before else []
    details: dict[str, Any] = {"settings": changed} if changed else {}
    if changed:
        plain = {key: value for key, value in after.items() if key not in ("secrets", "writable_secrets")}
        details["changes"] = audit_log.changes_between({key: before[key] for key in plain}, plain)
    for key in ("secrets", "writable_secrets"):
        old, new = set(before.get(key, ())), set(after.get(key, before.get(key, ())))
        if new - old:
            details[f"{key}_given"] = sorted(new - old)
        if old - new:
            details[f"{key}_taken"] = sorted(old - new)
    return details


def check_changes(actor: Actor, changes: Mapping[str, Any], scenario: Scenario | None) -> None:
    """Raise `validation_error` with all errors of the input, or `forbidden` for a secret that the actor may not
    grant."""
    settings = {
        key: changes[key] if key in changes else getattr(scenario, key, None) or () for key in SETTINGS
    }
    faults: list[Fault] = []
    if "code" in changes:
        faults += size_faults(changes["code"]) or requirements.read(changes["code"]).faults
    if "env" in changes or "secrets" in changes:
        faults += env_faults(dict(settings["env"]), "env", set(settings["secrets"]))
    for key in ("secrets", "writable_secrets"):
        if key in changes:
            project_id = scenario.project_id if scenario is not None else actor.project_id
            faults += _secret_faults(
                actor, changes[key], key, project_id, set(getattr(scenario, key, None) or ())
            )
    if settings["schedule"] and ("schedule" in changes or "secrets" in changes):
        faults += schedules.faults(dict(settings["schedule"]), set(settings["secrets"]))
    if faults:
        raise validation_error(faults[: limits.MAX_FAULTS])
    for key in ("secrets", "writable_secrets"):
        if set(changes.get(key, ())) - set(getattr(scenario, key, None) or ()):
            require_scope(actor, "secrets")
    if (
        settings["schedule"]
        and dict(settings["schedule"]).get("enabled", True)
        and ("schedule" in changes or "code" in changes)
    ):
        require_scope(actor, "run")  # its runs start by themselves


def _secret_faults(
    actor: Actor, names: Sequence[str], key: str, project_id: str | None, granted: set[str]
) -> list[Fault]:
    """Return a fault for each secret that is missing, belongs to another project, or is not a valid variable name."""
    statement = select(Secret.name).where(
        Secret.workspace_id == actor.workspace_id,
        Secret.name.is_not(None),
        or_(Secret.project_id.is_(None), Secret.project_id == project_id, Secret.name.in_(granted)),
    )
    known = {name for name in db.session.scalars(statement) if name}
    faults = []
    for place, name in enumerate(names):
        path = f"{key}[{place}]"
        if name not in known:
            # Users without access to secrets must not learn their names.
            suggestion = did_you_mean(name, known) if actor.can("secrets") else None
            hint = suggestion or "An admin can add it under Settings, Secrets."
            faults.append(Fault(path, "unknown_secret", f'There is no secret "{name[:60]}".', hint))
        elif fault := name_fault(name, path):
            faults.append(fault)
    return faults


# Differences between two versions of a scenario.

_COMPARED_KEYS: Final = ("name", "description")
_CONTEXT_LINES: Final = 3


def diff_versions(scenario: Scenario, old: int, new: int) -> dict[str, Any]:
    """Return the differences from version `old` to `new`.

    `scenario`: changed attributes, `{key: {from, to}}`. `code`: the difference of the two texts in the unified format
    of `diff -u` and git, "" if they are equal. `packages`: `{name: {from, to}}` of packages with different versions,
    null for a missing package. Error: not_found.
    """
    before, after = (show(scenario, number) for number in (old, new))
    return {
        "scenario_id": scenario.id,
        "from": old,
        "to": new,
        "scenario": _changes(
            {key: before[key] for key in _COMPARED_KEYS}, {key: after[key] for key in _COMPARED_KEYS}
        ),
        "requirements": {
            "added": [
                requirement
                for requirement in after["requirements"]
                if requirement not in before["requirements"]
            ],
            "removed": [
                requirement
                for requirement in before["requirements"]
                if requirement not in after["requirements"]
            ],
        },
        "packages": _changes(_packages(before), _packages(after)),
        "code": unified_diff(before["code"], after["code"], f"v{old}/main.py", f"v{new}/main.py"),
    }


def _packages(version: dict[str, Any]) -> dict[str, str]:
    return version["lock"]["packages"] if version["lock"] else {}


def _changes(old: dict[str, Any], new: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        key: {"from": old.get(key), "to": new.get(key)}
        for key in dict.fromkeys([*old, *new])
        if old.get(key) != new.get(key)
    }


def unified_diff(old: str, new: str, old_name: str, new_name: str) -> str:
    """Return the difference of two texts in unified format. Changes of up to DIFF_LINES are compared line by line; a
    longer change is shown as one block that replaces another."""
    before, after = old.split("\n"), new.split("\n")
    if before == after:
        return ""
    prefix = _common_prefix_length(before, after)
    suffix = _common_prefix_length(before[prefix:][::-1], after[prefix:][::-1])
    changed = (before[prefix : len(before) - suffix], after[prefix : len(after) - suffix])
    if max(map(len, changed)) <= limits.DIFF_LINES:
        pieces = list(difflib.unified_diff(before, after, old_name, new_name, n=_CONTEXT_LINES, lineterm=""))
        return "\n".join(pieces) + "\n"
    lead, tail = (
        before[max(0, prefix - _CONTEXT_LINES) : prefix],
        before[len(before) - suffix :][:_CONTEXT_LINES],
    )
    first, context_lines = prefix - len(lead) + 1, len(lead) + len(tail)
    lines = [
        f"--- {old_name}",
        f"+++ {new_name}",
        f"@@ -{first},{len(changed[0]) + context_lines} +{first},{len(changed[1]) + context_lines} @@",
        *(f" {line}" for line in lead),
        *(f"-{line}" for line in changed[0]),
        *(f"+{line}" for line in changed[1]),
        *(f" {line}" for line in tail),
    ]
    return "\n".join(lines) + "\n"


def _common_prefix_length(first: list[str], second: list[str]) -> int:
    """Return the number of equal lines at the beginning of two lists."""
    pairs = zip(first, second, strict=False)
    return next(
        (place for place, (left, right) in enumerate(pairs) if left != right), min(len(first), len(second))
    )
