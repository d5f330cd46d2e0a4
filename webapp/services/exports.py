"""Exports: files that a worker makes, from the same recipe as generate.

An export keeps its request and its pins, so whichever worker takes it up, at whichever attempt, makes the same
bytes. Its rows are spent when it is asked for; what a failed or cancelled one did not deliver is given back, once.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import orjson
import redis
from sqlalchemy import select

from webapp import clock, ids, limits
from webapp.engine.plan import ENGINE
from webapp.errors import ApiError
from webapp.extensions import db, reading, redis_client
from webapp.models import END_STATES, Export
from webapp.services import audit, enqueue, generate, paging, quotas, rows, tenancy
from webapp.services.actors import Actor
from webapp.services.pins import Pins
from webapp.services.quotas import Reservation
from webapp.services.row_requests import GenerateInput
from webapp.services.rows import Recipe

log = logging.getLogger(__name__)

KIND: Final = "export"


def as_json(export: Export) -> dict[str, Any]:
    """An export as the API shows it; `download_url` is a path here, and None until there is a file."""
    return {
        "id": export.id,
        "status": export.status,
        "template_id": export.template_id,
        "template_version": export.template_version,
        "format": export.format,
        "count": export.count,
        "offset": export.request["ask"]["offset"],
        "rows_done": export.rows_done,
        "bytes": export.bytes,
        "sha256": export.sha256,
        "file_name": export.file_name,
        "download_url": f"/exports/{export.id}/download" if export.status == "completed" else None,
        "attempt": export.attempt,
        "seed": export.pins["seed"],
        "now": export.pins["now"],
        "error": export.error,
        "project_id": export.project_id,
        "team_id": export.team_id,
        "created_by": export.created_by,
        "created_at": clock.to_text(export.created_at),
        "started_at": clock.to_text(export.started_at),
        "finished_at": clock.to_text(export.finished_at),
        "cancel_requested_at": clock.to_text(export.cancel_requested_at),
    }


def create(actor: Actor, template_id: str, ask: GenerateInput, format: str | None = None) -> Export:
    """An export of a template's newest version, queued; commits, and rings for a worker.

    The first block is made and thrown away, so that what cannot be made is refused here and not by a worker.
    Errors: those of `generate.saved`.
    """
    found = generate.head(actor, template_id, "generate")
    source = generate.saved_source(found, ask.locale)
    count = ask.count if ask.count is not None else source.quantity
    quotas.check_rows(actor, count)
    recipe = rows.recipe(source, ask, present=clock.now(), format=format)
    recipe.open().close()
    reservation = quotas.reserve_rows(actor, count)
    try:
        export = _row(actor, found, recipe, ask, reservation)
        db.session.add(export)
        db.session.flush()
        audit.record(
            actor,
            "template.export",
            ("template", found.id),
            join=True,
            rows=count,
            export=export.id,
            version=found.version,
            seed=recipe.pins.seed,
            format=recipe.format.name,
            offset=recipe.offset,
        )
        enqueue.after_commit(db.session, redis_client(), KIND, export.id)
        db.session.commit()
    except BaseException:
        db.session.rollback()
        quotas.give_back(reservation, count)
        raise
    return export


def _row(
    actor: Actor, found: generate.Head, recipe: Recipe, ask: GenerateInput, reservation: Reservation
) -> Export:
    return Export(
        id=ids.new("exp"),
        workspace_id=actor.workspace_id,
        project_id=found.project_id,
        team_id=found.team_id,
        template_id=found.id,
        template_version=found.version,
        format=recipe.format.name,
        count=recipe.count,
        file_name=recipe.file_name,
        request={
            "ask": ask.model_dump(mode="json"),
            "quota": {"rows": reservation.rows, "second": reservation.second},
        },
        pins=recipe.pins.to_json(),
        created_by=actor.user_id,
        key_id=actor.key_id,
    )


def get(actor: Actor, export_id: str, scope: str = "read", *, lock: bool = False) -> Export:
    """One export. Errors: not_found, forbidden."""
    return tenancy.get(actor, Export, export_id, scope, lock=lock)


def listing(
    actor: Actor,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    q: str | None = None,
    template_id: str | None = None,
    status: str | None = None,
) -> paging.Page[Export]:
    """A page of the project's exports, newest first. `q` searches file names."""
    statement = tenancy.listing(actor, Export)
    if template_id is not None:
        statement = statement.where(Export.template_id == template_id)
    if status is not None:
        statement = statement.where(Export.status == status)
    return paging.page(
        statement,
        name="exports",
        identity=Export.id,
        cursor=cursor,
        limit=limit,
        search=(q, Export.file_name),
        context=f"{actor.project_id} {template_id} {status}",
    )


def cancel(actor: Actor, export: Export) -> Export:
    """Ask for the end of a locked export; commits. One that is queued ends at once, a running one when its worker
    looks. Error: run_finished for one that has ended."""
    if export.ended:
        raise ApiError("run_finished", "This export has ended.", {"status": export.status})
    if export.cancel_requested_at is None:
        export.cancel_requested_at = clock.now()
        audit.record(actor, "export.cancel", export, join=True, rows_done=export.rows_done)
    if export.status == "queued":
        export.status, export.finished_at = "cancelled", clock.now()
    db.session.commit()
    settle(export.id)
    return export


# --- What the worker does -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Order:
    """What a worker needs to make an export's file."""

    recipe: Recipe
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
        ask = GenerateInput.model_validate_json(orjson.dumps(export.request["ask"]))
        ask = ask.model_copy(update={"count": export.count, "format": export.format})
    pins = Pins.from_json(stored)
    if pins.engine != ENGINE:
        told = f"This export was asked for under engine {pins.engine}; this is engine {ENGINE}."
        raise ApiError("unavailable", told, {"pinned": pins.engine, "present": ENGINE})
    if template_id is None or pins.version is None:
        raise tenancy.not_found("template", pins.template_id or "")
    found = generate.Head(template_id, pins.version, "", "")
    source = generate.saved_source(found, ask.locale)
    db.session.remove()
    recipe = rows.recipe(source, ask, present=pins.now, pins=pins)
    return Order(recipe, f"exports/{workspace_id}/{export_id}", recipe.format.extension)


class Digest:
    """A stream that is hashed as it passes."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._hash = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        """The pieces as they are."""
        for piece in self._pieces:
            self._hash.update(piece)
            yield piece

    @property
    def sha256(self) -> str:
        """Of what has passed so far, in hexadecimal."""
        return self._hash.hexdigest()


def settle(export_id: str) -> None:
    """Give back the rows that an ended export did not deliver: all of a failed one's, the unmade ones of a
    cancelled one. Does it once, however often it is called, and nothing for an export that goes on or succeeded.
    """
    with reading() as session:
        export = session.get(Export, export_id)
    if export is None or not export.ended or export.status == "completed":
        return
    held = export.request["quota"]
    unused = held["rows"] - export.rows_done if export.status == "cancelled" else held["rows"]
    try:
        first = redis_client().set(
            f"rowsmith:{{{export.workspace_id}}}:settled:{export_id}", 1, nx=True, ex=2 * limits.ROWS_WINDOW_SECONDS
        )
        if first:
            quotas.give_back(Reservation(export.workspace_id, held["rows"], held["second"]), unused)
    except redis.RedisError as error:
        log.warning("the rows of %s were not given back: %s", export_id, error)


# --- Progress -----------------------------------------------------------------------------------------------


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
        return {"status": self.status, "attempt": self.attempt, "rows_done": self.rows_done, "count": self.count}

    def end(self) -> dict[str, Any]:
        """The data of the `end` event."""
        return {**self.counts(), "bytes": self.bytes, "sha256": self.sha256, "error": self.error}


def state(export_id: str) -> State | None:
    """The present state of an export; None when it is gone. A short read of its own."""
    columns = (Export.status, Export.attempt, Export.rows_done, Export.count, Export.bytes, Export.sha256, Export.error)
    with reading() as session:
        row = session.execute(select(*columns).where(Export.id == export_id)).one_or_none()
    return State(*row) if row is not None else None
