"""What callers ask pushes with: one model an input; a push keeps it as `request["ask"]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from webapp import limits
from webapp.connectors.base import Mode
from webapp.row_templates.schemas import NOW, NOW_OF_DATASET, Count, Locale, Name, RowsInput, RowsOf, Seed
from webapp.timestamps import Now

ColumnName = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]
Target = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]
Mapped = Annotated[dict[str, ColumnName | None], Field(max_length=limits.MAX_FIELDS)]
Computed = Annotated[
    dict[ColumnName, Annotated[str, Field(min_length=1, max_length=limits.MAX_FORMULA_CHARS)]],
    Field(max_length=limits.MAX_FIELDS),
]
Statements = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=limits.MAX_STATEMENT_CHARS)]],
    Field(max_length=limits.MAX_STATEMENTS),
]
OnError = Literal["continue", "stop", "stop_when_all_fail"]
_ON_ERROR = (
    "What a failed row does. continue: every row is tried. stop: the first failed row ends the push as failed. "
    f"stop_when_all_fail: the push ends as failed when the first rows of a table ({limits.PUSH_SAME_FAILURES:,} of a "
    f"database, {limits.HTTP_SAME_FAILURES} over HTTP) all fail for one reason."
)
_MAPPING = "Column by field; null leaves the field out. Fields that are not named go by their names."
_NULL_UNLESS = "For endpoints and connections that speak HTTP."


def _canary(value: Any) -> Any:
    """Said in one message, whichever of its types was meant."""
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, int) or not 1 <= value <= limits.PUSH_CHUNK_ROWS:
        raise ValueError(f"This is a number of rows from 1 to {limits.PUSH_CHUNK_ROWS:,}, or true")
    return value


class SendingInput(RowsInput):
    """What is asked of every push, whatever its rows."""

    connection_id: Name | None = Field(None, description="Where the rows go.")
    endpoint_id: Name | None = Field(None, description="Where the rows go, instead of a connection.")
    mode: Mode = Field("insert", description="Upsert and update find rows by key_columns.")
    on_error: OnError = Field("continue", description=_ON_ERROR)
    target_wait_seconds: int | None = Field(
        None,
        ge=0,
        le=limits.PUSH_MOST_TARGET_WAIT_SECONDS,
        description="How long to wait for a target that cannot be reached or answers no request, in seconds; null: the "
        "server's setting TARGET_WAIT_SECONDS.",
    )
    dry_run: bool = Field(
        False, description="Send nothing: answer three statements and the values that will not fit."
    )
    canary: Annotated[
        Annotated[int, Field(ge=1, le=limits.PUSH_CHUNK_ROWS)] | bool | None, BeforeValidator(_canary)
    ] = Field(
        None, description="Send so many rows first (true: ten), and the others only if none was refused."
    )
    confirm: str | None = Field(
        None, max_length=limits.MAX_NAME_CHARS, description="The connection's name, where it is marked prod."
    )
    create_table: bool = Field(False, description="Make the table where it is missing.")
    before_sql: Statements = Field(default_factory=list, description="Statements before the rows; admins.")
    after_sql: Statements = Field(default_factory=list, description="Statements after the rows; admins.")
    push_mode: Literal["per_row", "batch"] | None = Field(None, description=_NULL_UNLESS)
    wrapper_key: Name | None = Field(None, description=_NULL_UNLESS)
    batch_size: int | None = Field(None, description=_NULL_UNLESS)
    retry: dict[str, Any] | None = Field(None, description=_NULL_UNLESS)
    request_template: dict[str, Any] | None = Field(None, description=_NULL_UNLESS)
    parallel: int | None = Field(None, description=_NULL_UNLESS)
    rate_per_second: float | None = Field(None, description=_NULL_UNLESS)

    @property
    def canary_rows(self) -> int | None:
        """Rows that are sent first; None: all at once."""
        if self.canary is True:
            return limits.PUSH_CANARY_ROWS
        return self.canary or None

    @model_validator(mode="before")
    @classmethod
    def _one_statement(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            single = {
                key: [value[key]] for key in ("before_sql", "after_sql") if isinstance(value.get(key), str)
            }
            return {**value, **single}
        return value


class TableInput(SendingInput):
    """What is asked of a push into one table."""

    target: Target | None = Field(
        None, description="Table, collection or entity set; left out: the one that has the template's name."
    )
    mapping: Mapped = Field(default_factory=dict, description=_MAPPING)
    computed: Computed = Field(default_factory=dict, description="Formulas over the fields, by column.")
    key_columns: Annotated[list[ColumnName], Field(max_length=limits.MAX_FIELDS)] = Field(
        default_factory=list, description="By which rows are found; left out: the table's primary key."
    )


class PushInput(TableInput):
    """Rows of a template into a table."""

    count: Count | None = Field(
        None, description="Number of rows; the template's quantity when it is left out."
    )
    seed: Seed | None = Field(
        None, description="Same seed, same rows; one is made and told when none is sent."
    )
    now: Now | None = Field(None, description=NOW)
    offset: int = Field(0, ge=0, le=limits.MAX_OFFSET, description="Rows to skip.")
    locale: Locale | None = Field(None, description="Stands in for the template's own.")
    overrides: dict[str, Any] = Field(default_factory=dict, description="Fixed values by field name.")
    rows: RowsOf = Field(default_factory=dict, description="Rows of related templates, by id.")


class DatasetPushInput(SendingInput):
    """All tables of a dataset, parents before their children."""

    targets: dict[Name, Target | None] = Field(
        default_factory=dict,
        description="Target by the dataset's table; null leaves the table out. Others go by their names.",
    )
    mappings: dict[Name, Mapped] = Field(default_factory=dict, description=f"By table. {_MAPPING}")
    computed: dict[Name, Computed] = Field(default_factory=dict, description="Formulas by table and column.")
    key_columns: dict[Name, list[ColumnName]] = Field(default_factory=dict, description="By table.")
    seed: Seed | None = Field(None, description="Stands in for the dataset's own.")
    now: Now | None = Field(None, description=NOW_OF_DATASET)


class ExportInput(TableInput):
    """Rows in one call: rows that are given, or rows of a template."""

    rows: Annotated[list[dict[str, Any]], Field(max_length=limits.MAX_ROWS_PER_GENERATION)] | None = Field(
        None, description="The rows themselves."
    )
    template_id: Name | None = Field(None, description="The template whose rows are sent.")
    count: Count | None = None
    seed: Seed | None = None
    now: Now | None = Field(None, description=NOW)
    offset: int = Field(0, ge=0, le=limits.MAX_OFFSET)
    locale: Locale | None = None
    overrides: dict[str, Any] = Field(default_factory=dict)


class ExportDbInput(ExportInput):
    """Rows into a table of a database."""

    table: Target | None = Field(None, description="Another name of target.")


class ExportRestInput(ExportInput):
    """Rows to an endpoint, or to a connection that speaks HTTP."""


class RetryInput(RowsInput):
    """Rows of a push that did not arrive, sent once more; a mapping and overrides may repair them."""

    states: Annotated[list[Literal["failed", "unknown", "pending"]], Field(min_length=1, max_length=3)] = (
        Field(
            default_factory=lambda: ["failed", "unknown"],
            description="Which rows. Pending: those that were never sent, because the push failed or was cancelled.",
        )
    )
    rows: Annotated[list[Count], Field(max_length=limits.MAX_ROWS_PER_GENERATION)] | None = Field(
        None, description="Row numbers from 1, to narrow the retry; of the table `table`."
    )
    table: Name | None = Field(None, description="Rows of this table alone.")
    mapping: Mapped = Field(default_factory=dict, description="Instead of the push's own, by field.")
    computed: Computed = Field(default_factory=dict, description="Formulas, by column.")
    overrides: dict[str, Any] = Field(default_factory=dict, description="Fixed values by field name.")
    on_error: OnError = Field("continue", description=_ON_ERROR)
    confirm: str | None = Field(None, max_length=limits.MAX_NAME_CHARS)


class UndoInput(RowsInput):
    """Rows of a push, deleted again."""

    confirm: str | None = Field(None, max_length=limits.MAX_NAME_CHARS)
