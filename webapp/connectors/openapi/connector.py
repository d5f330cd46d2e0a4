"""OpenAPI: an API with a description. Rows are sent to its operations that accept a body of JSON or form data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Final

import orjson
import requests
from pydantic import Field

from webapp import limits
from webapp.connectors import metadata_documents, metadata_json
from webapp.connectors.base import (
    ConnectorError,
    Stage,
    WriteSpec,
)
from webapp.connectors.http.authentication import Url, send_authenticated
from webapp.connectors.http.channel import SendControl, Sender
from webapp.connectors.http.request_template import RequestTemplate
from webapp.connectors.http.verification import from_net_error, verify
from webapp.connectors.openapi import document as openapi_document
from webapp.connectors.openapi.document import BODY_PARTS, omission_reason
from webapp.connectors.rest.connector import RestChannel, RestConnector, RestSettings
from webapp.connectors.rest.sending import RestSender
from webapp.connectors.schema import Entity, Metadata
from webapp.net import session as net
from webapp.net.urls import display_url, origin

_PARAMETER: Final = re.compile(r"\{([^{}]+)\}")


class OpenapiSettings(RestSettings):
    """The document's URL, unless it is uploaded, and the settings of REST connections."""

    base_url: Url | None = Field(None, description="Overrides the server in the document.")  # type: ignore[assignment]  # not required here
    document_url: Url | None = Field(None, description="URL of the OpenAPI document, if it is not uploaded.")


class OpenapiConnector(RestConnector):
    """An API with an OpenAPI document. Targets are its operations, such as `POST /orders`."""

    kind = "openapi"
    title = "OpenAPI"
    Settings = OpenapiSettings
    settings: OpenapiSettings
    has_entities = True
    reads_document = True
    secret_independent_settings: ClassVar[frozenset[str]] = RestConnector.secret_independent_settings - {
        "document_url"
    }

    @classmethod
    def read_document(cls, document: bytes) -> Metadata:
        """See `HttpConnector.read_document`. Services use `metadata_documents.metadata`."""
        return openapi_document.metadata(openapi_document.read(document), "")

    def stages(self) -> Iterator[Stage]:
        """Verify the document, then the API as for a REST connection."""
        try:
            metadata = self.load_metadata()
            base = self.base_url(metadata)
        except ConnectorError as error:
            yield Stage("resolve", False, error.reason, self.redact(error.message), error.hint)
            return
        settings = self.settings
        with net.open_session(self.gate, verify_tls=settings.trust) as session:
            for stage in verify(
                session, base, settings.auth, settings.default_headers, settings.retry.timeout_seconds
            ):
                suffix = (
                    f"; {len(metadata.entities):,} operations accept rows"
                    if stage.name == "sample" and stage.ok
                    else ""
                )
                yield replace(stage, message=stage.message + suffix)

    def open(self, timeout: float | None = None) -> OpenapiChannel:
        """Open a channel. Reads the document if the metadata is not known."""
        metadata = self.cached_metadata or self.load_metadata()
        connector = OpenapiConnector(
            self.settings.model_copy(update={"base_url": self.base_url(metadata)}),
            self.gate,
            self.folder,
            self.read_only,
        )
        connector.cached_metadata, connector.redact = metadata, self.redact
        return OpenapiChannel(connector, metadata)

    def base_url(self, metadata: Metadata) -> str:
        """Return the base URL of the API. Raises `ConnectorError`."""
        if self.settings.base_url is not None:
            return self.settings.base_url
        try:
            return net.check_url(metadata.base_url)
        except net.NetError:
            raise ConnectorError(
                "The document does not contain a usable server URL.",
                reason="bad_settings",
                hint="Enter base_url, the address of the API.",
            ) from None

    def load_metadata(self) -> Metadata:
        """Return the metadata of the document. Raises `ConnectorError`."""
        url = self.settings.document_url
        if self.document is not None:
            return metadata_json.from_json(
                orjson.loads(metadata_documents.metadata("openapi", self.document, url or "")[0])
            )
        if url is None:
            raise ConnectorError(
                "An OpenAPI document is required.",
                reason="bad_settings",
                hint="Upload one, or enter document_url.",
            )
        with net.open_session(self.gate, verify_tls=self.settings.trust) as session:
            is_same_origin = self.settings.base_url is None or origin(self.settings.base_url) == origin(url)
            auth = self.settings.auth.requests_auth(session) if is_same_origin else None
            headers = {"Accept": "application/json, application/yaml, */*"}
            request = requests.Request("GET", url, headers=headers, auth=auth)
            try:
                reply = send_authenticated(
                    session,
                    request,
                    timeout_seconds=limits.METADATA_SECONDS,
                    max_bytes=limits.DOCUMENT_BYTES + 1,
                )
            except net.NetError as error:
                raise from_net_error(error) from None
        if reply.status != 200:
            message = f"{display_url(url)} returned {reply.status} instead of the document."
            hint = "Check the address, or download the document and upload it here."
            raise ConnectorError(message, reason="no_document", hint=hint)
        return metadata_json.from_json(
            orjson.loads(metadata_documents.metadata("openapi", reply.body, reply.url)[0])
        )


class OpenapiChannel(RestChannel):
    """See `RestChannel`. Targets are operations."""

    def __init__(self, connector: OpenapiConnector, metadata: Metadata) -> None:
        super().__init__(connector)
        self._metadata = metadata

    def metadata(self) -> Metadata:
        """Return the operations and their columns."""
        return self._metadata

    def entity(self, name: str) -> Entity | None:
        """Return an operation by its name, ignoring case."""
        exact = [entity for entity in self._metadata.entities if entity.name == name]
        folded = [entity for entity in self._metadata.entities if entity.name.casefold() == name.casefold()]
        return exact[0] if exact else folded[0] if len(folded) == 1 else None

    def create_sender(self, spec: WriteSpec, control: SendControl) -> Sender:
        """See `Channel.create_sender`: uses the operation's method and path, and its parameters."""
        connector = self._connector
        encoding = connector.settings.request_template.header_encoding
        template = _template(spec).model_copy(update={"header_encoding": encoding})
        if connector.settings.push_mode == "batch":
            if template.encoding != "json":
                raise ConnectorError(
                    f"{spec.entity.name} accepts form data, which contains one row per request.",
                    reason="bad_settings",
                    hint="Set push_mode to per_row.",
                )
            if isinstance(template.body, list):  # the rows of the batch are its elements
                template = template.model_copy(update={"body": template.body[0]})
        changed = connector.settings.model_copy(update={"request_template": template})
        copy = OpenapiConnector(changed, connector.gate, connector.folder, connector.read_only)
        copy.redact = connector.redact
        entity = replace(spec.entity, name=template.path or "/")
        self._check_writable()
        sender = RestSender(copy, self._session, self._auth, replace(spec, entity=entity), control)
        self._senders.append(sender)
        return sender


def request_template_of(entity: Entity) -> RequestTemplate:
    """Return the request of an operation with all its columns."""
    return _template(
        WriteSpec(
            entity,
            tuple(
                column
                for column in entity.fields
                if column.generated != "computed" and not omission_reason(column)
            ),
        )
    )


def _template(spec: WriteSpec) -> RequestTemplate:
    """Return the request of an operation for the columns to write."""
    method, path, *others = spec.entity.parts
    in_path = set(_PARAMETER.findall(path))
    query = {other[1:] for other in others if other.startswith("?")}
    headers = {other[:-1] for other in others if other.endswith(":")}
    names = [column.name for column in spec.columns]
    repeated = {other[1:] for other in others if other.startswith("+")}
    body: Any = {
        name: _placeholder(name)
        for name in names
        if name in repeated or name not in in_path | query | headers
    }
    if BODY_PARTS["array"] in others:
        body = [body]
    elif BODY_PARTS["value"] in others:
        body = next(iter(body.values()), None)
    return RequestTemplate(
        method=method,  # type: ignore[arg-type]  # one of METHODS, as read from the document
        path=_PARAMETER.sub(
            lambda match: _placeholder(match[1]), path.partition("#")[0]
        ),  # some documents tell variants apart
        query_params={name: _placeholder(name) for name in names if name in query},
        headers={name: _placeholder(name) for name in names if name in headers},
        body=body,
        encoding=next((name for name in ("form", "brackets") if BODY_PARTS[name] in others), "json"),
    )


def _placeholder(name: str) -> str:
    return f'{{{{"{name}"}}}}'
