"""Interfaces of the kinds that use HTTP. Each row is sent in a request, and has its own outcome.

A push sends one chunk after another through a `Sender`. Nothing can be rolled back, so a chunk's intent is
saved before its first request, and its outcome after the last one:

    sender = channel.sender(spec, control)
    for rows in chunks of sender.size:
        ... save the intent ...
        outcomes = sender.send(rows)   # the first rows of the chunk; all of them unless sending was stopped
        ... save the outcomes ...

After a worker is lost, the state of its rows is unknown, unless requests are repeatable
(`Sender.is_idempotent`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, Protocol

import pyarrow as pa

from webapp.connectors.base import Capabilities, Connector, ConnectorError, OpenConnection, WriteSpec
from webapp.connectors.http.authentication import ClientCredentials
from webapp.connectors.http.request_template import RequestTemplate
from webapp.connectors.schema import Entity, Metadata

LOCATION: Final = "@location"
"""The captured key that every response may provide: its Location header."""

# Why a request for a row failed, in addition to `base.REASONS` if the response is specific enough.
HTTP_REASONS: Final = (
    "rejected",  # a 4xx status, or a response that is not a success
    "forbidden",  # 401 or 403; the message contains the body
    "csrf",  # 403 that requests a CSRF token although a fresh one was sent
    "throttled",  # 429 after the last retry
    "unavailable",  # 5xx after the last retry
    "redirected",
    "timeout",
    "unreachable",  # no connection: unresolved, refused, tls_failed, ...
    "reset",
    "interrupted",  # the push ended while the row waited for its next attempt
)

State = Literal["delivered", "failed", "unknown"]


class SendControl(Protocol):
    """Lets the push control the sending. Safe for use by several threads."""

    def raise_if_stopped(self) -> None:
        """Called before the first request of each row. Raises if no further row may be sent."""

    def wait(self, seconds: float) -> None:
        """Wait before a request. Raises as soon as nothing more may be sent."""


@dataclass(frozen=True, slots=True)
class RowBatch:
    """Rows to send, with nested values as structs and lists.

    `batch` has a column for each of `WriteSpec.columns`; `numbers` are the row numbers of the push, from 1; `keys` are
    the values for `Idempotency-Key`.
    """

    batch: pa.RecordBatch
    numbers: Sequence[int]
    keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """The outcome of one row. `index` is its position among the given rows, from 0."""

    index: int
    state: State
    status_code: int | None = None
    """Of the last response; None if there was none."""
    attempts: int = 1
    reason: str = ""
    """One of `HTTP_REASONS` or `base.REASONS`; empty for a delivered row."""
    message: str = ""
    """The response (limits.HTTP_BODY_CHARS characters of it, with secrets redacted), or the error."""
    ms: int = 0
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Captured values by `WriteSpec.capture`, as plain JSON values."""
    is_unanswered: bool = False
    """The target responded to none of the attempts: it could not be reached, or did not respond in time."""


class Sender(ABC):
    """Sends rows to one path or entity, with its own threads. Errors that it raises end the push."""

    chunk_rows: int = 50
    """Number of rows in a chunk: the maximum whose state a crash can leave unknown."""
    is_single_request: bool = False
    """Whether one request contains all rows of a chunk, which then share one response."""
    is_idempotent: bool = False
    """Whether the target treats a repeated request as one: because of its method, or because it supports
    Idempotency-Key."""
    template: RequestTemplate | None = None
    """The request of a row, if its path, headers, query and body can contain fields."""

    @abstractmethod
    def send(self, rows: RowBatch, stop_at_failure: bool = False) -> list[RowOutcome]:
        """Send rows in parallel, and wait for all that were started.

        Rows are started in order. If `SendControl` stops the sending, a row fails and `stop_at_failure` is
        set, or the target does not respond at all (`RowOutcome.is_unanswered`), rows that were not started are missing
        in the result. Raises `ConnectorError` if no request can succeed (no token, target unreachable at the
        first row, ...).
        """

    @abstractmethod
    def delete(self, rows: RowBatch) -> list[RowOutcome]:
        """Delete rows. `WriteSpec.key_columns` are the batch's columns.

        A row that does not exist (404, 410) fails with `missing_row`.
        """

    @abstractmethod
    def requests(self, rows: RowBatch) -> list[str]:
        """Return the exact HTTP request of each row with secrets masked, for a dry run. Sends nothing."""


class Channel(OpenConnection):
    """An open connection to a target that uses HTTP."""

    @abstractmethod
    def create_sender(self, spec: WriteSpec, control: SendControl) -> Sender:
        """Return a sender. Raises `ConnectorError` (reasons read_only, unsupported, no_permission)."""


class HttpConnector(Connector):
    """A kind that uses HTTP.

    `cached_metadata` is its metadata if that was read before. `document` is an uploaded metadata document, which is
    then used instead of fetching one.
    """

    can: ClassVar[Capabilities] = Capabilities(
        modes=("insert",), create_table=False, sql=False, transactions=False, schemas=False, by_row=True,
        name_chars=200,
    )  # fmt: skip
    has_entities: ClassVar[bool] = False
    """Whether its metadata lists the targets; otherwise any path is a target."""
    reads_document: ClassVar[bool] = False
    """Whether a metadata document can be uploaded."""
    cached_metadata: Metadata | None = None
    document: bytes | None = None
    redact: Callable[[str], str] = staticmethod(lambda text: text)
    """Redacts the connection's secrets in messages of the target."""

    @classmethod
    def driver(cls) -> Any:
        """Return nothing, because no driver is needed."""
        return None

    @property
    def token_credentials(self) -> ClientCredentials | None:
        """The credentials with which OAuth tokens are fetched; None for other kinds of authentication."""
        auth = getattr(self.settings, "auth", None)
        return auth if isinstance(auth, ClientCredentials) else None

    @abstractmethod
    def open(self, timeout: float | None = None) -> Channel:
        """Open a channel. It connects at the first request."""

    def entity_for_path(self, path: str | None) -> Entity:
        """Return the entity for a path; None means the path in the settings. For kinds without entities."""
        raise ConnectorError(f"{self.title} does not support paths.", reason="unsupported")

    @classmethod
    def read_document(cls, document: bytes) -> Metadata:
        """Read metadata from an uploaded document in this process. Services use
        `metadata_documents.metadata`.

        Raises `ConnectorError` (reason `bad_document`), which names the position.
        """
        raise ConnectorError(f"{cls.title} does not support metadata documents.", reason="unsupported")
