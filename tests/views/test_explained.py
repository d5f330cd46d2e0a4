"""What the builder tells of a field's values."""

from __future__ import annotations

from tests.views.builder_page import Editor, send
from webapp.builder.views import drafts


def test_numbers_have_a_histogram_whose_bars_count_every_value():
    found = drafts.summarize_values([*range(1000), None])
    assert (found["count"], found["blank"], found["distinct"]) == (1001, 1, 1000)
    assert found["numbers"] == (0, 499.5, 999)
    assert sum(int(bar["title"].rsplit(" ", 1)[1]) for bar in found["bars"]) == 1000
    assert max(bar["height"] for bar in found["bars"]) == drafts.MAX_BAR_HEIGHT


def test_one_number_over_and_over_is_one_bar():
    found = drafts.summarize_values([7] * 10)
    assert [bar["height"] for bar in found["bars"]] == [drafts.MAX_BAR_HEIGHT] + [0] * (
        drafts.HISTOGRAM_BARS - 1
    )


def test_values_that_repeat_are_listed_the_most_common_first():
    found = drafts.summarize_values(["a"] * 5 + ["b"] * 20 + ["c"])
    assert [(item["text"], item["width"]) for item in found["top"]] == [("b", 100), ("a", 25), ("c", 5)]


def test_an_empty_sample_has_no_results():
    found = drafts.summarize_values([None, None])
    assert (found["distinct"], found["bars"], found["top"]) == (0, [], [])


def test_values_are_found_in_objects_and_in_every_element_of_arrays():
    rows = [{"a": {"b": [{"c": 1}, {"c": 2}]}}, {"a": None}, {"a": {"b": []}}]
    assert list(drafts.values_at(rows, ["a", "b", "c"])) == [1, 2]


def test_a_field_is_explained_and_no_rows_are_spent(browser, api, cast):
    page = Editor(browser(cast.edith), "/templates/new?names=price,status")
    used = api(cast.edith).get("/usage").json["rows"]["used"]
    for name, result in (("price", "Distribution of 1,000 values"), ("status", "closed")):
        assert (
            result
            in send(page.browser, "/builder/explain", page.inputs, do=f"explain:{page.keys[name]}").text
        )
    assert api(cast.edith).get("/usage").json["rows"]["used"] == used


def test_a_field_with_an_error_has_no_distribution_and_the_others_do(browser, cast):
    page = Editor(browser(cast.edith), "/templates/new?names=price,status")
    page.open("price")
    page.fill(o_min="9", o_max="1")
    page.press("set")
    answers = {
        name: send(page.browser, "/builder/explain", page.inputs, do=f"explain:{page.keys[name]}").text
        for name in ("price", "status")
    }
    assert "no values until its errors are fixed" in answers["price"]
    assert "closed" in answers["status"]
