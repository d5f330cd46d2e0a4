"""Usage: row counts match the generated rows, request counts match the accepted requests, each by user and key."""

from __future__ import annotations

from datetime import timedelta

import pytest

from webapp import clock, limits
from webapp.access import actors
from webapp.audit.services import audit_log, seals
from webapp.extensions import db, read_session, redis_client, write_session
from webapp.metering import hourly
from webapp.metering.models import UsageHour

FIELDS = [{"name": "a", "type": "uuid"}]


@pytest.fixture
def made(api, cast):
    """What was generated: `{person: rows}` and the templates."""
    edith, tessa = api(cast.edith), api(cast.tessa)
    ids = [edith.post("/templates", json={"name": name, "fields": FIELDS}).json["id"] for name in ("A", "B")]
    for count in (10, 300):
        assert edith.post(f"/templates/{ids[0]}/generate", json={"count": count}).status_code == 200
    assert tessa.post(f"/templates/{ids[1]}/generate", json={"count": 7}).status_code == 200
    side = api(cast.edith, **{"X-Project-Id": cast.side})
    assert side.post("/generate", json={"fields": FIELDS, "count": 3}).status_code == 200
    return ids


def rows_by(api, cast, by, **query):
    request = "&".join(f"{name}={value}" for name, value in {"by": by, **query}.items())
    found = api(cast.olivia).get(f"/usage?{request}").json["history"]
    return {share["id"]: share["rows"] for share in found["shares"] if share["rows"]}, found


def expected(cast, made):
    return {
        "person": {cast.edith.user_id: 313, cast.tessa.user_id: 7},
        "key": {cast.edith.key_id: 313, cast.tessa.key_id: 7},
        "project": {cast.main: 317, cast.side: 3},
        "template": {made[0]: 310, made[1]: 7, "": 3},
    }


@pytest.mark.parametrize("by", ["person", "key", "project", "template"])
def test_rows_agree_with_what_was_generated_before_and_after_they_are_sealed(api, app, cast, made, by):
    required = expected(cast, made)[by]
    found, history = rows_by(api, cast, by)
    assert (found, history["rows"]) == (required, 320)
    with app.app_context():
        seals.seal_all(clock.now())
    found, history = rows_by(api, cast, by)
    assert (found, history["rows"]) == (required, 320)
    assert sum(step["rows"] for step in history["steps"]) == 320
    assert rows_by(api, cast, by, step="day")[0] == required


def test_rows_that_were_given_back_are_not_counted(api, app, cast, made):
    with app.app_context():
        who = actors.system_actor(cast.acme, cast.main)
        result = {"made": 100, "of": 300, "given_back": 200}
        audit_log.record(who, "template.generate_cut", ("template", made[0]), **result)
    assert rows_by(api, cast, "template")[0][made[0]] == 110
    with app.app_context():
        seals.seal_all(clock.now())
    assert rows_by(api, cast, "template")[0][made[0]] == 110


def test_an_interrupted_stream_only_counts_the_generated_rows(api, app, cast):
    edith = api(cast.edith)
    made = edith.post("/templates", json={"name": "Long", "fields": FIELDS}).json["id"]
    client = app.test_client(use_cookies=False)
    answer = client.post(f"/templates/{made}/generate", json={"count": 90_000}, headers=edith.headers)
    next(answer.iter_encoded())
    answer.close()
    used = edith.get("/usage").json["rows"]["used"]
    assert 0 < used < 90_000
    assert rows_by(api, cast, "template")[0] == {made: used}


def test_requests_agree_with_those_that_were_let_in_before_and_after_they_are_written_down(api, app, cast):
    with app.app_context():
        redis_client().flushdb()
    for _ in range(5):
        api(cast.edith).get("/me")
    api(cast.victor).get("/me")

    def told():
        shares = api(cast.olivia).get("/usage?by=person").json["history"]["shares"]
        return {share["id"]: share["requests"] for share in shares}

    assert told() == {cast.edith.user_id: 5, cast.victor.user_id: 1, cast.olivia.user_id: 1}
    with app.app_context():
        assert hourly.flush_requests() == 1
    assert told() == {cast.edith.user_id: 5, cast.victor.user_id: 1, cast.olivia.user_id: 2}


def test_requests_of_people_are_counted_without_a_key(app, browser, api, cast):
    browser(cast.edith).get("/templates")
    shares = api(cast.olivia).get("/usage?by=key").json["history"]["shares"]
    assert {share["id"]: share["requests"] for share in shares}[""] == 1


def test_requests_are_taken_over_once_whenever_the_sweeper_dies(api, app, cast, monkeypatch):
    with app.app_context():
        redis_client().flushdb()
    for _ in range(3):
        api(cast.edith).get("/me")
    with app.app_context():
        client, key = redis_client(), hourly.counts_key(cast.acme)
        hourly.flush_requests()
        stored = client.hgetall(key)
        assert stored == {}
        api(cast.edith).get("/me")
        # It dies after its commit and before it lets go of what it has taken over.
        monkeypatch.setattr(type(client), "delete", lambda *_: None)
        hourly.flush_requests()
        monkeypatch.undo()
        assert client.exists(f"{key}:apart")
        api(cast.edith).get("/me")
    shares = api(cast.olivia).get("/usage?by=person").json["history"]["shares"]
    assert {share["id"]: share["requests"] for share in shares}[cast.edith.user_id] == 5
    with app.app_context():
        hourly.flush_requests()
        hourly.flush_requests()
        with read_session() as session:
            mine = session.query(UsageHour).where(UsageHour.user_id == cast.edith.user_id)
            assert sum(hour.requests for hour in mine) == 5


def test_a_redis_that_is_emptied_loses_no_row(api, app, cast, made):
    with app.app_context():
        redis_client().flushdb()
    assert rows_by(api, cast, "person")[1]["rows"] == 320


def test_old_hours_are_reported_by_day(api, app, cast):
    hour = hourly.hour_of(clock.now()) - timedelta(days=3)
    with app.app_context(), write_session() as session:
        for number in range(2):
            at = hour.replace(hour=number)
            session.add(
                UsageHour(
                    workspace_id=cast.acme,
                    hour=at,
                    project_id="",
                    template_id="",
                    key_id="",
                    user_id="",
                    rows=5,
                    requests=2,
                )
            )
    start = (hour - timedelta(days=1)).strftime("%Y-%m-%dT00:00:00Z")
    found = api(cast.edith).get(f"/usage?step=day&from={start}").json["history"]
    day = {step["start"]: (step["rows"], step["requests"]) for step in found["steps"]}
    assert day[hour.strftime("%Y-%m-%dT00:00:00Z")] == (10, 4)
    assert len(found["steps"]) == 5


@pytest.mark.parametrize(
    "query",
    [
        "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
        "from=2020-01-01T00:00:00Z&step=hour",
        "from=2020-01-01T00:00:00Z&step=day",
        "by=colour",
        "range=1y",
        "from=yesterday",
    ],
)
def test_a_range_that_is_none_is_400(api, cast, query):
    assert api(cast.edith).get(f"/usage?{query}").status_code == 400


def test_usage_by_key_and_person_is_for_admins(api, cast):
    for by in ("key", "person"):
        answer = api(cast.edith).get(f"/usage?by={by}")
        assert (answer.status_code, answer.json["error"]["details"]["needs"]) == (403, "admin")
        assert api(cast.adam).get(f"/usage?by={by}").status_code == 200


def test_team_members_only_see_the_usage_of_their_projects(api, app, cast):
    red = api(cast.edith, **{"X-Project-Id": cast.red_project})
    assert red.post("/generate", json={"fields": FIELDS, "count": 50}).status_code == 200
    blue = api(cast.edith)
    assert blue.post("/generate", json={"fields": FIELDS, "count": 4}).status_code == 200
    found = api(cast.tessa).get("/usage?by=project").json["history"]
    assert found["rows"] == 4
    assert cast.red_project not in str(found)
    assert api(cast.mallory).get("/usage?by=project").json["history"]["rows"] == 0


def test_limits_report_the_remaining_quota_and_the_reset(api, app, cast):
    edith = api(cast.edith)
    before = edith.get("/usage").json
    assert (before["rows"]["used"], before["rows"]["resets_at"]) == (0, None)
    edith.post("/generate", json={"fields": FIELDS, "count": 9})
    found = edith.get("/usage").json
    rows, requests = found["rows"], found["requests"]
    assert (rows["used"], rows["left"]) == (9, rows["limit"] - 9)
    assert rows["next_at"] == rows["resets_at"] > before["history"]["end"][:10]
    assert requests["used"] + requests["left"] == requests["limit"]
    assert requests["next_at"] <= requests["resets_at"]
    assert found["near"] == []


def test_pages_warn_when_most_of_a_limit_is_used(api, app, browser, cast):
    mallory = api(cast.mallory)
    most = limits.PLANS["free"].rows_per_hour
    assert "are used" not in browser(cast.mallory).get("/templates").text
    mallory.post("/generate", json={"fields": FIELDS, "count": int(most * limits.USAGE_WARN_SHARE)})
    assert mallory.get("/usage").json["near"] == ["rows"]
    for path in ("/templates", "/usage"):
        assert "8,000 of 10,000 rows an hour are used" in browser(cast.mallory).get(path).text
    assert "are used" not in browser(cast.edith).get("/templates").text


def test_the_page_shows_charts_and_the_same_numbers_as_a_table(api, browser, cast, made):
    page = browser(cast.olivia).get("/usage?range=24h&by=person").text
    assert page.count('<figure class="chart"') == 2
    assert "320 in all" in page
    for name, rows in (("Edith", "313"), ("Tessa", "7")):
        assert f'{name}</td><td class="right num" data-label="rows">{rows}</td>' in page
    assert "style=" not in page
    for query in ("range=7d&by=template", "range=30d&by=project", "by=key"):
        assert browser(cast.olivia).get(f"/usage?{query}").status_code == 200


def test_hours_are_kept_for_a_year_and_a_month(app, cast):
    now = clock.now()
    with app.app_context(), write_session() as session:
        for days in (limits.USAGE_RETENTION_DAYS - 1, limits.USAGE_RETENTION_DAYS + 1):
            at = hourly.hour_of(now - timedelta(days=days))
            session.add(
                UsageHour(
                    workspace_id=cast.acme,
                    hour=at,
                    project_id="",
                    template_id="",
                    key_id="",
                    user_id="",
                    rows=1,
                    requests=0,
                )
            )
        session.flush()
        assert hourly.purge(session, now) == 1
    with app.app_context():
        db.session.remove()
