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
from webapp.extensions import read_session
from webapp.row_templates.models import TemplateVersion

log = logging.getLogger(__name__)

FOLDER: Final = "vocab"
"""Folder of the vocabularies in file storage and in the data folder."""
_STORED_IDS_KEY: Final = "rowsmith.vocabularies"
_ID: Final = re.compile(rf"[0-9a-f]{{{2 * archive.ID_BYTES}}}")


def is_id(text: str) -> bool:
    """Return whether a text can be a vocabulary's id."""
    return _ID.fullmatch(text) is not None


def key_of(vocabulary_id: str) -> str:
    """Return the storage key of a vocabulary."""
    return f"{FOLDER}/{vocabulary_id}.arrow"


def local_path(vocabulary_id: str) -> Path:
    """Return the path of a vocabulary on this machine's disk. The file may be missing."""
    return local_folder() / f"{vocabulary_id}.arrow"


def local_folder() -> Path:
    """Return the folder of vocabularies on this machine's disk: in the clone, or in the data folder if the clone is
    read-only."""
    return _local_folder(Path(current_app.config["SETTINGS"].data_dir) if has_app_context() else None)


@cache
def _local_folder(data_dir: Path | None) -> Path:
    local_home = vocab_lock.REPOSITORY_ROOT / "var" / "vocab"
    existing = next(folder for folder in (local_home, *local_home.parents) if folder.exists())
    if (
        data_dir is None
        or os.access(existing, os.W_OK)
        or (local_home / f"{vocab_lock.current_entry().id}.arrow").exists()
    ):
        return local_home
    return data_dir / FOLDER


def open_vocabulary(vocabulary_id: str | None = None) -> Vocabulary:
    """Return the current vocabulary, or the one that a template version was saved with.

    Error: unavailable, with the id of the missing one and the command that installs it.
    """
    try:
        present = vocabulary.open_default(local_folder())
        if vocabulary_id in (None, present.id):
            return present
        if not local_path(vocabulary_id).exists() and not (has_app_context() and fetch(vocabulary_id)):
            command = f"./rowsmith vocab install {vocabulary_id}"
            text = (
                f"Vocabulary {vocabulary_id} is required by this version but is not in the storage. "
                f"The operator can install it: {command}"
            )
            raise ApiError("unavailable", text, {"vocabulary": vocabulary_id, "install": command})
        return vocabulary.open_in(local_folder(), vocabulary_id)
    except (VocabularyError, OSError) as error:
        raise ApiError("unavailable", str(error), {"vocabulary": vocabulary_id}) from error


def fetch(vocabulary_id: str) -> bool:
    """Copy a vocabulary from the storage to the local disk. Returns False if it is missing there; raises
    `VocabularyError` if its content does not match its name."""
    local_folder().mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=local_folder(), prefix=f".{vocabulary_id}.")
    try:
        with os.fdopen(handle, "wb") as sink:
            for piece in storage.get_storage(current_app).get(key_of(vocabulary_id)):
                sink.write(piece)
        verify_file(Path(temporary), vocabulary_id)
        os.replace(temporary, local_path(vocabulary_id))
    except storage.MissingError:
        return False
    finally:
        Path(temporary).unlink(missing_ok=True)
    return True


def verify_file(path: Path, vocabulary_id: str) -> Path:
    """Return `path` if its content is the vocabulary `vocabulary_id`. Error: VocabularyError."""
    try:
        found = archive.digest(archive.read(path)[0])
    except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
        raise VocabularyError(
            f"The file of vocabulary {vocabulary_id} in storage is invalid: {error}"
        ) from error
    if found != vocabulary_id:
        raise VocabularyError(
            f"The file of vocabulary {vocabulary_id} in storage contains vocabulary {found}."
        )
    return path


def ensure_stored(vocabulary_id: str) -> None:
    """Copy a vocabulary from the local disk to storage unless it is there; checks the storage once per process.

    Error: unavailable if the storage does not accept it.
    """
    stored_ids = current_app.extensions.setdefault(_STORED_IDS_KEY, set())
    if vocabulary_id in stored_ids:
        return
    try:
        if vocabulary_id not in stored_sizes():
            store(local_path(vocabulary_id), vocabulary_id)
    except OSError as error:
        log.warning("could not store vocabulary %s: %s", vocabulary_id, error)
        raise ApiError(
            "unavailable", "The storage is not responding.", {"vocabulary": vocabulary_id}
        ) from error
    stored_ids.add(vocabulary_id)


def record_stored(vocabulary_id: str) -> None:
    """Record that a vocabulary is in storage, which saves the check in `ensure_stored`."""
    current_app.extensions.setdefault(_STORED_IDS_KEY, set()).add(vocabulary_id)


def store(path: Path, vocabulary_id: str) -> None:
    """Store a file as the vocabulary `vocabulary_id`. Error: VocabularyError if its content does not match."""
    storage.get_storage(current_app).put(key_of(vocabulary_id), _pieces(verify_file(path, vocabulary_id)))


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(limits.STORAGE_CHUNK_BYTES):
            yield piece


def is_intact(vocabulary_id: str) -> bool:
    """Return whether the storage has a complete and valid copy of a vocabulary."""
    try:
        return fetch(vocabulary_id)
    except VocabularyError:
        return False


def stored_sizes() -> dict[str, int]:
    """Return the vocabularies in the storage: bytes by id."""
    found = {}
    for item in storage.get_storage(current_app).listing(FOLDER):
        name = item.key.removeprefix(f"{FOLDER}/").removesuffix(".arrow")
        if is_id(name):
            found[name] = item.size
    return found


def count_pins() -> dict[str, int]:
    """Return the number of template versions that pin each vocabulary, by id, including deleted templates that can be
    restored."""
    pinned_id = TemplateVersion.pins["vocabulary"].as_string()
    with read_session() as session:
        rows = session.execute(select(pinned_id, func.count()).group_by(pinned_id)).all()
    return {vocabulary_id: count for vocabulary_id, count in rows if vocabulary_id}


def store_pinned() -> list[str]:
    """Copy every pinned vocabulary that is only on the local disk to storage, and return those that are missing in
    both. Builds the current one if necessary. Errors: unavailable."""
    missing = []
    present = vocab_lock.current_entry().id
    try:
        stored_ids = stored_sizes()
    except OSError as error:
        raise ApiError("unavailable", f"The storage is not responding: {error}") from error
    for vocabulary_id in sorted(set(count_pins()) - set(stored_ids)):
        if vocabulary_id == present:
            open_vocabulary()
        if local_path(vocabulary_id).exists():
            ensure_stored(vocabulary_id)
        else:
            missing.append(vocabulary_id)
    return missing


def prune() -> list[str]:
    """Delete the vocabularies that no version pins, except the current one, from the storage and the local disk.
    Return their ids."""
    needed = {*count_pins(), vocab_lock.current_entry().id}
    local_ids = {path.stem for path in local_folder().glob("*.arrow") if is_id(path.stem)}
    unused = sorted(({*stored_sizes()} | local_ids) - needed)
    for vocabulary_id in unused:
        storage.get_storage(current_app).delete(key_of(vocabulary_id))
        local_path(vocabulary_id).unlink(missing_ok=True)
    return unused
