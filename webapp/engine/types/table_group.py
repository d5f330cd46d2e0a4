"""Groups that share one row of a table of the vocabulary: a car, an airline, a diagnosis, a unit, a degree."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp.engine.types import values
from webapp.engine.types.base import FieldType, GroupKind, OptionsModel, dictionary_array, max_text_length
from webapp.engine.types.geography import Range
from webapp.errors import Fault

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext, GenerationContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.random import RandomStream
    from webapp.engine.spec import FieldSpec

_ROW_SALT = 1
_U32 = np.uint64(32)


@dataclass(frozen=True)
class ColumnTexts:
    """A column: its texts, which of them each row has (``int64[rows]``), and the rows of each text that differs from
    the others as databases compare them."""

    texts: pa.StringArray
    indices: np.ndarray
    order: np.ndarray
    """``int64[rows]``: the rows, grouped by text."""
    groups: Range


def column_texts(vocabulary: Vocabulary, table: str, column: str) -> ColumnTexts:
    """Return a column of a table, created once."""
    return vocabulary.cached(("shown", table, column), lambda: _column_texts(vocabulary, table, column))


def _column_texts(vocabulary: Vocabulary, table: str, column: str) -> ColumnTexts:
    encoded = vocabulary.table(table)[column].combine_chunks().dictionary_encode()
    texts, at = encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
    folded = [values.fold_text(text.upper()) for text in texts.to_pylist()]
    number = {text: place for place, text in enumerate(dict.fromkeys(folded))}
    group = np.array([number[text] for text in folded])[at]
    counts = np.bincount(group).astype(np.uint64)
    return ColumnTexts(texts, at, np.argsort(group, kind="stable"), Range(np.cumsum(counts) - counts, counts))


class TableKind(GroupKind):
    """One row of a table. Where a field of the group is unique, rows are drawn by its values."""

    table: ClassVar[str]

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        self._vocabulary = compiler.vocabulary
        self._size = compiler.vocabulary.table(self.table).num_rows
        self.anchored = unique_field(fields)
        self._anchor: ColumnTexts | None = None
        if self.anchored is not None:
            self._anchor = self._column_texts(self.anchored)

    def _column_texts(self, field: FieldSpec) -> ColumnTexts:
        assert issubclass(field.type, RowField)  # no other type is in such a group
        return column_texts(self._vocabulary, self.table, field.type.column(field.options))

    def prepare(self, env: GenerationContext, fixed: dict[str, Any]) -> tuple[np.ndarray | None, list[Fault]]:
        """The rows to choose from; None: all."""
        rows, unmet = None, []
        by_name = {field.name: field for field in self.fields}
        for name, value in fixed.items():
            if value is None:
                continue
            field = by_name[name]
            column = self._column_texts(field)
            matching = np.flatnonzero(column.indices == column.texts.index(str(value)).as_py())
            remaining = matching if rows is None else np.intersect1d(rows, matching)
            if remaining.size and self._anchor is None:
                rows = remaining
                continue
            text = f'No value matches "{value}" here; the other fields of the group ignore it.'
            unmet.append(Fault(f"overrides.{name}", "no_match", text, ""))
        return rows, unmet

    def draw(self, draws: RandomStream, state: np.ndarray | None) -> np.ndarray:
        """``int64[n]``: rows of the table."""
        if self._anchor is not None:
            parts = self._anchor.groups
            value = draws.permuted(parts.count.size).view(np.int64)
            return self._anchor.order[parts.pick(value, draws.bits(_ROW_SALT) >> _U32).view(np.int64)]
        if state is None:
            return draws.below(self._size).view(np.int64)
        return state[draws.below(state.size).view(np.int64)]


def unique_field(fields: Sequence[FieldSpec]) -> FieldSpec | None:
    """The unique field that a group's rows are drawn by, if there is one."""
    return next((field for field in fields if field.common.unique), None)


class RowField(FieldType):
    """A field of a group that shares a row of a table."""

    @classmethod
    @abstractmethod
    def column(cls, options: Any) -> str:
        """Which column of the table it shows."""


class TableField(RowField):
    """A column of the group's row. A subclass sets the table, and the number of distinct texts."""

    dtype = pa.string()
    table: ClassVar[str]
    count: ClassVar[int]

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._column_texts = column_texts(compiler.vocabulary, self.table, self.column(options))
        self.max_length = max_text_length(self._column_texts.texts)
        self._anchor = unique_field(compiler.fields_of_same_group(field))

    @classmethod
    def group_attribute(cls, options: Any) -> str:
        return f"{cls.name}:{cls.column(options)}"

    @classmethod
    def capacity(cls) -> int:
        return cls.count

    def fill(self, context: ColumnContext) -> pa.Array:
        return dictionary_array(
            self._column_texts.texts, self._column_texts.indices[context.group(np.ndarray)]
        )

    def distinct_count(self) -> int | None:
        follows_other = self.field.common.unique and self._anchor is not self.field
        return None if follows_other else self._column_texts.groups.count.size

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        # The group draws its rows by the values of this column; each occurs once.
        return self.fill(context)

    def unique_hint(self) -> str:
        name = self._anchor.name if self._anchor is not None else ""
        return f'Only one field of a group can be unique, and "{name}" is unique.'


class CarKind(TableKind):
    """One model of a car a row."""

    kind = table = "car"


class CarMake(TableField):
    """The maker of the row's car."""

    name = "car_make"
    label = "Car Make"
    category = "misc"
    description = "The make of a car, such as Toyota, consistent with its model."
    aliases = (
        "car brand",
        "vehicle make",
        "vehicle manufacturer",
        "car manufacturer",
        "auto make",
        "vehicle make name",
    )
    example = "Toyota"
    group_kind = table = "car"
    count = 59

    @classmethod
    def column(cls, options: Any) -> str:
        return "make"


class CarModel(TableField):
    """The model of the row's car."""

    name = "car_model"
    label = "Car Model"
    category = "misc"
    description = "The model of a car, such as Corolla, consistent with its make."
    aliases = ("vehicle model", "auto model", "car name", "vehicle model name")
    example = "Corolla"
    group_kind = table = "car"
    count = 526

    @classmethod
    def column(cls, options: Any) -> str:
        return "model"


class AirlineKind(TableKind):
    """One airline a row."""

    kind = table = "airline"


class Airline(TableField):
    """An airline by its name or by one of its codes."""

    name = "airline"
    label = "Airline"
    category = "misc"
    description = "The name of an airline, such as Lufthansa, or its code."
    aliases = ("airline name", "carrier airline", "airline code", "airline iata code", "airline company")
    example = "Lufthansa"
    group_kind = table = "airline"
    count = 120

    class Options(OptionsModel):
        format: Literal["name", "iata", "icao"] = Field("name", description="Lufthansa, LH or DLH.")

    options: Options

    @classmethod
    def column(cls, options: Options) -> str:
        return options.format


class DiagnosisKind(TableKind):
    """One diagnosis a row."""

    kind = table = "diagnosis"


class Icd10Code(TableField):
    """A diagnosis of the International Classification of Diseases."""

    name = "icd10_code"
    label = "ICD-10 Code"
    category = "misc"
    description = "The ICD-10 code of a diagnosis, such as J45.9, or its description."
    aliases = (
        "icd 10", "icd10", "icd", "icd code", "icd10 diagnosis code", "icd10 dx code", "diagnosis code", "diagnosis",
        "dx code", "icd10 dx desc long", "icd10 dx desc short",
    )  # fmt: skip
    example = "J45.9"
    group_kind = table = "diagnosis"
    count = 318

    class Options(OptionsModel):
        format: Literal["code", "name"] = Field("code", description="Code, such as J45.9, or description.")

    options: Options

    @classmethod
    def column(cls, options: Options) -> str:
        return options.format


class UnitKind(TableKind):
    """One unit of measure a row."""

    kind = table = "unit"


class Unit(TableField):
    """A unit of measure by its name, its symbol, or what it measures."""

    name = "unit"
    label = "Unit of Measure"
    category = "misc"
    description = "A unit of measure: its name, such as kilogram, its symbol, or its quantity."
    aliases = ("measurement unit", "unit name", "uom", "unit symbol", "measure unit", "science unit")
    example = "kilogram"
    group_kind = table = "unit"
    count = 126

    class Options(OptionsModel):
        format: Literal["name", "symbol", "quantity"] = Field("name", description="kilogram, kg or mass.")

    options: Options

    @classmethod
    def column(cls, options: Options) -> str:
        return options.format


class DegreeKind(TableKind):
    """One academic degree a row."""

    kind = table = "degree"


class Degree(TableField):
    """An academic degree with its subject, its abbreviation, or its level."""

    name = "degree"
    label = "Degree"
    category = "person"
    description = "An academic degree, such as Bachelor of Science in Physics, or its abbreviation or level."
    aliases = (
        "academic degree",
        "education",
        "university degree",
        "qualification",
        "education level",
        "diploma",
    )
    example = "Bachelor of Science in Physics"
    group_kind = table = "degree"
    count = 220

    class Options(OptionsModel):
        format: Literal["name", "abbreviation", "level"] = Field(
            "name", description="Bachelor of Science in Physics, B.Sc. or Bachelor."
        )

    options: Options

    @classmethod
    def column(cls, options: Options) -> str:
        return options.format
