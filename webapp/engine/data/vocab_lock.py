"""The lock file `vocab.lock`: which vocabulary this engine uses, which earlier ones exist, and how each was built."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

LOCK_FILE = Path(__file__).with_name("vocab.lock")
REPOSITORY_ROOT = Path(__file__).resolve().parents[3]


class VocabularyError(Exception):
    """A vocabulary that is missing, or is not the one that was asked for; the message names both."""


@dataclass(frozen=True, slots=True)
class LockEntry:
    """What ``vocab.lock`` says of one vocabulary: what it takes to build it again."""

    id: str
    versions: dict[str, str]
    """The libraries its words come from."""
    extractor: str = "extract"
    """The package beside this file that took the words out of them."""
    source: str = ""
    """Digest of that package's files (`build.source_digest`)."""


def read_entries() -> list[LockEntry]:
    """What the committed lock says: the present vocabulary, then the earlier ones, newest first. Raises
    `VocabularyError` where there is no lock."""
    try:
        raw = json.loads(LOCK_FILE.read_text("utf-8"))
    except FileNotFoundError:
        hint = "`python -m webapp.engine.data.build --relock` writes it"
        raise VocabularyError(f"{LOCK_FILE.name} is missing; {hint}.") from None
    current = {name: value for name, value in raw.items() if name != "earlier"}
    return [LockEntry(**item) for item in (current, *raw.get("earlier", ()))]


def current_entry() -> LockEntry:
    """The vocabulary of this engine. Raises `VocabularyError` where there is no lock."""
    return read_entries()[0]


def find_entry(vocabulary_id: str) -> LockEntry:
    """What the lock says of the vocabulary ``vocabulary_id``. Raises `VocabularyError` where it names none such."""
    matches = [lock for lock in read_entries() if lock.id == vocabulary_id]
    if not matches:
        raise VocabularyError(f"{LOCK_FILE.name} names no vocabulary {vocabulary_id}.")
    return matches[0]
