"""What every kind of connection is: settings, stages of verification, metadata, and rows sent in chunks.

A kind is one class, a subclass of `Connector`, in a file of its own and one line in `connectors/__init__.py`. What a
target can do is data (`Capabilities`), so that callers ask a table and not the kind's name. Drivers are imported where
they are first used: a missing one is a `DriverMissing` that names the extra.

A push sends chunk after chunk through one `Target`:

    target.begin()
    sent = target.send(batch)          # bad rows are taken out; the others stand in the open transaction
    proof = target.proof()             # written into the ledger, then
    target.commit()

A chunk is all or nothing apart from the rows reported bad. When the worker or the connection dies around `commit`,
`Session.settled(proof)` tells from the ledger's note whether it took place, and sees to it that it can no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, Literal, Self

import pyarrow as pa
from pydantic import ConfigDict

from webapp import whole
from webapp.connectors.shape import Column, Entity, Metadata
from webapp.net.gate import Gate

Mode = Literal["insert", "upsert", "update"]

# Stages of a verification, in order; each kind passes those that apply to it.
STAGES: Final = ("resolve", "connect", "tls", "auth", "permission", "sample")

# Why a target refuses a row, in our words; `native` of a `Failure` has the target's own.
REASONS: Final = (
    "unique",
    "foreign_key",
    "not_null",
    "check",
    "too_long",
    "out_of_range",
    "wrong_type",
    "missing_row",  # update: there is no such row; undo: it is not there any more
    "refused",  # by a trigger, a rule, a validator: whatever else the target says of one row
)


class ConnectorError(Exception):
    """A target, or the way to it, failed. Carried over to an ApiError by services.

    `code` is one of `target_failed`, `target_timeout`, `target_not_allowed`, `token_request_failed`, `csrf_failed`,
    `driver_missing`, `read_only_connection` of the error table; `reason` is a word of the stage or the fault
    (`unresolved`, `refused`, `auth_failed`, `no_database`, `no_permission`, `no_table`, `tls_failed`, `timeout`, `lost`
    ...); `hint` says what to do. Messages hold no secret. `transient`: the same may succeed a moment later.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str = "target_failed",
        reason: str = "failed",
        hint: str = "",
        transient: bool = False,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        self.code, self.message, self.reason, self.hint, self.transient = (
            code,
            message,
            reason,
            hint,
            transient,
        )
        self.details = dict(details or {})
        super().__init__(message)


class Lost(ConnectorError):
    """The connection went away. What was in hand may or may not have arrived: ask `Session.settled`."""

    def __init__(self, message: str, **kwargs: Any) -> None:
        super().__init__(message, reason="lost", transient=True, **kwargs)


# What installs the driver of each extra; the same as in pyproject.toml.
DRIVER_PACKAGES: Final = {
    "postgresql": "psycopg[binary]",
    "mysql": "pymysql",
    "mssql": "pymssql",
    "oracle": "oracledb",
    "mongodb": "pymongo",
    "db2": "ibm_db>=3.2",
}


class DriverMissing(ConnectorError):
    """The Python package for a kind is not installed."""

    def __init__(self, kind: str, extra: str) -> None:
        super().__init__(
            f"The driver for {kind} is not installed.",
            code="driver_missing",
            reason="driver_missing",
            hint="In Rowsmith's folder, run .venv/bin/uv pip install --python .venv/bin/python "
            f"'{DRIVER_PACKAGES[extra]}' and restart.",
            details={"extra": extra},
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """How one stage of a verification went. `code` is empty where it went well, else a `ConnectorError.reason`."""

    name: str
    ok: bool
    code: str = ""
    message: str = ""
    hint: str = ""
    ms: int = 0
    response: dict[str, Any] | None = None
    """Over HTTP, of the last stage: what was answered."""


# --- Sending ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Failure:
    """A row that the target refused. `index` is its place in the batch, from 0; `reason` is one of `REASONS`."""

    index: int
    reason: str
    message: str
    """The target's own words, at most `limits.PUSH_MESSAGE_CHARS` of them."""
    native: str = ""
    """The target's own code: SQLSTATE 23505, 1062, ORA-00001."""
    column: str | None = None


@dataclass(frozen=True, slots=True)
class Sent:
    """How a batch went. Rows without a `Failure` stand in the open transaction."""

    failures: list[Failure] = field(default_factory=list)
    keys: pa.RecordBatch | None = None
    """Of the columns that were to be captured: one row for each of the batch, null for those that failed."""


@dataclass(frozen=True, slots=True)
class Writing:
    """What a push writes: which columns of which table, and how."""

    entity: Entity
    columns: tuple[Column, ...]
    """Those that every batch brings, in its order."""
    mode: Mode = "insert"
    key_columns: tuple[str, ...] = ()
    """By which rows are found: for upsert, update and undo."""
    capture: tuple[str, ...] = ()
    """Columns that the target makes and whose values are to be brought back."""
    again: bool = False
    """The rows may have been sent before, by an attempt that was lost: one that stands there already, to the last
    value, was delivered."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a kind of target can do."""

    modes: tuple[Mode, ...] = ("insert", "upsert", "update")
    capture: bool = True
    """Values that the target makes (identity keys, defaults) can be brought back."""
    create_table: bool = True
    sql: bool = True
    """Before and after statements, and queries of fields of type db_response."""
    fetch: bool = False
    """Its channel has `fetch`: fields of type api_response."""
    prompts: bool = False
    """Its channel has `ask`: fields of type ai."""
    transactions: bool = True
    """A chunk is all or nothing. Without: rows carry keys of ours, so that a chunk may be sent again."""
    schemas: bool = True
    by_row: bool = False
    """Rows go by requests of their own, through a `Channel`."""
    name_chars: int = 63
    """Characters of a table's or column's name."""

    @property
    def tables(self) -> bool:
        """Its link is a `Session`: fields of type foreign_key."""
        return not self.by_row and not self.prompts


class Target(ABC):
    """One table being written. Batches hold one Arrow array for each of `Writing.columns`, of whatever type the
    engine made: text, integers, decimals, floats, booleans, dates, timestamps, or JSON text for what is nested
    (lists only where the column is an array). The target renders them for its columns; a value that cannot be
    rendered for its column is a `Failure` of its row with the reason `wrong_type`, `too_long` or `out_of_range`."""

    writing: Writing

    @abstractmethod
    def begin(self) -> None:
        """Open a transaction, if none is open."""

    @abstractmethod
    def send(self, batch: pa.RecordBatch) -> Sent:
        """Write the rows of a batch into the open transaction, in order; the bad ones are taken out and told.
        Raises `Lost` when the connection goes, `ConnectorError` for what concerns the whole table."""

    def prepare(self, batch: pa.RecordBatch) -> Callable[[], Sent]:
        """`send` in two steps: does now what needs no connection, in any thread and while another batch is sent, and
        returns the step that sends, which is good for one call."""
        return partial(self.send, batch)

    @abstractmethod
    def delete(self, batch: pa.RecordBatch) -> Sent:
        """Delete rows by `Writing.key_columns`, which are the batch's columns. A row that is not there fails with
        `missing_row`, one that others refer to with `foreign_key`."""

    @abstractmethod
    def proof(self) -> dict[str, Any]:
        """What tells later whether the open transaction was committed (JSON). Empty where nothing can: the rows in
        hand at a crash are then unknown."""

    @abstractmethod
    def commit(self) -> None:
        """Commit. Raises `Lost` where it is not known whether that took place; `ConnectorError` (reason
        `deferred`) where the target refused at commit, and nothing of the chunk is in the table."""

    @abstractmethod
    def rollback(self) -> None:
        """Undo the open transaction; quiet where there is none or the connection is gone."""

    @abstractmethod
    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """One readable statement for each row, as a person would write it, whatever the transport."""


class Link(ABC):
    """An open way to a target. Closing it twice is harmless."""

    @abstractmethod
    def close(self) -> None:
        """Give the connection back; open transactions are rolled back."""

    def cancel(self) -> None:
        """Called from another thread: stop what this link waits for, which then raises. Afterwards it is good for
        nothing but `close`. Returns within a second or two; harmless when nothing runs."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def metadata(self) -> Metadata:
        """Every table this account may see, system tables apart; few queries, whatever their number."""

    @abstractmethod
    def entity(self, name: str) -> Entity | None:
        """One table by its `Entity.name`; None where there is none. Names match exactly, else ignoring case where
        only one does."""


class TableReader(Link):
    """An open way to read a database's tables."""

    @abstractmethod
    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """The first rows of a table, of all its columns."""

    @abstractmethod
    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """All values of some columns, ordered by them or by those of `order`, in batches and in constant memory.
        `where` is a condition in the target's own language (SQL after WHERE; JSON for MongoDB)."""

    @abstractmethod
    def known(self, entity: Entity, columns: Sequence[str], wanted: pa.RecordBatch) -> pa.BooleanArray:
        """Which of the `wanted` value combinations of some columns are in a table."""

    @abstractmethod
    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """The first rows of a query. `{{name}}` in its text are places for `values`, given to the driver as
        parameters and never pasted in."""

    def stream(self, text: str) -> Iterator[pa.RecordBatch]:
        """All rows of a query without places for values, in batches and in constant memory; one batch at least. It may
        read only."""
        raise ConnectorError(
            "Queries of this kind of connection are not read as a stream.",
            reason="unsupported",
            hint="Name a table, with a condition in where.",
        )


class Session(TableReader):
    """An open connection to a database."""

    read_only: bool = False
    """The connection was made for reading."""

    def may_write(self) -> None:
        """Raises `ConnectorError` (reason `read_only`) where the connection was made for reading."""
        if self.read_only:
            raise ConnectorError(
                "This connection is read-only.",
                code="read_only_connection",
                reason="read_only",
                hint="Use another connection, or let its owner allow writing.",
            )

    @abstractmethod
    def execute(self, statement: str) -> None:
        """Carry out one statement of an admin's (before and after a push), committed."""

    @abstractmethod
    def create(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """Make a table, committed, and return its statement. Columns tell `type`, lengths and `nullable`; `declared`
        may be empty."""

    @abstractmethod
    def create_statement(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """The statement of `create`, which is not carried out."""

    @abstractmethod
    def target(self, writing: Writing) -> Target:
        """A table to write to. Raises `ConnectorError` (reason `read_only`, `no_permission`, `unsupported`)."""

    def advance(self, entity: Entity, column: str, highest: Callable[[], int | None]) -> int | None:
        """Rows brought values for a column that the target counts: let it go on after the highest, never back.
        `highest` is asked where there is a counter to move. Returns where it stands, None where it was not moved."""
        return None

    @abstractmethod
    def settled(self, entity: Entity, proof: Mapping[str, Any]) -> bool | None:
        """Whether the transaction of a `proof` was committed; None where that cannot be told. Once this has
        answered, that transaction cannot be committed any more."""


class Settings(whole.Model):
    """What a person gives to reach a target. A field with `json_schema_extra={"secret": True}` is sealed and
    masked; `"group"` and `"order"` there place it in the form."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Connector(ABC):
    """A kind of connection with its settings; nothing is opened until `open` or `stages`."""

    kind: ClassVar[str]
    """The wire name: postgresql."""
    title: ClassVar[str]
    """For people: PostgreSQL."""
    extra: ClassVar[str] = ""
    """The extra that brings the driver; empty where none is needed."""
    default_port: ClassVar[int | None] = None
    can: ClassVar[Capabilities] = Capabilities()
    Settings: ClassVar[type[Settings]]
    harmless: ClassVar[frozenset[str]] = frozenset({"schema", "database", "password"})
    """Settings that do not decide where a secret goes, or how safely."""

    def __init__(self, settings: Any, gate: Gate, folder: str = "", read_only: bool = False) -> None:
        """`settings` are of this class's `Settings`, secrets filled in; `folder` is the workspace's own for files."""
        self.settings, self.gate, self.folder, self.read_only = settings, gate, folder, read_only

    @classmethod
    @abstractmethod
    def driver(cls) -> Any:
        """The driver's module, imported now. Raises `DriverMissing`."""

    @abstractmethod
    def stages(self) -> Iterator[Stage]:
        """Verify, one stage after the other, ending with the first that fails. Each has its own time limit."""

    @abstractmethod
    def open(self, timeout: float | None = None) -> Link:
        """Connect: a `Session` to a database, a `Channel` to what speaks HTTP. Raises `ConnectorError`."""
