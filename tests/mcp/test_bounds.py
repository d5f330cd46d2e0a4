"""Restrictions of an agent: it cannot read or write too much, send without confirmation, or connect without a key."""

from __future__ import annotations

import http.client
import json
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.mcp.conftest import Agent, Live
from webapp.paths import ROOT

BODY = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
WRITING = {
    "create_template", "update_template", "import_schema", "create_dataset", "create_templates_from_tables",
    "plan_push", "plan_fill", "push", "cancel_push", "check_scenario", "create_scenario", "update_scenario",
    "start_run", "cancel_run", "write_file",
}  # fmt: skip


@pytest.fixture(scope="module")
def agent(connect: Callable[..., Agent]) -> Agent:
    return connect("stdio")


@pytest.fixture(scope="module")
def shared(serve: Callable[..., str]) -> str:
    """The address of one server for several keys."""
    return serve()


def size(result: dict) -> int:
    return len(json.dumps({**result, "_meta": None}, ensure_ascii=False, separators=(",", ":")).encode())


def test_a_result_has_at_most_50_rows_and_32_kilobytes(agent: Agent):
    wide = [{"name": f"text_{n}", "type": "paragraph"} for n in range(20)]
    result = agent.raw("generate_rows", fields=wide, count=1000)
    answer = result["structuredContent"]
    assert size(result) <= 32_000
    assert 0 < answer["shown"] == len(answer["rows"]) < 50
    assert answer["truncated"]
    assert any(note.startswith("rows: showing the first") for note in answer["notes"])
    narrow = agent.call("generate_rows", fields=[{"name": "id", "type": "row_number"}], count=1000)
    assert (narrow["shown"], narrow["truncated"], narrow.get("notes", [])) == (50, True, [])
    few = agent.call("generate_rows", fields=[{"name": "id", "type": "row_number"}], count=5)
    assert (few["shown"], few["truncated"]) == (5, False)


def test_a_large_template_is_cut_with_a_note_and_read_on_from_there(agent: Agent):
    fields = [{"name": f"field_{n}", "type": "email", "description": "long " * 20} for n in range(400)]
    result = agent.raw("create_template", name="Wide", fields=fields)
    outcome = result["structuredContent"]
    assert size(result) <= 32_000
    assert (outcome["fields_total"], len(outcome["fields"]) < 400) == (400, True)
    assert "of 400" in outcome["notes"][0]
    on = agent.call("get_template", template_id=outcome["id"], first_field=395)
    assert [field["name"] for field in on["fields"]] == [f"field_{n}" for n in range(395, 400)]


def test_the_rest_is_had_by_a_command_that_holds_no_key(agent: Agent, live: Live, tmp_path):
    result = agent.call("generate_rows", template_id=live.template("Customers"), count=120, format="ndjson")
    assert live.key not in str(result)
    assert "$SERVICE_API_KEY" in result["rest"]
    env = {"PATH": "/usr/bin:/bin", "SERVICE_API_KEY": live.key}
    subprocess.run(["sh", "-c", result["rest"]], cwd=tmp_path, env=env, check=True, timeout=60)
    rows = [json.loads(line) for line in (tmp_path / "rows.ndjson").read_text().splitlines()]
    assert len(rows) == 120
    assert rows[: result["shown"]] == result["rows"], shlex.quote(result["rest"])


def test_all_errors_are_returned_together_with_their_hints(agent: Agent):
    fields = [{"name": "a", "type": "emial"}, {"name": "b", "type": "number", "options": {"mim": 3}}]
    result = agent.refused("create_template", name="Wrong", fields=fields)
    assert "validation_error" in result
    assert "- fields[0].type (unknown_type)" in result
    assert "Did you mean `email`?" in result
    assert "- fields[1].options.mim" in result
    assert "request: req_" in result


def test_invalid_arguments_are_reported_by_name(agent: Agent):
    assert "limit" in agent.refused("list_templates", limit=1000)
    assert "template_id" in agent.refused("preview_rows")
    assert "at most 65536" in agent.refused("write_file", name="large.txt", text="x" * 70_000)
    assert "is not a valid ID" in agent.refused("list_push_rows", push_id="../templates")


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_in_read_only_mode_no_tool_that_writes_is_listed_or_can_be_called(
    connect: Callable[..., Agent], transport: str
):
    reader = connect(transport, options=("--read-only",))
    tools = reader.do("list_tools")["tools"]
    assert not {tool["name"] for tool in tools} & WRITING
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)
    assert "Unknown tool" in reader.refused("create_template", name="x", fields=[])
    assert [prompt["name"] for prompt in reader.do("list_prompts")["prompts"]] == ["explain_template"]


def test_every_tool_documents_its_effects_and_results(agent: Agent):
    tools = agent.do("list_tools")["tools"]
    assert {tool["name"] for tool in tools} >= WRITING
    for tool in tools:
        assert tool["outputSchema"]["type"] == "object", tool["name"]
        assert tool["description"], tool["name"]
        hints = tool["annotations"]
        assert not (hints["readOnlyHint"] and hints["destructiveHint"]), tool["name"]
    destructive = {tool["name"] for tool in tools if tool["annotations"]["destructiveHint"]}
    assert destructive >= {"push", "start_run", "update_template", "write_file", "cancel_run"}


def test_the_guide_names_every_tool_resource_and_prompt_and_no_other(agent: Agent):
    section = (ROOT / "docs" / "guide" / "mcp.md").read_text("utf-8").split("\n## Tools\n")[1]
    table, _, rest = section.partition("\nEach tool has an output schema")
    result = re.findall(r"`(\w+)`", "".join(line.split("|")[1] for line in table.strip().splitlines()))
    assert sorted(result) == sorted(tool["name"] for tool in agent.do("list_tools")["tools"])
    line = next(
        line for line in rest.partition("\n## ")[0].split("\n\n") if line.startswith("The resources are")
    )
    resources, _, prompts = line.partition("The prompts are")
    listed = [
        resource["uri"]
        for resource in agent.do("list_resources")["resources"]
        if "/tpl_" not in resource["uri"]
    ]
    templates = [
        resourcetemplate["uriTemplate"]
        for resourcetemplate in agent.do("list_resource_templates")["resourceTemplates"]
    ]
    assert sorted(re.findall(r"`([^`]+)`", resources)) == sorted([*listed, *templates])
    assert sorted(re.findall(r"`(\w+)`", prompts)) == sorted(
        prompt["name"] for prompt in agent.do("list_prompts")["prompts"]
    )


def test_a_push_needs_a_plan_and_an_agreement(agent: Agent, live: Live):
    assert "no such plan" in agent.refused("push", plan_id="plan_0123", confirm=True)
    how = {"template_id": live.template("Customers"), "connection_id": live.connection(), "target": "planned"}
    plan = agent.call("plan_push", count=2, create_table=True, **how)
    assert "Nothing was sent" in agent.refused("push", plan_id=plan["plan_id"], confirm=False)
    assert live.api.pushes.list(q="planned").all() == []


def test_a_plan_is_not_carried_out_on_a_template_that_changed(agent: Agent, live: Live):
    created = live.api.templates.create(
        {"name": "Changing", "fields": [{"name": "id", "type": "row_number"}]}
    )
    how = {"connection_id": live.connection(), "target": "changing", "create_table": True, "count": 2}
    plan = agent.call("plan_push", template_id=created["id"], **how)
    live.api.templates.update(created["id"], fields=[{"name": "id", "type": "uuid"}])
    assert "was changed" in agent.refused("push", plan_id=plan["plan_id"], confirm=True)


def test_a_production_connection_needs_its_name_in_addition_to_the_confirmation(agent: Agent, live: Live):
    shop = live.api.connections.create(
        name="Live shop", type="sqlite", settings={"file": "live.db"}, environment="prod"
    )
    how = {"connection_id": shop["id"], "target": "people", "create_table": True, "count": 2}
    plan = agent.call("plan_push", template_id=live.template("Customers"), **how)
    assert plan["production_connection"] == "Live shop"
    assert "Nothing was sent" in agent.refused("push", plan_id=plan["plan_id"], confirm=True)
    wrong = agent.refused("push", plan_id=plan["plan_id"], confirm=True, connection_name="Shop")
    assert "Live shop" not in wrong, "the name is the user's to say"
    assert agent.call("push", plan_id=plan["plan_id"], confirm=True, connection_name="Live shop")["id"]


def test_a_plan_whose_time_is_over_is_unknown(python: Path, live: Live):
    late = Agent(python, {"service": live.url, "key": live.key, "plan_seconds": 0})
    how = {"connection_id": live.connection(), "target": "late", "create_table": True, "count": 2}
    plan = late.call("plan_push", template_id=live.template("Customers"), **how)
    assert "has expired" in late.refused("push", plan_id=plan["plan_id"], confirm=True)
    late.close()
    assert live.api.pushes.list(q="late").all() == []


def test_a_plan_of_another_key_is_unknown(connect: Callable[..., Agent], live: Live, shared: str):
    one, other = connect("http", url=shared), connect("http", url=shared, key=live.key_with())
    how = {"connection_id": live.connection(), "target": "others", "create_table": True, "count": 2}
    plan = one.call("plan_push", template_id=live.template("Customers"), **how)
    assert "no such plan" in other.refused("push", plan_id=plan["plan_id"], confirm=True)
    assert one.call("push", plan_id=plan["plan_id"], confirm=True)["id"], "its own key has it"


def test_each_request_over_http_acts_by_its_own_key(connect: Callable[..., Agent], live: Live, shared: str):
    narrow = connect("http", url=shared, key=live.key_with("read"))
    assert narrow.call("get_account")["scopes"] == ["read"]
    assert "forbidden" in narrow.refused("create_template", name="x", fields=[{"name": "a", "type": "email"}])
    assert connect("http", url=shared).call("get_account")["scopes"] is None


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_an_invalid_key_is_reported_as_such_and_not_retried(
    connect: Callable[..., Agent], live: Live, shared: str, transport: str
):
    wrong = live.key[:-1] + ("0" if live.key[-1] != "0" else "1")
    stranger = connect(transport, key=wrong, **({"url": shared} if transport == "http" else {}))
    result = stranger.refused("list_templates")
    assert "unauthenticated" in result
    assert "reason: unknown" in result
    assert wrong not in result
    assert "unauthenticated" in stranger.do("list_resources")["error"]["message"]


def post(url: str, **headers: str) -> int:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
    sent = {
        "Host": parts.netloc, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }  # fmt: skip
    connection.request("POST", parts.path, json.dumps(BODY), sent)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status


def test_over_http_a_request_without_a_key_is_401(shared: str, live: Live):
    assert post(shared) == 401
    assert post(shared, Authorization="Basic abc") == 401
    assert post(shared, Authorization="Bearer ") == 401
    assert post(shared, Authorization=f"Bearer {live.key}") == 200
    assert post(shared, X_API_Key=live.key) == 200


def test_over_http_other_hosts_and_origins_stay_outside(shared: str, live: Live):
    key = {"X_API_Key": live.key}
    assert post(shared, **key, Host="evil.example.com") == 421
    assert post(shared, **key, Host="127.0.0.1.example.com:80") == 421
    assert post(shared, **key, Origin="https://evil.example.com") == 403
    assert post(shared, **key, Origin="http://localhost:3000") == 200


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--http", "--host", "0.0.0.0"], "keys would be sent unencrypted"),
        (["--http", "--host", "0.0.0.0", "--behind-tls-proxy"], "--allowed-host"),
        ([], "Set SERVICE_API_KEY"),
        (["--url", "http://rowsmith.example.com"], "SERVICE_API_KEY"),
        (["--http", "--url", "http://rowsmith.example.com"], "unencrypted"),
        (["--http", "--tls-cert", "cert.pem"], "must be used together"),
    ],
)
def test_unsafe_settings_are_one_sentence_and_no_server(command: str, words: list[str], says: str):
    env = {"PATH": "/usr/bin:/bin", "SERVICE_API_URL": "http://127.0.0.1:8000"}
    done = subprocess.run(
        [command, *words],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
