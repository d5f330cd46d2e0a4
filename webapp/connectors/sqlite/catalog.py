"""Read the tables of a SQLite file from its schema table and PRAGMAs, with five queries for any number of
tables."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, Literal

from webapp.connectors.schema import Column, ColumnType, Entity, Relation, UniqueIndex

_TABLES: Final = (
    "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view')"
    " AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
)
_OF_TABLES: Final = "FROM sqlite_master m JOIN {pragma} p WHERE m.type IN ('table', 'view')"
_COLUMNS: Final = (
    'SELECT m.name, p.name, p.type, p."notnull", p.dflt_value, p.pk, p.hidden '
    + _OF_TABLES.format(pragma="pragma_table_xinfo(m.name)")
    + " ORDER BY m.name, p.cid"
)
_RELATIONS: Final = (
    'SELECT m.name, p.id, p."from", p."table", p."to" '
    + _OF_TABLES.format(pragma="pragma_foreign_key_list(m.name)")
    + " ORDER BY m.name, p.id, p.seq"
)
_UNIQUES: Final = (
    "SELECT m.name, l.name, i.name FROM sqlite_master m JOIN pragma_index_list(m.name) l"
    " JOIN pragma_index_info(l.name) i"
    " WHERE m.type = 'table' AND l.\"unique\" AND NOT l.partial AND l.origin <> 'pk'"
    " ORDER BY m.name, l.seq DESC, i.seqno"
)
_CONDITIONAL: Final = (
    "SELECT m.name, l.name, i.name, s.sql FROM sqlite_master m JOIN pragma_index_list(m.name) l"
    " JOIN pragma_index_info(l.name) i JOIN sqlite_master s ON s.type = 'index' AND s.name = l.name"
    " WHERE m.type = 'table' AND l.\"unique\" AND s.sql IS NOT NULL ORDER BY m.name, l.seq DESC, i.seqno"
)

# Types by words in the declared type, in order; then by affinity (SQLite, "Datatypes", 3.1).
_WORDS: Final[tuple[tuple[str, ColumnType], ...]] = (
    ("BOOL", "boolean"), ("JSON", "json"), ("UUID", "uuid"), ("INTERVAL", "interval"),
    ("WITH TIME ZONE", "timestamptz"),
    ("TIMESTAMP", "timestamp"), ("DATETIME", "timestamp"), ("DATE", "date"), ("TIME", "time"), ("INT", "integer"),
    ("CHAR", "text"), ("CLOB", "text"), ("TEXT", "text"), ("BLOB", "binary"), ("REAL", "float"), ("FLOA", "float"),
    ("DOUB", "float"), ("DEC", "decimal"), ("NUM", "decimal"),
)  # fmt: skip
_WORD: Final = re.compile(r'"(?:[^"]|"")+"|\[[^\]]+\]|`[^`]+`|[^\W\d]\w*')
_SIZES: Final = re.compile(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_QUOTED: Final = r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\[[^\]]*\]|`[^`]*`|--[^\n]*|/\*.*?\*/"""
_CHECK: Final = re.compile(_QUOTED + r"|(?P<check>\bCHECK\s*\()", re.I | re.S)
_PARTS: Final = re.compile(_QUOTED + r"|[()]", re.S)
_COMPUTED: Final = (2, 3)  # hidden: virtual and stored generated columns
_HIDDEN: Final = 1  # of virtual tables


def entities(connection: sqlite3.Connection) -> list[Entity]:
    """Every table and view, by name."""
    columns: defaultdict[str, list[Any]] = defaultdict(list)
    relations: defaultdict[str, list[Any]] = defaultdict(list)
    uniques: defaultdict[str, list[Any]] = defaultdict(list)
    indexes: defaultdict[str, list[Any]] = defaultdict(list)
    for found, query in (
        (columns, _COLUMNS),
        (relations, _RELATIONS),
        (uniques, _UNIQUES),
        (indexes, _CONDITIONAL),
    ):
        for name, *row in connection.execute(query):
            found[name].append(row)
    keys = {name: _keys(rows) for name, rows in columns.items()}
    return [
        replace(
            _entity(
                name,
                sort,
                text or "",
                columns[name],
                _relations(relations[name], keys),
                _grouped(uniques[name]),
            ),
            unique_indexes=_unique_indexes(indexes[name], [row[0] for row in columns[name]]),
        )
        for name, sort, text in connection.execute(_TABLES)
    ]


def _keys(rows: list[Any]) -> tuple[str, ...]:
    return tuple(row[0] for row in sorted((row for row in rows if row[4]), key=lambda row: row[4]))


def _grouped(rows: list[Any]) -> list[tuple[str, ...]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for index, column in rows:
        found[index].append(column)
    # A part of an index over an expression has no name.
    return [tuple(columns) for columns in found.values() if None not in columns]


def _unique_indexes(rows: list[Any], names: list[str]) -> tuple[UniqueIndex, ...]:
    """Unique indexes with a condition or over expressions, from their statements."""
    parts: defaultdict[tuple[str, str], list[str | None]] = defaultdict(list)
    for index, column, text in rows:
        parts[index, text].append(column)
    found = []
    for (_, text), columns in parts.items():
        pieces = re.split(r"\bWHERE\b", text, maxsplit=1, flags=re.I)
        condition = pieces[1].strip() if len(pieces) > 1 else ""
        plain = tuple(column for column in columns if column is not None)
        if len(plain) < len(columns):
            words = {word.strip('"[]`').casefold() for word in _WORD.findall(pieces[0].partition("(")[2])}
            plain += tuple(one for one in names if one.casefold() in words and one not in plain)
        if plain and (condition or None in columns):
            found.append(UniqueIndex(plain, condition))
    return tuple(found)


def _relations(rows: list[Any], keys: dict[str, tuple[str, ...]]) -> list[Relation]:
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for number, *row in rows:
        found[number].append(row)
    return [
        Relation(
            f"fk_{number}",
            tuple(row[0] for row in parts),
            parts[0][1],
            keys.get(parts[0][1], ()) if parts[0][2] is None else tuple(row[2] for row in parts),
        )
        for number, parts in sorted(found.items(), reverse=True)  # SQLite numbers foreign keys from the last
    ]


def _entity(
    name: str,
    sort: str,
    text: str,
    rows: list[Any],
    relations: list[Relation],
    uniques: list[tuple[str, ...]],
) -> Entity:
    keys = _keys(rows)
    alone = {one[0] for one in (*uniques, keys) if len(one) == 1}
    bare = re.search(r"\)[^)]*\bWITHOUT\s+ROWID\b[^)]*$", text, re.I) is None
    counted = keys[0] if len(keys) == 1 and bare and sort == "table" else None
    fields = []
    for column, declared, not_null, default, _, hidden in rows:
        if hidden == _HIDDEN:
            continue
        rowid = column == counted and declared.upper() == "INTEGER"
        kind, sizes = _kind(declared), _SIZES.search(declared)
        first, second = (int(size) if size else None for size in sizes.groups()) if sizes else (None, None)
        fields.append(
            Column(
                column,
                kind,
                declared,
                nullable=not (not_null or rowid or (not bare and column in keys)),
                max_length=first if kind in ("text", "binary") else None,
                precision=first if kind == "decimal" else None,
                scale=(second or 0) if kind == "decimal" and first is not None else None,
                bits=64 if kind == "integer" else None,
                key=column in keys,
                unique=column in alone,
                generated="computed" if hidden in _COMPUTED else "identity" if rowid else "",
                default=default,
            )
        )
    view: Literal["view", "table"] = "view" if sort == "view" else "table"
    return Entity(
        name, (name,), tuple(fields), view, keys, tuple(uniques), tuple(relations), tuple(_checks(text))
    )


def _kind(declared: str) -> ColumnType:
    upper = declared.upper()
    return next((kind for word, kind in _WORDS if word in upper), "other")


def _checks(text: str) -> Iterator[str]:
    """Yield the condition of each CHECK in a CREATE TABLE statement."""
    for match in _CHECK.finditer(text):
        if not match["check"]:
            continue
        depth = 1
        for part in _PARTS.finditer(text, match.end()):
            depth += {"(": 1, ")": -1}.get(part[0], 0)
            if not depth:
                yield text[match.end() : part.start()].strip()
                break
