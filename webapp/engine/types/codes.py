"""Texts of a fixed width: account numbers, card numbers, network addresses, national numbers, article numbers.

A `Code` is a sequence of parts: fixed characters, characters drawn from an alphabet, and check digits that follow from
the others. The parts are compiled to slots: a few neighbouring characters that are drawn and written together, by
their number in a table. All texts of a block are one matrix of bytes. The same tables contain what the characters add
to each check digit, so a checksum costs one look-up for every four digits.

The functions for check digits of published schemes return the part for their position. Positions count the characters
of the code from 0, without gaps. Tests compare every scheme with python-stdnum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from webapp.engine import random as engine_random
from webapp.engine.random import RandomStream
from webapp.engine.types.base import FieldType

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext


DIGITS = "0123456789"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LOWER = UPPER.lower()
HEX = "0123456789abcdef"

_MAX_TABLE = 1 << 16
"""Maximum entries of one table of texts: four digits, decimal or hexadecimal, within the second cache."""


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

    Positions count all characters from 0, except those of a `Gap`; the check's own add nothing. One output may be
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
class CheckAutomaton:
    """Check digits by an automaton that reads the drawn and fixed characters before it, from left to right.

    ``step(state, character)`` returns the next of ``states`` states; ``outputs[last state]`` is printed.
    """

    states: int
    start: int
    step: Callable[[int, str], int]
    outputs: tuple[str, ...]

    @property
    def width(self) -> int:
        """Characters it writes."""
        return len(self.outputs[0])


@dataclass(frozen=True, eq=False)
class RowInput:
    """One of several texts of the same width, of which the row has some: those from ``each * value`` on.

    ``name`` names the value that a caller of `Code.bytes` passes for each row; one of its ``texts_per_value`` texts is
    drawn.
    """

    name: str
    spellings: np.ndarray
    """``uint8[values * each, width]``, ASCII."""
    texts_per_value: int = 1
    is_checked: bool = True
    """Whether checks count its characters."""


CodePart = str | Run | Pick | Gap | RowInput | Check | CheckAutomaton
"""A string is fixed text, which checks do count."""


def width_of(part: CodePart) -> int:
    """Characters that a part prints."""
    match part:
        case str() | Gap():
            return len(part if isinstance(part, str) else part.text)
        case Run():
            return part.count
        case Pick():
            return len(part.texts[0])
        case RowInput():
            return part.spellings.shape[1]
        case _:
            return part.width


class Slot:
    """Neighbouring characters written together, by an index below ``size``."""

    __slots__ = ("adds", "cells", "forbidden", "moves", "offset", "row_input", "size", "spellings", "writers")

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
        self.row_input: RowInput | None = None
        self.writers: list[tuple[str, np.ndarray]] = []

    def add_check(self, check: Check, number: int) -> None:
        """Store, as ``int64[size]``, what each text adds to check ``number``, unless that is always 0."""
        total = np.zeros(self.size, np.int64)
        for column, (position, alphabet) in enumerate(self.cells):
            values = np.zeros(256, np.int64)
            for character in alphabet:
                values[ord(character)] = check.value(position, character) % check.modulus
            total += values[self.spellings[:, column]]
        total %= check.modulus
        if total.any():
            self.adds[number] = total


def run_slots(alphabet: str, count: int, offset: int, position: int) -> list[Slot]:
    """Split ``count`` characters into slots of one, two or four, which a processor stores in one step."""
    widest = next(width for width in (4, 2, 1) if len(alphabet) ** width <= _MAX_TABLE or width == 1)
    slots, at = [], 0
    while at < count:
        width = next(w for w in (4, 2, 1) if w <= min(widest, count - at))
        cells = [(position + at + i, alphabet) for i in range(width)]
        slots.append(Slot(offset + at, cells, len(alphabet) ** width, _table_of_run(alphabet, width)))
        at += width
    return slots


@lru_cache(maxsize=256)
def _table_of_run(alphabet: str, width: int) -> np.ndarray:
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


def input_slot(row_input: RowInput, offset: int, position: int) -> Slot:
    """One of the texts of ``row_input``, by its number."""
    columns = (
        ["".join(map(chr, np.unique(column))) for column in row_input.spellings.T]
        if row_input.is_checked
        else []
    )
    cells = [(position + i, alphabet) for i, alphabet in enumerate(columns)]
    slot = Slot(offset, cells, len(row_input.spellings), row_input.spellings)
    slot.row_input = row_input
    return slot


def check_slot(check: Check | CheckAutomaton, offset: int, position: int) -> Slot:
    """Where a check writes, by its remainder or last state."""
    width = check.width
    # A remainder that never occurs can have any text.
    return pick_slot(tuple(text or "0" * width for text in check.outputs), offset, position)


def split_last(slot: Slot) -> tuple[Slot, Slot]:
    """A slot as two: the last character, and those before it."""
    digits = len(slot.cells[-1][1])
    head = Slot(
        slot.offset, slot.cells[:-1], slot.size // digits, np.ascontiguousarray(slot.spellings[::digits, :-1])
    )
    tail = np.ascontiguousarray(slot.spellings[:digits, -1:])
    return head, Slot(slot.offset + len(slot.cells) - 1, slot.cells[-1:], digits, tail)


def state_transitions(machine: CheckAutomaton, slot: Slot, before: str) -> np.ndarray:
    """``int64[states * size]``: the state after ``before`` and each text, from each state."""
    step = np.zeros((machine.states, 256), np.int64)
    for character in {*before, *(ch for _, alphabet in slot.cells for ch in alphabet)}:
        step[:, ord(character)] = [machine.step(state, character) for state in range(machine.states)]
    state = np.repeat(np.arange(machine.states), slot.size)
    for character in before:
        state = step[state, ord(character)]
    for column in np.tile(slot.spellings, (machine.states, 1)).T:
        state = step[state, column]
    return state


def byte_stores(slot: Slot, every: int) -> list[tuple[int, str, np.ndarray]]:
    """Return (offset, kind, table) of each store that writes one text: of eight, four, two or one bytes."""
    width = slot.spellings.shape[1]
    places = [slot.offset + at + ((slot.offset + at) // every if every else 0) for at in range(width)]
    stores, at = [], 0
    while at < width:
        step = next(w for w in (8, 4, 2, 1) if at + w <= width and places[at + w - 1] == places[at] + w - 1)
        piece = np.ascontiguousarray(slot.spellings[:, at : at + step])
        stores.append((places[at], f"u{step}", piece.view(f"u{step}")[:, 0]))
        at += step
    return stores


_DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
"""Twice a digit, as the sum of its digits."""


def character_value(character: str) -> int:
    """0 to 9 for a digit, 10 to 35 for a letter (ISO 13616, ISO 7064)."""
    return int(character, 36)


def weighted(weights: Sequence[int], modulus: int, outputs: Callable[[int], str | None] | str) -> Check:
    """A sum of characters times ``weights[position]``; ``outputs`` maps a remainder to its text: a function,
    or a string with one character for each remainder."""

    def value(position: int, character: str) -> int:
        factor = weights[position] if position < len(weights) else 0
        return factor * character_value(character) if factor else 0

    return Check(
        modulus, value, tuple(outputs) if isinstance(outputs, str) else tuple(map(outputs, range(modulus)))
    )


def remainder(rest: int) -> str | None:
    """The remainder itself; one of two digits has no check digit."""
    return str(rest) if rest < 10 else None


def complement(modulus: int) -> Callable[[int], str | None]:
    """What is missing to the next multiple of ``modulus``; a number of two digits has no check digit."""
    return lambda rest: remainder(-rest % modulus)


def luhn(width: int, first: int = 0) -> Check:
    """ISO/IEC 7812-1, annex B, over the ``width`` characters from position ``first`` on, check digit after them."""
    last = first + width - 1

    def value(position: int, character: str) -> int:
        if not first <= position <= last:
            return 0
        digit = int(character)
        return digit if (last - position) % 2 else _DOUBLED[digit]

    return Check(10, value, tuple(complement(10)(rest) for rest in range(10)))


def gs1(width: int) -> Check:
    """GS1 General Specifications, section 7.9: weights 3 and 1 from the right, over ``width`` characters."""
    return weighted([3 if (width - place) % 2 else 1 for place in range(width)], 10, complement(10))


def remainder_97(width: int, first: int = 0) -> Check:
    """The ``width`` digits from ``first`` on modulo 97, two digits, 97 for 0."""
    weights = [0] * first + [pow(10, width - 1 - place, 97) for place in range(width)]
    return weighted(weights, 97, lambda rest: f"{rest or 97:02d}")


def mod_97_10(width: int, first: int = 0, whole: int = 98) -> Check:
    """ISO 7064 MOD 97-10 over the ``width`` digits from ``first`` on, two check digits after them. ``whole`` 97
    makes all digits together a multiple of 97, where ISO 7064 leaves a remainder of 1."""
    weights = [0] * first + [pow(10, width + 1 - place, 97) for place in range(width)]
    return weighted(weights, 97, lambda rest: f"{whole - rest:02d}")


def mod_11_10() -> CheckAutomaton:
    """ISO 7064 MOD 11,10 over the digits before."""

    def step(state: int, character: str) -> int:
        return ((state + int(character)) % 10 or 10) * 2 % 11

    return CheckAutomaton(11, 10, step, tuple(str((11 - state) % 10) for state in range(11)))


def iban(body: str) -> Check:
    """ISO 13616: check digits at positions 2 and 3, after the country's two letters.

    ``body`` has the kind of every character from position 4 on: ``n`` a digit, ``a`` a letter, which counts as two
    digits. The number is read from there, then the country, then two zeros.
    """
    weights, power = [0, 0, 0, 0], 1_000_000
    for kind in reversed(body):
        weights.insert(4, power % 97)
        power *= 100 if kind == "a" else 10
    weights[0], weights[1] = 10_000 % 97, 100
    return weighted(weights, 97, lambda rest: f"{98 - rest:02d}")


WORD = 1 << 62
"""Maximum number of texts that one draw distinguishes: a permutation's domain is below 2**63."""


class Code:
    """A code of one width, compiled. Immutable and shared by all plans that use it.

    ``sizes``: the number of texts each draw distinguishes; their product is the number of codes.
    """

    inputs: tuple[str, ...] = ()
    """Names of the values that `bytes` needs of each row."""

    def __init__(self, *parts: CodePart, group_size: int = 0) -> None:
        """``group_size``: a blank after each group of this many characters, independent of the parts."""
        self._every = group_size
        self._layout(parts)
        self._compile_checks()
        self._assign_draws()

    def _layout(self, parts: tuple[CodePart, ...]) -> None:
        offset, position = 0, 0
        fixed: list[str] = []
        self._slots: list[Slot] = []
        self._checks: list[tuple[Check | CheckAutomaton, Slot]] = []
        self._literals: list[tuple[int, int, str]] = []
        for part in parts:
            match part:
                case str():
                    self._literals += [(offset + i, position + i, ch) for i, ch in enumerate(part)]
                    text, characters = part, len(part)
                case Gap(text):
                    characters = 0
                case Run(alphabet, count):
                    self._slots += run_slots(alphabet, count, offset, position)
                    text, characters = "?" * count, count
                case Pick(texts):
                    self._slots.append(pick_slot(texts, offset, position))
                    text = "?" * len(texts[0])
                    characters = len(text)
                case RowInput():
                    self._slots.append(input_slot(part, offset, position))
                    text = "?" * width_of(part)
                    characters = len(text) if part.is_checked else 0
                case Check() | CheckAutomaton():
                    text, characters = "?" * part.width, part.width
                    self._checks.append((part, check_slot(part, offset, position)))
            fixed.append(text)
            offset += len(text)
            position += characters
        text = "".join(fixed)
        if self._every:
            text = " ".join(text[at : at + self._every] for at in range(0, offset, self._every))
        self.width = len(text)
        self._fixed_text = np.frombuffer(text.encode("ascii"), np.uint8)

    def _compile_checks(self) -> None:
        self._starts: list[int] = []
        for number, (check, target) in enumerate(self._checks):
            if isinstance(check, CheckAutomaton):
                self._starts.append(check.start)
                end = 0
                for slot in sorted(
                    (s for s in self._slots if s.offset < target.offset), key=lambda s: s.offset
                ):
                    before = "".join(ch for at, _, ch in self._literals if end <= at < slot.offset)
                    slot.moves[number] = state_transitions(check, slot, before)
                    end = slot.offset
                continue
            start = sum(check.value(position, ch) for _, position, ch in self._literals)
            self._starts.append(start % check.modulus)
            for slot in (*self._slots, *(other for _, other in self._checks if other is not target)):
                slot.add_check(check, number)
            if None in check.outputs:
                self._reserve_digit(check, number)
        self._order = self._check_order()

    def _check_order(self) -> list[int]:
        """Return the checks in order, each after those whose digits it counts."""
        ready: list[int] = []
        waiting = list(range(len(self._checks)))
        while waiting:
            next_check = next(
                i for i in waiting if not any(i in self._checks[j][1].adds for j in waiting if j != i)
            )
            waiting.remove(next_check)
            ready.append(next_check)
        return ready

    def _reserve_digit(self, check: Check, number: int) -> None:
        """Split off the last drawn digit that decides ``check`` and give it nine values: the j-th of those that
        do not lead to the remainder without a check digit."""
        drawn_slots = (i for i in reversed(range(len(self._slots))) if self._slots[i].row_input is None)
        last = next(i for i in drawn_slots if number in self._slots[i].adds)
        slot = self._slots[last]
        if len(slot.cells) > 1:
            pieces = split_last(slot)
            for earlier in slot.adds:
                counting = self._checks[earlier][0]
                assert isinstance(counting, Check)  # machines move, and add nothing
                for piece in pieces:
                    piece.add_check(counting, earlier)
            self._slots[last : last + 1] = pieces
            slot = pieces[1]
        rivals = [(other.adds, other.forbidden[0]) for other in self._slots if other.forbidden is not None]
        if slot.moves or any(number in adds or forbidden in slot.adds for adds, forbidden in rivals):
            raise ValueError("two checks cannot both take values from one digit")
        missing = check.outputs.index(None)
        digit = np.full(check.modulus, slot.size)
        for rest in range(check.modulus):
            hits = np.flatnonzero((slot.adds[number] + rest) % check.modulus == missing)
            digit[rest] = hits[0] if hits.size else slot.size
        slot.forbidden = (number, digit)

    def _assign_draws(self) -> None:
        """Assign the slots to draws of at most `WORD` texts each, and prepare the tables of `bytes`."""
        self._draws: list[list[tuple[Slot, np.ndarray]]] = [[]]
        self.sizes: list[int] = [1]
        self.inputs = tuple(
            dict.fromkeys(slot.row_input.name for slot in self._slots if slot.row_input is not None)
        )
        for slot in self._slots:
            size = (
                slot.size - (slot.forbidden is not None)
                if slot.row_input is None
                else slot.row_input.texts_per_value
            )
            if self.sizes[-1] * size > WORD:
                self._draws.append([])
                self.sizes.append(1)
            # An array without dimensions costs a small call half of what numpy's scalars cost.
            self._draws[-1].append((slot, np.array(size, np.uint64)))
            self.sizes[-1] *= size
        self.space = prod(self.sizes)
        self._sums = {number: self._summands(number) for number in self._order}
        names: list[str] = []
        kinds: list[str] = []
        offsets: list[int] = []
        for slot in (*self._slots, *(target for _, target in self._checks)):
            for at, kind, table in byte_stores(slot, self._every):
                slot.writers.append((f"{at}", table))
                names, kinds, offsets = [*names, f"{at}"], [*kinds, kind], [*offsets, at]
        self._record = np.dtype(
            {"names": names, "formats": kinds, "offsets": offsets, "itemsize": self.width}
        )

    def _summands(self, number: int) -> list[tuple[Slot, np.ndarray]]:
        """What each slot adds to a check. The first table includes the fixed characters, and the check's own
        tables are long enough for sums that are not reduced."""
        check, target = self._checks[number]
        if isinstance(check, CheckAutomaton):
            moving = sorted(
                (slot for slot in self._slots if number in slot.moves), key=lambda slot: slot.offset
            )
            return [(slot, slot.moves[number]) for slot in moving]
        slots = [s for s in (*self._slots, *(other for _, other in self._checks)) if number in s.adds]
        slots.sort(key=lambda slot: slot.forbidden is not None)
        tables = [slot.adds[number] for slot in slots]
        tables[0] = tables[0] + self._starts[number]
        repeat = sum(int(table.max()) for table in tables) // check.modulus + 1
        target.spellings = np.tile(target.spellings, (repeat, 1))
        target.adds = {other: np.tile(table, repeat) for other, table in target.adds.items()}
        return list(zip(slots, tables, strict=True))

    def bytes(self, draws: list[np.ndarray], inputs: Mapping[str, np.ndarray] | None = None) -> np.ndarray:
        """``uint8[n, width]``: the codes of the given numbers, one ``uint64[n]`` below each of ``sizes``. ``inputs``
        has an ``int64[n]`` for each name of `inputs`."""
        out = np.empty((draws[0].size, self.width), np.uint8)
        out[:] = self._fixed_text
        records = out.view(self._record)[:, 0]
        indices: dict[Slot, np.ndarray] = {}
        deferred: list[Slot] = []
        for slots, rest in zip(self._draws, draws, strict=True):
            for place in range(len(slots) - 1, -1, -1):
                slot, size = slots[place]
                if place:
                    quotient = rest // size
                    index = rest - quotient * size
                    rest = quotient
                else:
                    index = rest
                index = index.view(np.int64)
                if slot.row_input is not None:
                    assert inputs is not None  # callers of codes with such parts give them
                    index = inputs[slot.row_input.name] * slot.row_input.texts_per_value + index
                indices[slot] = index
                if slot.forbidden is not None:
                    deferred.append(slot)
                    continue
                for name, table in slot.writers:
                    records[name] = table.take(index)
        for slot in deferred:
            assert slot.forbidden is not None
            number, digit = slot.forbidden
            counting = self._checks[number][0]
            assert isinstance(counting, Check)
            rest = self._sum(number, indices, leave=slot) % counting.modulus
            indices[slot] = indices[slot] + (indices[slot] >= digit.take(rest))
            for name, table in slot.writers:
                records[name] = table.take(indices[slot])
        for number in self._order:
            check, target = self._checks[number]
            index = (
                self._sum(number, indices) if isinstance(check, Check) else self._last_state(number, indices)
            )
            indices[target] = index
            for name, table in target.writers:
                records[name] = table.take(index)
        return out

    def _sum(self, number: int, indices: dict[Slot, np.ndarray], leave: Slot | None = None) -> np.ndarray:
        total: np.ndarray | None = None
        for slot, table in self._sums[number]:
            if slot is leave:
                continue
            part = table.take(indices[slot])
            total = part if total is None else np.add(total, part, out=total)
        assert total is not None  # a check counts one slot at least
        return total

    def _last_state(self, number: int, indices: dict[Slot, np.ndarray]) -> np.ndarray:
        state: int | np.ndarray = self._starts[number]
        for slot, table in self._sums[number]:
            state = table.take(state * slot.size + indices[slot])
        assert isinstance(state, np.ndarray)  # an automaton reads one slot at least
        return state

    def text(self, draws: list[np.ndarray], inputs: Mapping[str, np.ndarray] | None = None) -> pa.Array:
        """Like `bytes`, as ``string[n]``."""
        return strings_from_matrix(self.bytes(draws, inputs))

    def draw(self, source: RandomStream) -> list[np.ndarray]:
        """Uniform draws for the rows of ``source``."""
        return [source.below(size, salt) for salt, size in enumerate(self.sizes)]

    def draw_unique(self, source: RandomStream) -> list[np.ndarray]:
        """Draws that never repeat: the first number is a permutation of the rows."""
        return [
            source.permuted(self.sizes[0]),
            *(source.below(s, i) for i, s in enumerate(self.sizes[1:], 1)),
        ]

    @property
    def capacity(self) -> int:
        """Maximum number of rows of `draw_unique`."""
        return self.sizes[0]

    @property
    def check_position(self) -> int | None:
        """Return the position of the last character of a check that no other check counts; None if there is no
        check."""
        if not self._checks:
            return None
        check, target = self._checks[self._order[-1]]
        at = target.offset + check.width - 1
        return at + at // self._every if self._every else at


def texts_by_code(
    codes: Sequence[Code],
    code_indices: np.ndarray,
    source: RandomStream,
    unique: bool = False,
    inputs: Mapping[str, np.ndarray] | None = None,
) -> pa.Array:
    """``string[n]``: for each row a text of ``codes[which]``. Unique if each code is and no two codes share a text;
    every row is then below the smallest capacity."""
    order = np.argsort(code_indices, kind="stable")
    ends = np.cumsum(np.bincount(code_indices, minlength=len(codes)))
    bits = [source.bits(salt) for salt in range(max((len(code.sizes) for code in codes), default=0))]
    pieces, start = [], 0
    for code, end in zip(codes, ends.tolist(), strict=True):
        if end > start:
            positions = order[start:end]
            numbers = [
                engine_random.below(random[positions], size)
                for random, size in zip(bits, code.sizes, strict=False)
            ]
            if unique:
                numbers[0] = RandomStream(source.key, source.rows[positions]).permuted(code.sizes[0])
            own = None if inputs is None else {name: values[positions] for name, values in inputs.items()}
            pieces.append(code.text(numbers, own))
            start = end
    if not pieces:
        return pa.array([], pa.string())
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    return pa.concat_arrays(pieces).take(pa.array(place))


def texts_by_code_factory(
    create_code: Callable[[int], Code],
    code_numbers: np.ndarray,
    source: RandomStream,
    unique: bool = False,
    inputs: Mapping[str, np.ndarray] | None = None,
) -> pa.Array:
    """Like `texts_by_code`, with codes created on demand: ``create_code`` returns the code of a number in
    ``code_numbers``."""
    present, places = np.unique(code_numbers, return_inverse=True)
    return texts_by_code(
        [create_code(number) for number in present.tolist()], places.astype(np.int64), source, unique, inputs
    )


class CodeType(FieldType):
    """A field type whose values are the texts of one `Code`, set by `use`."""

    dtype = pa.string()
    code: Code

    def use(self, code: Code) -> None:
        """Use ``code`` for the values of the column."""
        self.code = code
        self.max_length = code.width

    def fill(self, context: ColumnContext) -> pa.Array:
        return self.code.text(self.code.draw(context))

    def distinct_count(self) -> int | None:
        return self.code.capacity

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.code.text(self.code.draw_unique(context))


def strings_from_matrix(matrix: np.ndarray) -> pa.Array:
    """``uint8[n, width]`` of ASCII as ``string[n]``, without a copy."""
    n, width = matrix.shape
    return pa.StringArray.from_buffers(n, _offsets(n, width), pa.py_buffer(matrix))


@lru_cache(maxsize=256)
def _offsets(n: int, width: int) -> pa.Buffer:
    return pa.py_buffer(np.arange(0, (n + 1) * width, width, dtype=np.int32))
