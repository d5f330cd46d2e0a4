"""Pins: what it takes to have the same output again. They go with every generate, export and push."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from webapp import clock
from webapp.engine.plan import ENGINE
from webapp.services import moments

_PLAIN: Final = "".join(set(string.punctuation) - {"%"})


@dataclass(frozen=True, slots=True)
class Pins:
    """Seed and now of one output, and the template version, vocabulary and engine it was made with.

    `template_id` and `version` are None for a template that was not saved; `locale` only where the request gave
    one.
    """

    seed: str
    now: datetime
    vocabulary: str
    template_id: str | None = None
    version: int | None = None
    locale: str | None = None
    engine: int = ENGINE

    def headers(self) -> dict[str, str]:
        """The headers of an answer. `X-Seed` is percent-encoded UTF-8 where a seed holds anything but visible
        ASCII, or a percent sign: a header can carry no more (RFC 9110, section 5.5)."""
        out = {
            "X-Seed": quote(self.seed, safe=_PLAIN),
            "X-Now": clock.to_text(self.now) or "",
            "X-Vocabulary": self.vocabulary,
            "X-Engine": str(self.engine),
        }
        if self.version is not None:
            out["X-Template-Version"] = str(self.version)
        return out

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "seed": self.seed,
            "now": clock.to_text(self.now),
            "vocabulary": self.vocabulary,
            "template_id": self.template_id,
            "version": self.version,
            "locale": self.locale,
            "engine": self.engine,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Pins:
        """As it was stored."""
        return cls(**{**stored, "now": moments.parse(stored["now"])})
