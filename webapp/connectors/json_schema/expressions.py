"""The regular expressions of JSON Schema (ECMA-262): whether a text matches, and texts that match.

An expression matches anywhere in a text (JSON Schema, 6.3.3). Lookarounds cannot be generated: such an expression is
generated without them, and texts that do not match the whole expression are left out.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from webapp.engine.regex import patterns
from webapp.engine.regex.patterns import RegexError

_DRAWS: Final = 64  # chosen: texts by which an expression is verified
_TRIES: Final = 4_000  # chosen: texts among which those that match are searched
_KEPT: Final = 50  # chosen: texts of a list that stands for an expression
_KEY: Final = np.uint64(0x5C6E3A)
_CLASSES: Final = {
    "L": "A-Za-zÀ-ÖØ-öø-ʯΑ-ωА-я", "Lu": "A-ZÀ-ÖØ-Þ", "Ll": "a-zß-öø-ÿ", "N": "0-9", "Nd": "0-9", "P": "!-/:-@\\[-`{-~",
    "S": "$+<=>^`|~", "Z": " ", "Zs": " ", "M": "\u0300-\u036f", "Letter": "A-Za-zÀ-ÖØ-öø-ʯ",
    "Alphabetic": "A-Za-zÀ-ÖØ-öø-ʯ",
}  # fmt: skip
"""Character classes of Unicode (`\\p{L}`), approximately."""


@lru_cache(maxsize=2_000)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(_python(pattern), re.ASCII if "\\p" not in pattern else 0)
    except (re.error, OverflowError, RecursionError):
        return None


def _python(pattern: str) -> str:
    """Return an ECMA-262 expression in Python's syntax."""
    found = re.sub(r"\(\?<([A-Za-z_]\w*)>", r"(?P<\1>", pattern)
    found = re.sub(r"\\k<([A-Za-z_]\w*)>", r"(?P=\1)", found)
    out, at, inside = [], 0, False
    while at < len(found):
        char = found[at]
        if char == "\\" and at + 1 < len(found):
            named = re.match(r"\\([pP])\{(?:\w+=)?(\w+)\}", found[at:])
            if named:
                told = _CLASSES.get(named[2], _CLASSES.get(named[2][:1], "A-Za-z"))
                out.append(told if inside else f"[{'^' if named[1] == 'P' else ''}{told}]")
                at += named.end()
                continue
            wide = re.match(r"\\u\{([0-9A-Fa-f]+)\}", found[at:])
            if wide:
                out.append(re.escape(chr(min(int(wide[1], 16), 0x10FFFF))))
                at += wide.end()
                continue
            after = found[at + 1]
            kept = after in "dDwWsSbBnrtfv0123456789ux" or not (after.isalnum() or after == "_")
            out.append("\\" + after if kept else after)
            at += 2
            continue
        if inside:
            inside = char != "]"
            out.append("\\[" if char == "[" else char)
        elif char == "[":
            inside = True
            out.append(char)
            if found.startswith("[^]", at):
                out[-1], at, inside = r"[\s\S]", at + 2, False
            elif found.startswith("[]", at):
                out[-1], at, inside = r"(?!)", at + 1, False
        else:
            out.append(r"\Z" if char == "$" else char)
        at += 1
    return "".join(out)


def readable(pattern: str) -> bool:
    """Return whether an expression can be read."""
    return _compiled(pattern) is not None


def matches(pattern: str, text: str) -> bool:
    """Return whether an expression matches in a text. One that cannot be read matches nothing."""
    compiled = _compiled(pattern)
    return compiled is not None and compiled.search(text) is not None


_LOOKAROUND: Final = re.compile(r"\(\?(=|!|<=|<!)")


def _without_lookarounds(pattern: str) -> str:
    while found := _LOOKAROUND.search(pattern):
        depth, at, inside = 0, found.start(), False
        while at < len(pattern):
            char = pattern[at]
            if char == "\\":
                at += 2
                continue
            if inside:
                inside = char != "]"
            elif char == "[":
                inside = True
            elif char in "()":
                depth += 1 if char == "(" else -1
                if depth == 0:
                    break
            at += 1
        pattern = pattern[: found.start()] + pattern[at + 1 :]
    return pattern


def _generating(pattern: str) -> str:
    """Return an expression of which the engine generates whole texts."""
    found = _without_lookarounds(pattern)
    found = re.sub(r"\(\?<[A-Za-z_]\w*>", "(?:", found)
    found = re.sub(r"\\p\{(?:\w+=)?(\w+)\}", lambda one: f"[{_plain_class(one[1])}]", found)
    found = re.sub(r"\[((?:\[\w|[^\[\]])*?)\[([A-Za-z0-9-]+)\]", r"[\1\2", found)  # a class within a class
    found = found.replace(r"\/", "/").replace(r"\-", "-" if "[" not in found else r"\-")
    found = re.sub(r"\\[bB]", "", found)
    return found.replace(r"[\s\S]", ".").replace(r"[\S\s]", ".").replace("[^]", ".")


def _plain_class(name: str) -> str:
    ranges = {"Lu": "A-Z", "Ll": "a-z", "N": "0-9", "Nd": "0-9", "P": "!-/", "Z": " ", "Zs": " "}
    return ranges.get(name, "A-Za-z")


_REPEATED: Final = re.compile(r"(\^?)(\[(?:\\.|[^\]\\])+\]|\\[dw]|\.)([*+]|\{(\d+),\})(\$?)")


def _of_length(pattern: str, least: int, most: int | None) -> str:
    """Return a repeated class with the wanted number of repetitions."""
    found = _REPEATED.fullmatch(pattern)
    if not found:
        return pattern
    low = max(least, int(found[4]) if found[4] else (1 if found[3] == "+" else 0))
    high = most if most is not None else low + 12
    return f"{found[2]}{{{low},{max(low, min(high, low + 12))}}}"


@lru_cache(maxsize=2_000)
def generated(all_of: tuple[str, ...], least: int, most: int | None) -> tuple[str, tuple[str, ...]]:
    """Return how texts that match all of some expressions, and have some length, are generated.

    Either an expression of the engine whose every text fits, or ("" and) a list of texts that fit; if there
    are none, both are empty.
    """

    def fits(text: str) -> bool:
        long = len(text) >= least and (most is None or len(text) <= most)
        return long and all(matches(one, text) for one in all_of)

    known = all(map(readable, all_of))
    found: list[str] = []
    for pattern in all_of:
        for source in dict.fromkeys((_of_length(_generating(pattern), least, most), _generating(pattern))):
            try:
                compiled = patterns.compile_pattern(source)
                drawn = compiled.draw(_KEY, np.arange(_DRAWS, dtype=np.uint64)).to_pylist()
            except (RegexError, ValueError, OverflowError, RecursionError):
                continue
            if not known:
                if all(least <= len(one) <= (most if most is not None else len(one)) for one in drawn):
                    return source, ()
                continue
            if all(map(fits, drawn)):
                return source, ()
            more = compiled.draw(_KEY, np.arange(_DRAWS, _TRIES, dtype=np.uint64)).to_pylist()
            found += [one for one in (*drawn, *more) if fits(one)]
            found += _stretched(drawn, least, most, fits) if not found else []
            if len(set(found)) >= _KEPT:
                break
    return "", tuple(list(dict.fromkeys(found))[:_KEPT])


def _stretched(drawn: Sequence[str], least: int, most: int | None, fits: object) -> list[str]:
    """Return texts that fit after their last character is repeated, or their end is left out."""
    assert callable(fits)
    made = [one + one[-1] * (least - len(one)) for one in drawn if one and len(one) < least]
    made += [one[:most] for one in drawn if most is not None and len(one) > most]
    return [one for one in made if fits(one)]


@lru_cache(maxsize=500)
def texts(source: str, count: int) -> tuple[str, ...]:
    """Return texts that the engine generates for an expression."""
    drawn = patterns.compile_pattern(source).draw(_KEY, np.arange(count, dtype=np.uint64))
    return tuple(drawn.to_pylist())
