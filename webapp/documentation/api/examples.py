"""A body for every operation that takes one, as its samples send it. Every one is valid; tests send them.

`OWN_…_ID` stands for an object of the reader's, `…_ID` for one that the reader puts in: samples that change, delete
or send name nothing of the reader's.
"""

from __future__ import annotations

from typing import Any, Final

_TABLES: Final = "CREATE TABLE customers (id INT PRIMARY KEY, email VARCHAR(120) UNIQUE);"
_FIELDS: Final[list[dict[str, Any]]] = [
    {"name": "id", "type": "row_number"},
    {"name": "email", "type": "email", "unique": True},
]
_CODE: Final = 'import os\n\nprint("hello", os.environ.get("WHO", "world"))\n'
_TARGET: Final = {"connection_id": "OWN_CONNECTION_ID", "target": "customers", "create_table": True}
_DATASET_TARGET: Final = {"connection_id": "OWN_CONNECTION_ID", "create_table": True}

QUERIES: Final[dict[str, dict[str, str]]] = {"DELETE /api-keys": {"created_by": "USER_ID"}}
"""Return the required query parameters, in the order of the SDK's arguments."""

BODIES: Final[dict[str, dict[str, Any]]] = {
    "POST /api-keys": {"name": "Pipeline", "scopes": ["read", "generate"]},
    "POST /classify": {
        "table": "customers",
        "rows": [{"id": 1, "email": "ada@example.org", "born": "1985-12-10"}],
    },
    "POST /connections": {"name": "Fixtures", "type": "sqlite", "settings": {"file": "fixtures.db"}},
    "PATCH /connections/{connection_id}": {"name": "Fixtures of the tests", "environment": "test"},
    "POST /connections/{connection_id}/fill": {"rows": 5, "tables": ["customers"], "dry_run": True},
    "POST /connections/{connection_id}/subsets": {"table": "customers", "limit": 100, "children": []},
    "POST /connections/{connection_id}/templates": {"entities": ["customers"], "quantity": 100},
    "POST /datasets": {
        "name": "Shop",
        "templates": [{"template_id": "OWN_TEMPLATE_ID", "count": 20}],
        "seed": "first",
    },
    "PATCH /datasets/{dataset_id}": {"seed": "second"},
    "PUT /datasets/{dataset_id}": {"seed": "second"},
    "POST /datasets/{dataset_id}/exports": {"format": "csv", "seed": "first"},
    "POST /datasets/{dataset_id}/preview": {"seed": "first"},
    "POST /datasets/{dataset_id}/push": {**_DATASET_TARGET, "dry_run": True},
    "POST /datasets/{dataset_id}/push/plan": _DATASET_TARGET,
    "POST /describe": {"description": "Customers of a German bank with an IBAN", "quantity": 10},
    "POST /endpoints": {"name": "Orders", "method": "POST", "url": "https://api.example.com/orders"},
    "PATCH /endpoints/{endpoint_id}": {"headers": {"X-Source": "tests"}},
    "POST /export/db": {
        "connection_id": "CONNECTION_ID",
        "table": "customers",
        "create_table": True,
        "rows": [{"id": 1, "email": "ada@example.org"}],
    },
    "POST /export/rest": {"endpoint_id": "ENDPOINT_ID", "rows": [{"id": 1, "email": "ada@example.org"}]},
    "POST /fields/suggest": {"name": "email", "sample": ["ada@example.org"]},
    "POST /generate": {"fields": _FIELDS, "count": 3, "seed": "first"},
    "POST /import": {"format": "sql", "content": _TABLES},
    "POST /invitations": {"email": "ada@example.org", "role": "viewer"},
    "POST /members": {"user_id": "USER_ID", "team_id": "TEAM_ID", "role": "editor"},
    "PATCH /members/{member_id}": {"role": "editor"},
    "POST /preview": {"fields": _FIELDS, "seed": "first"},
    "POST /projects": {"name": "Checkout", "description": "Data of the checkout's tests"},
    "PATCH /projects/{project_id}": {"description": "Data of the checkout's tests"},
    "POST /projects/{project_id}/move": {"objects": ["TEMPLATE_ID"], "related": "take"},
    "POST /pushes/{push_id}/retry": {"states": ["failed"]},
    "POST /pushes/{push_id}/undo": {"confirm": "Fixtures"},
    "POST /scenarios": {"name": "Hello", "code": _CODE, "timeout_seconds": 60},
    "POST /scenarios/check": {"code": _CODE},
    "PUT /scenarios/{scenario_id}": {"code": _CODE},
    "PATCH /scenarios/{scenario_id}": {"timeout_seconds": 300, "network": "api"},
    "POST /scenarios/{scenario_id}/run": {"params": {"WHO": "Ada"}, "wait": False},
    "POST /scenarios/{scenario_id}/runs/{run_id}/rerun": {"version": "newest", "params": {"WHO": "Ada"}},
    "PUT /secrets/{name}": {"value": "not shown again"},
    "POST /teams": {"name": "Payments"},
    "PATCH /teams/{team_id}": {"name": "Payments"},
    "POST /templates": {"name": "Customers", "quantity": 100, "fields": _FIELDS},
    "PATCH /templates/{template_id}": {"quantity": 1000},
    "PUT /templates/{template_id}": {"quantity": 1000},
    "POST /templates/{template_id}/answers": {"count": 3, "seed": "first"},
    "POST /templates/{template_id}/exports": {"format": "csv", "count": 1000, "seed": "first"},
    "POST /templates/{template_id}/generate": {"count": 3, "seed": "first"},
    "POST /templates/{template_id}/import": {"content": "id,email\n1,ada@example.org\n"},
    "POST /templates/{template_id}/preview": {"seed": "first"},
    "POST /templates/{template_id}/push": {**_TARGET, "count": 100, "dry_run": True},
    "POST /templates/{template_id}/push/plan": {**_TARGET, "count": 100},
    "POST /schedules": {
        "name": "Nightly customers",
        "cron": "0 2 * * *",
        "timezone": "Europe/Berlin",
        "kind": "export",
        "template_id": "TEMPLATE_ID",
        "request": {"format": "csv", "count": 1000},
        "new_seed": True,
    },
    "PATCH /schedules/{schedule_id}": {"enabled": False},
    "POST /webhooks": {
        "url": "https://ci.example.org/hooks/rowsmith",
        "events": ["export.completed", "push.*"],
        "description": "Nightly build",
    },
    "PATCH /webhooks/{webhook_id}": {"events": ["*"]},
    "PATCH /workspace": {"settings": {"redact_run_logs": True}},
    "DELETE /workspace": {"confirm": "Fixtures"},
}

PARTS: Final = {"number": "1", "name": "db_password"}
"""Parts of addresses that are no ids, as the samples have them."""
FILE_NAME: Final = "samples/customers.csv"
"""The name that the sample of an upload gives."""
_HELD: Final = frozenset({"POST /export/db", "POST /export/rest", "POST /pushes/{push_id}/retry"})


def part(key: str, name: str) -> str:
    """Return the example value for `{name}` in the URL of an operation."""
    if key.partition(" ")[2].startswith("/workspace/files"):
        name = "file_id"
    if name in PARTS:
        return PARTS[name]
    own = "" if holds(key) else "OWN_"
    return f"{own}{name.upper()}"


def holds(key: str) -> bool:
    """Return whether the samples of an operation need ids that the reader has to choose."""
    return not key.startswith(("GET ", "POST ")) or key in _HELD or key.endswith("/undo")
