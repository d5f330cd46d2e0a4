"""Behaviour that all resources share (lists, ETags, soft deletes), tested on projects and teams."""

from __future__ import annotations

import pytest


def code(answer):
    return answer.status_code, answer.json["error"]["code"]


@pytest.fixture
def teams(api, cast):
    """Adam, and 45 more teams: T00 to T44."""
    adam = api(cast.adam)
    for number in range(45):
        assert adam.post("/teams", json={"name": f"T{number:02}"}).status_code == 201
    return adam


def test_pages_follow_each_other_without_gap_or_repeat(teams):
    seen, cursor, sizes = [], "", []
    while True:
        page = teams.get(f"/teams?limit=20{cursor}").json
        assert sorted(page) == ["items", "next_cursor", "total"]
        assert page["total"] == 47
        seen += [item["name"] for item in page["items"]]
        sizes.append(len(page["items"]))
        if page["next_cursor"] is None:
            break
        cursor = "&cursor=" + page["next_cursor"]
    assert sizes == [20, 20, 7]
    assert sorted(seen) == sorted({*[f"T{n:02}" for n in range(45)], "Blue", "Red"})


def test_new_objects_do_not_shift_a_page(teams):
    first = teams.get("/teams?limit=10").json
    teams.post("/teams", json={"name": "Late"})
    second = teams.get(f"/teams?limit=10&cursor={first['next_cursor']}").json
    assert not {t["id"] for t in first["items"]} & {t["id"] for t in second["items"]}
    assert "Late" not in {t["name"] for t in second["items"]}


def test_twenty_come_without_a_limit(teams):
    assert len(teams.get("/teams").json["items"]) == 20


@pytest.mark.parametrize("limit", ["0", "101", "-1", "ten", "1.5", ""])
def test_a_limit_outside_1_to_100_is_400(api, cast, limit):
    assert code(api(cast.adam).get(f"/teams?limit={limit}")) == (400, "invalid_request")


def test_q_searches_names_without_case_and_takes_wildcards_literally(teams):
    teams.post("/teams", json={"name": "100% real_team"})
    assert teams.get("/teams?q=t4").json["total"] == 5
    assert teams.get("/teams?q=0%25").json["total"] == 1
    assert teams.get("/teams?q=l_t").json["total"] == 1
    assert teams.get("/teams?q=%25").json["total"] == 1


def test_a_cursor_of_another_list_search_or_workspace_is_400(teams, api, cast):
    cursor = teams.get("/teams?limit=2").json["next_cursor"]
    for who, path in (
        (cast.adam, f"/projects?cursor={cursor}"),
        (cast.adam, f"/teams?q=T&cursor={cursor}"),
        (cast.mallory, f"/teams?cursor={cursor}"),
        (cast.adam, f"/teams?cursor={cursor[:-2]}AA"),
        (cast.adam, "/teams?cursor=nonsense"),
        (cast.adam, "/teams?cursor=%C3%A4"),
    ):
        assert code(api(who).get(path)) == (400, "invalid_request"), path


def test_a_resource_carries_an_etag_and_an_unchanged_one_is_304(api, cast):
    adam = api(cast.adam)
    first = adam.get(f"/projects/{cast.main}")
    tag = first.headers["ETag"]
    again = adam.get(f"/projects/{cast.main}", headers={"If-None-Match": tag})
    assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", tag)
    assert adam.get(f"/projects/{cast.main}", headers={"If-None-Match": '"other"'}).status_code == 200


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
def test_if_match_of_an_older_state_is_412_and_changes_nothing(api, cast, method):
    adam = api(cast.adam)
    old = adam.get(f"/projects/{cast.side}").headers["ETag"]
    adam.patch(f"/projects/{cast.side}", json={"name": "Changed"})
    body = {"json": {"name": "Mine"}} if method == "PATCH" else {}
    clash = adam.open(method, f"/projects/{cast.side}", headers={"If-Match": old}, **body)
    assert code(clash) == (412, "version_conflict")
    present = adam.get(f"/projects/{cast.side}")
    assert present.json["name"] == "Changed"
    assert clash.json["error"]["details"]["etag"] == present.headers["ETag"]
    good = adam.open(method, f"/projects/{cast.side}", headers={"If-Match": present.headers["ETag"]}, **body)
    assert good.status_code == 200


def test_the_etag_of_a_change_is_that_of_the_next_read(api, cast):
    changed = api(cast.adam).patch(f"/projects/{cast.side}", json={"name": "N"})
    assert api(cast.adam).get(f"/projects/{cast.side}").headers["ETag"] == changed.headers["ETag"]


def test_deletes_are_soft_answer_with_the_object_and_can_be_taken_back(api, cast):
    adam = api(cast.adam)
    gone = adam.delete(f"/projects/{cast.side}")
    assert gone.status_code == 200
    assert gone.json["id"] == cast.side
    assert gone.json["deleted_at"].endswith("Z")
    assert adam.get(f"/projects/{cast.side}").status_code == 404
    assert cast.side not in {p["id"] for p in adam.get("/projects").json["items"]}
    back = adam.post(f"/projects/{cast.side}/restore")
    assert (back.status_code, back.json["deleted_at"]) == (200, None)
    assert adam.get(f"/projects/{cast.side}").status_code == 200


def test_a_deletion_older_than_30_days_is_not_taken_back(app, api, cast):
    from datetime import timedelta

    from webapp import clock
    from webapp.access.models import Project
    from webapp.extensions import db

    with app.app_context():
        db.session.get_one(Project, cast.side).deleted_at = clock.now() - timedelta(days=31)
        db.session.commit()
    assert api(cast.adam).post(f"/projects/{cast.side}/restore").status_code == 404


def test_the_last_project_cannot_be_deleted(api, cast):
    assert code(api(cast.mallory).delete(f"/projects/{cast.mallorys}")) == (409, "conflict")


def test_a_person_makes_and_deletes_with_plain_forms(browser, api, cast):
    adam = browser(cast.adam)
    result = adam.submit("/projects", {"name": "By hand", "description": ""})
    assert (result.status_code, result.headers["Location"]) == (303, "/projects")
    found = api(cast.adam).get("/projects?q=By hand").json["items"][0]
    gone = adam.submit(f"/projects/{found['id']}", method="DELETE")
    assert gone.status_code == 303
    assert api(cast.adam).get(f"/projects/{found['id']}").status_code == 404


def test_a_new_project_is_created_in_the_named_or_the_current_team(api, cast):
    assert api(cast.adam).post("/projects", json={"name": "A"}).json["team_id"] == cast.blue
    assert (
        api(cast.adam).post("/projects", json={"name": "B", "team_id": cast.red}).json["team_id"] == cast.red
    )


def test_a_project_in_anothers_team_is_422(api, cast):
    answer = api(cast.mallory).post("/projects", json={"name": "X", "team_id": cast.blue})
    assert code(answer) == (422, "validation_error")


def test_team_members_only_see_their_team(api, cast):
    tessa = api(cast.tessa)
    assert [t["id"] for t in tessa.get("/teams").json["items"]] == [cast.blue]
    assert {p["id"] for p in tessa.get("/projects").json["items"]} == {cast.main, cast.side}
    assert tessa.get(f"/projects/{cast.red_project}").status_code == 404
    assert tessa.get(f"/teams/{cast.red}").status_code == 404


def test_the_workspace_returns_its_plan_and_limits(api, cast):
    found = api(cast.victor).get("/workspace").json
    assert (found["id"], found["plan"]) == (cast.acme, "enterprise")
    assert found["limits"]["requests_per_minute"] == 6_000


def test_only_the_owner_changes_the_plan_and_only_enterprise_has_own_numbers(api, cast):
    refused = api(cast.adam).patch("/workspace", json={"plan": "free"})
    assert code(refused) == (403, "forbidden")
    assert refused.json["error"]["details"]["needs"] == "owner"
    assert api(cast.adam).patch("/workspace", json={"name": "Renamed"}).json["name"] == "Renamed"
    own = api(cast.olivia).patch("/workspace", json={"limits": {"rows_per_hour": 5_000}})
    assert own.json["limits"]["rows_per_hour"] == 5_000
    back = api(cast.olivia).patch("/workspace", json={"limits": {"rows_per_hour": None}})
    assert back.json["limits"]["rows_per_hour"] == 100_000_000
    no = api(cast.olivia).patch("/workspace", json={"plan": "pro", "limits": {"rows_per_hour": 5}})
    assert code(no) == (422, "validation_error")


def test_usage_counts_requests_and_rows(app, api, cast):
    from webapp import quotas
    from webapp.access import actors

    with app.app_context():
        quotas.reserve_rows(actors.system_actor(cast.acme), 40)
    found = api(cast.victor).get("/usage").json
    assert found["requests"]["used"] == 1
    rows = {key: found["rows"][key] for key in ("limit", "used", "left", "window_seconds")}
    assert rows == {"limit": 100_000_000, "used": 40, "left": 99_999_960, "window_seconds": 3_600}
    assert found["rows"]["next_at"] <= found["rows"]["resets_at"]


def test_openapi_documents_every_api_route_and_its_scope(app, api):
    from webapp.web import openapi

    document = api().get("/openapi.json").json
    assert document["openapi"] == "3.1.0"
    result = {(m.upper(), p) for p, item in document["paths"].items() for m in item}
    routes = {
        (method, openapi.path_of(rule))
        for rule, declaration in openapi.declared_routes(app)
        if not declaration.hidden
        for method in declaration.methods
    }
    assert result == routes
    scopes = document["paths"]["/teams"]
    assert (scopes["get"]["x-scope"], scopes["post"]["x-scope"]) == ("member", "admin")
    assert document["paths"]["/health/live"]["get"]["security"] == []


def test_openapi_documents_the_rejections_of_every_operation(api):
    paths = api().get("/openapi.json").json["paths"]
    assert [
        (method, path)
        for path, item in paths.items()
        for method, operation in item.items()
        if not {"414", "431"} <= operation["responses"].keys()
    ] == []


def test_every_route_is_declared(app):
    from webapp.web.routing import declaration_of

    undeclared = [r.rule for r in app.url_map.iter_rules() if declaration_of(app, r.endpoint) is None]
    assert undeclared == ["/static/<path:filename>"]
