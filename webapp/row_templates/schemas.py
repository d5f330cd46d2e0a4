"""Request models for rows, which define validation, forms and documentation.

An export stores its request with the same models, so that a worker reads it in the same way as the web process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)

from webapp import json_input, limits
from webapp.engine.formats import FORMATS
from webapp.engine.formats.base import Arrays, Format
from webapp.engine.invalid_data.settings import Invalid
from webapp.engine.source_data import SourceSpec
from webapp.engine.spec import field_schema
from webapp.errors import pydantic_message
from webapp.timestamps import Timestamp, TimestampOrPresent

FormatName = Literal["json", "csv", "sql", "xlsx", "ndjson", "parquet"]

READ_ONLY: Final = frozenset(
    "id label version created_at updated_at deleted_at created_by project_id team_id workspace_id warnings "
    "references".split()
)
"""Keys of a template that a client sends back, and that are then ignored."""


class RowsInput(json_input.Model):
    """A body of this module: unknown keys are rejected, and types are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)
    read_only: ClassVar[frozenset[str]] = READ_ONLY


class _Section(json_input.Model):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def section(name: str, kind: type[Format], *without: str) -> type[_Section]:
    """Return the options of a format as a key of the request, without the options that are separate keys."""
    fields: dict[str, Any] = {
        key: (info.annotation, info) for key, info in kind.Options.model_fields.items() if key not in without
    }

    def fit_together(options: BaseModel) -> BaseModel:
        try:
            kind.Options(**options.model_dump(exclude_unset=True))
        except ValidationError as error:
            messages = [pydantic_message(item) for item in error.errors()]
            raise ValueError(" ".join(messages)) from None
        return options

    model = create_model(
        name,
        __base__=_Section,
        __validators__={"fit_together": model_validator(mode="after")(fit_together)},  # type: ignore[dict-item]  # as its docs do
        **fields,
    )
    model.__doc__ = kind.Options.__doc__
    return model


if TYPE_CHECKING:  # their options are only known at run time
    CsvSection = _Section
    SqlSection = _Section
else:
    CsvSection = section("CsvOptions", FORMATS["csv"], "arrays")
    SqlSection = section("SqlOptions", FORMATS["sql"], "arrays")

Count = Annotated[int, Field(ge=limits.MIN_ROWS)]
Seed = Annotated[str, Field(min_length=1, max_length=limits.MAX_SEED_CHARS)]
Locale = Annotated[str, Field(min_length=1, max_length=limits.MAX_LOCALE_CHARS)]
# The engine validates fields and reports all errors of all fields; this schema only documents them.
FIELD_SCHEMA: Final = {**field_schema(), "title": "Field", "additionalProperties": True}
Fields = Annotated[
    list[Any],
    WithJsonSchema({"type": "array", "minItems": 1, "maxItems": limits.MAX_FIELDS, "items": FIELD_SCHEMA}),
]
RowsOf = Annotated[dict[str, Count], Field(max_length=limits.MAX_RELATED)]
_ROWS_OF: Final = "Number of rows of related templates, by ID; used for references and cardinalities."
NOW: Final = (
    "The reference time for relative dates, or `present` for the current time. Default: with a seed "
    "the template's anchor, otherwise the current time."
)
NOW_OF_DATASET: Final = (
    "The reference time for relative dates, or `present` for the current time. Default: the dataset's anchor."
)
_FETCH: Final = "Fetch missing values from connections; otherwise sample values are used."
_SOURCE: Final = "Source of the rows: a workspace file, or a connection's table or query."
_INVALID: Final = "Invalid data: a share of the rows, each with one invalid cell."
Name = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]


class PreviewInput(RowsInput):
    """Three rows of a template, or of an unsaved draft of it."""

    seed: Seed | None = Field(
        None,
        description=("The same seed produces the same rows. If left out, a new one is created and returned."),
    )
    overrides: dict[str, Any] = Field(default_factory=dict, description="Fixed values by field name.")
    now: TimestampOrPresent | None = Field(None, description=NOW)
    locale: Locale | None = Field(None, description="Replaces the template's locale.")
    rows: RowsOf = Field(default_factory=dict, description=_ROWS_OF)
    fields: Fields | None = Field(None, description="Field definitions of an unsaved draft.")
    source: SourceSpec | None = Field(
        None, description=f"{_SOURCE} Only for a draft. Default: the value stored with the template."
    )
    invalid: Invalid | None = Field(
        None, description=f"{_INVALID} Only for a draft. Default: the value stored with the template."
    )
    fetch: bool | None = Field(
        None, description=f"{_FETCH} Default: true for a saved template, false for a draft."
    )


class GenerateInput(RowsInput):
    """Rows of a template, in a format."""

    count: Count | None = Field(None, description="Number of rows. Default: the template's quantity.")
    format: FormatName = Field("json", description="Output format; `Accept: text/csv` takes precedence.")
    seed: Seed | None = Field(
        None,
        description=("The same seed produces the same rows. If left out, a new one is created and returned."),
    )
    overrides: dict[str, Any] = Field(default_factory=dict, description="Fixed values by field name.")
    offset: int = Field(0, ge=0, le=limits.MAX_OFFSET, description="Number of rows to skip.")
    locale: Locale | None = Field(None, description="Replaces the template's locale.")
    now: TimestampOrPresent | None = Field(None, description=NOW)
    rows: RowsOf = Field(default_factory=dict, description=_ROWS_OF)
    csv: CsvSection | None = Field(None, description="Format of CSV files.")
    sql: SqlSection | None = Field(None, description="Format of SQL files.")
    arrays: Arrays | None = Field(
        None, description="Arrays in CSV and XLSX: JSON text in one cell, or numbered columns."
    )

    def options_for(self, kind: type[Format]) -> Format.Options:
        """Return the options of this request for one format."""
        section = {"csv": self.csv, "sql": self.sql}.get(kind.name)
        values = section.model_dump(exclude_unset=True) if section is not None else {}
        if self.arrays is not None and "arrays" in kind.Options.model_fields:
            values["arrays"] = self.arrays
        return kind.Options(**values)


class TemplateExportInput(GenerateInput):
    """Rows of a template in a file that is created in the background."""

    part_rows: Annotated[int, Field(ge=limits.PART_MIN_ROWS)] | None = Field(
        None,
        description=f"Rows per part, for more than {limits.PARTS_FROM_ROWS:,} rows. Several workers create the parts.",
    )


class DraftInput(GenerateInput):
    """Rows of an unsaved template."""

    name: Name = Field("rows", description="Name of the file, table or sheet.")
    description: str = Field("", max_length=limits.MAX_DESCRIPTION_CHARS)
    fields: Fields = Field(description="Field definitions.")
    quantity: Count | None = Field(None, description="Number of rows if `count` is not set.")
    anchor: Timestamp | None = Field(
        None,
        description="The time that relative dates depend on with a seed and no `now`; "
        f"{limits.DRAFT_ANCHOR:%Y-%m-%dT%H:%M:%SZ} if left out.",
    )
    source: SourceSpec | None = Field(None, description=_SOURCE)
    invalid: Invalid | None = Field(None, description=_INVALID)


class DraftPreviewInput(DraftInput):
    """Three rows of an unsaved template."""

    fetch: bool = Field(False, description=_FETCH)
