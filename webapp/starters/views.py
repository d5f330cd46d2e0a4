"""Pages of the starters: what a starter contains, and creating it."""

from __future__ import annotations

from flask import Blueprint, Response, flash, url_for

from webapp.access.actors import Actor
from webapp.row_templates.services import catalogue
from webapp.starters import services
from webapp.starters.catalogue import STARTERS
from webapp.web.responses import reply, see_other
from webapp.web.routing import route

bp = Blueprint("starters", __name__)


@route(bp, "/starters", scope="read", hidden=True, allows_api_keys=False)
def index(actor: Actor) -> Response:
    """List the starters."""
    return reply({"items": list(STARTERS.values())}, template="starters/list.html")


@route(bp, "/starters/<key>", scope="read", hidden=True, allows_api_keys=False)
def show(actor: Actor, key: str) -> Response:
    """Show the tables of a starter, with their fields and relations. Nothing is saved."""
    labels = {entry["name"]: entry["label"] for entry in catalogue.entries()}
    return reply(services.get(key), template="starters/show.html", labels=labels)


@route(bp, "/starters/<key>", ["POST"], scope="write", hidden=True, allows_api_keys=False)
def create(actor: Actor, key: str) -> Response:
    """Create the templates and the dataset of a starter, and open the dataset."""
    starter = services.get(key)
    dataset = services.create(actor, starter)
    flash(f"{len(starter.tables)} templates and a dataset created")
    return see_other(url_for("datasets.show", dataset_id=dataset["id"]))
