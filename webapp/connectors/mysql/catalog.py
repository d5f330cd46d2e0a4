"""Read the tables of a MySQL or MariaDB server from information_schema in a few queries."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from webapp.connectors.schema import (
    Column,
    ColumnType,
    Entity,
    Relation,
    UniqueIndex,
    by_stored_columns,
    named_columns,
)

Rows = Sequence[Sequence[Any]]
RunQuery = Callable[[str, Sequence[Any]], Rows]
"""Runs a query with its values, and returns its rows, with texts as `str`."""

TableId = tuple[str, str]
"""Schema and table."""

SYSTEM_SCHEMAS: Final = ("mysql", "information_schema", "performance_schema", "sys")

_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64, "year": 16}
_TYPES: Final[Mapping[str, ColumnType]] = {
    **dict.fromkeys(_BITS, "integer"),
    **dict.fromkeys(("decimal", "numeric"), "decimal"),
    **dict.fromkeys(("float", "double"), "float"),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), "text"),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), "binary"),
    **dict.fromkeys(("enum", "set"), "enum"),
    "date": "date", "time": "time", "datetime": "timestamp", "timestamp": "timestamptz",
    "json": "json", "uuid": "uuid",
}  # fmt: skip
_LENGTHS: Final = ("text", "binary")
_CHOICE: Final = re.compile(r"'((?:[^']|'')*)'")
_CHARACTERS: Final[Mapping[str, str]] = {
    "ascii": "ascii", "latin1": "cp1252", "latin2": "iso8859-2", "latin5": "iso8859-9", "latin7": "iso8859-13",
    "greek": "iso8859-7", "hebrew": "iso8859-8", "cp1250": "cp1250", "cp1251": "cp1251", "cp1256": "cp1256",
    "cp1257": "cp1257", "koi8r": "koi8-r", "koi8u": "koi8-u", "cp850": "cp850", "cp852": "cp852", "cp866": "cp866",
    "macroman": "mac-roman", "tis620": "tis-620", "sjis": "shift-jis", "cp932": "cp932", "ujis": "euc-jp",
    "euckr": "euc-kr", "gb2312": "gb2312", "gbk": "gbk", "big5": "big5", "utf8": "bmp", "utf8mb3": "bmp", "ucs2": "bmp",
}  # fmt: skip
"""`Column.characters` by the name of a character set. The others have all characters of Unicode."""
_JSON_CHECK: Final = re.compile(r"json_valid\(`([^`]+)`\)", re.I)


@dataclass(frozen=True, slots=True)
class ServerVersion:
    """The kind and version of a server, and the features that depend on it."""

    version: str
    is_mariadb: bool
    number: tuple[int, int, int]

    @property
    def title(self) -> str:
        """The name for users, such as MariaDB 10.11.6."""
        return f"{'MariaDB' if self.is_mariadb else 'MySQL'} {'.'.join(map(str, self.number))}"

    @property
    def reports_failed_row(self) -> bool:
        """Whether diagnostics name the row of a statement that was rejected (MariaDB 10.7, "GET
        DIAGNOSTICS")."""
        return self.is_mariadb and self.number >= (10, 7, 0)

    @property
    def supports_returning(self) -> bool:
        """Whether INSERT ... RETURNING is supported (MariaDB 10.5)."""
        return self.is_mariadb and self.number >= (10, 5, 0)

    @property
    def supports_expression_indexes(self) -> bool:
        """Whether indexes may be on expressions (MySQL 8.0.13). MariaDB has generated columns for that."""
        return not self.is_mariadb and self.number >= (8, 0, 13)

    @property
    def supports_checks(self) -> bool:
        """Whether CHECK constraints are enforced and listed."""
        return self.number >= ((10, 2, 22) if self.is_mariadb else (8, 0, 16))


def parse_version(version: str) -> ServerVersion:
    """Parse the result of `SELECT VERSION()`: `10.11.6-MariaDB-log`, `5.5.5-10.4.1-MariaDB`, `8.0.36`."""
    maria = "mariadb" in version.lower()
    numbers = re.findall(r"(\d+)\.(\d+)\.(\d+)", version) or [("0", "0", "0")]
    parts = numbers[1] if maria and len(numbers) > 1 and numbers[0] == ("5", "5", "5") else numbers[0]
    return ServerVersion(version, maria, (int(parts[0]), int(parts[1]), int(parts[2])))


def entities(
    run_query: RunQuery,
    server_version: ServerVersion,
    default_schema: str | None,
    only: TableId | None = None,
) -> list[Entity]:
    """Return the tables and views of the connection's database, or only one of them.

    Without a database, all tables outside of system schemas that the account can see.
    """
    where, values = _where(only, default_schema)
    tables = run_query(
        "SELECT t.table_schema, t.table_name, t.table_type, t.table_comment, t.engine, e.transactions "
        "FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine "
        f"WHERE {where('t.table_schema', 't.table_name')} ORDER BY t.table_schema, t.table_name",
        values,
    )
    if not tables:
        return []
    columns = _columns(run_query, server_version, where, values)
    uniques, indexes = _uniques(run_query, server_version, where, values)
    relations = _relations(run_query, where, values, default_schema)
    checks = _checks(run_query, server_version, where, values)
    return [
        _entity(
            (schema, name),
            default_schema,
            columns[schema, name],
            uniques[schema, name],
            indexes[schema, name],
            checks[schema, name],
            kind="view" if "VIEW" in kind else "table",
            relations=tuple(relations[schema, name]),
            comment="" if "VIEW" in kind else comment or "",
            obstacle=""
            if engine is None or transactions == "YES"
            else f"Its engine {engine} does not support transactions. Change it with ENGINE = InnoDB.",
        )
        for schema, name, kind, comment, engine, transactions in tables
        if columns[schema, name]
    ]


def name_of(table_id: TableId, default_schema: str | None) -> str:
    """Return the `Entity.name`: the plain name in the connection's own database."""
    return table_id[1] if table_id[0] == default_schema else f"{table_id[0]}.{table_id[1]}"


def _where(
    only: TableId | None, default_schema: str | None
) -> tuple[Callable[[str, str], str], tuple[str, ...]]:
    if only is None and default_schema:
        return lambda schema, _: f"{schema} = %s", (default_schema,)
    if only is None:
        placeholders = ", ".join(["%s"] * len(SYSTEM_SCHEMAS))
        return lambda schema, _: f"{schema} NOT IN ({placeholders})", SYSTEM_SCHEMAS
    return lambda schema, table: f"{schema} = %s AND {table} = %s", only


def _columns(
    run_query: RunQuery,
    server_version: ServerVersion,
    where: Callable[[str, str], str],
    values: Sequence[str],
) -> dict[TableId, list[tuple[Column, str]]]:
    """Return the columns by table, each with the expression that computes it, or ""."""
    result: dict[TableId, list[tuple[Column, str]]] = defaultdict(list)
    for (
        schema, table, name, kind, declared, nullable, default, extra, length, precision, scale, expression, comment,
        characters,
    ) in run_query(
        "SELECT table_schema, table_name, column_name, data_type, column_type, is_nullable, column_default, extra, "
        "character_maximum_length, numeric_precision, numeric_scale, generation_expression, column_comment, "
        "character_set_name "
        f"FROM information_schema.columns WHERE {where('table_schema', 'table_name')} "
        "ORDER BY table_schema, table_name, ordinal_position",
        values,
    ):  # fmt: skip
        lowered = kind.lower()
        type_: ColumnType = "integer" if lowered == "bit" else _TYPES.get(lowered, "other")
        if declared.lower().startswith(("tinyint(1)", "bit(1)")):
            type_ = "boolean"
        generated = "identity" if "AUTO_INCREMENT" in extra.upper() else ""
        if expression or "GENERATED" in extra.upper().replace("DEFAULT_GENERATED", ""):
            generated = "computed"
        has_precision = type_ in ("decimal", "integer") and precision is not None
        choices = _CHOICE.findall(declared) if type_ == "enum" else ()
        column = Column(
            name,
            type_,
            declared,
            nullable=nullable == "YES",
            max_length=int(length) if type_ in _LENGTHS and length is not None else None,
            precision=int(precision) if has_precision else None,
            scale=int(scale) if has_precision and type_ == "decimal" and scale is not None else None,
            bits=_BITS.get(lowered) or (int(precision or 1) if lowered == "bit" else None),
            unsigned="unsigned" in declared.lower() or lowered in ("bit", "year"),
            generated=generated,
            default=None if server_version.is_mariadb and default == "NULL" else default,
            choices=tuple(choice.replace("''", "'") for choice in choices),
            comment=comment or "",
            characters=_CHARACTERS.get(characters or "", ""),
        )
        result[schema, table].append((column, expression or ""))
    return result


def _uniques(
    run_query: RunQuery,
    server_version: ServerVersion,
    where: Callable[[str, str], str],
    values: Sequence[str],
) -> tuple[dict[TableId, dict[str, list[str]]], dict[TableId, list[list[str]]]]:
    """Return the columns of each unique index by name; and the columns and expressions of those that compare prefixes
    of columns or expressions."""
    columns: dict[TableId, dict[str, list[str]]] = defaultdict(dict)
    partial: set[tuple[TableId, str]] = set()
    expression = "expression" if server_version.supports_expression_indexes else "NULL"
    for schema, table, index, column, part, text in run_query(
        f"SELECT table_schema, table_name, index_name, column_name, sub_part, {expression} "
        f"FROM information_schema.statistics WHERE non_unique = 0 AND {where('table_schema', 'table_name')} "
        "ORDER BY table_schema, table_name, index_name, seq_in_index",
        values,
    ):
        columns[schema, table].setdefault(index, []).append(text or "" if column is None else column)
        if part is not None or column is None:
            partial.add(((schema, table), index))
    result: dict[TableId, list[list[str]]] = defaultdict(list)
    for table_id, index in sorted(partial):
        result[table_id].append(columns[table_id].pop(index))
    return columns, result


def _relations(
    run_query: RunQuery, where: Callable[[str, str], str], values: Sequence[str], default_schema: str | None
) -> dict[TableId, list[Relation]]:
    pairs: dict[TableId, dict[str, tuple[TableId, list[str], list[str]]]] = defaultdict(dict)
    for schema, table, name, column, to_schema, to_table, to_column in run_query(
        "SELECT table_schema, table_name, constraint_name, column_name, referenced_table_schema, "
        "referenced_table_name, referenced_column_name FROM information_schema.key_column_usage "
        f"WHERE referenced_table_name IS NOT NULL AND {where('table_schema', 'table_name')} "
        "ORDER BY table_schema, table_name, constraint_name, ordinal_position",
        values,
    ):
        key = pairs[schema, table].setdefault(name, ((to_schema, to_table), [], []))
        key[1].append(column)
        key[2].append(to_column)
    result: dict[TableId, list[Relation]] = defaultdict(list)
    for table_id, keys in pairs.items():
        for name, (to, columns, others) in keys.items():
            result[table_id].append(
                Relation(name, tuple(columns), name_of(to, default_schema), tuple(others))
            )
    return result


def _checks(
    run_query: RunQuery,
    server_version: ServerVersion,
    where: Callable[[str, str], str],
    values: Sequence[str],
) -> dict[TableId, tuple[str, ...]]:
    result: dict[TableId, tuple[str, ...]] = defaultdict(tuple)
    if not server_version.supports_checks:
        return result
    if server_version.is_mariadb:
        text = (
            "SELECT constraint_schema, table_name, check_clause FROM information_schema.check_constraints "
            f"WHERE {where('constraint_schema', 'table_name')} ORDER BY 1, 2, constraint_name"
        )
    else:
        text = (
            "SELECT t.table_schema, t.table_name, c.check_clause FROM information_schema.check_constraints c "
            "JOIN information_schema.table_constraints t ON t.constraint_schema = c.constraint_schema "
            "AND t.constraint_name = c.constraint_name AND t.constraint_type = 'CHECK' "
            f"WHERE {where('t.table_schema', 't.table_name')} ORDER BY 1, 2, c.constraint_name"
        )
    for schema, table, clause in run_query(text, values):
        result[schema, table] += (clause,)
    return result


def _entity(
    table_id: TableId,
    default_schema: str | None,
    columns: list[tuple[Column, str]],
    indexes: Mapping[str, list[str]],
    partial: Sequence[Sequence[str]],
    checks: tuple[str, ...],
    **rest: Any,
) -> Entity:
    keys = tuple(indexes.get("PRIMARY", ()))
    uniques = tuple(dict.fromkeys(tuple(of) for index, of in indexes.items() if index != "PRIMARY"))
    single = {of[0] for of in (keys, *uniques) if len(of) == 1}
    # MariaDB's JSON type is LONGTEXT with a check constraint.
    json = {match[1] for check in checks if (match := _JSON_CHECK.fullmatch(check))}
    fields = []
    for column, _ in columns:
        column = replace(column, key=column.name in keys, unique=column.name in single)
        if column.type == "text" and column.name in json:
            column = replace(column, type="json", max_length=None)
        fields.append(column)
    names = [column.name for column in fields]
    compared = [
        tuple(
            dict.fromkeys(
                name
                for part in index
                for name in ((part,) if part in names else named_columns([part], names))
            )
        )
        for index in partial
    ]
    entity = Entity(
        name_of(table_id, default_schema),
        (table_id[1],) if table_id[0] == default_schema else table_id,
        tuple(fields),
        keys=keys,
        uniques=uniques,
        checks=tuple(check for check in checks if not _JSON_CHECK.fullmatch(check)),
        unique_indexes=tuple(dict.fromkeys(UniqueIndex(item) for item in compared if item)),
        **rest,
    )
    computed = {column.name: text for column, text in columns if text and column.generated == "computed"}
    return by_stored_columns(entity, computed) if computed else entity
