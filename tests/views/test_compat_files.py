"""Files on the wire of the hosted service's clients, as their sources send them."""

from __future__ import annotations

import base64

import pytest

from tests.cast import Program
from tests.views.test_compat import made, refused


@pytest.fixture
def scenario(api, cast):
    return made(api(cast.edith).post("/scenarios", json={"name": "S", "code": "print(1)\n"}))["id"]


def upload(dm, scenario, content: bytes, folder="outputs", name="data.csv", kind="application/json"):
    """As `requests` writes it where a header of the client says that it is JSON."""
    raw = (
        f'--0f9a\r\nContent-Disposition: form-data; name="folder"\r\n\r\n{folder}\r\n'
        f'--0f9a\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    ).encode() + content + b"\r\n--0f9a--\r\n"  # fmt: skip
    path = f"/compat/scenarios/{scenario}/files/upload"
    return dm.post(path, data=raw, headers={"Content-Type": kind})


@pytest.mark.parametrize("kind", ["application/json", "multipart/form-data; boundary=0f9a"])
def test_a_form_that_is_called_json_is_read_by_its_own_boundary(dm, scenario, kind):
    file = made(upload(dm, scenario, b"a,b\n1,2\n", kind=kind))["file"]
    assert (file["folder"], file["filename"], file["key"], file["size"]) == (
        "outputs", "data.csv", "outputs/data.csv", 8,
    )  # fmt: skip
    assert file["mimeType"] == "text/csv"


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"", 415, "unsupported_media_type"),
        (b'{"a": 1}', 415, "unsupported_media_type"),
        (b"--0f9a\r\nContent-Disposition: form-data; name=", 400, "invalid_request"),
        (
            b'--0f9a\r\nContent-Disposition: form-data; name="folder"\r\n\r\nx\r\n--0f9a--\r\n',
            422,
            "validation_error",
        ),
    ],
)
def test_an_invalid_form_is_rejected(dm, scenario, raw, status, code):
    answer = dm.post(
        f"/compat/scenarios/{scenario}/files/upload", data=raw, headers={"Content-Type": "application/json"}
    )
    refused(answer, status, code)


def test_a_file_is_created_listed_read_and_deleted(dm, scenario, app):
    content = base64.b64encode("grüße".encode()).decode()
    sent = {
        "name": "in/a.txt", "content": content, "scenarioId": scenario, "teamId": "t", "mimeType": "text/plain",
        "size": 7, "description": "d", "folderId": "f",
    }  # fmt: skip
    file = made(dm.post("/compat/scenario-files", json=sent))
    assert (file["name"], file["folder"], file["filePath"]) == ("in/a.txt", "uploads", "in/a.txt")
    made(upload(dm, scenario, b"x"))
    base = f"/compat/scenarios/{scenario}/files"
    listed = made(dm.get(base))
    assert (len(listed["files"]), listed["storageUsed"]) == (2, 8)
    assert listed["storageLimit"] > 0
    assert [item["id"] for item in made(dm.get(f"{base}?folder=uploads"))["files"]] == [file["id"]]
    found = made(dm.get(f"{base}/{file['id']}"))
    nobody = Program(app, "")
    got = nobody.get(found["presignedUrl"].removeprefix("http://localhost"))
    assert (got.status_code, got.data.decode()) == (200, "grüße")
    for key in ("in/a.txt", "uploads/in/a.txt", "scenarios/t1/p1/s1/workspace/uploads/in/a.txt"):
        assert made(dm.get(f"/compat/workspace-files/by-key?key={key}"))["id"] == file["id"]
    assert made(dm.open("DELETE", f"{base}/{file['id']}")) == {"success": True}
    refused(nobody.get(found["presignedUrl"].removeprefix("http://localhost")), 404, "not_found")


def test_a_signed_address_ends_and_is_of_one_file(dm, scenario, app, monkeypatch):
    from webapp import clock, limits

    url = made(upload(dm, scenario, b"x"))["file"]["presignedUrl"].removeprefix("http://localhost")
    nobody = Program(app, "")
    assert nobody.get(url).data == b"x"
    refused(nobody.get(url[:-1] + ("A" if url[-1] != "A" else "B")), 404, "not_found")
    later = clock.epoch() + limits.COMPAT_LINK_SECONDS + 1
    monkeypatch.setattr(clock, "epoch", lambda: later)
    refused(nobody.get(url), 404, "not_found")


def test_an_invalid_base64_file_is_reported(dm, scenario):
    sent = {"name": "a", "content": "???", "scenarioId": scenario, "teamId": "t", "size": 1}
    details = refused(dm.post("/compat/scenario-files", json=sent), 422, "validation_error")
    assert details["fields"][0]["path"] == "content"


def test_files_go_by_a_scenario_that_one_reaches(client, cast, scenario):
    refused(client(cast.mallory).get(f"/compat/scenarios/{scenario}/files"), 404, "not_found")
    refused(upload(client(cast.victor), scenario, b"x"), 403, "forbidden")
