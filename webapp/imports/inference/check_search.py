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


class _UnsupportedExpressionError(Exception):
    """An expression that is not evaluated here."""


@dataclass(frozen=True, slots=True)
class ColumnOptions:
    """The possible changes of a column. `values` are constants of its type; arrays are tuples."""

    can_be_null: bool
    can_be_fixed: bool
    """Whether its values may be replaced by one constant."""
    values: tuple[Any, ...]


def search(
    checks: Iterable[str], rows: Sequence[Row], filled: Sequence[Row], options: Mapping[str, ColumnOptions]
) -> dict[str, Change]:
    """Return the changes, by column, after which all rows satisfy the checks.

    `rows` are samples of what the fields generate, `filled` the same without nulls where a field is; `options` are the
    columns that may change. Checks that share a column are solved together. Where no combination satisfies them,
    nothing changes.
    """
    changes_by_column: dict[str, Change] = {}
    for trees in _connected_checks([tree for tree in map(_parse, checks) if tree is not None]):
        if all(_is_satisfied(tree, rows) for tree in trees):
            continue
        changes = _solve(trees, filled, options)
        if changes is None:
            evaluated = [tree for tree in trees if _can_evaluate(tree, filled)]
            if len(evaluated) < len(trees) and not all(_is_satisfied(tree, rows) for tree in evaluated):
                changes = _solve(evaluated, filled, options)
        changes_by_column |= changes or {}
    return changes_by_column


def _solve(
    trees: Sequence[sql.Expression], filled: Sequence[Row], options: Mapping[str, ColumnOptions]
) -> dict[str, Change] | None:
    """Return changes after which all rows satisfy all of these checks; None if none are found."""
    if not trees:
        return None
    named = set().union(*map(_column_names, trees)) & options.keys()
    known: dict[tuple[int, tuple[tuple[str, Any], ...]], bool] = {}
    names_of_tree = [sorted(_column_names(tree)) for tree in trees]

    def holds(index: int, constants: Mapping[str, Any]) -> bool:
        """Return whether a check holds for all rows. It depends only on the constants of its own columns."""
        own_constants = tuple((name, constants[name]) for name in names_of_tree[index] if name in constants)
        if (index, own_constants) not in known:
            changed = ({**row, **constants} for row in filled)
            known[index, own_constants] = _is_satisfied(trees[index], changed)
        return known[index, own_constants]

    branches = [plan for tree in trees for plan in _changes_by_branch(tree, options)]
    for plan in itertools.chain([{}], branches, _candidate_changes(trees, filled, options)):
        constants = {name: value for name, (_, value) in plan.items()}
        if all(holds(index, constants) for index in range(len(trees))):
            return dict.fromkeys(named, ("filled", None)) | plan
    return None


def true_columns(condition: str) -> list[str]:
    """Return the columns, in lower case, that are true in all rows that satisfy a condition."""
    tree = _parse(condition) if condition else None
    found = []
    for item in tree.flatten() if isinstance(tree, sql.And) else [tree]:
        while isinstance(item, sql.Paren):
            item = item.this
        if isinstance(item, sql.And):
            found += true_columns(item.sql("postgres"))
        elif isinstance(item, sql.Column):
            found.append(item.name.casefold())
        elif (
            isinstance(item, sql.EQ | sql.Is)
            and isinstance(item.this, sql.Column)
            and not item.args.get("negate")
            and item.expression in (sql.true(), sql.Literal.number(1))
        ):
            found.append(item.this.name.casefold())
    return found


def differing_columns(check: str) -> list[tuple[str, str]]:
    """Return the pairs of columns, in lower case, that must differ according to a check (`a <> b`, possibly only if
    both are filled)."""
    tree = _parse(check)
    found = []
    for item in tree.flatten() if isinstance(tree, sql.And) else [tree]:
        for part in item.flatten() if isinstance(item, sql.Or) else [item]:
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
    """Return the columns, in lower case, that must be in one letter case by a check (`name = lower(name)`)."""
    tree = _parse(check)
    found: dict[str, Literal["lower", "upper"]] = {}
    for expression in _flatten(tree, sql.And) if tree is not None else ():
        if not isinstance(expression, sql.EQ):
            continue
        sides = [_without_casts(expression.this), _without_casts(expression.expression)]
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


def parse_constant(default: str, array: bool = False) -> Any:
    """Return a column's default if it is a constant: a text, number, boolean or empty array; else None."""
    tree = _parse(default)
    if tree is None:
        return None
    try:
        value = _evaluate(tree, {})
    except (_UnsupportedExpressionError, TypeError, ValueError, ArithmeticError, RecursionError):
        return None
    if array:
        return [] if value == "{}" else None
    return value if isinstance(value, str | bool | Decimal) else None


def _connected_checks(trees: Iterable[sql.Expression]) -> list[list[sql.Expression]]:
    """Group the checks that share a column."""
    parts: list[tuple[set[str], list[sql.Expression]]] = []
    for tree in trees:
        names, group = _column_names(tree), [tree]
        for part in [item for item in parts if item[0] & names]:
            parts.remove(part)
            names, group = names | part[0], part[1] + group
        parts.append((names, group))
    return [group for _, group in parts]


def _column_names(tree: sql.Expression) -> set[str]:
    return {column.name.casefold() for column in tree.find_all(sql.Column)}


def _candidate_changes(
    trees: Sequence[sql.Expression], rows: Sequence[Row], options: Mapping[str, ColumnOptions]
) -> Iterable[dict[str, Change]]:
    """Yield combinations of changes to the columns of these checks, those with the fewest changes first."""
    literals: list[Any] = []
    for item in (node for tree in trees for node in tree.find_all(sql.Literal, sql.Boolean)):
        value = _evaluate(item, {})
        if isinstance(item.parent, sql.Like | sql.ILike) and isinstance(value, str):
            value = "".join(_WILDCARD_EXAMPLES.get(part, part[-1:]) for part in _LIKE_PARTS.findall(value))
        storable = not isinstance(value, Decimal) or abs(value) < 2**63
        if storable and value not in literals:
            literals.append(value)
    changes_by_column: dict[str, list[Change]] = {}
    for name in sorted(set().union(*map(_column_names, trees))):
        allowed = options.get(name)
        if allowed is None:
            continue
        changes: list[Change] = []
        if allowed.can_be_fixed:
            seen = [_normalize(row[name]) for row in rows]
            seen = [item for item in seen if isinstance(item, str | bool | Decimal)]
            matching = [literal for literal in literals if seen and type(literal) is type(seen[0])]
            changes += [
                ("value", value)
                for value in dict.fromkeys([*allowed.values, *matching, *seen[:_MAX_SAMPLES]])
            ]
        if allowed.can_be_null:
            changes.append(("null", None))
        if changes:
            changes_by_column[name] = changes
    combined = (
        dict(zip(names, plan, strict=True))
        for size in range(1, len(changes_by_column) + 1)
        for names in itertools.combinations(changes_by_column, size)
        for plan in itertools.product(*(changes_by_column[name] for name in names))
    )
    return itertools.islice(combined, limits.CHECK_PLANS)


def _changes_by_branch(
    tree: sql.Expression, options: Mapping[str, ColumnOptions]
) -> Iterator[dict[str, Change]]:
    """Yield a plan for each branch of an OR: columns that equal a literal, and those that are null. Such a branch may
    refer to more columns than combinations can be tried."""
    for branch in itertools.islice(_flatten(tree, sql.Or), _MAX_BRANCHES):
        plan: dict[str, Change] = {}
        for expression in _flatten(branch, sql.And):
            left, right = expression.args.get("this"), expression.args.get("expression")
            if (
                isinstance(expression, sql.EQ)
                and isinstance(left, sql.Column)
                and isinstance(right, sql.Expression)
            ):
                try:
                    value = _evaluate(right, {})
                except (_UnsupportedExpressionError, TypeError, ValueError, ArithmeticError, RecursionError):
                    continue
                plan[left.name.casefold()] = ("value", value)
            elif (
                isinstance(expression, sql.Is)
                and isinstance(left, sql.Column)
                and not expression.args.get("negate")
            ):
                if isinstance(right, sql.Null):
                    plan[left.name.casefold()] = ("null", None)
            elif (
                isinstance(expression, sql.EQ)
                and isinstance(left, sql.Anonymous)
                and left.name.casefold() == "num_nonnulls"
                and right == sql.Literal.number(0)
            ):
                columns = [part.name.casefold() for part in left.expressions if isinstance(part, sql.Column)]
                plan |= dict.fromkeys(columns, ("null", None))
        possible = all(
            name in options and (options[name].can_be_null if kind == "null" else options[name].can_be_fixed)
            for name, (kind, _) in plan.items()
        )
        if plan and possible:
            yield plan


def _flatten(tree: sql.Expression, kind: type[sql.Expression]) -> Iterator[sql.Expression]:
    """Yield the parts of a chain of OR or AND, without parentheses."""
    while isinstance(tree, sql.Paren):
        tree = tree.this
    if isinstance(tree, kind):
        for expr in tree.flatten():
            if isinstance(expr, sql.Expression):
                yield from _flatten(expr, kind)
    else:
        yield tree


_MAX_BRANCHES: Final = 50  # chosen
_MAX_SAMPLES: Final = 8  # chosen: values of a column that are tried as constants


def _is_satisfied(tree: sql.Expression, rows: Iterable[Row]) -> bool:
    """Return whether a check rejects no row, as far as it can be evaluated."""
    try:
        return all(_evaluate(tree, row) is not False for row in rows)
    except (_UnsupportedExpressionError, TypeError, ValueError, ArithmeticError, RecursionError):
        return False


def _can_evaluate(tree: sql.Expression, rows: Sequence[Row]) -> bool:
    """Return whether a check can be evaluated."""
    try:
        for row in rows:
            _evaluate(tree, row)
    except (_UnsupportedExpressionError, TypeError, ValueError, ArithmeticError, RecursionError):
        return False
    return True


_BRACKETED: Final = re.compile(r"(?<![\w\]])\[[A-Za-z_]")


_QUOTED: Final = re.compile(r"'(?:[^']|'')*'")


def _parse(check: str) -> sql.Expression | None:
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


def _normalize(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    return Decimal(str(value)) if isinstance(value, int | float) else value


_COMPARISONS: Final[dict[type[sql.Expression], Callable[[Any, Any], Any]]] = {
    sql.EQ: operator.eq,
    sql.NEQ: operator.ne,
    sql.GT: operator.gt,
    sql.GTE: operator.ge,
    sql.LT: operator.lt,
    sql.LTE: operator.le,
}
_ARITHMETIC: Final[dict[type[sql.Expression], Callable[[Any, Any], Any]]] = {
    sql.Add: operator.add,
    sql.Sub: operator.sub,
    sql.Mul: operator.mul,
    sql.Mod: operator.mod,
}
_TEXT_FUNCTIONS: Final[dict[type[sql.Expression], Callable[[str], Any]]] = {
    sql.Upper: str.upper,
    sql.Lower: str.lower,
    sql.Trim: str.strip,
}
_NULL_FUNCTIONS: Final = frozenset({"num_nonnulls", "num_nulls"})
_LENGTH_FUNCTIONS: Final = frozenset({"cardinality", "jsonb_array_length", "json_array_length"})
_JSON_TYPES: Final = frozenset({"jsonb_typeof", "json_typeof", "json_type"})


def _evaluate(node: sql.Expression, row: Row) -> Any:
    """Return the value of an expression; None is null or unknown. Error: `_UnsupportedExpressionError`."""
    if isinstance(node, sql.Cast):
        inner = _evaluate(node.this, row)
        numeric = node.to.this in sql.DataType.NUMERIC_TYPES
        return Decimal(inner) if numeric and isinstance(inner, str) else inner
    if isinstance(node, sql.Paren | sql.Collate):
        return _evaluate(node.this, row)
    if isinstance(node, sql.Column):
        name = node.name.casefold()
        if name not in row:
            raise _UnsupportedExpressionError
        return _normalize(row[name])
    if isinstance(node, sql.Literal):
        return node.name if node.is_string else Decimal(node.name)
    if isinstance(node, sql.Boolean):
        return bool(node.this)
    if isinstance(node, sql.Null):
        return None
    if isinstance(node, sql.Connector):
        return _evaluate_connective(node, row)
    if isinstance(node, sql.Not):
        inner = _evaluate(node.this, row)
        return None if inner is None else not inner
    if isinstance(node, sql.Is):
        left, right = _evaluate(node.this, row), _evaluate(node.expression, row)
        is_same = left is None if right is None else left is right
        return is_same is not bool(node.args.get("negate"))
    if type(node) in _COMPARISONS:
        other = node.expression
        if not isinstance(other, sql.Any | sql.All):
            return _compare(type(node), _evaluate(node.this, row), _evaluate(other, row))
        array = _without_casts(other.this)
        if not isinstance(array, sql.Array):
            raise _UnsupportedExpressionError
        left = _evaluate(node.this, row)
        found = [_compare(type(node), left, _evaluate(expression, row)) for expression in array.expressions]
        is_any = isinstance(other, sql.Any)
        return is_any if is_any in found else None if None in found else not is_any
    if type(node) in _ARITHMETIC:
        left, right = _evaluate(node.this, row), _evaluate(node.expression, row)
        return None if left is None or right is None else _ARITHMETIC[type(node)](left, right)
    return _evaluate_function(node, row)


def _evaluate_connective(node: sql.Expression, row: Row) -> bool | None:
    """Evaluate AND, OR and XOR. A side that cannot be evaluated is ignored if the other side decides."""
    if isinstance(node, sql.Xor):
        left, right = _evaluate(node.this, row), _evaluate(node.expression, row)
        return None if left is None or right is None else left != right
    decisive = isinstance(node, sql.Or)
    found: list[bool | None] = []
    unknown: _UnsupportedExpressionError | None = None
    for side in (node.this, node.expression):
        try:
            found.append(_evaluate(side, row))
        except _UnsupportedExpressionError as error:
            unknown = error
    if decisive in found:
        return decisive
    if unknown is not None:
        raise unknown
    return None if None in found else not decisive


def _compare(kind: type[sql.Expression], left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    if isinstance(left, date | datetime) or isinstance(right, date | datetime):
        if type(left) is not type(right):
            raise _UnsupportedExpressionError
    elif isinstance(left, str) != isinstance(right, str):
        raise _UnsupportedExpressionError
    return bool(_COMPARISONS[kind](left, right))


def _evaluate_case(node: sql.Case, row: Row) -> Any:
    """Evaluate CASE: the value of the first true condition or equal value; else the default."""
    for item in node.args["ifs"]:
        condition = _evaluate(item.this, row)
        if node.this is not None:
            condition = _compare(sql.EQ, _evaluate(node.this, row), condition)
        if condition is True:
            return _evaluate(item.args["true"], row)
    default = node.args.get("default")
    return None if default is None else _evaluate(default, row)


def _evaluate_like(node: sql.Expression, row: Row) -> bool | None:
    """Return whether a text matches a pattern of LIKE, or starts with another text."""
    text, pattern = _evaluate(node.this, row), _evaluate(node.expression, row)
    if text is None or pattern is None:
        return None
    if not isinstance(text, str) or not isinstance(pattern, str):
        raise _UnsupportedExpressionError
    if isinstance(node, sql.StartsWith):
        return text.startswith(pattern)
    # LIKE is matched piece by piece between its `%`, in time that is linear in each piece.
    pieces: list[list[str]] = [[]]
    for item in _LIKE_PARTS.findall(pattern):
        if item == "%":
            pieces.append([])
        else:
            pieces[-1].append("." if item == "_" else re.escape(item[-1:]))
    flags = re.S | (re.I if isinstance(node, sql.ILike) else 0)
    first, *others = (re.compile("".join(item), flags) for item in pieces)
    if not others:
        return first.fullmatch(text) is not None
    found = first.match(text)
    for piece in others[:-1]:
        found = found and piece.search(text, found.end())
    start = len(text) - len(pieces[-1])
    return found is not None and start >= found.end() and others[-1].match(text, start) is not None


def _evaluate_regex(node: sql.Expression, row: Row) -> bool | None:
    """Return whether a text matches a regular expression."""
    text, pattern = _evaluate(node.this, row), _evaluate(node.expression, row)
    if text is None or pattern is None:
        return None
    if not isinstance(text, str) or not isinstance(pattern, str) or node.args.get("flag") is not None:
        raise _UnsupportedExpressionError
    found = checks.translate_expression(pattern, ignore_case=isinstance(node, sql.RegexpILike), negated=False)
    if found is None or not found.is_quick or len(text) > checks.MATCHED_CHARS:
        raise _UnsupportedExpressionError
    return found.allows(text)


_LIKE_PARTS: Final = re.compile(r"\\.|.", re.S)
_WILDCARD_EXAMPLES: Final = {"%": "example", "_": "a"}
"""Replacements for the wildcards of LIKE in a constant."""


def _evaluate_function(node: sql.Expression, row: Row) -> Any:
    """Evaluate functions, IN, BETWEEN and a minus sign."""
    if isinstance(node, sql.In):
        left = _evaluate(node.this, row)
        if not node.expressions:
            raise _UnsupportedExpressionError
        found = [_compare(sql.EQ, left, _evaluate(expression, row)) for expression in node.expressions]
        return True if True in found else None if None in found else False
    if isinstance(node, sql.Between):
        low = _compare(sql.GTE, _evaluate(node.this, row), _evaluate(node.args["low"], row))
        high = _compare(sql.LTE, _evaluate(node.this, row), _evaluate(node.args["high"], row))
        return False if low is False or high is False else None if low is None or high is None else True
    if isinstance(node, sql.RegexpLike | sql.RegexpILike):
        return _evaluate_regex(node, row)
    if isinstance(node, sql.Like | sql.ILike | sql.StartsWith):
        return _evaluate_like(node, row)
    if isinstance(node, sql.Neg):
        inner = _evaluate(node.this, row)
        return None if inner is None else -inner
    if isinstance(node, sql.Case):
        return _evaluate_case(node, row)
    if isinstance(node, sql.If):  # MySQL
        chosen = node.args["true"] if _evaluate(node.this, row) is True else node.args.get("false")
        return None if chosen is None else _evaluate(chosen, row)
    if isinstance(node, sql.Abs):
        inner = _evaluate(node.this, row)
        return None if inner is None else abs(inner)
    if isinstance(node, sql.Nullif):
        left = _evaluate(node.this, row)
        return None if _compare(sql.EQ, left, _evaluate(node.expression, row)) is True else left
    if isinstance(node, sql.Coalesce):
        values = (_evaluate(expression, row) for expression in (node.this, *node.expressions))
        return next((value for value in values if value is not None), None)
    if isinstance(node, sql.Least | sql.Greatest):
        known = [
            item
            for item in (_evaluate(part, row) for part in (node.this, *node.expressions))
            if item is not None
        ]
        return None if not known else (min if isinstance(node, sql.Least) else max)(known)
    if isinstance(node, sql.Length):
        inner = _evaluate(node.this, row)
        return None if inner is None else Decimal(len(inner))
    if type(node) in _TEXT_FUNCTIONS:
        inner = _evaluate(node.this, row)
        return None if inner is None else _TEXT_FUNCTIONS[type(node)](inner)
    if isinstance(node, sql.ArraySize):  # array_length, which is null of an empty array
        return Decimal(len(items)) if (items := _evaluate_array(node.this, row)) else None
    if isinstance(node, sql.JSONBContainsTopKey):
        inner, name = _evaluate(node.this, row), _evaluate(node.expression, row)
        return name in inner if isinstance(inner, dict | list | tuple) else None
    if isinstance(node, sql.Anonymous):
        return _evaluate_named_function(node, row)
    raise _UnsupportedExpressionError


def _evaluate_named_function(node: sql.Anonymous, row: Row) -> Any:
    """Evaluate functions of PostgreSQL that have no class in the parser."""
    name, arguments = node.name.casefold(), node.expressions
    if name in _NULL_FUNCTIONS:
        nulls = sum(_evaluate(argument, row) is None for argument in arguments)
        return Decimal(nulls if name == "num_nulls" else len(arguments) - nulls)
    if name in _LENGTH_FUNCTIONS:
        found = _evaluate_array(arguments[0], row)
        return None if found is None else Decimal(len(found))
    if name == "array_ndims":
        return Decimal(1) if _evaluate_array(arguments[0], row) else None
    if name in _JSON_TYPES and isinstance(arguments[0], sql.Column):
        inner = _evaluate(arguments[0], row)
        kinds = {dict: "object", list: "array", tuple: "array", bool: "boolean", Decimal: "number"}
        return None if inner is None else kinds.get(type(inner), "string")
    raise _UnsupportedExpressionError


def _evaluate_array(node: sql.Expression, row: Row) -> Sequence[Any] | None:
    """Return an array. Error: `_UnsupportedExpressionError` for other values."""
    found = _evaluate(node, row)
    if found is not None and not isinstance(found, list | tuple):
        raise _UnsupportedExpressionError
    return found
