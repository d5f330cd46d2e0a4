"""A connection to an OData service: metadata, reading values, and senders of rows."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import requests

from webapp import limits
from webapp.connectors.base import ConnectorError, WriteSpec
from webapp.connectors.http.channel import Channel, SendControl
from webapp.connectors.http.verification import from_net_error
from webapp.connectors.odata import entities, responses
from webapp.connectors.odata import metadata as odata_metadata
from webapp.connectors.odata.client import ServiceClient, ServiceEndpoint, named
from webapp.connectors.odata.model import Service, Version
from webapp.connectors.odata.sending import OdataSender
from webapp.connectors.odata.values import Shaper, service_of
from webapp.connectors.rest.fetch import Fetched, Fetching, Manner
from webapp.connectors.schema import Entity, Metadata
from webapp.net.session import NetError, Reply, Session, exchange, open_session
from webapp.net.urls import shown

if TYPE_CHECKING:
    from webapp.connectors.odata.connector import OdataConnector

_XML = {"Accept": "application/xml"}
_JSON = {"Accept": "application/json"}
_IEEE = "ieee754compatible=true"


class OdataChannel(Channel):
    """See `Channel`."""

    def __init__(self, connector: OdataConnector, seconds: float) -> None:
        self.connector, self.settings, self.seconds = connector, connector.settings, seconds
        self.endpoint = ServiceEndpoint(connector.settings, connector.gate, connector.redact)
        self._lock = threading.Lock()
        self._client: ServiceClient | None = None
        self._sendings: list[OdataSender] = []
        self._fetching: Session | None = None
        self._service: Service | None = None
        self._stopped = False
        self._last: Reply | None = None

    def close(self) -> None:
        """See `Link.close`."""
        with self._lock:
            client, self._client, sendings = self._client, None, list(self._sendings)
        for sending in sendings:
            sending.close()
        if client is not None:
            client.close()

    def cancel(self) -> None:
        """See `Link.cancel`."""
        with self._lock:
            self._stopped, client, sendings = True, self._client, list(self._sendings)
            fetching = self._fetching
        for one in sendings:
            one.stop()
        if client is not None:
            client.stop()
        if fetching is not None:
            fetching.stop()

    def _reader(self) -> ServiceClient:
        with self._lock:
            if self._client is None:
                self._client = ServiceClient(self.endpoint)
            if self._stopped:
                self._client.stop()
            return self._client

    def _get(
        self, path: str, headers: dict[str, str], params: dict[str, str] | None = None, most: int = 0
    ) -> Reply:
        request = self.endpoint.request("GET", path, dict(headers), params=params)
        self._last = self._reader().read(request, self.seconds, most or limits.HTTP_ANSWER_BYTES)
        return self._last

    # --- metadata

    def service(self) -> Service:
        """Return the service's model, which is read once from the uploaded document or fetched. Raises
        `ConnectorError`."""
        if self._service is None:
            document = self.connector.document
            found = odata_metadata.read_safely(self._document() if document is None else document)
            if self.settings.odata_version != "auto":
                found.version = self.settings.odata_version
            self._service = found
        return self._service

    def _document(self) -> bytes:
        try:
            reply = self._get("$metadata", _XML, most=limits.ODATA_DOCUMENT_BYTES)
        except NetError as error:
            raise from_net_error(error) from None
        if reply.status == 200 and not reply.truncated:
            return reply.body
        if reply.truncated:
            most = limits.ODATA_DOCUMENT_BYTES // limits.MB
            raise odata_metadata.bad_document(f"The $metadata document is larger than {most} MB.")
        raise self._no_metadata(reply)

    def _no_metadata(self, reply: Reply) -> ConnectorError:
        """Return the error for missing metadata. A 401 only for `$metadata` is a policy of the gateway
        (specification, section 4, behaviour 7)."""
        said = self.connector.redact(responses.fault(reply.body).message)[:200]
        if reply.status in (401, 403) and self._root_status() == 200:
            return ConnectorError(
                f"$metadata returns {reply.status}, but the service root returns 200: the gateway treats metadata"
                " differently.",
                reason="metadata_refused",
                hint="Allow $metadata for the same account in the gateway, or upload the $metadata document, which is"
                " then used instead of fetching it.",
            )
        reason = (
            "auth_failed"
            if reply.status == 401
            else "no_permission"
            if reply.status == 403
            else "no_metadata"
        )
        return ConnectorError(
            f"$metadata returned {reply.status}: {said or reply.reason}",
            reason=reason,
            hint="Check service_url: it is the parent address of $metadata, such as .../sap/opu/odata/sap/NAME/."
            if reason == "no_metadata"
            else "Check the user name, the password and the authorizations of this account.",
            transient=reply.status in self.settings.retry.retry_on,
        )

    def _root_status(self) -> int:
        try:
            return self._get("", _JSON).status
        except NetError:
            return 0

    def metadata(self) -> Metadata:
        """See `Link.metadata`."""
        return entities.metadata(self.service())

    def entity(self, name: str) -> Entity | None:
        """See `Link.entity`: uses known metadata first, then the service."""
        known = self.connector.known
        if known is not None and self.connector.document is None:
            named_so = [entity for entity in known.entities if entity.name == name]
            if named_so:
                return named_so[0]
        service = self.service()
        found = service.sets.get(name)
        if found is None:
            alike = [one for one in service.sets if one.lower() == name.lower()]
            found = service.sets[alike[0]] if len(alike) == 1 else None
        return entities.entity(service, found) if found is not None else None

    # --- reading values

    def fetch(self, paths: Sequence[str], manner: Manner) -> Fetched:
        """See `rest.fetch.Fetches`: fetches paths below the service root, with the parameters of every
        request."""
        settings, endpoint = self.settings, self.endpoint
        base = f"{endpoint.root}?{urlencode(endpoint.query)}" if endpoint.query else endpoint.root
        with open_session(endpoint.gate, verify_tls=settings.trust, pool=settings.parallel) as session:
            with self._lock:
                self._fetching = session
                if self._stopped:
                    session.stop()
            try:
                return Fetching(
                    self.connector, session, settings.auth.requests_auth(session), manner, base
                ).all(paths)
            finally:
                with self._lock:
                    self._fetching = None

    # --- sending

    def sending(self, writing: WriteSpec, hand: SendControl) -> OdataSender:
        """See `Channel.sending`."""
        if self.connector.read_only:
            raise ConnectorError(
                "This connection is read-only.", code="read_only_connection", reason="read_only"
            )
        if writing.mode not in self.connector.can.modes:
            raise ConnectorError(
                f"OData does not support {writing.mode}.",
                reason="unsupported",
                hint="Use insert, or update by key.",
            )
        service = self._service_for(writing.entity)
        strings = _IEEE in self.settings.default_headers.get("Content-Type", "").lower()
        shaper = Shaper(service, service.sets[writing.entity.name], self.endpoint.root, strings)
        made = OdataSender(self.endpoint, shaper, writing, hand)
        with self._lock:
            self._sendings.append(made)
        return made

    def _service_for(self, entity: Entity) -> Service:
        """Return the service. If its metadata is not available, derive it from the entity's columns."""
        try:
            service = self.service()
        except ConnectorError as error:
            if error.reason not in ("metadata_refused", "no_metadata", "no_permission"):
                raise
            return service_of(entity, self._version())
        if entity.name not in service.sets:
            raise ConnectorError(
                f"The service has no entity set {entity.name}.",
                reason="no_table",
                hint="Refresh the metadata.",
            )
        return service

    def _version(self) -> Version:
        if self.settings.odata_version != "auto":
            return self.settings.odata_version
        known = self.connector.known
        return "v2" if known is not None and known.version.endswith("V2") else "v4"

    # --- verification

    def response(self) -> dict[str, Any] | None:
        """Return the last response, for the report of a verification."""
        reply = self._last
        if reply is None:
            return None
        text = reply.body[: limits.HTTP_BODY_CHARS].decode("utf-8", "replace")
        return {
            "method": "GET",
            "url": shown(reply.url),
            "status": reply.status,
            "content_type": reply.headers.get("Content-Type", ""),
            "body": self.connector.redact(text),
            "ms": reply.ms,
        }

    def greeted(self) -> str:
        """Run the stage `tls`. Raises NetError (reason `tls_failed`)."""
        if not self.endpoint.root.startswith("https:"):
            return "Without TLS: credentials and rows are sent unencrypted."
        session = self.endpoint.session()
        try:
            exchange(
                session, requests.Request("HEAD", self.endpoint.root), timeout_seconds=limits.TARGET_CONNECT_SECONDS,
                max_bytes=limits.HTTP_ANSWER_BYTES, follow=False,
            )  # fmt: skip
        except NetError as error:
            if error.reason != "reset":
                raise
        finally:
            session.close()
        return "The certificate is trusted."

    def let_in(self) -> str:
        """Run the stage `auth`."""
        reply = self._get("", _JSON)
        if reply.status == 401:
            raise ConnectorError(
                f"The service root returned 401: {responses.fault(reply.body).message[:200] or reply.reason}",
                reason="auth_failed",
                hint="Check the kind of authentication, the account and its password or token.",
            )
        if reply.status < 300 and "html" in reply.headers.get("Content-Type", ""):
            raise ConnectorError(
                "The service root returned an HTML page, probably a login form.",
                reason="auth_failed",
                hint="Use an account that signs in without a browser: basic, a bearer token, or client credentials.",
            )
        return f"The service root returned {reply.status}."

    def permitted(self) -> str:
        """Run the stage `permission`: the metadata, and a CSRF token if the service issues one."""
        service = self.service()
        if not service.sets:
            raise ConnectorError(
                "The service has no entity sets.",
                reason="no_permission",
                hint="Check service_url, and the account's authorizations.",
            )
        origin = "uploaded document" if self.connector.document is not None else "$metadata"
        said = f"OData {service.version.upper()}, {len(service.sets)} entity sets ({origin})."
        return f"{said} {self._tokens()}".strip()

    def _tokens(self) -> str:
        if self.settings.csrf == "off":
            return ""
        found = self._reader().fetch(self.seconds)
        return f"A CSRF token was issued ({found.tried[-1]})." if found.token else "No CSRF token was issued."

    def sampled(self) -> str:
        """Run the stage `sample`. Skips sets that require a filter. The first set that returns rows is
        enough."""
        service, told = self.service(), ""
        sets = [one for one in service.sets.values() if one.terms.get("required-in-filter") is not True]
        for one in sets[:3]:
            reply = self._get(named(one.name), _JSON, {"$top": "1"})
            if reply.status < 300:
                return f"{one.name} returned rows."
            told = told or f"{one.name} returned {reply.status}: {responses.fault(reply.body).message[:200]}"
        if not told:
            return "All entity sets require a filter: none was read."
        raise ConnectorError(
            told,
            reason="no_permission",
            hint="Check that the account can read the entity sets. Sending rows may still be possible.",
        )
