"""The builder's page, as the tests speak of it."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

_FIND = """name => [...document.querySelectorAll('.row')]
    .find(row => row.querySelector('[data-name]').value === name)?.id"""


class Builder:
    def __init__(self, page: Page) -> None:
        self.page = page
        self.preview = page.locator("#preview")

    def row(self, name: str) -> Locator:
        """Return the row of the field with this name; waits for it."""
        found = self.page.wait_for_function(_FIND, arg=name).json_value()
        return self.page.locator(f"[id='{found}']")

    def names(self) -> list[str]:
        return [one.input_value() for one in self.page.locator("[data-name]").all()]

    def values(self) -> dict[str, list[str]]:
        """The preview: values of the three rows, by column."""
        lines = self.preview.locator("tbody tr").all()
        return {
            line.locator("th").inner_text(): [
                cell.get_attribute("title") or cell.inner_text() for cell in line.locator("td").all()
            ]
            for line in lines
        }

    def previews(self, *names: str) -> None:
        """Wait until the preview has these columns, in this order."""
        expect(self.preview.locator("tbody th")).to_have_text(list(names))

    def name(self, text: str) -> None:
        self.page.get_by_label("Name of the template").fill(text)

    def save_new(self) -> None:
        self.page.locator("#save").click()
        self.page.wait_for_url("**/templates/tpl_*")

    def save(self, version: int) -> None:
        self.page.keyboard.press("Control+s")
        expect(self.page.locator("#saved .badge")).to_have_text(f"v{version}")

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name).click()
