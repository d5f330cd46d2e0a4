"""Connections and endpoints: targets of rows and sources of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from rowsmith.pages import Pages
from rowsmith.record import IfMatch
from rowsmith.resources.base import Key, Resource
from rowsmith.wire.bodies import Content, Raw

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rowsmith import types

CONNECTION = "/connections/{connection_id}"
DOCUMENT = CONNECTION + "/metadata-document"
ENDPOINT = "/endpoints/{endpoint_id}"


class Connections(Resource):
    """`api.connections`."""

    def list(self, *, q: Optional[str] = None, type: Optional[str] = None) -> Pages[types.ConnectionOut]:
        """List the connections of the project."""
        return self._list("/connections", {"q": q, "type": type})

    def get(self, connection_id: str) -> types.ConnectionOut:
        """Return a connection; its secrets are `********`."""
        return self._get(CONNECTION, connection_id=connection_id)

    def create(
        self, *, idempotency_key: Key = None, **connection: Unpack[types.ConnectionIn]
    ) -> types.ConnectionOut:
        """Create a connection and verify it. A connection that fails is saved; its `verification` contains
        the reason."""
        return self._create("/connections", connection, idempotency_key)

    def update(
        self, connection_id: str, *, if_match: IfMatch = None, **changes: Unpack[types.ConnectionChange]
    ) -> types.ConnectionOut:
        """Change the given settings. A secret sent back as `********` is kept."""
        return self._change("PATCH", CONNECTION, changes, if_match, connection_id=connection_id)

    def delete(self, connection_id: str, *, if_match: IfMatch = None) -> types.ConnectionOut:
        """Delete a connection. Raises Conflict `in_use` if other objects use it."""
        return self._delete(CONNECTION, if_match, connection_id=connection_id)

    def restore(self, connection_id: str) -> types.ConnectionOut:
        """Restore a deleted object."""
        return self._ask(CONNECTION + "/restore", connection_id=connection_id)

    def verify(self, connection_id: str) -> types.VerificationOut:
        """Verify the connection again, stage by stage."""
        return self._ask(CONNECTION + "/verify", connection_id=connection_id)

    def metadata(
        self,
        connection_id: str,
        *,
        refresh: Optional[bool] = None,
        entity: Optional[str] = None,
        q: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> dict[str, Any]:
        """Return its tables or entity sets, with their columns, keys and relations."""
        query = {"refresh": refresh, "entity": entity, "q": q, "limit": limit}
        return self._get(CONNECTION + "/metadata", query, connection_id=connection_id)

    def metadata_document(self, connection_id: str) -> bytes:
        """Return the uploaded document unchanged."""
        return self._caller.open("GET", DOCUMENT, parts={"connection_id": connection_id}).read()

    def upload_metadata_document(self, connection_id: str, document: Content) -> types.DocumentOut:
        """Use this `$metadata` or OpenAPI document: bytes, a text, a path (pathlib) or an open file."""
        parts = {"connection_id": connection_id}
        return self._caller.json("PUT", DOCUMENT, parts=parts, body=Raw(document))

    def delete_metadata_document(self, connection_id: str) -> types.ConnectionOut:
        """Remove the document, so that the target's own metadata is used again."""
        return self._delete(DOCUMENT, connection_id=connection_id)

    def make_templates(
        self, connection_id: str, *, idempotency_key: Key = None, **request: Unpack[types.TablesIn]
    ) -> types.TablesOut:
        """Create related templates from the given `entities`."""
        return self._create(CONNECTION + "/templates", request, idempotency_key, connection_id=connection_id)

    def fill(
        self, connection_id: str, *, idempotency_key: Key = None, **request: Unpack[types.FillInput]
    ) -> types.FillOut:
        """Fill the tables of a database: create templates and a dataset, and send `rows` rows to each table.

        With `dry_run` nothing is sent, and the result has a `plan` instead of a `push`.
        """
        return self._create(CONNECTION + "/fill", request, idempotency_key, connection_id=connection_id)

    def subset(
        self, connection_id: str, *, idempotency_key: Key = None, **request: Unpack[types.SubsetIn]
    ) -> types.SubsetOut:
        """Create a dataset from a subset of a `table` and all related rows, with personal columns masked."""
        return self._create(CONNECTION + "/subsets", request, idempotency_key, connection_id=connection_id)

    def refresh_fetched(self, connection_id: str) -> types.RefreshedOut:
        """Clear the cache of values that were read through the connection."""
        return self._ask(CONNECTION + "/fetched/refresh", connection_id=connection_id)


class Endpoints(Resource):
    """`api.endpoints`."""

    def list(
        self, *, q: Optional[str] = None, connection_id: Optional[str] = None
    ) -> Pages[types.EndpointOut]:
        """List the endpoints of the project."""
        return self._list("/endpoints", {"q": q, "connection_id": connection_id})

    def get(self, endpoint_id: str) -> types.EndpointOut:
        """An endpoint."""
        return self._get(ENDPOINT, endpoint_id=endpoint_id)

    def create(
        self, *, idempotency_key: Key = None, **endpoint: Unpack[types.EndpointIn]
    ) -> types.EndpointOut:
        """Create an endpoint: `name`, `method`, and `url` or `connection_id` with `path`."""
        return self._create("/endpoints", endpoint, idempotency_key)

    def update(
        self, endpoint_id: str, *, if_match: IfMatch = None, **changes: Unpack[types.EndpointChange]
    ) -> types.EndpointOut:
        """Change the given keys."""
        return self._change("PATCH", ENDPOINT, changes, if_match, endpoint_id=endpoint_id)

    def delete(self, endpoint_id: str, *, if_match: IfMatch = None) -> types.EndpointOut:
        """Delete an endpoint."""
        return self._delete(ENDPOINT, if_match, endpoint_id=endpoint_id)

    def restore(self, endpoint_id: str) -> types.EndpointOut:
        """Restore a deleted object."""
        return self._ask(ENDPOINT + "/restore", endpoint_id=endpoint_id)
