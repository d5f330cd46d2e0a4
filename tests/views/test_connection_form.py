"""The form of a connection: a test before saving, values that survive a change of kind, links from failing stages."""

from __future__ import annotations

import re

import pytest

from tests.cast import Browser

SERVER = {
    "type": "postgresql",
    "name": "Warehouse",
    "settings.host": "127.0.0.1",
    "settings.port": "1",
    "settings.database": "shop",
}


@pytest.fixture
def edith(app, cast) -> Browser:
    return Browser(app, cast.edith)


def test_settings_are_tested_before_they_are_saved(api, cast, edith):
    page = edith.submit("/connections/new", {**SERVER, "do": "test"}).text
    assert "Failed" in page
    assert 'href="#settings.port"' in page  # the stage that failed leads to its setting
    assert 'value="Warehouse"' in page
    assert 'value="127.0.0.1"' in page
    assert api(cast.edith).get("/connections").json["total"] == 0


def test_a_blocked_network_leads_to_the_setting_of_the_server(edith):
    page = edith.submit("/connections/new", {**SERVER, "settings.host": "169.254.169.254", "do": "test"}).text
    assert "/docs/reference/settings#target_networks" in page


def test_errors_of_settings_are_at_their_fields_when_tested(edith):
    page = edith.submit("/connections/new", {"type": "postgresql", "do": "test"})
    assert page.status_code == 422
    assert re.search(r"(?i)host", " ".join(re.findall(r"problems.*?</div>", page.text, re.DOTALL)))


def test_typed_values_survive_a_change_of_kind_and_back(edith):
    typed = {**SERVER, "settings.schema": "sales", "settings.password": "s3cret-word"}
    mysql = edith.submit("/connections/new", {**typed, "do": "kind:mysql"}).text
    assert 'value="127.0.0.1"' in mysql
    assert 'value="shop"' in mysql
    assert 'type="hidden" name="settings.schema" value="sales"' in mysql
    back = edith.submit("/connections/new", {**typed, "type": "mysql", "do": "kind:postgresql"}).text
    assert 'type="hidden" name="settings.schema"' not in back
    assert 'value="sales"' in back


def test_a_sqlite_file_is_tested_when_it_is_saved(edith):
    page = edith.submit("/connections/new", {"type": "sqlite", "settings.file": "a.db", "do": "test"})
    assert "when you save the connection" in page.text


def test_a_saved_connection_is_tested_with_changed_settings(api, cast, edith):
    program = api(cast.edith)
    created = program.post(
        "/connections",
        json={
            "name": "W",
            "type": "postgresql",
            "settings": {"host": "127.0.0.1", "port": 1, "database": "d"},
        },
    ).json["id"]
    page = edith.submit(f"/connections/{created}/edit", {**SERVER, "settings.port": "2", "do": "test"}).text
    assert "Failed" in page
    assert program.get(f"/connections/{created}").json["settings"]["port"] == 1
    assert "/edit#settings.port" in edith.get(f"/connections/{created}").text
