r"""Parse a regular expression to a tree, and analyse the tree without generating texts.

The language is the part of Python's ``re`` (and of JavaScript's) that can generate texts: literals, classes,
``. \d \w \s`` and their negations, groups, alternation, ``? * + {m,n}``, ``^ $`` at the ends, ``(?i)``. Lookaround
and backreferences are rejected. We use our own parser because Python's tree changes between versions and has no
positions. A dot and a negated class mean printable ASCII; ``\s`` generates a blank.

The tree knows the lengths of its texts, how many there are, and whether two different ways through it can give the
same text: an expression may only be unique if that is impossible. Texts are counted as databases compare them: case
and accents are ignored (`folded`).
"""

from __future__ import annotations

import string
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, pairwise
from typing import NoReturn

from webapp import limits

_MAX_LISTED_TEXTS = 4096
"""Choices of up to this many texts are compared text by text."""


class Node(ABC):
    """A part of an expression. Sets of characters are of folded ones."""

    @property
    @abstractmethod
    def min_length(self) -> int:
        """Characters of the shortest text."""

    @property
    @abstractmethod
    def max_length(self) -> int:
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
        """Return the innermost part that can produce one text in two ways; None if there is no such part."""

    def prefix_free(self) -> bool:
        """Whether none of its texts can be the beginning of another."""
        return self.min_length == self.max_length

    def suffix_free(self) -> bool:
        """Whether none of its texts can be the end of another."""
        return self.min_length == self.max_length


@cache
def folded(char: str) -> str:
    """Return ``char`` without case and accents, if that is one character. Unicode keeps both stable for every assigned
    character."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", char) if not unicodedata.combining(c)).casefold()
    return bare if len(bare) == 1 else char


@dataclass(frozen=True)
class Chars(Node):
    """One character of several."""

    chars: frozenset[str]

    min_length = max_length = weight = 1

    @cached_property
    def case_families(self) -> tuple[tuple[str, ...], ...]:
        """The characters, grouped by case folding, in the order of their code points."""
        found: dict[str, list[str]] = {}
        for char in sorted(self.chars):
            found.setdefault(folded(char), []).append(char)
        return tuple(map(tuple, found.values()))

    @property
    def count(self) -> int:
        return len(self.case_families)

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
    """``^`` or ``$``: matches if no text precedes, or follows, it."""

    kind: str
    position: int

    min_length = max_length = weight = 0
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
    def min_length(self) -> int:
        return sum(item.min_length for item in self.items)

    @cached_property
    def max_length(self) -> int:
        return sum(item.max_length for item in self.items)

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
        return _edge_characters(self.items, "first")

    @cached_property
    def last(self) -> frozenset[str]:
        return _edge_characters(self.items[::-1], "last")

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
            if not _has_fixed_boundary(item, Sequence(self.items[i + 1 :])):
                return self
        return None

    def prefix_free(self) -> bool:
        return super().prefix_free() or all(item.prefix_free() for item in self.items)

    def suffix_free(self) -> bool:
        return super().suffix_free() or all(item.suffix_free() for item in self.items)


def _edge_characters(items: tuple[Node, ...], end: str) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for item in items:
        found |= getattr(item, end)
        if item.min_length:
            break
    return found


def _has_fixed_boundary(head: Node, tail: Node) -> bool:
    """Return whether the boundary between ``head`` and ``tail`` can always be found in their concatenation."""
    return (
        tail.max_length == 0
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
    def min_length(self) -> int:
        return min(option.min_length for option in self.options)

    @cached_property
    def max_length(self) -> int:
        return max(option.max_length for option in self.options)

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
        if self.count <= _MAX_LISTED_TEXTS:
            return None if len(set(self.texts())) == self.count else self
        pairs = combinations(self.options, 2)
        return (
            None
            if all(_are_disjoint(a, b, "first") or _are_disjoint(a, b, "last") for a, b in pairs)
            else self
        )

    def prefix_free(self) -> bool:
        return super().prefix_free() or self._free("first", "prefix_free", 1)

    def suffix_free(self) -> bool:
        return super().suffix_free() or self._free("last", "suffix_free", -1)

    def _free(self, end: str, free: str, direction: int) -> bool:
        if self.count <= _MAX_LISTED_TEXTS:
            # In sorted order, a prefix is directly followed by a text that it begins.
            listed = sorted(text[::direction] for text in self.texts())
            return not any(b.startswith(a) for a, b in pairwise(listed) if a != b)
        return all(getattr(option, free)() for option in self.options) and all(
            not getattr(a, end) & getattr(b, end) and a.min_length > 0 and b.min_length > 0
            for a, b in combinations(self.options, 2)
        )


def _are_disjoint(a: Node, b: Node, end: str) -> bool:
    """Return whether the two have no text in common."""
    if a.max_length < b.min_length or b.max_length < a.min_length:
        return True
    return not getattr(a, end) & getattr(b, end) and (a.min_length > 0 or b.min_length > 0)


@dataclass(frozen=True)
class Repeat(Node):
    """The same part from ``low`` to ``high`` times."""

    item: Node
    low: int
    high: int
    position: int = 0

    @cached_property
    def min_length(self) -> int:
        return self.low * self.item.min_length

    @cached_property
    def max_length(self) -> int:
        return self.high * self.item.max_length

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
        if self.item.min_length == 0:
            return self
        return None if self.high == 1 or self.item.prefix_free() or self.item.suffix_free() else self

    def prefix_free(self) -> bool:
        return super().prefix_free() or (self.low == self.high and self.item.prefix_free())

    def suffix_free(self) -> bool:
        return super().suffix_free() or (self.low == self.high and self.item.suffix_free())


PRINTABLE = frozenset(map(chr, range(32, 127)))
_DIGITS = frozenset(string.digits)
_WORD = frozenset(string.ascii_letters + string.digits + "_")
_BLANK = frozenset(" ")
_CLASSES = {
    "d": _DIGITS, "w": _WORD, "s": _BLANK,
    "D": PRINTABLE - _DIGITS, "W": PRINTABLE - _WORD, "S": PRINTABLE - _BLANK,
}  # fmt: skip
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_ANCHORS = {"A": "start", "Z": "end", "z": "end"}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_MAX_DEPTH = 50
_MAX_RANGE = 0xFFFF


class RegexError(ValueError):
    """An invalid or unsupported expression; ``position`` counts characters from 0."""

    def __init__(self, message: str, position: int, hint: str = "") -> None:
        self.position, self.hint = position, hint
        super().__init__(message)


def parse(source: str) -> Node:
    """The tree of ``source``. Raises `RegexError`."""
    if len(source) > limits.MAX_PATTERN_CHARS:
        raise RegexError(
            f"An expression has at most {limits.MAX_PATTERN_CHARS:,} characters.", limits.MAX_PATTERN_CHARS
        )
    return _Parser(source).parse()


class _Parser:
    def __init__(self, source: str) -> None:
        self._source, self._at = source, 0
        self._depth = 0
        self._ignore_case = False

    def parse(self) -> Node:
        tree = self._choice()
        if self._at < len(self._source):
            self._fail(
                "This bracket has no matching opening bracket.", self._at, r"Write \) for the character."
            )
        return tree

    def _fail(self, message: str, position: int, hint: str = "") -> NoReturn:
        raise RegexError(message, position, hint)

    def _peek(self, text: str) -> bool:
        return self._source.startswith(text, self._at)

    def _accept(self, text: str) -> bool:
        found = self._peek(text)
        self._at += len(text) * found
        return found

    def _choice(self) -> Node:
        options = [self._sequence()]
        while self._accept("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while self._at < len(self._source) and not self._peek("|") and not self._peek(")"):
            start = self._at
            item = self._item()
            if item is not None:
                items.append(self._repeated(item, start))
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _item(self) -> Node | None:
        start = self._at
        char = self._source[start]
        self._at += 1
        match char:
            case "(":
                return self._group(start)
            case "[":
                return self._class(start)
            case "\\":
                return self._escape(start)
            case ".":
                return Chars(PRINTABLE)
            case "^" | "$":
                return Anchor("start" if char == "^" else "end", start)
            case "*" | "+" | "?":
                self._fail("There is nothing to repeat here.", start, f"Write \\{char} for the character.")
        if char == "{" and self._bounds(start) is not None:
            self._fail("There is nothing to repeat here.", start, r"Write \{ for the character.")
        self._at = start + 1
        return self._chars(char)

    def _chars(self, chars: Iterable[str]) -> Chars:
        found = set(chars)
        if self._ignore_case:
            found |= {other for char in found for other in (char.lower(), char.upper()) if len(other) == 1}
        return Chars(frozenset(found))

    # Repetition.

    def _repeated(self, item: Node, start: int) -> Node:
        at = self._at
        bounds = self._quantifier()
        if bounds is None:
            return item
        if isinstance(item, Anchor):
            self._fail("There is nothing to repeat here.", at)
        if self._peek("+"):
            self._fail("Possessive repeats are not supported.", self._at, "Remove the second +.")
        self._accept("?")
        second_at = self._at
        if self._quantifier() is not None:
            self._fail(
                "A repetition cannot be repeated directly.",
                second_at,
                "Put the inner repetition in brackets.",
            )
        return Repeat(item, *bounds, start)

    def _quantifier(self) -> tuple[int, int] | None:
        at = self._at
        if self._accept("?"):
            return 0, 1
        if self._accept("*"):
            return 0, limits.OPEN_REPEATS
        if self._accept("+"):
            return 1, limits.OPEN_REPEATS
        return self._bounds(at) if self._accept("{") else None

    def _bounds(self, start: int) -> tuple[int, int] | None:
        # As in re, a brace that begins no bounds is a character.
        end = self._source.find("}", start)
        low, comma, high = self._source[start + 1 : max(end, start + 1)].partition(",")
        parts = [part for part in (low, high) if part]
        if (
            end < 0
            or not parts + [comma] * bool(comma)
            or not all(p.isascii() and p.isdigit() for p in parts)
        ):
            self._at = start
            return None
        self._at = end + 1
        if any(len(part) > 9 for part in parts):
            self._fail("This has too many repetitions.", start)
        minimum = int(low or 0)
        maximum = int(high) if high else (minimum + limits.OPEN_REPEATS if comma else minimum)
        if maximum < minimum:
            self._fail(
                f"The minimum of {minimum} repetitions is larger than the maximum of {maximum}.",
                start,
                "Swap the two numbers.",
            )
        return minimum, maximum

    # Groups.

    def _group(self, start: int) -> Node | None:
        before = self._ignore_case
        if self._accept("?") and not self._group_kind(start):
            return None
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._fail(f"Brackets can be nested at most {_MAX_DEPTH} levels deep.", start)
        inner = self._choice()
        if not self._accept(")"):
            self._fail("This bracket is not closed.", start, r"Write \( for the character.")
        self._depth -= 1
        self._ignore_case = before
        return inner

    def _group_kind(self, start: int) -> bool:
        """Parse what follows ``(?``; return False for an empty group (a comment, or flags for the rest)."""
        if self._accept(":"):
            return True
        for opening in ("=", "!", "<=", "<!"):
            if self._peek(opening):
                self._fail(
                    "Lookaround is not supported.", start, "Write an expression for the whole text instead."
                )
        if self._accept("P<") or self._accept("<"):
            end = self._source.find(">", self._at)
            if end < 0 or not self._source[self._at : end].isidentifier():
                self._fail("The name of this group is not valid.", start, "Write (?P<name>...).")
            self._at = end + 1
            return True
        if self._peek("P=") or self._peek("("):
            self._reject_backreference(start)
        if self._peek(">"):
            self._fail("Atomic groups are not supported.", start, "Write (?:...).")
        if self._accept("#"):
            end = self._source.find(")", self._at)
            if end < 0:
                self._fail("This comment is not closed.", start)
            self._at = end + 1
            return False
        return self._flags(start)

    def _flags(self, start: int) -> bool:
        on = True
        while self._at < len(self._source):
            char = self._source[self._at]
            self._at += 1
            if char == "-":
                on = False
            elif char == "i":
                self._ignore_case = on
            elif char in ":)":
                if char == ")" and start != 0:
                    self._fail(
                        "Flags for the whole expression must be at its start.",
                        start,
                        "Use (?i:...) for a part of the expression.",
                    )
                return char == ":"
            elif char not in "aus":
                break
        self._fail(
            "This kind of group is not supported.",
            start,
            "Groups are (...), (?:...), (?P<name>...) and (?i:...).",
        )

    def _reject_backreference(self, position: int) -> NoReturn:
        hint = "Use a derived field to repeat a value."
        self._fail("Backreferences are not supported.", position, hint)

    # Escapes and classes.

    def _escape(self, start: int) -> Node:
        if self._at >= len(self._source):
            self._fail("Nothing follows this backslash.", start, r"Write \\ for the character.")
        char = self._source[self._at]
        if char in _ANCHORS:
            self._at += 1
            return Anchor(_ANCHORS[char], start)
        if char in "bB":
            self._fail(
                "Word boundaries are not supported.",
                start,
                "Remove it, or write the characters around it.",
            )
        if char in "123456789k":
            self._reject_backreference(start)
        return self._chars(self._escaped(start))

    def _escaped(self, start: int) -> Iterable[str]:
        """Parse the escape at ``start``, after the backslash."""
        if self._at >= len(self._source):
            self._fail("Nothing follows this backslash.", start, r"Write \\ for the character.")
        char = self._source[self._at]
        self._at += 1
        if char in _CLASSES:
            return _CLASSES[char]
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in _HEX_DIGITS:
            return self._code_point(start, _HEX_DIGITS[char])
        if char == "0":
            end = self._at
            while end < self._at + 2 and self._source[end : end + 1] in tuple("01234567"):
                end += 1
            code, self._at = int(self._source[self._at - 1 : end], 8), end
            return chr(code)
        if char.isascii() and char.isalnum():
            self._fail(
                f"The escape sequence \\{char} is not supported.", start, f"Write {char} for the character."
            )
        return char

    def _code_point(self, start: int, digits: int) -> str:
        end = self._at + digits
        if digits == 4 and self._peek("{"):
            self._at += 1
            end = self._source.find("}", self._at)
        text = self._source[self._at : max(end, self._at)]
        self._at = end + (digits == 4 and self._source[self._at - 1] == "{")
        wrong = (
            not text or (digits != 4 and len(text) < digits) or any(c not in string.hexdigits for c in text)
        )
        code = -1 if wrong else int(text, 16)
        if code < 0 or code > 0x10FFFF or 0xD800 <= code < 0xE000:
            self._fail("This is not a valid character code.", start, r"Write \x41, \u00e9 or \U0001f600.")
        return chr(code)

    def _class(self, start: int) -> Node:
        negated = self._accept("^")
        found: set[str] = set()
        first = self._at
        while not self._peek("]") or self._at == first:
            if self._at >= len(self._source):
                self._fail("This class is not closed.", start, r"Write \[ for the character.")
            found |= self._range()
        self._at += 1
        chars = self._chars(found).chars
        if negated:
            chars = PRINTABLE - chars
        if not chars:
            self._fail("This class does not match any printable character.", start)
        return Chars(chars)

    def _range(self) -> frozenset[str]:
        start = self._at
        low = self._member()
        if not self._peek("-") or self._source[self._at + 1 : self._at + 2] in ("]", ""):
            return low
        self._at += 1
        high = self._member()
        if (
            len(low) != 1
            or len(high) != 1
            or any(f"\\{name}" in self._source[start : self._at] for name in _CLASSES)
        ):
            self._fail(
                "A range must begin and end with a single character.", start, r"Write \- for the character."
            )
        (a,), (b,) = low, high
        if a > b:
            self._fail(
                f"This range is in the wrong order: {a} comes after {b}.", start, "Swap the two characters."
            )
        if ord(b) - ord(a) > _MAX_RANGE:
            self._fail("This range is too wide.", start, "List the characters that you need.")
        return frozenset(chr(code) for code in range(ord(a), ord(b) + 1) if not 0xD800 <= code < 0xE000)

    def _member(self) -> frozenset[str]:
        start = self._at
        if start >= len(self._source):
            self._fail("This class is not closed.", start)
        self._at += 1
        if self._source[start] != "\\":
            return frozenset(self._source[start])
        if self._source[self._at : self._at + 1] == "b":  # in a class, as in re, a backspace
            self._at += 1
            return frozenset("\b")
        return frozenset(self._escaped(start))
