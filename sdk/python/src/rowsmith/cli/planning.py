"""Plan and apply the changes in files: all of them or none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import rowsmith
from rowsmith.cli import changes, template_files
from rowsmith.cli.problems import CLASH, FAILED, NOT_FOUND, Problem, exit_of, lines_of
from rowsmith.cli.template_files import BODY, File, KnownVersions
from rowsmith.error import NotFound, ServiceError


@dataclass
class Step:
    """The planned action for one file. `action` is none, update or create; `was` is the current template."""

    file: File
    action: str
    was: Optional[Mapping[str, Any]] = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    strange: bool = False
    """Return whether someone else changed the template since this clone last saw it."""

    def told(self) -> dict[str, Any]:
        """Return the step as JSON."""
        known = {"file": str(self.file.path), "action": self.action, "name": self.file.body["name"]}
        was = self.was or {}
        return {
            **known,
            "template_id": was.get("id"),
            "version": was.get("version"),
            "changed_since_pulled": self.strange,
            "changes": dict(self.changes) or None,
        }

    def lines(self) -> list[str]:
        """Return the step as text."""
        name = f"{self.file.body['name']} ({self.file.path.name})"
        if self.action == "create":
            fields = self.file.body["fields"]
            told = [f"+ {name}: new, {len(fields)} fields"]
        elif self.action == "none":
            told = [f"= {name}"]
        else:
            assert self.was is not None
            told = [f"~ {name}: version {self.was['version']}"]
            told += [f"    {line}" for line in changes.lines(self.changes)]
        if self.strange and self.action != "none":
            told.append(
                "    ! changed on the service since the last pull; `templates pull` gets the changes"
            )
        return told


class Types:
    """Names of field types. The catalogue is requested only if the names are not sufficient."""

    def __init__(self, api: rowsmith.Api) -> None:
        self._api = api
        self._names: Optional[dict[str, str]] = None

    def same(self, one: str, other: str) -> bool:
        """Return whether two names refer to the same type."""
        if changes.normalize_type(one) == changes.normalize_type(other):
            return True
        if self._names is None:
            self._names = {}
            for kind in self._api.fields.list():
                for word in (kind["name"], kind["label"], *kind["aliases"]):
                    self._names.setdefault(changes.normalize_type(word), kind["name"])
        first, second = changes.normalize_type(one), changes.normalize_type(other)
        return self._names.get(first, one) == self._names.get(second, other)


def plan(api: rowsmith.Api, files: Sequence[File]) -> list[Step]:
    """Return the step for each file. Raises Problem `ambiguous` if a file without ID has a name that several
    templates share."""
    types, steps = Types(api), []
    project = api.workspace.me()["project_id"]
    seen: dict[Path, KnownVersions] = {}
    for file in files:
        was = _current(api, file, project)
        if was is None:
            steps.append(Step(file, "create"))
            continue
        found = changes.compare(was, file.body, types.same)
        known = seen.setdefault(file.path.parent, KnownVersions(file.path.parent)).versions.get(was["id"])
        strange = known is not None and known < was["version"]
        steps.append(Step(file, "update" if changes.any_of(found) else "none", was, found, strange))
    targets = [step.was["id"] for step in steps if step.was]
    twice = [step for step in steps if step.was and targets.count(step.was["id"]) > 1]
    if twice:
        hints = [f"{step.file.path}" for step in twice]
        raise Problem("ambiguous", "Several files have the same template:", CLASH, hints)
    return steps


def _current(api: rowsmith.Api, file: File, project: Optional[str]) -> Optional[Mapping[str, Any]]:
    """Return the template of a file: by ID in this project, otherwise by exact name."""
    if file.id:
        try:
            found_by_id = api.templates.get(file.id)
            if found_by_id["project_id"] == project:
                return found_by_id
        except NotFound:
            pass
    name = file.body["name"]
    found = [item for item in api.templates.list(q=name) if item["name"] == name]
    if len(found) > 1:
        hints = [item["id"] for item in found]
        text = f'{len(found)} templates have the name "{name}". Add the ID of one of them to {file.path}:'
        raise Problem("ambiguous", text, CLASH, hints)
    return api.templates.get(found[0]["id"]) if found else None


def check(api: rowsmith.Api, steps: Sequence[Step], *, create: bool, force: bool) -> None:
    """Reject invalid steps before anything is changed: new templates without permission, changes that would
    be lost, and field errors (which the service finds by generating three rows)."""
    new = [step for step in steps if step.action == "create"]
    if new and not create:
        hints = [f"{step.file.path}  {step.file.body['name']}" for step in new]
        text = "These templates do not exist in this project. Use --create to create them:"
        raise Problem("not_found", text, NOT_FOUND, hints)
    lost = [step for step in steps if step.strange and step.action == "update"]
    if lost and not force:
        hints = [f"{step.file.path}: version {(step.was or {})['version']} on the service is newer" for step in lost]
        hints.append("Get them with `rowsmith templates pull`, or overwrite them with --force.")
        text = "These templates were changed on the service since the last pull. No changes were made."
        raise Problem("version_conflict", text, CLASH, hints)
    for step in steps:
        if step.action == "none":
            continue
        asked = {"fields": step.file.body["fields"], "seed": "plan", "fetch": False}
        try:
            if step.was is not None:
                api.templates.preview(step.was["id"], **asked)
            else:
                whole = {key: value for key, value in step.file.body.items() if value is not None}
                api.templates.preview({**whole, "seed": "plan"})
        except ServiceError as error:
            raise _problem_of(step, error, "No changes were made.") from error


def apply(api: rowsmith.Api, steps: Sequence[Step]) -> list[tuple[Step, Mapping[str, Any]]]:
    """Apply the steps and return each with its current template. If a step fails, earlier ones are reverted."""
    done: list[tuple[Step, Mapping[str, Any]]] = []
    try:
        for step in steps:
            body = step.file.body
            if step.action == "create":
                done.append((step, api.templates.create(body)))
            elif step.action == "update" and step.was is not None:
                done.append((step, api.templates.update(step.was["id"], if_match=step.was, **body)))
    except (ServiceError, KeyboardInterrupt) as error:
        left = _revert_all(api, done)
        message = (
            "No changes were made."
            if not left
            else f"These changes could not be reverted: {', '.join(left)}."
        )
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _problem_of(step, error, message) from error
    return done


def _revert_all(api: rowsmith.Api, done: Sequence[tuple[Step, Mapping[str, Any]]]) -> list[str]:
    left = []
    for step, made in reversed(done):
        if not _revert(api, step, made):
            left.append(step.file.path.name)
    return left


def _revert(api: rowsmith.Api, step: Step, current_template: Mapping[str, Any]) -> bool:
    try:
        if step.was is None:
            api.templates.delete(current_template["id"], if_match=current_template)
        else:
            before: dict[str, Any] = {key: step.was[key] for key in BODY}
            api.templates.update(current_template["id"], if_match=current_template, **before)
    except ServiceError:
        return False
    return True


def _problem_of(step: Step, error: ServiceError, outcome: str) -> Problem:
    first, *more = lines_of(error)
    code, _, message = first.partition(": ")
    if error.code == "version_conflict":
        message = "Another user has changed it in the meantime. Run `plan` again."
    text = f"{step.file.path}: {message} {outcome}"
    return Problem(code, text, exit_of(error) or FAILED, [line.strip() for line in more])


def write_files(done: Sequence[tuple[Step, Mapping[str, Any]]]) -> None:
    """Write the files as the service now stores them, with the assigned IDs."""
    for step, made in done:
        template_files.write(step.file.path, made)


def record_versions(done: Sequence[tuple[Step, Mapping[str, Any]]]) -> None:
    """Record the versions that the files now correspond to."""
    by_folder: dict[Path, list[Mapping[str, Any]]] = {}
    for step, made in done:
        by_folder.setdefault(step.file.path.parent, []).append(made)
    for folder, templates in by_folder.items():
        seen = KnownVersions(folder)
        for template in templates:
            seen.note(template)
        seen.save()
