"""Three schemas that everybody knows, imported whole: every table, every reference, and rows that keep their keys."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

SCHEMAS = Path(__file__).parent / "schemas"
TABLES = {"sakila": 16, "chinook": 11, "northwind": 13}
REFERENCES = {"sakila": 22, "chinook": 11, "northwind": 13}
"""Foreign keys as they are published."""
UNMADE = {"sakila": {("address", "location")}, "chinook": set(), "northwind": set()}
"""Columns that are imported as text: a geometry."""


@pytest.fixture
def imported(edith):
    """Imports one of the schemas, and answers what the service did."""

    def make(name: str) -> dict[str, Any]:
        answer = edith.post(
            "/import",
            json={"format": "sql", "content": (SCHEMAS / f"{name}.sql").read_text(), "name": f"{name}.sql"},
        )
        assert answer.status_code == 201, answer.text
        return answer.json

    return make


@pytest.mark.parametrize("name", TABLES)
def test_every_table_becomes_a_template_and_every_reference_a_link(imported, name):
    created = imported(name)
    assert len(created["templates"]) == TABLES[name]
    references = [
        field
        for template in created["templates"]
        for field in template["fields"]
        if field["type"] == "reference"
    ]
    assert len(references) == REFERENCES[name]
    red = {(row["table"], row["column"]) for row in created["report"] if row["state"] == "red"}
    assert red == UNMADE[name]
    assert created["dataset"]["name"] == name
    assert len(created["dataset"]["templates"]) == TABLES[name]


@pytest.mark.parametrize("name", TABLES)
def test_rows_of_all_tables_keep_their_keys_in_a_database_that_checks_them(imported, edith, name):
    created = imported(name)
    database = sqlite3.connect(":memory:")
    database.executescript("PRAGMA foreign_keys = ON;" + "".join(_tables(created)))
    database.execute("BEGIN")
    database.execute("PRAGMA defer_foreign_keys = ON")  # tables refer to each other in a ring
    for template in created["templates"]:
        answer = edith.post(f"/templates/{template['id']}/generate", json={"count": 10, "seed": "keys"})
        assert answer.status_code == 200, answer.text
        for row in answer.json:
            marks = ", ".join("?" * len(row))
            columns = ", ".join(f'"{column}"' for column in row)
            database.execute(
                f'INSERT INTO "{template["name"]}" ({columns}) VALUES ({marks})', list(row.values())
            )
    database.execute("COMMIT")
    assert database.execute("PRAGMA foreign_key_check").fetchall() == []
    database.close()


def _tables(made: dict[str, Any]) -> list[str]:
    """The templates as tables: keys that the schema has, and what their references lead to."""
    names = {template["id"]: template["name"] for template in made["templates"]}
    found = []
    for template in made["templates"]:
        lines, together = [], {}
        for field in template["fields"]:
            unique = " UNIQUE" if field["unique"] is True or field["type"] == "row_number" else ""
            lines.append(f'"{field["name"]}"{unique}')
            if isinstance(field["unique"], str):
                together.setdefault(field["unique"], []).append(field["name"])
            if field["type"] == "reference":
                request, shown = field["options"]["template_id"], field["options"]["field"]
                table = template["name"] if request == "self" else names[request]
                together.setdefault("", [])
                there = f"REFERENCES {quoted(table)} ({quoted(shown)}) DEFERRABLE INITIALLY DEFERRED"
                together[""].append(f"FOREIGN KEY ({quoted(field['name'])}) {there}")
        rest = together.pop("", [])
        rest += [f"UNIQUE ({', '.join(map(quoted, columns))})" for columns in together.values()]
        found.append(f'CREATE TABLE "{template["name"]}" ({", ".join(lines + rest)});')
    return found


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return f'"{name}"'


@pytest.mark.parametrize("name", ["sakila", "chinook", "northwind"])
def test_composite_keys_are_kept(imported, name):
    created = imported(name)
    key = {
        "sakila": ("film_actor", ["actor_id", "film_id"]),
        "chinook": ("playlist_track", ["playlist_id", "track_id"]),
        "northwind": ("Order Details", ["OrderID", "ProductID"]),
    }[name]
    table = next(template for template in created["templates"] if template["name"] == key[0])
    assert [field["name"] for field in table["fields"] if field["unique"] == "key"] == key[1]
