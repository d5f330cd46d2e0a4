"""Suggest the type of a field: by its name, by a sample of its values, and if both lead to nothing, by a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any, Final

import orjson
import pyarrow as pa

from webapp import limits
from webapp.access.actors import Actor
from webapp.connectors.ai.connector import Prompt
from webapp.connectors.schema import Column, ColumnType, Entity
from webapp.engine import guess
from webapp.engine.types.registry import find
from webapp.errors import ApiError
from webapp.generation.services import ai_values
from webapp.imports.inference import columns
from webapp.imports.services import descriptions
from webapp.row_templates.services import compilation

_GENERIC_TYPES: Final = frozenset({*guess.FALLBACK_TYPES, "sentences", "number", "float"})
"""Types for "any text" and "any number", which are no information about a name."""
_SYSTEM_PROMPT: Final = (
    "You choose the type of a field of test data from the list below. Answer with JSON alone, in this form: "
    '{"type": "...", "options": {}, "reason": "..."}. Use only types and options of the list; leave options out where '
    "you are not sure; give the reason in one short sentence."
)
_ANSWER_SCHEMA: Final = {
    "type": "object",
    "properties": {"type": {"type": "string"}, "options": {"type": "object"}, "reason": {"type": "string"}},
    "required": ["type"],
}

Suggestion = dict[str, Any]


def suggest(
    actor: Actor, name: str, *, description: str, sample: Sequence[Any], connection_id: str | None
) -> list[Suggestion]:
    """Return `{type, options, reason, source}`, the most likely first, at least one; `source`: name, sample or ai.

    A model is used if one is selected, or if one exists and neither name nor sample lead to a suggestion. Errors, if
    one is selected: not_found, forbidden, validation_error, those of connections.
    """
    found: list[Suggestion] = []
    values = [item for item in sample if item is not None]
    if values:
        column_type, column = _as_column(values)
        entity = Entity("rows", ("rows",), (Column(name, column_type, str(column_type)),))
        batch = pa.record_batch([column], names=[name])
        result = columns.infer_columns(entity, batch, compilation.vocabulary())[0]
        if result.field is not None and (column_type != "text" or result.field["type"] not in _GENERIC_TYPES):
            reason = f"The values match. {result.reason}"
            found.append(_suggestion(result.field["type"], result.field["options"], reason, "sample"))
    guessed = guess.suggest_type(name)
    if guessed != guess.FALLBACK_TYPES[0]:
        kind = find(guessed)
        reason = f"The name suggests {kind.label if kind else guessed}."
        found.append(_suggestion(guessed, dict(guess.STARTER_OPTIONS.get(guessed, {})), reason, "name"))
    if connection_id is not None or not found:
        found = [*_model_suggestions(actor, name, description, sample, connection_id), *found]
    kinds: dict[str, Suggestion] = {}
    for suggestion in found:
        kinds.setdefault(suggestion["type"], suggestion)
    return list(kinds.values())


def _suggestion(kind: str, options: dict[str, Any], reason: str, source: str) -> Suggestion:
    return {"type": kind, "options": options, "reason": reason, "source": source}


def _as_column(values: Sequence[Any]) -> tuple[ColumnType, pa.Array]:
    """Return the column type of some JSON values in a database."""
    if all(isinstance(value, bool) for value in values):
        return "boolean", pa.array(values)
    if all(
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62 for value in values
    ):
        return "integer", pa.array(values, pa.int64())
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return "float", pa.array([float(value) for value in values])
    texts = [value if isinstance(value, str) else orjson.dumps(value).decode() for value in values]
    readers: tuple[tuple[ColumnType, Callable[[str], date]], ...] = (
        ("date", date.fromisoformat),
        ("timestamp", datetime.fromisoformat),
    )
    for column_type, parse in readers:
        try:
            if all(len(text) >= 10 for text in texts):
                parsed = [parse(text) for text in texts]
                plain = [item.replace(tzinfo=None) if isinstance(item, datetime) else item for item in parsed]
                return column_type, pa.array(plain)
        except ValueError:
            continue
    return "text", pa.array(texts)


def _model_suggestions(
    actor: Actor, name: str, description: str, sample: Sequence[Any], connection_id: str | None
) -> list[Suggestion]:
    try:
        connection = descriptions.select_model(actor, connection_id)
        request = {"name": name, "description": description, "values": list(sample)[: limits.AI_SAMPLES]}
        prompt = Prompt(
            f"{_SYSTEM_PROMPT}\n\nThe types:\n{descriptions.types_prompt()}",
            orjson.dumps(request).decode(),
            _ANSWER_SCHEMA,
            strict=False,
        )
        with descriptions.open_model_channel(connection) as channel:
            answer = channel.complete(prompt)
    except ApiError as error:
        if connection_id is not None:
            raise
        note = (
            ""
            if error.code in ("provider_missing", "validation_error")
            else f" The model could not be queried: {error.message}"
        )
        return [_text_suggestion(f"No suggestion for this name: plain text.{note}")]
    for document in ai_values.find_json(answer.text):
        kind = find(str(document.get("type"))) if isinstance(document, dict) else None
        if kind is None:
            continue
        reason = " ".join(str(document.get("reason") or "").split())[: limits.FETCHED_MESSAGE_CHARS]
        proposed = document.get("options")
        for options in ([proposed] if isinstance(proposed, dict) else []) + [
            {}
        ]:  # without those that are invalid
            if not descriptions.faults([{"name": name, "type": kind.name, "options": options}]):
                return [_suggestion(kind.name, options, reason or f"The model suggests {kind.label}.", "ai")]
    return [_text_suggestion("Neither the name nor the model gave a suggestion: plain text.")]


def _text_suggestion(reason: str) -> Suggestion:
    return _suggestion(descriptions.TEXT_TYPE, {}, reason, "name")
