"""Scenarios: Python programs that the service runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from rowsmith_mcp.limits import PAGE
from rowsmith_mcp.registry import Registry, Work
from rowsmith_mcp.shapes import Checked, Listing, Scenario
from rowsmith_mcp.tools.parts import Cursor, Limit, Query, ScenarioId, given, listing, some
from rowsmith_mcp.truncation import head

registry = Registry()
BRIEF = ("id", "name", "description", "version", "next_run_at", "updated_at")
WHOLE = (
    "id", "name", "description", "version", "timeout_seconds", "network", "secrets", "schedule", "requirements",
    "warnings",
)  # fmt: skip
Code = Annotated[
    str,
    Field(
        description="A Python program, run as `python3 main.py`. `from rowsmith import Client; client "
                    "= Client()` has generate, generate_from_template_id, get_templates, "
                    "export_to_database ... Parameters are environment variables; files written to "
                    "SERVICE_WORKSPACE_OUTPUTS are stored. A comment `# requirements: name` installs "
                    "packages.",
    ),
]
Seconds = Annotated[int | None, Field(ge=60, le=3600, description="Time limit of a run in seconds.")]
Network = Annotated[
    Literal["", "full", "api", "none"],
    Field(description="Network access of a run: the internet and Rowsmith, only Rowsmith, or none."),
]
Env = Annotated[
    dict[str, str] | None,
    Field(description="Variables of every run. No passwords: use secrets."),
]
Secrets = Annotated[list[str] | None, Field(description="Names of secrets that runs get as variables.")]


@registry.reads("List scenarios")
def list_scenarios(work: Work, q: Query = "", cursor: Cursor = "", limit: Limit = PAGE) -> Listing:
    """List the scenarios of the project."""
    return listing(work, "/scenarios", BRIEF, q=q, cursor=cursor, limit=limit)


@registry.reads("Read a scenario")
def get_scenario(
    work: Work,
    scenario_id: ScenarioId,
    offset: Annotated[int, Field(ge=0, description="For long code: the first character to return.")] = 0,
    version: Annotated[int | None, Field(ge=1, description="An earlier version.")] = None,
) -> Scenario:
    """Return a scenario with its code, or a part of it. The values of its variables are not included."""
    return scenario_for_client(work.api.scenarios.get(scenario_id, version), offset)


@registry.reads("Check a program", writing=True)
def check_scenario(work: Work, code: Code) -> Checked:
    """Check a program without saving it: syntax, requirements, likely problems."""
    found: Any = work.api.scenarios.check(code)
    return {
        "ok": not found["faults"],
        "faults": found["faults"],
        "warnings": found["warnings"],
        "requirements": found["requirements"],
    }


@registry.makes("Create a scenario")
def create_scenario(
    work: Work,
    name: Annotated[str, Field(description="Name of the dataset.")],
    code: Code,
    description: str = "",
    timeout_seconds: Seconds = None,
    network: Network = "",
    env: Env = None,
    secrets: Secrets = None,
) -> Scenario:
    """Save a new scenario. It is not run and has no schedule. Returns all errors together, with hints."""
    more = given(
        description=description, timeout_seconds=timeout_seconds, network=network, env=env, secrets=secrets
    )
    return scenario_for_client(work.api.scenarios.create(name=name, code=code, **more))


@registry.changes("Change a scenario")
def update_scenario(
    work: Work,
    scenario_id: ScenarioId,
    code: Annotated[str, Field(description="The complete new program; leave empty to keep the current one.")] = "",
    name: str = "",
    description: str = "",
    timeout_seconds: Seconds = None,
    network: Network = "",
    env: Annotated[
        dict[str, str] | None, Field(description="All variables; they replace the current ones.")
    ] = None,
    secrets: Secrets = None,
) -> Scenario:
    """Change a scenario. New code creates a new version; earlier versions are kept."""
    more = given(
        name=name,
        description=description,
        timeout_seconds=timeout_seconds,
        network=network,
        env=env,
        secrets=secrets,
    )
    if code:
        return scenario_for_client(work.api.scenarios.replace(scenario_id, code, **more))
    return scenario_for_client(work.api.scenarios.update(scenario_id, **more))


def scenario_for_client(scenario: Mapping[str, Any], offset: int = 0) -> Scenario:
    """Return a scenario without the values of its variables, and as much of its code as a result can contain."""
    code = scenario["code"]
    piece = head(code[offset:])
    end = offset + len(piece)
    result: Any = {
        **some(scenario, WHOLE),
        "code": piece,
        "code_characters": len(code),
        "next_offset": end if end < len(code) else None,
        "env": sorted(scenario["env"]),
    }
    return result  # type: ignore[no-any-return]
