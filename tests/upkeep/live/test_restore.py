"""A restoration replaces nothing unasked, makes up no keys, and does nothing twice that may have been done."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from tests.conftest import SECRET_KEY, VAULT_KEY
from webapp import app_vault, limits
from webapp.access import actors
from webapp.access.models import Membership, Project, Team, User, Workspace
from webapp.audit.models import AuditEntry
from webapp.backup import backup, database
from webapp.cli.datadir import CliError
from webapp.connections.models import Connection, Secret
from webapp.connections.services import secrets
from webapp.exports import export_files
from webapp.exports.models import Export, ExportPart
from webapp.extensions import db, write_session
from webapp.files import services as files
from webapp.model_base import Base
from webapp.pushes.models import Push, PushRow
from webapp.row_templates.models import Template, TemplateVersion
from webapp.row_templates.services import vocabularies
from webapp.scenarios.models import Run, Scenario
from webapp.storage import Storage
from webapp.work import batch_delete

OLD = datetime(2026, 1, 1, tzinfo=UTC)
SCHEDULE = {"cron": "0 * * * *", "timezone": "UTC", "enabled": True, "params": {}}


@pytest.fixture
def busy(place):
    """An installation in use: one running and one queued job of each kind, a secret, and a file of a target."""
    with place.app().app_context(), write_session() as session:
        workspace = Workspace(name="Acme")
        session.add(workspace)
        session.flush()
        team = Team(name="T", workspace_id=workspace.id)
        user = User(email="a@example.org")
        session.add_all([team, user])
        session.flush()
        project = Project(name="P", workspace_id=workspace.id, team_id=team.id)
        session.add_all([project, Membership(workspace_id=workspace.id, user_id=user.id, role="owner")])
        session.flush()
        where = {"workspace_id": workspace.id, "project_id": project.id, "team_id": team.id}
        scenario = Scenario(
            name="S", timeout_seconds=60, network="none", schedule=SCHEDULE, next_run_at=OLD, **where
        )
        session.add(scenario)
        session.flush()
        stored = {"lease_owner": "gone", "lease_until": OLD, "epoch": 3, "attempt": 1, "started_at": OLD}
        chunk = {"table": 0, "first": 11, "last": 20, "rows": 10}
        tables = [{"name": "t", "count": 30}]
        for status, more in (("running", stored), ("queued", {})):
            session.add_all([
                Export(format="csv", count=5, status=status, **more, **where),
                Run(scenario_id=scenario.id, scenario_version=1, trigger="api", status=status, **more, **where),
                Push(target="t", total=30, delivered=10 if more else 0, tables=tables, status=status,
                     request={"quota": {"rows": 30, "second": 0}},
                     intent={"chunk": chunk} if more else None, **more, **where),
            ])  # fmt: skip
        session.add(Secret(workspace_id=workspace.id, name="token", sealed=app_vault.vault().seal("kept")))
        session.add(
            Connection(name="C", type="sqlite", settings={"file": "x.db"}, file_folder="con_1", **where)
        )
    place.store.put(f"files/{workspace.id}/one", [b"bytes"])
    folder = place.data / "targets" / workspace.id / "con_1"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "x.db")) as target:
        target.execute("PRAGMA journal_mode=WAL")
        target.execute("CREATE TABLE t (n)")
        target.execute("INSERT INTO t VALUES (17)")
        target.commit()
    return place


@pytest.fixture
def restored(busy, new_place, file):
    """The same on another machine."""
    assert busy.run("backup", str(file), "--include-keys") == 0
    there = new_place("sqlite")
    assert there.run("restore", str(file)) == 0
    return there


def test_unfinished_work_is_not_repeated_after_a_restore(restored):
    with restored.app().app_context():
        exports, runs, pushes = (
            db.session.query(model).order_by(model.status).all() for model in (Export, Run, Push)
        )
        assert [(export.status, export.lease_owner, export.epoch) for export in exports] == [
            ("queued", None, 0),
            ("running", None, 4),
        ]
        assert {(run.status, run.error["code"], run.lease_owner) for run in runs} == {
            ("failed", "worker_lost", None)
        }
        assert {(push.status, push.error["code"], push.lease_owner) for push in pushes} == {
            ("failed", "worker_lost", None)
        }
        assert sorted((push.delivered, push.unknown, push.total) for push in pushes) == [
            (0, 0, 30),
            (10, 10, 30),
        ]
        assert {row.row: row.state for row in db.session.query(PushRow)} == dict.fromkeys(
            range(11, 21), "unknown"
        )
        assert all("quota" not in push.request and push.intent is None for push in pushes)
        db.session.remove()


def test_a_schedule_continues_with_its_next_time_and_the_restoration_is_audited(restored):
    with restored.app().app_context():
        now = datetime.now(UTC)
        assert now < db.session.query(Scenario).one().next_run_at <= now + timedelta(hours=1)
        (result,) = db.session.query(AuditEntry).filter_by(action="service.restore")
        assert (result.details["runs"], result.details["pushes"], result.details["exports"]) == (2, 2, 2)
        db.session.remove()


def test_the_backup_is_audited(busy, file):
    assert busy.run("backup", str(file)) == 0
    with busy.app().app_context():
        (result,) = db.session.query(AuditEntry).filter_by(action="service.backup")
        assert result.details == {"keys": "none"}
        db.session.remove()


def test_secrets_files_and_targets_are_there(restored):
    with restored.app().app_context():
        (secret,) = db.session.query(Secret)
        assert secrets.decrypt(secret) == "kept"
        db.session.remove()
    (one,) = [node.key for node in restored.store.walk()]
    assert b"".join(restored.store.get(one)) == b"bytes"
    (path,) = (restored.data / "targets").glob("*/con_1/x.db")
    with closing(sqlite3.connect(path)) as target:
        assert target.execute("SELECT n FROM t").fetchall() == [(17,)]


def test_an_existing_installation_is_only_replaced_on_request(busy, file, capsys):
    assert busy.run("backup", str(file), "--include-keys") == 0
    busy.store.put("files/ws/two", [b"later"])
    result = "database has rows, the storage has files, the data folder has files of SQLite connections"
    with pytest.raises(CliError, match=result):
        busy.run("restore", str(file))
    assert len(list(busy.store.walk())) == 2
    assert busy.run("restore", str(file), "--force-empty") == 0
    assert [b"".join(busy.store.get(node.key)) for node in busy.store.walk()] == [b"bytes"]


def test_a_backup_without_keys_asks_for_those_of_then(busy, new_place, file):
    assert busy.run("backup", str(file)) == 0
    there = new_place("sqlite")
    with pytest.raises(CliError, match=r"This installation has no SECRET_KEY.*--without-keys"):
        there.run("restore", str(file))
    there.env |= {"SECRET_KEY": SECRET_KEY, "VAULT_KEYS": VAULT_KEY.replace("M", "N", 1)}
    with pytest.raises(CliError, match="The VAULT_KEYS of this installation does not match the backup"):
        there.run("restore", str(file))
    assert not (there.data / "rowsmith.db").exists()
    there.env["VAULT_KEYS"] = VAULT_KEY
    assert there.run("restore", str(file)) == 0


def test_without_keys_all_but_the_secrets_comes_back(busy, new_place, file, capsys):
    assert busy.run("backup", str(file)) == 0
    there = new_place("sqlite")
    assert there.run("restore", str(file), "--without-keys") == 0
    assert "1 stored secrets cannot be decrypted" in capsys.readouterr().out
    assert SECRET_KEY not in (there.data / "keys.env").read_text()


def test_other_keys_in_the_data_folder_are_kept_in_addition_to_those_of_the_backup(busy, new_place, file):
    assert busy.run("backup", str(file), "--include-keys") == 0
    there = new_place("sqlite")
    (there.data / "keys.env").write_text("SECRET_KEY=" + "another one, long enough, " * 2 + "\nVAULT_KEYS=\n")
    with pytest.raises(CliError, match="different keys than the backup"):
        there.run("restore", str(file))
    assert there.run("restore", str(file), "--force-empty") == 0
    assert SECRET_KEY in (there.data / "keys.env").read_text()
    (aside,) = there.data.glob("keys.env.before-*")
    assert "another one" in aside.read_text()


def test_a_backup_of_a_newer_release_is_rejected(busy, new_place, file, monkeypatch):
    assert busy.run("backup", str(file), "--include-keys") == 0
    monkeypatch.setattr(database, "is_known_revision", lambda _revision: False)
    with pytest.raises(CliError, match="created by a newer release"):
        new_place("sqlite").run("restore", str(file))


def test_a_restoration_that_fails_leaves_what_was_there(busy, file, monkeypatch):
    assert busy.run("backup", str(file), "--include-keys") == 0

    def contents() -> list[str]:
        # Not the bytes of the file: a checkpoint of the write-ahead log may change them.
        with closing(sqlite3.connect(busy.data / "rowsmith.db")) as connection:
            return list(connection.iterdump())

    before = contents()

    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("webapp.backup.backup.restore_files", full)
    with pytest.raises(CliError, match=r"Nothing was restored: the disk of .* is full"):
        busy.run("restore", str(file), "--force-empty")
    assert contents() == before
    assert not list(busy.data.glob(".*restoring*"))


def test_bytes_that_are_replaced_while_a_backup_copies_stay_until_it_has_them(busy, shared_redis):
    with busy.app().app_context():
        workspace = db.session.query(Workspace).one()
        actor = actors.system_actor(workspace.id)

        def put(body: bytes) -> str:
            stored = files.put(actor, len(body), [body])
            files.save_file(actor, "one.txt", stored, content_type="text/plain")
            return stored.key

        def there() -> set[str]:
            return {node.key for node in busy.store.walk()}

        first = put(b"first")
        second = put(b"second")
        assert first not in there()
        with batch_delete.suspend_deletion():
            third = put(b"third")
        put(b"fourth")
        assert second in there()
        assert third not in there()
        db.session.remove()


def test_backup_ignores_files_of_an_export_that_is_being_removed(busy, file, monkeypatch):
    with busy.app().app_context():
        with write_session() as session:
            project = session.query(Project).one()
            where = {
                "workspace_id": project.workspace_id,
                "project_id": project.id,
                "team_id": project.team_id,
            }
            export = Export(format="csv", count=20, status="completed", part_rows=10, **where)
            session.add(export)
            session.flush()
            keys = [f"exports/{export.id}/{number}.csv" for number in (1, 2)]
            for number, key in enumerate(keys, 1):
                busy.store.put(key, [b"rows"])
                part = {
                    "export_id": export.id,
                    "number": number,
                    "offset": 0,
                    "count": 10,
                    "storage_key": key,
                }
                session.add(ExportPart(status="completed", **part))
            export_id = export.id
        deleted = []

        def killed_at_the_second_file(store, key):
            if deleted:
                raise SystemExit
            deleted.append(key)
            delete(store, key)

        delete = Storage.delete
        monkeypatch.setattr(Storage, "delete", killed_at_the_second_file)
        with pytest.raises(SystemExit):
            export_files.remove_files(export_id, datetime.now(UTC))
        monkeypatch.undo()
        assert len(deleted) == 1
        db.session.remove()
    assert busy.run("backup", str(file), "--include-keys") == 0
    assert busy.run("backup", "--verify", str(file)) == 0


def test_restore_names_the_work_that_was_open(busy, new_place, file, capsys):
    assert busy.run("backup", str(file), "--include-keys") == 0
    there = new_place("sqlite")
    capsys.readouterr()
    assert there.run("restore", str(file)) == 0
    shown = capsys.readouterr().out
    with there.app().app_context():
        runs, pushes = (db.session.query(model).all() for model in (Run, Push))
        assert len(runs) == len(pushes) == 2
        assert all(f"{run.id} of S" in shown for run in runs)
        assert all(f"{push.id} to t" in shown for push in pushes)
        db.session.remove()


def test_a_vocabulary_that_a_version_pins_comes_back_by_a_restoration(
    busy, new_place, file, tmp_path, monkeypatch, capsys
):
    pinned, missing = "e" * 32, "f" * 32
    with busy.app().app_context(), write_session() as session:
        where = {
            name: getattr(session.query(Scenario).one(), name)
            for name in ("workspace_id", "project_id", "team_id")
        }
        template = Template(name="T", **where)
        session.add(template)
        session.flush()
        for number, string in enumerate((pinned, missing), 1):
            pins = {"vocabulary": string}
            session.add(TemplateVersion(template_id=template.id, number=number, spec={}, pins=pins))
    monkeypatch.setattr(vocabularies, "local_folder", lambda: tmp_path)
    (tmp_path / f"{pinned}.arrow").write_bytes(b"words")  # only on the disk of this machine
    assert busy.run("backup", str(file), "--include-keys") == 1
    assert (
        f"{missing}: run ./rowsmith vocab install {missing}, then create another backup"
        in capsys.readouterr().out
    )
    (tmp_path / f"{pinned}.arrow").unlink()
    there = new_place("sqlite")
    assert there.run("restore", str(file)) == 0
    assert b"".join(there.store.get(vocabularies.key_of(pinned))) == b"words"


def test_sealed_keys_come_back_with_their_passphrase(busy, new_place, file, tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "BACKUP_SCRYPT_COST", 16)
    phrase, wrong = tmp_path / "phrase", tmp_path / "wrong"
    phrase.write_text("correct horse battery\n")
    wrong.write_text("correct horse batterz\n")
    assert busy.run("backup", str(file), "--passphrase-file", str(phrase)) == 0
    there = new_place("sqlite")
    with pytest.raises(CliError, match="are encrypted: specify the file with the passphrase"):
        there.run("restore", str(file))
    with pytest.raises(CliError, match="The passphrase is wrong"):
        there.run("restore", str(file), "--passphrase-file", str(wrong))
    assert there.run("restore", str(file), "--passphrase-file", str(phrase)) == 0
    assert f"SECRET_KEY={SECRET_KEY}" in (there.data / "keys.env").read_text()


def test_rows_whose_file_is_gone_are_named_and_the_command_fails(busy, file, capsys):
    with busy.app().app_context(), write_session() as session:
        session.query(Export).update({"storage_key": "exports/lost.csv"})
    assert busy.run("backup", str(file), "--include-keys") == 1
    assert (
        "exports/lost.csv, referenced by a row of exports, is not in the storage" in capsys.readouterr().out
    )
    assert busy.run("backup", str(file), "--verify") == 1


def test_every_column_that_the_vault_seals_is_called_so_that_it_is_found():
    binary = {f"{column}" for table in Base.metadata.tables.values() for column in table.columns
              if isinstance(column.type, sa.LargeBinary)}  # fmt: skip
    others = {"audit_seals.links", "idempotency_records.body"}  # hashes; sealed by the caller's own key
    assert {item for item in binary if ".sealed" not in item} == others


def test_every_column_that_refers_to_stored_bytes_is_covered():
    named = {(table.name, column.name) for table in Base.metadata.tables.values() for column in table.columns
             if column.name.endswith("_key") and isinstance(column.type, sa.String)}  # fmt: skip
    values = {
        ("key_map_entries", "old_key"),
        ("key_map_entries", "new_key"),
    }  # keys of rows, which name no bytes
    assert named == {*backup.FILE_COLUMNS, *backup.CACHE_FILE_COLUMNS, *values}


def test_a_service_that_runs_is_not_restored_over(place, file):
    from webapp.cli.datadir import DataDir

    assert place.run("backup", str(file), "--include-keys") == 0
    stored = DataDir(place.data)
    stored.lock()
    try:
        with pytest.raises(CliError, match="already running"):
            place.run("restore", str(file), "--force-empty")
    finally:
        stored.release()
    shutil.rmtree(place.data)
