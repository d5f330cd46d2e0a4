"""What the tests of this folder say again and again."""

from __future__ import annotations

from typing import Any

from werkzeug.test import TestResponse

from tests.cast import Program

FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "row_number"},
    {"name": "code", "type": "sequence", "options": {"start": 7, "pad": 6}},
    {"name": "amount", "type": "number", "options": {"min": -50, "max": 5000, "decimals": 2}},
    {"name": "text", "type": "derived", "options": {"value": "{{code}}/{{amount}}"}},
]


def make(program: Program, **more: Any) -> dict[str, Any]:
    """A new template."""
    answer = program.post("/templates", json={"name": "T", "fields": FIELDS, **more})
    assert answer.status_code == 201, answer.json
    return answer.json


def reference(name: str, to: str, field: str, **options: Any) -> dict[str, Any]:
    """A field that refers to the template `to`."""
    return {"name": name, "type": "reference", "options": {"template_id": to, "field": field, **options}}


def code_of(answer: TestResponse) -> tuple[int, str]:
    """Status and code of a refusal."""
    return answer.status_code, answer.json["error"]["code"]


def refused(answer: TestResponse, status: int, code: str) -> dict[str, Any]:
    """The details of a refusal of exactly that status, code and shape."""
    assert answer.status_code == status, answer.get_data(as_text=True)[:500]
    assert list(answer.json) == ["error"]
    assert set(answer.json["error"]) == {"code", "message", "details"}
    assert answer.json["error"]["code"] == code
    return answer.json["error"]["details"]


def faults(answer: TestResponse) -> dict[str, str]:
    """Path and code of every fault of a `validation_error`."""
    found = refused(answer, 422, "validation_error")["fields"]
    assert all(fault["message"] for fault in found)
    return {fault["path"]: fault["code"] for fault in found}


def rows_used(program: Program) -> int:
    """The rows that count against the hour."""
    return program.get("/usage").json["rows"]["used"]


def own(program: Program, template_id: str, **body: Any) -> bytes:
    """What a template generates under the seed "s"."""
    return program.post(f"/templates/{template_id}/generate", json={"seed": "s", **body}).data


def in_parts(program: Program, path: str, **body: Any) -> dict[str, Any]:
    """A new export in parts of 10,000 rows."""
    ask = {"count": 45_000, "seed": "s", "format": "csv", "part_rows": 10_000, **body}
    answer = program.post(f"{path}/exports", json=ask)
    assert answer.status_code == 201, answer.json
    return answer.json
