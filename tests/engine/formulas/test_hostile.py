"""What a formula cannot do: every attempt is refused with its place, its code and a hint, before a row is made."""

from __future__ import annotations

import pytest

from tests.engine.formulas.reckon import fault, faults
from webapp import limits
from webapp.engine.formulas import parser as formulas_parser
from webapp.engine.formulas.types import FormulaError

NAME = {"name": "name", "type": "last_name"}
PRICE = {"name": "price", "type": "number"}

HOSTILE = {
    "dunder attribute": "name.__class__",
    "chain of dunders": "().__class__.__bases__[0].__subclasses__()",
    "import": '__import__("os").system("id")',
    "builtins": "__builtins__",
    "eval": 'eval("1")',
    "open": 'open("/etc/passwd")',
    "getattr": 'getattr(name, "x")',
    "method": "name.upper()",
    "format method": '"{0.__class__}".format(name)',
    "percent format": '"%1000000000d" % 1',
    "call of a call": "upper(name)(1)",
    "call of a subscript": "[upper][0](name)",
    "lambda": "(lambda: 1)()",
    "list comprehension": "[x for x in [1, 2]]",
    "generator": "sum(x for x in name)",
    "set comprehension": "{x for x in name}",
    "dictionary": '{"a": 1}',
    "walrus": "(x := 1)",
    "assignment": "price = 1",
    "f-string": 'f"{name}"',
    "byte string": 'b"abc"',
    "raw string": 'r"\\d"',
    "triple quotes": '"""a"""',
    "await": "await name",
    "yield": "(yield 1)",
    "starred": "concat(*name)",
    "double starred": "concat(**name)",
    "named argument": "round(number=price)",
    "power tower": "9**9**9",
    "power of powers": "2**62**62**62",
    "power that varies": "price ** price",
    "huge integer": "9" * 3000,
    "huge float": "1e309",
    "hexadecimal": "0xffffffffffffffffffff",
    "complex": "1j",
    "multiplied text": '"a" * 1000000000',
    "repeated text": 'repeat("a", 1000000000)',
    "repeat of repeats": 'repeat(repeat(repeat("abcdefghij", 900), 900), 900)',
    "padding": 'pad_left(name, 2000000000, " ")',
    "replacement bomb": 'replace(replace(replace("aaaaaaaaaa", "a", "'
    + "a" * 200
    + '"), "a", "'
    + "a" * 200
    + '"), "a", "'
    + "a" * 200
    + '")',
    "pattern that repeats": 'regex_replace(name, "(a{500}){500}", "x")',
    "pattern of many states": "matches(name, '" + "\\\\pL{99}" * 20 + "')",
    "pattern of nested repeats": "matches(name, '(((a{99}){99}){99})')",
    "group that does not exist": "regex_replace(name, 'a', '\\\\7')",
    "invalid pattern": 'regex_replace(name, "(", "x")',
    "brackets": "(" * 10_000 + "1" + ")" * 10_000,
    "brackets within the length": "(" * 1_900 + "1" + ")" * 1_900,
    "signs": "-" * 3_999 + "1",
    "negations": "not " * 900 + "true",
    "long sum": "+".join(["1"] * 1_900),
    "deep condition": "1 if true else " * 250 + "1",
    "nested calls": "upper(" * 100 + "name" + ")" * 100,
    "nested lists": "[" * 100 + "]" * 100,
    "huge list": "price in [" + ",".join(["1"] * 900) + "]",
    "too many arguments": "upper(name, name)",
    "null byte": "name\x00",
    "null byte in a text": '"a\x00b"',
    "lone surrogate": '"\ud800"',
    "lookalike name": "ｎａｍｅ",
    "lookalike bracket": "upper（name）",
    "direction mark": "name\u202e",
    "ligature": "ﬁeld('name')",
    "other digits": "price + ٣",
    "comment": "price # + 1",
    "statement": "price; price",
    "import statement": "import os",
    "two lines": "price\nprice",
    "backslash": "price \\\n + 1",
    "escape": '"\\N{BULLET}"',
    "decorator": "@name",
    "ellipsis": "...",
    "matrix product": "price @ price",
    "bits": "price << 1000000000",
    "bitwise or": "price | 1",
    "tuple": "price, price",
    "empty tuple": "()",
    "slice with a step": "name[::-1]",
    "index that varies": "name[price]",
    "too large": "999999999999999999 * 999999999999999999",
    "divided by nothing": "price / 0",
    "all of nothing": "sum([*])",
    "empty": "   ",
    "only an operator": "+",
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE.keys())
def test_forbidden_parts_of_a_formula_are_rejected_with_their_position(source):
    found = faults(source, NAME, PRICE)
    assert found
    for item in found:
        assert item.path.startswith("fields[2].options.expression")
        if not item.code.startswith("string_"):  # too long, or no text at all: it is not read
            assert 1 <= item.position <= len(source) + 1
            assert f"(character {item.position})" in item.message


def test_there_are_many_of_them():
    assert len(HOSTILE) >= 60


@pytest.mark.parametrize(
    ("source", "code", "position", "hint"),
    [
        ("pric * 2", "unknown_field", 1, "Did you mean `price`?"),
        ("price * roww", "unknown_field", 9, "Did you mean `row`?"),
        ("1 + uper(name)", "unknown_function", 5, "Did you mean `upper`?"),
        ("price * (1 + 2", "bad_formula", 9, "Add a `)`."),
        ("price * 2)", "bad_formula", 10, "Remove it."),
        ("price && 1", "bad_formula", 7, "Use `and`."),
        ("price = 1", "bad_formula", 7, "Use `==` to compare."),
        ('name + "x', "bad_formula", 8, 'Add a `"` on the same line.'),
        ("name.city", "wrong_type", 1, "Only objects have fields."),
        ("upper()", "wrong_arguments", 1, 'For example upper("ann").'),
        ("price * now()", "wrong_type", 9, ""),
        (
            'price == "1"',
            "wrong_type",
            1,
            "Use `number(...)` or `text(...)` to compare values of the same type.",
        ),
        ("not price", "wrong_type", 5, "Compare it with something, or use is_blank(...)."),
        ('if(price > 1, price, "x")', "mixed_types", 1, "Use `text(...)` around those that are not texts."),
        ('"ä" + "ö" + nam', "unknown_field", 13, "Did you mean `name`?"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_a_way_out(source, code, position, hint):
    found = fault(source, NAME, PRICE)
    assert (found.code, found.position, found.hint or "") == (code, position, hint)


def test_all_unknown_names_are_reported_together():
    found = faults("pric + nam + uper(name)", NAME, PRICE)
    assert sorted((item.code, item.position) for item in found) == [
        ("unknown_field", 1), ("unknown_field", 8), ("unknown_function", 14),
    ]  # fmt: skip


def test_only_the_whitelist_comes_through_the_parser():
    # A parsed formula contains only these nodes, although Python's grammar has more.
    import ast

    for source in (
        "price * 2 + 1",
        "name[0:2] in ['a', 'b'] and not true",
        "lines[*].sku",
        "a.b.c if x else -y",
    ):
        tree = formulas_parser.parse(source).tree
        for node in ast.walk(tree):
            assert isinstance(node, (*formulas_parser.NODES, *formulas_parser.OPERATORS))


def test_a_formula_is_at_most_so_long():
    with pytest.raises(FormulaError) as caught:
        formulas_parser.parse("1" * (limits.MAX_FORMULA_CHARS + 1))
    assert caught.value.code == "too_long"
