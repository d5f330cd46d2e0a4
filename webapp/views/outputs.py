"""What goes out, as pydantic models: the same declaration fills an answer and the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema

from webapp import clock

# A time as RFC 3339 in UTC ending in `Z`.
Time = Annotated[
    datetime,
    PlainSerializer(clock.to_text, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
OptionalTime = Annotated[
    datetime | None,
    PlainSerializer(clock.to_text, return_type=str | None),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}),
]
Scopes = Annotated[list[str] | None, BeforeValidator(lambda v: None if v is None else list(v))]


class Output(BaseModel):
    """One kind of answer. `Output.of(row)` reads a table row (or anything with those attributes)."""

    model_config = ConfigDict(from_attributes=True, extra="ignore")
    listed: ClassVar[type[BaseModel] | None] = None

    @classmethod
    def of(cls, row: Any, **more: Any) -> dict[str, Any]:
        """The JSON object of a row; `more` gives what the row itself does not have."""
        if more:
            known = {
                name: getattr(row, name)
                for name in cls.model_fields
                if name not in more and hasattr(row, name)
            }
            return cls.model_validate({**known, **more}).model_dump()
        return cls.model_validate(row).model_dump()


class Listed:
    """`Listed(ThingOut)` as `returns=` of a list route: `{items, next_cursor, total}`."""

    def __init__(self, item: type[BaseModel]) -> None:
        self.item = item


class Raw:
    """`Raw(schema)` as `returns=`: a JSON Schema written out, for answers that no model describes."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
