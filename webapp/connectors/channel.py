"""What every kind that speaks HTTP is: rows leave by requests of their own, and each has an end of its own.

A push sends chunk after chunk through one `Sending`. Nothing can be taken back, so the ledger has a chunk's intent
before its first request, and its outcome after the last one:

    sending = channel.sending(writing, hand)
    for rows in chunks of sending.size:
        ...intent...
        ended = sending.send(rows)     # the first so many rows of the chunk, all of them unless it was stopped
        ...outcome...

What a lost worker had in hand is unknown, unless requests may be repeated (`Sending.repeatable`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, Protocol

import pyarrow as pa

from webapp.connectors.base import Capabilities, Connector, ConnectorError, Link, Writing
from webapp.connectors.http_auth import ClientCredentials
from webapp.connectors.request_template import RequestTemplate
from webapp.connectors.shape import Entity, Metadata

LOCATION: Final = "@location"
"""The captured key that every answer may bring: its Location header."""

# Why a request for a row went wrong, beside `base.REASONS` where an answer can be read so closely.
HTTP_REASONS: Final = (
    "rejected",  # a 4xx, or an answer that is no success
    "forbidden",  # 401 or 403, whose body is told
    "csrf",  # 403 that asks for a CSRF token, although a fresh one was sent
    "throttled",  # 429 to the last
    "unavailable",  # 5xx to the last
    "redirected",
    "timeout",
    "unreachable",  # never connected: unresolved, refused, tls_failed ...
    "reset",
    "interrupted",  # the push ended while the row waited for its next attempt
)

State = Literal["delivered", "failed", "unknown"]


class Hand(Protocol):
    """Whoever holds the push; safe over threads."""

    def may_go(self) -> None:
        """Asked before the first request of every row. Raises where no further row may be begun."""

    def wait(self, seconds: float) -> None:
        """Waits, before a request that it is not yet time for; raises as soon as nothing more may be sent."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to be sent: `batch` has a column for each of `Writing.columns`, nested values as structs and lists.
    `numbers` are the ledger's, from 1; `keys` what goes into `Idempotency-Key`."""

    batch: pa.RecordBatch
    numbers: Sequence[int]
    keys: Sequence[str]


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of one row. `index` is its place among the rows that were given, from 0."""

    index: int
    state: State
    status_code: int | None = None
    """Of the last answer; None where there was none."""
    attempts: int = 1
    reason: str = ""
    """One of `HTTP_REASONS` or `base.REASONS`; empty for a row that was delivered."""
    message: str = ""
    """What was answered (limits.HTTP_BODY_CHARS of it, secrets cut), or what went wrong."""
    ms: int = 0
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Captured values by `Writing.capture`: plain JSON values."""
    away: bool = False
    """The target answered none of the attempts: it could not be reached, or did not answer in time."""


class Sending(ABC):
    """Rows on their way to one place. Threads are its own; what it raises ends the push or is a `Lost` link."""

    size: int = 50
    """Rows of one chunk: what a crash leaves in doubt at most."""
    together: bool = False
    """One request carries all rows of a chunk, and they have one answer."""
    repeatable: bool = False
    """The target takes the same request twice for one: by its method, or because it honours Idempotency-Key."""
    template: RequestTemplate | None = None
    """The request of a row, where its path, headers, query and body may read fields."""

    @abstractmethod
    def send(self, rows: Rows, stop_at_failure: bool = False) -> list[Ended]:
        """Send rows, several at once, and wait for all that were begun. Rows are begun in order; where `Hand` stops
        it, a row failed and `stop_at_failure` is set, or the target answers nobody (`Ended.away`), those not begun are
        left out of the answer.
        Raises `ConnectorError` where no request can succeed (no token, nobody there before the first row ...)."""

    @abstractmethod
    def delete(self, rows: Rows) -> list[Ended]:
        """Take rows out again: `Writing.key_columns` are the batch's columns. A row that is not there (404, 410)
        fails with `missing_row`."""

    @abstractmethod
    def requests(self, rows: Rows) -> list[str]:
        """The exact HTTP of each row, secrets masked: what a dry run shows. Nothing is sent."""


class Channel(Link):
    """An open way to a target that speaks HTTP."""

    @abstractmethod
    def sending(self, writing: Writing, hand: Hand) -> Sending:
        """A place to send rows to. Raises `ConnectorError` (reasons read_only, unsupported, no_permission)."""


class HttpConnector(Connector):
    """A kind that speaks HTTP. `known` is its metadata where that was read before; `document` a metadata document that
    was uploaded, and is then used and never fetched."""

    can: ClassVar[Capabilities] = Capabilities(
        modes=("insert",), create_table=False, sql=False, transactions=False, schemas=False, by_row=True,
        name_chars=200,
    )  # fmt: skip
    has_entities: ClassVar[bool] = False
    """Its targets are listed by its metadata; else any path is one."""
    reads_document: ClassVar[bool] = False
    """A metadata document can be uploaded."""
    known: Metadata | None = None
    document: bytes | None = None
    hush: Callable[[str], str] = staticmethod(lambda text: text)
    """Takes the connection's secrets out of what a target says."""

    @classmethod
    def driver(cls) -> Any:
        """Nothing beside what is always installed."""
        return None

    @property
    def token_credentials(self) -> ClientCredentials | None:
        """The credentials that OAuth tokens are fetched with, None for other kinds of authentication."""
        auth = getattr(self.settings, "auth", None)
        return auth if isinstance(auth, ClientCredentials) else None

    @abstractmethod
    def open(self, timeout: float | None = None) -> Channel:
        """Ready to send; nothing is connected before the first request."""

    def place(self, path: str | None) -> Entity:
        """Where rows go at a path; None: the one of the settings. For kinds without entities."""
        raise ConnectorError(f"{self.title} has no paths.", reason="unsupported")

    @classmethod
    def read_document(cls, document: bytes) -> Metadata:
        """Metadata from an uploaded document, read in this very process; services go through `documents.metadata`.
        Raises `ConnectorError` (reason `bad_document`), which says where."""
        raise ConnectorError(f"{cls.title} reads no document.", reason="unsupported")
