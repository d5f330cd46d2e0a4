"""Filling blocks: a `Plan` bound to a seed makes columns for any rows, in any order."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.engine import budget, capacity, layers, leaks, postprocess, reach
from webapp.engine import cells as cellular
from webapp.engine.bad.spoiler import Spoiler
from webapp.engine.budget import Meter, TooLarge
from webapp.engine.compiler import PARENT
from webapp.engine.errors import SpecError
from webapp.engine.fields.base import RELATION
from webapp.engine.fields.existing import Existing
from webapp.engine.fields.relation_group import Relation
from webapp.engine.kinsfolk import Kinsfolk
from webapp.engine.layers import Column, Layer, Relative
from webapp.engine.outside import Recorder
from webapp.engine.plan import Plan
from webapp.errors import Fault, did_you_mean

_PERMUTATION_SALT = -101


@dataclass(frozen=True, slots=True)
class Env:
    """What a request fixes beside the plan: ``now`` is aware, in UTC; ``locale`` only where one was given."""

    seed: str
    now: datetime
    locale: str | None = None
    anchored: bool = False
    """``now`` is the template's own anchor: the templates it relates to then have theirs."""
    recorder: Recorder | None = None
    """Who takes down which questions the rows ask of the outside, in a dry run."""


class Bound:
    """A plan with keys: an immutable source of blocks for one seed, now and set of overrides.

    Raises `SpecError` where an override cannot be honoured.
    """

    def __init__(self, plan: Plan, env: Env, overrides: dict[str, Any] | None = None) -> None:
        self.plan, self.env, self.layer, self.name = plan, env, plan.layer, plan.spec.name
        self.overrides = self._fixed(overrides or {})
        self.warnings = list(plan.warnings)
        self.keys: dict[str, np.uint64] = {}
        self.states: dict[str, Any] = {}
        self.relatives = self._related()
        self._bind(plan.layer, "")
        self.schema = self._schema() if self.overrides else plan.layer.schema
        self.block_rows = max(1, min(limits.BLOCK_ROWS, limits.BLOCK_LEAVES // plan.leaves))
        self.watch = leaks.watch_of(self) if plan.taken is not None else None
        self.bad = Spoiler(plan.layer.bad, self) if plan.layer.bad is not None else None
        if self.bad is not None:
            self.schema = self.bad.schema(self.schema)

    def _fixed(self, overrides: dict[str, Any]) -> dict[str, pa.Array]:
        columns = self.plan.layer.columns
        faults = [
            Fault(
                f"overrides.{name}",
                "unknown_field",
                f'There is no field "{name}".',
                did_you_mean(name, columns),
            )
            for name in overrides
            if name not in columns
        ]
        if faults:
            raise SpecError(faults)
        fixed = {name: postprocess.fixed(value, columns[name].dtype) for name, value in overrides.items()}
        faults = [
            Fault(
                f"overrides.{name}",
                "wrong_type",
                reason,
                f'Give another value, or override "{column.name}" too.',
            )
            for column in layers.every(self.plan.layer)
            if column.name not in fixed or column is not columns.get(column.name)
            for name in set(column.type.needs).intersection(fixed)
            if (reason := column.type.refuses(name, fixed[name]))
        ]
        if faults:
            raise SpecError(faults)
        return fixed

    def _related(self) -> dict[str, Bound]:
        """The templates around this one under the same seed, by their addresses; ``""`` is this one."""
        found = {"": self}
        for address, relative in self.plan.relatives.items():
            now = relative.anchor if self.env.anchored and relative.anchor else self.env.now
            seed = f"{self.env.seed}\0{relative.salt}" if relative.salt else self.env.seed
            found[address] = _Relative(
                relative, Env(seed, now, None, self.env.anchored, self.env.recorder), found
            )
        return found

    def _schema(self) -> pa.Schema:
        schema = self.plan.layer.schema
        for index, field in enumerate(schema):
            fixed = self.overrides.get(field.name)
            if fixed is not None:
                schema = schema.set(index, pa.field(field.name, fixed.type))
        return schema

    def _bind(self, layer: Layer, prefix: str) -> None:
        for (group, kind), compiled in layer.groups.items():
            self.keys[f"{prefix}group:{group}:{kind}"] = compiled.key(self.env.seed, prefix)
            fixed = {} if prefix else self._fixed_in(compiled.fields)
            state, unmet = compiled.prepare(self.env, fixed)
            self.states[f"{prefix}group:{group}:{kind}"] = state
            self.warnings.extend(unmet)
        for name, column in layer.columns.items():
            path = f"{prefix}{name}"
            spec = column.spec
            self.keys[path] = cellular.key(self.env.seed, spec.id or f"path:{path}")
            self.states[path] = column.type.prepare(self.env)
            inner = getattr(column.type, "layer", None)
            if inner is not None:
                self._bind(inner, f"{path}.")
        for made, _ in layer.together.values():
            place = f"{prefix}together:{made.name}"
            self.keys[place] = made.key(self.env.seed, prefix)
            self.states[place] = made.bound(layer, lambda name: self.states[f"{prefix}{name}"])

    def _fixed_in(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: self.overrides[name][0].as_py() for name in names if name in self.overrides}

    def check(self, offset: int, count: int) -> None:
        """Refuses, before the first row, what cannot be unique over ``count`` rows after ``offset``."""
        faults = capacity.of_source(self, offset, count)
        capacity.check(self, self.plan.layer, "", offset, count, faults)
        if len(self.relatives) > 1:
            faults += reach.faults(self, offset + count)
        if faults:
            raise SpecError(faults)

    def lacking(self, count: int) -> list[Fault]:
        """What `check` would say of the first ``count`` rows, the other templates apart."""
        faults: list[Fault] = []
        capacity.check(self, self.layer, "", 0, count, faults)
        return faults

    def block(self, start: int, count: int) -> list[pa.Array]:
        """The visible columns of rows ``start`` to ``start + count - 1``, in schema order. Raises `TooLarge` where
        they exceed the budget of a block."""
        made = Block(self, self.plan.layer, np.arange(start, start + count, dtype=np.uint64))
        columns = {name: made.column(name) for name in self.plan.layer.visible}
        if self.watch is not None:
            self.watch.check(made.rows, columns)
        return list(columns.values()) if self.bad is None else self.bad.columns(made, columns)

    def at(self, rows: np.ndarray, meter: Meter | None = None) -> Block:
        """The template's fields at any rows (``uint64[n]``), made as they are asked for. ``meter`` is that of the
        block that keeps them; without one they have a budget of their own."""
        return Block(self, self.layer, rows, meter=meter)

    def blocks(self, offset: int, count: int) -> Iterator[list[pa.Array]]:
        """The rows from ``offset`` on, block by block: a small first one, then full ones, or as many rows as fit the
        budget of a block. Raises `TooLarge` where a single row exceeds it."""
        row, end = offset, offset + count
        size, growth = min(limits.FIRST_BLOCK_ROWS, self.block_rows), limits.BLOCK_GROWTH
        while row < end:
            size = min(size, end - row)
            try:
                columns = self.block(row, size)
            except TooLarge as error:
                if size == 1:
                    raise TooLarge(error.size, error.path) from None
                size, growth = max(1, size // limits.BLOCK_STEP), 2
                continue
            fitting = 3 * limits.BLOCK_BYTES // 4 * size // max(1, sum(map(budget.size_of, columns)))
            yield columns
            del columns  # else it is held while the next one is made
            row += size
            size = max(1, min(self.block_rows, size * growth, fitting))


class _Relative(Bound):
    """Another template, whose rows are made where a relation reads them."""

    def __init__(self, relative: Relative, env: Env, relatives: dict[str, Bound]) -> None:
        self.layer, self.env, self.relatives, self.name = relative.layer, env, relatives, relative.name
        self.overrides: dict[str, pa.Array] = {}
        self.warnings: list[Fault] = []
        self.keys, self.states = {}, {}
        self._bind(relative.layer, "")


class Block:
    """A vector of rows being filled. Columns and groups are made once and kept while the block lives."""

    __slots__ = (
        "__weakref__",
        "_columns",
        "_elsewhere",
        "_first",
        "_groups",
        "_kin",
        "bound",
        "layer",
        "meter",
        "owner",
        "parent",
        "prefix",
        "rows",
    )

    def __init__(
        self,
        bound: Bound,
        layer: Layer,
        rows: np.ndarray,
        prefix: str = "",
        parent: Block | None = None,
        owner: np.ndarray | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.bound, self.layer, self.rows, self.prefix = bound, layer, rows, prefix
        self.parent, self.owner = parent, owner
        self.meter = Meter() if meter is None else meter
        self._columns: dict[str, pa.Array] = {}
        self._groups: dict[tuple[str, str], Any] = {}
        self._kin: dict[str, Kinsfolk] = {}
        self._elsewhere: dict[bytes, Block] = {}
        self._first: weakref.ref[Block] | None = None

    def at_rows(self, rows: np.ndarray, keep: bool = True) -> Block:
        """The same fields at other rows (``uint64[k]``, in any order), for columns that read rows before their own.

        The first block keeps those that are reached from it and from one another, so that none is made twice; with
        ``keep`` false the answer is for this call alone. Elements of arrays have no rows of their own to go by: the
        compiler refuses what would ask.
        """
        if not keep:
            return self._copy(rows, False)
        first = (self._first and self._first()) or self
        place = rows.tobytes()
        if place == first.rows.tobytes():
            return first
        made = first._elsewhere.get(place)
        if made is None:
            made = first._elsewhere[place] = first._copy(rows, True)
            made._first = weakref.ref(
                first
            )  # a strong one would close a circle, which only the collector frees
        return made

    def _copy(self, rows: np.ndarray, keep: bool) -> Block:
        around = None if self.parent is None else self.parent.at_rows(rows, keep)
        return Block(self.bound, self.layer, rows, self.prefix, around, meter=self.meter if keep else None)

    def column(self, name: str) -> pa.Array:
        """The finished column ``name``: one of this level, else of the level around it."""
        made = self._columns.get(name)
        if made is None:
            compiled = self.layer.columns.get(name)
            before = self.meter.used
            try:
                made = (
                    self._from_parent(name) if compiled is None else self._make(compiled, self.prefix + name)
                )
                size = budget.size_of(made)
                # Objects and arrays are made of columns that are counted already.
                self.meter.add(max(0, size - (self.meter.used - before)) if made.type.num_fields else size)
            except TooLarge as error:
                path = name if compiled is None else compiled.spec.path
                raise TooLarge(error.size, error.path or path, self.rows.size) from None
            except pa.ArrowCapacityError:  # an array of more than 2 GB
                path = name if compiled is None else compiled.spec.path
                raise TooLarge(2**31, path, self.rows.size) from None
            self._columns[name] = made
        return made

    def related(self, group: str) -> Kinsfolk:
        """The rows of another template that the group of references takes."""
        found = self._kin.get(group)
        if found is None:
            things = self.group(group, RELATION)
            kind = self.layer.groups[group, RELATION].kind
            assert isinstance(kind, Relation)
            assert kind.address is not None  # else it did not compile
            bound = self.bound.relatives[kind.address]
            found = self._kin[group] = Kinsfolk(bound, things.rows, things.valid, things.among, self.meter)
        return found

    def _from_parent(self, name: str) -> pa.Array:
        if (
            self.parent is None
        ):  # a name of this level or a level around it: what is left is the related template's
            assert self.layer.relation is not None
            return self.related(self.layer.relation).column(name.removeprefix(PARENT))
        column = self.parent.column(name)
        return column if self.owner is None else budget.taken(column, pa.array(self.owner))

    def _make(self, column: Column, path: str) -> pa.Array:
        override = self.bound.overrides.get(path)
        if override is not None:
            return pa.DictionaryArray.from_arrays(pa.array(np.zeros(self.rows.size, np.int32)), override)
        longest = column.type.max_length
        most = 2 * limits.BLOCK_BYTES  # few texts are as long as the longest may be
        if longest is not None and longest * self.rows.size > most and not column.type.measures:
            raise TooLarge(longest * self.rows.size)
        view = Cells(self, column, path)
        if self.layer.together and (column.name,) in self.layer.together:
            filled = column.type.fill_unique(Dealt(self, column, path, self.together((column.name,))))
        else:
            filled = column.type.fill_unique(view) if column.spec.common.unique else column.type.fill(view)
        if column.formula is not None:
            filled = column.formula.column(view, filled)
        if column.after is not None:
            filled = column.after.apply(filled)
        if column.blank is not None:
            key = cellular.derive(self.bound.keys[path], cellular.BLANK_SALT)
            filled = postprocess.blanked(filled, cellular.blanks(key, self.rows, *column.blank))
        return filled

    def group(self, name: str, kind: str) -> Any:
        """The things (people, places ...) that the group's fields share in these rows."""
        made = self._groups.get((name, kind))
        if made is None:
            path = f"{self.prefix}group:{name}:{kind}"
            source = Draws(self.bound.keys[path], self.rows)
            compiled = self.layer.groups[name, kind]
            if self.layer.together and (name, kind) in self.layer.together:
                assert isinstance(compiled.kind, Relation | Existing)  # no others are unique together
                made = compiled.kind.taking(self.together((name, kind)))
            else:
                made = compiled.draw(source, self.bound.states[path])
            self._groups[name, kind] = made
        return made

    def together(self, spot: tuple[str, ...]) -> np.ndarray:
        """``uint64[n]``: which of its values a field, or a group of references, takes as its part of a combination
        that no other row has."""
        made, place = self.layer.together[spot]
        kept = ("", made.name)
        found = self._groups.get(kept)
        if found is None:
            at = f"{self.prefix}together:{made.name}"
            found = self._groups[kept] = made.indices(self, self.bound.keys[at], self.bound.states[at])
        return found[place]


class Draws:
    """Random bits under one key for the rows of a block; ``salt`` tells several draws of a cell apart."""

    __slots__ = ("key", "rows")

    def __init__(self, key: np.uint64, rows: np.ndarray) -> None:
        self.key, self.rows = key, rows

    @property
    def n(self) -> int:
        """Rows in the block."""
        return self.rows.size

    def bits(self, salt: int = 0) -> np.ndarray:
        """``uint64[n]`` of random bits."""
        return cellular.bits(cellular.derive(self.key, salt) if salt else self.key, self.rows)

    def below(self, n: int, salt: int = 0) -> np.ndarray:
        """Even draws from 0 to n - 1."""
        return cellular.below(self.bits(salt), n)

    def permuted(self, n: int, salt: int = 0) -> np.ndarray:
        """The rows under a keyed permutation of 0..n-1; every row is below ``n``."""
        return cellular.permutation(cellular.derive(self.key, _PERMUTATION_SALT - salt), self.rows, n)


class Cells(Draws):
    """What one column sees while it fills a block."""

    __slots__ = ("_block", "_column", "path")

    def __init__(self, block: Block, column: Column, path: str) -> None:
        # Not by way of Draws: for a block of a few rows calls are what costs.
        self.key, self.rows = block.bound.keys[path], block.rows
        self._block, self._column, self.path = block, column, path

    @property
    def env(self) -> Env:
        """Seed and now of the request."""
        return self._block.bound.env

    @property
    def state(self) -> Any:
        """What the type's `prepare` answered for this request."""
        return self._block.bound.states[self.path]

    @property
    def bound(self) -> Bound:
        """The plan with the request's seed, now and overrides: with ``path`` all that decides the column."""
        return self._block.bound

    def column(self, name: str) -> pa.Array:
        """Another field of the same row, finished."""
        return self._block.column(name)

    def at_rows(self, rows: np.ndarray, keep: bool = True) -> Block:
        """Other rows of the same fields; see `Block.at_rows`."""
        return self._block.at_rows(rows, keep)

    def group(self) -> Any:
        """The thing this field shares with the other fields of its group."""
        kind = self._column.type.group_kind
        assert kind is not None
        return self._block.group(self._column.spec.group or kind, kind)

    def related(self) -> Kinsfolk:
        """The rows of another template that this field's group takes."""
        return self._block.related(self._column.spec.group or RELATION)

    @property
    def meter(self) -> Meter:
        """What counts the memory of the block."""
        return self._block.meter

    def relative(self, address: str) -> Bound:
        """Another template under the request's seed."""
        return self._block.bound.relatives[address]

    def thing(self, name: str, kind: str) -> Any:
        """The thing of another group of this level."""
        return self._block.group(name, kind)

    def inner(self, layer: Layer, rows: np.ndarray, owner: np.ndarray | None) -> Block:
        """A block of nested elements; ``owner`` says which of this block's rows each belongs to."""
        return Block(self._block.bound, layer, rows, f"{self.path}.", self._block, owner, self._block.meter)


class Dealt(Cells):
    """A column whose values are dealt out elsewhere, by their numbers: `permuted` answers those."""

    __slots__ = ("_numbers",)

    def __init__(self, block: Block, column: Column, path: str, numbers: np.ndarray) -> None:
        super().__init__(block, column, path)
        self._numbers = numbers

    def permuted(self, n: int, salt: int = 0) -> np.ndarray:
        """The numbers that were dealt, all below ``n``."""
        if self._numbers.size and int(self._numbers.max()) >= n:
            raise ValueError(f"{self.path}: dealt out of more than {n} values")
        return self._numbers
