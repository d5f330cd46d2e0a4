"""JSONPath as fields take it: names, indices, slices, wildcards, one `..`, and filters (jsonpath-ng's extensions).

The library reads a path; it is followed here, only as far as its first match, which the library cannot. What a path
costs is bounded by the document: parts that multiply what was found before (unions, parents, the same name twice), make
texts longer (arithmetic) or match regular expressions are refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import jsonpath_ng as plain
from jsonpath_ng.ext import filter as filters
from jsonpath_ng.ext import iterable
from jsonpath_ng.ext.parser import parse
from jsonpath_ng.jsonpath import Wildcard

_COMPARED: Final = (plain.This, plain.Child, plain.Fields, plain.Index, iterable.Len)
_TAKEN: Final = (
    *_COMPARED, plain.Root, plain.Slice, plain.Descendants, Wildcard,
    filters.Filter, filters.Expression, filters.And, filters.Or,
)  # fmt: skip


@lru_cache(maxsize=256)
def read(text: str) -> plain.JSONPath:
    """A JSONPath. Raises ValueError, which says what is wrong."""
    try:
        path = parse(text)
    except Exception as error:  # the parser raises what its lexer does
        raise ValueError(f"this is no JSONPath: {str(error)[:200]}") from None
    parts = list(_parts(path))
    if sum(isinstance(part, plain.Descendants) for part in parts) > 1:
        raise ValueError("a JSONPath holds .. once")
    for part in parts:
        _check(part)
    return path


def first(path: plain.JSONPath, document: Any) -> tuple[bool, Any]:
    """Whether there is something at a path, and the first of it. Raises ValueError where a filter does not fit the
    document."""
    try:
        for value in _found(path, document, document):
            return True, value
    except (TypeError, LookupError, AttributeError):
        raise ValueError("the path does not fit the document") from None
    return False, None


def _found(part: Any, value: Any, root: Any) -> Iterator[Any]:
    match part:
        case plain.Root():
            yield root
        case plain.This():
            yield value
        case plain.Child():
            for one in _found(part.left, value, root):
                yield from _found(part.right, one, root)
        case plain.Descendants():
            for one in _found(part.left, value, root):
                for below in _below(one):
                    yield from _found(part.right, below, root)
        case Wildcard():
            yield from _children(value)
        case plain.Fields():
            if isinstance(value, dict):
                yield from (value[name] for name in part.fields if name in value)
        case plain.Index():
            if isinstance(value, list):
                yield from (value[place] for place in part.indices if -len(value) <= place < len(value))
        case plain.Slice():
            if isinstance(value, list) and part.step != 0:
                yield from value[part.start : part.end : part.step]
        case _:
            yield from (one.value for one in part.find(value))


def _below(value: Any) -> Iterator[Any]:
    """A value and all that lies in it, in the order in which it stands there."""
    stack = [value]
    while stack:
        yield (one := stack.pop())
        stack.extend(reversed(list(_children(one))))


def _children(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _check(part: Any) -> None:
    if type(part) not in _TAKEN:
        told = "is not taken: a JSONPath here has names, indices, slices, *, .., filters and `len`"
        raise ValueError(f"{part} {told}")
    if isinstance(part, plain.Fields | plain.Index):
        named = part.fields if isinstance(part, plain.Fields) else part.indices
        if len(set(named)) < len(named):
            raise ValueError(f"{part} names something twice")
    if isinstance(part, filters.Expression):
        if part.op == "=~":
            raise ValueError("a filter compares by ==, !=, <, <=, > and >=, not by a regular expression")
        inner = [
            *_parts(part.target),
            *(_parts(part.value) if isinstance(part.value, plain.JSONPath) else ()),
        ]
        if any(type(one) not in _COMPARED for one in inner):
            raise ValueError("what a filter compares begins with @, and has names and indices alone")


def _parts(node: Any) -> Iterator[Any]:
    """A path and all that it is made of."""
    yield node
    for value in vars(node).values():
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, plain.JSONPath):
                yield from _parts(one)
