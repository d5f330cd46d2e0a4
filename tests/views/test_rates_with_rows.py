"""A known key's request for rows is counted in one question with its rows: exact, and in the same order as ever."""

from __future__ import annotations

import threading

import pytest

from tests.cast import Cast
from tests.views.test_rates import rate
from webapp.accounts import actors
from webapp.extensions import redis_client
from webapp.rate_limiting import Windows
from webapp.row_templates.services import templates
from webapp.usage.services import quotas

FIELDS = [{"name": "n", "type": "row_number"}]


@pytest.fixture
def template(api, cast: Cast) -> str:
    """A template whose plan, and Edith's key, this process remembers."""
    made = api(cast.edith).post("/templates", json={"name": "t", "fields": FIELDS})
    found = made.json["id"]
    assert ask(api, cast, found).status_code == 200
    return found


def ask(api, cast, template, **body):
    return api(cast.edith).post(f"/templates/{template}/generate", json={"count": 10, **body})


def used(app, cast) -> int:
    with app.app_context():
        return quotas.rows_used(cast.acme, 10**9)


@pytest.fixture
def questions(monkeypatch) -> list[str]:
    """What Redis' windows are asked, in order."""
    asked = []
    for name in ("enter", "take_rows", "enter_and_take"):
        own = getattr(Windows, name)
        monkeypatch.setattr(
            Windows,
            name,
            lambda self, *given, _own=own, _name=name: asked.append(_name) or _own(self, *given),
        )
    return asked


def test_a_known_key_and_template_ask_redis_once(api, cast, template, questions):
    answer = ask(api, cast, template)
    assert (answer.status_code, questions) == (200, ["enter_and_take"])
    assert int(answer.headers["X-RateLimit-Remaining"]) == int(answer.headers["X-RateLimit-Limit"]) - 3


def test_each_answer_counts_one_request_and_its_rows(app, api, cast, template):
    before = used(app, cast)
    left = [int(ask(api, cast, template).headers["X-RateLimit-Remaining"]) for _ in range(3)]
    assert left == [left[0], left[0] - 1, left[0] - 2]
    assert used(app, cast) - before == 30


@pytest.mark.parametrize(
    ("body", "status"), [({"count": -1}, 422), ({"strange": 1}, 422), ({"overrides": {"x": 1}}, 422)]
)
def test_an_error_before_the_rows_spends_one_request_and_no_rows(app, api, cast, template, body, status):
    before, left = used(app, cast), int(ask(api, cast, template).headers["X-RateLimit-Remaining"])
    answer = ask(api, cast, template, **body)
    assert (answer.status_code, int(answer.headers["X-RateLimit-Remaining"])) == (status, left - 1)
    assert used(app, cast) - before == 10


def test_spent_requests_are_429_whatever_else_is_wrong_and_take_no_rows(app, api, cast, template):
    rate(app, cast.acme, 3)
    assert ask(api, cast, template).status_code == 200
    before = used(app, cast)
    for body in ({}, {"count": -1}, {"overrides": {"x": 1}}):
        refused = ask(api, cast, template, **body)
        assert (refused.status_code, refused.json["error"]["code"]) == (429, "rate_limited")
        assert refused.headers["X-RateLimit-Remaining"] == "0"
    assert used(app, cast) == before


def test_rows_that_are_not_there_are_refused_and_the_request_is_counted(
    app, api, cast, template, monkeypatch
):
    ask(api, cast, template)
    left = int(ask(api, cast, template).headers["X-RateLimit-Remaining"])
    monkeypatch.setattr(quotas, "check_rows", lambda actor, rows: None)
    refused = ask(api, cast, template, count=10**12)
    assert refused.json["error"]["code"] == "quota_exceeded"
    assert int(refused.headers["X-RateLimit-Remaining"]) == left - 1


def test_a_key_revoked_elsewhere_makes_no_row_more(app, api, cast, template):
    before = used(app, cast)
    assert api(cast.adam).delete(f"/api-keys/{cast.edith.key_id}").status_code == 200
    refused = ask(api, cast, template)
    assert (refused.status_code, refused.json["error"]["details"]["reason"]) == (401, "revoked")
    assert used(app, cast) == before


def test_rights_that_changed_are_read_again_and_the_call_goes_on(app, api, cast, template, questions):
    with app.app_context():
        redis_client().set(actors.epoch_key(cast.acme), "another")
    assert ask(api, cast, template).status_code == 200
    assert questions[:2] == ["enter_and_take", "enter"]
    assert ask(api, cast, template).status_code == 200
    assert questions[-1] == "enter_and_take"


def test_an_emptied_redis_gets_its_rows_back_from_the_trail(app, api, cast, template):
    with app.app_context():
        redis_client().flushdb()
    assert ask(api, cast, template).status_code == 200
    assert used(app, cast) >= 20


def test_a_plan_that_is_not_kept_is_not_made_for_who_may_not_ask(app, api, cast, template, monkeypatch):
    rate(app, cast.acme, 3)
    assert ask(api, cast, template).status_code == 200
    monkeypatch.setattr(templates, "loader", lambda *_: pytest.fail("compiled"))
    assert ask(api, cast, template, locale="de").status_code == 429


def test_a_patch_is_seen_by_the_next_call(api, cast, template):
    fields = [{"name": "other", "type": "row_number"}]
    assert api(cast.edith).patch(f"/templates/{template}", json={"fields": fields}).status_code == 200
    assert list(ask(api, cast, template).json[0]) == ["other"]


def test_many_threads_at_once_get_exactly_the_limit_and_its_rows(app, api, cast, template):
    rate(app, cast.acme, 27)
    assert ask(api, cast, template).status_code == 200
    before, found = used(app, cast), []

    def call():
        found.extend(ask(api, cast, template).status_code for _ in range(5))

    threads = [threading.Thread(target=call) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {200, 429}
    assert used(app, cast) - before == 10 * found.count(200)
    assert found.count(200) == 24
