"""Interfaces that every kind of connection implements: settings, verification, metadata, reading and writing.

A kind is a package with one subclass of `Connector`, registered in `connectors/__init__.py`. `Capabilities`
lists what it can do, so that callers do not compare kind names. Drivers are imported on first use; a missing
driver raises `DriverMissing`, which names the package to install.

A push sends one chunk after another through a `Target`:

    target.begin()
    result = target.send(batch)        # rejected rows are in result.failures; the others are in the transaction
    token = target.commit_token()      # saved with the push before the commit
    target.commit()

A chunk is written completely, except for the rejected rows, or not at all. If the worker or the connection
fails during `commit`, `Session.commit_outcome(token)` finds out whether the commit took place, and makes sure
that it can no longer take place afterwards.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Final, Literal, Self

import pyarrow as pa
from pydantic import ConfigDict

from webapp import json_input
from webapp.connectors.schema import Column, Entity, Metadata
from webapp.net.gate import Gate

Mode = Literal["insert", "upsert", "update"]

# Stages of a verification, in order. Each kind runs those that apply to it.
STAGES: Final = ("resolve", "connect", "tls", "auth", "permission", "sample")

# Why a target rejects a row. `RowError.native` has the target's own code.
REASONS: Final = (
    "unique",
    "foreign_key",
    "not_null",
    "check",
    "too_long",
    "out_of_range",
    "wrong_type",
    "missing_row",  # update: no such row exists; undo: the row is no longer there
    "refused",  # any other rejection of one row, such as by a trigger, a rule or a validator
)


class ConnectorError(Exception):
    """A target, or the connection to it, failed. Services convert it to an `ApiError`.

    `code` is a code of the error table: `target_failed`, `target_timeout`, `target_not_allowed`,
    `token_request_failed`, `csrf_failed`, `driver_missing` or `read_only_connection`. `reason` names the
    stage or the fault (`unresolved`, `refused`, `auth_failed`, `no_database`, `no_permission`, `no_table`,
    `tls_failed`, `timeout`, `lost`, ...). `hint` says what to do. `transient` means that the same call may
    succeed later. Messages contain no secrets.
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

    def to_json(self) -> dict[str, Any]:
        """Return the arguments from which another process can create the same error."""
        names = ("message", "code", "reason", "hint", "transient", "details")
        return {name: getattr(self, name) for name in names}


class ConnectionLost(ConnectorError):
    """The connection was lost. The open transaction may have been committed: see `Session.commit_outcome`."""

    def __init__(self, message: str, **kwargs: Any) -> None:
        super().__init__(message, reason="lost", transient=True, **kwargs)


# The package to install for the driver of each extra. Must match pyproject.toml.
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
    """The result of one stage of a verification. `code` is empty on success, otherwise a `ConnectorError.reason`."""

    name: str
    ok: bool
    code: str = ""
    message: str = ""
    hint: str = ""
    ms: int = 0
    response: dict[str, Any] | None = None
    """The response, for the last stage of a verification over HTTP."""


# --- Sending ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowError:
    """A row that the target rejected. `index` is its position in the batch, from 0; `reason` is one of
    `REASONS`."""

    index: int
    reason: str
    message: str
    """The target's own message, at most `limits.PUSH_MESSAGE_CHARS` characters."""
    native: str = ""
    """The target's own error code, such as SQLSTATE 23505, 1062 or ORA-00001."""
    column: str | None = None


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of writing a batch. Rows without an error are in the open transaction."""

    failures: list[RowError] = field(default_factory=list)
    keys: pa.RecordBatch | None = None
    """Values of the captured columns: one row for each row of the batch, null for rejected rows."""


@dataclass(frozen=True, slots=True)
class WriteSpec:
    """What a push writes: the columns of a table, and how."""

    entity: Entity
    columns: tuple[Column, ...]
    """The columns of every batch, in this order."""
    mode: Mode = "insert"
    key_columns: tuple[str, ...] = ()
    """Columns that identify a row, for upsert, update and undo."""
    capture: tuple[str, ...] = ()
    """Columns whose values the target generates and returns."""
    is_retry: bool = False
    """The rows may have been sent before, by an attempt whose outcome is unknown. A row that already exists
    with exactly the same values counts as delivered."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a kind of target can do."""

    modes: tuple[Mode, ...] = ("insert", "upsert", "update")
    capture: bool = True
    """Can return values that the target generates (identity keys, defaults)."""
    create_table: bool = True
    sql: bool = True
    """Can run statements before and after a push, and queries for fields of type db_response."""
    fetch: bool = False
    """Its channel has `fetch`, for fields of type api_response."""
    prompts: bool = False
    """Its channel has `complete`, for fields of type ai."""
    transactions: bool = True
    """A chunk is written completely or not at all. Otherwise rows carry keys that Rowsmith creates, so that a
    chunk can be sent again."""
    schemas: bool = True
    by_row: bool = False
    """Rows are sent in requests through a `Channel`."""
    name_chars: int = 63
    """Maximum length of a table or column name."""

    @property
    def tables(self) -> bool:
        """Whether it opens a `Session`, for fields of type foreign_key."""
        return not self.by_row and not self.prompts


class Target(ABC):
    """A table that rows are written to.

    A batch has one Arrow array for each of `WriteSpec.columns`, of the type that the engine generated: text,
    integers, decimals, floats, booleans, dates, timestamps, or JSON text for nested values (lists only if the
    column is an array). The target converts them to its column types. A value that cannot be converted is a
    `RowError` with the reason `wrong_type`, `too_long` or `out_of_range`.
    """

    spec: WriteSpec

    @abstractmethod
    def begin(self) -> None:
        """Open a transaction unless one is open."""

    @abstractmethod
    def send(self, batch: pa.RecordBatch) -> WriteResult:
        """Write the rows of a batch to the open transaction, in order, and report the rejected rows.

        Raises `ConnectionLost` if the connection fails, and `ConnectorError` for faults that concern the
        whole table.
        """

    def prepare(self, batch: pa.RecordBatch) -> Callable[[], WriteResult]:
        """Do the part of `send` that needs no connection, and return the function that does the rest.

        May run in any thread while another batch is being sent. The returned function can be called once.
        """
        return partial(self.send, batch)

    @abstractmethod
    def delete(self, batch: pa.RecordBatch) -> WriteResult:
        """Delete rows by `WriteSpec.key_columns`, which are the batch's columns.

        A row that does not exist fails with `missing_row`, a row that other rows reference with
        `foreign_key`.
        """

    @abstractmethod
    def commit_token(self) -> dict[str, Any]:
        """Return a JSON object from which `Session.commit_outcome` can tell later whether the open
        transaction was committed.

        Empty if the target offers no way to find out: after a crash, the state of the rows is then unknown.
        """

    @abstractmethod
    def commit(self) -> None:
        """Commit the open transaction.

        Raises `ConnectionLost` if the outcome is unknown, and `ConnectorError` (reason `deferred`) if the
        target rejected the commit, so that no row of the chunk was written.
        """

    def check_constraints_immediately(self) -> bool:
        """Let later transactions check deferred constraints with each statement, so that `send` reports the rows that
        violate them. Return False if the target cannot, or does already."""
        return False

    @abstractmethod
    def rollback(self) -> None:
        """Roll back the open transaction. Does nothing if none is open or the connection is lost."""

    @abstractmethod
    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """Return one readable SQL statement or request for each row, regardless of how rows are actually
        sent."""


class OpenConnection(ABC):
    """An open connection to a target. It may be closed more than once."""

    @abstractmethod
    def close(self) -> None:
        """Close the connection. Open transactions are rolled back."""

    def cancel(self) -> None:
        """Abort the running operation from another thread; the operation then raises.

        Returns within two seconds. Afterwards only `close` may be called. Does nothing if no operation is
        running.
        """
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def metadata(self) -> Metadata:
        """Return all tables that the account can see, except system tables. Uses few queries, regardless of
        their number."""

    @abstractmethod
    def entity(self, name: str) -> Entity | None:
        """Return one table by its `Entity.name`, or None.

        Names match exactly, or else ignoring case if only one table matches.
        """


class TableReader(OpenConnection):
    """A connection that can read tables of a database."""

    @abstractmethod
    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """Return the first rows of a table, with all columns."""

    @abstractmethod
    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield all values of some columns in batches, using constant memory.

        They are ordered by these columns, or by those in `order`. `where` is a condition in the target's
        language (SQL after WHERE; JSON for MongoDB).
        """

    @abstractmethod
    def contains(self, entity: Entity, columns: Sequence[str], candidates: pa.RecordBatch) -> pa.BooleanArray:
        """Return for each combination of values in `candidates` whether the table contains it."""

    @abstractmethod
    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """Return the first rows of a query. `{{name}}` in the text is replaced by a parameter with a value
        from `values`."""

    def stream(self, text: str) -> Iterator[pa.RecordBatch]:
        """Yield all rows of a read-only query without placeholders, in one or more batches, using constant
        memory."""
        raise ConnectorError(
            "This kind of connection cannot stream the rows of a query.",
            reason="unsupported",
            hint="Specify a table, and optionally a condition in `where`.",
        )


class Session(TableReader):
    """An open connection to a database."""

    read_only: bool = False
    """The connection was opened for reading only."""

    def check_writable(self) -> None:
        """Raise `ConnectorError` (reason `read_only`) if the connection was opened for reading only."""
        if self.read_only:
            raise ConnectorError(
                "This connection is read-only.",
                code="read_only_connection",
                reason="read_only",
                hint="Use another connection, or ask its owner to allow writing.",
            )

    @abstractmethod
    def execute(self, statement: str) -> None:
        """Run one statement that an administrator configured (before or after a push), and commit."""

    @abstractmethod
    def create(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """Create a table, commit, and return the statement.

        The columns need a `type`, lengths and `nullable`; `declared` may be empty.
        """

    @abstractmethod
    def create_statement(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """Return the statement that `create` would run."""

    @abstractmethod
    def target(self, spec: WriteSpec) -> Target:
        """Return a target that writes to a table. Raises `ConnectorError` (reason `read_only`,
        `no_permission`, `unsupported`)."""

    def advance_sequence(self, entity: Entity, column: str, highest: Callable[[], int | None]) -> int | None:
        """Set the counter of an identity column to the highest value that was written to it, unless it is
        higher already.

        `highest` is called only if the column has a counter. Returns the new position, or None if it was not
        changed.
        """
        return None

    def can_suspend_foreign_keys(self) -> bool:
        """Return whether this account may write rows before the rows that they refer to."""
        return False

    @contextmanager
    def suspend_foreign_keys(self) -> Iterator[None]:
        """Suspend foreign key checks for this session. Call it only if `can_suspend_foreign_keys` returns True."""
        raise ConnectorError(
            "This kind of connection cannot suspend foreign key checks.", reason="unsupported"
        )
        yield

    def max_value(self, entity: Entity, column: str) -> int | None:
        """Return the highest value of an integer column, None if the table is empty."""
        raise ConnectorError(
            "This kind of connection cannot read the highest value of a column.", reason="unsupported"
        )

    def count(self, entity: Entity) -> int:
        """Return the number of rows of a table."""
        raise ConnectorError("This kind of connection cannot count rows.", reason="unsupported")

    @abstractmethod
    def commit_outcome(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """Return whether the transaction of a commit token was committed, or None if that cannot be
        determined.

        After this call returns, the transaction can no longer be committed.
        """


class Settings(json_input.Model):
    """What a user enters to reach a target.

    A field with `json_schema_extra={"secret": True}` is encrypted and masked; `"group"` and `"order"` set its
    place in the form.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Connector(ABC):
    """A kind of connection with its settings. Connects only in `open` and `stages`."""

    kind: ClassVar[str]
    """The kind in the API, such as postgresql."""
    title: ClassVar[str]
    """The name that users see, such as PostgreSQL."""
    extra: ClassVar[str] = ""
    """The extra in pyproject.toml that installs the driver; empty if no driver is needed."""
    default_port: ClassVar[int | None] = None
    can: ClassVar[Capabilities] = Capabilities()
    Settings: ClassVar[type[Settings]]
    secret_independent_settings: ClassVar[frozenset[str]] = frozenset({"schema", "database", "password"})
    """Settings that affect neither where a secret is sent nor how securely."""

    def __init__(self, settings: Any, gate: Gate, folder: str = "", read_only: bool = False) -> None:
        """Create a connector from `Settings` with secrets filled in; `folder` is the workspace's folder for
        files."""
        self.settings, self.gate, self.folder, self.read_only = settings, gate, folder, read_only

    @classmethod
    @abstractmethod
    def driver(cls) -> Any:
        """Import and return the driver module. Raises `DriverMissing`."""

    @abstractmethod
    def stages(self) -> Iterator[Stage]:
        """Verify the connection stage by stage, up to the first failure. Each stage has its own time limit."""

    @abstractmethod
    def open(self, timeout: float | None = None) -> OpenConnection:
        """Connect, and return a `Session` for a database or a `Channel` for HTTP. Raises `ConnectorError`."""
