"""Inject invalid data into the rows of a request: select cells, and replace their values in the columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from webapp.engine import budget, mixed_columns, postprocess
from webapp.engine import random as engine_random
from webapp.engine.budget import Meter
from webapp.engine.invalid_data.abilities import decoded
from webapp.engine.invalid_data.plan import InvalidDataPlan, InvalidField
from webapp.engine.invalid_data.settings import KINDS, Kind

if TYPE_CHECKING:
    from webapp.engine.blocks import Block, BoundPlan

_KIND_SALT, _FIELD_SALT, _INSTEAD_SALT, _EARLIER_SALT, _VALUE_SALT = 1, 2, 3, 4, 5
_NEAR: Final = 1000  # chosen: a duplicate repeats one of this many valid rows before it


@dataclass(frozen=True, slots=True)
class InvalidCells:
    """The invalid cells of one field among some rows: their positions and, for each, the number of its kind in
    `KINDS`."""

    places: np.ndarray
    kinds: np.ndarray


class InvalidShare:
    """Which rows are bad under one key, and of which kind. ``kinds`` are those that it deals out."""

    def __init__(self, key: np.uint64, share: tuple[int, int], kinds: Sequence[Kind]) -> None:
        self.key, self.share = key, share
        self._numbers = np.array([KINDS.index(kind) for kind in kinds], np.int64)
        self._duplicate = KINDS.index("duplicate") if "duplicate" in kinds else None
        self._others = np.array([one for one in self._numbers if one != self._duplicate], np.int64)

    def of(self, rows: np.ndarray) -> InvalidCells:
        """Return the invalid cells among ``rows``. A duplicate without an earlier valid row gets another kind; if there
        is no other kind, the row stays valid."""
        places = np.flatnonzero(engine_random.blanks(self.key, rows, *self.share))
        bad = rows[places]
        kinds = self._numbers[self.below(bad, len(self._numbers), _KIND_SALT)]
        if self._duplicate is None or not bad.size:
            return InvalidCells(places, kinds)
        alone = (kinds == self._duplicate) & (self._before(bad) == 0)
        if not alone.any():
            return InvalidCells(places, kinds)
        if not self._others.size:
            return InvalidCells(places[~alone], kinds[~alone])
        instead = self._others[self.below(bad, len(self._others), _INSTEAD_SALT)]
        return InvalidCells(places, np.where(alone, instead, kinds))

    def below(self, rows: np.ndarray, n: int, salt: int) -> np.ndarray:
        """Even draws from 0 to n - 1 for some rows, as ``int64``."""
        return engine_random.below(self.bits(rows, salt), n).view(np.int64)

    def bits(self, rows: np.ndarray, salt: int) -> np.ndarray:
        """Random bits for some rows."""
        return engine_random.bits(engine_random.derive(self.key, salt), rows)

    def earlier(self, rows: np.ndarray) -> np.ndarray:
        """Return, for each of some invalid rows, an earlier row that is valid; there always is one."""
        before = self._before(rows)
        near = np.minimum(before, _NEAR).view(np.uint64)
        back = engine_random.below_each(self.bits(rows, _EARLIER_SALT), near).view(np.int64)
        return engine_random.filled_row(self.key, (before - 1 - back).view(np.uint64), *self.share)

    def _before(self, rows: np.ndarray) -> np.ndarray:
        return engine_random.filled_before(self.key, rows, *self.share)


@dataclass(frozen=True, slots=True)
class CellContext:
    """The context of functions that create invalid values."""

    bound: BoundPlan
    column: str
    shares: InvalidShare
    rows: np.ndarray

    @property
    def state(self) -> Any:
        """The result of the preparation by the field's type for this request."""
        return self.bound.states[self.column]

    def earlier(self, bits: np.ndarray) -> pa.Array:
        """The original value of an earlier row for each cell."""
        return decoded(self.bound.at(self.shares.earlier(self.rows)).column(self.column))


class InvalidDataInjector:
    """Injects invalid values into a bound template. Fields with an override are not changed."""

    def __init__(self, bad: InvalidDataPlan, bound: BoundPlan) -> None:
        self._bad, self._bound = bad, bound
        self._fields = {name: one for name, one in bad.fields.items() if name not in bound.overrides}
        seed = bound.env.seed
        self._own = {
            name: InvalidShare(
                engine_random.key(seed, "invalid", one.column.spec.id or f"path:{name}"),
                one.share,
                tuple(one.makes),
            )
            for name, one in self._fields.items()
            if one.share is not None
        }
        self._names = list(bad.fields)
        self._table = bad.kinds() if bad.share is not None else {}
        self._all = (
            InvalidShare(engine_random.key(seed, "invalid"), bad.share, tuple(self._table))
            if bad.share is not None and self._table
            else None
        )

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the types of the columns with invalid values; ``schema`` is that of the original columns."""
        given = InvalidDataPlan(self._fields, None).schema(schema)
        return schema if given == schema else given

    @cached_property
    def _candidates(self) -> np.ndarray:
        """``int64[kinds, fields]``: for each kind, the numbers of the fields that support it."""
        most = max(map(len, self._table.values()))
        candidates = np.full((len(KINDS), most), -1)
        for kind, names in self._table.items():
            candidates[KINDS.index(kind), : len(names)] = [self._names.index(name) for name in names]
        return candidates

    def cells(self, rows: np.ndarray) -> dict[str, InvalidCells]:
        """Return the invalid cells of some rows, by field. They include cells whose original value is null, which stay
        null."""
        found = {name: shares.of(rows) for name, shares in self._own.items()}
        if self._all is None:
            return found
        cells = self._all.of(rows)
        sizes = (self._candidates >= 0).sum(axis=1)[cells.kinds]
        drawn = engine_random.below_each(
            self._all.bits(rows[cells.places], _FIELD_SALT), sizes.astype(np.uint64)
        ).view(np.int64)
        field = self._candidates[cells.kinds, drawn]
        for number, name in enumerate(self._names):
            if name in self._fields and name not in self._own:
                here = field == number
                found[name] = InvalidCells(cells.places[here], cells.kinds[here])
        return found

    def has(self, name: str) -> bool:
        """Return whether a field may have invalid cells."""
        return name in self._fields

    def bad_rows(self, rows: np.ndarray, names: Collection[str]) -> np.ndarray:
        """Return ``bool[n]``: the rows with an invalid cell in one of the fields."""
        made = budget.in_parts(lambda some: pa.array(self._bad_rows(some, names)), rows)
        return made.to_numpy(zero_copy_only=False)

    def _bad_rows(self, rows: np.ndarray, names: Collection[str]) -> np.ndarray:
        found = np.zeros(rows.size, np.bool_)
        for name, cells, _ in self._bad_cells(rows):
            if name in names:
                found[cells.places] = True
        return found

    def _bad_cells(self, rows: np.ndarray) -> Iterator[tuple[str, InvalidCells, pa.Array]]:
        """Yield fields with their invalid cells and original values, without cells whose original value is null. Raises
        `TooLarge` if the original values exceed the budget of a block."""
        meter = Meter()
        for name, cells in self.cells(rows).items():
            if not cells.places.size:
                continue
            good = self._bound.at(rows[cells.places], meter).column(name)
            cells, good = _filled(cells, good)
            if cells.places.size:
                yield name, cells, good

    def columns(self, block: Block, columns: dict[str, pa.Array]) -> list[pa.Array]:
        """Return some columns of a block, by name, with invalid values injected."""
        found = self.cells(block.rows)
        made = []
        for name, column in columns.items():
            if name in self._fields:
                column = self._with_invalid_values(name, column, block.rows, found[name])
                block.meter.add(budget.size_of(column))
            made.append(column)
        return made

    def column(self, block: Block, name: str, column: pa.Array) -> pa.Array:
        """Return one column of a block with invalid values injected."""
        return self.columns(block, {name: column})[0]

    def _with_invalid_values(
        self, name: str, column: pa.Array, rows: np.ndarray, cells: InvalidCells
    ) -> pa.Array:
        field = self._fields[name]
        cells, good = _filled(cells, column.take(pa.array(cells.places)))
        if not cells.places.size:
            return mixed_columns.mixed(decoded(column)) if field.mixed else column
        if pa.types.is_nested(field.column.dtype):  # these can be missing, and nothing else
            mask = np.zeros(len(column), np.bool_)
            mask[cells.places] = True
            return postprocess.blanked(column, mask)
        parts = list(self._made(field, good, rows[cells.places], cells.kinds))
        return _placed(decoded(column), cells.places, parts, field.mixed)

    def _made(
        self, field: InvalidField, good: pa.Array, rows: np.ndarray, kinds: np.ndarray
    ) -> Iterator[tuple[np.ndarray, pa.Array | list[str]]]:
        """Yield positions of invalid cells and their values, kind by kind."""
        shares = self._own.get(field.name) or self._all
        assert shares is not None
        bits = shares.bits(rows, _VALUE_SALT)
        for kind, make in field.makes.items():
            which = np.flatnonzero(kinds == KINDS.index(kind))
            if which.size:
                here = CellContext(self._bound, field.name, shares, rows[which])
                yield which, make(here, good.take(pa.array(which)).to_pylist(), bits[which])

    def answers(self, rows: np.ndarray) -> list[tuple[str, InvalidCells, pa.Array]]:
        """The invalid cells of some rows: field, positions and kinds, original values."""
        return list(self._bad_cells(rows))


def _filled(cells: InvalidCells, good: pa.Array) -> tuple[InvalidCells, pa.Array]:
    """Return the cells whose original value is not null."""
    if not good.null_count and not (pa.types.is_dictionary(good.type) and good.dictionary.null_count):
        return cells, good
    kept = np.flatnonzero(decoded(good).is_valid().to_numpy(zero_copy_only=False))
    return InvalidCells(cells.places[kept], cells.kinds[kept]), good.take(pa.array(kept))


def _placed(
    column: pa.Array, places: np.ndarray, parts: Sequence[tuple[np.ndarray, Any]], is_mixed: bool
) -> pa.Array:
    """Return ``column`` with the invalid values at their positions; a mixed column if some of them are text and its
    type is not."""
    order = np.argsort(np.concatenate([which for which, _ in parts]))
    dtype = column.type
    own, texts = [], []
    for which, made in parts:
        is_text = isinstance(made, list)
        plain = pa.string() if not is_mixed else dtype
        own.append(pa.array(made, plain) if is_text and not is_mixed else made)
        if is_mixed:
            own[-1] = pa.nulls(which.size, dtype) if is_text else made
            texts.append(pa.array(made, pa.string()) if is_text else pa.nulls(which.size, pa.string()))
    mask = np.zeros(len(column), np.bool_)
    mask[places] = True
    replaced = pc.replace_with_mask(column, pa.array(mask), _joined(own, order))
    if not is_mixed:
        return replaced
    nothing = pa.nulls(len(column), pa.string())
    return mixed_columns.mixed(replaced, pc.replace_with_mask(nothing, pa.array(mask), _joined(texts, order)))


def _joined(parts: Sequence[pa.Array], order: np.ndarray) -> pa.Array:
    return pa.concat_arrays(parts).take(pa.array(order))
