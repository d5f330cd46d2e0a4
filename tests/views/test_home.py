"""The home page: checklist, live sample, starters; and the search over everything."""

from __future__ import annotations

import re

import pytest

from tests.cast import Browser
from webapp.home import search
from webapp.starters.catalogue import STARTERS

FIELDS = [{"name": "id", "type": "row_number"}, {"name": "city", "type": "city"}]


@pytest.fixture
def edith(app, cast) -> Browser:
    return Browser(app, cast.edith)


def steps(browser: Browser) -> int:
    """The number of steps that the checklist shows as done."""
    found = re.search(r"(\d) of 5 done", browser.get("/").text)
    assert found is not None
    return int(found[1])


def test_steps_tick_themselves(api, cast, edith):
    program = api(cast.edith)
    assert steps(edith) == 0
    template = program.post("/templates", json={"name": "Cities", "fields": FIELDS}).json
    assert steps(edith) == 2  # there are rows to see, and fields were set
    program.post(f"/templates/{template['id']}/generate", json={"count": 5})
    assert steps(edith) == 3
    page = edith.get("/").text
    assert "Connect a database" in page
    assert page.index("live sample") < page.index("<td")


def test_the_checklist_can_be_hidden(edith):
    assert "Get started" in edith.get("/").text
    edith.submit("/session/checklist")
    assert "Get started" not in edith.get("/").text


def test_the_sample_changes_with_the_seed_and_is_the_same_for_the_same(api, cast, edith):
    api(cast.edith).post("/templates", json={"name": "Cities", "fields": FIELDS})
    ask = {"HX-Request": "true"}
    first, again, other = (edith.get(f"/?seed={seed}", headers=ask).text for seed in ("a", "a", "b"))
    cells = [re.findall(r"<td[^>]*>([^<]*)</td>", page) for page in (first, again, other)]
    assert cells[0] == cells[1]
    assert cells[0] != cells[2]
    assert len(cells[0]) == 18


@pytest.mark.parametrize("key", list(STARTERS))
def test_a_starter_becomes_a_dataset_whose_tables_refer_to_each_other(api, cast, edith, key):
    page = edith.get(f"/starters/{key}")
    assert page.status_code == 200
    assert api(cast.edith).get("/templates").json["total"] == 0  # looking saves nothing
    answer = edith.submit(f"/starters/{key}")
    assert answer.status_code == 303, re.findall(r"<li>(.*?)</li>", answer.text)[-8:]
    where = answer.headers["Location"]
    program = api(cast.edith)
    dataset = program.get(where).json
    assert len(dataset["templates"]) == len(STARTERS[key].tables)
    preview = program.post(f"{where}/preview", json={"seed": "s"})
    assert preview.status_code == 200, preview.json
    tables = {table["name"]: table["rows"] for table in preview.json["tables"]}
    assert set(tables) == {table["name"] for table in STARTERS[key].tables}
    assert all(tables.values())


def test_a_table_of_a_starter_opens_as_an_unsaved_draft(api, cast, edith):
    page = edith.get("/templates/new?starter=shop.customers").text
    assert 'value="zip_code"' in page or "zip_code" in page
    assert api(cast.edith).get("/templates").json["total"] == 0
    assert edith.get("/templates/new?starter=shop.nothing").status_code == 200


def found(browser: Browser, q: str) -> list[tuple[str, str]]:
    """Address and text of the results."""
    page = browser.get("/search", query_string={"q": q}, headers={"HX-Request": "true"}).text
    hits = re.findall(r'<a href="([^"]+)"[^>]*>(.*?)</a>', page, re.DOTALL)
    return [(href, re.sub(r"<[^>]+>", "", text).strip()) for href, text in hits]


@pytest.mark.parametrize("q", ["shop cust", "customers", "custmers", "cutsomers", "SHOP", "ustom"])
def test_search_finds_objects_with_typing_errors(api, cast, edith, q):
    template = api(cast.edith).post("/templates", json={"name": "Shop customers", "fields": FIELDS}).json
    assert found(edith, q)[0][0] == f"/templates/{template['id']}"


def test_search_finds_actions_field_types_and_docs(edith):
    assert "/templates/new" in [href for href, _ in found(edith, "new temp")]
    assert any("#iban" in href for href, _ in found(edith, "ibna"))
    assert any(href.startswith("/docs/") for href, _ in found(edith, "masking"))


def test_a_sign_in_front_finds_actions_only(api, cast, edith):
    api(cast.edith).post("/templates", json={"name": "New things", "fields": FIELDS})
    hits = found(edith, "> new")
    assert hits
    assert not any(re.search(r"/tpl_", href) for href, _ in hits)


def test_search_shows_no_objects_of_other_projects(app, api, cast):
    api(cast.edith).post("/templates", json={"name": "Shop customers", "fields": FIELDS})
    hits = found(Browser(app, cast.mallory), "shop customers")
    assert not any("tpl_" in href for href, _ in hits)


def test_search_marks_words_and_escapes_names(api, cast, edith):
    api(cast.edith).post("/templates", json={"name": "<b>Shop</b> & co", "fields": FIELDS})
    page = edith.get("/search?q=shop", headers={"HX-Request": "true"}).text
    assert "&lt;b&gt;<mark>Shop</mark>&lt;/b&gt; &amp; co" in page


def test_viewers_are_not_offered_what_they_may_not_do(app, cast):
    assert "/templates/new" not in [href for href, _ in found(Browser(app, cast.victor), ">")]


def test_search_for_many_words_that_nearly_match_long_names_does_not_occupy_the_process(monkeypatch):
    compared = 0
    nearly = search.catalogue.is_near_match

    def counted(typed: str, word: str) -> bool:
        nonlocal compared
        compared += 1
        return nearly(typed, word)

    monkeypatch.setattr(search.catalogue, "is_near_match", counted)
    name = " ".join([*(f"{letter}yzvw" for letter in "abcdefghijklmnopqrstu"), "xyzvw"] * 4)
    query = " ".join(f"xyzv{letter}" for letter in "abcdefghijklmnopqrstuvwxyz" * 2)
    search.rank(name, search.query_words(query))
    assert 0 < compared <= 256  # of 2,400 names each, in one request
