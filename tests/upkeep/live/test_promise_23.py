"""Promise 23: migrations run on SQLite and PostgreSQL, up from empty and from the previous release with data.

No release has been published, so the state before is revision 0007 with rows in every table that it had, brought up by
`./rowsmith upgrade`."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.operations import Operations

from tests.upkeep import filling
from webapp import models
from webapp.backup import database, restore
from webapp.cli.datadir import CliError

BEFORE = "0007"


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, new_place):
    return new_place(request.param)


def test_migrations_run_up_from_empty(place):
    place.bring()
    with place.connect() as connection:
        assert database.revision(connection) == database.newest_revision()
        context = MigrationContext.configure(connection)
        different = compare_metadata(context, models.Base.metadata)
    assert different == []


def test_migrations_run_up_from_the_previous_release_with_data(place, file, capsys):
    place.bring(BEFORE)
    with place.connect() as connection:
        filled = filling.fill(connection)
        names = {table.name: list(table.columns) for table in database.tables(connection)}
        before = filling.contents(connection, names)
    assert len(filled) > 20
    assert min(filled.values()) > 0
    assert place.run("upgrade", "--backup", str(file)) in (
        0,
        1,
    )  # the test secrets are invalid, so the doctor cannot decrypt them
    text = capsys.readouterr().out
    assert f"The database was migrated from revision {BEFORE} to {database.newest_revision()}." in text
    with place.connect() as connection:
        assert database.revision(connection) == database.newest_revision()
        assert filling.contents(connection, names) == before


def test_a_backup_of_the_previous_release_can_be_upgraded(place, new_place, file):
    place.bring(BEFORE)
    with place.connect() as connection:
        filled = filling.fill(connection)
    place.run("upgrade", "--backup", str(file))
    other = new_place("postgresql" if place.settings.is_sqlite else "sqlite")
    other.put_keys()
    assert other.run("restore", str(file)) == 0
    with other.connect() as connection:
        found = filling.counts(filling.contents(connection))
    assert {name: found[name] for name in filled if name != "audit_entries"} == {
        name: count for name, count in filled.items() if name != "audit_entries"
    }


def test_a_failed_migration_leaves_the_database_unchanged_and_says_how_to_continue(place, file, monkeypatch):
    place.bring(BEFORE)
    with place.connect() as connection:
        filling.fill(connection)
        before = filling.contents(connection)
    real = Operations.create_index

    def broken(self, name, table, *rest, **more):
        if table == "audit_entries":
            raise RuntimeError("no such luck")
        return real(self, name, table, *rest, **more)

    monkeypatch.setattr(Operations, "create_index", broken)
    with pytest.raises(
        CliError, match=r"the database is unchanged: no such luck\. To roll back: .*revision 0007 "
    ):
        place.run("upgrade", "--backup", str(file))
    with place.connect() as connection:
        assert database.revision(connection) == BEFORE
        assert filling.contents(connection) == before
    assert file.exists()
    assert not list(place.data.glob(".*restoring*"))
    assert restore.restore_target(place.settings).is_empty() is False
