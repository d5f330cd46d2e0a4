"""Request models of pushes; a push stores its request as `request["ask"]`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from webapp import limits
from webapp.connectors.base import Mode
from webapp.row_templates.schemas import NOW, NOW_OF_DATASET, Count, Locale, Name, RowsInput, RowsOf, Seed
from webapp.timestamps import TimestampOrPresent

ColumnName = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]
Target = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]
MappingByField = Annotated[dict[str, ColumnName | None], Field(max_length=limits.MAX_FIELDS)]
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
    "Effect of a failed row. continue: every row is sent. stop: the first failed row fails the push. "
    f"stop_when_all_fail: the push fails if the first rows of a table ({limits.PUSH_SAME_FAILURES:,} in a "
    f"database, {limits.HTTP_SAME_FAILURES} over HTTP) all fail for the same reason."
)
_MAPPING = "Column by field; null leaves the field out. Other fields are mapped by name."
_HTTP_ONLY = "Only for endpoints and HTTP connections."


def _validate_canary(value: Any) -> Any:
    """Validate ``canary`` in one place, so that there is one error message for all of its types."""
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, int) or not 1 <= value <= limits.PUSH_CHUNK_ROWS:
        raise ValueError(f"Must be a number of rows from 1 to {limits.PUSH_CHUNK_ROWS:,}, or true")
    return value


class SendingInput(RowsInput):
    """Parameters of every kind of push."""

    connection_id: Name | None = Field(None, description="The target connection.")
    endpoint_id: Name | None = Field(None, description="The target endpoint, instead of a connection.")
    mode: Mode = Field("insert", description="Upsert and update identify rows by key_columns.")
    on_error: OnError = Field("continue", description=_ON_ERROR)
    target_wait_seconds: int | None = Field(
        None,
        ge=0,
        le=limits.PUSH_MAX_TARGET_WAIT_SECONDS,
        description="How many seconds to wait for a target that is unreachable or does not respond; "
        "null: the server setting TARGET_WAIT_SECONDS.",
    )
    dry_run: bool = Field(
        False, description="Send nothing. Return three statements and the values that do not fit."
    )
    canary: Annotated[
        Annotated[int, Field(ge=1, le=limits.PUSH_CHUNK_ROWS)] | bool | None,
        BeforeValidator(_validate_canary),
    ] = Field(
        None,
        description=(
            "Send this number of rows first (true: 10), and the other rows only if none of these was rejected."
        ),
    )
    confirm: str | None = Field(
        None,
        max_length=limits.MAX_NAME_CHARS,
        description=("The connection's name. Required if the connection is marked as prod."),
    )
    create_table: bool = Field(False, description="Create the table if it does not exist.")
    before_sql: Statements = Field(
        default_factory=list, description=("Statements to run before the rows; admins only.")
    )
    after_sql: Statements = Field(
        default_factory=list, description=("Statements to run after the rows; admins only.")
    )
    push_mode: Literal["per_row", "batch"] | None = Field(None, description=_HTTP_ONLY)
    wrapper_key: Name | None = Field(None, description=_HTTP_ONLY)
    batch_size: int | None = Field(None, description=_HTTP_ONLY)
    retry: dict[str, Any] | None = Field(None, description=_HTTP_ONLY)
    request_template: dict[str, Any] | None = Field(None, description=_HTTP_ONLY)
    parallel: int | None = Field(None, description=_HTTP_ONLY)
    rate_per_second: float | None = Field(None, description=_HTTP_ONLY)

    @property
    def canary_rows(self) -> int | None:
        """Number of rows that are sent first, or None to send all rows without a canary."""
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
    """Parameters of a push into one table."""

    target: Target | None = Field(
        None,
        description="Table, collection or entity set. Default: the one that matches the template's name.",
    )
    mapping: MappingByField = Field(default_factory=dict, description=_MAPPING)
    computed: Computed = Field(default_factory=dict, description="Formulas over the fields, by column.")
    key_columns: Annotated[list[ColumnName], Field(max_length=limits.MAX_FIELDS)] = Field(
        default_factory=list, description="Columns that identify a row. Default: the table's primary key."
    )


class PushInput(TableInput):
    """Rows of a template for a table."""

    count: Count | None = Field(None, description="Number of rows. Default: the template's quantity.")
    seed: Seed | None = Field(
        None,
        description=("The same seed produces the same rows. If left out, a new one is created and returned."),
    )
    now: TimestampOrPresent | None = Field(None, description=NOW)
    offset: int = Field(0, ge=0, le=limits.MAX_OFFSET, description="Number of rows to skip.")
    locale: Locale | None = Field(None, description="Replaces the template's locale.")
    overrides: dict[str, Any] = Field(default_factory=dict, description="Fixed values by field name.")
    rows: RowsOf = Field(default_factory=dict, description="Number of rows of related templates, by ID.")


class DatasetPushInput(SendingInput):
    """All tables of a dataset, parents before their children."""

    targets: dict[Name, Target | None] = Field(
        default_factory=dict,
        description=(
            "Target by the dataset's table; null leaves the table out. Other tables are mapped by name."
        ),
    )
    mappings: dict[Name, MappingByField] = Field(default_factory=dict, description=f"By table. {_MAPPING}")
    computed: dict[Name, Computed] = Field(
        default_factory=dict, description=("Formulas by table and column.")
    )
    key_columns: dict[Name, list[ColumnName]] = Field(default_factory=dict, description="By table.")
    seed: Seed | None = Field(None, description="Replaces the seed of the dataset.")
    now: TimestampOrPresent | None = Field(None, description=NOW_OF_DATASET)
    skip_faulty_tables: bool = Field(
        False,
        description="Leave out tables that cannot be generated or sent, and those whose rows need a row of such a "
        "table, instead of rejecting the push. The push lists them in `skipped` with the reason.",
    )


class ExportInput(TableInput):
    """Rows to send in one request: given rows, or rows of a template."""

    rows: Annotated[list[dict[str, Any]], Field(max_length=limits.MAX_ROWS_PER_GENERATION)] | None = Field(
        None, description="The rows to send, instead of rows of a template."
    )
    template_id: Name | None = Field(None, description="The template whose rows are sent.")
    count: Count | None = None
    seed: Seed | None = None
    now: TimestampOrPresent | None = Field(None, description=NOW)
    offset: int = Field(0, ge=0, le=limits.MAX_OFFSET)
    locale: Locale | None = None
    overrides: dict[str, Any] = Field(default_factory=dict)


class ExportDbInput(ExportInput):
    """Rows for a table of a database."""

    table: Target | None = Field(None, description="Alias of target.")


class ExportRestInput(ExportInput):
    """Rows for an endpoint or an HTTP connection."""


RetriedState = Literal["failed", "unknown", "pending"]


class RetryInput(RowsInput):
    """Rows of a push that were not delivered and are sent again. A mapping and overrides can correct them."""

    states: Annotated[list[RetriedState], Field(min_length=1, max_length=3)] = Field(
        default_factory=lambda: list[RetriedState](("failed", "unknown")),
        description=(
            "Which rows to send. pending: rows that were never sent because the push failed or was cancelled."
        ),
    )
    rows: Annotated[list[Count], Field(max_length=limits.MAX_ROWS_PER_GENERATION)] | None = Field(
        None, description="Row numbers from 1 in the table `table`, to limit the retry."
    )
    table: Name | None = Field(None, description="Only rows of this table.")
    mapping: MappingByField = Field(
        default_factory=dict, description="Replaces the push's own values, by field."
    )
    computed: Computed = Field(default_factory=dict, description="Formulas, by column.")
    overrides: dict[str, Any] = Field(default_factory=dict, description="Fixed values by field name.")
    on_error: OnError = Field("continue", description=_ON_ERROR)
    confirm: str | None = Field(None, max_length=limits.MAX_NAME_CHARS)


class UndoInput(RowsInput):
    """Parameters of an undo, which deletes the rows that a push delivered."""

    confirm: str | None = Field(None, max_length=limits.MAX_NAME_CHARS)
