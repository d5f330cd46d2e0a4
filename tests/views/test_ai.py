"""A template from a description, a type for a field, and models as connections."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest

from tests.fakes.ai_server import AiServer
from tests.views.builder_page import Editor, send
from tests.views.speak import faults, make, refused
from tests.views.targets import connection, shop, work  # noqa: F401

SHOP = {
    "name": "Customers of a shop",
    "fields": [
        {"name": "id", "type": "row_number"},
        {"name": "email", "type": "Email", "unique": True},
        {"name": "age", "type": "number", "options": {"min": 18, "max": 99}},
    ],
}


@pytest.fixture
def server():
    with AiServer() as found:
        yield found


@pytest.fixture
def model(app, cast, server):
    """Makes a connection to the server, the project's only one."""

    def make(**more: Any) -> str:
        return connection(app, cast, "ai", server.settings(**more), name="Model")

    return make


def described(edith, **body):
    return edith.post("/describe", json={"description": "Customers of a shop", **body})


# --- The connection ----------------------------------------------------------------------------------------


def test_a_model_is_connected_verified_and_its_key_is_kept_secret(edith, server):
    server.key = "sk-right-1234"
    body = {"name": "Model", "type": "ai", "settings": server.settings(api_key="sk-right-1234")}
    created = edith.post("/connections", json=body)
    assert created.status_code == 201, created.json
    assert created.json["verification"]["status"] == "verified"
    assert created.json["settings"]["api_key"] == "********"
    moved = {**created.json["settings"], "base_url": "http://127.0.0.1:9/v1"}
    one = f"/connections/{created.json['id']}"
    assert faults(edith.patch(one, json={"settings": moved})) == {"settings.api_key": "needed_again"}
    other = {**created.json["settings"], "model": "none"}
    result = edith.patch(one, json={"settings": other}).json["verification"]
    assert (result["status"], result["stages"][-1]["code"]) == ("failed", "no_model")


def test_a_push_to_a_model_is_rejected_with_the_possible_targets(edith, model):
    path = f"/templates/{make(edith)['id']}/push"
    answer = edith.post(path, json={"connection_id": model(), "target": "x"})
    assert faults(answer) == {"connection_id": "not_for_this_type"}
    hint = answer.json["error"]["details"]["fields"][0]["hint"]
    assert "postgresql" in hint
    assert "rest" in hint


def test_a_model_has_no_tables(edith, model):
    result = model()
    assert edith.get(f"/connections/{result}/metadata").json["entities"] == []
    answer = edith.post(f"/connections/{result}/templates", json={"entities": ["x"]})
    assert faults(answer) == {"entities[0]": "unknown_entity"}


def test_a_push_sends_the_rows_of_generate_and_makes_no_request_twice(edith, server, model, shop, work):
    model()
    fields = [
        {"name": "id", "type": "row_number"},
        {"name": "email", "type": "email", "unique": True},
        {"name": "first_name", "type": "ai", "options": {"prompt": "A name for {{email}}"}},
    ]
    path = f"/templates/{make(edith, fields=fields)['id']}"
    body = {"connection_id": shop.connection_id, "target": "customers", "count": 30, "seed": "s"}
    push = edith.post(f"{path}/push", json=body)
    assert push.status_code in (201, 202), push.json
    work(push.json["id"])
    request = len(server.asked)
    rows = edith.post(
        f"{path}/generate", json={"count": 30, "seed": "s", "now": push.json["pins"]["now"]}
    ).json
    assert shop.execute("SELECT first_name FROM customers ORDER BY id") == [
        (row["first_name"],) for row in rows
    ]
    assert len(server.asked) == request == 2


# --- A template from a description -------------------------------------------------------------------------


def test_a_described_template_is_only_saved_on_request(edith, server, model):
    model()
    server.replies = [json.dumps(SHOP)]
    draft = described(edith)
    assert draft.status_code == 200, draft.json
    assert draft.json["name"] == "Customers of a shop"
    assert [item["state"] for item in draft.json["report"]] == ["green"] * 3
    assert draft.json["template"] is None
    assert edith.get("/templates").json["items"] == []
    assert len(server.asked) == 1
    assert "row_number: " in server.asked[0].body["messages"][0]["content"]
    saved = described(edith, save=True, quantity=7).json["template"]
    assert (saved["quantity"], saved["description"]) == (7, "Customers of a shop")
    rows = edith.post(f"/templates/{saved['id']}/generate", json={"seed": "s"}).json
    assert len({row["email"] for row in rows}) == 7
    assert (
        edith.post(
            "/templates", json={"name": draft.json["name"], "fields": draft.json["fields"]}
        ).status_code
        == 201
    )


def test_errors_are_sent_back_to_the_model_once(edith, server, model):
    model()
    wrong = {"name": "T", "fields": [{"name": "age", "type": "nummber", "options": {"min": 1}}]}
    right = {"name": "T", "fields": [{"name": "age", "type": "number", "options": {"min": 1}}]}
    server.replies = [json.dumps(wrong), json.dumps(right)]
    assert described(edith).json["report"] == [
        {"field": "age", "type": "number", "state": "green", "reason": "Created as Number."}
    ]
    assert len(server.asked) == 2
    assert "Did you mean `number`?" in server.asked[1].user


def test_columns_that_never_fit_become_text_and_are_reported(edith, server, model):
    model()
    fields = [
        {"name": "id", "type": "row_number"},
        {"name": "age", "type": "number", "options": {"minimum": 3}},
        {"name": "mood", "type": "feeling"},
        {"name": "mood", "type": "email"},
        {"name": "boss", "type": "reference", "options": {"template_id": "tpl_x"}},
        {"name": "price", "type": "db_response", "options": {"connection_id": "con_x", "query": "select 1"}},
        {"name": "greeting", "type": "derived", "options": {"value": "Hello {{nobody}}"}},
        {"name": "hidden", "type": "number", "sensitive": True, "options": "none"},
        "no field",
        {"type": "number"},
    ]
    server.replies = [f"Here:\n```json\n{json.dumps({'fields': fields})}\n```"]
    result = described(edith, save=True)
    assert result.status_code == 200, result.json
    assert [(item["field"], item["type"], item["state"]) for item in result.json["report"]] == [
        ("id", "row_number", "green"),
        ("age", "number", "yellow"),
        ("mood", "words", "red"),
        ("mood_2", "email", "green"),
        ("boss", "words", "red"),
        ("price", "words", "red"),
        ("greeting", "words", "red"),
        ("hidden", "number", "green"),
    ]
    assert 'The model suggested "feeling".' in result.json["report"][2]["reason"]
    assert len(server.asked) == 2
    assert result.json["template"]["name"] == "Described"


@pytest.mark.parametrize("text", ["I cannot do that.", '{"fields": []}', '{"fields": "many"}', "[1, 2]", "{"])
def test_a_model_that_returns_no_template_is_reported(edith, server, model, text):
    model()
    server.replies = [text]
    details = refused(described(edith), 502, "target_failed")
    assert details["reason"] == "bad_answer"
    assert len(server.asked) == 2


def test_without_a_model_there_is_no_pretended_template(edith):
    details = refused(described(edith), 422, "provider_missing")
    assert "connection of type ai" in details["hint"]


def test_a_model_may_be_named(edith, server, model, app, cast):
    first, _ = model(), model(model="large")
    server.replies = [json.dumps(SHOP)]
    assert faults(described(edith)) == {"connection_id": "missing"}
    assert described(edith, connection_id=first).status_code == 200
    rest = connection(app, cast, "rest", {"base_url": server.base_url})
    assert faults(described(edith, connection_id=rest)) == {"connection_id": "not_for_this_type"}
    refused(described(edith, connection_id="con_none"), 404, "not_found")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"description": " "}, "description"), ({"description": "x" * 5_000}, "description"),
        ({"quantity": 0}, "quantity"), ({"save": "yes"}, "save"), ({"prompt": "x"}, "prompt"),
    ],
)  # fmt: skip
def test_an_invalid_body_is_rejected(edith, body, path):
    assert list(faults(described(edith, **body))) == [path]


# --- A type for a field ------------------------------------------------------------------------------------


def suggested(edith, name, **body):
    answer = edith.post("/fields/suggest", json={"name": name, **body})
    assert answer.status_code == 200, answer.json
    return answer.json["suggestions"]


@pytest.mark.parametrize(
    ("name", "kind"), [("E-Mail", "email"), ("created_at", "datetime"), ("is_active", "boolean")]
)
def test_a_meaningful_name_needs_no_model(edith, server, model, name, kind):
    model()
    assert [(item["type"], item["source"]) for item in suggested(edith, name)] == [(kind, "name")]
    assert server.seen == []


def test_a_sample_says_more_than_a_name(edith):
    found = suggested(edith, "x7", sample=[f"{a}B-{n}" for a in "ACDEF" for n in range(1000, 1009)])
    assert found[0]["source"] == "sample"
    assert found[0]["type"] == "regexp"
    assert suggested(edith, "x7", sample=[True, False])[0]["type"] == "boolean"
    assert suggested(edith, "x7", sample=["2026-01-31", "2026-02-28"])[0]["type"] == "date"


def test_a_model_is_asked_where_the_name_says_nothing(edith, server, model):
    model()
    server.replies = ['{"type": "color", "options": {"nothing": 1}, "reason": "It is one."}']
    assert suggested(edith, "zzfarbe", description="of the car") == [
        {"type": "color", "options": {}, "reason": "It is one.", "source": "ai"}
    ]
    assert "of the car" in server.asked[0].user


@pytest.mark.parametrize("text", ["no", '{"type": "feeling"}', '{"type": "db_response"}'])
def test_a_models_values_are_only_used_if_valid(edith, server, model, text):
    model()
    server.replies = [text]
    assert [(item["type"], item["source"]) for item in suggested(edith, "zzfarbe")] == [("words", "name")]


def test_without_a_model_a_name_that_says_nothing_is_plain_text(edith):
    assert [(item["type"], item["source"]) for item in suggested(edith, "zzfarbe")] == [("words", "name")]


def test_a_selected_model_is_always_called_and_its_errors_are_reported(edith, server, model):
    result = model(api_key="sk-wrong-1234")
    server.replies = ['{"type": "safe_email"}']
    found = suggested(edith, "email", connection_id=result)
    assert [(item["type"], item["source"]) for item in found] == [("safe_email", "ai"), ("email", "name")]
    server.key = "sk-right"
    answer = edith.post("/fields/suggest", json={"name": "email", "connection_id": result})
    assert refused(answer, 502, "target_failed")["reason"] == "auth_failed"
    assert "could not be queried" in suggested(edith, "zzfarbe")[0]["reason"]


# --- Pages -------------------------------------------------------------------------------------------------


def test_a_model_is_connected_by_the_form_and_has_a_page(browser, cast, server):
    page = browser(cast.edith)
    assert 'name="settings.model"' in page.get("/connections/new?type=ai").text
    form = {"type": "ai", "name": "Model", "environment": "dev", "settings.base_url": server.base_url}
    result = page.submit("/connections/new", data={**form, "settings.model": "small"})
    assert result.status_code == 303, result.text
    text = page.get(result.headers["Location"]).text
    assert "small answered: ready" in text


def test_a_field_of_a_model_can_be_built_and_its_connection_picked(browser, cast, model, edith):
    result = model()
    fields = [{"name": "word", "type": "ai", "options": {"prompt": "A word"}}]
    template = make(edith, fields=fields)
    page = browser(cast.edith)
    builder = Editor(page, f"/templates/{template['id']}")
    form, key = builder.open("word"), builder.keys["word"]
    assert (form[f"{key}.o.connection_id"], form[f"{key}.o.prompt"]) == ("", "A word")
    assert f'<option value="{result}">' in builder.inspector
    builder.fill(o_connection_id=result)
    builder.press(f"again:{key}")
    assert builder.spec["fields"][0]["options"]["connection_id"] == result


def test_a_person_describes_a_template_and_comes_to_its_builder(browser, cast, server, model):
    page = browser(cast.edith)
    assert "/connections/new?type=ai" in page.get("/describe").text
    model()
    assert "/describe" in page.get("/templates").text
    assert 'name="description"' in page.get("/describe").text
    server.replies = [json.dumps({**SHOP, "fields": [*SHOP["fields"], {"name": "mood", "type": "feeling"}]})]
    form = {"description": "Customers of a shop", "save": "true"}
    answer = page.submit("/describe", data=form)
    assert answer.status_code == 303, answer.text
    text = page.get(answer.headers["Location"]).text
    assert "Customers of a shop" in text
    assert "Check mood" in text
    again = page.submit("/describe", data={**form, "description": " "})
    assert again.status_code == 422
    assert 'id="description-err">This field is required.' in again.text


def test_a_description_comes_back_when_the_model_fails(browser, cast, server, model):
    page = browser(cast.edith)
    model(retry={"retries": 0})
    server.replies = ["I cannot do that."]
    answer = page.submit("/describe", data={"description": "Bicycles & their <owners>", "save": "true"})
    assert answer.status_code == 502
    assert "Bicycles &amp; their &lt;owners&gt;</textarea>" in answer.text
    assert 'role="alert"' in answer.text
    assert "Your text is below" in answer.text


# --- Suggestions in the builder ----------------------------------------------------------------------------


def picker(page, *names, **more):
    builder = Editor(page, f"/templates/new?names={','.join(names)}")
    return send(page, "/builder/suggest", builder.inputs, do=f"suggest:{builder.keys[names[-1]]}", **more)


def test_the_picker_suggests_by_name_and_explains_how_to_add_a_model(browser, cast):
    page = browser(cast.edith)
    assert 'hx-post="/builder/suggest"' in page.get("/templates/new").text
    text = picker(page, "id", "created_at").text
    assert 'data-type="datetime"' in text
    assert "/connections/new?type=ai" in text
    assert 'data-type="words"' in picker(page, "zzfarbe").text


def test_the_picker_asks_the_model_that_is_pressed_and_its_options_are_taken(browser, cast, server, model):
    page = browser(cast.edith)
    result = model()
    server.replies = ['{"type": "enum", "options": {"values": ["red", "dark: blue"]}, "reason": "Colours."}']
    first = picker(page, "email").text
    assert f'value="{result}"' in first
    assert server.asked == []
    text = html.unescape(picker(page, "email", model=result).text)
    word = re.search(r'data-type="(enum {.*?})">', text)[1]
    assert "Colours." in text
    builder = Editor(page, "/templates/new?names=email")
    builder.press("type:{email}:" + word)
    assert builder.spec["fields"][0]["type"] == "enum"
    assert builder.spec["fields"][0]["options"]["values"] == ["red", "dark: blue"]


def test_a_failing_model_is_reported_in_the_picker(browser, cast, server, model):
    page = browser(cast.edith)
    result = model(api_key="sk-wrong")
    server.key = "sk-right"
    answer = picker(page, "email", model=result)
    assert answer.status_code == 200
    assert 'role="alert"' in answer.text
    assert "sk-wrong" not in answer.text
    assert f'value="{result}"' in answer.text
    nameless = Editor(page, "/templates/new?names=x")
    nameless.open("x")
    nameless.fill(name="")
    answer = send(page, "/builder/suggest", nameless.inputs, do=f"suggest:{nameless.keys['x']}")
    assert "Enter a name first" in answer.text
