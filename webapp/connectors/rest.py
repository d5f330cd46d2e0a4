"""REST: any API that takes JSON. Rows go by one request each, or wrapped in one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from webapp import limits
from webapp.connectors.base import (
    Capabilities,
    ConnectorError,
    Stage,
    Writing,
)
from webapp.connectors.channel import LOCATION, Channel, Hand, HttpConnector, Sending
from webapp.connectors.http_auth import Auth, NoAuth, Url
from webapp.connectors.http_stages import looked
from webapp.connectors.http_tls import BINDS, TlsSettings
from webapp.connectors.request_template import FixedHeaders, PathText, RequestTemplate
from webapp.connectors.rest_fetch import Fetched, Fetching, Manner
from webapp.connectors.rest_sending import RestSending
from webapp.connectors.retry import Retry
from webapp.connectors.shape import Column, Entity, Metadata
from webapp.engine import json_paths
from webapp.net import session as net

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _json_path(text: str) -> str:
    json_paths.read(text)
    return text


def _names(captured: dict[str, str]) -> dict[str, str]:
    for name in captured:
        if not _NAME.fullmatch(name):
            raise ValueError(f'"{name[:50]}" is no name: letters, digits and _')
    return captured


JsonPath = Annotated[str, Field(min_length=1, max_length=limits.JSON_PATH_CHARS), AfterValidator(_json_path)]


class RestSettings(TlsSettings):
    """What a person gives to reach an API, and how rows are sent there."""

    base_url: Url = Field(description="All paths are resolved against it.")
    auth: Auth = Field(default_factory=NoAuth)
    default_headers: FixedHeaders = Field(default_factory=dict, description="Sent with every request.")
    push_mode: Literal["per_row", "batch"] = Field(
        "per_row", description="One request a row, or rows in an array."
    )
    wrapper_key: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] | None = Field(
        None, description="In batch mode: the key that holds the array; without one the body is the array."
    )
    batch_size: Annotated[int, Field(ge=1, le=limits.HTTP_BATCH_ROWS)] | None = Field(
        None, description="In batch mode: rows of one request; without it all of them."
    )
    push_path: PathText = Field("", description="Where rows go, unless a push names another path.")
    request_template: RequestTemplate = Field(default_factory=RequestTemplate)
    retry: Retry = Field(default_factory=Retry)
    parallel: int = Field(
        limits.HTTP_PARALLEL, ge=1, le=limits.HTTP_MOST_PARALLEL, description="Requests at once."
    )
    rate_per_second: Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)] | None = Field(
        None, description="Requests in a second, at most."
    )
    capture: Annotated[
        dict[str, JsonPath], Field(max_length=limits.HTTP_CAPTURES), AfterValidator(_names)
    ] = Field(
        default_factory=dict,
        description="Keys that the answer brings, by JSONPath: for children and for undo.",
    )
    delete_path: PathText | None = Field(
        None, description="What an undo deletes, with {{key}}; without it the Location of each answer."
    )
    idempotent: bool = Field(
        False, description="The target takes a request with the same Idempotency-Key once."
    )

    @model_validator(mode="after")
    def _batch_is_one_request(self) -> RestSettings:
        if self.push_mode == "batch" and self.request_template.names(body=False):
            raise ValueError(
                "in batch mode one request carries many rows: path, query and headers hold no {{field}}"
            )
        return self


class RestConnector(HttpConnector):
    """An API. Any path is a place to send rows to."""

    kind = "rest"
    title = "REST API"
    Settings = RestSettings
    settings: RestSettings
    can: ClassVar[Capabilities] = replace(HttpConnector.can, fetch=True)
    harmless: ClassVar[frozenset[str]] = frozenset(RestSettings.model_fields) - {
        "base_url",
        "auth",
        *BINDS,
    }

    def stages(self) -> Iterator[Stage]:
        """Resolve, connect, TLS, the token, and what the base URL answers to HEAD, OPTIONS or GET."""
        with net.open_session(self.gate, verify_tls=self.settings.trust) as session:
            yield from looked(
                session,
                self.settings.base_url,
                self.settings.auth,
                self.settings.default_headers,
                self.settings.retry.timeout_seconds,
            )

    def open(self, timeout: float | None = None) -> RestChannel:
        """Ready to send."""
        return RestChannel(self)

    def place(self, path: str | None) -> Entity:
        """See `HttpConnector.place`."""
        template = self.settings.request_template
        told = (
            path
            if path is not None
            else (template.path if template.path is not None else self.settings.push_path)
        )
        brought = [Column(name, "text", "", generated="identity") for name in self.settings.capture]
        keys = self._delete_keys() or (LOCATION,)
        if keys == (LOCATION,):
            brought.append(Column(LOCATION, "text", "", generated="identity", key=True))
        return Entity(told or "/", (told or "/",), tuple(brought), "endpoint", keys)

    def _delete_keys(self) -> tuple[str, ...]:
        path = self.settings.delete_path
        return tuple(sorted(RequestTemplate(path=path).names())) if path is not None else ()


class RestChannel(Channel):
    """An open way to an API."""

    def __init__(self, connector: RestConnector) -> None:
        self._connector = connector
        settings = connector.settings
        self._session = net.open_session(connector.gate, verify_tls=settings.trust, pool=settings.parallel)
        self._auth = settings.auth.on_wire(self._session)
        self._sendings: list[RestSending] = []

    def close(self) -> None:
        """See `Link.close`."""
        for one in self._sendings:
            one.close()
        self._session.close()

    def cancel(self) -> None:
        """See `Link.cancel`."""
        self._session.stop()

    def metadata(self) -> Metadata:
        """An API lists nothing."""
        return Metadata("rest", "", ())

    def entity(self, name: str) -> Entity | None:
        """Any path is a place."""
        return self._connector.place(name)

    def fetch(self, paths: Sequence[str], manner: Manner) -> Fetched:
        """See `rest_fetch.Fetches`. A read-only connection may."""
        base = self._connector.settings.base_url
        return Fetching(self._connector, self._session, self._auth, manner, base).all(paths)

    def sending(self, writing: Writing, hand: Hand) -> Sending:
        """See `Channel.sending`."""
        self._may_send()
        made = RestSending(self._connector, self._session, self._auth, writing, hand)
        self._sendings.append(made)
        return made

    def _may_send(self) -> None:
        if self._connector.read_only:
            raise ConnectorError(
                "This connection is read-only.", code="read_only_connection", reason="read_only"
            )
