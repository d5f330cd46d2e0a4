"""Connections and endpoints: where rows go, and where values come from."""

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
        """The connections of the project."""
        return self._list("/connections", {"q": q, "type": type})

    def get(self, connection_id: str) -> types.ConnectionOut:
        """A connection; its secrets are `********`."""
        return self._get(CONNECTION, connection_id=connection_id)  # type: ignore[no-any-return]

    def create(
        self, *, idempotency_key: Key = None, **connection: Unpack[types.ConnectionIn]
    ) -> types.ConnectionOut:
        """Make a connection and verify it; one that fails is kept, and its `verification` says why."""
        return self._create("/connections", connection, idempotency_key)  # type: ignore[no-any-return]

    def update(
        self, connection_id: str, *, if_match: IfMatch = None, **changes: Unpack[types.ConnectionChange]
    ) -> types.ConnectionOut:
        """Change these parts; a secret sent back as `********` stays."""
        return self._change("PATCH", CONNECTION, changes, if_match, connection_id=connection_id)  # type: ignore[no-any-return]

    def delete(self, connection_id: str, *, if_match: IfMatch = None) -> types.ConnectionOut:
        """Delete a connection. Conflict `in_use` where others need it."""
        return self._delete(CONNECTION, if_match, connection_id=connection_id)  # type: ignore[no-any-return]

    def restore(self, connection_id: str) -> types.ConnectionOut:
        """Take the deletion back."""
        return self._ask(CONNECTION + "/restore", connection_id=connection_id)  # type: ignore[no-any-return]

    def verify(self, connection_id: str) -> types.VerificationOut:
        """Try it again, stage by stage."""
        return self._ask(CONNECTION + "/verify", connection_id=connection_id)  # type: ignore[no-any-return]

    def metadata(
        self,
        connection_id: str,
        *,
        refresh: Optional[bool] = None,
        entity: Optional[str] = None,
        q: Optional[str] = None,
        limit: Optional[int] = None,
    ) -> dict[str, Any]:
        """Its tables or entity sets, with their columns, keys and relations."""
        query = {"refresh": refresh, "entity": entity, "q": q, "limit": limit}
        return self._get(CONNECTION + "/metadata", query, connection_id=connection_id)  # type: ignore[no-any-return]

    def metadata_document(self, connection_id: str) -> bytes:
        """The document that was uploaded, as it was."""
        return self._caller.open("GET", DOCUMENT, parts={"connection_id": connection_id}).read()

    def upload_metadata_document(self, connection_id: str, document: Content) -> types.DocumentOut:
        """Use this `$metadata` or OpenAPI document: bytes, a text, a path (pathlib) or an open file."""
        parts = {"connection_id": connection_id}
        return self._caller.json("PUT", DOCUMENT, parts=parts, body=Raw(document))  # type: ignore[no-any-return]

    def delete_metadata_document(self, connection_id: str) -> types.ConnectionOut:
        """Remove the document: what the target tells of itself counts again."""
        return self._delete(DOCUMENT, connection_id=connection_id)  # type: ignore[no-any-return]

    def make_templates(
        self, connection_id: str, *, idempotency_key: Key = None, **request: Unpack[types.TablesIn]
    ) -> types.TablesOut:
        """A linked template for each of the `entities`."""
        return self._create(CONNECTION + "/templates", request, idempotency_key, connection_id=connection_id)  # type: ignore[no-any-return]

    def subset(
        self, connection_id: str, *, idempotency_key: Key = None, **request: Unpack[types.SubsetIn]
    ) -> types.SubsetOut:
        """A dataset of some rows of a `table` and of all that they are related to, personal columns masked."""
        return self._create(CONNECTION + "/subsets", request, idempotency_key, connection_id=connection_id)  # type: ignore[no-any-return]

    def refresh_fetched(self, connection_id: str) -> types.RefreshedOut:
        """Forget the values that were read through it."""
        return self._ask(CONNECTION + "/fetched/refresh", connection_id=connection_id)  # type: ignore[no-any-return]


class Endpoints(Resource):
    """`api.endpoints`."""

    def list(
        self, *, q: Optional[str] = None, connection_id: Optional[str] = None
    ) -> Pages[types.EndpointOut]:
        """The endpoints of the project."""
        return self._list("/endpoints", {"q": q, "connection_id": connection_id})

    def get(self, endpoint_id: str) -> types.EndpointOut:
        """An endpoint."""
        return self._get(ENDPOINT, endpoint_id=endpoint_id)  # type: ignore[no-any-return]

    def create(
        self, *, idempotency_key: Key = None, **endpoint: Unpack[types.EndpointIn]
    ) -> types.EndpointOut:
        """Make an endpoint: `name`, `method`, and `url` or `connection_id` with `path`."""
        return self._create("/endpoints", endpoint, idempotency_key)  # type: ignore[no-any-return]

    def update(
        self, endpoint_id: str, *, if_match: IfMatch = None, **changes: Unpack[types.EndpointChange]
    ) -> types.EndpointOut:
        """Change these parts."""
        return self._change("PATCH", ENDPOINT, changes, if_match, endpoint_id=endpoint_id)  # type: ignore[no-any-return]

    def delete(self, endpoint_id: str, *, if_match: IfMatch = None) -> types.EndpointOut:
        """Delete an endpoint."""
        return self._delete(ENDPOINT, if_match, endpoint_id=endpoint_id)  # type: ignore[no-any-return]

    def restore(self, endpoint_id: str) -> types.EndpointOut:
        """Take the deletion back."""
        return self._ask(ENDPOINT + "/restore", endpoint_id=endpoint_id)  # type: ignore[no-any-return]
