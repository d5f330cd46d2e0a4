"""Pushes of invalid rows: the push reports which ones the target rejected or accepted, and valid rows arrive."""

from __future__ import annotations

import html
import re

import pytest

from tests.connectors.kind_mysql import URL, MysqlKind
from tests.fakes.echo_target import Answer, EchoTarget
from tests.views.speak import make
from tests.views.targets import Target, connection, postgres_target, sqlite_target, work  # noqa: F401

TABLE = """
CREATE TABLE people (
    id INTEGER PRIMARY KEY, email VARCHAR(60) NOT NULL, age INTEGER NOT NULL CHECK (age BETWEEN 18 AND 99),
    born DATE NOT NULL, active BOOLEAN NOT NULL
);
"""
KINDS = {
    "age": ["wrong_type", "out_of_range"],
    "born": ["bad_format", "wrong_type"],
    "active": ["wrong_type"],
}
FIELDS = [
    {"name": "id", "type": "row_number"},
    {"name": "email", "type": "email"},
    {"name": "age", "type": "number", "options": {"min": 18, "max": 99}},
    {"name": "born", "type": "date", "options": {"min": "1950-01-01", "max": "2005-12-31"}},
    {"name": "active", "type": "boolean"},
]


def spoilt(**kinds):
    return [
        {**field, "invalid": {"rate": 0.05, "kinds": kinds[field["name"]]}}
        if field["name"] in kinds
        else field
        for field in FIELDS
    ]


def pushed(program, work, target, fields, count=600):
    path = f"/templates/{make(program, name='People', fields=fields)['id']}"
    ask = {"connection_id": target.connection_id, "target": "people", "count": count, "seed": "s"}
    answer = program.post(f"{path}/push", json=ask)
    assert answer.status_code == 201, answer.json
    work(answer.json["id"])
    key = program.post(f"{path}/answers", json={"count": count, "seed": "s"}).json
    return f"/pushes/{answer.json['id']}", {item["row"] for item in key}


def ids(target):
    return {item[0] for item in target.execute("SELECT id FROM people")}


def test_postgresql_rejects_every_invalid_row_and_accepts_every_valid_one(
    app, cast, edith, work, postgres_url
):
    with postgres_target(app, cast, postgres_url, TABLE) as target:
        push, bad = pushed(edith, work, target, spoilt(**KINDS), 300)
        assert len(bad) > 35
        failed = {item["row"] for item in edith.get(f"{push}/rows?state=failed&limit=100").json["items"]}
        assert failed == bad
        assert ids(target) == set(range(1, 301)) - bad
        result = edith.get(f"{push}/bad").json
    assert result == {"bad": len(bad), "refused": len(bad), "taken": 0, "unknown": 0, "good_refused": 0}


def test_mariadb_rejects_every_invalid_row_and_accepts_every_valid_one(app, cast, edith, work, tmp_path):
    if (reason := MysqlKind.unavailable()) is not None:
        pytest.skip(reason)
    kind = MysqlKind(tmp_path)
    kind.start()
    try:
        kind.run(TABLE)
        outcome = connection(app, cast, "mysql", {"connection_string": URL, "database": kind.place})
        target = Target(outcome, kind.run)
        push, bad = pushed(edith, work, target, spoilt(**KINDS), 300)
        assert len(bad) > 35
        assert ids(target) == set(range(1, 301)) - bad
        result = edith.get(f"{push}/bad").json
        assert result == {"bad": len(bad), "refused": len(bad), "taken": 0, "unknown": 0, "good_refused": 0}
    finally:
        kind.stop()


def test_a_rest_target_gets_invalid_rows_and_accepted_ones_are_reported(app, cast, edith, work):
    def careful(seen):
        """Looks at the age, and at nothing else."""
        return Answer(201 if isinstance(seen.json["age"], int) else 422)

    with EchoTarget() as target:
        target.on("/people", careful)
        outcome = connection(
            app, cast, "rest", {"base_url": target.url("/"), "retry": {"backoff_seconds": [0, 0, 0]}}
        )
        fields = spoilt(age=["wrong_type"], born=["bad_format"])
        push, bad = pushed(edith, work, Target(outcome, lambda _: []), fields, 200)
        sent = {int(call.headers["x-rowsmith-row"]): call.json for call in target.calls("/people")}
    result = edith.get(f"{push}/bad").json
    texts = {row for row, item in sent.items() if isinstance(item["age"], str)}
    assert len(sent) == 200
    assert texts < bad
    assert (result["bad"], result["refused"], result["taken"]) == (len(bad), len(texts), len(bad - texts))
    assert result["good_refused"] == result["unknown"] == 0


def test_invalid_rows_accepted_by_the_target_are_reported(app, cast, edith, work):
    target = sqlite_target(app, cast, TABLE)
    kinds = {"email": ["injection"], "age": ["out_of_range"]}
    push, bad = pushed(edith, work, target, spoilt(**kinds))
    result = edith.get(f"{push}/bad").json
    assert result["bad"] == len(bad)
    assert result["taken"] + result["refused"] == len(bad)
    assert (result["refused"], result["good_refused"]) == (600 - len(ids(target)), 0)
    assert min(result["taken"], result["refused"]) > 20  # injections are texts like others, ages are checked


def test_wrongly_rejected_rows_are_counted_separately(app, cast, edith, work):
    target = sqlite_target(app, cast, TABLE.replace("BETWEEN 18 AND 99", "BETWEEN 18 AND 60"))
    push, bad = pushed(edith, work, target, spoilt(age=["out_of_range"]))
    result = edith.get(f"{push}/bad").json
    assert (result["bad"], result["refused"], result["taken"]) == (len(bad), len(bad), 0)
    assert result["good_refused"] == 600 - len(bad) - len(ids(target)) > 0


def test_a_push_without_invalid_rows_says_so(app, cast, edith, work):
    push, _ = pushed(edith, work, sqlite_target(app, cast, TABLE), FIELDS, 10)
    result = {"bad": 0, "refused": 0, "taken": 0, "unknown": 0, "good_refused": 0}
    assert edith.get(f"{push}/bad").json == result


def test_a_dry_run_shows_the_bad_values(app, cast, edith):
    target = sqlite_target(app, cast, TABLE)
    all_bad = {**FIELDS[2], "invalid": {"rate": 1, "kinds": ["wrong_type"]}}
    fields = [*FIELDS[:2], all_bad, *FIELDS[3:]]
    path = f"/templates/{make(edith, name='People', fields=fields)['id']}"
    ask = {
        "connection_id": target.connection_id,
        "target": "people",
        "count": 3,
        "seed": "s",
        "dry_run": True,
    }
    created = edith.post(f"{path}/push", json=ask)
    assert created.status_code == 200, created.json
    assert {item["column"] for item in created.json["misfits"] if item["reason"] == "wrong_type"} == {"age"}


def test_the_page_of_a_push_describes_it_in_words(app, cast, edith, work, browser):
    target = sqlite_target(app, cast, TABLE)
    push, _ = pushed(edith, work, target, spoilt(age=["out_of_range"]))
    page = browser(cast.edith).get(push).get_data(as_text=True)
    assert re.search(r"Negative test: all \d+ invalid rows were rejected", page)
    assert "Expected failures" in page


def test_retries_do_not_change_the_verdict_and_reasons_separate_expected_failures(
    app, cast, edith, work, browser
):
    target = sqlite_target(app, cast, TABLE.replace("BETWEEN 18 AND 99", "BETWEEN 18 AND 60"))
    push, bad = pushed(edith, work, target, spoilt(age=["out_of_range"]))
    before = edith.get(f"{push}/bad").json
    assert before["good_refused"] > 0
    page = browser(cast.edith)
    text = html.unescape(page.get(push).text)
    assert text.index(">Unexpected<") < text.index(">Expected<")
    links = re.findall(r'<a href="(/pushes/[^"]+/failures\?[^"]+)"', text)
    assert len(links) == 2
    panel = page.get(links[0])
    assert panel.status_code == 200
    fixed = page.get(
        f"{links[0]}&r[0].column=age&r[0].how=value&r[0].to=30", headers={"HX-Request": "true"}
    ).text
    assert re.findall(r'class="after">(\d+)<', fixed) == ["30"] * 13
    values = dict(re.findall(r'name="(of\.\w+|states|table)" value="([^"]*)"', panel.text))
    fix = {**values, "r[0].column": "age", "r[0].how": "value", "r[0].to": "30"}
    again = page.submit(f"{push}/repair", fix)
    assert again.status_code == 303, again.text

    work(again.headers["Location"].rsplit("/", 1)[1])
    sent = set(edith.get(again.headers["Location"]).json["request"]["again"]["rows"])
    assert len(sent) == before["good_refused"]
    assert not sent & bad  # expected failures are not sent again
    assert len(ids(target)) == 600 - len(bad)
    assert edith.get(f"{push}/bad").json == before
    assert f"{before['good_refused']} valid rows rejected" in page.get(push).text


ERP = b"""<?xml version="1.0" encoding="utf-8"?>
<edmx:Edmx Version="4.0" xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx"><edmx:DataServices>
 <Schema Namespace="ERP" xmlns="http://docs.oasis-open.org/odata/ns/edm">
  <EntityType Name="Person"><Key><PropertyRef Name="id"/></Key>
   <Property Name="id" Type="Edm.Int32" Nullable="false"/>
   <Property Name="email" Type="Edm.String" MaxLength="200"/>
   <Property Name="age" Type="Edm.Int32"/>
   <Property Name="born" Type="Edm.Date"/>
   <Property Name="active" Type="Edm.Boolean"/>
  </EntityType>
  <EntityContainer Name="Container"><EntitySet Name="people" EntityType="ERP.Person"/></EntityContainer>
 </Schema></edmx:DataServices></edmx:Edmx>"""


def _judged(person):
    """The response of a strict service, which accepts any e-mail address with an @."""
    adult = 18 <= person["age"] <= 99
    return Answer(201, person) if adult and "@" in (person.get("email") or "") else Answer(422)


def test_an_odata_service_gets_bad_rows_as_they_are_unless_its_types_cannot_hold_them(app, cast, edith, work):
    fields = spoilt(age=["wrong_type", "out_of_range"], born=["bad_format"])
    fields[1] = {**fields[1], "invalid": {"rate": 0.1, "kinds": ["bad_format", "unicode_edge", "missing"]}}
    with EchoTarget() as target:
        target.on("/erp/people", lambda seen: _judged(seen.json))
        outcome = connection(app, cast, "odata", {"service_url": target.url("/erp"), "csrf": "off"})
        assert edith.put(f"/connections/{outcome}/metadata-document", data=ERP).status_code == 200
        path = f"/templates/{make(edith, name='People', fields=fields)['id']}"
        ask = {"connection_id": outcome, "target": "people", "count": 300, "seed": "s"}
        answer = edith.post(f"{path}/push", json=ask)
        assert answer.status_code == 201, answer.json
        work(answer.json["id"])
        sent = {call.json["id"]: call.json for call in target.calls("/erp/people")}
    push = f"/pushes/{answer.json['id']}"
    rows = {
        item["id"]: item for item in edith.post(f"{path}/generate", json={"count": 300, "seed": "s"}).json
    }
    kinds = {}
    for item in edith.post(f"{path}/answers", json={"count": 300, "seed": "s"}).json:
        kinds.setdefault(item["row"], set()).add((item["field"], item["kind"]))
    unspeakable = {
        row for row, found in kinds.items() if {("age", "wrong_type"), ("born", "bad_format")} & found
    }
    assert len(unspeakable) > 15
    assert sent == {row: item for row, item in rows.items() if row not in unspeakable}
    refused = unspeakable | {row for row, item in sent.items() if _judged(item).status == 422}
    failed = edith.get(f"{push}/rows?state=failed&limit=100").json["items"]
    assert {item["row"] for item in failed} == refused <= set(kinds)
    assert {item["code"] for item in failed if item["row"] in unspeakable} == {"wrong_type"}
    taken = set(kinds) - refused
    # Invalid addresses that contain an @ are accepted; whether there are any depends on the random ids of the fields.
    assert (
        {"unicode_edge"}
        <= {kind for row in taken for _, kind in kinds[row]}
        <= {"unicode_edge", "bad_format"}
    )
    result = {
        "bad": len(kinds),
        "refused": len(refused),
        "taken": len(taken),
        "unknown": 0,
        "good_refused": 0,
    }
    assert edith.get(f"{push}/bad").json == result
