"""Push retry and undo: send rows again that failed or were never sent, and delete rows that were delivered.

Retries and undos are separate pushes with the same rows under the same numbers. The ledger of the first push determines
which rows they include.

`failures` groups the rows that did not arrive by reason. A failure is expected if the row contains injected invalid
data: the target was supposed to reject it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sqlalchemy import and_, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from webapp import quotas
from webapp.access.actors import Actor
from webapp.audit.services import audit_log
from webapp.connections.models import Connection
from webapp.errors import ApiError, ErrorCollector, Fault, as_faults, did_you_mean, validation_error
from webapp.extensions import allow_writes, db, redis_client, set_read_only
from webapp.generation.services.row_makers import RowGenerator
from webapp.pushes.models import Push, PushRange, PushRow
from webapp.pushes.schemas import RetryInput, UndoInput
from webapp.pushes.services import completion, planning, preparation, pushes, targets
from webapp.pushes.services import rows as pushes_rows
from webapp.pushes.services.ledger import read
from webapp.pushes.services.ledger.read import RowResult, row_result
from webapp.pushes.services.mapping import RequestedMapping
from webapp.pushes.services.planning import RequestedTable
from webapp.work import jobs_queue
from webapp.work.models import END_STATES

_RETRYABLE_KINDS: Final = ("push", "retry")


def retry(actor: Actor, push_id: str, body: RetryInput) -> Push:
    """Send rows of a push that has ended again; commit, and notify a worker. A mapping, formulas and overrides repair
    the rows. Failed and unknown rows were counted towards the quota when they were first requested. Pending rows were
    refunded when the push ended, and are counted now.

    Raise not_found, forbidden, validation_error (nothing to send again, faults of the repair, `confirm`), conflict (the
    push has not ended, or is being undone), read_only_connection, row_limit_exceeded or quota_exceeded. All problems of
    the request are reported together.
    """
    tables = prepare_retry_tables(actor, push_id, body)
    push = pushes.get(actor, push_id, "push")
    original = _lock_original(push)
    running_undos = select(Push.id).where(
        Push.of_id == original.id, Push.kind == "undo", Push.status.not_in(END_STATES)
    )
    if db.session.scalar(running_undos.limit(1)) is not None:
        raise ApiError("conflict", "This push is currently being undone.", {"id": original.id})
    condition = _retry_condition(push, original, body)
    recorded = db.session.scalar(select(func.count()).select_from(PushRow).where(condition)) or 0
    pending = _pending_spans(push, original, body) if "pending" in body.states else [[] for _ in tables]
    pending_counts = [read.count_in_spans(spans) for spans in pending]
    if not recorded + sum(pending_counts):
        raise _nothing_to_send_error(push, original, body)
    completion.store_invalid_rows_report(original)
    new_push = _new_push(actor, original, "retry", recorded + sum(pending_counts))
    new_push.tables = [{**table, "pending": spans} for table, spans in zip(tables, pending, strict=True)]
    new_push.request = {"ask": retry_request(original, body), "records": 0}
    nested_records = original.request.get("records", 0) * sum(pending_counts) // max(1, original.total)
    rows = sum(pending_counts) + nested_records
    reservation = (
        quotas.reserve_rows(actor, rows, largest=max(pending_counts)) if any(pending_counts) else None
    )
    try:
        if reservation is not None:
            quota = {"rows": reservation.rows, "second": reservation.second}
            new_push.request = {**new_push.request, "records": nested_records, "quota": quota}
        db.session.add(new_push)
        db.session.flush()
        db.session.execute(
            update(PushRow).where(condition).values(retried_by=new_push.id),
            execution_options={"synchronize_session": False},
        )
        return _commit_and_queue(
            actor, new_push, "push.retry", original, rows=sum(pending_counts), states=body.states
        )
    except BaseException:
        db.session.rollback()
        if reservation is not None:
            quotas.return_rows(reservation, reservation.rows)
        raise


def retry_request(original: Push, body: RetryInput) -> dict[str, Any]:
    """Return the request of a retry: that of the first push, without the parts that apply only once."""
    stored = original.request["ask"]
    return {
        **stored,
        "overrides": {**(stored.get("overrides") or {}), **body.overrides},
        "on_error": body.on_error,
        "canary": None,
        "before_sql": [],
        "after_sql": [],
        "again": body.model_dump(mode="json", exclude_defaults=True, exclude={"confirm"}),
    }


def _nothing_to_send_error(push: Push, original: Push, body: RetryInput) -> ApiError:
    text = f"No row of this push is {' or '.join(body.states)}, or these rows are already being sent again."
    if body.rows is not None:
        text = f"None of these rows is {' or '.join(body.states)}, or they are already being sent again."
    path = "states" if body.rows is None else "rows"
    hint = f"GET /pushes/{push.id}/rows?state={body.states[0]} lists the rows."
    if "pending" in body.states:
        hint = f"GET /pushes/{push.id} has the counts."
    else:
        pending = sum(map(read.count_in_spans, _pending_spans(push, original, body)))
        if pending:
            hint = f'{pending:,} rows were never sent. To send them, use states ["pending"].'
    return validation_error([Fault(path, "nothing_to_send", text, hint)])


def prepare_retry_tables(actor: Actor, push_id: str, body: RetryInput) -> list[dict[str, Any]]:
    """Return the tables of a retry, with any requested repairs. Nothing is locked, because this may query the target.
    Raises the errors of `retry`."""
    db.session.remove()
    set_read_only()
    try:
        gathered = ErrorCollector()
        push = _require_ended(pushes.get(actor, push_id, "push"))
        if push.kind not in _RETRYABLE_KINDS:
            raise validation_error([Fault("", "not_for_this_type", "An undo cannot be retried.")])
        original = read.original_push(db.session(), push)
        connection = _get_connection(actor, push, body.confirm, gathered)
        tables, can_generate_rows = _repaired_tables(actor, original, connection, body, gathered)
        if connection is not None:
            _check_requests(original, connection, tables, body, can_generate_rows, gathered)
        if gathered:  # Otherwise this is checked again when the rows are locked
            gathered.add(_nothing_to_send_faults(push, original, body))
        gathered.raise_all()
        return tables
    finally:
        db.session.remove()
        allow_writes()


def _nothing_to_send_faults(push: Push, original: Push, body: RetryInput) -> list[Fault]:
    """Return the fault of a retry without rows if it names rows that can be looked up."""
    try:
        recorded = db.session.scalar(
            select(PushRow.row).where(_retry_condition(push, original, body)).limit(1)
        )
        pending = "pending" in body.states and any(_pending_spans(push, original, body))
    except ApiError:  # A missing table, which has been reported already
        return []
    return [] if recorded is not None or pending else as_faults(_nothing_to_send_error(push, original, body))


def undo(actor: Actor, push: Push, body: UndoInput) -> Push:
    """Delete the rows that a push, which has ended, delivered to its target: by their keys, child tables first. Rows of
    tables without a key are found by their values if the table was empty before the push, and stay otherwise. Commit,
    and notify a worker. Raise validation_error (no keys, nothing delivered), conflict (the push has not ended, or is
    being undone) or read_only_connection."""
    gathered = ErrorCollector()
    _require_ended(push)
    if push.kind not in _RETRYABLE_KINDS:
        raise validation_error(
            [Fault("", "not_for_this_type", "An undo cannot be undone. Push the rows again.")]
        )
    _get_connection(actor, push, body.confirm, gathered)
    original = _lock_original(push)
    keyless = [table["name"] for table in original.tables if not can_find_rows(table)]
    if len(keyless) == len(original.tables):
        text = f"Rows of {', '.join(keyless)} cannot be found in the target, because they were sent without a key."
        gathered.add([Fault("", "missing_keys", text)])
    changed = [table["name"] for table in original.tables if table["mode"] != "insert"]
    if changed:
        text = (
            f"The previous values in {', '.join(changed)} were not saved. Only inserted rows can be undone."
        )
        gathered.add([Fault("mode", "not_allowed", text)])
    total = original.delivered
    if keyless:
        total -= sum(
            counts.delivered
            for counts in read.counts_by_table(db.session(), original)
            if counts.name in keyless
        )
    if not total:
        gathered.add([Fault("", "nothing_to_send", "No rows of this push are in the target.")])
    gathered.raise_all()
    running = select(Push.id).where(Push.of_id == original.id, Push.status.not_in(END_STATES))
    if db.session.scalar(running.limit(1)) is not None:
        raise ApiError("conflict", "This push is currently being retried or undone.", {"id": original.id})
    completion.store_invalid_rows_report(original)
    new_push = _new_push(actor, original, "undo", total)
    new_push.tables, new_push.request = (
        original.tables,
        {"ask": {"overrides": original.request["ask"].get("overrides")}},
    )
    db.session.add(new_push)
    db.session.flush()
    return _commit_and_queue(actor, new_push, "push.undo", original)


def can_find_rows(table: Mapping[str, Any]) -> bool:
    """Return whether an undo can find the rows of a table of a push."""
    return bool(table["key_columns"] or table.get("undo_columns"))


def _require_ended(push: Push) -> Push:
    """Raise conflict if the push has not ended."""
    if not push.has_ended:
        raise ApiError("conflict", "This push has not ended.", {"status": push.status})
    return push


def _get_connection(
    actor: Actor, push: Push, confirm: str | None, gathered: ErrorCollector
) -> Connection | None:
    """Return the connection of a push, or None if it no longer exists. Every error is added to `gathered`: not_found,
    validation_error (`confirm`), read_only_connection."""
    if push.connection_id is None:
        gathered.add([Fault("connection_id", "missing", "The connection of this push no longer exists.")])
        return None
    connection = None
    with gathered.check("connection_id"):
        connection = targets.get_connection(actor, push.connection_id)
    if connection is not None:
        with gathered.check("connection_id"):
            targets.require_writable(connection)
        with gathered.check():
            targets.require_confirmation(connection, confirm)
    return connection


def _lock_original(push: Push) -> Push:
    """Return the push that the rows belong to, locked, so that concurrent requests run one after the other."""
    original = read.original_push(db.session(), push)
    db.session.refresh(original, with_for_update=True)
    return original


def _retry_condition(push: Push, original: Push, body: RetryInput) -> Any:
    """Select the requested rows in the first push's ledger. Raise validation_error."""
    other = aliased(Push)
    is_being_retried = exists().where(other.id == PushRow.retried_by, other.status.not_in(END_STATES))
    states: Any = PushRow.state.in_([state for state in body.states if state != "pending"])
    conditions = [PushRow.push_id == original.id, ~is_being_retried]
    if push.id != original.id:
        conditions.append(PushRow.retried_by == push.id)
        if "pending" in body.states:  # Rows that this retry did not reach keep their previous state
            reached = exists().where(
                PushRange.push_id == push.id,
                PushRange.table == PushRow.table,
                PushRange.last >= PushRow.row,
            )
            states = or_(states, and_(PushRow.state.in_(("failed", "unknown")), ~reached))
    if "pending" in body.states:  # Rows in doubt are resolved before rows that were never sent
        for item in read.pushes_in_doubt(db.session(), push) + ([push] if push.unsettled else []):
            chunk = item.unsettled or {}
            in_doubt = (
                PushRow.table == chunk["table"],
                PushRow.row >= chunk["first"],
                PushRow.row <= chunk["last"],
            )
            states = or_(states, and_(PushRow.state == "unknown", *in_doubt))
    conditions.append(states)
    place = _selected_table_index(original, body)
    if place is not None:
        conditions.append(PushRow.table == place)
    if body.rows is not None:
        conditions.append(PushRow.row.in_(body.rows))
    return and_(*conditions)


def _pending_spans(push: Push, original: Push, body: RetryInput) -> list[list[read.Span]]:
    """Return the rows of each table that were never sent and are not part of another retry. Raise validation_error."""
    session, only_place = db.session(), _selected_table_index(original, body)
    running = [item for item in read.retries(session, original) if not item.has_ended]
    found = []
    for place, table in enumerate(original.tables):
        own_spans = [(1, int(table["count"]))] if push.id == original.id else read.pending_spans(push, place)
        taken = read.processed_spans(session, original.id, place)
        for other in running:
            taken += read.pending_spans(other, place)
        remaining = read.subtract_spans(own_spans, taken)
        if only_place is not None and place != only_place:
            remaining = []
        elif body.rows is not None:
            selected = read.to_spans(np.unique(np.array(body.rows, np.int64)))
            remaining = read.subtract_spans(selected, read.subtract_spans(selected, remaining))
        found.append(remaining)
    return found


def _selected_table_index(original: Push, body: RetryInput) -> int | None:
    """Return the index of the only table that is selected or repaired, else None. Raise validation_error."""
    names = [table["name"] for table in original.tables]
    if body.table is not None and body.table not in names:
        text = f'This push has no table "{body.table}".'
        hint = did_you_mean(body.table, names) or f"Tables of the push: {', '.join(names)}."
        raise validation_error([Fault("table", "unknown_table", text, hint)])
    if body.table is not None:
        return names.index(body.table)
    if body.rows is None and not _has_repairs(body):
        return None
    if len(names) > 1:
        text = "Specify the table to which the rows or corrections belong."
        raise validation_error([Fault("table", "missing", text, f"Tables of the push: {', '.join(names)}.")])
    return 0


def _has_repairs(body: RetryInput) -> bool:
    return bool(body.mapping or body.computed or body.overrides)


def _repaired_tables(
    actor: Actor, original: Push, connection: Connection | None, body: RetryInput, gathered: ErrorCollector
) -> tuple[list[dict[str, Any]], bool]:
    """Return the push's tables, with a different mapping if one is given, and whether their rows can be generated.
    Every error is added to `gathered`."""
    tables, table_index = list(original.tables), 0 if len(original.tables) == 1 else None
    with gathered.check():
        table_index = _selected_table_index(original, body)
    if not _has_repairs(body):
        return tables, True
    if body.overrides and (original.dataset_id is not None or original.template_id is None):
        text = "overrides can be used only with rows of a template. These rows come from a dataset or from the request."
        gathered.add([Fault("overrides", "not_allowed", text, "Use a formula in computed.")])
        body = body.model_copy(update={"overrides": {}})
    makers = None
    with gathered.check():
        makers = _row_generators(original, body)
    can_generate_rows = makers is not None
    if makers is None:  # The mapping can still be checked
        with gathered.check():
            makers = _row_generators(original, body.model_copy(update={"overrides": {}}))
    if table_index is None or makers is None:
        return tables, False
    before = tables[table_index]
    maker = makers[before.get("recipe", 0)]
    # The target may generate the keys of inserted rows, which are then no columns to fill.
    keys = [] if before["mode"] == "insert" else before["key_columns"]
    requested = RequestedMapping(_mapping(before, body, maker), _formulas(before, body), before["mode"], keys)
    entity = None
    if connection is not None:
        with gathered.check():
            catalogue = targets.catalogue_of(actor, targets.destination_of_push(connection, original))
            entity = catalogue.entity(before["target"])
            if entity is None:
                raise validation_error([catalogue.missing_table_fault("", before["target"])])
    if connection is None or entity is None:
        gathered.add(planning.field_faults(maker, requested))
        return tables, False
    requested_table = RequestedTable(
        before["name"], before["target"], maker, before["count"], requested, entity, before["offset"]
    )
    planned = planning.plan_table(requested_table, targets.capabilities(connection), original.id, table_index)
    # Keys that the target generated are not in any field.
    ignored = {"missing_column"} if before["capture"] or before["from_parent"] else set()
    faults = [fault for fault in planned.faults if fault.code not in ignored]
    gathered.add(faults)
    object_ids = [column for column in before["columns"] if "object_id" in column]
    columns = [*object_ids, *(column for column in planned.spec["columns"] if "object_id" not in column)]
    tables[table_index] = {**before, "columns": columns}
    return tables, can_generate_rows and not faults


def _row_generators(original: Push, body: RetryInput) -> Sequence[RowGenerator]:
    """Return the row generators of the push, with the fixed values of its retry. Raise validation_error."""
    return pushes_rows.row_generators(original, retry_request(original, body))


def _check_requests(
    original: Push,
    connection: Connection,
    tables: list[dict[str, Any]],
    body: RetryInput,
    can_generate_rows: bool,
    gathered: ErrorCollector,
) -> None:
    """Collect every fault of the requests that the repaired rows would be sent with."""
    if not targets.capabilities(connection).by_row:
        return
    makers: Sequence[RowGenerator] = []
    with gathered.check():
        makers = _row_generators(
            original, body if can_generate_rows else body.model_copy(update={"overrides": {}})
        )
    if not makers:
        return
    rows = [
        pushes_rows.TableRows(table_index, table, makers[table.get("recipe", 0)])
        for table_index, table in enumerate(tables)
    ]
    with gathered.check(), targets.open_channel(targets.destination_of_push(connection, original)) as channel:
        gathered.add(
            fault
            for row in rows
            for fault in preparation.request_faults(channel, row, can_generate_rows=can_generate_rows)
        )


def _mapping(before: Mapping[str, Any], body: RetryInput, maker: RowGenerator) -> dict[str, str | None]:
    """Return the original mapping with the requested changes: a column that is assigned to another field is removed
    from its previous field, and excluded columns remain excluded."""
    taken = {*body.mapping.values(), *body.computed}
    mapping: dict[str, str | None] = {name: None for name, field in maker.fields.items() if not field.hidden}
    for column in before["columns"]:
        if "field" in column and column["column"] not in taken:
            mapping[column["field"]] = column["column"]
    return {**mapping, **body.mapping}


def _formulas(before: Mapping[str, Any], body: RetryInput) -> dict[str, str]:
    taken = set(body.mapping.values())
    formulas = {column["column"]: column["formula"] for column in before["columns"] if "formula" in column}
    return {**{name: text for name, text in formulas.items() if name not in taken}, **body.computed}


def _new_push(actor: Actor, original: Push, kind: str, total: int) -> Push:
    return Push(
        kind=kind,
        of_id=original.id,
        connection_id=original.connection_id,
        endpoint_id=original.endpoint_id,
        template_id=original.template_id,
        template_version=original.template_version,
        dataset_id=original.dataset_id,
        dataset_version=original.dataset_version,
        target=original.target,
        total=total,
        pins=original.pins,
        created_by=actor.user_id,
        key_id=actor.key_id,
        workspace_id=original.workspace_id,
        project_id=original.project_id,
        team_id=original.team_id,
    )


def _commit_and_queue(
    actor: Actor, push: Push, action: str, original: Push, *, rows: int = 0, **details: Any
) -> Push:
    template_id = original.template_id or original.dataset_id
    details = {
        "of": original.id,
        "count": push.total,
        "target": push.target,
        "template_id": template_id,
        **details,
    }
    audit_log.record(actor, action, push, join=True, rows=rows, **details)
    jobs_queue.enqueue_after_commit(db.session, redis_client(), pushes.KIND, push.id)
    db.session.commit()
    return push


# --- Failures by reason -------------------------------------------------------------------------------------

_FAILED_STATES: Final = ("failed", "unknown")
_MAX_COMPARED_ROWS: Final = (
    200_000  # chosen: rows that are compared with the injected data; generating them takes a few seconds
)
_COMPARED_BLOCK_ROWS: Final = 10_000  # chosen: rows of one such comparison
_MAX_LIVE_ROWS: Final = (
    50_000  # chosen: rows that are grouped while the push is running and the page refreshes often
)


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Rows of one table that did not arrive for the same reason. `expected`: all of them contain injected invalid
    data. `row` is the first of them."""

    table: int
    state: str
    code: str
    native: str
    column: str
    status_code: int | None
    expected: bool
    count: int
    row: int
    message: str

    @property
    def key(self) -> dict[str, Any]:
        """The values that select this group, as query parameters."""
        chosen = {"table": self.table, "state": self.state, "code": self.code, "native": self.native}
        chosen |= {"column": self.column, "status": self.status_code or 0, "expected": int(self.expected)}
        return chosen


@dataclass(frozen=True, slots=True)
class FailureSelection:
    """A group that a page requests."""

    table: int
    state: str
    code: str
    native: str
    column: str
    status: int
    expected: bool

    def conditions(self, push: Push) -> tuple[Any, ...]:
        """Return the conditions for its rows, apart from `expected`."""
        return (
            PushRow.push_id == push.id,
            PushRow.table == self.table,
            PushRow.state == self.state,
            PushRow.code == self.code,
            PushRow.native == self.native,
            func.coalesce(PushRow.column, "") == self.column,
            func.coalesce(PushRow.status_code, 0) == self.status,
        )


def failure_groups(push: Push) -> list[FailureGroup]:
    """Return the reasons, unexpected ones first, then the most frequent first.

    While the push is running, at most `_MAX_LIVE_ROWS` rows are counted and injected data is not looked for. After the
    end, at most `_MAX_COMPARED_ROWS` rows are compared with it; the failures beyond are treated as unexpected.
    """
    session = db.session()
    if push.has_ended and completion.has_invalid_rows(push):
        # One by one, because injected data is only found by generating the rows again.
        counts: dict[tuple[Any, ...], list[Any]] = {}
        conditions = (PushRow.push_id == push.id, PushRow.state.in_(_FAILED_STATES))
        for row, expected in _rows_with_expectation(session, push, conditions):
            key = (row.table, row.state, row.code, row.native, row.column or "", row.status_code, expected)
            group = counts.setdefault(key, [0, row.row, row.message])
            group[0] += 1
        found = [FailureGroup(*key, *group) for key, group in counts.items()]
    else:
        statement = select(PushRow).where(PushRow.push_id == push.id, PushRow.state.in_(_FAILED_STATES))
        rows = (statement if push.has_ended else statement.limit(_MAX_LIVE_ROWS)).subquery().c
        kind = (
            rows.table_no,
            rows.state,
            rows.code,
            rows.native,
            func.coalesce(rows.column_name, ""),
            rows.status_code,
        )
        counted = select(*kind, func.count(), func.min(rows.row_no), func.min(rows.message)).group_by(*kind)
        found = [
            FailureGroup(table, state, code, native, column, status, False, count, first, message)
            for table, state, code, native, column, status, count, first, message in session.execute(counted)
        ]
    return sorted(found, key=lambda item: (item.expected, -item.count, item.table, item.code, item.column))


def _rows_with_expectation(
    session: Session, push: Push, conditions: tuple[Any, ...]
) -> Iterator[tuple[RowResult, bool]]:
    """Yield rows of the ledger in order, and whether each contains injected invalid data."""
    statement = select(PushRow).where(*conditions).order_by(PushRow.table, PushRow.row)
    scanned, injected = 0, _InjectedRows(push)
    after = (-1, 0)
    while True:
        is_after = (PushRow.table > after[0]) | ((PushRow.table == after[0]) & (PushRow.row > after[1]))
        block = [
            row_result(row) for row in session.scalars(statement.where(is_after).limit(_COMPARED_BLOCK_ROWS))
        ]
        if not block:
            return
        after = (block[-1].table, block[-1].row)
        expected = injected.contains(block) if scanned < _MAX_COMPARED_ROWS else [False] * len(block)
        scanned += len(block)
        yield from zip(block, expected, strict=True)


class _InjectedRows:
    """Finds the rows of a push that contain injected invalid data; none if its pinned versions no longer exist."""

    def __init__(self, push: Push) -> None:
        self._push = push
        self._row_generators: Any = None
        if completion.has_invalid_rows(push):
            with suppress(ApiError):
                self._row_generators = pushes_rows.row_generators(push)

    def contains(self, block: list[RowResult]) -> list[bool]:
        found = [False] * len(block)
        if self._row_generators is None:
            return found
        for table_index, table in enumerate(self._push.tables):
            positions = [number for number, row in enumerate(block) if row.table == table_index]
            if not positions:
                continue
            fields = {each["field"] for each in table["columns"] if each.get("field")}
            numbers = np.array([block[number].row for number in positions], np.int64) - 1 + table["offset"]
            bad = self._row_generators[table.get("recipe", 0)].invalid_rows(numbers.astype(np.uint64), fields)
            for number, is_bad in zip(positions, bad.tolist(), strict=True):
                found[number] = is_bad
        return found


def rows_in_group(push: Push, chosen: FailureSelection, after: int, limit: int) -> list[RowResult]:
    """Return the rows of a group above a row number, ascending, at most `limit`."""
    conditions = (*chosen.conditions(push), PushRow.row > after)
    if not completion.has_invalid_rows(push):
        statement = select(PushRow).where(*conditions).order_by(PushRow.row).limit(limit)
        return [row_result(row) for row in db.session.scalars(statement)]
    found: list[RowResult] = []
    for row, expected in _rows_with_expectation(db.session(), push, conditions):
        if expected == chosen.expected:
            found.append(row)
            if len(found) == limit:
                break
    return found


def repaired_values(
    push: Push, tables: list[dict[str, Any]], body: RetryInput, results: list[RowResult]
) -> list[dict[str, Any]]:
    """Return the values that a retry would send for some rows. `tables` are those of `retries.prepare_retry_tables`."""
    new_push = Push(tables=tables, pins=push.pins, request={"ask": retry_request(push, body)}, kind="retry")
    return pushes.row_values(new_push, results)
