"""Find values that satisfy check constraints by trying: the constraint itself decides.

`checks` reads what a constraint says of single columns. What it cannot read (exactly one of several columns, a date
that belongs to a status, a condition on an array) is tried here: rows of the drafted fields are checked with the
constraint, and where some fail, each column of the constraint is kept, left null, or fixed to one value until all rows
pass. Expressions are evaluated as SQL does, with null as the third truth value; what the evaluator does not know is not
judged.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final, Literal

import sqlglot
from sqlglot import expressions as sql

from webapp import limits
from webapp.imports.inference import checks

Row = Mapping[str, Any]
"""One row by column names in lower case."""
Change = tuple[Literal["null", "value", "filled"], Any]
"""Always null, always this value, or never null."""


class _Unknown(Exception):
    """An expression that is not evaluated here."""


@dataclass(frozen=True, slots=True)
class Options:
    """What can become of a column. `values` are constants that fit its type; arrays are tuples."""

    nullable: bool
    fixed: bool
    """Whether its values may be replaced by one constant."""
    values: tuple[Any, ...]


def search(
    checks: Iterable[str], rows: Sequence[Row], filled: Sequence[Row], options: Mapping[str, Options]
) -> dict[str, Change]:
    """What to change so that all rows satisfy the checks, by column.

    `rows` are samples of what the fields generate, `filled` the same without nulls where a field is; `options` are the
    columns that may change. Checks that share a column are solved together. Where no combination satisfies them,
    nothing changes.
    """
    found: dict[str, Change] = {}
    for trees in _connected_checks([tree for tree in map(_parsed, checks) if tree is not None]):
        if all(_holds(tree, rows) for tree in trees):
            continue
        changes = _solved(trees, filled, options)
        if changes is None:
            evaluated = [tree for tree in trees if _evaluates(tree, filled)]
            if len(evaluated) < len(trees) and not all(_holds(tree, rows) for tree in evaluated):
                changes = _solved(evaluated, filled, options)
        found |= changes or {}
    return found


def _solved(
    trees: Sequence[sql.Expression], filled: Sequence[Row], options: Mapping[str, Options]
) -> dict[str, Change] | None:
    """Changes after which all rows satisfy all of these checks."""
    if not trees:
        return None
    named = set().union(*map(_names, trees)) & options.keys()
    known: dict[tuple[int, tuple[tuple[str, Any], ...]], bool] = {}
    of_tree = [sorted(_names(tree)) for tree in trees]

    def holds(place: int, constants: Mapping[str, Any]) -> bool:
        """Whether a check holds for all rows. It depends only on the constants of its own columns."""
        mine = tuple((name, constants[name]) for name in of_tree[place] if name in constants)
        if (place, mine) not in known:
            changed = ({**row, **constants} for row in filled)
            known[place, mine] = _holds(trees[place], changed)
        return known[place, mine]

    branches = [plan for tree in trees for plan in _branch_plans(tree, options)]
    for plan in itertools.chain([{}], branches, _plans(trees, filled, options)):
        constants = {name: value for name, (_, value) in plan.items()}
        if all(holds(place, constants) for place in range(len(trees))):
            return dict.fromkeys(named, ("filled", None)) | plan
    return None


def true_columns(condition: str) -> list[str]:
    """The columns, in lower case, that are true in all rows that satisfy a condition."""
    tree = _parsed(condition) if condition else None
    found = []
    for one in tree.flatten() if isinstance(tree, sql.And) else [tree]:
        while isinstance(one, sql.Paren):
            one = one.this
        if isinstance(one, sql.And):
            found += true_columns(one.sql("postgres"))
        elif isinstance(one, sql.Column):
            found.append(one.name.casefold())
        elif (
            isinstance(one, sql.EQ | sql.Is)
            and isinstance(one.this, sql.Column)
            and not one.args.get("negate")
            and one.expression in (sql.true(), sql.Literal.number(1))
        ):
            found.append(one.this.name.casefold())
    return found


def differing_columns(check: str) -> list[tuple[str, str]]:
    """The pairs of columns, in lower case, that a check demands to differ (`a <> b`, perhaps only where both are
    filled)."""
    tree = _parsed(check)
    found = []
    for one in tree.flatten() if isinstance(tree, sql.And) else [tree]:
        for part in one.flatten() if isinstance(one, sql.Or) else [one]:
            while isinstance(part, sql.Paren):
                part = part.this
            inner = part.this if isinstance(part, sql.Not) else None
            while isinstance(inner, sql.Paren):
                inner = inner.this
            pair = part if isinstance(part, sql.NEQ) else inner if isinstance(inner, sql.EQ) else None
            if (
                pair is not None
                and isinstance(pair.this, sql.Column)
                and isinstance(pair.expression, sql.Column)
            ):
                found.append((pair.this.name.casefold(), pair.expression.name.casefold()))
    return found


def letter_cases(check: str) -> dict[str, Literal["lower", "upper"]]:
    """The columns, in lower case, that a check demands to be in one case (`name = lower(name)`)."""
    tree = _parsed(check)
    found: dict[str, Literal["lower", "upper"]] = {}
    for one in _flattened(tree, sql.And) if tree is not None else ():
        if not isinstance(one, sql.EQ):
            continue
        sides = [_without_casts(one.this), _without_casts(one.expression)]
        for column, other in (sides, sides[::-1]):
            if (
                isinstance(column, sql.Column)
                and isinstance(other, sql.Lower | sql.Upper)
                and _without_casts(other.this) == column
            ):
                found[column.name.casefold()] = "lower" if isinstance(other, sql.Lower) else "upper"
    return found


def _without_casts(node: sql.Expression) -> sql.Expression:
    while isinstance(node, sql.Paren | sql.Cast):
        node = node.this
    return node


def constant(default: str, array: bool = False) -> Any:
    """The value of a column's default, if it is a constant: a text, number, truth value or empty array; else None."""
    tree = _parsed(default)
    if tree is None:
        return None
    try:
        value = _value(tree, {})
    except (_Unknown, TypeError, ValueError, ArithmeticError, RecursionError):
        return None
    if array:
        return [] if value == "{}" else None
    return value if isinstance(value, str | bool | Decimal) else None


def _connected_checks(trees: Iterable[sql.Expression]) -> list[list[sql.Expression]]:
    """The checks, those together that share a column."""
    parts: list[tuple[set[str], list[sql.Expression]]] = []
    for tree in trees:
        names, mine = _names(tree), [tree]
        for part in [one for one in parts if one[0] & names]:
            parts.remove(part)
            names, mine = names | part[0], part[1] + mine
        parts.append((names, mine))
    return [mine for _, mine in parts]


def _names(tree: sql.Expression) -> set[str]:
    return {one.name.casefold() for one in tree.find_all(sql.Column)}


def _plans(
    trees: Sequence[sql.Expression], rows: Sequence[Row], options: Mapping[str, Options]
) -> Iterable[dict[str, Change]]:
    """Combinations of changes to the columns of some checks, those with the fewest changes first."""
    literals: list[Any] = []
    for one in (node for tree in trees for node in tree.find_all(sql.Literal, sql.Boolean)):
        value = _value(one, {})
        if isinstance(one.parent, sql.Like | sql.ILike) and isinstance(value, str):
            value = "".join(_EXAMPLES.get(part, part[-1:]) for part in _LIKE_PARTS.findall(value))
        storable = not isinstance(value, Decimal) or abs(value) < 2**63
        if storable and value not in literals:
            literals.append(value)
    ways: dict[str, list[Change]] = {}
    for name in sorted(set().union(*map(_names, trees))):
        can = options.get(name)
        if can is None:
            continue
        mine: list[Change] = []
        if can.fixed:
            seen = [_plain(row[name]) for row in rows]
            seen = [one for one in seen if isinstance(one, str | bool | Decimal)]
            fit = [one for one in literals if seen and type(one) is type(seen[0])]
            mine += [("value", value) for value in dict.fromkeys([*can.values, *fit, *seen[:_SAMPLES]])]
        if can.nullable:
            mine.append(("null", None))
        if mine:
            ways[name] = mine
    combined = (
        dict(zip(names, plan, strict=True))
        for size in range(1, len(ways) + 1)
        for names in itertools.combinations(ways, size)
        for plan in itertools.product(*(ways[name] for name in names))
    )
    return itertools.islice(combined, limits.CHECK_PLANS)


def _branch_plans(tree: sql.Expression, options: Mapping[str, Options]) -> Iterator[dict[str, Change]]:
    """What each branch of an OR says itself of its columns: those that equal a literal, and those that are null. Such a
    branch may name more columns than combinations can be tried."""
    for branch in itertools.islice(_flattened(tree, sql.Or), _BRANCHES):
        plan: dict[str, Change] = {}
        for one in _flattened(branch, sql.And):
            left, right = one.args.get("this"), one.args.get("expression")
            if isinstance(one, sql.EQ) and isinstance(left, sql.Column) and isinstance(right, sql.Expression):
                try:
                    value = _value(right, {})
                except (_Unknown, TypeError, ValueError, ArithmeticError, RecursionError):
                    continue
                plan[left.name.casefold()] = ("value", value)
            elif isinstance(one, sql.Is) and isinstance(left, sql.Column) and not one.args.get("negate"):
                if isinstance(right, sql.Null):
                    plan[left.name.casefold()] = ("null", None)
            elif (
                isinstance(one, sql.EQ)
                and isinstance(left, sql.Anonymous)
                and left.name.casefold() == "num_nonnulls"
                and right == sql.Literal.number(0)
            ):
                columns = [part.name.casefold() for part in left.expressions if isinstance(part, sql.Column)]
                plan |= dict.fromkeys(columns, ("null", None))
        possible = all(
            name in options and (options[name].nullable if kind == "null" else options[name].fixed)
            for name, (kind, _) in plan.items()
        )
        if plan and possible:
            yield plan


def _flattened(tree: sql.Expression, kind: type[sql.Expression]) -> Iterator[sql.Expression]:
    """The parts of a chain of OR or AND, without parentheses around them."""
    while isinstance(tree, sql.Paren):
        tree = tree.this
    if isinstance(tree, kind):
        for one in tree.flatten():
            if isinstance(one, sql.Expression):
                yield from _flattened(one, kind)
    else:
        yield tree


_BRANCHES: Final = 50  # chosen
_SAMPLES: Final = 8  # chosen: values of a column that are tried as constants


def _holds(tree: sql.Expression, rows: Iterable[Row]) -> bool:
    """Whether a check is known to reject no row."""
    try:
        return all(_value(tree, row) is not False for row in rows)
    except (_Unknown, TypeError, ValueError, ArithmeticError, RecursionError):
        return False


def _evaluates(tree: sql.Expression, rows: Sequence[Row]) -> bool:
    """Whether a check can be evaluated at all."""
    try:
        for row in rows:
            _value(tree, row)
    except (_Unknown, TypeError, ValueError, ArithmeticError, RecursionError):
        return False
    return True


_BRACKETED: Final = re.compile(r"(?<![\w\]])\[[A-Za-z_]")


_QUOTED: Final = re.compile(r"'(?:[^']|'')*'")


def _parsed(check: str) -> sql.Expression | None:
    if len(check) > limits.CHECK_CHARS:
        return None
    # MySQL quotes names by ` and SQL Server by [ ]; elsewhere brackets follow a word and are arrays.
    names = _QUOTED.sub("''", check)
    dialect = "mysql" if "`" in names else "tsql" if _BRACKETED.search(names) else "postgres"
    try:
        tree = sqlglot.parse_one(check, dialect=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError):
        return None
    return tree if isinstance(tree, sql.Expression) else None


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    return Decimal(str(value)) if isinstance(value, int | float) else value


_COMPARED: Final[dict[type[sql.Expression], Callable[[Any, Any], Any]]] = {
    sql.EQ: operator.eq,
    sql.NEQ: operator.ne,
    sql.GT: operator.gt,
    sql.GTE: operator.ge,
    sql.LT: operator.lt,
    sql.LTE: operator.le,
}
_COMPUTED: Final[dict[type[sql.Expression], Callable[[Any, Any], Any]]] = {
    sql.Add: operator.add,
    sql.Sub: operator.sub,
    sql.Mul: operator.mul,
    sql.Mod: operator.mod,
}
_TEXT: Final[dict[type[sql.Expression], Callable[[str], Any]]] = {
    sql.Upper: str.upper,
    sql.Lower: str.lower,
    sql.Trim: str.strip,
}
_NULLS: Final = frozenset({"num_nonnulls", "num_nulls"})
_LENGTHS: Final = frozenset({"cardinality", "jsonb_array_length", "json_array_length"})
_JSON_TYPES: Final = frozenset({"jsonb_typeof", "json_typeof", "json_type"})


def _value(node: sql.Expression, row: Row) -> Any:
    """The value of an expression; None is null or unknown. Error: `_Unknown`."""
    if isinstance(node, sql.Cast):
        inner = _value(node.this, row)
        numeric = node.to.this in sql.DataType.NUMERIC_TYPES
        return Decimal(inner) if numeric and isinstance(inner, str) else inner
    if isinstance(node, sql.Paren | sql.Collate):
        return _value(node.this, row)
    if isinstance(node, sql.Column):
        name = node.name.casefold()
        if name not in row:
            raise _Unknown
        return _plain(row[name])
    if isinstance(node, sql.Literal):
        return node.name if node.is_string else Decimal(node.name)
    if isinstance(node, sql.Boolean):
        return bool(node.this)
    if isinstance(node, sql.Null):
        return None
    if isinstance(node, sql.Connector):
        return _connected(node, row)
    if isinstance(node, sql.Not):
        inner = _value(node.this, row)
        return None if inner is None else not inner
    if isinstance(node, sql.Is):
        left, right = _value(node.this, row), _value(node.expression, row)
        same = left is None if right is None else left is right
        return same is not bool(node.args.get("negate"))
    if type(node) in _COMPARED:
        other = node.expression
        if not isinstance(other, sql.Any | sql.All):
            return _pair(type(node), _value(node.this, row), _value(other, row))
        array = _without_casts(other.this)
        if not isinstance(array, sql.Array):
            raise _Unknown
        left = _value(node.this, row)
        found = [_pair(type(node), left, _value(one, row)) for one in array.expressions]
        wanted = isinstance(other, sql.Any)
        return wanted if wanted in found else None if None in found else not wanted
    if type(node) in _COMPUTED:
        left, right = _value(node.this, row), _value(node.expression, row)
        return None if left is None or right is None else _COMPUTED[type(node)](left, right)
    return _called(node, row)


def _connected(node: sql.Expression, row: Row) -> bool | None:
    """AND, OR and XOR. What is not evaluated on one side does not matter where the other side decides."""
    if isinstance(node, sql.Xor):
        left, right = _value(node.this, row), _value(node.expression, row)
        return None if left is None or right is None else left != right
    decisive = isinstance(node, sql.Or)
    found: list[bool | None] = []
    unknown: _Unknown | None = None
    for side in (node.this, node.expression):
        try:
            found.append(_value(side, row))
        except _Unknown as error:
            unknown = error
    if decisive in found:
        return decisive
    if unknown is not None:
        raise unknown
    return None if None in found else not decisive


def _pair(kind: type[sql.Expression], left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, date | datetime) or isinstance(right, date | datetime):
        if type(left) is not type(right):
            raise _Unknown
    elif isinstance(left, str) != isinstance(right, str):
        raise _Unknown
    return bool(_COMPARED[kind](left, right))


def _case(node: sql.Case, row: Row) -> Any:
    """The value of the first condition that is true, or of a searched value that is equal; else the default."""
    for one in node.args["ifs"]:
        condition = _value(one.this, row)
        if node.this is not None:
            condition = _pair(sql.EQ, _value(node.this, row), condition)
        if condition is True:
            return _value(one.args["true"], row)
    default = node.args.get("default")
    return None if default is None else _value(default, row)


def _matches(node: sql.Expression, row: Row) -> bool | None:
    """Whether a text matches a pattern of LIKE, or starts with another text."""
    text, pattern = _value(node.this, row), _value(node.expression, row)
    if text is None or pattern is None:
        return None
    if not isinstance(text, str) or not isinstance(pattern, str):
        raise _Unknown
    if isinstance(node, sql.StartsWith):
        return text.startswith(pattern)
    # LIKE is matched piece by piece between its `%`, in time that is linear in each piece.
    pieces: list[list[str]] = [[]]
    for one in _LIKE_PARTS.findall(pattern):
        if one == "%":
            pieces.append([])
        else:
            pieces[-1].append("." if one == "_" else re.escape(one[-1:]))
    flags = re.S | (re.I if isinstance(node, sql.ILike) else 0)
    first, *others = (re.compile("".join(one), flags) for one in pieces)
    if not others:
        return first.fullmatch(text) is not None
    found = first.match(text)
    for piece in others[:-1]:
        found = found and piece.search(text, found.end())
    start = len(text) - len(pieces[-1])
    return found is not None and start >= found.end() and others[-1].match(text, start) is not None


def _contains(node: sql.Expression, row: Row) -> bool | None:
    """Whether a text matches a regular expression."""
    text, pattern = _value(node.this, row), _value(node.expression, row)
    if text is None or pattern is None:
        return None
    if not isinstance(text, str) or not isinstance(pattern, str) or node.args.get("flag") is not None:
        raise _Unknown
    found = checks.expression(pattern, ignore_case=isinstance(node, sql.RegexpILike), negated=False)
    if found is None or not found.is_quick or len(text) > checks.MATCHED_CHARS:
        raise _Unknown
    return found.allows(text)


_LIKE_PARTS: Final = re.compile(r"\\.|.", re.S)
_EXAMPLES: Final = {"%": "example", "_": "a"}
"""What stands for the wildcards of LIKE in a constant."""


def _called(node: sql.Expression, row: Row) -> Any:
    """Functions, IN, BETWEEN and a minus sign."""
    if isinstance(node, sql.In):
        left = _value(node.this, row)
        if not node.expressions:
            raise _Unknown
        found = [_pair(sql.EQ, left, _value(one, row)) for one in node.expressions]
        return True if True in found else None if None in found else False
    if isinstance(node, sql.Between):
        low = _pair(sql.GTE, _value(node.this, row), _value(node.args["low"], row))
        high = _pair(sql.LTE, _value(node.this, row), _value(node.args["high"], row))
        return False if low is False or high is False else None if low is None or high is None else True
    if isinstance(node, sql.RegexpLike | sql.RegexpILike):
        return _contains(node, row)
    if isinstance(node, sql.Like | sql.ILike | sql.StartsWith):
        return _matches(node, row)
    if isinstance(node, sql.Neg):
        inner = _value(node.this, row)
        return None if inner is None else -inner
    if isinstance(node, sql.Case):
        return _case(node, row)
    if isinstance(node, sql.If):  # MySQL
        chosen = node.args["true"] if _value(node.this, row) is True else node.args.get("false")
        return None if chosen is None else _value(chosen, row)
    if isinstance(node, sql.Abs):
        inner = _value(node.this, row)
        return None if inner is None else abs(inner)
    if isinstance(node, sql.Nullif):
        left = _value(node.this, row)
        return None if _pair(sql.EQ, left, _value(node.expression, row)) is True else left
    if isinstance(node, sql.Coalesce):
        values = (_value(one, row) for one in (node.this, *node.expressions))
        return next((one for one in values if one is not None), None)
    if isinstance(node, sql.Least | sql.Greatest):
        known = [
            one for one in (_value(part, row) for part in (node.this, *node.expressions)) if one is not None
        ]
        return None if not known else (min if isinstance(node, sql.Least) else max)(known)
    if isinstance(node, sql.Length):
        inner = _value(node.this, row)
        return None if inner is None else Decimal(len(inner))
    if type(node) in _TEXT:
        inner = _value(node.this, row)
        return None if inner is None else _TEXT[type(node)](inner)
    if isinstance(node, sql.ArraySize):  # array_length, which is null of an empty array
        return Decimal(len(items)) if (items := _list(node.this, row)) else None
    if isinstance(node, sql.JSONBContainsTopKey):
        inner, name = _value(node.this, row), _value(node.expression, row)
        return name in inner if isinstance(inner, dict | list | tuple) else None
    if isinstance(node, sql.Anonymous):
        return _named_function(node, row)
    raise _Unknown


def _named_function(node: sql.Anonymous, row: Row) -> Any:
    """Functions of PostgreSQL that the parser has no class for."""
    name, arguments = node.name.casefold(), node.expressions
    if name in _NULLS:
        nulls = sum(_value(one, row) is None for one in arguments)
        return Decimal(nulls if name == "num_nulls" else len(arguments) - nulls)
    if name in _LENGTHS:
        found = _list(arguments[0], row)
        return None if found is None else Decimal(len(found))
    if name == "array_ndims":
        return Decimal(1) if _list(arguments[0], row) else None
    if name in _JSON_TYPES and isinstance(arguments[0], sql.Column):
        inner = _value(arguments[0], row)
        kinds = {dict: "object", list: "array", tuple: "array", bool: "boolean", Decimal: "number"}
        return None if inner is None else kinds.get(type(inner), "string")
    raise _Unknown


def _list(node: sql.Expression, row: Row) -> Sequence[Any] | None:
    """An array. Error: `_Unknown` for other values."""
    found = _value(node, row)
    if found is not None and not isinstance(found, list | tuple):
        raise _Unknown
    return found
