"""The parts of a compiled template: its columns and the levels of nesting."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from webapp.engine import groups, postprocess
from webapp.engine.spec import FieldSpec
from webapp.engine.types.base import FieldType

if TYPE_CHECKING:
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.formulas.expression import Expression
    from webapp.engine.invalid_data.injector import InvalidDataPlan
    from webapp.engine.relations.unique_together import UniqueTogether
    from webapp.engine.types.agreement import Agreement


@dataclass(frozen=True, slots=True)
class Column:
    """One compiled field: what it is, how it is filled and what is done to the values afterwards."""

    spec: FieldSpec
    type: FieldType
    dtype: pa.DataType
    blank_share: tuple[int, int] | None
    """Blank cells in every hundred rows as a fraction of integers; None if no cell is blank."""
    text_transform: postprocess.TextTransform | None
    """Case, prefix and suffix, if the field sets any."""
    formula: Expression | None = None
    """The formula that transforms the values first, if any."""
    agreement: Agreement | None = None
    """What the values take from other columns of the row, before the formula."""

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def is_unmodified(self) -> bool:
        """Whether the values are those of `FieldType.fill`: not unique, blank or changed afterwards."""
        return not (
            self.spec.common.unique
            or self.formula
            or self.text_transform
            or self.blank_share
            or self.agreement
        )

    def bounds(self, rows: int) -> tuple[int, int] | None:
        """The least and the largest number of the first ``rows`` rows; see `FieldType.bounds`."""
        return self.type.bounds(rows) if self.formula is None else self.formula.bounds

    def arrow_field(self) -> pa.Field:
        """Name, type and what formats want to know of the column, as Arrow carries it."""
        meta = {}
        longest = self.type.max_length if self.formula is None else self.formula.max_length
        if longest is not None and self.agreement is not None:
            longest = max(longest, self.agreement.max_length)
        if longest is not None:
            meta[b"max_length"] = str(
                self.text_transform.longest(longest) if self.text_transform else longest
            ).encode()
        if self.type.is_json_text and self.text_transform is None and self.formula is None:
            meta[b"json"] = b"1"
        return pa.field(self.name, self.dtype, metadata=meta or None)


@dataclass(frozen=True, slots=True)
class Layer:
    """The compiled fields of one level: the template's own, or those inside one nested field."""

    columns: dict[str, Column]
    groups: dict[tuple[str, str], groups.Group]
    visible: tuple[str, ...]
    schema: pa.Schema
    """Of the visible columns, while nothing is overridden."""
    expansion: int
    """The most elements at this level in one row of the template."""
    parent_group: str | None = None
    """Return the group of references that ``parent`` means, if a field reads it."""
    unique_combinations: Mapping[tuple[str, ...], tuple[UniqueTogether, int]] = field(default_factory=dict)
    """Fields and groups of references that are unique together with others, and which part of the combination is
    theirs."""
    invalid_data_plan: InvalidDataPlan | None = None
    """The settings for invalid data of a template's visible columns."""


@dataclass(frozen=True, slots=True)
class RelatedPlan:
    """Another template that relations reach: the fields of it that are needed, compiled."""

    layer: Layer
    anchor: datetime | None
    name: str
    rows: int
    """Rows it has: what references to it choose from."""
    salt: str = ""
    """A value that distinguishes its values from those of the same template in other places; see
    ``relations/related_plans.py``."""


@dataclass(eq=False)
class Scope:
    """The fields of one level of one template while they are compiled."""

    address: str
    vocabulary: Vocabulary
    locale: str | None
    fields: dict[str, FieldSpec]
    parent: Scope | None = None
    expansion: int = 1
    is_in_array: bool = False
    columns: dict[str, Column] = field(default_factory=dict)
    members: dict[tuple[str, str], tuple[FieldSpec, ...]] = field(default_factory=dict)
    groups: dict[tuple[str, str], groups.Group] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    parent_group: str | None = None
    unique_combinations: dict[tuple[str, ...], tuple[UniqueTogether, int]] = field(default_factory=dict)
    compiled_combinations: set[str] = field(default_factory=set)

    def to_layer(self, visible: tuple[str, ...]) -> Layer:
        """The compiled columns."""
        order = {name: self.columns[name] for name in self.fields if name in self.columns}
        schema = pa.schema([order[name].arrow_field() for name in visible if name in order])
        return Layer(
            order, self.groups, visible, schema, self.expansion, self.parent_group, self.unique_combinations
        )


def iter_columns(layer: Layer) -> Iterator[Column]:
    """The columns of a level and of those inside it."""
    for column in layer.columns.values():
        yield column
        inner = getattr(column.type, "layer", None)
        if inner is not None:
            yield from iter_columns(inner)
