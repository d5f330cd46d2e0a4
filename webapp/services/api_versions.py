"""Versions of the API. A key keeps the one that was newest when it was made."""

from __future__ import annotations

from typing import Final

API_VERSIONS: Final = ("2026-11-21",)  # oldest first
NEWEST_VERSION: Final = API_VERSIONS[-1]
