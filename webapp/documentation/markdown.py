"""Small pieces of Markdown for pages that are written from data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_MARKS: Final = re.compile(r"([\\*\[<|])")
_CODE: Final = re.compile(r"(`[^`]*`)")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are Markdown already."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def text(plain: str) -> str:
    """Escape a sentence for Markdown, except for code in backticks."""
    parts = _CODE.split(" ".join(plain.split()))
    return "".join(
        _cell(part) if part.startswith("`") and len(part) > 1 else _MARKS.sub(r"\\\1", part) for part in parts
    )


def code(plain: str) -> str:
    """Return a text as inline code for a line or a cell; "" for an empty text, and for line breaks only."""
    one_line = " ".join(plain.splitlines()) if "\n" in plain or "\r" in plain else plain
    if not one_line:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", one_line)), default=0)
    marks = "`" * (longest + 1)
    padding = " " if one_line[0] in "` " or one_line[-1] in "` " else ""
    return _cell(f"{marks}{padding}{one_line}{padding}{marks}")


def _cell(markdown: str) -> str:
    return markdown.replace("|", "\\|")
