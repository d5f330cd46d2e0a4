"""Filling blocks: a `Plan` bound to a seed makes columns for any rows, in any order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.engine import cells as cellular
from webapp.engine import postprocess
from webapp.engine.errors import SpecError
from webapp.engine.plan import Column, Layer, Plan
from webapp.errors import Fault, did_you_mean

_BLANK_SALT, _PERMUTATION_SALT = -100, -101


@dataclass(frozen=True, slots=True)
class Env:
    """What a request fixes beside the plan: ``now`` is aware, in UTC; ``locale`` only where one was given."""

    seed: str
    now: datetime
    locale: str | None = None


class Bound:
    """A plan with keys: an immutable source of blocks for one seed, now and set of overrides.

    Raises `SpecError` where an override cannot be honoured.
    """

    def __init__(self, plan: Plan, env: Env, overrides: dict[str, Any] | None = None) -> None:
        self.plan, self.env = plan, env
        self.overrides = self._fixed(overrides or {})
        self.warnings = list(plan.warnings)
        self.keys: dict[str, np.uint64] = {}
        self.states: dict[str, Any] = {}
        self._bind(plan.layer, "")
        self.schema = self._schema() if self.overrides else plan.layer.schema
        self.block_rows = max(1, min(limits.BLOCK_ROWS, limits.BLOCK_LEAVES // plan.leaves))

    def _fixed(self, overrides: dict[str, Any]) -> dict[str, pa.Array]:
        columns = self.plan.layer.columns
        faults = [
            Fault(f"overrides.{name}", "unknown_field", f'There is no field "{name}".', did_you_mean(name, columns))
            for name in overrides
            if name not in columns
        ]
        if faults:
            raise SpecError(faults)
        return {name: postprocess.fixed(value, columns[name].dtype) for name, value in overrides.items()}

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

    def _fixed_in(self, names: tuple[str, ...]) -> dict[str, Any]:
        return {name: self.overrides[name][0].as_py() for name in names if name in self.overrides}

    def check(self, offset: int, count: int) -> None:
        """Refuses, before the first row, what cannot be unique over ``count`` rows after ``offset``."""
        faults: list[Fault] = []
        self._check(self.plan.layer, "", offset, count, faults)
        if faults:
            raise SpecError(faults)

    def _check(self, layer: Layer, prefix: str, offset: int, count: int, faults: list[Fault]) -> None:
        last = (offset + count) * layer.expansion
        for name, column in layer.columns.items():
            inner = getattr(column.type, "layer", None)
            if inner is not None:
                self._check(inner, f"{prefix}{name}.", offset, count, faults)
            path = f"{prefix}{name}"
            unique = column.spec.common.unique
            if (unique or column.type.primary) and path in self.overrides and count > 1:
                text = "A unique field cannot have one fixed value in several rows."
                faults.append(Fault(f"overrides.{path}", "not_unique", text, "Ask for one row, or drop the override."))
                continue
            size = column.type.space_in(self.states[path]) if unique else None
            if size is not None and last > size:
                text = f'"{path}" must be unique: {last:,} values were asked for and {size:,} exist.'
                hint = "Widen the field's options, ask for fewer rows, or take unique away."
                faults.append(Fault(f"{column.spec.path}.unique", "not_enough_values", text, hint))

    def block(self, start: int, count: int) -> list[pa.Array]:
        """The visible columns of rows ``start`` to ``start + count - 1``, in schema order."""
        made = Block(self, self.plan.layer, np.arange(start, start + count, dtype=np.uint64))
        return [made.column(name) for name in self.plan.layer.visible]

    def blocks(self, offset: int, count: int) -> Iterator[list[pa.Array]]:
        """The rows from ``offset`` on, block by block: a small first one, then full ones."""
        row, end = offset, offset + count
        size = min(limits.FIRST_BLOCK_ROWS, self.block_rows)
        while row < end:
            size = min(size, end - row)
            yield self.block(row, size)
            row += size
            size = self.block_rows


class Block:
    """A vector of rows being filled. Columns and groups are made once and kept while the block lives."""

    __slots__ = ("_columns", "_groups", "bound", "layer", "owner", "parent", "prefix", "rows")

    def __init__(
        self,
        bound: Bound,
        layer: Layer,
        rows: np.ndarray,
        prefix: str = "",
        parent: Block | None = None,
        owner: np.ndarray | None = None,
    ) -> None:
        self.bound, self.layer, self.rows, self.prefix = bound, layer, rows, prefix
        self.parent, self.owner = parent, owner
        self._columns: dict[str, pa.Array] = {}
        self._groups: dict[tuple[str, str], Any] = {}

    def column(self, name: str) -> pa.Array:
        """The finished column ``name``: one of this level, else of the level around it."""
        made = self._columns.get(name)
        if made is None:
            compiled = self.layer.columns.get(name)
            made = self._from_parent(name) if compiled is None else self._make(compiled, self.prefix + name)
            self._columns[name] = made
        return made

    def _from_parent(self, name: str) -> pa.Array:
        column = self.parent.column(name)
        return column if self.owner is None else column.take(pa.array(self.owner))

    def _make(self, column: Column, path: str) -> pa.Array:
        override = self.bound.overrides.get(path)
        if override is not None:
            return pa.DictionaryArray.from_arrays(pa.array(np.zeros(self.rows.size, np.int32)), override)
        view = Cells(self, column, path)
        filled = column.type.fill_unique(view) if column.spec.common.unique else column.type.fill(view)
        if column.after is not None:
            filled = column.after.apply(filled)
        if column.blank is not None:
            key = cellular.derive(self.bound.keys[path], _BLANK_SALT)
            filled = postprocess.blanked(filled, cellular.blanks(key, self.rows, *column.blank))
        return filled

    def group(self, name: str, kind: str) -> Any:
        """The things (people, places ...) that the group's fields share in these rows."""
        made = self._groups.get((name, kind))
        if made is None:
            path = f"{self.prefix}group:{name}:{kind}"
            source = Draws(self.bound.keys[path], self.rows)
            compiled = self.layer.groups[name, kind]
            made = self._groups[name, kind] = compiled.draw(source, self.bound.states[path])
        return made


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

    def column(self, name: str) -> pa.Array:
        """Another field of the same row, finished."""
        return self._block.column(name)

    def group(self) -> Any:
        """The thing this field shares with the other fields of its group."""
        kind = self._column.type.group_kind
        return self._block.group(self._column.spec.group or kind, kind)

    def inner(self, layer: Layer, rows: np.ndarray, owner: np.ndarray | None) -> Block:
        """A block of nested elements; ``owner`` says which of this block's rows each belongs to."""
        return Block(self._block.bound, layer, rows, f"{self.path}.", self._block, owner)
