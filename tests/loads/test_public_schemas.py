"""Three schemas that everybody knows, imported, made as one SQL file and loaded with foreign keys on: no orphan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from webapp.engine.formats.sql_format import slug

SCHEMAS = Path(__file__).parents[1] / "imports" / "schemas"
NAMES = ("sakila", "chinook", "northwind")
ROWS = 400


@pytest.fixture(params=["postgresql", "mysql"])
def database(request):
    return request.param, request.getfixturevalue(request.param)


def script_of(edith, app, made: dict[str, Any], dialect: str) -> str:
    from jobs import exports
    from webapp.extensions import db

    where = f"/datasets/{made['dataset']['id']}/exports"
    body = {"format": "sql", "seed": "load", "sql": {"create_table": True, "dialect": dialect}}
    answer = edith.post(where, json=body)
    assert answer.status_code == 201, answer.text
    with app.app_context():
        exports.run(answer.json["id"])
        db.session.remove()
    export = edith.get(f"/exports/{answer.json['id']}").json
    assert export["status"] == "completed", export
    return edith.get(f"/exports/{export['id']}/download").data.decode()


@pytest.mark.parametrize("schema", NAMES)
def test_a_dataset_of_a_schema_loads_whole_with_its_foreign_keys_checked(app, edith, schema, database):
    dialect, into = database
    content = (SCHEMAS / f"{schema}.sql").read_text()
    body = {"format": "sql", "content": content, "name": f"{schema}.sql", "quantity": ROWS}
    created = edith.post("/import", json=body).json
    into.load(script_of(edith, app, created, dialect))
    names = {template["id"]: slug(template["name"]) for template in created["templates"]}
    references, orphans = 0, {}
    for template in created["templates"]:
        table = into.name(names[template["id"]])
        assert into.ask(f"SELECT count(*) FROM {table}")[0][0] > 0
        for field in template["fields"]:
            if field["type"] != "reference":
                continue
            references += 1
            request = field["options"]["template_id"]
            parent = table if request == "self" else into.name(names[request])
            child, key = into.name(field["name"]), into.name(field["options"]["field"])
            found = into.ask(
                f"SELECT count(*) FROM {table} c LEFT JOIN {parent} p ON c.{child} = p.{key} "
                f"WHERE c.{child} IS NOT NULL AND p.{key} IS NULL"
            )[0][0]
            if found:
                orphans[f"{template['name']}.{field['name']}"] = found
    assert orphans == {}
    assert references > 10
    assert into.foreign_keys() >= references - 2, "MariaDB does not support keys on unlimited texts"
