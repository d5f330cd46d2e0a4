"""A connection of python-oracledb's in its thin mode, whose errors are ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import oracledb

from webapp.connectors.oracle_errors import converted


@dataclass(frozen=True, slots=True)
class Answer:
    """How an array of rows went: refused ones as (place, number, message), rows that each has changed, and what
    RETURNING gave for each."""

    refused: list[tuple[int, int, str]]
    counts: list[int]
    returned: list[list[Any]]


@contextmanager
def conversing() -> Iterator[None]:
    """What the driver raises within comes out as ours."""
    try:
        yield
    except oracledb.Error as error:
        told = error.args[0] if error.args else None
        number, said = getattr(told, "code", 0) or 0, getattr(told, "message", str(error))
        raise converted(number, said, getattr(told, "full_code", "")) from None
    except OSError as error:
        raise converted(3113, str(error)) from None


class OracleLink:
    """See `statement_session.Link`."""

    def __init__(self, **how: Any) -> None:
        with conversing():
            self._connection = oracledb.connect(**how)
            self._connection.outputtypehandler = _read_as
            self.run("ALTER SESSION SET TIME_ZONE = '+00:00'")
            self.run("ALTER SESSION SET NLS_NUMERIC_CHARACTERS = '.,'")

    @property
    def version(self) -> str:
        """The server's."""
        return str(self._connection.version)

    def ask(self, text: str, values: Sequence[Any] = ()) -> tuple[list[str], list[Sequence[Any]]]:
        """See `Link.ask`."""
        with conversing(), self._connection.cursor() as cursor:
            cursor.execute(text, list(values))
            return [one[0] for one in cursor.description or ()], cursor.fetchall() if cursor.description else []

    def run(self, text: str) -> int:
        """See `Link.run`."""
        with conversing(), self._connection.cursor() as cursor:
            cursor.execute(text)
            return max(cursor.rowcount, 0)

    def many(self, text: str, rows: list[list[Any]], types: Sequence[str | None], back: Sequence[str]) -> Answer:
        """Carry out a statement for every row; those that are refused are told, the others stand. `types` are names
        of the driver's, None for what the values say themselves; `back` those of RETURNING."""
        with conversing(), self._connection.cursor() as cursor:
            sizes = [getattr(oracledb, name) if name else None for name in types]
            out = [cursor.var(getattr(oracledb, name), arraysize=len(rows)) for name in back]
            cursor.setinputsizes(*sizes, *out)
            cursor.executemany(text, [[*row, *[None] * len(out)] for row in rows] if out else rows,
                               batcherrors=True, arraydmlrowcounts=True)  # fmt: skip
            refused = [(one.offset, one.code, one.message) for one in cursor.getbatcherrors()]
            places = range(len(rows)) if out else ()
            returned = [[(var.getvalue(place) or [None])[0] for var in out] for place in places]
            return Answer(refused, list(cursor.getarraydmlrowcounts()), returned)

    def stream(self, text: str, size: int) -> Iterator[tuple[list[str], list[Sequence[Any]]]]:
        """See `Link.stream`."""
        with conversing(), self._connection.cursor() as cursor:
            cursor.arraysize = size
            cursor.execute(text)
            names = [one[0] for one in cursor.description]
            while rows := cursor.fetchmany(size):
                yield names, rows

    def patience(self, seconds: float | None) -> None:
        """How long each answer may take from now on; None: as long as it does."""
        with conversing():
            self._connection.call_timeout = int((seconds or 0) * 1000)

    def commit(self) -> None:
        """Commit the open transaction."""
        with conversing():
            self._connection.commit()

    def rollback(self) -> None:
        """Undo the open transaction."""
        with conversing():
            self._connection.rollback()

    def close(self) -> None:
        """See `Link.close`."""
        try:
            self._connection.close()
        except (oracledb.Error, OSError):
            pass  # closed already

    def cut(self) -> None:
        """See `Link.cut`: the server is asked to break off."""
        try:
            self._connection.cancel()
        except (oracledb.Error, OSError):
            pass  # it is gone already


def _read_as(cursor: Any, told: Any) -> Any:
    """Numbers exactly, long texts and bytes as values of their own."""
    kinds = {
        oracledb.DB_TYPE_CLOB: oracledb.DB_TYPE_LONG,
        oracledb.DB_TYPE_NCLOB: oracledb.DB_TYPE_LONG_NVARCHAR,
        oracledb.DB_TYPE_BLOB: oracledb.DB_TYPE_LONG_RAW,
    }
    if told.type_code in kinds:
        return cursor.var(kinds[told.type_code], arraysize=cursor.arraysize)
    if told.type_code is oracledb.DB_TYPE_NUMBER and told.scale:
        return cursor.var(str, arraysize=cursor.arraysize, outconverter=_decimal)
    return None


def _decimal(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)
