"""Filling a database: the form, the plan and the push."""

from __future__ import annotations

import os

from playwright.sync_api import Page

from pictures.datasets import MADE


def form(page: Page) -> None:
    """The form, for the database of the connection string in PICTURES_DATABASE."""
    if "database" not in MADE:
        page.goto("/connections/new?type=postgresql")
        page.get_by_label("Name", exact=True).fill("Sakila")
        page.get_by_label("Connection string").fill(os.environ["PICTURES_DATABASE"])
        page.get_by_role("button", name="Test and save").click()
        page.wait_for_url("**/connections/con_*")
        MADE["database"] = page.url
    page.goto(MADE["database"])
    page.get_by_role("link", name="Fill this database").click()
    page.locator("input[name=rows]").wait_for()


def plan(page: Page) -> None:
    """The plan."""
    form(page)
    page.get_by_role("button", name="Show the plan").click()
    page.locator("#plan").wait_for(timeout=300_000)


def push(page: Page) -> None:
    """The push, all of whose rows arrived. Filled once."""
    if "fill" not in MADE:
        plan(page)
        page.locator("#plan .btn.primary").click()
        page.wait_for_url("**/pushes/psh_*")
        page.locator("#work header .badge", has_text="Completed").wait_for(timeout=300_000)
        MADE["fill"] = page.url
    page.goto(MADE["fill"])
