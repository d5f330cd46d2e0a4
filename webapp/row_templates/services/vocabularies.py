"""Store vocabularies: each one that a template version pins is kept in the storage, across releases.

The present vocabulary is built from the installed libraries, opened from the local disk, and put into the
storage before the first version that pins it is saved. Others are downloaded from the storage once and then
opened from the local disk. A missing one is reported by name and never replaced by another.
"""

from __future__ import annotations

import logging
import os
import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from flask import current_app, has_app_context
from sqlalchemy import func, select

from webapp import limits, storage
from webapp.engine.data import archive, vocab_lock, vocabulary
from webapp.engine.data.vocab_lock import VocabularyError
from webapp.engine.data.vocabulary import Vocabulary
from webapp.errors import ApiError
from webapp.extensions import reading
from webapp.row_templates.models import TemplateVersion

log = logging.getLogger(__name__)

FOLDER: Final = "vocab"
"""Folder of the vocabularies in file storage and in the data folder."""
_KEPT: Final = "rowsmith.vocabularies"
_ID: Final = re.compile(rf"[0-9a-f]{{{2 * archive.ID_BYTES}}}")


def is_id(text: str) -> bool:
    """Return whether a text can be a vocabulary's id."""
    return _ID.fullmatch(text) is not None


def key_of(wanted: str) -> str:
    """Return the storage key of a vocabulary."""
    return f"{FOLDER}/{wanted}.arrow"


def local(wanted: str) -> Path:
    """Return the path of a vocabulary on this machine's disk. The file may be missing."""
    return home() / f"{wanted}.arrow"


def home() -> Path:
    """Return the folder of vocabularies on this machine's disk: in the clone, or in the data folder if the clone is
    read-only."""
    return _home(Path(current_app.config["SETTINGS"].data_dir) if has_app_context() else None)


@cache
def _home(data_dir: Path | None) -> Path:
    own = vocab_lock.REPOSITORY / "var" / "vocab"
    there = next(folder for folder in (own, *own.parents) if folder.exists())
    if data_dir is None or os.access(there, os.W_OK) or (own / f"{vocab_lock.locked().id}.arrow").exists():
        return own
    return data_dir / FOLDER


def opened(wanted: str | None = None) -> Vocabulary:
    """The present vocabulary, or the one a template version was saved under.

    Error: unavailable, naming the one that is missing and the command that brings it back.
    """
    try:
        present = vocabulary.default(home())
        if wanted in (None, present.id):
            return present
        if not local(wanted).exists() and not (has_app_context() and fetch(wanted)):
            command = f"./rowsmith vocab install {wanted}"
            text = (
                f"Vocabulary {wanted} is pinned here and is not in the storage. "
                f"Its operator brings it back: {command}"
            )
            raise ApiError("unavailable", text, {"vocabulary": wanted, "install": command})
        return vocabulary.open_in(home(), wanted)
    except (VocabularyError, OSError) as error:
        raise ApiError("unavailable", str(error), {"vocabulary": wanted}) from error


def fetch(wanted: str) -> bool:
    """Copy a vocabulary from the storage to the local disk. Returns False if it is missing there; raises
    `VocabularyError` if its content does not match its name."""
    home().mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=home(), prefix=f".{wanted}.")
    try:
        with os.fdopen(handle, "wb") as sink:
            for piece in storage.of(current_app).get(key_of(wanted)):
                sink.write(piece)
        checked(Path(temporary), wanted)
        os.replace(temporary, local(wanted))
    except storage.MissingError:
        return False
    finally:
        Path(temporary).unlink(missing_ok=True)
    return True


def checked(path: Path, wanted: str) -> Path:
    """`path`, if its contents are the vocabulary `wanted`. Error: VocabularyError."""
    try:
        found = archive.digest(archive.read(path)[0])
    except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
        raise VocabularyError(f"The file of vocabulary {wanted} in storage is invalid: {error}") from error
    if found != wanted:
        raise VocabularyError(f"The file of vocabulary {wanted} in storage contains vocabulary {found}.")
    return path


def keep(wanted: str) -> None:
    """Copy a vocabulary from the local disk to storage unless it is there; checks the storage once per process.

    Error: unavailable if the storage does not accept it.
    """
    known = current_app.extensions.setdefault(_KEPT, set())
    if wanted in known:
        return
    try:
        if wanted not in stored():
            put(local(wanted), wanted)
    except OSError as error:
        log.warning("vocabulary %s could not be put into the storage: %s", wanted, error)
        raise ApiError("unavailable", "The storage does not answer.", {"vocabulary": wanted}) from error
    known.add(wanted)


def assume_kept(wanted: str) -> None:
    """Record that a vocabulary is in storage, which saves the check in `keep`."""
    current_app.extensions.setdefault(_KEPT, set()).add(wanted)


def put(path: Path, wanted: str) -> None:
    """Store a file as the vocabulary `wanted`. Error: VocabularyError if its content does not match."""
    storage.of(current_app).put(key_of(wanted), _pieces(checked(path, wanted)))


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(limits.STORAGE_CHUNK_BYTES):
            yield piece


def sound(wanted: str) -> bool:
    """Return whether the storage has a complete and valid copy of a vocabulary."""
    try:
        return fetch(wanted)
    except VocabularyError:
        return False


def stored() -> dict[str, int]:
    """The vocabularies in the storage: bytes by id."""
    found = {}
    for item in storage.of(current_app).listing(FOLDER):
        name = item.key.removeprefix(f"{FOLDER}/").removesuffix(".arrow")
        if is_id(name):
            found[name] = item.size
    return found


def pinned() -> dict[str, int]:
    """Return the number of template versions that pin each vocabulary, by id, including deleted templates that can be
    restored."""
    which = TemplateVersion.pins["vocabulary"].as_string()
    with reading() as session:
        rows = session.execute(select(which, func.count()).group_by(which)).all()
    return {wanted: count for wanted, count in rows if wanted}


def secure() -> list[str]:
    """Copy every pinned vocabulary that is only on the local disk to storage, and return those that are missing in
    both. Builds the current one if necessary. Errors: unavailable."""
    missing = []
    present = vocab_lock.locked().id
    try:
        there = stored()
    except OSError as error:
        raise ApiError("unavailable", f"The storage does not answer: {error}") from error
    for wanted in sorted(set(pinned()) - set(there)):
        if wanted == present:
            opened()
        if local(wanted).exists():
            keep(wanted)
        else:
            missing.append(wanted)
    return missing


def prune() -> list[str]:
    """Removes from the storage and the local disk what no version pins, the present one apart; answers their ids."""
    needed = {*pinned(), vocab_lock.locked().id}
    here = {path.stem for path in home().glob("*.arrow") if is_id(path.stem)}
    gone = sorted(({*stored()} | here) - needed)
    for wanted in gone:
        storage.of(current_app).delete(key_of(wanted))
        local(wanted).unlink(missing_ok=True)
    return gone
