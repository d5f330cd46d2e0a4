"""The long version of tests/imports/test_mutated_documents.py."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.imports.mutated import DOCUMENTS, mutated, read, repacked


@pytest.mark.parametrize("kind", DOCUMENTS)
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_mutated_document_is_parsed_or_rejected_with_a_message(kind, data):
    message = read(kind, data.draw(mutated(kind)))
    assert "error in Rowsmith" not in message
    assert "crash" not in message


PARTS = ("xl/worksheets/sheet1.xml", "xl/workbook.xml", "xl/sharedStrings.xml", "xl/styles.xml")
PIECES = (b"<", b">", b"9" * 30, b' r="ZZZ9999999"', b"</row>", b'"', b"\0")


@pytest.mark.parametrize("part", PARTS)
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_workbook_with_a_mutated_part_is_parsed_or_rejected_with_a_message(part, data):
    with zipfile.ZipFile(io.BytesIO(DOCUMENTS["xlsx"])) as book:
        if part not in book.namelist():
            pytest.skip("this workbook has no such part")
        content = bytearray(book.read(part))
    for _ in range(data.draw(st.integers(1, 5))):
        place = data.draw(st.integers(0, len(content)))
        content[place:place] = data.draw(st.sampled_from(PIECES))
    message = read("xlsx", repacked(DOCUMENTS["xlsx"], part, bytes(content)))
    assert "error in Rowsmith" not in message
    assert "crash" not in message
