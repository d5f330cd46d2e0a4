"""Request models of datasets: their tables, and requests for their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

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
    SqlSection,
    section,
)
from webapp.timestamps import TimestampOrPresent

READ_ONLY: Final = frozenset({"version"})
"""Keys of a table that a client sends back, and that are then ignored."""

# The tables have names, so the option for a name is not available here.
if TYPE_CHECKING:  # its options are only known at run time
    SqlScriptSection = SqlSection
else:
    SqlScriptSection = section("SqlScriptOptions", FORMATS["sql"], "arrays", "table")


class DatasetTable(RowsInput):
    """One table of a dataset: a template and its number of rows."""

    read_only: ClassVar[frozenset[str]] = READ_ONLY

    template_id: str = Field(min_length=1, max_length=limits.MAX_NAME_CHARS)
    count: Annotated[int, Field(ge=limits.MIN_ROWS, le=limits.ENTERPRISE_MAX.rows_per_generation)] | None = (
        Field(
            None,
            description=(
                "Null: the number of rows that results from its parents, otherwise the template's quantity."
            ),
        )
    )
    name: Name | None = Field(
        None, description=("Name of the file, sheet or table; null: the template's name.")
    )

    @model_validator(mode="before")
    @classmethod
    def _ignore_read_only(cls, value: Any) -> Any:
        if isinstance(value, dict) and not READ_ONLY.isdisjoint(value):
            return {key: item for key, item in value.items() if key not in READ_ONLY}
        return value


Tables = Annotated[list[DatasetTable], Field(min_length=1, max_length=limits.MAX_DATASET_TABLES)]


class DatasetPreviewInput(RowsInput):
    """Three rows of each table."""

    seed: Seed | None = Field(None, description="Replaces the seed of the dataset.")
    now: TimestampOrPresent | None = Field(None, description=NOW_OF_DATASET)


class DatasetExportInput(DatasetPreviewInput):
    """All tables of a dataset in one file: XLSX one workbook, SQL one script, every other format a ZIP archive."""

    format: FormatName = Field(
        "json",
        description=(
            "XLSX: one sheet per table. SQL: one script. Otherwise: one file per table in a ZIP archive."
        ),
    )
    csv: CsvSection | None = Field(None, description="Format of CSV files.")
    sql: SqlScriptSection | None = Field(None, description="Format of SQL files.")
    arrays: Arrays | None = Field(
        None, description="Arrays in CSV and XLSX: JSON text in one cell, or numbered columns."
    )

    def of_table(self, count: int) -> GenerateInput:
        """Return the same request for one table. `count` can be 0, because parents may have no children."""
        settings = self.model_dump(mode="json", exclude={"seed", "now"}, exclude_none=True)
        table_input = GenerateInput.model_validate(settings, strict=False)
        return table_input.model_copy(update={"seed": self.seed, "now": self.now, "count": count})
