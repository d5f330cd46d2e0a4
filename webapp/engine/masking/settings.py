"""The field key ``masking``: its options and their checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from webapp import limits
from webapp.errors import Fault, did_you_mean

if TYPE_CHECKING:
    from webapp.engine.spec import FieldSpec
    from webapp.engine.types.base import FieldType

Strategy = Literal["replace", "format_preserve", "tokenize", "hash", "shift", "redact", "null"]
STRATEGIES: Final[tuple[str, ...]] = get_args(Strategy)

EMAIL_TYPES: Final = frozenset({"email", "safe_email", "company_email"})
DATE_TYPES: Final = frozenset({"date", "datetime", "date_of_birth", "business_day", "date_relative"})
_NUMBERS: Final = frozenset(
    {"age", "latitude", "longitude", "position_in_parent"}
)  # in addition to the category of that name
_RELATED: Final = frozenset({"reference", "foreign_key", "position_in_parent"})
_SEQUENTIAL: Final = frozenset({"row_number", "sequence", "counter", "list_sequential", "time_series"})
_DERIVED: Final = frozenset({"mapped", "cartesian", "date_relative", "account_name"})
_NOT_REPLACED: Final = _RELATED | _SEQUENTIAL | _DERIVED | {"boolean"}
_SOURCE_COLUMN: Final = "source_column"
"""The type that takes a source's values unchanged, of any kind."""
_FLOATS: Final = frozenset({"float", "normal", "lognormal", "exponential", "pareto"})


class Masking(BaseModel):
    """How source values of a field are masked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategy: Strategy = Field(description="Masking strategy.")
    consistent: bool = Field(
        True,
        description=("The same value is masked in the same way in every run; otherwise only within a run."),
    )
    domain: str | None = Field(
        None, min_length=1, max_length=limits.MAX_NAME_CHARS,
        description=("Fields of the same domain mask the same value in the same way, in every template. "
                    "Default: the type's name."),
    )  # fmt: skip
    key_version: int | None = Field(
        None, ge=1, description="Version of the workspace's masking key. Default: the newest."
    )
    person: str | None = Field(
        None, min_length=1, max_length=limits.MAX_NAME_CHARS,
        description=("Field that identifies the person: all dates of a person are shifted by the same "
                    "number of days."),
    )  # fmt: skip


def has_unique_replacements(kind: type[FieldType]) -> bool:
    """Return whether replacements can contain 64 keyed bits, so that no two are the same."""
    return (
        kind.name in EMAIL_TYPES
        or kind.name == "username"
        or (kind.category == "identity" and can_replace(kind))
    )


def can_replace(kind: type[FieldType]) -> bool:
    """Return whether a type generates values without external data, for any row."""
    return kind.category not in ("external", "logic", "structure") and kind.name not in _NOT_REPLACED


def can_preserve_format(kind: type[FieldType]) -> bool:
    """Return whether any value with the same numbers of digits and letters is valid."""
    return kind.category not in ("time", "structure") and kind.name not in _FLOATS | DATE_TYPES | {"boolean"}


def supported_strategies(kind: type[FieldType]) -> tuple[str, ...]:
    """Return the strategies that a type of single values supports, independent of its options."""
    texts = kind.category not in ("number", "time") and kind.name not in _NUMBERS | DATE_TYPES
    supported = {
        "replace": can_replace(kind),
        "format_preserve": can_preserve_format(kind),
        "tokenize": texts,
        "hash": texts,
        "shift": kind.name in DATE_TYPES | {_SOURCE_COLUMN},
        "redact": texts,
        "null": True,
    }
    return tuple(strategy for strategy in STRATEGIES if supported[strategy])


def is_text(field: FieldSpec) -> bool:
    """Return whether a field's values are texts, according to its type and options."""
    kind = field.type
    if kind.name in DATE_TYPES:
        return getattr(field.options, "format", None) is not None
    return kind.category not in ("number", "time", "structure") and kind.name not in _NUMBERS


def effective_masking(field: FieldSpec) -> Masking:
    """Return how a sensitive field is masked: as set, else by a value of the same type, else as little as possible."""
    masking = field.common.masking
    if masking is not None:
        return masking
    kind, unique = field.type, bool(field.common.unique or field.common.unique_together)
    if can_replace(kind) and (not unique or has_unique_replacements(kind)):
        return Masking(strategy="replace")
    if unique and can_preserve_format(kind):
        return Masking(strategy="format_preserve")
    return Masking(strategy="redact" if is_text(field) else "null")


def find_faults(field: FieldSpec, fields: Sequence[FieldSpec]) -> list[Fault]:
    """Return the faults of a field's masking. ``fields``: all fields of its level."""
    masking = field.common.masking
    if masking is None or (field.type.category == "external" and field.type.name != _SOURCE_COLUMN):
        return []  # types that fetch check it themselves
    path = f"{field.path}.masking"
    found = _type_faults(field, masking, f"{path}.strategy") + _person_faults(field, masking, fields, path)
    if masking.domain is not None and not masking.consistent:
        text = "domain requires consistent masking, but consistent is false."
        found.append(Fault(f"{path}.domain", "contradiction", text, "Remove domain, or consistent: false."))
    if field.common.unique or field.common.unique_together:
        text = ""
        if masking.strategy == "replace" and not has_unique_replacements(field.type):
            text = f"There are too few values of {field.type.label} to replace each one with a different one."
        elif masking.strategy in ("shift", "redact", "null"):
            text = f"{masking.strategy} may map two values to the same value, so the field cannot be unique."
        if text:
            alternatives = (
                ("format_preserve", can_preserve_format(field.type)),
                ("tokenize", is_text(field)),
            )
            supported = [item for item, is_supported in alternatives if is_supported]
            hint = f"Use {' or '.join(supported)}, or remove unique." if supported else "Remove unique."
            found.append(Fault(f"{path}.strategy", "not_unique", text, hint))
    return found


def _type_faults(field: FieldSpec, masking: Masking, path: str) -> list[Fault]:
    kind, strategy = field.type, masking.strategy
    text = hint = ""
    if kind.category == "structure":
        text, hint = f"{kind.label} contains fields.", "Mask the fields inside it."
    elif strategy == "shift" and kind.name not in DATE_TYPES | {_SOURCE_COLUMN}:
        text, hint = (
            f"{kind.label} is not a date, and only dates can be shifted.",
            "Use replace or format_preserve.",
        )
    elif strategy == "format_preserve" and not can_preserve_format(kind):
        text = f"A value of {kind.label} with other digits may be invalid."
        hint = "Use shift with the field person." if kind.name in DATE_TYPES else "Use replace or null."
    elif strategy == "replace" and not can_replace(kind):
        text, hint = f"{kind.label} cannot generate replacement values.", "Use redact or null."
    elif strategy in ("tokenize", "hash", "redact") and not is_text(field):
        text, hint = (
            f"{strategy} produces texts, but {kind.label} is not a text.",
            "Use replace, shift or null.",
        )
    return [Fault(path, "not_for_this_type", text, hint)] if text else []


def _person_faults(field: FieldSpec, masking: Masking, fields: Sequence[FieldSpec], path: str) -> list[Fault]:
    if masking.strategy != "shift":
        if masking.person is None:
            return []
        text = f"{masking.strategy} does not use person; only shift does."
        return [Fault(f"{path}.person", "contradiction", text, "Remove person.")]
    if masking.person is None:
        text = "shift needs person: all dates of one person are shifted by the same number of days."
        return [
            Fault(f"{path}.person", "required", text, "Set person to the field that identifies the person.")
        ]
    names = [item.name for item in fields if item is not field]
    if masking.person not in names:
        text = f'There is no other field "{masking.person}" here.'
        return [Fault(f"{path}.person", "unknown_field", text, did_you_mean(masking.person, names))]
    return []
