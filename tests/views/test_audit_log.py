"""Searching the audit trail, as JSON, as lines and as a page; its seals, its retention."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from webapp import clock, limits
from webapp.audit.models import AuditEntry
from webapp.audit.services import seals, search
from webapp.extensions import write_session

BASE = {
    "action": "thing.made",
    "object_type": "template",
    "object_id": "tpl_1",
    "project_id": "prj_1",
    "user_id": "usr_1",
    "key_id": "key_1",
    "address": "192.0.2.1",
    "rows": 10,
    "details": {"seed": "abc", "name": "Müller_100%"},
}
OTHERS = [
    ("action=thing.other", {"action": "thing.other"}),
    ("kind=secret", {"object_type": "secret"}),
    ("object_id=tpl_2", {"object_id": "tpl_2"}),
    ("project_id=prj_2", {"project_id": "prj_2"}),
    ("user_id=usr_2", {"user_id": "usr_2"}),
    ("key_id=key_2", {"key_id": "key_2"}),
    ("address=198.51.100.7", {"address": "198.51.100.7"}),
    ("rows_min=11", {"rows": 11}),
    ("rows_max=9", {"rows": 9}),
    ("q=unlike", {"action": "very.UNLIKE.it"}),
    ("text=xyz-9", {"details": {"seed": "XYZ-9"}}),
    ("until=2026-01-02T00:00:00Z", {"at": "2026-01-01T00:00:00+00:00"}),
]


@pytest.fixture
def entries(app, cast):
    """Make entries that differ from `BASE` in what is said; returns their ids."""
    from datetime import datetime

    def make(*differences, workspace_id=None):
        result = []
        with app.app_context(), write_session() as session:
            for difference in differences:
                text = {**BASE, **difference}
                if "at" in text:
                    text["at"] = datetime.fromisoformat(text["at"])
                row = AuditEntry(workspace_id=workspace_id or cast.acme, **text)
                session.add(row)
                session.flush()
                result.append(row.id)
        return result

    return make


def ids_of(answer):
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json["items"]]


@pytest.mark.parametrize(("query", "difference"), OTHERS)
def test_every_filter_finds_what_it_says_and_nothing_else(api, cast, entries, query, difference):
    expected = entries({}, difference, {})[1]
    answer = api(cast.adam).get(f"/audit?{query}&address={difference.get('address', BASE['address'])}")
    assert ids_of(answer) == [expected]
    assert (answer.json["total"], answer.json["total_exact"]) == (1, True)


@pytest.mark.parametrize(("query", "difference"), OTHERS)
def test_lines_take_the_same_filters(api, cast, entries, query, difference):
    expected = entries({}, difference, {})[1]
    both = f"{query}&address={difference.get('address', BASE['address'])}"
    lines = api(cast.adam).get(f"/audit?format=jsonl&{both}").text.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [expected]


@pytest.mark.parametrize("text", ["Müller", "LLER_100%", "abc"])
def test_a_text_is_found_in_any_storage_format_of_details(api, app, cast, entries, text):
    from webapp.access import actors
    from webapp.audit.services import audit_log

    (first,) = entries({})
    with app.app_context():  # this way it is stored unescaped
        second = audit_log.record(
            actors.system_actor(cast.acme), "thing.made", ("template", "t"), **BASE["details"]
        )
    found = api(cast.adam).get("/audit", query_string={"text": text, "action": "thing.made"})
    assert set(ids_of(found)) == {first, second}


def test_wildcards_are_letters(api, cast, entries):
    entries({"details": {"name": "100x"}})
    assert ids_of(api(cast.adam).get("/audit?text=100%25x")) == []


def test_filters_are_joined_by_and(api, cast, entries):
    _, expected, *_ = entries({"user_id": "usr_2"}, {"user_id": "usr_2", "rows": 99}, {"rows": 99})
    assert ids_of(api(cast.adam).get("/audit?user_id=usr_2&rows_min=50")) == [expected]


def test_a_page_that_ends_early_continues_where_it_ended(api, cast, entries, monkeypatch):
    monkeypatch.setattr(limits, "AUDIT_WINDOW", 5)
    start = clock.now() - timedelta(hours=1)
    result = entries(
        *(
            {"at": (start + timedelta(seconds=n)).isoformat(), "rows": 99 if n in (1, 2, 17) else 1}
            for n in range(20)
        )
    )
    query, found, pages = "/audit?action=thing.made&rows_min=50", [], 0
    cursor = ""
    while True:
        answer = api(cast.adam).get(query + (f"&cursor={cursor}" if cursor else "")).json
        found += [item["id"] for item in answer["items"]]
        pages += 1
        cursor = answer["next_cursor"]
        if cursor is None:
            assert answer["searched_until"] is None
            break
        assert answer["searched_until"] is not None
    assert found == [result[17], result[2], result[1]]
    assert pages > 2
    first = api(cast.adam).get(query).json
    assert (first["total"], first["total_exact"]) == (1, False)


def test_more_than_the_counted_maximum_is_shown_as_at_least(api, cast, entries, monkeypatch):
    monkeypatch.setattr(limits, "AUDIT_MAX_COUNT", 3)
    entries(*[{}] * 5)
    found = api(cast.adam).get("/audit?action=thing.made&limit=2").json
    assert (found["total"], found["total_exact"]) == (3, False)


@pytest.mark.parametrize(
    "query", ["rows_min=-1", "rows_min=x", "since=monday", "text=" + "x" * 201, "colour=red"]
)
def test_a_filter_that_is_none_is_400(api, cast, query):
    assert api(cast.adam).get(f"/audit?{query}").status_code == 400


def test_the_trail_of_another_workspace_is_not_found_by_any_filter(api, cast, entries):
    entries({}, workspace_id=cast.mallory_inc)
    for query in (
        "object_id=tpl_1",
        "user_id=usr_1",
        "key_id=key_1",
        "project_id=prj_1",
        "text=abc",
        "kind=template",
    ):
        assert ids_of(api(cast.adam).get(f"/audit?action=thing.made&{query}")) == []
        assert api(cast.adam).get(f"/audit?format=jsonl&action=thing.made&{query}").text == ""


def test_the_page_has_the_filters_and_keeps_them_from_page_to_page(browser, cast, entries):
    entries(*[{"user_id": cast.edith.user_id, "rows": n} for n in range(25)])
    page = browser(cast.adam).get(f"/audit?user_id={cast.edith.user_id}&rows_min=2&since=2020-01-01T00:00&q=")
    assert page.status_code == 200
    assert f'selected value="{cast.edith.user_id}"' in page.text
    assert (
        f'rel="next" href="?user_id={cast.edith.user_id}&amp;since=2020-01-01T00%3A00%3A00Z&amp;rows_min=2&amp;cursor='
        in page.text
    )
    assert ">Edith</a>" in page.text
    assert "23 entries" in page.text


def test_the_page_shows_what_changed_and_stored_payloads_stay_inert(browser, cast, entries):
    entries({"details": {"changes": {"name": {"from": "<script>old</script>", "to": "<b>new</b>"}}}})
    page = browser(cast.adam).get("/audit?action=thing.made").text
    assert "<del>&lt;script&gt;old&lt;/script&gt;</del>" in page
    assert "<script>old" not in page
    assert "<b>new" not in page


def test_the_trail_is_for_admins(api, cast):
    for path in ("/audit", "/audit/seals", "/audit?format=jsonl"):
        assert api(cast.edith).get(path).status_code == 403
        assert api(cast.adam).get(path).status_code == 200


def test_seals_are_listed_newest_first(api, app, cast, entries):
    with app.app_context():
        seals.seal_all(clock.now())
    entries({})
    with app.app_context():
        seals.seal_all(clock.now())
    items = api(cast.adam).get("/audit/seals").json["items"]
    assert [item["number"] for item in items] == [2, 1]
    assert items[0]["previous"] == items[1]["hash"]
    assert "links" not in items[0]
    page = api(cast.adam).get("/audit/seals?limit=1").json
    assert api(cast.adam).get(f"/audit/seals?cursor={page['next_cursor']}").json["items"] == items[1:]


def test_lines_are_generated_while_they_are_read(app, cast, entries):
    """Lines are generated as a stream, not all in advance."""
    entries(*[{}] * 3)
    with app.app_context():
        batches = search.iter_entries(cast.acme, search.EntryFilter(action="thing.made"))
        assert len(next(batches)) == 3
        assert next(batches, None) is None


def test_how_long_entries_are_kept_is_a_setting_within_the_plan(api, cast):
    olivia = api(cast.olivia)
    least, most = limits.AUDIT_DAYS["enterprise"]
    answer = olivia.patch("/workspace", json={"settings": {"audit_retention_days": least}})
    assert answer.json["settings"]["audit_retention_days"] == least
    refused = olivia.patch("/workspace", json={"settings": {"audit_retention_days": least - 1}})
    assert refused.status_code == 422
    fault = refused.json["error"]["details"]["fields"][0]
    assert fault["path"] == "settings.audit_retention_days"
    assert str(least) in fault["message"]
    free = api(cast.mallory).patch(
        "/workspace", json={"settings": {"audit_retention_days": limits.AUDIT_DAYS["free"][1] + 1}}
    )
    assert free.status_code == 422
    assert most > least
