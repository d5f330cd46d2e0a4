"""Pins: everything that reproduces an output. They are returned by every generate call, export and push."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from webapp import clock, timestamps
from webapp.engine import ENGINE

_UNQUOTED_CHARS: Final = "".join(set(string.punctuation) - {"%"})


@dataclass(frozen=True, slots=True)
class Pins:
    """Seed and now of one output, and the versions of template, vocabulary and engine.

    `template_id` and `version` are None for a template that was not saved; `locale` is set only if the
    request had one.
    """

    seed: str
    now: datetime
    vocabulary: str
    template_id: str | None = None
    version: int | None = None
    locale: str | None = None
    engine: int = ENGINE
    related: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Version and rows of each related template, by id."""
    outside: Mapping[str, str] = field(default_factory=dict)
    """The storage locations of external values, by the keys of their questions; see ``external_values.py``.
    """
    snapshot: str | None = None
    """A hash that identifies these values."""

    def headers(self) -> dict[str, str]:
        """Return the response headers. `X-Seed` is percent-encoded UTF-8 if the seed contains a percent sign
        or anything but visible ASCII, because headers cannot contain more (RFC 9110, section 5.5)."""
        out = {
            "X-Seed": quote(self.seed, safe=_UNQUOTED_CHARS),
            "X-Now": clock.to_text(self.now) or "",
            "X-Vocabulary": self.vocabulary,
            "X-Engine": str(self.engine),
        }
        if self.version is not None:
            out["X-Template-Version"] = str(self.version)
        if self.related:
            references = [
                f"{item}@v{pinned['version']}; rows={pinned['rows']}" for item, pinned in self.related.items()
            ]
            out["X-References"] = ", ".join(references)
        if self.snapshot is not None:
            out["X-Snapshot"] = self.snapshot
        return out

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        stored: dict[str, Any] = {
            "seed": self.seed,
            "now": clock.to_text(self.now),
            "vocabulary": self.vocabulary,
            "template_id": self.template_id,
            "version": self.version,
            "locale": self.locale,
            "engine": self.engine,
            "related": {item: dict(pinned) for item, pinned in self.related.items()},
        }
        return (
            stored
            if self.snapshot is None
            else {**stored, "outside": dict(self.outside), "snapshot": self.snapshot}
        )

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Pins:
        """Parse the stored form."""
        return cls(**{**stored, "now": timestamps.parse(stored["now"])})


def pins_as_json(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pins of an export for the API; `tables` are those of a dataset, in the order of the file."""
    tables = stored.get("tables", ())
    common: dict[str, Any] = {"engine": stored["engine"], "seed": stored["seed"], "now": stored["now"]}
    if not tables:
        return {**common, **_table_pins(stored), "dataset_version": None, "tables": []}
    vocabularies = {table["vocabulary"] for table in tables}
    return {
        **common,
        "vocabulary": vocabularies.pop() if len(vocabularies) == 1 else None,
        "template_version": None,
        "dataset_version": stored["version"],
        "locale": None,
        "references": [],
        "tables": [
            {
                "name": table["name"],
                "template_id": table["template_id"],
                "rows": table["rows"],
                "now": table["now"],
                "note": table.get("note", ""),
                **_table_pins(table),
            }
            for table in tables
        ],
    }


def _table_pins(stored: Mapping[str, Any]) -> dict[str, Any]:
    related = stored.get("related", {})
    pins = {
        "vocabulary": stored["vocabulary"],
        "template_version": stored["version"],
        "locale": stored["locale"],
        "references": [{"template_id": item, **pinned} for item, pinned in related.items()],
    }
    return {**pins, "snapshot": stored["snapshot"]} if "snapshot" in stored else pins
