"""Reading this folder's own lists; what cleans words is that of the extractors before."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from webapp.engine.data.extract_3.tools import unique, word_list

__all__ = ["lines", "listed_by", "unique", "word_list"]


@cache
def lines(name: str) -> tuple[str, ...]:
    """The lines of a file of this folder, without comments and empty ones."""
    text = files(__package__).joinpath(f"{name}.txt").read_text("utf-8")
    return tuple(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))


@cache
def listed_by(name: str) -> dict[str, dict[str, list[str]]]:
    """{list: {locale or language: words}} of the lines ``locale list: word|word`` of a file of this folder."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in lines(name):
        head, _, words = line.partition(": ")
        of, _, what = head.partition(" ")
        if of in found.setdefault(what, {}):
            raise ValueError(f"{name}.txt has {what} of {of} twice")
        found[what][of] = words.split("|")
    return found
