"""Idempotency-Key: one effect, equal answers."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
import sqlalchemy as sa

from tests.conftest import close_app, settings_for
from webapp import clock, create_app, limits
from webapp.access.models import ApiKey, Project, Team
from webapp.accounts.services import workspaces
from webapp.extensions import db, redis_client
from webapp.web.models import IdempotencyRecord

KEY = {"Idempotency-Key": "one-and-only"}


def count(app, model, **where):
    with app.app_context():
        found = db.session.scalar(sa.select(sa.func.count()).select_from(model).filter_by(**where))
        db.session.rollback()
        return found


def code(answer):
    return answer.status_code, answer.json["error"]["code"]


def test_a_replay_returns_the_first_response_with_a_header(app, api, cast):
    first = api(cast.adam).post("/teams", json={"name": "T"}, headers=KEY)
    again = api(cast.adam).post("/teams", json={"name": "T"}, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.data == again.data
    assert again.headers["Location"] == first.headers["Location"]
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["X-Request-Id"] != first.headers["X-Request-Id"]
    assert count(app, Team, name="T") == 1


def test_twenty_threads_with_one_key_have_one_effect_and_equal_answers(app, api, cast):
    answers = []
    ready = threading.Barrier(20)

    def call():
        mine = api(cast.adam)
        ready.wait()
        answers.append(mine.post("/projects", json={"name": "Only one"}, headers=KEY))

    threads = [threading.Thread(target=call) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [a.status_code for a in answers] == [201] * 20
    assert len({a.data for a in answers}) == 1
    assert sum("Idempotent-Replayed" in a.headers for a in answers) == 19
    assert count(app, Project, name="Only one") == 1


def test_twenty_threads_on_postgresql_too(postgres_url, shared_redis, tmp_path):
    from tests.cast import Program, gather

    app = create_app(settings_for(postgres_url, shared_redis, tmp_path))
    with app.app_context():
        redis_client().flushdb()
        db.create_all()
        cast = gather()
        db.session.remove()
    answers = []

    def call():
        answers.append(Program(app, cast.adam.key).post("/projects", json={"name": "Only one"}, headers=KEY))

    threads = [threading.Thread(target=call) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {a.status_code for a in answers} == {201}
    assert len({a.data for a in answers}) == 1
    assert count(app, Project, name="Only one") == 1
    close_app(app)


@pytest.mark.parametrize(
    "change", [{"json": {"name": "Other"}}, {"query_string": {}, "headers": {"X-Project-Id": ""}}]
)
def test_another_body_or_project_under_the_same_key_is_422(api, cast, change):
    api(cast.adam).post("/teams", json={"name": "T"}, headers=KEY)
    how = {"json": {"name": "T"}, **change}
    how["headers"] = {**KEY, **({"X-Project-Id": cast.side} if "headers" in change else {})}
    assert code(api(cast.adam).post("/teams", **how)) == (422, "idempotency_mismatch")


def test_one_callers_key_is_nothing_to_another(app, api, cast):
    for who in (cast.adam, cast.olivia):
        assert api(who).post("/teams", json={"name": "T"}, headers=KEY).status_code == 201
    assert count(app, Team, name="T") == 2


def test_a_refusal_that_did_nothing_is_not_kept(app, api, cast):
    assert (
        api(cast.adam).post("/projects", json={"name": "P", "team_id": "team_x"}, headers=KEY).status_code
        == 422
    )
    assert count(app, IdempotencyRecord) == 0
    assert api(cast.adam).post("/projects", json={"name": "P"}, headers=KEY).status_code == 201


def test_while_the_first_call_runs_a_second_one_waits_and_is_then_409(app, api, cast, monkeypatch):
    monkeypatch.setattr(limits, "IDEMPOTENCY_WAIT_SECONDS", 0.05)
    inside, go_on = threading.Event(), threading.Event()
    real = workspaces.create_team

    def slow(*args, **more):
        inside.set()
        go_on.wait(10)
        return real(*args, **more)

    monkeypatch.setattr(workspaces, "create_team", slow)
    first = []
    thread = threading.Thread(
        target=lambda: first.append(api(cast.adam).post("/teams", json={"name": "T"}, headers=KEY))
    )
    thread.start()
    inside.wait(10)
    second = api(cast.adam).post("/teams", json={"name": "T"}, headers=KEY)
    go_on.set()
    thread.join()
    assert code(second) == (409, "idempotency_in_progress")
    assert second.headers["Retry-After"] == "5"
    assert first[0].status_code == 201


def test_a_caller_that_died_before_it_acted_is_taken_over(app, api, cast, monkeypatch):
    from webapp.web import routing

    with monkeypatch.context() as patch:
        patch.setattr(routing._IdempotencyLock, "_release", lambda self: True)  # the process was killed here
        patch.setattr(workspaces, "create_team", lambda *a, **m: (_ for _ in ()).throw(SystemError("killed")))
        assert api(cast.adam).post("/teams", json={"name": "T"}, headers=KEY).status_code == 500
    assert count(app, IdempotencyRecord, state="running") == 1
    monkeypatch.setattr(limits, "IDEMPOTENCY_LOST_SECONDS", 0)
    assert api(cast.adam).post("/teams", json={"name": "T"}, headers=KEY).status_code == 201
    assert count(app, Team, name="T") == 1


def test_a_caller_that_died_after_it_acted_is_never_repeated(app, api, cast, monkeypatch):
    from webapp.web import routing

    with monkeypatch.context() as patch:
        patch.setattr(
            routing._IdempotencyLock, "handle_response", lambda self, response: None
        )  # the process was killed here
        assert api(cast.adam).post("/teams", json={"name": "T"}, headers=KEY).status_code == 201
    monkeypatch.setattr(limits, "IDEMPOTENCY_LOST_SECONDS", 0)
    monkeypatch.setattr(limits, "IDEMPOTENCY_WAIT_SECONDS", 0)
    answer = api(cast.adam).post("/teams", json={"name": "T"}, headers=KEY)
    assert code(answer) == (409, "idempotency_in_progress")
    assert answer.json["error"]["details"]["state"] == "acted"
    assert count(app, Team, name="T") == 1


def test_an_error_after_the_effect_is_the_answer_from_then_on(app, api, cast, monkeypatch):
    from webapp.accounts.views import projects

    def broken(*_args, **_more):
        raise RuntimeError("after the commit")

    with monkeypatch.context() as patch:
        patch.setattr(projects.TeamOut, "from_row", broken)
        assert api(cast.adam).post("/teams", json={"name": "T"}, headers=KEY).status_code == 500
    again = api(cast.adam).post("/teams", json={"name": "T"}, headers=KEY)
    assert code(again) == (500, "internal_error")
    assert again.headers["Idempotent-Replayed"] == "true"
    assert count(app, Team, name="T") == 1


def test_after_a_day_the_key_is_free_again(app, api, cast):
    api(cast.adam).post("/teams", json={"name": "T"}, headers=KEY)
    with app.app_context():
        db.session.execute(sa.update(IdempotencyRecord).values(expires_at=clock.now() - timedelta(seconds=1)))
        db.session.commit()
    again = api(cast.adam).post("/teams", json={"name": "T"}, headers=KEY)
    assert "Idempotent-Replayed" not in again.headers
    assert count(app, Team, name="T") == 2


@pytest.mark.parametrize("key", ["a b", "x" * 256, "ä"])
def test_a_malformed_key_is_422(api, cast, key):
    answer = api(cast.adam).post("/teams", json={"name": "T"}, headers={"Idempotency-Key": key})
    assert code(answer) == (422, "validation_error")


def test_secrets_in_responses_are_not_readable_in_the_database(app, api, cast, database_bytes):
    created = api(cast.edith).post("/api-keys", json={"name": "K"}, headers=KEY)
    again = api(cast.edith).post("/api-keys", json={"name": "K"}, headers=KEY)
    assert again.json["key"] == created.json["key"]
    assert count(app, ApiKey, name="K") == 1
    everything = database_bytes()
    secret = created.json["key"].rsplit("_", 1)[1].encode()
    assert secret not in everything
    assert KEY["Idempotency-Key"].encode() not in everything
