"""The list of datasets in a browser. Their page is tested in test_dataset_diagram.py."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.cast import Program
from tests.views.speak import make


@pytest.fixture
def shop(app, cast):
    program = Program(app, cast.edith.key)
    table = make(program, name="Buyers", fields=[{"name": "id", "type": "row_number"}])["id"]
    return program.post("/datasets", json={"name": "Shop", "templates": [{"template_id": table}]}).json


def test_a_deletion_is_undone_from_the_toast(edith, shop):
    page = edith.page("/datasets")
    page.get_by_role("link", name="Delete Shop").click()
    page.get_by_role("button", name="Delete Shop").click()
    expect(page.get_by_role("heading", name="No datasets yet")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url(f"**/datasets/{shop['id']}")
