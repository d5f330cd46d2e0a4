"""References to the rows of other templates, and the place of a row among its parent's children.

Fields of type reference in one group take the same row of the other template. Which row that is follows from the row
number alone, so nothing of the other template is kept: what a field reads of it is made anew from its row number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pydantic import Field

from webapp import limits
from webapp.engine.fields.base import RELATION, FieldType, OptionsModel
from webapp.engine.fields.relation_group import ReferenceOptions, Relation

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.layers import Column
    from webapp.engine.spec import FieldSpec

NUMBERED = ("row_number", "sequence", "uuid", "ulid", "mongodb_objectid")


class Reference(FieldType):
    """A field of a row of another template."""

    name = "reference"
    label = "Reference"
    category = "identity"
    description = "A field of a row of another template: a foreign key, or any other field of the same row."
    aliases = ("foreign key to template", "relation", "parent", "parent field")
    example = 4711
    group_kind = RELATION
    blank_together = True

    class Options(ReferenceOptions):
        pass

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._kind: Relation = compiler.kind_of(field)
        self.dtype = pa.null()
        self._column: Column | None = None
        if self._kind.address is None:
            return
        self._shown = options.field or key_of(compiler.kin.known(self._kind.address).spec.fields, field.name)
        column = self._column = compiler.related(field, "options.field", self._kind.address, self._shown)
        if column is not None:
            self.dtype, self.json_text = column.dtype, column.type.json_text and column.after is None
            length = column.type.max_length
            self.max_length = column.after.longest(length) if column.after and length is not None else length
            if field.common.unique and not _never_repeats(column):
                text = f'"{self._shown}" may be alike in several rows, though each takes a row of its own.'
                hint = "Make it unique in that template, or write unique at a reference to its key, in the same group."
                compiler.fault(field, "unique", "not_unique", text, hint)

    def fill(self, cells: Cells) -> pa.Array:
        return cells.related().column(self._shown)

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)

    def space(self) -> int | None:
        return self._kind.space() if self.field.common.unique else None

    def bounds(self, rows: int) -> tuple[int, int] | None:
        column = self._column
        return (
            None
            if column is None or column.formula is not None
            else column.type.bounds(max(1, self._kind.rows))
        )

    @property
    def shown_column(self) -> Column | None:
        """The other template's column that it shows."""
        return self._column

    @property
    def parent_rows(self) -> int:
        """Rows that the other template has."""
        return self._kind.rows

    @property
    def address(self) -> str | None:
        """Which template that is; see ``kinship.py``."""
        return self._kind.address

    @classmethod
    def part(cls, options: Options) -> str:
        return f"{cls.name}:{options.field}"

    @classmethod
    def subject(cls, options: Options) -> str:
        return options.template_id


def _never_repeats(column: Column) -> bool:
    if column.spec.common.unique:
        return True
    return (column.type.primary or column.type.name in NUMBERED) and column.formula is None


def key_of(fields: tuple[FieldSpec, ...], reader: str) -> str:
    """The field by which a template's rows are known: one that is called ``reader`` or ``id``, else a unique one, else
    one whose type never repeats, else the first."""
    names = [field.name for field in fields]
    for wanted in (reader, "id"):
        if wanted in names:
            return wanted
    unique = [field.name for field in fields if field.common.unique]
    numbered = [field.name for field in fields if field.type.name in NUMBERED]
    return (unique or numbered or names)[0]


class Position(FieldType):
    """The place of a row among the children of its parent."""

    name = "position_in_parent"
    label = "Position in parent"
    category = "identity"
    description = (
        "The place of a row among its parent's children: 1, 2, 3 and so on, for rows with a cardinality."
    )
    aliases = ("child position", "line number", "child number", "position among siblings")
    example = 1
    dtype = pa.int64()

    class Options(OptionsModel):
        start: int = Field(
            1, ge=-limits.MAX_INTEGER, le=limits.MAX_INTEGER, description="What the first child has."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        owner = compiler.kin.owner(compiler.address)
        self._group = RELATION
        if owner is None or compiler.nested_here:
            text = "Only rows that are children by cardinality have a position."
            compiler.fault(
                field, "type", "no_parent", text, "Add a reference with cardinality to this template."
            )
        else:
            self._group = owner[0].group or RELATION
            compiler.relation_of(compiler.address, self._group)

    def fill(self, cells: Cells) -> pa.Array:
        return pa.array(cells.thing(self._group, RELATION).position + self.options.start)
