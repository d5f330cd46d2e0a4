"""What is taken as a body and as a query, and how the rest is refused."""

from __future__ import annotations

import io

import pytest

from tests.views.speak import code_of
from webapp import limits


def test_invalid_json_is_400_with_a_position(api, cast):
    answer = api(cast.adam).post("/teams", data='{"name": ', content_type="application/json")
    assert code_of(answer) == (400, "invalid_request")
    assert answer.json["error"]["details"] == {"line": 1, "column": 10}


@pytest.mark.parametrize("body", ["[]", "null", "3", '"x"'])
def test_a_body_that_is_no_object_is_422(api, cast, body):
    assert code_of(api(cast.adam).post("/teams", data=body, content_type="application/json")) == (
        422,
        "validation_error",
    )


def test_a_body_of_another_type_is_415(api, cast):
    answer = api(cast.adam).post("/teams", data="<x/>", content_type="application/xml")
    assert code_of(answer) == (415, "unsupported_media_type")


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_form_with_a_key_is_415(api, cast, kind):
    answer = api(cast.adam).post("/teams", data={"name": "By form"}, content_type=kind)
    assert code_of(answer) == (415, "unsupported_media_type")
    assert answer.json["error"]["details"] == {"content_type": kind, "expected": ["application/json"]}


def test_an_empty_body_that_curl_calls_a_form_is_an_empty_object(api, cast):
    kind = "application/x-www-form-urlencoded"
    assert code_of(api(cast.adam).post("/teams", data=b"", content_type=kind)) == (422, "validation_error")


def test_a_form_with_a_key_means_no_other_method(api, cast):
    adam = api(cast.adam)
    team = adam.post("/teams", json={"name": "Green"}).json["id"]
    answer = adam.post(f"/teams/{team}?_method=DELETE", data={"x": "y"})
    assert answer.status_code == 405
    assert adam.get("/teams").json["total"] == 3


def test_a_body_past_10_mb_is_413(api, cast):
    body = b'{"name": "' + b"x" * 11_000_000 + b'"}'
    assert code_of(api(cast.adam).post("/teams", data=body, content_type="application/json")) == (
        413,
        "payload_too_large",
    )


def test_a_body_over_10_mb_without_content_length_is_413(api, cast):
    body = b'{"name": "' + b"x" * 11_000_000 + b'"}'
    chunked = {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    answer = api(cast.adam).post(
        "/teams", input_stream=io.BytesIO(body), content_type="application/json", environ_overrides=chunked
    )
    assert code_of(answer) == (413, "payload_too_large")
    assert answer.json["error"]["details"]["max_bytes"] == limits.MAX_BODY_BYTES


def test_unknown_keys_are_rejected_by_name_and_all_errors_are_reported_together(api, cast):
    answer = api(cast.adam).post("/projects", json={"nme": "x", "description": 5})
    assert code_of(answer) == (422, "validation_error")
    found = {f["path"]: (f["code"], f.get("hint")) for f in answer.json["error"]["details"]["fields"]}
    assert found == {
        "name": ("missing", None),
        "nme": ("unknown_key", "Did you mean `name`?"),
        "description": ("wrong_type", None),
    }


@pytest.mark.parametrize("name", ["", "   ", "x" * 201])
def test_a_name_is_not_empty_blank_or_endless(api, cast, name):
    answer = api(cast.adam).post("/teams", json={"name": name})
    assert code_of(answer) == (422, "validation_error")
    assert answer.json["error"]["details"]["fields"][0]["path"] == "name"


def test_read_only_keys_sent_back_are_ignored(api, cast):
    created = api(cast.adam).post(
        "/projects", json={"name": "P", "id": "prj_mine", "created_at": "then", "version": 7}
    )
    assert created.status_code == 201
    assert created.json["id"] != "prj_mine"


def test_a_text_is_no_number(api, cast):
    answer = api(cast.olivia).patch("/workspace", json={"limits": {"rows_per_hour": "5"}})
    assert answer.json["error"]["details"]["fields"][0]["path"] == "limits.rows_per_hour"


def test_the_character_nul_is_rejected_everywhere(api, cast):
    assert code_of(api(cast.adam).post("/teams", json={"name": "a\0b"})) == (400, "invalid_request")
    assert code_of(api(cast.adam).get("/teams?q=a%00b")) == (400, "invalid_request")


def test_a_body_nested_without_end_is_400(api, cast):
    deep = "[" * 500 + "]" * 500
    answer = api(cast.adam).post("/teams", data=f'{{"name": {deep}}}', content_type="application/json")
    assert code_of(answer) == (400, "invalid_request")


def test_an_unknown_query_parameter_is_400_with_a_hint(api, cast):
    answer = api(cast.adam).get("/teams?limt=5")
    assert code_of(answer) == (400, "invalid_request")
    assert answer.json["error"]["details"]["fields"][0]["hint"] == "Did you mean `limit`?"


def test_a_parameter_where_none_is_taken_is_400(api, cast):
    assert code_of(api(cast.adam).get("/me?x=1")) == (400, "invalid_request")
