"""The pages that people see, and a workspace whose every free text is a payload: for the tests that look at them."""

from __future__ import annotations

from typing import Any

from tests.cast import Cast, Program

PAGES = (
    "/templates",
    "/import",
    "/templates/masked",
    "/datasets",
    "/datasets/new",
    "/connections",
    "/connections/new",
    "/connections/new?type=sqlite",
    "/",
    "/activity",
    "/schedules",
    "/starters",
    "/starters/shop",
    "/scenarios",
    "/scenarios/new",
    "/secrets",
    "/masking/keys",
    "/webhooks",
    "/me/two-factor",
    "/workspace/files",
    "/endpoints",
    "/api-keys",
    "/me",
    "/usage",
    "/projects",
    "/teams",
    "/members",
    "/invitations",
    "/workspace",
    "/audit",
    "/trash",
    "/status",
    "/docs",
    "/docs/field-types",
    "/docs/field-types/number",
    "/docs/guide/start",
    "/docs/guide/relations",
    "/docs/errors",
    "/docs/limits",
    "/docs/search?q=mail",
    "/nowhere",
)
"""Pages whose addresses name no object."""
PAYLOAD = "<script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)>'\"{{7*7}}"


def filled_with_payloads(program: Program, cast: Cast) -> dict[str, str]:
    """Store payloads everywhere as an owner's program; the ids of a `template`, an `export`, a
    `dataset`, a `connection` and a `push`."""
    fields: list[dict[str, Any]] = [
        {
            "name": PAYLOAD, "type": "constant", "options": {"value": PAYLOAD}, "description": PAYLOAD,
            "prefix": PAYLOAD,
        },
        {"name": "n", "type": "enum", "options": {"values": [PAYLOAD, "b"]}},
    ]  # fmt: skip
    created = program.post(
        "/templates", json={"name": PAYLOAD, "description": PAYLOAD, "fields": fields}
    ).json
    gone = program.post("/templates", json={"name": PAYLOAD, "fields": fields}).json
    program.delete(f"/templates/{gone['id']}")
    program.patch(f"/templates/{created['id']}", json={"quantity": 5})
    export = program.post(f"/templates/{created['id']}/exports", json={"count": 3, "seed": PAYLOAD}).json
    tables = [{"template_id": created["id"], "name": PAYLOAD}]
    body = {"name": PAYLOAD, "description": PAYLOAD, "templates": tables, "seed": PAYLOAD}
    dataset = program.post("/datasets", json=body).json
    program.post(f"/datasets/{dataset['id']}/exports", json={"seed": PAYLOAD})
    program.post("/api-keys", json={"name": PAYLOAD})
    settings = {"file": "payloads.db"}
    target = program.post(
        "/connections", json={"name": PAYLOAD, "type": "sqlite", "settings": settings}
    ).json["id"]
    program.put("/secrets/held", json={"value": PAYLOAD})
    ask = {"connection_id": target, "target": PAYLOAD, "create_table": True, "count": 2, "seed": PAYLOAD}
    push = program.post(f"/templates/{created['id']}/push", json=ask).json
    program.patch(f"/projects/{cast.main}", json={"name": PAYLOAD, "description": PAYLOAD})
    program.post("/teams", json={"name": PAYLOAD})
    program.post("/invitations", json={"email": "x<b>@example.org"})
    result = {"template": created, "export": export, "dataset": dataset, "push": push}
    return {"connection": target, **{name: item["id"] for name, item in result.items()}}
