"""The client of a scenario against the application itself: the specification's table, method by method."""

from __future__ import annotations

import inspect
import json

import pytest
import rowsmith
from rowsmith import AIField, CustomField, NumberField, ServiceError, Template, error
from rowsmith.fields import BooleanField, FloatField, UUIDField, WordsField

from tests.jobs.running import running  # noqa: F401 - a fixture
from tests.sdk.conftest import PACKAGE
from tests.views.targets import sqlite_target
from webapp.extensions import db

METHODS = {
    "generate": ["template"],
    "generate_from_template_id": ["template_id", "quantity"],
    "get_templates": [],
    "create_template": ["template_data", "project_id", "team_id"],
    "get_connections": [],
    "create_connection": [
        "name",
        "connection_type",
        "connection_string",
        "created_by",
        "project_id",
        "team_id",
    ],
    "get_endpoints": [],
    "create_endpoint": ["endpoint_data"],
    "export_to_database": ["export_data"],
    "export_to_rest": ["export_data"],
    "get_scenario_files": [],
    "read_file_by_path": ["key"],
    "save_file": ["local_path", "folder"],
    "create_scenario_file": ["name", "content"],
    "download_scenario_file": ["file_id"],
}
PEOPLE = Template(
    name="People", quantity=4, fields=[CustomField("tier", ["a", "b"]), NumberField("age", min=1, max=9)]
)


def test_the_client_has_the_methods_of_the_specification_and_no_other():
    found = {
        name: [parameter for parameter in inspect.signature(method).parameters if parameter != "self"]
        for name, method in inspect.getmembers(rowsmith.Client, inspect.isfunction)
        if not name.startswith("_")
    }
    assert found == METHODS


def test_a_client_without_a_key_names_the_missing_variable(monkeypatch):
    monkeypatch.delenv("SERVICE_API_KEY", raising=False)
    with pytest.raises(ServiceError, match="SERVICE_API_KEY") as found:
        rowsmith.Client(api_url="http://127.0.0.1:1")
    assert found.value.code == "not_configured"


def test_rows_come_as_a_list_of_objects(client):
    rows = client.generate(PEOPLE)
    assert len(rows) == 4
    assert all(row["tier"] in "ab" and 1 <= row["age"] <= 9 for row in rows)
    assert len(client.generate({**PEOPLE.to_dict(), "quantity": 25_000})) == 25_000


def test_more_rows_than_the_service_gives_are_an_error_and_not_fewer_rows(client):
    with pytest.raises(ServiceError) as found:
        client.generate({**PEOPLE.to_dict(), "quantity": 10_000_000_000})
    assert found.value.status == 422


def test_a_saved_template_gives_rows_by_its_id(client):
    created = client.create_template(PEOPLE, client.project_id, client.team_id)
    assert len(client.generate_from_template_id(created["id"], 7)) == 7
    assert len(client.generate_from_template_id(created["id"])) == 4
    assert [template["id"] for template in client.get_templates()] == [created["id"]]


def test_an_unknown_template_id_raises_service_error(client):
    with pytest.raises(ServiceError) as found:
        client.generate_from_template_id("tpl_00000000000000000000000000", 1)
    assert isinstance(found.value, error.NotFound)
    assert (found.value.code, found.value.status) == ("not_found", 404)


def test_lists_are_whole(client):
    for number in range(21):
        client.create_template({**PEOPLE.to_dict(), "name": f"T{number}"})
    assert len(client.get_templates()) == 21


def test_a_template_is_created_in_the_named_project_and_in_no_other_team(client, cast):
    created = client.create_template(PEOPLE, project_id=cast.side, team_id=cast.blue)
    assert created["project_id"] == cast.side
    with pytest.raises(ServiceError) as found:
        client.create_template(PEOPLE, project_id=cast.main, team_id=cast.red)
    assert found.value.code == "validation_error"


def test_a_connection_is_made_of_the_arguments_of_the_specification(client, cast):
    created = client.create_connection(
        "Shop", "postgresql", "postgresql://u:p@db.example.org/shop", "somebody", cast.main, cast.blue
    )
    assert (created["type"], created["project_id"], created["created_by"]) == (
        "postgresql",
        cast.main,
        cast.edith.user_id,
    )
    assert [connection["id"] for connection in client.get_connections()] == [created["id"]]


def test_connection_type_has_the_values_of_the_specification():
    values = ["db2", "postgresql", "mysql", "mssql", "mongodb", "oracle"]
    assert [str(kind) for kind in rowsmith.ConnectionType] == values
    assert rowsmith.ConnectionType("oracle") is rowsmith.ConnectionType.ORACLE


@pytest.mark.parametrize("kind", rowsmith.ConnectionType)
def test_create_connection_accepts_a_connection_type(client, kind):
    if kind == rowsmith.ConnectionType.DB2:
        pytest.importorskip("ibm_db", reason="the extra [db2] is not installed")
    address = "mongodb" if kind == rowsmith.ConnectionType.MONGODB else str(kind)
    created = client.create_connection("Shop", kind, f"{address}://u:p@db.example.org/shop")
    assert created["type"] == kind.value


def test_typed_helpers_take_the_arguments_of_the_published_client(client):
    fields = [
        NumberField("age", {"min": 18, "max": 20}),
        NumberField(name="size", options={"min": 1, "max": 2}),
        NumberField("any"),
        WordsField("words", {"count": 2}),
        UUIDField("id", None),
        FloatField("price", {"min": 0, "max": 1}),
        BooleanField("open"),
        CustomField("tier", ["a", "b"]),
        CustomField(name="color", values=["red"]),
    ]
    rows = client.generate(Template(name="T", quantity=20, fields=fields))
    assert {row["age"] for row in rows} == {18, 19, 20}
    assert {row["size"] for row in rows} == {1, 2}
    assert {len(row["words"].split()) for row in rows} == {2}
    assert {row["color"] for row in rows} == {"red"}
    assert AIField("text", "Write").to_dict() == AIField(name="text", prompt="Write").to_dict()


def test_an_option_given_by_name_overrides_the_same_key_of_options():
    assert NumberField("age", {"min": 1, "max": 9}, min=5).options == {"min": 5, "max": 9}


def test_options_that_are_no_dictionary_are_rejected():
    with pytest.raises(TypeError, match="NumberField: options must be a dictionary, not int"):
        NumberField("age", 5)


def test_an_endpoint_is_created_and_listed(client):
    created = client.create_endpoint({"name": "Hook", "method": "POST", "url": "https://example.org/hook"})
    assert [endpoint["id"] for endpoint in client.get_endpoints()] == [created["id"]]


def test_rows_are_exported_to_a_database(client, app, cast, monkeypatch):
    from jobs.pushes import push as job
    from webapp.pushes.views import exports

    shop = sqlite_target(app, cast)

    def work(push_id: str) -> None:
        job.run(push_id)
        db.session.remove()

    monkeypatch.setattr(exports, "wait_until_finished", work)
    rows = [{"id": i, "email": f"{i}@example.org", "first_name": "A", "age": i} for i in range(1, 4)]
    push = client.export_to_database(
        {"connection_id": shop.connection_id, "table": "customers", "rows": rows}
    )
    assert (push["status"], push["counts"]["delivered"], shop.count("customers")) == ("completed", 3, 3)
    dry = client.export_to_database(
        {"connection_id": shop.connection_id, "table": "customers", "rows": rows, "dry_run": True}
    )
    assert len(dry["statements"]) == 3


def test_an_export_that_ends_without_success_raises(client, app, cast, monkeypatch):
    from webapp.pushes.views import exports

    shop = sqlite_target(app, cast)

    def cancelled(push_id: str) -> None:
        from webapp.pushes.models import Push

        with app.app_context():
            push = db.session.get_one(Push, push_id)
            push.status, push.error = "failed", {"code": "target_failed", "message": "It said no."}
            db.session.commit()
            db.session.remove()

    monkeypatch.setattr(exports, "wait_until_finished", cancelled)
    with pytest.raises(error.TargetError, match="It said no") as found:
        client.export_to_database(
            {"connection_id": shop.connection_id, "table": "customers", "rows": [{"id": 1, "email": "a"}]}
        )
    assert found.value.details["push"]["status"] == "failed"


def test_an_export_to_nowhere_raises(client):
    with pytest.raises(ServiceError):
        client.export_to_rest({"endpoint_id": "end_00000000000000000000000000", "rows": [{"a": 1}]})


def test_files_are_created_listed_and_read(client, tmp_path, monkeypatch):
    created = client.create_scenario_file("inputs/a.txt", "ä")
    assert client.read_file_by_path("inputs/a.txt") == "ä".encode()
    assert client.download_scenario_file(created["id"]) == "ä".encode()
    client.create_scenario_file("b.bin", b"\0\1")
    (tmp_path / "report.csv").write_text("a,b\n")
    assert client.save_file(tmp_path / "report.csv")["name"] == "outputs/report.csv"
    assert (
        client.save_file(str(tmp_path / "report.csv"), folder="kept/here")["name"] == "kept/here/report.csv"
    )
    names = {file["name"] for file in client.get_scenario_files()}
    assert names == {"inputs/a.txt", "b.bin", "outputs/report.csv", "kept/here/report.csv"}
    with pytest.raises(error.NotFound):
        client.read_file_by_path("inputs/none.txt")


def test_scenario_files_are_the_uploads_and_the_outputs_of_the_run(client, origin, running):
    client.create_scenario_file("inputs/a.txt", "a")
    program = f"""
import json, os, pathlib, sys
sys.path.insert(0, {str(PACKAGE / "src")!r})
import rowsmith
client = rowsmith.Client(api_url={origin!r})
path = client.outputs / "report.txt"
path.write_text(client.run_id)
client.save_file(path)
client.create_scenario_file("inputs/a.txt", "replaced by the run")
print(json.dumps(sorted(file["name"] for file in client.get_scenario_files())))
"""
    scenario_id = running.scenario(program)
    first, second = (running.do(running.again(scenario_id)) for _ in range(2))
    assert first.status == second.status == "completed", running.log(second.id)
    # The second run sees what it stored itself, and nothing of the outputs of the first.
    assert json.loads(running.log(second.id).splitlines()[-1]) == ["inputs/a.txt", "outputs/report.txt"]
    client.run_id = first.id
    assert {file["name"] for file in client.get_scenario_files()} == {
        "inputs/a.txt",
        f"outputs/{first.id}/report.txt",  # the second run has replaced outputs/report.txt
    }
    client.run_id = None
    assert len(client.get_scenario_files()) == 4


def test_files_of_an_unknown_run_are_not_found(client):
    client.run_id = "run_00000000000000000000000000"
    with pytest.raises(error.NotFound):
        client.get_scenario_files()


def test_a_relative_path_is_resolved_in_the_output_folder(client, tmp_path):
    client.outputs = tmp_path
    (tmp_path / "late.csv").write_text("x")
    assert client.save_file("late.csv")["name"] == "outputs/late.csv"


def test_the_ai_field_goes_by_its_prompt():
    assert AIField("text", "Write").to_dict() == {
        "name": "text",
        "type": "ai",
        "options": {"prompt": "Write"},
    }
