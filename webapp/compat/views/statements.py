"""Parse plain INSERT statements, which programs send to `/export/db`, into rows.

A statement with only named columns and literal values becomes a push, like rows that are sent in any other way. So no
statement is executed, and no permission for it is needed. Statements with anything else (an expression, a subquery, a
second statement) are not plain INSERT statements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

_SPACE: Final = r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*+"
_NAME: Final = r'(?:[^\W\d][\w$#]*|"(?:[^"]|"")+"|`[^`]+`|\[[^\]]+\])'
_GAP: Final = re.compile(_SPACE, re.DOTALL)
_HEAD: Final = re.compile(
    rf"INSERT\s+INTO\s+(?P<table>{_NAME}(?:\.{_NAME}){{0,2}}){_SPACE}"
    rf"\((?P<columns>{_SPACE}{_NAME}(?:{_SPACE},{_SPACE}{_NAME})*{_SPACE})\){_SPACE}VALUES",
    re.IGNORECASE | re.DOTALL,
)
_NAMES: Final = re.compile(_NAME)
_VALUE: Final = re.compile(
    r"(?P<text>[nN]?'(?:[^']|'')*')|(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])|"
    r"(?P<word>NULL|TRUE|FALSE)(?!\w)",
    re.IGNORECASE,
)
_BLANK: Final = frozenset(" \t\r\n\f\v-/")
_FRACTION: Final = re.compile(r"[.eE]")
_WORDS: Final = {"NULL": None, "TRUE": True, "FALSE": False}


@dataclass(frozen=True, slots=True)
class Insert:
    """The rows of a plain INSERT, and the table they go into."""

    table: str
    rows: list[dict[str, Any]]


def first_word(statement: str) -> str:
    """Return the kind of a statement, its first keyword: `SELECT`. Empty if it does not begin with a word."""
    start = _GAP.match(statement)
    found = re.match(r"[A-Za-z]+", statement[start.end() if start else 0 :])
    return found[0].upper() if found else ""


def insert(statement: str, *, escapes: bool) -> Insert | None:
    """A plain INSERT as its rows; None for any other statement. `escapes`: the target reads a backslash in a text as
    the beginning of an escape (MySQL), so a text that holds one is not plain."""
    at = _skip(statement, 0)
    head = _HEAD.match(statement, at)
    if head is None:
        return None
    columns = [_plain(one[0]) for one in _NAMES.finditer(head["columns"])]
    table = ".".join(_plain(one[0]) for one in _NAMES.finditer(head["table"]))
    rows: list[dict[str, Any]] = []
    at = head.end()
    while True:
        found = _row(statement, _skip(statement, at), escapes)
        if found is None or len(found[0]) != len(columns):
            return None
        rows.append(dict(zip(columns, found[0], strict=True)))
        at = _skip(statement, found[1])
        if statement[at : at + 1] != ",":
            break
        at += 1
    if statement[at : at + 1] == ";":
        at = _skip(statement, at + 1)
    plain = at == len(statement) and len(set(columns)) == len(columns)
    return Insert(table, rows) if plain else None


def _row(statement: str, at: int, escapes: bool) -> tuple[list[Any], int] | None:
    if statement[at : at + 1] != "(":
        return None
    values: list[Any] = []
    while True:
        at = _skip(statement, at + 1)
        found = _VALUE.match(statement, at)
        if found is None or (escapes and found["text"] and "\\" in found["text"]):
            return None
        values.append(_value(found))
        at = _skip(statement, found.end())
        mark = statement[at : at + 1]
        if mark == ")":
            return values, at + 1
        if mark != ",":
            return None


def _value(found: re.Match[str]) -> Any:
    if found["word"]:
        return _WORDS[found["word"].upper()]
    if found["text"]:
        return found["text"].lstrip("nN")[1:-1].replace("''", "'")
    number = found["number"]
    return float(number) if _FRACTION.search(number) else int(number)


def _skip(statement: str, at: int) -> int:
    if statement[at : at + 1] not in _BLANK:  # most tokens are adjacent
        return at
    found = _GAP.match(statement, at)
    return found.end() if found else at


def _plain(name: str) -> str:
    if name[0] == '"':
        return name[1:-1].replace('""', '"')
    return name[1:-1] if name[0] in "`[" else name
