"""An open way to an OData service: its metadata, and places to send rows to."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import requests

from webapp import limits
from webapp.connectors import documents, odata_answers, odata_entities, odata_metadata
from webapp.connectors.base import ConnectorError, Writing
from webapp.connectors.channel import Channel, Hand
from webapp.connectors.http_stages import of_net
from webapp.connectors.odata_model import Service, Version
from webapp.connectors.odata_sending import OdataSending
from webapp.connectors.odata_values import Shaper, service_of
from webapp.connectors.odata_way import Sender, Way, named
from webapp.connectors.rest_fetch import Fetched, Fetching, Manner
from webapp.connectors.shape import Entity, Metadata
from webapp.net.session import NetError, Reply, Session, exchange, open_session, shown

if TYPE_CHECKING:
    from webapp.connectors.odata import OdataConnector

_XML = {"Accept": "application/xml"}
_JSON = {"Accept": "application/json"}
_IEEE = "ieee754compatible=true"


class OdataChannel(Channel):
    """See `Channel`."""

    def __init__(self, connector: OdataConnector, seconds: float) -> None:
        self.connector, self.settings, self.seconds = connector, connector.settings, seconds
        self.way = Way(connector.settings, connector.gate, connector.hush)
        self._lock = threading.Lock()
        self._sender: Sender | None = None
        self._sendings: list[OdataSending] = []
        self._fetching: Session | None = None
        self._service: Service | None = None
        self._stopped = False
        self._last: Reply | None = None

    def close(self) -> None:
        """See `Link.close`."""
        with self._lock:
            sender, self._sender, sendings = self._sender, None, list(self._sendings)
        for one in sendings:
            one.close()
        if sender is not None:
            sender.close()

    def cancel(self) -> None:
        """See `Link.cancel`."""
        with self._lock:
            self._stopped, sender, sendings = True, self._sender, list(self._sendings)
            fetching = self._fetching
        for one in (*sendings, *([sender] if sender else []), *([fetching] if fetching else [])):
            one.stop()

    def _reader(self) -> Sender:
        with self._lock:
            if self._sender is None:
                self._sender = Sender(self.way)
            if self._stopped:
                self._sender.stop()
            return self._sender

    def _get(
        self, path: str, headers: dict[str, str], params: dict[str, str] | None = None, most: int = 0
    ) -> Reply:
        request = self.way.request("GET", path, dict(headers), params=params)
        self._last = self._reader().read(request, self.seconds, most or limits.HTTP_ANSWER_BYTES)
        return self._last

    # --- metadata

    def service(self) -> Service:
        """The service's model, read once: of the uploaded document, else fetched. Raises `ConnectorError`."""
        if self._service is None:
            document = self.connector.document
            found = documents.odata_service(self._document() if document is None else document)
            if self.settings.odata_version != "auto":
                found.version = self.settings.odata_version
            self._service = found
        return self._service

    def _document(self) -> bytes:
        try:
            reply = self._get("$metadata", _XML, most=limits.ODATA_DOCUMENT_BYTES)
        except NetError as error:
            raise of_net(error) from None
        if reply.status == 200 and not reply.truncated:
            return reply.body
        if reply.truncated:
            most = limits.ODATA_DOCUMENT_BYTES // limits.MB
            raise odata_metadata.bad_document(f"The document at $metadata has more than {most} MB.")
        raise self._no_metadata(reply)

    def _no_metadata(self, reply: Reply) -> ConnectorError:
        """A 401 of `$metadata` alone is the gateway's policy (specification, section 4, behaviour 7)."""
        said = self.connector.hush(odata_answers.fault(reply.body).message)[:200]
        if reply.status in (401, 403) and self._root_status() == 200:
            return ConnectorError(
                f"$metadata answers {reply.status}, while the service root answers 200: the gateway treats metadata"
                " differently.",
                reason="metadata_refused",
                hint="Allow $metadata for the same account in the gateway, or upload the $metadata document: it is"
                " then used and not fetched.",
            )
        reason = (
            "auth_failed"
            if reply.status == 401
            else "no_permission"
            if reply.status == 403
            else "no_metadata"
        )
        return ConnectorError(
            f"$metadata answers {reply.status}: {said or reply.reason}",
            reason=reason,
            hint="Check service_url: it is the address below which $metadata lies, like .../sap/opu/odata/sap/NAME/."
            if reason == "no_metadata"
            else "Check user, password and authorizations of this account.",
            transient=reply.status in self.settings.retry.retry_on,
        )

    def _root_status(self) -> int:
        try:
            return self._get("", _JSON).status
        except NetError:
            return 0

    def metadata(self) -> Metadata:
        """See `Link.metadata`."""
        return odata_entities.metadata(self.service())

    def entity(self, name: str) -> Entity | None:
        """See `Link.entity`: of what is known already, else of the service."""
        known = self.connector.known
        if known is not None and self.connector.document is None:
            named_so = [one for one in known.entities if one.name == name]
            if named_so:
                return named_so[0]
        service = self.service()
        found = service.sets.get(name)
        if found is None:
            alike = [one for one in service.sets if one.lower() == name.lower()]
            found = service.sets[alike[0]] if len(alike) == 1 else None
        return odata_entities.entity(service, found) if found is not None else None

    # --- reading values

    def fetch(self, paths: Sequence[str], manner: Manner) -> Fetched:
        """See `rest_fetch.Fetches`: paths below the service root, each with what every request carries."""
        settings, way = self.settings, self.way
        base = f"{way.root}?{urlencode(way.query)}" if way.query else way.root
        with open_session(way.gate, verify_tls=settings.trust, pool=settings.parallel) as session:
            with self._lock:
                self._fetching = session
                if self._stopped:
                    session.stop()
            try:
                return Fetching(self.connector, session, settings.auth.on_wire(session), manner, base).all(
                    paths
                )
            finally:
                with self._lock:
                    self._fetching = None

    # --- sending

    def sending(self, writing: Writing, hand: Hand) -> OdataSending:
        """See `Channel.sending`."""
        if self.connector.read_only:
            raise ConnectorError(
                "This connection is read-only.", code="read_only_connection", reason="read_only"
            )
        if writing.mode not in self.connector.can.modes:
            raise ConnectorError(
                f"OData has no {writing.mode}.", reason="unsupported", hint="Use insert, or update by key."
            )
        service = self._service_for(writing.entity)
        strings = _IEEE in self.settings.default_headers.get("Content-Type", "").lower()
        shaper = Shaper(service, service.sets[writing.entity.name], self.way.root, strings)
        made = OdataSending(self.way, shaper, writing, hand)
        with self._lock:
            self._sendings.append(made)
        return made

    def _service_for(self, entity: Entity) -> Service:
        """The service; where its metadata cannot be had, what the entity's columns tell."""
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
                hint="Read the metadata again.",
            )
        return service

    def _version(self) -> Version:
        if self.settings.odata_version != "auto":
            return self.settings.odata_version
        known = self.connector.known
        return "v2" if known is not None and known.version.endswith("V2") else "v4"

    # --- verification

    def response(self) -> dict[str, Any] | None:
        """The last answer, for the report of a verification."""
        reply = self._last
        if reply is None:
            return None
        text = reply.body[: limits.HTTP_BODY_CHARS].decode("utf-8", "replace")
        return {
            "method": "GET",
            "url": shown(reply.url),
            "status": reply.status,
            "content_type": reply.headers.get("Content-Type", ""),
            "body": self.connector.hush(text),
            "ms": reply.ms,
        }

    def greeted(self) -> str:
        """The stage `tls`. Raises NetError (reason `tls_failed`)."""
        if not self.way.root.startswith("https:"):
            return "Without TLS: credentials and rows go unencrypted."
        session = self.way.session()
        try:
            exchange(
                session, requests.Request("HEAD", self.way.root), timeout_seconds=limits.TARGET_CONNECT_SECONDS,
                max_bytes=limits.HTTP_ANSWER_BYTES, follow=False,
            )  # fmt: skip
        except NetError as error:
            if error.reason != "reset":
                raise
        finally:
            session.close()
        return "The certificate is trusted."

    def let_in(self) -> str:
        """The stage `auth`."""
        reply = self._get("", _JSON)
        if reply.status == 401:
            raise ConnectorError(
                f"The service root answers 401: {odata_answers.fault(reply.body).message[:200] or reply.reason}",
                reason="auth_failed",
                hint="Check the kind of authentication, the account and its password or token.",
            )
        if reply.status < 300 and "html" in reply.headers.get("Content-Type", ""):
            raise ConnectorError(
                "The service root answers a web page, probably one to sign in by.",
                reason="auth_failed",
                hint="Use an account that signs in without a browser: basic, a bearer token, or client credentials.",
            )
        return f"The service root answers {reply.status}."

    def permitted(self) -> str:
        """The stage `permission`: the metadata, and a CSRF token where the service gives one."""
        service = self.service()
        if not service.sets:
            raise ConnectorError(
                "The service has no entity sets.",
                reason="no_permission",
                hint="Check service_url, and the account's rights.",
            )
        origin = "uploaded document" if self.connector.document is not None else "$metadata"
        said = f"OData {service.version.upper()}, {len(service.sets)} entity sets ({origin})."
        return f"{said} {self._tokens()}".strip()

    def _tokens(self) -> str:
        if self.settings.csrf == "off":
            return ""
        found = self._reader().fetch(self.seconds)
        return f"A CSRF token is given ({found.tried[-1]})." if found.token else "No CSRF token is given."

    def sampled(self) -> str:
        """The stage `sample`. Sets that want a filter give none without; the first that gives one is enough."""
        service, told = self.service(), ""
        sets = [one for one in service.sets.values() if one.terms.get("required-in-filter") is not True]
        for one in sets[:3]:
            reply = self._get(named(one.name), _JSON, {"$top": "1"})
            if reply.status < 300:
                return f"{one.name} gives rows."
            told = (
                told or f"{one.name} answers {reply.status}: {odata_answers.fault(reply.body).message[:200]}"
            )
        if not told:
            return "Every entity set wants a filter: none was read."
        raise ConnectorError(
            told,
            reason="no_permission",
            hint="May this account read the entity sets? Rows may still be taken.",
        )
