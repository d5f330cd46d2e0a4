"""Making a backup while the service works: database, files, vocabularies, and the keys where that is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import sqlalchemy as sa
from flask import current_app
from sqlalchemy import select

from webapp import clock, limits, storage
from webapp.config import Settings
from webapp.extensions import db
from webapp.models import Workspace
from webapp.services import actors, audit, holding
from webapp.upkeep import keys, revisions, stored, tables
from webapp.upkeep.archive import Lacking, Manifest, Reader, TablePart, Writer
from webapp.upkeep.faults import UpkeepError, told
from webapp.upkeep.snapshot import snapshot
from webapp.upkeep.stored import Files

Tell = Callable[[str], None]


def make(
    settings: Settings,
    path: Path,
    *,
    replace: bool = False,
    plain_keys: bool = False,
    passphrase: str = "",
    files: bool = True,
    tell: Tell = lambda _line: None,
) -> Manifest:
    """Write a backup of the service of these settings to `path`, and answer its manifest. Needs the application's
    context. Without `files` it holds the database alone. Error: UpkeepError; then nothing is there that was not before.
    """
    with told("The backup was not made", path.parent), Writer(path, replace=replace) as writer:
        held = Files(storage.of(current_app), writer)
        if files:
            held.copy_new()  # most of them, before the snapshot begins
        with ExitStack() as stack:
            connection, there, lacking = _moment(settings, held, stack, files)
            revision = tables.revision(connection)
            if revision is None:
                raise UpkeepError("There is nothing to back up: the database has no tables of Rowsmith.")
            tell(f"revision {revision}, {len(there)} tables")
            made_at = clock.to_text(clock.now())
            written = {one.name: _table(connection, one, writer) for one in there}
            pinned = stored.pinned(connection, there)
        ring = keys.ring_now(settings)  # after the snapshot: a rotation meanwhile has put its key in front
        missing = stored.add_vocabularies(held, pinned) if files else []
        count, size = held.write_listing()
        manifest = Manifest(
            made_at=made_at or "",
            revision=revision,
            database="sqlite" if settings.is_sqlite else "postgresql",
            tables=written,
            files=count,
            file_bytes=size,
            targets=stored.add_targets(writer, settings.data_dir) if files else 0,
            vocabularies=sorted(pinned - set(missing)) if files else [],
            lacking=lacking,
            lacking_vocabularies=missing,
            keys=_write_keys(writer, keys.text_of(settings.secret_key, ring), plain_keys, passphrase),
            secret_key_mark=keys.mark(settings.secret_key),
            vault_mark=keys.vault_mark(ring),
            parts=writer.parts,
        )
        writer.finish(manifest)
    return manifest


def note(manifest: Manifest) -> None:
    """An entry in the trail of each workspace: all of its data has left. Needs the application's context."""
    if manifest.revision != revisions.head():
        return  # the trail of an earlier release is not ours to write; `upgrade` makes such backups
    for workspace_id in db.session.scalars(select(Workspace.id)).all():
        audit.record(actors.system(workspace_id), "service.backup", join=True, keys=manifest.keys)
    db.session.commit()


def _moment(
    settings: Settings, held: Files, stack: ExitStack, files: bool
) -> tuple[sa.Connection, list[tables.Table], list[Lacking]]:
    """A snapshot, open until the stack ends, whose files have been copied: tried again where some went meanwhile, until
    none does, those that lack have been lacking before, or it was tried often enough. What lacks is told."""
    before: list[Lacking] | None = None
    for last in (*[False] * limits.UPKEEP_SNAPSHOTS, True):
        with holding.holding(), ExitStack() as trial:
            connection = trial.enter_context(snapshot(settings))
            there = tables.tables(connection)
            lacking: list[Lacking] = []
            if files:
                held.copy_named(connection, there)
                held.copy_new()
                lacking = held.lacking(connection, there)
            if not lacking or lacking == before or last:
                stack.push(trial.pop_all())
                break
            before = lacking
    return connection, there, lacking


def _table(connection: sa.Connection, table: tables.Table, writer: Writer) -> TablePart:
    part, rows = f"tables/{table.name}.ndjson", 0
    with writer.part(part) as file:
        for line in tables.lines(connection, table):
            file.write(line)
            rows += 1
    return TablePart(rows=rows, columns=dict(table.columns), key=list(table.key), part=part)


def _write_keys(writer: Writer, text: str, plain: bool, passphrase: str) -> str:
    if passphrase:
        with writer.part(keys.SEALED) as file:
            file.write(keys.sealed(text, passphrase, os.urandom(limits.UPKEEP_SALT_BYTES)))
        return "sealed"
    if plain:
        with writer.part(keys.PLAIN) as file:
            file.write(text.encode())
        return "plain"
    return "none"


def verify(path: Path) -> Manifest:
    """Read a whole backup, compare every part with what the manifest says of it, and look that every file it lists is
    in it. Error: UpkeepError."""
    with Reader(path) as reader:
        reader.check()
        if reader.manifest.keys == "plain":
            ring = keys.read_text(b"".join(reader.pieces(keys.PLAIN)).decode())[1]
            if not keys.opens(ring, reader.manifest.vault_mark):
                raise UpkeepError(f"{path} holds keys that do not open what it holds.")
        return reader.manifest
