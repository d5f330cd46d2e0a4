"""Create templates from a description, with a model that receives the catalogue.

The output of a model is untrusted input: it is parsed and compiled like any template, its errors are sent back to the
model once, and a field that is still invalid becomes plain text with a note in the report.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from webapp import limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.models import Connection
from webapp.connections.services import access
from webapp.connectors.ai.connector import AiChannel, Prompt
from webapp.connectors.base import ConnectorError
from webapp.engine.errors import SpecError
from webapp.engine.plan import compile_plan
from webapp.engine.spec import parse
from webapp.engine.types.registry import REGISTRY, find
from webapp.errors import Fault, validation_error
from webapp.extensions import db
from webapp.generation.services import ai_values
from webapp.row_templates.services import catalogue, compilation, templates

Field = dict[str, Any]

TEXT_TYPE: Final = "words"
_KEYS: Final = ("name", "type", "options", "unique", "percent_blank", "description")
_MAX_OPTIONS: Final = 8
# They need what a description does not contain: other templates, connections, nested fields.
_UNAVAILABLE_TYPES: Final = frozenset(
    "reference aggregate template foreign_key dataset_column db_response api_response ai"
    " position_in_parent nested null".split()
)
_SYSTEM_PROMPT: Final = (
    "You design templates of test data. A template has a name and fields; a field has a name, a type of the list below "
    "and options of that type. Answer with JSON alone, in this form: "
    '{"name": "...", "fields": [{"name": "...", "type": "...", "options": {}}]}. Use only types and options of the '
    "list; leave options out where you are not sure. A field may read others that stand in the same template by their "
    "names."
)
_FIELD_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "type": {"type": "string"},
        "options": {"type": "object"},
        "unique": {"type": "boolean"},
    },
    "required": ["name", "type"],
}
_ANSWER_SCHEMA: Final = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "fields": {"type": "array", "items": _FIELD_SCHEMA}},
    "required": ["name", "fields"],
}


@dataclass(slots=True)
class FieldDraft:
    """One field of a described template. `state`: green, as the model proposed it; yellow, without its options; red,
    replaced by text."""

    field: Field
    state: str = "green"
    reason: str = ""

    def report_entry(self) -> dict[str, Any]:
        """Return the entry for the report."""
        kind = find(self.field["type"])
        label = f"Created as {kind.label if kind else self.field['type']}."
        return {
            "field": self.field["name"],
            "type": self.field["type"],
            "state": self.state,
            "reason": f"{label} {self.reason}".strip(),
        }


def create_template(
    actor: Actor, description: str, *, connection_id: str | None, quantity: int, save: bool
) -> dict[str, Any]:
    """Return `{name, fields, report, template}` for a description; `create_template` is None unless it is saved
    (commits).

    Errors: provider_missing, not_found, forbidden, validation_error (several models and none selected), those of
    connections; target_failed with the reason bad_answer if the model returned no usable template.
    """
    connection = select_model(actor, connection_id)
    with open_model_channel(connection) as channel:
        name, fields = _request_template(channel, description)
    drafts = _valid_drafts(fields)
    saved = None
    if save:
        ready = [draft.field for draft in drafts]
        saved = templates.create(
            actor,
            name=name,
            fields=ready,
            quantity=quantity,
            description=description[: limits.MAX_DESCRIPTION_CHARS],
        )
    return {
        "name": name,
        "fields": [draft.field for draft in drafts],
        "quantity": quantity,
        "report": [draft.report_entry() for draft in drafts],
        "template": saved,
    }


def select_model(actor: Actor, connection_id: str | None) -> Connection:
    """Return the selected model, or the only one. Errors: not_found, forbidden, provider_missing, validation_error."""
    if connection_id is None:
        return ai_values.only_ai_connection(actor)
    connection = tenancy.get(actor, Connection, connection_id, "write")
    if connection.type != "ai":
        text = (
            f'"{connection.name}" is a connection of type {connection.type}, which does not answer prompts.'
        )
        raise validation_error(
            [Fault("connection_id", "not_for_this_type", text, "Choose a connection of type ai.")]
        )
    return connection


class open_model_channel:  # noqa: N801 - reads as a verb where it is used
    """A connection to a model, whose errors are converted to API errors. The database session is released in the
    meantime."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __enter__(self) -> AiChannel:
        channel = access.open_connection(self._connection)
        assert isinstance(channel, AiChannel)
        self._channel = channel
        db.session.remove()
        return channel

    def __exit__(self, kind: Any, error: BaseException | None, _: object) -> None:
        self._channel.close()
        if isinstance(error, ConnectorError):
            raise access.api_error(error) from None


# --- Requests to the model ------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def types_prompt() -> str:
    """Return the catalogue for a model: a line for each type that can be used for a description."""
    lines = []
    for kind in REGISTRY:
        if kind.name in _UNAVAILABLE_TYPES:
            continue
        schema = catalogue.options_schema(kind)
        required = set(schema.get("required", ()))
        names = sorted(schema.get("properties", {}), key=lambda item: item not in required)[:_MAX_OPTIONS]
        options = ", ".join(f"{name} (required)" if name in required else name for name in names)
        lines.append(f"{kind.name}: {kind.description}" + (f" Options: {options}." if options else ""))
    return "\n".join(lines)


def _request_template(channel: AiChannel, description: str) -> tuple[str, list[Field]]:
    """Return the name and fields that the model proposes; invalid ones are sent back once. Raises ConnectorError."""
    system = f"{_SYSTEM_PROMPT}\n\nThe types:\n{types_prompt()}"
    first = channel.complete(
        Prompt(
            system, f"Design a template for this description:\n{description}", _ANSWER_SCHEMA, strict=False
        )
    )
    result = _parse_answer(first.text)
    problems = (
        [f"{fault.path}: {fault.message} {fault.hint or ''}".strip() for fault in faults(result[1])]
        if result
        else []
    )
    if result and not problems:
        return result
    problem_text = "\n".join(problems[: limits.AI_FIELDS]) or "The answer was not JSON in the requested form."
    retry_prompt = f"Design a template for this description:\n{description}\n\nYou answered:\n"
    retry_prompt += f"{first.text[: limits.AI_PROMPT_CHARS]}\n\nThat has faults:\n{problem_text}\n\n"
    retry_prompt += "Answer with the whole template, corrected."
    result = (
        _parse_answer(channel.complete(Prompt(system, retry_prompt, _ANSWER_SCHEMA, strict=False)).text)
        or result
    )
    if result is None:
        raise ConnectorError(
            "The model did not return a template.",
            reason="bad_answer",
            hint="Describe the rows and their fields more clearly, or use a larger model.",
        )
    return result


def _parse_answer(text: str) -> tuple[str, list[Field]] | None:
    """Return name and fields in the output of a model; None without valid ones."""
    for document in ai_values.find_json(text):
        fields = document.get("fields") if isinstance(document, dict) else document
        name = document.get("name") if isinstance(document, dict) else None
        supported_fields = (
            [_supported_keys(field) for field in fields if isinstance(field, dict)]
            if isinstance(fields, list)
            else []
        )
        named_fields = [field for field in supported_fields if field["name"]][: limits.AI_FIELDS]
        if not named_fields:
            continue
        seen: set[str] = set()
        for field in named_fields:  # duplicate names become unique
            base_name, number = field["name"], 1
            while field["name"] in seen:
                number += 1
                field["name"] = f"{base_name[: limits.MAX_NAME_CHARS - 5]}_{number}"
            seen.add(field["name"])
        title = " ".join(name.split())[: limits.MAX_NAME_CHARS] if isinstance(name, str) else ""
        return title or "Described", named_fields
    return None


def _supported_keys(raw: Mapping[str, Any]) -> Field:
    """Return a field with the supported keys."""
    field = {key: raw[key] for key in _KEYS if raw.get(key) is not None}
    field["name"] = " ".join(str(raw.get("name") or "").split())[: limits.MAX_NAME_CHARS]
    field["type"] = str(raw.get("type") or TEXT_TYPE)
    if not isinstance(field.get("options"), dict):
        field["options"] = {}
    return field


# --- What fits ----------------------------------------------------------------------------------------------


def faults(fields: Sequence[Field]) -> list[Fault]:
    """Return the errors of fields as a separate template."""
    unavailable = [
        Fault(
            f"fields[{index}].type",
            "not_available",
            f"Fields of type {field['type']} cannot be created from a description.",
        )
        for index, field in enumerate(fields)
        if (kind := find(field["type"])) is not None and kind.name in _UNAVAILABLE_TYPES
    ]
    if unavailable:
        return unavailable
    try:
        compile_plan(parse(list(fields)), compilation.vocabulary())
    except SpecError as error:
        return list(error.faults)
    return []


def _valid_drafts(fields: Sequence[Field]) -> list[FieldDraft]:
    """Return drafts that are valid: invalid fields first lose their options, then become text."""
    drafts = [FieldDraft(item) for item in fields]
    for _ in range(2 * len(drafts) + 1):  # each field goes two steps at most
        found = faults([item.field for item in drafts])
        if not found:
            return drafts
        first_faults: dict[int, Fault] = {}
        for fault in found:
            match = re.match(r"fields\[(\d+)\]", fault.path)
            if match:
                first_faults.setdefault(int(match[1]), fault)
        if not first_faults:
            break
        for position, fault in first_faults.items():
            draft, field = drafts[position], drafts[position].field
            known = fault.code not in ("unknown_type", "not_available")
            if draft.state == "green" and set(field) - {"name", "type"} and known:
                draft.field = {"name": field["name"], "type": field["type"], "options": {}}
                draft.state = "yellow"
                draft.reason = f"Its options were not valid and were removed: {fault.message}"
            else:
                original = f' The model suggested "{field["type"][:50]}".' if draft.state != "red" else ""
                draft.field, draft.state = _as_text_field(field), "red"
                draft.reason = f"Imported as text: {fault.message}{original}"
    return [
        FieldDraft(_as_text_field(item.field), "red", "The fields were not compatible with each other.")
        for item in drafts
    ]


def _as_text_field(field: Field) -> Field:
    return {"name": field["name"], "type": TEXT_TYPE, "options": {}}
