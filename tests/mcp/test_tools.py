"""What an agent does, over both transports; at the end every tool that is listed was called."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.jobs.waiting import eventually
from tests.mcp.conftest import Agent, Live

FIELDS = [
    {"name": "id", "type": "row_number"},
    {"name": "first_name", "type": "first_name", "group": "person"},
    {"name": "email", "type": "email", "group": "person"},
]
PROGRAM = """import os
for number in range(int(os.environ["LINES"])):
    print("line", number + 1)
print(os.environ["SERVICE_API_KEY"])
with open(os.environ["SERVICE_WORKSPACE_OUTPUTS"] + "/made.txt", "w") as file:
    file.write("made by a run")
"""
ENDED = {"completed", "failed", "cancelled", "timed_out"}


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_an_agent_does_every_job_with_every_tool(connect: Callable[..., Agent], live: Live, transport: str):
    agent = connect(transport)
    catalogue(agent)
    template_id = templates(agent)
    datasets(agent, template_id)
    targets(agent, live)
    pushes(agent, live, template_id, f"people_{transport}")
    scenarios(agent)
    files(agent, transport)
    listed = {tool["name"] for tool in agent.do("list_tools")["tools"]}
    assert listed == agent.called


def catalogue(agent: Agent) -> None:
    assert agent.call("get_account")["user"] == "Demo"
    found = agent.call("list_field_types", q="e-mail", limit=1)
    assert (found["items"][0]["name"], found["next_cursor"] is not None) == ("email", True)
    following = agent.call("list_field_types", q="e-mail", limit=1, cursor=found["next_cursor"])
    assert following["items"][0]["name"] != "email"
    assert "domain" in agent.call("get_field_type", name="E-Mail")["options_schema"]["properties"]
    assert "Did you mean email" in agent.refused("get_field_type", name="emial")
    assert agent.call("suggest_field_types", name="postcode")["suggestions"][0]["type"] == "zip_code"


def templates(agent: Agent) -> str:
    drafted = agent.call("preview_rows", fields=FIELDS, seed="s")
    assert len(drafted["rows"]) == 3
    created = agent.call("create_template", name="People of an agent", fields=FIELDS, quantity=12)
    assert [field["name"] for field in created["fields"]] == ["id", "first_name", "email"]
    assert [item["id"] for item in agent.call("list_templates", q="of an agent")["items"]].count(
        created["id"]
    ) == 1
    fields = [*created["fields"], {"name": "city", "type": "city"}]
    changed = agent.call("update_template", template_id=created["id"], fields=fields)
    assert (changed["version"], changed["fields_total"]) == (2, 4)
    assert agent.call("get_template", template_id=created["id"], version=1)["fields_total"] == 3
    previewed = agent.call("preview_rows", template_id=created["id"], seed="s")["rows"]
    generated = agent.call("generate_rows", template_id=created["id"], count=200, seed="s")
    assert generated["rows"][:3] == previewed, "a preview shows the first rows"
    assert (generated["shown"], generated["truncated"], generated["count"]) == (50, True, 200)
    looked = agent.call("import_schema", content="id,email,note\n1,a@example.org,\n", name="people.csv")
    assert (looked["templates"][0]["id"], looked["templates"][0]["fields"], looked["green"]) == (None, 3, 2)
    saved = agent.call(
        "import_schema", content="CREATE TABLE t (id INT PRIMARY KEY, p POINT NOT NULL)", save=True
    )
    assert saved["templates"][0]["version"] == 1
    assert all(item["reason"] for item in saved["report"])
    return created["id"]


def datasets(agent: Agent, template_id: str) -> None:
    created = agent.call(
        "create_dataset", name="Agents", templates=[{"template_id": template_id, "count": 5}]
    )
    assert created["id"] in [item["id"] for item in agent.call("list_datasets")["items"]]
    assert agent.call("get_dataset", dataset_id=created["id"])["templates"][0]["template_id"] == template_id
    assert len(agent.call("preview_dataset", dataset_id=created["id"])["tables"][0]["rows"]) == 3


def targets(agent: Agent, live: Live) -> None:
    connection = live.connection()
    assert agent.call("list_connections")["items"][0]["verified"] == "verified"
    assert agent.call("list_endpoints")["items"] == []
    assert agent.call("verify_connection", connection_id=connection)["status"] == "verified"
    names = [
        entity["name"]
        for entity in agent.call("get_connection_metadata", connection_id=connection)["entities"]
    ]
    assert "customers" in names
    table = agent.call("get_connection_metadata", connection_id=connection, entity="customers")["entities"][0]
    assert table["fields"][0]["name"] == "id"
    created = agent.call("create_templates_from_tables", connection_id=connection, entities=["customers"])
    assert {item["column"] for item in created["report"]} >= {"id", "email"}
    filled = agent.call("plan_fill", connection_id=connection, rows=3, tables=["customers"])
    assert (filled["rows"], filled["skipped"]) == (3, [])
    begun = agent.call("push", plan_id=filled["plan_id"], confirm=True)
    assert begun["counts"]["total"] == 3


def pushes(agent: Agent, live: Live, template_id: str, table: str) -> None:
    how = {"connection_id": live.connection(), "target": table, "create_table": True}
    plan = agent.call("plan_push", template_id=template_id, count=7, **how)
    assert (plan["rows"], plan["production_connection"]) == (7, None)
    assert any("INSERT" in line for line in plan["statements"])
    begun = agent.call("push", plan_id=plan["plan_id"], confirm=True)
    again = agent.call("push", plan_id=plan["plan_id"], confirm=True)
    assert begun["id"] == again["id"], "one plan is one push"
    push = {"push_id": begun["id"]}
    eventually(lambda: agent.call("get_push", **push)["status"] in ENDED, within=90)
    done = agent.call("get_push", **push)
    assert (done["status"], done["counts"]["delivered"], done["seed"]) == ("completed", 7, plan["seed"])
    assert begun["id"] in [item["id"] for item in agent.call("list_pushes")["items"]]
    twice = agent.call("plan_push", template_id=template_id, count=3, seed=plan["seed"], **how)
    failing = agent.call("push", plan_id=twice["plan_id"], confirm=True)["id"]
    eventually(lambda: agent.call("get_push", push_id=failing)["status"] in ENDED, within=90)
    failed = agent.call("list_push_rows", push_id=failing)["items"]
    assert [item["row"] for item in failed] == [1, 2, 3], "their keys are taken"
    assert all(item["message"] for item in failed)
    assert "has ended" in agent.refused("cancel_push", **push) or "run_finished" in agent.refused(
        "cancel_push", **push
    )


def scenarios(agent: Agent) -> None:
    assert agent.call("check_scenario", code=PROGRAM)["ok"]
    created = agent.call(
        "create_scenario", name="Of an agent", code=PROGRAM, env={"LINES": "60", "WORD": "hush-hush"}
    )
    scenario = {"scenario_id": created["id"]}
    assert "hush-hush" not in str(created)
    assert created["env"] == ["LINES", "WORD"]
    assert created["id"] in [item["id"] for item in agent.call("list_scenarios", q="Of an agent")["items"]]
    assert agent.call("get_scenario", **scenario)["code"] == PROGRAM
    changed = agent.call("update_scenario", **scenario, code=PROGRAM + "# more\n")
    assert changed["version"] == 2
    run = {**scenario, "run_id": agent.call("start_run", **scenario, params={"NOTE": "x"})["id"]}
    eventually(lambda: agent.call("get_run", **run)["status"] in ENDED, within=150)
    ended = agent.call("get_run", **run)
    assert (ended["status"], ended["params"]) == ("completed", ["NOTE"])
    log = agent.call("get_run_log", **run, lines=4)
    assert len(log["lines"]) == 4
    assert log["total_lines"] == log["first_line"] + 3 == ended["line_count"] >= 61
    printed = agent.call("get_run_log", **run, lines=200)["lines"]
    assert printed[-4:] == log["lines"]
    at = printed.index("line 1")
    assert printed[at : at + 61] == [*(f"line {n + 1}" for n in range(60)), "********"], (
        "the run's key is not shown"
    )
    assert run["run_id"] in [item["id"] for item in agent.call("list_runs", **scenario)["items"]]
    output = agent.call("list_files", folder=f"outputs/{run['run_id']}")["items"][0]["name"]
    assert agent.call("read_file", name=output)["text"] == "made by a run"
    second = {**scenario, "run_id": agent.call("start_run", **scenario)["id"]}
    ended = agent.raw("cancel_run", **second)
    assert "run_finished" in str(ended) or ended["structuredContent"]["id"] == second["run_id"]


def files(agent: Agent, transport: str) -> None:
    name = f"of/{transport}/words.txt"
    agent.call("write_file", name=name, text='{"looks": "like JSON"}')
    assert "already" in agent.refused("write_file", name=name, text="other")
    text = "zwölf Boxkämpfer\n" * 2000
    agent.call("write_file", name=name, text=text, overwrite=True)
    read, offset = "", 0
    while offset is not None:
        piece = agent.call("read_file", name=name, offset=offset)
        read, offset = read + piece["text"], piece["next_offset"]
    assert read == text
