"""Who may save scenarios: not the program of a run, and with a schedule only who may start runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from webapp.accounts.services import identity
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.scenarios.services import scenarios

CODE = 'print("hello")\n'
HOURLY = {"cron": "0 * * * *", "timezone": "UTC", "enabled": True, "params": {}}


@pytest.fixture
def edith(app, cast):
    with app.app_context():
        return identity.actor_of_user(cast.edith.user_id, cast.main)


def refused(attempt):
    with pytest.raises(ApiError) as error:
        attempt()
    db.session.rollback()
    return error.value.code, error.value.details.get("scope") or error.value.details.get("needs")


def test_the_program_of_a_run_saves_no_scenario(app, edith):
    """It could have a wider network than the run, the secrets of another scenario, or a schedule that outlives it."""
    with app.app_context():
        created = scenarios.create(edith, name="Own", code=CODE, network="api")
        program = replace(edith, kind="key", run_id="run_x", scopes=frozenset({"read", "write", "run"}))
        for attempt in (
            lambda: scenarios.create(program, name="Other", code=CODE, network="full"),
            lambda: scenarios.get(program, created["id"], "write", lock=True),
        ):
            assert refused(attempt) == ("forbidden", "person")
        assert scenarios.get(program, created["id"], "run").id == created["id"]
        db.session.remove()


def test_a_key_that_cannot_start_runs_saves_no_code_that_starts_by_itself(app, edith):
    with app.app_context():
        created = scenarios.create(edith, name="Own", code=CODE, schedule=HOURLY)
        off = scenarios.create(edith, name="Off", code=CODE, schedule=HOURLY | {"enabled": False})
        key = replace(edith, kind="key", scopes=frozenset({"read", "write"}))
        assert refused(lambda: scenarios.create(key, name="Other", code=CODE, schedule=HOURLY)) == (
            "forbidden",
            "run",
        )
        for scenario, changes, allowed in (
            (created, {"code": "print(1)\n"}, False),
            (created, {"schedule": HOURLY | {"cron": "1 * * * *"}}, False),
            (off, {"schedule": HOURLY}, False),
            (created, {"timeout_seconds": 120}, True),
            (created, {"schedule": None}, True),
            (off, {"code": "print(1)\n"}, True),
        ):
            head = scenarios.get(key, scenario["id"], "write")
            if allowed:
                scenarios.prepare_change(key, head, changes)
            else:
                assert refused(
                    lambda head=head, changes=changes: scenarios.prepare_change(key, head, changes)
                ) == (
                    "forbidden",
                    "run",
                )
        db.session.remove()
