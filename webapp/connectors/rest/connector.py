"""REST: any API that accepts JSON. Each row is sent in its own request, or many rows in one."""

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
    WriteSpec,
)
from webapp.connectors.http.authentication import SECRET_BINDING_SETTINGS, Auth, NoAuth, TlsSettings, Url
from webapp.connectors.http.channel import LOCATION, Channel, HttpConnector, SendControl, Sender
from webapp.connectors.http.request_template import FixedHeaders, PathText, RequestTemplate
from webapp.connectors.http.retry import Retry
from webapp.connectors.http.verification import verify
from webapp.connectors.rest.fetch import Fetched, Fetcher, FetchOptions
from webapp.connectors.rest.sending import RestSender
from webapp.connectors.schema import Column, Entity, Metadata
from webapp.engine import json_paths
from webapp.net import session as net

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _check_json_path(text: str) -> str:
    json_paths.parse_path(text)
    return text


def _check_names(captured: dict[str, str]) -> dict[str, str]:
    for name in captured:
        if not _NAME.fullmatch(name):
            raise ValueError(f'"{name[:50]}" is not a valid name: use letters, digits and _')
    return captured


JsonPath = Annotated[
    str, Field(min_length=1, max_length=limits.JSON_PATH_CHARS), AfterValidator(_check_json_path)
]


class RestSettings(TlsSettings):
    """Settings to reach an API, and how rows are sent to it."""

    base_url: Url = Field(description="All paths are relative to it.")
    auth: Auth = Field(default_factory=NoAuth)
    default_headers: FixedHeaders = Field(default_factory=dict, description="Sent with every request.")
    push_mode: Literal["per_row", "batch"] = Field(
        "per_row", description="One request per row, or an array of rows per request."
    )
    wrapper_key: Annotated[str, Field(max_length=limits.MAX_NAME_CHARS)] | None = Field(
        None, description="In batch mode: the key that contains the array. Without it, the body is the array."
    )
    batch_size: Annotated[int, Field(ge=1, le=limits.HTTP_BATCH_ROWS)] | None = Field(
        None, description="In batch mode: rows per request. Without it, one request contains all rows."
    )
    push_path: PathText = Field("", description="Path for rows, unless a push sets another one.")
    request_template: RequestTemplate = Field(default_factory=RequestTemplate)
    retry: Retry = Field(default_factory=Retry)
    parallel: int = Field(
        limits.HTTP_PARALLEL, ge=1, le=limits.HTTP_MAX_PARALLEL, description="Requests at the same time."
    )
    rate_per_second: Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)] | None = Field(
        None, description="Maximum requests per second."
    )
    capture: Annotated[
        dict[str, JsonPath], Field(max_length=limits.HTTP_CAPTURES), AfterValidator(_check_names)
    ] = Field(
        default_factory=dict,
        description="Values to read from the response, by JSONPath: for child rows and for undo.",
    )
    delete_path: PathText | None = Field(
        None,
        description="Path that an undo deletes, with {{key}}. Without it, the Location header of each response.",
    )
    idempotent: bool = Field(
        False, description="The target processes requests with the same Idempotency-Key only once."
    )

    @model_validator(mode="after")
    def _batch_is_one_request(self) -> RestSettings:
        if self.push_mode == "batch" and self.request_template.field_names(body=False):
            raise ValueError(
                "in batch mode a request contains many rows: path, query and headers cannot contain {{field}}"
            )
        if self.push_mode == "batch" and self.request_template.encoding != "json":
            raise ValueError("in batch mode a request contains many rows: form data contains one")
        return self


class RestConnector(HttpConnector):
    """An API. Rows can be sent to any path."""

    kind = "rest"
    title = "REST API"
    Settings = RestSettings
    settings: RestSettings
    can: ClassVar[Capabilities] = replace(HttpConnector.can, fetch=True)
    secret_independent_settings: ClassVar[frozenset[str]] = frozenset(RestSettings.model_fields) - {
        "base_url",
        "auth",
        *SECRET_BINDING_SETTINGS,
    }

    def stages(self) -> Iterator[Stage]:
        """Verify the connection and the token, and show the response of the base URL to HEAD, OPTIONS or GET."""
        with net.open_session(self.gate, verify_tls=self.settings.trust) as session:
            yield from verify(
                session,
                self.settings.base_url,
                self.settings.auth,
                self.settings.default_headers,
                self.settings.retry.timeout_seconds,
            )

    def open(self, timeout: float | None = None) -> RestChannel:
        """Open a channel."""
        return RestChannel(self)

    def entity_for_path(self, path: str | None) -> Entity:
        """See `HttpConnector.entity_for_path`."""
        template = self.settings.request_template
        target_path = (
            path
            if path is not None
            else (template.path if template.path is not None else self.settings.push_path)
        )
        columns = [Column(name, "text", "", generated="identity") for name in self.settings.capture]
        delete_path = self.settings.delete_path
        key_names = sorted(RequestTemplate(path=delete_path).field_names()) if delete_path is not None else []
        keys = tuple(key_names) or (LOCATION,)
        if keys == (LOCATION,):
            columns.append(Column(LOCATION, "text", "", generated="identity", key=True))
        return Entity(target_path or "/", (target_path or "/",), tuple(columns), "endpoint", keys)


class RestChannel(Channel):
    """A connection to an API."""

    def __init__(self, connector: RestConnector) -> None:
        self._connector = connector
        settings = connector.settings
        self._session = net.open_session(connector.gate, verify_tls=settings.trust, pool=settings.parallel)
        self._auth = settings.auth.requests_auth(self._session)
        self._senders: list[RestSender] = []

    def close(self) -> None:
        """See `Link.close`."""
        for sender in self._senders:
            sender.close()
        self._session.close()

    def cancel(self) -> None:
        """See `Link.cancel`."""
        self._session.stop()

    def metadata(self) -> Metadata:
        """Return no entities, because an API does not list them."""
        return Metadata("rest", "", ())

    def entity(self, name: str) -> Entity | None:
        """Return an entity for any path."""
        return self._connector.entity_for_path(name)

    def fetch(self, paths: Sequence[str], options: FetchOptions) -> Fetched:
        """See `fetch.Fetches`. Also allowed for read-only connections."""
        base = self._connector.settings.base_url
        return Fetcher(self._connector, self._session, self._auth, options, base).fetch_all(paths)

    def create_sender(self, spec: WriteSpec, control: SendControl) -> Sender:
        """See `Channel.create_sender`."""
        self._check_writable()
        sender = RestSender(self._connector, self._session, self._auth, spec, control)
        self._senders.append(sender)
        return sender

    def _check_writable(self) -> None:
        if self._connector.read_only:
            raise ConnectorError(
                "This connection is read-only.", code="read_only_connection", reason="read_only"
            )
