"""Exports: files that a worker creates from a template or a dataset, with the same recipe as generate.

An export stores its request and its pins, so every worker and every attempt produces the same bytes. Its rows are
counted toward the quota when it is requested; rows that a failed or cancelled export did not deliver are returned,
once.

Parts are ranges of rows that workers create in parallel, each with a separate lease. The parts are the work. The
export's row follows them: it starts with its first part, shows their progress, and ends with its last part. Code that
changes both locks the export first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final, Literal

import orjson
import redis
from sqlalchemy import Select, case, func, select, update
from sqlalchemy.orm import Session, aliased, scoped_session

from webapp import clock, ids, limits, pagination, quotas
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.audit.models import AuditEntry
from webapp.audit.services import audit_log
from webapp.datasets.schemas import DatasetExportInput
from webapp.datasets.services import datasets, rows
from webapp.datasets.services.rows import Bundle
from webapp.engine import ENGINE, ENGINES, leaks, processor_time
from webapp.engine.formats import FORMATS, write
from webapp.engine.formats.base import Format
from webapp.engine.invalid_data.answer_key import AnswerKey
from webapp.errors import ApiError, ErrorCollector, Fault, validation_error
from webapp.exports.models import Export, ExportPart
from webapp.extensions import affected_row_count, db, read_session, redis_client, write_session
from webapp.generation.services import external_values, generate, pins
from webapp.generation.services import rows as generation_rows
from webapp.generation.services.pins import Pins
from webapp.generation.services.rows import Recipe, content_disposition, content_type
from webapp.metering import stored_json
from webapp.quotas import Reservation
from webapp.row_templates.schemas import GenerateInput, TemplateExportInput
from webapp.storage import Storage
from webapp.work import jobs_queue
from webapp.work.models import END_STATES

log = logging.getLogger(__name__)

PART_KIND: Final = "part"
ACTIVE_STATES: Final = ("queued", "running")

# Lease owner and expiry of an export in parts: it is never considered lost, and sweepers do not enqueue it.
_PARTS_OWNER: Final = "its parts"
_FAR_FUTURE: Final = datetime(9999, 1, 1, tzinfo=UTC)


def resolve_part_rows(recipe: Recipe, part_rows: int | None) -> int | None:
    """Return the rows per part; None for a single file, because there are few rows or no parts were
    requested.

    Raises validation_error for too many parts, or for parts that would split an INSERT.
    """
    if part_rows is None or recipe.count <= limits.PARTS_FROM_ROWS or recipe.count <= part_rows:
        return None
    parts = -(-recipe.count // part_rows)
    if parts > limits.MAX_PARTS:
        minimum = -(-recipe.count // limits.MAX_PARTS)
        text = (
            f"{recipe.count:,} rows in parts of {part_rows:,} need {parts:,} parts; the maximum is "
            f"{limits.MAX_PARTS:,}."
        )
        raise validation_error([Fault("part_rows", "too_small", text, f"Use {minimum:,} or more.")])
    together = recipe.writer().rows_per_split if recipe.format.is_resumable else 1
    if part_rows % together:
        text = f"Each INSERT has {together:,} rows, and a part cannot end in the middle of one."
        hint = f"Use a multiple of {together:,}, or set sql.rows_per_statement."
        raise validation_error([Fault("part_rows", "not_a_multiple", text, hint)])
    return part_rows


def suggest_part_rows(count: int) -> int | None:
    """Return the rows per part for this number of rows; None for a single file."""
    if count <= limits.PARTS_FROM_ROWS:
        return None
    return limits.PARTS_FROM_ROWS * -(-count // (limits.PARTS_FROM_ROWS * limits.MAX_PARTS))


def add_parts(
    session: Session | scoped_session[Any], export: Export, offset: int, reused: Sequence[ExportPart] = ()
) -> None:
    """Add parts to a new export. The first one starts with row `offset` of the template; `reused` are parts of
    an earlier export whose files are reused. The others are enqueued after `session` commits."""
    reused_by_number = {part.number: part for part in reused}
    rows = export.part_rows or export.count
    pending_parts = []
    for start in range(0, export.count, rows):
        number = start // rows + 1
        part = ExportPart(
            export_id=export.id, number=number, offset=offset + start, count=min(rows, export.count - start)
        )
        if reused_part := reused_by_number.get(number):
            for column in ("status", "attempt", "rows_done", "bytes", "sha256", "leaks", "storage_key"):
                setattr(part, column, getattr(reused_part, column))
            part.started_at, part.finished_at = reused_part.started_at, reused_part.finished_at
        else:
            pending_parts.append(part)
        session.add(part)
    session.flush()
    for part in pending_parts:
        jobs_queue.enqueue_after_commit(session, redis_client(), PART_KIND, part.id)
    export.parts_done = len(reused_by_number)
    export.rows_done = sum(part.count for part in reused)


def get_parts(export: Export) -> list[ExportPart]:
    """Return all parts of an export in the order of its rows."""
    return list(
        db.session.scalars(
            select(ExportPart).where(ExportPart.export_id == export.id).order_by(ExportPart.number)
        )
    )


def get_parts_page(export: Export, first: int) -> list[ExportPart]:
    """Return one page of parts, from number `first` on."""
    statement = select(ExportPart).where(ExportPart.export_id == export.id, ExportPart.number >= first)
    return list(db.session.scalars(statement.order_by(ExportPart.number).limit(limits.LISTED_PARTS)))


def get_part(export: Export, number: int) -> ExportPart | None:
    """Return one part of an export."""
    return db.session.scalar(
        select(ExportPart).where(ExportPart.export_id == export.id, ExportPart.number == number)
    )


def part_as_json(part: ExportPart) -> dict[str, Any]:
    """Return a part for the manifest. `download_url` is a path, and None until there is a file."""
    has_file = part.status == "completed" and part.storage_key is not None
    return {
        "number": part.number,
        "offset": part.offset,
        "rows": part.count,
        "status": part.status,
        "attempt": part.attempt,
        "rows_done": part.rows_done,
        "bytes": part.bytes,
        "sha256": part.sha256,
        "download_url": f"/exports/{part.export_id}/parts/{part.number}" if has_file else None,
        "error": part.error,
    }


def single_file_as_part(export: Export) -> dict[str, Any]:
    """Return the only part of an export that is a single file."""
    has_file = export.status == "completed" and export.file_removed_at is None
    return {
        "number": 1,
        "offset": export.request["ask"].get("offset", 0),
        "rows": export.count,
        "status": export.status,
        "attempt": export.attempt,
        "rows_done": export.rows_done,
        "bytes": export.bytes,
        "sha256": export.sha256,
        "download_url": f"/exports/{export.id}/parts/1" if has_file else None,
        "error": export.error,
    }


def manifest(export: Export) -> dict[str, Any]:
    """Return the manifest: parts and pins, with paths as URLs. A single file has one part."""
    pinned = pins.pins_as_json(export.pins)
    return {
        "export_id": export.id,
        "status": export.status,
        "template_id": export.template_id,
        "template_version": export.template_version,
        "dataset_id": export.dataset_id,
        "dataset_version": export.dataset_version,
        "seed": pinned["seed"],
        "now": pinned["now"],
        "engine": pinned["engine"],
        "vocabulary": pinned["vocabulary"],
        "locale": pinned["locale"],
        "format": export.format,
        "file_name": export.file_name,
        "concatenates": export.parts is None or FORMATS[export.format].is_resumable,
        "offset": export.request["ask"].get("offset", 0),
        "rows": export.count,
        "part_rows": export.part_rows,
        "bytes": export.bytes,
        "sha256": export.sha256,
        "download_url": f"/exports/{export.id}/download" if is_downloadable(export) else None,
        "parts": [part_as_json(part) for part in get_parts(export)]
        if export.parts
        else [single_file_as_part(export)],
    }


def is_downloadable(export: Export) -> bool:
    """Return whether the whole file can be downloaded: it exists, or its parts do and can be concatenated."""
    if export.status != "completed" or export.file_removed_at is not None:
        return False
    return export.parts is None or FORMATS[export.format].is_resumable


def concatenate_files(
    store: Storage, parts: Sequence[tuple[str, int]], first: int, last: int
) -> Iterator[bytes]:
    """Yield bytes from `first` up to, but not including, `last` of files (key, size) as if they were
    concatenated. Each file is opened when needed, the first immediately. Raises MissingError."""
    ranges, position = [], 0
    for key, size in parts:
        begin, end = max(first - position, 0), min(last - position, size)
        if begin < end:
            ranges.append((key, begin, end))
        position += size
    if not ranges:
        return iter(())
    opened = store.get(*ranges[0])
    return chain(opened, chain.from_iterable(store.get(*item) for item in ranges[1:]))


def select_single_files(statement: Select[Any]) -> Select[Any]:
    """Return a select of exports without those in parts, which are not enqueued."""
    return statement.where(Export.part_rows.is_(None))


def single_file_condition(export_id: str) -> Callable[[Session], bool]:
    """Return the condition under which an export may start: only single files do. A worker calls it in the
    transaction that acquires the export."""

    def is_single_file(session: Session) -> bool:
        found = select(Export.id).where(Export.id == export_id, Export.part_rows.is_(None))
        return session.scalar(found) is not None

    return is_single_file


def part_start_condition(part_id: str) -> Callable[[Session], bool]:
    """Return the condition under which a part may start: its export is in progress, and is marked as running. A
    worker calls it in the transaction that acquires the part."""

    def mark_running(session: Session) -> bool:
        export_id = select(ExportPart.export_id).where(ExportPart.id == part_id).scalar_subquery()
        statement = (
            update(Export)
            .where(
                Export.id == export_id, Export.status.in_(ACTIVE_STATES), Export.cancel_requested_at.is_(None)
            )
            .values(
                status="running",
                attempt=case((Export.attempt == 0, 1), else_=Export.attempt),
                lease_owner=_PARTS_OWNER,
                lease_until=_FAR_FUTURE,
                started_at=func.coalesce(Export.started_at, clock.now()),
            )
            .execution_options(synchronize_session=False)
        )
        return bool(affected_row_count(session.execute(statement)))

    return mark_running


def cancel_parts(export: Export) -> None:
    """Cancel all parts of a locked export. Queued ones end immediately. Does not commit."""
    of_export = update(ExportPart).where(ExportPart.export_id == export.id)
    options = {"synchronize_session": False}
    now = clock.now()
    queued = of_export.where(ExportPart.status == "queued")
    ended_values = {"status": "cancelled", "finished_at": now, "epoch": ExportPart.epoch + 1}
    db.session.execute(queued.values(**ended_values), execution_options=options)
    running = of_export.where(ExportPart.status == "running", ExportPart.cancel_requested_at.is_(None))
    db.session.execute(running.values(cancel_requested_at=now), execution_options=options)


def update_progress(part_id: str) -> None:
    """Update the number of rows that the parts of an export have generated."""
    with write_session() as session:
        export_id = session.scalar(select(ExportPart.export_id).where(ExportPart.id == part_id))
        generated = select(func.sum(ExportPart.rows_done)).where(ExportPart.export_id == export_id)
        statement = update(Export).where(Export.id == export_id, Export.status == "running")
        session.execute(
            statement.values(rows_done=func.coalesce(generated.scalar_subquery(), 0)),
            execution_options={"synchronize_session": False},
        )


def update_from_parts(export_id: str) -> None:
    """Update an export from its parts, and end it when all of them have ended. Safe to call at any time,
    repeatedly."""
    with write_session() as session:
        locked = select(Export).where(Export.id == export_id).with_for_update()
        export = session.scalar(locked)
        if export is None or export.has_ended:
            return
        parts = ExportPart.export_id == export_id
        columns = (
            ExportPart.status,
            func.count(),
            func.sum(ExportPart.rows_done),
            func.sum(ExportPart.count),
            func.sum(ExportPart.bytes),
        )
        totals_by_status = {
            row[0]: [int(value or 0) for value in row[1:]]
            for row in session.execute(select(*columns).where(parts).group_by(ExportPart.status))
        }
        completed, _, rows, size = totals_by_status.get("completed", [0, 0, 0, 0])
        export.parts_done = completed
        if not totals_by_status.keys().isdisjoint(ACTIVE_STATES):
            export.rows_done = sum(item[1] for item in totals_by_status.values())
            return
        export.rows_done, export.finished_at = rows, clock.now()
        export.lease_owner = export.lease_until = None
        if totals_by_status.keys() == {"completed"}:
            export.status, export.bytes = "completed", size
            reports = list(
                session.scalars(select(ExportPart.leaks).where(parts, ExportPart.leaks.is_not(None)))
            )
            if reports:
                merged = leaks.merge_reports(entry[0]["columns"] for entry in reports)
                unmasked = reports[0][0].get("unmasked", [])
                export.leaks = [{"table": reports[0][0]["table"], "columns": merged, "unmasked": unmasked}]
        elif export.cancel_requested_at is not None or "failed" not in totals_by_status:
            export.status = "cancelled"
        else:
            failed = select(ExportPart.number, ExportPart.error).where(parts, ExportPart.status == "failed")
            failures = session.execute(failed.order_by(ExportPart.number)).all()
            first = failures[0].error or ApiError("internal_error").as_dict()["error"]
            more = f" {len(failures) - 1} more failed." if len(failures) > 1 else ""
            message = f"Part {failures[0].number}: {first['message']}{more}"
            details = {**first.get("details", {}), "parts": [row.number for row in failures]}
            export.status, export.error = "failed", {**first, "message": message, "details": details}


def export_id_of_part(part_id: str) -> str | None:
    """Return the id of a part's export."""
    with read_session() as session:
        return session.scalar(select(ExportPart.export_id).where(ExportPart.id == part_id))


def stalled_parts() -> list[str]:
    """Return a part of each export that is still in progress although all its parts have ended, because the
    process that ended the last one died."""
    other = aliased(ExportPart)
    unfinished = (
        select(other.id)
        .where(other.export_id == Export.id, other.status.in_(ACTIVE_STATES))
        .correlate(Export)
    )
    statement = (
        select(func.min(ExportPart.id))
        .join(Export, Export.id == ExportPart.export_id)
        .where(Export.part_rows.is_not(None), Export.status.in_(ACTIVE_STATES), ~unfinished.exists())
        .group_by(ExportPart.export_id)
    )
    with read_session() as session:
        return list(session.scalars(statement))


# --- Exports ------------------------------------------------------------------------------------------------

KIND: Final = "export"
_SETTLED: Final = "settled"  # in the request of an export whose follow-up is done


def as_json(export: Export) -> dict[str, Any]:
    """Return an export for the API. `download_url` is a path, and None until there is a file."""
    return {
        "id": export.id,
        "status": export.status,
        "template_id": export.template_id,
        "template_version": export.template_version,
        "dataset_id": export.dataset_id,
        "dataset_version": export.dataset_version,
        "format": export.format,
        "count": export.count,
        "offset": export.request["ask"].get("offset", 0),
        "rows_done": export.rows_done,
        "bytes": export.bytes,
        "sha256": export.sha256,
        "file_name": export.file_name,
        "download_url": f"/exports/{export.id}/download" if is_downloadable(export) else None,
        "manifest_url": f"/exports/{export.id}/manifest",
        "answers_url": f"/exports/{export.id}/answers" if export.request.get("bad") else None,
        "part_rows": export.part_rows,
        "parts": export.parts,
        "parts_done": export.parts_done if export.parts else None,
        "of_id": export.of_id,
        "attempt": export.attempt,
        "seed": export.pins["seed"],
        "now": export.pins["now"],
        "pins": pins.pins_as_json(export.pins),
        "request": original_request(export),
        "leaks": export.leaks,
        "error": export.error,
        "project_id": export.project_id,
        "team_id": export.team_id,
        "created_by": export.created_by,
        "created_at": clock.to_text(export.created_at),
        "started_at": clock.to_text(export.started_at),
        "finished_at": clock.to_text(export.finished_at),
        "cancel_requested_at": clock.to_text(export.cancel_requested_at),
    }


def original_request(export: Export) -> dict[str, Any]:
    """Return a body that produces the same bytes: the original one with defaults filled in. generate accepts
    it too, except for `part_rows`; the version is not included."""
    body = export.request["ask"]
    defaults = {"offset": 0}
    values = {name: value for name, value in body.items() if value not in (None, {}, defaults.get(name))}
    count = {} if "tables" in export.pins else {"count": export.count}
    now = {"now": export.pins["now"]} if export.pins["now"] else {}
    parts = {"part_rows": export.part_rows} if export.part_rows else {}
    return {**values, **count, **parts, "format": export.format, "seed": export.pins["seed"], **now}


def create(
    actor: Actor,
    template_id: str,
    body: GenerateInput,
    format: str | None = None,
    claim: Callable[[Export], None] | None = None,
) -> Export:
    """Create an export of a template's newest version, commit, and notify a worker, or one for each part.

    The first block is generated and discarded, so that errors are reported here and not by a worker. Raises
    the errors of `generate.generate_saved` and of `resolve_part_rows`. `claim`: see `queue`.
    """
    template_ref = generate.find_template(actor, template_id, "generate")
    recipe = generate.prepare_saved(actor, template_ref, body, format=format, for_worker=True)
    count = recipe.count
    recipe.open().close()
    part_rows = resolve_part_rows(recipe, body.part_rows if isinstance(body, TemplateExportInput) else None)
    export = Export(
        project_id=template_ref.project_id,
        team_id=template_ref.team_id,
        template_id=template_ref.id,
        template_version=template_ref.version,
        format=recipe.format.name,
        count=count,
        file_name=recipe.file_name,
        request={
            "ask": body.model_dump(mode="json", exclude={"part_rows"}),
            "bad": recipe.bound.invalid_data_injector is not None,
        },
        pins=recipe.pins.to_json(),
        part_rows=part_rows,
    )
    details: dict[str, Any] = {
        "version": template_ref.version,
        "seed": recipe.pins.seed,
        "format": recipe.format.name,
        "offset": recipe.offset,
        **({"part_rows": part_rows} if part_rows else {}),
    }
    records, target = recipe.count_records(), ("template", template_ref.id)
    return queue(
        actor, export, "template.export", target, largest=count, records=records, claim=claim, **details
    )


def create_of_dataset(
    actor: Actor, dataset_id: str, body: DatasetExportInput, claim: Callable[[Export], None] | None = None
) -> Export:
    """Create an export of all tables of a dataset's newest version, commit, and notify a worker.

    The first block of each table is generated and discarded. Raises not_found, forbidden, row_limit_exceeded
    (for any table), validation_error with paths such as `templates[1].fields[0]`, quota_exceeded for the sum.
    `claim`: see `queue`.
    """
    dataset = datasets.get(actor, dataset_id, "generate")
    version = datasets.version_of(dataset)
    datasets.require_templates(actor, version.spec, "generate")
    members = rows.read_table_specs(version.spec, version.pins["templates"])
    bundle = rows.bundle_of_version(actor, version.spec, (dataset.id, version.number), members, body)
    largest = max(recipe.count for recipe in bundle.recipes)
    quotas.check_rows(actor, largest)
    for member, recipe in zip(bundle.table_specs, bundle.recipes, strict=True):
        with rows.errors_at_table(member):
            recipe.open().close()
    bundle.open().close()
    export = Export(
        project_id=dataset.project_id,
        team_id=dataset.team_id,
        dataset_id=dataset.id,
        dataset_version=version.number,
        format=bundle.format.name,
        count=bundle.count,
        file_name=bundle.file_name,
        request={
            "ask": body.model_dump(mode="json"),
            "bad": any(recipe.bound.invalid_data_injector is not None for recipe in bundle.recipes),
        },
        pins=bundle.pins(),
    )
    details: dict[str, Any] = {
        "version": version.number,
        "seed": bundle.seed,
        "format": export.format,
        "tables": len(members),
    }
    records, target = sum(recipe.count_records() for recipe in bundle.recipes), ("dataset", dataset.id)
    return queue(
        actor, export, "dataset.export", target, largest=largest, records=records, claim=claim, **details
    )


def queue(
    actor: Actor,
    export: Export,
    action: str,
    target: tuple[str, str],
    *,
    largest: int,
    reused: Sequence[ExportPart] = (),
    records: int = 0,
    claim: Callable[[Export], None] | None = None,
    **details: Any,
) -> Export:
    """Reserve the quota of a new export, save it with its audit entry, commit, and notify workers.

    `largest`: rows of its largest table; `reused`: reused parts, whose rows were counted before; `records`:
    objects in arrays, which count as rows. `claim` is called in the transaction that saves the export, and can
    end it with an exception. Raises row_limit_exceeded, quota_exceeded.
    """
    new_rows = export.count - sum(part.count for part in reused)
    stored_json.reserve(actor, export.request, export.pins)
    reservation = quotas.reserve_rows(actor, new_rows + records, largest=largest)
    try:
        export.id = ids.new("exp")
        export.workspace_id = actor.workspace_id
        export.created_by, export.key_id = actor.user_id, actor.key_id
        quota = {"rows": reservation.rows, "second": reservation.second, "records": records}
        details |= quotas.preview_records_details(records)
        export.request = {**export.request, "quota": quota}
        db.session.add(export)
        db.session.flush()
        if claim is not None:
            claim(export)
        audit_log.record(actor, action, target, join=True, rows=new_rows, export=export.id, **details)
        if export.part_rows:
            add_parts(db.session, export, export.request["ask"]["offset"], reused)
        else:
            jobs_queue.enqueue_after_commit(db.session, redis_client(), KIND, export.id)
        db.session.commit()
    except BaseException:
        db.session.rollback()
        quotas.return_rows(reservation, reservation.rows)
        raise
    return export


def get(actor: Actor, export_id: str, scope: str = "read", *, lock: bool = False) -> Export:
    """Return an export. Raises not_found, forbidden."""
    return tenancy.get(actor, Export, export_id, scope, lock=lock)


def check_files_exist(export: Export) -> None:
    """Raise `not_found` if the files of an export were removed because of the plan's limits."""
    if export.file_removed_at is not None:
        at = clock.to_text(export.file_removed_at.replace(microsecond=0))
        text = (
            f"This export's file was removed at {at}: the plan's retention period for files has ended, or a newer "
            "export needed the space. An export with the same body, seed and now produces the same bytes again."
        )
        raise ApiError("not_found", text, {"id": export.id, "file_removed_at": at})


def listing(
    actor: Actor,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    q: str | None = None,
    template_id: str | None = None,
    dataset_id: str | None = None,
    status: str | None = None,
) -> pagination.Page[Export]:
    """Return a page of the project's exports, newest first. `q` searches file names."""
    statement = tenancy.listing(actor, Export)
    if template_id is not None:
        statement = statement.where(Export.template_id == template_id)
    if dataset_id is not None:
        statement = statement.where(Export.dataset_id == dataset_id)
    if status is not None:
        statement = statement.where(Export.status == status)
    return pagination.paginate(
        statement,
        name="exports",
        id_column=Export.id,
        cursor=cursor,
        limit=limit,
        search=(q, Export.file_name),
        context=f"{actor.project_id} {template_id} {dataset_id} {status}",
        sizes=(Export.request, Export.pins, Export.leaks),
    )


def cancel(actor: Actor, export: Export) -> Export:
    """Cancel a locked export and commit. A queued one ends immediately, a running one at its worker's next
    check, one in parts with its last worker. Raises run_finished if it has ended."""
    export_id = export.id
    if export.has_ended:
        raise ApiError("run_finished", "This export has already finished.", {"status": export.status})
    if export.cancel_requested_at is None:
        export.cancel_requested_at = clock.now()
        audit_log.record(actor, "export.cancel", export, join=True, rows_done=export.rows_done)
    if export.part_rows:
        cancel_parts(export)
    elif export.status == "queued":
        export.status, export.finished_at = "cancelled", clock.now()
    in_parts = export.part_rows is not None
    db.session.commit()
    if in_parts:
        update_from_parts(export_id)
        db.session.refresh(export)
        db.session.commit()  # releases the write lock
    return_unused_quota(export_id)
    return export


# --- For workers ---


@dataclass(frozen=True, slots=True)
class ExportJob:
    """What a worker needs to create an export's file."""

    recipe: Recipe | Bundle
    folder: str
    """The storage folder of all attempts at this export."""
    extension: str


def load_job(export_id: str) -> ExportJob:
    """Return an export's recipe from its pins. Needs no request.

    Raises unavailable (the vocabulary of the request is missing, or the engine has changed), not_found (its
    template was deleted).
    """
    with read_session() as session:
        export = session.get_one(Export, export_id)
        stored, workspace_id, template_id = export.pins, export.workspace_id, export.template_id
        body, count, format_name = export.request["ask"], export.count, export.format
    if stored["engine"] not in ENGINES:
        message = f"This export was requested with engine {stored['engine']}, but this is engine {ENGINE}."
        raise ApiError("unavailable", message, {"pinned": stored["engine"], "present": ENGINE})
    folder = f"exports/{workspace_id}/{export_id}"
    if "tables" in stored:
        bundle = rows.bundle_from_pins(stored, body, format_name)
        db.session.remove()
        return ExportJob(bundle, folder, bundle.extension)
    parsed = GenerateInput.model_validate_json(orjson.dumps(body))
    parsed = parsed.model_copy(update={"count": count, "format": format_name})
    pinned = Pins.from_json(stored)
    if template_id is None or pinned.version is None:
        raise tenancy.not_found("template", pinned.template_id or "")
    template_ref = generate.TemplateRef(template_id, pinned.version, "", "")
    source = generate.saved_source(template_ref, parsed.locale, row_counts=parsed.rows)
    source = external_values.with_pinned_answers(source, pinned)
    db.session.remove()
    recipe = generation_rows.build_recipe(source, parsed, current_time=pinned.now, pins=pinned)
    return ExportJob(recipe, folder, recipe.format.extension)


def load_part_job(part_id: str) -> ExportJob:
    """Return a part's recipe from the pins of its export. Raises what `load_job` raises."""
    with read_session() as session:
        part = session.get_one(ExportPart, part_id)
    job = load_job(part.export_id)
    assert isinstance(job.recipe, Recipe)  # datasets have no parts
    recipe = job.recipe.part(part.offset, part.count)
    return ExportJob(recipe, f"{job.folder}/parts/{part.number:06}", job.extension)


def update_after_part(part_id: str) -> None:
    """Update an export after one of its parts has ended."""
    export_id = export_id_of_part(part_id)
    if export_id is not None:
        update_from_parts(export_id)
        return_unused_quota(export_id)


def return_unused_quota(export_id: str) -> None:
    """Return the quota of rows that an ended export did not deliver: all of a failed one, the remaining ones
    of a cancelled one, or those of missing parts. Runs once, and does nothing for an export that is in
    progress or completed."""
    with write_session() as session:
        export = session.get(Export, export_id, with_for_update=True)
        if (
            export is None
            or not export.has_ended
            or export.status == "completed"
            or export.request.get(_SETTLED)
        ):
            return
        quota = export.request["quota"]
        is_partial = export.status == "cancelled" or export.part_rows
        unused_rows = quota["rows"]
        if is_partial:
            records = quota.get("records", 0)
            rows = max(1, quota["rows"] - records)
            missing = min(rows, export.count - export.rows_done)
            unused_rows = min(quota["rows"], missing + records * missing // rows)
        export.request = {**export.request, _SETTLED: True}
        session.add(
            AuditEntry(
                id=ids.new("aud"),
                at=clock.now(),
                workspace_id=export.workspace_id,
                action="export.end",
                object_type="export",
                object_id=export.id,
                project_id=export.project_id,
                user_id=export.created_by,
                key_id=export.key_id,
                details={
                    "status": export.status,
                    "rows_done": export.rows_done,
                    "given_back": unused_rows,
                    "template_id": export.template_id or export.dataset_id,
                },
            )
        )
        reservation = Reservation(export.workspace_id, quota["rows"], quota["second"])
    try:
        quotas.return_rows(reservation, unused_rows)
    except redis.RedisError as error:
        log.warning("could not return the quota of %s: %s", export_id, error)


# Retry an export in parts: reuse finished parts and create the others.


def retry(actor: Actor, export_id: str) -> Export:
    """Create a new export of the same rows that reuses finished parts, commit, and notify workers. The quota
    of the other parts was returned when the export ended, and is reserved again.

    Raises not_found, forbidden, conflict (it is in progress, was completed, or has no parts), unavailable
    (its pins can no longer be used), row_limit_exceeded, quota_exceeded.
    """
    _check_retryable(get(actor, export_id, "generate"))
    load_job(export_id)  # report errors here and not in a worker
    failed_export = _check_retryable(get(actor, export_id, "generate", lock=True))
    reused = [part for part in get_parts(failed_export) if part.status == "completed" and part.storage_key]
    new_export = Export(
        project_id=failed_export.project_id,
        team_id=failed_export.team_id,
        template_id=failed_export.template_id,
        template_version=failed_export.template_version,
        format=failed_export.format,
        count=failed_export.count,
        file_name=failed_export.file_name,
        request={"ask": failed_export.request["ask"], "bad": failed_export.request.get("bad", False)},
        pins=failed_export.pins,
        part_rows=failed_export.part_rows,
        of_id=failed_export.id,
    )
    remaining = failed_export.count - sum(part.count for part in reused)
    details = {
        "version": failed_export.template_version,
        "seed": failed_export.pins["seed"],
        "format": failed_export.format,
    }
    target = ("template", failed_export.template_id or "")
    records = (
        failed_export.request.get("quota", {}).get("records", 0) * remaining // max(1, failed_export.count)
    )
    return queue(
        actor,
        new_export,
        "export.retry",
        target,
        largest=remaining,
        reused=reused,
        records=records,
        of_export=failed_export.id,
        **details,
    )


def _check_retryable(export: Export) -> Export:
    """Return an export whose parts can be retried. Raises conflict."""
    if export.part_rows is None:
        text = "This export is a single file. Create a new export with its `request`."
    elif not export.has_ended:
        text = "This export is still in progress. Cancel it first, or wait until it finishes."
    elif export.status == "completed":
        text = "All parts of this export already exist."
    else:
        return export
    raise ApiError("conflict", text, {"id": export.id, "status": export.status})


# The state of an export for followers of its events.


@dataclass(frozen=True, slots=True)
class ExportState:
    """The state of an export that followers receive."""

    status: str
    attempt: int
    rows_done: int
    count: int
    bytes: int | None
    sha256: str | None
    error: dict[str, Any] | None

    @property
    def is_final(self) -> bool:
        """Whether the state is final."""
        return self.status in END_STATES

    @property
    def event_id(self) -> str:
        """The event id, which identifies this state."""
        return f"{self.attempt}-{self.status}-{self.rows_done}"

    def progress_data(self) -> dict[str, Any]:
        """Return the data of a `update_progress` event."""
        return {
            "status": self.status,
            "attempt": self.attempt,
            "rows_done": self.rows_done,
            "count": self.count,
        }

    def end_data(self) -> dict[str, Any]:
        """Return the data of the `end` event."""
        return {**self.progress_data(), "bytes": self.bytes, "sha256": self.sha256, "error": self.error}


def read_state(export_id: str) -> ExportState | None:
    """Return the state of an export in a separate short read; None if it was deleted."""
    columns = (
        Export.status,
        Export.attempt,
        Export.rows_done,
        Export.count,
        Export.bytes,
        Export.sha256,
        Export.error,
    )
    with read_session() as session:
        row = session.execute(select(*columns).where(Export.id == export_id)).one_or_none()
    return ExportState(*row) if row is not None else None


KeyFormat = Literal["ndjson", "csv", "json"]
"""Formats of an answer key."""


@dataclass(frozen=True, slots=True)
class AnswerKeyFile:
    """An answer key as a stream. `pieces` are generated on demand; `pins` are those of the rows."""

    pieces: Iterator[bytes]
    file_name: str
    content_type: str
    pins: Pins | None = None

    def headers(self) -> dict[str, str]:
        """Return the headers that describe it."""
        pin_headers = self.pins.headers() if self.pins is not None else {}
        return {
            **pin_headers,
            "Content-Disposition": content_disposition(self.file_name),
            "X-Accel-Buffering": "no",
        }


def answer_key_of_export(export_id: str, file_name: str, kind: KeyFormat) -> AnswerKeyFile:
    """Return the answer key of an export's file from its pins. Rows count from 1 in the file, or in each of
    its tables. Raises what `load_job` raises."""
    recipe = load_job(export_id).recipe
    if isinstance(recipe, Bundle):
        pairs = zip(recipe.table_specs, recipe.recipes, strict=True)
        keys = [item.answer_key(member.name) for member, item in pairs]
    else:
        keys = [recipe.answer_key()]
    options = FORMATS[kind].Options()
    return _encode_answer_keys(keys, FORMATS[kind], options, file_name.rpartition(".")[0])


def answer_key_of_template(
    actor: Actor, template_id: str, body: GenerateInput, format: str | None = None
) -> AnswerKeyFile:
    """Return the answer key of the rows that `generate.generate_saved` returns for the same `body`, which must have a
    seed. Not counted toward the quota.

    Raises not_found, forbidden, row_limit_exceeded, validation_error.
    """
    template_ref, errors = generate.find_template(actor, template_id, "generate"), ErrorCollector()
    if body.seed is None:
        text = "`seed` is required: an answer key belongs to a specific generation."
        errors.add([Fault("seed", "required", text, "generate returns it in the X-Seed header.")])
    with errors.check():
        recipe = generate.prepare_saved(actor, template_ref, body, format=format, fetch=not errors)
    errors.raise_all()
    answers = _encode_answer_keys(
        [recipe.answer_key()], recipe.format, recipe.options, recipe.file_name.rpartition(".")[0]
    )
    return AnswerKeyFile(answers.pieces, answers.file_name, answers.content_type, recipe.pins)


def _encode_answer_keys(
    keys: Sequence[AnswerKey], kind: type[Format], options: Format.Options, stem: str
) -> AnswerKeyFile:
    as_json = kind.name in ("json", "ndjson")
    writer = kind(keys[0].schema(json=as_json), options, title=f"{stem}_answers")
    blocks = chain.from_iterable(key.blocks(json=as_json) for key in keys)
    name = f"{stem}-answers.{kind.extension}"
    return AnswerKeyFile(
        processor_time.within_budget(map(bytes, write(writer, blocks))), name, content_type(kind, options)
    )
