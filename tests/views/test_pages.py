"""Every page for people: there, small, safe without trusting what is stored, and with the parts each page has."""

from __future__ import annotations

import gzip
import re
import shutil
from html.parser import HTMLParser

import pytest
from werkzeug.test import TestResponse

from tests import pages
from tests.cast import Browser, Program
from tests.conftest import settings_for
from tests.forms.in_html import controls
from webapp import create_app, limits
from webapp.extensions import db, redis_client

PAGES = (
    *pages.PAGES,
    "/templates/new",
    "/templates/{template}",
    "/datasets/{dataset}",
    "/exports/{export}",
    "/connections/{connection}",
    "/connections/{connection}/edit",
    "/connections/{connection}/tables",
    "/templates/{template}/push?connection_id={connection}",
    "/datasets/{dataset}/push?connection_id={connection}",
    "/pushes/{push}",
    "/pushes/{push}/rows",
    "/used-by/{template}",
    "/used-by/{connection}",
    "/docs/field-types/person",
)
PUBLIC = ("/sign-in", "/sign-in/unknown", "/docs", "/docs/field-types", "/docs/field-types/time")
MOST_BYTES = 60_000  # compressed


@pytest.fixture(scope="module")
def drawn(peopled, shared_redis, tmp_path_factory) -> dict[str, TestResponse]:
    """Every page as Olivia sees it, drawn once, in a workspace whose every free text is a payload."""
    folder, cast = tmp_path_factory.mktemp("pages"), peopled[1]
    shutil.copyfile(peopled[0], folder / "pages.db")
    app = create_app(settings_for(f"sqlite:///{folder}/pages.db", shared_redis, folder))
    with app.app_context():
        redis_client().flushdb()
    program = Program(app, cast.olivia.key)
    named = pages.filled_with_payloads(program, cast)
    olivia = Browser(app, cast.olivia)
    answers = {path: olivia.get(path.format(**named)) for path in PAGES}
    with app.app_context():
        db.engine.dispose()
        redis_client().close()
    return answers


class Unsafe(HTMLParser):
    """What the Content-Security-Policy would refuse, or a browser would run."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        got = dict(attrs)
        bad = [name for name in got if name == "style" or name.startswith(("on", "hx-on"))]
        bad += [
            name for name, value in got.items() if (value or "").strip().lower().startswith("javascript:")
        ]
        if bad or tag == "style" or (tag == "script" and "src" not in got):
            self.found.append(f"<{tag} {bad}>")


def unsafe(html: str) -> list[str]:
    parser = Unsafe()
    parser.feed(html)
    return parser.found


@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_small_complete_and_safe_with_any_data(drawn, path):
    answer = drawn[path]
    html = answer.text
    assert answer.status_code == (404 if path == "/nowhere" else 200)
    assert answer.mimetype == "text/html"
    assert len(gzip.compress(html.encode())) < MOST_BYTES
    assert unsafe(html) == []
    assert "alert(1)</script>" not in html
    assert "49" not in re.findall(r"<h1[^>]*>(.*?)</h1>", html, re.DOTALL)
    assert html.count("<h1") == 1
    assert '<html lang="en"' in html
    assert 'href="#main"' in html
    assert len(re.findall(r"<title>[^<]+ · Rowsmith</title>", html)) == 1


@pytest.mark.parametrize("path", PUBLIC)
def test_a_public_page_needs_no_session(browser, path):
    answer = browser().get(path)
    assert answer.status_code == 200
    assert unsafe(answer.text) == []
    assert 'action="/sign-out"' not in answer.text


@pytest.mark.parametrize("path", PAGES)
def test_no_two_things_of_a_page_share_an_id(drawn, path):
    html = drawn[path].text
    found = re.findall(r'\sid="([^"]+)"', html)
    assert sorted(found) == sorted(set(found))


@pytest.mark.parametrize("path", PAGES)
def test_every_input_of_a_page_has_a_name_for_people(drawn, path):
    html = drawn[path].text
    labelled = set(re.findall(r'<label[^>]*\sfor="([^"]+)"', html))
    inside = "".join(re.findall(r"<label\b.*?</label>", html, re.DOTALL))
    for tag in re.findall(r"<(?:input|select|textarea)\b[^>]*>", html):
        own = re.search(r'\sid="([^"]+)"', tag)
        named = (
            "aria-label=" in tag or 'type="hidden"' in tag or (own and own[1] in labelled) or tag in inside
        )
        assert named, tag


def test_ten_fields_and_the_builder_stay_small(browser, cast):
    names = "id,first_name,last_name,email,phone,city,country,price,created_at,status"
    html = browser(cast.edith).get(f"/templates/new?names={names}").text
    assert len(gzip.compress(html.encode())) < MOST_BYTES


def test_a_forbidden_page_says_which_role_can_open_it(browser, cast):
    answer = browser(cast.victor).get("/templates/new")
    assert answer.status_code == 403
    assert "editor role" in answer.text


def test_a_search_narrows_a_list_and_says_when_nothing_fits(browser, cast, api):
    for name in ("Orders", "Customers"):
        api(cast.edith).post("/templates", json={"name": name, "fields": [{"name": "a", "type": "uuid"}]})
    edith = browser(cast.edith)
    assert ">Customers<" in re.sub(r"\s*([<>])\s*", r"\1", edith.get("/templates").text)
    assert ">Customers<" not in re.sub(r"\s*([<>])\s*", r"\1", edith.get("/templates?q=order").text)
    block = edith.get("/templates?q=nothing", headers={"HX-Request": "true"}).text
    assert "No templates match “nothing”" in block
    assert "<html" not in block


def test_a_list_is_sorted_by_name_either_way(browser, cast, api):
    for name in ("B", "A", "C"):
        api(cast.edith).post("/templates", json={"name": name, "fields": [{"name": "a", "type": "uuid"}]})
    edith = browser(cast.edith)
    for sort, expected in (("name", "ABC"), ("-name", "CBA")):
        html = edith.get(f"/templates?sort={sort}").text
        found = re.findall(r'<td class="main"><a [^>]*>\s*(\w)\s*</a>', html)
        assert "".join(found) == expected
        assert f'aria-sort="{"descending" if sort[0] == "-" else "ascending"}"' in html


def test_a_list_shows_when_a_template_last_generated_rows(browser, cast, api):
    program = api(cast.edith)
    created = program.post("/templates", json={"name": "A", "fields": [{"name": "a", "type": "uuid"}]}).json
    assert ">Never<" in browser(cast.edith).get("/templates").text
    program.post(f"/templates/{created['id']}/generate", json={"count": 42})
    assert "42 rows" in browser(cast.edith).get("/templates").text


def test_a_new_key_is_shown_once_with_a_call_to_try(browser, cast, api):
    edith = browser(cast.edith)
    form = {"name": "nightly", "scopes": "read", "expires_at": "", "project_id": cast.main}
    answer = edith.submit("/api-keys", form)
    key = re.search(r"rws_\w+_[\w-]+", answer.text)[0]
    assert answer.status_code == 201
    assert api(key).get("/templates").status_code == 200
    assert api(key).post("/templates", json={}).status_code == 403
    assert key not in edith.get("/api-keys").text


def test_an_invalid_key_form_is_shown_again_with_the_input(browser, cast):
    answer = browser(cast.edith).submit(
        "/api-keys", {"name": "x" * 300, "expires_at": "", "project_id": cast.main}
    )
    assert answer.status_code == 422
    assert controls(answer.text)["name"] == "x" * 300
    assert 'class="err"' in answer.text


def test_theme_and_keys_are_kept_by_the_browser(browser, cast):
    edith = browser(cast.edith)
    edith.submit("/session/preferences", {"theme": "dark", "keys": "off", "back": "//evil.example"})
    html = edith.get("/templates").text
    assert 'data-theme="dark"' in html
    assert 'data-keys="off"' in html


def test_preferences_do_not_redirect_to_other_sites(browser, cast):
    answer = browser(cast.edith).submit("/session/preferences", {"theme": "dark", "back": "//evil.example"})
    assert answer.location == "/"


def test_the_project_switch_lists_what_one_reaches(browser, cast):
    tessa = browser(cast.tessa).get("/templates").text
    assert "Side" in tessa
    assert cast.red_project not in tessa


def test_usage_shows_rows_by_day(browser, cast, api):
    created = (
        api(cast.edith).post("/templates", json={"name": "A", "fields": [{"name": "a", "type": "uuid"}]}).json
    )
    api(cast.edith).post(f"/templates/{created['id']}/generate", json={"count": 1234})
    page = browser(cast.edith).get("/usage").text
    assert "1,234 in all" in page
    assert page.count('<figure class="chart"') == 2


def test_a_person_who_asks_for_the_catalogue_gets_the_documents(browser, cast):
    answer = browser(cast.edith).get("/field-types?q=mail")
    assert (answer.status_code, answer.location) == (303, "/docs/field-types?q=mail")


def test_assets_are_cached_by_their_hash_and_others_are_revalidated(browser, cast):
    edith = browser(cast.edith)
    style = re.search(r'href="(/static/css/pages\.css\?v=\w+)"', edith.get("/templates").text)[1]
    for path, expected in ((style, limits.ASSET_SECONDS), ("/static/icons/chev.svg", None)):
        with edith.get(path) as answer:
            assert answer.cache_control.max_age == expected


@pytest.mark.parametrize(
    ("typed", "page"), [("/profile", "/me"), ("/settings", "/me"), ("/files", "/workspace/files")]
)
def test_addresses_that_people_type_lead_to_the_page(browser, cast, typed, page):
    answer = browser(cast.victor).get(typed)
    assert (answer.status_code, answer.headers["Location"]) == (303, page)
