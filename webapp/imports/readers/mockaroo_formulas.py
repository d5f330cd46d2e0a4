"""Translate formulas of Mockaroo, which are Ruby expressions, to formulas of Rowsmith.

Constructs with the same meaning are translated: operators, conditions, interpolated texts, and the usual methods and
functions. Anything else raises `UntranslatableFormulaError` with the part that has no counterpart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final


class UntranslatableFormulaError(Exception):
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


def translate(source: str, resolve_name: Callable[[str], str | None]) -> str:
    """Return a formula of Rowsmith. `resolve_name` returns a field as it is written in a formula, or None if there is
    none.

    Raises `UntranslatableFormulaError`.
    """
    parser = _Parser(source, resolve_name)
    parser.skip_newlines()
    found = parser.parse_statement()
    parser.skip_newlines()
    if parser.position < len(parser.tokens):
        raise UntranslatableFormulaError(parser.tokens[parser.position][1])
    return parser.require_expression(found)


def text_literal(value: str) -> str:
    """Return a text as a literal."""
    return json.dumps(value, ensure_ascii=False)


class _Parser:
    def __init__(self, source: str, name_of: Callable[[str], str | None]) -> None:
        self.resolve_name, self.position = name_of, 0
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
                raise UntranslatableFormulaError(source[at : at + 20])
            if match["space"] is None:
                self.tokens.append((str(match.lastgroup), match[0]))
            at = match.end()

    def peek(self, ahead: int = 0) -> str:
        index = self.position + ahead
        return self.tokens[index][1] if index < len(self.tokens) and self.tokens[index][0] != "text" else ""

    def take(self, *signs: str) -> bool:
        if self.peek() and self.peek() in signs:
            self.position += 1
            return True
        return False

    def expect(self, sign: str) -> None:
        if not self.take(sign):
            raise UntranslatableFormulaError(self.peek() or "its end")

    def skip_newlines(self) -> None:
        while self.position < len(self.tokens) and self.tokens[self.position][0] == "line":
            self.position += 1

    def require_expression(self, found: str | _Duration) -> str:
        if isinstance(found, _Duration):
            raise UntranslatableFormulaError("a duration by itself")
        return found

    def parse_statement(self) -> str | _Duration:
        """One expression, with a condition behind it."""
        found = self.parse_ternary()
        while self.peek() in ("if", "unless"):
            negated = self.peek() == "unless"
            self.position += 1
            condition = self.require_expression(self.parse_ternary())
            condition = f"not ({condition})" if negated else condition
            found = f"({self.require_expression(found)} if {condition} else null)"
        return found

    def parse_block(self) -> str:
        """The one expression between two keywords."""
        self.skip_newlines()
        found = self.require_expression(self.parse_statement())
        self.skip_newlines()
        return found

    def parse_ternary(self) -> str | _Duration:
        condition = self.parse_or()
        if not self.take("?"):
            return condition
        self.skip_newlines()
        yes = self.require_expression(self.parse_ternary())
        self.skip_newlines()
        self.expect(":")
        self.skip_newlines()
        return f"({yes} if {self.require_expression(condition)} else {self.require_expression(self.parse_ternary())})"

    def parse_or(self) -> str | _Duration:
        found = self.parse_and()
        while self.peek() in ("||", "or"):
            self.position += 1
            self.skip_newlines()
            found = f"({self.require_expression(found)} or {self.require_expression(self.parse_and())})"
        return found

    def parse_and(self) -> str | _Duration:
        found = self.parse_not()
        while self.peek() in ("&&", "and"):
            self.position += 1
            self.skip_newlines()
            found = f"({self.require_expression(found)} and {self.require_expression(self.parse_not())})"
        return found

    def parse_not(self) -> str | _Duration:
        if self.take("!", "not"):
            return f"(not {self.require_expression(self.parse_not())})"
        return self.parse_comparison()

    def parse_comparison(self) -> str | _Duration:
        found = self.parse_sum()
        while self.peek() in ("==", "!=", "<", "<=", ">", ">=", "=~", "!~"):
            sign = self.peek()
            self.position += 1
            if sign in ("=~", "!~"):
                if self.position >= len(self.tokens) or self.tokens[self.position][0] != "regex":
                    raise UntranslatableFormulaError(sign)
                self.position += 1
                matched = (
                    f"matches({self.require_expression(found)}, "
                    f"{text_literal(self.tokens[self.position - 1][1])})"
                )
                found = matched if sign == "=~" else f"(not {matched})"
            else:
                found = (
                    f"({self.require_expression(found)} {sign} {self.require_expression(self.parse_sum())})"
                )
        return found

    def parse_sum(self) -> str | _Duration:
        found = self.parse_product()
        while self.peek() in ("+", "-"):
            sign = self.peek()
            self.position += 1
            self.skip_newlines()
            right = self.parse_product()
            if isinstance(right, _Duration):
                count = right.count if sign == "+" else f"-({right.count})"
                found = f"{right.function}({self.require_expression(found)}, {count})"
            else:
                found = f"({self.require_expression(found)} {sign} {right})"
        return found

    def parse_product(self) -> str | _Duration:
        found = self.parse_unary()
        while self.peek() in ("*", "/", "%", "**"):
            sign = self.peek()
            self.position += 1
            found = f"({self.require_expression(found)} {sign} {self.require_expression(self.parse_unary())})"
        return found

    def parse_unary(self) -> str | _Duration:
        if self.take("-"):
            return f"-{self.require_expression(self.parse_unary())}"
        if self.take("+"):
            return self.parse_unary()
        return self.parse_postfix()

    def parse_postfix(self) -> str | _Duration:
        """A value with its methods."""
        found = self.parse_primary()
        while True:
            if self.take(".", "&."):
                found = self.parse_method_call(found)
            elif self.peek() == "[" and isinstance(found, str):
                self.position += 1
                found = self.parse_slice(found)
            else:
                return found

    def parse_method_call(self, found: str | _Duration | list[str]) -> str | _Duration:
        name = self.peek()
        self.position += 1
        arguments = self.parse_arguments() if self.peek() == "(" else []
        if isinstance(found, list):
            if name == "sample" and not arguments and found:
                return f"choose({', '.join(found)})"
            if name == "include?" and len(arguments) == 1:
                return f"({arguments[0]} in [{', '.join(found)}])"
            found = f"[{', '.join(found)}]"
        if name.endswith("s") and name.rstrip("s") in _DURATIONS and not arguments:  # 3.days
            return _Duration(_DURATIONS[name.rstrip("s")], self.require_expression(found))
        subject = self.require_expression(found)
        if name in ("gsub", "sub") and len(arguments) == 2 and arguments[0].startswith("\0"):
            if name == "sub":
                raise UntranslatableFormulaError(".sub")
            return f"regex_replace({subject}, {arguments[0][1:]}, {arguments[1]})"
        table = {0: _METHODS, 1: _METHODS_WITH_ONE_ARGUMENT, 2: _METHODS_WITH_TWO_ARGUMENTS}.get(
            len(arguments), {}
        )
        if name == "rjust" and len(arguments) == 1:
            return f"pad_left({subject}, {arguments[0]})"
        if name not in table or any(argument.startswith("\0") for argument in arguments):
            raise UntranslatableFormulaError(f".{name}")
        return table[name].format(subject, *arguments)

    def parse_arguments(self) -> list[str]:
        """What is in the bracket that comes next; regular expressions begin with a zero byte."""
        self.expect("(")
        found: list[str] = []
        self.skip_newlines()
        while not self.take(")"):
            if self.position < len(self.tokens) and self.tokens[self.position][0] == "regex":
                found.append("\0" + text_literal(self.tokens[self.position][1]))
                self.position += 1
            else:
                found.append(self.require_expression(self.parse_ternary()))
            self.skip_newlines()
            if not self.take(",") and self.peek() != ")":
                raise UntranslatableFormulaError(self.peek() or "its end")
            self.skip_newlines()
        return found

    def parse_slice(self, subject: str) -> str:
        """`[start, count]`, `[from..to]` or `[place]` of a text; with an index of what `split` made."""
        first = self.parse_integer()
        if self.take(","):
            count = self.parse_integer()
        elif self.peek() in ("..", "..."):
            open_end = self.peek() == "..."
            self.position += 1
            last = self.parse_integer()
            if (first < 0) != (last < 0):
                if first >= 0 and last == -1 and not open_end:
                    count = 10_000
                else:
                    raise UntranslatableFormulaError("[..]")
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

    def parse_integer(self) -> int:
        negative = self.take("-")
        kind, value = self.tokens[self.position] if self.position < len(self.tokens) else ("", "")
        if kind != "number" or "." in value:
            raise UntranslatableFormulaError("[]")
        self.position += 1
        return -int(value) if negative else int(value)

    def parse_primary(self) -> str | _Duration:
        if self.position >= len(self.tokens):
            raise UntranslatableFormulaError("its end")
        kind, value = self.tokens[self.position]
        self.position += 1
        if kind == "number":
            return value
        if kind == "text":
            return self.parse_interpolation(value)
        if value == "(":
            self.skip_newlines()
            found = self.parse_statement()
            self.skip_newlines()
            self.expect(")")
            return found
        if value == "[":
            return self.parse_array()
        if kind == "word":
            return self.parse_word(value)
        raise UntranslatableFormulaError(value)

    def parse_array(self) -> str | _Duration:
        found: list[str] = []
        while not self.take("]"):
            self.skip_newlines()
            found.append(self.require_expression(self.parse_ternary()))
            self.skip_newlines()
            if not self.take(",") and self.peek() != "]":
                raise UntranslatableFormulaError(self.peek() or "its end")
        if self.take("."):
            return self.parse_method_call(found)
        return f"[{', '.join(found)}]"

    def parse_interpolation(self, quoted: str) -> str:
        body = quoted[1:-1]
        if quoted[0] == "'":
            return text_literal(re.sub(r"\\([\\'])", r"\1", body))
        parts = re.split(r"#\{([^}]*)\}", body)
        literals = [
            text_literal(re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), part))
            for part in parts
        ]
        if len(parts) == 1:
            return literals[0]
        found = [
            (literals[index] if index % 2 == 0 else translate(part, self.resolve_name))
            for index, part in enumerate(parts)
            if part or index % 2
        ]
        return f"concat({', '.join(found)})"

    def parse_word(self, name: str) -> str | _Duration:
        plain = {"nil": "null", "null": "null", "true": "true", "false": "false", "this": "this"}
        if name in plain:
            return plain[name]
        if name == "if":
            return self.parse_if()
        if name == "unless":
            raise UntranslatableFormulaError("unless")
        if name == "case":
            return self.parse_case()
        if name in _END_KEYWORDS:
            raise UntranslatableFormulaError(name)
        if name == "field" and self.peek() == "(":
            arguments = self.parse_arguments()
            return self.parse_reference(
                json.loads(arguments[0]) if len(arguments) == 1 and arguments[0][:1] == '"' else ""
            )
        if self.peek() == "(" and self.resolve_name(name) is None:
            return self.parse_function_call(name)
        if name == "rand":
            return "random()"
        while (
            self.peek() == "." and self.resolve_name(f"{name}.{self.peek(1)}") is not None
        ):  # a column of an object
            name = f"{name}.{self.peek(1)}"
            self.position += 2
        return self.parse_reference(name)

    def parse_reference(self, name: str) -> str:
        found = self.resolve_name(name)
        if found is None:
            raise UntranslatableFormulaError(name)
        return found

    def parse_if(self) -> str:
        condition = self.parse_block()
        self.take("then")
        yes = self.parse_block()
        if self.take("elsif"):
            return f"({yes} if {condition} else {self.parse_if()})"
        no = self.parse_block() if self.take("else") else "null"
        self.expect("end")
        return f"({yes} if {condition} else {no})"

    def parse_case(self) -> str:
        subject = self.parse_block()
        cases: list[str] = []
        while self.take("when"):
            values = [self.require_expression(self.parse_ternary())]
            while self.take(","):
                values.append(self.require_expression(self.parse_ternary()))
            self.skip_newlines()
            self.take("then")
            result = self.parse_block()
            for value in values:
                cases += [value, result]
        otherwise = self.parse_block() if self.take("else") else "null"
        self.expect("end")
        return f"switch({', '.join([subject, *cases, otherwise])})"

    def parse_function_call(self, name: str) -> str | _Duration:
        if name == "rand":
            found = [self.peek(ahead) for ahead in range(5)]
            if found[1].isdigit() and found[3].isdigit() and found[2] in ("..", "...") and found[4] == ")":
                self.position += 5
                return f"random_int({found[1]}, {int(found[3]) - (found[2] == '...')})"
        arguments = self.parse_arguments()
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
        raise UntranslatableFormulaError(f"{name}()")
