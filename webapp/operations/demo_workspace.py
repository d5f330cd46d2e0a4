"""The demo: a workspace with linked templates, a dataset, a target database and scenarios, to show what the product
does. Created once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from flask import current_app
from sqlalchemy import select

from webapp import limits
from webapp.access import actors, tenancy
from webapp.access.actors import Actor
from webapp.access.models import Project, Team, Workspace
from webapp.accounts.services import people, workspaces
from webapp.connections.models import Connection
from webapp.connections.services import access, connections, inspection
from webapp.datasets.models import Dataset
from webapp.datasets.services import datasets
from webapp.extensions import db
from webapp.row_templates.models import Template
from webapp.row_templates.services import templates
from webapp.scenarios import examples

EMAIL: Final = "demo@example.com"  # RFC 2606: a reserved domain
WORKSPACE: Final = "My workspace"
PROJECT: Final = "Sample project"
_COMPLETE_SETTING: Final = "demo_seeded"  # among the workspace's settings, once all of it is there


@dataclass(frozen=True, slots=True)
class DemoInfo:
    """The location of the demo. `made` says whether this call completed it."""

    email: str
    workspace_id: str
    project_id: str
    template_ids: tuple[str, ...]
    created: bool


def _field(name: str, kind: str, /, **more: Any) -> dict[str, Any]:
    common = {"unique", "percent_blank", "prefix", "suffix", "text_case", "hidden", "group"}
    options = {key: value for key, value in more.items() if key not in common}
    return {"name": name, "type": kind, "options": options, **{k: v for k, v in more.items() if k in common}}


CUSTOMERS: Final[dict[str, Any]] = {
    "name": "Customers",
    "description": "People with an address. E-mail, phone, city, state and zip code belong together in every row.",
    "quantity": 100,
    "locale": "en_US",
    "fields": [
        _field("id", "row_number"),
        _field("first_name", "first_name"),
        _field("last_name", "last_name"),
        _field("email", "email", unique=True),
        _field("phone", "phone_number"),
        _field("company", "company_name", percent_blank=30),
        _field("street", "street_address"),
        _field("city", "city"),
        _field("state", "state_abbr"),
        _field("zip_code", "zip_code"),
        _field("country", "country"),
        _field("customer_since", "date", min="-5y", max="now"),
    ],
}

ORDERS: Final[dict[str, Any]] = {
    "name": "Orders",
    "description": "One to five for each customer, with a number derived from two fields and the total of its lines.",
    "quantity": 300,
    "fields": [
        _field("id", "row_number"),
        _field(
            "customer_id", "reference", template_id="Customers", field="id", cardinality={"min": 1, "max": 5}
        ),
        _field("customer_email", "reference", template_id="Customers", field="email"),
        _field("ordered_at", "datetime", min="-90d", max="now"),
        _field("serial", "sequence", start=1, pad=6, hidden=True),
        _field("order_number", "derived", value="{{ordered_at | date('YYYYMM')}}-{{serial}}"),
        _field("status", "enum", values=["paid", "shipped", "open", "returned"], weights=[50, 30, 15, 5]),
        _field("note", "sentences", count=1, percent_blank=80),
    ],
}

TOTALS: Final = (
    _field("lines", "aggregate", template_id="Order lines", function="count"),
    _field("total", "aggregate", template_id="Order lines", function="sum", field="amount"),
)
"""Fields of an order that are calculated from its lines; added after the lines exist."""

LINES: Final[dict[str, Any]] = {
    "name": "Order lines",
    "description": "One to five for each order. Amounts follow from two other fields, totals of orders from amounts.",
    "quantity": 900,
    "fields": [
        _field("order_id", "reference", template_id="Orders", field="id", cardinality={"min": 1, "max": 5}),
        _field("line", "position_in_parent"),
        _field("product", "product_name"),
        _field("sku", "sku"),
        _field("quantity", "number", min=1, max=12),
        _field(
            "unit_price", "number", min=3, max=900, decimals=2, distribution="lognormal", mean=60, stddev=55
        ),
        _field("amount", "formula", expression="quantity * unit_price"),
    ],
}

DOCUMENTS: Final[dict[str, Any]] = {
    "name": "Order documents",
    "description": "Nested JSON: each order contains its customer, an address and one to four lines.",
    "quantity": 20,
    "fields": [
        _field("id", "uuid"),
        _field("placed_at", "datetime", min="-30d", max="now"),
        _field(
            "customer",
            "nested",
            fields=[
                _field("name", "name"),
                _field("email", "email"),
                _field("phone", "phone_number", percent_blank=20),
            ],
        ),
        _field(
            "shipping_address",
            "nested",
            fields=[
                _field("street", "street_address"),
                _field("city", "city"),
                _field("zip_code", "zip_code"),
                _field("country", "country"),
                _field("country_code", "country_code"),
            ],
        ),
        _field(
            "lines",
            "nested",
            array=True,
            count={"min": 1, "max": 4},
            fields=[
                _field("sku", "sku"),
                _field("product", "product_name"),
                _field("quantity", "number", min=1, max=5),
                _field("unit_price", "number", min=2, max=400, decimals=2),
            ],
        ),
        _field("paid", "boolean", probability=0.8),
    ],
}

TEMPLATES: Final = (CUSTOMERS, ORDERS, LINES, DOCUMENTS)

SHOP: Final[dict[str, Any]] = {
    "name": "Shop",
    "description": "Customers, their orders and the orders' lines, with one seed: every foreign key matches a row.",
    "seed": "shop",
    "templates": ("Customers", "Orders", "Order lines"),
}

DATABASE: Final[dict[str, Any]] = {
    "name": "Shop database",
    "type": "sqlite",
    "settings": {"file": "shop.db"},
    "environment": "dev",
}
TABLES: Final = (
    """CREATE TABLE IF NOT EXISTS customers (
    id BIGINT PRIMARY KEY NOT NULL, first_name VARCHAR(60) NOT NULL, last_name VARCHAR(60) NOT NULL,
    email VARCHAR(120) NOT NULL UNIQUE, phone VARCHAR(40), company VARCHAR(120), street VARCHAR(120), city VARCHAR(80),
    state VARCHAR(3), zip_code VARCHAR(16), country VARCHAR(60), customer_since DATE)""",
    """CREATE TABLE IF NOT EXISTS orders (
    id BIGINT PRIMARY KEY NOT NULL, customer_id BIGINT NOT NULL REFERENCES customers (id),
    customer_email VARCHAR(120), ordered_at TIMESTAMP NOT NULL, order_number VARCHAR(20) NOT NULL,
    status VARCHAR(10) NOT NULL CHECK (status IN ('open', 'paid', 'shipped', 'returned')), note TEXT, lines INTEGER,
    total NUMERIC(12, 2))""",
    """CREATE TABLE IF NOT EXISTS order_lines (
    order_id BIGINT NOT NULL REFERENCES orders (id), line INTEGER NOT NULL, product VARCHAR(120) NOT NULL,
    sku VARCHAR(30), quantity INTEGER NOT NULL CHECK (quantity > 0), unit_price NUMERIC(10, 2) NOT NULL,
    amount NUMERIC(12, 2), PRIMARY KEY (order_id, line))""",
)
"""Creates the empty tables of the shop, parents first. The dataset and its templates match them."""


def ensure_demo(plan: str = limits.DEMO_PLAN) -> DemoInfo | None:
    """Create the demo in an empty service, or complete an interrupted creation. Needs an application context; commits.

    Return the location of the demo; None if there is another workspace instead. A completed demo is not changed: plan,
    names and deleted templates stay as its users left them.
    """
    user = people.find_user(EMAIL)
    if user is None:
        if db.session.scalar(select(Workspace.id).limit(1)) is not None:
            return None
        user = people.create_user(actors.system_actor(), EMAIL, name="Demo")
    workspaces_of_user = tenancy.workspaces_of(user.id)
    workspace = (
        workspaces_of_user[0]
        if workspaces_of_user
        else workspaces.create_workspace(actors.system_actor(), WORKSPACE, plan=plan, owner=user)
    )
    was_complete = bool(workspace.settings.get(_COMPLETE_SETTING))
    system = actors.system_actor(workspace.id)
    project = _oldest(Project, workspace)
    if project is None:
        team = _oldest(Team, workspace) or workspaces.create_team(system, "Team")
        project = workspaces.create_project(system, PROJECT, team_id=team.id)
    demo_actor = replace(system, user_id=user.id, project_id=project.id, team_id=project.team_id)
    if not was_complete:
        for template in TEMPLATES:
            if _find_template(demo_actor, template["name"]) is None:
                fields = [_with_template_id(demo_actor, field) for field in template["fields"]]
                templates.create(demo_actor, **{**template, "fields": fields})
        _add_totals(demo_actor)
        _create_dataset(demo_actor)
        if current_app.config["SETTINGS"].hosts == 1:  # its database is a file of one machine
            _create_database(demo_actor)
        examples.create_missing(demo_actor)
        workspaces.change_workspace(system, {"settings": {**workspace.settings, _COMPLETE_SETTING: True}})
    assert demo_actor.project_id is not None
    ids = select(Template.id).where(
        Template.project_id == demo_actor.project_id, Template.deleted_at.is_(None)
    )
    template_ids = tuple(db.session.scalars(ids.order_by(Template.id)))
    return DemoInfo(user.email, workspace.id, demo_actor.project_id, template_ids, created=not was_complete)


def _oldest(model: Any, workspace: Workspace) -> Any:
    return db.session.scalar(
        select(model).where(model.workspace_id == workspace.id).order_by(model.id).limit(1)
    )


def _find_template(actor: Actor, name: str) -> Template | None:
    statement = select(Template).where(Template.project_id == actor.project_id, Template.name == name)
    return db.session.scalar(statement.where(Template.deleted_at.is_(None)).limit(1))


def _with_template_id(actor: Actor, field: dict[str, Any]) -> dict[str, Any]:
    """Return a field with the id of the other template instead of its name."""
    template_name = field["options"].get("template_id")
    other = _find_template(actor, template_name) if template_name else None
    return {**field, "options": {**field["options"], "template_id": other.id}} if other else field


def _add_totals(actor: Actor) -> None:
    orders = _find_template(actor, ORDERS["name"])
    if orders is None or orders.version > 1 or _find_template(actor, LINES["name"]) is None:
        return
    fields = templates.version_of(orders).spec["fields"]
    locked = templates.get(actor, orders.id, "write", lock=True)
    templates.change(
        actor, locked, {"fields": [*fields, *(_with_template_id(actor, field) for field in TOTALS)]}
    )


def _create_dataset(actor: Actor) -> None:
    tables = [found for name in SHOP["templates"] if (found := _find_template(actor, name)) is not None]
    existing = db.session.scalar(select(Dataset.id).where(Dataset.project_id == actor.project_id).limit(1))
    if existing is None and len(tables) == len(SHOP["templates"]):
        datasets.create(
            actor, **{**SHOP, "templates": [{"template_id": table.id, "count": None} for table in tables]}
        )


def _create_database(actor: Actor) -> None:
    """Create the connection to the shop's database, and its tables."""
    connections_of_project = select(Connection).where(
        Connection.project_id == actor.project_id, Connection.deleted_at.is_(None)
    )
    found = db.session.scalar(connections_of_project.where(Connection.name == DATABASE["name"]).limit(1))
    found = found or connections.create(actor, **DATABASE, verifies=False)
    with access.open_session(found) as session:
        for statement in TABLES:
            session.execute(statement)
    inspection.verify(actor, found, is_trusted=True)
