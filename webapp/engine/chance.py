"""How many masked values chance makes equal to somebody's real one, so that a report has something to compare with."""

from __future__ import annotations

from collections import Counter
from typing import Final

import pyarrow as pa

from webapp.engine.digests import Digests, folded
from webapp.engine.fields.sourced import Sourced

_LETTERS: Final = 26
_SHAPE: Final = bytes(
    ord("9") if chr(one).isdigit() and one < 128 else ord("a") if chr(one).isalpha() or one > 127 else one
    for one in range(256)
)
_REST: Final = bytes(range(0x80, 0xC0))
"""The bytes of UTF-8 that follow a first one."""
_CARD_KEPT: Final = 7
"""Digits of a card number that are kept or follow from the others: its first six and its check digit."""


def expected(column: Sourced, strategy: str, real: pa.Array, known: Digests) -> float:
    """Of so many rows (their real values, folded), how many are masked as a value that is in the column: each as likely
    as the values of its shape are many among those that its shape allows."""
    shapes = column.real.remembered(("shapes", column.column), lambda: _shapes(column))
    total = max(known.values, 1)
    distinct = known.distinct / total
    found = 0.0
    for shape, count in Counter(_shaped(column, real)).items():
        room = _room(column, shape)
        found += count * min(1.0, shapes[shape] * distinct / room) if room > 1 else 0.0
    return found


def _shapes(column: Sourced) -> Counter[str]:
    found: Counter[str] = Counter()
    for piece in column.real.pieces(column.column):
        found.update(_shaped(column, folded(piece)))
    return found


def _shaped(column: Sourced, texts: pa.Array) -> list[str]:
    """Texts with `9` for a digit and `a` for a letter; of an e-mail what stands behind the `@` as it is."""
    values = texts.drop_null().to_pylist()
    if column.name == "email":
        parts = [value.partition("@") for value in values]
        locals_ = _all([part[0] for part in parts])
        return [f"{local}{at}{rest}" for local, (_, at, rest) in zip(locals_, parts, strict=True)]
    return _all(values)


def _all(values: list[str]) -> list[str]:
    # All at once, byte by byte: of a letter beyond ASCII the first byte stands for it.
    shaped = "\0".join(values).encode().translate(_SHAPE, _REST).decode("ascii").split("\0") if values else []
    return (
        shaped
        if len(shaped) == len(values)
        else [one for value in values for one in _all([value.replace("\0", "")])]
    )


def _room(column: Sourced, shape: str) -> float:
    local = shape.partition("@")[0] if column.name == "email" else shape
    digits = local.count("9")
    if column.name == "credit_card_number":
        digits = max(0, digits - _CARD_KEPT)
    return 10.0**digits * float(_LETTERS) ** local.count("a")
