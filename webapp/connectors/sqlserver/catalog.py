"""Read the tables of a SQL Server database from its catalog views, with five queries for any number of tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from webapp.connectors.schema import Column, ColumnType, Entity, Relation, UniqueIndex, by_stored_columns

RunQuery = Callable[[str], Sequence[Sequence[Any]]]
_BITS: Final = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_TYPES: Final[Mapping[str, ColumnType]] = {
    **dict.fromkeys(_BITS, "integer"),
    **dict.fromkeys(("decimal", "numeric", "money", "smallmoney"), "decimal"),
    **dict.fromkeys(("float", "real"), "float"),
    **dict.fromkeys(("char", "varchar", "nchar", "nvarchar", "text", "ntext", "sysname", "xml"), "text"),
    **dict.fromkeys(("binary", "varbinary", "image"), "binary"),
    **dict.fromkeys(("datetime", "datetime2", "smalldatetime"), "timestamp"),
    "bit": "boolean", "date": "date", "time": "time", "datetimeoffset": "timestamptz", "uniqueidentifier": "uuid",
    "json": "json", "timestamp": "binary", "rowversion": "binary",
}  # fmt: skip
_MONEY: Final = {"money": (19, 4), "smallmoney": (10, 4)}

_TABLES: Final = (
    "SELECT o.object_id, s.name, o.name, o.type FROM sys.objects o JOIN sys.schemas s ON s.schema_id = o.schema_id"
    " WHERE o.type IN ('U', 'V') AND o.is_ms_shipped = 0{where} ORDER BY s.name, o.name"
)
_COLUMNS: Final = (
    "SELECT c.object_id, c.name, t.name, c.max_length, c.precision, c.scale, c.is_nullable, c.is_identity,"
    " c.is_computed, d.definition, m.definition FROM sys.columns c"
    " JOIN sys.types t ON t.user_type_id = c.system_type_id"
    " JOIN sys.objects o ON o.object_id = c.object_id JOIN sys.schemas s ON s.schema_id = o.schema_id"
    " LEFT JOIN sys.default_constraints d ON d.object_id = c.default_object_id"
    " LEFT JOIN sys.computed_columns m ON m.object_id = c.object_id AND m.column_id = c.column_id"
    " WHERE o.type IN ('U', 'V') AND o.is_ms_shipped = 0{where} ORDER BY c.object_id, c.column_id"
)
_INDEXES: Final = (
    "SELECT i.object_id, i.name, i.is_primary_key, c.name, i.filter_definition FROM sys.indexes i"
    " JOIN sys.index_columns x ON x.object_id = i.object_id AND x.index_id = i.index_id AND x.is_included_column = 0"
    " JOIN sys.columns c ON c.object_id = x.object_id AND c.column_id = x.column_id"
    " JOIN sys.objects o ON o.object_id = i.object_id JOIN sys.schemas s ON s.schema_id = o.schema_id"
    " WHERE i.is_unique = 1 AND o.is_ms_shipped = 0{where}"
    " ORDER BY i.object_id, i.index_id, x.key_ordinal"
)
_RELATIONS: Final = (
    "SELECT f.parent_object_id, f.name, c.name, rs.name, r.name, rc.name FROM sys.foreign_keys f"
    " JOIN sys.foreign_key_columns k ON k.constraint_object_id = f.object_id"
    " JOIN sys.columns c ON c.object_id = k.parent_object_id AND c.column_id = k.parent_column_id"
    " JOIN sys.objects r ON r.object_id = f.referenced_object_id JOIN sys.schemas rs ON rs.schema_id = r.schema_id"
    " JOIN sys.columns rc ON rc.object_id = k.referenced_object_id AND rc.column_id = k.referenced_column_id"
    " JOIN sys.objects o ON o.object_id = f.parent_object_id JOIN sys.schemas s ON s.schema_id = o.schema_id"
    " WHERE o.is_ms_shipped = 0{where} ORDER BY f.parent_object_id, f.name, k.constraint_column_id"
)
_CHECKS: Final = (
    "SELECT k.parent_object_id, k.definition FROM sys.check_constraints k"
    " JOIN sys.objects o ON o.object_id = k.parent_object_id JOIN sys.schemas s ON s.schema_id = o.schema_id"
    " WHERE k.is_disabled = 0{where} ORDER BY k.parent_object_id, k.name"
)


def entities(run_query: RunQuery, default_schema: str, where: str = "") -> list[Entity]:
    """Return all tables and views that the account can see. `where` restricts `s.name` and `o.name`."""
    tables = run_query(_TABLES.format(where=where))
    if not tables:
        return []
    columns: dict[int, list[Column]] = defaultdict(list)
    computed: dict[int, dict[str, str]] = defaultdict(dict)
    for table, *details, expression in run_query(_COLUMNS.format(where=where)):
        columns[table].append(_column(*details))
        if expression:
            computed[table][details[0]] = expression
    keys: dict[int, tuple[str, ...]] = {}
    uniques: dict[int, dict[str, list[str]]] = defaultdict(dict)
    filtered: dict[int, dict[tuple[str, str], list[str]]] = defaultdict(dict)
    for table, index, primary, column, condition in run_query(_INDEXES.format(where=where)):
        if primary:
            keys[table] = (*keys.get(table, ()), column)
        elif condition:
            filtered[table].setdefault((index, condition), []).append(column)
        else:
            uniques[table].setdefault(index, []).append(column)
    pairs: dict[tuple[int, str], tuple[str, list[str], list[str]]] = {}
    for table, name, column, to_schema, to_table, to_column in run_query(_RELATIONS.format(where=where)):
        pair = pairs.setdefault((table, name), (name_of(to_schema, to_table, default_schema), [], []))
        pair[1].append(column)
        pair[2].append(to_column)
    relations: dict[int, list[Relation]] = defaultdict(list)
    for (table, name), (to, referencing, referenced) in pairs.items():
        relations[table].append(Relation(name, tuple(referencing), to, tuple(referenced)))
    checks: dict[int, list[str]] = defaultdict(list)
    for table, definition in run_query(_CHECKS.format(where=where)):
        checks[table].append(definition)
    result = []
    for table, schema, name, kind in tables:
        others = tuple(dict.fromkeys(tuple(unique) for unique in uniques[table].values()))
        single = {other[0] for other in (keys.get(table, ()), *others) if len(other) == 1}
        fields = (
            replace(column, key=column.name in keys.get(table, ()), unique=column.name in single)
            for column in columns[table]
        )
        entity = Entity(
            name_of(schema, name, default_schema),
            (schema, name),
            tuple(fields),
            "view" if kind.strip() == "V" else "table",
            keys.get(table, ()),
            others,
            tuple(relations[table]),
            tuple(checks[table]),
            unique_indexes=tuple(
                UniqueIndex(tuple(names), condition) for (_, condition), names in filtered[table].items()
            ),
        )
        result.append(by_stored_columns(entity, computed[table]) if computed[table] else entity)
    return sorted(result, key=lambda item: (item.parts[0] != default_schema, item.parts))


def name_of(schema: str, name: str, default_schema: str) -> str:
    """Return the `Entity.name`: the plain name in the account's own schema."""
    return name if schema == default_schema else f"{schema}.{name}"


def _column(
    name: str, kind: str, length: int, precision: int, scale: int, nullable: Any, identity: Any, computed: Any,
    default: str | None,
) -> Column:  # fmt: skip
    type_ = _TYPES.get(kind, "other")
    # In bytes; -1 means (max), and for ntext it is the size of a pointer.
    is_unicode = kind in ("nchar", "nvarchar", "sysname")
    has_size = kind in ("char", "varchar", "binary", "varbinary") or is_unicode
    chars = (length // 2 if is_unicode else length) if has_size and length > 0 else None
    precision, scale = _MONEY.get(kind, (precision, scale))
    declared = kind
    if has_size:
        declared = f"{kind}({chars or 'max'})"
    elif type_ == "decimal" and kind not in _MONEY:
        declared = f"{kind}({precision},{scale})"
    elif kind in ("datetime2", "datetimeoffset", "time"):
        declared = f"{kind}({scale})"
    is_row_version = kind in ("timestamp", "rowversion")
    return Column(
        name,
        type_,
        declared,
        nullable=bool(nullable),
        max_length=chars,
        precision=precision if type_ == "decimal" else None,
        scale=scale if type_ == "decimal" else None,
        bits=_BITS.get(kind),
        unsigned=kind == "tinyint",
        generated="identity" if identity else "computed" if computed or is_row_version else "",
        default=default,
    )
