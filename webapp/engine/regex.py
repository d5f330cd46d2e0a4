"""Regular expressions as a source of texts: compiled once, filled by the block, counted for uniqueness."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.engine.regex_fill import UNRANKED, Filler
from webapp.engine.regex_parser import RegexError, parse
from webapp.engine.regex_tree import Anchor, Chars, Choice, Node, Repeat, Sequence, folded

__all__ = ["Pattern", "RegexError", "compile_pattern", "compile_tree"]

_MAX_SYMBOLS = 60_000


class Pattern:
    """A compiled expression; immutable."""

    def __init__(self, tree: Node) -> None:
        self._tree = tree
        self._filler = Filler(tree)
        self.longest = tree.most
        """Characters of the longest text."""

    @property
    def space(self) -> int:
        """How many texts `unrank` tells apart."""
        return min(self._tree.count, UNRANKED)

    def refusal(self) -> str | None:
        """Why no two rows can be promised different texts; None where they can."""
        if any(char.isspace() for char in self._tree.first | self._tree.last):
            return "Texts that begin or end in blanks compare equal to those without."
        odd = min(filter(_odd, _symbols(self._tree)), default=None)
        if odd is not None:
            return f'Leave out "{odd}", which compares equal to other letters, as ß does to ss.'
        part = self._tree.ambiguity()
        return None if part is None else "The same text can come about in several ways."

    def draw(self, key: np.uint64, rows: np.ndarray) -> pa.Array:
        """``string[n]`` for any rows."""
        return self._filler.draw(key, rows)

    def unrank(self, key: np.uint64, rows: np.ndarray, index: np.ndarray) -> pa.Array:
        """``string[n]``: different ``index`` (each below `space`) gives different texts unless `refusal` objects."""
        return self._filler.unrank(key, rows, index, self.space)


@lru_cache(maxsize=64)
def compile_pattern(source: str) -> Pattern:
    """An expression ready to be filled. Raises `RegexError` with the position of what is wrong."""
    return compile_tree(parse(source))


def compile_tree(tree: Node) -> Pattern:
    """The same from a tree. Raises `RegexError`."""
    _check_anchors(tree, True, True)
    _check_size(tree)
    return Pattern(tree)


def _check_anchors(node: Node, at_start: bool, at_end: bool) -> None:
    """Refuses a ``^`` with something before it and a ``$`` with something behind it: nothing could match."""
    match node:
        case Anchor():
            if not (at_start if node.kind == "start" else at_end):
                where = "before the start" if node.kind == "start" else "behind the end"
                raise RegexError(
                    f"Nothing can stand {where} of the text.", node.position, "Remove it, or escape it."
                )
        case Sequence():
            for i, item in enumerate(node.items):
                before = at_start and all(other.most == 0 for other in node.items[:i])
                behind = at_end and all(other.most == 0 for other in node.items[i + 1 :])
                _check_anchors(item, before, behind)
        case Choice():
            for option in node.options:
                _check_anchors(option, at_start, at_end)
        case Repeat():
            alone = node.high <= 1 or node.most == 0
            _check_anchors(node.item, at_start and alone, at_end and alone)


def _check_size(tree: Node) -> None:
    if tree.weight > limits.MAX_PATTERN_PLACES:
        text = (
            f"This makes texts of up to {tree.most:,} characters; {limits.MAX_PATTERN_PLACES:,} is the most."
        )
        raise RegexError(text, _heaviest(tree), "Repeat less.")
    if len(_symbols(tree)) > _MAX_SYMBOLS:
        raise RegexError(f"More than {_MAX_SYMBOLS:,} different characters.", 0, "Narrow the classes.")


def _heaviest(node: Node) -> int:
    """Where the repeat stands that makes it too long."""
    while not isinstance(node, Repeat):
        inner = node.items if isinstance(node, Sequence) else getattr(node, "options", ())
        if not inner:
            return 0
        node = max(inner, key=lambda part: part.weight)
    return node.position


def _odd(char: str) -> bool:
    """Whether without case and accents it is another count of letters, or like a letter that it is not in itself."""
    if char.isascii():
        return False
    spelled = {len(bare) for bare in map(_bare, (char, char.upper()))}
    return spelled != {1} or folded(char.upper()) != folded(char)


def _bare(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)).casefold()


def _symbols(node: Node) -> frozenset[str]:
    match node:
        case Chars():
            return node.chars
        case Sequence(items=parts) | Choice(options=parts):
            return frozenset().union(*map(_symbols, parts))
        case Repeat():
            return _symbols(node.item)
    return frozenset()
