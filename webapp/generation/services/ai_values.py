"""Values that an AI model writes for fields of type ai: many rows per request, each validated, invalid ones
requested again.

    result = ai_values.written(channel, question, prompts)

After an error, `result` contains the values received before it. They are stored, so a retry pays only for the
rest.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import orjson
import pyarrow as pa

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.models import Connection
from webapp.connectors import KINDS
from webapp.connectors.ai.connector import AiChannel, Prompt
from webapp.connectors.base import ConnectorError, OpenConnection
from webapp.engine.external_values import ExternalQuery, ExternalRequest
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db

_THOUGHT: Final = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.S | re.I)
_JSON_START: Final = re.compile(r"[{\[]")
_DECODER: Final = json.JSONDecoder(strict=False)
_TRUE, _FALSE = frozenset({"true", "yes"}), frozenset({"false", "no"})
_INT64: Final = range(-(1 << 63), 1 << 63)


class InvalidAnswerError(ValueError):
    """A value is invalid. The text is the reason, without the value."""


def find_json(text: str) -> Iterator[Any]:
    """Return every JSON object and array in a text, outermost first. If one is incomplete, return those
    nested in it."""
    text = _THOUGHT.sub(" ", text)
    position, failures = 0, 0
    while (found := _JSON_START.search(text, position)) and failures < limits.AI_JSON_ATTEMPTS:
        try:
            value, position = _DECODER.raw_decode(text, found.start())
            yield value
        except (ValueError, RecursionError):
            failures += 1
            position = found.start() + 1


def parse_rows(text: str, count: int) -> dict[int, Any]:
    """Return the values of rows 1 to `count` by number, without missing ones. If a number occurs twice, the
    first one counts. A list without numbers must have exactly `count` values, in order."""
    found: dict[int, Any] = {}
    unnumbered: list[Any] | None = None
    for document in find_json(text):
        pending = [document]
        while pending:
            current = pending.pop()
            if isinstance(current, Mapping):
                number = _number(current.get("id"))
                if number is not None and "value" in current:
                    if 1 <= number <= count:
                        found.setdefault(number, current["value"])
                else:
                    pending.extend(reversed(list(current.values())))
            elif isinstance(current, list):
                if len(current) == count and not any(isinstance(item, dict | list) for item in current):
                    unnumbered = unnumbered or current
                pending.extend(item for item in reversed(current) if isinstance(item, dict | list))
    if not found and unnumbered is not None:
        return dict(enumerate(unnumbered, 1))
    return found


def _number(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value.strip()):
        return int(value)
    return None


def validate_value(value: Any, requirements: Mapping[str, Any]) -> str:
    """Return a value as text if it satisfies the field's requirements (`ExternalQuery.settings`). Raises
    `InvalidAnswerError`."""
    if value is None or isinstance(value, dict | list):
        raise InvalidAnswerError("it is not a single value")
    return _CHECKS[requirements["answer"]](value, requirements)


def _text(value: Any, requirements: Mapping[str, Any]) -> str:
    text = _clean_text(value)
    max_length = requirements["max_length"] or limits.AI_TEXT_CHARS
    if not text:
        raise InvalidAnswerError("it is empty")
    if len(text) > max_length:
        raise InvalidAnswerError(f"it is longer than {max_length:,} characters")
    return text


def _clean_text(value: Any) -> str:
    """Return text without control characters and lone surrogates, which databases and files reject."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    printable = "".join(char for char in text if char in "\n\t" or (ord(char) >= 32 and ord(char) != 127))
    return printable.encode("utf-8", "ignore").decode().strip()


def _choice(value: Any, requirements: Mapping[str, Any]) -> str:
    text = _clean_text(value)
    if text in requirements["choices"]:
        return text
    matches = [
        choice
        for choice in requirements["choices"]
        if choice.casefold().strip() == text.casefold().rstrip(".")
    ]
    if len(matches) != 1:
        raise InvalidAnswerError("it is not one of the choices")
    return str(matches[0])


def _integer(value: Any, requirements: Mapping[str, Any]) -> str:
    number = _decimal_of(value, "a whole number")
    if number != number.to_integral_value() or int(number) not in _INT64:
        raise InvalidAnswerError("it is not a whole number")
    return str(int(number))


def _decimal(value: Any, requirements: Mapping[str, Any]) -> str:
    number = _decimal_of(value, "a number")
    places = requirements["decimals"]
    if abs(number).scaleb(places) > limits.MAX_UNITS:
        raise InvalidAnswerError("it is too large")
    return format(number.quantize(Decimal(1).scaleb(-places)), "f")


def _decimal_of(value: Any, expected: str) -> Decimal:
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise InvalidAnswerError(f"it is not {expected}")
    try:
        number = Decimal(str(value).strip()[:100])
    except InvalidOperation:
        raise InvalidAnswerError(f"it is not {expected}") from None
    if not number.is_finite() or number.adjusted() > limits.AI_DIGITS:
        raise InvalidAnswerError("it has too many digits")
    return number


def _boolean(value: Any, requirements: Mapping[str, Any]) -> str:
    text = str(value).strip().casefold()
    if text in _TRUE:
        return "true"
    if text in _FALSE:
        return "false"
    raise InvalidAnswerError("it is not true or false")


def _date(value: Any, requirements: Mapping[str, Any]) -> str:
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)([T ].*)?", str(value).strip())
    try:
        return date.fromisoformat(found[1] if found else "").isoformat()
    except ValueError:
        raise InvalidAnswerError("it is not a date in the form YYYY-MM-DD") from None


_CHECKS: Final = {
    "text": _text,
    "choice": _choice,
    "integer": _integer,
    "decimal": _decimal,
    "boolean": _boolean,
    "date": _date,
}


SaveTables = Callable[[Mapping[str, pa.Table]], object]

SETUP_HINT: Final = (
    "Create a connection of type ai (base_url, model, api_key). "
    "Any server with an OpenAI-compatible chat API works."
)
_SYSTEM: Final = (
    "You write realistic test data. For every id you are given a prompt, and you answer with one value for it. Answer "
    'with JSON alone, in this form: {"rows": [{"id": 1, "value": ...}, ...]}, with every id once. Where prompts are '
    "alike, write something different for each id. The values are used as they stand: no explanations in them."
)
_INSTRUCTIONS: Final = {
    "text": "Each value is a text{most}.",
    "choice": "Each value is exactly one of: {choices}.",
    "integer": "Each value is a whole number.",
    "decimal": "Each value is a number with at most {decimals} places after the point.",
    "boolean": "Each value is true or false.",
    "date": "Each value is a date in the form YYYY-MM-DD.",
}
_TYPES: Final = {"integer": "integer", "decimal": "number", "boolean": "boolean"}


# --- Choosing the connection ---


def ai_connections(actor: Actor) -> Sequence[Connection]:
    """Return the project's connections of type ai, oldest first, at most limits.AI_LISTED_MODELS."""
    statement = tenancy.listing(actor, Connection).where(Connection.type == "ai")
    return db.session.scalars(
        statement.order_by(Connection.created_at, Connection.id).limit(limits.AI_LISTED_MODELS)
    ).all()


def only_ai_connection(actor: Actor) -> Connection:
    """Return the project's connection of type ai. Raises provider_missing; validation_error if there are
    several."""
    found = ai_connections(actor)
    if not found:
        raise missing_connection_error()
    if len(found) > 1:
        text = f"There are {len(found)} connections of type ai in this project."
        hint = "Choose one: " + ", ".join(f"{item.id} ({item.name})" for item in found) + "."
        raise validation_error([Fault("connection_id", "missing", text, hint)])
    return found[0]


def missing_connection_error() -> ApiError:
    """Return the error for a project without a connection of type ai."""
    text = "This project has no AI connection."
    return ApiError("provider_missing", f"{text} {SETUP_HINT}", {"hint": SETUP_HINT})


def connection_for_field(actor: Actor, request: ExternalRequest) -> Connection:
    """Like `only_ai_connection`, for a field without a connection. Errors are reported for the field."""
    try:
        return only_ai_connection(actor)
    except ApiError as error:
        if error.code == "validation_error":
            fault = error.details["fields"][0]
            path = f"{request.path}.options.connection_id"
            raise validation_error([Fault(path, "missing", fault["message"], fault["hint"])]) from None
        raise


def check_connection_type(request: ExternalRequest, connection: Connection) -> None:
    """Raise validation_error if a field names a connection of another type."""
    if not KINDS[connection.type].can.prompts:
        text = f'"{connection.name}" is a connection of type {connection.type}, not ai.'
        path = f"{request.path}.options.connection_id"
        raise validation_error([Fault(path, "not_for_this_type", text, "Choose a connection of type ai.")])


# --- Values -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class AiResult:
    """The values of some rows by cache key. After an error, some are missing."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    error: ConnectorError | None = None


@dataclass(slots=True)
class _Row:
    """A value to request."""

    key: str
    prompt: str
    variant: str
    value: str | None = None
    problem: str = ""


def request_values(
    channel: OpenConnection,
    question: ExternalQuery,
    prompts: Mapping[str, tuple[Any, ...]],
    save_tables: SaveTables | None = None,
) -> AiResult:
    """Request a value for each of `prompts`: (rendered prompt, seed[, row]) by cache key. `save_tables` receives the
    values of each response, in the caller's thread. Errors of the model are returned, not raised."""
    assert isinstance(channel, AiChannel)
    result = AiResult()
    rows = [
        _Row(key, str(prompt), " ".join(map(str, variant))) for key, (prompt, *variant) in prompts.items()
    ]
    requests = _FieldRequests(channel, dict(question.settings), save_tables)
    try:
        requests.run(rows)
    except ConnectorError as error:
        completed = sum(row.value is not None for row in rows)
        error.message = f"{error.message} {completed:,} of {len(rows):,} rows were completed."
        error.args = (error.message,)
        error.details = {**error.details, "answered": completed, "asked": len(rows)}
        result.error = error
    tolerates_errors = dict(question["of"])["bears"]
    rejected = [row for row in rows if row.value is None and row.problem]
    if rejected and not tolerates_errors and result.error is None:
        result.error = ConnectorError(
            f"The model returned invalid values for {len(rejected):,} of {len(rows):,} rows after {limits.AI_ATTEMPTS} "
            f"attempts: {rejected[0].problem}.",
            reason="bad_answer",
            hint="Make the prompt more specific, reduce rows_per_request of the connection, use a larger model, or "
            "set on_error to blank or default.",
            details={"answered": len(rows) - len(rejected), "asked": len(rows)},
        )
    for row in rows:
        if row.value is not None:
            result.tables[row.key] = _table(row.value, "")
        elif tolerates_errors and row.problem and result.error is None:
            result.tables[row.key] = _table(None, row.problem)
    return result


def _table(value: str | None, problem: str) -> pa.Table:
    return pa.table({"value": pa.array([value], pa.string()), "trouble": [problem]})


class _FieldRequests:
    """Requests the values of one field."""

    def __init__(
        self, channel: AiChannel, requirements: Mapping[str, Any], save_tables: SaveTables | None
    ) -> None:
        self._channel, self._requirements, self._save_tables = channel, requirements, save_tables
        self._has_failed = False

    def run(self, rows: Sequence[_Row]) -> None:
        """Set `value`, or `problem` if no valid value came after all attempts. Raises ConnectorError; earlier
        rows are set."""
        pending = list(rows)
        for _ in range(limits.AI_ATTEMPTS):
            self._request_all(pending)
            pending = [row for row in pending if row.value is None]
            if not pending:
                return

    def _request_all(self, rows: Sequence[_Row]) -> None:
        settings = self._channel.settings
        size = settings.rows_per_request
        ordered = sorted(
            rows, key=lambda row: row.prompt
        )  # equal prompts together, so that shared text is sent once
        parts = [ordered[start : start + size] for start in range(0, len(ordered), size)]
        self._request_part(
            parts[0]
        )  # the first one alone: it finds out what the server supports and whether it responds
        self._store(parts[0])
        if len(parts) == 1:
            return
        with ThreadPoolExecutor(settings.parallel, thread_name_prefix="prompt") as pool:
            futures = [pool.submit(self._request_part, part) for part in parts[1:]]
            for item in as_completed(futures):
                if item.exception() is None:
                    self._store(item.result())
        for future in futures:
            future.result()

    def _request_part(self, rows: Sequence[_Row]) -> Sequence[_Row]:
        if self._has_failed:
            return ()  # another request failed: finish open ones, start no more
        try:
            self._request(rows)
        except BaseException:
            self._has_failed = True
            raise
        return rows

    def _store(self, rows: Sequence[_Row]) -> None:
        """Store the values of a response before waiting for the next, so that a crash loses nothing."""
        found = {row.key: _table(row.value, "") for row in rows if row.value is not None}
        if self._save_tables is not None and found:
            self._save_tables(found)

    def _request(self, rows: Sequence[_Row]) -> None:
        value: dict[str, Any] = {"type": _TYPES.get(self._requirements["answer"], "string")}
        if self._requirements["answer"] == "choice":
            value["enum"] = list(self._requirements["choices"])
        row_schema = _object_schema({"id": {"type": "integer"}, "value": value})
        schema = _object_schema({"rows": {"type": "array", "items": row_schema}})
        prompt = Prompt(_SYSTEM, self._user_message(rows), schema, self._requirements["temperature"])
        answer = self._channel.complete(prompt)
        found = parse_rows(answer.text, len(rows))
        for number, row in enumerate(rows, 1):
            if number not in found:
                row.problem = "it is missing in the response" if found else "the response contains no JSON"
                continue
            try:
                row.value = validate_value(found[number], self._requirements)
            except InvalidAnswerError as error:
                row.problem = str(error)

    def _user_message(self, rows: Sequence[_Row]) -> str:
        """Return the prompts with the ids of their rows."""
        numbers_by_prompt: dict[str, list[int]] = {}
        for number, row in enumerate(rows, 1):
            numbers_by_prompt.setdefault(row.prompt, []).append(number)
        requirements = self._requirements
        lines = [
            _INSTRUCTIONS[requirements["answer"]].format(
                most=f" of at most {requirements['max_length']} characters"
                if requirements["max_length"]
                else "",
                choices=orjson.dumps(requirements["choices"]).decode(),
                decimals=requirements["decimals"],
            )
        ]
        if requirements["examples"]:
            lines.append(f"Example values: {orjson.dumps(requirements['examples']).decode()}")
        problems = {number: row.problem for number, row in enumerate(rows, 1) if row.problem}
        if problems:
            lines.append(
                "Earlier answers did not fit: "
                + "; ".join(f"id {n}: {reason}" for n, reason in problems.items())
            )
        prompts = [{"ids": numbers, "prompt": prompt} for prompt, numbers in numbers_by_prompt.items()]
        lines.append(orjson.dumps({"prompts": prompts}).decode())
        # If many requests contain the same prompt, each says that it is another one.
        variant = hashlib.sha256("\0".join(row.variant for row in rows).encode()).hexdigest()[:8]
        lines.append(f"Variation {variant}.")
        return "\n".join(lines)


def _object_schema(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these keys, as strict servers require."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
