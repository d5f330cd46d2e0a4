"""The field key ``masking``: what is asked for, and what of it cannot be honoured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from webapp import limits
from webapp.errors import Fault, did_you_mean

if TYPE_CHECKING:
    from webapp.engine.fields.base import FieldType
    from webapp.engine.spec import FieldSpec

Strategy = Literal["replace", "format_preserve", "tokenize", "hash", "shift", "redact", "null"]
STRATEGIES: Final[tuple[str, ...]] = get_args(Strategy)

EMAILS: Final = frozenset({"email", "safe_email", "company_email"})
DATES: Final = frozenset({"date", "datetime", "date_of_birth", "business_day", "date_relative"})
_NUMBERS: Final = frozenset(
    {"age", "latitude", "longitude", "position_in_parent"}
)  # beside the category of that name
_RELATED: Final = frozenset({"reference", "foreign_key", "position_in_parent"})
_COUNTED: Final = frozenset({"row_number", "sequence", "counter", "list_sequential", "time_series"})
_OF_OTHERS: Final = frozenset({"mapped", "cartesian", "date_relative", "account_name"})
_NOT_REPLACED: Final = _RELATED | _COUNTED | _OF_OTHERS | {"boolean"}
_ANY: Final = "source_column"
"""The type that takes a source's values as they are, whatever they are."""
_FLOATS: Final = frozenset({"float", "normal", "lognormal", "exponential", "pareto"})


class Masking(BaseModel):
    """How real values of a field are masked."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    strategy: Strategy = Field(description="How a real value becomes another one.")
    consistent: bool = Field(
        True, description="The same value is masked alike in every run; else in this run only."
    )
    domain: str | None = Field(
        None, min_length=1, max_length=limits.MAX_NAME_CHARS,
        description="Fields of one domain mask the same value alike, in every template; the type's name, if not said.",
    )  # fmt: skip
    key_version: int | None = Field(
        None, ge=1, description="The version of the workspace's masking key; the newest, if not said."
    )
    person: str | None = Field(
        None, min_length=1, max_length=limits.MAX_NAME_CHARS,
        description="The field that tells whose date it is: dates of one person are shifted by the same days.",
    )  # fmt: skip


def carries_bits(kind: type[FieldType]) -> bool:
    """Whether a replaced value has room for 64 keyed bits, so that no two come out alike."""
    return (
        kind.name in EMAILS or kind.name == "username" or (kind.category == "identity" and can_replace(kind))
    )


def can_replace(kind: type[FieldType]) -> bool:
    """Whether a type makes values by itself, at any row."""
    return kind.category not in ("external", "logic", "structure") and kind.name not in _NOT_REPLACED


def can_preserve(kind: type[FieldType]) -> bool:
    """Whether any value of as many digits and letters will do."""
    return kind.category not in ("time", "structure") and kind.name not in _FLOATS | DATES | {"boolean"}


def fitting(kind: type[FieldType]) -> tuple[str, ...]:
    """The strategies that a type of single values can be masked by, as far as the type alone tells."""
    texts = kind.category not in ("number", "time") and kind.name not in _NUMBERS | DATES
    fits = {
        "replace": can_replace(kind),
        "format_preserve": can_preserve(kind),
        "tokenize": texts,
        "hash": texts,
        "shift": kind.name in DATES | {_ANY},
        "redact": texts,
        "null": True,
    }
    return tuple(strategy for strategy in STRATEGIES if fits[strategy])


def is_text(field: FieldSpec) -> bool:
    """Whether a field's values are texts, as far as its type and options tell."""
    kind = field.type
    if kind.name in DATES:
        return getattr(field.options, "format", None) is not None
    return kind.category not in ("number", "time", "structure") and kind.name not in _NUMBERS


def settled(field: FieldSpec) -> Masking:
    """What holds for a sensitive field: as asked, else a value of the same kind, else as little as can be."""
    asked = field.common.masking
    if asked is not None:
        return asked
    kind, unique = field.type, bool(field.common.unique or field.common.unique_together)
    if can_replace(kind) and (not unique or carries_bits(kind)):
        return Masking(strategy="replace")
    if unique and can_preserve(kind):
        return Masking(strategy="format_preserve")
    return Masking(strategy="redact" if is_text(field) else "null")


def faults(field: FieldSpec, beside: Sequence[FieldSpec]) -> list[Fault]:
    """What of a field's masking cannot be honoured. ``beside``: the fields of its level."""
    asked = field.common.masking
    if asked is None or (field.type.category == "external" and field.type.name != _ANY):
        return []  # types that fetch say themselves what they can
    path = f"{field.path}.masking"
    found = _of_type(field, asked, f"{path}.strategy") + _of_person(field, asked, beside, path)
    if asked.domain is not None and not asked.consistent:
        text = "A domain is masked alike in every run, and consistent is false."
        found.append(
            Fault(f"{path}.domain", "contradiction", text, "Take domain away, or consistent: false.")
        )
    if field.common.unique or field.common.unique_together:
        found += _of_unique(field, asked, f"{path}.strategy")
    return found


def _of_type(field: FieldSpec, asked: Masking, path: str) -> list[Fault]:
    kind, strategy = field.type, asked.strategy
    text = hint = ""
    if kind.category == "structure":
        text, hint = f"{kind.label} holds fields.", "Mask the fields inside it."
    elif strategy == "shift" and kind.name not in DATES | {_ANY}:
        text, hint = (
            f"{kind.label} is no date, and only dates are shifted.",
            "Write replace or format_preserve.",
        )
    elif strategy == "format_preserve" and not can_preserve(kind):
        text = f"Other digits in a value of {kind.label} need not make such a value."
        hint = "Write shift, and the field person." if kind.name in DATES else "Write replace or null."
    elif strategy == "replace" and not can_replace(kind):
        text, hint = f"{kind.label} makes no values by itself.", "Write redact or null."
    elif strategy in ("tokenize", "hash", "redact") and not is_text(field):
        text, hint = f"{strategy} makes texts, and {kind.label} has none.", "Write replace, shift or null."
    return [Fault(path, "not_for_this_type", text, hint)] if text else []


def _of_person(field: FieldSpec, asked: Masking, beside: Sequence[FieldSpec], path: str) -> list[Fault]:
    if asked.strategy != "shift":
        if asked.person is None:
            return []
        text = f"{asked.strategy} does not hang on a person; only shift does."
        return [Fault(f"{path}.person", "contradiction", text, "Take person away.")]
    if asked.person is None:
        text = "Dates are shifted by a constant per person."
        return [Fault(f"{path}.person", "required", text, "Name the field that tells whose date it is.")]
    names = [one.name for one in beside if one is not field]
    if asked.person not in names:
        text = f'There is no other field "{asked.person}" here.'
        return [Fault(f"{path}.person", "unknown_field", text, did_you_mean(asked.person, names))]
    return []


def _of_unique(field: FieldSpec, asked: Masking, path: str) -> list[Fault]:
    strategy, text = asked.strategy, ""
    if strategy == "replace" and not carries_bits(field.type):
        text = f"There are too few values of {field.type.label} to replace each by another: unique cannot be kept."
    elif strategy in ("shift", "redact", "null"):
        text = f"{strategy} may make two values alike: unique cannot be kept."
    if not text:
        return []
    better = [
        one
        for one, fits in (("format_preserve", can_preserve(field.type)), ("tokenize", is_text(field)))
        if fits
    ]
    hint = f"Write {' or '.join(better)}, or take unique away." if better else "Take unique away."
    return [Fault(path, "not_unique", text, hint)]
