"""Unique means: as databases compare, and up to the last value there is; else it is refused with advice."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.engine.catalogue_cases import REQUIRED, Case, bound, cases, window
from webapp.engine import text
from webapp.engine.blocks import BoundPlan
from webapp.engine.errors import SpecError
from webapp.engine.types.base import FieldType
from webapp.engine.types.registry import BY_NAME, REGISTRY
from webapp.engine.types.values import fold_text

PLAIN_ROWS, OTHER_ROWS = 50_000, 20_000
WHOLE = 200_000
"""Up to this number, all values are generated."""

every_type = pytest.mark.parametrize("kind", REGISTRY, ids=lambda kind: kind.name)

SPELLINGS = [
    ("number", {"min": -300, "max": 300, "decimals": 2}, {}),
    ("number", {"min": -9, "max": 9, "step": 3, "stringify": True}, {}),
    ("float", {"min": -1, "max": 1}, {"prefix": "€ ", "suffix": " "}),
    ("percentage", {"min": -1, "max": 1, "decimals": 2, "symbol": True}, {}),
    ("money", {"min": -20, "max": 20, "symbol": "€"}, {}),
    ("date", {"min": "1890-01-01", "max": "2090-01-01", "format": "DD.MM.YYYY"}, {}),
    ("date", {"min": "2020-01-01", "max": "2024-01-01", "format": "MMMM D, YYYY"}, {"text_case": "upper"}),
    ("business_day", {"min": "2020-01-01", "max": "2024-01-01", "format": "%j/%Y"}, {}),
    ("datetime", {"min": "2020-01-01", "max": "2020-01-02", "format": "YYYYMMDDHHmmss"}, {}),
    ("datetime", {"min": "2020-01-01", "max": "2020-01-01", "format": "h:mm:ss A DD/MM/YYYY"}, {}),
    ("time", {"format": "h:mm:ss A"}, {"text_case": "lower"}),
    ("time", {"min": "11:58", "max": "12:02"}, {}),
    ("epoch", {"min": "2020-01-01", "max": "2020-01-01", "unit": "milliseconds"}, {}),
    ("time_series", {"interval": "1s", "jitter": "900ms"}, {}),
    ("duration", {"min": "0s", "max": "1d", "format": "clock"}, {}),
    ("counter", {"start": -5, "end": 5}, {}),
    (
        "custom",
        {"values": ["Straße", "STRASSE", " strasse", "é", "e\u0301", "E", "ı", "I", "i", "ﬁ", "fi"]},
        {},
    ),
    ("custom", {"values": ["Straße", "ı", "i", "ŉ", "ʼn"]}, {"text_case": "upper"}),
    ("enum", {"values": [1, 1.0, "1", True]}, {}),
    ("list_sequential", {"values": ["a", "A ", "b"]}, {}),
    ("custom", {"values": [{"a": "É"}, {"a": "e"}]}, {}),
    ("character_sequence", {"mask": "*#"}, {}),
    ("character_sequence", {"mask": "@^"}, {"text_case": "upper"}),
    ("character_sequence", {"mask": " #"}, {}),
    ("digit_sequence", {"format": "É##e#"}, {"text_case": "title"}),
    ("random_string", {"min": 2, "max": 2, "alphabet": "aAbé e"}, {}),
    ("random_string", {"min": 1, "max": 3, "alphabet": "abc"}, {}),
    ("random_string", {"min": 1, "max": 2, "alphabet": "ab "}, {}),
    ("regexp", {"string": "[a-zA-Z]{2}"}, {}),
    ("regexp", {"string": "[aàá][bB]?"}, {}),
    ("regexp", {"string": "(x|X)[0-9]{2}"}, {"text_case": "upper"}),
    ("regexp", {"string": "[ a][ b]"}, {}),
    ("regexp", {"string": "(ß|ss|s)"}, {}),
    ("nanoid", {"size": 14}, {"text_case": "upper"}),
    ("uuid", {"version": 7}, {"text_case": "upper"}),
    ("boolean", {"truthy": "Y", "falsy": "y"}, {}),
    ("boolean", {"truthy": "yes", "falsy": None}, {}),
    ("constant", {"value": "one"}, {}),
    ("month", {"abbr": True}, {"text_case": "upper"}),
    ("first_name", {}, {"locale": "es_ES"}),
    ("last_name", {}, {"locale": "es_ES", "text_case": "upper"}),
    ("name", {}, {"locale": "de_DE"}),
    ("first_name", {}, {"locale": "tr_TR"}),
    ("first_name", {}, {"locale": "tr_TR", "text_case": "title"}),
    ("city", {}, {"locale": "fr_FR"}),
    ("words", {"count": 1}, {"text_case": "title"}),
    ("words", {"count": 2}, {"locale": "es_ES"}),
    ("password", {}, {"text_case": "lower"}),
]
"""Type, options and common keys for which different values could have the same text."""


def compared(column: pa.Array) -> pa.Array:
    """The values as they are printed, without case, accents and outer blanks."""
    printed = text.decode_dictionary(text.to_text(column))
    if pa.types.is_null(printed.type):
        return printed
    bare = pc.utf8_lower(pc.utf8_normalize(pc.replace_substring(pc.utf8_lower(printed), "ß", "ss"), "NFKD"))
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(bare, r"\p{M}+", ""))


def unique(case: Case, **common) -> BoundPlan | None:
    """The case made unique, or None where that is refused, which it is with advice."""
    try:
        return bound(case.field(unique=True, **common))
    except SpecError as error:
        (fault,) = error.faults
        assert (fault.path, fault.code) == ("fields[0].unique", "not_unique"), case.label
        assert fault.hint, case.label
        return None


def space(source: BoundPlan) -> int:
    return source.plan.layer.columns["it"].type.distinct_count_for(source.states["it"])


def assert_unique(source: BoundPlan, rows: int, label: str) -> None:
    """``rows`` rows, or all there are, differ, and the last of them is the same alone; one more than all is refused,
    wherever it starts."""
    size = space(source)
    count = min(size, rows)
    source.check(0, count)
    columns = [block[0] for block in source.blocks(0, count)]
    generated = pa.chunked_array([compared(column) for column in columns])
    assert generated.null_count == 0, label
    assert window(source, count - 1, 1).equals(text.decode_dictionary(columns[-1])[-1:]), label
    assert pc.count_distinct(generated).as_py() == count, (label, pc.value_counts(generated.combine_chunks()))
    for offset, request in ((0, size + 1), (size, 1), (size - 1, 2)):
        with pytest.raises(SpecError) as error:
            source.check(offset, request)
        (fault,) = error.value.faults
        assert fault.code == "not_enough_values", label
        assert f'"it" must be unique: {size + 1:,} values' in fault.message, label
        assert f"{size:,} exist" in fault.message, label
    source.check(size - 1, 1)


@every_type
def test_unique_values_differ_as_databases_compare_to_the_last_one(kind: type[FieldType]):
    for case in cases(kind):
        source = unique(case)
        if source is None:
            continue
        plain = case.label == "plain"
        rows = PLAIN_ROWS if plain else OTHER_ROWS
        assert_unique(source, WHOLE if plain and space(source) <= WHOLE else rows, case.label)


@pytest.mark.parametrize(("kind", "options", "common"), SPELLINGS, ids=lambda item: str(item)[:40])
def test_unique_counts_the_printed_values_in_any_format(kind, options, common):
    source = unique(Case(BY_NAME[kind], str(options), options), **common)
    if source is not None:
        assert_unique(source, OTHER_ROWS, str(options))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("number", {"distribution": "normal"}),
        ("number", {"distribution": "zipf"}),
        ("float", {"distribution": "pareto"}),
        ("number", {"distribution": "histogram", "edges": [0, 9], "weights": [1]}),
        ("currency", {"mean": 50}),
        ("date", {"distribution": "recent_bias"}),
        ("datetime", {"distribution": "normal"}),
        ("enum", {"values": ["a", "b"], "weights": [1, 1]}),
        ("boolean", {"probability": 0.5}),
        *(
            (name, {})
            for name in ("normal", "lognormal", "exponential", "pareto", "zipf", "poisson", "binomial")
        ),
        ("geometric", {}),
    ],
)
def test_weights_and_distributions_with_unique_are_rejected(kind, options):
    assert unique(Case(BY_NAME[kind], str(options), options)) is None


@every_type
def test_one_fixed_value_in_several_rows_is_not_unique(kind: type[FieldType]):
    source = unique(Case(kind, "plain", REQUIRED.get(kind.name, {})))
    if source is None:
        return
    value = text.decode_dictionary(window(source, 0, 1)).to_pylist()[0]
    fixed = value if isinstance(value, int | str | float | bool) else str(value)
    again = BoundPlan(source.plan, source.env, {"it": fixed})
    again.check(0, 1)
    with pytest.raises(SpecError) as error:
        again.check(0, 2)
    assert [(fault.path, fault.code) for fault in error.value.faults] == [("overrides.it", "not_unique")]


@pytest.mark.parametrize(
    "value", ["Straße", "STRASSE", " é ", "e\u0301", "Ωmega", "ﬁne", "İ", "plain", "Ñandú", "Ⅷ", "ǅ", "½"]
)
def test_the_comparison_here_is_the_one_of_the_engine(value):
    assert compared(pa.array([value])).to_pylist() == [fold_text(value)]
