"""What callers send about datasets: their tables, and the rows they ask of them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, model_validator

from webapp import limits
from webapp.engine.formats import FORMATS
from webapp.engine.formats.base import Arrays
from webapp.row_templates.schemas import (
    NOW_OF_DATASET,
    CsvSection,
    FormatName,
    GenerateInput,
    Name,
    RowsInput,
    Seed,
    section,
)
from webapp.timestamps import Now

READ_ONLY: Final = frozenset({"version"})
"""Keys of a table that a client sends back, and that are then ignored."""

# The tables have names of their own, so none is given here.
SqlScriptSection = section("SqlScriptOptions", FORMATS["sql"], "arrays", "table")


class DatasetTable(RowsInput):
    """One table of a dataset: a template, and how many rows of it."""

    read_only: ClassVar[frozenset[str]] = READ_ONLY

    template_id: str = Field(min_length=1, max_length=limits.MAX_NAME_CHARS)
    count: Annotated[int, Field(ge=limits.MIN_ROWS, le=limits.ENTERPRISE_MAX.rows_per_generation)] | None = (
        Field(None, description="Null: as many as its parents bear, else the template's quantity.")
    )
    name: Name | None = Field(None, description="Names the file, sheet or table; null: the template's name.")

    @model_validator(mode="before")
    @classmethod
    def _ignore_read_only(cls, value: Any) -> Any:
        if isinstance(value, dict) and not READ_ONLY.isdisjoint(value):
            return {key: item for key, item in value.items() if key not in READ_ONLY}
        return value


Tables = Annotated[list[DatasetTable], Field(min_length=1, max_length=limits.MAX_DATASET_TABLES)]


class DatasetPreviewInput(RowsInput):
    """Three rows of each table."""

    seed: Seed | None = Field(None, description="Stands in for the dataset's own.")
    now: Now | None = Field(None, description=NOW_OF_DATASET)


class DatasetExportInput(DatasetPreviewInput):
    """All tables of a dataset in one file: XLSX one workbook, SQL one script, every other format a ZIP archive."""

    format: FormatName = Field(
        "json", description="XLSX: a sheet each. SQL: one script. Else: a file each, zipped."
    )
    csv: CsvSection | None = Field(None, description="How CSV is written.")  # type: ignore[valid-type]
    sql: SqlScriptSection | None = Field(None, description="How SQL is written.")  # type: ignore[valid-type]
    arrays: Arrays | None = Field(
        None, description="Arrays in CSV and XLSX: JSON text in one cell, or numbered columns."
    )

    def of_table(self, count: int) -> GenerateInput:
        """The same asked of one table. It may have no rows: parents may bear none."""
        told = self.model_dump(mode="json", exclude={"seed", "now"}, exclude_none=True)
        ask = GenerateInput.model_validate(told, strict=False)
        return ask.model_copy(update={"seed": self.seed, "now": self.now, "count": count})
