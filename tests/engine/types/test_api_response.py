"""Values that an API answers: each row's path is rendered, and its value taken out of what was answered there."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonpath_ng.ext import parse

from tests.engine.types.test_outside import CODES, NOW, faults, planned, rows
from webapp import limits
from webapp.engine import json_paths
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.errors import SpecError
from webapp.engine.external_values import ExternalResponse, RequestRecorder
from webapp.engine.plan import Plan


def call(name: str = "v", path: str = "/codes/{{code}}", **common: Any) -> dict[str, Any]:
    more = common.pop("options", {})
    return {
        "name": name,
        "type": "api_response",
        "options": {"connection_id": "con", "path": path, **more},
        **common,
    }


def calling(*fields: dict[str, Any], **answers: Any) -> Plan:
    """A plan whose questions are answered: by the last part of the path, JSON, or a text that tells trouble."""
    plan = planned(CODES, *fields)
    return plan.with_responses({request.query.key: answer(**answers) for request in plan.external_requests})


def answer(**answers: Any) -> ExternalResponse:
    keys = sorted(answers)
    bad = [value.said if isinstance(value, Trouble) else "" for value in (answers[key] for key in keys)]
    bodies = [None if isinstance(answers[key], Trouble) else _body(answers[key]) for key in keys]
    table = pa.table({"body": pa.array(bodies, pa.string()), "trouble": bad})
    return ExternalResponse(table, "s", pa.array([f"/codes/{key}" for key in keys]), np.arange(len(keys) + 1))


class Trouble:
    def __init__(self, said: str) -> None:
        self.said = said


def _body(value: Any) -> str | None:
    return None if value is Ellipsis else json.dumps(value)


def told(*fields: dict[str, Any], **answers: Any) -> dict[str, str]:
    try:
        calling(*fields, **answers)
    except SpecError as error:
        return {fault.path: fault.code for fault in error.faults}
    return {}


def asked(plan: Plan, count: int = 10) -> list[list[str]]:
    recorder = RequestRecorder(1000)
    BoundPlan(plan, GenerationContext("s", NOW, recorder=recorder)).block(0, count)
    return [sorted(found) for found in recorder.values.values()]


def test_each_path_that_occurs_is_asked_once():
    assert asked(planned(CODES, call()), 500) == [["/codes/a", "/codes/b"]]


def test_fields_with_the_same_path_send_one_request():
    plan = planned(CODES, call("x", options={"extract": "$.x"}), call("y", options={"extract": "$.y"}))
    assert len(plan.external_requests) == 1
    generated = rows(calling(call("x", options={"extract": "$.x"}), call("y", options={"extract": "$.y"}),
                        a={"x": 1, "y": "one"}, b={"x": 2, "y": "two"}), count=3)  # fmt: skip
    assert (generated["x"], generated["y"]) == ([1, 2, 1], ["one", "two", "one"])


def test_values_in_a_path_are_percent_encoded_and_filtered():
    code = {**CODES, "options": {"values": ["a/b?c=d&e #%ü", "x"]}}
    plan = planned(code, call(path="/q/{{code | upper}}?n={{code}}"))
    assert asked(plan) == [
        ["/q/A%2FB%3FC%3DD%26E%20%23%25%C3%9C?n=a%2Fb%3Fc%3Dd%26e%20%23%25%C3%BC", "/q/X?n=x"]
    ]


def test_a_row_with_a_blank_value_in_its_path_asks_nothing_and_is_blank():
    code = {**CODES, "percent_blank": 100}
    plan = planned(code, call())
    assert asked(plan) == [[]]
    assert rows(plan, count=3)["v"] == [None] * 3
    half = planned({**CODES, "options": {"values": ["a", ""]}}, call(options={"extract": "$.x"}))
    ready = half.with_responses({half.external_requests[0].query.key: answer(a={"x": 1})})
    assert rows(ready, count=4)["v"] == [1, None, 1, None]


def test_without_a_response_every_row_has_the_placeholder():
    plan = planned(CODES, call(), call("n", options={"kind": "decimal", "decimals": 3}), call("c", "/all"))
    generated = rows(plan, count=3)
    assert (generated["v"], generated["n"], generated["c"]) == (
        ["example"] * 3,
        [Decimal("1.000")] * 3,
        ["example"] * 3,
    )


def test_a_path_without_fields_is_a_separate_request():
    plan = planned(call(path="/all", options={"extract": "$.total"}))
    (ask,) = plan.external_requests
    assert (ask.depends_on_row, ask.query.values) == (False, ("/all",))
    table = pa.table({"body": ['{"total": 7}'], "trouble": [""]})
    assert rows(plan.with_responses({ask.query.key: ExternalResponse(table, "s")}), count=3)["v"] == [7, 7, 7]


def test_the_first_match_counts_and_a_null_is_a_blank():
    generated = rows(calling(call(options={"extract": "$.items[*].n"}), a={"items": [{"n": None}, {"n": 1}]},
                        b={"items": [{"n": 5}, {"n": 6}]}), count=3)  # fmt: skip
    assert generated["v"] == [None, 5, None]


def test_objects_and_arrays_become_nested_json():
    plan = calling(call(options={"extract": "$.tags"}), a={"tags": ["x", 1]}, b={"tags": {"k": None}})
    assert rows(plan, count=2)["v"] == ['["x",1]', '{"k":null}']
    assert plan.layer.columns["v"].type.is_json_text
    whole = calling(call(), a={"n": 1}, b={"n": 2})
    assert rows(whole, count=1)["v"] == ['{"n":1}']


@pytest.mark.parametrize("what", ["error", "blank", "default"])
def test_a_missing_value_is_an_error_null_or_the_default(what):
    options = {"extract": "$.x", "on_empty": what, **({"default": 9} if what == "default" else {})}
    for nothing in ({"y": 1}, [], ...):
        if what == "error":
            assert told(call(options=options), a={"x": 1}, b=nothing) == {"fields[1]": "empty_answer"}
        else:
            generated = rows(calling(call(options=options), a={"x": 1}, b=nothing), count=3)["v"]
            assert generated == [1, 9 if what == "default" else None, 1]


@pytest.mark.parametrize("what", ["error", "blank", "default"])
def test_a_path_that_is_not_there_is_an_error_blank_or_the_default(what):
    options = {"extract": "$.x", "on_error": what, **({"default": "-"} if what == "default" else {})}
    if what == "error":
        assert told(call(options=options), a={"x": "y"}, b=Trouble("404 Not Found")) == {
            "fields[1]": "bad_answer"
        }
    else:
        generated = rows(calling(call(options=options), a={"x": "y"}, b=Trouble("404 Not Found")), count=3)[
            "v"
        ]
        assert generated == ["y", "-" if what == "default" else None, "y"]


def test_blank_for_one_and_the_default_for_the_other():
    options = {"extract": "$.x", "on_error": "default", "on_empty": "blank", "default": 0}
    code = {**CODES, "options": {"values": ["a", "b", "c"]}}
    plan = planned(code, call(options=options))
    known = {plan.external_requests[0].query.key: answer(a={"x": 1}, b={}, c=Trouble("404 Not Found"))}
    assert rows(plan.with_responses(known), count=3)["v"] == [1, None, 0]


def test_a_default_sets_the_type_if_no_path_has_a_value():
    options = {"extract": "$.x", "on_empty": "default", "default": 3}
    assert rows(calling(call(options=options), a={}, b={}), count=2)["v"] == [3, 3]


def test_a_default_of_another_type_is_rejected():
    options = {"extract": "$.x", "on_empty": "default", "default": "none"}
    assert told(call(options=options), a={"x": 1}, b={}) == {"fields[1].options.default": "wrong_type"}
    assert told(call(options=options), a={"x": {}}, b={}) == {"fields[1].options.default": "wrong_type"}
    assert faults(call(path="/x", options={"default": 1})) == {"fields[0].options.default": "contradiction"}


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        ("text", 12.5, "12.5"),
        ("integer", "42", 42),
        ("decimal", 19.999, Decimal("20.00")),
        ("decimal", "19.5", Decimal("19.50")),
        ("float", 1, 1.0),
        ("boolean", True, True),
        ("date", "2026-01-31", date(2026, 1, 31)),
        ("datetime", "2026-01-31T12:00:00", datetime.fromisoformat("2026-01-31T12:00:00")),
        ("datetime", "2026-01-31T12:00:00+02:00", datetime(2026, 1, 31, 10, tzinfo=UTC)),
    ],
)
def test_a_value_is_taken_as_the_kind_that_the_field_says(kind, given, value):
    plan = calling(call(options={"extract": "$.x", "kind": kind}), a={"x": given}, b={"x": given})
    assert rows(plan, count=1)["v"] == [value]


def test_numbers_go_together_and_other_kinds_have_to_be_said():
    options = {"extract": "$.x"}
    assert rows(calling(call(options=options), a={"x": 1}, b={"x": 2.5}), count=2)["v"] == [1.0, 2.5]
    assert told(call(options=options), a={"x": 1}, b={"x": "z"}) == {"fields[1].options.kind": "wrong_type"}
    texts = calling(call(options={**options, "kind": "text"}), a={"x": 1}, b={"x": "z"})
    assert rows(texts, count=2)["v"] == ["1", "z"]
    assert rows(calling(call(options=options), a={"x": 2**64 - 1}, b={"x": 1}), count=1)["v"] == [
        str(2**64 - 1)
    ]


def test_sensitive_values_are_replaced_before_any_other_field_sees_them():
    reader = {"name": "r", "type": "derived", "options": {"value": "<{{v}}>"}}
    generated = rows(
        calling(call(options={"extract": "$.x"}, sensitive=True), reader, a={"x": "Ann"}, b={"x": None})
    )
    assert set(generated["v"]) == {"[redacted]", None}
    assert set(generated["r"]) == {"<[redacted]>", "<>"}


@pytest.mark.parametrize("what", ["own", "other"])
def test_a_sensitive_value_is_in_no_message(what):
    code = {**CODES, "options": {"values": ["secret-1", "b"]}, "sensitive": what == "other"}
    plan = planned(code, call(options={"extract": "$.x"}, sensitive=what == "own"))
    with pytest.raises(SpecError) as error:
        plan.with_responses({plan.external_requests[0].query.key: answer(**{"secret-1": {}, "b": {"x": 1}})})
    assert "secret" not in str(error.value.faults)
    assert dict(plan.external_requests[0].query["of"])["quiet"]


def test_field_limits_are_part_of_the_request():
    plan = planned(CODES, call("x"), call("y", options={"on_error": "blank"}))
    assert [dict(request.query["of"])["bears"] for request in plan.external_requests] == [False, True]


@pytest.mark.parametrize(
    "path", ["https://elsewhere/x", "//elsewhere/x", "/a/../b", "/a#b", "/a\\b", "/a\nb", ""]
)
def test_a_path_stays_on_its_connection(path):
    assert set(faults(call(path=path))) == {"fields[0].options.path"}


def test_a_path_names_fields_that_are_there_and_hold_single_values():
    nested = {"name": "n", "type": "nested", "options": {"fields": [{"name": "a", "type": "uuid"}]}}
    assert faults(call(path="/{{nobody}}")) == {"fields[0].options.path": "unknown_field"}
    assert faults(nested, call(path="/{{n}}")) == {"fields[1].options.path": "wrong_type"}
    assert faults(call(path="/{{a")) == {"fields[0].options.path": "bad_placeholder"}


def test_fetched_values_are_never_considered_unique():
    assert faults(call(path="/x", unique=True)) == {"fields[0].unique": "not_unique"}


DOCUMENT = {"a": [{"id": 1, "b": {"c": 2}}, {"id": 2, "b": {"c": 5}}], "n": None, "x-y": 1}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.a[0].id", 1),
        ("$.a[-1].id", 2),
        ("$.a[*].b.c", 2),
        ("$..c", 2),
        ("$.a[1:].id", 2),
        ("$.a[?(@.id == 2)].b.c", 5),
        ("$.a[?(@.id > 1 && @.b.c < 9)].id", 2),
        ("$['x-y']", 1),
        ("$.a.`len`", 2),
        ("$.n", None),
    ],
)
def test_a_json_path_finds_the_first(path, value):
    assert json_paths.find_first(json_paths.parse_path(path), DOCUMENT) == (True, value)


LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from("abx")
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)
STEPS = st.sampled_from(
    [".a", ".b", "['a','b']", "[0]", "[-1]", "[0,1]", "[1:]", "[::-1]", "[*]", ".*", ".`len`", "[?(@.a)]",
     "[?(@.a == 1)]", "[?(@.b[0] > 0 || @.a == 'x')]"]
)  # fmt: skip


@given(DOCUMENTS, st.lists(STEPS, max_size=3), st.booleans(), STEPS)
def test_the_first_match_is_that_of_the_library(document, steps, deep, last):
    text = "$" + "".join(steps) + (f"..{last.lstrip('.')}" if deep else last)
    found = [context.value for context in parse(text).find(document)]
    assert json_paths.find_first(json_paths.parse_path(text), document) == (
        (True, found[0]) if found else (False, None)
    )


@pytest.mark.parametrize(
    "path",
    [
        "$.a[",
        "$.a | $.b",
        "$['a','a']",
        "$.a.`parent`",
        "$.a * 9",
        "$.a[?(@.b =~ '(x+)+')]",
        "$.a[?(@..b == 1)]",
        "$.a[?(@.* == 1)]",
        "$..a..b",
        "$.a[?(@.b == $.c)]",
        "$.a.`sorted`",
        "x" * (limits.JSON_PATH_CHARS + 1),
    ],
)
def test_a_json_path_with_unbounded_cost_is_rejected(path):
    assert set(faults(call(path="/x", options={"extract": path}))) == {"fields[0].options.extract"}


@pytest.mark.parametrize(
    ("path", "depth"),
    [
        ("$.a" + "[*].$.a" * 6 + "[*].missing", 0),
        ("$.a" + "[?(@.id > -1)].$.a" * 6 + "[?(@.id > 999)]", 0),
        ("$.a" + "[0:].$.a" * 6 + "[0:].missing", 0),
        ("$.a" + "[0,1,2,3,4,5,6,7,8,9].$.a" * 9 + "[0].missing", 0),
        ("$.." + ".".join("*" * 100) + ".missing", 120),
    ],
)
def test_a_json_path_stops_after_a_bounded_number_of_visits(path, depth, monkeypatch):
    """Each of these would visit far more values than the document has, for minutes and more."""
    monkeypatch.setattr(limits, "JSON_PATH_VISITS", 100_000)
    wide = [{"id": number} for number in range(300 if depth == 0 else 40_000)]
    for _ in range(depth):
        wide = [wide]
    with pytest.raises(ValueError, match="too many values"):
        json_paths.find_first(json_paths.parse_path(path), {"a": wide})


def test_a_descent_through_the_largest_answer_is_within_the_visits():
    body = b'{"a":[' + b",".join([b"1"] * ((limits.HTTP_RESPONSE_BYTES - 10) // 2)) + b"]}"
    assert json_paths.find_first(json_paths.parse_path("$..missing"), orjson.loads(body)) == (False, None)
    assert json_paths.find_first(json_paths.parse_path("$..*.missing"), orjson.loads(body)) == (False, None)
