"""``{{field}}`` with filters: text with holes, compiled once and filled by the block.

Filters: ``json``, ``upper``, ``lower``, ``date('YYYY-MM-DD')``, chained with ``|`` (specification, section 2). What
precedes them is the name of a field or a formula; the caller decides which.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import budget, dates, text
from webapp.engine.formats.nested import json_texts

_PLACEHOLDER = re.compile(r"\{\{(.*?)\}\}", re.S)
_EXPRESSION = re.compile(r"(?:[^|'\"{}]|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')+", re.S)
_QUOTED = re.compile(r"\"([^\"\\]+)\"")
_FILTER = re.compile(r"\|\s*([a-z_]+)\s*(?:\(\s*(?:'([^']*)'|\"([^\"]*)\")\s*\))?\s*")

Filter = Callable[[pa.Array], pa.Array]


class PlaceholderError(ValueError):
    """A template text that cannot be read; ``position`` counts characters from 0."""

    def __init__(self, message: str, position: int) -> None:
        self.position = position
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Placeholder:
    """One ``{{name | filter ...}}``."""

    name: str
    """The part before the filters, without the quotation marks around it."""
    filters: tuple[Filter, ...]
    position: int
    start: int = 0
    """Position of ``name``, in characters from 0."""
    is_quoted: bool = False
    """The name stood in quotation marks: it is a field's."""

    @property
    def is_json(self) -> bool:
        """Whether the result is JSON."""
        return bool(self.filters) and self.filters[-1] is _json


@dataclass(frozen=True, slots=True)
class PlaceholderText:
    """A text with holes: literal strings and `Placeholder`s in order."""

    parts: tuple[str | Placeholder, ...]

    @property
    def placeholders(self) -> list[Placeholder]:
        """The holes, in order."""
        return [part for part in self.parts if isinstance(part, Placeholder)]

    def fill(self, column: Callable[[str], pa.Array], n: int) -> pa.Array:
        """``string[n]``; a blank value leaves nothing in its place."""
        if not self.placeholders:
            constant = "".join(part for part in self.parts if isinstance(part, str))
            return pa.DictionaryArray.from_arrays(pa.array([0] * n, pa.int32()), pa.array([constant]))
        pieces: list[str | pa.Array] = []
        size = 0
        for part in self.parts:
            if isinstance(part, str):
                pieces.append(part)
                size += len(part.encode()) * n
            else:
                value = column(part.name)
                for step in part.filters:
                    value = step(value)
                value = text.decode_dictionary(text.to_text(value))
                pieces.append(value)
                size += budget.size_of(value)
            budget.check(size)
        if len(pieces) == 1:
            return pc.fill_null(pieces[0], "")
        return pc.binary_join_element_wise(*pieces, "", null_handling="replace", null_replacement="")


def parse(source: str) -> PlaceholderText:
    """Reads ``source``. Raises `PlaceholderError` with the position of what is wrong."""
    parts: list[str | Placeholder] = []
    end = 0
    for match in _PLACEHOLDER.finditer(source):
        _add_literal(source, end, match.start(), parts)
        parts.append(_parse_placeholder(match.group(1), match.start()))
        end = match.end()
    _add_literal(source, end, len(source), parts)
    return PlaceholderText(tuple(parts))


def _add_literal(source: str, start: int, end: int, parts: list[str | Placeholder]) -> None:
    piece = source[start:end]
    if "{{" in piece:
        raise PlaceholderError("A {{ is not closed with }}.", start + piece.index("{{"))
    if piece:
        parts.append(piece)


def _parse_placeholder(inside: str, position: int) -> Placeholder:
    match = _EXPRESSION.match(inside)
    head = match[0] if match else ""
    rest = inside[len(head) :]
    name = head.strip()
    if not name or (rest and not rest.startswith("|")):
        text = "Write a field name or a formula between {{ and }}, then filters after |."
        raise PlaceholderError(text, position)
    quoted = _QUOTED.fullmatch(name)
    filters = tuple(_parse_filters(rest, position))
    start = position + 2 + len(head) - len(head.lstrip())
    return Placeholder(quoted[1] if quoted else name, filters, position, start, quoted is not None)


def _parse_filters(source: str, position: int) -> list[Filter]:
    found, at = [], 0
    while at < len(source):
        match = _FILTER.match(source, at)
        if not match:
            raise PlaceholderError(f"This filter is not valid: {source[at:].strip()}", position)
        name, argument = match.group(1), match.group(2) if match.group(2) is not None else match.group(3)
        if name == "date":
            if argument is None:
                raise PlaceholderError("The date filter needs a format: date('YYYY-MM-DD').", position)
            found.append(dates.create_formatter(argument))
        elif name not in _PLAIN_FILTERS:
            names = ", ".join([*_PLAIN_FILTERS, "date('...')"])
            raise PlaceholderError(f"There is no filter {name}. Available: {names}.", position)
        elif argument is not None:
            raise PlaceholderError(f"The filter {name} does not accept arguments.", position)
        else:
            found.append(_PLAIN_FILTERS[name])
        at = match.end()
    return found


def _json(column: pa.Array) -> pa.Array:
    return json_texts(column)


_PLAIN_FILTERS: dict[str, Filter] = {
    "json": _json,
    "upper": lambda column: pc.utf8_upper(text.decode_dictionary(text.to_text(column))),
    "lower": lambda column: pc.utf8_lower(text.decode_dictionary(text.to_text(column))),
}
