"""The reference page of the formula language, generated from the declarations that evaluate formulas."""

from __future__ import annotations

import orjson

from webapp import limits
from webapp.engine.formulas.compiler import BUILT_IN
from webapp.engine.formulas.functions import FAMILIES, FUNCTIONS
from webapp.engine.formulas.operators import QUOTIENT_PLACES

_INTRODUCTION = """# Formulas

A formula is an expression over the fields of a row, written as in Python: `round(price * quantity * 1.19, 2)`,
`upper(last) + ", " + first`, `"dear" if price > 100 else "fair"`. You can use formulas in three places:

- In the key `formula` of any field, to transform its value. `this` is the generated value. The formula is applied
  before case, prefix and suffix; blanks (`percent_blank`) are applied last. The field gets the type of the formula's
  result.
- In fields of type `formula` (`expression`) and `derived` (`value`). A `value` without braces is a formula. With braces
  it is a text in which every `{{...}}` contains a field or a formula, optionally followed by filters:
  `{{ upper(first) }}.{{last | lower}}`. The same formula twice in one text gives the same value.
- In fields of type `case`: `cases` is a list of `{when, then}` or `{when, then_formula}`, checked in order. `else` or
  `else_formula` is used if no condition is true. All values must have one type.

An error contains the position in the formula, counted from 1 (`position`), and a suggestion. All unknown names are
reported together.

## Names

| name | meaning |
|---|---|
"""

_REST = f"""| `price` | a field of the same row, or of an enclosing level of a nested field |
| `field("first name")` | a field whose name is not a single word |
| `address.city` | a field inside a nested object |
| `lines[*].amount`, `lines.amount` | that field of every element of an array, as a list |
| `lines[0].sku`, `lines[-1].sku` | a field of the first or last element; blank if the array is empty |
| `parent.name` | a field of the parent template |
| `true`, `false`, `null` | as in JSON; Python's spelling also works |

A field with the name `row`, `now` or `today` takes precedence over the built-in name. `this` always has its built-in
meaning.

## Values

- **Integers** have 64 bits. **Decimals** have a fixed number of decimal places that is known before any row is
  generated: that of the field or the literal (`1.50` has two), the larger of the two for `+ - %`, the sum of both for
  `*` (at most {limits.MAX_DECIMALS}), {QUOTIENT_PLACES} for `/` and `avg`, and `n` for `round(x, n)`, which rounds a
  quotient or an average only once. There is no binary floating point, so every machine calculates the same digits.
  Rounding is half to even. `//` and `%` round down, as in Python. A number that does not fit is rejected: before any
  row if the ranges of the fields show it, otherwise at the row that contains it. Numbers never wrap around.
- **Texts** are joined with `+`, which converts the other operand to text. `name[0]` and `name[1:3]` are characters,
  counted from 0. A formula generates texts of at most {limits.MAX_FORMULA_TEXT:,} characters.
- **Dates** and **times** are in UTC. `born + 30` is 30 days later, `end - start` of two dates is a number of days, and
  `born > "2000-01-01"` parses the text as a date. Results outside the years 1 to 9999 are blank.
- **Lists** come from arrays, from `split` and from brackets: `[a, b]`. An operation on a list applies to each of its
  elements: `sum(lines[*].amount * lines[*].quantity)`. You cannot combine elements of two different arrays.
- **Blank** values in arithmetic, in a function or with `+` make the result blank, except in `concat`, `coalesce` and
  functions that summarize lists. A comparison with blank is false, including `!=`. Test for blank with `x == null` or
  `is_blank(x)`. Conditions are true or false: blank counts as false. Division by 0 gives blank.
- Both branches of an `if` are calculated for every row, and the matching one is used.

## Operators

`+ - * / // % **` (the exponent is a literal, 0 to {limits.MAX_FORMULA_POWER}), `== != < <= > >=` (also chained:
`0 < x <= 9`), `in`, `not in` (a list, or part of a text), `is null`, `and`, `or`, `not`, `a if condition else b`,
`if(condition, a, b)`. Other Python syntax is not supported: no attributes of values, no assignments, no loops, and only
calls of the functions below.

## Unique

A formula can be unique only if Rowsmith can prove it. This is the case if the formula is one-to-one with a single
unique field or with `row` (plus, minus or times a constant, padded, reversed, converted to text), or if it is a text
that contains such a value in a recoverable position: one side of it is constant, and the other side is also constant
or begins with a character that the value cannot contain (`name + "#" + id`).

## Limits

{limits.MAX_FORMULA_CHARS:,} characters, {limits.MAX_FORMULA_PARTS:,} names, numbers and operators,
{limits.MAX_FORMULA_DEPTH} levels of nesting, lists of {limits.MAX_FORMULA_LIST} literal elements, and numbers of
{limits.MAX_FORMULA_DIGITS} digits.

## Functions

Function names are not case-sensitive. The examples are checked by tests. `GET /field-types` returns the same list.
"""


def page() -> str:
    """The page as Markdown."""
    names = "".join(
        f"| `{name}` | {text[0].lower() + text[1:].rstrip('.')} |\n" for name, text in BUILT_IN.items()
    )
    return _INTRODUCTION + names + _REST + "".join(_family(name, title) for name, title in FAMILIES.items())


def _family(family: str, title: str) -> str:
    rows = []
    for function in FUNCTIONS:
        if function.family == family:
            also = (
                " Also " + ", ".join(f"`{name}`" for name in function.aliases) + "."
                if function.aliases
                else ""
            )
            rows.append(
                f"| `{_cell(function.signature)}` | {_cell(function.description)}{also} | `{_cell(function.example)}` "
                f"| `{_cell(orjson.dumps(function.result).decode())}` |\n"
            )
    return f"\n### {title}\n\n| function | | example | result |\n|---|---|---|---|\n" + "".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
