"""Attempts with an editor's key to read the secrets of a connection, or to have them sent to another host."""

from __future__ import annotations

import logging

import psycopg
import pytest

from tests.views.speak import faults
from tests.views.targets import connection
from webapp.connections.models import Connection
from webapp.connections.services import access
from webapp.connectors import driver_process
from webapp.connectors.http.tokens import tokens
from webapp.extensions import db

SECRET = "canary-91c4e2"
HERE = {"host": "127.0.0.1", "port": 9, "username": "tester"}


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def unasked(monkeypatch):
    """Targets are not contacted: these tests check what is stored."""
    monkeypatch.setattr(driver_process, "stages", lambda _connector, _seconds: [])


def made(edith, kind="postgresql", **settings):
    answer = edith.post("/connections", json={"name": "Shop", "type": kind, "settings": settings})
    assert answer.status_code == 201, answer.text
    return answer.json


@pytest.mark.parametrize("password", [f"a={SECRET}", f"x://{SECRET}", f"host=h w={SECRET}", f"a b {SECRET};"])
def test_a_password_that_looks_like_a_connection_string_is_masked_whole(edith, unasked, password):
    assert made(edith, **HERE, password=password)["settings"]["password"] == "********"


@pytest.mark.parametrize(
    "moved",
    [
        {"connection_string": "postgresql://tester@evil.example/db"},
        {"connection_string": "host=evil.example"},
        {"connection_string": None},
        {"host": "evil.example"},
        {"port": 5433},
        {"username": "other"},
        {"tls": "disable"},
        {"ca_certificate": "-----BEGIN CERTIFICATE-----"},
        {"options": {"sslmode": "disable"}},
        {"options": {"target_session_attrs": "any"}},
    ],
)
def test_a_kept_password_goes_nowhere_else(edith, unasked, moved):
    settings = {"connection_string": "postgresql://tester@127.0.0.1:9/db", "password": SECRET}
    stored = made(edith, **settings)
    sent = {**stored["settings"], **moved}
    answer = edith.patch(f"/connections/{stored['id']}", json={"settings": sent})
    assert faults(answer)["settings.password"] == "needed_again"
    with_it = edith.patch(
        f"/connections/{stored['id']}", json={"settings": {**settings, "database": "other"}}
    )
    assert with_it.status_code == 200


@pytest.mark.parametrize("harmless", [{"database": "other"}, {"schema": "sales"}])
def test_a_kept_password_stays_where_the_server_is_the_same(edith, unasked, app, harmless):
    stored = made(edith, **HERE, password=SECRET)
    answer = edith.patch(
        f"/connections/{stored['id']}", json={"settings": {**stored["settings"], **harmless}}
    )
    assert answer.status_code == 200
    with app.app_context():
        assert (
            access.create_connector(db.session.get_one(Connection, stored["id"])).settings.password == SECRET
        )


@pytest.mark.parametrize(
    "form", ["postgresql://u:a@b:{}@h/db", "postgresql://u:a/{}@h/db", "postgresql://u@t:{}@h/db"]
)
def test_a_url_with_an_ambiguous_password_is_rejected_without_showing_it(edith, unasked, form):
    body = {"name": "x", "type": "postgresql", "connection_string": form.format(SECRET)}
    answer = edith.post("/connections", json=body)
    assert faults(answer) == {"settings.connection_string": "not_encoded"}
    assert SECRET not in answer.text


def test_another_connections_secret_is_not_opened_by_its_id(edith, unasked, app):
    theirs = made(edith, **HERE, password=SECRET)
    with app.app_context():
        secret = db.session.get_one(Connection, theirs["id"]).settings["password"]["secret"]
    mine = made(edith, "mysql", **HERE, options={"secret": secret, "shown": "x"})
    assert mine["settings"]["options"] == {"secret": secret, "shown": "x"}
    with app.app_context():
        options = access.create_connector(db.session.get_one(Connection, mine["id"])).settings.options
        assert options == {"secret": secret, "shown": "x"}
    for value in ({"secret": secret}, {"secret": secret, "shown": "x"}):
        body = {"name": "x", "type": "postgresql", "settings": {**HERE, "password": value}}
        assert faults(edith.post("/connections", json=body)) == {"settings.password": "wrong_type"}


@pytest.mark.parametrize("place", ["host", "database", "username"])
def test_a_referred_secret_is_not_read_out_of_the_servers_answer(edith, api, cast, place):
    try:
        psycopg.connect("host=127.0.0.1 port=5432 user=postgres connect_timeout=2").close()
    except psycopg.Error:
        pytest.skip("no PostgreSQL on 127.0.0.1:5432")
    api(cast.adam).put("/secrets/token", json={"value": SECRET, "allowed_hosts": None})
    settings = {"host": "127.0.0.1", "database": "postgres", "username": "postgres", place: "${token}"}
    answer = edith.post("/connections", json={"name": "Echo", "type": "postgresql", "settings": settings})
    last = answer.json["verification"]["stages"][-1]
    assert not last["ok"]
    assert "********" in last["message"]
    again = edith.get(f"/connections/{answer.json['id']}/metadata")
    assert again.status_code in (502, 504)
    assert SECRET not in answer.text + again.text


def test_no_secret_is_in_the_database_the_log_the_trail_or_an_answer(
    edith, api, cast, caplog, database_bytes
):
    caplog.set_level(logging.DEBUG)
    adam, canaries, text = api(cast.adam), [f"canary-{number}-7bd1" for number in range(6)], []
    text.append(adam.put("/secrets/a", json={"value": canaries[0]}))
    text.append(adam.put("/secrets/a", json={"value": canaries[1]}))
    text.append(adam.put("/secrets/!", json={"value": canaries[2]}))
    key = {"Idempotency-Key": "once"}
    settings = {**HERE, "password": canaries[3]}
    body = {"name": "x", "type": "postgresql", "settings": settings}
    text += [edith.post("/connections", json=body, headers=key) for _ in range(2)]
    path = f"/connections/{text[-1].json['id']}"
    text.append(
        edith.post("/connections", json={**body, "settings": {**settings, "password": [canaries[4]]}})
    )
    text.append(edith.patch(path, json={"settings": {**settings, "password": canaries[5]}}))
    text += [
        edith.get(path),
        edith.get("/connections"),
        edith.post(f"{path}/verify"),
        edith.get(f"{path}/metadata"),
    ]
    text += [adam.get("/secrets"), adam.get("/audit"), edith.delete(path), adam.delete("/secrets/a")]
    found = database_bytes()
    for canary in canaries:
        assert canary not in caplog.text + "".join(item.text for item in text)
        assert canary.encode() not in found


def test_a_verification_of_outdated_settings_is_not_saved(edith, unasked, monkeypatch):
    stored = made(edith, "sqlite", file="one.db")
    path = f"/connections/{stored['id']}"

    def stage(ok):
        return [
            {"name": "connect", "ok": ok, "code": "", "message": "", "hint": "", "ms": 1, "response": None}
        ]

    def slow(connector, _seconds):
        if connector.settings.file == "two.db":
            return stage(True)
        assert edith.patch(path, json={"settings": {"file": "two.db"}}).status_code == 200
        return stage(False)

    monkeypatch.setattr(driver_process, "stages", slow)
    assert edith.post(f"{path}/verify").json["status"] == "failed"
    assert edith.get(path).json["verification"]["status"] == "verified"


def test_tokens_that_were_fetched_are_cut_from_what_any_target_says(app, cast):
    made = connection(app, cast, "odata", {"service_url": "http://127.0.0.1:9/"})
    with app.app_context():
        _, redact = access.create_connector_and_redactor(db.session.get(Connection, made))
        tokens.entry("one").token = "fetched-token-1"
        try:
            assert "fetched-token-1" not in redact("you sent Bearer fetched-token-1")
        finally:
            tokens.clear()
