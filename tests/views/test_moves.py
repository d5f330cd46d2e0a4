"""Objects between projects, projects between teams, teams deleted and restored."""

from __future__ import annotations

import pytest

from webapp.connections.models import Connection
from webapp.extensions import db
from webapp.scenarios.models import Run

ID = [{"name": "id", "type": "row_number"}]


def code(answer):
    return answer.status_code, answer.json["error"]["code"]


@pytest.fixture
def shop(api, cast):
    """Customers, their orders (which refer to them), a dataset of both, and an unrelated template."""
    edith = api(cast.edith)

    def made(path, **body):
        answer = edith.post(path, json=body)
        assert answer.status_code == 201, answer.text
        return answer.json["id"]

    customers = made("/templates", name="Customers", fields=ID)
    reference = {
        "name": "customer",
        "type": "reference",
        "options": {"template_id": customers, "field": "id"},
    }
    orders = made("/templates", name="Orders", fields=[*ID, reference])
    tables = [{"template_id": item} for item in (customers, orders)]
    return {
        "customers": customers,
        "orders": orders,
        "dataset": made("/datasets", name="Shop", templates=tables),
        "alone": made("/templates", name="Alone", fields=ID),
    }


def lies_in(program, object_id):
    kinds = {
        "tpl": "templates",
        "dst": "datasets",
        "con": "connections",
        "end": "endpoints",
        "scn": "scenarios",
    }
    return program.get(f"/{kinds[object_id[:3]]}/{object_id}").json["project_id"]


def test_a_single_object_is_moved_with_its_id_and_versions(api, cast, shop):
    edith = api(cast.edith)
    moved = edith.post(f"/projects/{cast.side}/move", json={"objects": [shop["alone"]]})
    assert moved.json == {"items": [{"type": "template", "id": shop["alone"], "name": "Alone"}], "total": 1}
    assert lies_in(edith, shop["alone"]) == cast.side
    assert shop["alone"] not in {item["id"] for item in edith.get("/templates").json["items"]}
    there = api(cast.edith, **{"X-Project-Id": cast.side})
    assert shop["alone"] in {item["id"] for item in there.get("/templates").json["items"]}
    entry = api(cast.adam).get("/audit?action=template.move").json["items"][0]
    assert entry["details"]["project"] == {"from": cast.main, "to": cast.side}
    again = edith.post(f"/projects/{cast.side}/move", json={"objects": [shop["alone"]]})
    assert again.json["total"] == 0


def test_related_objects_cannot_be_separated_and_are_listed(api, cast, shop):
    edith = api(cast.edith)
    refused = edith.post(f"/projects/{cast.side}/move", json={"objects": [shop["customers"]]})
    assert code(refused) == (409, "in_use")
    named = {item["id"] for item in refused.json["error"]["details"]["related"]}
    assert named == {shop["orders"], shop["dataset"]}
    assert lies_in(edith, shop["customers"]) == cast.main


def test_related_objects_move_along_and_generate_the_same_rows(api, cast, shop):
    edith = api(cast.edith)
    ask = {"count": 5, "seed": "s", "now": "2026-01-01T00:00:00Z"}
    before = edith.post(f"/templates/{shop['orders']}/generate", json=ask).json
    moved = edith.post(f"/projects/{cast.side}/move", json={"objects": [shop["orders"]], "related": "take"})
    assert {item["id"] for item in moved.json["items"]} == {
        shop["orders"],
        shop["customers"],
        shop["dataset"],
    }
    assert {lies_in(edith, shop[item]) for item in ("orders", "customers", "dataset")} == {cast.side}
    assert edith.post(f"/templates/{shop['orders']}/generate", json=ask).json == before


def test_moving_all_related_objects_needs_no_confirmation(api, cast, shop):
    ids = [shop[item] for item in ("orders", "customers", "dataset")]
    assert api(cast.edith).post(f"/projects/{cast.side}/move", json={"objects": ids}).json["total"] == 3


def test_within_a_team_the_rest_may_stay_and_in_another_it_may_not(api, cast, shop):
    edith = api(cast.edith)
    body = {"objects": [shop["orders"]], "related": "leave"}
    apart = edith.post(f"/projects/{cast.red_project}/move", json=body)
    assert apart.json["error"]["details"]["fields"][0]["path"] == "related"
    assert edith.post(f"/projects/{cast.side}/move", json=body).status_code == 200
    assert (lies_in(edith, shop["orders"]), lies_in(edith, shop["customers"])) == (cast.side, cast.main)


def test_both_projects_must_be_the_actors_to_write(api, cast, shop):
    body = {"objects": [shop["alone"]]}
    assert code(api(cast.tessa).post(f"/projects/{cast.red_project}/move", json=body)) == (404, "not_found")
    assert code(api(cast.victor).post(f"/projects/{cast.side}/move", json=body)) == (403, "forbidden")
    adam = api(cast.adam)
    adam.post("/members", json={"user_id": cast.tessa.user_id, "team_id": cast.red, "role": "viewer"})
    assert code(api(cast.tessa).post(f"/projects/{cast.red_project}/move", json=body)) == (403, "forbidden")
    assert api(cast.tessa).post(f"/projects/{cast.side}/move", json=body).status_code == 200


def test_objects_cannot_be_moved_to_or_from_another_workspace(api, cast, shop):
    mallory = api(cast.mallory)
    theirs = mallory.post("/templates", json={"name": "T", "fields": ID}).json["id"]
    assert code(mallory.post(f"/projects/{cast.main}/move", json={"objects": [theirs]})) == (404, "not_found")
    into = f"/projects/{cast.mallorys}/move"
    assert code(mallory.post(into, json={"objects": [shop["alone"]]})) == (404, "not_found")
    both = {"objects": [shop["alone"], theirs]}
    assert code(api(cast.edith).post(f"/projects/{cast.side}/move", json=both)) == (404, "not_found")
    assert lies_in(api(cast.edith), shop["alone"]) == cast.main


@pytest.mark.parametrize("strange", ["sec_01M7Y5BT16VAMSDNZ2PWHH1947", "exp_x", "nonsense", ""])
def test_objects_without_a_project_cannot_be_moved(api, cast, strange):
    answer = api(cast.edith).post(f"/projects/{cast.side}/move", json={"objects": [strange]})
    assert answer.json["error"]["details"]["fields"][0]["path"] == "objects[0]"


def test_a_scenario_takes_its_runs_and_an_endpoint_its_own_connection(app, api, cast):
    edith = api(cast.edith)
    scenario = edith.post("/scenarios", json={"name": "S", "code": "print(1)\n"}).json["id"]
    run = edith.post(f"/scenarios/{scenario}/run", json={}).json["run_id"]
    endpoint = edith.post("/endpoints", json={"name": "E", "url": "https://example.org/x"}).json["id"]
    body = {"objects": [scenario, endpoint]}
    going = edith.post(f"/projects/{cast.red_project}/move", json=body)
    assert code(going) == (409, "in_use")
    edith.delete(f"/scenarios/{scenario}/runs/{run}")
    assert edith.post(f"/projects/{cast.red_project}/move", json=body).json["total"] == 2
    with app.app_context():
        assert db.session.get_one(Run, run).team_id == cast.red
        own = db.session.query(Connection).filter_by(of_endpoint=True).one()
        assert (own.project_id, own.team_id) == (cast.red_project, cast.red)


def test_a_connection_goes_with_the_template_that_reads_it(api, cast):
    edith = api(cast.edith)
    result = {"name": "AI", "type": "sqlite", "settings": {"file": "moves.db"}}
    connection = edith.post("/connections", json=result).json["id"]
    fields = [
        {
            "name": "v",
            "type": "db_response",
            "options": {"connection_id": connection, "query": "SELECT 1 AS v", "column": "v"},
        }
    ]
    answer = edith.post("/templates", json={"name": "Reads", "fields": fields})
    assert answer.status_code == 201, answer.text
    refused = edith.post(f"/projects/{cast.side}/move", json={"objects": [answer.json["id"]]})
    assert [item["type"] for item in refused.json["error"]["details"]["related"]] == ["connection"]


def test_a_user_is_asked_on_a_page_and_continues_from_there(browser, cast, shop):
    edith = browser(cast.edith)
    request = edith.submit(f"/projects/{cast.side}/move", {"objects": shop["orders"]})
    assert request.status_code == 409
    assert "Move them too" in request.text
    assert "Move without" in request.text
    done = edith.submit(f"/projects/{cast.side}/move", {"objects": shop["orders"], "related": "take"})
    assert (done.status_code, done.headers["Location"]) == (303, "/templates")
    many = edith.submit(
        f"/projects/{cast.main}/move", {"objects": [shop["orders"], shop["dataset"], shop["customers"]]}
    )
    assert many.status_code == 303


# --- Projects and teams -------------------------------------------------------------------------------------


def test_a_project_in_another_team_is_reached_by_that_teams_members(api, cast, shop):
    adam, tessa = api(cast.adam), api(cast.tessa)
    assert tessa.get(f"/templates/{shop['alone']}").status_code == 200
    moved = adam.patch(f"/projects/{cast.main}", json={"team_id": cast.red})
    assert (moved.status_code, moved.json["team_id"]) == (200, cast.red)
    assert code(tessa.get(f"/templates/{shop['alone']}")) == (403, "forbidden")
    assert adam.get(f"/templates/{shop['alone']}").json["team_id"] == cast.red
    theirs = api(cast.mallory).get("/teams").json["items"][0]["id"]
    assert code(adam.patch(f"/projects/{cast.main}", json={"team_id": theirs})) == (422, "validation_error")


def test_a_team_is_deleted_once_it_is_empty_and_its_roles_come_back_with_it(api, cast):
    adam = api(cast.adam)
    refused = adam.delete(f"/teams/{cast.blue}")
    assert code(refused) == (409, "in_use")
    assert {item["id"] for item in refused.json["error"]["details"]["used_by"]} == {cast.main, cast.side}
    for project in (cast.main, cast.side):
        adam.patch(f"/projects/{project}", json={"team_id": cast.red})
    assert adam.delete(f"/teams/{cast.blue}").json["deleted_at"]
    assert code(api(cast.tessa).get("/projects")) == (403, "forbidden")
    assert cast.blue not in {item["id"] for item in adam.get("/teams").json["items"]}
    assert code(adam.delete(f"/teams/{cast.red}"))[0] == 409
    assert adam.post(f"/teams/{cast.blue}/restore").json["deleted_at"] is None
    assert api(cast.tessa).get("/projects").json["total"] == 0


def test_a_project_does_not_come_back_before_its_team(api, cast):
    adam = api(cast.adam)
    adam.delete(f"/projects/{cast.red_project}")
    adam.delete(f"/teams/{cast.red}")
    assert code(adam.post(f"/projects/{cast.red_project}/restore")) == (409, "conflict")
    adam.post(f"/teams/{cast.red}/restore")
    assert adam.post(f"/projects/{cast.red_project}/restore").status_code == 200
