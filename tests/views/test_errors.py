"""Errors have one shape, in each face."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Annotated, Literal

import pyarrow as pa
import pytest
from pydantic import Field, FiniteFloat, TypeAdapter, ValidationError

from webapp.errors import CODES, ApiError, Fault, did_you_mean, pydantic_message, validation_error


def test_json_error_has_exactly_code_message_details(api):
    answer = api().get("/projects").json
    assert list(answer) == ["error"]
    assert sorted(answer["error"]) == ["code", "details", "message"]


def test_unknown_path_is_404_in_the_error_shape(api, cast):
    answer = api(cast.edith).get("/no/such/thing")
    assert answer.status_code == 404
    assert answer.json["error"]["code"] == "not_found"


def test_wrong_method_is_405_and_names_the_right_ones(api, cast):
    answer = api(cast.edith).put("/projects", json={})
    assert (answer.status_code, answer.json["error"]["code"]) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD, POST"
    assert answer.json["error"]["details"]["allowed"] == ["GET", "HEAD", "POST"]


def test_unforeseen_error_is_500_with_the_request_id_and_says_nothing_else(
    app, api, cast, monkeypatch, caplog
):
    from webapp.access import tenancy

    def broken(*_args, **_more):
        raise RuntimeError("the secret is Rosebud")

    monkeypatch.setattr(tenancy, "listing", broken)
    answer = api(cast.edith).get("/projects")
    assert answer.status_code == 500
    assert answer.json["error"]["code"] == "internal_error"
    assert answer.json["error"]["details"] == {"request_id": answer.headers["X-Request-Id"]}
    assert "Rosebud" not in answer.text
    assert answer.headers["X-Request-Id"] in caplog.text


def test_an_unknown_url_returns_an_error_with_the_list_of_urls(api, cast):
    error = api(cast.edith).post("/templates/tpl_1@v1/generate", json={}).json["error"]
    assert error["code"] == "not_found"
    assert "/docs/api" in error["message"]


def test_person_gets_an_error_page(browser, cast):
    answer = browser(cast.edith).get("/no/such/thing")
    assert answer.status_code == 404
    assert answer.mimetype == "text/html"
    assert "not_found" in answer.text


def test_person_of_htmx_gets_only_the_message_of_the_error_page(browser, cast):
    answer = browser(cast.edith).get("/no/such/thing", headers={"HX-Request": "true"})
    assert answer.status_code == 404
    assert "<html" not in answer.text
    assert "Not found." in answer.text


def test_accept_never_rejects_a_key(api, cast):
    for accept in ("text/html", "image/png", "application/xml;q=0.3", "", "nonsense"):
        answer = api(cast.edith).get("/projects", headers={"Accept": accept})
        assert (answer.status_code, answer.mimetype) == (200, "application/json")


def test_every_error_has_a_status_of_its_class():
    assert all(400 <= status < 600 and message for status, message in CODES.values())


def test_a_code_that_is_not_in_the_table_cannot_be_raised():
    with pytest.raises(KeyError):
        ApiError("oops")


def test_validation_error_lists_all_errors_together_with_paths_and_hints():
    error = validation_error([Fault("a", "missing", "Needed."), Fault("b[0].c", "x", "Bad.", "Try d.")])
    assert error.status == 422
    assert error.details["fields"] == [
        {"path": "a", "code": "missing", "message": "Needed."},
        {"path": "b[0].c", "code": "x", "message": "Bad.", "hint": "Try d."},
    ]


def test_did_you_mean_names_the_nearest_word_or_nothing():
    assert did_you_mean("Delimeter", ["delimiter", "header"]) == "Did you mean `delimiter`?"
    assert did_you_mean("zzz", ["delimiter", "header"]) is None


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [
        (MemoryError(), 503, "unavailable"),
        (pa.lib.ArrowMemoryError("malloc of size 9 failed"), 503, "unavailable"),
        (RecursionError(), 400, "invalid_request"),
        (
            pa.lib.ArrowCapacityError("array cannot contain more than 2147483646 bytes"),
            413,
            "payload_too_large",
        ),
    ],
)
def test_a_request_that_exceeds_the_process_limits_is_reported_and_logged(
    api, cast, monkeypatch, caplog, raised, status, code
):
    from webapp.access import tenancy

    def exhausted(*_args, **_more):
        raise raised

    monkeypatch.setattr(tenancy, "listing", exhausted)
    answer = api(cast.edith).get("/projects")
    assert (answer.status_code, answer.json["error"]["code"]) == (status, code)
    assert answer.json["error"]["message"].startswith("The request ")
    assert ("Retry-After" in answer.headers) == (status == 503)
    assert "test_errors.py" in caplog.text  # the trace


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (bool, "perhaps", "Must be true or false."),
        (int, "one", "Must be a whole number."),
        (int, 1.5, "Must be a whole number."),
        (int, "9" * 5_000, "The number has too many digits."),
        (float, "one", "Must be a number."),
        (Decimal, "one", "Must be a number."),
        (FiniteFloat, float("inf"), "Must be a finite number."),
        (str, 1, "Must be a string."),
        (list[int], 1, "Must be a list."),
        (tuple[int, ...], 1, "Must be a list."),
        (dict[str, int], 1, "Must be an object."),
        (date, "soon", "Must be a date, such as 2024-05-31."),
        (datetime, "soon", "Must be a date and time, such as 2024-05-31T10:00:00Z."),
        (time, "soon", "Must be a time, such as 10:00:00."),
        (Literal["a", "b", "c"], "d", "Must be 'a', 'b' or 'c'."),
        (Annotated[int, Field(gt=1_000)], 0, "Must be greater than 1,000."),
        (Annotated[int, Field(ge=1_000)], 0, "Must be at least 1,000."),
        (Annotated[float, Field(lt=0.5)], 1, "Must be less than 0.5."),
        (Annotated[int, Field(le=1_000)], 1_001, "Must be at most 1,000."),
        (Annotated[int, Field(multiple_of=5)], 1, "Must be a multiple of 5."),
        (Annotated[str, Field(min_length=1)], "", "Must not be empty."),
        (Annotated[str, Field(min_length=2)], "", "Must have at least 2 characters."),
        (Annotated[str, Field(max_length=2)], "abc", "Must have at most 2 characters."),
        (Annotated[str, Field(pattern="^a+$")], "b", "Must match the pattern ^a+$."),
        (Annotated[list[int], Field(min_length=1)], [], "Must not be empty."),
        (Annotated[list[int], Field(min_length=2)], [], "Must have at least 2 elements."),
        (Annotated[list[int], Field(max_length=2)], [1, 2, 3], "Must have at most 2 elements."),
    ],
)
def test_errors_of_pydantic_get_our_words(kind, value, message):
    with pytest.raises(ValidationError) as found:
        TypeAdapter(kind).validate_python(value)
    assert [pydantic_message(item) for item in found.value.errors()] == [message]


@pytest.mark.parametrize(
    ("body", "path", "message"),
    [
        ({"name": ""}, "name", "Must not be empty."),
        ({"name": 7}, "name", "Must be a string."),
        ({"name": "n" * 201}, "name", "Must have at most 200 characters."),
        ({"name": "People", "fields": {}}, "fields", "Must be a list."),
        ({"name": "People", "quantity": "x"}, "quantity", "Must be a whole number."),
        ({}, "name", "This field is required."),
    ],
)
def test_an_invalid_value_is_described_in_our_words(api, cast, body, path, message):
    answer = api(cast.edith).post("/templates", json={"fields": [], **body})
    assert answer.status_code == 422
    found = {fault["path"]: fault["message"] for fault in answer.json["error"]["details"]["fields"]}
    assert found[path] == message
