"""The engine: templates in, rows out. It has no side effects: no files, no clock, and no access to web or database
code."""

from __future__ import annotations

from typing import Final

ENGINE: Final = 3
"""Rises only when a golden hash changes; part of every pins record."""
ENGINES: Final = (1, 2, 3)
"""The engines whose rows this release generates. A vocabulary names the engine whose rules its rows follow
(`Vocabulary.engine`), so a version that pins an earlier vocabulary gives the same rows as before."""
