"""Fetch the external values of a plan through connections before the first row is generated.

    recipe = external_values.recipe(actor, source, request, pins=pins)  # stored responses, and those fetched now

Every question is sent once and its response stored (see ``kept_answers.py``), so a preview, a generate call,
an export and a push of the same rows use the same values. If fetching is off, missing values are replaced by
placeholders.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import select

from webapp import clock, limits
from webapp.access.actors import Actor
from webapp.connections.models import Connection
from webapp.connections.services import access
from webapp.connections.services.access import time_limited
from webapp.connectors import KINDS
from webapp.connectors.base import ConnectorError, OpenConnection, TableReader
from webapp.connectors.rest.fetch import FetchChannel, FetchOptions, too_large_error
from webapp.connectors.schema import Entity
from webapp.engine.blocks import BoundPlan
from webapp.engine.budget import MemoryBudgetError
from webapp.engine.errors import SpecError
from webapp.engine.external_values import ExternalQuery, ExternalRequest, ExternalResponse, RequestRecorder
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.generation.services import ai_values, rows
from webapp.generation.services.pins import Pins
from webapp.row_templates.schemas import GenerateInput
from webapp.row_templates.services.compiled_plans import CompiledTemplate
from webapp.sources.services import kept_answers, sources
from webapp.sources.services.kept_answers import StoredAnswer

_SPELLING_HINT: Final = "Check its spelling: the connection's metadata lists its tables."


def read_keys(session: TableReader, question: ExternalQuery) -> pa.Table:
    """Return the distinct values of some columns of a table in ascending order, without combinations that
    contain NULL. Raises `ConnectorError`."""
    entity = session.entity(question["table"])
    if entity is None:
        raise ConnectorError(
            f'There is no table "{question["table"]}".', reason="no_table", hint=_SPELLING_HINT
        )
    names = [_column(entity, name) for name in question["columns"]]
    batches, count, size = [], 0, 0
    for batch in session.keys(entity, names, question["filter"]):
        batches.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if size > limits.FETCHED_BYTES:
            message = f'The keys of "{entity.name}" are larger than {limits.FETCHED_BYTES // limits.MB} MB.'
            raise ConnectorError(message, reason="too_large", hint="Use a filter to select fewer keys.")
        if count > limits.FETCHED_KEYS:
            message = f'"{entity.name}" has more than {limits.FETCHED_KEYS:,} keys.'
            raise ConnectorError(message, reason="too_large", hint="Use a filter to select fewer keys.")
    if not batches:
        return pa.table({name: pa.array([], pa.string()) for name in question["columns"]})
    table = pa.Table.from_batches(batches).rename_columns(question["columns"])
    is_complete = pc.is_valid(table.column(0))
    for name in question["columns"][1:]:
        is_complete = pc.and_(is_complete, pc.is_valid(table.column(name)))
    distinct = table.filter(is_complete).group_by(question["columns"], use_threads=False).aggregate([])
    return distinct.sort_by([(name, "ascending") for name in question["columns"]]).combine_chunks()


def _column(entity: Entity, name: str) -> str:
    found = entity.column(name)
    if found is None:
        matches = [field.name for field in entity.fields if field.name.casefold() == name.casefold()]
        if len(matches) != 1:
            message = f'"{entity.name}" has no column "{name}".'
            known = ", ".join(field.name for field in entity.fields[: limits.FETCHED_LISTED_COLUMNS])
            raise ConnectorError(message, reason="no_column", hint=f"Its columns: {known}.")
        return matches[0]
    return found.name


def run_query(session: TableReader, request: ExternalRequest, values: tuple[Any, ...]) -> pa.Table:
    """Return the result of a field's query for one set of values, its parameters p0, p1, ... Raises
    `ConnectorError`."""
    limit = limits.FETCHED_SET_ROWS if request.depends_on_row else limits.FETCHED_ROWS
    parameters = {f"p{index}": value for index, value in enumerate(values)}
    batch = session.query(request.query["query"], parameters, limit + 1)
    if batch.num_rows > limit:
        message = f"The query returns more than {limit:,} rows."
        raise ConnectorError(message, reason="too_large", hint="Add a condition or a LIMIT.")
    if not batch.num_columns:
        raise ConnectorError(
            "The query returns no columns.", reason="no_column", hint="Use a SELECT statement."
        )
    return pa.Table.from_batches([batch])


PLACEHOLDER_WARNING: Final = "placeholder_values"
"""Code of the warning that values were not fetched."""


def build_recipe(
    actor: Actor | None,
    source: CompiledTemplate,
    request: GenerateInput,
    *,
    pins: Pins | None = None,
    fetch: bool = True,
    for_worker: bool = False,
    anchored: bool | None = None,
    format: str | None = None,
) -> rows.Recipe:
    """Like `rows.build_recipe`, with external values. ``fetch``: request values that are not stored, instead of
    placeholders; ``for_worker``: store the responses for holders of the pins (`with_pinned_answers`).

    Raises the errors of `rows.build_recipe`; target_failed, target_timeout and other codes of connections, with the
    field's path; validation_error for missing connections and too many questions.
    """
    now = clock.now()
    if fetch:
        source = sources.open_source(actor, source, for_worker=for_worker)
    if not source.plan.external_requests:
        return rows.build_recipe(
            source, request, current_time=now, format=format, pins=pins, anchored=anchored
        )
    current_pins = pins or rows.pins_for(
        source, seed=request.seed, now=request.now, locale=request.locale, current_time=now
    )
    question_values = _QuestionValues(
        request, current_pins, current_pins.now == source.anchor if anchored is None else anchored
    )
    with _AnswerFetcher(actor, fetch, source) as fetcher:
        plan, answers = source.plan, {}
        if plan.compiled_with:  # the template's own source, if it is open
            known = plan.compiled_with[1].responses
            source_keys = [
                request.query.key for request in plan.external_requests if request.query.kind == "source"
            ]
            answers = {key: known[key] for key in source_keys if key in known}
        for level in sorted({item.level for item in plan.external_requests}):
            requests = [
                item for item in plan.external_requests if item.level == level and item.query.kind != "source"
            ]
            if not requests:
                continue
            collect = partial(question_values.collect, replace(source, plan=plan))
            answers |= fetcher.fetch_answers(requests, collect)
            plan = _plan_with_answers(source, answers)
        locations = fetcher.stored_locations(source.plan.external_requests, answers) if for_worker else {}
    answered_pins = replace(current_pins, outside=locations, snapshot=snapshot_of(answers))
    ready = replace(source, plan=plan)
    return rows.build_recipe(
        ready, request, current_time=now, format=format, pins=answered_pins, anchored=anchored
    )


def _plan_with_answers(source: CompiledTemplate, found: Mapping[str, ExternalResponse]) -> Any:
    try:
        return source.plan.with_responses(found)
    except SpecError as error:
        raise validation_error(error.faults) from None


def snapshot_of(found: Mapping[str, ExternalResponse]) -> str | None:
    """Return a hash that identifies the external values of some rows; None if there are none."""
    if not found:
        return None
    message = "\n".join(f"{key} {answer.snapshot}" for key, answer in sorted(found.items()))
    return hashlib.sha256(message.encode()).hexdigest()


def snapshot_of_all(pins: Iterable[Pins]) -> str | None:
    """Like `snapshot_of`, for several tables together."""
    found = [pin.snapshot or "" for pin in pins]
    return hashlib.sha256("\n".join(found).encode()).hexdigest() if any(found) else None


def with_pinned_answers(source: CompiledTemplate, pins: Pins) -> CompiledTemplate:
    """Return a source with the responses that pins name, without any request. Raises unavailable if one was
    deleted."""
    if not pins.outside:
        return source
    return replace(
        source,
        plan=_plan_with_answers(
            source, {key: kept_answers.load(location) for key, location in pins.outside.items()}
        ),
    )


def placeholder_warnings(source: CompiledTemplate, recipe: rows.Recipe) -> list[dict[str, Any]]:
    """Return the warnings for placeholders."""
    library = recipe.source.plan.compiled_with
    known = library[1].responses if library else {}
    text = "Its values have not been fetched yet. An example is shown instead."
    return [
        Fault(external_request.path, PLACEHOLDER_WARNING, text, "Preview with fetch, or generate.").as_dict()
        for external_request in source.plan.external_requests
        if external_request.query.key not in known
    ]


@dataclass(frozen=True, slots=True)
class _QuestionValues:
    """Evaluates the rows of a request to find the values that occur in questions."""

    request: GenerateInput
    pins: Pins
    anchored: bool

    def collect(self, source: CompiledTemplate) -> RequestRecorder:
        """Evaluate with the responses that are available so far. Raises validation_error."""
        recorder = RequestRecorder(limits.FETCHED_PARAMETER_SETS)
        count, offset = source.row_count(self.request.count), self.request.offset
        bound = rows.bind(source, self.pins, self.request.overrides, offset, count, self.anchored, recorder)
        names = {
            name
            for external_request in source.plan.external_requests
            if external_request.depends_on_row
            for name in external_request.columns
        }
        try:
            for start in range(offset, offset + count, bound.block_rows):
                self._evaluate_block(bound, start, min(bound.block_rows, offset + count - start), names)
        except SpecError as error:
            raise validation_error(error.faults) from None
        return recorder

    @staticmethod
    def _evaluate_block(bound: BoundPlan, start: int, count: int, names: set[str]) -> None:
        try:
            block = bound.block_at(np.arange(start, start + count, dtype=np.uint64))
            for name in names:
                block.column(name)
        except MemoryBudgetError:
            if count < 2:
                raise
            half = count // 2
            _QuestionValues._evaluate_block(bound, start, half, names)
            _QuestionValues._evaluate_block(bound, start + half, count - half, names)


class _AnswerFetcher:
    """Provides responses, stored ones first. Each connection is opened once and closed at the end."""

    def __init__(self, actor: Actor | None, fetch: bool, source: CompiledTemplate) -> None:
        self._source = source
        self._actor, self._fetch = actor, fetch and actor is not None
        self._deadline = time.monotonic() + limits.FETCH_SECONDS
        self._connections: dict[str, Connection] = {}
        self._sessions: dict[str, TableReader] = {}
        self._channels: dict[str, OpenConnection] = {}

    def __enter__(self) -> _AnswerFetcher:
        return self

    def __exit__(self, *_: object) -> None:
        for link in (*self._sessions.values(), *self._channels.values()):
            link.close()

    def fetch_answers(self, requests: list[ExternalRequest], find_values: Any) -> dict[str, ExternalResponse]:
        """Return the responses to the questions of one level by key; ``find_values`` finds the values that occur in
        them."""
        recorder: RequestRecorder | None = (
            find_values() if any(request.depends_on_row for request in requests) else None
        )
        found = {}
        for request in requests:
            with _errors_at(request.path):
                self._check_connection(request)
                answer = (
                    self._fetch_keyed_answer(request, recorder)
                    if request.depends_on_row and recorder is not None
                    else self._fetch_answer(request)
                )
            if answer is not None:
                found[request.query.key] = answer
        return found

    def stored_locations(
        self, requests: tuple[ExternalRequest, ...], found: Mapping[str, ExternalResponse]
    ) -> dict[str, str]:
        """Return the storage location of each response, for the pins."""
        assert self._actor is not None
        workspace = self._actor.workspace_id
        files = ("source", "file")
        connection_ids = {
            item.query.key: self._connection_id(item) for item in requests if item.query.kind not in files
        }
        db.session.remove()  # whose transaction would block this one, or the other way round
        return {
            key: kept_answers.store_answer(workspace, connection_ids[key], answer)
            if answer.loaded_source is None
            else answer.loaded_source.location
            for key, answer in found.items()
        }

    def _check_connection(self, request: ExternalRequest) -> None:
        """Check that the actor may use the connection and that it supports the question, even if the response
        is stored."""
        if self._actor is None or request.query.kind == "file":
            return
        found = self._connections.get(request.query.connection_id) or self._load_connection(
            request, self._actor
        )
        if request.query.kind == "ai":
            ai_values.check_connection_type(request, found)
        if request.query.kind == "http" and not KINDS[found.type].can.fetch:
            text = f'"{found.name}" is a connection of type {found.type}, which does not support paths.'
            path = f"{request.path}.options.connection_id"
            raise validation_error(
                [Fault(path, "not_for_this_type", text, "Choose a connection of type rest or odata.")]
            )

    def _load_connection(self, request: ExternalRequest, actor: Actor) -> Connection:
        connection_id = request.query.connection_id
        if request.query.kind == "ai" and not connection_id:
            self._connections[connection_id] = ai_values.connection_for_field(actor, request)
            return self._connections[connection_id]
        conditions = (Connection.id == connection_id, Connection.workspace_id == actor.workspace_id)
        found = db.session.scalar(select(Connection).where(*conditions, Connection.deleted_at.is_(None)))
        if found is None or actor.role_in(found.team_id) is None:
            text = f'There is no connection "{connection_id[:100]}" here.'
            hint = "It may have been deleted. Restore it, or choose another connection in the field."
            path = f"{request.path}.options.connection_id"
            raise validation_error([Fault(path, "unknown_connection", text, hint)])
        self._connections[connection_id] = found
        return found

    def _connection_id(self, request: ExternalRequest) -> str:
        """Return the connection of a question, also if the question does not name one."""
        return request.query.connection_id or self._connections[""].id

    def _fetch_answer(self, request: ExternalRequest) -> ExternalResponse | None:
        if request.query.kind == "file":  # read when needed, without an external request
            return (
                None if self._actor is None else sources.open_field_file(self._actor, request, self._source)
            )
        values = request.query.values
        key = kept_answers.question_hash(request.query, values)
        found = self._load_stored(request, [key])
        if key not in found and self._fetch:
            found = self._save(request, dict(self._fetch_tables(request, {key: values})))
        return kept_answers.answer_of(found[key]) if key in found else None

    def _fetch_keyed_answer(
        self, request: ExternalRequest, recorder: RequestRecorder
    ) -> ExternalResponse | None:
        values = recorder.values.get(request.query.key, {})
        hashes = {key: kept_answers.question_hash(request.query, row) for key, row in values.items()}
        found = self._load_stored(request, list(hashes.values()))
        missing = {hash_: values[key] for key, hash_ in hashes.items() if hash_ not in found}
        received: dict[str, pa.Table] = {}
        try:
            if missing and self._fetch:
                received.update(self._fetch_tables(request, missing))
        finally:  # received responses must not be requested again, even if another request failed
            found |= self._save(request, received)
        sets = {key: found[hash_] for key, hash_ in hashes.items() if hash_ in found}
        if not sets:
            return None
        if (
            request.query.kind == "http"
            and sum(stored.table.nbytes for stored in sets.values()) > limits.FETCHED_JSON_BYTES
        ):
            raise too_large_error()
        try:
            return kept_answers.combine_answers(sets)
        except pa.ArrowInvalid:
            text = "The query returns values of different types for different rows."
            fault = Fault(request.path, "wrong_type", text, "Cast them to one type in the query.")
            raise validation_error([fault]) from None

    def _load_stored(self, request: ExternalRequest, hashes: list[str]) -> dict[str, StoredAnswer]:
        if self._actor is None:
            return {}
        return kept_answers.find_stored(self._actor.workspace_id, self._connection_id(request), hashes)

    def _save(self, request: ExternalRequest, received: Mapping[str, pa.Table]) -> dict[str, StoredAnswer]:
        if not received:
            return {}
        assert self._actor is not None
        db.session.remove()
        return kept_answers.save(self._actor.workspace_id, self._connection_id(request), received)

    def _fetch_tables(
        self, request: ExternalRequest, values_by_key: Mapping[str, tuple[Any, ...]]
    ) -> Iterator[tuple[str, pa.Table]]:
        """Request the responses now and return them by cache key. Responses before an error come first."""
        if request.query.kind == "http":
            yield from self._fetch_paths(request, values_by_key)
            return
        if request.query.kind == "ai":
            yield from self._fetch_ai_values(request, values_by_key)
            return
        for key, values in values_by_key.items():
            left = self._remaining_seconds()
            session = self._sessions.get(request.query.connection_id)
            if session is None:
                session = access.open_reader(self._connections[request.query.connection_id], left)
                self._sessions[request.query.connection_id] = session
            with time_limited(session, self._remaining_seconds(), limits.FETCH_SECONDS):
                table = (
                    read_keys(session, request.query)
                    if request.query.kind == "keys"
                    else run_query(session, request, values)
                )
            if table.nbytes > limits.FETCHED_BYTES:
                message = f"The response is larger than {limits.FETCHED_BYTES // 2**20} MB."
                raise ConnectorError(message, reason="too_large", hint="Request fewer columns or rows.")
            yield key, table

    def _fetch_paths(
        self, request: ExternalRequest, values_by_key: Mapping[str, tuple[Any, ...]]
    ) -> Iterator[tuple[str, pa.Table]]:
        """Like `_fetch_tables`, for paths: in parallel, as far as the connection allows."""
        left, connection_id = self._remaining_seconds(), request.query.connection_id
        channel = self._channels.get(connection_id)
        if channel is None:
            channel = self._channels[connection_id] = access.open_connection(
                self._connections[connection_id], left
            )
        assert isinstance(channel, FetchChannel)
        options = dict(request.query["of"])
        fetch_options = FetchOptions(
            self._deadline, options["bears"], options["path"] if options["quiet"] else None
        )
        with time_limited(channel, left, limits.FETCH_SECONDS):
            result = channel.fetch([path for (path,) in values_by_key.values()], fetch_options)
        for key, (path,) in values_by_key.items():
            if path in result.bodies:
                response = result.bodies[path]
                yield (
                    key,
                    pa.table({"body": pa.array([response.body], pa.string()), "trouble": [response.trouble]}),
                )
        if result.error is not None:
            raise result.error

    def _fetch_ai_values(
        self, request: ExternalRequest, values_by_key: Mapping[str, tuple[Any, ...]]
    ) -> Iterator[tuple[str, pa.Table]]:
        """Like `_fetch_tables`, for prompts: many per request. Models have a separate time limit
        (limits.AI_SECONDS)."""
        started, connection_id = time.monotonic(), request.query.connection_id
        channel = self._channels.get(connection_id)
        if channel is None:
            channel = self._channels[connection_id] = access.open_connection(self._connections[connection_id])
        db.session.remove()  # release the database connection while waiting for the model
        result = ai_values.request_values(
            channel, request.query, values_by_key, lambda tables: self._save(request, tables)
        )
        self._deadline += time.monotonic() - started
        yield from result.tables.items()
        if result.error is not None:
            raise result.error

    def _remaining_seconds(self) -> float:
        """Return the remaining seconds."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise ConnectorError(
                f"Fetching took longer than {limits.FETCH_SECONDS:g} s.",
                code="target_timeout",
                reason="timeout",
            )
        db.session.remove()  # release the database connection while waiting for the target
        return left


@contextmanager
def _errors_at(path: str) -> Iterator[None]:
    """Report failures of a connection for the field that uses it."""
    try:
        yield
    except ConnectorError as error:
        details = {**error.details, "path": path, "reason": error.reason, "hint": error.hint}
        raise ApiError(error.code, f"{path}: {error.message}", details) from None
    except ApiError as error:
        if error.code != "validation_error":
            error.details.setdefault("path", path)
        raise
