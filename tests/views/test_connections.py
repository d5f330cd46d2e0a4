"""Connections over the API: kept, verified and looked into, and nothing secret ever comes back."""

from __future__ import annotations

import logging
import os
import sys
import tomllib

import pytest

from tests.views.speak import faults
from webapp.connectors.base import DRIVER_PACKAGES, DriverMissing
from webapp.paths import ROOT

SECRET = "canary-7f3a9c"


@pytest.fixture
def box(edith):
    """A SQLite connection, as the API shows it."""
    answer = edith.post(
        "/connections", json={"name": "Box", "type": "sqlite", "settings": {"file": "box.db"}}
    )
    assert answer.status_code == 201
    return answer.json


def sealed(edith, **more):
    settings = {"host": "127.0.0.1", "port": 9, "username": "tester", "password": SECRET, **more}
    return edith.post("/connections", json={"name": "Sealed", "type": "postgresql", "settings": settings})


def test_a_new_connection_is_verified(box):
    assert box["verification"]["status"] == "verified"
    assert [stage["name"] for stage in box["verification"]["stages"]] == [
        "resolve",
        "connect",
        "permission",
        "sample",
    ]


def test_one_that_fails_is_kept_and_says_at_which_stage_and_why(edith):
    result = sealed(edith).json
    assert result["verification"]["status"] == "failed"
    last = result["verification"]["stages"][-1]
    assert (last["name"], last["ok"], last["code"]) == ("connect", False, "refused")
    assert last["hint"]
    assert edith.get(f"/connections/{result['id']}").json["id"] == result["id"]


def test_connection_type_is_an_alias_of_type_and_can_be_used_with_the_string(edith):
    body = {
        "name": "As the client sends it",
        "connection_type": "sqlite",
        "connection_string": "sqlite:///c.db",
    }
    created = edith.post("/connections", json={**body, "created_by": "another user"}).json
    assert created["type"] == created["connection_type"] == "sqlite"
    assert created["created_by"] != "another user"
    assert created["verification"]["status"] == "verified"


def test_a_project_without_access_is_rejected(edith, cast):
    body = {"name": "x", "type": "sqlite", "settings": {"file": "x.db"}, "project_id": cast.mallorys}
    assert faults(edith.post("/connections", json=body)) == {"project_id": "not_yours"}


def test_all_errors_of_the_settings_are_reported_together(edith):
    settings = {"host": "127.0.0.1", "prot": 5, "port": "x", "password": "${nobody}"}
    answer = edith.post("/connections", json={"name": "x", "type": "postgresql", "settings": settings})
    assert faults(answer) == {
        "settings.password": "unknown_secret",
        "settings.prot": "unknown_key",
        "settings.port": "wrong_type",
    }


@pytest.mark.parametrize(("word", "code"), [("postgresq", "unknown_type"), ("aix", "unknown_type")])
def test_another_type_is_rejected_with_the_supported_ones(edith, word, code):
    answer = edith.post("/connections", json={"name": "x", "type": word, "settings": {}})
    assert faults(answer) == {"type": code}


def test_db2_connection_is_saved_and_edited_without_the_driver_and_only_using_it_needs_the_extra(
    edith, monkeypatch
):
    monkeypatch.setitem(sys.modules, "ibm_db", None)
    settings = {"host": "127.0.0.1", "port": 1, "database": "d", "username": "u", "password": "p"}
    created = edith.post("/connections", json={"name": "x", "type": "db2", "settings": settings})
    assert (created.status_code, created.json["verification"]["status"]) == (201, "failed")
    path = f"/connections/{created.json['id']}"
    changed = edith.patch(path, json={"name": "y", "settings": {**settings, "port": 2}})
    assert (changed.status_code, changed.json["settings"]["port"]) == (200, 2)
    template = edith.post(
        "/templates", json={"name": "t", "fields": [{"name": "n", "type": "row_number"}]}
    ).json["id"]
    push = {"connection_id": created.json["id"], "target": "t", "count": 1}
    for used in (edith.post(f"/templates/{template}/push", json=push), edith.get(f"{path}/metadata")):
        assert used.status_code in (422, 502), used.text
    assert edith.delete(path).status_code == 200


def test_missing_driver_names_the_command_that_installs_it():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {name: extras[name] for name in DRIVER_PACKAGES} == {
        name: [package] for name, package in DRIVER_PACKAGES.items()
    }
    hint = DriverMissing("Db2", "db2").hint
    assert ".venv/bin/uv pip install --python .venv/bin/python 'ibm_db>=3.2'" in hint


def test_a_password_never_comes_back_and_a_mask_keeps_it(edith):
    result = sealed(edith)
    assert SECRET not in result.text
    assert result.json["settings"]["password"] == "********"
    path = f"/connections/{result.json['id']}"
    stored = edith.patch(path, json={"name": "Renamed", "settings": result.json["settings"]})
    assert stored.status_code == 200
    assert stored.json["settings"] == result.json["settings"]
    assert SECRET not in edith.get(path).text + edith.get("/connections").text + edith.get("/audit").text


@pytest.mark.parametrize(
    "moved", [{"host": "localhost"}, {"port": 10}, {"username": "other"}, {"tls": "disable"}]
)
def test_a_kept_password_is_not_sent_elsewhere(edith, moved):
    result = sealed(edith).json
    answer = edith.patch(f"/connections/{result['id']}", json={"settings": {**result["settings"], **moved}})
    assert faults(answer) == {"settings.password": "needed_again"}


def test_only_the_password_of_a_connection_string_is_masked(edith):
    text = f"postgresql://tester:{SECRET}@127.0.0.1:9/shop"
    created = edith.post(
        "/connections", json={"name": "x", "type": "postgresql", "connection_string": text}
    ).json
    assert created["settings"]["connection_string"] == "postgresql://tester:********@127.0.0.1:9/shop"
    path = f"/connections/{created['id']}"
    elsewhere = "postgresql://tester:********@localhost:9/shop"
    answer = edith.patch(path, json={"connection_string": elsewhere})
    assert faults(answer) == {"settings.connection_string": "needed_again"}
    assert edith.patch(path, json={"settings": created["settings"]}).status_code == 200


def test_a_stolen_database_and_the_log_hold_no_password(edith, database_bytes, caplog):
    caplog.set_level(logging.DEBUG)
    result = sealed(edith)
    edith.post(f"/connections/{result.json['id']}/verify")
    assert SECRET.encode() not in database_bytes()
    assert SECRET not in caplog.text


def test_an_edited_secret_is_used_immediately_and_a_used_one_is_kept(edith, api, cast, settings):
    adam, folder = api(cast.adam), settings.data_dir / "targets" / cast.acme
    assert adam.put("/secrets/where", json={"value": "one.db", "allowed_hosts": None}).status_code == 201
    body = {"name": "By reference", "type": "sqlite", "settings": {"file": "${where}"}}
    created = edith.post("/connections", json=body).json
    assert created["settings"] == {"file": "${where}"}
    assert (folder / created["id"] / "one.db").is_file()
    assert "one.db" not in str(created["verification"])
    assert adam.put("/secrets/where", json={"value": "two.db"}).status_code == 200
    edith.post(f"/connections/{created['id']}/verify")
    assert (folder / created["id"] / "two.db").is_file()
    refused = adam.delete("/secrets/where")
    assert refused.status_code == 409
    assert [item["id"] for item in refused.json["error"]["details"]["used_by"]] == [created["id"]]


def test_metadata_is_cached_until_it_is_refreshed(edith, box, settings, cast):
    import sqlite3

    path = f"/connections/{box['id']}/metadata"
    assert edith.get(path).json["entities"] == []
    file = settings.data_dir / "targets" / cast.acme / box["id"] / "box.db"
    result = sqlite3.connect(file)
    result.executescript(
        "create table owner(id integer primary key, name varchar(20) not null);"
        "create table pet(id integer primary key, owner_id integer references owner(id));"
    )
    result.close()
    assert edith.get(path).json["entities"] == []
    found = edith.get(f"{path}?refresh=true").json
    assert {entity["name"] for entity in found["entities"]} == {"owner", "pet"}
    pet = edith.get(f"{path}?entity=pet").json["entities"]
    assert [relation["entity"] for relation in pet[0]["relations"]] == ["owner"]
    assert edith.get(f"{path}?q=own").json["total"] == 1


def test_a_connection_that_a_template_reads_from_is_not_deleted(edith, box):
    field = {"name": "k", "type": "db_response", "options": {"connection_id": box["id"], "query": "select 1"}}
    created = edith.post("/templates", json={"name": "Reader", "fields": [field]})
    assert created.status_code == 201, created.text
    refused = edith.delete(f"/connections/{box['id']}")
    assert refused.status_code == 409
    assert [item["name"] for item in refused.json["error"]["details"]["used_by"]] == ["Reader"]


def test_a_deleted_connection_comes_back(edith, box):
    assert edith.delete(f"/connections/{box['id']}").json["deleted_at"]
    assert edith.get(f"/connections/{box['id']}").status_code == 404
    assert edith.post(f"/connections/{box['id']}/restore").json["deleted_at"] is None


def test_two_people_who_change_one_connection_do_not_overwrite_each_other(edith, box):
    path = f"/connections/{box['id']}"
    tag = edith.get(path).headers["ETag"]
    assert edith.patch(path, json={"name": "First"}, headers={"If-Match": tag}).status_code == 200
    assert edith.patch(path, json={"name": "Second"}, headers={"If-Match": tag}).status_code == 412


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="reads /proc")
def test_a_hanging_driver_does_not_block_beyond_its_time_limit(edith, monkeypatch):
    import socket

    from webapp import limits

    monkeypatch.setattr(limits, "VERIFY_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        result = sealed(edith, port=silent.getsockname()[1], tls="disable").json
    assert result["verification"]["status"] == "failed"
    assert result["verification"]["stages"][-1]["code"] == "timeout"


def test_a_target_that_disappears_before_the_sample_is_reported_as_the_cause(
    edith, box, settings, cast, monkeypatch
):
    import sqlite3

    from webapp.connectors import driver_process
    from webapp.connectors.base import ConnectorError

    result = sqlite3.connect(settings.data_dir / "targets" / cast.acme / box["id"] / "box.db")
    result.execute("create table pet(id integer primary key, name varchar(20))")
    result.close()
    edith.get(f"/connections/{box['id']}/metadata?refresh=true")

    def gone(*_args):
        raise ConnectorError("Nobody listens there.", reason="refused")

    monkeypatch.setattr(driver_process, "samples", gone)
    answer = edith.post(f"/connections/{box['id']}/templates", json={"entities": ["pet"]})
    assert (answer.status_code, answer.json["error"]["code"]) == (502, "target_failed")
