"""Parts of an export: ranges of its rows that workers create in parallel, each with a separate lease.

The parts are the work. The export's row follows them: it starts with its first part, shows their progress,
and ends with its last part. Code that changes both locks the export first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final

from sqlalchemy import Select, case, func, select, update
from sqlalchemy.orm import Session, aliased, scoped_session

from webapp import clock, limits
from webapp.engine import leaks
from webapp.engine.formats import FORMATS
from webapp.errors import ApiError, Fault, validation_error
from webapp.exports.models import Export, ExportPart
from webapp.extensions import changed_rows, db, reading, redis_client, writing
from webapp.generation.services import pins
from webapp.generation.services.rows import Recipe
from webapp.storage import Storage
from webapp.work import jobs_queue

KIND: Final = "part"
OPEN: Final = ("queued", "running")

# Lease owner and expiry of an export in parts: it is never considered lost, and sweepers do not enqueue it.
_HOLDER: Final = "its parts"
_FOREVER: Final = datetime(9999, 1, 1, tzinfo=UTC)


def planned(recipe: Recipe, part_rows: int | None) -> int | None:
    """Return the rows per part; None for a single file, because there are few rows or no parts were
    requested.

    Raises validation_error for too many parts, or for parts that would split an INSERT.
    """
    if part_rows is None or recipe.count <= limits.PARTS_FROM_ROWS or recipe.count <= part_rows:
        return None
    parts = -(-recipe.count // part_rows)
    if parts > limits.MAX_PARTS:
        least = -(-recipe.count // limits.MAX_PARTS)
        text = f"{recipe.count:,} rows are {parts:,} parts of {part_rows:,}; the maximum is {limits.MAX_PARTS:,} parts."
        raise validation_error([Fault("part_rows", "too_small", text, f"Use {least:,} or more.")])
    together = recipe.writer().together if recipe.format.continues else 1
    if part_rows % together:
        text = f"An INSERT has {together:,} rows, and a part may not end inside of one."
        hint = f"Use a multiple of {together:,}, or set sql.rows_per_statement."
        raise validation_error([Fault("part_rows", "not_a_multiple", text, hint)])
    return part_rows


def fitting(count: int) -> int | None:
    """Return the rows per part for this number of rows; None for a single file."""
    if count <= limits.PARTS_FROM_ROWS:
        return None
    return limits.PARTS_FROM_ROWS * -(-count // (limits.PARTS_FROM_ROWS * limits.MAX_PARTS))


def add(
    session: Session | scoped_session[Any], export: Export, offset: int, made: Sequence[ExportPart] = ()
) -> None:
    """Add parts to a new export. The first one starts with row `offset` of the template; `made` are parts of
    an earlier export whose files are reused. The others are enqueued after `session` commits."""
    taken = {part.number: part for part in made}
    rows = export.part_rows or export.count
    waiting = []
    for at in range(0, export.count, rows):
        number = at // rows + 1
        part = ExportPart(
            export_id=export.id, number=number, offset=offset + at, count=min(rows, export.count - at)
        )
        if before := taken.get(number):
            for column in ("status", "attempt", "rows_done", "bytes", "sha256", "leaks", "storage_key"):
                setattr(part, column, getattr(before, column))
            part.started_at, part.finished_at = before.started_at, before.finished_at
        else:
            waiting.append(part)
        session.add(part)
    session.flush()
    for part in waiting:
        jobs_queue.after_commit(session, redis_client(), KIND, part.id)
    export.parts_done = len(taken)
    export.rows_done = sum(part.count for part in made)


def of(export: Export) -> list[ExportPart]:
    """Return all parts of an export in the order of its rows."""
    return list(
        db.session.scalars(
            select(ExportPart).where(ExportPart.export_id == export.id).order_by(ExportPart.number)
        )
    )


def some(export: Export, first: int) -> list[ExportPart]:
    """Return one page of parts, from number `first` on."""
    statement = select(ExportPart).where(ExportPart.export_id == export.id, ExportPart.number >= first)
    return list(db.session.scalars(statement.order_by(ExportPart.number).limit(limits.PARTS_SHOWN)))


def one(export: Export, number: int) -> ExportPart | None:
    """Return one part of an export."""
    return db.session.scalar(
        select(ExportPart).where(ExportPart.export_id == export.id, ExportPart.number == number)
    )


def as_json(part: ExportPart) -> dict[str, Any]:
    """Return a part for the manifest. `download_url` is a path, and None until there is a file."""
    made = part.status == "completed" and part.storage_key is not None
    return {
        "number": part.number,
        "offset": part.offset,
        "rows": part.count,
        "status": part.status,
        "attempt": part.attempt,
        "rows_done": part.rows_done,
        "bytes": part.bytes,
        "sha256": part.sha256,
        "download_url": f"/exports/{part.export_id}/parts/{part.number}" if made else None,
        "error": part.error,
    }


def as_one(export: Export) -> dict[str, Any]:
    """Return the only part of an export that is a single file."""
    made = export.status == "completed" and export.file_removed_at is None
    return {
        "number": 1,
        "offset": export.request["ask"].get("offset", 0),
        "rows": export.count,
        "status": export.status,
        "attempt": export.attempt,
        "rows_done": export.rows_done,
        "bytes": export.bytes,
        "sha256": export.sha256,
        "download_url": f"/exports/{export.id}/parts/1" if made else None,
        "error": export.error,
    }


def manifest(export: Export) -> dict[str, Any]:
    """Return the manifest: parts and pins, with paths as URLs. A single file has one part."""
    kept = pins.shown(export.pins)
    return {
        "export_id": export.id,
        "status": export.status,
        "template_id": export.template_id,
        "template_version": export.template_version,
        "dataset_id": export.dataset_id,
        "dataset_version": export.dataset_version,
        "seed": kept["seed"],
        "now": kept["now"],
        "engine": kept["engine"],
        "vocabulary": kept["vocabulary"],
        "locale": kept["locale"],
        "format": export.format,
        "file_name": export.file_name,
        "concatenates": export.parts is None or FORMATS[export.format].continues,
        "offset": export.request["ask"].get("offset", 0),
        "rows": export.count,
        "part_rows": export.part_rows,
        "bytes": export.bytes,
        "sha256": export.sha256,
        "download_url": f"/exports/{export.id}/download" if in_one_piece(export) else None,
        "parts": [as_json(part) for part in of(export)] if export.parts else [as_one(export)],
    }


def in_one_piece(export: Export) -> bool:
    """Whether the whole file can be downloaded: it exists, or its parts do and can be concatenated."""
    if export.status != "completed" or export.file_removed_at is not None:
        return False
    return export.parts is None or FORMATS[export.format].continues


def joined(store: Storage, parts: Sequence[tuple[str, int]], first: int, last: int) -> Iterator[bytes]:
    """Yield bytes from `first` up to, but not including, `last` of files (key, size) as if they were
    concatenated. Each file is opened when needed, the first immediately. Raises MissingError."""
    wanted, at = [], 0
    for key, size in parts:
        begin, end = max(first - at, 0), min(last - at, size)
        if begin < end:
            wanted.append((key, begin, end))
        at += size
    if not wanted:
        return iter(())
    opened = store.get(*wanted[0])
    return chain(opened, chain.from_iterable(store.get(*item) for item in wanted[1:]))


def in_one(statement: Select[Any]) -> Select[Any]:
    """Return a select of exports without those in parts, which are not enqueued."""
    return statement.where(Export.part_rows.is_(None))


def whole(export_id: str) -> Callable[[Session], bool]:
    """Whether an export may start. A worker calls this in the transaction that acquires it: only single files
    do."""

    def ask(session: Session) -> bool:
        found = select(Export.id).where(Export.id == export_id, Export.part_rows.is_(None))
        return session.scalar(found) is not None

    return ask


def may_start(part_id: str) -> Callable[[Session], bool]:
    """Whether a part may start, because its export is still in progress. Marks the export as running. A
    worker calls this in the transaction that acquires the part."""

    def ask(session: Session) -> bool:
        of_part = select(ExportPart.export_id).where(ExportPart.id == part_id).scalar_subquery()
        statement = (
            update(Export)
            .where(Export.id == of_part, Export.status.in_(OPEN), Export.cancel_requested_at.is_(None))
            .values(
                status="running",
                attempt=case((Export.attempt == 0, 1), else_=Export.attempt),
                lease_owner=_HOLDER,
                lease_until=_FOREVER,
                started_at=func.coalesce(Export.started_at, clock.now()),
            )
            .execution_options(synchronize_session=False)
        )
        return bool(changed_rows(session.execute(statement)))

    return ask


def stop(export: Export) -> None:
    """Cancel all parts of a locked export. Queued ones end immediately. Does not commit."""
    mine = update(ExportPart).where(ExportPart.export_id == export.id)
    quiet = {"synchronize_session": False}
    now = clock.now()
    waiting = mine.where(ExportPart.status == "queued")
    ended = {"status": "cancelled", "finished_at": now, "epoch": ExportPart.epoch + 1}
    db.session.execute(waiting.values(**ended), execution_options=quiet)
    running = mine.where(ExportPart.status == "running", ExportPart.cancel_requested_at.is_(None))
    db.session.execute(running.values(cancel_requested_at=now), execution_options=quiet)


def progress(part_id: str) -> None:
    """Update the number of rows that the parts of an export have generated."""
    with writing() as session:
        export_id = session.scalar(select(ExportPart.export_id).where(ExportPart.id == part_id))
        made = select(func.sum(ExportPart.rows_done)).where(ExportPart.export_id == export_id)
        statement = update(Export).where(Export.id == export_id, Export.status == "running")
        session.execute(
            statement.values(rows_done=func.coalesce(made.scalar_subquery(), 0)),
            execution_options={"synchronize_session": False},
        )


def gather(export_id: str) -> None:
    """Update an export from its parts, and end it when all of them have ended. Safe to call at any time,
    repeatedly."""
    with writing() as session:
        locked = select(Export).where(Export.id == export_id).with_for_update()
        export = session.scalar(locked)
        if export is None or export.ended:
            return
        parts = ExportPart.export_id == export_id
        columns = (
            ExportPart.status,
            func.count(),
            func.sum(ExportPart.rows_done),
            func.sum(ExportPart.count),
            func.sum(ExportPart.bytes),
        )
        found = {
            row[0]: [int(value or 0) for value in row[1:]]
            for row in session.execute(select(*columns).where(parts).group_by(ExportPart.status))
        }
        done, _, rows, size = found.get("completed", [0, 0, 0, 0])
        export.parts_done = done
        if not found.keys().isdisjoint(OPEN):
            export.rows_done = sum(item[1] for item in found.values())
            return
        export.rows_done, export.finished_at = rows, clock.now()
        export.lease_owner = export.lease_until = None
        if found.keys() == {"completed"}:
            export.status, export.bytes = "completed", size
            seen = list(session.scalars(select(ExportPart.leaks).where(parts, ExportPart.leaks.is_not(None))))
            if seen:
                looked = leaks.merged(entry[0]["columns"] for entry in seen)
                unmasked = seen[0][0].get("unmasked", [])
                export.leaks = [{"table": seen[0][0]["table"], "columns": looked, "unmasked": unmasked}]
        elif export.cancel_requested_at is not None or "failed" not in found:
            export.status = "cancelled"
        else:
            export.status, export.error = "failed", _failure(session, export_id)


def _failure(session: Session, export_id: str) -> dict[str, Any]:
    """Return the error of a failed export: that of its first failed part, and how many failed."""
    failed = select(ExportPart.number, ExportPart.error).where(
        ExportPart.export_id == export_id, ExportPart.status == "failed"
    )
    found = session.execute(failed.order_by(ExportPart.number)).all()
    first = found[0].error or ApiError("internal_error").as_dict()["error"]
    more = f" {len(found) - 1} more failed." if len(found) > 1 else ""
    details = {**first.get("details", {}), "parts": [row.number for row in found]}
    return {**first, "message": f"Part {found[0].number}: {first['message']}{more}", "details": details}


def export_of(part_id: str) -> str | None:
    """Return the id of a part's export."""
    with reading() as session:
        return session.scalar(select(ExportPart.export_id).where(ExportPart.id == part_id))


def untold() -> list[str]:
    """Return a part of each export that is still in progress although all its parts have ended, because the
    process that ended the last one died."""
    other = aliased(ExportPart)
    going = select(other.id).where(other.export_id == Export.id, other.status.in_(OPEN)).correlate(Export)
    statement = (
        select(func.min(ExportPart.id))
        .join(Export, Export.id == ExportPart.export_id)
        .where(Export.part_rows.is_not(None), Export.status.in_(OPEN), ~going.exists())
        .group_by(ExportPart.export_id)
    )
    with reading() as session:
        return list(session.scalars(statement))
