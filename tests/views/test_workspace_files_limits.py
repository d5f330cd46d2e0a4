"""How large and how many files may be: to the byte, at the same moment, and never in memory."""

from __future__ import annotations

import hashlib
import io
import os
import threading
import tracemalloc

import pytest
import sqlalchemy as sa

from tests.views.uploading import URL, address, problem, send
from webapp import limits, storage
from webapp.audit.models import AuditEntry
from webapp.extensions import db
from webapp.files.models import StorageHold, WorkspaceFile
from webapp.work import batch_delete


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


def test_fifty_megabytes_pass_and_one_byte_more_does_not(edith, app):
    most = limits.MAX_UPLOAD_BYTES
    content = os.urandom(1024) * (most // 1024)
    result = send(edith, "big", content)
    assert (result.status_code, result.json["size"]) == (201, most)
    assert result.json["sha256"] == hashlib.sha256(content).hexdigest()
    over = send(edith, "over", content + b"x")
    assert problem(over) == (413, "payload_too_large")
    assert "52,428,800 bytes" in over.json["error"]["message"]
    far = send(edith, "over", content + b"x" * 2 * limits.MB)
    assert problem(far) == (413, "payload_too_large")
    assert [item["name"] for item in edith.get(URL).json["items"]] == ["big"]


class Endless(io.RawIOBase):
    """A multipart body made while it is read, in chunks of no told length."""

    def __init__(self, size: int) -> None:
        self.left, self.head = (
            size,
            b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n',
        )
        self.tail = b"\r\n--x--\r\n"

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        if self.head:
            data, self.head = self.head, b""
        elif self.left > 0:
            data = b"z" * min(len(buffer), self.left)
            self.left -= len(data)
        else:
            data, self.tail = self.tail, b""
        buffer[: len(data)] = data
        return len(data)


def streamed(program, size: int, **how):
    return program.post(
        URL,
        environ_overrides={
            "wsgi.input": io.BufferedReader(Endless(size)), "wsgi.input_terminated": True,
            "CONTENT_TYPE": "multipart/form-data; boundary=x",
        }, **how,
    )  # fmt: skip


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "k"}])
def test_a_large_file_is_never_in_memory(edith, headers):
    streamed(edith, 10)
    tracemalloc.start()
    try:
        result = streamed(edith, 40 * limits.MB, headers=headers)
        assert result.status_code == 201, result.text
        read = sum(len(piece) for piece in edith.get(address("a"), buffered=False).iter_encoded())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert read == 40 * limits.MB
    assert peak < 30 * limits.MB


def test_a_body_of_unknown_length_ends_at_the_limit(edith, stored):
    answer = streamed(edith, limits.MAX_UPLOAD_BYTES + 1)
    assert problem(answer) == (413, "payload_too_large")
    assert stored() == []


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(limits, "MAX_WORKSPACE_FILES_BYTES", 100)
    monkeypatch.setattr(limits, "MAX_WORKSPACE_FILES", 3)


def test_the_quota_is_enforced_and_its_numbers_are_returned(edith, small, stored):
    send(edith, "a", b"x" * 60)
    over = send(edith, "b", b"x" * 41)
    assert problem(over) == (429, "quota_exceeded")
    assert over.json["error"]["details"] == {
        "limit_bytes": 100, "used_bytes": 60, "free_bytes": 40, "file_bytes": 41, "files": 1,
        "trash_bytes": 0, "uploading_bytes": 0, "compat_bytes": 0,
    }  # fmt: skip
    assert "100 bytes" in over.json["error"]["message"]
    assert send(edith, "b", b"x" * 40).status_code == 201
    assert send(edith, "a", b"y" * 60).status_code == 201, "what is replaced makes room"
    assert problem(send(edith, "a", b"y" * 61)) == (429, "quota_exceeded")
    assert edith.get(address("a")).data == b"y" * 60
    gone = edith.delete(address("a")).json["id"]
    result = send(edith, "c", b"x" * 60)
    assert result.json["purged"] == [{"id": gone, "name": "a", "size": 60}]
    assert problem(edith.post(f"{URL}/{gone}/restore")) == (404, "not_found")
    assert len(stored()) == 2


def test_deleting_and_uploading_again_does_not_fill_the_disk(app, edith, small, stored):
    """The trash counts towards the quota, and the oldest of it goes for good where space is needed."""
    gone = []
    for number in range(30):
        result = send(edith, f"f{number}", bytes([number]) * 40)
        assert result.status_code == 201
        gone.append(edith.delete(address(f"f{number}")).json["id"])
        assert sum(item.size for item in storage.get_storage(app).listing("files")) <= 100
    assert len(stored()) == 2
    assert [edith.post(f"{URL}/{item}/restore").status_code for item in gone[-3:]] == [404, 200, 200]
    assert problem(send(edith, "last", b"x" * 21)) == (429, "quota_exceeded")
    with app.app_context():
        purged = db.session.scalars(
            sa.select(AuditEntry).where(AuditEntry.action == "workspace_file.purge")
        ).all()
        assert [entry.details["name"] for entry in purged] == [f"f{number}" for number in range(28)]
        db.session.remove()


def test_many_empty_files_in_the_trash_are_bounded(app, edith, small):
    for number in range(12):
        send(edith, f"f{number}", b"")
        edith.delete(address(f"f{number}"))
    with app.app_context():
        assert db.session.scalar(sa.select(sa.func.count()).select_from(WorkspaceFile)) <= 2 * 3
        db.session.remove()


def test_twenty_uploads_at_the_same_time_never_exceed_the_quota_on_the_disk(
    app, api, cast, small, monkeypatch
):
    """Not even while the bytes are being stored: the size is reserved first."""
    monkeypatch.setattr(limits, "MAX_WORKSPACE_FILES", 100)
    real, most, ready = storage.Storage.put, [], threading.Barrier(20)

    def slow(self, key, chunks):
        size = real(self, key, chunks)
        most.append(sum(item.size for item in storage.get_storage(app).listing("files")))
        return size

    monkeypatch.setattr(storage.Storage, "put", slow)
    answers = []

    def call(number):
        mine = api(cast.edith)
        ready.wait()
        answer = send(mine, f"f{number}", b"x" * 30)
        if answer.status_code == 201 and number % 2:
            mine.delete(address(f"f{number}"))
        answers.append(answer.status_code)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(answers) <= {201, 429}
    assert answers.count(201) >= 3
    assert max(most) <= 100
    with app.app_context():
        assert db.session.scalar(sa.select(sa.func.count()).select_from(StorageHold)) == 0
        db.session.remove()


def test_an_upload_that_is_cut_short_leaves_no_reservation(app, edith, small, monkeypatch):
    monkeypatch.setattr(storage.Storage, "put", lambda *_: (_ for _ in ()).throw(OSError(5, "broken")))
    assert send(edith, "a", b"x" * 60).status_code == 503
    monkeypatch.undo()
    with app.app_context():
        assert db.session.scalar(sa.select(sa.func.count()).select_from(StorageHold)) == 0
        db.session.remove()


def test_a_backup_keeps_deleted_files_from_being_purged(app, edith, small, stored):
    send(edith, "a", b"x" * 60)
    edith.delete(address("a"))
    with app.app_context(), batch_delete.suspend_deletion():
        answer = send(edith, "b", b"x" * 60)
        assert problem(answer) == (429, "quota_exceeded")
        assert "backup" in answer.json["error"]["message"]
    assert send(edith, "b", b"x" * 60).status_code == 201


def test_the_number_of_files_is_bounded(edith, small):
    for name in "abc":
        assert send(edith, name, b"").status_code == 201
    assert problem(send(edith, "d", b"")) == (429, "quota_exceeded")
    assert send(edith, "a", b"1").status_code == 201


def test_two_concurrent_uploads_cannot_both_use_the_last_of_the_quota(app, api, cast, small, stored):
    ready = threading.Barrier(8)
    answers = []

    def call(number):
        mine = api(cast.edith)
        ready.wait()
        answers.append(send(mine, f"f{number % 3}", bytes([65 + number]) * 40))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files = api(cast.edith).get(URL).json["items"]
    # Two uploads of the same name at the same time reserve the space for both, so that no other name may fit.
    assert 1 <= len(files) <= 2
    assert {answer.status_code for answer in answers} == {201, 429}
    assert len(stored()) == len(files), "bytes of refused uploads are gone"
    for file in files:
        assert len(set(api(cast.edith).get(address(file["name"])).data)) == 1


def test_twenty_uploads_of_one_name_leave_one_file_whole(api, cast, stored):
    answers = []

    def call(number):
        answers.append(send(api(cast.edith), "one", bytes([65 + number]) * 5_000).status_code)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [201] * 20
    found = api(cast.edith).get(address("one")).data
    assert (len(found), len(set(found)), len(stored())) == (5_000, 1, 1)
