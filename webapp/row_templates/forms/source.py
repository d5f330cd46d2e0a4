"""The source of a template as inputs of a form: which way is chosen, and what that way asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webapp.engine.real import SourceSpec
from webapp.web.forms.from_model import bound

PREFIX: Final = "source."
WAY: Final = "source.from"
"""The input that says which way: "" for none."""
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "file": ("file", "sheet", "limit"),
    "table": ("connection_id", "table", "where", "limit"),
    "query": ("connection_id", "query", "limit"),
}
"""What each way asks for; what the others' inputs hold is not taken."""


def read(form: Any) -> dict[str, Any] | None:
    """The source that a form holds, as it would be sent; None for none. One that is half filled in is sent so, for its
    model to say what is missing."""
    names = KEYS.get(form.get(WAY, ""))
    if names is None:
        return None
    found = bound(SourceSpec, formdata=form, prefix=PREFIX, names=names).payload()
    return {name: value.strip() if isinstance(value, str) else value for name, value in found.items()}


def way_of(given: Mapping[str, Any] | None) -> str:
    """Which way a source takes; "" for none."""
    if not given:
        return ""
    return next((way for way in ("file", "query", "table") if given.get(way)), "table")
