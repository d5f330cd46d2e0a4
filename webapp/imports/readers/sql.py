"""Read SQL definitions as tables with columns, keys, references and checks, for MySQL, PostgreSQL, SQL Server, Oracle
and SQLite.

A definition is parsed clause by clause, so that an unknown clause does not affect the others. `sqlglot` parses types
and expressions, in the most likely dialect first, then in the others. Omitted parts are reported.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from webapp import limits
from webapp.connectors.schema import Column, ColumnType, Entity, Relation
from webapp.imports.inference.columns import ColumnResult, State
from webapp.imports.inference.evidence import definition
from webapp.imports.readers import sql_script
from webapp.imports.readers.base import (
    ParsedFile,
    Problem,
    Source,
    Table,
    UnreadableFileError,
    clean_name,
    decode,
    unique_names,
)
from webapp.imports.readers.sql_script import Token, split_at_commas, tokens


@dataclass(slots=True)
class TableDraft:
    """One table while its statements are read."""

    parts: tuple[str, ...]
    columns: dict[str, Column] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    uniques: list[tuple[str, ...]] = field(default_factory=list)
    relations: list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    rejected_columns: dict[str, str] = field(default_factory=dict)
    comment: str = ""
    named_constraints: dict[str, tuple[list[Any], Any]] = field(default_factory=dict)
    """Constraints by name in small letters: the list that contains each one, and the constraint."""
    dropped: bool = False
    column_names_by_casefold: dict[str, str] = field(default_factory=dict)
    """The names of columns by their case-folded names; a cache of `own`."""

    def column_name(self, name: str) -> str:
        """Return a column's name as its definition spells it."""
        if name in self.columns:
            return name
        if len(self.column_names_by_casefold) != len(self.columns):
            self.column_names_by_casefold = {column.casefold(): column for column in self.columns}
        return self.column_names_by_casefold.get(name.casefold(), name)


# Types of the SQL dialects, and the column types for them.

_T: Final = exp.DataType.Type
_INTEGERS: Final[Mapping[Any, tuple[int, bool]]] = {
    _T.TINYINT: (8, False), _T.UTINYINT: (8, True), _T.SMALLINT: (16, False), _T.USMALLINT: (16, True),
    _T.MEDIUMINT: (24, False), _T.UMEDIUMINT: (24, True), _T.INT: (32, False), _T.UINT: (32, True),
    _T.BIGINT: (64, False), _T.UBIGINT: (64, True), _T.INT128: (64, False), _T.INT256: (64, False),
}  # fmt: skip
_SERIAL_TYPES: Final = {_T.SERIAL: 32, _T.BIGSERIAL: 64, _T.SMALLSERIAL: 16}


def _type_map(kind: ColumnType, *source_types: Any) -> dict[Any, ColumnType]:
    return dict.fromkeys(source_types, kind)


_COLUMN_TYPES: Final[Mapping[Any, ColumnType]] = {
    **_type_map("text", _T.CHAR, _T.NCHAR, _T.VARCHAR, _T.NVARCHAR, _T.TEXT, _T.TINYTEXT, _T.MEDIUMTEXT, _T.LONGTEXT),
    **_type_map("decimal", _T.DECIMAL, _T.UDECIMAL, _T.BIGDECIMAL, _T.MONEY, _T.SMALLMONEY),
    **_type_map("float", _T.FLOAT, _T.DOUBLE, _T.UDOUBLE, _T.DECFLOAT),
    **_type_map("boolean", _T.BOOLEAN, _T.BIT),
    **_type_map("date", _T.DATE, _T.DATE32),
    **_type_map("time", _T.TIME, _T.TIMETZ),
    **_type_map("timestamp", _T.DATETIME, _T.DATETIME2, _T.DATETIME64, _T.SMALLDATETIME, _T.TIMESTAMP, _T.TIMESTAMPNTZ),
    **_type_map("timestamptz", _T.TIMESTAMPTZ, _T.TIMESTAMPLTZ),
    **_type_map("binary", _T.BINARY, _T.VARBINARY, _T.BLOB, _T.TINYBLOB, _T.MEDIUMBLOB, _T.LONGBLOB, _T.IMAGE),
    **_type_map("json", _T.JSON, _T.JSONB),
    _T.UUID: "uuid", _T.INTERVAL: "interval", _T.ARRAY: "array", _T.ENUM: "enum", _T.NAME: "text",
    **_type_map("text", _T.BPCHAR),
}  # fmt: skip
# By the words of a dialect that the parser leaves as they are.
_TYPE_NAMES: Final[Mapping[str, ColumnType]] = {
    "datetime": "timestamp", "bool": "boolean", "boolean": "boolean", "string": "text", "clob": "text",
    "nclob": "text", "long": "text", "ntext": "text", "sysname": "text", "citext": "text", "bpchar": "text",
    "integer": "integer", "int": "integer", "number": "decimal", "numeric": "decimal", "currency": "decimal",
    "raw": "binary", "longraw": "binary", "bfile": "binary", "uniqueidentifier": "uuid", "hierarchyid": "other",
    "binary_float": "float", "binary_double": "float", "real": "float",
}  # fmt: skip


@dataclass(slots=True)
class Shape:
    """The attributes of `Column` that a type determines."""

    type: ColumnType
    declared: str
    max_length: int | None = None
    precision: int | None = None
    scale: int | None = None
    bits: int | None = None
    unsigned: bool = False
    generated: str = ""
    choices: tuple[str, ...] = ()
    items: ColumnType | None = None


def shape_of(kind: exp.DataType, dialect: str) -> Shape:
    """Return the shape of a parsed type."""
    declared = kind.sql(dialect=dialect)[:100]
    source_type = kind.this
    if source_type is _T.USERDEFINED:
        return shape_from_type_name(declared)
    if source_type in _INTEGERS:
        bits, unsigned = _INTEGERS[source_type]
        if source_type is _T.TINYINT and dialect == "mysql" and _numbers(kind)[:1] == [1]:
            return Shape("boolean", declared)
        return Shape("integer", declared, bits=bits, unsigned=unsigned or (bits == 8 and dialect == "tsql"))
    if source_type is _T.ROWVERSION:
        return Shape("binary", "rowversion", generated="computed")
    if source_type in _SERIAL_TYPES:
        return Shape("integer", declared, bits=_SERIAL_TYPES[source_type], generated="identity")
    if source_type is _T.YEAR or source_type is _T.XML:
        return Shape("other", source_type.value.lower())
    found = _COLUMN_TYPES.get(source_type, "other")
    shape = Shape(found, declared)
    numbers = _numbers(kind)
    if found in ("text", "binary"):
        shape.max_length = numbers[0] if numbers else 1 if source_type in (_T.CHAR, _T.NCHAR) else None
    elif source_type is _T.MONEY or source_type is _T.SMALLMONEY:
        shape.precision, shape.scale = (10, 2)
    elif found == "decimal" and numbers:
        shape.precision, shape.scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
        if not shape.scale and shape.precision <= 18:
            shape.type, shape.bits = (
                "integer",
                64 if shape.precision > 9 else 32 if shape.precision > 4 else 16,
            )
    elif found == "enum":
        shape.choices = tuple(expression.name for expression in kind.expressions)
    elif found == "timestamptz" and dialect == "mysql":
        shape.type = "timestamp"  # MySQL's TIMESTAMP is written without a zone
    elif found == "array":
        inner = kind.expressions[0] if kind.expressions else None
        shape.items = shape_of(inner, dialect).type if isinstance(inner, exp.DataType) else "other"
    elif source_type is _T.SET:
        shape.type, shape.choices = "enum", tuple(expression.name for expression in kind.expressions)
    return shape


_PATTERNS: Final[Sequence[tuple[str, ColumnType]]] = (
    (r"\b(sub_type\s+text|clob|xmltype)\b|\b(var|n|nvar)?char(acter|2)?\b|\btext\b|\bstring\b", "text"),
    (r"\b(long\s+)?(raw|varbinary|byte|binary|bytes|blob|image)\b|\bfor\s+bit\s+data\b", "binary"),
    (r"\b(small|big|medium|tiny|long)?int(eger)?(2|4|8|16|32|64)?\b|\blong\b", "integer"),
    (r"\bfloat(4|8|32|64)?\b|\bdouble\b|\breal\b|\bdecfloat\b", "float"),
    (r"\b(dec|decimal|num|numeric|number|money|currency|fixed)\b", "decimal"),
    (r"\bbool(ean)?\b|\blogical\b", "boolean"),
    (r"\b(timestamp|datetime)\b.*\bwith\b.*\bzone\b", "timestamptz"),
    (r"\b(timestamp|datetime\d*|smalldatetime)\b", "timestamp"),
    (r"\bdate\b", "date"), (r"\btime\b", "time"), (r"\binterval\b", "interval"),
    (r"\b(uuid|guid|uniqueidentifier)\b", "uuid"), (r"\bjsonb?\b", "json"),
)  # fmt: skip
"""Column types by words in the type names, if no dialect can parse them."""


def shape_from_type_name(declared: str) -> Shape:
    """Return the shape of a type that no dialect can parse, by the words of its name."""
    plain = re.sub(r"\(.*", "", declared).strip().strip('"[]`').casefold().rpartition(".")[2]
    lower = declared.casefold().replace("timezone", "time zone")
    by_pattern: ColumnType = next((kind for pattern, kind in _PATTERNS if re.search(pattern, lower)), "other")
    found = _TYPE_NAMES.get(plain.replace(" ", ""), by_pattern)
    shape = Shape(found, declared)
    numbers = [int(item) for item in re.findall(r"\b\d{1,9}\b", declared.partition("(")[2].partition(")")[0])]
    if found in ("text", "binary") and numbers:
        shape.max_length = numbers[0]
    elif found == "decimal" and numbers:
        shape.precision, shape.scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
    elif found == "integer":
        shape.bits = (
            16 if "small" in plain else 64 if "big" in plain or "long" in plain or "8" in plain else 32
        )
    return shape


def _numbers(kind: exp.DataType) -> list[int]:
    found = []
    for expression in kind.expressions:
        text = expression.this.name if isinstance(expression, exp.DataTypeParam) else expression.name
        if text.isdigit() and len(text) < 10:
            found.append(int(text))
    return found


logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it logs every unsupported statement
_EXPRESSION_CHARS: Final = 50_000  # chosen: parsing takes about 100 ms for each 10,000
# An open comment reaches to the end, so that each character is read once. A possessive group before `\*/` never matches
# in Python 3.11.2.
_VERSIONED_COMMENT: Final = re.compile(r"/\*!\d{5,6}\s(.*?)(\*/|\Z)", re.S)

_BLOCK: Final = re.compile(r"(?:BEGIN|DECLARE|DO|EXEC(?:UTE)?|IF)\b", re.I)


def read(source: Source) -> ParsedFile:
    """Read a table for each CREATE TABLE. Raises `UnreadableFileError` if there is none."""
    text, _ = decode(source.content)
    script = _Script(text)
    if script.dialect == "mysql":  # MySQL runs the content of such comments
        text = _VERSIONED_COMMENT.sub(lambda comment: f" {comment[1]} " if comment[2] else comment[0], text)
    for number, statement in enumerate(sql_script.split_script(text, script.dialect)):
        if number >= limits.IMPORT_STATEMENTS:
            script.result.problems.append(
                Problem("", "", f"Only the first {limits.IMPORT_STATEMENTS:,} statements were read.")
            )
            break
        if sql_script.DEFINITION.match(statement):
            script.read_statement_safely(statement)
        elif (
            _BLOCK.match(statement)
            and (mentioned := sql_script.EMBEDDED_DEFINITION.search(statement)) is not None
        ):
            excerpt = clean_name(statement[mentioned.start() :])[:60]
            script.report_problem(
                "", f'The block that runs "{excerpt}..." was not imported: blocks of code are not evaluated.'
            )
    return script.build_result()


class _MalformedStatementError(Exception):
    """A statement that does not continue as its beginning demands; the message says what is missing."""


class _Cursor:
    """A position in the tokens of a statement."""

    def __init__(self, tokens: Sequence[Token], source: str) -> None:
        self.tokens, self.source, self.position = tokens, source, 0

    def __bool__(self) -> bool:
        return self.position < len(self.tokens)

    def peek(self, ahead: int = 0) -> str:
        """Return a keyword or a sign, in capitals; "" for names, texts and the end."""
        index = self.position + ahead
        return self.tokens[index].keyword if index < len(self.tokens) else ""

    def take(self, *words: str) -> bool:
        """Return whether these words come next, in this order; if so, skip them."""
        if all(self.peek(ahead) == word for ahead, word in enumerate(words)):
            self.position += len(words)
            return True
        return False

    def take_name(self) -> str:
        """Return and skip one part of a name. Raises `_MalformedStatementError`."""
        if not self or self.tokens[self.position].kind not in ("word", "name"):
            raise _MalformedStatementError("a name is missing.")
        self.position += 1
        return self.tokens[self.position - 1].value

    def take_qualified_name(self) -> tuple[str, ...]:
        """Return and skip a name, including its schema if it has one. Raises `_MalformedStatementError`."""
        found = [self.take_name()]
        while self.take("."):
            if self.peek() != ".":  # SQL Server's `database..table`
                found.append(self.take_name())
        return tuple(found[-2:])

    def take_bracket(self) -> _Cursor | None:
        """Return the content of the next bracket and skip it; None if no bracket comes next."""
        if self.peek() != "(":
            return None
        start, depth = self.position, 0
        while self.position < len(self.tokens):
            depth += {"(": 1, ")": -1}.get(self.peek(), 0)
            self.position += 1
            if depth == 0:
                return _Cursor(self.tokens[start + 1 : self.position - 1], self.source)
        return _Cursor(self.tokens[start + 1 :], self.source)

    def split_items(self) -> list[_Cursor]:
        """Split the rest of the statement at its commas."""
        return [_Cursor(comma, self.source) for comma in split_at_commas(self.tokens[self.position :])]

    def remaining_text(self) -> str:
        """Return the source from here to the end, in one line and without comments."""
        return self.text_between(self.position, len(self.tokens))

    def text_between(self, start: int, end: int) -> str:
        """Return the source of some tokens, in one line and without comments."""
        found = ""
        for previous, token in zip([None, *self.tokens[start:end]], self.tokens[start:end], strict=False):
            found += (" " if previous is not None and previous.end < token.start else "") + token.text
        return found


_CLAUSES: Final = frozenset(
    "CONSTRAINT NOT NULL DEFAULT PRIMARY UNIQUE REFERENCES FOREIGN CHECK COLLATE GENERATED IDENTITY AUTO_INCREMENT"
    " AUTOINCREMENT COMMENT ON AS".split()
)
"""Words that end the type of a column, and can follow the name of a column without a type."""
_ATTRIBUTES: Final = frozenset(
    "ROWGUIDCOL SPARSE MASKED ENCRYPTED PERSISTED STORED VIRTUAL INVISIBLE VISIBLE HIDDEN ENABLE DISABLE USING CHARSET"
    " KEY STORAGE COMPRESSION ENCODE DISTKEY SORTKEY DEFERRABLE INITIALLY CLUSTERED NONCLUSTERED FIRST AFTER"
    " COLUMN_FORMAT FILESTREAM SRID LOGGED COMPACT OPTIONS TAG INDEX ZEROFILL IMPLICITLY CODEC TTL SECUREFILE"
    " BASICFILE INLINE".split()
)
"""Words that end it, but could be the type's name themselves."""


def _is_clause_start(cursor: _Cursor) -> bool:
    keyword = cursor.peek()
    if keyword == "WITH":  # a part of the type in TIMESTAMP WITH TIME ZONE
        return cursor.peek(1) not in ("TIME", "TIMEZONE", "LOCAL")
    if keyword in ("CHARACTER", "CHAR"):
        return cursor.peek(1) == "SET"
    if keyword == "FOR":  # a part of the type in CHAR FOR BIT DATA
        return cursor.peek(1) != "BIT"
    return keyword in _CLAUSES or keyword in _ATTRIBUTES


def _take_type(cursor: _Cursor) -> str:
    """Return the type that comes next and skip it; "" if there is none."""
    start = cursor.position
    while cursor and not (
        cursor.peek() in _CLAUSES if cursor.position == start else _is_clause_start(cursor)
    ):
        if cursor.take_bracket() is None:
            cursor.position += 1
    return cursor.text_between(start, cursor.position)


_LATER_CLAUSES: Final = frozenset({"KEY", "INDEX", "FIRST", "AFTER", "TAG", "INLINE"})
"""Those that are ordinary words within a default."""

_IGNORED_CHANGES: Final = re.compile(
    r"(OWNER|ENABLE|DISABLE|CLUSTER|REPLICA|NO INHERIT|INHERIT|ATTACH|DETACH|VALIDATE|CHECK CONSTRAINT|NOCHECK"
    r"|SET \(|SET SCHEMA|SET TABLESPACE|SET LOGGED|SET UNLOGGED|SET WITH|RESET|AUTO_INCREMENT|ENGINE|COMMENT|CONVERT"
    r"|DEFAULT (CHARSET|CHARACTER|COLLATE)|CHARACTER SET|COLLATE|ROW_FORMAT|PARTITION|SWITCH|REBUILD|FORCE|ORDER BY"
    r"|ADD (INDEX|KEY|FULLTEXT|SPATIAL|PARTITION|PERIOD|SUPPLEMENTAL|SPLIT)|DROP (PARTITION|PERIOD)|LOGGING|NOLOGGING"
    r"|PCTFREE|STORAGE|INITRANS|CACHE|NOCACHE|PARALLEL|NOPARALLEL|ROW|COMPRESS|NOCOMPRESS|MOVE|LOCK|ALGORITHM"
    r"|ALTER (INDEX|CONSTRAINT)|RENAME (INDEX|KEY|CONSTRAINT)|VOLATILE|APPEND|DATA CAPTURE|READ ONLY|READ WRITE"
    r"|DISTRIBUTE|MODIFY (PARTITION|LOB|DEFAULT)|CHANGE_TRACKING|DROP STATISTICS|FLASHBACK|\*)",
    re.I,
)  # fmt: skip
"""Changes that do not affect values."""


@dataclass(slots=True)
class _ScriptType:
    """A type that the script defines."""

    shape: Shape
    nullable: bool = True
    default: str | None = None
    checks: list[str] = field(default_factory=list)
    """With VALUE as the name of the column."""


_STRUCTURED: Final = frozenset({"(", "OBJECT", "TABLE", "RANGE", "VARRAY", "VARYING"})
_KEYWORDS: Final[Mapping[str, frozenset[str]]] = {
    "PRIMARY": frozenset({"KEY"}), "FOREIGN": frozenset({"KEY"}), "CHECK": frozenset({"(", "NOT"}),
    "EXCLUDE": frozenset({"(", "USING"}), "PERIOD": frozenset({"FOR"}), "SUPPLEMENTAL": frozenset({"LOG"}),
    "UNIQUE": frozenset({"(", "KEY", "INDEX", "CLUSTERED", "NONCLUSTERED", "NULLS", "USING"}),
    "FULLTEXT": frozenset({"(", "KEY", "INDEX"}), "SPATIAL": frozenset({"(", "KEY", "INDEX"}),
}  # fmt: skip
"""The first words of constraints, and the words that may follow."""


def _is_constraint(part: _Cursor) -> bool:
    """Return whether a part of a table's definition is a constraint or an index rather than a column."""
    keyword, next_keyword = part.peek(), part.peek(1)
    rest = part.tokens[part.position :]
    if keyword == "CONSTRAINT":
        return len(rest) > 1
    if keyword == "DEFAULT":  # SQL Server: ADD DEFAULT value FOR column
        return any(token.keyword == "FOR" for token in rest)
    if keyword in _KEYWORDS and next_keyword in _KEYWORDS[keyword]:
        return True
    if keyword in ("KEY", "INDEX", "FULLTEXT", "SPATIAL", "UNIQUE"):
        if {next_keyword, part.peek(2)} & {"CLUSTERED", "NONCLUSTERED", "COLUMNSTORE"}:
            return True
        index = next((index for index, token in enumerate(rest[:6]) if token.keyword == "("), None)
        if index is None or index + 1 >= len(rest):
            return False
        is_near = index <= 2 or part.peek(2) in ("USING", "HASH") or next_keyword == "USING"
        return is_near and not re.fullmatch(
            r"\d+|MAX", rest[index + 1].text, re.I
        )  # else the length of a type
    return False


def _table_key(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.casefold() for part in parts)


class _Script:
    """The tables that the statements of a script define."""

    def __init__(self, text: str) -> None:
        self.dialects = sql_script.detect_dialects(text)
        self.dialect = self.dialects[0]
        self.result = ParsedFile("sql")
        self._tables: dict[tuple[str, ...], TableDraft] = {}
        self._types: dict[str, _ScriptType] = {}
        self._shapes: dict[str, Shape] = {}
        self._indexes: dict[str, tuple[str, ...]] = {}

    def read_statement_safely(self, statement: str) -> None:
        """Read one statement that defines tables; report a statement that cannot be read."""
        if len(statement) > limits.IMPORT_STATEMENT_CHARS:
            reason = f"it is longer than {limits.IMPORT_STATEMENT_CHARS:,} characters."
        else:
            try:
                self.read_statement(statement)
                return
            except RecursionError:
                reason = "it is nested too deeply."
            except _MalformedStatementError as error:
                reason = str(error)
        self.report_problem("", f'The statement "{clean_name(statement)[:60]}..." was not imported: {reason}')

    def report_problem(self, table: str, text: str, state: State = "red") -> None:
        """Report something that is left out."""
        self.result.problems.append(Problem(clean_name(table), "", text, state))

    def read_statement(self, statement: str) -> None:
        """Read one statement that defines tables. Raises `_MalformedStatementError`."""
        cursor = _Cursor(tokens(statement, self.dialect), statement)
        keyword = cursor.peek()
        if keyword == "ALTER":
            self._alter(cursor)
        elif keyword == "COMMENT":
            self._set_comment(cursor)
        elif keyword == "RENAME":
            cursor.take("RENAME", "TABLE")
            for item in cursor.split_items():
                table = self._find_table(item.take_qualified_name())
                if table is not None and item.take("TO"):
                    self._rename_table(table, item.take_qualified_name())
        elif keyword == "DROP":
            cursor.take("DROP", "TABLE")
            cursor.take("IF", "EXISTS")
            for item in cursor.split_items():
                if (table := self._tables.get(_table_key(item.take_qualified_name()))) is not None:
                    table.dropped = True
        elif keyword.startswith("EXEC"):  # EXEC sp_addtype name, 'type', 'NOT NULL'
            while cursor and cursor.peek() != "SP_ADDTYPE":
                cursor.position += 1
            cursor.position += 1
            arguments = [item.tokens[-1].value for item in cursor.split_items()]
            if len(arguments) >= 2:
                rest = " ".join(arguments[1:])
                self._create_domain(arguments[0], _Cursor(tokens(rest, self.dialect), rest))
        else:  # CREATE
            while cursor and cursor.peek() not in ("TABLE", "INDEX", "TYPE", "DOMAIN", "SCHEMA"):
                cursor.position += 1
            kind = cursor.peek()
            cursor.position += 1
            report_duplicate = not cursor.take("IF", "NOT", "EXISTS")
            if kind == "TABLE":
                self._create_table(cursor, report_duplicate)
            elif kind == "INDEX":
                self._create_index(cursor)
            elif kind == "DOMAIN":
                self._create_domain(cursor.take_qualified_name()[-1], cursor)
            elif kind == "TYPE":
                self._create_type(cursor)

    # --- Types and expressions ------------------------------------------------------------------------------

    def _parse(self, statement: str) -> tuple[exp.Expr, str] | None:
        """Parse a statement with the first dialect that supports it; return the tree and the dialect, or None."""
        for dialect in self.dialects:
            try:
                tree = sqlglot.parse_one(statement, read=dialect)
            except (SqlglotError, RecursionError, ValueError):
                continue
            if not isinstance(tree, exp.Command):
                return tree, dialect
        return None

    def _find_shape(self, declared: str) -> Shape:
        """Return the shape of a type that the script does not define."""
        if declared not in self._shapes:
            shape = None
            found = self._parse(f"CREATE TABLE t (c {declared})") if declared else None
            if found is not None:
                tree, dialect = found
                columns = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
                kind = columns[0].args.get("kind") if len(columns) == 1 else None
                if isinstance(kind, exp.DataType):
                    shape = shape_of(kind, dialect)
                    if shape.type == "timestamp" and self.dialect != "mysql" and kind.this is _T.TIMESTAMPTZ:
                        shape.type = "timestamptz"
                elif kind is not None and "INTERVAL" in declared.upper():
                    shape = Shape("interval", declared)
            if shape is None or (shape.type == "other" and shape.declared.casefold() == declared.casefold()):
                by_words = shape_from_type_name(declared[:100])
                shape = by_words if shape is None or by_words.type != "other" else shape
            self._shapes[declared] = shape
        return self._shapes[declared]

    def _find_script_type(self, declared: str) -> _ScriptType | None:
        """Return the declared type if the script defines it."""
        found = tokens(declared, self.dialect)
        if not found or found[-1].kind not in ("word", "name"):
            return None
        plain = all(token.kind in ("word", "name") or token.text == "." for token in found)
        return self._types.get(found[-1].value.casefold()) if plain else None

    def _create_domain(self, name: str, cursor: _Cursor) -> None:
        """Define a type by another one and its constraints."""
        cursor.take("AS") or cursor.take("FROM")
        scratch = TableDraft(("",))
        placeholder = Column("VALUE", "other", "")
        declared = _take_type(cursor)
        own = self._find_script_type(declared)
        scratch.columns["VALUE"] = placeholder
        self._read_clauses(scratch, "VALUE", cursor)
        column = scratch.columns["VALUE"]
        self._types[name.casefold()] = _ScriptType(
            own.shape if own else self._find_shape(declared),
            column.nullable and (own is None or own.nullable),
            column.default or (own.default if own else None),
            scratch.checks + (own.checks if own else []),
        )

    def _create_type(self, cursor: _Cursor) -> None:
        name = cursor.take_qualified_name()[-1]
        if cursor.take("AS", "ENUM"):
            inner = cursor.take_bracket()
            choices = tuple(token.value for token in inner.tokens if token.kind == "text") if inner else ()
            self._types[name.casefold()] = _ScriptType(Shape("enum", name, choices=choices))
        elif cursor.peek() == "FROM" or (cursor.peek() == "AS" and cursor.peek(1) not in _STRUCTURED):
            self._create_domain(name, cursor)
        elif cursor:
            self._types[name.casefold()] = _ScriptType(Shape("other", name))

    # --- Tables ---------------------------------------------------------------------------------------------

    def _create_table(self, cursor: _Cursor, report_duplicate: bool) -> None:
        parts = cursor.take_qualified_name()
        if parts[-1].startswith("#"):
            return  # of one session
        if cursor.take("PARTITION", "OF"):
            parent_name = ".".join(cursor.take_qualified_name())
            text = f'It is a partition of "{clean_name(parent_name)}", whose template covers its rows: not imported.'
            return self.report_problem(parts[-1], text, "yellow")
        if cursor.take("OF"):
            return self.report_problem(
                parts[-1],
                f"Not imported: its columns are defined by the type {clean_name(cursor.remaining_text())}.",
            )
        copied = self._find_table(cursor.take_qualified_name()) if cursor.take("LIKE") else None
        body = cursor.take_bracket()
        if body is not None and body.peek() in ("SELECT", "WITH"):
            body = None
        if copied is None and body is None:
            return self.report_problem(
                parts[-1], "Not imported: it is created from a query, which does not define its columns."
            )
        key = _table_key(parts)
        existing = self._tables.get(key)
        if existing is not None and not existing.dropped:
            if report_duplicate:
                self.report_problem(parts[-1], "It is created twice: the first definition is used.", "yellow")
            return None
        if existing is None and len(self._tables) >= limits.IMPORT_TABLES:
            text = f"Not imported: an import can contain at most {limits.IMPORT_TABLES} tables."
            return self.report_problem(parts[-1], text)
        self._tables.pop(key, None)
        table = self._tables[key] = TableDraft(parts)
        if copied is not None:  # MySQL: all but its references
            table.columns, table.keys = dict(copied.columns), copied.keys
            table.uniques, table.checks = list(copied.uniques), list(copied.checks)
        for part in body.split_items() if body is not None else ():
            try:
                self._add_part(table, part)
            except _MalformedStatementError as error:
                self.report_problem(
                    parts[-1],
                    f'"{clean_name(part.text_between(0, len(part.tokens)))[:80]}" was not imported: {error}',
                )
        while cursor:  # the options of the table
            if cursor.take("INHERITS"):
                inner = cursor.take_bracket()
                for item in inner.split_items() if inner is not None else ():
                    if (parent := self._find_table(item.take_qualified_name())) is not None:
                        own, table.columns = table.columns, dict(parent.columns)
                        table.columns.update(own)
                        table.checks += parent.checks
            elif cursor.take("COMMENT"):
                cursor.take("=")
                if cursor and cursor.tokens[cursor.position].kind == "text":
                    table.comment = cursor.tokens[cursor.position].value
            cursor.position += 1

    def _add_part(self, table: TableDraft, part: _Cursor) -> None:
        """Add a column or a constraint."""
        if _is_constraint(part):
            self._add_constraint(table, part)
        elif part.peek() == "LIKE" and len(part.tokens) > 1:
            part.take("LIKE")
            parts = part.take_qualified_name()
            other = self._find_table(parts)
            if other is None:
                raise _MalformedStatementError(f'there is no table "{".".join(parts)}".')
            table.columns.update(other.columns)
            options = {token.keyword for token in part.tokens[part.position :]}
            if options & {"ALL", "INDEXES"}:
                table.keys, table.uniques = other.keys, [*table.uniques, *other.uniques]
            if options & {"ALL", "CONSTRAINTS"}:
                table.checks += other.checks
        else:
            self._add_column(table, part)

    def _add_column(self, table: TableDraft, part: _Cursor) -> None:
        name = part.take_name()
        declared = _take_type(part)
        own = self._find_script_type(declared)
        shape = own.shape if own is not None else self._find_shape(declared)
        column = Column(name, **asdict(shape))
        if own is not None:
            quoted = '"' + name.replace('"', '""') + '"'
            column = replace(column, nullable=own.nullable, default=own.default)
            table.checks += [
                re.sub(r"\bVALUE\b", lambda _: quoted, check, flags=re.I) for check in own.checks
            ]
        table.columns[name] = column
        self._read_clauses(table, name, part)

    def _read_clauses(self, table: TableDraft, name: str, part: _Cursor) -> None:
        """Read the clauses after the type of a column."""
        constraint_name = ""
        while part:
            column = table.columns[name]
            if part.take("CONSTRAINT"):
                constraint_name = part.take_name()
                continue
            if part.take("NOT", "NULL") or part.take("NOT", "NULLABLE"):
                table.columns[name] = replace(column, nullable=False)
            elif part.take("NOT"):  # FOR REPLICATION, ENFORCED, DEFERRABLE ...
                part.take("FOR")
                part.position += 1
            elif part.take("PRIMARY", "KEY") or (self.dialect == "mysql" and part.take("KEY")):
                table.keys = (name,)
                table.columns[name] = replace(column, nullable=False)
            elif part.take("UNIQUE"):
                part.take("KEY")
                self._add_constraint_item(table, table.uniques, (name,), constraint_name)
            elif part.take("REFERENCES"):
                self._add_reference(table, (name,), part, constraint_name)
            elif part.take("FOREIGN", "KEY"):
                continue
            elif part.take("CHECK"):
                self._add_check(table, part, constraint_name)
            elif part.take("DEFAULT"):
                default = self._take_default(part)
                counted = "nextval" in default.casefold() or "next value for" in default.casefold()
                table.columns[name] = replace(
                    column, default=default[:200], generated="identity" if counted else column.generated
                )
            elif part.peek() in ("GENERATED", "AS"):
                table.columns[name] = replace(
                    column, generated=self._take_generated(part) or column.generated
                )
            elif part.peek() in ("IDENTITY", "AUTO_INCREMENT", "AUTOINCREMENT"):
                part.position += 1
                part.take_bracket()
                table.columns[name] = replace(column, generated="identity")
            elif part.take("COMMENT"):
                if part and part.tokens[part.position].kind == "text":
                    table.columns[name] = replace(
                        column, comment=clean_name(part.tokens[part.position].value)
                    )
            elif part.take_bracket() is None:
                part.position += 1
            constraint_name = ""

    def _take_default(self, part: _Cursor) -> str:
        part.take("ON", "NULL")
        start = part.position
        part.take("NOT")
        if part and part.take_bracket() is None:
            part.position += 1
        while part and (not _is_clause_start(part) or part.peek() in _LATER_CLAUSES):
            if part.take_bracket() is None:
                part.position += 1
        return part.text_between(start, part.position)

    def _take_generated(self, part: _Cursor) -> str:
        """Return `identity`, `computed`, or "" if the clause is neither, and skip it."""
        if part.take("GENERATED"):
            while part and part.peek() not in ("AS", "("):
                part.position += 1
        part.take("AS")
        if part.take("IDENTITY"):
            part.take_bracket()
            return "identity"
        if part.take_bracket() is not None:
            return "computed"
        if part.take("ROW"):
            part.position += 1
            return "computed"
        start = part.position  # Sybase has expressions without a bracket
        while part and not _is_clause_start(part):
            part.position += 1
        return "computed" if part.position > start else ""

    def _add_check(self, table: TableDraft, part: _Cursor, constraint_name: str) -> None:
        part.take("NOT", "FOR", "REPLICATION")
        inner = part.take_bracket()
        if inner is None:
            raise _MalformedStatementError("a condition is missing.")
        text = inner.remaining_text()
        found = self._parse(text) if len(text) <= _EXPRESSION_CHARS else None
        if found is not None and not isinstance(found[0], exp.Alias):
            # As PostgreSQL writes it, without casts.
            plain = found[0].transform(lambda item: item.this if isinstance(item, exp.Cast) else item)
            text = str(plain.sql(dialect="postgres"))
        self._add_constraint_item(table, table.checks, text, constraint_name)

    def _add_reference(
        self, table: TableDraft, names: tuple[str, ...], part: _Cursor, constraint_name: str
    ) -> None:
        parts = part.take_qualified_name()
        inner = part.take_bracket()
        target_columns = (
            tuple(cursor.take_name() for cursor in inner.split_items()) if inner is not None else ()
        )
        self._add_constraint_item(table, table.relations, (names, parts, target_columns), constraint_name)
        while part and part.peek() in ("ON", "MATCH"):
            part.position += 3 if part.peek(2) in ("SET", "NO") else 2
            if part.peek(-1) in ("SET", "NO"):
                part.position += 1

    def _add_constraint_item(
        self, table: TableDraft, items: list[Any], item: Any, constraint_name: str
    ) -> None:
        items.append(item)
        if constraint_name:
            table.named_constraints[constraint_name.casefold()] = (items, item)

    def _add_constraint(self, table: TableDraft, part: _Cursor) -> None:
        constraint_name = ""
        if part.take("CONSTRAINT") and part.peek() not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
            constraint_name = part.take_name()
        text = clean_name(part.text_between(0, len(part.tokens)))[:80]
        if part.take("PRIMARY", "KEY"):
            table.keys = self._key_columns(table, part) or table.keys
        elif part.take("UNIQUE"):
            names = self._key_columns(table, part)
            if names:
                self._add_constraint_item(table, table.uniques, names, constraint_name)
        elif part.take("FOREIGN", "KEY"):
            names = self._key_columns(table, part)
            if names and part.take("REFERENCES"):
                self._add_reference(table, names, part, constraint_name)
        elif part.peek() == "CHECK":
            part.take("CHECK")
            self._add_check(table, part, constraint_name)
        elif part.take("NOT", "NULL"):  # PostgreSQL 18: NOT NULL column
            own = table.column_name(part.take_name())
            table.columns[own] = replace(table.columns[own], nullable=False)
        elif part.take("DEFAULT"):  # SQL Server: DEFAULT value FOR column
            start = part.position
            while part and part.peek() != "FOR":
                if part.take_bracket() is None:
                    part.position += 1
            default = part.text_between(start, part.position)
            if part.take("FOR") and (own := table.column_name(part.take_name())) in table.columns:
                table.columns[own] = replace(table.columns[own], default=default[:200])
        elif part.peek() == "EXCLUDE":
            self.report_problem(
                table.parts[-1], f'"{text}" was not imported: rows may be rejected.', "yellow"
            )

    def _key_columns(self, table: TableDraft, part: _Cursor) -> tuple[str, ...]:
        """Return the columns in the next bracket; none if one of them is an expression."""
        if part.take("USING", "INDEX"):
            return self._indexes.get(part.take_name().casefold(), ())
        while part and part.peek() not in ("(", "REFERENCES"):
            part.position += 1
        inner = part.take_bracket()
        found = []
        for cursor in inner.split_items() if inner is not None else ():
            name = cursor.take_name() if cursor.tokens[0].kind in ("word", "name") else ""
            numbers = cursor.take_bracket()
            if not name or (numbers is not None and not re.fullmatch(r"\d+", numbers.remaining_text())):
                return ()
            found.append(table.column_name(name))
        return tuple(dict.fromkeys(found))

    # --- Later statements -----------------------------------------------------------------------------------

    def _find_table(self, parts: tuple[str, ...]) -> TableDraft | None:
        """Return the table with a name, with or without its schema; None if there is none or several."""
        key = _table_key(parts)
        if key in self._tables:
            return self._tables[key]
        matches = [table for found, table in self._tables.items() if found[-1] == key[-1]]
        return matches[0] if len({id(match) for match in matches}) == 1 else None

    def _alter(self, cursor: _Cursor) -> None:
        cursor.take("ALTER", "TABLE")
        cursor.take("IF", "EXISTS")
        cursor.take("ONLY")
        table = self._find_table(cursor.take_qualified_name())
        if table is None:
            return
        if cursor.peek() == "WITH" and cursor.peek(1) in ("CHECK", "NOCHECK"):
            cursor.position += 2
        adding = False
        for action in cursor.split_items():
            text = clean_name(action.text_between(0, len(action.tokens)))
            try:
                adding = self._apply_change(table, action, adding)
            except _MalformedStatementError as error:
                self.report_problem(table.parts[-1], f'The change "{text[:80]}" was not imported: {error}')

    def _apply_change(self, table: TableDraft, action: _Cursor, adding: bool) -> bool:
        """Apply one change to a table; return whether the part after the next comma may omit ADD."""
        text = clean_name(action.text_between(0, len(action.tokens)))
        if action.take("ADD"):
            action.take("COLUMN")
            action.take("IF", "NOT", "EXISTS")
            inner = action.take_bracket()
            for cursor in [action] if inner is None else inner.split_items():
                if cursor.take("GENERATED") or not cursor:
                    continue
                if cursor.peek() not in (
                    "PARTITION",
                    "SUPPLEMENTAL",
                    "PERIOD",
                    "FULLTEXT",
                    "SPATIAL",
                    "VALUE",
                ):
                    self._add_part(table, cursor)
            return True
        if action.take("DROP"):
            self._drop(table, action)
        elif action.peek() in ("ALTER", "MODIFY", "CHANGE"):
            self._alter_column(table, action)
        elif action.take("RENAME"):
            if action.peek() in ("INDEX", "KEY", "CONSTRAINT"):
                return False
            if action.take("TO") or action.take("AS"):
                self._rename_table(table, action.take_qualified_name())
                return False
            action.take("COLUMN")
            old_name = table.column_name(action.take_name())
            if action.take("TO") and old_name in table.columns:
                self._rename_column(table, old_name, action.take_name())
        elif adding and len(action.tokens) > 1 and not _IGNORED_CHANGES.match(text):
            self._add_part(table, action)
            return True
        elif not _IGNORED_CHANGES.match(text):
            self.report_problem(
                table.parts[-1], f'The change "{text[:80]}" was not recognized and not imported.', "yellow"
            )
        return False

    def _drop(self, table: TableDraft, action: _Cursor) -> None:
        if action.take("PRIMARY", "KEY"):
            table.keys = ()
            return
        kind = action.peek()
        constraint = any(action.take(*item) for item in (("CONSTRAINT",), ("FOREIGN", "KEY"), ("INDEX",), ("KEY",),
                                                       ("CHECK",), ("UNIQUE",)))  # fmt: skip
        if constraint:
            action.take("IF", "EXISTS")
            found = table.named_constraints.pop(action.take_name().casefold(), None) if action else None
            if found is not None and found[1] in found[0]:
                found[0].remove(found[1])
            return
        if kind in ("PARTITION", "PERIOD", "STATISTICS", "SUPPLEMENTAL"):
            return
        action.take("COLUMN")
        action.take("IF", "EXISTS")
        inner = action.take_bracket()
        for cursor in [action] if inner is None else inner.split_items():
            name = table.column_name(cursor.take_name())
            table.columns.pop(name, None)
            table.keys = () if name in table.keys else table.keys
            table.uniques[:] = [unique for unique in table.uniques if name not in unique]
            table.relations[:] = [relation for relation in table.relations if name not in relation[0]]
            pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.I)
            table.checks[:] = [check for check in table.checks if not pattern.search(check)]

    def _alter_column(self, table: TableDraft, action: _Cursor) -> None:
        """Apply a column's new definition, type, default or constraint."""
        verb = action.peek()
        action.position += 1
        if verb == "ALTER" and action.peek() in ("INDEX", "CONSTRAINT"):
            return
        action.take("COLUMN")
        inner = action.take_bracket()
        for cursor in [action] if inner is None else inner.split_items():
            if cursor.peek() in ("PARTITION", "LOB", "DEFAULT", "CONSTRAINT"):
                return
            own = table.column_name(cursor.take_name())
            column = table.columns.get(own)
            if column is None:
                raise _MalformedStatementError(f'there is no column "{own}".')
            if verb == "CHANGE":
                new_name = cursor.tokens[cursor.position].value if cursor else own
                self._rename_column(table, own, new_name)
                self._redefine_column(table, cursor, table.columns[new_name])
            elif cursor.take("TYPE") or cursor.take("SET", "DATA", "TYPE"):
                declared = _take_type(cursor)
                defined = self._find_script_type(declared)
                shape = defined.shape if defined is not None else self._find_shape(declared)
                table.columns[column.name] = Column(
                    column.name, **asdict(replace(shape, generated=shape.generated or column.generated)),
                    nullable=column.nullable, default=column.default, comment=column.comment,
                )  # fmt: skip
            elif cursor.take("SET", "NOT", "NULL"):
                table.columns[own] = replace(column, nullable=False)
            elif cursor.take("DROP", "NOT", "NULL"):
                table.columns[own] = replace(column, nullable=True)
            elif cursor.take("SET", "DEFAULT"):
                default = cursor.remaining_text()
                counted = "nextval" in default.casefold()
                table.columns[own] = replace(
                    column, default=default[:200], generated="identity" if counted else column.generated
                )
            elif cursor.take("DROP", "DEFAULT"):
                table.columns[own] = replace(column, default=None)
            elif cursor.take("ADD"):
                table.columns[own] = replace(
                    column, generated=self._take_generated(cursor) or column.generated
                )
            elif cursor.peek() in ("DROP", "SET", "RESET", "RESTART"):
                continue  # statistics, storage, masks
            elif cursor:
                cursor.position -= 1
                self._redefine_column(table, cursor, column)

    def _redefine_column(self, table: TableDraft, one: _Cursor, old_column: Column) -> None:
        """Apply `name type clauses`, also without the type. Only Oracle keeps the omitted attributes."""
        name = one.tokens[one.position].value
        self._add_column(table, one)
        new_column = table.columns[name]
        if old_column.name != name:  # the same name in another case
            del table.columns[name]
        nullable, default = new_column.nullable, new_column.default
        if self.dialect == "oracle" or not new_column.declared:
            nullable, default = nullable and old_column.nullable, default or old_column.default
        if not new_column.declared:
            new_column = replace(old_column, generated=new_column.generated or old_column.generated)
        table.columns[old_column.name] = replace(
            new_column,
            name=old_column.name,
            nullable=nullable,
            default=default,
            comment=new_column.comment or old_column.comment,
        )

    def _rename_table(self, table: TableDraft, parts: tuple[str, ...]) -> None:
        table.parts = (*table.parts[:-1], parts[-1])
        self._tables[_table_key(table.parts)] = table  # and by its first name, which references may use

    def _rename_column(self, table: TableDraft, old_name: str, new_name: str) -> None:
        if old_name == new_name:
            return

        def changed(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(new_name if item == old_name else item for item in names)

        table.columns = {
            new_name if name == old_name else name: replace(column, name=new_name)
            if name == old_name
            else column
            for name, column in table.columns.items()
        }
        table.column_names_by_casefold = {}
        table.keys = changed(table.keys)
        table.uniques[:] = [changed(item) for item in table.uniques]
        table.relations[:] = [(changed(relation[0]), *relation[1:]) for relation in table.relations]
        for other in self._tables.values():
            for index, (columns, parts, target_columns) in enumerate(other.relations):
                if self._find_table(parts) is table:
                    other.relations[index] = (columns, parts, changed(target_columns))

    def _create_index(self, cursor: _Cursor) -> None:
        cursor.take("CONCURRENTLY")
        cursor.take("IF", "NOT", "EXISTS")
        constraint_name = cursor.take_qualified_name()[-1] if cursor.peek() != "ON" else ""
        while cursor and not cursor.take("ON"):
            cursor.position += 1
        cursor.take("ONLY")
        table = self._find_table(cursor.take_qualified_name())
        if table is None:
            return
        names = self._key_columns(table, cursor)
        if names and not any(token.keyword == "WHERE" for token in cursor.tokens[cursor.position :]):
            self._add_constraint_item(table, table.uniques, names, constraint_name)
            self._indexes[constraint_name.casefold()] = names

    def _set_comment(self, cursor: _Cursor) -> None:
        cursor.take("COMMENT", "ON")
        kind = cursor.peek()
        if kind not in ("TABLE", "COLUMN"):
            return
        cursor.position += 1
        names = [cursor.take_name()]
        while cursor.take("."):
            names.append(cursor.take_name())
        cursor.take("IS")
        text = clean_name(cursor.tokens[-1].value) if cursor and cursor.tokens[-1].kind == "text" else ""
        if kind == "TABLE":
            if (table := self._find_table(tuple(names[-2:]))) is not None:
                table.comment = text
        elif len(names) > 1 and (table := self._find_table(tuple(names[-3:-1]))) is not None:
            own = table.column_name(names[-1])
            if own in table.columns:
                table.columns[own] = replace(table.columns[own], comment=text)

    # --- The end --------------------------------------------------------------------------------------------

    def build_result(self) -> ParsedFile:
        """Return the tables, with references by name. Raises `UnreadableFileError`."""
        drafts = list({id(item): item for item in self._tables.values()}.values())
        if not drafts:
            problem = next((item for item in self.result.problems if item.state == "red"), None)
            raise UnreadableFileError(
                "No CREATE TABLE statement can be read."
                if problem is None
                else f"No table can be read. {problem.table}: {problem.reason}".replace(". : ", ". "),
                "Send table definitions, such as CREATE TABLE orders (id INT PRIMARY KEY).",
            )
        counts = Counter(draft.parts[-1].casefold() for draft in drafts)
        labels = [
            ".".join(draft.parts) if counts[draft.parts[-1].casefold()] > 1 else draft.parts[-1]
            for draft in drafts
        ]
        names, _ = unique_names(labels, "table")
        names_by_id = {id(draft): name for draft, name in zip(drafts, names, strict=True)}
        for draft in drafts:
            table = self._finish_table(draft, names_by_id)
            if table is not None:
                self.result.tables.append(table)
        return self.result

    def _finish_table(self, draft: TableDraft, names_by_id: dict[int, str]) -> Table | None:
        name = names_by_id[id(draft)]
        if not draft.columns:
            self.result.problems.append(Problem(name, "", "None of its columns can be read."))
            return None
        excess = list(draft.columns)[limits.MAX_FIELDS :]
        text = f"Not imported: a template can have at most {limits.MAX_FIELDS} fields."
        self.result.problems += [
            Problem(name, clean_name(item), text) for item in excess[: limits.IMPORT_COLUMNS]
        ]
        for item in excess:
            del draft.columns[item]
        remaining = set(draft.columns)
        names = {item: clean_name(item) or f"column_{number}" for number, item in enumerate(draft.columns, 1)}
        keys = tuple(names[item] for item in map(draft.column_name, draft.keys) if item in remaining)
        uniques = [
            tuple(names[item] for item in unique)
            for unique in draft.uniques
            if unique and set(unique) <= remaining
        ]
        single = {item[0] for item in (keys, *uniques) if len(item) == 1}
        columns = tuple(
            replace(
                item, name=names[item.name], key=names[item.name] in keys, unique=names[item.name] in single,
                nullable=item.nullable and names[item.name] not in keys,
            )
            for item in draft.columns.values()
        )  # fmt: skip
        relations = tuple(self._build_relations(draft, names, names_by_id))
        entity = Entity(
            name,
            draft.parts,
            columns,
            keys=keys,
            uniques=tuple(dict.fromkeys(uniques)),
            relations=relations,
            checks=tuple(draft.checks),
            comment=clean_name(draft.comment),
        )
        table = Table(entity)
        table.rejected_columns = {
            names[key]: reason for key, reason in draft.rejected_columns.items() if key in names
        }
        for column in columns:
            is_counted_key = (
                keys == (column.name,) and column.type in ("integer", "decimal") and not column.scale
            )
            if is_counted_key or (column.generated == "identity" and column.name not in keys):
                # The first rows of any table are counted, and so is what the target counts.
                reason_text = (
                    "The key of the table, numbered from 1."
                    if is_counted_key
                    else "The database generates it; numbered from 1 here."
                )
                counted = definition(column.name, "row_number")
                table.known_results[column.name] = ColumnResult(column.name, counted, "green", reason_text)
        return table

    def _build_relations(
        self, draft: TableDraft, names: dict[str, str], names_by_id: dict[int, str]
    ) -> Iterator[Relation]:
        for number, (columns, parts, target_columns) in enumerate(draft.relations):
            own = tuple(draft.column_name(column) for column in columns)
            if not own or not set(own) <= set(names):
                continue
            parent = self._find_table(parts)
            if parent is None:
                other, target_names = clean_name(parts[-1]), target_columns or own
            else:
                other = names_by_id[id(parent)]
                target_names = tuple(parent.column_name(column) for column in (target_columns or parent.keys))
            if len(target_names) == len(own):
                yield Relation(
                    f"fk_{number}",
                    tuple(names[item] for item in own),
                    other,
                    tuple(map(clean_name, target_names)),
                )
