"""Generate blocks of rows: a `Plan` bound to a seed gives the columns of any rows, in any order.

`BoundPlan.check` runs before the first row. It reports requests for more rows than a template has, and rows of related
templates that do not exist: a reference may take any row of the other template, a total reads a row's children, and
an array of a template's rows continues from row to row.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.engine import budget, layers, leaks, postprocess, processor_time, text_parts
from webapp.engine import random as engine_random
from webapp.engine.budget import MemoryBudgetError, MemoryMeter
from webapp.engine.errors import SpecError
from webapp.engine.external_values import RequestRecorder
from webapp.engine.invalid_data.injector import InvalidDataInjector
from webapp.engine.layers import Column, Layer, RelatedPlan
from webapp.engine.random import RandomStream
from webapp.engine.relations import PARENT, RELATION
from webapp.engine.text_parts import TextParts
from webapp.engine.types.external import ExistingRowKind
from webapp.engine.types.relations import ParentRows, RelationKind
from webapp.errors import Fault, did_you_mean

if TYPE_CHECKING:
    from webapp.engine.formats.base import Format
    from webapp.engine.plan import Plan

G = TypeVar("G")


@dataclass(frozen=True, slots=True)
class GenerationContext:
    """What a request sets in addition to the plan: ``now`` is aware, in UTC; ``locale`` only if one was given."""

    seed: str
    now: datetime
    locale: str | None = None
    is_anchored: bool = False
    """``now`` is the template's own anchor: the templates it relates to then have theirs."""
    recorder: RequestRecorder | None = None
    """Records the requests for external values that rows need, in a dry run."""


def unknown_overrides(overrides: Iterable[str], names: Collection[str]) -> list[Fault]:
    """Return a fault for each override of a field that does not exist; `names` are those of the template's fields."""
    return [
        Fault(f"overrides.{name}", "unknown_field", f'There is no field "{name}".', did_you_mean(name, names))
        for name in overrides
        if name not in names
    ]


class BoundPlan:
    """A plan with keys: an immutable source of blocks for one seed, now and set of overrides.

    Raises `SpecError` if an override cannot be honoured.
    """

    def __init__(self, plan: Plan, env: GenerationContext, overrides: dict[str, Any] | None = None) -> None:
        self.plan, self.env, self.layer, self.name = plan, env, plan.layer, plan.spec.name
        self.overrides = self._convert_overrides(overrides or {})
        self.warnings = list(plan.warnings)
        self.keys: dict[str, np.uint64] = {}
        self.states: dict[str, Any] = {}
        self.related_plans: dict[str, BoundPlan] = {"": self}
        """The templates around this one under the same seed, by their addresses; ``""`` is this one."""
        for address, relative in plan.related_plans.items():
            now = relative.anchor if env.is_anchored and relative.anchor else env.now
            seed = f"{env.seed}\0{relative.salt}" if relative.salt else env.seed
            self.related_plans[address] = _RelatedBoundPlan(
                relative,
                GenerationContext(seed, now, None, env.is_anchored, env.recorder),
                self.related_plans,
            )
        self._bind(plan.layer, "")
        self.schema = plan.layer.schema
        for field, fixed in self.overrides.items():
            index = self.schema.get_field_index(field)
            if index >= 0:  # else it is hidden
                self.schema = self.schema.set(index, pa.field(field, fixed.type))
        self.block_rows = max(1, min(limits.BLOCK_ROWS, limits.BLOCK_LEAVES // plan.max_cells_per_row))
        self.leak_checker = leaks.create_leak_checker(self) if plan.loaded_source is not None else None
        self.invalid_data_injector = (
            InvalidDataInjector(plan.layer.invalid_data_plan, self)
            if plan.layer.invalid_data_plan is not None
            else None
        )
        if self.invalid_data_injector is not None:
            self.schema = self.invalid_data_injector.schema(self.schema)

    def _convert_overrides(self, overrides: dict[str, Any]) -> dict[str, pa.Array]:
        columns = self.plan.layer.columns
        faults = unknown_overrides(overrides, columns)
        if faults:
            raise SpecError(faults)
        fixed = {
            name: postprocess.override_pool(value, columns[name].dtype) for name, value in overrides.items()
        }
        faults = [
            Fault(
                f"overrides.{name}",
                "wrong_type",
                reason,
                f'Use a different value, or override "{column.name}" too.',
            )
            for column in layers.iter_columns(self.plan.layer)
            if column.name not in fixed or column is not columns.get(column.name)
            for name in set(column.type.required_fields).intersection(fixed)
            if (reason := column.type.override_error(name, fixed[name]))
        ]
        if faults:
            raise SpecError(faults)
        return fixed

    def _bind(self, layer: Layer, prefix: str) -> None:
        for (group, kind), compiled in layer.groups.items():
            self.keys[f"{prefix}group:{group}:{kind}"] = compiled.key(self.env.seed, prefix)
            fixed = {}
            if not prefix:
                overridden = [name for name in compiled.fields if name in self.overrides]
                fixed = {name: self.overrides[name][0].as_py() for name in overridden}
            state, override_warnings = compiled.prepare(self.env, fixed)
            self.states[f"{prefix}group:{group}:{kind}"] = state
            self.warnings.extend(override_warnings)
        for name, column in layer.columns.items():
            path = f"{prefix}{name}"
            spec = column.spec
            self.keys[path] = engine_random.key(self.env.seed, spec.id or f"path:{path}")
            self.states[path] = column.type.prepare(self.env)
            inner = getattr(column.type, "layer", None)
            if inner is not None:
                self._bind(inner, f"{path}.")
        for combination, _ in layer.unique_combinations.values():
            path_of_combination = f"{prefix}together:{combination.name}"
            self.keys[path_of_combination] = combination.key(self.env.seed, prefix)
            self.states[path_of_combination] = combination.bind_sizes(
                layer, lambda name: self.states[f"{prefix}{name}"]
            )

    def check(self, offset: int, count: int) -> None:
        """Check that unique fields have enough values for ``count`` rows after ``offset``. Raises `SpecError`."""
        faults = source_faults(self, offset, count)
        check_capacity(self, self.plan.layer, "", offset, count, faults)
        if len(self.related_plans) > 1:
            faults += related_row_faults(self, offset + count)
        if faults:
            raise SpecError(faults)

    def row_faults(self, count: int) -> list[Fault]:
        """Return the errors that `check` would raise for the first ``count`` rows, without those of other templates."""
        faults: list[Fault] = []
        check_capacity(self, self.layer, "", 0, count, faults)
        return faults

    def block(self, start: int, count: int) -> list[pa.Array]:
        """The visible columns of rows ``start`` to ``start + count - 1``, in schema order. Raises `MemoryBudgetError`
        where they exceed the budget of a block."""
        generated = Block(self, self.plan.layer, np.arange(start, start + count, dtype=np.uint64))
        columns = {name: generated.column(name) for name in self.plan.layer.visible}
        if self.leak_checker is not None:
            self.leak_checker.check(generated.rows, columns)
        return (
            list(columns.values())
            if self.invalid_data_injector is None
            else self.invalid_data_injector.inject_columns(generated, columns)
        )

    def block_with_text_parts(self, start: int, count: int) -> list[pa.Array | TextParts]:
        """Like `block`, with texts that are still in parts: for formats that put them together in the row."""
        if (
            self.leak_checker is not None
            or self.invalid_data_injector is not None
            or count <= text_parts.FEW_ROWS
        ):
            return self.block(start, count)
        block = Block(self, self.plan.layer, np.arange(start, start + count, dtype=np.uint64))
        return [block.column_or_parts(name) for name in self.plan.layer.visible]

    def block_at(self, rows: np.ndarray, meter: MemoryMeter | None = None) -> Block:
        """The template's fields at any rows (``uint64[n]``), computed on demand. ``meter`` is that of the
        block that keeps them; without one they get a separate budget."""
        return Block(self, self.layer, rows, meter=meter)

    def blocks(self, offset: int, count: int) -> Iterator[list[pa.Array]]:
        """Yield the rows from ``offset`` on in blocks: a small first one, then full ones, or as many rows as fit the
        budget of a block. Raises `MemoryBudgetError` if a single row exceeds it."""
        return self._blocks(self.block, offset, count)

    def blocks_for(
        self, writer: Format, offset: int, count: int, *, small_first: bool = True
    ) -> Iterator[list[Any]]:
        """The blocks of `blocks` for ``writer``; texts are in parts (`TextParts`) if it puts them together itself.
        Without ``small_first`` the first is a full one too."""
        generate_block = self.block_with_text_parts if writer.accepts_text_parts else self.block
        return self._blocks(generate_block, offset, count, small_first=small_first)

    def _blocks(
        self,
        generate_block: Callable[[int, int], list[Any]],
        offset: int,
        count: int,
        *,
        small_first: bool = True,
    ) -> Iterator[list[Any]]:
        row, end = offset, offset + count
        size = min(limits.FIRST_BLOCK_ROWS, self.block_rows) if small_first else self.block_rows
        growth = limits.BLOCK_GROWTH
        while row < end:
            size = min(size, end - row)
            try:
                columns = generate_block(row, size)
            except MemoryBudgetError as error:
                if size == 1:
                    raise MemoryBudgetError(error.size, error.path) from None
                size, growth = max(1, size // limits.BLOCK_STEP), 2
                continue
            processor_time.check()
            rows_in_budget = 3 * limits.BLOCK_BYTES // 4 * size // max(1, sum(map(budget.size_of, columns)))
            yield columns
            del columns  # release it before the next block is generated
            row += size
            size = max(1, min(self.block_rows, size * growth, rows_in_budget))


class _RelatedBoundPlan(BoundPlan):
    """Another template, whose rows are generated when a relation reads them."""

    def __init__(
        self, related_plan: RelatedPlan, env: GenerationContext, relatives: dict[str, BoundPlan]
    ) -> None:
        self.layer, self.env, self.related_plans, self.name = (
            related_plan.layer,
            env,
            relatives,
            related_plan.name,
        )
        self.overrides: dict[str, pa.Array] = {}
        self.warnings: list[Fault] = []
        self.keys, self.states = {}, {}
        self._bind(related_plan.layer, "")


class Block:
    """A block of rows during generation. Columns and groups are generated once and cached for the lifetime of the
    block."""

    __slots__ = (
        "__weakref__",
        "_columns",
        "_first",
        "_groups",
        "_other_rows",
        "_related_rows",
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
        bound: BoundPlan,
        layer: Layer,
        rows: np.ndarray,
        prefix: str = "",
        parent: Block | None = None,
        owner: np.ndarray | None = None,
        meter: MemoryMeter | None = None,
    ) -> None:
        self.bound, self.layer, self.rows, self.prefix = bound, layer, rows, prefix
        self.parent, self.owner = parent, owner
        self.meter = MemoryMeter() if meter is None else meter
        self._columns: dict[str, pa.Array] = {}
        self._groups: dict[tuple[str, str], Any] = {}
        self._related_rows: dict[str, RelatedRows] = {}
        self._other_rows: dict[bytes, Block] = {}
        self._first: weakref.ref[Block] | None = None

    def at_rows(self, rows: np.ndarray, keep: bool = True) -> Block:
        """Return a block of the same fields for other rows (``uint64[k]``, in any order), for columns that read earlier
        rows.

        The first block caches those that are reached from it and from one another, so that none is generated twice;
        with ``keep`` false, the result is only for this call. Elements of arrays have no row numbers: the compiler
        rejects fields that would need them.
        """
        if not keep:
            return self._copy(rows, False)
        first = (self._first and self._first()) or self
        key = rows.tobytes()
        if key == first.rows.tobytes():
            return first
        block = first._other_rows.get(key)
        if block is None:
            block = first._other_rows[key] = first._copy(rows, True)
            block._first = weakref.ref(
                first
            )  # a strong one would close a circle, which only the collector frees
        return block

    def _copy(self, rows: np.ndarray, keep: bool) -> Block:
        parent = None if self.parent is None else self.parent.at_rows(rows, keep)
        return Block(self.bound, self.layer, rows, self.prefix, parent, meter=self.meter if keep else None)

    def column(self, name: str) -> pa.Array:
        """The finished column ``name``: one of this level, else of the level around it."""
        values = self._columns.get(name)
        if values is None:
            processor_time.check()
            compiled = self.layer.columns.get(name)
            before = self.meter.used
            try:
                if compiled is not None:
                    values = self._generate_column(compiled, self.prefix + name)
                elif self.parent is None:
                    # A name of this level or a level around it: what is left is the related template's.
                    assert self.layer.parent_group is not None
                    values = self.related_rows(self.layer.parent_group).column(name.removeprefix(PARENT))
                else:
                    values = self.parent.column(name)
                    if self.owner is not None:
                        values = budget.take_within_budget(values, pa.array(self.owner))
                size = budget.size_of(values)
                # Objects and arrays consist of columns that are counted already.
                self.meter.add(max(0, size - (self.meter.used - before)) if values.type.num_fields else size)
            except MemoryBudgetError as error:
                path = name if compiled is None else compiled.spec.path
                raise MemoryBudgetError(error.size, error.path or path, self.rows.size) from None
            except pa.ArrowCapacityError:  # an array of more than 2 GB
                path = name if compiled is None else compiled.spec.path
                raise MemoryBudgetError(2**31, path, self.rows.size) from None
            self._columns[name] = values
        return values

    def column_or_parts(self, name: str) -> pa.Array | TextParts:
        """The finished column ``name`` of this level, in parts if that is all its values need."""
        compiled = self.layer.columns[name]
        path = self.prefix + name
        if name in self._columns or not compiled.is_unmodified or path in self.bound.overrides:
            return self.column(name)
        if self.layer.unique_combinations and (name,) in self.layer.unique_combinations:
            return self.column(name)
        parts = compiled.type.fill_parts(ColumnContext(self, compiled, path))
        if parts is None:
            return self.column(name)
        size = text_parts.max_text_bytes(parts) * self.rows.size
        if size > limits.COMPOSED_BYTES:
            return self.column(name)  # which measures it
        self.meter.add(size)
        return TextParts(parts, size)

    def related_rows(self, group: str) -> RelatedRows:
        """The rows of another template that the group of references takes."""
        found = self._related_rows.get(group)
        if found is None:
            parents = self.group(group, RELATION)
            kind = self.layer.groups[group, RELATION].kind
            assert isinstance(kind, RelationKind)
            assert kind.address is not None  # else it did not compile
            bound = self.bound.related_plans[kind.address]
            found = self._related_rows[group] = RelatedRows(
                bound, parents.rows, parents.valid, parents.among, self.meter
            )
        return found

    def _generate_column(self, column: Column, path: str) -> pa.Array:
        override = self.bound.overrides.get(path)
        if override is not None:
            return pa.DictionaryArray.from_arrays(pa.array(np.zeros(self.rows.size, np.int32)), override)
        max_length = column.type.max_length
        maximum = 2 * limits.BLOCK_BYTES  # few texts are as long as the longest may be
        if (
            max_length is not None
            and max_length * self.rows.size > maximum
            and not column.type.checks_memory_budget
        ):
            raise MemoryBudgetError(max_length * self.rows.size)
        view = ColumnContext(self, column, path)
        if self.layer.unique_combinations and (column.name,) in self.layer.unique_combinations:
            values = column.type.fill_unique(
                PermutedContext(self, column, path, self.combination_indices((column.name,)))
            )
        else:
            values = column.type.fill_unique(view) if column.spec.common.unique else column.type.fill(view)
        if column.agreement is not None:
            values = column.agreement.apply(view, values)
        if column.formula is not None:
            values = column.formula.column(view, values)
        if column.text_transform is not None:
            values = column.text_transform.apply(values)
        if column.blank_share is not None:
            key = engine_random.derive(self.bound.keys[path], engine_random.BLANK_SALT)
            values = postprocess.apply_blanks(
                values, engine_random.blank_mask(key, self.rows, *column.blank_share)
            )
        return values

    def group(self, name: str, kind: str) -> Any:
        """The things (people, places ...) that the group's fields share in these rows."""
        values = self._groups.get((name, kind))
        if values is None:
            path = f"{self.prefix}group:{name}:{kind}"
            source = RandomStream(self.bound.keys[path], self.rows)
            compiled = self.layer.groups[name, kind]
            if self.layer.unique_combinations and (name, kind) in self.layer.unique_combinations:
                assert isinstance(
                    compiled.kind, RelationKind | ExistingRowKind
                )  # no others are unique together
                values = compiled.kind.select_rows(self.combination_indices((name, kind)))
            else:
                values = compiled.draw(source, self.bound.states[path])
            if isinstance(compiled.kind, RelationKind) and compiled.kind.differs_from is not None:
                assert isinstance(values, ParentRows)
                values = compiled.kind.exclude_other_rows(
                    values, self.group(compiled.kind.differs_from, RELATION)
                )
            self._groups[name, kind] = values
        return values

    def combination_indices(self, member_key: tuple[str, ...]) -> np.ndarray:
        """``uint64[n]``: which of its values a field, or a group of references, takes as its part of a combination
        that no other row has."""
        combination, position = self.layer.unique_combinations[member_key]
        cache_key = ("", combination.name)
        found = self._groups.get(cache_key)
        if found is None:
            path = f"{self.prefix}together:{combination.name}"
            found = self._groups[cache_key] = combination.indices(
                self, self.bound.keys[path], self.bound.states[path]
            )
        return found[position]


class ColumnContext(RandomStream):
    """The context of one column while it generates its values for a block."""

    __slots__ = ("_block", "_column", "path")

    def __init__(self, block: Block, column: Column, path: str) -> None:
        # Not through RandomStream: for a block of a few rows calls are what costs.
        self.key, self.rows = block.bound.keys[path], block.rows
        self._block, self._column, self.path = block, column, path

    @property
    def env(self) -> GenerationContext:
        """Seed and now of the request."""
        return self._block.bound.env

    @property
    def state(self) -> Any:
        """The result of the type's `prepare` for this request."""
        return self._block.bound.states[self.path]

    @property
    def bound(self) -> BoundPlan:
        """The plan with the request's seed, now and overrides: with ``path`` all that decides the column."""
        return self._block.bound

    def column(self, name: str) -> pa.Array:
        """Another field of the same row, finished."""
        return self._block.column(name)

    def at_rows(self, rows: np.ndarray, keep: bool = True) -> Block:
        """Other rows of the same fields; see `Block.at_rows`."""
        return self._block.at_rows(rows, keep)

    def group(self, expected: type[G]) -> G:
        """What the fields of this field's group share in these rows (people, places ...), of the class that the kind
        of the group draws."""
        kind = self._column.type.group_kind
        assert kind is not None
        return self.group_value(expected, self._column.spec.group or kind, kind)

    def related_rows(self) -> RelatedRows:
        """The rows of another template that this field's group takes."""
        return self._block.related_rows(self._column.spec.group or RELATION)

    @property
    def meter(self) -> MemoryMeter:
        """The memory meter of the block."""
        return self._block.meter

    def related_plan(self, address: str) -> BoundPlan:
        """Another template under the request's seed."""
        return self._block.bound.related_plans[address]

    def group_value(self, expected: type[G], name: str, kind: str) -> G:
        """The same of another group of this level."""
        value = self._block.group(name, kind)
        assert isinstance(value, expected)
        return value

    def nested_block(self, layer: Layer, rows: np.ndarray, owner: np.ndarray | None) -> Block:
        """A block of nested elements; ``owner`` says which of this block's rows each belongs to."""
        return Block(self._block.bound, layer, rows, f"{self.path}.", self._block, owner, self._block.meter)


class PermutedContext(ColumnContext):
    """The context of a column whose values are chosen elsewhere, by number: `permuted` returns those numbers."""

    __slots__ = ("_numbers",)

    def __init__(self, block: Block, column: Column, path: str, numbers: np.ndarray) -> None:
        super().__init__(block, column, path)
        self._numbers = numbers

    def permuted(self, n: int, salt: int = 0) -> np.ndarray:
        """Return the chosen numbers, all below ``n``."""
        if self._numbers.size and int(self._numbers.max()) >= n:
            raise ValueError(f"{self.path}: chosen from more than {n} values")
        return self._numbers


def source_faults(bound: BoundPlan, offset: int, count: int) -> list[Fault]:
    """Return the errors for ``count`` rows after ``offset`` of a template whose source has fewer rows."""
    source = bound.plan.loaded_source
    if source is None or offset + count <= source.table.row_count:
        return []
    maximum = source.table.row_count
    text = f"The source has only {maximum:,} rows; row {offset + count:,} was requested."
    return [Fault("source", "not_enough_rows", text, f"Request at most {max(0, maximum - offset):,} rows.")]


def check_capacity(
    bound: BoundPlan, layer: Layer, prefix: str, offset: int, count: int, faults: list[Fault]
) -> None:
    """Append to ``faults`` an error for each thing that is insufficient for ``count`` rows after ``offset``, in one
    level and the levels inside it: unique values, children, rows that a type has values for."""
    row_count = (offset + count) * (layer.expansion // bound.layer.expansion)
    for group in layer.groups.values():
        maximum = group.kind.max_rows()
        if maximum is not None and offset + count > maximum:
            limit = f"Only {maximum:,} rows are available (limited by the number of parent rows)"
            text = f"{limit}; row {offset + count:,} was requested."
            hint = f"Request at most {max(0, maximum - offset):,} rows, or raise the cardinality or the parent's rows."
            faults.append(Fault(group.kind.fields[0].path, "not_enough_rows", text, hint))
    together = {combination.name: combination for combination, _ in layer.unique_combinations.values()}
    for combination in together.values():
        fault = combination.fault(row_count, bound.states[f"{prefix}together:{combination.name}"])
        if fault is not None:
            faults.append(fault)
    for name, column in layer.columns.items():
        inner = getattr(column.type, "layer", None)
        if inner is not None:
            check_capacity(bound, inner, f"{prefix}{name}.", offset, count, faults)
        path = f"{prefix}{name}"
        unique = column.spec.common.unique
        if (unique or column.type.is_primary_key) and path in bound.overrides and count > 1:
            text = "A unique field cannot have the same fixed value in several rows."
            faults.append(
                Fault(f"overrides.{path}", "not_unique", text, "Request one row, or remove the override.")
            )
            continue
        size = column.type.distinct_count_for(bound.states[path]) if unique else None
        if size is not None and row_count > size:
            text = f'"{path}" must be unique: {row_count:,} values were requested and only {size:,} exist.'
            hint = "Widen the field's options, request fewer rows, or remove unique."
            faults.append(Fault(f"{column.spec.path}.unique", "not_enough_values", text, hint))
            continue
        rows = column.type.available_rows(bound.states[path])
        if rows is not None and row_count > rows:
            text = f'"{path}" has values only for the first {rows:,} rows; row {row_count:,} was requested.'
            faults.append(Fault(column.spec.path, "too_far", text, column.type.too_many_rows_hint()))


class RelatedRows:
    """The rows of another template that a block's rows refer to; each is generated once."""

    __slots__ = ("_block", "_take", "_valid")

    def __init__(
        self,
        bound: BoundPlan,
        rows: np.ndarray,
        valid: np.ndarray | None,
        parent_count: int = 0,
        meter: MemoryMeter | None = None,
    ) -> None:
        hardly_repeats = parent_count * limits.RANDOM_REPEATS > rows.size
        distinct, self._take = (rows, None) if hardly_repeats else distinct_rows(rows)
        self._block, self._valid = bound.block_at(distinct, meter), valid

    def column(self, name: str) -> pa.Array:
        """Return the other template's column ``name`` with a value for each row of the block; null without a row."""
        column = self._block.column(name)
        if self._take is None:
            return column if self._valid is None else postprocess.apply_blanks(column, ~self._valid)
        return budget.take_within_budget(
            column, pa.array(self._take, mask=None if self._valid is None else ~self._valid)
        )


def distinct_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the distinct rows, and the position of each of ``rows`` among them; None instead of positions if rows
    hardly repeat, or if finding the distinct rows costs more than it saves."""
    if rows.size < 2:
        return rows, None
    low, high = int(rows.min()), int(rows.max())
    span = high - low + 1
    if span * limits.DISTINCT_REPEATS > rows.size:
        return rows, None
    offsets = (rows - np.uint64(low)).view(np.int64)
    occurs = np.zeros(span, np.bool_)
    occurs[offsets] = True
    distinct = np.flatnonzero(occurs)
    positions = np.empty(span, np.int32)
    positions[distinct] = np.arange(distinct.size, dtype=np.int32)
    return distinct.view(np.uint64) + np.uint64(low), positions.take(offsets)


def related_row_faults(bound: BoundPlan, rows: int) -> list[Fault]:
    """Return the values that the templates around ``bound`` lack for its first ``rows`` rows; the path of each error is
    the field that reads them."""
    required_rows = {"": rows}
    pending = [("", rows, "")]
    found: dict[tuple[str, str], Fault] = {}
    while pending:
        address, row_count, path = pending.pop()
        bound_plan = bound.related_plans[address]
        if path:
            for fault in bound_plan.row_faults(row_count):
                text = f'"{bound_plan.name}" does not have enough rows or values: {fault.message}'
                found.setdefault((address, fault.path), Fault(path, fault.code, text, fault.hint))
        for reader_path, other_address, more_rows in _related_reads(
            bound_plan.layer, row_count, bound_plan.layer.expansion
        ):
            if more_rows > required_rows.get(other_address, 0):
                required_rows[other_address] = more_rows
                pending.append((other_address, more_rows, path or reader_path))
    return list(found.values())


def _related_reads(layer: Layer, rows: int, template_expansion: int) -> Iterator[tuple[str, str, int]]:
    """(path of the reader, address, rows) of the other templates that a level reads."""
    for group in layer.groups.values():
        kind = group.kind
        if isinstance(kind, RelationKind) and kind.address is not None and kind.parents:
            yield kind.fields[0].path, kind.address, kind.parents
    for column in layer.columns.values():
        address_and_rows = column.type.related_rows_read(rows * (layer.expansion // template_expansion))
        if address_and_rows is not None:
            yield column.spec.path, *address_and_rows
        inner = getattr(column.type, "layer", None)
        if inner is not None:
            yield from _related_reads(inner, rows, template_expansion)
