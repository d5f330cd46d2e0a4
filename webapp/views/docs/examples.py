"""What field types need beside their defaults to show a row: options, fields to read, other places."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

_STATUS: Final = {
    "name": "status",
    "type": "list_sequential",
    "options": {"values": ["open", "paid", "lost"]},
}
_AMOUNT: Final = {"name": "amount", "type": "number", "options": {"min": 5, "max": 50, "decimals": 2}}
_MOMENT: Final = {"name": "ordered", "type": "date"}

OPTIONS: Final[MappingProxyType[str, dict[str, Any]]] = MappingProxyType(
    {
        "constant": {"value": "EUR"},
        "derived": {"value": "{{status | upper}} / {{amount}}"},
        "formula": {"expression": "round(amount * 0.19, 2)"},
        "case": {"cases": [{"when": "status == 'open'", "then": "remind"}], "else": "nothing to do"},
        "nested": {"fields": [{"name": "city", "type": "city"}, {"name": "zip", "type": "zip_code"}]},
        "array": {"of": {"type": "number", "options": {"min": 1, "max": 9}}},
        "json": {"fields": [{"name": "city", "type": "city"}, {"name": "zip", "type": "zip_code"}]},
        "template_string": {"value": "{{amount}} EUR, {{status}}"},
        "weighted_list": {"values": ["open", "paid", "lost"], "weights": [60, 35, 5]},
        "custom": {"values": ["red", "green", "blue"]},
        "enum": {"values": ["open", "paid", "lost"]},
        "list_sequential": {"values": ["open", "paid", "lost"]},
        "mapped": {"field": "status", "map": {"open": 1, "paid": 2}, "default": 3},
        "regexp": {"string": r"[A-Z]{2}-\d{4}"},
        "cartesian": {"lists": [["red", "blue"], ["small", "large"]]},
        "previous": {"field": "status", "default": "none"},
        "running_total": {"field": "amount"},
        "faker": {"method": "color_name"},
        "date_relative": {"field": "ordered", "min": "1w", "max": "3w"},
    }
)
"""Options of types that have none by default; made-up, as a person would write them."""

BESIDE: Final[MappingProxyType[str, tuple[dict[str, Any], ...]]] = MappingProxyType(
    {
        "derived": (_STATUS, _AMOUNT),
        "template_string": (_STATUS, _AMOUNT),
        "formula": (_AMOUNT,),
        "case": (_STATUS,),
        "mapped": (_STATUS,),
        "previous": (_STATUS,),
        "running_total": (_AMOUNT,),
        "date_relative": (_MOMENT,),
    }
)
"""Fields of the same row that a type reads, shown beside it."""

ELSEWHERE: Final = MappingProxyType(
    {
        "reference": "another template",
        "position_in_parent": "a reference with a cardinality beside it",
        "aggregate": "a template whose rows refer to this one",
        "template": "another template",
        "dataset_column": "a workspace file",
        "foreign_key": "a connection to a database",
        "db_response": "a connection to a database",
        "api_response": "a connection to an API",
        "ai": "a connection to a model",
    }
)
"""Types whose values come from elsewhere, and from where; their example stands in the catalogue."""
