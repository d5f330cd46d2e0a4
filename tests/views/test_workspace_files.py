"""Workspace files over the API: whole or not at all, by name or id, by range, with tags and keys."""

from __future__ import annotations

import hashlib
import io
import os

import pytest
import sqlalchemy as sa

from tests.conftest import close_app
from tests.views.uploading import URL, address, problem, send
from webapp import create_app, limits
from webapp.audit.models import AuditEntry
from webapp.extensions import db
from webapp.files import services as files
from webapp.files.models import WorkspaceFile


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


def test_uploaded_files_are_listed_and_read(edith):
    outcome = send(edith, "inputs/customers.csv")
    assert outcome.status_code == 201, outcome.text
    result = outcome.json
    assert result.pop("purged") == []
    assert {key: result[key] for key in ("name", "size", "content_type", "run_id", "deleted_at")} == {
        "name": "inputs/customers.csv", "size": 8, "content_type": "text/csv", "run_id": None, "deleted_at": None,
    }  # fmt: skip
    assert result["sha256"] == hashlib.sha256(b"a,b\n1,2\n").hexdigest()
    assert outcome.headers["ETag"] == f'"{result["sha256"]}"'
    assert outcome.headers["Location"] == "/workspace/files/inputs/customers.csv"
    assert edith.get(URL).json == {"items": [result], "next_cursor": None, "total": 1}
    for path in (address("inputs/customers.csv"), f"{URL}/inputs%2Fcustomers.csv", f"{URL}/{result['id']}"):
        found = edith.get(path)
        assert (found.status_code, found.data) == (200, b"a,b\n1,2\n")
        assert found.headers["ETag"] == outcome.headers["ETag"]
    assert edith.get(result["download_url"]).data == b"a,b\n1,2\n"


def test_a_file_without_a_name_has_its_own(edith):
    assert send(edith, None, own="list.csv").json["name"] == "list.csv"
    assert send(edith, None, own="/home/me/list 2.csv").json["name"] == "list 2.csv"
    assert send(edith, None, own="a.csv", more={"folder": "outputs/"}).json["name"] == "outputs/a.csv"
    assert send(edith, "b.csv", more={"folder": "x/y"}).json["name"] == "x/y/b.csv"


def test_an_empty_file_is_a_file(edith):
    assert send(edith, "empty", b"").json["size"] == 0
    found = edith.get(address("empty"))
    assert (found.status_code, found.data, found.headers["Content-Length"]) == (200, b"", "0")


def test_uploading_again_replaces_the_content_and_keeps_the_id(edith, stored):
    first = send(edith, "a", b"old").json
    again = send(edith, "a", b"newer")
    assert (again.status_code, again.json["id"], again.json["size"]) == (201, first["id"], 5)
    assert edith.get(address("a")).data == b"newer"
    assert edith.get(URL).json["total"] == 1
    assert len(stored()) == 1


def test_a_reader_of_replaced_bytes_reads_them_to_their_end(edith, stored):
    old = os.urandom(3 * limits.STORAGE_CHUNK_BYTES)
    send(edith, "big", old)
    answer = edith.get(address("big"), buffered=False)
    pieces = answer.iter_encoded()
    first = next(pieces)
    send(edith, "big", b"new")
    assert len(stored()) == 1
    assert first + b"".join(pieces) == old
    assert edith.get(address("big")).data == b"new"


def test_a_file_that_is_replaced_between_the_look_and_the_read_is_read_as_it_is_now(edith, monkeypatch):
    send(edith, "a", b"old")
    real, once = files.read_chunks, []

    def between(key, *more):
        if not once:
            once.append(key)
            send(edith, "a", b"newer")
        return real(key, *more)

    monkeypatch.setattr(files, "read_chunks", between)
    assert edith.get(address("a")).data == b"newer"


RANGES = [
    ("bytes=0-2", 206, b"012"),
    ("bytes=7-", 206, b"789"),
    ("bytes=-2", 206, b"89"),
    ("bytes=0-", 200, None),
]


@pytest.mark.parametrize(("requested", "status", "data"), RANGES)
def test_any_range_is_read(edith, requested, status, data):
    send(edith, "digits", b"0123456789")
    found = edith.get(address("digits"), headers={"Range": requested})
    assert (found.status_code, found.data) == (status, data or b"0123456789")
    assert found.headers["Accept-Ranges"] == "bytes"
    outside = edith.get(address("digits"), headers={"Range": "bytes=99-"})
    assert (outside.status_code, outside.headers["Content-Range"]) == (416, "bytes */10")


def test_unchanged_resources_are_not_sent_again(edith):
    tag = send(edith, "a").headers["ETag"]
    found = edith.get(address("a"), headers={"If-None-Match": tag})
    assert (found.status_code, found.data) == (304, b"")
    part = edith.get(address("a"), headers={"Range": "bytes=0-0", "If-Range": '"other"'})
    assert part.status_code == 200


def test_a_list_is_narrowed_sorted_and_turned_page_by_page(edith):
    for name, size in (("b", 3), ("in/a", 1), ("in/deep/c", 2), ("index", 5), ("IN/x", 4)):
        send(edith, name, b"x" * size)

    def names(**query):
        return [item["name"] for item in edith.get(URL, query_string=query).json["items"]]

    assert names() == ["IN/x", "index", "in/deep/c", "in/a", "b"]
    assert names(folder="in") == names(folder="in/") == ["in/deep/c", "in/a"]
    assert names(sort="-size") == ["index", "IN/x", "b", "in/deep/c", "in/a"]
    assert names(q="DEEP") == ["in/deep/c"]
    assert names(folder="nowhere") == names(folder="i_") == names(folder="%") == []
    first = edith.get(URL, query_string={"limit": 2, "sort": "size", "folder": "in"}).json
    assert (first["total"], first["next_cursor"]) == (2, None)
    first = edith.get(URL, query_string={"limit": 3, "sort": "size"}).json
    rest = names(limit=3, sort="size", cursor=first["next_cursor"])
    assert [item["name"] for item in first["items"]] + rest == ["in/a", "in/deep/c", "b", "IN/x", "index"]
    other = edith.get(URL, query_string={"sort": "size", "folder": "in", "cursor": first["next_cursor"]})
    assert problem(other) == (400, "invalid_request")
    assert problem(edith.get(URL, query_string={"folders": "in"})) == (400, "invalid_request")


def test_a_deleted_file_is_restored_and_its_name_is_free_in_the_meantime(edith):
    file = send(edith, "a", b"first").json
    gone = edith.delete(f"{URL}/{file['id']}")
    assert gone.json["deleted_at"]
    assert edith.get(URL).json["total"] == 0
    assert edith.get(f"{URL}/{file['id']}").status_code == 404
    other = send(edith, "a", b"second").json
    taken = edith.post(f"{URL}/{file['id']}/restore")
    assert problem(taken) == (409, "conflict")
    assert taken.json["error"]["details"] == {"name": "a", "id": other["id"]}
    edith.delete(address("a"))
    assert edith.post(f"{URL}/{file['id']}/restore").json["deleted_at"] is None
    assert edith.post(f"{URL}/{file['id']}/restore").status_code == 200
    assert edith.get(address("a")).data == b"first"
    send(edith, "d/e")
    back = edith.delete(address("d/e")).json["id"]
    send(edith, "d")
    assert problem(edith.post(f"{URL}/{back}/restore")) == (409, "conflict")
    assert problem(edith.post(f"{URL}/d/restore")) == (404, "not_found")


def test_a_change_with_an_outdated_etag_is_rejected(edith, stored):
    tag = send(edith, "a", b"1").headers["ETag"]
    assert send(edith, "a", b"2", headers={"If-Match": tag}).status_code == 201
    stale = send(edith, "a", b"3", headers={"If-Match": tag})
    assert problem(stale) == (412, "version_conflict")
    assert problem(edith.delete(address("a"), headers={"If-Match": tag})) == (412, "version_conflict")
    assert problem(send(edith, "a", b"4", headers={"If-None-Match": "*"})) == (412, "version_conflict")
    assert problem(send(edith, "new", b"4", headers={"If-Match": "*"})) == (412, "version_conflict")
    assert send(edith, "new", b"4", headers={"If-None-Match": "*"}).status_code == 201
    assert edith.get(address("a")).data == b"2"
    now = edith.get(address("a")).headers["ETag"]
    assert edith.delete(address("a"), headers={"If-Match": now}).status_code == 200
    assert len(stored()) == 2


def test_a_repeated_upload_is_done_once_with_any_boundary(edith, stored):
    key = {"Idempotency-Key": "one"}
    body = '--{0}\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n{1}\r\n--{0}--\r\n'

    def call(boundary, content):
        data = body.format(boundary, content).encode()
        return edith.post(
            URL, data=data, content_type=f"multipart/form-data; boundary={boundary}", headers=key
        )

    first, again, other = call("one", "hi"), call("two", "hi"), call("one", "ho")
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.data == again.data
    assert again.headers["Idempotent-Replayed"] == "true"
    assert again.headers["ETag"] == first.headers["ETag"]
    assert problem(other) == (422, "idempotency_mismatch")
    assert len(stored()) == 1


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"{}", "application/json", (415, "unsupported_media_type")),
        (b"hello", "text/plain", (415, "unsupported_media_type")),
        (b"", "", (415, "unsupported_media_type")),
        (b"--x\r\nno end", "multipart/form-data; boundary=x", (400, "invalid_request")),
        (b"--x--\r\n", "multipart/form-data; boundary=x", (422, "validation_error")),
        (b"hello", "multipart/form-data", (400, "invalid_request")),
    ],
)
def test_an_invalid_upload_is_rejected(edith, stored, body, content_type, expected):
    answer = edith.post(URL, data=body, content_type=content_type)
    assert problem(answer) == expected
    assert stored() == []


def test_a_body_that_breaks_off_stores_nothing(edith, stored):
    whole = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + b"y" * 100_000
    answer = edith.post(URL, data=whole, content_type="multipart/form-data; boundary=x")
    assert problem(answer) == (400, "invalid_request")
    assert stored() == []


def test_misbehaving_components_are_reported(edith):
    text = edith.post(URL, data={"file": "text", "name": "a"}, content_type="multipart/form-data")
    assert problem(text) == (422, "validation_error")
    assert "-F file=@" in text.text
    two = {"file": [(io.BytesIO(b"1"), "a"), (io.BytesIO(b"2"), "b")]}
    assert problem(edith.post(URL, data=two, content_type="multipart/form-data")) == (422, "validation_error")


def test_files_belong_to_the_project_they_were_uploaded_in(api, cast):
    file = send(api(cast.edith), "a").json
    assert (file["project_id"], file["team_id"]) == (cast.main, cast.blue)
    in_side = api(cast.edith, **{"X-Project-Id": cast.side})
    assert in_side.get(URL).json["items"] == []
    assert in_side.get(address("a")).status_code == 404
    assert in_side.get(f"{URL}/{file['id']}").status_code == 200, "an id works in every project of the caller"
    assert api(cast.victor).get(address("a")).status_code == 200
    assert problem(send(api(cast.victor), "b")) == (403, "forbidden")
    assert api(cast.mallory).get(address("a")).status_code == 404
    assert api(cast.mallory).get(f"{URL}/{file['id']}").status_code == 404
    assert send(api(cast.mallory), "a", b"hers").status_code == 201
    assert api(cast.edith).get(address("a")).data == b"a,b\n1,2\n"


def test_every_change_leaves_an_entry(app, edith):
    file = send(edith, "a").json
    send(edith, "a", b"2")
    edith.delete(address("a"))
    edith.post(f"{URL}/{file['id']}/restore")
    with app.app_context():
        found = db.session.scalars(
            sa.select(AuditEntry).where(AuditEntry.object_id == file["id"]).order_by(AuditEntry.id)
        ).all()
        result = [(entry.action, entry.details.get("replaced"), entry.details["name"]) for entry in found]
        db.session.remove()
    assert result == [
        ("workspace_file.upload", False, "a"),
        ("workspace_file.upload", True, "a"),
        ("workspace_file.delete", None, "a"),
        ("workspace_file.restore", None, "a"),
    ]


def test_the_address_in_a_list_is_whole_and_encoded(edith):
    result = send(edith, "ä b/100%.csv").json
    assert result["download_url"] == "http://localhost/workspace/files/%C3%A4%20b/100%25.csv"


def test_the_documentation_lists_the_parts_of_an_upload(edith):
    found = edith.get("/openapi.json").json["paths"][URL]["post"]
    assert set(found["requestBody"]["content"]) == {"multipart/form-data"}
    assert {"413", "415", "422", "429", "409", "412"} <= set(found["responses"])


def test_a_commit_whose_end_is_not_known_keeps_the_bytes(app, edith, stored, monkeypatch):
    send(edith, "a", b"old")
    real = db.session.commit

    calls = []

    def lost():
        real()
        calls.append(1)
        if len(calls) == 1:
            return  # the reservation
        raise sa.exc.OperationalError("commit", {}, Exception("connection lost"))

    with app.app_context():
        monkeypatch.setattr(db.session, "commit", lost)
        assert send(edith, "a", b"new").status_code == 503
        monkeypatch.undo()
    assert edith.get(address("a")).data == b"new"
    assert len(stored()) == 2, "the old bytes are swept later"
    with app.app_context():
        assert db.session.scalar(sa.select(sa.func.count()).select_from(WorkspaceFile)) == 1
        db.session.remove()


def test_a_second_application_sees_what_the_first_stored(settings, edith, cast):
    from tests.cast import Program

    send(edith, "a", b"shared")
    other = create_app(settings)
    try:
        assert Program(other, cast.edith.key).get(address("a")).data == b"shared"
    finally:
        close_app(other)
