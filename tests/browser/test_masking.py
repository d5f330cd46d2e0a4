"""Masking is chosen where a field's other options are, and comes back as it was saved."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.builder import Builder


@pytest.fixture
def builder(edith):
    return Builder(edith.page("/templates/new?names=id,email"))


def test_a_strategy_makes_a_field_sensitive_and_is_kept(builder):
    builder.name("Customers")
    field = builder.open("email", "Privacy")
    field.get_by_label("Strategy").select_option("tokenize")
    field.get_by_role("textbox", name="Domain", exact=True).fill("customers")
    builder.save_new()
    field = builder.open("email", "Privacy")
    expect(field.get_by_label("Sensitive")).to_be_checked()
    expect(field.get_by_label("Strategy")).to_have_value("tokenize")


def test_unsupported_options_are_reported_at_the_field(builder):
    builder.name("Customers")
    builder.open("email", "Privacy").get_by_label("Strategy").select_option("shift")
    builder.page.locator("#save").click()
    expect(builder.page.locator(".errcell")).to_contain_text("only dates can be shifted")
