"""Convert errors of rejected documents: duplicates in a unique index, and violations of the validator."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from webapp.connectors.base import RowError
from webapp.connectors.schema import Entity
from webapp.connectors.sql.base import shortened

_DUPLICATE: Final = 11000
_INVALID: Final = 121
# Reasons for rules of validators (MongoDB, "$jsonSchema").
_RULES: Final = {
    "required": "not_null", "bsonType": "wrong_type", "type": "wrong_type", "maxLength": "too_long",
    "maxItems": "too_long", "minimum": "check", "maximum": "check", "minLength": "check", "pattern": "check",
    "enum": "check", "multipleOf": "check", "minItems": "check", "uniqueItems": "check",
}  # fmt: skip


def failure(place: int, told: Mapping[str, Any], entity: Entity) -> RowError:
    """Return the error of one row of a bulk write."""
    code, message = told.get("code"), shortened(str(told.get("errmsg", "")))
    if code == _DUPLICATE:
        pattern = told.get("keyPattern") or {}
        column = next(iter(pattern)) if len(pattern) == 1 else None
        return RowError(place, "unique", message, str(code), column)
    if code == _INVALID:
        for name, rule in _broken(told.get("errInfo") or {}):
            word, value = str(rule.get("operatorName", "")), rule.get("consideredValue")
            if word == "required":
                reason, said = "not_null", f"{name} is required"
            elif word in ("bsonType", "type") and value is None and "consideredType" in rule:
                reason, said = "not_null", f"{name} cannot be null"
            else:
                reason, said = (
                    _RULES.get(word, "refused"),
                    f"{name}: {word} {rule.get('specifiedAs', {}).get(word)}",
                )
            known = name if entity.column(name) else None
            return RowError(place, reason, shortened(f"{message}: {said}"), str(code), known)
    return RowError(place, "refused", message or "The server rejected the document.", str(code or ""))


def _broken(info: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield fields with the rules that they violate (MongoDB 5.0, "Schema Validation", the error output)."""
    for rule in (info.get("details") or {}).get("schemaRulesNotSatisfied") or ():
        for field in rule.get("propertiesNotSatisfied") or ():
            for detail in field.get("details") or ():
                yield str(field.get("propertyName")), detail
        for name in rule.get("missingProperties") or ():
            yield str(name), rule
