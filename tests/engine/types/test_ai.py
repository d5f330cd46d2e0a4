"""Values that a model writes: rows are made of the answers that the caller hands in, by prompt, seed and row."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.engine.types.test_outside import CODES, NOW, faults, planned, rows
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.errors import SpecError
from webapp.engine.external_values import ExternalResponse, RequestRecorder
from webapp.engine.plan import Plan


def ai(name: str = "v", prompt: str = "A word for {{code}}", **common: Any) -> dict[str, Any]:
    more = common.pop("options", {})
    return {"name": name, "type": "ai", "options": {"prompt": prompt, **more}, **common}


def asked(plan: Plan, start: int = 0, count: int = 4, seed: str = "s") -> dict[str, tuple[Any, ...]]:
    """What rows ask, by key."""
    recorder = RequestRecorder(1_000)
    block = BoundPlan(plan, GenerationContext(seed, NOW, recorder=recorder)).block_at(
        np.arange(start, start + count, dtype=np.uint64)
    )
    for name in plan.layer.columns:
        block.column(name)
    return recorder.values.get(plan.external_requests[0].query.key, {})


def answered(plan: Plan, *values: str | None, **how: Any) -> Plan:
    """The plan with these answers to what its first rows ask; None: nothing that fits."""
    text = dict(zip(asked(plan, **how), values, strict=True))
    keys = sorted(text)
    troubles = ["" if text[key] is not None else "it is empty" for key in keys]
    table = pa.table({"value": pa.array([text[key] for key in keys], pa.string()), "trouble": troubles})
    answer = ExternalResponse(table, "s", pa.array(keys), np.arange(len(keys) + 1))
    return plan.with_responses({plan.external_requests[0].query.key: answer})


def told(*values: str | None, **options: Any) -> dict[str, str]:
    try:
        answered(planned(CODES, ai(options=options)), *values)
    except SpecError as error:
        return {fault.path: fault.code for fault in error.faults}
    return {}


def test_a_question_is_the_rendered_prompt_the_seed_and_the_row():
    plan = planned(CODES, ai())
    values = list(asked(plan).values())
    codes = rows(plan, 0, 4)["code"]
    assert values == [(f"A word for {code}", "s", str(row)) for row, code in enumerate(codes)]
    assert asked(plan, 2, 2).keys() < asked(plan).keys()
    assert asked(plan, seed="t").keys().isdisjoint(asked(plan))


def test_equal_prompts_are_one_request_if_the_field_says_so():
    plan = planned(CODES, ai("v", "A word", options={"same_for_equal_prompts": True}))
    assert list(asked(plan).values()) == [("A word", "s")]
    plan = answered(plan, "shiny")
    assert rows(plan, 0, 4)["v"] == ["shiny"] * 4


def test_a_request_differs_only_by_what_its_response_depends_on():
    def hashed(**options: Any) -> Any:
        question = planned(CODES, ai(options=options)).external_requests[0].query
        return [setting for setting in question.settings if setting[0] != "of"]

    assert hashed() == hashed(on_error="blank") == hashed(allow_sensitive=True)
    others = [
        {"max_length": 3},
        {"choices": ["a"]},
        {"examples": ["a"]},
        {"temperature": 1},
        {"kind": "integer"},
    ]
    assert all(hashed(**other) != hashed() for other in others)


@pytest.mark.parametrize(
    ("options", "value", "result"),
    [
        ({}, "shiny", "shiny"),
        ({"choices": ["gold", "tin"]}, "tin", "tin"),
        ({"kind": "integer"}, "12", 12),
        ({"kind": "decimal", "decimals": 3}, "1.250", Decimal("1.250")),
        ({"kind": "boolean"}, "false", False),
        ({"kind": "date"}, "2026-02-28", date(2026, 2, 28)),
    ],
)
def test_answers_are_of_the_kind_that_the_field_says(options, value, result):
    plan = answered(planned(CODES, ai(options=options)), *[value] * 4)
    assert rows(plan, 0, 4)["v"] == [result] * 4


def test_unrequested_rows_are_null_and_without_any_response_have_placeholders():
    plan = planned(CODES, ai(options={"examples": ["dull"]}))
    assert rows(plan, 0, 2)["v"] == ["dull"] * 2
    assert rows(planned(CODES, ai(options={"choices": ["gold", "tin"]})), 0, 2)["v"] == ["gold"] * 2
    plan = answered(plan, "a", "b", count=2)
    assert rows(plan, 0, 4)["v"] == ["a", "b", None, None]


@pytest.mark.parametrize(
    ("options", "result"),
    [
        ({"on_error": "blank"}, None),
        ({"on_error": "default", "default": "none"}, "none"),
        ({"on_error": "default"}, None),
    ],
)
def test_without_a_matching_response_the_fields_default_is_used(options, result):
    plan = answered(planned(CODES, ai(options=options)), "a", None, "c", "d")
    assert rows(plan, 0, 4)["v"] == ["a", result, "c", "d"]


def test_an_invalid_response_is_an_error_for_a_field_without_a_default():
    assert told("a", None, "c", "d") == {"fields[1]": "bad_answer"}
    assert told("a", "b", "c", "d", on_error="default", default=3) == {
        "fields[1].options.default": "wrong_type"
    }
    assert told("a", "b", "c", "d", default="x") == {"fields[1].options.default": "contradiction"}


def test_a_list_is_inserted_into_a_prompt_only_as_json():
    inner = [{"name": "n", "type": "number"}]
    tags = {"name": "tags", "type": "nested", "options": {"array": True, "count": 2, "fields": inner}}
    assert faults(tags, ai(prompt="{{tags}}")) == {"fields[1].options.prompt": "wrong_type"}
    plan = planned(tags, ai(prompt="{{tags | json}}"))
    assert next(iter(asked(plan).values()))[0].startswith("[")


@pytest.mark.parametrize("prompt", ["{{ssn}}", "{{covered}}", "{{shown}}"])
def test_a_prompt_with_sensitive_values_is_rejected_through_any_number_of_fields(prompt):
    fields = [
        {"name": "ssn", "type": "ssn", "sensitive": True},
        {"name": "covered", "type": "derived", "options": {"value": "No. {{ssn}}"}},
        {"name": "shown", "type": "formula", "options": {"expression": "upper(covered)"}},
    ]
    assert faults(*fields, ai(prompt=prompt)) == {"fields[3].options.prompt": "sensitive"}
    assert faults(*fields, ai(prompt=prompt, options={"allow_sensitive": True})) == {}
    assert faults(*fields, ai(prompt="nothing of it")) == {}


def test_values_of_a_model_are_not_unique():
    assert faults(CODES, ai(unique=True)) == {"fields[1].unique": "not_unique"}
