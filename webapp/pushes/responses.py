"""Response models of pushes."""

from __future__ import annotations

from typing import Any

from webapp.exports.views import ExportPins
from webapp.generation.views import LeakReport
from webapp.web.responses import Output


class Counts(Output):
    """Rows of a push by outcome; the total is the sum of the others.

    `undone` rows were delivered and deleted again later.
    """

    total: int
    delivered: int
    failed: int
    unknown: int
    pending: int
    undone: int


class PushColumn(Output):
    """The content of a column: a field, or a formula; neither for a generated key."""

    column: str
    field: str | None
    formula: str | None


class PushTable(Output):
    """One table of a push.

    `from_parent` names columns that get the key of a row in another table of the push, by that table's position. `note`
    says why it has fewer rows than requested, and is empty otherwise.
    """

    name: str
    template_id: str | None
    template_version: int | None
    target: str
    count: int
    note: str
    offset: int
    mode: str
    key_columns: list[str]
    columns: list[PushColumn]
    from_parent: dict[str, int]
    create: bool


class WaitingOut(Output):
    """The target is unreachable: since when, the number of attempts, and the time of the next attempt."""

    since: str
    tries: int
    reason: str
    message: str
    next_try_at: str
    next_try_in_seconds: int


class SkippedTable(Output):
    """A table that is left out of the push, with the reason."""

    name: str
    code: str
    message: str
    hint: str


class PushOut(Output):
    """Rows that are sent, or were sent, to a connection."""

    id: str
    kind: str
    of_id: str | None
    status: str
    counts: Counts
    connection_id: str | None
    endpoint_id: str | None
    template_id: str | None
    template_version: int | None
    dataset_id: str | None
    dataset_version: int | None
    target: str
    mode: str
    tables: list[PushTable]
    skipped: list[SkippedTable]
    seed: str
    now: str | None
    offset: int
    attempt: int
    progress: list[list[float]]
    pins: ExportPins
    request: dict[str, Any]
    leaks: list[LeakReport] | None
    waiting: WaitingOut | None
    error: dict[str, Any] | None
    project_id: str
    team_id: str
    created_by: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None
    cancel_requested_at: str | None


class MisfitOut(Output):
    """A value that does not fit its column, or (`row` null) a reason why values may not fit."""

    table: str
    column: str
    field: str | None
    row: int | None
    value: Any
    reason: str
    message: str
    hint: str


class DryTable(Output):
    """The statements for the first rows of a table, or their HTTP requests."""

    name: str
    target: str
    statements: list[str] | None = None
    requests: list[str] | None = None


class DryRunOut(Output):
    """What would be sent: the statements or HTTP requests of three rows per table, and values that do not fit."""

    statements: list[str] | None = None
    requests: list[str] | None = None
    misfits: list[MisfitOut]
    checked_rows: int
    tables: list[DryTable]


class PlannedColumn(Output):
    """The content of a column: `state` is field, skipped or missing."""

    column: str
    state: str
    field: str | None
    formula: str | None
    how: str | None
    skipped: str | None
    type: str
    declared: str
    nullable: bool
    key: bool
    unique: bool
    max_length: int | None
    generated: str
    default: str | None
    from_parent: int | None
    misfits: list[MisfitOut]


class PlannedField(Output):
    """A field that can be sent."""

    name: str
    type: str
    label: str
    sensitive: bool


class PlannedTable(Output):
    """The mapping of a table, with its errors.

    `unchecked`: columns written while foreign key checks are disabled, because tables refer to each other. `note` says
    why the table has fewer rows than requested, and is empty otherwise.
    """

    name: str
    target: str
    create: bool
    mode: str
    count: int
    note: str
    key_columns: list[str]
    capture: list[str]
    later: list[str]
    unchecked: list[str]
    columns: list[PlannedColumn]
    fields: list[PlannedField]
    unused: list[str]
    faults: list[dict[str, Any]]


class PlanOut(Output):
    """What a push would write, and where. `needs_confirmation` is the required value of `confirm`."""

    connection_id: str
    needs_confirmation: str | None
    modes: list[str]
    create_table: bool
    statements: bool
    total: int
    tables: list[PlannedTable]
    skipped: list[SkippedTable]


class RowOut(Output):
    """The outcome of a row. `values` only if they were requested."""

    table: str
    row: int
    state: str
    attempts: int
    status_code: int | None
    code: str
    native: str
    column: str | None
    message: str
    key: dict[str, Any] | None
    ms: int | None
    values: dict[str, Any] | None = None


class BadRowsOut(Output):
    """The outcome of injected invalid rows.

    Of the `bad` rows that were processed, the target has `refused` (rejected) or `taken` (accepted) this many; for
    `unknown` ones the outcome is not known. `good_refused` is the number of valid rows that it rejected.
    """

    bad: int
    refused: int
    taken: int
    unknown: int
    good_refused: int
