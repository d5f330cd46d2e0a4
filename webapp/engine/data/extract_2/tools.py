"""Reading this folder's own lists; what cleans words is that of the extractor before."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from webapp.engine.data.extract.tools import fold, listed, provider, word_list

__all__ = ["fold", "lines", "listed", "provider", "section", "word_list"]


def lines(name: str) -> list[str]:
    """The lines of a file of this folder, without comments and empty ones."""
    text = files(__package__).joinpath(f"{name}.txt").read_text("utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("# ")]


def section(name: str) -> list[str]:
    """The words of one list of ``words.txt``. Raises `KeyError` where there is none of that name."""
    return _sections()[name].split("|")


@cache
def _sections() -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in lines("words"):
        if line.startswith("["):
            name = line.strip("[]")
            found[name] = ""
        else:
            found[name] += line
    return found
