"""Texts of one width: account numbers, card numbers, addresses of networks, national numbers, article numbers.

A `Code` is a row of parts: fixed characters, characters drawn from an alphabet, and check digits that follow from
the others. All texts of a block are written as one matrix of bytes. Neighbouring drawn characters are drawn and
written together (up to four digits at once) from a table of their spellings, and the same tables hold what they
add to each check digit, so a checksum costs a look-up for every four digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from webapp.engine import cells as cellular
from webapp.engine.fields.base import FieldType
from webapp.engine.fields.code_parts import (
    Check,
    Gap,
    Machine,
    Part,
    Pick,
    Run,
    Slot,
    check_slot,
    moves,
    pick_slot,
    run_slots,
    split_last,
    writers,
)

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Draws

WORD = 1 << 62
"""Most texts that one draw tells apart: the permutation takes domains below 2**63."""


class Code:
    """A code of one width, compiled. Immutable and shared by all plans that use it.

    ``sizes``: the number of texts each draw tells apart; their product is the number of codes.
    """

    def __init__(self, *parts: Part, every: int = 0) -> None:
        """``every``: a blank after so many characters, for groups that the parts do not keep to."""
        self._every = every
        self._layout(parts)
        self._compile_checks()
        self._group()

    def _layout(self, parts: tuple[Part, ...]) -> None:
        offset, position = 0, 0
        fixed: list[str] = []
        self._slots: list[Slot] = []
        self._checks: list[tuple[Check | Machine, Slot]] = []
        self._literals: list[tuple[int, int, str]] = []
        for part in parts:
            match part:
                case str():
                    self._literals += [(offset + i, position + i, ch) for i, ch in enumerate(part)]
                    text, counted = part, len(part)
                case Gap(text):
                    counted = 0
                case Run(alphabet, count):
                    self._slots += run_slots(alphabet, count, offset, position)
                    text, counted = "?" * count, count
                case Pick(texts):
                    self._slots.append(pick_slot(texts, offset, position))
                    text = "?" * len(texts[0])
                    counted = len(text)
                case Check() | Machine():
                    text, counted = "?" * part.width, part.width
                    self._checks.append((part, check_slot(part, offset, position)))
            fixed.append(text)
            offset += len(text)
            position += counted
        text = "".join(fixed)
        if self._every:
            text = " ".join(text[at : at + self._every] for at in range(0, offset, self._every))
        self.width = len(text)
        self._blank = np.frombuffer(text.encode("ascii"), np.uint8)

    def _compile_checks(self) -> None:
        self._starts: list[int] = []
        for number, (check, target) in enumerate(self._checks):
            if isinstance(check, Machine):
                self._starts.append(check.start)
                end = 0
                for slot in sorted(
                    (s for s in self._slots if s.offset < target.offset), key=lambda s: s.offset
                ):
                    before = "".join(ch for at, _, ch in self._literals if end <= at < slot.offset)
                    slot.moves[number] = moves(check, slot, before)
                    end = slot.offset
                continue
            start = sum(check.value(position, ch) for _, position, ch in self._literals)
            self._starts.append(start % check.modulus)
            for slot in (*self._slots, *(other for _, other in self._checks if other is not target)):
                slot.count(check, number)
            if None in check.outputs:
                self._forbid(check, number)
        self._order = self._in_order()

    def _in_order(self) -> list[int]:
        """The checks, each after those whose digits it counts."""
        ready: list[int] = []
        waiting = list(range(len(self._checks)))
        while waiting:
            free = next(
                i for i in waiting if not any(i in self._checks[j][1].adds for j in waiting if j != i)
            )
            waiting.remove(free)
            ready.append(free)
        return ready

    def _forbid(self, check: Check, number: int) -> None:
        """Splits off the last drawn digit that decides ``check`` and leaves it nine values: the j-th of those that
        do not lead to the remainder without a check digit."""
        last = next(i for i in reversed(range(len(self._slots))) if number in self._slots[i].adds)
        slot = self._slots[last]
        if len(slot.cells) > 1:
            pieces = split_last(slot)
            for earlier in slot.adds:
                counting = self._checks[earlier][0]
                assert isinstance(counting, Check)  # machines move, and add nothing
                for piece in pieces:
                    piece.count(counting, earlier)
            self._slots[last : last + 1] = pieces
            slot = pieces[1]
        rivals = [(other.adds, other.forbidden[0]) for other in self._slots if other.forbidden is not None]
        if slot.moves or any(number in adds or forbidden in slot.adds for adds, forbidden in rivals):
            raise ValueError("two checks cannot both take values from one digit")
        bad = check.outputs.index(None)
        digit = np.full(check.modulus, slot.size)
        for rest in range(check.modulus):
            hits = np.flatnonzero((slot.adds[number] + rest) % check.modulus == bad)
            digit[rest] = hits[0] if hits.size else slot.size
        slot.forbidden = (number, digit)

    def _group(self) -> None:
        """Deals the slots out to draws of at most `WORD` texts each, and readies what `bytes` writes with."""
        self._draws: list[list[tuple[Slot, np.ndarray]]] = [[]]
        self.sizes: list[int] = [1]
        for slot in self._slots:
            size = slot.size - (slot.forbidden is not None)
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
            for at, kind, table in writers(slot, self._every):
                slot.writers.append((f"{at}", table))
                names, kinds, offsets = [*names, f"{at}"], [*kinds, kind], [*offsets, at]
        self._record = np.dtype(
            {"names": names, "formats": kinds, "offsets": offsets, "itemsize": self.width}
        )

    def _summands(self, number: int) -> list[tuple[Slot, np.ndarray]]:
        """What each slot adds to a check. The fixed characters' share lies in the first table, and the check's own
        tables are long enough for sums that are not reduced."""
        check, target = self._checks[number]
        if isinstance(check, Machine):
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

    def bytes(self, draws: list[np.ndarray]) -> np.ndarray:
        """``uint8[n, width]``: the codes of the given numbers, one ``uint64[n]`` below each of ``sizes``."""
        out = np.empty((draws[0].size, self.width), np.uint8)
        out[:] = self._blank
        records = out.view(self._record)[:, 0]
        indices: dict[Slot, np.ndarray] = {}
        late: list[Slot] = []
        for slots, rest in zip(self._draws, draws, strict=True):
            for place in range(len(slots) - 1, -1, -1):
                slot, size = slots[place]
                if place:
                    quotient = rest // size
                    index = rest - quotient * size
                    rest = quotient
                else:
                    index = rest
                indices[slot] = index = index.view(np.int64)
                if slot.forbidden is not None:
                    late.append(slot)
                    continue
                for name, table in slot.writers:
                    records[name] = table.take(index)
        for slot in late:
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
            index = self._sum(number, indices) if isinstance(check, Check) else self._walk(number, indices)
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

    def _walk(self, number: int, indices: dict[Slot, np.ndarray]) -> np.ndarray:
        state: int | np.ndarray = self._starts[number]
        for slot, table in self._sums[number]:
            state = table.take(state * slot.size + indices[slot])
        assert isinstance(state, np.ndarray)  # an automaton reads one slot at least
        return state

    def text(self, draws: list[np.ndarray]) -> pa.Array:
        """Like `bytes`, as ``string[n]``."""
        return text_of(self.bytes(draws))

    def draw(self, source: Draws) -> list[np.ndarray]:
        """Even draws for the rows of ``source``."""
        return [source.below(size, salt) for salt, size in enumerate(self.sizes)]

    def draw_unique(self, source: Draws) -> list[np.ndarray]:
        """Draws that never repeat: the first number is a permutation of the rows."""
        return [
            source.permuted(self.sizes[0]),
            *(source.below(s, i) for i, s in enumerate(self.sizes[1:], 1)),
        ]

    @property
    def capacity(self) -> int:
        """How many rows `draw_unique` serves."""
        return self.sizes[0]

    @property
    def check_place(self) -> int | None:
        """Where the last character of a check stands that no other check counts; None where there is no check."""
        if not self._checks:
            return None
        check, target = self._checks[self._order[-1]]
        at = target.offset + check.width - 1
        return at + at // self._every if self._every else at


def mixed(codes: Sequence[Code], which: np.ndarray, source: Draws, unique: bool = False) -> pa.Array:
    """``string[n]``: for each row a text of ``codes[which]``. Unique if each code is and no two codes share a text;
    every row is then below the least capacity."""
    from webapp.engine.block import Draws

    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=len(codes)))
    bits = [source.bits(salt) for salt in range(max(len(code.sizes) for code in codes))]
    pieces, start = [], 0
    for code, end in zip(codes, ends.tolist(), strict=True):
        if end > start:
            here = order[start:end]
            numbers = [
                cellular.below(random[here], size) for random, size in zip(bits, code.sizes, strict=False)
            ]
            if unique:
                numbers[0] = Draws(source.key, source.rows[here]).permuted(code.sizes[0])
            pieces.append(code.text(numbers))
            start = end
    if not pieces:
        return pa.array([], pa.string())
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    return pa.concat_arrays(pieces).take(pa.array(place))


class CodeType(FieldType):
    """A field type whose values are the texts of one `Code`, set by `use`."""

    dtype = pa.string()
    code: Code

    def use(self, code: Code) -> None:
        """Takes ``code`` as what the column prints."""
        self.code = code
        self.max_length = code.width

    def fill(self, cells: Cells) -> pa.Array:
        return self.code.text(self.code.draw(cells))

    def space(self) -> int | None:
        return self.code.capacity

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.code.text(self.code.draw_unique(cells))


def text_of(matrix: np.ndarray) -> pa.Array:
    """``uint8[n, width]`` of ASCII as ``string[n]``, without a copy."""
    n, width = matrix.shape
    return pa.StringArray.from_buffers(n, _offsets(n, width), pa.py_buffer(matrix))


@lru_cache(maxsize=256)
def _offsets(n: int, width: int) -> pa.Buffer:
    return pa.py_buffer(np.arange(0, (n + 1) * width, width, dtype=np.int32))
