"""Permissions of pages that are for browsers only: the builder, status."""

from __future__ import annotations

from tests.security.matrix import Case

DRAFT = {
    "name": "Draft",
    "seed": "s",
    "row": "r1 fld_01M7Y5BT16VAMSDNZ2PWHH1947 row_number",
    "r1.name": "n",
    "r1.type": "row_number",
}
JSON = {"json": '[{{"name": "n", "type": "row_number"}}]'}

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
        body={**DRAFT, "version": "2"},
        ok=303,
        person=True,
    ),
    Case("GET", "/builder/<template_id>/export", "editor", url="/builder/{template}/export", person=True),
    Case("GET", "/builder/<template_id>/versions", "viewer", url="/builder/{template}/versions", person=True),
    Case(
        "GET",
        "/builder/<template_id>/diff/<int:number>",
        "viewer",
        url="/builder/{template}/diff/1",
        person=True,
    ),
    # What it asks while a draft is edited
    Case("POST", "/builder/rows", "viewer", body={**DRAFT, "do": "duplicate:r1"}, person=True),
    Case("GET", "/builder/types", "viewer", person=True),
    Case("GET", "/builder/functions", "viewer", person=True),
    Case("POST", "/builder/rest", "viewer", body=DRAFT, person=True),
    Case("POST", "/builder/preview", "viewer", body=DRAFT, person=True),
    Case("POST", "/builder/grid", "editor", body={**DRAFT, "count": "5"}, person=True),
    Case(
        "POST", "/builder/grid/export", "editor",
        body={"definition": '{"name": "rows", "fields": [{"name": "n", "type": "row_number"}]}', "format": "csv"},
        person=True,
    ),
    Case("POST", "/builder/explain", "viewer", body={**DRAFT, "do": "explain:r1"}, person=True),
    Case("POST", "/builder/estimate", "editor", body={"format": "csv", "count": "5"}, person=True),
    Case("POST", "/builder/tables", "viewer", body={**DRAFT, "do": "tables:r1"}, person=True),
    Case("POST", "/builder/json", "viewer", body=DRAFT, person=True),
    Case("POST", "/builder/from-json", "viewer", body=JSON, person=True),
    Case("POST", "/builder/use", "viewer", body=DRAFT, person=True),
]
