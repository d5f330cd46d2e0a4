"""The pages of connections and secrets: made by a form, tested, looked into, with and without a script."""

from __future__ import annotations

import sqlite3

import pytest

from webapp.connectors import KINDS

FORM = {"type": "sqlite", "name": "Box", "settings.file": "box.db", "environment": "dev"}
PG = {
    "type": "postgresql",
    "name": "PG",
    "settings.host": "127.0.0.1",
    "settings.port": "9",
    "settings.file": "",
}


@pytest.fixture
def page(browser, cast):
    return browser(cast.edith)


def made(page, **more):
    answer = page.submit("/connections/new", data={**FORM, **more})
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


def test_an_empty_project_shows_how_to_start(page):
    assert "New SQLite file" in page.get("/connections").text


@pytest.mark.parametrize("kind", ["postgresql", "mysql", "sqlite", "db2"])
def test_each_kind_has_a_form_for_its_settings(page, kind):
    text = page.get(f"/connections/new?type={kind}").text
    assert ('name="settings.file"' in text) == (kind == "sqlite")
    assert ('name="settings.password"' in text) == (kind != "sqlite")


def test_every_kind_can_be_chosen(page):
    text = page.get("/connections/new").text
    assert [kind for kind, item in KINDS.items() if item.title not in text] == []
    assert "needs an extra package" in text


def test_a_connection_made_by_its_form_is_tested_and_shown(page):
    where = made(page)
    shown = page.get(where).text
    assert "verified" in shown
    assert "Readable and writable." in shown


def test_a_port_is_a_number_in_a_form_too(page):
    where = made(page, **PG)
    assert "No server is listening on 127.0.0.1:9" in page.get(where).text


def test_errors_are_shown_at_their_fields_and_all_input_is_kept(page):
    answer = page.submit("/connections/new", data={**FORM, "settings.file": "../etc/passwd"})
    assert answer.status_code == 422
    assert "not a plain file name" in answer.text
    assert 'value="../etc/passwd"' in answer.text


def test_a_saved_password_is_not_in_the_form_and_stays_when_that_is_saved(page):
    body = dict(PG)
    where = made(page, **{**body, "settings.password": "canary-91x"})
    form = page.get(f"{where}/edit").text
    assert "canary-91x" not in form
    assert 'value="********"' in form
    body["settings.password"] = "********"
    again = page.submit(f"{where}/edit", data={**body, "name": "Renamed"})
    assert again.status_code == 303
    assert "Renamed" in page.get(where).text


def test_tables_are_shown_and_become_linked_templates(page, settings, cast):
    where = made(page)
    file = sqlite3.connect(next((settings.data_dir / "targets" / cast.acme).rglob("box.db")))
    file.executescript(
        "create table owner(id integer primary key, name varchar(20) not null);"
        "create table pet(id integer primary key, owner_id integer not null references owner(id), name text);"
    )
    file.close()
    shown = page.get(f"{where}/tables?refresh=true").text
    assert "owner_id" in shown
    answer = page.submit(f"{where}/tables", data={"entities": ["owner", "pet"]})
    assert "2 linked templates" in answer.text


def test_an_unavailable_target_is_reported_instead_of_its_tables(page):
    text = page.get(f"{made(page, **PG)}/tables").text
    assert "Connection refused" in text


def test_secrets_are_stored_by_a_form_that_never_shows_them(browser, cast):
    page = browser(cast.adam)
    assert page.submit("/secrets", data={"name": "db", "value": "canary-4c1"}).status_code == 303
    text = page.get("/secrets").text
    assert "${db}" in text
    assert "canary-4c1" not in text
    assert "must start with a letter" in page.submit("/secrets", data={"name": "1 x", "value": "v"}).text
