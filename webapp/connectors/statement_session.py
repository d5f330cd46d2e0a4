"""What sessions share that speak SQL through a driver of rows and statements: SQL Server, Oracle, Db2."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, ClassVar, Final, Protocol

import pyarrow as pa

from webapp import limits
from webapp.connectors import sql, sql_reads
from webapp.connectors.base import ConnectorError, Failure, Session, Writing
from webapp.connectors.scalars import MAKERS, made
from webapp.connectors.shape import Column, Entity, Metadata
from webapp.connectors.sql_values import of_objects, plain
from webapp.engine.formats.base import FormatError
from webapp.engine.formats.sql_dialects import Dialect


class Link(Protocol):
    """A driver's connection. What it raises is ours already."""

    def ask(
        self, text: str, values: Sequence[Any] = (), limit: int | None = None
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """Names and rows of what a statement returns, the first rows where there is a `limit`. Raises `ConnectorError`
        where they are larger than the limit of an answer."""

    def run(self, text: str) -> int:
        """Carry out a statement; how many rows it changed."""

    def stream(self, text: str) -> Iterator[tuple[list[str], list[Sequence[Any]]]]:
        """Names and rows of a query, piece by piece: see `sql.grouped`."""

    def close(self) -> None:
        """End the connection; harmless when it is gone."""

    def cut(self) -> None:
        """Called from another thread: end the connection, and with it whatever waits for it."""


class StatementSession(Session):
    """One connection in autocommit; transactions are opened where they are needed."""

    dialect: ClassVar[Dialect]
    origin: ClassVar[str] = ""
    """What a SELECT without a table needs: ` FROM DUAL`."""
    locking: ClassVar[str] = ""
    """Behind a table's name: reading waits for whoever writes these rows."""

    def __init__(self, link: Link, title: str, home: str, read_only: bool) -> None:
        self.link, self.title, self.home, self.read_only = link, title, home, read_only

    # --- what kinds differ in ---

    @abstractmethod
    def entities(self, like: str = "") -> list[Entity]:
        """Every table and view this account may see, or those whose `Entity.name` is like that but for case."""

    def limited(self, names: str, rest: str, limit: int) -> str:
        """A query of the first rows; `rest` begins with FROM."""
        return f"SELECT {names} {rest} FETCH FIRST {limit} ROWS ONLY"

    @abstractmethod
    def another(self) -> Link:
        """A second connection."""

    def reading(
        self, link: Link, text: str, values: Sequence[Any], limit: int
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """The first rows of a query in a transaction that is undone."""
        raise NotImplementedError

    @abstractmethod
    def begin_reading(self, link: Link) -> None:
        """Begin a transaction that is undone when the connection is closed, read-only where there is such a thing."""

    marker: ClassVar[str] = "%s"
    doubled: ClassVar[str] = ""

    # --- the connection ---

    def close(self) -> None:
        """See `Session.close`."""
        self.link.close()

    def cancel(self) -> None:
        """See `Session.cancel`."""
        self.link.cut()

    # --- verification ---

    def permitted(self) -> str:
        """What the account sees, for people."""
        count = len(self.entities())
        return f"{count:,} tables and views are visible."

    def sampled(self) -> str:
        """One row of the first table is read, for people."""
        found = next((one for one in self.entities() if one.kind == "table"), None)
        if found is None:
            return "There is no table yet."
        self.link.ask(self.limited("*", f"FROM {self.table(found)}", 1))
        return f"{found.name} was read."

    # --- looking around ---

    def table(self, entity: Entity) -> str:
        """The table's name as statements have it."""
        return sql.qualified(self.dialect, entity.parts)

    def metadata(self) -> Metadata:
        """See `Session.metadata`."""
        return Metadata(self.dialect.name, self.title, tuple(self.entities()))

    def entity(self, name: str) -> Entity | None:
        """See `Session.entity`."""
        return sql.matched(self.entities(name), name) if name else None

    # --- reading ---

    def sample(self, entity: Entity, limit: int) -> pa.RecordBatch:
        """See `Session.sample`."""
        names = sql.listed(self.dialect, (column.name for column in entity.fields))
        text = self.limited(names, f"FROM {self.table(entity)}", max(int(limit), 0))
        found: list[Sequence[Any]] = []
        with closing(self.another()) as link:
            for _, rows in link.stream(text):
                found += rows
                if sql.size_of(found) > limits.SAMPLE_BYTES:
                    break
        return batch_of([column.name for column in entity.fields], found)

    def keys(
        self, entity: Entity, columns: Sequence[str], where: str = "", order: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `Session.keys`. They come over a connection of their own, which may be given up half-way."""
        names = sql.listed(self.dialect, columns)
        condition = sql.where_clause(self.dialect.name, where)
        ordered = sql.ordered(self.dialect, columns, order)
        if where.strip():
            sql_reads.check_condition(self.dialect.name, where)
        yield from self._streamed(f"SELECT {names} FROM {self.table(entity)}{condition}{ordered}")

    def stream(self, text: str) -> Iterator[pa.RecordBatch]:
        """See `Session.stream`."""
        statement, _ = sql.bound(text, {}, self.marker)
        sql_reads.check_query(self.dialect.name, statement)
        empty = True
        for batch in self._streamed(statement):
            empty = False
            yield batch
        if empty:  # a stream of no rows tells no names
            yield self.query(text, {}, 1)

    def _streamed(self, text: str) -> Iterator[pa.RecordBatch]:
        link = self.another()
        try:
            self.begin_reading(link)
            for piece in link.stream(text):
                yield batch_of(*piece)
        finally:
            link.close()

    def known(self, entity: Entity, columns: Sequence[str], wanted: pa.RecordBatch) -> pa.BooleanArray:
        """See `Session.known`."""
        fields = [entity.column(name) or Column(name, "text", "") for name in columns]
        cells, failures = literals(self.dialect, fields, wanted)
        missing = {one.index for one in failures}
        names = [self.dialect.quoted(name) for name in columns]
        asked = [
            f"SELECT {row} AS n{self.origin} WHERE EXISTS (SELECT 1 FROM {self.table(entity)} WHERE "
            + " AND ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
            + ")"
            for row, values in enumerate(zip(*cells, strict=True))
            if row not in missing and "NULL" not in values
        ]
        there: set[int] = set()
        for at in range(0, len(asked), limits.STATEMENT_KNOWN_ROWS):
            _, rows = self.link.ask(" UNION ALL ".join(asked[at : at + limits.STATEMENT_KNOWN_ROWS]))
            there.update(int(row[0]) for row in rows)
        return pa.array([row in there for row in range(wanted.num_rows)], pa.bool_())

    def query(self, text: str, values: Mapping[str, Any], limit: int) -> pa.RecordBatch:
        """See `Session.query`. It may hold nothing but a SELECT, and what it did nevertheless is undone."""
        statement, found = sql.bound(text, values, self.marker, doubled=self.doubled)
        sql_reads.check_query(self.dialect.name, statement)
        return batch_of(*self.reading(self.link, statement, found, max(int(limit), 0)))

    # --- statements ---

    def execute(self, statement: str) -> None:
        """See `Session.execute`."""
        self.may_write()
        self.link.run(statement.strip().rstrip(";"))

    def create(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create`."""
        statement = self.create_statement(name, columns, keys)
        self.execute(statement)
        return statement

    def create_statement(self, name: str, columns: Sequence[Column], keys: Sequence[str]) -> str:
        """See `Session.create_statement`. A name without a dot is of the connection's own schema."""
        schema, dot, table = name.partition(".")
        return sql.create_statement(self.dialect, (schema, table) if dot else (name,), columns, keys)

    def writable(self, writing: Writing) -> None:
        """Raises `ConnectorError` for what cannot be written to."""
        self.may_write()
        if writing.entity.kind == "view":
            raise ConnectorError(
                f"{writing.entity.name} is a view.", reason="unsupported", hint="Pick its table."
            )
        keys = writing.key_columns
        known = [set(one) for one in (writing.entity.keys, *writing.entity.uniques) if one]
        if writing.mode == "upsert" and set(keys) not in known:
            raise ConnectorError(
                f"{writing.entity.name} has no unique key of {', '.join(keys) or 'no columns'}.",
                reason="unsupported",
                hint="Choose the columns of its primary key or of a unique constraint.",
            )

    def settled(self, entity: Entity, proof: Mapping[str, Any]) -> bool | None:
        """See `Session.settled`. A row that is still held makes the reading wait, and in the end nothing is told."""
        if not {"keys", "rows"} <= proof.keys():
            return None
        found = []
        for row in proof["rows"]:
            same = " AND ".join(
                f"{self.dialect.quoted(name)} = {value}"
                for name, value in zip(proof["keys"], row, strict=True)
            )
            try:
                found.append(
                    bool(self.link.ask(f"SELECT 1 FROM {self.table(entity)}{self.locking} WHERE {same}")[1])
                )
            except ConnectorError as error:
                if error.reason != "locked":
                    raise
                return None
        if not found:
            return True  # nothing was inserted: there is nothing to be missed or doubled
        return found[0] if all(found) or not any(found) else None


def batch_of(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """A driver's rows as Arrow columns."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pa.RecordBatch.from_arrays([of_objects(list(values)) for values in columns], list(names))


_NATURAL: Final = {
    "text": pa.types.is_string, "enum": pa.types.is_string, "other": pa.types.is_string, "json": pa.types.is_string,
    "float": pa.types.is_floating, "boolean": pa.types.is_boolean, "date": pa.types.is_date,
}  # fmt: skip


def literals(
    dialect: Dialect, columns: Sequence[Column], batch: pa.RecordBatch
) -> tuple[list[list[str]], list[Failure]]:
    """Literals of each column, and the rows that have a value its column cannot hold."""
    failures: dict[int, Failure] = {}
    cells = []
    for column, array in zip(columns, batch.columns, strict=True):
        values = plain(array)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if not _NATURAL.get(column.type, lambda _: False)(values.type):
            objects, found = made(values, column, MAKERS[column.type])
            failures |= {one.index: one for one in found}
            if column.type == "uuid" and column.declared.startswith("RAW"):  # Oracle's sixteen bytes
                values = pa.array([one and one.bytes for one in objects], pa.binary())
                column = replace(column, type="binary")
            elif column.type == "uuid":
                values = pa.array([one and str(one) for one in objects], pa.string())
            else:
                values = of_objects(objects)
        cells.append(_written(dialect, values, column, failures))
    return cells, sorted(failures.values(), key=lambda one: one.index)


def _written(dialect: Dialect, values: pa.Array, column: Column, failures: dict[int, Failure]) -> list[str]:
    try:
        return sql.literals(dialect, values, column)
    except FormatError:
        pass  # one of them: which?
    found = []
    for row in range(len(values)):
        try:
            found += sql.literals(dialect, values.slice(row, 1), column)
        except FormatError as error:
            found.append("NULL")
            failures[row] = Failure(row, "wrong_type", f"{column.name}: {error}", column=column.name)
    return found
