"""Values from an API: each path is requested once, before the first row; later requests get the stored response."""

from __future__ import annotations

import pytest

from tests.fakes.echo_target import Answer, EchoTarget, Seen, busy, redirect
from tests.fakes.oauth_server import OAuthServer
from tests.services import fetched_calls
from tests.services.fetched_calls import CODES, call, failed, generated
from tests.views.speak import faults, make
from tests.views.targets import (
    connection,
    sqlite_target,
    work,  # noqa: F401
)
from webapp import limits
from webapp.connectors.http import tokens
from webapp.exports import services as exports
from webapp.sources.services import kept_answers

target = fetched_calls.target
edith = fetched_calls.edith
rest = fetched_calls.rest
NUMBERS = {"name": "code", "type": "row_number"}


# --- Calls --------------------------------------------------------------------------------------------------


def test_each_path_is_called_once_and_not_again_under_the_same_seed(edith, target, rest):
    field = call(rest())
    first = generated(edith, CODES, field)
    assert {(row["code"], row["value"]) for row in first.json} == {("a", "A"), ("b", "B")}
    assert sorted(item.path for item in target.calls()) == ["/api/codes/a", "/api/codes/b"]
    assert {item.method for item in target.calls()} == {"GET"}
    target.on("/api/codes/*", Answer(200, {"name": "other"}))
    assert generated(edith, CODES, field).data == first.data
    assert generated(edith, CODES, field, count=70).json[:50] == first.json
    assert len(target.calls()) == 2


def test_fields_with_the_same_path_share_one_call(edith, target, rest):
    result = rest()
    fields = [
        CODES,
        call(result),
        call(result, extract="$.n", name="n"),
        call(result, extract="$.x", name="x", on_empty="blank"),
    ]
    rows = generated(edith, *fields).json
    assert rows[0] == {"code": "a", "value": "A", "n": 7, "x": None}
    assert len(target.calls()) == 2
    # Another template that comes to the same path, with or without a field in it, is given what is kept.
    rows = generated(
        edith, call(result, "codes/a"), call(result, "/codes/a", name="w", on_error="blank")
    ).json
    assert (rows[0]["value"], rows[0]["w"]) == ("A", "A")
    assert len(target.calls()) == 2


def test_the_calls_carry_what_the_connection_says(edith, target, rest):
    result = rest(
        default_headers={"X-Tenant": "t1"},
        auth={"type": "api-key", "in": "query", "name": "key", "value": "s3cret-key"},
    )
    generated(edith, CODES, call(result, "/codes/{{code}}?of={{code}}"))
    seen = target.calls("/api/codes/a")[0]
    assert (seen.headers["x-tenant"], seen.query) == ("t1", {"of": ["a"], "key": ["s3cret-key"]})
    assert seen.headers["accept"] == "application/json"


def test_the_number_of_parallel_calls_is_the_connections_limit(edith, target, rest):
    target.on("/api/codes/*", lambda seen: Answer(200, {"name": seen.path}, delay=0.02))
    generated(edith, NUMBERS, call(rest(parallel=4)), count=24)
    assert 2 <= target.most_at_once <= 4
    assert len(target.calls()) == 24


def test_a_thousand_paths_are_requested_once_each_and_one_more_is_rejected_before_the_first(
    edith, target, rest
):
    field = call(rest(), extract="$.path")
    rows = generated(edith, NUMBERS, field, count=1_000).json
    assert [row["value"] for row in rows] == [f"/api/codes/{number}" for number in range(1, 1_001)]
    assert len(target.calls()) == len({item.path for item in target.calls()}) == 1_000
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
    tokens.tokens.clear()
    with OAuthServer() as server:
        auth = {
            "type": "oauth2-client-credentials", "token_url": server.token_url, "client_id": server.client_id,
            "client_secret": server.client_secret,
        }  # fmt: skip
        result = connection(app, cast, "rest", {"base_url": server.url("/guarded"), "auth": auth})
        rows = generated(edith, NUMBERS, call(result, "/{{code}}", "$.token"), count=20).json
        assert {row["value"] for row in rows} == {1}
        assert len(server.given) == 1
        server.on("/token", Answer(401, {"error": "invalid_client"}))
        server.revoke()
        message, details = failed(
            edith, NUMBERS, call(result, "/other/{{code}}"), code="token_request_failed"
        )
        assert details["path"] == "fields[1]"
        assert "invalid_client" in message
    tokens.tokens.clear()


def test_a_path_can_depend_on_the_response_of_another(edith, target, rest):
    result = rest()
    target.on("/api/next/*", lambda seen: Answer(200, {"name": f"after {seen.path[-1]}"}))
    rows = generated(edith, CODES, call(result), call(result, "/next/{{value}}", name="next")).json
    assert [row["next"] for row in rows[:3]] == ["after A", "after B", "after A"]


# --- What is not called -------------------------------------------------------------------------------------


def test_a_preview_makes_no_external_calls_unless_requested(edith, target, rest):
    fields = [CODES, call(rest())]
    look = edith.post("/preview", json={"fields": fields, "seed": "s"}).json
    assert [row["value"] for row in look["rows"]] == ["example"] * 3
    assert [(warning["path"], warning["code"]) for warning in look["warnings"]] == [
        ("fields[1]", "placeholder_values")
    ]
    assert target.calls() == []
    fetched = edith.post("/preview", json={"fields": fields, "seed": "s", "fetch": True}).json
    assert ([row["value"] for row in fetched["rows"]], fetched["warnings"]) == (["A", "B", "A"], [])
    assert edith.post("/preview", json={"fields": fields, "seed": "s"}).json["rows"] == fetched["rows"]
    assert generated(edith, *fields).json[:3] == fetched["rows"]
    assert len(target.calls()) == 2


def test_a_connection_without_paths_is_rejected_by_name(app, cast, edith):
    result = sqlite_target(app, cast).connection_id
    answer = edith.post("/preview", json={"fields": [CODES, call(result)]})
    assert faults(answer) == {"fields[1].options.connection_id": "not_for_this_type"}


def test_a_query_is_no_question_to_an_api(edith, rest):
    result = rest()
    query = {"name": "q", "type": "db_response", "options": {"connection_id": result, "query": "select 1"}}
    assert failed(edith, CODES, call(result), query)[1]["reason"] == "unsupported"


def test_a_connection_of_others_is_not_there(api, cast, rest):
    answer = api(cast.mallory).post("/generate", json={"fields": [CODES, call(rest())], "count": 3})
    assert faults(answer) == {"fields[1].options.connection_id": "unknown_connection"}


@pytest.mark.parametrize("how", ["base", "redirect"])
def test_the_address_guard_judges_every_call(app, cast, edith, target, rest, how):
    if how == "redirect":
        target.on("/api/codes/*", redirect("http://169.254.169.254/latest/meta-data"))
        result = rest()
    else:
        result = connection(app, cast, "rest", {"base_url": "http://169.254.169.254/latest"})
    details = failed(edith, CODES, call(result), status=403, code="target_not_allowed")[1]
    assert (details["path"], details["reason"]) == ("fields[1]", "not_allowed")


def test_a_value_leads_nowhere_upwards(edith, target, rest):
    up = {"name": "code", "type": "constant", "options": {"value": ".."}}
    assert failed(edith, up, call(rest()))[1]["reason"] == "bad_path"
    assert target.calls() == []


# --- Secrets ------------------------------------------------------------------------------------------------


def test_sensitive_values_are_not_exposed(edith, rest):
    result = generated(edith, CODES, call(rest(), extract="$.path", sensitive=True))
    assert {row["value"] for row in result.json} == {"[redacted]"}
    assert b"/api/codes" not in result.data


@pytest.mark.parametrize("which", ["the field", "a field in its path"])
@pytest.mark.parametrize(
    "answer", [Answer(404, {"error": "no Anna-4711"}), Answer(cut="read"), redirect("/Anna-4711:x")]
)
def test_a_sensitive_value_is_in_no_error(edith, target, rest, which, answer):
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
    result = rest(auth={"type": "bearer", "token": "very-secret-token"})
    reply = edith.post("/generate", json={"fields": [CODES, call(result)], "count": 1})
    assert reply.status_code == 502
    assert "very-secret-token" not in reply.text
    assert "you sent" in reply.text


def test_only_a_useful_part_of_a_body_is_reported(edith, target, rest):
    target.on("/api/codes/*", Answer(500, "x" * 5_000))
    assert failed(edith, CODES, call(rest()))[0].count("x") <= limits.FETCHED_MESSAGE_CHARS + 20


def counting(target: EchoTarget) -> None:
    """Answers that differ from call to call."""
    calls = iter(range(1_000))

    def rule(seen: Seen) -> Answer:
        return Answer(200, {"name": f"{seen.path[-1]}{next(calls)}"})

    target.on("/api/codes/*", rule)


# --- Pins ---------------------------------------------------------------------------------------------------


def test_an_open_export_keeps_its_responses_after_changes_of_the_target(edith, target, rest, app):
    counting(target)
    result = rest()
    path = f"/templates/{make(edith, fields=[CODES, call(result)])['id']}"
    before = edith.post(f"{path}/generate", json={"count": 50, "seed": "s"})
    export = edith.post(f"{path}/exports", json={"count": 50, "seed": "s"}).json
    assert edith.post(f"/connections/{result}/fetched/refresh").json["forgotten"] >= 2
    after = edith.post(f"{path}/generate", json={"count": 50, "seed": "s"})
    assert after.data != before.data
    assert after.headers["X-Snapshot"] != before.headers["X-Snapshot"]
    with app.app_context():
        kept_answers._CACHE._answers.clear()
        assert exports.load_job(export["id"]).recipe.open().read() == before.data


def test_a_push_sends_and_repeats_what_it_was_made_of(edith, target, rest, app, cast, work):
    counting(target)
    result = rest()
    path = f"/templates/{make(edith, fields=[CODES, call(result)])['id']}"
    before = edith.post(f"{path}/generate", json={"count": 6, "seed": "s"}).json
    target.on("/api/rows", *[Answer(422)] * 6, Answer(201), method="POST")
    how = {
        "connection_id": result,
        "target": "/rows",
        "count": 6,
        "seed": "s",
        "mapping": {"code": "code", "value": "value"},
    }
    push = edith.post(f"{path}/push", json=how)
    assert push.status_code == 201, push.json
    edith.post(f"/connections/{result}/fetched/refresh")
    work(push.json["id"])
    again = edith.post(f"/pushes/{push.json['id']}/retry", json={"states": ["failed"]})
    assert again.status_code in (200, 201), again.json
    work(again.json["id"])
    sent = [item.json for item in target.calls("/api/rows")]
    by_row = lambda rows: sorted(rows, key=lambda row: (row["code"], row["value"]))  # noqa: E731
    assert len(sent) == 12
    assert by_row(sent[:6]) == by_row(sent[6:]) == by_row(before)
    assert len(target.calls("/api/codes/*")) == 2
