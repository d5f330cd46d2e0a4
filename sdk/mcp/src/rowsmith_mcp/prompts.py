"""Prompts for common tasks."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from pydantic import Field

LOOK = "Show me the three rows and ask whether they are what I want before you continue."


def add(server: MCPServer[Any], read_only: bool) -> None:
    """Register the prompts. In read-only mode, only those that do not write."""
    server.prompt(title="Explain a template")(explain_template)
    if not read_only:
        server.prompt(title="Build a template from a description")(build_template)
        server.prompt(title="Load a table")(load_table)
        server.prompt(title="Create a scenario")(make_scenario)


def explain_template(template_id: Annotated[str, Field(description="tpl_...")]) -> str:
    """Explain a template field by field, with sample rows."""
    return f"""Read the Rowsmith template {template_id} (get_template) and preview its rows (preview_rows).
Tell me in plain words what it makes, which fields depend on which, and what in the rows looks unrealistic."""


def build_template(
    description: Annotated[str, Field(description="Describe the rows in your own words.")],
) -> str:
    """Create a template from a description: choose types, preview, then save."""
    return f"""Build a Rowsmith template for this:

{description}

1. Find a type for every field (suggest_field_types, list_field_types) and read its options (get_field_type).
2. Preview the draft with preview_rows and `fields`; correct every fault that comes back. Fields about the same person
   or place share a `group`.
3. {LOOK}
4. Save it with create_template, and tell me its id."""


def load_table(
    connection: Annotated[str, Field(description="The connection's name or ID.")],
    table: Annotated[str, Field(description="The table or entity set.")],
    rows: Annotated[str, Field(description="Number of rows.")] = "100",
) -> str:
    """Load rows into a table: find or create a matching template, plan the push, get approval, push, and
    report failures."""
    return f"""Load {rows} rows into {table} of the Rowsmith connection {connection}.

1. Find the connection (list_connections) and the table (get_connection_metadata with `entity`).
2. Use a template that fits, or make one with create_templates_from_tables. {LOOK}
3. plan_push, and show me target, number of rows, mapping and misfits. Wait for my answer.
4. Only when I agree: push with the plan id and confirm=true. For a production connection ask me for its name.
5. Look with get_push until it has ended. If rows failed, show me the reasons of list_push_rows; do not repeat the push
   without asking."""


def make_scenario(goal: Annotated[str, Field(description="What the program should do.")]) -> str:
    """Create a scenario: write, check and save a program, and run it once after approval."""
    return f"""Write a Rowsmith scenario that does this:

{goal}

1. Look at what is there: list_templates, list_connections, list_scenarios.
2. Write a short Python program with `from rowsmith import Client`; parameters are environment variables with a default.
   No passwords in it: secrets are named in `secrets`.
3. check_scenario until there are no faults; show me the program; create_scenario.
4. Ask me before start_run. Then get_run until it has ended, and get_run_log for what it printed."""
