"""Parse check constraints into rules for single columns: bounds, choices, patterns, lengths.

Only unambiguous conditions are used. Other checks, such as those that compare columns with each other, are reported as
unread, so that the user is warned that rows may be rejected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Final

from webapp import limits

_CASTS: Final = re.compile(
    r"::\s*(?:\"[^\"]+\"|character varying|double precision|bit varying|(?:timestamp|time) with(?:out)? time zone"
    r"|[a-z_][\w.]*)(?:\(\s*\d+(?:\s*,\s*\d+)?\s*\))?(?:\[\])*",
    re.I,
)
_CHARACTER_SETS: Final = re.compile(r"\b_(?:utf8(?:mb[34])?|latin1|ascii|binary)\s*(?=')")
_TOKEN: Final = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<quoted>\"[^\"]+\"|`[^`]+`|\[[A-Za-z_][^\]]*\])|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<word>[A-Za-z_][\w$.]*)|(?P<sign><=|>=|<>|!=|!~\*?|~~\*?|~\*?|[=<>(),\[\]+*/%|-]))"
)
_TEXT_FUNCTIONS: Final = frozenset({"upper", "lower", "ucase", "lcase", "trim", "btrim", "ltrim", "rtrim"})
"""Functions that leave a text as it is if the check compares them with a text in that case."""
_POSIX: Final = {
    "alnum": "A-Za-z0-9",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "upper": "A-Z",
    "space": r"\s",
    "xdigit": "0-9A-Fa-f",
    "word": r"\w",
}
"""Character classes of PostgreSQL and MySQL, which Python does not have."""
_LENGTH_FUNCTIONS: Final = frozenset(
    {"length", "char_length", "character_length", "len", "octet_length", "datalength", "lengthb"}
)
_NOW_FUNCTIONS: Final = frozenset(
    {"now", "current_date", "current_timestamp", "localtimestamp", "getdate", "sysdate", "today"}
)
_REVERSED_SIGNS: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "<>": "<>"}


@dataclass(frozen=True, slots=True)
class Expression:
    """A regular expression of a check, which values of a column contain or, if `negated`, do not contain."""

    pattern: str
    ignore_case: bool = False
    negated: bool = False

    @property
    def is_quick(self) -> bool:
        """Whether the time to match it is bounded by a low power of the text's length: it has few repetitions, and none
        of a group with a repetition or a choice in it."""
        pieces = _PATTERN_PIECE.findall(self.pattern)
        if sum(piece in "+*{" for piece in pieces) > _MAX_REPETITIONS or pieces.count("?") > _MAX_OPTIONS:
            return False
        ambiguous: list[bool] = []  # of each open group
        for piece, following in zip(pieces, [*pieces[1:], ""], strict=True):
            if piece == "(":
                ambiguous.append(False)
            elif piece in "+*{?|":
                ambiguous = [True] * len(ambiguous)
            elif piece == ")" and ambiguous and ambiguous.pop() and following and following in "+*{":
                return False
        return True

    def allows(self, text: str) -> bool:
        """Return whether a value of at most `MATCHED_CHARS` satisfies the expression. Only for quick ones."""
        return (_compile_expression(self.pattern, self.ignore_case).search(text) is None) == self.negated


@lru_cache(256)
def _compile_expression(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE if ignore_case else 0)


def translate_expression(pattern: str, *, ignore_case: bool, negated: bool) -> Expression | None:
    """A regular expression of PostgreSQL as one of Python; None if it cannot be read."""
    for name, characters in _POSIX.items():
        pattern = pattern.replace(f"[:{name}:]", characters)
    try:
        _compile_expression(pattern, ignore_case)
    except (re.error, OverflowError, RecursionError):
        return None
    return Expression(pattern, ignore_case, negated)


_PATTERN_PIECE: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.S)
MATCHED_CHARS: Final = 200  # chosen: longer values are not matched
_MAX_REPETITIONS: Final = 3  # chosen: the time grows at most with this power of the length
_MAX_OPTIONS: Final = 8  # chosen: each may double the time
_TYPICAL_VALUES: Final = (
    "a",
    "A",
    "word",
    "Word",
    "Two words",
    "It's 5.5 %: a/b, (c) & d_e - f@g!",
    "Jürgen Ångström",
)
"""An expression that allows all of these values, such as "contains a letter", is not a restriction."""


@dataclass(slots=True)
class Rule:
    """The rules of the checks for one column. Bounds are numbers or texts (dates); `now` is the current time."""

    low: Any = None
    high: Any = None
    low_open: bool = False
    high_open: bool = False
    choices: list[Any] | None = None
    pattern: str | None = None
    """A regular expression that values match."""
    patterns: list[Expression] = field(default_factory=list)
    """All regular expressions that values match or do not match."""
    min_length: int = 0
    max_length: int | None = None
    excluded: list[Any] = field(default_factory=list)

    def restrict(self, sign: str, value: Any) -> None:
        """Add a comparison with a constant."""
        if sign == "=":
            self.restrict_choices([value])
        elif sign == "<>":
            self.excluded.append(value)
        elif sign in (">", ">=") and (self.low is None or _is_larger(value, self.low)):
            self.low, self.low_open = value, sign == ">"
        elif sign in ("<", "<=") and (self.high is None or _is_larger(self.high, value)):
            self.high, self.high_open = value, sign == "<"

    def restrict_choices(self, values: list[Any]) -> None:
        """Restrict the choices to these values."""
        allowed = set(values)
        self.choices = (
            values if self.choices is None else [choice for choice in self.choices if choice in allowed]
        )


def _is_larger(a: Any, b: Any) -> bool:
    return a > b if type(a) is type(b) else False


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of the checks for the columns of a table."""

    columns: dict[str, Rule]
    unsupported_checks: dict[str, list[str]]
    """Checks that were not read, by the columns that they name."""
    earlier_column_by_column: dict[str, str]
    """Columns whose value is not below another column's of the same row, which is named."""

    def rule_of(self, column: str) -> Rule:
        """Return the rule of one column."""
        return self.columns.get(column, Rule())


class _UnsupportedConditionError(Exception):
    """A condition that the parser does not support."""


Fact = Callable[[Rules], None]


def read(checks: Iterable[str], columns: Iterable[str]) -> Rules:
    """Parse the checks of a table with these columns."""
    known = {name.casefold(): name for name in columns}
    found = Rules({}, {}, {})
    for check in checks:
        parser = _Parser(check[: limits.CHECK_CHARS], known)
        try:
            if len(check) > limits.CHECK_CHARS:
                raise _UnsupportedConditionError
            facts = parser.parse_facts()
        except (_UnsupportedConditionError, RecursionError):
            for name in parser.referenced_columns():
                found.unsupported_checks.setdefault(name, []).append(check[: limits.CHECK_CHARS])
            continue
        for fact in facts:
            fact(found)
    return found


@dataclass(frozen=True, slots=True)
class _ColumnOperand:
    name: str
    length: bool = False


@dataclass(frozen=True, slots=True)
class _NowOperand:
    pass


class _Parser:
    def __init__(self, source: str, known: dict[str, str]) -> None:
        self._known, self._at = known, 0
        plain = _CASTS.sub("", _CHARACTER_SETS.sub("", source))
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(plain.rstrip()):
            match = _TOKEN.match(plain, at)
            if match is None:
                self._tokens.append(("strange", plain[at]))
                at += 1
                continue
            kind = str(match.lastgroup)
            self._tokens.append((kind, match[kind]))
            at = match.end()

    def referenced_columns(self) -> list[str]:
        """Return the columns that the check refers to."""
        words = (text.strip('"`[]').casefold() for kind, text in self._tokens if kind in ("word", "quoted"))
        return list(dict.fromkeys(self._known[word] for word in words if word in self._known))

    def parse_facts(self) -> list[Fact]:
        """Return the facts that the check states. Raises `_UnsupportedConditionError`."""
        found = self._parse_or()
        if self._at != len(self._tokens) or _is_null in found:
            raise _UnsupportedConditionError
        return found

    def _peek(self, ahead: int = 0) -> str:
        index = self._at + ahead
        if index >= len(self._tokens):
            return ""
        kind, text = self._tokens[index]
        return text.lower() if kind in ("word", "sign") else f"{kind}:{text}"

    def _take(self, *expected: str) -> bool:
        if self._peek() in expected:
            self._at += 1
            return True
        return False

    def _expect(self, expected: str) -> None:
        if not self._take(expected):
            raise _UnsupportedConditionError

    def _parse_or(self) -> list[Fact]:
        parts = [self._parse_and()]
        while self._take("or"):
            parts.append(self._parse_and())
        if len(parts) == 1:
            return parts[0]
        conditions = [part for part in parts if not (len(part) == 1 and part[0] is _is_null)]
        if len(conditions) == 1 and len(parts) == 2:  # null or a condition: null passes every check anyhow
            return conditions[0]
        # Alternatives that each name values of the same column: one of those values.
        values: list[Any] = []
        names: set[str] = set()
        for part in conditions:
            rules = Rules({}, {}, {})
            for fact in part:
                fact(rules)
            if len(rules.columns) != 1 or rules.earlier_column_by_column:
                raise _UnsupportedConditionError
            ((name, rule),) = rules.columns.items()
            has_only_choices = (
                rule.low is None and rule.high is None and not rule.excluded and not rule.patterns
            )
            if not rule.choices or not has_only_choices or rule.min_length or rule.max_length is not None:
                raise _UnsupportedConditionError
            names.add(name)
            values += rule.choices
        if len(names) != 1:
            raise _UnsupportedConditionError
        column_name = names.pop()
        return [lambda found: found.columns.setdefault(column_name, Rule()).restrict_choices(values)]

    def _parse_and(self) -> list[Fact]:
        found = self._parse_term()
        while self._take("and"):
            found += self._parse_term()
        return found

    def _parse_term(self) -> list[Fact]:
        start = self._at
        if self._take("("):
            try:
                found = self._parse_or()
                self._expect(")")
                if self._peek() in ("", "and", "or", ")"):
                    return found
            except _UnsupportedConditionError:
                pass
            self._at = start  # the bracket was an operand's
        return self._parse_comparison()

    def _parse_comparison(self) -> list[Fact]:
        if self._take("regexp_like"):
            self._expect("(")
            left = self._parse_operand()
            self._expect(",")
            right = self._parse_operand()
            flags = self._parse_operand() if self._take(",") else "c"
            self._expect(")")
            if flags not in ("c", "i"):
                raise _UnsupportedConditionError
            return [_pattern_fact(left, "~" if flags == "c" else "~*", right)]
        left = self._parse_operand()
        if self._take("is"):
            negated = self._take("not")
            self._expect("null")
            return [_is_not_null if negated else _is_null]
        negated = self._take("not")
        if self._take("between"):
            low = self._parse_operand()
            self._expect("and")
            high = self._parse_operand()
            if negated:
                raise _UnsupportedConditionError
            return [_comparison_fact(left, ">=", low), _comparison_fact(left, "<=", high)]
        if self._take("in"):
            return [_choice_fact(left, self._parse_list("(", ")"), negated)]
        if self._take("regexp") or self._take(
            "rlike"
        ):  # letters of another case match or not, by the collation
            return [_pattern_fact(left, "!~*" if negated else "~", self._parse_operand())]
        sign = self._peek()
        if negated or sign not in (*_REVERSED_SIGNS, "!=", *_PATTERN_OPERATORS):
            raise _UnsupportedConditionError
        self._at += 1
        if sign == "=" and self._take("any"):
            self._expect("(")
            bracket = self._take("(")
            self._expect("array")
            values = self._parse_list("[", "]")
            if bracket:
                self._expect(")")
            self._expect(")")
            return [_choice_fact(left, values, False)]
        right = self._parse_operand()
        if sign in _PATTERN_OPERATORS:
            return [_pattern_fact(left, sign, right)]
        return [_comparison_fact(left, "<>" if sign == "!=" else sign, right)]

    def _parse_list(self, opened: str, closed: str) -> list[Any]:
        self._expect(opened)
        values = [self._parse_operand()]
        while self._take(","):
            values.append(self._parse_operand())
        self._expect(closed)
        if any(isinstance(value, _ColumnOperand | _NowOperand) for value in values):
            raise _UnsupportedConditionError
        return values

    def _parse_operand(self) -> Any:
        if self._take("("):
            found = self._parse_operand()
            self._expect(")")
            return found
        if self._take("-"):
            found = self._parse_operand()
            if not isinstance(found, Decimal):
                raise _UnsupportedConditionError
            return -found
        if self._at >= len(self._tokens):
            raise _UnsupportedConditionError
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return Decimal(text)
        if kind not in ("word", "quoted"):
            raise _UnsupportedConditionError
        plain = text.strip('"`[]').casefold()
        if kind == "word" and plain in ("true", "false"):
            return plain == "true"
        if kind == "word" and plain in _NOW_FUNCTIONS and plain not in self._known:
            if self._take("("):
                self._expect(")")
            return _NowOperand()
        if kind == "word" and plain in _LENGTH_FUNCTIONS and self._take("("):
            inner = self._parse_operand()
            self._expect(")")
            if not isinstance(inner, _ColumnOperand) or inner.length:
                raise _UnsupportedConditionError
            return _ColumnOperand(inner.name, True)
        if kind == "word" and plain in _TEXT_FUNCTIONS and plain not in self._known and self._take("("):
            inner = self._parse_operand()
            self._expect(")")
            if not isinstance(inner, _ColumnOperand) or inner.length:
                raise _UnsupportedConditionError
            return inner
        if plain not in self._known or self._peek() == "(":
            raise _UnsupportedConditionError
        return _ColumnOperand(self._known[plain])


def _is_null(_: Rules) -> None:
    """The column is null."""


def _is_not_null(_: Rules) -> None:
    """The column is not null: generated values are not."""


def _comparison_fact(left: Any, sign: str, right: Any) -> Fact:
    if not isinstance(left, _ColumnOperand):
        left, right, sign = right, left, _REVERSED_SIGNS[sign]
    if not isinstance(left, _ColumnOperand):
        raise _UnsupportedConditionError
    if isinstance(right, _ColumnOperand):
        if left.length or right.length or sign not in (">", ">=", "<", "<="):
            raise _UnsupportedConditionError
        first, last = (right, left) if sign in (">", ">=") else (left, right)
        return lambda found: found.earlier_column_by_column.__setitem__(last.name, first.name)
    if left.length:
        return _length_fact(left, sign, right)
    value = "now" if isinstance(right, _NowOperand) else right
    return lambda found: found.columns.setdefault(left.name, Rule()).restrict(sign, value)


def _length_fact(column: _ColumnOperand, sign: str, right: Any) -> Fact:
    if not isinstance(right, Decimal) or sign == "<>":
        raise _UnsupportedConditionError
    number = int(right)

    def fact(found: Rules) -> None:
        rule = found.columns.setdefault(column.name, Rule())
        if sign in (">", ">=", "="):
            rule.min_length = max(rule.min_length, number + (sign == ">"))
        if sign in ("<", "<=", "="):
            maximum = number - (sign == "<")
            rule.max_length = maximum if rule.max_length is None else min(rule.max_length, maximum)

    return fact


def _choice_fact(left: Any, values: list[Any], negated: bool) -> Fact:
    if not isinstance(left, _ColumnOperand) or left.length:
        raise _UnsupportedConditionError

    def fact(found: Rules) -> None:
        rule = found.columns.setdefault(left.name, Rule())
        if negated:
            rule.excluded.extend(values)
        else:
            rule.restrict_choices(values)

    return fact


_PATTERN_OPERATORS: Final = ("~", "~*", "!~", "!~*")


def _pattern_fact(left: Any, sign: str, right: Any) -> Fact:
    if not isinstance(left, _ColumnOperand) or left.length or not isinstance(right, str):
        raise _UnsupportedConditionError
    found = translate_expression(right, ignore_case=sign.endswith("*"), negated=sign.startswith("!"))
    if found is None:
        raise _UnsupportedConditionError
    if found.is_quick and all(map(found.allows, _TYPICAL_VALUES)):
        return _is_not_null

    def fact(rules: Rules) -> None:
        rule = rules.columns.setdefault(left.name, Rule())
        rule.patterns.append(found)
        if not found.negated:
            rule.pattern = found.pattern

    return fact


def finite_number(value: Any) -> Decimal | None:
    """A bound as a finite number, if it is one: `NaN` and infinities bound nothing."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        found = Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        return None
    return found if found.is_finite() else None
