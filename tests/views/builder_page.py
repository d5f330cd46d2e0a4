"""The template builder over HTTP, as its script uses it: one form, and what an answer changes of it."""

from __future__ import annotations

import html
import re
from typing import Any

import orjson
from werkzeug.datastructures import MultiDict

from tests.forms.in_html import controls

HTMX = {"HX-Request": "true"}
_HEAD = re.compile(r'id="c-(r\w+)".*?(?:<b>|>)([^<]+)(?:</b>|</a>)', re.DOTALL)
_REFS = ("template_id", "loaded", "draft", "start", "view", "field", "offset", "first")


def send(browser: Any, path: str, form: Any, headers: Any = HTMX, **more: Any) -> Any:
    fields = {key: form.getlist(key) for key in form} if isinstance(form, MultiDict) else dict(form)
    return browser.submit(path, {**fields, **more}, headers=headers)


class Editor:
    """The builder in one browser window. `inputs` are what its form sends."""

    def __init__(self, browser: Any, path: str, headers: Any = HTMX) -> None:
        self.browser, self.headers = browser, headers
        self.answer = browser.get(path)
        self.text = self.answer.text
        self.inputs = controls(self.text, "builder")
        self.inputs["name"] = html.unescape(
            re.search(r'<input class="title"[^>]*?value="([^"]*)"', self.text)[1]
        )

    @property
    def keys(self) -> dict[str, str]:
        """The keys of the fields on the page by name, in their order."""
        return {html.unescape(name): key for key, name in _HEAD.findall(self.text)}

    @property
    def names(self) -> list[str]:
        return list(self.keys)

    def open(self, name: str) -> MultiDict[str, str]:
        """Open a field, or `settings`, in the inspector. Returns its inputs."""
        key = self.keys.get(name, name)
        answer = send(self.browser, "/builder/inspector", self.inputs, open=key)
        assert answer.status_code == 200, answer.text
        self.inspector = answer.text
        self.inputs["field"] = key
        return self._take(answer.text)

    def _take(self, text: str) -> MultiDict[str, str]:
        for item in [*self.inputs]:
            if re.match(
                r"r\w+\.|row$|settings$|tab$|source\.|invalid\.|(description|locale|quantity)$", item
            ):
                self.inputs.poplist(item)
        found = controls(text)
        for item in [*found]:
            self.inputs.setlist(item, found.getlist(item))
        return found

    def fill(self, **inputs: str) -> None:
        """Fill in inputs of the open field: `o_min` is the option `min`, `prefix` a key of all fields."""
        key = self.inputs["field"]
        for name, value in inputs.items():
            self.inputs[f"{key}.{name.replace('o_', 'o.', 1) if name.startswith('o_') else name}"] = value

    def press(self, do: str, **more: Any) -> str:
        """Send a change. `do` is the button; `{name}` in it is the key of that field."""
        do = re.sub(r"\{(\w+)\}", lambda hit: self.keys[hit[1]], do)
        self.answer = send(self.browser, "/builder/change", self.inputs, self.headers, do=do, **more)
        if self.answer.status_code == 303:
            self.__init__(self.browser, self.answer.location, self.headers)  # type: ignore[misc]
        else:
            self._changed()
        return self.text

    def _changed(self) -> None:
        self.text = self.answer.text
        text = controls(self.text)
        for name in _REFS:
            if name in text:
                self.inputs[name] = text[name]
        if 'class="insp"' in self.text:
            self._take(self.text[self.text.index('<aside class="inspector"') :])

    def rows(self, **more: Any) -> str:
        """Render the table again."""
        return str(send(self.browser, "/builder/rows", self.inputs, **more).text)

    def save(self, do: str = "save") -> Any:
        path = (
            f"/templates/{self.inputs['template_id']}/edit"
            if self.inputs["template_id"]
            else "/templates/new"
        )
        self.answer = send(self.browser, path, self.inputs, self.headers, do=do)
        return self.answer

    @property
    def spec(self) -> dict[str, Any]:
        """The draft as its JSON view shows it."""
        if self.inputs["template_id"]:
            where = f"/templates/{self.inputs['template_id']}?view=json"
        else:
            where = f"/templates/new?view=json&draft={self.inputs['draft']}"
        return orjson.loads(controls(self.browser.get(where).text, "builder")["json"])

    def column(self, name: str, text: str | None = None) -> list[str]:
        """The cells of a column of the grid, if no column is without values."""
        place = self.names.index(name)
        body = (text or self.text).split("<tbody>")[1].split("</tbody>")[0]
        lines = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
        cells = [
            re.findall(r'<td(?: class="[^"]*")?(?: title="([^"]*)")?>(.*?)</td>', line) for line in lines
        ]
        return [html.unescape(full or shown) for full, shown in (line[place] for line in cells)]
