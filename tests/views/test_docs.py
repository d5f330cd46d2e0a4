"""The documentation in the application: nothing is missing, every link leads somewhere, and it is safe to draw."""

from __future__ import annotations

import gzip
import re
from html.parser import HTMLParser
from urllib.parse import urldefrag, urljoin

import pytest

from tests.cast import Browser
from tests.views.test_pages import MOST_BYTES, unsafe
from webapp import limits
from webapp.documentation import field_types, pages, reference, registry, rendering
from webapp.documentation.reference import code, table, text
from webapp.engine.spec import CommonKeys
from webapp.engine.types.registry import REGISTRY
from webapp.errors import CODES, ApiError
from webapp.generation.services import generate
from webapp.paths import ROOT
from webapp.row_templates.schemas import DraftInput
from webapp.row_templates.services import catalogue

LOCALES = [address for address in pages.all_pages() if address.startswith("locales/")]
DIFFERENT = [address for address in pages.all_pages() if address not in set(LOCALES) - set(LOCALES[::12])]
"""All pages, of those of the hundred locales a few: they come from one template."""
ADDRESSES = [*(f"/docs/{address}" for address in DIFFERENT), "/docs", "/docs/search?q=mail"]


class Parts(HTMLParser):
    """The links and ids of a page, and a count of its elements."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if "id" in found:
            self.ids.append(found["id"])
        self.links += [found[name] for name in ("href", "src") if name in found and tag != "use"]


def as_it_stands(link: str) -> str:
    return link


# --- The list of pages


def test_every_file_of_the_documentation_has_a_page_and_every_page_its_file():
    files = {
        str(path.relative_to(ROOT))
        for folder in ("guide", "reference", "adr")
        for path in (ROOT / "docs" / folder).glob("*.md")
    }
    listed = set(pages.pages_by_file())
    assert files - listed == set(), "these have no line in webapp/documentation/registry.py"
    assert [name for name in listed if not (ROOT / name).is_file()] == []


def test_the_index_of_decisions_lists_each_decision_with_its_title():
    index = (ROOT / "docs" / "adr" / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| (\d+) \| \[(.+)\]\((.+\.md)\) \| .+ \|$", index, re.MULTILINE)
    files = sorted(path for path in (ROOT / "docs" / "adr").glob("*.md") if path.name != "README.md")
    titles = [path.read_text("utf-8").partition("\n")[0] for path in files]
    assert [name for _, _, name in listed] == [path.name for path in files]
    assert [f"# {number}. {title}" for number, title, _ in listed] == titles


def test_no_two_pages_share_an_address_or_a_name_in_their_group():
    addresses = [entry.address for entry in registry.ENTRIES]
    assert sorted(addresses) == sorted(set(addresses))
    for group in registry.GROUPS:
        titles = [entry.title for entry in group.entries]
        assert sorted(titles) == sorted(set(titles))


def test_the_guide_has_what_a_newcomer_asks_for_in_its_order():
    expected = ["guide/start", "guide/relations", "guide/determinism", "guide/pushes", "guide/scenarios"]
    addresses = [entry.address for entry in registry.ENTRIES]
    places = [addresses.index(item) for item in expected]
    assert places == sorted(places)
    assert places[0] == 0


def test_the_list_of_pages_shows_where_one_is(browser):
    html = browser().get("/docs/field-types/number").text
    assert re.findall(r'<a href="([^"]+)" aria-current="page">', html) == ["/docs/field-types/number"]
    html = browser().get("/docs/guide/start").text
    assert re.findall(r'<a href="([^"]+)" aria-current="page">', html) == ["/docs/guide/start"]


def test_the_list_of_pages_shows_one_locale_of_a_hundred_and_their_page_shows_all(browser):
    reader = browser()
    index = reader.get("/docs/locales").text
    listed = set(re.findall(r'href="(/docs/locales/\w+)"', index))
    assert len(listed) > 80
    html = reader.get("/docs/locales/de_AT").text
    shown = re.search(r'<details class="docs-nav">.*?</details>', html, re.S)[0]
    assert re.findall(r'href="(/docs/locales/\w+)"', shown) == ["/docs/locales/de_AT"]
    assert "/docs/field-types/number" not in html  # what a page opens is listed while one reads it
    assert 'href="/docs/api"' in html
    assert 'href="/docs/postman.json"' in html


@pytest.mark.parametrize("locale", ["de_DE", "ja_JP", "ar_PS", "yo_NG"])
def test_the_page_of_a_locale_has_ten_rows_and_what_it_lacks(browser, locale):
    html = browser().get(f"/docs/locales/{locale}").text
    tables = re.findall(r"<tbody>.*?</tbody>", html, re.S)
    assert [found.count("<tr") for found in tables[: len(pages.COLUMNS)]] == [pages.ROWS] * len(pages.COLUMNS)
    lacking = catalogue.missing_values(locale)
    assert bool(lacking) == (locale != "ja_JP")  # which lacks nothing
    assert bool(lacking) != ("Nothing." in html)
    assert all(f"<code>{kind}</code>" in html for kind in lacking)


# --- Pages


@pytest.mark.parametrize("path", ADDRESSES)
def test_a_page_is_open_small_and_safe(browser, cast, path):
    answer = browser().get(path)
    html = answer.text
    found = Parts(html)
    assert (answer.status_code, answer.mimetype) == (200, "text/html")
    assert unsafe(html) == []
    assert html.count("<h1") == 1
    assert sorted(found.ids) == sorted(set(found.ids))
    # With all that an owner's head of a page holds.
    assert len(gzip.compress(browser(cast.olivia).get(path).data)) < MOST_BYTES


@pytest.mark.parametrize("address", DIFFERENT)
def test_a_page_is_markdown_at_its_address_with_md(browser, address):
    answer = browser().get(f"/docs/{address}.md")
    assert (answer.status_code, answer.mimetype) == (200, "text/markdown")
    assert answer.text.startswith("# ")
    file = pages.find(address).file
    if file:
        assert answer.text == (ROOT / file).read_text("utf-8")


def test_every_link_and_every_anchor_leads_somewhere(browser, monkeypatch):
    # There are more pages than one address may read in a minute.
    monkeypatch.setattr(limits, "ADDRESS_REQUESTS_PER_MINUTE", 10_000)
    reader: Browser = browser()
    seen: dict[str, Parts | None] = {}

    def ids_at(address: str) -> list[str] | None:
        """The ids of a page; None if the page does not exist, [] for pages outside of the documentation."""
        if address not in seen:
            with reader.get(address, follow_redirects=False) as answer:
                html = answer.mimetype == "text/html" and answer.status_code == 200
                seen[address] = Parts(answer.text if html else "") if answer.status_code < 400 else None
        found = seen[address]
        return found.ids if found else None

    broken, waiting, done, right = [], [*ADDRESSES], set(), set()
    while waiting:
        path = waiting.pop()
        if path in done:
            continue
        done.add(path)
        assert ids_at(path) is not None, path
        for target in {urljoin(path, link) for link in seen[path].links} - right:
            address, anchor = urldefrag(target)
            if "://" in address:
                continue
            ids = ids_at(address)
            if ids is None or (anchor and anchor not in ids and address.startswith("/docs")):
                broken.append(f"{path}: {target}")
                continue
            right.add(target)  # most links are on every page
            if address.startswith("/docs") and ids:
                waiting.append(address)
    assert broken == []
    assert "/docs/api" in done  # the reference of the API was walked too


def test_a_missing_page_is_reported_with_a_link(browser):
    answer = browser().get("/docs/guide/nothing")
    assert answer.status_code == 404
    assert 'href="/docs"' in answer.text
    assert browser().get("/docs/guide/nothing.md").status_code == 404


@pytest.mark.parametrize("name", ["nothing.png", "..%2f..%2fpyproject.toml", "%2e%2e%2fspeed.md"])
def test_only_pictures_of_the_guide_are_given_out(browser, name):
    assert browser().get(f"/docs/img/{name}").status_code == 404


def test_a_contents_list_links_to_the_headings_of_its_page(browser):
    html = browser().get("/docs/guide/relations").text
    contents = re.search(r'<aside class="docs-toc">(.*?)</aside>', html, re.DOTALL)[1]
    listed = re.findall(r'href="#([^"]+)"', contents)
    prose = html.partition('<div class="prose">')[2].partition('<aside class="docs-toc">')[0]
    assert listed == re.findall(r'<h2 id="([^"]+)"', prose)
    assert len(listed) > 4


# --- Drawing


def test_raw_html_in_markdown_is_text():
    drawn = rendering.render("# A\n\n<script>alert(1)</script>\n\n<img src=x onerror=alert(2)>", as_it_stands)
    assert "<script" not in drawn.html
    assert "<img" not in drawn.html


def test_links_that_would_run_something_are_no_links():
    drawn = rendering.render("[a](javascript:alert(1)) [b](data:text/html,x) ![c](vbscript:x)", as_it_stands)
    assert Parts(drawn.html).links == []


def test_code_is_escaped_coloured_by_classes_and_can_be_copied():
    drawn = rendering.render('```python\ndef f(x): return "<b>"  # why\n```\n', as_it_stands)
    assert '<span class="k">def </span>' in drawn.html
    assert '<span class="s">"&lt;b&gt;"' in drawn.html
    assert "style=" not in drawn.html
    assert "data-copy" in drawn.html
    shown = re.search(r"<code>(.*?)</code>", drawn.html, re.DOTALL)[1]
    assert re.sub(r"<[^>]+>", "", shown) == 'def f(x): return "&lt;b&gt;"  # why'


def test_code_in_an_unknown_language_is_unchanged():
    assert rendering.highlight("a < b", "nonsense") == "a &lt; b"


def test_headings_of_the_same_words_have_anchors_of_their_own():
    drawn = rendering.render("# A\n\n## Two words\n\n## Two words\n\n## `x`!", as_it_stands)
    assert [section.anchor for section in drawn.sections] == ["a", "two-words", "two-words-1", "x"]


def test_links_between_files_become_addresses_of_the_application():
    page = pages.find("guide/start")
    assert page.resolve("determinism.md#seeds") == "/docs/guide/determinism#seeds"
    assert page.resolve("../reference/connections.md") == "/docs/reference/connections"
    assert (
        page.resolve("../adr/0001-a-cell-is-a-pure-function.md") == "/docs/adr/0001-a-cell-is-a-pure-function"
    )
    assert page.resolve("../img/builder-wide-light.png") == "/docs/img/builder-wide-light.png"
    for link in ("https://example.org/a.md", "#here", "/docs/limits"):
        assert page.resolve(link) == link


def test_images_have_a_size_to_avoid_layout_shifts(tmp_path, monkeypatch):
    assert 'width="1280" height="800"' in pages.find("guide/start").rendered.html
    folder = tmp_path / "docs" / "img"
    folder.mkdir(parents=True)
    (folder / "chart.svg").write_text('<svg xmlns="x" class="c" viewBox="0 0 640 180.5"><path/></svg>')
    (folder / "odd.svg").write_text("<svg><path/></svg>")
    monkeypatch.setattr(rendering, "ROOT", tmp_path)
    assert rendering.image_size("/docs/img/chart.svg") == (640, 180)
    assert rendering.image_size("/docs/img/odd.svg") is None
    assert rendering.image_size("/docs/img/gone.png") is None
    assert rendering.image_size("https://example.org/docs/img/chart.svg") is None


def test_texts_from_data_are_unchanged_in_a_table():
    hostile = "a|b *c* [d](e) <f> \\ `g|h`"
    drawn = rendering.render(table(("A", "B"), [(text(hostile), code("`x`|y"))]), as_it_stands)
    assert "style=" not in rendering.render("| a |\n| --: |\n| 1 |\n", as_it_stands).html
    cells = [re.sub(r"<[^>]+>", "", item) for item in re.findall(r"<td>(.*?)</td>", drawn.html)]
    assert cells == ["a|b *c* [d](e) &lt;f&gt; \\ g|h", "`x`|y"]


# --- Pages that are written from data


def test_every_error_code_is_documented_with_its_status_cause_and_remedy(browser):
    assert set(reference.ADVICE) == set(CODES)
    html = browser().get("/docs/errors").text
    for name, (status, _) in CODES.items():
        section = html.partition(f'<h2 id="{name}">')[2].partition("<h2")[0]
        assert f"<strong>{status} " in section, name
        assert "Solution." in section, name


def test_the_limits_of_every_plan_are_listed(browser):
    html = browser().get("/docs/limits").text
    for name, plan in limits.PLANS.items():
        row = html.partition(f"<td>{name.capitalize()}</td>")[2].partition("</tr>")[0]
        result = (
            plan.requests_per_minute,
            plan.rows_per_hour,
            plan.rows_per_generation,
            limits.RUNS_AT_ONCE[name],
        )
        for number in result:
            assert f"<td>{number:,}</td>" in row, (name, number)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("MAX_BODY_BYTES", "10 MB"),
        ("MAX_REQUEST_LINE_BYTES", "8,190 bytes"),
        ("HTTP_TEMPLATE_BYTES", "100,000 bytes"),
        ("MAX_RUN_SECONDS", "1 h"),
        ("WAIT_SECONDS", "5 min"),
        ("RESTORE_DAYS", "30 days"),
        ("MAX_FIELDS", "500"),
    ],
)
def test_a_limit_is_shown_with_its_unit(name, expected):
    assert reference.value(name) == expected


def test_every_documented_limit_is_a_limit_of_the_service():
    names = [name for rows in reference.DOCUMENTED_LIMITS.values() for _, name in rows]
    assert [name for name in names if not isinstance(getattr(limits, name, None), int | float)] == []
    assert sorted(names) == sorted(set(names))


def test_the_changes_are_those_of_the_changelog(browser):
    first = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M)[1]
    assert first in browser().get("/docs/changelog").text


# --- Field types


@pytest.mark.parametrize("family", field_types.families(), ids=lambda item: item["name"])
def test_every_type_of_a_family_is_documented_with_its_options_and_rows_or_their_source(browser, family):
    html = browser().get(f"/docs/field-types/{family['name']}").text
    for item in family["types"]:
        section = html.partition(f'<h2 id="{item["name"]}">')[2].partition("<h2")[0]
        assert section, item["name"]
        kind = next(found for found in REGISTRY if found.name == item["name"])
        for option in field_types.model_keys(kind.Options):
            assert f"<td><code>{option['name']}</code>" in section, (item["name"], option["name"])
        rows = re.findall(r"<tr>\s*<td>\d</td>", section)
        assert len(rows) == (0 if item["name"] in field_types.EXTERNAL_SOURCES else limits.PREVIEW_ROWS), (
            item["name"]
        )


def test_the_rows_of_a_type_are_those_that_the_service_makes(browser, edith):
    fields = [{"name": "value", "type": "first_name"}]
    created = edith.post("/generate", json={"fields": fields, "seed": field_types.SEED, "count": 3}).json
    section = browser().get("/docs/field-types/person").text.partition('<h2 id="first_name">')[2]
    shown = re.findall(r"<td>\d</td>\s*<td><code>([^<]*)</code></td>", section.partition("<h2")[0])
    assert shown == [row["value"] for row in created]


def test_only_types_that_cannot_generate_a_single_row_are_shown_without_rows(app):
    names = {kind.name for kind in REGISTRY}
    assert {*field_types.OPTIONS, *field_types.SIBLING_FIELDS, *field_types.EXTERNAL_SOURCES} <= names
    for name in (*field_types.EXTERNAL_SOURCES, *field_types.OPTIONS):
        with app.app_context(), pytest.raises(ApiError):
            generate.preview_draft(None, DraftInput(fields=[{"name": "value", "type": name}]))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer", "minimum": 0, "maximum": 1000}, "whole number, 0 to 1,000"),
        ({"type": "integer", "minimum": 1, "maximum": 2**63 - 1}, "whole number, at least 1"),
        ({"type": "number", "maximum": 2.5}, "number, at most 2.5"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 10}, "number, more than 0, at most 10"),
        ({"type": "string", "minLength": 1, "maxLength": 200}, "text, 1 to 200 characters"),
        ({"type": "string", "minLength": 3, "maxLength": 3}, "text, 3 characters"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 50}, "list of text, at most 50 values"),
        ({"enum": ["a", "b"]}, '"a" or "b"'),
    ],
)
def test_an_option_is_documented_with_its_limits(schema, expected):
    assert field_types.schema_text(schema, {}) == expected


def test_common_keys_of_fields_are_documented(browser):
    assert set(field_types.COMMON_KEYS) == set(CommonKeys.model_fields) - {"unique_together"}
    html = browser().get("/docs/field-types/every-field").text
    for name in field_types.COMMON_KEYS:
        assert f"<td><code>{name}</code>" in html


def test_types_are_found_by_alias_and_listed_best_first(browser):
    html = browser().get("/docs/field-types?q=guid").text
    assert re.search(r'<li><a href="/docs/field-types/identity#(\w+)"', html)[1] == "uuid"
    assert "No matching type" in browser().get("/docs/field-types?q=nothing+like+it").text


# --- For programs that read


def test_llms_txt_has_its_form_and_every_link_leads_to_markdown(browser):
    reader = browser()
    answer = reader.get("/llms.txt")
    lines = answer.text.splitlines()
    assert answer.mimetype == "text/plain"
    assert lines[0] == "# Rowsmith"
    assert lines[2].startswith("> ")
    assert [line for line in lines if line.startswith("# ")] == lines[:1]
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): .+$", answer.text, re.M)
    assert len(links) == len(registry.ENTRIES)
    for link in links:
        path = "/" + link.split("/", 3)[3]
        with reader.get(path) as found:
            assert found.status_code == 200, link
            assert found.mimetype == "text/markdown" or path in ("/docs/api", "/docs/postman.json"), link
    assert "/docs)" in answer.text


def test_the_first_page_is_markdown_too(browser):
    answer = browser().get("/docs.md")
    assert answer.mimetype == "text/markdown"
    assert "(/docs/guide/start.md)" in answer.text
