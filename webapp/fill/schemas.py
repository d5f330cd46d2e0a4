"""Input for filling a database."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from webapp import limits
from webapp.pushes.schemas import OnError
from webapp.row_templates.schemas import RowsInput, Seed

TableName = Annotated[str, Field(min_length=1, max_length=limits.MAX_NAME_CHARS)]


class FillInput(RowsInput):
    """Which tables to fill, and with how many rows."""

    tables: Annotated[list[TableName], Field(min_length=1, max_length=limits.MAX_DATASET_TABLES)] | None = (
        Field(None, description="Names of tables in the connection's metadata. Default: all tables.")
    )
    rows: Annotated[int, Field(ge=limits.MIN_ROWS, le=limits.ENTERPRISE_MAX.rows_per_generation)] = Field(
        1_000,
        description="Number of rows for each table. A table whose unique columns or parents have fewer values gets "
        "as many rows as they allow.",
    )
    row_counts: Literal["equal", "proportional", "existing"] = Field(
        "equal",
        description="`equal`: each table gets `rows` rows. `proportional`: the table with the most rows gets `rows`, "
        "and the others in proportion to the rows that they have; of tables without rows, those that others refer to "
        "get fewer. `existing`: each table gets as many rows as it has, and tables without rows are skipped.",
    )
    existing: Literal["add", "use"] = Field(
        "add",
        description="Tables that have rows: `add` adds rows, `use` leaves them as they are. Rows of other tables refer "
        "to the existing rows of tables that are not filled.",
    )
    seed: Seed | None = Field(
        None, description="The same seed produces the same rows. Default: a new one, which is returned."
    )
    on_error: OnError = Field("continue", description="Effect of a failed row; see the push of a dataset.")
    target_wait_seconds: int | None = Field(
        None,
        ge=0,
        le=limits.PUSH_MAX_TARGET_WAIT_SECONDS,
        description="How many seconds to wait for a database that is unreachable; null: the server setting "
        "TARGET_WAIT_SECONDS.",
    )
    confirm: str | None = Field(
        None, max_length=limits.MAX_NAME_CHARS, description="The connection's name, if it is marked as prod."
    )
    dry_run: bool = Field(
        False,
        description="Create the templates and the dataset, and return the plan of the push without sending a row.",
    )
