"""The settings for invalid data of a template or a field: share and kinds."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import ConfigDict, Field, field_serializer, field_validator

from webapp import json_input

Kind = Literal[
    "wrong_type",
    "too_long",
    "bad_checksum",
    "out_of_range",
    "bad_format",
    "missing",
    "duplicate",
    "orphan",
    "injection",
    "unicode_edge",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_PLACES: Final = 6


class Invalid(json_input.Model):
    """Invalid data: on a field a share of its cells, on a template a share of its rows, each with one invalid cell."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rate: Decimal = Field(gt=0, le=1, decimal_places=_PLACES, description="0.01 = exactly 1 % of rows.")
    kinds: Annotated[tuple[Kind, ...], Field(min_length=1, max_length=len(KINDS))] | None = Field(
        None, description="Kinds of errors, in equal parts. Default: all that apply to the field."
    )

    @field_validator("kinds")
    @classmethod
    def _each_once(cls, value: tuple[Kind, ...] | None) -> tuple[Kind, ...] | None:
        if value is not None and len(set(value)) < len(value):
            raise ValueError("Each kind may be listed only once")
        return value

    @field_serializer("rate")
    def _plain_rate(self, value: Decimal) -> float | int:
        return int(value) if value == int(value) else float(value)

    @property
    def share(self) -> tuple[int, int]:
        """Bad ones in every hundred, as a fraction of whole numbers."""
        share = Fraction(self.rate) * 100
        return share.numerator, share.denominator

    def to_json(self) -> dict[str, Any]:
        """Return the stored form, which is also returned by the API."""
        return self.model_dump(mode="json", exclude_none=True)
