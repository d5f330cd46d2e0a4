"""What check constraints say of single columns: bounds, choices, patterns, lengths.

Only what is read beyond doubt counts. A check that says more, or compares columns with one another, is named as not
read, so that whoever made a template from it can be told that rows may be refused.
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
_CASES: Final = frozenset({"upper", "lower", "ucase", "lcase", "trim", "btrim", "ltrim", "rtrim"})
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
_LENGTHS: Final = frozenset(
    {"length", "char_length", "character_length", "len", "octet_length", "datalength", "lengthb"}
)
_NOW: Final = frozenset(
    {"now", "current_date", "current_timestamp", "localtimestamp", "getdate", "sysdate", "today"}
)
_TURNED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "<>": "<>"}


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
        pieces = _PIECE.findall(self.pattern)
        if sum(piece in "+*{" for piece in pieces) > _REPETITIONS or pieces.count("?") > _OPTIONS:
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
        """Whether a value of at most `MATCHED_CHARS` satisfies it. Only for quick ones."""
        return (_compiled(self.pattern, self.ignore_case).search(text) is None) == self.negated


@lru_cache(256)
def _compiled(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE if ignore_case else 0)


def expression(pattern: str, *, ignore_case: bool, negated: bool) -> Expression | None:
    """A regular expression of PostgreSQL as one of Python; None if it cannot be read."""
    for name, characters in _POSIX.items():
        pattern = pattern.replace(f"[:{name}:]", characters)
    try:
        _compiled(pattern, ignore_case)
    except (re.error, OverflowError, RecursionError):
        return None
    return Expression(pattern, ignore_case, negated)


_PIECE: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.S)
MATCHED_CHARS: Final = 200  # chosen: longer values are not matched
_REPETITIONS: Final = 3  # chosen: the time grows at most with this power of the length
_OPTIONS: Final = 8  # chosen: each may double the time
_USUAL: Final = (
    "a",
    "A",
    "word",
    "Word",
    "Two words",
    "It's 5.5 %: a/b, (c) & d_e - f@g!",
    "Jürgen Ångström",
)
"""Values of which an expression that allows all of them demands nothing: "contains a letter", for example."""


@dataclass(slots=True)
class Rule:
    """What checks say of one column. Bounds are numbers or texts as they stand there (dates); `now` is the present."""

    low: Any = None
    high: Any = None
    low_open: bool = False
    high_open: bool = False
    choices: list[Any] | None = None
    pattern: str | None = None
    """A regular expression that values match."""
    patterns: list[Expression] = field(default_factory=list)
    """All regular expressions that values match or do not match."""
    shortest: int = 0
    longest: int | None = None
    excluded: list[Any] = field(default_factory=list)

    def restrict(self, sign: str, value: Any) -> None:
        """Takes one comparison with a constant in."""
        if sign == "=":
            self.choose([value])
        elif sign == "<>":
            self.excluded.append(value)
        elif sign in (">", ">=") and (self.low is None or _larger(value, self.low)):
            self.low, self.low_open = value, sign == ">"
        elif sign in ("<", "<=") and (self.high is None or _larger(self.high, value)):
            self.high, self.high_open = value, sign == "<"

    def choose(self, values: list[Any]) -> None:
        """Only these values are left."""
        kept = set(values)
        self.choices = values if self.choices is None else [one for one in self.choices if one in kept]


def _larger(a: Any, b: Any) -> bool:
    return a > b if type(a) is type(b) else False


@dataclass(frozen=True, slots=True)
class Rules:
    """What checks say of a table's columns."""

    columns: dict[str, Rule]
    unread: dict[str, list[str]]
    """Checks that were not read, by the columns that they name."""
    later: dict[str, str]
    """Columns whose value is not below another column's of the same row, which is named."""

    def of(self, column: str) -> Rule:
        """What is said of one column."""
        return self.columns.get(column, Rule())


class _Unread(Exception):
    """A condition beyond what is read here."""


Fact = Callable[[Rules], None]


def read(checks: Iterable[str], columns: Iterable[str]) -> Rules:
    """The checks of a table with these columns."""
    known = {name.casefold(): name for name in columns}
    found = Rules({}, {}, {})
    for check in checks:
        parser = _Parser(check[: limits.CHECK_CHARS], known)
        try:
            if len(check) > limits.CHECK_CHARS:
                raise _Unread
            facts = parser.facts()
        except (_Unread, RecursionError):
            for name in parser.named():
                found.unread.setdefault(name, []).append(check[: limits.CHECK_CHARS])
            continue
        for fact in facts:
            fact(found)
    return found


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    length: bool = False


@dataclass(frozen=True, slots=True)
class _Now:
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

    def named(self) -> list[str]:
        """The columns that the check names."""
        words = (text.strip('"`[]').casefold() for kind, text in self._tokens if kind in ("word", "quoted"))
        return list(dict.fromkeys(self._known[word] for word in words if word in self._known))

    def facts(self) -> list[Fact]:
        """Raises `_Unread`."""
        found = self._either()
        if self._at != len(self._tokens) or _nothing in found:
            raise _Unread
        return found

    def _peek(self, ahead: int = 0) -> str:
        place = self._at + ahead
        if place >= len(self._tokens):
            return ""
        kind, text = self._tokens[place]
        return text.lower() if kind in ("word", "sign") else f"{kind}:{text}"

    def _take(self, *wanted: str) -> bool:
        if self._peek() in wanted:
            self._at += 1
            return True
        return False

    def _must(self, wanted: str) -> None:
        if not self._take(wanted):
            raise _Unread

    def _either(self) -> list[Fact]:
        parts = [self._both()]
        while self._take("or"):
            parts.append(self._both())
        if len(parts) == 1:
            return parts[0]
        told = [part for part in parts if not (len(part) == 1 and part[0] is _nothing)]
        if len(told) == 1 and len(parts) == 2:  # null or a condition: null passes every check anyhow
            return told[0]
        # Alternatives that each name values of the same column: one of those values.
        values: list[Any] = []
        names: set[str] = set()
        for part in told:
            alone = Rules({}, {}, {})
            for fact in part:
                fact(alone)
            if len(alone.columns) != 1 or alone.later:
                raise _Unread
            ((name, rule),) = alone.columns.items()
            bare = rule.low is None and rule.high is None and not rule.excluded and not rule.patterns
            if not rule.choices or not bare or rule.shortest or rule.longest is not None:
                raise _Unread
            names.add(name)
            values += rule.choices
        if len(names) != 1:
            raise _Unread
        only = names.pop()
        return [lambda found: found.columns.setdefault(only, Rule()).choose(values)]

    def _both(self) -> list[Fact]:
        found = self._term()
        while self._take("and"):
            found += self._term()
        return found

    def _term(self) -> list[Fact]:
        start = self._at
        if self._take("("):
            try:
                found = self._either()
                self._must(")")
                if self._peek() in ("", "and", "or", ")"):
                    return found
            except _Unread:
                pass
            self._at = start  # the bracket was an operand's
        return self._comparison()

    def _comparison(self) -> list[Fact]:
        if self._take("regexp_like"):
            self._must("(")
            left = self._operand()
            self._must(",")
            right = self._operand()
            flags = self._operand() if self._take(",") else "c"
            self._must(")")
            if flags not in ("c", "i"):
                raise _Unread
            return [_matched(left, "~" if flags == "c" else "~*", right)]
        left = self._operand()
        if self._take("is"):
            negated = self._take("not")
            self._must("null")
            return [_holds if negated else _nothing]
        negated = self._take("not")
        if self._take("between"):
            low = self._operand()
            self._must("and")
            high = self._operand()
            if negated:
                raise _Unread
            return [_compared(left, ">=", low), _compared(left, "<=", high)]
        if self._take("in"):
            return [_chosen(left, self._list("(", ")"), negated)]
        if self._take("regexp") or self._take(
            "rlike"
        ):  # letters of another case match or not, by the collation
            return [_matched(left, "!~*" if negated else "~", self._operand())]
        sign = self._peek()
        if negated or sign not in (*_TURNED, "!=", *_MATCHING):
            raise _Unread
        self._at += 1
        if sign == "=" and self._take("any"):
            self._must("(")
            bracket = self._take("(")
            self._must("array")
            values = self._list("[", "]")
            if bracket:
                self._must(")")
            self._must(")")
            return [_chosen(left, values, False)]
        right = self._operand()
        if sign in _MATCHING:
            return [_matched(left, sign, right)]
        return [_compared(left, "<>" if sign == "!=" else sign, right)]

    def _list(self, opened: str, closed: str) -> list[Any]:
        self._must(opened)
        values = [self._operand()]
        while self._take(","):
            values.append(self._operand())
        self._must(closed)
        if any(isinstance(value, _Column | _Now) for value in values):
            raise _Unread
        return values

    def _operand(self) -> Any:
        if self._take("("):
            found = self._operand()
            self._must(")")
            return found
        if self._take("-"):
            found = self._operand()
            if not isinstance(found, Decimal):
                raise _Unread
            return -found
        if self._at >= len(self._tokens):
            raise _Unread
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "text":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return Decimal(text)
        if kind not in ("word", "quoted"):
            raise _Unread
        plain = text.strip('"`[]').casefold()
        if kind == "word" and plain in ("true", "false"):
            return plain == "true"
        if kind == "word" and plain in _NOW and plain not in self._known:
            if self._take("("):
                self._must(")")
            return _Now()
        if kind == "word" and plain in _LENGTHS and self._take("("):
            inner = self._operand()
            self._must(")")
            if not isinstance(inner, _Column) or inner.length:
                raise _Unread
            return _Column(inner.name, True)
        if kind == "word" and plain in _CASES and plain not in self._known and self._take("("):
            inner = self._operand()
            self._must(")")
            if not isinstance(inner, _Column) or inner.length:
                raise _Unread
            return inner
        if plain not in self._known or self._peek() == "(":
            raise _Unread
        return _Column(self._known[plain])


def _nothing(_: Rules) -> None:
    """The column is null."""


def _holds(_: Rules) -> None:
    """The column is not null: generated values are not."""


def _compared(left: Any, sign: str, right: Any) -> Fact:
    if not isinstance(left, _Column):
        left, right, sign = right, left, _TURNED[sign]
    if not isinstance(left, _Column):
        raise _Unread
    if isinstance(right, _Column):
        if left.length or right.length or sign not in (">", ">=", "<", "<="):
            raise _Unread
        first, last = (right, left) if sign in (">", ">=") else (left, right)
        return lambda found: found.later.__setitem__(last.name, first.name)
    if left.length:
        return _long(left, sign, right)
    value = "now" if isinstance(right, _Now) else right
    return lambda found: found.columns.setdefault(left.name, Rule()).restrict(sign, value)


def _long(column: _Column, sign: str, right: Any) -> Fact:
    if not isinstance(right, Decimal) or sign == "<>":
        raise _Unread
    number = int(right)

    def fact(found: Rules) -> None:
        rule = found.columns.setdefault(column.name, Rule())
        if sign in (">", ">=", "="):
            rule.shortest = max(rule.shortest, number + (sign == ">"))
        if sign in ("<", "<=", "="):
            most = number - (sign == "<")
            rule.longest = most if rule.longest is None else min(rule.longest, most)

    return fact


def _chosen(left: Any, values: list[Any], negated: bool) -> Fact:
    if not isinstance(left, _Column) or left.length:
        raise _Unread

    def fact(found: Rules) -> None:
        rule = found.columns.setdefault(left.name, Rule())
        if negated:
            rule.excluded.extend(values)
        else:
            rule.choose(values)

    return fact


_MATCHING: Final = ("~", "~*", "!~", "!~*")


def _matched(left: Any, sign: str, right: Any) -> Fact:
    if not isinstance(left, _Column) or left.length or not isinstance(right, str):
        raise _Unread
    found = expression(right, ignore_case=sign.endswith("*"), negated=sign.startswith("!"))
    if found is None:
        raise _Unread
    if found.is_quick and all(map(found.allows, _USUAL)):
        return _holds

    def fact(rules: Rules) -> None:
        rule = rules.columns.setdefault(left.name, Rule())
        rule.patterns.append(found)
        if not found.negated:
            rule.pattern = found.pattern

    return fact


def number(value: Any) -> Decimal | None:
    """A bound as a finite number, if it is one: `NaN` and infinities bound nothing."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        found = Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        return None
    return found if found.is_finite() else None
