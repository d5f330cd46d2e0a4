"""Programs written for `datamaker-py`, run unchanged against the application: only address and key are its own."""

from __future__ import annotations

import json

import pytest

from tests.fakes.echo_target import EchoTarget
from tests.views.targets import shop  # noqa: F401

FIELDS = """
FIELDS = [
    {"name": "first_name", "type": "First Name"},
    {"name": "last_name", "type": "Last Name"},
    {"name": "email", "type": "Derived", "options": {"value": "{{first_name}}.{{last_name}}@example.com"}},
]
IDS = (os.environ["DATAMAKER_PROJECT_ID"], os.environ["DATAMAKER_TEAM_ID"])
"""


@pytest.fixture
def scenario(api, cast):
    return api(cast.edith).post("/scenarios", json={"name": "S", "code": "print(1)\n"}).json["id"]


def test_templates_and_rows(run):
    run(f"""{FIELDS}
from datamaker.template import NumberField, UUIDField, WordsField, BooleanField, FloatField, CustomField
rows = dm.generate(Template(name="basic template", quantity=2, fields=FIELDS))
assert [list(row) for row in rows] == [["first_name", "last_name", "email"]] * 2, rows
typed = [NumberField("n", {{"min": 1, "max": 3}}), UUIDField("id"), WordsField("w", {{"count": 2}}),
         BooleanField("b"), FloatField("f", {{"min": 0, "max": 1}}), CustomField("c", ["x", "y"])]
assert len(dm.generate(Template(fields=typed, quantity=5))) == 5
made = dm.create_template({{"name": "T", "fields": FIELDS}}, *IDS)
assert dm.get_template(made["id"]) == made and [one["id"] for one in dm.get_templates()] == [made["id"]]
assert len(dm.generate_from_template_id(made["id"], 7)) == 7
assert len(dm.generate_from_template_id(made["id"])) == 10
made["name"] = "Other"
assert dm.update_template(made["id"], made)["name"] == "Other"
assert "message" in dm.delete_template(made["id"])
""")


def test_failures_raise_with_status_and_body(run):
    run("""
from datamaker.error import DataMakerAPIError
for call, status in ((lambda: dm.get_template("tpl_none"), 404), (lambda: dm.get_sets(), 404),
                     (lambda: dm.generate({"fields": [{"name": "a", "type": "Frist Name"}]}), 422)):
    try:
        call()
    except DataMakerAPIError as error:
        assert error.status_code == status and error.body["message"] and error.body["error"]["code"], error.body
    else:
        raise SystemExit("no failure")
""")


def test_calls_that_are_not_here_are_404_with_what_to_do_instead(run):
    run("""
from datamaker.error import DataMakerAPIError
for call in (dm.get_sets, dm.get_plans, dm.get_keymaps, dm.get_masking_policies, dm.get_shortcuts, dm.get_feedback,
             dm.get_template_folders, dm.get_endpoint_folders, lambda: dm.get_custom_data_types("x"),
             lambda: dm.get_tosca_datasets("x"), lambda: dm.delete_set("x"), lambda: dm.delete_plan("x"),
             lambda: dm.delete_shortcut("x")):
    try:
        call()
    except DataMakerAPIError as error:
        told = error.body["error"]
        assert (error.status_code, told["code"]) == (404, "not_found"), error.body
        assert told["details"]["hint"] in error.body["message"], error.body
    else:
        raise SystemExit("no failure")
""")


def test_connections_with_test_and_tables(run, shop):  # noqa: F811
    run(f"""{FIELDS}
made = dm.create_connection("C", "sqlite", "sqlite:///of-a-client.db", "me", *IDS, read_only=True)
assert made["readOnly"] and made["id"] in [one["id"] for one in dm.get_connections()]
assert dm.update_connection(made["id"], "D", "sqlite", "sqlite:///of-a-client.db", "me", *IDS)["name"] == "D"
assert "message" in dm.delete_connection(made["id"])
assert dm.test_connection({{"type": "sqlite", "connectionString": "sqlite:///of-a-client.db"}})["success"]
assert {{one["table_name"] for one in dm.get_tables()}} == {{"customers", "orders"}}
""")


def test_rows_go_to_a_database(run, shop, worker):  # noqa: F811
    run(f"""
rows = dm.generate(Template(fields=[{{"name": "email", "type": "E-Mail", "unique": True}}], quantity=3))
values = ", ".join("('" + row["email"].replace("'", "''") + "')" for row in rows)
query = "INSERT INTO customers (email) VALUES " + values
assert dm.export_to_database({{"connectionId": {shop.connection_id!r}, "query": query}})["rowCount"] == 3
query = "SELECT email FROM customers ORDER BY id"
assert dm.export_to_database({{"connectionId": {shop.connection_id!r}, "query": query}})["rows"] == rows
""")
    assert shop.count("customers") == 3


def test_endpoints_and_rows_to_one(run, worker):
    with EchoTarget() as target:
        run(f"""{FIELDS}
made = dm.create_endpoint({{"name": "E", "method": "POST", "url": {target.url("/rows")!r}, "createdBy": "me",
                            "projectId": IDS[0], "teamId": IDS[1]}})
assert dm.get_endpoint(made["id"]) == made and [one["id"] for one in dm.get_endpoints()] == [made["id"]]
answer = dm.export_to_rest({{"endpointId": made["id"], "data": [{{"a": 1}}, {{"a": 2}}]}})
assert answer["response"]["status"] == 201 and answer["counts"]["delivered"] == 2, answer
assert dm.update_endpoint(made["id"], {{**made, "name": "F"}})["name"] == "F"
assert "message" in dm.delete_endpoint(made["id"])
""")


def test_files_of_a_scenario_in_all_their_ways(run, scenario):
    text = """
from pathlib import Path
one = dm.create_scenario_file("in/a.json", json.dumps({"a": 1}))
two = dm.create_scenario_file("b.bin", bytes(range(256)))
assert one["name"] == "in/a.json" and one["folder"] == "uploads", one
Path("out.csv").write_bytes(b"a,b\\r\\n" + b"1,2\\r\\n" * 100_000)
three = dm.save_file("out.csv", folder="outputs")
assert three["folder"] == "outputs" and three["name"] == "out.csv" and three["size"] == 500_005, three
four = dm.upload_scenario_file_from_path("out.csv", name="renamed.csv")
listed = dm.get_scenario_files()
assert {each["id"] for each in listed["files"]} == {each["id"] for each in (one, two, three, four)}
assert [each["id"] for each in dm._scenario_files.get_scenario_files(folder="outputs")["files"]] == [three["id"]]
assert dm.get_scenario_file(one["id"])["filename"] == "in/a.json"
assert dm.download_scenario_file(two["id"]) == bytes(range(256))
assert dm.download_scenario_file(three["id"]) == Path("out.csv").read_bytes()
dm.download_scenario_file_to_path(one["id"], "back.json")
assert json.loads(Path("back.json").read_text()) == {"a": 1}
assert dm.read_file_by_path(three["key"]) == Path("out.csv").read_bytes()
assert json.loads(dm.read_file_by_path_as_text("in/a.json")) == {"a": 1}
assert dm.delete_scenario_file(two["id"]) == {"success": True}
assert len(dm.get_scenario_files()["files"]) == 3
"""
    run(text, DATAMAKER_SCENARIO_ID=scenario)


def test_keys_projects_teams_and_people(run, cast):
    run(
        """
assert dm.validate_api_key()["message"]
key = dm.create_api_key("ignored", "READ", "CI")
assert DataMaker(api_key=key["key"]).get_templates() == []
assert DataMaker(default_headers={"Authorization": key["key"], "X-API-Key": None}).get_templates() == []
assert dm.update_api_key(key["id"], "ignored", "CD")["name"] == "CD"
assert key["id"] in [one["id"] for one in dm.get_api_keys()]
assert "message" in dm.delete_api_key(key["id"])
team = dm.create_team({"name": "Green"})
assert dm.update_team(team["id"], {"name": "Grey"})["name"] == "Grey" and len(dm.get_teams()) == 3
project = dm.create_project({"name": "P"}, team["id"])
assert dm.get_project(project["id"]) == project and len(dm.get_projects()) == 4
assert dm.update_project(project["id"], {"name": "Q"})["name"] == "Q"
assert "message" in dm.delete_project(project["id"])
assert dm.setup_team({"name": "New"})["project"]["id"]
me = dm.get_current_user()
assert me["email"] == "adam@example.org" and me["id"] in [one["id"] for one in dm.get_users()]
assert dm.patch_user(me["id"], {"lastName": "Smith"})["lastName"] == "Smith"
invited = dm.invite_team_member({"email": "new@example.org", "teamId": team["id"], "role": "MEMBER"})
assert invited["success"]
member = dm.add_team_member({"userId": VICTOR, "teamId": team["id"], "role": "MEMBER"})
assert dm.update_team_member(member["id"], {"role": "ADMIN"})["role"] == "ADMIN"
assert member["id"] in [one["id"] for one in dm.get_team_members()]
assert "message" in dm.remove_team_member(member["id"])
""".replace("VICTOR", json.dumps(cast.victor.user_id)),
        cast.adam,
    )
