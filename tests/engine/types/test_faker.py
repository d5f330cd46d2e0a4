"""Faker's methods: drawn once, the same for everybody, bounded, and refused with a reason."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from faker import Faker

from tests.engine.types.made import NOW, assert_laws, bound, faults, table, values
from webapp import limits
from webapp.engine import faker_worker, groups
from webapp.engine.blocks import BoundPlan, GenerationContext
from webapp.engine.data import vocabulary
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.engine.types import faker


def made(method: str, count: int = 500, arguments: dict | None = None, **common) -> list:
    return values("faker", count, options={"method": method, "arguments": arguments or {}}, **common)


def fault(method: str, arguments: dict | None = None, **common):
    field = {
        "name": "x",
        "type": "faker",
        "options": {"method": method, "arguments": arguments or {}},
        **common,
    }
    with pytest.raises(SpecError) as error:
        bound([field])
    (found,) = error.value.faults
    return found


@pytest.mark.parametrize("method", ["catch_phrase", "pybool", "pyint", "date_of_birth", "currency", "ssn"])
def test_rows_depend_only_on_their_number(method):
    assert_laws("faker", {"method": method})


def test_a_pool_has_the_values_of_faker_and_reports_the_number_of_distinct_ones():
    request = faker.PoolKey("de_DE", "city", "{}")
    drawn = faker.pool_for(request)
    assert drawn.pool.indices.size == limits.FAKER_POOL >= 10_000
    generator = Faker("de_DE")
    generator.seed_instance(faker.seed_of(request))
    assert drawn.pool.values.take(pa.array(drawn.pool.indices)).to_pylist() == [
        generator.city() for _ in range(limits.FAKER_POOL)
    ]
    column = bound([{"name": "x", "type": "faker", "options": {"method": "city"}, "locale": "de_DE"}])
    assert column.plan.layer.columns["x"].type.distinct_count() == len(drawn.pool.distinct)


def test_higher_weights_are_drawn_more_often():
    drawn = faker.pool_for(faker.PoolKey("en_US", "pybool", '{"truth_probability": 90}'))
    share = drawn.pool.values.take(pa.array(drawn.pool.indices)).to_pylist().count(True) / limits.FAKER_POOL
    assert 0.88 < share < 0.92
    assert abs(made("pybool", 20_000, {"truth_probability": 90}).count(True) / 20_000 - share) < 0.02


def test_values_keep_their_kind():
    assert all(
        isinstance(item, int) and 3 <= item <= 7
        for item in made("pyint", arguments={"min_value": 3, "max_value": 7})
    )
    assert all(
        isinstance(item, Decimal)
        for item in made("pydecimal", arguments={"left_digits": 3, "right_digits": 2})
    )
    assert all(isinstance(item, float) for item in made("pyfloat"))
    assert all(isinstance(item, date) for item in made("date_of_birth"))
    assert all(isinstance(item, datetime) for item in made("date_time_this_decade"))
    assert all(item.startswith("[") for item in made("words", arguments={"nb": 2}))
    assert set(made("null_boolean")) == {None, True, False}


def test_structures_become_json_in_one_order():
    record = {"born": date(2001, 2, 3), "name": "Zoë", "tags": {"b", "a"}, "size": Decimal("1.5"), "no": None}
    kind, text = faker_worker.typed_value(record)
    assert kind == "json"
    assert text == '{"born":"2001-02-03","name":"Zoë","tags":["a","b"],"size":1.5,"no":null}'
    assert faker_worker.typed_value(2**64) == ("text", str(2**64))
    assert faker_worker.typed_value(float("nan")) == ("null", None)


def test_dates_depend_on_the_requests_now():
    field = {"name": "x", "type": "faker", "options": {"method": "past_datetime"}}
    plan = compile_plan(groups.assign(parse([field])), vocabulary.open_default())
    for now in (NOW, datetime(2031, 5, 6, tzinfo=UTC)):
        moments = table(BoundPlan(plan, GenerationContext("a seed", now)), 0, 2_000)["x"]
        until = now.replace(tzinfo=None)
        assert max(moments) <= until
        assert (until - min(moments)).days in (29, 30)


def test_the_seed_decides_which_values_a_row_takes():
    field = {"name": "x", "type": "faker", "options": {"method": "company"}}
    plan = compile_plan(groups.assign(parse([field])), vocabulary.open_default())
    first, second = (
        table(BoundPlan(plan, GenerationContext(seed, NOW)), 0, 50)["x"] for seed in ("one", "two")
    )
    assert first != second
    assert first == table(BoundPlan(plan, GenerationContext("one", NOW)), 0, 50)["x"]


def test_unique_reaches_as_far_as_the_pool():
    field = {"name": "x", "type": "faker", "options": {"method": "state"}, "unique": True}
    source = bound([field])
    space = source.plan.layer.columns["x"].type.distinct_count()
    assert len(set(table(source, 0, space)["x"])) == space == 50
    with pytest.raises(SpecError) as error:
        source.check(0, space + 1)
    assert "50" in error.value.faults[0].message


@pytest.mark.parametrize(
    "method",
    ["seed", "seed_instance", "add_provider", "binary", "zip", "tar", "image", "_provider", "__class__", "format",
     "parse", "json_bytes", "random", "unique", "optional"],
)  # fmt: skip
def test_a_faker_method_without_data_is_rejected_by_name(method):
    with pytest.raises(faker_worker.InvalidRequest) as error:
        faker_worker.find_method(Faker("en_US"), method)
    found = error.value.fault
    assert (found["option"], found["code"]) == ("method", "refused_method")
    assert f'"{method}"' in found["message"]


def test_a_rejected_faker_method_is_a_fault_of_the_field():
    found = fault("seed")
    assert (found.path, found.code) == ("fields[0].options.method", "refused_method")
    assert '"seed"' in found.message


def test_an_unknown_method_is_rejected_with_a_suggestion():
    found = fault("frist_name")
    assert (found.path, found.code) == ("fields[0].options.method", "unknown_method")
    assert "`first_name`" in found.hint


def test_arguments_are_checked_by_name_and_size():
    found = fault("pyint", {"minimum": 3})
    assert (found.path, found.code) == ("fields[0].options.arguments.minimum", "unknown_key")
    assert "min_value" in found.hint
    found = fault("pystr", {"max_chars": 10**9})
    assert (found.path, found.code) == ("fields[0].options.arguments.max_chars", "too_large")
    assert set(faults("faker", {"method": "word", "arguments": [1]})) == {"options.arguments"}
    assert set(faults("faker", {})) == {"options.method"}
    assert fault("word", {"ext_word_list": ["x" * limits.FAKER_ARGUMENT_CHARS]}).code == "too_long"


def test_a_method_that_raises_returns_the_reason():
    found = fault("pyint", {"min_value": 9, "max_value": 1})
    assert (found.path, found.code) == ("fields[0].options.arguments", "method_failed")
    assert "Faker reports: " in found.message


def test_a_pool_is_bounded_in_size_and_time(monkeypatch):
    monkeypatch.setattr(limits, "FAKER_POOL_CHARS", 50_000)
    assert fault("paragraphs", {"nb": 60}).code == "too_large"
    monkeypatch.setattr(limits, "MAX_TEXT_CHARS", 500)
    found = fault("bothify", {"text": "#" * 501})
    assert (found.code, "501" in found.message) == ("too_large", True)
    monkeypatch.undo()
    monkeypatch.setattr(limits, "FAKER_SECONDS", 0.01)
    found = fault("sentence", {"nb_words": 41})
    assert found.code == "too_slow"
    assert "of 10,000 values took" in found.message


def test_a_locale_that_fakers_method_does_not_support_is_rejected():
    found = fault("swift", locale="ja_JP")
    assert (found.path, found.code) == ("fields[0].locale", "no_such_locale")
    assert "ja_JP" in found.message
    assert made("first_name", 20, locale="nb_NO")


def test_a_template_pinned_to_another_version_of_faker_is_rejected_by_name(monkeypatch):
    monkeypatch.setattr(faker, "faker_version", lambda: "99.0")
    found = fault("word")
    assert found.code == "library_moved"
    assert "99.0" in found.message


def test_pools_are_remembered_and_forgotten(monkeypatch):
    stored = faker._PoolCache()
    calls = []
    drawn = faker.pool_for(faker.PoolKey("en_US", "word", "{}"))
    monkeypatch.setattr(faker, "_draw", lambda requests: calls.append(requests) or drawn)
    requests = [faker.PoolKey("en_US", f"m{number}", "{}") for number in range(limits.FAKER_POOLS + 1)]
    for key in (requests[0], requests[0], *requests[1:], requests[0]):
        stored.get(key)
    assert calls == [*requests, requests[0]]
    assert len(stored._pools) == limits.FAKER_POOLS
