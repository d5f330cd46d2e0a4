"""The leak report in a browser: stopped exports and pushes name the column, completed ones show what was checked, and
coincidences are shown with the number expected by chance."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from jobs import exports
from jobs.pushes import push as push_job
from tests.cast import Program
from tests.views.speak import make
from tests.views.targets import sqlite_target
from tests.views.test_real_data import as_csv
from tests.views.uploading import send
from webapp.extensions import db

PEOPLE = [
    {"id": n, "email": f"person.{n}@corp.test", "code": f"{1000 + 3 * n}", "note": "none"}
    for n in range(1, 1001)
]
PLANTED = [
    dict(person, note=f"ask {person['email'].upper()}") if person["id"] == 701 else person
    for person in PEOPLE
]
FIELDS = [
    {"name": "id", "type": "source_column"},
    {"name": "mail", "type": "email", "column": "email", "sensitive": True},
    {"name": "code", "type": "source_column", "masking": {"strategy": "format_preserve"}},
    {"name": "note", "type": "source_column"},
]
TABLE = "CREATE TABLE people (id INTEGER PRIMARY KEY, mail VARCHAR(80), code VARCHAR(9), note VARCHAR(80))"


@pytest.fixture
def program(app, cast):
    return Program(app, cast.edith.key)


@pytest.fixture
def over(program):
    """`over(rows)`: the address of a template over a file of them."""

    def template(rows):
        send(program, "people.csv", as_csv(rows))
        return (
            f"/templates/{make(program, name='people', fields=FIELDS, source={'file': 'people.csv'})['id']}"
        )

    return template


def done(app, job, id):
    with app.app_context():
        job.run(id)
        db.session.remove()


def test_an_export_with_a_survivor_names_its_column_and_shows_no_real_value(app, edith, program, over):
    export = program.post(f"{over(PLANTED)}/exports", json={"seed": "s"}).json["id"]
    done(app, exports, export)
    page = edith.page(f"/exports/{export}")
    expect(page.locator("#work .badge").first).to_have_text("Failed")
    fault = page.locator(".note-box.bad")
    expect(fault).to_contain_text("leak_found")
    expect(fault).to_contain_text('"mail"')
    expect(fault).to_contain_text("note")
    expect(fault).to_contain_text("701")
    expect(page.get_by_role("link", name="Download")).to_have_count(0)
    assert "corp.test" not in page.content().lower()


def test_a_push_with_a_survivor_names_its_column_and_shows_no_real_value(app, cast, edith, program, over):
    target = sqlite_target(app, cast, TABLE)
    ask = {"connection_id": target.connection_id, "target": "people", "seed": "s"}
    push = program.post(f"{over(PLANTED)}/push", json=ask).json["id"]
    done(app, push_job, push)
    page = edith.page(f"/pushes/{push}")
    expect(page.locator("#work header .badge").first).to_have_text("Failed")
    expect(page.locator(".note-box.bad")).to_contain_text('"mail"')
    assert "corp.test" not in page.content().lower()


def test_coincidences_are_shown_next_to_the_number_expected_by_chance(app, cast, edith, program, over):
    path = over(PEOPLE)
    export = program.post(f"{path}/exports", json={"seed": "s"}).json["id"]
    done(app, exports, export)
    target = sqlite_target(app, cast, TABLE)
    ask = {"connection_id": target.connection_id, "target": "people", "seed": "s"}
    push = program.post(f"{path}/push", json=ask).json["id"]
    done(app, push_job, push)
    for address, where in (
        (f"/exports/{export}", f"/exports/{export}"),
        (f"/pushes/{push}", f"/pushes/{push}"),
    ):
        result = {column["column"]: column for column in program.get(address).json["leaks"][0]["columns"]}
        seen = result["code"]["whole_column"]
        assert seen["kind"] == "counted"
        assert (
            50 < seen["found"] < 200
        )  # a third of the codes from 1000 to 4000 are real, of those that there could be
        assert abs(seen["found"] - seen["expected"]) < 60
        page = edith.page(where)
        report = page.get_by_role("region", name="Leak check")
        expect(report.locator("header")).to_contain_text("0 original values remain in their own row")
        mail, code = report.locator("tbody tr").all()
        expect(mail).to_contain_text("from email")
        expect(mail).to_contain_text("0 of 1,000 original values")
        expect(code).to_contain_text("format_preserve")
        expect(code).to_contain_text(
            re.compile(rf"{seen['found']}\s+chance match(es)?\s+\({seen['expected']:.1f} expected\)")
        )
        page.close()
