"""What a `Code` is made of: parts, as schemes are written down, and the slots they are compiled to.

A slot is a few neighbouring characters that are drawn and written together, by their number in a table of spellings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

DIGITS = "0123456789"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LOWER = UPPER.lower()
HEX = "0123456789abcdef"

_TABLE = 1 << 16
"""Most entries of one table of spellings: four digits, decimal or hexadecimal, within the second cache."""


@dataclass(frozen=True, slots=True)
class Run:
    """``count`` characters, each any of ``alphabet``."""

    alphabet: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class Pick:
    """One of several texts of the same width."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Gap:
    """Characters between the groups of a printed number; no check counts them."""

    text: str


@dataclass(frozen=True, slots=True)
class Check:
    """Check digits: ``outputs[sum of value(position, character) mod modulus]``.

    Positions count all characters from 0, those of a `Gap` apart; the check's own add nothing. One output may be
    None: no code has that remainder. The last drawn digit that counts then takes one of nine values, which leave
    another remainder.
    """

    modulus: int
    value: Callable[[int, str], int]
    outputs: tuple[str | None, ...]

    @property
    def width(self) -> int:
        """Characters it writes."""
        return len(next(text for text in self.outputs if text is not None))


@dataclass(frozen=True, slots=True)
class Machine:
    """Check digits by an automaton that reads the drawn and fixed characters before it, from left to right.

    ``step(state, character)`` answers the next of ``states`` states; ``outputs[last state]`` is printed.
    """

    states: int
    start: int
    step: Callable[[int, str], int]
    outputs: tuple[str, ...]

    @property
    def width(self) -> int:
        """Characters it writes."""
        return len(self.outputs[0])


Part = str | Run | Pick | Gap | Check | Machine
"""A string is fixed text, which checks do count."""


def width_of(part: Part) -> int:
    """Characters that a part prints."""
    match part:
        case str() | Gap():
            return len(part if isinstance(part, str) else part.text)
        case Run():
            return part.count
        case Pick():
            return len(part.texts[0])
        case _:
            return part.width


class Slot:
    """Neighbouring characters written together, by an index below ``size``."""

    __slots__ = ("adds", "cells", "forbidden", "moves", "offset", "size", "spellings", "writers")

    def __init__(
        self, offset: int, cells: Sequence[tuple[int, str]], size: int, spellings: np.ndarray
    ) -> None:
        self.offset = offset
        self.cells = cells
        self.size = size
        self.spellings = spellings  # uint8[size, width]
        self.adds: dict[int, np.ndarray] = {}
        self.moves: dict[int, np.ndarray] = {}
        self.forbidden: tuple[int, np.ndarray] | None = None
        self.writers: list[tuple[str, np.ndarray]] = []

    def count(self, check: Check, number: int) -> None:
        """Keeps, as ``int64[size]``, what each spelling adds to check ``number``, unless that is always 0."""
        total = np.zeros(self.size, np.int64)
        for column, (position, alphabet) in enumerate(self.cells):
            worth = np.zeros(256, np.int64)
            for character in alphabet:
                worth[ord(character)] = check.value(position, character) % check.modulus
            total += worth[self.spellings[:, column]]
        total %= check.modulus
        if total.any():
            self.adds[number] = total


def run_slots(alphabet: str, count: int, offset: int, position: int) -> list[Slot]:
    """``count`` characters as slots of one, two or four: what a processor stores at once."""
    most = next(width for width in (4, 2, 1) if len(alphabet) ** width <= _TABLE or width == 1)
    made, at = [], 0
    while at < count:
        width = next(w for w in (4, 2, 1) if w <= min(most, count - at))
        cells = [(position + at + i, alphabet) for i in range(width)]
        made.append(Slot(offset + at, cells, len(alphabet) ** width, _run_table(alphabet, width)))
        at += width
    return made


@lru_cache(maxsize=256)
def _run_table(alphabet: str, width: int) -> np.ndarray:
    letters = np.frombuffer(alphabet.encode("ascii"), np.uint8)
    columns = np.meshgrid(*[letters] * width, indexing="ij")
    return np.ascontiguousarray(np.stack([column.ravel() for column in columns], axis=1))


def pick_slot(texts: tuple[str, ...], offset: int, position: int) -> Slot:
    """One of ``texts``, all of one width, by its number."""
    table, alphabets = _pick_table(texts)
    return Slot(offset, [(position + i, alphabet) for i, alphabet in enumerate(alphabets)], len(texts), table)


@lru_cache(maxsize=256)
def _pick_table(texts: tuple[str, ...]) -> tuple[np.ndarray, list[str]]:
    table = np.frombuffer("".join(texts).encode("ascii"), np.uint8).reshape(len(texts), len(texts[0]))
    return table, ["".join(map(chr, np.unique(column))) for column in table.T]


def check_slot(check: Check | Machine, offset: int, position: int) -> Slot:
    """Where a check writes, by its remainder or last state."""
    width = check.width
    # A remainder that never comes is spelled with anything.
    return pick_slot(tuple(text or "0" * width for text in check.outputs), offset, position)


def split_last(slot: Slot) -> tuple[Slot, Slot]:
    """A slot as two: the last character, and those before it."""
    digits = len(slot.cells[-1][1])
    head = Slot(
        slot.offset, slot.cells[:-1], slot.size // digits, np.ascontiguousarray(slot.spellings[::digits, :-1])
    )
    tail = np.ascontiguousarray(slot.spellings[:digits, -1:])
    return head, Slot(slot.offset + len(slot.cells) - 1, slot.cells[-1:], digits, tail)


def moves(machine: Machine, slot: Slot, before: str) -> np.ndarray:
    """``int64[states * size]``: the state after ``before`` and each spelling, from each state."""
    step = np.zeros((machine.states, 256), np.int64)
    for character in {*before, *(ch for _, alphabet in slot.cells for ch in alphabet)}:
        step[:, ord(character)] = [machine.step(state, character) for state in range(machine.states)]
    state = np.repeat(np.arange(machine.states), slot.size)
    for character in before:
        state = step[state, ord(character)]
    for column in np.tile(slot.spellings, (machine.states, 1)).T:
        state = step[state, column]
    return state


def writers(slot: Slot, every: int) -> list[tuple[int, str, np.ndarray]]:
    """(offset, kind, table) of each store that writes one spelling: of eight, four, two or one bytes."""
    width = slot.spellings.shape[1]
    places = [slot.offset + at + ((slot.offset + at) // every if every else 0) for at in range(width)]
    made, at = [], 0
    while at < width:
        step = next(w for w in (8, 4, 2, 1) if at + w <= width and places[at + w - 1] == places[at] + w - 1)
        piece = np.ascontiguousarray(slot.spellings[:, at : at + step])
        made.append((places[at], f"u{step}", piece.view(f"u{step}")[:, 0]))
        at += step
    return made
