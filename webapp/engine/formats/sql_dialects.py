"""The SQL dialects: quoting, literals and types, as data.

All names are always quoted, so that reserved words and upper and lower case are preserved. Oracle does not support
empty texts: it reads ``''`` as NULL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa

from webapp import limits
from webapp.engine.formats.escape import ByteScan, Escape, UnrepresentableTextError

_QUOTE: Final = {"'": "''"}
# SQL*Plus ends a statement at an empty line and prompts for a value at "&"; the Db2 command line removes line ends.
_BY_CODE: Final = {"'": "''", "\n": "'||CHR(10)||'", "\r": "'||CHR(13)||'"}
# In T-SQL a backslash before a line end joins the lines; cut there, as nvarchar(max) so that nothing is cut off.
_T_SQL_CUT: Final = "\\'+CAST(N'' AS nvarchar(max))+N'"


@dataclass(frozen=True, slots=True)
class Dialect:
    """One database's SQL. ``types`` are by kind; ``{n}`` is characters, ``{s}`` digits behind the point."""

    name: str
    types: Mapping[str, str]
    escapes: Mapping[str, str] = field(default_factory=lambda: _QUOTE)
    name_quotes: tuple[str, str] = ('"', '"')
    name_limit: int = 128
    name_limit_in_bytes: bool = False
    names_fold_case: bool = False
    text_lead: str = "'"
    date_lead: str = "'"
    timestamp_lead: str = "'"
    date_time_separator: str = " "  # the date and the time of a timestamp
    utc_suffix: str = "+00:00"
    exponent_tail: str = ""  # suffix of a number with an exponent, to make it a double
    booleans: tuple[str, str] = ("FALSE", "TRUE")
    preamble: str = ""
    table_tail: str = ""
    rows_per_statement: int = limits.SQL_ROWS_PER_STATEMENT
    max_rows_per_statement: int = limits.SQL_MAX_ROWS_PER_STATEMENT
    varchar_limit: int = 1_000_000  # the longest ``{n}`` of a bounded text
    row_bytes: int | None = None  # maximum size of the limited texts in one row; beyond it all are unlimited
    literal_bytes: int | None = None  # a longer text is put together from parts
    part_chars: int = 0
    key_chars: int | None = None  # the longest text that a key can be on; None: any
    can_alter_tables: bool = True  # whether a key can be added to a table that is there

    def quote_name(self, name: str) -> str:
        """``name`` as an identifier."""
        start, end = self.name_quotes
        return start + name.replace(end, end + end) + end

    def name_fault(self, name: str) -> str | None:
        """Return why ``name`` cannot be a name here, or None."""
        size = len(name.encode()) if self.name_limit_in_bytes else len(name)
        unit = "bytes" if self.name_limit_in_bytes else "characters"
        if not name or "\0" in name or (self.name == "oracle" and '"' in name):
            return f"{name!r} is not a valid name in {self.name}."
        if size > self.name_limit:
            return f"The name has {size} {unit}; {self.name} allows at most {self.name_limit}."
        return None

    def is_wide(self, lengths: Iterable[int]) -> bool:
        """Return whether limited texts of this many characters exceed the size of a row."""
        if self.row_bytes is None:
            return False
        return sum(4 * length for length in lengths if length <= self.varchar_limit) > self.row_bytes

    def type_of(self, kind: pa.DataType, length: int | None) -> str:
        """The column type for an Arrow type; ``length`` is the longest text in characters, None if unknown."""
        if pa.types.is_decimal(kind):
            return self.types["decimal"].format(s=kind.scale)
        if pa.types.is_timestamp(kind):
            return self.types["instant" if kind.tz else "timestamp"]
        for test, name in _KINDS:
            if test(kind):
                return self.types[name]
        if pa.types.is_null(kind):
            length = 1
        if length is None or length > self.varchar_limit:
            return self.types["text"]
        return self.types["varchar"].format(n=max(length, 1), units=2 * max(length, 1))


_KINDS = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_uint64, "unsigned"),
    (pa.types.is_integer, "integer"),
    (pa.types.is_floating, "float"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (pa.types.is_nested, "json"),
)


def _types(text: str) -> Mapping[str, str]:
    pairs = (pair.split("=", 1) for pair in text.split("; "))
    return MappingProxyType({name.strip(): value.strip() for name, value in pairs})


DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {
        "ansi": Dialect(
            "ansi",
            _types(
                "integer=BIGINT; unsigned=DECIMAL(20,0); float=DOUBLE PRECISION; decimal=DECIMAL(38,{s}); "
                "boolean=BOOLEAN; date=DATE; timestamp=TIMESTAMP; instant=TIMESTAMP WITH TIME ZONE; time=TIME; "
                "text=TEXT; varchar=VARCHAR({n}); json=TEXT"
            ),
            can_alter_tables=False,  # SQLite, which reads this dialect, has no ADD CONSTRAINT
        ),
        "postgresql": Dialect(
            "postgresql",
            _types(
                "integer=bigint; unsigned=numeric(20,0); float=double precision; decimal=numeric(38,{s}); "
                "boolean=boolean; date=date; timestamp=timestamp; instant=timestamptz; time=time; "
                "text=text; varchar=varchar({n}); json=jsonb"
            ),
            name_limit=63,
            name_limit_in_bytes=True,
            varchar_limit=10_485_760,  # PostgreSQL, "Character Types"
        ),
        "mysql": Dialect(
            "mysql",
            _types(
                "integer=BIGINT; unsigned=BIGINT UNSIGNED; float=DOUBLE; decimal=DECIMAL(38,{s}); "
                "boolean=BOOLEAN; date=DATE; timestamp=DATETIME(6); instant=DATETIME(6); time=TIME(6); "
                "text=LONGTEXT; varchar=VARCHAR({n}); json=JSON"
            ),
            escapes={"'": "''", "\\": "\\\\", "\0": "\\0", "\n": "\\n", "\r": "\\r", "\x1a": "\\Z"},
            name_quotes=("`", "`"),
            name_limit=64,
            names_fold_case=True,
            utc_suffix="",  # DATETIME has no time zone, and MariaDB rejects one in a literal
            preamble="SET NAMES utf8mb4;\n",
            table_tail=" DEFAULT CHARACTER SET utf8mb4",
            varchar_limit=255,
            key_chars=255,
            row_bytes=50_000,  # of 65,535 that all columns of a row share; unbounded texts are stored outside
        ),
        "mssql": Dialect(
            "mssql",
            _types(
                "integer=bigint; unsigned=decimal(20,0); float=float; decimal=decimal(38,{s}); "
                "boolean=bit; date=date; timestamp=datetime2(6); instant=datetimeoffset(6); time=time(6); "
                "text=nvarchar(max); varchar=nvarchar({units}); json=nvarchar(max)"
            ),
            escapes={"'": "''", "\\\r\n": f"{_T_SQL_CUT}\r\n", "\\\n": f"{_T_SQL_CUT}\n"},
            name_quotes=("[", "]"),
            names_fold_case=True,
            text_lead="N'",
            date_time_separator="T",  # read the same way in every session language
            booleans=("0", "1"),
            max_rows_per_statement=limits.MSSQL_ROWS_PER_STATEMENT,
            key_chars=225,  # a clustered index takes 900 bytes
            varchar_limit=2_000,  # nvarchar(4000) in UTF-16 units, of which an emoji takes two
        ),
        "oracle": Dialect(
            "oracle",
            _types(
                "integer=NUMBER(19); unsigned=NUMBER(20); float=BINARY_DOUBLE; decimal=NUMBER(38,{s}); "
                "boolean=NUMBER(1); date=DATE; timestamp=TIMESTAMP(6); instant=TIMESTAMP(6) WITH TIME ZONE; "
                "time=VARCHAR2(15); text=CLOB; varchar=VARCHAR2({n} CHAR); json=CLOB"
            ),
            escapes={**_BY_CODE, "&": "'||CHR(38)||'"},
            name_limit_in_bytes=True,
            date_lead="DATE '",
            timestamp_lead="TIMESTAMP '",
            utc_suffix=" +00:00",
            exponent_tail="d",  # otherwise it is a NUMBER, whose maximum is 1e126
            booleans=("0", "1"),
            rows_per_statement=1,
            max_rows_per_statement=1,  # VALUES takes several rows only from Oracle 23 on
            key_chars=1_000,
            varchar_limit=1_000,  # VARCHAR2 holds 4,000 bytes, of which a character takes up to four
            literal_bytes=limits.ORACLE_LITERAL_BYTES,
            part_chars=limits.ORACLE_LITERAL_BYTES // 4,
        ),
        "db2": Dialect(
            "db2",
            _types(
                "integer=BIGINT; unsigned=DECIMAL(20,0); float=DOUBLE; decimal=DECIMAL(31,{s}); "
                "boolean=SMALLINT; date=DATE; timestamp=TIMESTAMP(6); instant=TIMESTAMP(6); time=VARCHAR(15); "
                "text=CLOB(2G); varchar=VARCHAR({n} CODEUNITS32); json=CLOB(2G)"
            ),
            escapes=_BY_CODE,
            name_limit_in_bytes=True,
            utc_suffix="",  # Db2's TIMESTAMP holds no zone
            booleans=("0", "1"),
            key_chars=250,  # an index on the smallest page takes 1,024 bytes
            varchar_limit=8_000,  # VARCHAR holds 32,672 bytes
            row_bytes=25_000,  # of 32,677 in the largest page
            literal_bytes=limits.DB2_LITERAL_BYTES,
            part_chars=limits.DB2_LITERAL_BYTES // 4,
        ),
    }
)


class SqlEscape(Escape):
    """The inside of a character literal. Texts that are too long for a literal are marked: they become expressions of
    several literals.

    Raises `UnrepresentableTextError` for U+0000 if the dialect cannot express it.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.key = f"sql {dialect.name}"
        self._dialect = dialect
        signs = sorted({"\0", *dialect.escapes}, key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, signs)))
        self._starts = sorted({sign[0].encode() for sign in signs})
        self._single = all(len(sign) == 1 for sign in signs)

    def escape_text(self, text: str) -> str:
        """See `Escape.escape_text`."""
        most = self._dialect.literal_bytes
        if most is None or len(text) <= most // 4 or len(text.encode()) <= most:
            return self._special.sub(self._replacement, text)
        size, lead = self._dialect.part_chars, self._dialect.text_lead
        parts = (
            self._special.sub(self._replacement, text[at : at + size]) for at in range(0, len(text), size)
        )
        return "||".join(f"TO_CLOB({lead}{part}')" for part in parts)

    def _replacement(self, match: re.Match[str]) -> str:
        found = self._dialect.escapes.get(match[0])
        if found is None:
            raise UnrepresentableTextError(
                0, f"A text contains U+0000, which {self._dialect.name} does not support."
            )
        return found

    def rows_to_escape(self, scan: ByteScan) -> np.ndarray | None:
        """See `Escape.rows_to_escape`."""
        control = scan.has_control()
        found = [
            scan.byte_mask(sign) for sign in self._starts if (control if sign < b" " else scan.has(sign))
        ]
        rows = scan.rows_where(np.logical_or.reduce(found)) if found else None
        long = self.rows_to_mark(scan)
        if rows is None or long is None:
            return long if rows is None else rows
        return np.union1d(rows, long)

    def _can_escape_parts(self) -> bool:
        return self._single and self._dialect.literal_bytes is None

    def rows_to_mark(self, scan: ByteScan) -> np.ndarray | None:
        """See `Escape.rows_to_mark`."""
        return (
            None
            if self._dialect.literal_bytes is None
            else scan.rows_longer_than(self._dialect.literal_bytes)
        )
