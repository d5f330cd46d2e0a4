"""The builder's page, as the tests speak of it."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect


class Builder:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.inspector = page.locator("#inspector")
        self.state = page.locator("#state")

    def head(self, name: str) -> Locator:
        """The header of a column, or the line of the list, of the field with this name."""
        return self.page.locator(f'.colhead:has(b:text-is("{name}")), .flist a:text-is("{name}")')

    def open(self, name: str, part: str = "Values") -> Locator:
        """Open a field in the inspector. Returns the inspector."""
        self.head(name).click()
        expect(self.inspector.get_by_label("Field name")).to_have_value(name)
        self.part(part)
        return self.inspector

    def part(self, name: str) -> None:
        self.inspector.locator(".parts label", has_text=name).click()

    def settings(self) -> Locator:
        self.page.locator("#c-settings").click()
        expect(self.inspector.get_by_role("heading", name="Settings")).to_be_visible()
        return self.inspector

    def names(self) -> list[str]:
        return [locator.inner_text() for locator in self.page.locator(".heads .colhead b").all()]

    def shows(self, *names: str) -> None:
        """Wait until the grid has these columns, in this order."""
        expect(self.page.locator(".heads .colhead b")).to_have_text(list(names))

    def values(self) -> dict[str, list[str]]:
        """The first three rows, by column."""
        lines = [
            [cell.get_attribute("title") or cell.inner_text() for cell in line.locator("td").all()]
            for line in self.page.locator(".cells tbody tr").all()[:3]
        ]
        return dict(zip(self.names(), map(list, zip(*lines, strict=True)), strict=False))

    def cell(self, name: str, row: int = 0) -> Locator:
        """One cell, if no column is without values."""
        return self.page.locator(".cells tbody tr").nth(row).locator("td").nth(self.names().index(name))

    def add(self, name: str) -> None:
        self.page.keyboard.press("Alt+n")
        expect(self.page.locator("#add-name")).to_be_focused()
        self.page.keyboard.type(name)
        self.page.keyboard.press("Enter")
        expect(self.page.locator(".colhead b", has_text=name)).to_be_visible()

    def pick(self, text: str) -> None:
        """Choose the type of the open field by searching for it."""
        self.inspector.locator("[data-pick]").press("Enter")
        self.page.get_by_label("Search types").fill(text)
        expect(self.page.locator("#picker-list [aria-selected=true]")).to_be_visible()
        self.page.keyboard.press("Enter")
        expect(self.page.locator("#picker")).to_be_hidden()

    def name(self, text: str) -> None:
        self.page.get_by_label("Name of the template").fill(text)

    def save_new(self) -> None:
        self.page.locator("#save").click()
        self.page.wait_for_url("**/templates/tpl_*")

    def save(self, version: int) -> None:
        self.page.keyboard.press("Control+s")
        expect(self.state).to_contain_text(f"v{version}")

    def view(self, name: str) -> None:
        self.page.locator(".toolbar .seg a", has_text=name).click()
        expect(self.page.locator(".toolbar .seg [aria-current]")).to_have_text(name)
