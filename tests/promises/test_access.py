"""Promise 13: for every route an actor of another workspace gets 404 and changes nothing; every route needs the scope
it declares; a new route without an entry in the matrix fails the test.

The full matrix (tests/security/test_matrix.py) checks every role, and restores the SQLite file after each call. Here,
both stacks only get calls that must be rejected, so nothing has to be restored.
"""

from __future__ import annotations

import hashlib

import pytest

from tests.cast import Program
from tests.promises.world import World
from tests.security.test_matrix import BELONGING
from webapp.access import actors
from webapp.access.actors import KEY_SCOPES
from webapp.accounts.services import api_keys, identity
from webapp.extensions import db


def state(world: World) -> str:
    """A digest of all that belongs to Acme."""
    found = hashlib.sha256()
    with world.app.app_context(), db.engine.connect() as connection:
        for table, statement in BELONGING.items():
            found.update(
                repr((table, connection.execute(statement, {"workspace": world.cast.acme}).all())).encode()
            )
    return found.hexdigest()


@pytest.fixture(autouse=True)
def unnoted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A background thread records the last use of a key at an unpredictable time. Disable it."""
    monkeypatch.setattr(identity, "_record_use", lambda *_, **__: None)


@pytest.fixture(scope="module")
def without(world: World) -> dict[str, str]:
    """For each scope a key of the owner's that has all others."""
    acme = actors.system_actor(world.cast.acme, world.cast.main, world.cast.blue)
    created = {}
    with world.app.app_context():
        for scope in KEY_SCOPES:
            others = [other for other in KEY_SCOPES if other != scope]
            how = {"api_version": "2026-11-21", "scopes": others, "user_id": world.cast.olivia.user_id}
            created[scope] = api_keys.create(acme, f"all but {scope}", **how)[1]
        db.session.remove()
    return created


def test_promise_13_an_actor_of_another_workspace_gets_404_and_changes_nothing(world, without):
    mallory, before, tried = Program(world.app, world.cast.mallory.key), state(world), 0
    for case in world.cases:
        if case.person or case.least == "public" or not case.names_an_object:
            continue
        how = {"json": case.sent(world.names)} if case.body is not None else {}
        answer = mallory.open(case.method, case.address(world.names), **how)
        assert answer.status_code == 404, (case, answer.text[:300])
        tried += 1
    assert state(world) == before
    assert tried > 80


def test_promise_13_every_route_needs_the_scope_that_it_declares(world, without):
    before, tried = state(world), 0
    for case in world.cases:
        if not case.scope:
            continue
        how = {"json": case.sent(world.names)} if case.body is not None else {}
        answer = Program(world.app, without[case.scope]).open(case.method, case.address(world.names), **how)
        assert (answer.status_code, answer.json["error"]["code"]) == (403, "forbidden"), (
            case,
            answer.text[:300],
        )
        assert answer.json["error"]["details"]["scope"] == case.scope, case
        tried += 1
    assert state(world) == before
    assert tried > 80
