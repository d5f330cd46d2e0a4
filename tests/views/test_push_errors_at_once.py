"""A push reports everything that is wrong with it in one response: shape, destination, rows, table and mapping."""

from __future__ import annotations

import pytest

from tests.connectors.odata_documents import V2
from tests.fakes.echo_target import EchoTarget
from tests.views.speak import make
from tests.views.targets import CUSTOMERS, ORDERS, connection, shop, work  # noqa: F401
from webapp.connections.models import Connection
from webapp.extensions import db
from webapp.pushes.models import Push

FIELDS = [{"name": "id", "type": "row_number"}, {"name": "email", "type": "email"}]
NOWHERE = "con_00000000000000000000000000"


def told(answer) -> set[tuple[str, str]]:
    assert answer.status_code == 422, answer.text
    found = [(field["path"], field["code"]) for field in answer.json["error"]["details"]["fields"]]
    assert len(found) == len(set(found)), found
    return set(found)


@pytest.fixture
def template(edith):
    return make(edith, name="Customers", fields=FIELDS)["id"]


@pytest.fixture
def target():
    with EchoTarget() as result:
        yield result


@pytest.mark.parametrize("end", ["push", "push/plan"])
def test_errors_of_body_destination_table_mapping_and_rows_are_reported_together(edith, template, shop, end):
    body = {
        "connection_id": shop.connection_id,
        "target": "no such table",
        "mode": "replace",
        "on_error": "explode",
        "nope": 1,
        "mapping": {"mail": "email"},
        "computed": {"x": "id +* 2"},
        "overrides": {"phone": "1"},
        "parallel": 2,
        "count": 1_000_000_000,
    }
    found = told(edith.post(f"/templates/{template}/{end}", json=body))
    assert found >= {
        ("mode", "not_allowed"),
        ("on_error", "not_allowed"),
        ("nope", "unknown_key"),
        ("mapping.mail", "unknown_field"),
        ("overrides.phone", "unknown_field"),
        ("parallel", "not_for_this_type"),
        ("target", "unknown_table"),
    }
    assert any(path == "computed.x" for path, _ in found)
    assert any(path == "count" for path, _ in found)


def test_errors_of_a_mapping_are_reported_with_those_of_the_rows(edith, template, shop, monkeypatch):
    body = {
        "connection_id": shop.connection_id,
        "target": "customers",
        "mapping": {"mail": "email", "email": "no_such_column"},
        "key_columns": ["no_key"],
        "overrides": {"phone": "1"},
        "count": 10_000_001,
        "retry": {"retries": 1},
    }
    found = told(edith.post(f"/templates/{template}/push", json=body))
    assert found >= {
        ("mapping.mail", "unknown_field"),
        ("mapping.email", "unknown_column"),
        ("key_columns[0]", "unknown_column"),
        ("overrides.phone", "unknown_field"),
        ("count", "row_limit_exceeded"),
        ("retry", "not_for_this_type"),
    }
    dry = told(edith.post(f"/templates/{template}/push", json={**body, "dry_run": True}))
    assert dry == found


def test_an_unknown_connection_is_reported_with_the_rest(edith, template):
    alone = edith.post(f"/templates/{template}/push", json={"connection_id": NOWHERE})
    assert (alone.status_code, alone.json["error"]["code"]) == (404, "not_found")
    body = {"connection_id": NOWHERE, "mapping": {"mail": "email"}, "mode": "replace"}
    assert told(edith.post(f"/templates/{template}/push", json=body)) == {
        ("connection_id", "unknown_connection"), ("mapping.mail", "unknown_field"), ("mode", "not_allowed"),
    }  # fmt: skip
    body = {"endpoint_id": "end_0", "count": 0}
    assert told(edith.post(f"/templates/{template}/push", json=body)) == {
        ("endpoint_id", "unknown_endpoint"), ("count", "out_of_range"),
    }  # fmt: skip
    missing = edith.post("/templates/tpl_0/push", json={"mode": "replace"})
    assert missing.status_code == 404, "the address names it"


@pytest.mark.parametrize("path", ["/export/db", "/export/rest"])
def test_exports_to_a_target_report_all(edith, path):
    body = {"connection_id": NOWHERE, "template_id": "tpl_0", "mode": "replace"}
    assert told(edith.post(path, json=body)) == {
        ("connection_id", "unknown_connection"), ("template_id", "unknown_template"), ("mode", "not_allowed"),
    }  # fmt: skip
    assert told(edith.post(path, json={"connection_id": NOWHERE, "rows": [], "nope": 1})) >= {
        ("connection_id", "unknown_connection"), ("rows", "too_short"), ("nope", "unknown_key"),
    }  # fmt: skip
    body = {"connection_id": NOWHERE, "rows": [{"a": 1}], "target": "t", "mapping": {"b": "c"}}
    assert told(edith.post(path, json=body)) == {
        ("connection_id", "unknown_connection"), ("mapping.b", "unknown_field"),
    }  # fmt: skip


def test_a_dataset_reports_the_errors_of_all_tables(edith, template, shop):
    tables = [{"template_id": template, "count": 5, "name": "customers"}]
    dataset = edith.post("/datasets", json={"name": "D", "templates": tables}).json["id"]
    body = {
        "connection_id": shop.connection_id,
        "targets": {"nobody": "x", "customers": "no such table"},
        "mappings": {"customers": {"mail": "email"}},
        "mode": "replace",
        "parallel": 3,
    }
    assert told(edith.post(f"/datasets/{dataset}/push", json=body)) == {
        ("targets.nobody", "unknown_table"),
        ("targets.customers", "unknown_table"),
        ("mappings.customers.mail", "unknown_field"),
        ("mode", "not_allowed"),
        ("parallel", "not_for_this_type"),
    }


def test_http_settings_and_missing_fields_come_together(app, cast, edith, template, target):
    to = connection(app, cast, "rest", {"base_url": target.url("/api")})
    body = {
        "connection_id": to,
        "target": "rows/{{nope}}",
        "request_template": {"headers": {"X-A": "{{gone}}"}},
        "mapping": {"mail": "email"},
        "mode": "upsert",
        "before_sql": ["SELECT 1"],
    }
    found = told(edith.post(f"/templates/{template}/push", json=body))
    assert found == {
        ("request_template.path", "unknown_field"),
        ("request_template.headers.X-A", "unknown_field"),
        ("mapping.mail", "unknown_field"),
        ("mode", "not_allowed"),
        ("before_sql", "not_for_this_type"),
    }
    assert target.calls() == []


def test_an_unavailable_target_hides_no_error_of_the_request(app, cast, edith, template):
    settings = {"host": "127.0.0.1", "port": 9, "database": "x", "username": "u", "password": "p"}
    to = connection(app, cast, "postgresql", settings)
    path = f"/templates/{template}/push"
    assert edith.post(path, json={"connection_id": to}).status_code in (502, 504)
    body = {"connection_id": to, "mapping": {"mail": "email"}, "parallel": 2}
    assert told(edith.post(path, json=body)) == {
        ("mapping.mail", "unknown_field"), ("parallel", "not_for_this_type"),
    }  # fmt: skip


# --- A field that is missing is the caller's fault -----------------------------------------------------------


def sends(kind, edith, template, to) -> dict[str, object]:
    """Answers of each way to send rows with a mapping of a field that is not there."""
    dataset = edith.post(
        "/datasets", json={"name": "D", "templates": [{"template_id": template, "count": 2, "name": "t"}]}
    ).json["id"]
    wrong = {"mapping": {"nope": "a"}}
    created = {}
    for dry in (True, False):
        one = {"connection_id": to, "target": kind, "dry_run": dry, **wrong}
        created[f"push {dry}"] = edith.post(f"/templates/{template}/push", json=one)
        many = {
            "connection_id": to,
            "targets": {"t": kind},
            "mappings": {"t": wrong["mapping"]},
            "dry_run": dry,
        }
        created[f"dataset {dry}"] = edith.post(f"/datasets/{dataset}/push", json=many)
        value = {**one, "rows": [{"b": 1}]}
        created[f"rows {dry}"] = edith.post("/export/rest", json=value)
    value = {"connectionId": to, "rows": [{"b": 1}], "target": kind, **wrong}
    created["compat"] = edith.post("/compat/export/rest", json=value)
    return created


@pytest.mark.parametrize("kind", ["database", "rest", "odata"])
def test_a_missing_field_is_422_in_all_kinds_of_pushes(app, cast, edith, template, target, shop, kind):
    to, place = shop.connection_id, "customers"
    if kind == "rest":
        to = connection(app, cast, "rest", {"base_url": target.url()})
    if kind == "odata":
        to, place = connection(app, cast, "odata", {"service_url": target.url("/erp")}), "CustomerSet"
        assert edith.put(f"/connections/{to}/metadata-document", data=V2).status_code == 200
    answers = sends(place, edith, template, to)
    assert len(answers) == 7
    for name, answer in answers.items():
        path = "mappings.t.nope" if name.startswith("dataset") else "mapping.nope"
        assert (path, "unknown_field") in told(answer), name
    assert target.calls() == []


# --- A retry and an undo report all errors, too ------------------------------------------------------------------


@pytest.fixture
def ended(edith, template, shop, work):
    """Returns the id of a push of five rows that all arrived."""
    body = {"connection_id": shop.connection_id, "target": "customers", "count": 5}
    push = edith.post(f"/templates/{template}/push", json=body).json
    work(push["id"])
    assert edith.get(f"/pushes/{push['id']}").json["counts"]["delivered"] == 5
    return push["id"]


def change(app, connection_id: str, **columns) -> None:
    with app.app_context():
        found = db.session.get_one(Connection, connection_id)
        for name, value in columns.items():
            setattr(found, name, value)
        db.session.commit()
        db.session.remove()


def test_a_retry_reports_errors_of_its_body_repair_and_connection_together(app, edith, shop, ended):
    change(app, shop.connection_id, read_only=True, environment="prod")
    body = {
        "states": ["failed"],
        "on_error": "explode",
        "nope": 1,
        "mapping": {"mail": "email", "email": "no_such_column"},
        "computed": {"id": "id +* 2"},
        "overrides": {"phone": "1"},
    }
    expected = {
        ("on_error", "not_allowed"),
        ("nope", "unknown_key"),
        ("mapping.mail", "unknown_field"),
        ("mapping.email", "unknown_column"),
        ("overrides.phone", "unknown_field"),
        ("connection_id", "read_only_connection"),
        ("confirm", "needs_confirmation"),
        ("states", "nothing_to_send"),
    }
    found = told(edith.post(f"/pushes/{ended}/retry", json=body))
    assert found >= expected
    assert any(path.startswith("computed.id") for path, _ in found)
    del body["on_error"], body["nope"]
    found = told(edith.post(f"/pushes/{ended}/retry", json=body))
    assert found >= {item for item in expected if item[0] not in ("on_error", "nope")}
    assert edith.get(f"/pushes?of_id={ended}").json["total"] == 0


def test_a_retry_names_an_unknown_table_with_the_rest(app, edith, shop, ended):
    change(app, shop.connection_id, environment="prod")
    body = {"table": "Custmers", "overrides": {"phone": "1"}, "mapping": {"mail": "email"}}
    assert told(edith.post(f"/pushes/{ended}/retry", json=body)) == {
        ("table", "unknown_table"),
        ("overrides.phone", "unknown_field"),
        ("mapping.mail", "unknown_field"),
        ("confirm", "needs_confirmation"),
    }


def test_a_retry_of_a_dataset_needs_a_table_and_rejects_fixed_values_in_one_response(edith, shop, work):
    tables = [
        {"template_id": make(edith, name=name, fields=fields)["id"], "count": 3, "name": name}
        for name, fields in (("customers", CUSTOMERS), ("orders", ORDERS))
    ]
    dataset = edith.post("/datasets", json={"name": "D", "templates": tables}).json["id"]
    push = edith.post(f"/datasets/{dataset}/push", json={"connection_id": shop.connection_id}).json["id"]
    work(push)
    body = {"rows": [1], "overrides": {"email": "x"}, "states": ["failed", "later"]}
    assert told(edith.post(f"/pushes/{push}/retry", json=body)) == {
        ("table", "missing"), ("overrides", "not_allowed"), ("states[1]", "not_allowed"),
    }  # fmt: skip


def test_a_retry_to_an_unavailable_target_reports_the_errors_of_its_repair(app, edith, shop, ended, cast):
    settings = {"host": "127.0.0.1", "port": 9, "database": "x", "username": "u", "password": "p"}
    gone = connection(app, cast, "postgresql", settings)
    with app.app_context():
        push = db.session.get_one(Push, ended)
        push.connection_id = gone
        db.session.commit()
        db.session.remove()
    assert edith.post(f"/pushes/{ended}/retry", json={"mapping": {"email": "email"}}).status_code == 422
    assert told(edith.post(f"/pushes/{ended}/retry", json={"mapping": {"mail": "email"}})) == {
        ("mapping.mail", "unknown_field"), ("states", "nothing_to_send"),
    }  # fmt: skip


def test_a_retry_over_http_reports_missing_fields_of_its_request_with_the_repair(
    app, cast, edith, template, target, work
):
    to = connection(app, cast, "rest", {"base_url": target.url("/api")})
    body = {
        "connection_id": to, "target": "rows", "count": 3,
        "request_template": {"headers": {"X-Mail": "{{email}}"}},
    }  # fmt: skip
    push = edith.post(f"/templates/{template}/push", json=body).json["id"]
    work(push)
    calls = len(target.calls())
    body = {"mapping": {"email": None, "mail": "x"}, "overrides": {"phone": 1}}
    assert told(edith.post(f"/pushes/{push}/retry", json=body)) == {
        ("mapping.mail", "unknown_field"),
        ("overrides.phone", "unknown_field"),
        ("request_template.headers.X-Mail", "unknown_field"),
        ("states", "nothing_to_send"),
    }
    assert len(target.calls()) == calls == 3


def test_an_undo_reports_all_that_is_in_its_way(app, edith, template, shop, work):
    body = {"connection_id": shop.connection_id, "target": "customers", "mode": "upsert", "count": 5}
    push = edith.post(f"/templates/{template}/push", json=body).json["id"]
    work(push)
    change(app, shop.connection_id, read_only=True, environment="prod")
    assert told(edith.post(f"/pushes/{push}/undo", json={})) == {
        ("connection_id", "read_only_connection"), ("confirm", "needs_confirmation"), ("mode", "not_allowed"),
    }  # fmt: skip
