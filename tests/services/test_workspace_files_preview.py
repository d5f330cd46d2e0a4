"""The head of a file: of good ones a table, of evil ones a sentence, and never long."""

from __future__ import annotations

import io
import json
import time
import zipfile

import pytest
from openpyxl import Workbook

from webapp import limits
from webapp.access import actors
from webapp.extensions import db
from webapp.files import services as files


@pytest.fixture
def head(app, cast):
    with app.app_context():
        acme = actors.system_actor(cast.acme, cast.main, cast.blue)

        def of(name: str, content: bytes):
            return files.preview(files.upload(acme, name, io.BytesIO(content))[0])

        yield of
        db.session.remove()


def workbook(rows) -> bytes:
    book = Workbook(write_only=True)
    sheet = book.create_sheet("One")
    for row in rows:
        sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def exchanged(raw: bytes, part: str, content: bytes) -> bytes:
    """A workbook with another part in the place of one."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(raw)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for item in old.namelist():
            new.writestr(item, content if item == part else old.read(item))
    return out.getvalue()


@pytest.mark.parametrize("delimiter", list(",;\t|"))
def test_csv_is_a_table_with_any_delimiter(head, delimiter):
    rows = [["id", "name"], *[[str(n), f"na{n}"] for n in range(50)]]
    found = head("a.csv", "\r\n".join(delimiter.join(row) for row in rows).encode())
    assert found.columns == ["id", "name"]
    assert (len(found.rows), found.rows[0], found.is_truncated) == (20, ["0", "na0"], True)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_letters_are_read_in_any_usual_encoding(head, encoding):
    assert head("a.csv", "größe\nklein\n".encode(encoding)).columns == ["größe"]


@pytest.mark.parametrize(
    "text",
    [
        '[{"a": 1, "b": {"c": [1]}}, {"a": null, "d": "x"}]',
        '{"a": 1, "b": {"c": [1]}}\n{"a": null, "d": "x"}\n',
    ],
)
def test_json_is_a_table_of_its_objects(head, text):
    found = head("a.json", text.encode())
    assert (list(found.columns), found.rows) == (["a", "b", "d"], [["1", '{"c": [1]}', ""], ["", "", "x"]])


def test_json_that_is_cut_off_is_shown_as_far_as_it_goes(head):
    text = json.dumps([{"n": n, "text": "x" * 100} for n in range(10_000)])
    found = head("a.json", text.encode())
    assert (len(found.rows), found.is_truncated) == (20, True)


def test_a_workbook_is_a_table_of_its_first_sheet(head):
    found = head("a.xlsx", workbook([["id", "when", None], *[[n, "x", None] for n in range(5_000)]]))
    assert (found.columns, len(found.rows), found.rows[0], found.is_truncated) == (
        ["id", "when"],
        20,
        ["0", "x"],
        True,
    )


EVIL = {
    "deep.json": b"[" * 200_000,
    "digits.json": b"[" + b"9" * 100_000 + b"]",
    "no.json": b"{'a': 1}",
    "one.csv": b'"' + b"x" * 300_000,
    "wide.csv": b"," * 200_000,
    "nul.txt": b"a\0b" * 10_000,
    "control.txt": bytes(range(1, 32)) * 100,
    "surrogate.json": b'["\\ud800\\u202e"]',
    "empty.csv": b"",
    "lines.csv": b"\n" * 100_000,
    "no.xlsx": b"PK\x03\x04 nothing",
    "quotes.csv": b'a,"b\n' * 50_000,
}


@pytest.mark.parametrize("name", EVIL)
def test_no_content_breaks_the_preview(head, name):
    start = time.process_time()
    found = head(name, EVIL[name])
    assert time.process_time() - start < 5
    shown = [*found.columns, *(cell for row in found.rows for cell in row)]
    assert len(found.columns) <= limits.FILE_PREVIEW_COLUMNS
    assert all(len(cell) <= limits.FILE_PREVIEW_CHARS for cell in shown)
    "".join([*shown, found.text]).encode()
    assert len(found.text) < 20_000


SHEET = "xl/worksheets/sheet1.xml"
OPEN = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
BOMBS = {
    "one endless row": (SHEET, OPEN + b"<row>" + b'<c t="inlineStr"><is><t>x</t></is></c>' * 300_000),
    "one endless text": (SHEET, OPEN + b"<row><c><v>" + b"9" * 20_000_000),
    "a styles part": ("xl/styles.xml", b"<styleSheet>" + b"<x/>" * 2_000_000),
    "a manifest": ("[Content_Types].xml", b"<Types>" + b" " * 20_000_000),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_workbook_that_unpacks_without_end_is_given_up(head, bomb):
    raw = exchanged(workbook([["a"], [1]]), *BOMBS[bomb])
    start = time.process_time()
    found = head("bomb.xlsx", raw)
    assert (found.columns, found.note) == ((), "The unpacked workbook is too large for a preview.")
    assert time.process_time() - start < 10


def test_entities_of_a_workbook_are_not_expanded(head):
    laughs = (
        b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>' + OPEN + b"<row><c><v>&b;</v></c></row>"
    )
    found = head("a.xlsx", exchanged(workbook([["a"], [1]]), SHEET, laughs + b"</sheetData></worksheet>"))
    assert "cannot be read" in found.note


def test_a_claimed_size_of_a_sheet_makes_no_rows(head):
    sheet = OPEN.replace(b"<sheetData>", b'<dimension ref="A1:XFD1048576"/><sheetData>')
    sheet += b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row></sheetData></worksheet>'
    start = time.process_time()
    found = head("a.xlsx", exchanged(workbook([["a"], [1]]), SHEET, sheet))
    assert time.process_time() - start < 5
    assert len(found.rows) <= 20


def test_a_storage_that_does_not_answer_is_a_note(app, head, monkeypatch):
    def broken(*_):
        raise OSError("gone")

    monkeypatch.setattr("webapp.storage.Storage.get", broken)
    assert "currently unavailable" in head("a.csv", b"a\n1\n").note
