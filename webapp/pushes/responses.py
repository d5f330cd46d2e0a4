"""What pushes answer, as models."""

from __future__ import annotations

from typing import Any

from webapp.generation.views.exports import ExportPins
from webapp.real_data.views.masking import LeakReport
from webapp.web.responses import Output


class Counts(Output):
    """Rows of a push by what became of them; the total is the sum of the others. `undone` were delivered, and taken
    out again since."""

    total: int
    delivered: int
    failed: int
    unknown: int
    pending: int
    undone: int


class PushColumn(Output):
    """What is sent to one column: a field, or a formula; neither for a key of ours."""

    column: str
    field: str | None
    formula: str | None


class PushTable(Output):
    """One table of a push. `from_parent` names columns that take the key of a row of another table of the push, by
    that table's place."""

    name: str
    template_id: str | None
    template_version: int | None
    target: str
    count: int
    offset: int
    mode: str
    key_columns: list[str]
    columns: list[PushColumn]
    from_parent: dict[str, int]
    create: bool


class WaitingOut(Output):
    """The target cannot be reached or answers no request: since when, how often it was tried, when it is tried next."""

    since: str
    tries: int
    reason: str
    message: str
    next_try_at: str
    next_try_in_seconds: int


class PushOut(Output):
    """Rows sent to a connection, or to be sent."""

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
    """A value that will not fit its column, or (`row` null) what may bring one."""

    table: str
    column: str
    field: str | None
    row: int | None
    value: Any
    reason: str
    message: str
    hint: str


class DryTable(Output):
    """The statements of the first rows of one table, or their requests over HTTP."""

    name: str
    target: str
    statements: list[str] | None = None
    requests: list[str] | None = None


class DryRunOut(Output):
    """What would be sent: the statements of three rows of each table (over HTTP their requests), and every value that
    will not fit."""

    statements: list[str] | None = None
    requests: list[str] | None = None
    misfits: list[MisfitOut]
    checked_rows: int
    tables: list[DryTable]


class PlannedColumn(Output):
    """What one column gets: `state` is field, skipped or missing."""

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
    """A field that may be sent."""

    name: str
    type: str
    label: str
    sensitive: bool


class PlannedTable(Output):
    """The mapping of one table, with its faults."""

    name: str
    target: str
    create: bool
    mode: str
    count: int
    key_columns: list[str]
    capture: list[str]
    later: list[str]
    columns: list[PlannedColumn]
    fields: list[PlannedField]
    unused: list[str]
    faults: list[dict[str, Any]]


class PlanOut(Output):
    """What a push would write where. `needs_confirmation` is what `confirm` must say."""

    connection_id: str
    needs_confirmation: str | None
    modes: list[str]
    create_table: bool
    statements: bool
    total: int
    tables: list[PlannedTable]


class RowOut(Output):
    """What became of one row. `values` only where they were asked for."""

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
    """What became of the rows of a push that were bad on purpose: `bad` of those that have their end, which the target
    `refused` or has `taken`, or of which it is `unknown`; and how many rows it refused that were good."""

    bad: int
    refused: int
    taken: int
    unknown: int
    good_refused: int
