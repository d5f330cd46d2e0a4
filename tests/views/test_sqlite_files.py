"""SQLite files of one project, and everything by which another team could try to reach them; how many there may
be, and how large they may grow together."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import pytest
import sqlalchemy as sa

from webapp import limits
from webapp.connections.models import Connection
from webapp.connections.services import sqlite_files
from webapp.extensions import db
from webapp.operations import purge

URL = "/connections"


def make(program, file: str = "aaa.db", **more):
    return program.post(URL, json={"name": file, "type": "sqlite", "settings": {"file": file}, **more})


def filled(settings, workspace: str) -> Path:
    """Puts a row into the only file there is."""
    (path,) = list((Path(settings.data_dir) / "targets" / workspace).rglob("*.db"))
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE t (secret TEXT)")
        connection.execute("INSERT INTO t VALUES ('of team Blue')")
    connection.close()
    return path


def read(program, connection_id: str, query: str = "select secret from t") -> str:
    field = {"name": "q", "type": "db_response", "options": {"connection_id": connection_id, "query": query}}
    return program.post("/preview", json={"fields": [field], "fetch": True}).text


@pytest.mark.parametrize(
    "spelled",
    [{"file": "aaa.db"}, {"connection_string": "sqlite:///aaa.db"}, {"connection_string": "aaa.db"}],
)
def test_a_connection_of_another_team_with_the_same_file_name_has_another_file(
    rita, tessa, settings, cast, spelled
):
    mine = make(tessa).json["id"]
    filled(settings, cast.acme)
    theirs = rita.post(URL, json={"name": "x", "type": "sqlite", "settings": spelled}).json
    assert theirs["verification"]["status"] == "verified"
    assert "of team Blue" in read(tessa, mine)
    assert "of team Blue" not in read(rita, theirs["id"])
    assert rita.get(f"{URL}/{theirs['id']}/metadata").json["entities"] == []


def test_connections_of_one_project_share_a_file(tessa, settings, cast):
    make(tessa)
    filled(settings, cast.acme)
    assert "of team Blue" in read(tessa, make(tessa).json["id"])


@pytest.mark.parametrize(
    "file",
    [
        "../aaa.db",
        "a/b.db",
        "a.db?mode=ro",
        "file:aaa.db",
        "aaa.db-wal",
        "aaa.db-journal",
        ".aaa.db",
        "aaa.db ",
        "a\\b",
    ],
)
def test_names_that_lead_elsewhere_are_rejected(rita, file):
    assert make(rita, file).status_code == 422


def test_a_changed_file_name_reaches_no_file_of_another_team(rita, tessa, settings, cast):
    make(tessa)
    filled(settings, cast.acme)
    other = make(rita, "bbb.db").json["id"]
    changed = rita.patch(f"{URL}/{other}", json={"settings": {"file": "aaa.db"}})
    assert changed.status_code == 200
    assert "of team Blue" not in read(rita, other)


def test_connections_from_before_keep_their_file_and_new_ones_of_others_do_not_get_it(
    app, rita, tessa, settings, cast
):
    old = make(tessa).json["id"]
    path = filled(settings, cast.acme)
    path.rename(path.parent.parent / "aaa.db")
    with app.app_context():
        db.session.execute(sa.update(Connection).where(Connection.id == old).values(file_folder=None))
        db.session.commit()
        db.session.remove()
    assert "of team Blue" in read(tessa, old)
    assert "of team Blue" in read(tessa, make(tessa).json["id"]), "the same project names the same file"
    assert "of team Blue" not in read(rita, make(rita).json["id"])
    other = make(rita, "bbb.db").json["id"]
    with app.app_context():
        db.session.execute(sa.update(Connection).where(Connection.id == other).values(file_folder=None))
        db.session.commit()
        db.session.remove()
    rita.patch(f"{URL}/{other}", json={"settings": {"file": "aaa.db"}})
    assert "of team Blue" not in read(rita, other), (
        "a connection from before does not take another file along"
    )


def test_a_moved_connection_takes_its_file_along(api, cast, tessa, settings):
    edith = api(cast.edith)
    mine = make(tessa).json["id"]
    filled(settings, cast.acme)
    assert edith.post(f"/projects/{cast.red_project}/move", json={"objects": [mine]}).status_code == 200
    assert "of team Blue" in read(edith, mine)
    assert "of team Blue" not in read(tessa, make(tessa).json["id"])


def test_an_unsaved_connection_is_tried_without_reaching_or_leaving_a_file(rita, tessa, settings, cast):
    make(tessa)
    filled(settings, cast.acme)
    body = {"name": "x", "type": "sqlite", "settings": {"file": "aaa.db"}}
    answer = rita.post("/compat/connections/test", json=body)
    assert answer.status_code == 200
    assert "No tables yet" in answer.text
    assert len(list((Path(settings.data_dir) / "targets").rglob("*.db"))) == 1
    assert "Read from t" in tessa.post("/compat/connections/test", json=body).text


def test_attach_is_rejected(rita, settings, cast):
    mine = make(rita).json["id"]
    for query in ("attach 'x.db' as x", "vacuum into 'y.db'", "select * from pragma_database_list"):
        read(rita, mine, query)
    assert len(list((Path(settings.data_dir) / "targets").rglob("*.db"))) == 1


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(limits, "MAX_SQLITE_FILES", 3)


def test_the_number_of_files_is_bounded(tessa, rita, few, settings):
    for number in range(3):
        assert make(tessa, f"f{number}.db").status_code == 201
    over = make(rita, "over.db")
    assert (over.status_code, over.json["error"]["code"]) == (429, "quota_exceeded")
    assert make(tessa, "f0.db").status_code == 201, "a file that is there already"
    assert len(list((Path(settings.data_dir) / "targets").rglob("*.db"))) == 3


def test_twenty_connections_at_the_same_time_do_not_exceed_the_number(api, cast, few, settings):
    ready, answers = threading.Barrier(20), []

    def call(number):
        mine = api(cast.edith)
        ready.wait()
        answers.append(make(mine, f"f{number}.db").status_code)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [201] * 3 + [429] * 17
    assert len(list((Path(settings.data_dir) / "targets").rglob("*.db"))) == 3


def test_deleting_and_creating_connections_does_not_fill_the_disk(tessa, few, settings):
    ids = []
    for number in range(9):
        ids.append(make(tessa, f"f{number}.db").json["id"])
        tessa.delete(f"{URL}/{ids[-1]}")
    assert len(list((Path(settings.data_dir) / "targets").rglob("*.db"))) <= 3
    assert [tessa.post(f"{URL}/{item}/restore").status_code for item in ids[-4:]] == [200, 200, 200, 429]


def test_files_together_grow_no_further_than_their_quota(app, tessa, few, settings, cast, monkeypatch):
    monkeypatch.setattr(limits, "SQLITE_GROWTH_BYTES", 100_000)
    monkeypatch.setattr(limits, "SQLITE_WORKSPACE_BYTES", 1_000_000)
    sessions = []
    with app.app_context():
        from webapp.connections.services.access import open_session

        for number in range(3):
            found = db.session.get_one(Connection, make(tessa, f"f{number}.db").json["id"])
            sessions.append(open_session(found))
        db.session.remove()
    for session in sessions:
        session.execute("CREATE TABLE t (x TEXT)")
    failed: list[str] = []

    def write(session):
        for _ in range(40):
            try:
                session.execute("INSERT INTO t VALUES (hex(zeroblob(20000)))")
            except Exception as error:
                failed.append(error.reason)

    threads = [threading.Thread(target=write, args=(item,)) for item in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for session in sessions:
        session.close()
    with app.app_context():
        used, number = sqlite_files.usage(cast.acme)
    assert set(failed) == {"full"}
    assert number == 3
    assert used <= 1_000_000


def test_files_that_no_connection_names_any_more_are_removed(app, tessa, settings):
    mine = make(tessa).json["id"]
    stored = make(tessa, "bbb.db").json["id"]
    with app.app_context():
        assert sqlite_files.delete_unused() == 0
        db.session.execute(sa.delete(Connection).where(Connection.id == mine))
        db.session.commit()
        assert sqlite_files.delete_unused() == 1
        db.session.remove()
    (left,) = (Path(settings.data_dir) / "targets").rglob("*.db")
    assert left.parent.name == stored
    assert purge.sqlite_files is sqlite_files
