"""Values from an API: interpretation of its responses."""

from __future__ import annotations

import pytest
from sqlalchemy import select

from tests.fakes.echo_target import Answer
from tests.services import fetched_calls
from tests.services.fetched_calls import CODES, call, failed, generated
from webapp import clock, limits
from webapp.connections.models import Fetched
from webapp.extensions import db

target = fetched_calls.target
edith = fetched_calls.edith
rest = fetched_calls.rest


@pytest.fixture
def kept(app):
    def do() -> list[Fetched]:
        with app.app_context():
            return list(db.session.scalars(select(Fetched).where(Fetched.expires_at > clock.now())))

    return do


def test_a_missing_value_is_reported_with_the_path_unless_the_field_has_a_default(edith, target, rest):
    target.on("/api/codes/b", Answer(200, {"other": 1}))
    result = rest()
    _, details = failed(edith, CODES, call(result), status=422, code="validation_error")
    (fault,) = details["fields"]
    assert (fault["path"], fault["code"]) == ("fields[1]", "empty_answer")
    assert "1 of 2 paths, such as /codes/b" in fault["message"]
    rows = generated(
        edith, CODES, call(result, on_empty="blank"), call(result, name="d", on_empty="default", default="-")
    ).json
    assert [(row["value"], row["d"]) for row in rows[:2]] == [("A", "A"), (None, "-")]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(404, {"error": "no such code"}), "not_found"),
        (Answer(410), "not_found"),
        (Answer(422, {"error": "odd"}), "rejected"),
        (Answer(200, "<html>sign in</html>", {"Content-Type": "text/html"}), "not_json"),
        (Answer(200, b'{"a": '), "not_json"),
    ],
)
def test_an_error_response_for_a_path_is_an_error_null_or_the_default(
    edith, target, rest, kept, answer, reason
):
    target.on("/api/codes/b", answer)
    result = rest(parallel=1)
    message, details = failed(edith, CODES, call(result))
    assert (details["path"], details["reason"], details["status"]) == ("fields[1]", reason, answer.status)
    assert "GET /codes/b" in message
    assert "on_error: blank" in details["hint"]
    assert len(kept()) == 1  # of the other path
    rows = generated(
        edith, CODES, call(result, on_error="blank"), call(result, name="d", on_error="default", default="-")
    ).json
    assert [(row["value"], row["d"]) for row in rows[:2]] == [("A", "A"), (None, "-")]
    assert len(target.calls("/api/codes/b")) == 2


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (401, "forbidden", "does not accept the credentials"),
        (403, "forbidden", "not allowed to read this"),
        (429, "throttled", "accepts no more requests"),
        (500, "unavailable", "has a problem"),
        (503, "unavailable", "has a problem"),
    ],
)
def test_connection_errors_are_always_errors_and_never_stored(
    edith, target, rest, kept, status, reason, expected
):
    target.on("/api/codes/*", Answer(status, {"error": "the target says why"}))
    message, details = failed(edith, CODES, call(rest(), on_error="blank"))
    assert (details["path"], details["reason"], details["status"]) == ("fields[1]", reason, status)
    assert expected in message
    assert "the target says why" in message
    assert details["hint"]
    assert kept() == []


def test_a_response_with_a_field_specific_error_is_still_valid_for_another_field(edith, target, rest):
    target.on("/api/codes/b", Answer(404))
    result = rest()
    generated(edith, CODES, call(result, on_error="blank"))
    _, details = failed(edith, CODES, call(result), status=422, code="validation_error")
    (fault,) = details["fields"]
    assert fault["code"] == "bad_answer"
    assert "404 Not Found to 1 of 2 paths, such as /codes/b" in fault["message"]
    assert "refresh" in fault["hint"]
    assert len(target.calls("/api/codes/b")) == 1


def test_an_element_of_an_array_has_its_own_path(edith, target, rest):
    inner = [
        {"name": "sku", "type": "enum", "options": {"values": ["a", "b"]}},
        call(rest(), "/codes/{{sku}}"),
    ]
    lines = {
        "name": "lines",
        "type": "nested",
        "options": {"array": True, "count": {"min": 2, "max": 3}, "fields": inner},
    }
    rows = generated(edith, lines, count=20).json
    assert {(line["sku"], line["value"]) for row in rows for line in row["lines"]} == {("a", "A"), ("b", "B")}
    assert len(target.calls()) == 2


def test_objects_are_inserted_into_rows_as_objects(edith, target, rest):
    target.on("/api/codes/*", Answer(200, {"tags": [{"k": 1.5}, "x"]}))
    assert generated(edith, CODES, call(rest(), extract="$.tags")).json[0]["value"] == [{"k": 1.5}, "x"]


def test_an_empty_answer_finds_nothing(edith, target, rest):
    target.on("/api/codes/b", Answer(204))
    assert generated(edith, CODES, call(rest(), on_empty="blank")).json[1]["value"] is None


def test_answers_that_came_before_a_failure_are_not_asked_for_again(edith, target, rest, kept):
    target.on("/api/codes/b", Answer(500), Answer(200, {"name": "B"}))
    field = call(rest(parallel=1))
    failed(edith, CODES, field)
    assert len(kept()) == 1
    generated(edith, CODES, field)
    assert len(target.calls("/api/codes/a")) == 1


def test_a_response_that_is_too_large_is_rejected(edith, target, rest, monkeypatch):
    target.on("/api/codes/*", Answer(200, ["x" * 2_000]))
    monkeypatch.setattr(limits, "HTTP_RESPONSE_BYTES", 1_000)
    assert failed(edith, CODES, call(rest()))[1]["reason"] == "too_large"
    monkeypatch.setattr(limits, "HTTP_RESPONSE_BYTES", 10_000)
    monkeypatch.setattr(limits, "FETCHED_JSON_BYTES", 3_000)
    assert failed(edith, CODES, call(rest()))[1]["reason"] == "too_large"


def test_a_target_that_does_not_answer_is_given_up_in_time(edith, target, rest, monkeypatch):
    monkeypatch.setattr(limits, "FETCH_SECONDS", 0.3)
    target.on("/api/codes/*", Answer(delay=30))
    assert failed(edith, CODES, call(rest()), status=504, code="target_timeout")[1]["path"] == "fields[1]"


def test_an_attempt_that_would_come_too_late_is_not_waited_for(edith, target, rest):
    target.on("/api/codes/*", Answer(503))
    slow = rest(retry={"backoff_seconds": [limits.FETCH_SECONDS + 1]})
    assert failed(edith, CODES, call(slow))[1]["reason"] == "unavailable"
    assert len(target.calls("/api/codes/a")) == 1
