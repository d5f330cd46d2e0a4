"""Rows on demand: generate, preview, and the same without saving.

The order of a generation: the template version is read and compiled (or found compiled), the rows are reserved,
the first block is made, the audit entry is written, and only then is there an answer to send. Whatever fails on
the way gives the rows back and is an error; nothing is ever a broken 200. From then on no database is asked.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import redis
from flask import Flask, current_app
from sqlalchemy import bindparam, event, select
from sqlalchemy.orm import object_session

from webapp import clock, ids, limits
from webapp.accounts import actors
from webapp.accounts.actors import Actor, require
from webapp.accounts.services import identity, tenancy
from webapp.audit.services import audit_log
from webapp.engine import groups, records
from webapp.engine.bad.invalid import Invalid
from webapp.engine.errors import SpecError
from webapp.engine.real import SourceSpec
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.generation.services import external_values
from webapp.generation.services import rows as generation_rows
from webapp.generation.services.rows import Output, Recipe
from webapp.operations import metrics
from webapp.real_data.services import sources
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import DraftInput, GenerateInput, PreviewInput
from webapp.row_templates.services import compilation, compiled_plans, field_ids, related_templates, templates
from webapp.row_templates.services.compiled_plans import Source
from webapp.single_row_query import Quick
from webapp.usage.services import quotas
from webapp.usage.services.quotas import Reservation

_T = Template.__table__.c
_HEAD: Final = Quick(
    select(_T.version, _T.project_id, _T.team_id).where(
        _T.id == bindparam("id"), _T.workspace_id == bindparam("workspace"), _T.deleted_at.is_(None)
    )
)
_MEMORY: Final = "rowsmith.heads"


@dataclass(frozen=True, slots=True)
class Head:
    """One template's head."""

    id: str
    version: int
    project_id: str
    team_id: str


def of(actor: Actor, template_id: str, scope: str) -> Head:
    """As `tenancy.get`, without the objects: this is asked for every call of generate. Errors: not_found,
    forbidden."""
    found = _found(actor, template_id)
    if found is None or actor.role_in(found.team_id) is None:
        raise tenancy.not_found("template", template_id)
    require(actor, scope, found.team_id)
    return found


def _found(actor: Actor, template_id: str) -> Head | None:
    epoch = actor.entry.epoch if actor.entry is not None and actor.entry.passage is None else None
    memory = cast(dict[tuple[str, str], tuple[str, Head]], current_app.extensions.setdefault(_MEMORY, {}))
    place = (actor.workspace_id, template_id)
    if epoch is not None and (kept := memory.get(place)) is not None and kept[0] == epoch:
        return kept[1]
    row = _HEAD.row(id=template_id, workspace=actor.workspace_id) if ids.is_id(template_id, "tpl") else None
    if row is None:
        return None
    found = Head(template_id, *row)
    if epoch is not None:
        if len(memory) >= limits.IDENTITY_CACHE_ENTRIES:
            memory.clear()  # simple, and rare: it is only a memory
        memory[place] = (epoch, found)
    return found


@event.listens_for(Template, "after_update")
@event.listens_for(Template, "after_delete")
def _changed(_mapper: Any, _connection: Any, template: Template) -> None:
    """A change of a head is announced inside the transaction that makes it. A new one was remembered by nobody."""
    session = object_session(template)
    if session is not None:
        actors.changing(session, template.workspace_id)


log = logging.getLogger(__name__)

# Few rows are a hundred short calls, thirty of which let go of the interpreter's lock and take it back. Threads that
# make them side by side on one interpreter gain nothing and wake each other each time.
_one_by_one = threading.Lock()


def saved_source(
    found: Head,
    locale: str | None,
    version: int | None = None,
    rows_of: related_templates.Rows = compiled_plans.NOTHING,
) -> Source:
    """A version of a template (default: its newest), compiled; `rows_of` are rows of related templates that the
    request states. Errors: not_found, validation_error, unavailable."""
    number = found.version if version is None else version
    return compiled_plans.of_version(found.id, number, locale, templates.loader(found.id, number), rows_of)


def draft_source(actor: Actor | None, ask: DraftInput, own: str = "") -> Source:
    """A template that is not saved, compiled; `own` is the id of the saved one that it is a draft of. Without an
    actor no other template is seen. Error: validation_error with every fault."""
    if ask.source is not None:
        related_templates.refuse_own_rows(ask.fields, own)
    around = related_templates.gather(
        ask.fields, own, lambda wanted: related_templates.newest(actor, wanted) if actor else {}
    )
    quantity = ask.quantity or limits.DEFAULT_QUANTITY
    said = (_said(ask.source), _wrong(ask.invalid))
    anchor = ask.anchor or limits.DRAFT_ANCHOR
    return compiled_plans.of_draft(
        ask.name, ask.fields, quantity, anchor, ask.locale, own, around, ask.rows, *said
    )


def _said(source: SourceSpec | None) -> dict[str, Any] | None:
    return None if source is None else source.model_dump(exclude_none=True)


def _wrong(invalid: Invalid | None) -> dict[str, Any] | None:
    return None if invalid is None else invalid.to_json()


# --- Generate ---------------------------------------------------------------------------------------------


class Delivery:
    """The bytes of a generation on their way to a client. Closing it early gives the unmade rows back."""

    def __init__(
        self, app: Flask, actor: Actor, output: Output, reservation: Reservation, entry: str
    ) -> None:
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
        recipe = self._output.recipe
        made, count = self._output.rows_made, recipe.count
        if made >= count:
            return
        with self._app.app_context():
            try:
                unused = count - made + recipe.records(made)
                quotas.give_back(self._reservation, unused)
                told = {"made": made, "of": count, "given_back": unused, "entry": self._entry}
                audit_log.record(self._actor, "template.generate_cut", _named(self._output.recipe), **told)
            except (redis.RedisError, ApiError) as error:  # the client is gone: nobody is left to be told
                log.warning("a stream was cut, but its rows were not given back: %s", error)


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation whose first block is made: `body` are its bytes, whole where they are few."""

    recipe: Recipe
    body: bytes | Delivery
    output: Output

    @property
    def leaks(self) -> list[dict[str, Any]] | None:
        """What the leak check saw, once every byte has been taken; None where nothing was to be looked for."""
        return self.output.leaks


def saved(actor: Actor, template_id: str, ask: GenerateInput, format: str | None = None) -> Generation:
    """Rows of a saved template's newest version; see `_run`. Errors: not_found, forbidden, and those of `_run`."""
    found = of(actor, template_id, "generate")
    source = compiled_plans.kept(found.id, found.version, ask.locale, ask.rows)
    if source is None or source.plan.asks:
        identity.must_be_counted(actor)
        source = saved_source(found, ask.locale, rows_of=ask.rows)
    return _run(actor, source, ask, format)


def draft(actor: Actor, ask: DraftInput, format: str | None = None, own: str = "") -> Generation:
    """Rows of a template that is not saved; see `draft_source`."""
    return _run(actor, draft_source(actor, ask, own), ask, format)


def _run(actor: Actor, source: Source, ask: GenerateInput, format: str | None) -> Generation:
    """Fetch what comes from outside, reserve, make the first block, record.

    Errors: row_limit_exceeded, validation_error, quota_exceeded (with Retry-After), unavailable.
    """
    source = sources.opened(actor, source)
    count = source.count(ask.count)
    quotas.check_rows(actor, count)
    recipe = external_values.recipe(actor, source, ask.model_copy(update={"count": count}), format=format)
    inside = recipe.records()
    reservation = quotas.reserve_rows(actor, count + inside, largest=count)
    try:
        with _one_by_one if count * source.plan.leaves <= limits.FIRST_BLOCK_ROWS else nullcontext():
            output = recipe.open()
            few = (
                output.rows_made == count <= limits.FIRST_BLOCK_ROWS and output.primed <= limits.PREVIEW_BYTES
            )
            small = output.whole(sys.maxsize) if few else None
        entry = _record(actor, recipe, inside)
    except BaseException:
        quotas.give_back(reservation, reservation.rows)
        raise
    db.session.remove()
    if small is not None:
        return Generation(recipe, small, output)
    app = current_app._get_current_object()  # type: ignore[attr-defined]
    return Generation(recipe, Delivery(app, actor, output, reservation, entry), output)


def _record(actor: Actor, recipe: Recipe, inside: int) -> str:
    pins = recipe.pins
    metrics.count("rows_generated", recipe.count, format=recipe.format.name)
    return audit_log.record(
        actor,
        "template.generate",
        _named(recipe),
        rows=recipe.count,
        version=pins.version,
        seed=pins.seed,
        format=recipe.format.name,
        offset=recipe.offset,
        **quotas.records_told(inside),
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
    bad: list[dict[str, Any]] | None
    """Its bad cells, as `AnswerKey` has them; None where none is ever bad."""

    @property
    def seed(self) -> str:
        """The seed sent, or the one that was made."""
        return self.recipe.pins.seed


def preview(actor: Actor, template_id: str, ask: PreviewInput) -> Preview:
    """Three rows of a saved template or, where `ask` has fields, of an unsaved draft of it; spends no rows.

    A draft's fields are matched with the saved ones as saving would match them, so rows do not change by being
    saved. Errors: not_found, forbidden, validation_error.
    """
    found = of(actor, template_id, "read")
    source = (
        saved_source(found, ask.locale, rows_of=ask.rows)
        if ask.fields is None
        else _draft_of(actor, found, ask)
    )
    fetch = ask.fields is None if ask.fetch is None else ask.fetch
    if (
        fetch and ask.fields is not None
    ):  # a draft may ask anything of a connection, as a write or generate may
        require(actor, "generate", found.team_id)
    return _preview(source, ask, actor, fetch)


def preview_draft(actor: Actor | None, ask: DraftInput, fetch: bool = False) -> Preview:
    """Three rows of a template that is not saved; spends no rows. Errors: validation_error, and for `fetch` forbidden
    and those of connections."""
    if fetch and actor is not None:
        require(actor, "generate", actor.team_id)
    return _preview(draft_source(actor, ask), ask, actor, fetch)


def preview_version(found: Head, version: int, seed: str) -> Preview:
    """Three rows of one version, on its own anchor. Errors: not_found, validation_error, unavailable."""
    return _preview(saved_source(found, None, version), PreviewInput(seed=seed))


def _draft_of(actor: Actor, found: Head, ask: PreviewInput) -> Source:
    spec, _ = templates.loader(found.id, found.version)()
    given = _said(ask.source) if "source" in ask.model_fields_set else spec.get("source")
    wrong = _wrong(ask.invalid) if "invalid" in ask.model_fields_set else spec.get("invalid")
    around = related_templates.gather(
        ask.fields, found.id, lambda wanted: related_templates.newest(actor, wanted)
    )
    parsed = compilation.parsed_fields(
        ask.fields, name=spec["name"], locale=spec["locale"], source=given, invalid=wrong
    )
    before = spec["fields"]
    merged = groups.assign(field_ids.carry_over(parsed, before), field_ids.settled(before))
    library = related_templates.library(around, found.id, spec["quantity"], ask.rows)
    plan = compilation.compiled(merged, compilation.vocabulary(), ask.locale, library)
    related = related_templates.related_of(around, library)
    return Source(
        plan, spec["name"], spec["quantity"], compilation.anchor_of(spec), found.id, found.version, related
    )


def _preview(
    source: Source, ask: PreviewInput | DraftInput, actor: Actor | None = None, fetch: bool = False
) -> Preview:
    wanted = GenerateInput(
        count=limits.PREVIEW_ROWS, seed=ask.seed, overrides=ask.overrides, now=ask.now, locale=ask.locale
    )
    recipe, made = _first_rows(source, wanted, actor, fetch, few=True)
    warnings = [fault.as_dict() for fault in recipe.bound.warnings]
    warnings += (
        external_values.warnings(source, recipe) + capacity_warnings(recipe) + cut_warnings(recipe, wanted)
    )
    return Preview(recipe, made, warnings, recipe.bad_cells() if recipe.bound.bad is not None else None)


def _first_rows(
    source: Source, ask: GenerateInput, actor: Actor | None, fetch: bool = False, few: bool = False
) -> tuple[Recipe, bytes]:
    """The first rows of a template as JSON: as many as `ask` says, or all of them where its parents bear fewer. `few`:
    they are shown, so that their arrays count as those of a preview."""
    said = source.plan.spec.source
    if fetch or (
        said is not None and said.file is not None
    ):  # a file of the workspace is read, and nobody asked
        source = sources.opened(actor, source, whole=False)
    none = generation_rows.recipe(source, ask.model_copy(update={"count": 0}), present=clock.now())
    assert ask.count is not None
    low, high = 0, ask.count
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _borne(none, middle) else (low, middle - 1)
    if low == 0:
        return none, b"[]"
    if few:
        low = shown(actor, none, low)
    recipe = external_values.recipe(
        actor, source, ask.model_copy(update={"count": low}), pins=none.pins, fetch=fetch
    )
    return recipe, recipe.open().whole()


def shown(actor: Actor | None, recipe: Recipe, count: int) -> int:
    """How many of the first `count` rows a preview shows: fewer where their arrays have more than PREVIEW_RECORDS
    objects together. Error: quota_exceeded where previews have shown very many within an hour."""
    found = records.charged(recipe.bound, recipe.offset, count)
    while count > 1 and found > limits.PREVIEW_RECORDS:
        count -= 1
        found = records.charged(recipe.bound, recipe.offset, count)
    if actor is not None and found > limits.PREVIEW_FREE_RECORDS:
        quotas.take_preview_records(actor, found)
    return count


def cut_warnings(recipe: Recipe, ask: GenerateInput) -> list[dict[str, Any]]:
    """That a preview shows fewer rows than there are, because of the size of their arrays."""
    if recipe.count >= (ask.count or 0) or not records.charged(recipe.bound, 0, 1):
        return []
    if not _borne(recipe, recipe.count + 1):
        return []
    most = f"{limits.PREVIEW_RECORDS:,}"
    text = (
        f"{recipe.count:,} of {ask.count:,} rows are shown: a preview has at most {most} objects in arrays."
    )
    return [Fault("fields", "preview_cut", text, "Generate to get all rows.").as_dict()]


def _borne(recipe: Recipe, count: int) -> bool:
    """Whether there are so many rows. What else may be wrong with them is not asked here."""
    try:
        recipe.bound.check(0, count)
    except SpecError as error:
        return not any(fault.code in ("not_enough_rows", "too_far") for fault in error.faults)
    return True


def capacity_warnings(recipe: Recipe) -> list[dict[str, Any]]:
    """Unique fields with fewer values than the template's own quantity asks for."""
    try:
        recipe.bound.check(0, recipe.source.count(None))
    except SpecError as error:
        return [fault.as_dict() for fault in error.faults]
    return []


def sample(actor: Actor, ask: DraftInput, count: int, own: str = "") -> tuple[Recipe, bytes]:
    """The first `count` rows of a template that is not saved, as JSON, for a look at how their values spread: they
    are counted and not handed on, and so not spent. Error: validation_error."""
    source = draft_source(actor, ask, own)
    while True:
        wanted = GenerateInput(count=count, seed=ask.seed, locale=ask.locale)
        try:
            return _first_rows(source, wanted, actor)
        except ApiError as error:
            wide = any(one["code"] == "row_too_large" for one in error.details.get("fields", ()))
            if not wide or count == 1:
                raise
        count = max(1, count // limits.BLOCK_STEP)  # wide rows: fewer of them tell as much


def capacity(recipe: Recipe, name: str) -> int | None:
    """How many values a field of the template has, as it is set; None where that is not known."""
    column = recipe.bound.layer.columns[name]
    return None if column.formula is not None else column.type.space_in(recipe.bound.states.get(name))


def cost(recipe: Recipe, name: str, timer: Callable[[], float] = time.perf_counter) -> float:
    """Seconds that one value of a field takes: the quickest of a few blocks, without the fields that it reads."""
    column = recipe.bound.layer.columns[name]
    needs = {*column.type.needs, *(column.formula.needs if column.formula is not None else ())} - {name}
    taken = []
    for _ in range(limits.COST_TRIES):
        block = recipe.bound.at(np.arange(recipe.count, dtype=np.uint64))
        for other in needs:
            block.column(other)
        began = timer()
        block.column(name)
        taken.append(timer() - began)
    return min(taken) / max(1, recipe.count)


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
    source = saved_source(of(actor, template_id, "generate"), ask.locale, rows_of=ask.rows)
    source = sources.opened(actor, source)
    count = source.count(ask.count)
    quotas.check_rows(actor, count)
    sample = min(count, limits.ESTIMATE_ROWS)
    recipe = external_values.recipe(actor, source, ask.model_copy(update={"count": sample}), fetch=False)
    began = timer()
    length, output = 0, recipe.open()
    try:
        for piece in output:
            length += len(piece)
            if length > limits.ESTIMATE_BYTES and output.rows_sent:
                sample = output.rows_sent
                break
    except SpecError as error:
        raise validation_error(error.faults) from None
    finally:
        output.close()
    seconds = timer() - began
    return Estimate(count, sample, round(length * count / sample), seconds * count / sample)
