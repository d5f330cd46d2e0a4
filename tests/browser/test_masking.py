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
    builder.row("email").get_by_title("More options").click()
    panel = builder.row("email").locator(".panel")
    panel.get_by_label("Strategy").select_option("tokenize")
    panel.get_by_label("Domain").fill("customers")
    builder.save_new()
    builder.page.reload()
    row = builder.row("email")
    expect(row.get_by_label("Sensitive")).to_be_checked()
    expect(row.locator(".badge").filter(has_text="masking")).to_have_text("masking tokenize")


def test_unsupported_options_are_reported_at_the_field(builder):
    builder.name("Customers")
    builder.row("email").get_by_title("More options").click()
    builder.row("email").locator(".panel").get_by_label("Strategy").select_option("shift")
    builder.page.locator("#save").click()
    expect(builder.row("email").locator("tr.errs")).to_contain_text("only dates can be shifted")
