"""Search over the documentation: what is found, in which order, and that nothing of a question is run."""

from __future__ import annotations

import re

import pytest

from webapp import limits
from webapp.documentation import pages, search
from webapp.documentation.api.reference import slug_of
from webapp.engine import processor_time
from webapp.engine.types.registry import REGISTRY
from webapp.errors import CODES
from webapp.web import hooks, openapi


def found(app, q: str) -> list[search.Result]:
    with app.test_request_context():
        return search.search(app, q)


def test_a_page_of_that_title_comes_before_headings_and_these_before_texts(app):
    results = found(app, "determinism")
    assert results[0].href == "/docs/guide/determinism"
    results = found(app, "idempotency_mismatch")
    assert results[0].href == "/docs/errors#idempotency_mismatch"
    assert [result.href for result in results[1:]]  # texts that name it follow


@pytest.mark.parametrize(
    ("alias", "name"),
    [("guid", "uuid"), ("surname", "last_name"), ("E-Mail", "email"), ("First Name", "first_name")],
)
def test_a_field_type_is_found_by_its_other_names(app, alias, name):
    kind = next(item for item in REGISTRY if item.name == name)
    assert found(app, alias)[0].href == f"/docs/field-types/{kind.category}#{name}"


def test_every_field_type_and_every_error_code_is_found_by_name(app):
    for kind in REGISTRY:
        links = [result.href for result in found(app, kind.name)[:3]]
        assert f"/docs/field-types/{kind.category}#{kind.name}" in links, (kind.name, links)
    for name in CODES:
        assert f"/docs/errors#{name}" in [result.href for result in found(app, name)[:3]], name


def test_every_operation_of_the_api_is_found_by_its_line(app):
    with app.test_request_context():
        document = openapi.build(app, hooks.NEWEST_VERSION)
    for path, methods in document["paths"].items():
        for method in methods:
            links = [result.href for result in found(app, f"{method} {path}")]
            assert any(link.endswith(f"/{slug_of(method, path)}") for link in links), (method, path)


def test_all_words_are_wanted(app):
    assert found(app, "seed offset") != []
    assert found(app, "seed zebrafish") == []
    assert found(app, "  ") == []
    assert found(app, "!?") == []


def test_words_are_marked_in_heading_and_excerpt(app):
    result = found(app, "quota_exceeded")[0]
    assert "<mark>quota_exceeded</mark>" in result.heading
    texts = [str(item.excerpt) for item in found(app, "landlock")]
    assert any(re.search("<mark>landlock</mark>", text, re.I) for text in texts)


def test_a_question_is_shown_as_text(browser):
    html = browser().get("/docs/search", query_string={"q": "<script>alert(1)</script> & more"}).text
    assert "<script>alert" not in html
    assert "&lt;script&gt;" in html
    html = browser().get("/docs/search", query_string={"q": "<b>"}, headers={"HX-Request": "true"}).text
    assert "<b>&lt;" not in html


def test_a_browser_that_searches_while_typing_gets_only_the_results(browser):
    html = browser().get("/docs/search?q=relations", headers={"HX-Request": "true"}).text
    assert html.lstrip().startswith("<ol")
    assert "<html" not in html
    whole = browser().get("/docs/search?q=relations").text
    assert html.strip() in whole


def test_an_empty_result_is_reported_and_an_empty_query_is_not(browser):
    head = {"HX-Request": "true"}
    assert "Nothing fits" in browser().get("/docs/search?q=zebrafish", headers=head).text
    assert browser().get("/docs/search?q=", headers=head).text.strip() == ""


def test_a_query_that_is_too_long_is_rejected(browser):
    answer = browser().get("/docs/search", query_string={"q": "x" * (limits.MAX_QUERY_TEXT + 1)})
    assert answer.status_code == 400


def test_an_excerpt_is_cut_around_the_word_in_any_script(app):
    part = search._indexed_section("/x", "Page", "Head", "İ" * 300 + " needle " + "hay " * 100)
    excerpt = search._excerpt(part, ["needle"])
    assert "needle" in excerpt
    assert len(excerpt) < 400


def test_pages_and_the_index_are_no_part_of_a_request(app):
    locale = pages.Page("locales/de_DE", "", lambda: pages.locale_page("de_DE"))
    with processor_time.CpuBudget(0.0):
        assert locale.rendered.sections
        assert search.search(app, "mail")
