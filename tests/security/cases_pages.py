"""Permissions of pages that are for browsers only: the builder, status."""

from __future__ import annotations

from tests.security.matrix import Case

START = '{"name": "Draft", "fields": [{"id": "fld_01M7Y5BT16VAMSDNZ2PWHH1947", "name": "n", "type": "row_number"}]}'
DRAFT = {"name": "Draft", "seed": "s", "start": START}

CASES = [
    Case("GET", "/", "anyone", person=True),
    Case("POST", "/session/checklist", "anyone", ok=303, person=True),
    Case("GET", "/search", "viewer", person=True),
    Case("GET", "/welcome", "anyone", ok=303, person=True),
    Case("POST", "/welcome", "anyone", body={"name": "N", "new_password": "short"}, ok=422, person=True),
    Case("GET", "/activity", "viewer", person=True),
    Case("GET", "/activity/now", "viewer", person=True),
    Case("GET", "/starters", "viewer", person=True),
    Case("GET", "/starters/<key>", "viewer", url="/starters/shop", person=True),
    Case("POST", "/starters/<key>", "editor", url="/starters/shop", ok=303, person=True),
    Case("GET", "/profile", "anyone", ok=303, person=True),
    Case("GET", "/settings", "anyone", ok=303, person=True),
    Case("GET", "/files", "anyone", ok=303, person=True),
    Case("POST", "/session/preferences", "anyone", body={"theme": "dark"}, ok=303, person=True),
    # The builder's page
    Case("GET", "/templates/new", "editor", person=True),
    Case("POST", "/templates/new", "editor", body=DRAFT, ok=303, person=True),
    Case(
        "POST",
        "/templates/<template_id>/edit",
        "editor",
        url="/templates/{template}/edit",
        body={"template_id": "{template}", "loaded": "2", "name": "Draft"},
        ok=303,
        person=True,
    ),
    Case("GET", "/builder/<template_id>/export", "editor", url="/builder/{template}/export", person=True),
    Case(
        "GET",
        "/builder/<template_id>/diff/<int:number>",
        "viewer",
        url="/builder/{template}/diff/1",
        person=True,
    ),
    # What it asks while a draft is edited
    Case("POST", "/builder/change", "editor", body={**DRAFT, "do": "add"}, ok=303, person=True),
    Case("POST", "/builder/rows", "viewer", body=DRAFT, person=True),
    Case("POST", "/builder/inspector", "viewer", body={**DRAFT, "open": "settings"}, person=True),
    Case("POST", "/builder/type", "viewer", body={**DRAFT, "do": "about::email"}, person=True),
    Case("POST", "/builder/suggestions", "viewer", body={"add_name": "email"}, person=True),
    Case("GET", "/builder/types", "viewer", person=True),
    Case("GET", "/builder/functions", "viewer", person=True),
    Case("POST", "/builder/download", "editor", body={**DRAFT, "count": "5"}, person=True),
    Case("POST", "/builder/explain", "viewer", body=DRAFT, person=True),
    Case("POST", "/builder/estimate", "editor", body={"format": "csv", "count": "5"}, person=True),
    Case("POST", "/builder/tables", "viewer", body=DRAFT, person=True),
]
