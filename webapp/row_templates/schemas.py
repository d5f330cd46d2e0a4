"""What callers ask rows with: one model an input; from it come the checks, the forms and the documentation.

The same models are what an export keeps of its request, so that a worker reads it as the web process did.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    create_model,
    model_validator,
)

from webapp import limits, whole
from webapp.engine.bad.invalid import Invalid
from webapp.engine.formats import FORMATS
from webapp.engine.formats.base import Arrays, Format
from webapp.engine.real import SourceSpec
from webapp.engine.spec import field_schema
from webapp.timestamps import Moment, Now

FormatName = Literal["json", "csv", "sql", "xlsx", "ndjson", "parquet"]

READ_ONLY: Final = frozenset(
    "id label version created_at updated_at deleted_at created_by project_id team_id workspace_id warnings "
    "references".split()
)
"""Keys of a template that a client sends back, and that are then ignored."""


class RowsInput(whole.Model):
    """A body of this page: unknown keys are refused, nothing is coerced."""

    model_config = ConfigDict(extra="forbid", strict=True)
    read_only: ClassVar[frozenset[str]] = READ_ONLY


class _Section(whole.Model):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def section(name: str, kind: type[Format], *without: str) -> Any:
    """The options of a format as a key of the request, without those that stand beside it."""
    fields: dict[str, Any] = {
        key: (info.annotation, info) for key, info in kind.Options.model_fields.items() if key not in without
    }

    def fit_together(given: BaseModel) -> BaseModel:
        try:
            kind.Options(**given.model_dump(exclude_unset=True))
        except ValidationError as error:
            told = [str(item["msg"]).removeprefix("Value error, ") for item in error.errors()]
            raise ValueError("; ".join(told)) from None
        return given

    made = create_model(
        name,
        __base__=_Section,
        __validators__={"fit_together": model_validator(mode="after")(fit_together)},
        **fields,
    )
    made.__doc__ = kind.Options.__doc__
    return made


CsvSection = section("CsvOptions", FORMATS["csv"], "arrays")
SqlSection = section("SqlOptions", FORMATS["sql"], "arrays")

Count = Annotated[int, Field(ge=limits.MIN_ROWS)]
Seed = Annotated[str, Field(min_length=1, max_length=limits.MAX_SEED_CHARS)]
Locale = Annotated[str, Field(min_length=1, max_length=limits.MAX_LOCALE_CHARS)]
# Fields are checked by the engine, which tells every fault of every field; what they look like is told here.
FIELD_SCHEMA: Final = {**field_schema(), "title": "Field", "additionalProperties": True}
Fields = Annotated[
    list[Any],
    WithJsonSchema({"type": "array", "minItems": 1, "maxItems": limits.MAX_FIELDS, "items": FIELD_SCHEMA}),
]
RowsOf = Annotated[dict[str, Count], Field(max_length=limits.MAX_RELATED)]
_ROWS_OF: Final = (
    "Rows of related templates, by id: what references choose from and children are dealt out to."
)
NOW: Final = (
    "The time that relative dates depend on, or `present` for the time of the clock. If left out: with a seed the "
    "template's anchor, otherwise the time of the clock."
)
NOW_OF_DATASET: Final = (
    "The time that relative dates depend on, or `present` for the time of the clock. If left out: the dataset's anchor."
)
_FETCH: Final = "Ask connections for values that have not been fetched yet; else examples stand for them."
_SOURCE: Final = "Real data that the rows are taken from: a workspace file, or a connection's table or query."
_INVALID: Final = "Bad values on purpose: a share of the rows, each with one bad cell."
Name = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]


class PreviewInput(RowsInput):
    """Three rows of a template, or of an unsaved draft of it."""

    seed: Seed | None = Field(
        None, description="Same seed, same rows; one is made and told when none is sent."
    )
    overrides: dict[str, Any] = Field(default_factory=dict, description="Fixed values by field name.")
    now: Now | None = Field(None, description=NOW)
    locale: Locale | None = Field(None, description="Stands in for the template's own.")
    rows: RowsOf = Field(default_factory=dict, description=_ROWS_OF)
    fields: Fields | None = Field(None, description="Field definitions of an unsaved draft.")
    source: SourceSpec | None = Field(
        None, description=f"{_SOURCE} Of a draft; not said: the template's own."
    )
    invalid: Invalid | None = Field(None, description=f"{_INVALID} Of a draft; not said: the template's own.")
    fetch: bool | None = Field(None, description=f"{_FETCH} Not said: of a saved template, not of a draft.")


class GenerateInput(RowsInput):
    """Rows of a template, in a format."""

    count: Count | None = Field(
        None, description="Number of rows; the template's quantity when it is left out."
    )
    format: FormatName = Field("json", description="Output format; `Accept: text/csv` wins over it.")
    seed: Seed | None = Field(
        None, description="Same seed, same rows; one is made and told when none is sent."
    )
    overrides: dict[str, Any] = Field(default_factory=dict, description="Fixed values by field name.")
    offset: int = Field(0, ge=0, le=limits.MAX_OFFSET, description="Rows to skip.")
    locale: Locale | None = Field(None, description="Stands in for the template's own.")
    now: Now | None = Field(None, description=NOW)
    rows: RowsOf = Field(default_factory=dict, description=_ROWS_OF)
    csv: CsvSection | None = Field(None, description="How CSV is written.")  # type: ignore[valid-type]
    sql: SqlSection | None = Field(None, description="How SQL is written.")  # type: ignore[valid-type]
    arrays: Arrays | None = Field(
        None, description="Arrays in CSV and XLSX: JSON text in one cell, or numbered columns."
    )

    def options_for(self, kind: type[Format]) -> Format.Options:
        """The options of this request for one format."""
        section = {"csv": self.csv, "sql": self.sql}.get(kind.name)
        given = section.model_dump(exclude_unset=True) if section is not None else {}
        if self.arrays is not None and "arrays" in kind.Options.model_fields:
            given["arrays"] = self.arrays
        return kind.Options(**given)


class TemplateExportInput(GenerateInput):
    """Rows of a template in a file that workers make."""

    part_rows: Annotated[int, Field(ge=limits.PART_MIN_ROWS)] | None = Field(
        None,
        description=f"Have more than {limits.PARTS_FROM_ROWS:,} rows made as parts of so many, by workers at once.",
    )


class DraftInput(GenerateInput):
    """Rows of a template that is not saved."""

    name: Name = Field("rows", description="Names the file, table or sheet.")
    description: str = Field("", max_length=limits.MAX_DESCRIPTION_CHARS)
    fields: Fields = Field(description="Field definitions.")
    quantity: Count | None = Field(None, description="Number of rows where count says none.")
    anchor: Moment | None = Field(
        None,
        description="The time that relative dates depend on with a seed and no `now`; "
        f"{limits.DRAFT_ANCHOR:%Y-%m-%dT%H:%M:%SZ} if left out.",
    )
    source: SourceSpec | None = Field(None, description=_SOURCE)
    invalid: Invalid | None = Field(None, description=_INVALID)


class DraftPreviewInput(DraftInput):
    """Three rows of a template that is not saved."""

    fetch: bool = Field(False, description=_FETCH)
