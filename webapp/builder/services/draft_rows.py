"""Rows of a draft that may have errors: fields with errors stay empty, the others keep their rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import orjson

from webapp import limits
from webapp.access.actors import Actor
from webapp.engine.types.registry import find
from webapp.errors import ApiError, Fault
from webapp.generation.services import generate
from webapp.generation.services.generate import Generation
from webapp.row_templates.schemas import DraftInput

Result = TypeVar("Result")
Parse = Callable[[Mapping[str, Any]], DraftInput]
"""Parse the input of a generate call. Raises validation_error."""

_SAFE: Final = {"type": "number", "options": {}}
_PLACEHOLDERS: Final = 3  # ways to replace a field with errors by one that has no values
# Fields that are too large together have their errors one after the other, each after rows were generated.
_ROUNDS: Final = 20


@dataclass(slots=True)
class Sample:
    """Rows of a draft. `faults` are the errors of its fields; `waiting` are fields of the first level, by id, that have
    no errors but depend on such a field, with its name. `empty` are the ids of those without values. `error` says why
    there are no rows at all."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    waiting: dict[str, str] = field(default_factory=dict)
    empty: frozenset[str] = frozenset()
    warnings: list[dict[str, Any]] = field(default_factory=list)
    bad: list[dict[str, Any]] = field(default_factory=list)
    leaks: list[dict[str, Any]] | None = None
    seed: str = ""
    error: str = ""
    milliseconds: float = 0.0


def sample(
    actor: Actor,
    parse: Parse,
    draft: Mapping[str, Any],
    own: str,
    *,
    seed: str,
    offset: int = 0,
    count: int = limits.BUILDER_ROWS,
    fetch: bool = False,
    timer: Callable[[], float] = time.perf_counter,
) -> Sample:
    """Return rows of a draft. The first ones are a preview, which is not counted toward the quota; others are counted.

    `parse` makes the input of a generate call from a JSON object. `own` is the id of the saved template. Errors that
    are not errors of fields are in `Sample.error`.
    """
    began = timer()
    found = Sample()

    def first(body: dict[str, Any]) -> None:
        made = generate.preview_draft(actor, parse(body), fetch, own, count)
        found.rows = orjson.loads(made.rows)
        found.warnings, found.bad, found.seed = made.warnings, made.bad or [], made.seed

    def later(body: dict[str, Any]) -> None:
        wanted = {**body, "offset": offset, "count": count, "format": "json"}
        generation = generate.draft(actor, parse(wanted), own=own)
        try:
            raw = generation.body if isinstance(generation.body, bytes) else generation.output.whole()
        finally:
            if not isinstance(generation.body, bytes):
                generation.body.close()
        found.rows, found.bad = orjson.loads(raw), generation.recipe.bad_cells()
        found.seed, found.leaks = generation.recipe.pins.seed, generation.leaks

    try:
        tolerant(draft, seed, later if offset else first, found)
    except ApiError as error:
        if error.status >= 500:
            raise
        found.error = error.message
    found.milliseconds = (timer() - began) * 1000
    return found


def download(
    actor: Actor, parse: Parse, draft: Mapping[str, Any], own: str, *, seed: str, more: Mapping[str, Any]
) -> Generation:
    """Generate a file from a draft; fields with errors are empty. `more` are further attributes of the generate call:
    `count`, `format` and so on. Raises what `generate.draft` raises."""
    return tolerant(
        draft, seed, lambda body: generate.draft(actor, parse({**body, **more}), own=own), Sample()
    )


def tolerant(
    draft: Mapping[str, Any], seed: str, act: Callable[[dict[str, Any]], Result], found: Sample
) -> Result:
    """Do something with a draft in which fields with errors are replaced by fields without values. Their errors, and
    which other fields have none for that reason, are noted in `found`. Raises validation_error if the errors are not
    of fields, or if finding them takes too many rounds or too long."""
    rounds, began = 0, time.thread_time()
    fields = [dict(one) if isinstance(one, Mapping) else one for one in draft.get("fields", ())]
    tried: dict[int, int] = {}
    while True:
        body = {key: value for key, value in draft.items() if value not in (None, "")}
        body |= {"name": body.get("name") or "rows", "fields": fields}
        if seed:
            body["seed"] = seed
        try:
            result = act(body)
        except ApiError as error:
            if error.code != "validation_error":
                raise
            faults = faults_of(error)
            places = {place for fault in faults if (place := _place(fault.path)) is not None}
            new = {place for place in places if tried.get(place, 0) < _PLACEHOLDERS and place < len(fields)}
            rounds += 1
            if not new or rounds > _ROUNDS or time.thread_time() - began > limits.BUILDER_SECONDS:
                raise
            _note(found, faults, tried, draft["fields"])
            for place in new:
                tried[place] = tried.get(place, 0) + 1
                fields[place] = _placeholder(draft["fields"][place], place, tried[place])
            continue
        found.empty = frozenset(_id(draft["fields"][place]) for place in tried)
        return result


def _note(found: Sample, faults: list[Fault], tried: Mapping[int, int], fields: Sequence[Any]) -> None:
    if not tried:
        found.faults = faults
        return
    causes = ", ".join(
        str(fields[place].get("name", "")) for place in tried if isinstance(fields[place], Mapping)
    )
    for fault in faults:
        place = _place(fault.path)
        if place is not None and place not in tried:
            found.waiting[_id(fields[place])] = causes


def _placeholder(given: Any, place: int, attempt: int) -> dict[str, Any]:
    """A field without values in the place of one with errors: of the same type, if that needs no options, so that
    formulas that read it keep working; else a number; else, if it is the name that is wrong, with another name."""
    known = given if isinstance(given, Mapping) else {}
    kind = find(str(known.get("type", "")))
    made = {"name": known.get("name"), "percent_blank": 100, **_SAFE}
    if isinstance(known.get("id"), str):
        made["id"] = known["id"]
    if attempt == 1 and kind is not None:
        made["type"] = kind.name
    if attempt == _PLACEHOLDERS or not isinstance(made["name"], str) or not made["name"]:
        made |= {"name": f"field {place + 1} "}
        made.pop("id", None)
    return made


def _place(path: str) -> int | None:
    """Return the number of the field of the first level that an error's path leads to."""
    number = path.removeprefix("fields[").partition("]")[0]
    return int(number) if path.startswith("fields[") and number.isdecimal() else None


def _id(field: Any) -> str:
    return str(field.get("id", "")) if isinstance(field, Mapping) else ""


def faults_of(error: ApiError) -> list[Fault]:
    """Return the errors in a `validation_error`."""
    return [
        Fault(one["path"], one["code"], one["message"], one.get("hint"), one.get("position"))
        for one in error.details["fields"]
    ]
