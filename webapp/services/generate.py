"""Rows on demand: generate, preview, and the same without saving.

The order of a generation: the template version is read and compiled (or found compiled), the rows are reserved,
the first block is made, the audit entry is written, and only then is there an answer to send. Whatever fails on
the way gives the rows back and is an error; nothing is ever a broken 200. From then on no database is asked.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import redis
from flask import Flask, current_app
from sqlalchemy import bindparam, select

from webapp import clock, ids, limits
from webapp.engine import groups
from webapp.engine.errors import SpecError
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.models import Template
from webapp.services import audit, plans, quotas, rows, template_fields, templates, tenancy
from webapp.services.actors import Actor, require
from webapp.services.plans import Source
from webapp.services.quick import Quick
from webapp.services.quotas import Reservation
from webapp.services.row_requests import DraftInput, GenerateInput, PreviewInput
from webapp.services.rows import Output, Recipe

log = logging.getLogger(__name__)

_T = Template.__table__.c
_HEAD = Quick(
    select(_T.version, _T.project_id, _T.team_id).where(
        _T.id == bindparam("id"), _T.workspace_id == bindparam("workspace"), _T.deleted_at.is_(None)
    )
)


@dataclass(frozen=True, slots=True)
class Head:
    """What must be known of a template before its rows are made, read by one statement."""

    id: str
    version: int
    project_id: str
    team_id: str


def head(actor: Actor, template_id: str, scope: str) -> Head:
    """As `tenancy.get`, without the objects: this is asked for every call of generate. Errors: not_found,
    forbidden."""
    row = _HEAD.row(id=template_id, workspace=actor.workspace_id) if ids.is_id(template_id, "tpl") else None
    if row is None or actor.role_in(row[2]) is None:
        raise tenancy.not_found("template", template_id)
    found = Head(template_id, *row)
    require(actor, scope, found.team_id)
    return found


def saved_source(found: Head, locale: str | None, version: int | None = None) -> Source:
    """A version of a template (default: its newest), compiled. Errors: not_found, validation_error, unavailable."""
    number = found.version if version is None else version
    return plans.of_version(found.id, number, locale, templates.loader(found.id, number))


def draft_source(ask: DraftInput) -> Source:
    """A template that is not saved, compiled. Error: validation_error with every fault."""
    return plans.of_draft(ask.name, ask.fields, ask.quantity or limits.DEFAULT_QUANTITY, ask.anchor, ask.locale)


# --- Generate ---------------------------------------------------------------------------------------------


class Delivery:
    """The bytes of a generation on their way to a client. Closing it early gives the unmade rows back."""

    def __init__(self, app: Flask, actor: Actor, output: Output, reservation: Reservation, entry: str) -> None:
        self._app, self._actor, self._entry = app, actor, entry
        self._output, self._reservation = output, reservation
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        """The pieces, in order."""
        return iter(self._output)

    def close(self) -> None:
        """Stop the work; rows that were never made go back to the hour, and the audit trail says how many were."""
        if self._closed:
            return
        self._closed = True
        self._output.close()
        made, count = self._output.rows_made, self._output.recipe.count
        if made >= count:
            return
        with self._app.app_context():
            try:
                quotas.give_back(self._reservation, count - made)
                told = {"made": made, "of": count, "entry": self._entry}
                audit.record(self._actor, "template.generate_cut", _named(self._output.recipe), **told)
            except (redis.RedisError, ApiError) as error:  # the client is gone: nobody is left to be told
                log.warning("a stream was cut, but its rows were not given back: %s", error)


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation whose first block is made: `body` are its bytes, whole where they are few."""

    recipe: Recipe
    body: bytes | Delivery


def saved(actor: Actor, template_id: str, ask: GenerateInput, format: str | None = None) -> Generation:
    """Rows of a saved template's newest version; see `_run`. Errors: not_found, forbidden, and those of `_run`."""
    found = head(actor, template_id, "generate")
    return _run(actor, saved_source(found, ask.locale), ask, format)


def draft(actor: Actor, ask: DraftInput, format: str | None = None) -> Generation:
    """Rows of a template that is not saved."""
    return _run(actor, draft_source(ask), ask, format)


def _run(actor: Actor, source: Source, ask: GenerateInput, format: str | None) -> Generation:
    """Reserve, make the first block, record.

    Errors: row_limit_exceeded, validation_error, quota_exceeded (with Retry-After), unavailable.
    """
    count = ask.count if ask.count is not None else source.quantity
    quotas.check_rows(actor, count)
    recipe = rows.recipe(source, ask, present=clock.now(), format=format)
    reservation = quotas.reserve_rows(actor, count)
    try:
        output = recipe.open()
        small = output.whole() if count <= limits.FIRST_BLOCK_ROWS else None
        entry = _record(actor, recipe)
    except BaseException:
        quotas.give_back(reservation, count)
        raise
    db.session.remove()
    if small is not None:
        return Generation(recipe, small)
    app = current_app._get_current_object()  # type: ignore[attr-defined]
    return Generation(recipe, Delivery(app, actor, output, reservation, entry))


def _record(actor: Actor, recipe: Recipe) -> str:
    pins = recipe.pins
    return audit.record(
        actor,
        "template.generate",
        _named(recipe),
        rows=recipe.count,
        version=pins.version,
        seed=pins.seed,
        format=recipe.format.name,
        offset=recipe.offset,
    )


def _named(recipe: Recipe) -> tuple[str, str]:
    return "template", recipe.pins.template_id or ""


# --- Preview ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Preview:
    """The first three rows. `rows` is the JSON array that generate would send, byte for byte."""

    recipe: Recipe
    rows: bytes
    warnings: list[dict[str, str]]

    @property
    def seed(self) -> str:
        """The seed sent, or the one that was made."""
        return self.recipe.pins.seed


def preview(actor: Actor, template_id: str, ask: PreviewInput) -> Preview:
    """Three rows of a saved template or, where `ask` has fields, of an unsaved draft of it; spends no rows.

    A draft's fields are matched with the saved ones as saving would match them, so rows do not change by being
    saved. Errors: not_found, forbidden, validation_error.
    """
    found = head(actor, template_id, "read")
    source = saved_source(found, ask.locale) if ask.fields is None else _draft_of(found, ask)
    return _preview(source, ask)


def preview_draft(ask: DraftInput) -> Preview:
    """Three rows of a template that is not saved; spends no rows. Error: validation_error."""
    return _preview(draft_source(ask), ask)


def preview_version(found: Head, version: int, seed: str) -> Preview:
    """Three rows of one version, on its own anchor. Errors: not_found, validation_error, unavailable."""
    return _preview(saved_source(found, None, version), PreviewInput(seed=seed))


def _draft_of(found: Head, ask: PreviewInput) -> Source:
    spec, _ = templates.loader(found.id, found.version)()
    parsed = plans.parsed_fields(ask.fields, name=spec["name"], locale=spec["locale"])
    merged = groups.assign(template_fields.carry_over(parsed, spec["fields"]))
    plan = plans.compiled(merged, plans.vocabulary(), ask.locale)
    return Source(plan, spec["name"], spec["quantity"], plans.anchor_of(spec), found.id, found.version)


def _preview(source: Source, ask: PreviewInput | DraftInput) -> Preview:
    wanted = GenerateInput(
        count=limits.PREVIEW_ROWS, seed=ask.seed, overrides=ask.overrides, now=ask.now, locale=ask.locale
    )
    recipe = rows.recipe(source, wanted, present=clock.now())
    made = recipe.open().whole()
    warnings = [fault.as_dict() for fault in recipe.bound.warnings]
    return Preview(recipe, made, warnings + capacity_warnings(recipe))


def capacity_warnings(recipe: Recipe) -> list[dict[str, Any]]:
    """Unique fields with fewer values than the template's own quantity asks for."""
    try:
        recipe.bound.check(0, recipe.source.quantity)
    except SpecError as error:
        return [fault.as_dict() for fault in error.faults]
    return []


def sample(ask: DraftInput, count: int) -> bytes:
    """The first `count` rows of a template that is not saved, as JSON, for a look at how their values spread: they
    are counted and not handed on, and so not spent. Error: validation_error."""
    wanted = GenerateInput(count=count, seed=ask.seed, locale=ask.locale)
    return rows.recipe(draft_source(ask), wanted, present=clock.now()).open().whole()


# --- Estimate ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the file of a request will be like, judged by its first rows."""

    count: int
    sample: int
    bytes: int
    seconds: float


def estimate(
    actor: Actor, template_id: str, ask: GenerateInput, timer: Callable[[], float] = time.perf_counter
) -> Estimate:
    """Size and time of a generation, measured on its first rows, which go nowhere and are not spent.

    Errors: those of `saved`, apart from quota_exceeded.
    """
    source = saved_source(head(actor, template_id, "generate"), ask.locale)
    count = ask.count if ask.count is not None else source.quantity
    quotas.check_rows(actor, count)
    sample = min(count, limits.ESTIMATE_ROWS)
    recipe = rows.recipe(source, ask.model_copy(update={"count": sample}), present=clock.now())
    began = timer()
    length = sum(len(piece) for piece in recipe.open())
    seconds = timer() - began
    return Estimate(count, sample, round(length * count / sample), seconds * count / sample)
