"""Values of an API: each path is called once, before the first row, and whoever needs its answer again is given it."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from tests.fakes.echo_target import Answer, EchoTarget, Seen, busy, redirect
from tests.fakes.oauth_server import OAuthServer
from tests.views.speak import faults, make, refused
from tests.views.targets import connection, sqlite_target, work  # noqa: F401
from webapp import clock, limits
from webapp.connectors import http_token
from webapp.extensions import db
from webapp.models import Fetched
from webapp.services import answers, exports

QUICK = {"backoff_seconds": [0, 0, 0]}
CODES = {"name": "code", "type": "list_sequential", "options": {"values": ["a", "b", "a"]}}
NUMBERS = {"name": "code", "type": "row_number"}


@pytest.fixture
def target():
    with EchoTarget() as made:
        made.on(
            "/api/codes/*",
            lambda seen: Answer(200, {"name": seen.path[-1:].upper(), "path": seen.path, "n": 7}),
        )
        yield made


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def rest(app, cast, target):
    """The id of a new connection to the target."""

    def do(**settings: Any) -> str:
        more = {name: settings.pop(name) for name in ("read_only",) if name in settings}
        return connection(
            app, cast, "rest", {"base_url": target.url("/api"), "retry": QUICK, **settings}, **more
        )

    return do


@pytest.fixture
def kept(app):
    def do() -> list[Fetched]:
        with app.app_context():
            return list(db.session.scalars(select(Fetched).where(Fetched.expires_at > clock.now())))

    return do


def call(
    connection_id: str, path: str = "/codes/{{code}}", extract: str = "$.name", **more: Any
) -> dict[str, Any]:
    common = {name: more.pop(name) for name in ("name", "sensitive") if name in more}
    options = {"connection_id": connection_id, "path": path, "extract": extract, **more}
    return {"name": "value", "type": "api_response", "options": options, **common}


def generated(edith, *fields: Any, **body: Any) -> Any:
    answer = edith.post("/generate", json={"fields": list(fields), "count": 50, "seed": "s", **body})
    assert answer.status_code == 200, answer.json
    return answer


def failed(edith, *fields: Any, status: int = 502, code: str = "target_failed") -> tuple[str, dict[str, Any]]:
    answer = edith.post("/generate", json={"fields": list(fields), "count": 3, "seed": "s"})
    return answer.json["error"]["message"], refused(answer, status, code)


# --- Calls ----------------------------------------------------------------------------------------------------


def test_each_path_is_called_once_and_not_again_under_the_same_seed(edith, target, rest):
    field = call(rest())
    first = generated(edith, CODES, field)
    assert {(row["code"], row["value"]) for row in first.json} == {("a", "A"), ("b", "B")}
    assert sorted(one.path for one in target.calls()) == ["/api/codes/a", "/api/codes/b"]
    assert {one.method for one in target.calls()} == {"GET"}
    target.on("/api/codes/*", Answer(200, {"name": "other"}))
    assert generated(edith, CODES, field).data == first.data
    assert generated(edith, CODES, field, count=70).json[:50] == first.json
    assert len(target.calls()) == 2


def test_fields_with_the_same_path_share_one_call(edith, target, rest):
    made = rest()
    fields = [
        CODES,
        call(made),
        call(made, extract="$.n", name="n"),
        call(made, extract="$.x", name="x", on_empty="blank"),
    ]
    rows = generated(edith, *fields).json
    assert rows[0] == {"code": "a", "value": "A", "n": 7, "x": None}
    assert len(target.calls()) == 2
    # Another template that comes to the same path, with or without a field in it, is given what is kept.
    rows = generated(edith, call(made, "codes/a"), call(made, "/codes/a", name="w", on_error="blank")).json
    assert (rows[0]["value"], rows[0]["w"]) == ("A", "A")
    assert len(target.calls()) == 2


def test_the_calls_carry_what_the_connection_says(edith, target, rest):
    made = rest(
        default_headers={"X-Tenant": "t1"},
        auth={"type": "api-key", "in": "query", "name": "key", "value": "s3cret-key"},
    )
    generated(edith, CODES, call(made, "/codes/{{code}}?of={{code}}"))
    seen = target.calls("/api/codes/a")[0]
    assert (seen.headers["x-tenant"], seen.query) == ("t1", {"of": ["a"], "key": ["s3cret-key"]})
    assert seen.headers["accept"] == "application/json"


def test_as_many_calls_go_at_once_as_the_connection_allows(edith, target, rest):
    target.on("/api/codes/*", lambda seen: Answer(200, {"name": seen.path}, delay=0.02))
    generated(edith, NUMBERS, call(rest(parallel=4)), count=24)
    assert 2 <= target.most_at_once <= 4
    assert len(target.calls()) == 24


def test_a_thousand_paths_are_called_once_each_and_one_more_is_refused_before_the_first(edith, target, rest):
    field = call(rest(), extract="$.path")
    rows = generated(edith, NUMBERS, field, count=1_000).json
    assert [row["value"] for row in rows] == [f"/api/codes/{number}" for number in range(1, 1_001)]
    assert len(target.calls()) == len({one.path for one in target.calls()}) == 1_000
    answer = edith.post("/generate", json={"fields": [NUMBERS, field], "count": 1_001, "offset": 1})
    assert faults(answer) == {"fields[1]": "too_many_questions"}
    assert len(target.calls()) == 1_000


def test_a_call_is_tried_again_as_the_connection_says(edith, target, rest):
    target.on("/api/codes/a", Answer(503), busy(0), Answer(200, {"name": "at last"}))
    assert generated(edith, CODES, call(rest())).json[0]["value"] == "at last"
    assert len(target.calls("/api/codes/a")) == 3


def test_a_read_only_connection_may_be_asked(edith, rest):
    assert generated(edith, CODES, call(rest(read_only=True))).json[0]["value"] == "A"


def test_one_token_serves_all_calls(app, cast, edith):
    http_token.tokens.clear()
    with OAuthServer() as server:
        auth = {
            "type": "oauth2-client-credentials", "token_url": server.token_url, "client_id": server.client_id,
            "client_secret": server.client_secret,
        }  # fmt: skip
        made = connection(app, cast, "rest", {"base_url": server.url("/guarded"), "auth": auth})
        rows = generated(edith, NUMBERS, call(made, "/{{code}}", "$.token"), count=20).json
        assert {row["value"] for row in rows} == {1}
        assert len(server.given) == 1
        server.on("/token", Answer(401, {"error": "invalid_client"}))
        server.revoke()
        message, details = failed(edith, NUMBERS, call(made, "/other/{{code}}"), code="token_request_failed")
        assert details["path"] == "fields[1]"
        assert "invalid_client" in message
    http_token.tokens.clear()


def test_a_path_may_hang_on_what_another_one_answers(edith, target, rest):
    made = rest()
    target.on("/api/next/*", lambda seen: Answer(200, {"name": f"after {seen.path[-1]}"}))
    rows = generated(edith, CODES, call(made), call(made, "/next/{{value}}", name="next")).json
    assert [row["next"] for row in rows[:3]] == ["after A", "after B", "after A"]


# --- What an answer is taken for ------------------------------------------------------------------------------


def test_nothing_found_is_told_with_the_path_unless_the_field_says_otherwise(edith, target, rest):
    target.on("/api/codes/b", Answer(200, {"other": 1}))
    made = rest()
    _, details = failed(edith, CODES, call(made), status=422, code="validation_error")
    (fault,) = details["fields"]
    assert (fault["path"], fault["code"]) == ("fields[1]", "empty_answer")
    assert "1 of 2 paths, such as /codes/b" in fault["message"]
    rows = generated(
        edith, CODES, call(made, on_empty="blank"), call(made, name="d", on_empty="default", default="-")
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
def test_what_an_answer_says_of_its_path_is_an_error_blank_or_the_default(
    edith, target, rest, kept, answer, reason
):
    target.on("/api/codes/b", answer)
    made = rest(parallel=1)
    message, details = failed(edith, CODES, call(made))
    assert (details["path"], details["reason"], details["status"]) == ("fields[1]", reason, answer.status)
    assert "GET /codes/b" in message
    assert "on_error: blank" in details["hint"]
    assert len(kept()) == 1  # of the other path
    rows = generated(
        edith, CODES, call(made, on_error="blank"), call(made, name="d", on_error="default", default="-")
    ).json
    assert [(row["value"], row["d"]) for row in rows[:2]] == [("A", "A"), (None, "-")]
    assert len(target.calls("/api/codes/b")) == 2


@pytest.mark.parametrize(
    ("status", "reason", "told"),
    [
        (401, "forbidden", "does not accept the credentials"),
        (403, "forbidden", "may not read this"),
        (429, "throttled", "takes no more requests"),
        (500, "unavailable", "is in trouble"),
        (503, "unavailable", "is in trouble"),
    ],
)
def test_what_concerns_the_connection_is_always_an_error_and_never_kept(
    edith, target, rest, kept, status, reason, told
):
    target.on("/api/codes/*", Answer(status, {"error": "the target says why"}))
    message, details = failed(edith, CODES, call(rest(), on_error="blank"))
    assert (details["path"], details["reason"], details["status"]) == ("fields[1]", reason, status)
    assert told in message
    assert "the target says why" in message
    assert details["hint"]
    assert kept() == []


def test_an_answer_that_one_field_bears_is_told_by_another_that_does_not(edith, target, rest):
    target.on("/api/codes/b", Answer(404))
    made = rest()
    generated(edith, CODES, call(made, on_error="blank"))
    _, details = failed(edith, CODES, call(made), status=422, code="validation_error")
    (fault,) = details["fields"]
    assert fault["code"] == "bad_answer"
    assert "404 Not Found to 1 of 2 paths, such as /codes/b" in fault["message"]
    assert "refresh" in fault["hint"]
    assert len(target.calls("/api/codes/b")) == 1


def test_an_element_of_an_array_has_a_path_of_its_own(edith, target, rest):
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


def test_objects_stand_in_the_rows_as_objects(edith, target, rest):
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


def test_an_answer_that_is_too_large_is_refused(edith, target, rest, monkeypatch):
    target.on("/api/codes/*", Answer(200, ["x" * 2_000]))
    monkeypatch.setattr(limits, "HTTP_ANSWER_BYTES", 1_000)
    assert failed(edith, CODES, call(rest()))[1]["reason"] == "too_large"
    monkeypatch.setattr(limits, "HTTP_ANSWER_BYTES", 10_000)
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


# --- What is not called ---------------------------------------------------------------------------------------


def test_a_look_calls_nobody_until_it_is_asked_to(edith, target, rest):
    fields = [CODES, call(rest())]
    look = edith.post("/preview", json={"fields": fields, "seed": "s"}).json
    assert [row["value"] for row in look["rows"]] == ["example"] * 3
    assert [(one["path"], one["code"]) for one in look["warnings"]] == [("fields[1]", "stand_in")]
    assert target.calls() == []
    fetched = edith.post("/preview", json={"fields": fields, "seed": "s", "fetch": True}).json
    assert ([row["value"] for row in fetched["rows"]], fetched["warnings"]) == (["A", "B", "A"], [])
    assert edith.post("/preview", json={"fields": fields, "seed": "s"}).json["rows"] == fetched["rows"]
    assert generated(edith, *fields).json[:3] == fetched["rows"]
    assert len(target.calls()) == 2


def test_a_connection_without_paths_is_refused_by_name(app, cast, edith):
    made = sqlite_target(app, cast).connection_id
    answer = edith.post("/preview", json={"fields": [CODES, call(made)]})
    assert faults(answer) == {"fields[1].options.connection_id": "not_for_this_type"}


def test_a_query_is_no_question_to_an_api(edith, rest):
    made = rest()
    query = {"name": "q", "type": "db_response", "options": {"connection_id": made, "query": "select 1"}}
    assert failed(edith, CODES, call(made), query)[1]["reason"] == "unsupported"


def test_a_connection_of_others_is_not_there(api, cast, rest):
    answer = api(cast.mallory).post("/generate", json={"fields": [CODES, call(rest())], "count": 3})
    assert faults(answer) == {"fields[1].options.connection_id": "unknown_connection"}


@pytest.mark.parametrize("how", ["base", "redirect"])
def test_the_address_guard_judges_every_call(app, cast, edith, target, rest, how):
    if how == "redirect":
        target.on("/api/codes/*", redirect("http://169.254.169.254/latest/meta-data"))
        made = rest()
    else:
        made = connection(app, cast, "rest", {"base_url": "http://169.254.169.254/latest"})
    details = failed(edith, CODES, call(made), status=403, code="target_not_allowed")[1]
    assert (details["path"], details["reason"]) == ("fields[1]", "not_allowed")


def test_a_value_leads_nowhere_upwards(edith, target, rest):
    up = {"name": "code", "type": "constant", "options": {"value": ".."}}
    assert failed(edith, up, call(rest()))[1]["reason"] == "bad_path"
    assert target.calls() == []


# --- Secrets --------------------------------------------------------------------------------------------------


def test_sensitive_values_reach_nobody(edith, rest):
    made = generated(edith, CODES, call(rest(), extract="$.path", sensitive=True))
    assert {row["value"] for row in made.json} == {"[redacted]"}
    assert b"/api/codes" not in made.data


@pytest.mark.parametrize("which", ["the field", "what stands in its path"])
@pytest.mark.parametrize(
    "answer", [Answer(404, {"error": "no Anna-4711"}), Answer(cut="read"), redirect("/Anna-4711:x")]
)
def test_a_sensitive_value_stands_in_no_error(edith, target, rest, which, answer):
    code = {"name": "code", "type": "constant", "options": {"value": "Anna-4711"}}
    own, other = which == "the field", which != "the field"
    target.on("/*", Answer(404, {"error": "no Anna-4711"}))
    target.on("/api/codes/*", answer)
    reply = edith.post(
        "/generate", json={"fields": [{**code, "sensitive": other}, call(rest(), sensitive=own)], "count": 1}
    )
    assert reply.status_code == 502
    assert "Anna" not in reply.text
    assert "GET /codes/{{code}}" in reply.json["error"]["message"]


def test_a_secret_that_the_target_repeats_is_cut(edith, target, rest):
    target.on("/api/codes/*", lambda seen: Answer(403, {"you sent": seen.headers["authorization"]}))
    made = rest(auth={"type": "bearer", "token": "very-secret-token"})
    reply = edith.post("/generate", json={"fields": [CODES, call(made)], "count": 1})
    assert reply.status_code == 502
    assert "very-secret-token" not in reply.text
    assert "you sent" in reply.text


def test_no_more_of_a_body_is_told_than_helps(edith, target, rest):
    target.on("/api/codes/*", Answer(500, "x" * 5_000))
    assert failed(edith, CODES, call(rest()))[0].count("x") <= limits.FETCHED_SAID_CHARS + 20


# --- Pins -----------------------------------------------------------------------------------------------------


def counting(target: EchoTarget) -> None:
    """Answers that differ from call to call."""
    calls = iter(range(1_000))

    def rule(seen: Seen) -> Answer:
        return Answer(200, {"name": f"{seen.path[-1]}{next(calls)}"})

    target.on("/api/codes/*", rule)


def test_an_export_in_hand_keeps_its_answers_whatever_the_target_says_now(edith, target, rest, app):
    counting(target)
    made = rest()
    path = f"/templates/{make(edith, fields=[CODES, call(made)])['id']}"
    before = edith.post(f"{path}/generate", json={"count": 50, "seed": "s"})
    export = edith.post(f"{path}/exports", json={"count": 50, "seed": "s"}).json
    assert edith.post(f"/connections/{made}/fetched/refresh").json["forgotten"] >= 2
    after = edith.post(f"{path}/generate", json={"count": 50, "seed": "s"})
    assert after.data != before.data
    assert after.headers["X-Snapshot"] != before.headers["X-Snapshot"]
    with app.app_context():
        answers._MEMORY._kept.clear()
        assert exports.order(export["id"]).recipe.open().whole() == before.data


def test_a_push_sends_and_repeats_what_it_was_made_of(edith, target, rest, app, cast, work):  # noqa: F811
    counting(target)
    made = rest()
    path = f"/templates/{make(edith, fields=[CODES, call(made)])['id']}"
    before = edith.post(f"{path}/generate", json={"count": 6, "seed": "s"}).json
    target.on("/api/rows", *[Answer(422)] * 6, Answer(201), method="POST")
    how = {
        "connection_id": made,
        "target": "/rows",
        "count": 6,
        "seed": "s",
        "mapping": {"code": "code", "value": "value"},
    }
    push = edith.post(f"{path}/push", json=how)
    assert push.status_code == 201, push.json
    edith.post(f"/connections/{made}/fetched/refresh")
    work(push.json["id"])
    again = edith.post(f"/pushes/{push.json['id']}/retry", json={"states": ["failed"]})
    assert again.status_code in (200, 201), again.json
    work(again.json["id"])
    sent = [one.json for one in target.calls("/api/rows")]
    by_row = lambda rows: sorted(rows, key=lambda row: (row["code"], row["value"]))  # noqa: E731
    assert len(sent) == 12
    assert by_row(sent[:6]) == by_row(sent[6:]) == by_row(before)
    assert len(target.calls("/api/codes/*")) == 2
