"""Answers that the tests of this folder script."""

from __future__ import annotations

GOOD = {"id": "tpl_1", "name": "T", "version": 1, "quantity": 6}
HERE = "/templates/tpl_1"


def refusal(code: str, **details: object) -> dict:
    return {"error": {"code": code, "message": f"It is {code}.", "details": details}}
