"""Find endpoints. Their requests are defined in `webapp.endpoints`."""

from __future__ import annotations

from webapp import limits, pagination
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.models import Endpoint


def get(actor: Actor, endpoint_id: str, scope: str = "read", **how: bool) -> Endpoint:
    """Return an endpoint. Errors: not_found, forbidden."""
    return tenancy.get(actor, Endpoint, endpoint_id, scope, **how)


def listing(
    actor: Actor,
    *,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    q: str | None = None,
    connection_id: str | None = None,
) -> pagination.Page[Endpoint]:
    """Return a page of the project's endpoints, newest first. `q` searches names."""
    statement = tenancy.listing(actor, Endpoint)
    if connection_id is not None:
        statement = statement.where(Endpoint.connection_id == connection_id)
    return pagination.page(
        statement,
        name="endpoints",
        identity=Endpoint.id,
        cursor=cursor,
        limit=limit,
        search=(q, Endpoint.name),
        context=f"{actor.project_id} {connection_id}",
        sizes=(Endpoint.settings,),
    )
