"""The tree of a regular expression, and what can be said of it without making a text.

Lengths, how many texts there are, and whether two different ways through the tree can give the same text: only an
expression for which that is ruled out may be unique. Texts are counted as databases compare them: case and accents
ignored (`folded`).
"""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, pairwise

_LISTED = 4096
"""Choices of up to so many texts are compared text by text."""


class Node(ABC):
    """A part of an expression. Sets of characters are of folded ones."""

    @property
    @abstractmethod
    def least(self) -> int:
        """Characters of the shortest text."""

    @property
    @abstractmethod
    def most(self) -> int:
        """Characters of the longest."""

    @property
    @abstractmethod
    def weight(self) -> int:
        """Places for characters and decisions, every repeat written out."""

    @property
    @abstractmethod
    def count(self) -> int:
        """Ways through this part that differ after folding."""

    @property
    @abstractmethod
    def first(self) -> frozenset[str]:
        """The characters that a text may begin with."""

    @property
    @abstractmethod
    def last(self) -> frozenset[str]:
        """The characters that a text may end with."""

    @property
    @abstractmethod
    def alphabet(self) -> frozenset[str]:
        """The characters that a text may contain."""

    @abstractmethod
    def texts(self) -> Iterator[str]:
        """Every folded text, once for each way to it."""

    @abstractmethod
    def ambiguity(self) -> Node | None:
        """The innermost part in which one text may come about in two ways; None where there is none."""

    def prefix_free(self) -> bool:
        """Whether no text of it surely is the beginning of another."""
        return self.least == self.most

    def suffix_free(self) -> bool:
        """Whether no text of it surely is the end of another."""
        return self.least == self.most


@cache
def folded(char: str) -> str:
    """``char`` without case and accents, where that is one character. Unicode keeps both stable for every
    assigned character."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", char) if not unicodedata.combining(c)).casefold()
    return bare if len(bare) == 1 else char


@dataclass(frozen=True)
class Chars(Node):
    """One character of several."""

    chars: frozenset[str]

    least = most = weight = 1

    @cached_property
    def families(self) -> tuple[tuple[str, ...], ...]:
        """The characters, those that fold alike together, in the order of their code points."""
        found: dict[str, list[str]] = {}
        for char in sorted(self.chars):
            found.setdefault(folded(char), []).append(char)
        return tuple(map(tuple, found.values()))

    @property
    def count(self) -> int:
        return len(self.families)

    @cached_property
    def alphabet(self) -> frozenset[str]:
        return frozenset(map(folded, self.chars))

    @property
    def first(self) -> frozenset[str]:
        return self.alphabet

    @property
    def last(self) -> frozenset[str]:
        return self.alphabet

    def texts(self) -> Iterator[str]:
        yield from sorted(self.alphabet)

    def ambiguity(self) -> Node | None:
        return None


@dataclass(frozen=True)
class Anchor(Node):
    """``^`` or ``$``: holds where nothing stands before, or after, it."""

    kind: str
    position: int

    least = most = weight = 0
    count = 1
    first = last = alphabet = frozenset()

    def texts(self) -> Iterator[str]:
        yield ""

    def ambiguity(self) -> Node | None:
        return None


@dataclass(frozen=True)
class Sequence(Node):
    """One after the other."""

    items: tuple[Node, ...]

    @cached_property
    def least(self) -> int:
        return sum(item.least for item in self.items)

    @cached_property
    def most(self) -> int:
        return sum(item.most for item in self.items)

    @cached_property
    def weight(self) -> int:
        return sum(item.weight for item in self.items)

    @cached_property
    def count(self) -> int:
        product = 1
        for item in self.items:
            product *= item.count
        return product

    @cached_property
    def first(self) -> frozenset[str]:
        return _until_solid(self.items, "first")

    @cached_property
    def last(self) -> frozenset[str]:
        return _until_solid(self.items[::-1], "last")

    @cached_property
    def alphabet(self) -> frozenset[str]:
        return frozenset().union(*(item.alphabet for item in self.items))

    def texts(self) -> Iterator[str]:
        if not self.items:
            yield ""
            return
        for head in self.items[0].texts():
            for tail in Sequence(self.items[1:]).texts():
                yield head + tail

    def ambiguity(self) -> Node | None:
        for i, item in enumerate(self.items):
            found = item.ambiguity()
            if found is not None:
                return found
            if not _splits(item, Sequence(self.items[i + 1 :])):
                return self
        return None

    def prefix_free(self) -> bool:
        return super().prefix_free() or all(item.prefix_free() for item in self.items)

    def suffix_free(self) -> bool:
        return super().suffix_free() or all(item.suffix_free() for item in self.items)


def _until_solid(items: tuple[Node, ...], end: str) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for item in items:
        found |= getattr(item, end)
        if item.least:
            break
    return found


def _splits(head: Node, tail: Node) -> bool:
    """Whether a text of ``head`` and then ``tail`` surely shows where the one ends."""
    return (
        tail.most == 0
        or head.prefix_free()
        or tail.suffix_free()
        or not head.alphabet & tail.first
        or not head.last & tail.alphabet
    )


@dataclass(frozen=True)
class Choice(Node):
    """One of several."""

    options: tuple[Node, ...]

    @cached_property
    def least(self) -> int:
        return min(option.least for option in self.options)

    @cached_property
    def most(self) -> int:
        return max(option.most for option in self.options)

    @cached_property
    def weight(self) -> int:
        return 1 + sum(option.weight for option in self.options)

    @cached_property
    def count(self) -> int:
        return sum(option.count for option in self.options)

    @cached_property
    def first(self) -> frozenset[str]:
        return frozenset().union(*(option.first for option in self.options))

    @cached_property
    def last(self) -> frozenset[str]:
        return frozenset().union(*(option.last for option in self.options))

    @cached_property
    def alphabet(self) -> frozenset[str]:
        return frozenset().union(*(option.alphabet for option in self.options))

    def texts(self) -> Iterator[str]:
        for option in self.options:
            yield from option.texts()

    def ambiguity(self) -> Node | None:
        for option in self.options:
            found = option.ambiguity()
            if found is not None:
                return found
        if self.count <= _LISTED:
            return None if len(set(self.texts())) == self.count else self
        pairs = combinations(self.options, 2)
        return None if all(_apart(a, b, "first") or _apart(a, b, "last") for a, b in pairs) else self

    def prefix_free(self) -> bool:
        return super().prefix_free() or self._free("first", "prefix_free", 1)

    def suffix_free(self) -> bool:
        return super().suffix_free() or self._free("last", "suffix_free", -1)

    def _free(self, end: str, free: str, direction: int) -> bool:
        if self.count <= _LISTED:
            # In order, a text that begins another stands right before one that it begins.
            listed = sorted(text[::direction] for text in self.texts())
            return not any(b.startswith(a) for a, b in pairwise(listed) if a != b)
        pairs = combinations(self.options, 2)
        return all(getattr(option, free)() for option in self.options) and all(
            _begin_apart(a, b, end) for a, b in pairs
        )


def _begin_apart(a: Node, b: Node, end: str) -> bool:
    return not getattr(a, end) & getattr(b, end) and a.least > 0 and b.least > 0


def _apart(a: Node, b: Node, end: str) -> bool:
    """Whether no text surely belongs to both."""
    if a.most < b.least or b.most < a.least:
        return True
    return not getattr(a, end) & getattr(b, end) and (a.least > 0 or b.least > 0)


@dataclass(frozen=True)
class Repeat(Node):
    """The same part from ``low`` to ``high`` times."""

    item: Node
    low: int
    high: int
    position: int = 0

    @cached_property
    def least(self) -> int:
        return self.low * self.item.least

    @cached_property
    def most(self) -> int:
        return self.high * self.item.most

    @cached_property
    def weight(self) -> int:
        return 1 + self.high * self.item.weight

    @cached_property
    def count(self) -> int:
        return sum(self.item.count**times for times in range(self.low, self.high + 1))

    @property
    def first(self) -> frozenset[str]:
        return self.item.first if self.high else frozenset()

    @property
    def last(self) -> frozenset[str]:
        return self.item.last if self.high else frozenset()

    @property
    def alphabet(self) -> frozenset[str]:
        return self.item.alphabet if self.high else frozenset()

    def texts(self) -> Iterator[str]:
        for times in range(self.low, self.high + 1):
            yield from Sequence((self.item,) * times).texts()

    def ambiguity(self) -> Node | None:
        found = self.item.ambiguity()
        if found is not None or self.high == 0 or self.low == self.high == 1:
            return found
        if self.item.least == 0:
            return self
        return None if self.high == 1 or self.item.prefix_free() or self.item.suffix_free() else self

    def prefix_free(self) -> bool:
        return super().prefix_free() or (self.low == self.high and self.item.prefix_free())

    def suffix_free(self) -> bool:
        return super().suffix_free() or (self.low == self.high and self.item.suffix_free())
