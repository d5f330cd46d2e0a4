"""Migrate a database to this release atomically: PostgreSQL in one transaction, SQLite on a copy that replaces the file
when it is complete. If a migration fails, the database does not change."""

from __future__ import annotations

from webapp.backup import revisions, tables
from webapp.backup.backup import snapshot
from webapp.backup.errors import UpkeepError, told
from webapp.backup.restore import SqlitePlace
from webapp.config import Settings


def found(settings: Settings) -> str:
    """The revision of the database. Error: UpkeepError, for one without tables, or of a newer release."""
    with told("The database was not checked", settings.data_dir), snapshot(settings) as connection:
        there = tables.revision(connection)
    if there is None:
        raise UpkeepError(
            "The database has no tables yet. To create them, run ./rowsmith up or ./rowsmith migrate."
        )
    if not revisions.known(there):
        raise UpkeepError(
            f"The database is at revision {there}, of a newer release; this one knows up to {revisions.head()}. "
            "Install the newer release again, or restore a backup of this one."
        )
    return there


def migrate(settings: Settings) -> None:
    """Migrate to this release's revision. Error: UpkeepError; the database is unchanged then."""
    try:
        if settings.is_sqlite:
            _on_a_copy(settings)
        else:
            revisions.bring(settings)
    except UpkeepError:
        raise
    except Exception as error:  # a migration may raise any exception
        said = str(getattr(error, "orig", error)).strip().partition("\n")[0]
        raise UpkeepError(f"The migration failed. The database is unchanged: {said}.") from error


def _on_a_copy(settings: Settings) -> None:
    place = SqlitePlace(settings)
    with told("The migration failed. The database is unchanged", settings.data_dir):
        place.copy()
        try:
            revisions.bring(revisions.on(settings, place.url))
            place.look()
        except BaseException:
            place.give_up()
            raise
        place.take_over()
