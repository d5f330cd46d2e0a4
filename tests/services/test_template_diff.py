"""The diff of two versions: added, removed, changed and moved fields, and cells of their previews."""

from __future__ import annotations

from typing import Any

from webapp.builder.services import changed_cells, compare


def field(number: int, name: str, **more: Any) -> dict[str, Any]:
    plain = {
        "id": f"fld_{number}",
        "name": name,
        "type": "number",
        "label": "Number",
        "options": {},
        "prefix": "",
    }
    return {**plain, **more}


def spec(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    head = {"name": "T", "description": "", "quantity": 10, "locale": None, "anchor": "2026-01-01T00:00:00Z"}
    return {**head, "fields": list(fields), "warnings": [], **more}


def test_equal_specs_differ_in_nothing():
    one = spec(field(1, "a"), field(2, "b"))
    assert compare(one, one) == {
        "template": {},
        "fields": {"added": [], "removed": [], "changed": [], "moved": []},
    }


def test_head_attributes_are_listed():
    found = compare(spec(field(1, "a")), spec(field(1, "a"), quantity=5, name="U"))
    assert found["template"] == {"name": {"from": "T", "to": "U"}, "quantity": {"from": 10, "to": 5}}


def test_fields_are_added_and_removed_by_id_not_by_name():
    found = compare(spec(field(1, "a")), spec(field(2, "a")))["fields"]
    assert [item["id"] for item in found["removed"]] == ["fld_1"]
    assert [item["id"] for item in found["added"]] == ["fld_2"]


def test_a_rename_and_an_option_are_changes_of_one_field():
    found = compare(
        spec(field(1, "a", options={"min": 1, "max": 9})),
        spec(field(1, "z", options={"min": 2, "max": 9}, prefix="x")),
    )["fields"]
    assert found["changed"] == [
        {
            "id": "fld_1",
            "path": "z",
            "name": "z",
            "changes": {
                "name": {"from": "a", "to": "z"},
                "prefix": {"from": "", "to": "x"},
                "options.min": {"from": 1, "to": 2},
            },
        }
    ]
    assert found["added"] == found["removed"] == []


def test_a_removed_field_before_them_does_not_move_the_others():
    found = compare(spec(field(1, "a"), field(2, "b"), field(3, "c")), spec(field(2, "b"), field(3, "c")))[
        "fields"
    ]
    assert found["moved"] == []


def test_moved_fields_are_listed_with_their_positions():
    found = compare(spec(field(1, "a"), field(2, "b")), spec(field(2, "b"), field(1, "a")))["fields"]
    assert {item["id"]: (item["from"], item["to"]) for item in found["moved"]} == {
        "fld_1": (0, 1),
        "fld_2": (1, 0),
    }


def test_nested_fields_are_compared_inside_their_parent():
    def parent(*inner: dict[str, Any]) -> dict[str, Any]:
        return field(1, "lines", options={"array": True, "fields": list(inner)})

    found = compare(spec(parent(field(2, "sku"))), spec(parent(field(2, "code"), field(3, "n"))))["fields"]
    assert [item["path"] for item in found["added"]] == ["lines.n"]
    assert [(item["path"], list(item["changes"])) for item in found["changed"]] == [("lines.code", ["name"])]


def test_cells_are_listed_by_row_and_column():
    old = [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    new = [{"a": 1, "b": "x", "c": 0}, {"a": 3, "b": "y", "c": 0}]
    assert changed_cells(old, new) == [{"row": 2, "column": "a", "from": 2, "to": 3}]
