"""SQL definitions as tables: columns, keys, references, checks; of MySQL, PostgreSQL, SQL Server, Oracle and SQLite.

Each statement is parsed by itself, in the likeliest dialect first, then in the others. Of a table that no dialect
reads, each line is parsed by itself, and the lines that are not read are told of.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from webapp import limits
from webapp.connectors.schema import Column, ColumnType, Entity, Relation
from webapp.imports.inference.columns import Found
from webapp.imports.inference.evidence import definition
from webapp.imports.readers.base import Problem, Read, Source, Table, Unreadable, clean, decoded, named


@dataclass(slots=True)
class Made:
    """One table on its way."""

    parts: tuple[str, ...]
    columns: dict[str, Column] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    uniques: list[tuple[str, ...]] = field(default_factory=list)
    relations: list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    reds: dict[str, str] = field(default_factory=dict)
    comment: str = ""
    folded: dict[str, str] = field(default_factory=dict)
    """The names of columns by what they are without regard to case, as far as `own` has looked."""

    def own(self, name: str) -> str:
        """A column's name as its definition spells it."""
        if name in self.columns:
            return name
        if len(self.folded) != len(self.columns):
            self.folded = {one.casefold(): one for one in self.columns}
        return self.folded.get(name.casefold(), name)


def parts_in(table: Any) -> tuple[str, ...]:
    """The parts of a table's name, its schema first."""
    if not isinstance(table, exp.Table):
        return (str(getattr(table, "name", "")),)
    return tuple(one.name for one in (table.args.get("db"), table.this) if one is not None and one.name)


def names_in(made: Made, parts: list[Any]) -> tuple[str, ...]:
    """Columns that a key or an index names, each once, as their definitions spell them."""
    plain = [one.this if isinstance(one, exp.Ordered) else one for one in parts]
    return tuple(dict.fromkeys(made.own(one.name) for one in plain if getattr(one, "name", "")))


# Types of SQL's dialects, as columns have them here.

_T: Final = exp.DataType.Type
_INTEGERS: Final[Mapping[Any, tuple[int, bool]]] = {
    _T.TINYINT: (8, False), _T.UTINYINT: (8, True), _T.SMALLINT: (16, False), _T.USMALLINT: (16, True),
    _T.MEDIUMINT: (24, False), _T.UMEDIUMINT: (24, True), _T.INT: (32, False), _T.UINT: (32, True),
    _T.BIGINT: (64, False), _T.UBIGINT: (64, True), _T.INT128: (64, False), _T.INT256: (64, False),
}  # fmt: skip
_COUNTED: Final = {_T.SERIAL: 32, _T.BIGSERIAL: 64, _T.SMALLSERIAL: 16}


def _each(kind: ColumnType, *sorts: Any) -> dict[Any, ColumnType]:
    return dict.fromkeys(sorts, kind)


_KINDS: Final[Mapping[Any, ColumnType]] = {
    **_each("text", _T.CHAR, _T.NCHAR, _T.VARCHAR, _T.NVARCHAR, _T.TEXT, _T.TINYTEXT, _T.MEDIUMTEXT, _T.LONGTEXT),
    **_each("decimal", _T.DECIMAL, _T.UDECIMAL, _T.BIGDECIMAL, _T.MONEY, _T.SMALLMONEY),
    **_each("float", _T.FLOAT, _T.DOUBLE, _T.UDOUBLE, _T.DECFLOAT),
    **_each("boolean", _T.BOOLEAN, _T.BIT),
    **_each("date", _T.DATE, _T.DATE32),
    **_each("time", _T.TIME, _T.TIMETZ),
    **_each("timestamp", _T.DATETIME, _T.DATETIME2, _T.DATETIME64, _T.SMALLDATETIME, _T.TIMESTAMP, _T.TIMESTAMPNTZ),
    **_each("timestamptz", _T.TIMESTAMPTZ, _T.TIMESTAMPLTZ),
    **_each("binary", _T.BINARY, _T.VARBINARY, _T.BLOB, _T.TINYBLOB, _T.MEDIUMBLOB, _T.LONGBLOB, _T.IMAGE),
    **_each("json", _T.JSON, _T.JSONB),
    _T.UUID: "uuid", _T.INTERVAL: "interval", _T.ARRAY: "array", _T.ENUM: "enum", _T.NAME: "text",
}  # fmt: skip
# By the words of a dialect that the parser leaves as they are.
_WORDS: Final[Mapping[str, ColumnType]] = {
    "datetime": "timestamp", "bool": "boolean", "boolean": "boolean", "string": "text", "clob": "text",
    "nclob": "text", "long": "text", "ntext": "text", "sysname": "text", "citext": "text", "bpchar": "text",
    "integer": "integer", "int": "integer", "number": "decimal", "numeric": "decimal", "currency": "decimal",
    "raw": "binary", "longraw": "binary", "bfile": "binary", "uniqueidentifier": "uuid", "hierarchyid": "other",
    "binary_float": "float", "binary_double": "float", "real": "float",
}  # fmt: skip


@dataclass(slots=True)
class Shape:
    """What a type says of a column: the fields of `Column`."""

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


def shape_of(kind: Any, types: Mapping[str, Shape], dialect: str) -> Shape:
    """The shape of a declared type. `types` are the script's own, by name in small letters."""
    if not isinstance(kind, exp.DataType):
        return Shape("other", "" if kind is None else kind.sql(dialect=dialect)[:100])
    declared = kind.sql(dialect=dialect)[:100]
    sort = kind.this
    if sort is _T.USERDEFINED:
        return _own(kind, declared, types)
    if sort in _INTEGERS:
        bits, unsigned = _INTEGERS[sort]
        if sort is _T.TINYINT and dialect == "mysql" and _numbers(kind)[:1] == [1]:
            return Shape("boolean", declared)
        return Shape("integer", declared, bits=bits, unsigned=unsigned or (bits == 8 and dialect == "tsql"))
    if sort in _COUNTED:
        return Shape("integer", declared, bits=_COUNTED[sort], generated="identity")
    if sort is _T.YEAR:
        return Shape("other", "year")
    found = _KINDS.get(sort, "other")
    made = Shape(found, declared)
    numbers = _numbers(kind)
    if found in ("text", "binary"):
        made.max_length = numbers[0] if numbers else 1 if sort in (_T.CHAR, _T.NCHAR) else None
    elif sort is _T.MONEY or sort is _T.SMALLMONEY:
        made.precision, made.scale = (10, 2)
    elif found == "decimal" and numbers:
        made.precision, made.scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
        if not made.scale and made.precision <= 18:
            made.type, made.bits = "integer", 64 if made.precision > 9 else 32 if made.precision > 4 else 16
    elif found == "enum":
        made.choices = tuple(one.name for one in kind.expressions)
    elif found == "timestamptz" and dialect == "mysql":
        made.type = "timestamp"  # MySQL's TIMESTAMP is written without a zone
    elif found == "array":
        inner = kind.expressions[0] if kind.expressions else None
        made.items = shape_of(inner, types, dialect).type
    elif sort is _T.SET:
        made.type, made.choices = "enum", tuple(one.name for one in kind.expressions)
    return made


def _own(kind: exp.DataType, declared: str, types: Mapping[str, Shape]) -> Shape:
    inner = kind.args.get("kind")
    name = (
        (inner.name if isinstance(inner, exp.Expression) else str(inner or declared)).strip('"[]`').casefold()
    )
    name = name.rpartition(".")[2]
    if name in types:
        return types[name]
    return Shape(_WORDS.get(name.partition("(")[0].replace(" ", ""), "other"), declared)


def _numbers(kind: exp.DataType) -> list[int]:
    found = []
    for one in kind.expressions:
        text = one.this.name if isinstance(one, exp.DataTypeParam) else one.name
        if text.isdigit() and len(text) < 10:
            found.append(int(text))
    return found


# SQL scripts as statements: cut at semicolons that stand outside texts, names, comments and bodies of routines.

NAME: Final = r"""(?:"[^"]+"|`[^`]+`|\[[^\]]+\]|[\w$#]+)"""
"""One part of a name, quoted in any way or not."""
_QUIET: Final = r"""--[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?"""
_QUOTED_NAMES: Final = r"""|"(?:[^"]++|"")*+"?|`(?:[^`]++|``)*+`?"""
_PLAIN: Final = re.compile(
    _QUIET
    + r"|'(?:[^']++|'')*+'?"
    + _QUOTED_NAMES
    + r"|\$(?P<tag>\w*)\$|(?P<end>;|^[ \t]*(?:GO|/)[ \t\r]*$)",
    re.I | re.M,
)
_SLASHED: Final = re.compile(
    _QUIET
    + r"|\#[^\n]*+|'(?:[^'\\]++|''|\\.)*+'?"
    + _QUOTED_NAMES
    + r"|(?P<end>;)|^DELIMITER[ \t]+(?P<delimiter>\S+)[^\n]*",
    re.I | re.M | re.S,
)
_LEADING: Final = re.compile(rf"\s++|{_QUIET}")
_COMMENT: Final = re.compile(_QUIET + r"|'(?:[^']++|'')*+'?" + _QUOTED_NAMES, re.I)
_BEGINNINGS: Final = (
    r"(?:CREATE\s+(?:GLOBAL\s+|LOCAL\s+|TEMP(?:ORARY)?\s+|UNLOGGED\s+|OR\s+REPLACE\s+|EXTERNAL\s+|FOREIGN\s+)*TABLE"
    r"|CREATE\s+UNIQUE\s+(?:CLUSTERED\s+|NONCLUSTERED\s+)?INDEX|CREATE\s+(?:TYPE|DOMAIN)|ALTER\s+TABLE|COMMENT\s+ON)\b"
)
WANTED: Final = re.compile(_BEGINNINGS, re.I)
"""How statements begin that say something of tables."""
MENTIONED: Final = re.compile(r"\b" + _BEGINNINGS, re.I)
"""The same within a text."""
_DIALECTS: Final = (
    ("mysql", r"`|\bENGINE\s*=|\bAUTO_INCREMENT\b|\bUNSIGNED\b|\bTINYINT\(|\bENUM\s*\("),
    ("tsql", r"^[ \t]*GO[ \t\r]*$|\[\w+\]|\bIDENTITY\s*\(|\bNVARCHAR\s*\("
             r"|\b(?:UNIQUEIDENTIFIER|DATETIME2|NTEXT|CLUSTERED)\b"),
    ("oracle", r"\bVARCHAR2\b|\bNUMBER\s*\(|\bCLOB\b|\bNUMBER\s*(?:,|NOT|$)|\bSYSDATE\b|^[ \t]*/[ \t\r]*$"),
    ("postgres", r"\b(?:(?:BIG|SMALL)?SERIAL|TIMESTAMPTZ|BYTEA|JSONB|ALTER TABLE ONLY|AS\s+ENUM|CHARACTER VARYING)\b"
                 r"|::|\bTEXT\[\]|\bnextval\("),
    ("sqlite", r"\bAUTOINCREMENT\b|\bWITHOUT\s+ROWID\b|\bPRAGMA\b"),
)  # fmt: skip
_LOOKED: Final = 200_000  # chosen: characters by which the dialect is found


def dialects(text: str) -> list[str]:
    """The dialects, the likeliest first, by how often each one's own words occur."""
    head = text[:_LOOKED]
    counted = {name: len(re.findall(pattern, head, re.I | re.M)) for name, pattern in _DIALECTS}
    return sorted(counted, key=lambda name: -counted[name])


def statements(text: str, dialect: str) -> Iterator[str]:
    """The statements, without comments at their beginning."""
    text = text.lstrip("\ufeff")
    pattern = _SLASHED if dialect == "mysql" else _PLAIN
    start, at, ending = 0, 0, ";"
    while (match := pattern.search(text, at)) is not None:
        at = match.end()
        if match.groupdict().get("tag") is not None:  # the body of a function, up to the same mark
            close = text.find(match[0], at)
            at = len(text) if close < 0 else close + len(match[0])
        elif match.groupdict().get("delimiter") is not None:
            ending, start = match["delimiter"], at
            if ending != ";":  # what stands between two of these is a routine
                back = re.compile(r"^DELIMITER[ \t]+;[^\n]*", re.I | re.M).search(text, at)
                start = at = len(text) if back is None else back.end()
        elif match["end"]:
            yield from _one(text[start : match.start()])
            start = at
    yield from _one(text[start:])


def _one(statement: str) -> Iterator[str]:
    at = 0
    while (match := _LEADING.match(statement, at)) is not None:
        at = match.end()
    plain = statement[at:].strip()
    if plain:
        yield plain


def parts(body: str) -> list[str]:
    """What stands between the commas of a bracket, at its own level."""
    found, depth, start = [], 0, 0
    pattern = re.compile(_COMMENT.pattern + r"|[(),]", re.I)
    for match in pattern.finditer(body):
        sign = match[0]
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            found.append(body[start : match.start()])
            start = match.end()
    found.append(body[start:])
    return [one.strip() for one in found if one.strip()]


def parts_of(text: str) -> tuple[str, ...]:
    """A table's name, with its schema where it has one."""
    return tuple(bare(one) for one in re.findall(NAME, text))[-2:]


def bare(name: str) -> str:
    """A name without its quotes."""
    return name[1:-1] if name[:1] in '"`[' else name


logging.getLogger("sqlglot").setLevel(logging.CRITICAL)  # it reports statements that nobody asked for
_NAMES: Final = rf"({NAME}(?:\s*\.\s*{NAME})*)"
_TABLE: Final = re.compile(
    rf"CREATE\s[\w\s]*?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAMES}\s*\((.*)\)", re.I | re.S
)
_IDENTITY: Final = re.compile(
    rf"ALTER\s+TABLE\s+(?:ONLY\s+)?{_NAMES}\s+ALTER\s+(?:COLUMN\s+)?({NAME})\s+ADD\s+GENERATED", re.I
)
_VERSIONED: Final = re.compile(r"/\*!\d{5,6}\s((?:[^*]++|\*(?!/))*+)\*/")
_DOMAIN: Final = re.compile(rf"CREATE\s+DOMAIN\s+({NAME}(?:\.{NAME})*)\s+(?:AS\s+)?(.+)", re.I | re.S)


def read(source: Source) -> Read:
    """A table for each CREATE TABLE. Raises `Unreadable` where there is none."""
    text, _ = decoded(source.raw)
    script = _Script(text)
    if script.dialects[0] == "mysql":  # which runs what stands in such comments
        text = _VERSIONED.sub(r" \1 ", text)
    for number, statement in enumerate(statements(text, script.dialects[0])):
        if number >= limits.IMPORT_STATEMENTS:
            script.read.problems.append(
                Problem("", "", f"Only the first {limits.IMPORT_STATEMENTS:,} statements were read.")
            )
            break
        if WANTED.match(statement):
            script.take_carefully(statement)
    return script.finished()


class _Script:
    """All statements of a script."""

    def __init__(self, text: str) -> None:
        self.dialects = dialects(text)
        self.read = Read("sql")
        self._tables: dict[tuple[str, ...], Made] = {}
        self._types: dict[str, Shape] = {}

    def take_carefully(self, statement: str) -> None:
        """One statement that says something of tables; one that cannot be read is reported and left out."""
        if len(statement) > limits.IMPORT_STATEMENT_CHARS:
            told = f"it is longer than {limits.IMPORT_STATEMENT_CHARS:,} characters."
        else:
            try:
                self.take(statement)
                return
            except RecursionError:
                told = "it is nested too deeply."
        self.read.problems.append(
            Problem("", "", f'The statement "{clean(statement)[:60]}..." is left out: {told}')
        )

    def take(self, statement: str) -> None:
        """One statement that says something of tables."""
        if (domain := _DOMAIN.match(statement)) is not None:
            self._domain(domain)
            return
        if (counted := _IDENTITY.match(statement)) is not None:
            self._counted(parts_of(counted[1]), bare(counted[2]))
            return
        tree = self._parsed(statement)
        if isinstance(tree, exp.Create) and tree.kind == "TABLE" and isinstance(tree.this, exp.Schema):
            self._table(tree)
        elif isinstance(tree, exp.Create) and tree.kind == "TYPE":
            if isinstance(tree.expression, exp.DataType):
                self._types[tree.this.name.casefold()] = shape_of(
                    tree.expression, self._types, self.dialects[0]
                )
        elif isinstance(tree, exp.Create) and tree.kind == "INDEX":
            self._index(tree)
        elif isinstance(tree, exp.Alter):
            self._alter(tree)
        elif isinstance(tree, exp.Comment):
            self._comment(tree)
        elif (match := _TABLE.match(statement)) is not None:
            self._piecewise(match)

    def _parsed(self, statement: str) -> exp.Expr | None:
        for dialect in self.dialects:
            try:
                tree = sqlglot.parse_one(statement, read=dialect)
            except (SqlglotError, RecursionError, ValueError):
                continue
            if not isinstance(tree, exp.Command):
                return tree
        return None

    def _domain(self, match: re.Match[str]) -> None:
        rest = re.sub(r"(?i)\bVALUE\b", "VALUE_", match[2])
        made = self._parsed(f"CREATE TABLE d (VALUE_ {rest})")
        kind = next(iter(made.find_all(exp.DataType)), None) if made is not None else None
        if kind is not None:
            self._types[parts_of(match[1])[-1].casefold()] = shape_of(kind, self._types, self.dialects[0])

    # --- Tables ---------------------------------------------------------------------------------------------

    def _table(self, tree: exp.Create) -> None:
        made = self._opened(parts_in(tree.this.this))
        if made is None:
            return
        for part in tree.this.expressions:
            self._part(made, part)
        for prop in tree.find_all(exp.SchemaCommentProperty):
            made.comment = prop.this.name

    def _opened(self, parts: tuple[str, ...]) -> Made | None:
        key = tuple(one.casefold() for one in parts)
        if key in self._tables:
            return None  # of two the first counts
        if len(self._tables) >= limits.IMPORT_TABLES:
            told = f"At most {limits.IMPORT_TABLES} tables are imported at once: left out."
            self.read.problems.append(Problem(clean(parts[-1]), "", told))
            return None
        self._tables[key] = Made(parts)
        return self._tables[key]

    def _piecewise(self, match: re.Match[str]) -> None:
        """A table that no dialect reads: each of its lines by itself."""
        made = self._opened(parts_of(match[1]))
        for line in parts(match[2]) if made is not None else ():
            tree = self._parsed(f"CREATE TABLE t ({line})")
            assert made is not None
            if isinstance(tree, exp.Create) and isinstance(tree.this, exp.Schema):
                for part in tree.this.expressions:
                    self._part(made, part)
            elif not re.match(
                r"(?i)(CONSTRAINT|PRIMARY|FOREIGN|UNIQUE|CHECK|KEY|INDEX|EXCLUDE|PERIOD)\b", line
            ):
                named = re.match(NAME, line)
                name = bare(named[0]) if named is not None else clean(line)[:40]
                declared = clean(line)[len(name) :].strip()[:100]
                made.columns[name] = Column(name, "other", declared, nullable="NOT NULL" not in line.upper())
                made.reds[name] = f'its definition was not understood: "{declared}".'

    def _part(self, made: Made, part: exp.Expression) -> None:
        if isinstance(part, exp.ColumnDef):
            self._column(made, part)
        elif isinstance(part, exp.Identifier | exp.Column):  # SQLite takes columns without a type
            made.columns[part.name] = Column(part.name, "other", "")
        else:
            self._constraint(made, part)

    def _column(self, made: Made, part: exp.ColumnDef) -> None:
        name = part.name
        shape = shape_of(part.args.get("kind"), self._types, self.dialects[0])
        column = Column(name, **asdict(shape))
        made.columns[name] = column
        for one in part.constraints:
            made.columns[name] = self._of_column(made, made.columns[name], one.kind)

    def _of_column(self, made: Made, column: Column, kind: Any) -> Column:
        name = column.name
        if isinstance(kind, exp.NotNullColumnConstraint):
            return replace(column, nullable=bool(kind.args.get("allow_null")))
        if isinstance(kind, exp.PrimaryKeyColumnConstraint):
            made.keys = (name,)
            return replace(column, nullable=False)
        if isinstance(kind, exp.UniqueColumnConstraint):
            made.uniques.append((name,))
        elif isinstance(kind, exp.AutoIncrementColumnConstraint | exp.GeneratedAsIdentityColumnConstraint):
            computed = (
                isinstance(kind, exp.GeneratedAsIdentityColumnConstraint) and kind.expression is not None
            )
            return replace(column, generated="computed" if computed else "identity")
        elif isinstance(kind, exp.ComputedColumnConstraint):
            return replace(column, generated="computed")
        elif isinstance(kind, exp.DefaultColumnConstraint):
            text = kind.this.sql() if kind.this is not None else ""
            counted = "nextval" in text.lower()
            return replace(column, default=text[:200], generated="identity" if counted else column.generated)
        elif isinstance(kind, exp.CheckColumnConstraint):
            made.checks.append(kind.this.sql())
        elif isinstance(kind, exp.Reference):
            self._reference(made, (name,), kind)
        elif isinstance(kind, exp.CommentColumnConstraint):
            return replace(column, comment=clean(kind.this.name))
        return column

    def _constraint(self, made: Made, part: exp.Expression) -> None:
        if isinstance(part, exp.Constraint):
            inner = part.expressions
            if inner and isinstance(inner[0], exp.PrimaryKeyColumnConstraint | exp.UniqueColumnConstraint):
                names = names_in(
                    made, [one for other in inner for one in other.find_all(exp.Column, exp.Ordered)]
                )
                if names and isinstance(inner[0], exp.PrimaryKeyColumnConstraint):
                    made.keys = names
                elif names:
                    made.uniques.append(names)
                if names:
                    return
            for one in inner:
                self._constraint(made, one)
        elif isinstance(part, exp.PrimaryKey):
            made.keys = names_in(made, part.expressions)
        elif isinstance(part, exp.UniqueColumnConstraint):
            there = part.this.expressions if isinstance(part.this, exp.Schema) else [part.this]
            made.uniques.append(names_in(made, [one for one in there if one is not None]))
        elif isinstance(part, exp.ForeignKey):
            reference = part.args.get("reference")
            if reference is not None:
                self._reference(made, names_in(made, part.expressions), reference)
        elif isinstance(part, exp.CheckColumnConstraint):
            made.checks.append(part.this.sql())

    def _reference(self, made: Made, names: tuple[str, ...], reference: exp.Expression) -> None:
        there = reference.this
        table, columns = (there.this, there.expressions) if isinstance(there, exp.Schema) else (there, [])
        made.relations.append((names, parts_in(table), tuple(one.name for one in columns)))

    # --- Later statements -----------------------------------------------------------------------------------

    def _found(self, parts: tuple[str, ...]) -> Made | None:
        """The table of a name, with its schema or without."""
        key = tuple(one.casefold() for one in parts)
        if key in self._tables:
            return self._tables[key]
        alike = [one for found, one in self._tables.items() if found[-1] == key[-1]]
        return alike[0] if len(alike) == 1 else None

    def _alter(self, tree: exp.Alter) -> None:
        made = self._found(parts_in(tree.this)) if isinstance(tree.this, exp.Table) else None
        if made is None:
            return
        for action in tree.args.get("actions") or ():
            if isinstance(action, exp.AddConstraint):
                for one in action.expressions:
                    self._constraint(made, one)
            elif isinstance(action, exp.ColumnDef):
                self._column(made, action)
            elif (
                isinstance(action, exp.AlterColumn)
                and "nextval" in (action.args.get("default") or exp.Null()).sql()
            ):
                self._counted(made.parts, action.name)

    def _counted(self, parts: tuple[str, ...], name: str) -> None:
        made = self._found(parts)
        if made is not None and (own := made.own(name)) in made.columns:
            made.columns[own] = replace(made.columns[own], generated="identity")

    def _index(self, tree: exp.Create) -> None:
        table = tree.this.args.get("table")
        made = self._found(parts_in(table)) if table is not None else None
        params = tree.this.args.get("params")
        if (
            made is None
            or not tree.args.get("unique")
            or params is None
            or params.args.get("where") is not None
        ):
            return
        columns = params.args.get("columns") or []
        plain = [one.this if isinstance(one, exp.Ordered) else one for one in columns]
        if plain and all(isinstance(one, exp.Column | exp.Identifier) for one in plain):
            made.uniques.append(names_in(made, plain))

    def _comment(self, tree: exp.Comment) -> None:
        text = clean(tree.expression.name) if tree.expression is not None else ""
        if tree.args.get("kind") == "TABLE" and (made := self._found(parts_in(tree.this))) is not None:
            made.comment = text
        elif isinstance(tree.this, exp.Column) and (made := self._found((tree.this.table,))) is not None:
            own = made.own(tree.this.name)
            if own in made.columns:
                made.columns[own] = replace(made.columns[own], comment=text)

    # --- The end --------------------------------------------------------------------------------------------

    def finished(self) -> Read:
        """The tables, their references by name. Raises `Unreadable`."""
        every = list(self._tables.values())
        if not every:
            raise Unreadable(
                "There is no CREATE TABLE that could be read.",
                "Send the definitions of tables, such as CREATE TABLE orders (id INT PRIMARY KEY).",
            )
        often = Counter(one.parts[-1].casefold() for one in every)
        shown = [
            ".".join(one.parts) if often[one.parts[-1].casefold()] > 1 else one.parts[-1] for one in every
        ]
        names, _ = named(shown, "table")
        called = {id(one): name for one, name in zip(every, names, strict=True)}
        for one in every:
            table = self._finished(one, called)
            if table is not None:
                self.read.tables.append(table)
        return self.read

    def _finished(self, made: Made, called: dict[int, str]) -> Table | None:
        name = called[id(made)]
        if not made.columns:
            self.read.problems.append(Problem(name, "", "It has no column that could be read."))
            return None
        over = list(made.columns)[limits.MAX_FIELDS :]
        text = f"A template has at most {limits.MAX_FIELDS} fields: left out."
        self.read.problems += [Problem(name, clean(one), text) for one in over[: limits.IMPORT_COLUMNS]]
        for one in over:
            del made.columns[one]
        kept = set(made.columns)
        names = {one: clean(one) or f"column_{place}" for place, one in enumerate(made.columns, 1)}
        keys = tuple(names[one] for one in map(made.own, made.keys) if one in kept)
        uniques = [
            tuple(names[one] for one in unique) for unique in made.uniques if unique and set(unique) <= kept
        ]
        alone = {one[0] for one in (keys, *uniques) if len(one) == 1}
        columns = tuple(
            replace(
                one, name=names[one.name], key=names[one.name] in keys, unique=names[one.name] in alone,
                nullable=one.nullable and names[one.name] not in keys,
            )
            for one in made.columns.values()
        )  # fmt: skip
        relations = tuple(self._relations(made, names, called))
        entity = Entity(
            name,
            made.parts,
            columns,
            keys=keys,
            uniques=tuple(dict.fromkeys(uniques)),
            relations=relations,
            checks=tuple(made.checks),
            comment=clean(made.comment),
        )
        table = Table(entity)
        table.reds = {names[one]: reason for one, reason in made.reds.items() if one in names}
        _counted_keys(table)
        return table

    def _relations(self, made: Made, names: dict[str, str], called: dict[int, str]) -> Iterator[Relation]:
        for number, (columns, parts, there) in enumerate(made.relations):
            own = tuple(made.own(one) for one in columns)
            if not own or not set(own) <= set(names):
                continue
            parent = self._found(parts)
            if parent is None:
                other, shown = clean(parts[-1]), there or own
            else:
                other = called[id(parent)]
                shown = tuple(parent.own(one) for one in (there or parent.keys))
            if len(shown) == len(own):
                yield Relation(
                    f"fk_{number}", tuple(names[one] for one in own), other, tuple(map(clean, shown))
                )


def _counted_keys(table: Table) -> None:
    """A key of one whole number is counted, as the first rows of any table are, and so is what the target counts."""
    entity = table.entity
    for one in entity.fields:
        alone = entity.keys == (one.name,) and one.type in ("integer", "decimal") and not one.scale
        if alone or (one.generated == "identity" and one.name not in entity.keys):
            made = definition(one.name, "row_number")
            told = (
                "The key of the table, counted from 1."
                if alone
                else "The database counts it; it is counted from 1."
            )
            table.ready[one.name] = Found(one.name, made, "green", told)
