"""Request bodies that were made to fill or occupy a web process are refused quickly, and in words. The long version,
over every route and with the memory measured, is tests/fuzz/test_bodies.py."""

from __future__ import annotations

import io

import pytest

from webapp import limits

UNKNOWN = b"{" + b",".join(b'"k%d":0' % n for n in range(90_000)) + b"}"


@pytest.fixture
def refused(api, cast):
    """The code and message of the error that a body is refused with."""

    def of(at: str, body: bytes, kind: str = "application/json"):
        answer = api(cast.olivia).post(at, data=body, content_type=kind)
        assert 400 <= answer.status_code < 500, answer.text[:300]
        assert len(answer.data) < 100_000
        return answer.json["error"]["code"], answer.json["error"]["message"]

    return of


@pytest.mark.parametrize(
    "at", ["/preview", "/generate", "/templates", "/connections", "/scenarios", "/import"]
)
def test_tens_of_thousands_of_unknown_keys_are_counted_and_not_listed(refused, at):
    assert refused(at, UNKNOWN)[1].startswith(
        f"The body has more than {limits.MAX_COUNTED_FAULTS:,} unknown keys."
    )


@pytest.mark.parametrize(
    "body", [b"%s", b'{"fields":%s}', b'{"fields":[{"name":"a","type":"city","options":%s}]}']
)
def test_700000_keys_of_one_object_are_rejected_before_validation(refused, body):
    keys = b"{" + b",".join(b'"k%d":0' % n for n in range(700_000)) + b"}"
    code, message = refused("/preview", body % keys)
    assert (code, message) == ("invalid_request", "An object of the body has more than 100,000 keys.")


def test_unknown_keys_spread_over_many_objects_are_counted_too(refused):
    inner = b"{" + b",".join(b'"k%d":0' % n for n in range(1_000)) + b"}"
    body = b'{"name":"x","templates":[' + b",".join([inner] * 50) + b"]}"
    assert "unknown keys" in refused("/datasets", body)[1]


def test_unknown_keys_of_fields_are_counted_for_each_field(refused):
    field = b'{"name":"a","type":"city","options":{},' + UNKNOWN[1:8_000].rpartition(b",")[0] + b"}"
    code, _ = refused("/templates", b'{"name":"x","fields":[' + b",".join([field] * 300) + b"]}")
    assert code == "validation_error"


def test_a_list_of_a_million_invalid_elements_has_one_error(refused):
    body = b'{"name":"x","scopes":[' + b",".join([b"1"] * 1_000_000) + b"]}"
    code, message = refused("/api-keys", body)
    assert code == "validation_error"
    assert f"{limits.MAX_JSON_ELEMENTS:,}" in message


def test_half_a_million_objects_are_rejected_before_parsing(refused):
    code, message = refused("/preview", b'{"fields":[' + b",".join([b"{}"] * 500_000) + b"]}")
    assert code == "invalid_request"
    assert message == f"The body has more than {limits.MAX_JSON_CONTAINERS:,} arrays and objects."


def test_braces_in_texts_are_not_counted_as_objects(api, cast):
    rows = "\n".join(f"{{{n}}},[x]" for n in range(300_000))
    answer = api(cast.olivia).post(
        "/import", json={"content": f"a,b\n{rows}\n", "format": "csv", "save": False}
    )
    assert answer.status_code == 200, answer.text[:300]


def test_a_key_of_a_megabyte_is_not_repeated_in_the_answer(refused):
    assert refused("/preview", b'{"' + b"x" * 1_000_000 + b'":1}')[0] == "validation_error"


def test_a_form_with_a_million_values_is_rejected(refused):
    body = b"&".join(b"a%d=1" % n for n in range(1_000_000))
    assert refused("/import", body, "application/x-www-form-urlencoded")[0] == "unsupported_media_type"


def test_an_input_name_with_a_million_steps_is_rejected(refused):
    body = b"a" + b"[0]" * 1_000_000 + b"=1"
    assert refused("/import", body, "application/x-www-form-urlencoded")[0] == "unsupported_media_type"


def test_an_upload_with_thousands_of_parts_is_rejected(api, cast):
    parts = {f"a{n}": (io.BytesIO(b"x"), "x.csv") for n in range(limits.MAX_FILES_PER_FORM + 1)}
    answer = api(cast.olivia).post("/import", data=parts, content_type="multipart/form-data")
    assert answer.status_code == 400, answer.text[:300]
