"""Read the tables of a Db2 database from its catalog views (SYSCAT.*), with four queries for any number of
tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from webapp.connectors.schema import Column, ColumnType, Entity, Relation

RunQuery = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]
TableId = tuple[str, str]
"""Schema and table."""

_BITS: Final = {"SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
_SIZED: Final = (
    "CHARACTER",
    "VARCHAR",
    "CLOB",
    "GRAPHIC",
    "VARGRAPHIC",
    "DBCLOB",
    "BINARY",
    "VARBINARY",
    "BLOB",
)
_TYPES: Final[Mapping[str, ColumnType]] = {
    **dict.fromkeys(_BITS, "integer"),
    **dict.fromkeys(("DECIMAL", "DECFLOAT"), "decimal"),
    **dict.fromkeys(("REAL", "DOUBLE"), "float"),
    **dict.fromkeys(("CHARACTER", "VARCHAR", "LONG VARCHAR", "CLOB"), "text"),
    **dict.fromkeys(("GRAPHIC", "VARGRAPHIC", "LONG VARGRAPHIC", "DBCLOB"), "text"),
    **dict.fromkeys(("BINARY", "VARBINARY", "BLOB"), "binary"),
    "BOOLEAN": "boolean", "DATE": "date", "TIME": "time", "TIMESTAMP": "timestamp",
}  # fmt: skip
_VIEWS: Final = "VS"  # views, materialized query tables
_DECFLOAT: Final = {8: 16, 16: 34}  # bytes to digits

# Names that start with SYS belong to the server. Types: tables T and U (typed), N (of another server), and
# views.
_NO_SYSTEM_SCHEMAS: Final = "t.TABSCHEMA NOT LIKE 'SYS%'"
_COLUMNS: Final = (
    "SELECT RTRIM(t.TABSCHEMA), t.TABNAME, t.TYPE, t.REMARKS, c.COLNAME, RTRIM(c.TYPESCHEMA), c.TYPENAME, c.LENGTH,"
    " c.SCALE, c.CODEPAGE, c.TYPESTRINGUNITS, c.STRINGUNITSLENGTH, c.NULLS, c.DEFAULT, c.IDENTITY, c.GENERATED,"
    " c.REMARKS FROM SYSCAT.TABLES t"
    " JOIN SYSCAT.COLUMNS c ON c.TABSCHEMA = t.TABSCHEMA AND c.TABNAME = t.TABNAME"
    " WHERE t.TYPE IN ('T', 'U', 'N', 'V', 'S') AND c.HIDDEN <> 'S' AND {where}"
    " ORDER BY t.TABSCHEMA, t.TABNAME, c.COLNO"
)
_INDEXES: Final = (
    "SELECT RTRIM(t.TABSCHEMA), t.TABNAME, i.INDNAME, i.UNIQUERULE, x.COLNAME FROM SYSCAT.INDEXES i"
    " JOIN SYSCAT.INDEXCOLUSE x ON x.INDSCHEMA = i.INDSCHEMA AND x.INDNAME = i.INDNAME AND x.COLORDER <> 'I'"
    " JOIN SYSCAT.TABLES t ON t.TABSCHEMA = i.TABSCHEMA AND t.TABNAME = i.TABNAME"
    " WHERE i.UNIQUERULE IN ('P', 'U') AND i.NULLKEYS = 'Y' AND {where}"
    " ORDER BY t.TABSCHEMA, t.TABNAME, i.IID, x.COLSEQ"
)
_RELATIONS: Final = (
    "SELECT RTRIM(t.TABSCHEMA), t.TABNAME, r.CONSTNAME, k.COLNAME, RTRIM(r.REFTABSCHEMA), r.REFTABNAME, o.COLNAME"
    " FROM SYSCAT.REFERENCES r JOIN SYSCAT.TABLES t ON t.TABSCHEMA = r.TABSCHEMA AND t.TABNAME = r.TABNAME"
    " JOIN SYSCAT.KEYCOLUSE k ON k.CONSTNAME = r.CONSTNAME AND k.TABSCHEMA = r.TABSCHEMA AND k.TABNAME = r.TABNAME"
    " JOIN SYSCAT.KEYCOLUSE o ON o.CONSTNAME = r.REFKEYNAME AND o.TABSCHEMA = r.REFTABSCHEMA"
    " AND o.TABNAME = r.REFTABNAME AND o.COLSEQ = k.COLSEQ"
    " WHERE {where} ORDER BY t.TABSCHEMA, t.TABNAME, r.CONSTNAME, k.COLSEQ"
)
_CHECKS: Final = (
    "SELECT RTRIM(t.TABSCHEMA), t.TABNAME, c.TEXT FROM SYSCAT.CHECKS c"
    " JOIN SYSCAT.TABLES t ON t.TABSCHEMA = c.TABSCHEMA AND t.TABNAME = c.TABNAME"
    " WHERE c.TYPE = 'C' AND {where} ORDER BY t.TABSCHEMA, t.TABNAME, c.CONSTNAME"
)


def entities(run_query: RunQuery, default_schema: str, name_filter: str = "") -> list[Entity]:
    """Return all tables and views outside of the server's schemas, or those with a name, ignoring case.

    The catalog shows all tables of a database to every account, whether it can read them or not.
    """
    where, values = _NO_SYSTEM_SCHEMAS, []
    if name_filter:
        where = "(LOWER(t.TABNAME) = ? OR LOWER(RTRIM(t.TABSCHEMA) || '.' || t.TABNAME) = ?)"
        values = [name_filter.lower(), name_filter.lower()]
    tables: dict[TableId, tuple[str, str]] = {}
    columns: dict[TableId, list[Column]] = defaultdict(list)
    for schema, table, table_type, comment, *details in run_query(_COLUMNS.format(where=where), values):
        tables[schema, table] = (table_type, comment or "")
        columns[schema, table].append(_column(*details))
    if not tables:
        return []
    indexes: dict[tuple[TableId, str, str], list[str]] = defaultdict(list)
    for schema, table, index, rule, name in run_query(_INDEXES.format(where=where), values):
        indexes[(schema, table), index, rule].append(name)
    keys: dict[TableId, tuple[str, ...]] = {}
    uniques: dict[TableId, list[tuple[str, ...]]] = defaultdict(list)
    for (table_id, _, rule), names in indexes.items():
        if not set(names) <= {item.name for item in columns.get(table_id, ())}:
            continue  # an index on expressions
        if rule == "P":
            keys[table_id] = tuple(names)
        else:
            uniques[table_id].append(tuple(names))
    pairs: dict[tuple[TableId, str], tuple[str, list[str], list[str]]] = {}
    for schema, table, name, column, to_schema, to_table, to_column in run_query(
        _RELATIONS.format(where=where), values
    ):
        pair = pairs.setdefault(
            ((schema, table), name), (name_of(to_schema, to_table, default_schema), [], [])
        )
        pair[1].append(column)
        pair[2].append(to_column)
    relations: dict[TableId, list[Relation]] = defaultdict(list)
    for (table_id, name), (to, referencing, referenced) in pairs.items():
        relations[table_id].append(Relation(name, tuple(referencing), to, tuple(referenced)))
    checks: dict[TableId, list[str]] = defaultdict(list)
    for schema, table, text in run_query(_CHECKS.format(where=where), values):
        checks[schema, table].append(text)
    result = []
    for table_id, (table_type, comment) in tables.items():
        key, others = keys.get(table_id, ()), tuple(dict.fromkeys(uniques[table_id]))
        single = {other[0] for other in (key, *others) if len(other) == 1}
        fields = (
            replace(column, key=column.name in key, unique=column.name in single)
            for column in columns[table_id]
        )
        result.append(
            Entity(
                name_of(*table_id, default_schema),
                table_id,
                tuple(fields),
                "view" if table_type in _VIEWS else "table",
                key,
                others,
                tuple(relations[table_id]),
                tuple(checks[table_id]),
                comment,
            )
        )
    return sorted(result, key=lambda entity: (entity.parts[0] != default_schema, entity.parts))


def name_of(schema: str, table: str, default_schema: str) -> str:
    """Return the `Entity.name`: the plain name in the connection's own schema."""
    return table if schema == default_schema else f"{schema}.{table}"


def _column(
    name: str, family: str, kind: str, length: int, scale: int, codepage: int, units: str | None, chars: int | None,
    nullable: str, default: Any, identity: str, generated: str, comment: str | None,
) -> Column:  # fmt: skip
    is_builtin = family == "SYSIBM"  # otherwise a user-defined type, which accepts text
    type_: ColumnType = _TYPES.get(kind, "other") if is_builtin else "other"
    is_bit_data = (
        is_builtin and type_ == "text" and codepage == 0 and "GRAPHIC" not in kind and kind != "DBCLOB"
    )
    if is_bit_data:
        type_ = "binary"
    size = (chars if chars and not is_bit_data else length) if is_builtin and kind in _SIZED else None
    is_identity = identity == "Y"
    is_computed = generated == "A" and not is_identity
    return Column(
        name,
        type_,
        _declared_type(
            f"{family}.{kind}" if not is_builtin else kind,
            size,
            length,
            scale,
            units if not is_bit_data else "",
            is_bit_data,
        ),
        nullable=nullable == "Y",
        max_length=size,
        precision=length if kind == "DECIMAL" and is_builtin else None,
        scale=scale if kind == "DECIMAL" and is_builtin else None,
        bits=_BITS.get(kind) if is_builtin else None,
        generated="identity" if is_identity else "computed" if is_computed else "",
        default=str(default).strip() if default is not None and not is_identity and not is_computed else None,
        comment=comment or "",
    )


def _declared_type(
    kind: str, size: int | None, length: int, scale: int, units: str | None, is_bit_data: bool
) -> str:
    """Return a type as CREATE TABLE and CAST expect it."""
    if size is not None:
        unit = (
            f" {units}"
            if units in ("CODEUNITS16", "CODEUNITS32") and kind in ("CHARACTER", "VARCHAR", "CLOB")
            else ""
        )
        return f"{kind}({size}{unit})" + (" FOR BIT DATA" if is_bit_data else "")
    if kind == "DECIMAL":
        return f"DECIMAL({length},{scale})"
    if kind == "DECFLOAT":
        return f"DECFLOAT({_DECFLOAT.get(length, 34)})"
    return f"TIMESTAMP({scale})" if kind == "TIMESTAMP" else kind
