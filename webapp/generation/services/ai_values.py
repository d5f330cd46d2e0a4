"""Values that a model writes for fields of type ai: many rows a request, checked row by row, asked for again.

    made = ai_values.written(channel, question, wanted)

What came before an error is in `made` all the same: it is kept, and whoever asks again pays for the rest alone.
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
from webapp.accounts.actors import Actor
from webapp.accounts.services import tenancy
from webapp.connections.models import Connection
from webapp.connectors import KINDS
from webapp.connectors.ai import AiChannel
from webapp.connectors.ai_chat import Prompt
from webapp.connectors.base import ConnectorError, Link
from webapp.engine.outside import Ask, Question
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db

_THOUGHT: Final = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.S | re.I)
_BEGINS: Final = re.compile(r"[{\[]")
_DECODER: Final = json.JSONDecoder(strict=False)
_TRUE, _FALSE = frozenset({"true", "yes"}), frozenset({"false", "no"})
_INT64: Final = range(-(1 << 63), 1 << 63)


class Unfit(ValueError):
    """A value does not fit what was asked for; says why, without the value."""


def documents(text: str) -> Iterator[Any]:
    """Every JSON object and array in a text, outermost ones first to last. Of one that breaks off, those inside it."""
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
    """The values of rows 1 to `count` by their numbers; those that are missing are left out. The first of two with one
    number counts. Without numbers, a list of exactly so many values is taken in its order."""
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
    """A value as text, where it fits what a field says of its answer (`Question.said`). Raises `Unfit`."""
    if value is None or isinstance(value, dict | list):
        raise Unfit("it is no single value")
    return _CHECKS[said["answer"]](value, said)


def _text(value: Any, said: Mapping[str, Any]) -> str:
    made = _plain(value)
    most = said["max_length"] or limits.AI_TEXT_CHARS
    if not made:
        raise Unfit("it is empty")
    if len(made) > most:
        raise Unfit(f"it is longer than {most:,} characters")
    return made


def _plain(value: Any) -> str:
    """A text without control characters and lone surrogates, of which databases and files take none."""
    spelled = str(value).lower() if isinstance(value, bool) else str(value)
    kept = "".join(sign for sign in spelled if sign in "\n\t" or (ord(sign) >= 32 and ord(sign) != 127))
    return kept.encode("utf-8", "ignore").decode().strip()


def _choice(value: Any, said: Mapping[str, Any]) -> str:
    wanted = _plain(value)
    if wanted in said["choices"]:
        return wanted
    alike = [one for one in said["choices"] if one.casefold().strip() == wanted.casefold().rstrip(".")]
    if len(alike) != 1:
        raise Unfit("it is none of the choices")
    return str(alike[0])


def _integer(value: Any, said: Mapping[str, Any]) -> str:
    number = _decimal_of(value, "a whole number")
    if number != number.to_integral_value() or int(number) not in _INT64:
        raise Unfit("it is no whole number")
    return str(int(number))


def _decimal(value: Any, said: Mapping[str, Any]) -> str:
    number = _decimal_of(value, "a number")
    places = said["decimals"]
    if abs(number).scaleb(places) > limits.MAX_UNITS:
        raise Unfit("it is too large")
    return format(number.quantize(Decimal(1).scaleb(-places)), "f")


def _decimal_of(value: Any, what: str) -> Decimal:
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise Unfit(f"it is not {what}")
    try:
        number = Decimal(str(value).strip()[:100])
    except InvalidOperation:
        raise Unfit(f"it is not {what}") from None
    if not number.is_finite() or number.adjusted() > limits.AI_DIGITS:
        raise Unfit(f"it is not {what} of ours")
    return number


def _boolean(value: Any, said: Mapping[str, Any]) -> str:
    word = str(value).strip().casefold()
    if word in _TRUE:
        return "true"
    if word in _FALSE:
        return "false"
    raise Unfit("it is neither true nor false")


def _date(value: Any, said: Mapping[str, Any]) -> str:
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)([T ].*)?", str(value).strip())
    try:
        return date.fromisoformat(found[1] if found else "").isoformat()
    except ValueError:
        raise Unfit("it is no date as YYYY-MM-DD") from None


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
    "Make a connection of type ai (base_url, model, api_key): any server with OpenAI's chat API will do."
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


# --- Which model ------------------------------------------------------------------------------------------


def models(actor: Actor) -> Sequence[Connection]:
    """The project's connections of type ai, the oldest first; limits.AI_MODELS_TOLD of them at most."""
    mine = tenancy.listing(actor, Connection).where(Connection.type == "ai")
    return db.session.scalars(
        mine.order_by(Connection.created_at, Connection.id).limit(limits.AI_MODELS_TOLD)
    ).all()


def only_model(actor: Actor) -> Connection:
    """The project's connection of type ai. Errors: provider_missing; validation_error where there are several."""
    found = models(actor)
    if not found:
        raise missing()
    if len(found) > 1:
        text = f"There are {len(found)} connections of type ai in this project."
        hint = "Name one: " + ", ".join(f"{one.id} ({one.name})" for one in found) + "."
        raise validation_error([Fault("connection_id", "missing", text, hint)])
    return found[0]


def missing() -> ApiError:
    """Nobody is there to be asked."""
    text = "No AI model is set up in this project."
    return ApiError("provider_missing", f"{text} {HOW_TO}", {"hint": HOW_TO})


def row_of(actor: Actor, one: Ask) -> Connection:
    """As `only_model`, for a field that names none. Errors: those of `only_model`, told at the field."""
    try:
        return only_model(actor)
    except ApiError as error:
        if error.code == "validation_error":
            told = error.details["fields"][0]
            path = f"{one.path}.options.connection_id"
            raise validation_error([Fault(path, "missing", told["message"], told["hint"])]) from None
        raise


def check(one: Ask, connection: Connection) -> None:
    """Error: validation_error, where a field names a connection that answers no prompts."""
    if not KINDS[connection.type].can.prompts:
        text = f'"{connection.name}" is a connection of type {connection.type}, and answers no prompts.'
        path = f"{one.path}.options.connection_id"
        raise validation_error([Fault(path, "not_for_this_type", text, "Choose a connection of type ai.")])


# --- Values -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Written:
    """What came of some rows, by what each is kept under. With an error some of them may be missing."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    error: ConnectorError | None = None


@dataclass(slots=True)
class _Row:
    """One value to be written."""

    place: str
    prompt: str
    variant: str
    value: str | None = None
    unfit: str = ""


def written(
    channel: Link, question: Question, wanted: Mapping[str, tuple[Any, ...]], keep: Keep | None = None
) -> Written:
    """Ask for a value for each of `wanted`: (rendered prompt, seed[, row]) by what it is kept under. `keep` is given
    the values of each request as it is answered, in the caller's thread. Raises nothing that concerns the model."""
    assert isinstance(channel, AiChannel)
    made = Written()
    rows = [_Row(place, str(prompt), " ".join(map(str, more))) for place, (prompt, *more) in wanted.items()]
    writing = _Writing(channel, dict(question.said), keep)
    try:
        writing.all(rows)
    except ConnectorError as error:
        made.error = _counted(error, rows)
    bears = dict(question["of"])["bears"]
    unfit = [row for row in rows if row.value is None and row.unfit]
    if unfit and not bears and made.error is None:
        made.error = _unfit(unfit, len(rows))
    for row in rows:
        if row.value is not None:
            made.tables[row.place] = _table(row.value, "")
        elif bears and row.unfit and made.error is None:
            made.tables[row.place] = _table(None, row.unfit)
    return made


def _table(value: str | None, trouble: str) -> pa.Table:
    return pa.table({"value": pa.array([value], pa.string()), "trouble": [trouble]})


def _counted(error: ConnectorError, rows: Sequence[_Row]) -> ConnectorError:
    """An error that says how far it went."""
    done = sum(row.value is not None for row in rows)
    error.message = f"{error.message} {done:,} of {len(rows):,} rows were answered."
    error.args = (error.message,)
    error.details = {**error.details, "answered": done, "asked": len(rows)}
    return error


def _unfit(unfit: Sequence[_Row], count: int) -> ConnectorError:
    return ConnectorError(
        f"The model's answers for {len(unfit):,} of {count:,} rows do not fit, after {limits.AI_TRIES} tries: "
        f"{unfit[0].unfit}.",
        reason="bad_answer",
        hint="Say in the prompt what is wanted, set rows_per_request of the connection lower, take a larger model, or "
        "write on_error: blank, or default.",
        details={"answered": count - len(unfit), "asked": count},
    )


class _Writing:
    """One field's rows being written."""

    def __init__(self, channel: AiChannel, said: Mapping[str, Any], keep: Keep | None) -> None:
        self._channel, self._said, self._keep = channel, said, keep
        self._over = False

    def all(self, rows: Sequence[_Row]) -> None:
        """Fills in `value`, or `unfit` where none fits after all tries. Raises ConnectorError; rows that came before
        it are filled in."""
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
        )  # alike ones together: what is said once costs once
        parts = [ordered[start : start + size] for start in range(0, len(ordered), size)]
        self._part(parts[0])  # by itself: it finds out what the server takes, and whether it answers at all
        self._kept(parts[0])
        if len(parts) == 1:
            return
        with ThreadPoolExecutor(settings.parallel, thread_name_prefix="prompt") as pool:
            ended = [pool.submit(self._part, part) for part in parts[1:]]
            for one in as_completed(ended):
                if one.exception() is None:
                    self._kept(one.result())
        for one in ended:
            one.result()

    def _part(self, rows: Sequence[_Row]) -> Sequence[_Row]:
        if self._over:
            return ()  # another one failed: what is under way ends, nothing more is begun
        try:
            self._ask(rows)
        except BaseException:
            self._over = True
            raise
        return rows

    def _kept(self, rows: Sequence[_Row]) -> None:
        """What a request brought, before the next one is waited for: a process that dies then has lost none of it."""
        found = {row.place: _table(row.value, "") for row in rows if row.value is not None}
        if self._keep is not None and found:
            self._keep(found)

    def _ask(self, rows: Sequence[_Row]) -> None:
        prompt = Prompt(_SYSTEM, self._user(rows), self._schema(), self._said["temperature"])
        answer = self._channel.ask(prompt)
        found = rows_of(answer.text, len(rows))
        for number, row in enumerate(rows, 1):
            if number not in found:
                row.unfit = "it was left out" if found else "there was no JSON in the answer"
                continue
            try:
                row.value = checked(found[number], self._said)
            except Unfit as error:
                row.unfit = str(error)

    def _user(self, rows: Sequence[_Row]) -> str:
        """What is asked: prompts with the ids that they are for."""
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
            lines.append(f"Values look like these: {orjson.dumps(said['examples']).decode()}")
        unfit = {number: row.unfit for number, row in enumerate(rows, 1) if row.unfit}
        if unfit:
            lines.append(
                "Earlier answers did not fit: " + "; ".join(f"id {n}: {why}" for n, why in unfit.items())
            )
        prompts = [{"ids": numbers, "prompt": prompt} for prompt, numbers in asked.items()]
        lines.append(orjson.dumps({"prompts": prompts}).decode())
        # Rows whose prompts are alike are asked for in many requests: each says that it is another one.
        told = hashlib.sha256("\0".join(row.variant for row in rows).encode()).hexdigest()[:8]
        lines.append(f"Variation {told}.")
        return "\n".join(lines)

    def _schema(self) -> dict[str, Any]:
        said = self._said
        value: dict[str, Any] = {"type": _TYPES.get(said["answer"], "string")}
        if said["answer"] == "choice":
            value["enum"] = list(said["choices"])
        row = _closed({"id": {"type": "integer"}, "value": value})
        return _closed({"rows": {"type": "array", "items": row}})


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    """An object of exactly these keys, as strict servers want it."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
