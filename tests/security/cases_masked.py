"""Who may make masked copies by hand, and take a draft's rows from a file."""

from __future__ import annotations

from tests.security.cases_pages import DRAFT
from tests.security.matrix import Case

NOTHING = {"source.from": ""}
COPY = {
    **NOTHING,
    "do": "again",
    "column": "email",
    "c0.taken": "on",
    "c0.sensitive": "on",
    "c0.type": "email",
}

CASES = [
    Case("GET", "/templates/masked", "editor", person=True),
    Case("POST", "/templates/masked", "editor", body=COPY, person=True),
    Case(
        "POST", "/templates/masked/look", "editor", body=NOTHING, ok=422, person=True
    ),  # past every check of rights
    Case("POST", "/builder/source", "viewer", body={**DRAFT, "source.from": "file"}, person=True),
    Case("POST", "/builder/source/upload", "editor", body=NOTHING, person=True),
]
