"""Promise 16: mass assignment does nothing; secrets never come back; `********` keeps the old one."""

from __future__ import annotations

from typing import Any, Final

import pytest
import sqlalchemy as sa

from tests.promises.world import World
from webapp.connections.services import access
from webapp.extensions import db
from webapp.model_base import Base
from webapp.web.routing import declaration_of

FOREIGN: Final = {
    "id": "tpl_01J0000000000000000000000X",
    "workspace_id": "ws_01J0000000000000000000000X",
    "created_by": "usr_01J0000000000000000000000X",
    "user_id": "usr_01J0000000000000000000000X",
    "version": 999,
    "created_at": "1999-01-01T00:00:00Z",
    "updated_at": "1999-01-01T00:00:00Z",
    "deleted_at": "1999-01-01T00:00:00Z",
    "label": "assigned",
    "status": "completed",
    "attempt": 99,
    "lease_owner": "assigned",
    "epoch": 99,
    "password_hash": "assigned",
    "secret_hash": "assigned",
    "handle": "assigned1234",
    "is_admin": True,
    "verification": {"status": "verified"},
    "plan_limits": {"requests_per_minute": 1},
    "warnings": ["assigned"],
    "sha256": "assigned",
    "download_url": "https://evil.example/",
}
MASK: Final = "********"


def rows(world: World) -> dict[str, set[str]]:
    """Every row of every table as text."""
    out = {}
    with world.app.app_context(), db.engine.connect() as connection:
        for table in Base.metadata.sorted_tables:
            out[table.name] = {repr(tuple(row)) for row in connection.execute(sa.select(table))}
    return out


def declared(world: World, case: Any) -> Any:
    return next(
        declaration_of(world.app, rule.endpoint)
        for rule in world.app.url_map.iter_rules()
        if rule.rule == case.rule and case.method in rule.methods
    )


def test_promise_16_mass_assignment_does_nothing_on_any_route(world):
    """Send every POST, PUT and PATCH of the API with every read-only and every foreign key in addition to its keys:
    none of the values is in the database afterwards, even if the request succeeds."""
    program, tried = world.program(), 0
    marks = {
        "01J0000000000000000000000X",
        "1999-01-01",
        "datetime.datetime(1999",
        "evil.example",
        "'assigned",
    }
    before = rows(world)
    assert not any(mark in row for table in before.values() for row in table for mark in marks)
    for case in world.writing():
        declaration = declared(world, case)
        if case.person or declaration.body is None or case.rule.startswith("/compat"):
            continue
        known = set(declaration.body.model_fields)
        read_only = getattr(declaration.body, "read_only", frozenset())
        own = case.sent(world.names)
        every = {key: FOREIGN.get(key, "assigned") for key in (*FOREIGN, *read_only) if key not in known}
        for more in ({**every}, *({key: value} for key, value in every.items())):
            answer = program.open(case.method, case.address(world.names), json={**own, **more})
            answer.get_data()
            assert answer.status_code < 500, (case, answer.text[:300])
            if not set(more) <= set(read_only):
                # A key that is neither an input nor one that we once gave is refused by its name.
                assert answer.status_code in (400, 401, 403, 404, 409, 412, 422), (
                    case,
                    set(more) - set(read_only),
                )
            tried += 1
        if case.rule == "/workspace":
            world.unlimited()
    found = rows(world)
    # What was said is noted in the trail of refused requests at most; no column of any object took it.
    for table, stored in found.items():
        for row in stored - before[table]:
            assert not any(mark in row for mark in marks), (table, row[:500])
    assert tried > 300


@pytest.fixture
def unasked(monkeypatch):
    from webapp.connectors import driver_process

    monkeypatch.setattr(driver_process, "stages", lambda _connector, _seconds: [])


CANARY = "c4nary-of-promise-16"
SETTINGS: Final = {
    "postgresql": {"host": "127.0.0.1", "port": 9, "username": "u", "password": CANARY},
    "mysql": {"host": "127.0.0.1", "port": 9, "username": "u", "password": CANARY},
    "mssql": {"host": "127.0.0.1", "port": 9, "username": "u", "password": CANARY},
    "oracle": {"host": "127.0.0.1", "port": 9, "username": "u", "password": CANARY, "database": "d"},
    "mongodb": {"host": "127.0.0.1", "port": 9, "username": "u", "password": CANARY},
    "rest": {"base_url": "http://127.0.0.1:9", "auth": {"type": "bearer", "token": CANARY}},
    "odata": {
        "service_url": "http://127.0.0.1:9",
        "auth": {"type": "basic", "username": "u", "password": CANARY},
    },
    "openapi": {
        "document_url": "http://127.0.0.1:9",
        "auth": {"type": "api-key", "in": "header", "name": "X-Key", "value": CANARY},
    },
    "ai": {"base_url": "http://127.0.0.1:9", "model": "m", "api_key": CANARY},
}


def masked(value: Any) -> int:
    """Count the occurrences of the mask in a value."""
    if isinstance(value, dict):
        return sum(masked(item) for item in value.values())
    return int(value == MASK)


def kept(world: World, connection_id: str) -> Any:
    """The settings as the connector gets them, the secrets among them."""
    from webapp.connections.models import Connection

    with world.app.app_context():
        found = access.create_connector(db.session.get_one(Connection, connection_id)).settings.model_dump()
        db.session.remove()
        return found


@pytest.mark.parametrize("kind", SETTINGS)
def test_promise_16_secrets_never_come_back_and_the_mask_keeps_the_old_one(world, unasked, kind):
    program = world.program()
    created = program.post(
        "/connections", json={"name": f"16 {kind}", "type": kind, "settings": SETTINGS[kind]}
    )
    assert created.status_code == 201, created.text
    where = f"/connections/{created.json['id']}"
    before = kept(world, created.json["id"])
    assert CANARY in repr(before)
    assert masked(created.json["settings"]) == 1
    changed = program.patch(where, json={"name": "again", "settings": created.json["settings"]})
    assert changed.status_code == 200, changed.text
    assert kept(world, created.json["id"]) == before
    person = world.person()
    shown = [
        created,
        changed,
        program.get(where),
        program.get("/connections?limit=100"),
        program.get("/audit?limit=100"),
    ]
    shown += [person.get(where), person.get(f"{where}/edit"), person.get("/audit"), program.delete(where)]
    for answer in shown:
        assert CANARY not in answer.text


def test_promise_16_a_secret_of_the_workspace_and_a_key_are_never_shown(world):
    program, person = world.program(), world.person()
    answers = [program.put("/secrets/sixteen", json={"value": CANARY})]
    created = program.post("/api-keys", json={"name": "sixteen"})
    secret = created.json["key"].rsplit("_", 1)[1]
    paths = ("/secrets", "/api-keys", f"/api-keys/{created.json['id']}", "/audit?limit=100")
    answers += [face.get(path) for path in paths for face in (program, person)]
    for answer in answers:
        assert CANARY not in answer.text
        assert secret not in answer.text
