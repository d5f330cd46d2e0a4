"""The formula language: null, texts, conditions, lists, dates and names. A cell depends only on its row."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from tests.engine.formulas.reckon import compiled, fault, faults, formula, made, reckoned
from tests.engine.types.made import NOW, bound, table
from webapp import limits
from webapp.engine.errors import SpecError
from webapp.engine.formulas import reference
from webapp.engine.formulas.functions import BY_NAME, FAMILIES, FUNCTIONS

NUMBERS = [3, None, -2]
LINES = pa.array(
    [
        [{"sku": "a", "n": 1}, {"sku": None, "n": 5}],
        [],
        None,
        [{"sku": "b", "n": None}, {"sku": "a", "n": 2}],
    ],
    pa.list_(pa.struct([("sku", pa.string()), ("n", pa.int64())])),
)
ORDER = [
    {"name": "id", "type": "row_number"},
    {"name": "first name", "type": "first_name"},
    {"name": "last", "type": "last_name", "percent_blank": 25},
    {"name": "price", "type": "number", "options": {"min": 1, "max": 500, "decimals": 2}},
    {"name": "status", "type": "enum", "options": {"values": ["open", "paid", "lost"]}},
    {"name": "born", "type": "date"},
    {
        "name": "lines",
        "type": "nested",
        "options": {
            "array": True,
            "count": {"min": 0, "max": 4},
            "fields": [
                {"name": "sku", "type": "sku"},
                {
                    "name": "amount",
                    "type": "number",
                    "options": {"max": 50, "decimals": 2},
                    "percent_blank": 20,
                },
                {"name": "no", "type": "formula", "options": {"expression": "text(id) + '/' + text(row)"}},
            ],
        },
    },
]


@pytest.mark.parametrize("one", FUNCTIONS, ids=lambda item: item.name)
def test_the_example_of_every_function_gives_its_result(one):
    (value,) = made([formula(one.example)], "r", 1)
    if isinstance(value, date):
        value = value.isoformat()
    assert (
        float(value) if isinstance(value, Decimal) and not isinstance(one.result, str) else value
    ) == one.result
    assert type(value) is type(one.result) or isinstance(value, Decimal)


@pytest.mark.parametrize("one", FUNCTIONS, ids=lambda item: item.name)
def test_every_function_is_declared_whole(one):
    assert one.signature.startswith(f"{one.name}(")
    assert one.description.endswith(".")
    assert one.family in FAMILIES
    assert one.name in one.example or set(one.aliases) & {one.example.partition("(")[0]}
    assert BY_NAME[one.name] is one


@pytest.mark.parametrize("one", FUNCTIONS, ids=lambda item: item.name)
def test_every_function_reports_too_many_and_too_few_arguments(one):
    if one.min_arguments:
        assert fault(f"{one.name}()").code == "wrong_arguments"
    if one.max_arguments is not None:
        many = ", ".join(["1"] * (one.max_arguments + 1))
        assert fault(f"{one.name}({many})").code == "wrong_arguments"


def test_blank_makes_blank_in_arithmetic_and_texts():
    assert reckoned("a + 1", a=NUMBERS) == [4, None, -1]
    assert reckoned("a / 2", a=NUMBERS) == [Decimal("1.500000"), None, Decimal("-1.000000")]
    assert reckoned('"x" + t', t=["a", None]) == ["xa", None]
    assert reckoned("upper(t)", t=["a", None]) == ["A", None]
    assert reckoned('concat("x", t, 1)', t=["a", None]) == ["xa1", "x1"]


def test_a_comparison_with_blank_is_false_and_conditions_are_true_or_false():
    assert reckoned("a > 0", a=NUMBERS) == [True, False, False]
    assert reckoned("a != 3", a=NUMBERS) == [False, False, True]
    assert reckoned("not a == 3", a=NUMBERS) == [False, True, True]
    assert reckoned("a == null", a=NUMBERS) == [False, True, False]
    assert reckoned("a is not None", a=NUMBERS) == [True, False, True]
    assert reckoned("f or a > 0", f=[None, True, None], a=NUMBERS) == [True, True, False]
    assert reckoned("1 if f else 2", f=[None, True, False]) == [2, 1, 2]
    assert reckoned("0 < a <= 3", a=NUMBERS) == [True, False, False]


def test_nulls_are_generated_and_queried():
    assert reckoned("coalesce(a, b, 9)", a=NUMBERS, b=[None, None, 1]) == [3, 9, -2]
    assert reckoned("is_blank(t)", t=["a", "", None]) == [False, True, True]
    assert reckoned("is_blank(l)", l=LINES) == [False, True, True, False]


def test_membership_of_lists_and_texts():
    assert reckoned("t in ['a', 'b']", t=["a", "c", None]) == [True, False, False]
    assert reckoned("t not in ['a', 'b']", t=["a", "c", None]) == [False, True, True]
    assert reckoned("m in [1, 2.5]", m=pa.array([Decimal("2.50"), None], pa.decimal128(38, 2))) == [
        True,
        False,
    ]
    assert reckoned("'an' in t", t=["Ann", "Jane", None]) == [False, True, False]
    assert reckoned("d in ['2026-01-31']", d=[date(2026, 1, 31), None]) == [True, False]


def test_a_text_next_to_a_date_is_parsed_as_a_date():
    days = [date(2025, 12, 31), date(2026, 1, 1), None]
    assert reckoned('d >= "2026-01-01"', d=days) == [False, True, False]
    assert reckoned("d + 1", d=days) == [date(2026, 1, 1), date(2026, 1, 2), None]
    assert reckoned("d - date(2025, 12, 30)", d=days) == [1, 2, None]
    assert reckoned("days_between(d, '2026-01-31')", d=days) == [31, 30, None]


def test_a_date_outside_the_calendar_is_blank():
    assert reckoned("add_years(d, 9000)", d=[date(2026, 1, 1)]) == [None]
    assert reckoned("add_days(d, n)", d=[date(1, 1, 1)] * 2, n=[-1, 10**18]) == [None, None]
    assert reckoned("date(2026, m, 29)", m=[1, 2, 13, None]) == [date(2026, 1, 29), None, None, None]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("length(l)", [2, 0, None, 2]),
        ("count(l[*].sku)", [1, 0, None, 2]),
        ("sum(l[*].n)", [6, 0, None, 2]),
        ("sum(l.n * 2)", [12, 0, None, 4]),
        ("sum(l[*].n * k)", [6, 0, None, 8]),
        ("min(l[*].n)", [1, None, None, 2]),
        ("max(l[*].sku)", ["a", None, None, "b"]),
        ("round(avg(l[*].n), 1)", [Decimal("3.0"), None, None, Decimal("2.0")]),
        ("any(l[*].n > 4)", [True, False, False, False]),
        ("all(l[*].n > 0)", [True, True, True, False]),
        ("join(l[*].sku, '-')", ["a", "", None, "b-a"]),
        ("l[0].sku", ["a", None, None, "b"]),
        ("l[-1].n", [5, None, None, 2]),
        ("l[7].n", [None, None, None, None]),
        ("first(l[*].n)", [1, None, None, None]),
        ("unique_count(l[*].sku)", [1, 0, None, 2]),
        ("upper(l[*].sku)", [["A", None], [], None, ["B", "A"]]),
        ("'a' in l[*].sku", [True, False, False, True]),
        ("any(l[*].n in [5, 6])", [True, False, False, False]),
        ("sum([k, 10])", [11, 12, 13, 14]),
        ("max([null, k])", [1, 2, 3, 4]),
        ("split('a,b', ',')[1]", ["b"] * 4),
    ],
)
def test_arrays_are_folded_and_reached_into(source, expected):
    assert reckoned(source, l=LINES, k=[1, 2, 3, 4]) == expected


def test_lists_of_different_arrays_do_not_mix():
    lists = pa.array([[1, 2]])
    with pytest.raises(ValueError, match="different lists"):
        compiled("a + b", {"a": lists, "b": lists})


EXPRESSIONS = (
    "price * 1.19",
    "round(price / 3, 2)",
    "upper(field('first name')) + ' ' + last",
    "status in ['open', 'lost']",
    "sum(lines[*].amount)",
    "join(lines[*].sku)",
    "lines[*].no",
    "max(lines[*].no)",
    "random()",
    "choose('a', 'b', last)",
    "random_int(1, 6) + random_int(1, 6)",
    "age(born)",
    "format_date(born, 'D MMMM YYYY')",
    "row % 7",
    "pad_left(id, 5, '0')",
    "slug(concat(last, status))",
    "number(text(price), 1)",
    "'x' if price > 250 else null",
    "split(last, 'e')",
    "luhn(id)",
    "switch(status, 'open', 1, 'paid', 2)",
    "now",
    "initials(last)",
    "format_number(price * 1000, 2)",
    "unique_count(lines.amount)",
)


@pytest.mark.parametrize("source", EXPRESSIONS)
def test_a_cell_depends_only_on_its_row(source):
    bound_ = bound([*ORDER, formula(source)])
    whole = table(bound_, 0, 700)["r"]
    assert (
        bound_.schema.field("r").type
        == pa.table(bound_.block(0, 3), names=bound_.schema.names).schema.field("r").type
    )
    for start, count in ((0, 1), (0, 3), (13, 2), (256, 300), (699, 1)):
        assert table(bound_, start, count)["r"] == whole[start : start + count]
    assert table(bound_, 0, 0)["r"] == []
    far = table(bound_, 2**40, 5)["r"]
    assert table(bound_, 2**40 + 2, 2)["r"] == far[2:4]


def test_two_chances_in_one_formula_are_two():
    rolls = made([formula("random_int(1, 6) * 10 + random_int(1, 6)")], "r", 2000)
    assert set(rolls) == {10 * a + b for a in range(1, 7) for b in range(1, 7)}


def test_chances_are_even():
    drawn = made([formula('choose("a", "b", "c")')], "r", 6000)
    assert all(1850 < drawn.count(item) < 2150 for item in "abc")
    assert 0.48 < sum(made([formula("random()")], "r", 6000)) / 6000 < 0.52


def test_fields_of_the_row_are_read_with_any_names():
    fields = [
        {"name": "row", "type": "constant", "options": {"value": "mine"}},
        formula("row"),
        formula("field('row')", "s"),
    ]
    assert made(fields, "r", 2) == ["mine", "mine"]
    assert made([formula("row * 2")], "r", 3, start=10) == [22, 24, 26]
    assert made([formula("now")], "r", 1) == [NOW]
    assert made([*ORDER, formula("lines[0].no")], "r", 4) == [
        lines[0]["no"] if lines else None for lines in made(ORDER, "lines", 4)
    ]


def test_a_circle_of_formulas_is_named():
    found = faults("b + 1", formula("r + 1", "b"))
    assert "cycle" in {item.code for item in found}
    nested = {"name": "o", "type": "nested", "options": {"fields": [formula("r", "x")]}}
    assert "cycle" in {item.code for item in faults("o.x", nested)}


def test_objects_are_read_by_their_fields_only():
    found = fault(
        "o", {"name": "o", "type": "nested", "options": {"fields": [{"name": "x", "type": "uuid"}]}}
    )
    assert (found.code, found.position) == ("wrong_type", 1)
    found = fault(
        "o.y", {"name": "o", "type": "nested", "options": {"fields": [{"name": "x", "type": "uuid"}]}}
    )
    assert found.code == "unknown_field"


def test_an_override_is_used_by_formulas_and_rejected_if_it_has_another_type():
    fields = [ORDER[3], ORDER[4], formula("price * 2")]
    assert made(fields, "r", 2, overrides={"price": 10.25}) == [Decimal("20.50")] * 2
    assert made(fields, "r", 2, overrides={"price": 3}) == [Decimal("6.00")] * 2
    assert made(fields, "r", 2, overrides={"price": 0.126}) == [Decimal("0.26")] * 2
    with pytest.raises(SpecError) as caught:
        made(fields, "r", 2, overrides={"price": "dear"})
    assert [(item.path, item.code) for item in caught.value.faults] == [("overrides.price", "wrong_type")]
    assert made(fields, "price", 2, overrides={"price": "dear", "r": 1}) == ["dear", "dear"]


def test_a_text_never_grows_beyond_what_a_formula_may_make():
    fields = [{"name": "t", "type": "words", "options": {"count": 200}}]
    for source in (
        "repeat(t, 500)",
        "replace(t, 'e', '" + "x" * 900 + "')",
        "concat(" + ",".join(["t"] * 200) + ")",
        "regex_replace(t, '.', '" + "x" * 900 + "')",
        "join(split(t, ' '), '" + "x" * 900 + "')",
    ):
        with pytest.raises(SpecError) as caught:
            made([*fields, formula(source)], "r", 3)
        assert {item.code for item in caught.value.faults} == {"too_long"}, source
    most = max(len(text) for text in made([*fields, formula("repeat(t, 2)")], "r", 3))
    assert most <= limits.MAX_FORMULA_TEXT


def test_texts_are_as_short_as_announced():
    announced = {**ORDER[1], "name": "n"}
    for source in (
        "upper(n)",
        "left(n, 3)",
        "n + '!'",
        "pad_left(n, 30)",
        "initials(n)",
        "replace(n, 'e', 'ee')",
        "slug(n)",
        "strip_accents(n)",
        "title(n)",
        "text(row)",
        "reverse(n)",
        "mid(n, 2, 4)",
        "n[0]",
    ):
        source_bound = bound([announced, formula(source)])
        longest = source_bound.schema.field("r").metadata[b"max_length"]
        assert max(len(text) for text in table(source_bound, 0, 500)["r"]) <= int(longest), source


def test_every_type_of_the_catalogue_is_supported_or_rejected_by_name():
    from tests.engine.catalogue_cases import cases
    from webapp.engine.types.registry import REGISTRY

    read, refused = 0, {}
    for kind in REGISTRY:
        fields = [
            next(cases(kind)).field(),
            {"name": "source", "type": "enum", "options": {"values": ["open", "paid"]}},
        ]
        try:
            bound(fields)
        except SpecError:
            continue  # it needs other templates
        try:
            source = bound([*fields, formula("coalesce(text(it), '-')")])
        except SpecError as error:
            refused[kind.name] = {item.code for item in error.faults}
            continue
        assert None not in table(source, 0, 20)["r"], kind.name
        read += 1
    assert read > 90
    assert set().union(*refused.values()) == {"wrong_type"}


def test_the_reference_is_drawn_from_the_declarations():
    # To renew it: python -c "from webapp.engine.formulas import reference; print(reference.page(), end='')" > ...
    stored = Path(__file__).parents[3] / "docs" / "reference" / "formulas.md"
    assert stored.read_text() == reference.page()
