"""Exports: files that a worker makes, from the same recipe as generate, of one template or of a whole dataset.

An export keeps its request and its pins, so whichever worker takes it up, at whichever attempt, makes the same
bytes. Its rows are spent when it is asked for; what a failed or cancelled one did not deliver is given back, once.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
import redis
from sqlalchemy import select

from webapp import clock, ids, limits, pagination
from webapp.accounts.actors import Actor
from webapp.accounts.services import tenancy
from webapp.audit.models import AuditEntry
from webapp.audit.services import audit_log
from webapp.datasets.schemas import DatasetExportInput
from webapp.datasets.services import datasets, rows
from webapp.datasets.services.rows import Bundle
from webapp.engine.plan import ENGINE
from webapp.errors import ApiError
from webapp.extensions import db, reading, redis_client, writing
from webapp.generation.models import Export, ExportPart
from webapp.generation.services import export_parts, external_values, generate, pins
from webapp.generation.services import rows as generation_rows
from webapp.generation.services.pins import Pins
from webapp.generation.services.rows import Recipe
from webapp.operations import jobs_queue
from webapp.operations.models import END_STATES
from webapp.real_data.services import sources
from webapp.row_templates.schemas import GenerateInput, TemplateExportInput
from webapp.usage.services import quotas, stored_json
from webapp.usage.services.quotas import Reservation

log = logging.getLogger(__name__)

KIND: Final = "export"
_SETTLED: Final = "settled"  # in the request of an export whose end was seen to


def as_json(export: Export) -> dict[str, Any]:
    """An export as the API shows it; `download_url` is a path here, and None until there is a file."""
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
        "download_url": f"/exports/{export.id}/download" if export_parts.in_one_piece(export) else None,
        "manifest_url": f"/exports/{export.id}/manifest",
        "answers_url": f"/exports/{export.id}/answers" if export.request.get("bad") else None,
        "part_rows": export.part_rows,
        "parts": export.parts,
        "parts_done": export.parts_done if export.parts else None,
        "of_id": export.of_id,
        "attempt": export.attempt,
        "seed": export.pins["seed"],
        "now": export.pins["now"],
        "pins": pins.shown(export.pins),
        "request": asked_again(export),
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


def asked_again(export: Export) -> dict[str, Any]:
    """The body that asks for the same bytes: the one that was sent, with what it left open filled in. Of a template,
    generate takes it as well, but for `part_rows`; the version is not in it."""
    ask = export.request["ask"]
    unsaid = {"offset": 0}
    given = {name: value for name, value in ask.items() if value not in (None, {}, unsaid.get(name))}
    count = {} if "tables" in export.pins else {"count": export.count}
    now = {"now": export.pins["now"]} if export.pins["now"] else {}
    parts = {"part_rows": export.part_rows} if export.part_rows else {}
    return {**given, **count, **parts, "format": export.format, "seed": export.pins["seed"], **now}


def create(actor: Actor, template_id: str, ask: GenerateInput, format: str | None = None) -> Export:
    """An export of a template's newest version, queued; commits, and rings for a worker, or for one for each part.

    The first block is made and thrown away, so that what cannot be made is refused here and not by a worker.
    Errors: those of `generate.saved` and of `export_parts.planned`.
    """
    found = generate.of(actor, template_id, "generate")
    source = generate.saved_source(found, ask.locale, rows_of=ask.rows)
    source = sources.opened(actor, source, keep=True)
    count = source.count(ask.count)
    quotas.check_rows(actor, count)
    recipe = external_values.recipe(
        actor, source, ask.model_copy(update={"count": count}), format=format, keep=True
    )
    recipe.open().close()
    part_rows = export_parts.planned(recipe, ask.part_rows if isinstance(ask, TemplateExportInput) else None)
    export = Export(
        project_id=found.project_id,
        team_id=found.team_id,
        template_id=found.id,
        template_version=found.version,
        format=recipe.format.name,
        count=count,
        file_name=recipe.file_name,
        request={
            "ask": ask.model_dump(mode="json", exclude={"part_rows"}),
            "bad": recipe.bound.bad is not None,
        },
        pins=recipe.pins.to_json(),
        part_rows=part_rows,
    )
    told = {
        "version": found.version,
        "seed": recipe.pins.seed,
        "format": recipe.format.name,
        "offset": recipe.offset,
        **({"part_rows": part_rows} if part_rows else {}),
    }
    inside, of = recipe.records(), ("template", found.id)
    return queue(actor, export, "template.export", of, largest=count, records=inside, **told)


def create_of_dataset(actor: Actor, dataset_id: str, ask: DatasetExportInput) -> Export:
    """An export of all tables of a dataset's newest version, queued; commits, and rings for a worker.

    The first block of each table is made and thrown away. Errors: not_found, forbidden, row_limit_exceeded (for any
    one table), validation_error with paths such as `templates[1].fields[0]`, quota_exceeded for the sum.
    """
    dataset = datasets.get(actor, dataset_id, "generate")
    version = datasets.version_of(dataset)
    datasets.known_templates(actor, version.spec, "generate")
    members = rows.members(version.spec, version.pins["templates"])
    bundle = rows.of_version(actor, version.spec, (dataset.id, version.number), members, ask)
    largest = max(recipe.count for recipe in bundle.recipes)
    quotas.check_rows(actor, largest)
    for member, recipe in zip(bundle.members, bundle.recipes, strict=True):
        with rows.placed(member):
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
            "ask": ask.model_dump(mode="json"),
            "bad": any(recipe.bound.bad is not None for recipe in bundle.recipes),
        },
        pins=bundle.pins(),
    )
    told = {"version": version.number, "seed": bundle.seed, "format": export.format, "tables": len(members)}
    inside, of = sum(recipe.records() for recipe in bundle.recipes), ("dataset", dataset.id)
    return queue(actor, export, "dataset.export", of, largest=largest, records=inside, **told)


def queue(
    actor: Actor,
    export: Export,
    action: str,
    of: tuple[str, str],
    *,
    largest: int,
    made: Sequence[ExportPart] = (),
    records: int = 0,
    **told: Any,
) -> Export:
    """Spend the rows of a new export, save it with its audit entry and ring for workers; commits.

    `largest`: rows of its largest table; `made`: parts that are taken over, whose rows were spent before; `records`:
    objects in arrays, which are spent like rows.
    Errors: row_limit_exceeded, quota_exceeded.
    """
    spent = export.count - sum(part.count for part in made)
    stored_json.take(actor, export.request, export.pins)
    reservation = quotas.reserve_rows(actor, spent + records, largest=largest)
    try:
        export.id = ids.new("exp")
        export.workspace_id = actor.workspace_id
        export.created_by, export.key_id = actor.user_id, actor.key_id
        quota = {"rows": reservation.rows, "second": reservation.second, "records": records}
        told |= quotas.records_told(records)
        export.request = {**export.request, "quota": quota}
        db.session.add(export)
        db.session.flush()
        audit_log.record(actor, action, of, join=True, rows=spent, export=export.id, **told)
        if export.part_rows:
            export_parts.add(db.session, export, export.request["ask"]["offset"], made)
        else:
            jobs_queue.after_commit(db.session, redis_client(), KIND, export.id)
        db.session.commit()
    except BaseException:
        db.session.rollback()
        quotas.give_back(reservation, reservation.rows)
        raise
    return export


def get(actor: Actor, export_id: str, scope: str = "read", *, lock: bool = False) -> Export:
    """One export. Errors: not_found, forbidden."""
    return tenancy.get(actor, Export, export_id, scope, lock=lock)


def check_kept(export: Export) -> None:
    """`not_found` where the files of an export went because the plan keeps them no longer."""
    if export.file_removed_at is not None:
        at = clock.to_text(export.file_removed_at.replace(microsecond=0))
        text = (
            f"This export's file was removed at {at}: its plan keeps files no longer, or a newer export needed the "
            "space. An export with the same body, seed and now makes the same bytes again."
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
    """A page of the project's exports, newest first. `q` searches file names."""
    statement = tenancy.listing(actor, Export)
    if template_id is not None:
        statement = statement.where(Export.template_id == template_id)
    if dataset_id is not None:
        statement = statement.where(Export.dataset_id == dataset_id)
    if status is not None:
        statement = statement.where(Export.status == status)
    return pagination.page(
        statement,
        name="exports",
        identity=Export.id,
        cursor=cursor,
        limit=limit,
        search=(q, Export.file_name),
        context=f"{actor.project_id} {template_id} {dataset_id} {status}",
        sizes=(Export.request, Export.pins, Export.leaks),
    )


def cancel(actor: Actor, export: Export) -> Export:
    """Ask for the end of a locked export; commits. One that is queued ends at once, a running one when its worker
    looks, one in parts when all their workers have. Error: run_finished for one that has ended."""
    export_id = export.id
    if export.ended:
        raise ApiError("run_finished", "This export has ended.", {"status": export.status})
    if export.cancel_requested_at is None:
        export.cancel_requested_at = clock.now()
        audit_log.record(actor, "export.cancel", export, join=True, rows_done=export.rows_done)
    if export.part_rows:
        export_parts.stop(export)
    elif export.status == "queued":
        export.status, export.finished_at = "cancelled", clock.now()
    in_parts = export.part_rows is not None
    db.session.commit()
    if in_parts:
        export_parts.gather(export_id)
        db.session.refresh(export)
        db.session.commit()  # lets go of the writers' lock
    settle(export_id)
    return export


# --- What the worker does -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker needs to make an export's file."""

    recipe: Recipe | Bundle
    folder: str
    """Where in the storage the attempts of this export lie."""
    extension: str


def order(export_id: str) -> Order:
    """An export's recipe, from its pins. Needs no request.

    Errors: unavailable (the vocabulary it was asked for under is missing, or the engine has changed since),
    not_found (its template is gone).
    """
    with reading() as session:
        export = session.get_one(Export, export_id)
        stored, workspace_id, template_id = export.pins, export.workspace_id, export.template_id
        asked, count, kind = export.request["ask"], export.count, export.format
    if stored["engine"] != ENGINE:
        told = f"This export was asked for under engine {stored['engine']}; this is engine {ENGINE}."
        raise ApiError("unavailable", told, {"pinned": stored["engine"], "present": ENGINE})
    folder = f"exports/{workspace_id}/{export_id}"
    if "tables" in stored:
        bundle = rows.again(stored, asked, kind)
        db.session.remove()
        return Order(bundle, folder, bundle.extension)
    ask = GenerateInput.model_validate_json(orjson.dumps(asked))
    ask = ask.model_copy(update={"count": count, "format": kind})
    kept = Pins.from_json(stored)
    if template_id is None or kept.version is None:
        raise tenancy.not_found("template", kept.template_id or "")
    found = generate.Head(template_id, kept.version, "", "")
    source = generate.saved_source(found, ask.locale, rows_of=ask.rows)
    source = external_values.pinned(source, kept)
    db.session.remove()
    recipe = generation_rows.recipe(source, ask, present=kept.now, pins=kept)
    return Order(recipe, folder, recipe.format.extension)


def part_order(part_id: str) -> Order:
    """A part's recipe, from the pins of its export. Errors as of `order`."""
    with reading() as session:
        part = session.get_one(ExportPart, part_id)
    found = order(part.export_id)
    assert isinstance(found.recipe, Recipe)  # a dataset's file is not made in parts
    recipe = found.recipe.part(part.offset, part.count)
    return Order(recipe, f"{found.folder}/parts/{part.number:06}", found.extension)


def settle_part(part_id: str) -> None:
    """Tell an export that one of its parts has ended."""
    export_id = export_parts.export_of(part_id)
    if export_id is not None:
        export_parts.gather(export_id)
        settle(export_id)


def settle(export_id: str) -> None:
    """Give back the rows that an ended export did not deliver: all of a failed one's, the unmade ones of a
    cancelled one, those of the parts that were not made. Does it once, however often it is called, and nothing for an
    export that goes on or succeeded.
    """
    with writing() as session:
        export = session.get(Export, export_id, with_for_update=True)
        if export is None or not export.ended or export.status == "completed" or export.request.get(_SETTLED):
            return
        held = export.request["quota"]
        in_part = export.status == "cancelled" or export.part_rows
        unused = held["rows"]
        if in_part:
            inside = held.get("records", 0)
            plain = max(1, held["rows"] - inside)
            left = min(plain, export.count - export.rows_done)
            unused = min(held["rows"], left + inside * left // plain)
        export.request = {**export.request, _SETTLED: True}
        session.add(_end_entry(export, unused))
        reservation = Reservation(export.workspace_id, held["rows"], held["second"])
    try:
        quotas.give_back(reservation, unused)
    except redis.RedisError as error:
        log.warning("the rows of %s were not given back: %s", export_id, error)


def _end_entry(export: Export, given_back: int) -> AuditEntry:
    """How an export ended that did not deliver all it was asked for, in the trail."""
    return AuditEntry(
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
            "given_back": given_back,
            "template_id": export.template_id or export.dataset_id,
        },
    )


# An export in parts once more: what was made is taken over, the rest is made.


def retry(actor: Actor, export_id: str) -> Export:
    """A new export of the same rows, queued, that shares the files of the parts that were made; commits, and rings for
    workers. The rows of the other parts were given back when the export ended, and are spent now.

    Errors: not_found, forbidden, conflict (it goes on, was completed, or was not made in parts), unavailable (its pins
    cannot be kept any more), row_limit_exceeded, quota_exceeded.
    """
    _checked(get(actor, export_id, "generate"))
    order(export_id)  # what cannot be made any more is refused here and not by a worker
    before = _checked(get(actor, export_id, "generate", lock=True))
    made = [part for part in export_parts.of(before) if part.status == "completed" and part.storage_key]
    again = Export(
        project_id=before.project_id,
        team_id=before.team_id,
        template_id=before.template_id,
        template_version=before.template_version,
        format=before.format,
        count=before.count,
        file_name=before.file_name,
        request={"ask": before.request["ask"], "bad": before.request.get("bad", False)},
        pins=before.pins,
        part_rows=before.part_rows,
        of_id=before.id,
    )
    left = before.count - sum(part.count for part in made)
    told = {"version": before.template_version, "seed": before.pins["seed"], "format": before.format}
    of = ("template", before.template_id or "")
    inside = before.request.get("quota", {}).get("records", 0) * left // max(1, before.count)
    return queue(
        actor, again, "export.retry", of, largest=left, made=made, records=inside, of_export=before.id, **told
    )


def _checked(export: Export) -> Export:
    """An export whose parts can be made again."""
    if export.part_rows is None:
        text = "This export is one file, not parts; ask for it again with its `request`."
    elif not export.ended:
        text = "This export goes on. Cancel it first, or wait for its end."
    elif export.status == "completed":
        text = "All parts of this export are made."
    else:
        return export
    raise ApiError("conflict", text, {"id": export.id, "status": export.status})


# The present state of an export, as its followers are told it.


@dataclass(frozen=True, slots=True)
class State:
    """What a follower is told of an export."""

    status: str
    attempt: int
    rows_done: int
    count: int
    bytes: int | None
    sha256: str | None
    error: dict[str, Any] | None

    @property
    def ended(self) -> bool:
        """Whether nothing will change any more."""
        return self.status in END_STATES

    @property
    def mark(self) -> str:
        """What tells this state from the ones before it; the id of its event."""
        return f"{self.attempt}-{self.status}-{self.rows_done}"

    def counts(self) -> dict[str, Any]:
        """The data of a `progress` event."""
        return {
            "status": self.status,
            "attempt": self.attempt,
            "rows_done": self.rows_done,
            "count": self.count,
        }

    def end(self) -> dict[str, Any]:
        """The data of the `end` event."""
        return {**self.counts(), "bytes": self.bytes, "sha256": self.sha256, "error": self.error}


def of(export_id: str) -> State | None:
    """The present state of an export; None when it is gone. A short read of its own."""
    columns = (
        Export.status,
        Export.attempt,
        Export.rows_done,
        Export.count,
        Export.bytes,
        Export.sha256,
        Export.error,
    )
    with reading() as session:
        row = session.execute(select(*columns).where(Export.id == export_id)).one_or_none()
    return State(*row) if row is not None else None
