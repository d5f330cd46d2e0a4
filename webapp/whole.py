"""Integers in JSON: `5` and `5.0` are the same integer, `5.5`, `"5"` and `true` are not integers.

JSON knows one kind of number, and JSON Schema calls every number without a fraction an integer (draft 2020-12,
validation, 6.1.1); programs of languages that know only doubles write 5.0. pydantic makes a difference, so what
callers send as JSON is checked by models made from `Model`, wherever they say `int`. Arrays in them have an end as
well: where a model says none, `limits.MAX_JSON_ELEMENTS`.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from webapp import limits


def joined(value: Any) -> Any:
    """A number without a fraction as int; all else as it is, for the model to judge."""
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
    """A model that takes 5.0 where it says `int`."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _rewritten(source, handler, joined)


class ExactModel(BaseModel):
    """A model that takes 5.0 where it says `int`, and neither texts nor true, though it is not strict elsewhere."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return _rewritten(source, handler, alone)
