"""The catalogue: every field type there is, and every kind of thing that fields can share."""

from __future__ import annotations

from webapp.engine.fields import logic, number, structure
from webapp.engine.fields.base import FieldType, GroupKind

REGISTRY: tuple[type[FieldType], ...] = (
    # number
    number.RowNumber,
    number.Sequence,
    # logic
    logic.Constant,
    logic.Null,
    logic.Derived,
    # structure
    structure.Nested,
)

GROUP_KINDS: dict[str, type[GroupKind]] = {}

BY_NAME: dict[str, type[FieldType]] = {kind.name: kind for kind in REGISTRY}


def plain(name: str) -> str:
    """A name as it is compared: letters and digits only, in lower case."""
    return "".join(ch for ch in name.lower() if ch.isalnum())


_FOUND_BY = {plain(alias): kind for kind in REGISTRY for alias in (*kind.aliases, kind.label, kind.name)}


def find(name: str) -> type[FieldType] | None:
    """The type called ``name``, by its own name, its label or an alias."""
    return _FOUND_BY.get(plain(name))
