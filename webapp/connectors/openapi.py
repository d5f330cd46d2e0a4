"""OpenAPI: an API that describes itself. Its operations that take a JSON body are what rows are sent to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, Final

import orjson
import requests
from pydantic import Field

from webapp import limits
from webapp.connectors import documents, openapi_document, wire
from webapp.connectors.base import (
    ConnectorError,
    Settings,
    Stage,
    Writing,
)
from webapp.connectors.channel import Hand, Sending
from webapp.connectors.http_auth import Url, authorised
from webapp.connectors.http_stages import looked, of_net
from webapp.connectors.openapi_document import Document, Operation, Schema
from webapp.connectors.request_template import RequestTemplate
from webapp.connectors.rest import RestChannel, RestConnector, RestSettings
from webapp.connectors.rest_sending import RestSending
from webapp.connectors.shape import Column, ColumnType, Entity, Metadata
from webapp.net import session as net
from webapp.net.urls import origin

_PARAMETER: Final = re.compile(r"\{([^{}]+)\}")
_TYPES: Final[Mapping[str, ColumnType]] = {
    "integer": "integer", "number": "decimal", "boolean": "boolean", "object": "json", "array": "array",
}  # fmt: skip
_FORMATS: Final[Mapping[str, ColumnType]] = {
    "date": "date", "date-time": "timestamptz", "uuid": "uuid", "byte": "binary", "time": "time",
    "float": "float", "double": "float",
}  # fmt: skip


class OpenapiSettings(RestSettings):
    """Where the document is, unless it is uploaded, and the settings of REST connections."""

    base_url: Url | None = Field(None, description="Instead of the server that the document names.")  # type: ignore[assignment]
    document_url: Url | None = Field(
        None, description="Where the OpenAPI document is, if it is not uploaded."
    )


class OpenapiConnector(RestConnector):
    """An API by its document. Targets are its operations, such as `POST /orders`."""

    kind = "openapi"
    title = "OpenAPI"
    Settings: ClassVar[type[Settings]] = OpenapiSettings
    settings: OpenapiSettings  # type: ignore[assignment]
    has_entities = True
    reads_document = True
    harmless: ClassVar[frozenset[str]] = RestConnector.harmless - {"document_url"}

    @classmethod
    def read_document(cls, document: bytes) -> Metadata:
        """See `HttpConnector.read_document`. The service calls it through `documents.metadata`."""
        return metadata(openapi_document.read(document), "")

    def stages(self) -> Iterator[Stage]:
        """The document, then as of a REST connection."""
        try:
            found = self.described()
            base = self.base_url(found)
        except ConnectorError as error:
            yield Stage("resolve", False, error.reason, self.hush(error.message), error.hint)
            return
        settings = self.settings
        with net.open_session(self.gate, verify_tls=settings.trust) as session:
            for stage in looked(
                session, base, settings.auth, settings.default_headers, settings.retry.timeout_seconds
            ):
                told = (
                    f"; {len(found.entities):,} operations take rows"
                    if stage.name == "sample" and stage.ok
                    else ""
                )
                yield replace(stage, message=stage.message + told)

    def open(self, timeout: float | None = None) -> OpenapiChannel:
        """Ready to send; the document is read where it is not known."""
        found = self.known or self.described()
        made = OpenapiConnector(
            self.settings.model_copy(update={"base_url": self.base_url(found)}),
            self.gate,
            self.folder,
            self.read_only,
        )
        made.known, made.hush = found, self.hush
        return OpenapiChannel(made, found)

    def base_url(self, found: Metadata) -> str:
        """Where rows go. Raises `ConnectorError`."""
        if self.settings.base_url is not None:
            return self.settings.base_url
        try:
            return net.checked(found.base_url)
        except net.NetError:
            raise ConnectorError(
                "The document names no server that can be reached.",
                reason="bad_settings",
                hint="Give base_url, the address of the API.",
            ) from None

    def described(self) -> Metadata:
        """What the document says. Raises `ConnectorError`."""
        at = self.settings.document_url
        if self.document is not None:
            return wire.from_json(orjson.loads(documents.metadata("openapi", self.document, at or "")[0]))
        if at is None:
            raise ConnectorError(
                "There is no document.", reason="bad_settings", hint="Upload one, or give document_url."
            )
        with net.open_session(self.gate, verify_tls=self.settings.trust) as session:
            own = self.settings.base_url is None or origin(self.settings.base_url) == origin(at)
            auth = self.settings.auth.on_wire(session) if own else None
            wanted = {"Accept": "application/json, application/yaml, */*"}
            request = requests.Request("GET", at, headers=wanted, auth=auth)
            try:
                reply = authorised(
                    session,
                    request,
                    timeout_seconds=limits.METADATA_SECONDS,
                    max_bytes=limits.DOCUMENT_BYTES + 1,
                )
            except net.NetError as error:
                raise of_net(error) from None
        if reply.status != 200:
            told = f"{net.shown(at)} answered {reply.status} instead of the document."
            hint = "Check the address, or download the document and upload it here."
            raise ConnectorError(told, reason="no_document", hint=hint)
        return wire.from_json(orjson.loads(documents.metadata("openapi", reply.body, reply.url)[0]))


class OpenapiChannel(RestChannel):
    """See `RestChannel`; targets are operations."""

    def __init__(self, connector: OpenapiConnector, found: Metadata) -> None:
        super().__init__(connector)
        self._found = found

    def metadata(self) -> Metadata:
        """Operations and what they take."""
        return self._found

    def entity(self, name: str) -> Entity | None:
        """An operation by its name, whatever its case."""
        exact = [one for one in self._found.entities if one.name == name]
        folded = [one for one in self._found.entities if one.name.casefold() == name.casefold()]
        return exact[0] if exact else folded[0] if len(folded) == 1 else None

    def sending(self, writing: Writing, hand: Hand) -> Sending:
        """See `Channel.sending`: the operation's method and path, its parameters where they belong."""
        connector = self._connector
        encoding = connector.settings.request_template.header_encoding
        template = _template(writing).model_copy(update={"header_encoding": encoding})
        changed = connector.settings.model_copy(update={"request_template": template})
        made = OpenapiConnector(changed, connector.gate, connector.folder, connector.read_only)
        made.hush = connector.hush
        entity = replace(writing.entity, name=template.path or "/")
        self._may_send()
        sending = RestSending(made, self._session, self._auth, replace(writing, entity=entity), hand)
        self._sendings.append(sending)
        return sending


def request_of(entity: Entity) -> RequestTemplate:
    """The request of an operation with all that it takes."""
    return _template(Writing(entity, tuple(one for one in entity.fields if one.generated != "computed")))


def _template(writing: Writing) -> RequestTemplate:
    """The request of an operation for the columns that are written."""
    method, path, *others = writing.entity.parts
    in_path = set(_PARAMETER.findall(path))
    query = {one[1:] for one in others if one.startswith("?")}
    headers = {one[:-1] for one in others if one.endswith(":")}
    names = [one.name for one in writing.columns]
    body = [name for name in names if name not in in_path | query | headers]
    return RequestTemplate(
        method=method,  # type: ignore[arg-type]
        path=_PARAMETER.sub(lambda found: _hole(found[1]), path),
        query_params={name: _hole(name) for name in names if name in query},
        headers={name: _hole(name) for name in names if name in headers},
        body={name: _hole(name) for name in body},
    )


def _hole(name: str) -> str:
    return f'{{{{"{name}"}}}}'


# --- Metadata -----------------------------------------------------------------------------------------------


def metadata(document: Document, found_at: str) -> Metadata:
    """A document as metadata: an entity for each operation, whose `parts` are its method, its path, the names of
    required parameters in the query (`?name`) and in headers (`name:`)."""
    entities = tuple(_entity(one) for one in document.operations)
    base = openapi_document.base_url(document, found_at)
    return Metadata("openapi", f"{document.title} {document.version}".strip(), entities, base)


def _entity(one: Operation) -> Entity:
    parameters = {**one.in_path, **one.in_query, **one.in_header}
    columns = [column_of(name, schema, True) for name, schema in parameters.items()]
    required = set(one.schema.get("required") or ())
    columns += [
        column_of(name, schema, name in required)
        for name, schema in one.schema["properties"].items()
        if name not in parameters
    ]
    others = [*(f"?{name}" for name in one.in_query), *(f"{name}:" for name in one.in_header)]
    return Entity(
        one.name, (one.method.upper(), one.path, *others), tuple(columns), "operation", comment=one.title
    )


def column_of(name: str, schema: Schema, required: bool) -> Column:
    """One property of a body, or one parameter."""
    kind = _kind(schema)
    choices = schema.get("enum") or ()
    declared = " ".join(str(schema[key]) for key in ("type", "format") if schema.get(key))
    items = _kind(schema.get("items") or {}) if kind == "array" else None
    return Column(
        name,
        "enum" if choices and kind == "text" else kind,
        declared or "any",
        nullable=not required or bool(schema.get("nullable")),
        max_length=schema.get("maxLength") if kind in ("text", "binary") else None,
        bits={"int32": 32, "int64": 64}.get(schema.get("format", "")) if kind == "integer" else None,
        generated="computed" if schema.get("readOnly") else "",
        choices=tuple(str(one) for one in choices if one is not None),
        items=items,
        comment=" ".join(str(schema.get("description", "")).split())[: limits.MAX_NAME_CHARS],
        schema=schema or None,
    )


def _kind(schema: Schema) -> ColumnType:
    told = schema.get("format")
    if isinstance(told, str) and told in _FORMATS:
        return _FORMATS[told]
    kind = schema.get("type")
    return _TYPES.get(kind, "text" if kind == "string" else "other") if isinstance(kind, str) else "other"
