"""Integers in JSON: `5` and `5.0` are the same integer, `5.5`, `"5"` and `true` are not integers.

JSON has only one kind of number, and JSON Schema treats every number without a fraction as an integer (draft 2020-12,
validation, 6.1.1); programs in languages that only have doubles write 5.0. pydantic distinguishes them, so JSON input
is validated by models derived from `Model`. Arrays in these models also have a maximum length:
`limits.MAX_JSON_ELEMENTS`, unless a model sets its own.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from webapp import limits


def joined(value: Any) -> Any:
    """Return a number without a fraction as int, and all other values unchanged, to be validated by the model."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def alone(value: Any) -> Any:
    """Like `joined`, and reject other types here, for models that are not strict."""
    found = joined(value)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise PydanticKnownError("int_type")
    return found


_NOT_VALIDATED: Final = frozenset({"metadata", "serialization", "default"})


def _rewritten(source: Any, handler: GetCoreSchemaHandler, read: Any) -> CoreSchema:
    schema = handler(source)
    _walk(handler.resolve_ref_schema(schema), read)
    return schema


def _walk(node: Any, read: Any) -> None:
    """Puts `read` before every integer below a node of pydantic's schema, once, and bounds its arrays."""
    items: list[tuple[Any, Any]] = []
    if isinstance(node, dict):
        if node.get("type") in ("list", "set") and node.get("max_length") is None:
            node["max_length"] = limits.MAX_JSON_ELEMENTS  # each can have errors
        if node.get("type") == "function-before" and node["function"]["function"] in (joined, alone):
            return
        items = [(key, item) for key, item in node.items() if key not in _NOT_VALIDATED]
    elif isinstance(node, list):
        items = list(enumerate(node))
    for key, item in items:
        if isinstance(item, dict) and item.get("type") == "int":
            node[key] = core_schema.no_info_before_validator_function(read, item)
        else:
            _walk(item, read)


class Model(BaseModel):
    """A model that accepts 5.0 for `int`."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _rewritten(source, handler, joined)


class ExactModel(BaseModel):
    """A model that accepts 5.0 for `int`, but neither texts nor true, although it is not strict otherwise."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _rewritten(source, handler, alone)
