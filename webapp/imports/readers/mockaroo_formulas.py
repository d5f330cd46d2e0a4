"""Translate formulas of Mockaroo, which are Ruby expressions, to formulas of Rowsmith.

Constructs with the same meaning are translated: operators, conditions, interpolated texts, and the usual methods and
functions. Anything else raises `Untranslatable` with the part that has no counterpart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final


class Untranslatable(Exception):
    """A formula with a part that has no counterpart; the message names the part."""


@dataclass(frozen=True, slots=True)
class _Duration:
    """A duration such as `days(3)`: the function that adds it, and how many."""

    function: str
    count: str


_TOKEN: Final = re.compile(
    r"(?P<space>[ \t\r]+|\#[^{\n][^\n]*)|(?P<line>[\n;])|(?P<number>\d+(?:\.\d+)?)"
    r"|(?P<text>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<word>[A-Za-z_]\w*[?!]?(?![=~])|[A-Za-z_]\w*)"
    r"|(?P<sign>\*\*|&&|\|\||==|!=|<=|>=|=~|!~|\.\.\.?|&\.|[-+*/%<>!?:()\[\],.={}|&])",
    re.S,
)
_REGEX: Final = re.compile(r"/((?:[^/\\\n]|\\.)+)/(i?)")
_END_KEYWORDS: Final = frozenset({"then", "else", "elsif", "end", "when"})
_DURATIONS: Final = {
    "second": "add_seconds", "minute": "add_minutes", "hour": "add_hours", "day": "add_days", "month": "add_months",
    "year": "add_years",
}  # fmt: skip
_SAME_FUNCTIONS: Final[Mapping[str, str]] = {
    "upper": "upper", "lower": "lower", "concat": "concat", "round": "round", "floor": "floor", "ceil": "ceil",
    "abs": "abs", "min": "min", "max": "max", "now": "now", "today": "today", "length": "length", "sqrt": "sqrt",
    "pad": "pad_left", "upcase": "upper", "downcase": "lower",
}  # fmt: skip
"""Functions that are called the same way."""
_METHODS: Final[Mapping[str, str]] = {
    "upcase": "upper({0})", "downcase": "lower({0})", "titleize": "title({0})", "to_s": "text({0})",
    "capitalize": "(upper(left({0}, 1)) + lower(mid({0}, 2, 10000)))", "to_i": "int({0})", "to_f": "number({0}, 6)",
    "length": "length({0})", "size": "length({0})", "strip": "trim({0})", "squish": "trim({0})",
    "reverse": "reverse({0})", "abs": "abs({0})", "floor": "floor({0})", "ceil": "ceil({0})", "round": "round({0})",
    "nil?": "({0} == null)", "blank?": "is_blank({0})", "empty?": "is_blank({0})", "present?": "(not is_blank({0}))",
    "year": "year({0})", "month": "month({0})", "day": "day({0})", "hour": "hour({0})", "to_date": "date_of({0})",
}  # fmt: skip
_METHODS_WITH_ONE_ARGUMENT: Final[Mapping[str, str]] = {
    "include?": "contains({0}, {1})", "start_with?": "starts_with({0}, {1})", "end_with?": "ends_with({0}, {1})",
    "round": "round({0}, {1})", "split": "split({0}, {1})", "strftime": "format_date({0}, {1})",
    "to_s": "text({0})", "fdiv": "({0} / {1})", "join": "join({0}, {1})",
}  # fmt: skip
_METHODS_WITH_TWO_ARGUMENTS: Final[Mapping[str, str]] = {
    "rjust": "pad_left({0}, {1}, {2})", "ljust": "pad_right({0}, {1}, {2})", "gsub": "replace({0}, {1}, {2})",
}  # fmt: skip


def translate(source: str, name_of: Callable[[str], str | None]) -> str:
    """Return a formula of Rowsmith. `name_of` returns a field as it is written in a formula, or None if there is none.

    Raises `Untranslatable`.
    """
    parser = _Parser(source, name_of)
    parser.lines()
    found = parser.statement()
    parser.lines()
    if parser.at < len(parser.tokens):
        raise Untranslatable(parser.tokens[parser.at][1])
    return parser.plain(found)


def text(value: str) -> str:
    """Return a text as a literal."""
    return json.dumps(value, ensure_ascii=False)


class _Parser:
    def __init__(self, source: str, name_of: Callable[[str], str | None]) -> None:
        self.name_of, self.at = name_of, 0
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(source):
            regex = _REGEX.match(source, at)
            previous = self.tokens[-1] if self.tokens else ("sign", "(")
            if regex is not None and previous[0] == "sign" and previous[1] not in (")", "]"):
                self.tokens.append(("regex", ("(?i)" if regex[2] else "") + regex[1].replace(r"\/", "/")))
                at = regex.end()
                continue
            match = _TOKEN.match(source, at)
            if match is None:
                raise Untranslatable(source[at : at + 20])
            if match["space"] is None:
                self.tokens.append((str(match.lastgroup), match[0]))
            at = match.end()

    def peek(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.tokens[index][1] if index < len(self.tokens) and self.tokens[index][0] != "text" else ""

    def take(self, *signs: str) -> bool:
        if self.peek() and self.peek() in signs:
            self.at += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            raise Untranslatable(self.peek() or "its end")

    def lines(self) -> None:
        while self.at < len(self.tokens) and self.tokens[self.at][0] == "line":
            self.at += 1

    def plain(self, found: str | _Duration) -> str:
        if isinstance(found, _Duration):
            raise Untranslatable("a duration by itself")
        return found

    def statement(self) -> str | _Duration:
        """One expression, with a condition behind it."""
        found = self.ternary()
        while self.peek() in ("if", "unless"):
            negated = self.peek() == "unless"
            self.at += 1
            condition = self.plain(self.ternary())
            condition = f"not ({condition})" if negated else condition
            found = f"({self.plain(found)} if {condition} else null)"
        return found

    def block(self) -> str:
        """The one expression between two keywords."""
        self.lines()
        found = self.plain(self.statement())
        self.lines()
        return found

    def ternary(self) -> str | _Duration:
        condition = self.either()
        if not self.take("?"):
            return condition
        self.lines()
        yes = self.plain(self.ternary())
        self.lines()
        self.expect(":")
        self.lines()
        return f"({yes} if {self.plain(condition)} else {self.plain(self.ternary())})"

    def either(self) -> str | _Duration:
        found = self.both()
        while self.peek() in ("||", "or"):
            self.at += 1
            self.lines()
            found = f"({self.plain(found)} or {self.plain(self.both())})"
        return found

    def both(self) -> str | _Duration:
        found = self.negated()
        while self.peek() in ("&&", "and"):
            self.at += 1
            self.lines()
            found = f"({self.plain(found)} and {self.plain(self.negated())})"
        return found

    def negated(self) -> str | _Duration:
        if self.take("!", "not"):
            return f"(not {self.plain(self.negated())})"
        return self.comparison()

    def comparison(self) -> str | _Duration:
        found = self.sum()
        while self.peek() in ("==", "!=", "<", "<=", ">", ">=", "=~", "!~"):
            sign = self.peek()
            self.at += 1
            if sign in ("=~", "!~"):
                if self.at >= len(self.tokens) or self.tokens[self.at][0] != "regex":
                    raise Untranslatable(sign)
                self.at += 1
                matched = f"matches({self.plain(found)}, {text(self.tokens[self.at - 1][1])})"
                found = matched if sign == "=~" else f"(not {matched})"
            else:
                found = f"({self.plain(found)} {sign} {self.plain(self.sum())})"
        return found

    def sum(self) -> str | _Duration:
        found = self.product()
        while self.peek() in ("+", "-"):
            sign = self.peek()
            self.at += 1
            self.lines()
            right = self.product()
            if isinstance(right, _Duration):
                count = right.count if sign == "+" else f"-({right.count})"
                found = f"{right.function}({self.plain(found)}, {count})"
            else:
                found = f"({self.plain(found)} {sign} {right})"
        return found

    def product(self) -> str | _Duration:
        found = self.signed()
        while self.peek() in ("*", "/", "%", "**"):
            sign = self.peek()
            self.at += 1
            found = f"({self.plain(found)} {sign} {self.plain(self.signed())})"
        return found

    def signed(self) -> str | _Duration:
        if self.take("-"):
            return f"-{self.plain(self.signed())}"
        if self.take("+"):
            return self.signed()
        return self.called()

    def called(self) -> str | _Duration:
        """A value with its methods."""
        found = self.value()
        while True:
            if self.take(".", "&."):
                found = self.method(found)
            elif self.peek() == "[" and isinstance(found, str):
                self.at += 1
                found = self.cut(found)
            else:
                return found

    def method(self, found: str | _Duration | list[str]) -> str | _Duration:
        name = self.peek()
        self.at += 1
        arguments = self.arguments() if self.peek() == "(" else []
        if isinstance(found, list):
            if name == "sample" and not arguments and found:
                return f"choose({', '.join(found)})"
            if name == "include?" and len(arguments) == 1:
                return f"({arguments[0]} in [{', '.join(found)}])"
            found = f"[{', '.join(found)}]"
        if name.endswith("s") and name.rstrip("s") in _DURATIONS and not arguments:  # 3.days
            return _Duration(_DURATIONS[name.rstrip("s")], self.plain(found))
        subject = self.plain(found)
        if name in ("gsub", "sub") and len(arguments) == 2 and arguments[0].startswith("\0"):
            if name == "sub":
                raise Untranslatable(".sub")
            return f"regex_replace({subject}, {arguments[0][1:]}, {arguments[1]})"
        table = {0: _METHODS, 1: _METHODS_WITH_ONE_ARGUMENT, 2: _METHODS_WITH_TWO_ARGUMENTS}.get(
            len(arguments), {}
        )
        if name == "rjust" and len(arguments) == 1:
            return f"pad_left({subject}, {arguments[0]})"
        if name not in table or any(argument.startswith("\0") for argument in arguments):
            raise Untranslatable(f".{name}")
        return table[name].format(subject, *arguments)

    def arguments(self) -> list[str]:
        """What is in the bracket that comes next; regular expressions begin with a zero byte."""
        self.expect("(")
        found: list[str] = []
        self.lines()
        while not self.take(")"):
            if self.at < len(self.tokens) and self.tokens[self.at][0] == "regex":
                found.append("\0" + text(self.tokens[self.at][1]))
                self.at += 1
            else:
                found.append(self.plain(self.ternary()))
            self.lines()
            if not self.take(",") and self.peek() != ")":
                raise Untranslatable(self.peek() or "its end")
            self.lines()
        return found

    def cut(self, subject: str) -> str:
        """`[start, count]`, `[from..to]` or `[place]` of a text; with an index of what `split` made."""
        first = self.integer()
        if self.take(","):
            count = self.integer()
        elif self.peek() in ("..", "..."):
            open_end = self.peek() == "..."
            self.at += 1
            last = self.integer()
            if (first < 0) != (last < 0):
                if first >= 0 and last == -1 and not open_end:
                    count = 10_000
                else:
                    raise Untranslatable("[..]")
            else:
                count = last - first + (not open_end)
        else:
            count = 1
            if subject.startswith("split("):
                self.expect("]")
                return (
                    f"split_part{subject.removeprefix('split')[:-1]}, {first + 1 if first >= 0 else first})"
                )
        self.expect("]")
        if first >= 0:
            return f"left({subject}, {count})" if first == 0 else f"mid({subject}, {first + 1}, {count})"
        if count < -first:
            return f"left(right({subject}, {-first}), {count})"
        return f"right({subject}, {-first})"

    def integer(self) -> int:
        negative = self.take("-")
        kind, value = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        if kind != "number" or "." in value:
            raise Untranslatable("[]")
        self.at += 1
        return -int(value) if negative else int(value)

    def value(self) -> str | _Duration:
        if self.at >= len(self.tokens):
            raise Untranslatable("its end")
        kind, value = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return value
        if kind == "text":
            return self.interpolated(value)
        if value == "(":
            self.lines()
            found = self.statement()
            self.lines()
            self.expect(")")
            return found
        if value == "[":
            return self.array()
        if kind == "word":
            return self.word(value)
        raise Untranslatable(value)

    def array(self) -> str | _Duration:
        found: list[str] = []
        while not self.take("]"):
            self.lines()
            found.append(self.plain(self.ternary()))
            self.lines()
            if not self.take(",") and self.peek() != "]":
                raise Untranslatable(self.peek() or "its end")
        if self.take("."):
            return self.method(found)
        return f"[{', '.join(found)}]"

    def interpolated(self, quoted: str) -> str:
        body = quoted[1:-1]
        if quoted[0] == "'":
            return text(re.sub(r"\\([\\'])", r"\1", body))
        parts = re.split(r"#\{([^}]*)\}", body)
        literals = [
            text(re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), part))
            for part in parts
        ]
        if len(parts) == 1:
            return literals[0]
        found = [
            (literals[index] if index % 2 == 0 else translate(part, self.name_of))
            for index, part in enumerate(parts)
            if part or index % 2
        ]
        return f"concat({', '.join(found)})"

    def word(self, name: str) -> str | _Duration:
        plain = {"nil": "null", "null": "null", "true": "true", "false": "false", "this": "this"}
        if name in plain:
            return plain[name]
        if name == "if":
            return self.condition()
        if name == "unless":
            raise Untranslatable("unless")
        if name == "case":
            return self.switch()
        if name in _END_KEYWORDS:
            raise Untranslatable(name)
        if name == "field" and self.peek() == "(":
            arguments = self.arguments()
            return self.reference(
                json.loads(arguments[0]) if len(arguments) == 1 and arguments[0][:1] == '"' else ""
            )
        if self.peek() == "(" and self.name_of(name) is None:
            return self.function(name)
        if name == "rand":
            return "random()"
        while (
            self.peek() == "." and self.name_of(f"{name}.{self.peek(1)}") is not None
        ):  # a column of an object
            name = f"{name}.{self.peek(1)}"
            self.at += 2
        return self.reference(name)

    def reference(self, name: str) -> str:
        found = self.name_of(name)
        if found is None:
            raise Untranslatable(name)
        return found

    def condition(self) -> str:
        condition = self.block()
        self.take("then")
        yes = self.block()
        if self.take("elsif"):
            return f"({yes} if {condition} else {self.condition()})"
        no = self.block() if self.take("else") else "null"
        self.expect("end")
        return f"({yes} if {condition} else {no})"

    def switch(self) -> str:
        subject = self.block()
        cases: list[str] = []
        while self.take("when"):
            values = [self.plain(self.ternary())]
            while self.take(","):
                values.append(self.plain(self.ternary()))
            self.lines()
            self.take("then")
            result = self.block()
            for value in values:
                cases += [value, result]
        otherwise = self.block() if self.take("else") else "null"
        self.expect("end")
        return f"switch({', '.join([subject, *cases, otherwise])})"

    def function(self, name: str) -> str | _Duration:
        if name == "rand":
            found = [self.peek(ahead) for ahead in range(5)]
            if found[1].isdigit() and found[3].isdigit() and found[2] in ("..", "...") and found[4] == ")":
                self.at += 5
                return f"random_int({found[1]}, {int(found[3]) - (found[2] == '...')})"
        arguments = self.arguments()
        if name.rstrip("s") in _DURATIONS and len(arguments) == 1:
            return _Duration(_DURATIONS[name.rstrip("s")], arguments[0])
        integers = [re.fullmatch(r"-?\d+", argument) for argument in arguments]
        if name == "random" and len(arguments) == 2 and all(integers):
            return f"random_int({arguments[0]}, {arguments[1]})"
        if name == "rand" and len(arguments) == 1 and all(integers):
            return f"random_int(0, {int(arguments[0]) - 1})"
        if (
            name == "format"
            and len(arguments) == 2
            and re.fullmatch(r'".*%-?[YmdHMSyBbeIpjAa].*"', arguments[1])
        ):
            return f"format_date({arguments[0]}, {arguments[1]})"
        if name == "format" and len(arguments) == 2 and (places := re.fullmatch(r'"%\.(\d)f"', arguments[1])):
            return f'format_number({arguments[0]}, {places[1]}, "")'
        if name in _SAME_FUNCTIONS:
            return f"{_SAME_FUNCTIONS[name]}({', '.join(arguments)})"
        raise Untranslatable(f"{name}()")
