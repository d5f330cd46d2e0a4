"""The errors of a body with several faults are those of each fault alone.

Every route gets one valid body, a list of faults (a path and the value to put there), and at least 20 bodies that
combine some of them.
"""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

BODIES = 24  # with up to six faults each
LONG = "x" * 300
Path = tuple[str | int, ...]
Faults = list[tuple[Path, Any]]

FIELDS = [
    {"name": "a", "type": "number", "options": {"min": 1, "max": 5}},
    {"name": "b", "type": "email", "options": {}},
    {"name": "c", "type": "date", "options": {"min": "2026-01-01", "max": "2026-05-01"}},
    {
        "name": "d",
        "type": "nested",
        "options": {
            "fields": [
                {"name": "x", "type": "regexp", "options": {"string": "a+"}},
                {"name": "y", "type": "number"},
            ]
        },
    },
    {"name": "e", "type": "derived", "options": {"value": "{{a}}"}},
    {"name": "f", "type": "array", "options": {"count": {"min": 1, "max": 2}, "of": {"type": "number"}}},
    {"name": "g", "type": "number"},
]
IN_FIELDS: Faults = [
    (("fields", 0, "options", "min"), 9),
    (("fields", 0, "options", "mni"), 1),
    (("fields", 1, "name"), "c"),
    (("fields", 1, "locale"), "xx_XX"),
    (("fields", 1, "percent_blank"), 200),
    (("fields", 1, "bogus"), 1),
    (("fields", 2, "name"), ""),
    (("fields", 2, "options", "min"), "2026-99-99"),
    (("fields", 2, "options", "format"), "%Q"),
    (("fields", 3, "options", "fields", 0, "options", "string"), "("),
    (("fields", 3, "options", "fields", 0, "options", "strin"), 1),
    (("fields", 3, "options", "fields", 1, "type"), "zzz"),
    (("fields", 3, "options", "fields", 1, "name"), "x"),
    (("fields", 4, "options", "value"), "{{nope}}"),
    (("fields", 4, "text_case"), "shout"),
    (("fields", 4, "masking"), {"method": "nope"}),
    (("fields", 5, "options", "of", "type"), "what"),
    (("fields", 5, "options", "count", "min"), 7),
    (("fields", 6, "type"), "nope"),
    (("fields", "+"), "text"),
    (("fields", "+"), {"type": "number"}),
    (("fields", "+"), {"name": "q", "type": "custom", "options": {"values": []}}),
    (("fields", "+"), {"name": "q", "type": "reference", "options": {"template_id": "tpl_none"}}),
    (("bogus",), 1),
]
OF_ROWS: Faults = [
    (("seed",), LONG),
    (("now",), "never"),
    (("overrides",), {"zz": 1}),
    (("overrides",), 5),
    (("locale",), "xx"),
]
OF_FILES: Faults = [
    (("format",), "docx"),
    (("offset",), -1),
    (("csv",), {"delimiter": "ab", "q": 1}),
    (("sql",), {"dialect": "q", "rows_per_statement": 0}),
]
OF_TEMPLATES: Faults = [
    (("name",), ""),
    (("name",), LONG),
    (("quantity",), -1),
    (("locale",), "xx"),
    (("anchor",), "whenever"),
]


def put(body: Any, path: Path, value: Any) -> None:
    for step in path[:-1]:
        body = body[step]
    if path[-1] == "+":
        body.append(value)
    else:
        body[path[-1]] = value


def errors_of(response: Any) -> set[tuple[str, str]]:
    assert response.status_code == 422, response.text
    error = response.json["error"]
    if error["code"] == "row_limit_exceeded":
        return {("count", "row_limit_exceeded")}
    return {(field["path"], field["code"]) for field in error["details"]["fields"]}


def apart(path: Path, others: list[Path]) -> bool:
    """Whether a fault can be in the same body as others: neither contains the other."""
    return all(
        path[: len(other)] != other[: len(path)] and (path[-1] != "+" or path != other) for other in others
    )


def check(program: Any, method: str, route: str, valid: dict[str, Any], faults: Faults) -> None:
    """Send bodies with several of the faults, and compare their errors with those of each fault alone."""
    send = getattr(program, method.lower())
    accepted = send(route, json=valid)
    assert accepted.status_code in (200, 201), accepted.text

    def sent(*chosen: int) -> set[tuple[str, str]]:
        body = copy.deepcopy(valid)
        for item in chosen:
            put(body, *faults[item])
        return errors_of(send(route, json=body))

    alone = {item: sent(item) for item in range(len(faults))}
    leaked = [path for found in alone.values() for path, _ in found if "function" in path or "(" in path]
    assert leaked == []
    choose = random.Random(1)
    missing = []
    for _ in range(BODIES):
        chosen: list[int] = []
        for item in choose.sample(range(len(faults)), min(len(faults), choose.randint(2, 6))):
            if apart(faults[item][0], [faults[other][0] for other in chosen]):
                chosen.append(item)
        expected = set().union(*(alone[item] for item in chosen))
        missing.append(([faults[item][0] for item in chosen], expected - sent(*chosen)))
    assert len(missing) == BODIES
    assert [item for item in missing if item[1]] == []


@pytest.fixture
def program(api, cast):
    return api(cast.edith)


@pytest.fixture
def template(program):
    return program.post("/templates", json={"name": "t", "fields": FIELDS}).json["id"]


def test_of_new_templates(program):
    check(program, "POST", "/templates", {"name": "t", "fields": FIELDS}, IN_FIELDS + OF_TEMPLATES)


def test_of_changed_templates(program, template):
    body = {"name": "t", "fields": FIELDS}
    check(program, "PATCH", f"/templates/{template}", body, IN_FIELDS + OF_TEMPLATES)


def test_of_rows_of_drafts(program):
    more: Faults = [(("name",), 5), (("quantity",), 0), (("count",), 10**12)]
    body = {"name": "t", "fields": FIELDS, "quantity": 2}
    check(program, "POST", "/generate", body, IN_FIELDS + OF_ROWS + OF_FILES + more)


def test_of_previews(program, template):
    check(program, "POST", "/preview", {"fields": FIELDS}, IN_FIELDS + OF_ROWS)
    check(program, "POST", f"/templates/{template}/preview", {"fields": FIELDS}, IN_FIELDS + OF_ROWS)


@pytest.mark.parametrize("route", ["generate", "exports", "answers"])
def test_of_rows_of_templates(program, template, route):
    more: Faults = [(("count",), 0), (("count",), 10**12), (("bogus",), 1)]
    body = {"count": 2, "seed": "s"}
    check(program, "POST", f"/templates/{template}/{route}", body, OF_ROWS + OF_FILES + more)


OF_CONNECTIONS: Faults = [
    (("name",), ""),
    (("name",), 5),
    (("environment",), "moon"),
    (("bogus",), 1),
    (("read_only",), "maybe"),
    (("project_id",), "prj_other"),
    (("settings", "bogus"), 1),
]
SETTINGS: dict[str, tuple[dict[str, Any], Faults]] = {
    "postgresql": (
        {"host": "127.0.0.1", "port": 9, "database": "none", "username": "nobody"},
        [
            (("settings", "port"), "x"),
            (("settings", "port"), 99_999_999),
            (("settings", "options"), 5),
            (("settings", "tls"), "nope"),
        ],
    ),
    "rest": (
        {
            "base_url": "http://127.0.0.1:9/",
            "auth": {"type": "basic", "username": "u", "password": "p"},
            "retry": {"retries": 1},
        },
        [
            (("settings", "base_url"), "nope"),
            (("settings", "auth"), {"type": "magic"}),
            (("settings", "auth", "username"), 5),
            (("settings", "auth", "bogus"), 1),
            (("settings", "push_mode"), "sideways"),
            (("settings", "retry", "retries"), -3),
            (("settings", "retry", "backoff_seconds"), ["x"]),
            (("settings", "retry", "bogus"), 1),
            (("settings", "default_headers"), {"a b": "c"}),
            (("settings", "request_template"), {"method": "NOPE", "body": "{{"}),
            (("settings", "parallel"), 0),
        ],
    ),
    "odata": (
        {"service_url": "http://127.0.0.1:9/odata/", "csrf": {"fetch_path": "/", "fetch_method": "HEAD"}},
        [
            (("settings", "service_url"), "nope"),
            (("settings", "odata_version"), "v9"),
            (("settings", "csrf", "fetch_method"), "PUSH"),
            (("settings", "csrf", "bogus"), 1),
            (("settings", "batch"), "x"),
            (("settings", "auth"), {"type": "oauth2-client-credentials"}),
        ],
    ),
    "sqlite": ({"file": "combined.db"}, [(("settings", "file"), "../x")]),
    "db2": ({"host": "127.0.0.1", "database": "d", "username": "u"}, [(("settings", "port"), "x")]),
}


@pytest.mark.parametrize("kind", SETTINGS)
def test_of_new_connections(program, kind):
    settings, faults = SETTINGS[kind]
    body = {"name": "c", "type": kind, "settings": settings}
    check(program, "POST", "/connections", body, OF_CONNECTIONS + faults)


def test_of_an_unknown_kind_of_connection(program):
    body = {"name": "", "type": "postgers", "settings": {}, "project_id": "prj_other", "bogus": 1}
    assert errors_of(program.post("/connections", json=body)) == {
        ("name", "too_short"),
        ("type", "unknown_type"),
        ("project_id", "not_yours"),
        ("bogus", "unknown_key"),
    }


def test_of_changed_connections(program):
    settings, faults = SETTINGS["rest"]
    body = {"name": "c", "type": "rest", "settings": settings}
    one = program.post("/connections", json=body).json["id"]
    more = [fault for fault in OF_CONNECTIONS if fault[0] != ("project_id",)]
    check(program, "PATCH", f"/connections/{one}", {"name": "c", "settings": settings}, more + faults)


OF_ENDPOINTS: Faults = [
    (("name",), ""),
    (("method",), "NOPE"),
    (("url",), "nowhere"),
    (("headers",), {"a b": "c"}),
    (("query_params",), 5),
    (("bogus",), 1),
    (("auth",), {"type": "magic"}),
    (("retry",), {"retries": -1}),
    (("push_mode",), "sideways"),
]


def test_of_endpoints(program):
    body = {"name": "e", "method": "POST", "url": "http://127.0.0.1:9/x", "body": {"a": 1}}
    check(program, "POST", "/endpoints", body, OF_ENDPOINTS)
    one = program.post("/endpoints", json=body).json["id"]
    check(program, "PATCH", f"/endpoints/{one}", body, OF_ENDPOINTS)


def test_of_datasets(program, template):
    faults: Faults = [
        (("name",), ""),
        (("seed",), LONG),
        (("description",), 7),
        (("bogus",), 1),
        (("templates", 0, "count"), -1),
        (("templates", 0, "bogus"), 1),
        (("templates", "+"), {"template_id": "tpl_none", "count": -1}),
        (("templates", "+"), {"template_id": template}),
        (("templates", "+"), 5),
    ]
    body = {"name": "d", "templates": [{"template_id": template, "count": 3}]}
    check(program, "POST", "/datasets", body, faults)
    one = program.post("/datasets", json=body).json["id"]
    of_rows: Faults = [(("seed",), LONG), (("now",), "never"), (("bogus",), 1)]
    check(program, "POST", f"/datasets/{one}/preview", {}, of_rows)
    check(program, "POST", f"/datasets/{one}/exports", {}, [*of_rows, OF_FILES[0], *OF_FILES[2:]])


OF_SCENARIOS: Faults = [
    (("name",), ""),
    (("code",), 5),
    (("timeout_seconds",), 1),
    (("network",), "wild"),
    (("env",), {"PATH": "x"}),
    (("env",), {"a b": "x"}),
    (("secrets",), ["NOPE"]),
    (("writable_secrets",), ["NOPE"]),
    (("schedule",), "when I like"),
    (("bogus",), 1),
    (("description",), 6),
]


def test_of_scenarios_and_runs(program):
    body = {"name": "s", "code": "print(1)"}
    check(program, "POST", "/scenarios", body, OF_SCENARIOS)
    one = program.post("/scenarios", json=body).json["id"]
    check(program, "PUT", f"/scenarios/{one}", body, OF_SCENARIOS)
    check(program, "PATCH", f"/scenarios/{one}", body, OF_SCENARIOS)
    faults: Faults = [
        (("params",), {"PATH": "x"}),
        (("params",), {"a b": "x"}),
        (("params",), 5),
        (("wait",), "perhaps"),
        (("bogus",), 1),
    ]
    check(program, "POST", f"/scenarios/{one}/run", {}, faults)


OF_PUSHES: Faults = [
    (("count",), 0),
    (("count",), 10**12),
    (("mapping",), {"zz": "b"}),
    (("mapping",), 5),
    (("mode",), "smash"),
    (("on_error",), "dance"),
    (("retry",), {"retries": -1}),
    (("target_wait_seconds",), -4),
    (("offset",), -1),
    (("bogus",), 1),
]


def test_of_pushes(program, template):
    settings = {"file": "pushes.db"}
    created = program.post("/connections", json={"name": "c", "type": "sqlite", "settings": settings}).json
    body = {
        "connection_id": created["id"],
        "target": "people",
        "count": 2,
        "dry_run": True,
        "create_table": True,
    }
    check(program, "POST", f"/templates/{template}/push", body, OF_PUSHES + OF_ROWS)
