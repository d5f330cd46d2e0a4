"""`./rowsmith audit` and `./rowsmith workspace` in a new installation: the output for operators."""

from __future__ import annotations

from datetime import timedelta

import orjson
import pytest
import sqlalchemy as sa

from webapp import clock, limits
from webapp.access import actors
from webapp.access.models import Workspace
from webapp.audit.models import AuditEntry
from webapp.audit.services import audit_log, seals
from webapp.cli.datadir import CliError
from webapp.extensions import db, write_session


@pytest.fixture
def acme(place):
    """`(installation, id)`: a workspace called Acme with three sealed entries."""
    with place.app().app_context():
        with write_session() as session:
            workspace = Workspace(name="Acme")
            session.add(workspace)
            session.flush()
            workspace_id = workspace.id
        for number in range(3):
            audit_log.record(actors.system_actor(workspace_id), "test.entry", number=number)
        seals.seal(workspace_id, clock.now())
        db.session.remove()
        db.engine.dispose()
    return place, workspace_id


def test_an_audit_log_that_matches_its_head_is_verified(acme, capsys):
    place, workspace_id = acme
    assert place.run("audit", "verify") == 0
    output = capsys.readouterr().out.splitlines()
    assert output[0] == f"{workspace_id}: verified (3 entries in 1 seal)"
    assert output[1].startswith("  head 1:")
    head = output[1].split()[1]
    assert place.run("audit", "verify", "Acme", "--head", head) == 0
    assert place.run("audit", "verify", "Acme", "--head", f"1:{'0' * 64}") == 1


def test_the_head_is_saved_again_and_audited(acme, capsys):
    """On SQLite, the read transaction of the command must not block its write."""
    place, workspace_id = acme
    assert place.run("audit", "anchor", "Acme") == 0
    assert capsys.readouterr().out == f"{workspace_id}: the current head of the chain was saved.\n"
    assert place.run("audit", "verify") == 0
    assert "verified (4 entries in 2 seals)" in capsys.readouterr().out
    with place.connect() as connection:
        found = connection.execute(sa.select(AuditEntry.action).order_by(AuditEntry.id)).scalars().all()
    assert found == ["test.entry"] * 3 + ["audit.anchor"]


def test_entries_are_written_as_lines(acme, capfdbinary):
    place, _ = acme
    assert place.run("audit", "export", "Acme") == 0
    lines = [orjson.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [item["action"] for item in lines] == ["test.entry"] * 3


def test_a_workspace_that_is_being_removed_for_good_has_no_trail_to_verify(acme, capsys):
    place, _ = acme
    with place.app().app_context(), write_session() as session:
        gone = clock.now() - timedelta(days=limits.RESTORE_DAYS, seconds=1)
        session.execute(sa.update(Workspace).values(deleted_at=gone))
    assert place.run("audit", "verify") == 0
    assert capsys.readouterr().out == ""


def test_a_database_of_another_release_is_reported(new_place):
    place = new_place("sqlite")
    place.bring("0010")
    with pytest.raises(
        CliError, match=r"revision 0010, but this release needs \d{4}: run ./rowsmith upgrade"
    ):
        place.run("audit", "verify")


def test_objects_that_are_not_deleted_cannot_be_restored(acme):
    place, _ = acme
    with pytest.raises(CliError, match="The workspace Acme is not deleted"):
        place.run("workspace", "restore", "Acme")


@pytest.mark.parametrize(
    "words", [("audit", "verify"), ("workspace", "list"), ("upgrade",), ("backup", "x.zip", "--include-keys")]
)
def test_a_mistyped_folder_is_reported_and_nothing_is_created_in_it(new_place, words):
    nowhere = new_place("sqlite")
    nowhere.env.pop("ROWSMITH_DATA_DIR")
    nowhere.data.rmdir()
    with pytest.raises(
        CliError, match=f"There is no installation in {nowhere.data}: specify its data folder"
    ):
        nowhere.run(*words)
    assert not nowhere.data.exists()


def test_a_deleted_workspace_is_listed_as_such_and_restored(acme, capsys):
    place, workspace_id = acme
    with place.app().app_context(), write_session() as session:
        session.execute(sa.update(Workspace).values(deleted_at=clock.now()))
    assert place.run("workspace", "list") == 0
    assert f"{workspace_id}  Acme  deleted 20" in capsys.readouterr().out
    assert place.run("workspace", "restore", "Acme") == 0
    assert capsys.readouterr().out == f"{workspace_id}  Acme  free\n"
