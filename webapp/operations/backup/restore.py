"""Restoring a backup: to an empty installation, to another kind of database, to another storage.

All is made beside what is there: the database is complete, brought to this release's revision and looked over before it
takes its place, and files that are no part of the backup go last. Whatever stops it before that leaves what was there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from flask import Flask, current_app
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from webapp import clock, create_app, storage
from webapp.accounts import actors
from webapp.accounts.models import Workspace
from webapp.audit.services import audit_log
from webapp.config import Settings
from webapp.extensions import db, reading, writing
from webapp.generation.models import Export, ExportPart
from webapp.notifications.models import Mail
from webapp.operations.backup import backup, loading, revisions, tables
from webapp.operations.backup import keys as backup_keys
from webapp.operations.backup.archive import Manifest, Reader
from webapp.operations.backup.errors import UpkeepError, told
from webapp.operations.backup.loading import Place
from webapp.pushes.models import Push
from webapp.pushes.services import completion
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.services import schedules

_OPEN: Final = ("queued", "running")
_WHY: Final = {
    Run: (
        "The service was restored from a backup that was taken while this run was going on or waiting. Its program may "
        "have run since; it is not repeated."
    ),
    Push: (
        "The service was restored from a backup that was taken while this push was going on or waiting. Rows that were "
        "not sent by then may have been sent since: look at the target before you retry those that are pending."
    ),
}


def settle(made_at: str) -> dict[str, list[str]]:
    """End, or release, the work that was open in a backup made at `made_at`.

    Return descriptions such as `psh_01J… to customers` of the `runs` and `pushes` that were ended and of the `exports`
    that workers start again. Needs the context of an application on the restored database.
    """
    now = clock.now()
    with writing() as session:
        open_exports = select(Export.id, Export.file_name, Export.format).where(Export.status.in_(_OPEN))
        exports = [f"{row.id} {row.file_name or row.format}" for row in session.execute(open_exports)]
        for model in (Export, ExportPart):
            _free(session, model)
        runs = _end(session, Run, now, made_at)
        pushes = _end(session, Push, now, made_at)
        for push in session.scalars(select(Push).where(Push.id.in_(pushes))):
            # Rows of the hour are counted in Redis, which no backup has: there is nothing to give back.
            push.request = {name: value for name, value in push.request.items() if name != "quota"}
        of_runs = (
            select(Run.id, Scenario.name)
            .join(Scenario, Scenario.id == Run.scenario_id)
            .where(Run.id.in_(runs))
        )
        of_pushes = select(Push.id, Push.target).where(Push.id.in_(pushes))
        ended = {
            "runs": [f"{row.id} of {row.name}" for row in session.execute(of_runs)],
            "pushes": [f"{row.id} to {row.target}" for row in session.execute(of_pushes)],
            "exports": exports,
        }
        _schedules(session, now)
        _mails(session, now)
    for push_id in pushes:
        completion.settle(push_id)
    return ended


def _free(session: Session, model: Any) -> None:
    """Release running work, so that any worker can take it and the one that held it can no longer write."""
    held = update(model).where(model.status == "running")
    held = held.values(epoch=model.epoch + 1, lease_owner=None, lease_until=None)
    session.execute(held.execution_options(synchronize_session=False))


def _end(session: Session, model: Any, now: datetime, made_at: str) -> list[str]:
    """Work that must not be done twice has its end. The sweeper sees to the rest of a run's."""
    error = {"code": "worker_lost", "message": _WHY[model], "details": {"backup": made_at}}
    ended = (
        update(model)
        .where(model.status.in_(_OPEN))
        .values(
            status="failed",
            error=error,
            finished_at=now,
            epoch=model.epoch + 1,
            lease_owner=None,
            lease_until=None,
        )
        .returning(model.id)
        .execution_options(synchronize_session=False)
    )
    return list(session.scalars(ended))


def _mails(session: Session, now: datetime) -> None:
    """Mails that were on their way have arrived since, or say what is long past. (A webhook's deliveries are sent
    again: their receivers know each by its id.)"""
    why = "The service was restored from a backup: whether it was sent nobody knows."
    ended = {"status": "failed", "ended_at": now, "claimed_until": None, "sealed": None, "reason": why}
    session.execute(
        update(Mail)
        .where(Mail.status == "queued")
        .values(**ended)
        .execution_options(synchronize_session=False)
    )


def _schedules(session: Session, now: datetime) -> None:
    """Times that came between the backup and now had their run then, or are over: the next one counts."""
    due = select(Scenario).where(Scenario.next_run_at <= now)
    for scenario in session.scalars(due):
        scenario.next_run_at = schedules.next_run(scenario.schedule, now)


Tell = Callable[[str], None]


@dataclass
class Restored:
    """What was restored. `lost_secrets`: stored secrets that no key of the ring opens."""

    manifest: Manifest
    revision: str
    rows: int = 0
    files: int = 0
    lost_secrets: int = 0
    ended: dict[str, list[str]] = field(default_factory=dict)


def look(reader: Reader) -> None:
    """That a backup is whole, and not of a newer release. Error: UpkeepError."""
    if not revisions.known(reader.manifest.revision):
        raise UpkeepError(
            f"{reader.path} was made by a newer release of Rowsmith (revision {reader.manifest.revision}; this one "
            f"knows up to {revisions.head()}). Restore it with that release, or a later one."
        )
    reader.check()


def occupied(settings: Settings) -> list[str]:
    """What is there already: a sentence for each. Needs the application's context."""
    found = []
    if not loading.place_of(settings).is_empty():
        found.append("the database has rows")
    if not backup.is_empty(storage.of(current_app)):
        found.append("the storage has files")
    if backup.targets_of(settings.data_dir):
        found.append("the data folder has files of SQLite connections")
    return found


def restore(
    settings: Settings, reader: Reader, *, take_keys: Callable[[], None], tell: Tell = lambda _line: None
) -> Restored:
    """Put a backup that was looked at in the place of all that the installation of these settings has. Needs the
    application's context. `take_keys` is called right before the database takes its place: it puts the keys of the
    backup where the service reads them. Error: UpkeepError.
    """
    manifest = reader.manifest
    done = Restored(manifest, revisions.head())
    place = loading.place_of(settings)
    with told("Nothing was restored", settings.data_dir):
        place.begin()
        try:
            done.rows = _load(settings, reader, place)
            tell(
                f"database: {done.rows:,} rows in {len(manifest.tables)} tables, revision {manifest.revision}"
            )
            revisions.bring(revisions.on(settings, place.url))
            _settle(settings, place, done)
            keys = backup.put_back(reader, storage.of(current_app))
            done.files = len(keys)
            tell(f"files: {done.files:,}")
        except BaseException:
            place.give_up()
            raise
        take_keys()
        place.take_over()
    with told(
        "The database is restored, but files are not all in their place: run it again", settings.data_dir
    ):
        backup.put_targets_back(reader, settings.data_dir)
        backup.keep_only(storage.of(current_app), keys)
    return done


def _load(settings: Settings, reader: Reader, place: Place) -> int:
    """The tables at the revision of the backup, with its rows in them; how many."""
    manifest = reader.manifest
    revisions.bring(revisions.on(settings, place.url), manifest.revision)
    wanted = [tables.Table(name, one.columns, tuple(one.key)) for name, one in manifest.tables.items()]
    tables.matching(loading.columns_of(place.url), wanted)
    counts = place.load(wanted, ((one, reader.lines(manifest.tables[one.name].part)) for one in wanted))
    for name, one in manifest.tables.items():
        if counts[name] != one.rows:
            raise UpkeepError(f"{name} has {counts[name]:,} rows after loading, not {one.rows:,}.")
    return sum(counts.values())


def _settle(settings: Settings, place: Place, done: Restored) -> None:
    """What is done in the new database before it counts: open work, the trail, a look at the secrets."""
    app = create_app(revisions.on(settings, place.url), routes=False)
    with app.app_context():
        try:
            done.ended = settle(done.manifest.made_at)
            counts = {kind: len(work) for kind, work in done.ended.items()}
            for workspace_id in db.session.scalars(select(Workspace.id)).all():
                actor = actors.system(workspace_id)
                audit_log.record(actor, "service.restore", join=True, backup=done.manifest.made_at, **counts)
            db.session.commit()
            with reading() as session:
                done.lost_secrets = backup_keys.count(session.connection(), settings.vault_keys)[1]
        finally:
            _close(app)


def _close(app: Flask) -> None:
    audit_log.close(app)
    db.session.remove()
    db.engine.dispose()
