"""Values of a model: many rows a request, checked, asked for once, the same again under the same seed."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select

from tests.fakes import ai_server as quirk
from tests.fakes.ai_server import AiServer
from tests.views.speak import faults, make, refused
from tests.views.targets import connection
from webapp import limits
from webapp.connections.models import Fetched
from webapp.exports import services as exports
from webapp.extensions import db, read_session

CODE = {"name": "code", "type": "list_sequential", "options": {"values": ["A", "B", "A"]}}


@pytest.fixture
def server():
    with AiServer() as found:
        yield found


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def model(app, cast, server):
    """Makes a connection to the server, the project's only one."""

    def make(**more: Any) -> str:
        return connection(app, cast, "ai", server.settings(**more), name="Model")

    return make


def ai(prompt: str = "A word for {{code}}", name: str = "word", **options: Any) -> dict[str, Any]:
    common = {key: options.pop(key) for key in ("sensitive", "hidden") if key in options}
    return {"name": name, "type": "AI", "options": {"prompt": prompt, **options}, **common}


def path_of(edith, *fields, **more) -> str:
    return f"/templates/{make(edith, fields=list(fields), **more)['id']}"


def generated(edith, path, **body):
    answer = edith.post(f"{path}/generate", json={"count": 30, "seed": "s", **body})
    assert answer.status_code == 200, answer.json
    return answer


def failing(edith, path, **body):
    return edith.post(f"{path}/generate", json={"count": 30, "seed": "s", **body})


# --- Once, and the same again ------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_texts_without_calling_the_model(edith, server, model, app):
    model(rows_per_request=10)
    path = path_of(edith, CODE, ai())
    preview = edith.post(f"{path}/preview", json={"seed": "s"}).json["rows"]
    result = generated(edith, path)
    assert result.json[:3] == preview
    assert len({row["word"] for row in result.json}) == 30
    requests = [len(item.prompts) for item in server.asked]
    assert (requests[0], sorted(requests[1:])) == (
        3,
        [7, 10, 10],
    )  # the requests of one generation run in parallel
    assert {prompt for item in server.asked for prompt in item.prompts.values()} == {
        "A word for A",
        "A word for B",
    }
    assert generated(edith, path).data == result.data
    assert generated(edith, path, count=10, offset=5).json == result.json[5:15]
    export = edith.post(f"{path}/exports", json={"count": 30, "seed": "s"}).json
    with app.app_context():
        assert exports.load_job(export["id"]).recipe.open().read() == result.data
    assert len(server.asked) == 4


def test_another_seed_has_different_texts(edith, server, model):
    model()
    path = path_of(edith, CODE, ai())
    first = {row["word"] for row in generated(edith, path).json}
    assert first.isdisjoint(row["word"] for row in generated(edith, path, seed="t").json)


def test_equal_prompts_have_one_text_if_the_field_says_so(edith, server, model):
    model()
    path = path_of(edith, CODE, ai(same_for_equal_prompts=True))
    result = generated(edith, path).json
    assert len({(row["code"], row["word"]) for row in result}) == 2
    assert [len(item.prompts) for item in server.asked] == [2]


def test_a_preview_without_external_calls_shows_an_example_and_says_so(edith, server, model):
    model()
    path = path_of(edith, CODE, ai(examples=["shiny", "dull"]))
    answer = edith.post(f"{path}/preview", json={"seed": "s", "fetch": False}).json
    assert {row["word"] for row in answer["rows"]} == {"shiny"}
    assert [warning["code"] for warning in answer["warnings"]] == ["placeholder_values"]
    assert server.seen == []


def test_texts_are_requested_again_after_a_refresh(edith, server, model):
    result = model()
    path = path_of(edith, CODE, ai())
    before = generated(edith, path)
    assert edith.post(f"/connections/{result}/fetched/refresh").json["forgotten"] == 30
    assert generated(edith, path).headers["X-Snapshot"] != before.headers["X-Snapshot"]


# --- Requests to the model ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "kind", "fits"),
    [
        ({"kind": "integer"}, int, lambda value: value > 0),
        ({"kind": "decimal", "decimals": 2}, float, lambda value: value % 1 == 0.25),
        ({"kind": "boolean"}, bool, lambda value: value in (True, False)),
        ({"kind": "date"}, str, lambda value: value.startswith("2026-")),
        ({"choices": ["gold", "tin"]}, str, lambda value: value in ("gold", "tin")),
        ({"max_length": 20}, str, lambda value: value.startswith("text ")),
    ],
)
def test_values_are_of_the_kind_that_the_field_says(edith, server, model, options, kind, fits):
    model()
    result = generated(edith, path_of(edith, CODE, ai(**options)), count=5).json
    assert all(type(row["word"]) is kind and fits(row["word"]) for row in result)
    value = server.asked[0].body["response_format"]["json_schema"]["schema"]["properties"]["rows"]["items"]
    assert value["properties"]["value"]["type"] in ("integer", "number", "boolean", "string")


def test_the_fields_constraints_are_sent_to_the_model(edith, server, model):
    model()
    path = path_of(edith, CODE, ai(max_length=12, examples=["shiny"], temperature=0.2))
    generated(edith, path, count=2)
    assert "at most 12 characters" in server.asked[0].user
    assert '["shiny"]' in server.asked[0].user
    assert server.asked[0].body["temperature"] == 0.2


def test_texts_may_be_read_by_other_fields_and_read_others(edith, server, model):
    model()
    loud = {"name": "loud", "type": "derived", "options": {"value": "{{word | upper}}!"}}
    path = path_of(edith, CODE, ai(), loud, ai("Answer to {{loud}}", "answer"))
    result = generated(edith, path, count=3).json
    assert all(row["loud"] == f"{row['word'].upper()}!" for row in result)
    assert sorted(server.asked[1].prompts.values()) == sorted(f"Answer to {row['loud']}" for row in result)


# --- Answers that do not fit -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "calls"),
    [
        (quirk.fenced, 1), (quirk.thinking, 1), (quirk.too_many, 1), (quirk.backwards, 1), (quirk.plain_list, 1),
        (quirk.broken, 2), (quirk.cut_off, 2), (quirk.too_few, 2), (quirk.wrong_types, 2), (quirk.nothing, 2),
        (quirk.throttled(), 2),
    ],
)  # fmt: skip
def test_every_row_gets_its_text_after_any_single_error_of_the_model(edith, server, model, what, calls):
    model()
    server.quirks = [what]
    result = generated(edith, path_of(edith, CODE, ai()), count=5).json
    assert len(server.asked) == calls
    good = {row["value"] for item in server.asked for row in item.rows}
    assert len({row["word"] for row in result} & good) == 5


def test_only_invalid_rows_are_requested_again_with_the_reason(edith, server, model):
    model()
    server.quirks = [quirk.says("good", "much too long for it", "fine")]
    path = path_of(edith, CODE, ai("A word", max_length=10))
    result = generated(edith, path, count=3).json
    assert [len(item.prompts) for item in server.asked] == [3, 1]
    assert "id 1: it is longer than 10 characters" in server.asked[1].user
    assert [row["word"] for row in result] == ["good", server.asked[1].rows[0]["value"], "fine"]


def test_a_row_that_never_fits_is_an_error_and_the_others_are_kept(edith, server, model):
    model()
    server.quirks = [quirk.says("a", 5.5), quirk.says("x"), quirk.says(None)]
    path = path_of(edith, CODE, ai("A number", kind="integer"))
    server.quirks = [quirk.says(1, "x"), quirk.says("x"), quirk.says(None)]
    details = refused(failing(edith, path, count=2), 502, "target_failed")
    assert (details["reason"], details["answered"], details["asked"]) == ("bad_answer", 1, 2)
    assert details["path"] == "fields[1]"
    result = generated(edith, path, count=2).json
    assert result[0]["word"] == 1
    assert [len(item.prompts) for item in server.asked] == [2, 1, 1, 1]


@pytest.mark.parametrize(
    ("more", "value"), [({"on_error": "blank"}, None), ({"on_error": "default", "default": 0}, 0)]
)
def test_a_row_that_never_fits_may_be_blank_or_the_default(edith, server, model, more, value):
    model()
    server.quirks = [quirk.says(1, "x"), quirk.says("x"), quirk.says(None)]
    path = path_of(edith, CODE, ai("A number", kind="integer", **more))
    assert [row["word"] for row in generated(edith, path, count=2).json] == [1, value]
    assert [row["word"] for row in generated(edith, path, count=2).json] == [1, value]
    assert len(server.asked) == limits.AI_ATTEMPTS


def test_a_rejected_response_format_is_detected_once_per_run(edith, server, model):
    model(rows_per_request=5)
    server.refuses = {"json_schema", "json_object"}
    generated(edith, path_of(edith, CODE, ai()))
    assert sorted(item.format for item in server.asked) == ["json_object", "json_schema", *["none"] * 6]


# --- What goes wrong ---------------------------------------------------------------------------------------


def test_without_a_model_the_error_explains_how_to_create_one(edith):
    path = path_of(edith, CODE, ai())
    for answer in (
        failing(edith, path),
        edith.post(f"{path}/preview", json={}),
        edith.post(f"{path}/exports", json={}),
    ):
        details = refused(answer, 422, "provider_missing")
        assert "connection of type ai" in details["hint"]
        assert details["path"] == "fields[1]"


def test_of_two_models_one_has_to_be_named(edith, server, model):
    first, second = model(), model()
    path = path_of(edith, CODE, ai())
    answer = failing(edith, path)
    assert faults(answer) == {"fields[1].options.connection_id": "missing"}
    hint = answer.json["error"]["details"]["fields"][0]["hint"]
    assert first in hint
    assert second in hint
    generated(edith, path_of(edith, CODE, ai(connection_id=second)), count=2)


def test_a_connection_that_is_not_a_model_is_rejected(edith, server, app, cast):
    result = connection(app, cast, "rest", {"base_url": server.base_url})
    answer = failing(edith, path_of(edith, CODE, ai(connection_id=result)))
    assert faults(answer) == {"fields[1].options.connection_id": "not_for_this_type"}


def test_a_model_of_another_workspace_is_not_there(api, cast, server, model):
    result = model()
    mallory = api(cast.mallory)
    answer = mallory.post("/templates", json={"name": "T", "fields": [CODE, ai(connection_id=result)]})
    assert faults(answer) == {"fields[1].options.connection_id": "unknown_connection"}
    refused(failing(mallory, path_of(mallory, CODE, ai())), 422, "provider_missing")
    assert server.seen == []


def test_the_time_limit_of_a_run_ends_it_and_a_new_request_continues(edith, server, model):
    model(rows_per_request=5, max_calls=2, parallel=1)
    path = path_of(edith, CODE, ai())
    for answered in (10, 10):
        details = refused(failing(edith, path), 502, "target_failed")
        assert (details["reason"], details["answered"], details["calls"]) == ("cap_reached", answered, 2)
    assert len({row["word"] for row in generated(edith, path).json}) == 30
    assert len(server.asked) == 6


def test_a_model_that_stops_answering_leaves_what_it_said(edith, server, model):
    model(rows_per_request=10, parallel=1, retry={"timeout_seconds": 5, "retries": 0})
    server.quirks = [lambda chat: chat.good, quirk.throttled()]
    path = path_of(edith, CODE, ai())
    details = refused(failing(edith, path), 502, "target_failed")
    assert (details["reason"], details["answered"], details["asked"]) == ("throttled", 10, 30)
    generated(edith, path)
    assert [len(item.prompts) for item in server.asked] == [10, 10, 10, 10]


def test_an_invalid_key_is_reported_without_showing_it(edith, server, model):
    server.key = "sk-right"
    model(api_key="sk-wrong-key-1234")
    answer = failing(edith, path_of(edith, CODE, ai()))
    assert refused(answer, 502, "target_failed")["reason"] == "auth_failed"
    assert "sk-wrong-key-1234" not in answer.get_data(as_text=True)


# --- Sensitive values --------------------------------------------------------------------------------------

SSN = {"name": "ssn", "type": "ssn", "sensitive": True, "hidden": True}
COVERED = {"name": "covered", "type": "derived", "options": {"value": "No. {{ssn}}"}}


@pytest.mark.parametrize("prompt", ["About {{ssn}}", "About {{covered}}"])
def test_sensitive_values_are_not_sent_unless_the_field_allows_it(edith, server, model, prompt):
    model()
    answer = edith.post("/templates", json={"name": "T", "fields": [SSN, COVERED, ai(prompt)]})
    assert faults(answer) == {"fields[2].options.prompt": "sensitive"}
    generated(edith, path_of(edith, SSN, COVERED, ai(prompt, allow_sensitive=True)), count=2)
    assert len(server.asked) == 1


def test_a_sensitive_text_is_redacted(edith, server, model):
    model()
    result = generated(edith, path_of(edith, CODE, ai(sensitive=True)), count=2).json
    assert {row["word"] for row in result} == {"[redacted]"}


def test_stored_responses_contain_no_prompt(edith, server, model, app):
    model()
    generated(edith, path_of(edith, CODE, ai("A secret plan for {{code}}")), count=2)
    with app.app_context():
        rows = db.session.scalars(select(Fetched)).all()
    assert len(rows) == 2
    assert not any("secret plan" in f"{row.question} {row.value}" for row in rows)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"prompt": "{{nothing}}"}, "prompt"),
        ({"prompt": "{{code"}, "prompt"),
        ({"kind": "choice"}, ""),
        ({"choices": ["a"], "kind": "text"}, ""),
        ({"kind": "integer", "max_length": 3}, ""),
        ({"temperature": 3}, "temperature"),
        ({"default": "x"}, "default"),
        ({"model": "x"}, "model"),
    ],
)
def test_invalid_options_are_rejected_with_their_path(edith, options, path):
    answer = edith.post("/templates", json={"name": "T", "fields": [CODE, ai(**options)]})
    assert list(faults(answer)) == [f"fields[1].options{'.' if path else ''}{path}"]


def test_the_body_of_a_request_is_consumed_before_the_next_one_is_answered(edith, server, model, app):
    model(rows_per_request=10, parallel=1)
    seen = []

    def looking(chat):
        with app.app_context(), read_session() as session:
            seen.append(len(session.scalars(select(Fetched.id)).all()))
        return chat.good

    server.quirks = [looking] * 3
    generated(edith, path_of(edith, ai("A word")))
    assert seen[:2] == [0, 10]
