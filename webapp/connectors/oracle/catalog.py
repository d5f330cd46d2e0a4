"""Read the tables of an Oracle database from its dictionary (ALL_* views), with four queries for any number
of tables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
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

RunQuery = Callable[[str, Sequence[Any]], Sequence[Sequence[Any]]]
_TYPES: Final[Mapping[str, ColumnType]] = {
    **dict.fromkeys(("CHAR", "NCHAR", "VARCHAR2", "NVARCHAR2", "CLOB", "NCLOB", "LONG"), "text"),
    **dict.fromkeys(("RAW", "BLOB", "LONG RAW"), "binary"),
    **dict.fromkeys(("FLOAT", "BINARY_FLOAT", "BINARY_DOUBLE"), "float"),
    "DATE": "date", "JSON": "json", "BOOLEAN": "boolean",
}  # fmt: skip
_SIZED: Final = ("CHAR", "NCHAR", "VARCHAR2", "NVARCHAR2")
_NOT_NULL: Final = re.compile(r'"[^"]+" IS NOT NULL')

_SYSTEM_SCHEMAS: Final = "(SELECT username FROM all_users WHERE oracle_maintained = 'Y')"
_COLUMNS: Final = (
    "SELECT c.owner, c.table_name, o.object_type, c.column_name, c.data_type, c.char_length, c.data_length,"
    " c.data_precision, c.data_scale, c.nullable, c.data_default, c.identity_column, c.virtual_column"
    " FROM all_tab_cols c JOIN all_objects o ON o.owner = c.owner AND o.object_name = c.table_name"
    " WHERE o.object_type IN ('TABLE', 'VIEW') AND c.hidden_column = 'NO' AND {where}"
    " ORDER BY c.owner, c.table_name, c.column_id"
)
_CONSTRAINTS: Final = (
    "SELECT c.owner, c.table_name, c.constraint_name, c.constraint_type, x.column_name, r.owner, r.table_name,"
    " rx.column_name, c.search_condition_vc FROM all_constraints c"
    " JOIN all_cons_columns x ON x.owner = c.owner AND x.constraint_name = c.constraint_name"
    " LEFT JOIN all_constraints r ON r.owner = c.r_owner AND r.constraint_name = c.r_constraint_name"
    " LEFT JOIN all_cons_columns rx ON rx.owner = r.owner AND rx.constraint_name = r.constraint_name"
    " AND rx.position = x.position"
    " WHERE c.constraint_type IN ('P', 'U', 'R', 'C') AND c.status = 'ENABLED' AND {where}"
    " ORDER BY c.owner, c.table_name, c.constraint_name, x.position"
)
# Unique indexes that belong to no constraint; an expression replaces the name of its hidden column.
_INDEXES: Final = (
    "SELECT c.table_owner, c.table_name, c.index_name, c.column_name, e.column_expression FROM all_indexes i"
    " JOIN all_ind_columns c ON c.index_owner = i.owner AND c.index_name = i.index_name"
    " LEFT JOIN all_ind_expressions e ON e.index_owner = c.index_owner AND e.index_name = c.index_name"
    " AND e.column_position = c.column_position"
    " WHERE i.uniqueness = 'UNIQUE' AND NOT EXISTS (SELECT 1 FROM all_constraints k"
    " WHERE k.owner = i.table_owner AND k.index_name = i.index_name AND k.constraint_type IN ('P', 'U'))"
    " AND {where} ORDER BY c.index_owner, c.index_name, c.column_position"
)


def entities(run_query: RunQuery, default_schema: str, name_filter: str = "") -> list[Entity]:
    """Return the tables and views outside of Oracle's schemas that the account can see, or those with a name,
    ignoring case."""
    where, values = f"c.owner NOT IN {_SYSTEM_SCHEMAS}", []
    if name_filter:
        where = "(LOWER(c.table_name) = :1 AND c.owner = :2 OR LOWER(c.owner || '.' || c.table_name) = :3)"
        values = [name_filter.lower(), default_schema, name_filter.lower()]
    columns: dict[tuple[str, str], list[Column]] = defaultdict(list)
    kinds: dict[tuple[str, str], str] = {}
    computed: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for owner, table, kind, *details in run_query(_COLUMNS.format(where=where), values):
        kinds[owner, table] = kind
        columns[owner, table].append(column := _column(*details))
        if column.generated == "computed":
            computed[owner, table][column.name] = str(details[7] or "")
    constraints: dict[tuple[str, str], list[Sequence[Any]]] = defaultdict(list)
    for owner, table, *details in run_query(_CONSTRAINTS.format(where=where), values):
        constraints[owner, table].append(details)
    indexes: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(dict)
    index_where = where.replace("c.owner", "c.table_owner")
    for owner, table, index, name, expression in run_query(_INDEXES.format(where=index_where), values):
        part = name if expression is None else str(expression)
        indexes[owner, table].setdefault(index, []).append(part)
    result = [
        by_stored_columns(
            _entity(
                table_id,
                default_schema,
                kinds[table_id],
                fields,
                constraints[table_id],
                indexes[table_id].values(),
            ),
            computed[table_id],
        )
        for table_id, fields in columns.items()
    ]
    return sorted(result, key=lambda entity: (len(entity.parts) > 1, entity.parts))


def name_of(owner: str, table: str, default_schema: str) -> str:
    """Return the `Entity.name`: the plain name in the account's own schema."""
    return table if owner == default_schema else f"{owner}.{table}"


def _column(
    name: str, kind: str, chars: int | None, octets: int | None, precision: int | None, scale: int | None,
    nullable: str, default: Any, identity: str, virtual: str,
) -> Column:  # fmt: skip
    base_type = kind.partition("(")[0]
    type_: ColumnType = _TYPES.get(base_type, "other")
    declared = kind
    if kind == "NUMBER":
        type_ = "integer" if scale == 0 else "decimal"
        declared = "NUMBER" if precision is None else f"NUMBER({precision},{scale or 0})"
    elif base_type == "TIMESTAMP":
        type_ = "timestamptz" if "TIME ZONE" in kind else "timestamp"
    elif base_type.startswith("INTERVAL"):
        type_ = "interval"
    elif base_type in _SIZED:
        declared = f"{kind}({chars} CHAR)" if not base_type.startswith("N") else f"{kind}({chars})"
    elif base_type == "RAW":
        type_, declared = ("uuid" if octets == 16 else "binary"), f"RAW({octets})"
    return Column(
        name,
        type_,
        declared,
        nullable=nullable == "Y",
        max_length=chars
        if base_type in _SIZED
        else octets
        if base_type == "RAW" and type_ == "binary"
        else None,
        precision=precision if type_ in ("integer", "decimal") else None,
        scale=scale if type_ == "decimal" and precision is not None else None,
        generated="identity" if identity == "YES" else "computed" if virtual == "YES" else "",
        default=str(default).strip()
        if default is not None and virtual != "YES" and identity != "YES"
        else None,
    )


def _entity(
    table_id: tuple[str, str],
    default_schema: str,
    kind: str,
    fields: Sequence[Column],
    constraints: Sequence[Sequence[Any]],
    indexes: Iterable[Sequence[str]],
) -> Entity:
    keys: list[str] = []
    uniques: dict[str, list[str]] = defaultdict(list)
    relations: dict[str, tuple[str, list[str], list[str]]] = {}
    checks: dict[str, str] = {}
    for name, constraint_type, column, to_owner, to_table, to_column, condition in constraints:
        if constraint_type == "P":
            keys.append(column)
        elif constraint_type == "U":
            uniques[name].append(column)
        elif constraint_type == "R" and to_table:
            relation = relations.setdefault(name, (name_of(to_owner, to_table, default_schema), [], []))
            relation[1].append(column)
            relation[2].append(to_column)
        elif constraint_type == "C" and condition and not _NOT_NULL.fullmatch(condition.strip()):
            checks[name] = condition
    names = [column.name for column in fields]
    compared: list[UniqueIndex] = []
    for number, parts in enumerate(indexes):
        if set(parts) <= set(names):
            uniques[f"index {number}"] = list(parts)
        elif columns := named_columns([part if part not in names else f'"{part}"' for part in parts], names):
            compared.append(UniqueIndex(columns))
    single = {item[0] for item in (keys, *uniques.values()) if len(item) == 1}
    return Entity(
        name_of(*table_id, default_schema),
        (table_id[1],) if table_id[0] == default_schema else table_id,
        tuple(replace(column, key=column.name in keys, unique=column.name in single) for column in fields),
        "view" if kind == "VIEW" else "table",
        tuple(keys),
        tuple(dict.fromkeys(tuple(unique) for unique in uniques.values())),
        tuple(Relation(name, tuple(of), to, tuple(others)) for name, (to, of, others) in relations.items()),
        tuple(checks.values()),
        unique_indexes=tuple(dict.fromkeys(compared)),
    )
