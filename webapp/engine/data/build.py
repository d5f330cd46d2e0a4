"""Builds the vocabulary from the installed libraries and holds it to ``vocab.lock``.

``python -m webapp.engine.data.build [folder] [--relock]``: builds into ``folder`` (default ``var/vocab``); a build
whose id differs from the lock is refused by name, or with ``--relock`` becomes the lock.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa

from webapp.engine.data import archive
from webapp.engine.data.vocabulary import LOCK, REPOSITORY, VocabularyError, locked


def contents() -> dict[str, pa.Array]:
    """Every list and table of ``extract.WORDS`` and ``extract.TABLES``, cleaned, as the columns of the file."""
    from webapp.engine.data import extract
    from webapp.engine.data.extract.tools import word_list

    made: dict[str, pa.Array] = {}
    for name, source in extract.WORDS.items():
        for locale, words in source().items():
            made[archive.word_column(name, locale)] = word_list(words, f"{name} of {locale or 'no locale'}")
    for name, source in extract.TABLES.items():
        made[archive.table_column(name)] = _struct(name, source())
    return made


def _struct(name: str, table: pa.Table) -> pa.StructArray:
    columns = [column.combine_chunks() for column in table.columns]
    if any(column.null_count for column in columns):
        raise VocabularyError(f"Table {name} has blanks.")
    return pa.StructArray.from_arrays(
        columns, fields=[pa.field(f.name, f.type, nullable=False) for f in table.schema]
    )


def versions() -> dict[str, str]:
    """The libraries that words come from, with their installed versions."""
    from webapp.engine.data import extract

    return {name: version(name) for name in sorted(extract.LIBRARIES)}


def build(folder: Path, relock: bool = False) -> Path:
    """Builds into ``folder`` and answers the file's path. Raises `VocabularyError` where the build is not what the
    lock says, naming the libraries that moved, unless ``relock``."""
    from webapp.engine.data import extract

    made = contents()
    found, have = archive.digest(made), versions()
    if relock:
        _write_lock(found, have)
    lock = locked()
    if found != lock.id:
        was = {name: lock.versions.get(name, "none") for name in have}
        moved = ", ".join(f"{name} {was[name]} -> {have[name]}" for name in have if have[name] != was[name])
        reason = moved or "the same library versions, so the extractor has changed"
        raise VocabularyError(f"This build is vocabulary {found}; {LOCK.name} asks for {lock.id} ({reason}).")
    path = Path(folder) / f"{found}.arrow"
    metadata = {
        "id": found,
        "versions": json.dumps(have, sort_keys=True),
        "locales": " ".join(extract.LOCALES),
        "aliases": json.dumps(extract.ALIASES, sort_keys=True),
    }
    archive.write(path, made, metadata)
    return path


def _write_lock(found: str, have: dict[str, str]) -> None:
    temporary = LOCK.with_suffix(f".{os.getpid()}")
    temporary.write_text(
        json.dumps({"id": found, "versions": have}, indent=2, sort_keys=True) + "\n", "utf-8"
    )
    temporary.replace(LOCK)


def main(arguments: list[str]) -> int:
    """The command line. Answers the exit code."""
    parser = argparse.ArgumentParser(prog="python -m webapp.engine.data.build", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=REPOSITORY / "var" / "vocab")
    parser.add_argument("--relock", action="store_true", help="write what is built into vocab.lock")
    given = parser.parse_args(arguments)
    try:
        print(build(given.folder, given.relock))
    except VocabularyError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
