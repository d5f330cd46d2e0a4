"""Errors have one shape, in each face."""

from __future__ import annotations

import pyarrow as pa
import pytest

from webapp.errors import CODES, ApiError, Fault, did_you_mean, validation_error


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
