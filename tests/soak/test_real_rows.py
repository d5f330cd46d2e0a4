"""Real data in earnest: 100,000 rows of a file to every kind of target and a million into a file, and none survives."""

from __future__ import annotations

import json

import pytest

from tests.connectors.odata_documents import V2
from tests.fakes.echo_target import EchoTarget
from tests.views.conftest import edith, work  # noqa: F401
from tests.views.speak import make
from tests.views.targets import connection, sqlite_target
from tests.views.targets import work as send_rows  # noqa: F401
from tests.views.uploading import send

ROWS = 100_000
FIELDS = [
    {"name": "id", "type": "source_column"},
    {"name": "email", "type": "email", "sensitive": True},
    {"name": "phone", "type": "phone_number", "masking": {"strategy": "format_preserve"}},
]


def content(rows: int) -> bytes:
    """E-mail addresses and telephone numbers, every one of them once."""
    lines = (f"{n},p{n}@corp.test,+49 170 {n:08}\n" for n in range(rows))
    return b"id,email,phone\n" + "".join(lines).encode()


@pytest.fixture
def people(edith):
    def made(rows: int, fields=FIELDS) -> str:
        answer = send(edith, "people.csv", content(rows))
        assert answer.status_code in (200, 201), answer.json
        source = {"file": "people.csv"}
        return f"/templates/{make(edith, name='People', fields=fields, source=source)['id']}"

    return made


def clean(report, rows: int) -> None:
    [table] = report
    assert {column["column"]: (column["values"], column["survivors"]) for column in table["columns"]} == {
        "email": (rows, 0),
        "phone": (rows, 0),
    }


@pytest.mark.parametrize("rows", [ROWS, 1_000_000])
def test_a_file_of_distinct_people_has_as_many_others_and_none_of_them(edith, people, work, rows):
    created = edith.post(f"{people(rows)}/exports", json={"format": "csv", "seed": "s"})
    assert created.status_code == 201, created.json
    work(created.json["id"])
    export = edith.get(f"/exports/{created.json['id']}").json
    assert (export["status"], export["rows_done"]) == ("completed", rows), export["error"]
    clean(export["leaks"], rows)
    lines = edith.get(f"/exports/{created.json['id']}/download").data.decode().splitlines()[1:]
    cells = [line.split(",") for line in lines]
    assert len({cell[1] for cell in cells}) == len({cell[2] for cell in cells}) == rows
    assert not any("@corp.test" in cell[1] for cell in cells)
    assert not any(cell[2].endswith(f" {int(cell[0]):08}") for cell in cells)


def test_a_database_gets_no_real_value(app, cast, edith, people, send_rows):
    target = sqlite_target(app, cast, "CREATE TABLE people (id INTEGER PRIMARY KEY, email TEXT, phone TEXT)")
    ask = {"connection_id": target.connection_id, "target": "people", "seed": "s"}
    push = edith.post(f"{people(ROWS)}/push", json=ask).json
    send_rows(push["id"])
    push = edith.get(f"/pushes/{push['id']}").json
    assert push["counts"]["delivered"] == ROWS
    clean(push["leaks"], ROWS)
    assert target.count("people") == ROWS
    assert target.execute("SELECT count(*) FROM people WHERE email LIKE '%@corp.test'") == [(0,)]
    same = "SELECT count(*) FROM people WHERE phone = '+49 170 ' || printf('%08d', id)"
    assert target.execute(same) == [(0,)]


@pytest.mark.parametrize("kind", ["rest", "odata"])
def test_neither_does_a_service(app, cast, edith, people, send_rows, kind):
    with EchoTarget() as target:
        if kind == "rest":
            settings = {"base_url": target.url("/api"), "push_mode": "batch", "batch_size": 500}
            where, fields = "people", FIELDS
        else:
            settings, where = {"service_url": target.url("/sap"), "csrf": "off"}, "CustomerSet"
            # The service takes names of 40 characters, and an e-mail address may have more.
            name = {
                "name": "Name",
                "type": "username",
                "column": "email",
                "masking": {"strategy": "tokenize"},
            }
            fields = [{"name": "Id", "type": "source_column", "column": "id"}, name]
        stored = connection(app, cast, kind, settings)
        if kind == "odata":
            edith.put(f"/connections/{stored}/metadata-document", data=V2)
        ask = {"connection_id": stored, "target": where, "seed": "s"}
        push = edith.post(f"{people(ROWS, fields)}/push", json=ask)
        assert push.status_code == 201, push.json
        send_rows(push.json["id"])
        push = edith.get(f"/pushes/{push.json['id']}").json
        assert push["counts"]["delivered"] == ROWS
        assert all(column["survivors"] == 0 for column in push["leaks"][0]["columns"])
        sent = [row for item in target.seen if item.method == "POST" for row in _rows(item.json)]
        assert len(sent) == ROWS
        assert not any("corp.test" in json.dumps(row) for row in sent)


def _rows(body) -> list:
    return body if isinstance(body, list) else [body]
