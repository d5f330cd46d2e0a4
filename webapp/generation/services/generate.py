"""Generate and preview rows of saved templates and of drafts.

The order of a generate call: load and compile the template version (or find it in the cache), reserve row
quota, generate the first block, write the audit entry, and only then respond. If a step fails, the quota is
returned and the response is an error, never a broken 200. After that, the database is not used.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import redis
from flask import Flask, current_app
from sqlalchemy import bindparam, event, select
from sqlalchemy.orm import object_session

from webapp import clock, ids, limits, quotas
from webapp.access import actors, tenancy
from webapp.access.actors import Actor, require_scope
from webapp.audit.services import audit_log
from webapp.engine import groups, processor_time, record_counts
from webapp.engine.blocks import unknown_overrides
from webapp.engine.budget import MemoryBudgetError
from webapp.engine.errors import SpecError
from webapp.engine.invalid_data.settings import Invalid
from webapp.engine.processor_time import CpuBudget, CpuBudgetError
from webapp.engine.source_data import SourceSpec
from webapp.errors import ApiError, ErrorCollector, Fault, validation_error
from webapp.extensions import application, db, read_session
from webapp.generation.services import external_values
from webapp.generation.services import rows as generation_rows
from webapp.generation.services.rows import Recipe, RecipeStream
from webapp.monitoring import metrics
from webapp.quotas import Reservation
from webapp.row_templates.models import Template
from webapp.row_templates.schemas import DraftInput, GenerateInput, PreviewInput
from webapp.row_templates.services import compilation, compiled_plans, field_ids, related_templates, templates
from webapp.row_templates.services.compiled_plans import CompiledTemplate
from webapp.sources.services import sources

_TEMPLATE_COLUMNS = Template.__table__.c
_CURRENT_VERSION: Final = select(
    _TEMPLATE_COLUMNS.version, _TEMPLATE_COLUMNS.project_id, _TEMPLATE_COLUMNS.team_id
).where(
    _TEMPLATE_COLUMNS.id == bindparam("id"),
    _TEMPLATE_COLUMNS.workspace_id == bindparam("workspace"),
    _TEMPLATE_COLUMNS.deleted_at.is_(None),
)
_CACHE_KEY: Final = "rowsmith.template_refs"


@dataclass(frozen=True, slots=True)
class TemplateRef:
    """A template as a generate call needs it: its newest version, its project and its team."""

    id: str
    version: int
    project_id: str
    team_id: str


def find_template(actor: Actor, template_id: str, scope: str) -> TemplateRef:
    """Like `tenancy.get`, without loading objects, because every generate call needs it. Raises not_found,
    forbidden."""
    template_ref = _load_template_ref(actor, template_id)
    if template_ref is None or actor.role_in(template_ref.team_id) is None:
        raise tenancy.not_found("template", template_id)
    require_scope(actor, scope, template_ref.team_id)
    return template_ref


def _load_template_ref(actor: Actor, template_id: str) -> TemplateRef | None:
    """Read a template's newest version, or take it from the cache while the workspace's epoch is unchanged."""
    cache = cast(
        dict[tuple[str, str], tuple[str, TemplateRef]], current_app.extensions.setdefault(_CACHE_KEY, {})
    )
    key = (actor.workspace_id, template_id)
    cached = cache.get(key)
    if actor.epoch is not None and cached is not None and cached[0] == actor.epoch:
        return cached[1]
    if not ids.is_id(template_id, "tpl"):
        return None
    with read_session() as session:
        row = session.execute(
            _CURRENT_VERSION, {"id": template_id, "workspace": actor.workspace_id}
        ).one_or_none()
    if row is None:
        return None
    ref = TemplateRef(template_id, *row)
    if actor.epoch is not None:
        if len(cache) >= limits.IDENTITY_CACHE_ENTRIES:
            cache.clear()
        cache[key] = (actor.epoch, ref)
    return ref


@event.listens_for(Template, "after_update")
@event.listens_for(Template, "after_delete")
def _invalidate_template_ref(_mapper: Any, _connection: Any, template: Template) -> None:
    """Invalidate the cache entry of a changed template within its transaction. New templates are not cached."""
    session = object_session(template)
    if session is not None:
        actors.announce_permission_change(session, template.workspace_id)


log = logging.getLogger(__name__)

# A few rows take a hundred short calls, thirty of which release the interpreter's lock and acquire it again.
# Parallel threads gain nothing and wake each other each time. Waiting is limited because of expensive rows.
few_rows_lock = threading.Lock()
_FEW_ROWS_WAIT: Final = 0.05


@contextmanager
def _hold_few_rows_lock(wait: float | None) -> Iterator[None]:
    """Hold `few_rows_lock`, or continue without it after `wait` seconds; None: do not use it."""
    is_locked = wait is not None and few_rows_lock.acquire(timeout=wait)
    try:
        yield
    finally:
        if is_locked:
            few_rows_lock.release()


def saved_source(
    template_ref: TemplateRef,
    locale: str | None,
    version: int | None = None,
    row_counts: related_templates.RowCounts = compiled_plans.EMPTY,
) -> CompiledTemplate:
    """Return a compiled version of a template (default: its newest). `row_counts` are row counts of related
    templates that the request states. Raises not_found, validation_error, unavailable."""
    number = template_ref.version if version is None else version
    return compiled_plans.compile_version(
        template_ref.id, number, locale, templates.loader(template_ref.id, number), row_counts
    )


def draft_source(actor: Actor | None, request: DraftInput, template_id: str = "") -> CompiledTemplate:
    """Return a compiled draft. `template_id` is the id of the saved template that it is a draft of: its fields keep the
    groups that they have there. Without an actor no other template is visible. Raises validation_error with all
    faults."""
    stored_fields: Sequence[field_ids.StoredField] = ()
    if template_id and actor is not None:
        template_ref = find_template(actor, template_id, "read")
        stored_fields = templates.loader(template_ref.id, template_ref.version)()[0]["fields"]
    errors, related = ErrorCollector(), {}
    if request.source is not None:
        with errors.check():
            related_templates.reject_self_references(request.fields, template_id)
    with errors.check():
        related = related_templates.collect_related(
            request.fields,
            template_id,
            lambda template_ids: related_templates.newest_versions(actor, template_ids) if actor else {},
            request.locale,
        )
    if errors:
        errors.raise_all(compilation.field_faults(request.fields, request.locale))
    quantity = request.quantity or limits.DEFAULT_QUANTITY
    stored_parts = (_source_json(request.source), _invalid_json(request.invalid))
    anchor = request.anchor or limits.DRAFT_ANCHOR
    return compiled_plans.compile_draft(
        request.name,
        request.fields,
        quantity,
        anchor,
        request.locale,
        template_id,
        related,
        request.rows,
        *stored_parts,
        stored_fields,
    )


def _source_json(source: SourceSpec | None) -> dict[str, Any] | None:
    return None if source is None else source.model_dump(exclude_none=True)


def _invalid_json(invalid: Invalid | None) -> dict[str, Any] | None:
    return None if invalid is None else invalid.to_json()


# --- Generate ---


class ResponseStream:
    """The bytes of a generate call. Closing it early returns the quota of rows that were not generated."""

    def __init__(
        self, app: Flask, actor: Actor, output: RecipeStream, reservation: Reservation, entry: str
    ) -> None:
        self._app, self._actor, self._entry = app, actor, entry
        self._output, self._reservation = output, reservation
        self._pieces = processor_time.within_budget(map(bytes, output))
        self._closed = False

    def __iter__(self) -> Iterator[bytes]:
        """Yield the pieces in order, as WSGI requires them."""
        return self._pieces

    def close(self) -> None:
        """Stop, return the quota of rows that were not generated, and write their number to the audit log."""
        if self._closed:
            return
        self._closed = True
        self._output.close()
        recipe = self._output.recipe
        generated, count = self._output.rows_generated, recipe.count
        if generated >= count:
            return
        with self._app.app_context():
            try:
                unused = count - generated + recipe.count_records(generated)
                quotas.return_rows(self._reservation, unused)
                audit_log.record(
                    self._actor,
                    "template.generate_cut",
                    _audit_target(self._output.recipe),
                    made=generated,
                    of=count,
                    given_back=unused,
                    entry=self._entry,
                )
            except (
                redis.RedisError,
                ApiError,
            ) as error:  # the client has disconnected
                log.warning("a stream was interrupted, but its quota was not returned: %s", error)


@dataclass(frozen=True, slots=True)
class Generation:
    """A generate call whose first block exists. `body` is the content, complete if it is small."""

    recipe: Recipe
    body: bytes | ResponseStream
    output: RecipeStream

    @property
    def leaks(self) -> list[dict[str, Any]] | None:
        """Return the leak check's result once every byte has been read; None if there was nothing to check."""
        return self.output.leaks


def generate_saved(
    actor: Actor, template_id: str, request: GenerateInput, format: str | None = None
) -> Generation:
    """Generate rows of a saved template's newest version; see `_run`. Raises not_found, forbidden, and what
    `prepare_saved` and `_run` raise."""
    template_ref = find_template(actor, template_id, "generate")
    return _run(actor, prepare_saved(actor, template_ref, request, format=format))


def generate_draft(
    actor: Actor, request: DraftInput, format: str | None = None, template_id: str = ""
) -> Generation:
    """Generate rows of a draft; see `draft_source` and `prepare_saved`."""
    return _run(actor, prepare_draft(actor, request, format=format, template_id=template_id))


def prepare_saved(
    actor: Actor,
    template_ref: TemplateRef,
    request: GenerateInput,
    *,
    format: str | None = None,
    for_worker: bool = False,
    fetch: bool = True,
) -> Recipe:
    """Return the rows that a request wants of a saved template. `for_worker`: store fetched external values for a
    worker; without `fetch`, neither these nor rows of a source are read.

    Errors, all of the request together: row_limit_exceeded, validation_error. Then those of connections.
    """
    errors, source = ErrorCollector(), None
    with errors.check():
        source = saved_source(template_ref, request.locale, row_counts=request.rows)
    if source is None:
        with errors.check():
            source = saved_source(template_ref, None)
    if source is None:
        raise errors.combined_error() or ApiError("internal_error")
    return _prepare(actor, source, request, errors, format=format, for_worker=for_worker, fetch=fetch)


def prepare_draft(
    actor: Actor, request: DraftInput, *, format: str | None = None, template_id: str = "", fetch: bool = True
) -> Recipe:
    """Return the rows that a request wants of a draft; see `prepare_saved` and `draft_source`."""
    errors, source = ErrorCollector(), None
    with errors.check():
        source = draft_source(actor, request, template_id)
    if source is None:
        with errors.check("count"):
            quotas.check_rows(actor, request.count or request.quantity or 0)
        raise errors.combined_error(_override_faults(request.fields, request.overrides)) or ApiError(
            "internal_error"
        )
    return _prepare(actor, source, request, errors, format=format, fetch=fetch)


def _override_faults(fields: Any, overrides: Mapping[str, Any]) -> list[Fault]:
    """Return the faults of overrides for fields as sent, which may have faults themselves or be no list."""
    known_fields = fields if isinstance(fields, list) else []
    return unknown_overrides(
        overrides,
        [
            field["name"]
            for field in known_fields
            if isinstance(field, dict) and isinstance(field.get("name"), str)
        ],
    )


def _prepare(
    actor: Actor,
    source: CompiledTemplate,
    request: GenerateInput,
    errors: ErrorCollector,
    *,
    format: str | None,
    for_worker: bool = False,
    fetch: bool,
) -> Recipe:
    if fetch and not errors:
        source = sources.open_source(actor, source, for_worker=for_worker)
    count = source.row_count(request.count)
    checked_count = 1  # to find other errors when the quota does not suffice
    with errors.check("count"):
        quotas.check_rows(actor, count)
        checked_count = count
    fetch = fetch and not errors
    with errors.check():
        recipe = external_values.build_recipe(
            actor,
            source,
            request.model_copy(update={"count": checked_count}),
            format=format,
            fetch=fetch,
            for_worker=for_worker and fetch,
        )
    errors.raise_all()
    return recipe


def _run(actor: Actor, recipe: Recipe) -> Generation:
    """Reserve quota, generate the first block, write the audit entry.

    Raises row_limit_exceeded, validation_error, quota_exceeded (with Retry-After), unavailable.
    """
    source, count = recipe.source, recipe.count
    records = recipe.count_records()
    reservation = quotas.reserve_rows(actor, count + records, largest=count)
    try:
        are_few = count * source.plan.max_cells_per_row <= limits.FIRST_BLOCK_ROWS
        with _hold_few_rows_lock(_FEW_ROWS_WAIT if are_few else None):
            started = processor_time.seconds_used()
            output = recipe.open()
            first_seconds = processor_time.seconds_used() - started
            is_complete = (
                output.rows_generated == count <= limits.FIRST_BLOCK_ROWS
                and output.buffered_bytes <= limits.PREVIEW_BYTES
            )
            content = output.read(sys.maxsize) if is_complete else None
        if content is None:
            _check_time(recipe, first_seconds / max(1, output.rows_generated))
        metrics.count("rows_generated", count, format=recipe.format.name)
        entry = audit_log.record(
            actor,
            "template.generate",
            _audit_target(recipe),
            rows=count,
            version=recipe.pins.version,
            seed=recipe.pins.seed,
            format=recipe.format.name,
            offset=recipe.offset,
            **quotas.preview_records_details(records),
        )
    except BaseException:
        quotas.return_rows(reservation, reservation.rows)
        raise
    db.session.remove()
    if content is not None:
        return Generation(recipe, content, output)
    app = application()
    return Generation(recipe, ResponseStream(app, actor, output, reservation, entry), output)


def _check_time(recipe: Recipe, row_seconds: float) -> None:
    """Reject a request that would exceed its processor time, before any byte is sent.

    `row_seconds`: time per row of the first block, which includes one-time work. Raises validation_error.
    """
    budget = processor_time.current_budget()
    if budget is None:
        return
    if (
        row_seconds * recipe.count > budget.limit
        and _marginal_row_seconds(recipe, budget) > budget.limit / recipe.count
    ):
        raise CpuBudgetError(budget.limit)
    # After the first byte an error can no longer be sent, so a stream is stopped only at twice the limit.
    budget.limit *= 2


def _marginal_row_seconds(recipe: Recipe, budget: CpuBudget) -> float:
    """Return the time per row without the overhead per block: from two blocks, as large as the memory limit
    allows."""

    def seconds(count: int) -> float:
        started = budget.seconds_used
        block = recipe.bound.block_at(np.arange(recipe.offset, recipe.offset + count, dtype=np.uint64))
        for name in recipe.bound.layer.visible:
            block.column(name)
        return budget.seconds_used - started

    count = limits.SLOW_SAMPLE_ROWS
    while True:
        small_count = max(1, count // limits.BLOCK_STEP)
        try:
            first = seconds(small_count)
            if small_count == count or first > limits.SLOW_SAMPLE_SECONDS:
                return first / small_count
            return (seconds(count) - first) / (count - small_count)
        except MemoryBudgetError:
            if count == 1:
                raise
            count = small_count


def _audit_target(recipe: Recipe) -> tuple[str, str]:
    return "template", recipe.pins.template_id or ""


# --- Preview ---


@dataclass(frozen=True, slots=True)
class Preview:
    """The first three rows. `rows` is the JSON array that generate would send, byte for byte."""

    recipe: Recipe
    rows: bytes
    warnings: list[dict[str, str]]
    invalid_cells: list[dict[str, Any]] | None
    """Its invalid cells, in the form of `AnswerKey`; None if there is no injection."""

    @property
    def seed(self) -> str:
        """The seed of the request, or the generated one."""
        return self.recipe.pins.seed


def preview(actor: Actor, template_id: str, request: PreviewInput) -> Preview:
    """Preview a saved template or, if `request` has fields, an unsaved draft of it. Not counted toward the quota.

    A draft's fields are matched with the saved ones as saving would, so saving does not change the rows.
    Raises not_found, forbidden, validation_error.
    """
    template_ref = find_template(actor, template_id, "read")
    source = _preview_source(actor, template_ref, request)
    fetch = request.fields is None if request.fetch is None else request.fetch
    if (
        fetch and request.fields is not None
    ):  # a draft may use a connection for anything that write or generate may
        require_scope(actor, "generate", template_ref.team_id)
    return _preview(source, request, actor, fetch)


def _preview_source(actor: Actor, template_ref: TemplateRef, request: PreviewInput) -> CompiledTemplate:
    """Return the source of a preview. Raises validation_error with all faults of the template and of the request."""
    errors = ErrorCollector()
    with errors.check():
        if request.fields is None:
            return saved_source(template_ref, request.locale, row_counts=request.rows)
        return _draft_of_saved(actor, template_ref, request)
    fields = request.fields
    if fields is None:
        fields = templates.loader(template_ref.id, template_ref.version)()[0]["fields"]
    raise errors.combined_error(_override_faults(fields, request.overrides)) or ApiError("internal_error")


def preview_draft(
    actor: Actor | None,
    request: DraftInput,
    fetch: bool = False,
    template_id: str = "",
    count: int = limits.PREVIEW_ROWS,
) -> Preview:
    """Preview the first `count` rows of an unsaved template, or of a draft of the saved template `template_id`. Not
    counted toward the quota. Raises validation_error and, for `fetch`, forbidden and errors of connections."""
    if fetch and actor is not None:
        require_scope(actor, "generate", actor.team_id)
    return _preview(_preview_draft_source(actor, request, template_id), request, actor, fetch, count)


def _preview_draft_source(
    actor: Actor | None, request: DraftInput, template_id: str = ""
) -> CompiledTemplate:
    errors = ErrorCollector()
    with errors.check():
        return draft_source(actor, request, template_id)
    raise errors.combined_error(_override_faults(request.fields, request.overrides)) or ApiError(
        "internal_error"
    )


def check_preview(actor: Actor, request: PreviewInput | DraftInput, template_id: str = "") -> None:
    """Check a request for a preview without generating rows. Raises validation_error with all faults; not_found,
    forbidden."""
    if isinstance(request, DraftInput):
        source = _preview_draft_source(actor, request)
    else:
        source = _preview_source(actor, find_template(actor, template_id, "read"), request)
    generation_rows.build_recipe(
        source, _preview_rows(request).model_copy(update={"count": 0}), current_time=clock.now()
    )


def _preview_rows(request: PreviewInput | DraftInput, count: int = limits.PREVIEW_ROWS) -> GenerateInput:
    return GenerateInput(
        count=count, seed=request.seed, overrides=request.overrides, now=request.now, locale=request.locale
    )


def preview_version(template_ref: TemplateRef, version: int, seed: str) -> Preview:
    """Preview one version, with its own anchor. Raises not_found, validation_error, unavailable."""
    return _preview(saved_source(template_ref, None, version), PreviewInput(seed=seed))


def _draft_of_saved(actor: Actor, template_ref: TemplateRef, request: PreviewInput) -> CompiledTemplate:
    spec, _ = templates.loader(template_ref.id, template_ref.version)()
    source = _source_json(request.source) if "source" in request.model_fields_set else spec.get("source")
    invalid = _invalid_json(request.invalid) if "invalid" in request.model_fields_set else spec.get("invalid")
    referenced = related_templates.collect_related(
        request.fields,
        template_ref.id,
        lambda template_ids: related_templates.newest_versions(actor, template_ids),
        request.locale or spec["locale"],
    )
    parsed = compilation.parse_fields(
        request.fields,
        name=spec["name"],
        locale=spec["locale"],
        source=source,
        invalid=invalid,
        request_locale=request.locale,
    )
    stored_fields = spec["fields"]
    merged = groups.assign(
        field_ids.carry_over(parsed, stored_fields), field_ids.ungrouped_ids(stored_fields)
    )
    library = related_templates.build_library(referenced, template_ref.id, spec["quantity"], request.rows)
    plan = compilation.compile_template(merged, compilation.vocabulary(), request.locale, library)
    related = related_templates.related_pins(referenced, library)
    return CompiledTemplate(
        plan,
        spec["name"],
        spec["quantity"],
        compilation.anchor_of(spec),
        template_ref.id,
        template_ref.version,
        related,
    )


def _preview(
    source: CompiledTemplate,
    request: PreviewInput | DraftInput,
    actor: Actor | None = None,
    fetch: bool = False,
    count: int = limits.PREVIEW_ROWS,
) -> Preview:
    row_request = _preview_rows(request, count)
    recipe, rows = _first_rows(source, row_request, actor, fetch, is_displayed=True)
    warnings = [fault.as_dict() for fault in recipe.bound.warnings]
    warnings += (
        external_values.placeholder_warnings(source, recipe)
        + capacity_warnings(recipe)
        + truncation_warnings(recipe, row_request)
    )
    return Preview(
        recipe,
        rows,
        warnings,
        recipe.invalid_cells() if recipe.bound.invalid_data_injector is not None else None,
    )


def _first_rows(
    source: CompiledTemplate,
    request: GenerateInput,
    actor: Actor | None,
    fetch: bool = False,
    is_displayed: bool = False,
) -> tuple[Recipe, bytes]:
    """Return the first rows of a template as JSON: as many as `request` says, or all if its parents limit them.
    `is_displayed`: the rows are displayed, so their arrays count as those of a preview."""
    source_spec = source.plan.spec.source
    if fetch or (
        source_spec is not None and source_spec.file is not None
    ):  # a file of the workspace is read without an explicit fetch
        source = sources.open_source(actor, source, is_complete=False)
    empty_recipe = generation_rows.build_recipe(
        source, request.model_copy(update={"count": 0}), current_time=clock.now()
    )
    assert request.count is not None
    low, high = 0, request.count
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _has_rows(empty_recipe, middle) else (low, middle - 1)
    if low == 0:
        return empty_recipe, b"[]"
    if is_displayed:
        low, _ = limit_preview_rows(actor, empty_recipe, low)
    recipe = external_values.build_recipe(
        actor, source, request.model_copy(update={"count": low}), pins=empty_recipe.pins, fetch=fetch
    )
    return recipe, recipe.open().read()


def limit_preview_rows(
    actor: Actor | None, recipe: Recipe, count: int, previous_records: int = 0
) -> tuple[int, int]:
    """Return how many of the first `count` rows a preview shows, and the number of objects in the arrays of the
    preview. It shows fewer rows if their arrays have more than PREVIEW_RECORDS objects in total. `previous_records`:
    the objects of the tables before this one. Raises quota_exceeded if previews have shown too many within an hour."""
    records_shown = record_counts.count_records(recipe.bound, recipe.offset, count) if count else 0
    while count > 1 and records_shown > limits.PREVIEW_RECORDS:
        count -= 1
        records_shown = record_counts.count_records(recipe.bound, recipe.offset, count)
    records, free_records = previous_records + records_shown, limits.PREVIEW_FREE_RECORDS
    if actor is not None and records_shown and records > free_records:
        quotas.count_preview_records(actor, records_shown if previous_records > free_records else records)
    return count, records


def truncation_warnings(recipe: Recipe, request: GenerateInput) -> list[dict[str, Any]]:
    """Return the warning that a preview shows fewer rows because of large arrays."""
    if recipe.count >= (request.count or 0) or not record_counts.count_records(recipe.bound, 0, 1):
        return []
    if not _has_rows(recipe, recipe.count + 1):
        return []
    limit = f"{limits.PREVIEW_RECORDS:,}"
    text = f"{recipe.count:,} of {request.count:,} rows are shown: a preview has at most {limit} objects in arrays."
    return [Fault("fields", "preview_cut", text, "Generate to get all rows.").as_dict()]


def _has_rows(recipe: Recipe, count: int) -> bool:
    """Check that the rows exist. Other errors of the request are not checked."""
    try:
        recipe.bound.check(0, count)
    except SpecError as error:
        return not any(fault.code in ("not_enough_rows", "too_far") for fault in error.faults)
    return True


def capacity_warnings(recipe: Recipe) -> list[dict[str, Any]]:
    """Return unique fields with fewer values than the template's quantity requires."""
    try:
        recipe.bound.check(0, recipe.source.row_count(None))
    except SpecError as error:
        return [fault.as_dict() for fault in error.faults]
    return []


def sample_draft(
    actor: Actor, request: DraftInput, count: int, template_id: str = ""
) -> tuple[Recipe, bytes]:
    """Return the first `count` rows of an unsaved template as JSON, for the distribution of their values.
    They are not delivered, and so not counted toward the quota. Raises validation_error."""
    source = draft_source(actor, request, template_id)
    while True:
        row_request = GenerateInput(count=count, seed=request.seed, locale=request.locale)
        try:
            return _first_rows(source, row_request, actor)
        except ApiError as error:
            is_too_wide = any(field["code"] == "row_too_large" for field in error.details.get("fields", ()))
            if not is_too_wide or count == 1:
                raise
        count = max(1, count // limits.BLOCK_STEP)  # wide rows: a smaller sample is sufficient


def capacity(recipe: Recipe, name: str) -> int | None:
    """Return how many values a field can have with its options; None if unknown."""
    column = recipe.bound.layer.columns[name]
    return (
        None if column.formula is not None else column.type.distinct_count_for(recipe.bound.states.get(name))
    )


def measure_cost(recipe: Recipe, name: str, timer: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds per value of a field: the fastest of a few blocks, without the fields that it reads."""
    column = recipe.bound.layer.columns[name]
    needs = {
        *column.type.required_fields,
        *(column.formula.required_fields if column.formula is not None else ()),
    } - {name}
    durations = []
    for _ in range(limits.COST_BLOCKS):
        block = recipe.bound.block_at(np.arange(recipe.count, dtype=np.uint64))
        for other in needs:
            block.column(other)
        started = timer()
        block.column(name)
        durations.append(timer() - started)
    return min(durations) / max(1, recipe.count)


# --- Estimate ---


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated size and time of a request, from its first rows."""

    count: int
    sample: int
    bytes: int
    seconds: float


def estimate(
    actor: Actor, template_id: str, request: GenerateInput, timer: Callable[[], float] = time.perf_counter
) -> Estimate:
    """Estimate size and time from the first rows, which are discarded and not counted toward the quota.

    Raises what `generate_saved` raises, except for quota_exceeded.
    """
    source = saved_source(
        find_template(actor, template_id, "generate"), request.locale, row_counts=request.rows
    )
    source = sources.open_source(actor, source)
    count = source.row_count(request.count)
    quotas.check_rows(actor, count)
    sample = min(count, limits.ESTIMATE_ROWS)
    recipe = external_values.build_recipe(
        actor, source, request.model_copy(update={"count": sample}), fetch=False
    )
    started = timer()
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
    seconds = timer() - started
    return Estimate(count, sample, round(length * count / sample), seconds * count / sample)
