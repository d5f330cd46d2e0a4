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
for call, status in ((lambda: dm.get_template("tpl_none"), 404), (lambda: dm.get_set("cmp_none"), 404),
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
for call in (dm.get_shortcuts, dm.get_feedback, lambda: dm.get_tosca_datasets("x"), lambda: dm.delete_shortcut("x"),
             lambda: dm.delete_feedback("x"), lambda: dm.create_user({}, "x"), lambda: dm.delete_team("x")):
    try:
        call()
    except DataMakerAPIError as error:
        told = error.body["error"]
        assert (error.status_code, told["code"]) == (404, "not_found"), error.body
        assert told["details"]["hint"] in error.body["message"], error.body
    else:
        raise SystemExit("no failure")
""")


def test_sets(run):
    run("""
from datamaker.error import DataMakerAPIError
rows = dm.generate(Template(fields=[{"name": "n", "type": "Number"}], quantity=3))
saved = dm.save_set("nightly", rows, description="of a test")
assert (saved["rowCount"], saved["locked"], saved["data"]) == (3, False, rows), saved
assert dm.get_set(saved["id"])["data"] == rows
listed = dm.get_sets()
assert [each["id"] for each in listed] == [saved["id"]] and "data" not in listed[0], listed
empty = dm.create_set("empty")
assert empty["rowCount"] == 0 and {each["id"] for each in dm.get_sets()} == {saved["id"], empty["id"]}
assert dm.update_set(saved["id"], name="weekly", data=rows[:1])["rowCount"] == 1
assert "message" in dm.delete_set(saved["id"])
try:
    dm.get_set(saved["id"])
except DataMakerAPIError as error:
    assert error.status_code == 404
else:
    raise SystemExit("it is still there")
""")


def test_keymaps(run):
    run("""
entries = {f"MAT-{i:05}": str(700_000 + i) for i in range(5_000)}
put = dm.keymap_put("sap", "Material", entries, run_id="run 1")
assert put == {"mapName": "sap", "object": "Material", "upserted": 5_000}, put
dm.keymap_put("sap", "Material", {"MAT-00001": "new"})
dm.keymap_put("sap", "Partner", {"BP-1": "9"})
found = dm.keymap_lookup("sap", "Material", ["MAT-00001", "MAT-00002", "MAT-none"])
assert found["mappings"] == {"MAT-00001": "new", "MAT-00002": "700002"} and found["missing"] == ["MAT-none"], found
assert [(each["object"], each["entryCount"]) for each in dm.get_keymaps()] == [("Material", 5_000), ("Partner", 1)]
page = dm.get_keymap_entries("sap", "Material", page=2, page_size=100)
assert (page["total"], page["page"], page["entries"][0]["oldKey"]) == (5_000, 2, "MAT-00100"), page
assert page["entries"][0]["runId"] == "run 1"
assert dm.delete_keymap("sap", "Partner")["deleted"] == 1
assert dm.delete_keymap("sap")["deleted"] == 5_000 and dm.get_keymaps() == []
""")


def test_masking_policies(run):
    run("""
rules = [{"field": "email", "strategy": "hash"}, {"field": "name", "strategy": "faker-replace"}]
made = dm.create_masking_policy("GDPR", rules, description="d", key_map_name="people")
assert (made["fields"], made["consistent"], made["reversible"]) == (rules, True, False), made
assert dm.get_masking_policy(made["id"]) == made and dm.get_masking_policies() == [made]
changed = dm.update_masking_policy(made["id"], name="GDPR 2", keyMapName=None)
assert (changed["name"], changed["keyMapName"], changed["fields"]) == ("GDPR 2", None, rules), changed
assert "message" in dm.delete_masking_policy(made["id"]) and dm.get_masking_policies() == []
""")


def test_plans(run):
    run("""
plan = dm._plans._make_request("POST", "/plans/save", json={"title": "Load SAP", "spec": {"steps": ["one"]}}).json()
assert dm.get_plan(plan["id"]) == plan and dm.get_plans() == [plan]
assert (plan["status"], plan["spec"]["steps"], plan["spec"]["entities"]) == ("draft", ["one"], []), plan
changed = dm.update_plan(plan["id"], title="Load all", status="approved")
assert (changed["title"], changed["status"], changed["spec"]) == ("Load all", "approved", plan["spec"])
assert dm.delete_plan(plan["id"]) == {"success": True} and dm.get_plans() == []
""")


def test_custom_data_types(run):
    run(f"""{FIELDS}
config = {{"type": "Number", "options": {{"min": 5, "max": 5}}}}
sent = {{"name": "Grade", "fieldConfig": config, "projectId": IDS[0], "teamId": IDS[1], "createdBy": "me"}}
made = dm.create_custom_data_type(sent)
assert made["fieldConfig"] == config and dm.get_custom_data_types(IDS[0]) == [made]
rows = dm.generate(Template(fields=[{{"name": "g", "type": "Grade"}}], quantity=3))
assert rows == [{{"g": 5}}] * 3, rows
template = dm.create_template({{"name": "T", "fields": [{{"name": "g", "type": "Grade"}}]}}, *IDS)
assert dm.generate_from_template_id(template["id"], 2) == [{{"g": 5}}] * 2
assert dm.update_custom_data_type(made["id"], {{**made, "name": "Mark"}})["name"] == "Mark"
assert "message" in dm.delete_custom_data_type(made["id"]) and dm.get_custom_data_types(IDS[0]) == []
""")


def test_folders(run):
    run(f"""{FIELDS}
place = {{"projectId": IDS[0], "teamId": IDS[1], "createdBy": "me"}}
folder = dm.create_template_folder({{"name": "HR", **place}})
assert [each["id"] for each in dm.get_template_folders()] == [folder["id"]]
made = dm.create_template({{"name": "T", "fields": FIELDS, "templateFolderId": folder["id"]}}, *IDS)
assert (made["name"], made["templateFolderId"]) == ("T", folder["id"]), made
assert dm.get_template(made["id"]) == made
assert dm.update_template_folder(folder["id"], {{**folder, "name": "People"}})["name"] == "People"
again = dm.get_template(made["id"])
assert (again["name"], again["templateFolderId"]) == ("T", folder["id"]), again
moved = dm.update_template(made["id"], {{**again, "templateFolderId": None}})
assert (moved["name"], moved["templateFolderId"]) == ("T", None), moved
assert "message" in dm.delete_template_folder(folder["id"]) and dm.get_template_folders() == []
folder = dm.create_endpoint_folder({{"name": "Shop", **place}})
assert [each["id"] for each in dm.get_endpoint_folders()] == [folder["id"]]
sent = {{"name": "E", "method": "POST", "url": "http://127.0.0.1:9/rows", "endpointFolderId": folder["id"], **place}}
endpoint = dm.create_endpoint(sent)
connection = dm.create_connection("C", "sqlite", "sqlite:///f.db", "me", *IDS, endpoint_folder_id=folder["id"])
for each in (endpoint, connection):
    assert each["endpointFolderId"] == folder["id"] and each["name"] in "EC", each
assert dm.update_endpoint_folder(folder["id"], {{**folder, "name": "Store"}})["name"] == "Store"
assert dm.get_endpoint(endpoint["id"])["endpointFolderId"] == folder["id"]
assert [each["endpointFolderId"] for each in dm.get_connections()] == [folder["id"]]
assert dm.delete_endpoint_folder(folder["id"])["name"] == "Store"
assert dm.get_endpoint(endpoint["id"])["name"] == "Store/E"
""")


def test_connections_with_test_and_tables(run, shop):
    run(f"""{FIELDS}
made = dm.create_connection("C", "sqlite", "sqlite:///of-a-client.db", "me", *IDS, read_only=True)
assert made["readOnly"] and made["id"] in [one["id"] for one in dm.get_connections()]
assert dm.update_connection(made["id"], "D", "sqlite", "sqlite:///of-a-client.db", "me", *IDS)["name"] == "D"
assert "message" in dm.delete_connection(made["id"])
assert dm.test_connection({{"type": "sqlite", "connectionString": "sqlite:///of-a-client.db"}})["success"]
assert {{one["table_name"] for one in dm.get_tables()}} == {{"customers", "orders"}}
""")


def test_rows_go_to_a_database(run, shop, worker):
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
