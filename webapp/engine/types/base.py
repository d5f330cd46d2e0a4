"""The base of field types: one class per type gives the catalogue entry, the form, the checks and the values.

A type is a subclass of `FieldType` that is listed in ``registry.py``. An instance is one column of one compiled
template: its constructor checks what the options' model cannot check (and reports every fault through the
compiler), chooses the Arrow type, and prepares everything that does not depend on the seed. `fill` then generates the
column for a block of rows as one Arrow array. `fill` must be a pure function of its context: no state, no clock, no
order, no dependence on how many rows are requested.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ConfigDict

from webapp import json_input
from webapp.engine import random

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.random import RandomStream
    from webapp.engine.record_counts import RecordCounts
    from webapp.engine.spec import FieldSpec
    from webapp.engine.text_parts import PoolPart
    from webapp.engine.types.relations import Cardinality
    from webapp.errors import Fault


class OptionsModel(json_input.ExactModel):
    """Base of every type's options: unknown keys are refused, and nothing is coerced silently."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    parameters: ClassVar[Mapping[str, Mapping[str, tuple[str, ...]]]] = {}
    """Options that go with one value of another option only: which distribution takes which parameters. Forms show
    only those of the chosen value."""


class NoOptions(OptionsModel):
    """For types without options."""


class FieldType(ABC):
    """One column of one compiled template; the class is the entry of the catalogue."""

    name: str
    """Canonical snake_case name, as served by ``/field-types``: of the class, but for columns of a source, which have
    that of the type whose place they take."""
    label: str
    category: ClassVar[str]
    """number, identity, text, choice, logic, structure, external, person, contact, place, finance, government,
    company, internet, time or misc."""
    description: ClassVar[str]
    """One sentence for the picker."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names for searches; only letters and digits are compared, ignoring case."""
    example: ClassVar[Any]
    """A typical value with default options, as JSON."""
    Options: ClassVar[type[OptionsModel]] = NoOptions
    """The model that checks a caller's options. A type with options declares its model as a nested class of
    this name, and ``options: Options`` after it."""
    options: OptionsModel
    group_kind: ClassVar[str | None] = None
    """person, place, company, card or product: fields of one group share one such object per row."""
    localised: ClassVar[bool] = False
    """Whether values change with ``locale``; a locale on any other type is refused."""
    expansion: int = 1
    """The maximum number of cells in one row of this column (arrays: product of the maxima)."""

    dtype: pa.DataType
    """Arrow type of every array that `fill` returns, ignoring dictionary encoding. Set by the constructor."""
    max_length: int | None = None
    """Longest text in characters, where that is known without looking at rows."""
    checks_memory_budget: ClassVar[bool] = False
    """Whether `fill` itself raises `budget.MemoryBudgetError` before it uses too much memory, or copies no text;
    otherwise the block estimates the size from ``max_length``."""
    is_json_text: bool = False
    """The text is a JSON document, which JSON output embeds as it is."""
    is_primary_key: bool = False
    """The column identifies its rows: it never repeats, whether or not ``unique`` is set on the field."""
    blank_together: ClassVar[bool] = False
    """The fields of a group are blank in the same rows, which the group determines."""
    requires_named_group: ClassVar[bool] = False
    """Without a named group a field of this type shares nothing."""
    joins_existing_groups_only: ClassVar[bool] = False
    """It is put into a group only if another field has started the group; by itself it shares nothing."""
    joins_groups_if_unique: ClassVar[bool] = False
    """From engine 3 on it is put into a group also if its values are unique."""
    grouped_since_engine: ClassVar[int] = 1
    """The first engine that assigns the field to a group if no group is set."""
    companion_group_kind: ClassVar[str | tuple[str, ...] | None] = None
    """The kind of group (or several: the first that exists) that a field joins instead of one of its `group_kind`."""
    needs_birth_date: ClassVar[bool] = False
    """Whether a field that reads a group of kind person uses the day of birth."""
    required_fields: tuple[str, ...] = ()
    """Names of fields of the same row that `fill` reads."""

    def __init__(self, field: FieldSpec, options: Any, compiler: Compiler) -> None:
        # Any: each type has a different model.
        self.field = field
        self.options = options

    @abstractmethod
    def fill(self, context: ColumnContext) -> pa.Array:
        """Return the column for ``context.rows``: one value per row, of ``dtype`` (or a dictionary of it)."""

    def fill_parts(self, context: ColumnContext) -> tuple[PoolPart, ...] | None:
        """Return the texts of `fill` as parts in order, for formats that join them in each row; None if the column has
        no such parts."""
        return None

    def prepare(self, env: GenerationContext) -> Any:
        """Prepare what depends on the request (seed, now) but not on rows; ``context.state`` has the result in
        `fill`."""
        return None

    def distinct_count(self) -> int | None:
        """Return the number of distinct values as text output; None if ``unique`` is not possible."""
        return None

    def distinct_count_for(self, state: Any) -> int | None:
        """Return `distinct_count` once the request is known (``state`` is the result of `prepare`), for ranges that
        depend on now."""
        return self.distinct_count()

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        """Like `fill`, with values that never repeat. Called only when `distinct_count` returns a number."""
        raise TypeError(f"{self.name} cannot be unique")

    def unique_hint(self) -> str:
        """Return advice for users who requested ``unique`` if it is not possible."""
        return "For unique values, use a uuid, a sequence or a regular expression."

    def bounds(self, rows: int) -> tuple[int, int] | None:
        """Return the minimum and maximum of the first ``rows`` rows, in units of the last decimal; None if the values
        are not numbers, or their range is unknown."""
        return None

    def available_rows(self, state: Any) -> int | None:
        """Return the number of rows from row 0 on that have values; None: all of them."""
        return None

    def related_rows_read(self, rows: int) -> tuple[str, int] | None:
        """Return the address of another template, and how many of its first rows the first ``rows`` elements at the
        column's level may read; None if it reads no other template, or only through its group."""
        return None

    def record_counts(self) -> RecordCounts | None:
        """Return what a value contains, if it is an object or an array."""
        return None

    def too_many_rows_hint(self) -> str:
        """Return advice for users who requested rows beyond `available_rows`."""
        return "Request earlier rows, or remove the field."

    def override_error(self, name: str, fixed: pa.Array) -> str:
        """Return why the column cannot be generated while the field ``name``, which it reads, is overridden with the
        one value of ``fixed``; empty if it can."""
        return ""

    @classmethod
    def referenced_group(cls, group: str) -> tuple[str, str] | None:
        """Return (name, kind) of another group whose object a field in ``group`` uses, if there is such a group."""
        return None

    @classmethod
    def referenced_groups(cls, group: str) -> tuple[tuple[str, str], ...]:
        """Return (name, kind) of every group other than its own whose object a field in ``group`` uses."""
        other = cls.referenced_group(group)
        return () if other is None else (other,)

    @classmethod
    def group_attribute(cls, options: Any) -> str:
        """Return which part of its group's object a field shows: `assign` gives a group each part once."""
        return cls.name

    @classmethod
    def group_constraint(cls, options: Any) -> str:
        """Return a constraint for the object of its group, if groups of one kind differ in it."""
        return ""

    @classmethod
    def parent_and_cardinality(cls, options: Any) -> tuple[str, Cardinality] | None:
        """Return the id of the parent's template and the number of children per parent, if the options set it."""
        return None

    @classmethod
    def capacity(cls) -> int | None:
        """Distinct values with default options, for the catalogue; None: unbounded or not countable."""
        return None


class IndexedType(FieldType):
    """A type whose values can be numbered 0 .. size - 1, which provides uniform draws and uniqueness.

    A subclass sets ``size`` in its constructor and returns values by number in `values_at`. ``size`` may exceed 2**64
    only if `fill` and `fill_unique` are overridden.
    """

    size: int

    @abstractmethod
    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        """Return the values number ``index`` (``uint64[n]``, each below ``size``)."""

    def draw(self, context: ColumnContext) -> np.ndarray:
        """Return the number of each row's value; overridden by types with weights or distributions."""
        return context.below(self.size)

    def fill(self, context: ColumnContext) -> pa.Array:
        return self.values_at(self.draw(context), context)

    def distinct_count(self) -> int | None:
        return self.size

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.values_at(context.permuted(self.size), context)


class PoolType(IndexedType):
    """A type that picks from a list of values known when the template is compiled.

    A subclass sets ``pool`` (a plain Arrow array), optionally ``weights``; columns are dictionary-encoded over
    the one pool, so formats escape each value once.
    """

    checks_memory_budget = True
    pool: pa.Array
    weights: random.AliasSampler | None = None

    def set_pool(self, pool: pa.Array, weights: random.AliasSampler | None = None) -> None:
        """Use ``pool`` as the values, and derive size, dtype and longest text from it."""
        self.pool = pool
        self.size = len(pool)
        self.dtype = pool.type
        self.weights = weights
        if pa.types.is_string(pool.type):
            self.max_length = max_text_length(pool)

    def draw(self, context: ColumnContext) -> np.ndarray:
        if self.weights is None:
            return context.below(self.size)
        return self.weights.draw(context.bits())

    def distinct_count(self) -> int | None:
        return None if self.weights is not None else self.size

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        return dictionary_array(self.pool, index)

    def unique_hint(self) -> str:
        return "Unique values are drawn evenly: remove the weights, or remove unique."


class GroupKind(ABC):
    """One kind of shared object, compiled for one group of one template."""

    kind: ClassVar[str]
    is_created_by_readers: ClassVar[bool] = False
    """Whether a field of another kind that reads the group starts it; such fields are then in ``fields``."""
    readers: tuple[FieldSpec, ...] = ()
    """Fields of other kinds that read the group; set once it is compiled."""

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        self.fields = fields

    def prepare(self, env: GenerationContext, fixed: dict[str, Any]) -> tuple[Any, list[Fault]]:
        """Return what depends on the request: the pools narrowed to ``fixed`` (values of overridden fields, by field
        name), and a warning for each override that nothing fits."""
        return None, []

    def key(self, seed: str, prefix: str, stable_id: str) -> np.uint64:
        """Return the key of the group's draws: ``stable_id`` is its oldest field's id, ``prefix`` its level's path."""
        return random.key(seed, "group", self.kind, prefix, stable_id)

    def max_rows(self) -> int | None:
        """Return the number of rows, if the group determines it."""
        return None

    @abstractmethod
    def draw(self, draws: RandomStream, state: Any) -> Any:
        """Return the objects of ``draws.rows``, as vectors that the kind's field types read."""


def dictionary_array(pool: pa.Array, index: np.ndarray) -> pa.DictionaryArray:
    """``pool[index]`` without copying a text: a dictionary array over ``pool``."""
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32)), pool, safe=False)


def max_text_length(pool: pa.Array) -> int:
    """Length in characters of the longest text of ``pool``."""
    return pc.max(pc.utf8_length(pool)).as_py() or 0
