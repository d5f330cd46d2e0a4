"""Read the values that a browser would submit for a form on a page."""

from __future__ import annotations

from html.parser import HTMLParser

from lxml import html


class _Reader(HTMLParser):
    def __init__(self, form_id: str) -> None:
        super().__init__()
        self._wanted, self._inside = form_id, False
        self._select: str | None = None
        self._area: str | None = None
        self._option = False
        self.found: dict[str, str] = {}

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        had = dict(attributes)
        if tag == "form":
            self._inside = had.get("id") == self._wanted
        elif not self._inside and had.get("form") != self._wanted and not (tag == "option" and self._select):
            return
        name = had.get("name")
        if tag == "input" and name and (had.get("type") not in ("checkbox", "file") or "checked" in had):
            self.found[name] = had.get("value") or ""
        elif tag == "select" and name:
            self._select = name
        elif tag == "option" and self._select and (self._select not in self.found or "selected" in had):
            self.found[self._select] = had.get("value") or ""
            self._option = "value" not in had  # its text is its value
        elif tag == "textarea" and name:
            self._area, self.found[name] = name, ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False
        elif tag == "option":
            self._option = False
        elif tag == "select":
            self._select = None
        elif tag == "textarea":
            self._area = None

    def handle_data(self, data: str) -> None:
        if self._option and self._select:
            self.found[self._select] = data
        if self._area:
            self.found[self._area] += data.strip("\r\n")


def form_in(text: str, form_id: str) -> dict[str, str]:
    """Names and values of the form with that id; the token of a session is left out."""
    reader = _Reader(form_id)
    reader.feed(text)
    reader.found.pop("csrf_token", None)
    return reader.found


def error_at(page: str, control: str) -> str:
    """The error of a control: inside its own block, and tied to it for a screen reader; "" for none."""
    found = html.fromstring(page).get_element_by_id(control)
    around = (
        iterancestor
        for iterancestor in found.iterancestors()
        if iterancestor.tag == "td" or "field" in iterancestor.get("class", "").split()
    )
    errors = next(around).xpath(".//*[contains(concat(' ', @class, ' '), ' err ')]")
    if not errors:
        assert found.get("aria-invalid") is None
        return ""
    assert [error.get("id") for error in errors] == [f"{control}-err"]
    assert f"{control}-err" in found.get("aria-describedby").split()
    assert found.get("aria-invalid") == "true"
    return str(errors[0].text_content())
