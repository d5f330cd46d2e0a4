"""Words of enumerations are accepted in every spelling that differs in case, hyphens, underscores or spaces."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from webapp import json_input
from webapp.connectors import KINDS
from webapp.pushes.schemas import PushInput


class Basic(BaseModel):
    type: Literal["basic"]


class Key(BaseModel):
    type: Literal["api-key"]
    where: Literal["header", "query"] = Field("header", alias="in")


class Settings(BaseModel):
    mode: Literal["per_row", "batch"] | None = None
    sort: Literal["name", "-name"] = "name"
    many: list[Literal["read", "write"]] = []
    auth: Basic | Key | None = None
    text: str = ""


@pytest.mark.parametrize("word", ["per_row", "per-row", "Per Row", "PER_ROW", "perrow", "per--row"])
def test_a_word_is_found_in_every_spelling(word):
    assert json_input.canonicalize_enums(Settings, {"mode": word}) == {"mode": "per_row"}


def test_words_are_found_at_every_depth_and_in_every_model_of_a_union():
    sent = {
        "auth": {"type": "API_KEY", "in": "Header", "name": "X-Key"},
        "many": ["READ", "writ"],
        "text": "Per-Row",
    }
    assert json_input.canonicalize_enums(Settings, sent) == {
        "auth": {"type": "api-key", "in": "header", "name": "X-Key"},
        "many": ["read", "writ"],
        "text": "Per-Row",
    }


@pytest.mark.parametrize("word", ["name", "-name", "Name", "none", "", "x" * 1_000, None, 5])
def test_an_unknown_or_ambiguous_word_is_unchanged(word):
    assert json_input.canonicalize_enums(Settings, {"sort": word}) == {"sort": word}


@given(
    st.dictionaries(st.text(max_size=5).filter("type".__ne__), st.none() | st.text(max_size=5), max_size=3)
)
def test_settings_unknown_to_the_models_are_never_changed(sent):
    assert json_input.canonicalize_enums(Basic, sent) == sent


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_the_settings_of_every_kind_of_connection_have_a_text_form(kind):
    assert json_input.canonicalize_enums(KINDS[kind].Settings, {}) == {}


def test_the_words_of_requests_are_those_of_their_models():
    sent = {"push_mode": "Batch", "mode": "UPSERT", "on_error": "Stop", "connection_id": "con_A-B_c"}
    expected = {"push_mode": "batch", "mode": "upsert", "on_error": "stop", "connection_id": "con_A-B_c"}
    assert json_input.canonicalize_enums(PushInput, sent) == expected
