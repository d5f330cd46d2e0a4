"""JSONPath in fields: names, indices, slices, wildcards, one `..`, and filters (jsonpath-ng's extensions).

The library parses a path; it is evaluated here, only up to its first match, which the library does not support.
Expressions that multiply matches (unions, parents, the same name twice), build longer texts (arithmetic) or use regular
expressions are rejected. Others can still visit a value many times, such as `$.a.*.$.a.*.$.a.*`, so visits are counted,
and limited to `limits.JSON_PATH_VISITS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import jsonpath_ng as plain
from jsonpath_ng.ext import filter as filters
from jsonpath_ng.ext import iterable
from jsonpath_ng.ext.parser import parse
from jsonpath_ng.jsonpath import Wildcard

from webapp import limits

_FILTER_PARTS: Final = (plain.This, plain.Child, plain.Fields, plain.Index, iterable.Len)
_SUPPORTED_PARTS: Final = (
    *_FILTER_PARTS, plain.Root, plain.Slice, plain.Descendants, Wildcard,
    filters.Filter, filters.Expression, filters.And, filters.Or,
)  # fmt: skip


@lru_cache(maxsize=256)
def parse_path(text: str) -> plain.JSONPath:
    """Parse a JSONPath. Raises ValueError with a message for users."""
    try:
        path = parse(text)
    except Exception as error:  # the parser raises what its lexer does
        raise ValueError(f"this is not a valid JSONPath: {str(error)[:200]}") from None
    parts = list(_parts(path))
    if sum(isinstance(part, plain.Descendants) for part in parts) > 1:
        raise ValueError("a JSONPath may contain .. only once")
    for part in parts:
        if type(part) not in _SUPPORTED_PARTS:
            message = "is not supported: a JSONPath here can contain names, indices, slices, *, .., filters and `len`"
            # The text of `sorted` fails without arguments.
            name = "`sorted`" if isinstance(part, iterable.SortedThis) else part
            raise ValueError(f"{name} {message}")
        if isinstance(part, plain.Fields | plain.Index):
            named = part.fields if isinstance(part, plain.Fields) else part.indices
            if len(set(named)) < len(named):
                raise ValueError(f"{part} contains the same name or index twice")
        if isinstance(part, filters.Expression):
            if part.op == "=~":
                raise ValueError(
                    "a filter may compare with ==, !=, <, <=, > and >=, but not with a regular expression"
                )
            inner = [
                *_parts(part.target),
                *(_parts(part.value) if isinstance(part.value, plain.JSONPath) else ()),
            ]
            if any(type(item) not in _FILTER_PARTS for item in inner):
                raise ValueError(
                    "a filter may only compare paths that begin with @ and consist of names and indices"
                )
    return path


def find_first(path: plain.JSONPath, document: Any) -> tuple[bool, Any]:
    """Return whether a path has a match, and the first match. Raises ValueError if a filter does not fit the document,
    or the path visits too many values."""
    try:
        for value in _Search(document).matches(path, document):
            return True, value
    except (TypeError, LookupError, AttributeError):
        raise ValueError("the path does not match the structure of the document") from None
    return False, None


class _Search:
    """One search in a document, which counts the values that it visits."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._visits_left = limits.JSON_PATH_VISITS

    def matches(self, part: Any, value: Any) -> Iterator[Any]:
        """Yield what a part of a path finds in a value. Raises ValueError after too many visits."""
        match part:
            case plain.Root():
                yield self._root
            case plain.This():
                yield value
            case plain.Child():
                for match in self.matches(part.left, value):
                    yield from self.matches(part.right, match)
            case plain.Descendants():
                for match in self.matches(part.left, value):
                    for below in self._visited(_descendants(match)):
                        yield from self.matches(part.right, below)
            case Wildcard():
                yield from self._visited(_children(value))
            case plain.Fields():
                if isinstance(value, dict):
                    yield from (value[name] for name in part.fields if name in value)
            case plain.Index():
                if isinstance(value, list):
                    found = (value[index] for index in part.indices if -len(value) <= index < len(value))
                    yield from self._visited(found)
            case plain.Slice():
                if isinstance(value, list) and part.step != 0:
                    yield from self._visited(value[part.start : part.end : part.step])
            case _:
                if isinstance(
                    value, list | dict
                ):  # a filter compares all of them, which takes longer than a visit
                    self._count(3 * len(value))
                yield from (item.value for item in part.find(value))

    def _visited(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self._count(1)
            yield value

    def _count(self, visits: int) -> None:
        self._visits_left -= visits
        if self._visits_left < 0:
            raise ValueError("the path visits too many values of the document")


def _descendants(value: Any) -> Iterator[Any]:
    """Yield a value and everything nested in it, in document order."""
    stack = [value]
    while stack:
        yield (one := stack.pop())
        stack.extend(reversed(list(_children(one))))


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _parts(node: Any) -> Iterator[Any]:
    """Yield a path and all of its parts."""
    yield node
    for value in vars(node).values():
        for item in value if isinstance(value, list | tuple) else (value,):
            if isinstance(item, plain.JSONPath):
                yield from _parts(item)
