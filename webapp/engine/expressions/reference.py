"""The reference of the formula language, as a page: written from the same declarations that carry formulas out."""

from __future__ import annotations

from typing import Any

import orjson

from webapp import limits
from webapp.engine.expressions.build import BUILT_IN
from webapp.engine.expressions.functions import FAMILIES, FUNCTIONS
from webapp.engine.expressions.operators import QUOTIENT_PLACES

_INTRODUCTION = """# Formulas

A formula is one expression over the fields of a row, written as in Python: `round(price * quantity * 1.19, 2)`,
`upper(last) + ", " + first`, `"dear" if price > 100 else "fair"`. It stands

- in the key `formula` of any field, as post-processing: `this` is the field's own value. It is done before case,
  prefix and suffix; blanks (`percent_blank`) come last. The formula's type becomes the field's type.
- in type `formula` (`expression`) and type `derived` (`value` without braces; with braces a text in which every
  `{{...}}` holds a field or a formula, then filters: `{{ upper(first) }}.{{last | lower}}`). The same formula twice
  in one text is one value.
- in type `case`: `cases` is a list of `{when, then}` or `{when, then_formula}`, tried in order; `else` or
  `else_formula` holds where none does. All give values of one type.

A fault names the place in the formula, counted from 1 (`position`), and a way out. All unknown names are told at once.

## Names

| name | meaning |
|---|---|
"""

_REST = f"""| `price` | a field of the same row, or of the levels around a nested one |
| `field("first name")` | a field whose name is no single word |
| `address.city` | a field inside a nested object |
| `lines[*].amount`, `lines.amount` | that field of every element of an array, as a list |
| `lines[0].sku`, `lines[-1].sku` | of the first, of the last element; blank where there is none |
| `parent.name` | a field of the parent template |
| `true`, `false`, `null` | as in JSON; Python's spelling does too |

A field named like one of the first four goes before it, except before `this`.

## Values

- **Whole numbers** have 64 bits; **decimals** have a fixed number of digits after the point, which is known before any
  row is made: that of the field, of the number as it is written (`1.50` has two), the larger of the two for `+ - %`,
  the sum of both for `*` (at most {limits.MAX_DECIMALS}), {QUOTIENT_PLACES} for `/` and `avg`, and `n` for
  `round(x, n)`, which rounds a quotient or an average once. Nothing is binary, so every machine gives the same digits;
  what is rounded is rounded half to even. `//` and `%` round down, as in Python. A number that does not fit is refused:
  before any row where the bounds of the fields tell, else at the row that holds it. It never wraps.
- **Texts** are joined with `+`; what stands beside a text is spelled. `name[0]`, `name[1:3]` are characters, counted
  from 0. A formula makes texts of at most {limits.MAX_FORMULA_TEXT:,} characters.
- **Dates** and **points in time** are in UTC. `born + 30` is 30 days later, `end - start` of two dates is a number of
  days, `born > "2000-01-01"` reads the text as a date. Outside the years 1 to 9999 there is no value.
- **Lists** come from arrays, from `split` and from brackets: `[a, b]`. Whatever is done to a list is done to each
  of its elements: `sum(lines[*].amount * lines[*].quantity)`. Elements of two different arrays do not mix.
- **Blank** in arithmetic, in a function or beside `+` makes the result blank, except in `concat`, `coalesce` and
  where lists are summed up. A comparison with blank is false, `!=` too; `x == null` and `is_blank(x)` ask for it.
  Conditions are true or false: blank counts as false. Dividing by 0 gives blank.
- Both sides of an `if` are reckoned for every row, and the one that holds is taken.

## Operators

`+ - * / // % **` (the exponent is written out, 0 to {limits.MAX_FORMULA_POWER}), `== != < <= > >=` (also chained:
`0 < x <= 9`), `in`, `not in` (a list, or a part of a text), `is null`, `and`, `or`, `not`, `a if condition else b`,
`if(condition, a, b)`. Nothing else of Python exists: no attributes of values, no assignment, no loops, no calls but
those below.

## Unique

A formula can be unique only where that is proven: it is one-to-one with one unique field or with `row` (that plus,
minus or times a constant, padded, reversed, spelled), or a text from which that can be read back: constant on one side
of it, and on the other constant too, or beginning with a character it cannot contain (`name + "#" + id`).

## Limits

{limits.MAX_FORMULA_CHARS:,} characters, {limits.MAX_FORMULA_PARTS:,} names, numbers and signs,
{limits.MAX_FORMULA_DEPTH} levels of nesting, lists of {limits.MAX_FORMULA_LIST} elements written out, numbers of
{limits.MAX_FORMULA_DIGITS} digits.

## Functions

Names of functions do not heed case. The examples are carried out by the tests. `GET /field-types` serves the same list.
"""


def page() -> str:
    """The page as Markdown."""
    names = "".join(
        f"| `{name}` | {text[0].lower() + text[1:].rstrip('.')} |\n" for name, text in BUILT_IN.items()
    )
    return _INTRODUCTION + names + _REST + "".join(_family(name, title) for name, title in FAMILIES.items())


def _family(family: str, title: str) -> str:
    rows = [
        f"| `{_cell(one.signature)}` | {_cell(one.description)}{_also(one.aliases)} | `{_cell(one.example)}` "
        f"| `{_cell(_shown(one.result))}` |\n"
        for one in FUNCTIONS
        if one.family == family
    ]
    return f"\n### {title}\n\n| function | | example | result |\n|---|---|---|---|\n" + "".join(rows)


def _also(aliases: tuple[str, ...]) -> str:
    return " Also " + ", ".join(f"`{name}`" for name in aliases) + "." if aliases else ""


def _shown(value: Any) -> str:
    return orjson.dumps(value).decode()


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
