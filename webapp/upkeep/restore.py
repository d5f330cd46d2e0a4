"""Restoring a backup: to an empty installation, to another kind of database, to another storage.

All is made beside what is there: the database is complete, brought to this release's revision and looked over before it
takes its place, and files that are no part of the backup go last. Whatever stops it before that leaves what was there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from flask import Flask, current_app
from sqlalchemy import select

from webapp import create_app, storage
from webapp.config import Settings
from webapp.extensions import db, reading
from webapp.models import Workspace
from webapp.services import actors, audit
from webapp.upkeep import loading, revisions, sealed, stored, tables, unfinished
from webapp.upkeep.archive import Manifest, Reader
from webapp.upkeep.faults import UpkeepError, told
from webapp.upkeep.loading import Place

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
    if not stored.is_empty(storage.of(current_app)):
        found.append("the storage has files")
    if stored.targets_of(settings.data_dir):
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
            keys = stored.put_back(reader, storage.of(current_app))
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
        stored.put_targets_back(reader, settings.data_dir)
        stored.keep_only(storage.of(current_app), keys)
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
            done.ended = unfinished.settle(done.manifest.made_at)
            counts = {kind: len(work) for kind, work in done.ended.items()}
            for workspace_id in db.session.scalars(select(Workspace.id)).all():
                actor = actors.system(workspace_id)
                audit.record(actor, "service.restore", join=True, backup=done.manifest.made_at, **counts)
            db.session.commit()
            with reading() as session:
                done.lost_secrets = sealed.count(session.connection(), settings.vault_keys)[1]
        finally:
            _close(app)


def _close(app: Flask) -> None:
    audit.close(app)
    db.session.remove()
    db.engine.dispose()
