"""No document ends in an internal error or a crash: every kind that is read, changed in a few places. The long version
is tests/fuzz/test_documents.py."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.imports.mutated import DOCUMENTS, mutated, read


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_the_document_itself_is_read(kind):
    assert read(kind, DOCUMENTS[kind]) == ""


@pytest.mark.parametrize("kind", DOCUMENTS)
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_mutated_document_is_parsed_or_rejected_with_a_message(kind, data):
    message = read(kind, data.draw(mutated(kind)))
    assert "error in Rowsmith" not in message
    assert "crash" not in message
