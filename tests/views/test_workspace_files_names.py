"""Names and types of workspace files: what is refused, what is kept as it is."""

from __future__ import annotations

import io
import unicodedata
from urllib.parse import quote

import pytest

from tests.views.uploading import URL, address, problem, send


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


BAD_NAMES = [
    ("/etc/passwd", "must not begin with a slash"),
    ("a/../b", "not allowed as the name"),
    ("..", "not allowed as the name"),
    ("./a", "not allowed as the name"),
    ("a//b", "empty folder names"),
    ("a/", "must not end with a slash"),
    ("a\0b", "U+0000 at position 2"),
    ("a\nb", "U+000A at position 2"),
    ("a\x7f", "U+007F"),
    ("a\u2028b", "U+2028"),
    ("\u202egpj.exe", "changes the text direction"),
    ("a\\b", "not contain backslashes"),
    ("a /b", "ends with a space"),
    ("x" * 300, "255 characters, including its folders; this one has 300"),
    ("a/" + "é" * 128, "255 bytes in UTF-8"),
    ("fil_01J00000000000000000000000", "look like the ID of a file"),
]


@pytest.mark.parametrize(("name", "expected"), BAD_NAMES)
def test_an_invalid_name_is_rejected_with_a_message(edith, stored, name, expected):
    answer = send(edith, name)
    assert problem(answer) == (422, "validation_error")
    assert any(expected in field["message"] for field in answer.json["error"]["details"]["fields"]), (
        answer.text
    )
    assert {field["path"] for field in answer.json["error"]["details"]["fields"]} == {"name"}
    assert stored() == []


def test_all_errors_are_reported_together(edith):
    answer = send(edith, "/a//../b ", more={"nome": "x"})
    reported = " ".join(field["message"] for field in answer.json["error"]["details"]["fields"])
    for part in (
        "begin with a slash",
        "empty folder names",
        "not allowed",
        "ends with a space",
        "Unknown part `nome`",
    ):
        assert part in reported
    assert "Did you mean `name`?" in answer.text


GOOD_NAMES = [
    "a", "x" * 255, "a/b/c/d.csv", "100% sure?.csv", "a#b;c=d&e+f.csv", "Bücher/größe.csv", "数据/客户.csv",
    '"quoted".csv', "it's.csv", "a@v3", "x/restore", "<b>bold</b>.html", ".hidden", "a...b", "😀.txt",
    "with space.csv", "fil_01J00000000000000000000000/inner", "данные", "{{7*7}}",
]  # fmt: skip


@pytest.mark.parametrize("name", GOOD_NAMES)
def test_any_other_name_is_stored_read_and_deleted(edith, name):
    assert send(edith, name).json["name"] == name
    found = edith.get(address(name))
    assert found.data == b"a,b\n1,2\n"
    result = found.headers["Content-Disposition"]
    assert result.isascii()
    assert result.startswith('attachment; filename="')
    assert result.endswith(f"filename*=UTF-8''{quote(name.rpartition('/')[2], safe='')}")
    assert result.count('"') == 2
    gone = edith.delete(address(name))
    assert (gone.status_code, gone.json["name"]) == (200, name)
    assert edith.get(address(name)).status_code == 404


def test_twins_of_unicode_are_one_name(edith):
    composed, apart = "Café.csv", unicodedata.normalize("NFD", "Café.csv")
    assert composed != apart
    first = send(edith, apart, b"1").json
    assert first["name"] == composed
    assert send(edith, composed, b"22").json["id"] == first["id"]
    assert edith.get(address(apart)).data == b"22"
    assert edith.get(URL, query_string={"q": apart}).json["total"] == 1


def test_case_counts(edith):
    assert send(edith, "Data.csv").json["id"] != send(edith, "data.csv").json["id"]
    assert edith.get(address("DATA.csv")).status_code == 404


def test_a_folder_and_a_file_cannot_have_one_name(edith):
    send(edith, "a/b")
    assert problem(send(edith, "a")) == (409, "conflict")
    under = send(edith, "a/b/c")
    assert problem(under) == (409, "conflict")
    assert "`a/b` is a file" in under.text


@pytest.mark.parametrize(
    ("content_type", "name"),
    [("text/html", "x.html"), ("image/svg+xml", "x.svg"), ("application/javascript", "x.js"), ("text/css", "x.css"),
     ("application/xhtml+xml", "x.xhtml"), ("text/xml", "x.xml"), ("application/pdf", "x.pdf"), ("", "page.html")],
)  # fmt: skip
def test_files_that_a_browser_would_run_are_sent_as_bytes(edith, content_type, name):
    data = {"file": (io.BytesIO(b"<script>alert(1)</script>"), name, content_type), "name": name}
    edith.post(URL, data=data, content_type="multipart/form-data")
    found = edith.get(address(name))
    assert found.headers["Content-Type"] == "application/octet-stream"
    assert found.headers["X-Content-Type-Options"] == "nosniff"
    assert found.headers["Content-Disposition"].startswith("attachment")
    assert any("sandbox" in policy for policy in found.headers.getlist("Content-Security-Policy"))


def test_a_content_type_is_never_a_separate_header(edith):
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n'
        b"Content-Type: text/html; evil=<b>\r\n\r\nhi\r\n--x--\r\n"
    )
    created = edith.post(URL, data=body, content_type="multipart/form-data; boundary=x")
    assert created.json["content_type"] == "text/html"
    odd = body.replace(b"text/html; evil=<b>", b"text/<b>").replace(b"a.bin", b"b.bin")
    created = edith.post(URL, data=odd, content_type="multipart/form-data; boundary=x")
    assert created.json["content_type"] == "application/octet-stream"
    assert edith.get(address("a.bin")).headers["Content-Type"] == "application/octet-stream"
