"""What is no whole backup is never taken for one, and nothing is written over by mistake."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import orjson
import pytest

from webapp.backup.archive import (
    FORMAT,
    MANIFEST,
    BackupError,
    BackupReader,
    BackupWriter,
    Manifest,
    TablePart,
    as_backup_errors,
)

ROWS = b'["a", 1]\n["b", 2]\n'


def manifest(writer: BackupWriter, **more: object) -> Manifest:
    result = {
        "made_at": "2026-11-21T00:00:00Z", "revision": "0001", "database": "sqlite", "files": 0, "file_bytes": 0,
        "targets": 0, "vocabularies": [], "lacking": [], "lacking_vocabularies": [], "keys": "none",
        "secret_key_mark": "", "vault_mark": "", "parts": writer.parts,
        "tables": {"t": TablePart(rows=2, columns={"id": "text", "n": "integer"}, key=["id"], part="tables/t.ndjson")},
    }  # fmt: skip
    return Manifest(**{**result, **more})


def write(path: Path, **more: object) -> None:
    with BackupWriter(path) as writer:
        with writer.part("tables/t.ndjson") as part:
            part.write(ROWS)
        writer.finish(manifest(writer, **more))


def rewritten(path: Path, name: str, content: bytes) -> None:
    """The same file with another part."""
    with zipfile.ZipFile(path) as old:
        parts = {item: old.read(item) for item in old.namelist()}
    with zipfile.ZipFile(path, "w") as new:
        for key, raw in {**parts, name: content}.items():
            new.writestr(key, raw)


def test_a_whole_backup_is_read_as_it_was_written(file):
    write(file)
    with BackupReader(file) as reader:
        reader.check()
        assert list(reader.read_lines("tables/t.ndjson")) == ROWS.splitlines()
    assert oct(file.stat().st_mode & 0o777) == "0o600"


def test_a_backup_that_fails_leaves_nothing(file):
    with (
        pytest.raises(BackupError, match=r"the disk of .* is full"),
        as_backup_errors("It was not made", file.parent),
        BackupWriter(file),
    ):
        raise OSError(28, "No space left on device")
    assert list(file.parent.iterdir()) == []


@pytest.mark.parametrize("stored", [0.3, 0.9, 0.999])
def test_a_file_that_was_cut_is_no_backup(file, stored):
    write(file)
    raw = file.read_bytes()
    file.write_bytes(raw[: int(len(raw) * stored)])
    with pytest.raises(BackupError, match="not a backup, or is incomplete"):
        BackupReader(file)


def test_a_part_that_is_not_as_it_was_is_named(file):
    write(file)
    rewritten(file, "tables/t.ndjson", b'["a", 1]\n["b", 3]\n')
    with (
        BackupReader(file) as reader,
        pytest.raises(BackupError, match=r"the checksum of tables/t.ndjson does not match"),
    ):
        reader.check()


def test_a_part_that_is_missing_or_new_is_named(file):
    write(file)
    rewritten(file, "files/more", b"")
    with BackupReader(file) as reader, pytest.raises(BackupError, match=r"files/more is not in the manifest"):
        reader.check()


def test_a_bit_that_flipped_on_the_disk_is_found(file):
    write(file)
    raw = bytearray(file.read_bytes())
    raw[72] ^= 1
    file.write_bytes(raw)
    with BackupReader(file) as reader, pytest.raises(BackupError, match="is damaged"):
        reader.check()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"{}", "is not a Rowsmith backup"),
        (b"no json", "is incomplete"),
        (orjson.dumps({"format": FORMAT, "format_version": 2}), "newer release"),
        (orjson.dumps({"format": FORMAT, "format_version": 1}), "cannot be read"),
    ],
)
def test_another_kind_of_file_is_rejected_with_a_message(file, content, text):
    with zipfile.ZipFile(file, "w") as other:
        other.writestr(MANIFEST, content)
    with pytest.raises(BackupError, match=text):
        BackupReader(file)


def test_an_existing_file_is_only_overwritten_on_request(file):
    file.write_text("precious")
    with pytest.raises(BackupError, match="already exists"):
        BackupWriter(file)
    with BackupWriter(file, replace=True):
        pass  # it fails before it is finished
    assert file.read_text() == "precious"


def test_two_backups_to_the_same_file_do_not_mix(file):
    with BackupWriter(file), pytest.raises(BackupError, match="in progress"), BackupWriter(file):
        pass


KILLED = """
import os, signal, sys
from pathlib import Path
from webapp.backup.archive import BackupWriter
with BackupWriter(Path(sys.argv[1])) as writer, writer.part("tables/t.ndjson") as part:
    part.write(b"x" * 10_000_000)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_backup_that_is_killed_leaves_no_file_of_that_name_and_the_next_one_clears_up(file):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(file)], check=False, env={**os.environ, "PYTHONPATH": "."}
    )
    assert done.returncode == -signal.SIGKILL
    assert not file.exists()
    write(file)
    assert [path.name for path in file.parent.iterdir()] == [file.name]
