"""The reference of field types in docs/reference/types matches the catalogue, including sample rows."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from webapp.paths import ROOT
from webapp.row_templates.services import catalogue


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    """The program that writes it."""
    spec = importlib.util.spec_from_file_location("field_types", ROOT / "docs" / "field_types.py")
    assert spec is not None
    created = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(created)  # type: ignore[union-attr]
    return created


def test_the_files_are_what_would_be_written_now(writer):
    assert writer.differing() == [], "run docs/field_types.py"


def test_every_type_has_its_section_and_every_link_leads_to_a_file(writer):
    texts = {one: one.read_text("utf-8") for one in writer.FOLDER.glob("*.md")}
    reported = "".join(texts.values())
    assert [one["name"] for one in catalogue.entries() if f"`{one['name']}`\n" not in reported] == []
    lost = [
        (one.name, link)
        for one, text in texts.items()
        for link in re.findall(r"\]\(([^)#:]+\.md)", text)
        if not (one.parent / Path(link)).resolve().is_file()
    ]
    assert lost == []
