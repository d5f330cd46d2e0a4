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
        for one in chosen:
            put(body, *faults[one])
        return errors_of(send(route, json=body))

    alone = {one: sent(one) for one in range(len(faults))}
    leaked = [path for found in alone.values() for path, _ in found if "function" in path or "(" in path]
    assert leaked == []
    choose = random.Random(1)
    missing = []
    for _ in range(BODIES):
        chosen: list[int] = []
        for one in choose.sample(range(len(faults)), min(len(faults), choose.randint(2, 6))):
            if apart(faults[one][0], [faults[other][0] for other in chosen]):
                chosen.append(one)
        expected = set().union(*(alone[one] for one in chosen))
        missing.append(([faults[one][0] for one in chosen], expected - sent(*chosen)))
    assert len(missing) == BODIES
    assert [one for one in missing if one[1]] == []


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
