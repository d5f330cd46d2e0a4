"""The official inspector by its command line, over both transports: it takes what it lists and reads as valid."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.mcp.conftest import Live

Inspect = Callable[..., Any]


@pytest.fixture(scope="module", params=["stdio", "http"])
def inspect(
    request: pytest.FixtureRequest,
    inspector: list[str],
    command: str,
    live: Live,
    serve: Callable[..., str],
    tmp_path_factory,
) -> Inspect:
    home = str(tmp_path_factory.mktemp("home"))
    if request.param == "stdio":
        where = [command]
        last = ["-e", f"SERVICE_API_URL={live.url}", "-e", f"SERVICE_API_KEY={live.key}"]
    else:
        where, last = [serve(), "--transport", "http"], ["--header", f"Authorization: Bearer {live.key}"]

    def run(method: str, *words: str) -> Any:
        done = subprocess.run(
            [*inspector, *where, "--method", method, *words, *last],
            capture_output=True, text=True, timeout=120, check=False, env={"PATH": "/usr/bin:/bin", "HOME": home},
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode in (0, 5), done.stderr
        return json.loads(done.stdout)

    return run


def called(inspect: Inspect, name: str, *pairs: str) -> Any:
    words = [word for pair in pairs for word in ("--tool-arg", pair)]
    return inspect("tools/call", "--tool-name", name, *words)


def test_the_inspector_accepts_the_schemas_of_the_tools(inspect: Inspect):
    tools = inspect("tools/list", "--strict")["tools"]
    assert len(tools) > 30
    assert all("outputSchema" in tool and "annotations" in tool for tool in tools)


def test_the_inspector_calls_tools_and_their_answers_fit_their_schemas(inspect: Inspect, live: Live):
    assert called(inspect, "list_templates")["structuredContent"]["total"] >= 3
    template = live.template("Customers")
    rows = called(inspect, "preview_rows", f"template_id={template}", "seed=s")["structuredContent"]["rows"]
    assert len(rows) == 3
    plan = called(
        inspect, "plan_push", f"template_id={template}", f"connection_id={live.connection()}", "target=looked_at",
        "create_table=true", "count=2",
    )  # fmt: skip
    assert plan["structuredContent"]["plan_id"].startswith("plan_")
    draft = called(inspect, "preview_rows", 'fields=[{"name": "a", "type": "emial"}]')
    assert draft["isError"]
    assert "Did you mean `email`?" in draft["content"][0]["text"]


def test_the_inspector_reads_resources_and_prompts(inspect: Inspect, live: Live):
    uris = [resource["uri"] for resource in inspect("resources/list")["resources"]]
    template = f"rowsmith://templates/{live.template('Customers')}"
    assert {"rowsmith://field-types", template} <= set(uris)
    read = json.loads(inspect("resources/read", "--uri", template)["contents"][0]["text"])
    assert read["name"] == "Customers"
    types = json.loads(inspect("resources/read", "--uri", "rowsmith://field-types")["contents"][0]["text"])
    assert "email" in types["categories"]["contact"]
    one = json.loads(
        inspect("resources/read", "--uri", "rowsmith://field-types/email")["contents"][0]["text"]
    )
    assert one["name"] == "email"
    templates = {
        resourcetemplate["uriTemplate"]
        for resourcetemplate in inspect("resources/templates/list")["resourceTemplates"]
    }
    assert templates == {"rowsmith://field-types/{name}", "rowsmith://templates/{template_id}"}
    names = {prompt["name"] for prompt in inspect("prompts/list")["prompts"]}
    assert names == {"explain_template", "build_template", "load_table", "make_scenario"}
    words = ("--prompt-name", "build_template", "--prompt-args", "description=cats of a shelter")
    assert "cats of a shelter" in str(inspect("prompts/get", *words)["messages"])
