"""Sessions and targets of the kinds whose drivers take statements and return rows: SQL Server, Oracle, Db2.

None of these servers has a session that is reliably read-only: SQL Server runs several statements in one text
without separators; Oracle accepts PL/SQL with its own transactions inside a query; in Db2, a SELECT may
contain an INSERT. Therefore Rowsmith tokenizes queries as the server does, ignoring quoted texts, quoted
names and comments, and rejects keywords that change something, and anything ambiguous. Effects of functions
that a query calls cannot be detected.

Targets write rows with literal statements or with arrays of rows.
"""

from __future__ import annotations

import re
import unicodedata
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, Protocol

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.connectors.base import ConnectorError, RowError, Session, Target, WriteResult, WriteSpec
from webapp.connectors.column_values import CONVERTERS, convert_column, from_objects, to_plain
from webapp.connectors.row_isolation import BatchSizer, RowRejection, isolate_bad_rows
from webapp.connectors.schema import Column, Entity, Metadata
from webapp.connectors.sql import base
from webapp.engine.formats.base import FormatError
from webapp.engine.formats.sql_dialects import Dialect


class DriverConnection(Protocol):
    """A connection of a driver. Its errors are already converted to `ConnectorError`."""

    def query(
        self, text: str, values: Sequence[Any] = (), limit: int | None = None
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """Run a statement, and return the names and the rows, only the first ones if there is a `limit`.

        Raises `ConnectorError` if they exceed the size limit.
        """

    def run(self, text: str) -> int:
        """Run a statement, and return the number of changed rows."""

    def stream(self, text: str) -> Iterator[tuple[list[str], list[Sequence[Any]]]]:
        """Yield names and rows of a query in pieces: see `sql.base.grouped`."""

    def close(self) -> None:
        """Close the connection, if it is open."""

    def abort(self) -> None:
        """Close the connection from another thread, so that operations that wait for it fail."""


class StatementSession(Session):
    """A connection in autocommit mode. Transactions are opened where needed."""

    dialect: ClassVar[Dialect]
    from_dual: ClassVar[str] = ""
    """Suffix of a SELECT without a table, such as ` FROM DUAL`."""
    lock_hint: ClassVar[str] = ""
    """Lock hint after a table name: the query waits for transactions that write these rows."""

    def __init__(self, link: DriverConnection, title: str, default_schema: str, read_only: bool) -> None:
        self.link, self.title, self.default_schema, self.read_only = link, title, default_schema, read_only

    # --- differences between kinds ---

    @abstractmethod
    def entities(self, name_filter: str = "") -> list[Entity]:
        """Return all tables and views that the account can see, or those whose `Entity.name` equals `name_filter`,
        ignoring case."""

    def limited_query(self, names: str, rest: str, limit: int) -> str:
        """Return a query for the first rows. `rest` begins with FROM."""
        return f"SELECT {names} {rest} FETCH FIRST {limit} ROWS ONLY"

    @abstractmethod
    def open_another(self) -> DriverConnection:
        """Open a second connection."""

    def query_and_roll_back(
        self, link: DriverConnection, text: str, values: Sequence[Any], limit: int
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """Return the first rows of a query in a transaction that is rolled back."""
        raise NotImplementedError

    @abstractmethod
    def begin_read_only(self, link: DriverConnection) -> None:
        """Begin a transaction that is rolled back when the connection closes, read-only if the server
        supports it."""

    placeholder: ClassVar[str] = "%s"
    doubled_chars: ClassVar[str] = ""

    # --- the connection ---

    def close(self) -> None:
        """See `Session.close`."""
        self.link.close()

    def cancel(self) -> None:
        """See `Session.cancel`."""
        self.link.abort()

    # --- verification ---

    def check_permission(self) -> str:
        """Return what the account can see, as a message."""
        count = len(self.entities())
        return f"{count:,} tables and views are visible."

    def check_sample(self) -> str:
        """Read one row of the first table, and return a message."""
        table = next((entity for entity in self.entities() if entity.kind == "table"), None)
        if table is None:
            return "No tables yet."
        self.link.query(self.limited_query("*", f"FROM {self.table(table)}", 1))
        return f"Read from {table.name}."

    # --- metadata ---

    def table(self, entity: Entity) -> str:
        """Return the table's name for statements."""
        return base.qualified_name(self.dialect, entity.parts)

    def count(self, entity: Entity) -> int:
        """See `Session.count`."""
        _, rows = self.link.query(f"SELECT COUNT(*) FROM {self.table(entity)}")
        return int(rows[0][0])

    def metadata(self) -> Metadata:
        """See `Session.metadata`."""
        return Metadata(self.dialect.name, self.title, tuple(self.entities()))

    def entity(self, name: str) -> Entity | None:
        """See `Session.entity`."""
        return base.find_entity(self.entities(name), name) if name else None

    # --- reading ---

    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """See `Session.sample`."""
        names = base.column_list(self.dialect, (column.name for column in entity.fields))
        text = self.limited_query(names, f"FROM {self.table(entity)}", max(int(limit), 0))
        result: list[Sequence[Any]] = []
        with closing(self.open_another()) as link:
            for _, rows in link.stream(text):
                result += rows
                if base.estimate_size(result) > limits.SAMPLE_BYTES:
                    break
        return batch_of([column.name for column in entity.fields], result)

    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `Session.keys`. Uses a separate connection, which is closed if the caller stops early."""
        names = base.column_list(self.dialect, columns)
        condition = base.where_clause(self.dialect.name, where)
        ordered = base.order_by_clause(self.dialect, columns, order)
        if where.strip():
            check_condition(self.dialect.name, where)
        yield from self._stream_batches(f"SELECT {names} FROM {self.table(entity)}{condition}{ordered}")

    def stream(self, text: str) -> Iterator[pa.RecordBatch]:
        """See `Session.stream`."""
        statement, _ = base.bind_parameters(text, {}, self.placeholder)
        check_query(self.dialect.name, statement)
        empty = True
        for batch in self._stream_batches(statement):
            empty = False
            yield batch
        if empty:  # an empty stream has no column names
            yield self.query(text, {}, 1)

    def _stream_batches(self, text: str) -> Iterator[pa.RecordBatch]:
        link = self.open_another()
        try:
            self.begin_read_only(link)
            for piece in link.stream(text):
                yield batch_of(*piece)
        finally:
            link.close()

    def contains(self, entity: Entity, columns: Sequence[str], candidates: pa.RecordBatch) -> pa.BooleanArray:
        """See `Session.contains`."""
        fields = [entity.column(name) or Column(name, "text", "") for name in columns]
        cells, failures = literals(self.dialect, fields, candidates)
        missing = {error.index for error in failures}
        names = [self.dialect.quote_name(name) for name in columns]
        queries = [
            f"SELECT {row} AS n{self.from_dual} WHERE EXISTS (SELECT 1 FROM {self.table(entity)} WHERE "
            + " AND ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
            + ")"
            for row, values in enumerate(zip(*cells, strict=True))
            if row not in missing and "NULL" not in values
        ]
        existing: set[int] = set()
        for start in range(0, len(queries), limits.STATEMENT_KNOWN_ROWS):
            _, rows = self.link.query(
                " UNION ALL ".join(queries[start : start + limits.STATEMENT_KNOWN_ROWS])
            )
            existing.update(int(row[0]) for row in rows)
        return pa.array([row in existing for row in range(candidates.num_rows)], pa.bool_())

    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """See `Session.query`. It may only contain a SELECT, and changes that it makes anyway are rolled back."""
        statement, parameters = base.bind_parameters(
            text, values, self.placeholder, doubled_chars=self.doubled_chars
        )
        check_query(self.dialect.name, statement)
        return batch_of(*self.query_and_roll_back(self.link, statement, parameters, max(int(limit), 0)))

    # --- statements ---

    def execute(self, statement: str) -> None:
        """See `Session.execute`."""
        self.check_writable()
        self.link.run(statement.strip().rstrip(";"))

    def create(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create`."""
        statement = self.create_statement(name, columns, keys)
        self.execute(statement)
        return statement

    def create_statement(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create_statement`. A name without a dot is of the connection's own schema."""
        schema, dot, table = name.partition(".")
        return base.create_statement(self.dialect, (schema, table) if dot else (name,), columns, keys)

    def check_target(self, spec: WriteSpec) -> None:
        """Raise `ConnectorError` if the table cannot be written to."""
        self.check_writable()
        if spec.entity.kind == "view":
            raise ConnectorError(
                f"{spec.entity.name} is a view.", reason="unsupported", hint="Select the underlying table."
            )
        keys = spec.key_columns
        known = [set(item) for item in (spec.entity.keys, *spec.entity.uniques) if item]
        if spec.mode == "upsert" and set(keys) not in known:
            raise ConnectorError(
                f"{spec.entity.name} has no unique key of {', '.join(keys) or 'no columns'}.",
                reason="unsupported",
                hint="Choose the columns of its primary key or of a unique constraint.",
            )

    def commit_outcome(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `Session.commit_outcome`. Waits for a locked row up to the lock timeout, then returns None."""
        if not {"keys", "rows"} <= commit_token.keys():
            return None
        existing = []
        for row in commit_token["rows"]:
            condition = " AND ".join(
                f"{self.dialect.quote_name(name)} = {value}"
                for name, value in zip(commit_token["keys"], row, strict=True)
            )
            try:
                existing.append(
                    bool(
                        self.link.query(
                            f"SELECT 1 FROM {self.table(entity)}{self.lock_hint} WHERE {condition}"
                        )[1]
                    )
                )
            except ConnectorError as error:
                if error.reason != "locked":
                    raise
                return None
        if not existing:
            return True  # nothing was inserted, so nothing can be missing or duplicated
        return existing[0] if all(existing) or not any(existing) else None


def batch_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """Convert a driver's rows to a record batch."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pa.RecordBatch.from_arrays([from_objects(list(values)) for values in columns], list(names))


_NATIVE_TYPES: Final = {
    "text": pa.types.is_string, "enum": pa.types.is_string, "other": pa.types.is_string, "json": pa.types.is_string,
    "float": pa.types.is_floating, "boolean": pa.types.is_boolean, "date": pa.types.is_date,
}  # fmt: skip


def literals(
    dialect: Dialect, columns: Sequence[Column], batch: pa.RecordBatch
) -> tuple[list[list[str]], list[RowError]]:
    """Return the literals of each column, and the errors of rows with a value that does not fit."""
    failures: dict[int, RowError] = {}
    cells = []
    for column, array in zip(columns, batch.columns, strict=True):
        values = to_plain(array)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if not _NATIVE_TYPES.get(column.type, lambda _: False)(values.type):
            objects, errors = convert_column(values, column, CONVERTERS[column.type])
            failures |= {error.index: error for error in errors}
            if column.type == "uuid" and column.declared.startswith("RAW"):  # Oracle stores UUIDs as 16 bytes
                values = pa.array([item and item.bytes for item in objects], pa.binary())
                column = replace(column, type="binary")
            elif column.type == "uuid":
                values = pa.array([item and str(item) for item in objects], pa.string())
            else:
                values = from_objects(objects)
        cells.append(_to_literals(dialect, values, column, failures))
    return cells, sorted(failures.values(), key=lambda failure: failure.index)


def _to_literals(
    dialect: Dialect, values: pa.Array, column: Column, failures: dict[int, RowError]
) -> list[str]:
    try:
        return base.literals(dialect, values, column)
    except FormatError:
        pass  # one of the values is invalid: find out which
    result = []
    for row in range(len(values)):
        try:
            result += base.literals(dialect, values.slice(row, 1), column)
        except FormatError as error:
            result.append("NULL")
            failures[row] = RowError(row, "wrong_type", f"{column.name}: {error}", column=column.name)
    return result


_CHANGE_KEYWORDS: Final = frozenset(
    "insert update delete merge truncate into drop alter create grant revoke deny exec execute call declare begin"
    " commit rollback save savepoint set use kill shutdown backup restore dbcc waitfor trigger bulk nextval".split()
)
_KEYWORDS_BY_KIND: Final[Mapping[str, frozenset[str]]] = {
    # Statements need no separator, so this lists all reserved words that begin one (Transact-SQL,
    # "Statements").
    "mssql": frozenset(
        "add checkpoint close conversation deallocate disable dump enable goto if load lineno open opendatasource"
        " openquery openrowset print raiserror readtext receive reconfigure return revert setuser throw updatetext"
        " while writetext tablockx updlock xlock".split()
    ),
    # WITH FUNCTION and WITH PROCEDURE (PL/SQL); inline external tables, which may run programs on the server.
    "oracle": frozenset(["external", "function", "lock", "pragma", "procedure"]),
    "db2": frozenset(["lock"]),
}  # fmt: skip
_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?")
_TOKEN: Final = re.compile(
    r"(?P<space>\s+)|(?P<line>--[^\n]*)|(?P<comment>/\*)|(?P<text>')|(?P<name>\")|(?P<bracket>\[)"
    r"|(?P<number>\.?[0-9](?:(?<=[eE])[+-](?=[0-9])|[\w.$#@])*)|(?P<word>[^\W\d][\w$#@]*)|(?P<sign>.)",
    re.S,
)
_COMMENT_SIGN: Final = re.compile(r"/\*|\*/")
_ORACLE_CLOSERS: Final = {"[": "]", "(": ")", "{": "}", "<": ">"}
# Characters that a server may convert to an apostrophe if its character set lacks them.
_APOSTROPHES: Final = frozenset("\u02b9\u02bb\u02bc\u02bd\u2018\u2019\u201a\u201b\u2032\uff07")
_LINE_ENDS: Final = re.compile("\r(?!\n|$)|[\u0085\u2028\u2029]")
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def check_query(kind: str, text: str) -> None:
    """Raise `ConnectorError` (reason `bad_query`) unless the text is a single SELECT."""
    words = list(_words(kind, text))
    start = next((word for word in words if word != "("), "")
    if start not in ("select", "with"):
        raise _rejected("It does not start with SELECT or WITH.")
    _check_words(kind, words)


def check_condition(kind: str, text: str) -> None:
    """Raise `ConnectorError` (reason `bad_query`) if a text is more than a condition."""
    _check_words(kind, list(_words(kind, text)))


def _check_words(kind: str, words: list[str]) -> None:
    depth = 0
    for index, word in enumerate(words):
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == ";":
            raise _rejected("It contains a semicolon.")
        if depth < 0:
            raise _rejected("It closes a parenthesis that was not opened.")
        if word in _CHANGE_KEYWORDS or word in _KEYWORDS_BY_KIND[kind]:
            raise _rejected(f"It contains the keyword {word.upper()}.")
        if word == "next" and words[index + 1 : index + 2] == ["value"]:
            raise _rejected("It reads the next value of a sequence.")
    if depth:
        raise _rejected("It opens a parenthesis that is not closed.")


def _rejected(problem: str) -> ConnectorError:
    return ConnectorError(
        f"Only SELECT queries are allowed. {problem}",
        reason="bad_query",
        hint="Enter a single SELECT, and quote names that are SQL keywords.",
    )


def _words(kind: str, text: str) -> Iterator[str]:
    """Yield words in lower case and other characters outside of quoted texts, quoted names and comments.

    Raises `ConnectorError` for anything that servers may interpret differently.
    """
    if _CONTROLS.search(text):
        raise _rejected("It contains a control character.")
    if kind != "mssql" and _APOSTROPHES & set(text):
        raise _rejected("It contains a character that the server may read as an apostrophe.")
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        assert match is not None
        token, position = match[0], match.end()
        match match.lastgroup:
            case "line":
                if _LINE_ENDS.search(token):
                    raise _rejected("It contains a comment that may end before the end of the line.")
            case "comment":
                position = _after_comment(text, position)
            case "text":
                position = _after_quote(text, position, "'")
            case "name":
                position = _after_quote(text, position, '"')
            case "bracket" if kind == "mssql":
                position = _after_quote(text, position, "]")
            case "number":
                if not _NUMBER.fullmatch(token):  # servers read `1delete` as a number and a word
                    raise _rejected(f'"{token[:20]}" is not a number.')
            case "word":
                word = unicodedata.normalize("NFKC", token).lower()
                if kind == "oracle" and word in ("q", "nq") and text[position : position + 1] == "'":
                    position = _after_oracle_quote(text, position + 1)
                else:
                    if any(
                        not item.isascii() and unicodedata.category(item)[0] not in "LM" for item in token
                    ):
                        raise _rejected(f'The name "{token[:20]}" must be quoted.')
                    yield word
            case "sign" | "bracket":
                if not token.isascii():
                    raise _rejected(f'It contains "{token}" outside of quotes.')
                yield token


def _after_quote(text: str, position: int, sign: str) -> int:
    """Return the end of a quoted text or name, in which a doubled `sign` stands for itself."""
    while (end := text.find(sign, position)) != -1:
        if text[end + 1 : end + 2] != sign:
            return end + 1
        position = end + 2
    raise _rejected("It contains a quoted text or name that is not closed.")


def _after_oracle_quote(text: str, position: int) -> int:
    """Return the end of `q'[...]'` (Oracle, "Text Literals"). `position` is the position after the apostrophe."""
    opener = text[position : position + 1]
    if not opener or opener.isspace():
        raise _rejected("It contains a quoted text that is not closed.")
    end = text.find(_ORACLE_CLOSERS.get(opener, opener) + "'", position + 1)
    if end == -1:
        raise _rejected("It contains a quoted text that is not closed.")
    return end + 2


def _after_comment(text: str, position: int) -> int:
    """Return the end of a comment that starts before `position`. Some servers nest comments, others do not."""
    match = _COMMENT_SIGN.search(text, position)
    if match is None:
        raise _rejected("It contains a comment that is not closed.")
    if match[0] == "/*":
        raise _rejected("It contains a comment inside a comment.")
    return match.end()


# --- Targets ------------------------------------------------------------------------------------------------

Cells = Sequence[Sequence[str]]
"""The literals of each column, row by row."""


@dataclass
class CommitKeys:
    """Records unique keys of some inserted rows as literals. After the transaction they are either in the
    table or not.

    Reading them waits for a transaction that still locks them.
    """

    spec: WriteSpec
    rows: list[list[str]] = field(default_factory=list)
    written: int = 0

    def __post_init__(self) -> None:
        written = {column.name for column in self.spec.columns}
        complete = [
            item
            for item in (self.spec.entity.keys, *self.spec.entity.uniques)
            if item and set(item) <= written
        ]
        self.keys = min(complete, key=len, default=())

    def begin(self) -> None:
        """Start over for a new transaction."""
        self.rows, self.written = [], 0

    def record(self, names: Sequence[str], cells: Sequence[Sequence[str]], rows: Sequence[int]) -> None:
        """Record that the rows at these positions of the columns were written."""
        self.written += len(rows)
        if not rows or not self.keys or len(self.rows) >= limits.MYSQL_PROOF_ROWS:
            return
        for row in dict.fromkeys((rows[0], rows[len(rows) // 2], rows[-1])):
            key = [cells[names.index(name)][row] for name in self.keys]
            if "NULL" not in key:
                self.rows.append(key)

    def commit_token(self) -> dict[str, Any]:
        """See `base.Target.commit_token`."""
        if self.spec.mode != "insert" or (self.written and not self.rows):
            return {}
        return {"keys": list(self.keys), "rows": self.rows}


class StatementTarget(Target):
    """A table of a `StatementSession` whose connection is `link`."""

    dialect: ClassVar[Dialect]
    title: ClassVar[str] = ""
    """Set by kinds that return generated values only for inserted rows: their name for the message."""
    _link: Any

    def __init__(self, link: Any, spec: WriteSpec) -> None:
        self.spec = spec
        self._link = link
        self._table = base.qualified_name(self.dialect, spec.entity.parts)
        self._names = [column.name for column in spec.columns]
        self._commit_keys = CommitKeys(spec)
        self._open = False
        self._returned: dict[int, Sequence[Any]] = {}
        """Values that the server generated, by the row's position in the batch."""
        if self.title and spec.capture and spec.mode != "insert":
            raise ConnectorError(
                f"{self.title} returns generated values only for inserted rows.",
                reason="unsupported",
                hint="Remove the columns to capture.",
            )

    # --- differences between kinds ---

    def begin_transaction(self) -> None:
        """Open a transaction."""
        self._link.begin()

    def commit_transaction(self) -> None:
        """Commit the open transaction."""
        self._link.commit()

    def roll_back_transaction(self) -> None:
        """Roll back the open transaction."""
        self._link.rollback()

    @abstractmethod
    def write_batch(self, batch: pa.RecordBatch, mode: str) -> WriteResult:
        """Write or delete the rows of a batch."""

    # --- transactions ---

    def begin(self) -> None:
        """See `Target.begin`."""
        if not self._open:
            self.begin_transaction()
            self._commit_keys.begin()
            self._open = True

    def commit_token(self) -> dict[str, Any]:
        """See `Target.commit_token`: keys of rows that were inserted."""
        return self._commit_keys.commit_token()

    def commit(self) -> None:
        """See `Target.commit`."""
        self._open = False
        self.commit_transaction()

    def rollback(self) -> None:
        """See `Target.rollback`."""
        self._open = False
        try:
            self.roll_back_transaction()
        except ConnectorError:
            pass  # the connection is lost, and the transaction with it

    # --- rows ---

    def statements(self, batch: pa.RecordBatch) -> list[str]:
        """See `Target.statements`."""
        return base.statements(self.dialect, self.spec, batch)

    def send(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.send`."""
        return self.write_batch(batch, self.spec.mode)

    def delete(self, batch: pa.RecordBatch) -> WriteResult:
        """See `Target.delete`."""
        return self.write_batch(batch, "delete")

    def missing_row_error(self, row: int) -> RowError:
        """Return the error of a row that does not exist in the table."""
        return RowError(row, "missing_row", f"No such row exists in {self.spec.entity.name}.")

    def captured_values(self, count: int) -> pa.RecordBatch:
        """Return the generated values of each row of a batch, null for rejected rows."""
        names = list(self.spec.capture)
        none = (None,) * len(names)
        rows = [self._returned.get(row, none) for row in range(count)]
        arrays = [from_objects([row[index] for row in rows]) for index in range(len(names))]
        return pa.RecordBatch.from_arrays(arrays, names)


class LiteralTarget(StatementTarget):
    """A target whose statements contain the literals of many rows. A rejected statement is rolled back and
    split."""

    max_rows: ClassVar[int]
    """Maximum number of rows in a statement."""
    max_length: ClassVar[int]
    """Maximum length of a statement's literals, as measured by `length`."""

    @abstractmethod
    def to_literals(self, batch: pa.RecordBatch) -> tuple[list[list[str]], list[RowError]]:
        """Return the literals of each column, and the errors of rows with a value that does not fit."""

    @abstractmethod
    def write_rows(self, cells: Cells, rows: list[int], mode: str) -> RowRejection | None:
        """Write or delete these rows with one statement, or none of them if it is rejected.

        Rows that an update or delete does not find are a rejection, or are reported by `missing_rows`.
        """

    def missing_rows(self, rows: Sequence[int], mode: str) -> list[int]:
        """Return which of the accepted rows did not exist."""
        return []

    @staticmethod
    def literal_length(literal: str) -> int:
        """Return how much a literal counts toward `max_length`."""
        return len(literal)

    def write_batch(self, batch: pa.RecordBatch, mode: str) -> WriteResult:
        """See `StatementTarget.write_batch`."""
        cells, failures = self.to_literals(batch)
        self._returned = {}
        bad = {error.index for error in failures}
        rows = [row for row in range(batch.num_rows) if row not in bad]
        keys = [] if mode == "insert" else [cells[self._names.index(name)] for name in self.spec.key_columns]

        def attempt(piece: np.ndarray) -> RowRejection | None:
            return self.write_rows(cells, piece.tolist(), mode)

        batch_sizer = BatchSizer(self.max_rows, self.max_rows)
        for piece in split_rows(rows, cells, keys, self.max_rows, self.max_length, self.literal_length):
            failures += isolate_bad_rows(piece, attempt, batch_sizer)
        bad = {error.index for error in failures}
        accepted = [row for row in rows if row not in bad]
        failures += map(self.missing_row_error, self.missing_rows(accepted, mode))
        if mode == "insert":
            self._commit_keys.record(self._names, cells, accepted)
        failures.sort(key=lambda failure: failure.index)
        returns_values = self.spec.capture and mode != "delete"
        return WriteResult(failures, self.captured_values(batch.num_rows) if returns_values else None)

    def insert(self, cells: Cells, rows: Sequence[int]) -> str:
        """Return the INSERT statement for rows."""
        values = ",".join("(" + ",".join([column[row] for column in cells]) + ")" for row in rows)
        return f"INSERT INTO {self._table} ({base.column_list(self.dialect, self._names)}) VALUES {values}"


def split_rows(
    rows: Sequence[int],
    cells: Cells,
    keys: Cells,
    max_rows: int,
    max_length: int,
    length: Callable[[str], int],
) -> Iterator[np.ndarray]:
    """Split rows into pieces for one statement each, within the limits and without a key twice in a piece."""
    piece: list[int] = []
    seen: set[tuple[str, ...]] = set()
    size = 0
    for row in rows:
        row_length = sum(length(column[row]) for column in cells)
        key = tuple(column[row] for column in keys)
        full = len(piece) == max_rows or size + row_length > max_length
        if piece and (full or (keys and key in seen)):
            yield np.array(piece)
            piece, size = [], 0
            seen.clear()
        piece.append(row)
        seen.add(key)
        size += row_length
    if piece:
        yield np.array(piece)
