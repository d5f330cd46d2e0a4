"""Builds a vocabulary from the installed libraries and holds it to ``vocab.lock``.

``python -m webapp.engine.data.build [folder] [--id ID] [--relock [--unreleased]]``: builds the present vocabulary, or
another one that the lock names, into ``folder`` (default ``var/vocab``). A build whose id differs from the lock is
refused by name; with ``--relock`` it becomes the present one, and what was present goes among the earlier ones.

An extractor is frozen as soon as a vocabulary it built has been released, since versions of templates pin that: a
change goes into a copy of the package under another name, which `EXTRACTOR` then names. Library versions may move
without that. Nothing here needs more than pyarrow and the libraries, so that an earlier vocabulary can be built in an
environment that holds just those.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import asdict
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Final

import pyarrow as pa

from webapp.engine.data import archive, vocab_lock
from webapp.engine.data.vocab_lock import (
    REPOSITORY_ROOT,
    LockEntry,
    VocabularyError,
    current_entry,
    find_entry,
    read_entries,
)

EXTRACTOR: Final = "extract_4"
"""The package beside this file that builds new vocabularies."""


def load_extractor(name: str = EXTRACTOR) -> ModuleType:
    """An extractor's package. Raises `VocabularyError` where there is none of that name."""
    try:
        return import_module(f"webapp.engine.data.{name}")
    except ModuleNotFoundError as error:
        raise VocabularyError(f"The extractor {name} cannot be used: {error}.") from None


def source_digest(name: str = EXTRACTOR) -> str:
    """Digest of the names and contents of an extractor's files: 32 hexadecimal digits."""
    folder = Path(__file__).with_name(name)
    hashed = blake2b(digest_size=archive.ID_BYTES)
    for path in sorted(folder.iterdir(), key=lambda path: path.name):
        if path.suffix in (".py", ".txt"):
            for part in (path.name.encode(), path.read_bytes()):
                hashed.update(len(part).to_bytes(4, "little") + part)
    return hashed.hexdigest()


def extract_columns(package: str = EXTRACTOR) -> dict[str, pa.Array]:
    """Every list and table of an extractor's ``WORDS`` and ``TABLES``, cleaned, as the columns of the file."""
    extract = load_extractor(package)
    word_list = import_module(f"{extract.__name__}.tools").word_list

    result: dict[str, pa.Array] = {}
    for name, source in extract.WORDS.items():
        for locale, words in source().items():
            result[archive.word_column_name(name, locale)] = word_list(
                words, f"{name} of {locale or 'no locale'}"
            )
    for name, source in extract.TABLES.items():
        table = source()
        columns = [column.combine_chunks() for column in table.columns]
        if any(column.null_count for column in columns):
            raise VocabularyError(f"Table {name} has blanks.")
        result[archive.table_column_name(name)] = pa.StructArray.from_arrays(
            columns, fields=[pa.field(f.name, f.type, nullable=False) for f in table.schema]
        )
    return result


def installed_versions(package: str = EXTRACTOR) -> dict[str, str]:
    """The libraries that words come from, with their installed versions."""
    found = {}
    for library in sorted(load_extractor(package).LIBRARIES):
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            raise VocabularyError(f"The library {library} is not installed; words come from it.") from None
    return found


def build(
    folder: Path, relock: bool = False, *, vocabulary_id: str | None = None, unreleased: bool = False
) -> Path:
    """Builds the vocabulary ``vocabulary_id`` (default: the present one) into ``folder`` and answers the file's path.

    With ``relock`` the lock says what was built; what was present is kept among the earlier ones, unless nobody can
    have pinned it (``unreleased``). Raises `VocabularyError` where the build is not what the lock says, naming the
    libraries that moved; where ``vocabulary_id`` is not in it; or where an earlier one could no longer be built.
    """
    name = (
        EXTRACTOR if relock else (find_entry(vocabulary_id) if vocabulary_id else current_entry()).extractor
    )
    installed, columns = installed_versions(name), extract_columns(name)
    digest = archive.digest(columns)
    if relock:
        _write_lock(LockEntry(digest, installed, name, source_digest(name)), unreleased)
    lock = find_entry(vocabulary_id) if vocabulary_id else current_entry()
    if digest != lock.id:
        locked_versions = {name: lock.versions.get(name, "none") for name in installed}
        changes = ", ".join(
            f"{name} {locked_versions[name]} -> {installed[name]}"
            for name in installed
            if installed[name] != locked_versions[name]
        )
        reason = changes or "the same library versions, so the extractor has changed"
        raise VocabularyError(
            f"This build is vocabulary {digest}; {vocab_lock.LOCK_FILE.name} asks for {lock.id} ({reason})."
        )
    path = Path(folder) / f"{digest}.arrow"
    extract = load_extractor(name)
    metadata = {
        "id": digest,
        "versions": json.dumps(installed, sort_keys=True),
        "locales": " ".join(extract.LOCALES),
        "aliases": json.dumps(extract.ALIASES, sort_keys=True),
    }
    archive.write(path, columns, metadata)
    return path


def _write_lock(present: LockEntry, unreleased: bool) -> None:
    previous = read_entries() if vocab_lock.LOCK_FILE.exists() else []
    earlier = [item for item in previous[1 if unreleased else 0 :] if item.id != present.id]
    for item in earlier:
        if item.extractor == present.extractor and item.source != present.source:
            raise VocabularyError(
                f"Vocabulary {item.id} was built by the extractor {item.extractor} as it was before: put the change "
                "into a copy of that package under another name (or, if the vocabulary was never released, add "
                "--unreleased)."
            )
    lock = {**asdict(present), "earlier": [asdict(item) for item in earlier]}
    temporary = vocab_lock.LOCK_FILE.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(lock, indent=2, sort_keys=True) + "\n", "utf-8")
    temporary.replace(vocab_lock.LOCK_FILE)


def main(arguments: list[str]) -> int:
    """The command line. Answers the exit code."""
    parser = argparse.ArgumentParser(prog="python -m webapp.engine.data.build", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=REPOSITORY_ROOT / "var" / "vocab")
    parser.add_argument("--id", help="build this one, which the lock names, instead of the present one")
    parser.add_argument("--relock", action="store_true", help="write what is built into vocab.lock")
    parser.add_argument("--unreleased", action="store_true", help="with --relock: forget what was present")
    options = parser.parse_args(arguments)
    try:
        print(build(options.folder, options.relock, vocabulary_id=options.id, unreleased=options.unreleased))
    except VocabularyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
