"""Hints for forms: what to offer for an option in addition to a text box.

An option declares its hint (``Field(json_schema_extra=form_hints.template("parent"))``), and its JSON Schema contains
it under ``x-picker``: the builder's form draws it from there, and so may any other client.
"""

from __future__ import annotations

from typing import Any, Final

KEY: Final = "x-picker"


def template(role: str) -> dict[str, Any]:
    """The id of a template. ``role`` is what its rows are to the field's own: ``parent`` (one of them is taken),
    ``child`` (they belong to each row by cardinality) or ``inside`` (they are nested in each row)."""
    return {KEY: {"kind": "template", "role": role}}


def field_of(option: str, empty: str) -> dict[str, Any]:
    """The name of a field of the template in the option ``option``; ``empty``: meaning of an empty value."""
    return {KEY: {"kind": "field", "of": option, "empty": empty}}


def connection(needs: str = "") -> dict[str, Any]:
    """The id of a connection that can be queried. ``needs`` is what its kind must have: ``sql``, ``tables`` (keys to
    draw from), ``fetch`` (a path to read from), ``prompts``, or nothing more."""
    return {KEY: {"kind": "connection", "needs": needs}}


def table_of(option: str) -> dict[str, Any]:
    """The name of a table of the connection that ``option`` names."""
    return {KEY: {"kind": "table", "of": option}}


def column_of(option: str, connection: str) -> dict[str, Any]:
    """The name of a column of the table in the option ``option``, in the connection of the other option."""
    return {KEY: {"kind": "column", "of": option, "in": connection}}


RANGE: Final[dict[str, Any]] = {KEY: {"kind": "range"}}
"""An object with ``min`` and ``max``, and less common keys in addition; if both are empty, the object is omitted."""
FORMULA: Final[dict[str, Any]] = {KEY: {"kind": "formula"}}
"""A formula over other fields, or JSON with formulas in it."""
PATTERN: Final[dict[str, Any]] = {KEY: {"kind": "formula", "braces": True}}
"""Text with formulas in double braces."""
