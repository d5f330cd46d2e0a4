"""Values that an AI model writes for fields of type ai: many rows per request, each validated, invalid ones
requested again.

    made = ai_values.written(channel, question, wanted)

After an error, `made` contains the values received before it. They are stored, so a retry pays only for the
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
from webapp.connectors.base import ConnectorError, Link
from webapp.engine.external_values import ExternalRequest, Question
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db

_THOUGHT: Final = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.S | re.I)
_BEGINS: Final = re.compile(r"[{\[]")
_DECODER: Final = json.JSONDecoder(strict=False)
_TRUE, _FALSE = frozenset({"true", "yes"}), frozenset({"false", "no"})
_INT64: Final = range(-(1 << 63), 1 << 63)


class InvalidAnswer(ValueError):
    """A value is invalid. The text is the reason, without the value."""


def documents(text: str) -> Iterator[Any]:
    """Return every JSON object and array in a text, outermost first. If one is incomplete, return those
    nested in it."""
    text = _THOUGHT.sub(" ", text)
    place, broken = 0, 0
    while (found := _BEGINS.search(text, place)) and broken < limits.AI_BROKEN:
        try:
            value, place = _DECODER.raw_decode(text, found.start())
            yield value
        except (ValueError, RecursionError):
            broken += 1
            place = found.start() + 1


def rows_of(text: str, count: int) -> dict[int, Any]:
    """Return the values of rows 1 to `count` by number, without missing ones. If a number occurs twice, the
    first one counts. A list without numbers must have exactly `count` values, in order."""
    found: dict[int, Any] = {}
    plain: list[Any] | None = None
    for document in documents(text):
        pending = [document]
        while pending:
            one = pending.pop()
            if isinstance(one, Mapping):
                number = _number(one.get("id"))
                if number is not None and "value" in one:
                    if 1 <= number <= count:
                        found.setdefault(number, one["value"])
                else:
                    pending.extend(reversed(list(one.values())))
            elif isinstance(one, list):
                if len(one) == count and not any(isinstance(item, dict | list) for item in one):
                    plain = plain or one
                pending.extend(item for item in reversed(one) if isinstance(item, dict | list))
    if not found and plain is not None:
        return dict(enumerate(plain, 1))
    return found


def _number(given: Any) -> int | None:
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    if isinstance(given, str) and re.fullmatch(r"\d{1,9}", given.strip()):
        return int(given)
    return None


def checked(value: Any, said: Mapping[str, Any]) -> str:
    """Return a value as text if it satisfies the field's requirements (`Question.said`). Raises `InvalidAnswer`."""
    if value is None or isinstance(value, dict | list):
        raise InvalidAnswer("it is not a single value")
    return _CHECKS[said["answer"]](value, said)


def _text(value: Any, said: Mapping[str, Any]) -> str:
    made = _plain(value)
    most = said["max_length"] or limits.AI_TEXT_CHARS
    if not made:
        raise InvalidAnswer("it is empty")
    if len(made) > most:
        raise InvalidAnswer(f"it is longer than {most:,} characters")
    return made


def _plain(value: Any) -> str:
    """Return text without control characters and lone surrogates, which databases and files reject."""
    spelled = str(value).lower() if isinstance(value, bool) else str(value)
    kept = "".join(sign for sign in spelled if sign in "\n\t" or (ord(sign) >= 32 and ord(sign) != 127))
    return kept.encode("utf-8", "ignore").decode().strip()


def _choice(value: Any, said: Mapping[str, Any]) -> str:
    wanted = _plain(value)
    if wanted in said["choices"]:
        return wanted
    alike = [
        choice for choice in said["choices"] if choice.casefold().strip() == wanted.casefold().rstrip(".")
    ]
    if len(alike) != 1:
        raise InvalidAnswer("it is not one of the choices")
    return str(alike[0])


def _integer(value: Any, said: Mapping[str, Any]) -> str:
    number = _decimal_of(value, "a whole number")
    if number != number.to_integral_value() or int(number) not in _INT64:
        raise InvalidAnswer("it is not a whole number")
    return str(int(number))


def _decimal(value: Any, said: Mapping[str, Any]) -> str:
    number = _decimal_of(value, "a number")
    places = said["decimals"]
    if abs(number).scaleb(places) > limits.MAX_UNITS:
        raise InvalidAnswer("it is too large")
    return format(number.quantize(Decimal(1).scaleb(-places)), "f")


def _decimal_of(value: Any, what: str) -> Decimal:
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise InvalidAnswer(f"it is not {what}")
    try:
        number = Decimal(str(value).strip()[:100])
    except InvalidOperation:
        raise InvalidAnswer(f"it is not {what}") from None
    if not number.is_finite() or number.adjusted() > limits.AI_DIGITS:
        raise InvalidAnswer("it has too many digits")
    return number


def _boolean(value: Any, said: Mapping[str, Any]) -> str:
    word = str(value).strip().casefold()
    if word in _TRUE:
        return "true"
    if word in _FALSE:
        return "false"
    raise InvalidAnswer("it is not true or false")


def _date(value: Any, said: Mapping[str, Any]) -> str:
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)([T ].*)?", str(value).strip())
    try:
        return date.fromisoformat(found[1] if found else "").isoformat()
    except ValueError:
        raise InvalidAnswer("it is not a date in the form YYYY-MM-DD") from None


_CHECKS: Final = {
    "text": _text,
    "choice": _choice,
    "integer": _integer,
    "decimal": _decimal,
    "boolean": _boolean,
    "date": _date,
}


Keep = Callable[[Mapping[str, pa.Table]], object]

HOW_TO: Final = (
    "Create a connection of type ai (base_url, model, api_key). "
    "Any server with an OpenAI-compatible chat API works."
)
_SYSTEM: Final = (
    "You write realistic test data. For every id you are given a prompt, and you answer with one value for it. Answer "
    'with JSON alone, in this form: {"rows": [{"id": 1, "value": ...}, ...]}, with every id once. Where prompts are '
    "alike, write something different for each id. The values are used as they stand: no explanations in them."
)
_WANTED: Final = {
    "text": "Each value is a text{most}.",
    "choice": "Each value is exactly one of: {choices}.",
    "integer": "Each value is a whole number.",
    "decimal": "Each value is a number with at most {decimals} places after the point.",
    "boolean": "Each value is true or false.",
    "date": "Each value is a date in the form YYYY-MM-DD.",
}
_TYPES: Final = {"integer": "integer", "decimal": "number", "boolean": "boolean"}


# --- Choosing the connection ---


def models(actor: Actor) -> Sequence[Connection]:
    """Return the project's connections of type ai, oldest first, at most limits.AI_MODELS_TOLD."""
    mine = tenancy.listing(actor, Connection).where(Connection.type == "ai")
    return db.session.scalars(
        mine.order_by(Connection.created_at, Connection.id).limit(limits.AI_MODELS_TOLD)
    ).all()


def only_model(actor: Actor) -> Connection:
    """Return the project's connection of type ai. Raises provider_missing; validation_error if there are
    several."""
    found = models(actor)
    if not found:
        raise missing()
    if len(found) > 1:
        text = f"There are {len(found)} connections of type ai in this project."
        hint = "Name one: " + ", ".join(f"{item.id} ({item.name})" for item in found) + "."
        raise validation_error([Fault("connection_id", "missing", text, hint)])
    return found[0]


def missing() -> ApiError:
    """Return the error for a project without a connection of type ai."""
    text = "This project has no AI connection."
    return ApiError("provider_missing", f"{text} {HOW_TO}", {"hint": HOW_TO})


def row_of(actor: Actor, one: ExternalRequest) -> Connection:
    """Like `only_model`, for a field that names no connection. Errors are reported for the field."""
    try:
        return only_model(actor)
    except ApiError as error:
        if error.code == "validation_error":
            told = error.details["fields"][0]
            path = f"{one.path}.options.connection_id"
            raise validation_error([Fault(path, "missing", told["message"], told["hint"])]) from None
        raise


def check(one: ExternalRequest, connection: Connection) -> None:
    """Raise validation_error if a field names a connection of another type."""
    if not KINDS[connection.type].can.prompts:
        text = f'"{connection.name}" is a connection of type {connection.type}, not ai.'
        path = f"{one.path}.options.connection_id"
        raise validation_error([Fault(path, "not_for_this_type", text, "Choose a connection of type ai.")])


# --- Values -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Written:
    """The values of some rows by cache key. After an error, some are missing."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    error: ConnectorError | None = None


@dataclass(slots=True)
class _Row:
    """A value to request."""

    place: str
    prompt: str
    variant: str
    value: str | None = None
    unfit: str = ""


def written(
    channel: Link, question: Question, wanted: Mapping[str, tuple[Any, ...]], keep: Keep | None = None
) -> Written:
    """Request a value for each of `wanted`: (rendered prompt, seed[, row]) by cache key. `keep` receives the
    values of each response, in the caller's thread. Errors of the model are returned, not raised."""
    assert isinstance(channel, AiChannel)
    made = Written()
    rows = [_Row(place, str(prompt), " ".join(map(str, more))) for place, (prompt, *more) in wanted.items()]
    writing = _FieldRequests(channel, dict(question.said), keep)
    try:
        writing.all(rows)
    except ConnectorError as error:
        done = sum(row.value is not None for row in rows)
        error.message = f"{error.message} {done:,} of {len(rows):,} rows were completed."
        error.args = (error.message,)
        error.details = {**error.details, "answered": done, "asked": len(rows)}
        made.error = error
    bears = dict(question["of"])["bears"]
    unfit = [row for row in rows if row.value is None and row.unfit]
    if unfit and not bears and made.error is None:
        made.error = ConnectorError(
            f"The model returned invalid values for {len(unfit):,} of {len(rows):,} rows after {limits.AI_TRIES} "
            f"attempts: {unfit[0].unfit}.",
            reason="bad_answer",
            hint="Make the prompt more specific, reduce rows_per_request of the connection, use a larger model, or "
            "set on_error to blank or default.",
            details={"answered": len(rows) - len(unfit), "asked": len(rows)},
        )
    for row in rows:
        if row.value is not None:
            made.tables[row.place] = _table(row.value, "")
        elif bears and row.unfit and made.error is None:
            made.tables[row.place] = _table(None, row.unfit)
    return made


def _table(value: str | None, trouble: str) -> pa.Table:
    return pa.table({"value": pa.array([value], pa.string()), "trouble": [trouble]})


class _FieldRequests:
    """Requests the values of one field."""

    def __init__(self, channel: AiChannel, said: Mapping[str, Any], keep: Keep | None) -> None:
        self._channel, self._said, self._keep = channel, said, keep
        self._over = False

    def all(self, rows: Sequence[_Row]) -> None:
        """Set `value`, or `unfit` if no valid value came after all attempts. Raises ConnectorError; earlier
        rows are set."""
        pending = list(rows)
        for _ in range(limits.AI_TRIES):
            self._round(pending)
            pending = [row for row in pending if row.value is None]
            if not pending:
                return

    def _round(self, rows: Sequence[_Row]) -> None:
        settings = self._channel.settings
        size = settings.rows_per_request
        ordered = sorted(
            rows, key=lambda row: row.prompt
        )  # equal prompts together, so that shared text is sent once
        parts = [ordered[start : start + size] for start in range(0, len(ordered), size)]
        self._part(
            parts[0]
        )  # the first one alone: it finds out what the server supports and whether it responds
        self._kept(parts[0])
        if len(parts) == 1:
            return
        with ThreadPoolExecutor(settings.parallel, thread_name_prefix="prompt") as pool:
            ended = [pool.submit(self._part, part) for part in parts[1:]]
            for item in as_completed(ended):
                if item.exception() is None:
                    self._kept(item.result())
        for outcome in ended:
            outcome.result()

    def _part(self, rows: Sequence[_Row]) -> Sequence[_Row]:
        if self._over:
            return ()  # another request failed: finish open ones, start no more
        try:
            self._ask(rows)
        except BaseException:
            self._over = True
            raise
        return rows

    def _kept(self, rows: Sequence[_Row]) -> None:
        """Store the values of a response before waiting for the next, so that a crash loses nothing."""
        found = {row.place: _table(row.value, "") for row in rows if row.value is not None}
        if self._keep is not None and found:
            self._keep(found)

    def _ask(self, rows: Sequence[_Row]) -> None:
        value: dict[str, Any] = {"type": _TYPES.get(self._said["answer"], "string")}
        if self._said["answer"] == "choice":
            value["enum"] = list(self._said["choices"])
        row_schema = _closed({"id": {"type": "integer"}, "value": value})
        schema = _closed({"rows": {"type": "array", "items": row_schema}})
        prompt = Prompt(_SYSTEM, self._user_message(rows), schema, self._said["temperature"])
        answer = self._channel.ask(prompt)
        found = rows_of(answer.text, len(rows))
        for number, row in enumerate(rows, 1):
            if number not in found:
                row.unfit = "it was left out" if found else "there was no JSON in the answer"
                continue
            try:
                row.value = checked(found[number], self._said)
            except InvalidAnswer as error:
                row.unfit = str(error)

    def _user_message(self, rows: Sequence[_Row]) -> str:
        """Return the prompts with the ids of their rows."""
        asked: dict[str, list[int]] = {}
        for number, row in enumerate(rows, 1):
            asked.setdefault(row.prompt, []).append(number)
        said = self._said
        lines = [
            _WANTED[said["answer"]].format(
                most=f" of at most {said['max_length']} characters" if said["max_length"] else "",
                choices=orjson.dumps(said["choices"]).decode(),
                decimals=said["decimals"],
            )
        ]
        if said["examples"]:
            lines.append(f"Example values: {orjson.dumps(said['examples']).decode()}")
        unfit = {number: row.unfit for number, row in enumerate(rows, 1) if row.unfit}
        if unfit:
            lines.append(
                "Earlier answers did not fit: " + "; ".join(f"id {n}: {why}" for n, why in unfit.items())
            )
        prompts = [{"ids": numbers, "prompt": prompt} for prompt, numbers in asked.items()]
        lines.append(orjson.dumps({"prompts": prompts}).decode())
        # If many requests contain the same prompt, each says that it is another one.
        told = hashlib.sha256("\0".join(row.variant for row in rows).encode()).hexdigest()[:8]
        lines.append(f"Variation {told}.")
        return "\n".join(lines)


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object with exactly these keys, as strict servers require."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
