"""Bytes and rows of files together: on a full disk, after a kill, and when thirty days are over."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from tests.views.uploading import send
from webapp import clock, ids, limits, storage
from webapp.access import actors
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.files import services as files
from webapp.files.models import WorkspaceFile
from webapp.operations.purge import purge


@pytest.fixture
def acme(app, cast):
    with app.app_context():
        yield actors.system_actor(cast.acme, cast.main, cast.blue)
        db.session.remove()


@pytest.fixture
def put(acme):
    return lambda name, content=b"x": files.upload(acme, name, io.BytesIO(content))[0]


@pytest.fixture
def keys(app):
    return lambda: {item.key for item in storage.get_storage(app).listing("files")}


@pytest.fixture
def small_disk(app, tmp_path):
    """The storage of the application on a file system of 3 MB."""
    mount = shutil.which("mount")
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() != 0 or mount is None:
        pytest.skip("only root can mount a small file system")
    done = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=False)


def files_under(folder: Path) -> list[int]:
    return sorted(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_full_disk_stores_nothing_half_and_leaves_what_was_there(app, acme, small_disk, monkeypatch):
    store = storage.from_url(f"file://{small_disk}")
    monkeypatch.setattr(storage, "get_storage", lambda _app: store)
    old = os.urandom(1_000_000)
    files.upload(acme, "a", io.BytesIO(old))
    with pytest.raises(ApiError) as found:
        files.upload(acme, "a", io.BytesIO(os.urandom(4_000_000)))
    assert (found.value.code, found.value.details) == ("unavailable", {"reason": "disk_full"})
    assert "disk is full" in found.value.message
    assert files_under(small_disk) == [1_000_000]
    row = files.find(acme, "a")
    assert b"".join(files.open_file(acme, row)) == old


def test_a_full_disk_is_reported_during_the_upload(app, api, cast, small_disk, settings, monkeypatch):
    spool = small_disk / "spool"
    (Path(settings.data_dir) / "spool").symlink_to(spool)
    spool.mkdir()
    answer = send(api(cast.edith), "big", os.urandom(4_000_000))
    assert (answer.status_code, answer.json["error"]["code"]) == (503, "unavailable")
    assert answer.json["error"]["details"]["reason"] == "disk_full"
    assert files_under(small_disk) == []


def test_a_full_cache_disk_stops_the_sync_with_a_sentence(acme, put, cast, settings, small_disk, tmp_path):
    put("a", os.urandom(4_000_000))
    (Path(settings.data_dir) / "cache").symlink_to(small_disk)
    with pytest.raises(ApiError) as found:
        files.sync(cast.acme, cast.main, tmp_path / "run")
    assert found.value.details == {"reason": "disk_full"}
    assert [size for size in files_under(small_disk) if size] == []


def test_a_deletion_is_final_after_thirty_days_and_takes_the_bytes_along(acme, put, keys):
    stored, young, old = put("kept"), put("young"), put("old")
    now = clock.now()
    for row, days in ((young, 29), (old, 31)):
        found = files.find(acme, row.id, "write", lock=True)
        files.delete(acme, found)
        found.deleted_at = now - timedelta(days=days)
        db.session.commit()
    assert purge(now) == 1
    assert keys() == {stored.storage_key, young.storage_key}
    with pytest.raises(ApiError, match="no such file"):
        files.restore(acme, old.id)
    assert files.restore(acme, young.id).deleted_at is None


def test_a_file_that_was_deleted_too_long_ago_is_not_restored_although_it_is_there(acme, put):
    row = files.delete(acme, files.find(acme, put("a").id, "write", lock=True))
    row.deleted_at = clock.now() - timedelta(days=limits.RESTORE_DAYS, seconds=1)
    db.session.commit()
    with pytest.raises(ApiError) as found:
        files.restore(acme, row.id)
    assert found.value.code == "not_found"


def test_bytes_that_no_row_names_are_swept_when_no_upload_can_still_name_them(app, acme, put, keys):
    named = put("a").storage_key
    orphan = files.put(acme, 29, [b"killed between put and commit"]).key
    foreign = "files/readme"
    storage.get_storage(app).put(foreign, [b"not ours"])
    now = clock.now()
    purge(now + timedelta(seconds=limits.FILE_ORPHAN_SECONDS - 60))
    assert keys() == {named, orphan, foreign}
    purge(now + timedelta(seconds=limits.FILE_ORPHAN_SECONDS + 60))
    assert keys() == {named, foreign}


def test_the_age_of_a_key_is_reported_separately():
    now = clock.now()
    key = f"files/ws_1/{ids.new('fil')}"
    assert 0 <= files._age_seconds(key, now + timedelta(seconds=5)) <= 6
    assert files._age_seconds("files/ws_1/other", now) == 0


def test_an_upload_that_fails_before_its_commit_leaves_no_bytes(acme, put, keys, monkeypatch):
    first = put("a", b"old")

    def broken(*_a, **_k):
        raise RuntimeError("no audit")

    monkeypatch.setattr("webapp.audit.services.audit_log.record", broken)
    with pytest.raises(RuntimeError):
        put("a", b"new")
    assert keys() == {first.storage_key}
    assert db.session.scalar(select(func.count()).select_from(WorkspaceFile)) == 1
