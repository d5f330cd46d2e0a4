"""Pins: what it takes to have the same output again. They go with every generate, export and push."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from webapp import clock, timestamps
from webapp.engine.plan import ENGINE

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
    related: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Version and rows of each template that relations reach, by id."""
    outside: Mapping[str, str] = field(default_factory=dict)
    """Where the answers lie that rows are made of, by the keys of their questions; see ``answers.py``."""
    snapshot: str | None = None
    """What tells those answers from others."""

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
        if self.related:
            told = [
                f"{one}@v{pinned['version']}; rows={pinned['rows']}" for one, pinned in self.related.items()
            ]
            out["X-References"] = ", ".join(told)
        if self.snapshot is not None:
            out["X-Snapshot"] = self.snapshot
        return out

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        kept: dict[str, Any] = {
            "seed": self.seed,
            "now": clock.to_text(self.now),
            "vocabulary": self.vocabulary,
            "template_id": self.template_id,
            "version": self.version,
            "locale": self.locale,
            "engine": self.engine,
            "related": {one: dict(pinned) for one, pinned in self.related.items()},
        }
        return (
            kept
            if self.snapshot is None
            else {**kept, "outside": dict(self.outside), "snapshot": self.snapshot}
        )

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Pins:
        """As it was stored."""
        return cls(**{**stored, "now": timestamps.parse(stored["now"])})


def shown(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Stored pins of an export as the API shows them; `tables` of a dataset's, in the order of the file."""
    tables = stored.get("tables", ())
    told: dict[str, Any] = {"engine": stored["engine"], "seed": stored["seed"], "now": stored["now"]}
    if not tables:
        return {**told, **_of_table(stored), "dataset_version": None, "tables": []}
    words = {one["vocabulary"] for one in tables}
    return {
        **told,
        "vocabulary": words.pop() if len(words) == 1 else None,
        "template_version": None,
        "dataset_version": stored["version"],
        "locale": None,
        "references": [],
        "tables": [
            {
                "name": one["name"],
                "template_id": one["template_id"],
                "rows": one["rows"],
                "now": one["now"],
                **_of_table(one),
            }
            for one in tables
        ],
    }


def _of_table(stored: Mapping[str, Any]) -> dict[str, Any]:
    related = stored.get("related", {})
    told = {
        "vocabulary": stored["vocabulary"],
        "template_version": stored["version"],
        "locale": stored["locale"],
        "references": [{"template_id": one, **pinned} for one, pinned in related.items()],
    }
    return {**told, "snapshot": stored["snapshot"]} if "snapshot" in stored else told
