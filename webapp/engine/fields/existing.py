"""Keys that exist in a table of a connection already: one ordered list, of which each row draws one."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp import limits
from webapp.engine import cells as cellular
from webapp.engine import picks, postprocess
from webapp.engine.fields.base import EXISTING, GroupKind
from webapp.engine.fields.outside import Fetched, Outside
from webapp.engine.outside import Kind, Question

if TYPE_CHECKING:
    from webapp.engine.block import Cells, Draws
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_BLANK_SALT, _CHOICE_SALT = -100, -101


class ForeignKey(Outside):
    """A key that exists already in a table of a connection."""

    name = "foreign_key"
    label = "Existing key"
    category = "identity"
    description = "A key that exists already in a table of a connection: each row draws one."
    aliases = ("key in target", "existing foreign key", "external key", "database key")
    example = 4711
    group_kind = EXISTING
    blank_together = True
    _kind: Kind = "integer"

    class Options(Fetched):
        connection_id: str = Field(
            max_length=limits.MAX_NAME_CHARS, description="The connection to the database.",
            json_schema_extra=picks.connection("tables"),
        )  # fmt: skip
        table: str = Field(
            min_length=1, max_length=limits.MAX_NAME_CHARS, description="The table whose keys are drawn.",
            json_schema_extra=picks.table_of("connection_id"),
        )  # fmt: skip
        column: str = Field(
            min_length=1, max_length=limits.MAX_NAME_CHARS, description="The column that is shown.",
            json_schema_extra=picks.column_of("table", "connection_id"),
        )  # fmt: skip
        filter: str = Field(
            "", max_length=limits.MAX_FORMULA_CHARS,
            description="Which rows may be drawn: a condition in the target's own language, as after WHERE.",
        )  # fmt: skip

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._rows: Existing = compiler.kind_of(field)
        answer = self._rows.answer
        if field.common.unique and field.common.text_case:
            text = "Keys that differ in case alone would become one."
            compiler.fault(
                field, "text_case", "not_unique", text, "Take text_case away, or take unique away."
            )
        if answer is None:
            return
        self.use(answer, options.column, compiler)
        if not self._rows.rows:
            where = " that its filter lets through" if options.filter else ""
            self.empty(compiler, f'There are no rows in "{options.table}"{where}.')

    def fill(self, cells: Cells) -> pa.Array:
        things = cells.group()
        if self._rows.answer is None:
            made = self.stood_in(cells.n)
        else:
            made = self.picked(things.rows, None if self._rows.rows else np.zeros(cells.n, np.bool_))
        return made if things.valid is None else postprocess.blanked(made, ~things.valid)

    def fill_unique(self, cells: Cells) -> pa.Array:
        return self.fill(cells)

    def space(self) -> int | None:
        if not self.field.common.unique or self.redacted:
            return None
        return self._rows.space()

    def unique_hint(self) -> str:
        return "A sensitive key is masked, and then all are alike: take sensitive away, or take unique away."

    def bounds(self, rows: int) -> tuple[int, int] | None:
        if self.redacted or not pa.types.is_integer(self._pool.type) or not len(self._pool):
            return None
        low, high = (end.as_py() for end in pc.min_max(self._pool).values())
        return low, high

    @classmethod
    def part(cls, options: Options) -> str:
        return f"{cls.name}:{options.column}"

    @classmethod
    def subject(cls, options: Options) -> str:
        return f"{options.connection_id}\0{options.table}\0{options.filter}"


class ExistingRows:
    """The rows of a snapshot that a block's rows take. ``valid`` is false where there is none (None: all have one)."""

    __slots__ = ("rows", "valid")

    def __init__(self, rows: np.ndarray, valid: np.ndarray | None) -> None:
        self.rows, self.valid = rows, valid


class Existing(GroupKind):
    """The one row of a table that exists already which the fields of a group show: composite keys agree."""

    kind = EXISTING

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        first = fields[0]
        for field in fields[1:]:
            if field.type.subject(field.options) != first.type.subject(first.options):
                text = f'The group "{first.group}" already draws from another table, or with another filter.'
                compiler.fault(field, "group", "two_tables", text, "Give this field another group.")
        options = _key_options(first)
        columns = sorted({_key_options(field).column for field in fields})
        said = (("columns", columns), ("filter", options.filter.strip()), ("table", options.table))
        self.answer = compiler.ask(first, Question(options.connection_id, "keys", said))
        self.rows = 1 if self.answer is None else self.answer.table.num_rows
        self._blank = _share(fields, compiler)
        self._choice: np.ndarray | None = None
        unique = [field for field in fields if field.common.unique]
        if unique and self.answer is not None and set(columns) <= set(self.answer.table.column_names):
            self._choice = _first_of_each(self.answer.table, [_key_options(field).column for field in unique])
        self._unique = bool(unique)

    @property
    def free(self) -> bool:
        """Whether any row may take any row of the snapshot, all alike."""
        return not self._unique and self._blank is None

    def space(self) -> int:
        """Rows that can each take a key of their own; many, as long as nobody has asked."""
        if self.answer is None:
            return limits.MAX_PARENTS
        return self.rows if self._choice is None else self._choice.size

    def taking(self, rows: np.ndarray) -> ExistingRows:
        """The rows of the snapshot that are dealt out elsewhere (see ``together.py``)."""
        return ExistingRows(rows.view(np.int64), None)

    def draw(self, draws: Draws, state: Any) -> ExistingRows:
        valid = None
        if self._blank is not None:
            valid = ~cellular.blanks(cellular.derive(draws.key, _BLANK_SALT), draws.rows, *self._blank)
        if not self.rows or self.answer is None:
            return ExistingRows(np.zeros(draws.n, np.int64), valid)
        if not self._unique:
            return ExistingRows(draws.below(self.rows, _CHOICE_SALT).view(np.int64), valid)
        place = draws.permuted(self.space()).view(np.int64)
        return ExistingRows(place if self._choice is None else self._choice[place], valid)


def _key_options(field: FieldSpec) -> ForeignKey.Options:
    assert isinstance(field.options, ForeignKey.Options)  # no other type is in a group of existing keys
    return field.options


def _share(fields: tuple[FieldSpec, ...], compiler: Compiler) -> tuple[int, int] | None:
    shares = {field.common.percent_blank: field for field in fields if field.common.percent_blank}
    if len(shares) > 1:
        text = "The fields of a group are blank together, and two of them state different shares."
        compiler.fault(list(shares.values())[1], "percent_blank", "contradiction", text, "State one share.")
    share = Fraction(max(shares, default=0))
    return (share.numerator, share.denominator) if share else None


def _first_of_each(table: pa.Table, columns: list[str]) -> np.ndarray:
    """``int64[k]``: rows in which no value of any of the columns is one of an earlier row."""
    rows = np.arange(table.num_rows, dtype=np.int64)
    for name in dict.fromkeys(columns):
        codes = table.column(name).take(pa.array(rows)).combine_chunks().dictionary_encode()
        if isinstance(codes, pa.ChunkedArray):
            codes = codes.combine_chunks()
        rows = rows[np.unique(codes.indices.to_numpy(), return_index=True)[1]]
    return np.sort(rows)
