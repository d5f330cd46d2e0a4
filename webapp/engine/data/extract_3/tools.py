"""Reading this folder's own lists; what cleans words is that of the first extractor."""

from __future__ import annotations

from importlib.resources import files

from webapp.engine.data.extract.tools import clean, fold, listed, provider, sampled, unique, word_list

__all__ = ["clean", "fold", "lines", "listed", "provider", "sampled", "unique", "word_list"]


def lines(name: str) -> list[str]:
    """The lines of a file of this folder, without comments and empty ones."""
    text = files(__package__).joinpath(f"{name}.txt").read_text("utf-8")
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("# ")]
