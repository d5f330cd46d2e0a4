"""Invalid input: the status and code are correct, all errors are reported together, and nothing is partly saved."""

from __future__ import annotations

import gzip
import json
from typing import Any

import orjson
import pytest

from tests.views.speak import FIELDS, faults, make, refused, rows_used
from webapp import clock, limits


def field(**more: Any) -> dict[str, Any]:
    return {"name": "a", "type": "number", **more}


def created(edith, *fields: Any, **more: Any) -> dict[str, str]:
    """The faults of making a template, which must not have been made."""
    answer = edith.post("/templates", json={"name": "T", "fields": list(fields), **more})
    found = faults(answer)
    assert edith.get("/templates").json["total"] == 0
    return found


# --- Bodies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body", ["{", "{'a': 1}", "[1,", '{"name": "x",}', "nonsense", '{"a": NaN}', '"\ud800"']
)
@pytest.mark.parametrize("where", ["/templates", "/generate", "/preview"])
def test_malformed_json_is_400(edith, where, body):
    raw = body.encode("utf-8", "surrogatepass")
    details = refused(edith.post(where, data=raw, content_type="application/json"), 400, "invalid_request")
    assert details["line"] == 1


@pytest.mark.parametrize("body", ["[]", "3", '"x"', "null", "true"])
def test_a_body_that_is_no_object_is_422(edith, body):
    answer = edith.post("/templates", data=body, content_type="application/json")
    assert faults(answer) == {"": "wrong_type"}


def test_a_compressed_body_is_415_and_says_so(edith):
    body = gzip.compress(b'{"name": "T", "fields": []}')
    answer = edith.post(
        "/templates", data=body, content_type="application/json", headers={"Content-Encoding": "gzip"}
    )
    assert refused(answer, 415, "unsupported_media_type")["content_encoding"] == "gzip"
    assert "without compression" in answer.json["error"]["message"]


@pytest.mark.parametrize("path", ["/api-keys/%00", "/me/sessions/a%00b", "/templates/%00", "/no/%00"])
def test_a_path_with_u0000_is_404_on_every_database(edith, path):
    """PostgreSQL does not accept the character in a text."""
    refused(edith.delete(path), 404, "not_found")


@pytest.mark.parametrize("count", [10**30, 1e30, 2**63])
def test_a_count_that_no_database_can_store_is_422(edith, count):
    template = edith.post("/templates", json={"name": "T", "fields": [{"name": "a", "type": "words"}]}).json[
        "id"
    ]
    schedule = {"name": "n", "kind": "export", "template_id": template, "request": {"count": count}}
    body = json.dumps(schedule | {"cron": "0 2 * * *", "timezone": "UTC"})
    answer = edith.post("/schedules", data=body, content_type="application/json")
    refused(answer, 422, "row_limit_exceeded")


def test_a_body_of_another_type_is_415(edith):
    refused(
        edith.post("/templates", data="<a/>", content_type="application/xml"), 415, "unsupported_media_type"
    )


def test_a_body_of_11_mb_is_413(edith, path):
    body = orjson.dumps({"name": "T", "fields": FIELDS, "description": "x" * (11 * limits.MB)})
    for method, where in (
        ("POST", "/templates"),
        ("PATCH", path),
        ("POST", "/generate"),
        ("POST", f"{path}/exports"),
    ):
        answer = edith.open(method, where, data=body, content_type="application/json")
        assert refused(answer, 413, "payload_too_large") == {"max_bytes": limits.MAX_BODY_BYTES}


def test_an_endlessly_nested_body_is_rejected(edith):
    raw = b'{"name":"T","fields":' + b"[" * 2000 + b"]" * 2000 + b"}"
    refused(edith.post("/templates", data=raw, content_type="application/json"), 400, "invalid_request")


# --- Templates ------------------------------------------------------------------------------------------------


def test_all_errors_are_reported_together_with_their_paths(edith):
    answer = edith.post(
        "/templates",
        json={
            "quantity": "ten",
            "descripton": "x",
            "fields": [
                {"name": "a", "type": "numbr"},
                {"name": "a", "type": "row_number", "options": {"start": 1}},
                {"type": "number", "options": {"min": 5, "max": 1}},
                {"name": "c", "type": "number", "percent_blank": 101},
                7,
            ],
        },
    )
    found = faults(answer)
    assert found.keys() >= {
        "name",
        "quantity",
        "descripton",
        "fields[0].type",
        "fields[1].options.start",
        "fields[2].name",
        "fields[3].percent_blank",
        "fields[4]",
    }
    hints = {item["path"]: item.get("hint", "") for item in answer.json["error"]["details"]["fields"]}
    assert "`description`" in hints["descripton"]
    assert "`number`" in hints["fields[0].type"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("name", 3),
        ("name", ""),
        ("name", None),
        ("name", "x" * (limits.MAX_NAME_CHARS + 1)),
        ("description", ["x"]),
        ("quantity", "10"),
        ("quantity", 10.5),
        ("quantity", True),
        ("quantity", 0),
        ("quantity", -1),
        ("locale", 7),
        ("anchor", "yesterday"),
        ("anchor", "2026-11-21T12:00:00"),
        ("anchor", 1_700_000_000),
    ],
)
def test_wrong_types_and_values_are_422_and_change_nothing(edith, path, key, value):
    before = edith.get(path).json
    assert list(faults(edith.patch(path, json={key: value}))) == [key]
    assert list(faults(edith.post("/templates", json={"name": "T", "fields": FIELDS, key: value}))) == [key]
    assert edith.get(path).json == before
    assert edith.get("/templates").json["total"] == 1


@pytest.mark.parametrize("fields", [{}, "x", 3, None, []])
def test_fields_that_are_no_fields_are_422(edith, fields):
    answer = edith.post("/templates", json={"name": "T", "fields": fields})
    assert list(faults(answer)) == ["fields"]


def test_a_template_without_fields_is_422(edith):
    assert faults(edith.post("/templates", json={"name": "T"})) == {"fields": "missing"}


def test_an_unknown_locale_is_422_with_a_hint(edith):
    assert list(created(edith, field(), locale="en_UX")) == ["locale"]


def test_unknown_keys_are_rejected_by_name_everywhere(edith, path):
    for where in (f"{path}/generate", f"{path}/preview", f"{path}/exports"):
        assert faults(edith.post(where, json={"sed": "s"})) == {"sed": "unknown_key"}
    answer = edith.patch(path, json={"fields": [field(optons={})]})
    assert faults(answer) == {"fields[0].optons": "unknown_key"}


def test_an_unknown_option_is_rejected_with_a_hint(edith):
    answer = edith.post("/templates", json={"name": "T", "fields": [field(options={"mni": 1})]})
    assert faults(answer) == {"fields[0].options.mni": "unknown_key"}
    assert "`min`" in answer.json["error"]["details"]["fields"][0]["hint"]


@pytest.mark.parametrize(
    ("wrong", "meant"), [("numbr", "number"), ("row_numbre", "row_number"), ("uudi", "uuid")]
)
def test_an_unknown_field_type_is_rejected_with_a_hint(edith, wrong, meant):
    answer = edith.post("/templates", json={"name": "T", "fields": [{"name": "a", "type": wrong}]})
    assert faults(answer) == {"fields[0].type": "unknown_type"}
    assert f"`{meant}`" in answer.json["error"]["details"]["fields"][0]["hint"]


def test_duplicate_names_are_rejected_at_every_level(edith):
    inner = {"name": "o", "type": "nested", "options": {"fields": [field(), field()]}}
    assert created(edith, field(), field(), inner) == {
        "fields[1].name": "duplicate",
        "fields[2].options.fields[1].name": "duplicate",
    }


def test_duplicate_ids_are_rejected(edith):
    one = f"fld_{'0' * 26}"
    assert created(edith, field(id=one), field(name="b", id=one)) == {"fields[1].id": "duplicate"}
    assert created(edith, field(id="mine")) == {"fields[0].id": "wrong_format"}


def derived(name: str, value: str) -> dict[str, Any]:
    return {"name": name, "type": "derived", "options": {"value": value}}


def test_a_circular_reference_is_rejected_with_its_fields(edith):
    answer = edith.post(
        "/templates",
        json={"name": "T", "fields": [derived("a", "{{b}}"), derived("b", "{{c}}"), derived("c", "{{a}}")]},
    )
    assert set(faults(answer).values()) == {"cycle"}
    assert "a -> b -> c -> a" in answer.json["error"]["message"]
    assert "cycle" in created(edith, derived("a", "{{a}}")).values()


def test_min_above_max_is_rejected(edith):
    assert any("options" in path for path in created(edith, field(options={"min": 9, "max": 1})))
    options = {"array": True, "count": {"min": 5, "max": 2}, "fields": [field()]}
    assert any(
        "count" in path for path in created(edith, {"name": "o", "type": "nested", "options": options})
    )


@pytest.mark.parametrize("pattern", ["[", "(", "a{2,1}", "(?P<n>", "*", "\\"])
def test_an_impossible_regular_expression_is_rejected(edith, pattern):
    found = created(edith, {"name": "a", "type": "regexp", "options": {"string": pattern}})
    assert list(found) == ["fields[0].options.string"]


def test_501_fields_are_rejected_and_500_accepted(edith):
    many = [field(name=f"f{i}") for i in range(501)]
    assert created(edith, *many) == {"fields": "too_many"}
    split = [{"name": "o", "type": "nested", "options": {"fields": many[:250]}}, *many[250:]]
    assert "too_many" in created(edith, *split).values()
    assert edith.post("/templates", json={"name": "T", "fields": many[:500]}).status_code == 201


def nested(depth: int) -> dict[str, Any]:
    result = field()
    for _ in range(depth - 1):
        result = {"name": "o", "type": "nested", "options": {"fields": [result]}}
    return result


def test_nesting_9_deep_is_rejected_and_8_accepted(edith):
    assert set(created(edith, nested(9)).values()) == {"too_deep"}
    assert edith.post("/templates", json={"name": "T", "fields": [nested(8)]}).status_code == 201


# --- Rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, -1, "ten", "10", 1.5, True, []])
def test_a_count_that_is_none_is_422_and_spends_nothing(edith, path, count):
    for where in (f"{path}/generate", f"{path}/exports"):
        assert list(faults(edith.post(where, json={"count": count}))) == ["count"]
    assert list(faults(edith.post("/generate", json={"fields": FIELDS, "count": count}))) == ["count"]
    assert rows_used(edith) == 0


def test_more_rows_than_a_plan_allows_are_row_limit_exceeded(api, cast):
    mallory = api(cast.mallory)
    path = f"/templates/{make(mallory)['id']}"
    for where, body in (
        (f"{path}/generate", {}),
        (f"{path}/exports", {}),
        ("/generate", {"fields": FIELDS}),
    ):
        details = refused(mallory.post(where, json={**body, "count": 100_001}), 422, "row_limit_exceeded")
        assert details == {"limit": 100_000, "requested": 100_001}
    assert rows_used(mallory) == 0


def test_the_templates_own_quantity_is_held_to_the_limit_too(api, cast):
    mallory = api(cast.mallory)
    result = make(mallory, quantity=100_001)
    refused(mallory.post(f"/templates/{result['id']}/generate"), 422, "row_limit_exceeded")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seed", "x" * 10_000),
        ("seed", 7),
        ("seed", ""),
        ("format", "xml"),
        ("format", "cvs"),
        ("offset", -1),
        ("offset", "0"),
        ("offset", limits.MAX_OFFSET + 1),
        ("now", "2026-11-21"),
        ("now", "soon"),
        ("locale", ""),
        ("overrides", []),
        ("overrides", "x"),
        ("arrays", "flat"),
        ("csv", []),
        ("sql", "postgresql"),
    ],
)
def test_wrong_values_of_a_generation_are_422_and_spend_nothing(edith, path, key, value):
    assert list(faults(edith.post(f"{path}/generate", json={key: value}))) == [key]
    assert list(faults(edith.post(f"{path}/exports", json={key: value}))) == [key]
    assert rows_used(edith) == 0


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"csv": {"delimiter": "::"}}, "csv.delimiter"),
        ({"csv": {"header": "yes"}}, "csv.header"),
        ({"csv": {"quotes": "all"}}, "csv.quotes"),
        ({"sql": {"dialect": "postgres"}}, "sql.dialect"),
        ({"sql": {"rows_per_statement": 0}}, "sql.rows_per_statement"),
        ({"sql": {"dialect": "oracle", "rows_per_statement": 1_000}}, "sql"),
    ],
)
def test_wrong_format_options_are_reported_by_their_path(edith, path, body, where):
    answer = edith.post(f"{path}/generate", json=body)
    assert list(faults(answer)) == [where]


def test_an_unknown_format_is_hinted_at(edith, path):
    answer = edith.post(f"{path}/generate", json={"format": "jsno"})
    assert faults(answer) == {"format": "not_allowed"}
    assert "`json`" in answer.json["error"]["details"]["fields"][0]["hint"]


def test_overrides_of_unknown_fields_are_rejected_together(edith, path):
    body = {"overrides": {"amont": 1, "zzz": 2, "code": "x"}}
    for where in (f"{path}/generate", f"{path}/preview", f"{path}/exports"):
        answer = edith.post(where, json=body)
        assert faults(answer) == {"overrides.amont": "unknown_field", "overrides.zzz": "unknown_field"}
        assert "`amount`" in answer.json["error"]["details"]["fields"][0]["hint"]
    assert rows_used(edith) == 0


def test_an_override_of_a_unique_field_over_several_rows_is_rejected(edith):
    result = make(edith, fields=[field(unique=True)])
    path = f"/templates/{result['id']}/generate"
    assert faults(edith.post(path, json={"count": 2, "overrides": {"a": 1}})) == {"overrides.a": "not_unique"}
    assert edith.post(path, json={"count": 1, "overrides": {"a": 1}}).json == [{"a": 1}]


def test_a_template_that_is_not_there_is_404(edith, api, cast, path):
    theirs = make(api(cast.mallory))["id"]
    for gone in ("tpl_00000000000000000000000000", "x", "%00", "tpl_" + "é" * 26, theirs, "a" * 5000):
        for method, rest in (
            ("GET", ""),
            ("POST", "/generate"),
            ("POST", "/preview"),
            ("GET", "@v1"),
            ("PATCH", ""),
        ):
            body = {"json": {}} if method != "GET" else {}
            refused(edith.open(method, f"/templates/{gone}{rest}", **body), 404, "not_found")


def test_a_deleted_templates_rows_are_404(edith, path):
    edith.delete(path)
    refused(edith.post(f"{path}/generate", json={"count": 1}), 404, "not_found")


# --- Credentials ----------------------------------------------------------------------------------------------


def test_an_expired_key_is_401_with_its_reason(edith, api, path, monkeypatch):
    result = edith.post(
        "/api-keys", json={"name": "short", "expires_at": clock.to_text(clock.now().replace(year=2100))}
    )
    late = clock.now().replace(year=2101).timestamp()
    monkeypatch.setattr(clock, "source", lambda: late)
    details = refused(api(result.json["key"]).post(f"{path}/generate"), 401, "unauthenticated")
    assert details == {"reason": "expired"}


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer ", "Basic dTpw", "rws_x_y", "Bearer a b", "Bearer rws_short"]
)
def test_a_malformed_authorization_header_is_401_with_its_reason(api, path, header):
    answer = api("", Authorization=header).post(f"{path}/generate", json={})
    assert refused(answer, 401, "unauthenticated")["reason"] == "malformed"


def test_no_credential_is_401(api, path):
    for method, where in (
        ("GET", path),
        ("POST", f"{path}/generate"),
        ("POST", "/preview"),
        ("GET", "/field-types"),
    ):
        refused(api("").open(method, where), 401, "unauthenticated")


def test_a_wrong_method_is_405_with_the_allowed_methods(edith, path):
    assert refused(edith.get(f"{path}/generate"), 405, "method_not_allowed") == {"allowed": ["POST"]}


def test_unknown_query_parameters_are_400(edith, path):
    diffs = (f"{path}@v1/diff?too=2", f"{path}@v1/diff?to=x")
    for where in ("/templates?pag=2", f"{path}?x=1", *diffs, "/field-types?z=1"):
        refused(edith.get(where), 400, "invalid_request")


@pytest.mark.parametrize("blank", [" ", "\n", "\x0c", "\t\r\n "])
def test_a_body_of_blanks_is_no_json_while_no_body_at_all_is_an_empty_one(api, cast, blank):
    edith = api(cast.edith)
    fields = [{"name": "id", "type": "row_number"}]
    where = f"/templates/{edith.post('/templates', json={'name': 't', 'fields': fields}).json['id']}/generate"
    answer = edith.post(where, data=blank, content_type="application/json")
    assert (answer.status_code, answer.json["error"]["code"]) == (400, "invalid_request")
    assert edith.post(where).status_code == 200
