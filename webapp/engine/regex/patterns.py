"""Generate the texts of a regular expression: compiled once, filled for each block, counted for uniqueness.

A block is a matrix with a place for every possible character. Literals are in the matrix from the start. Neighbouring
classes are drawn together, up to four at a time, through one table of their combinations. Decisions (how often a part
repeats, which alternative is used) clear the places that a row does not use; the rest, row by row, is the column's
text. Nothing loops over rows.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.engine import random
from webapp.engine.regex.parser import (
    Anchor,
    Chars,
    Choice,
    Node,
    RegexError,
    Repeat,
    Sequence,
    folded,
    parse,
)

_CHUNK_BYTES = 1 << 20
_TABLE_SIZE = 1 << 16
_LOW_32 = np.uint64(0xFFFFFFFF)
_U32 = np.uint64(32)
UNRANKED = 1 << 62
"""Largest domain `PatternFiller.unrank` spreads over an expression; a larger expression is filled up with random
draws."""


@dataclass(frozen=True, slots=True)
class _Group:
    """Places start .. start + width - 1, drawn as one of ``size`` combinations."""

    start: int
    width: int
    size: int
    table: np.ndarray


@dataclass(frozen=True, slots=True)
class LaidOutNode:
    """A node with its places: start .. end - 1."""

    node: Node
    start: int
    end: int
    parts: tuple[LaidOutNode, ...]


class PatternFiller:
    """An expression laid out; immutable, shared by threads."""

    def __init__(self, tree: Node) -> None:
        self._places: list[tuple[str, ...]] = []
        self.decisions: list[LaidOutNode] = []
        self.root = self._lay_out(tree)
        self.width = len(self._places)
        symbols = sorted({char for place in self._places for char in place})
        self._ascii = all(char.isascii() for char in symbols)
        self.symbol_ids = {char: ord(char) if self._ascii else i for i, char in enumerate(symbols)}
        self.item = np.dtype(np.uint8 if self._ascii else np.uint16)
        self.pool = None if self._ascii else pa.array(symbols)
        self.template = np.array([self.symbol_ids[place[0]] for place in self._places], self.item)
        self._groups = list(self._grouped())
        self._spellings: dict[int, tuple[np.ndarray, int]] = {}

    def _lay_out(self, node: Node) -> LaidOutNode:
        start = len(self._places)
        parts: tuple[LaidOutNode, ...] = ()
        if isinstance(node, Chars):
            self._places.append(tuple(sorted(node.chars)))
        elif isinstance(node, Sequence):
            parts = tuple(self._lay_out(item) for item in node.items)
        elif isinstance(node, Choice):
            parts = tuple(self._lay_out(option) for option in node.options)
        elif isinstance(node, Repeat):
            parts = tuple(self._lay_out(node.item) for _ in range(node.high))
        elif not isinstance(node, Anchor):
            raise TypeError(node)
        part = LaidOutNode(node, start, len(self._places), parts)
        if is_decision(node):
            self.decisions.append(part)
        return part

    def _grouped(self) -> Iterator[_Group]:
        max_width = 4 if self._ascii else 1
        start = 0
        while start < self.width:
            size, width = 1, 0
            for step in (1, 2, 4):
                characters = self._places[start + width : start + step]
                larger = size
                for place in characters:
                    larger *= len(place)
                if (
                    step > max_width
                    or start + step > self.width
                    or larger > _TABLE_SIZE
                    or 1 in map(len, characters)
                ):
                    break
                size, width = larger, step
            if width:
                places = self._places[start : start + width]
                ids = tuple(tuple(self.symbol_ids[char] for char in place) for place in places)
                yield _Group(start, width, size, _combinations(ids, self.item.str))
            start += max(width, 1)

    def draw(self, key: np.uint64, rows: np.ndarray) -> pa.Array:
        """``string[n]``: every class, repeat and alternative drawn evenly and on its own."""

        def drawn(block: slice) -> pa.Array:
            block_rows = rows[block]
            lanes = RandomLanes(key, block_rows)
            canvas = self._random(lanes, block_rows.size)
            for part in self.decisions:
                canvas.apply_decision(part, lanes.below(outcome_count(part)))
            return canvas.text()

        return self._chunked(rows.size, drawn)

    def _random(self, lanes: RandomLanes, n: int) -> TextMatrix:
        """A canvas with every class drawn and nothing decided."""
        canvas = TextMatrix(self, n)
        for group in self._groups:
            canvas.write(group.start, group.table.take(lanes.below(group.size)))
        return canvas

    def unrank(self, key: np.uint64, rows: np.ndarray, index: np.ndarray, domain: int) -> pa.Array:
        """``string[n]``: the texts number ``index`` (each below ``domain``, which is at most the expression's count
        and `UNRANKED`). Different numbers give texts that differ after folding, if the expression is unambiguous."""

        def unranked(block: slice) -> pa.Array:
            block_rows = rows[block]
            lanes = RandomLanes(key, block_rows)
            canvas = self._random(lanes, block_rows.size)
            Unranking(canvas, lanes).write(self.root, index[block], domain)
            return canvas.text()

        return self._chunked(rows.size, unranked)

    def spellings(self, chars: Chars, start: int) -> tuple[np.ndarray, int]:
        """For the class at place ``start``: the ids of the characters with the same case folding, each as often
        as the largest family has members, and how many that is."""
        found = self._spellings.get(start)
        if found is None:
            families = chars.case_families
            size = max(map(len, families))
            ids = [self.symbol_ids[family[i % len(family)]] for family in families for i in range(size)]
            found = self._spellings[start] = (np.array(ids, self.item), size)
        return found

    def _chunked(self, n: int, make: Callable[[slice], pa.Array]) -> pa.Array:
        step = max(64, _CHUNK_BYTES // max(1, self.width * self.item.itemsize))
        if n <= step:
            return make(slice(None))
        return pa.concat_arrays([make(slice(start, start + step)) for start in range(0, n, step)])


@lru_cache(maxsize=64)
def _combinations(places: tuple[tuple[int, ...], ...], item: str) -> np.ndarray:
    """Every combination of ids for neighbouring places, each as one item; shared by all that draw the same."""
    axes = np.meshgrid(*(np.array(place, item) for place in places), indexing="ij")
    combined = np.ascontiguousarray(np.stack(axes, axis=-1).reshape(-1, len(places)))
    return combined.view(f"u{combined.itemsize * len(places)}")[:, 0]


def is_decision(node: Node) -> bool:
    """Return whether rows use different positions."""
    return isinstance(node, Choice) or (isinstance(node, Repeat) and node.low < node.high)


def outcome_count(part: LaidOutNode) -> int:
    """Number of alternatives of a decision."""
    node = part.node
    return node.high - node.low + 1 if isinstance(node, Repeat) else len(part.parts)


class RandomLanes:
    """Random numbers for one block of rows, handed out 32 bits at a time in a fixed order."""

    def __init__(self, key: np.uint64, rows: np.ndarray) -> None:
        self._key, self._rows = key, rows
        self._words = 0
        self._half: np.ndarray | None = None

    def below(self, n: int) -> np.ndarray:
        """``int64[n]`` of even draws below ``n``; up to 2**16 to 2**-16, beyond it from a whole word."""
        if n > _TABLE_SIZE:
            return random.below(self._next_bits(), n).view(np.int64)
        if self._half is None:
            bits = self._next_bits()
            self._half = bits & _LOW_32
            bits >>= _U32
        else:
            bits, self._half = self._half, None
        bits *= np.uint64(n)
        bits >>= _U32
        return bits.view(np.int64)

    def _next_bits(self) -> np.ndarray:
        self._words += 1
        return random.bits(random.derive(self._key, self._words), self._rows)


class TextMatrix:
    """The places of some rows: the character in each, and whether the place is used."""

    def __init__(self, filler: PatternFiller, n: int) -> None:
        self.filler, self.n = filler, n
        self._ids = np.empty((n, filler.width), filler.item)
        self._ids[:] = filler.template
        # Place by place, so that a decision is one pass over memory.
        self._used = np.ones((filler.width if filler.decisions else 0, n), bool)

    def write(self, start: int, ids: np.ndarray) -> None:
        """Puts ``ids[n]`` (an item may hold several neighbouring places) at place ``start``."""
        width = ids.itemsize // self._ids.itemsize
        self._ids[:, start : start + width].view(ids.dtype)[:, 0] = ids

    def apply_decision(self, part: LaidOutNode, which: np.ndarray) -> None:
        """Blanks out what rows do not use: alternatives other than ``which``, repeats beyond low + ``which``."""
        if not isinstance(part.node, Repeat):
            for i, option in enumerate(part.parts):
                if option.end > option.start:
                    self._used[option.start : option.end] &= which == i
            return
        optional = part.parts[part.node.low :]
        start, end = optional[0].start, optional[-1].end
        if end > start:
            repeat_index = np.arange(end - start, dtype=np.int64) // (optional[0].end - start)
            self._used[start:end] &= repeat_index[:, None] < which

    def text(self) -> pa.Array:
        """``string[n]``: the used places, row by row."""
        filler = self.filler
        if not filler.decisions:
            ids, ends = self._ids.reshape(-1), np.arange(1, self.n + 1) * filler.width
        else:
            ids = self._ids[np.ascontiguousarray(self._used.T)]
            ends = np.cumsum(self._used.sum(axis=0, dtype=np.int32))
        offsets = np.zeros(self.n + 1, np.int32)
        if filler.pool is None:
            offsets[1:] = ends
            data = pa.py_buffer(ids)
        else:
            # Arrow concatenates the characters of all rows; only the ends of the rows are stored here.
            characters = filler.pool.take(pa.array(ids))
            _, starts, data = characters.buffers()
            offsets[1:] = np.frombuffer(starts, np.int32)[ends]
        return pa.StringArray.from_buffers(self.n, pa.py_buffer(offsets), data)


class Unranking:
    """Write numbers in the mixed radix of an expression. When the number's domain is used up, the rest keeps its random
    characters; if a part has more texts than the domain, the number is distributed over all of them."""

    def __init__(self, canvas: TextMatrix, lanes: RandomLanes) -> None:
        self._canvas, self._lanes, self._filler = canvas, lanes, canvas.filler

    def write(self, part: LaidOutNode, number: np.ndarray, domain: int) -> None:
        """Writes the texts ``number`` (``uint64[n]`` below ``domain``) of ``part``, which has at least ``domain``."""
        count = part.node.count
        if count <= UNRANKED and domain < count:
            spare = count // domain
            if spare > 1:
                number = number * np.uint64(spare) + self._lanes.below(spare).view(np.uint64)
            domain *= spare
        match part.node:
            case Chars() as chars:
                table, size = self._filler.spellings(chars, part.start)
                place = number.view(np.int64)
                if size > 1:
                    place = place * size
                    place += self._lanes.below(size)
                self._canvas.write(part.start, table.take(place))
            case Sequence():
                self._place_parts(part.parts, number, domain)
            case Choice():
                counts = [option.node.count for option in part.parts]
                which, number, domain = self._choose_alternative(counts, number, domain)
                self._canvas.apply_decision(part, which)
                for i, option in enumerate(part.parts):
                    inside = np.where(which == i, number, np.uint64(0))
                    self.write(option, inside, min(domain, counts[i]))
            case Repeat() as repeat:
                if repeat.low < repeat.high:
                    one = repeat.item.count
                    counts = [one**times for times in range(repeat.low, repeat.high + 1)]
                    which, number, domain = self._choose_alternative(counts, number, domain)
                    self._canvas.apply_decision(part, which)
                self._place_parts(part.parts, number, domain)

    def _leave_random(self, part: LaidOutNode) -> None:
        """Keep the random characters of ``part``, and choose its decisions at random."""
        if is_decision(part.node):
            self._canvas.apply_decision(part, self._lanes.below(outcome_count(part)))
        for inner in part.parts:
            self._leave_random(inner)

    def _place_parts(self, parts: tuple[LaidOutNode, ...], number: np.ndarray, domain: int) -> None:
        for part in parts:
            count = part.node.count
            if domain == 1:
                self._leave_random(part)
            elif count >= domain:
                self.write(part, number, domain)
                domain = 1
            else:
                quotient = number // np.uint64(count)
                number, digit = quotient, number - quotient * np.uint64(count)
                domain = -(-domain // count)
                self.write(part, digit, count)

    def _choose_alternative(
        self, counts: list[int], number: np.ndarray, domain: int
    ) -> tuple[np.ndarray, np.ndarray, int]:
        """Which of several kinds of text each number means, the number within that kind, and its new domain."""
        if sum(counts) <= UNRANKED:
            ends = np.cumsum(np.array(counts, np.uint64))
            which = np.searchsorted(ends, number, side="right")
            starts = ends - np.array(counts, np.uint64)
            return which, number - starts[which], max(counts)
        # Too many to number: any kind that can hold the whole domain, drawn at random, keeps numbers apart.
        able = np.array([i for i, count in enumerate(counts) if count >= domain])
        return able[self._lanes.below(able.size)], number, domain


__all__ = ["Pattern", "RegexError", "compile_pattern", "compile_tree"]

_MAX_SYMBOLS = 60_000


class Pattern:
    """A compiled expression; immutable."""

    def __init__(self, tree: Node) -> None:
        self._tree = tree
        self._filler = PatternFiller(tree)
        self.max_length = tree.max_length
        """Characters of the longest text."""

    @property
    def distinct_count(self) -> int:
        """The number of texts that `unrank` distinguishes."""
        return min(self._tree.count, UNRANKED)

    def not_unique_reason(self) -> str | None:
        """Why rows cannot be guaranteed different texts; None if they can."""
        if any(char.isspace() for char in self._tree.first | self._tree.last):
            return "Texts that begin or end with spaces are considered equal to those without."
        odd = min(filter(_folds_unusually, _symbols(self._tree)), default=None)
        if odd is not None:
            return f'Remove "{odd}": it is considered equal to other letters, such as ß and ss.'
        part = self._tree.ambiguity()
        return None if part is None else "The expression can match the same text in several ways."

    def draw(self, key: np.uint64, rows: np.ndarray) -> pa.Array:
        """``string[n]`` for any rows."""
        return self._filler.draw(key, rows)

    def unrank(self, key: np.uint64, rows: np.ndarray, index: np.ndarray) -> pa.Array:
        """``string[n]``: different ``index`` (each below `distinct_count`) gives different texts unless
        `not_unique_reason` objects."""
        return self._filler.unrank(key, rows, index, self.distinct_count)


@lru_cache(maxsize=64)
def compile_pattern(source: str) -> Pattern:
    """An expression ready to be filled. Raises `RegexError` with the position of what is wrong."""
    return compile_tree(parse(source))


def compile_tree(tree: Node) -> Pattern:
    """The same from a tree. Raises `RegexError`."""
    _check_anchors(tree, True, True)
    if tree.weight > limits.MAX_PATTERN_PLACES:
        text = (
            f"This generates texts of up to {tree.max_length:,} characters; the maximum is "
            f"{limits.MAX_PATTERN_PLACES:,}."
        )
        raise RegexError(text, _longest_repeat(tree), "Use fewer repetitions.")
    if len(_symbols(tree)) > _MAX_SYMBOLS:
        raise RegexError(
            f"The expression uses more than {_MAX_SYMBOLS:,} different characters.",
            0,
            "Use smaller character classes.",
        )
    return Pattern(tree)


def _check_anchors(node: Node, at_start: bool, at_end: bool) -> None:
    """Reject a ``^`` with something before it and a ``$`` with something after it, because they can never match."""
    match node:
        case Anchor():
            if not (at_start if node.kind == "start" else at_end):
                where = "before the start" if node.kind == "start" else "after the end"
                raise RegexError(
                    f"Nothing can match {where} of the text.", node.position, "Remove it, or escape it."
                )
        case Sequence():
            for i, item in enumerate(node.items):
                before = at_start and all(other.max_length == 0 for other in node.items[:i])
                behind = at_end and all(other.max_length == 0 for other in node.items[i + 1 :])
                _check_anchors(item, before, behind)
        case Choice():
            for option in node.options:
                _check_anchors(option, at_start, at_end)
        case Repeat():
            alone = node.high <= 1 or node.max_length == 0
            _check_anchors(node.item, at_start and alone, at_end and alone)


def _longest_repeat(node: Node) -> int:
    """Return the position of the repeat that makes it too long."""
    while not isinstance(node, Repeat):
        inner = node.items if isinstance(node, Sequence) else getattr(node, "options", ())
        if not inner:
            return 0
        node = max(inner, key=lambda part: part.weight)
    return node.position


def _folds_unusually(char: str) -> bool:
    """Whether without case and accents it is another count of letters, or like a letter that it is not in itself."""
    if char.isascii():
        return False
    for text in (char, char.upper()):
        bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
        if len(bare.casefold()) != 1:
            return True
    return folded(char.upper()) != folded(char)


def _symbols(node: Node) -> frozenset[str]:
    match node:
        case Chars():
            return node.chars
        case Sequence(items=parts) | Choice(options=parts):
            return frozenset().union(*map(_symbols, parts))
        case Repeat():
            return _symbols(node.item)
    return frozenset()
