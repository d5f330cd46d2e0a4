"""Read the tables of a PostgreSQL database from its catalog, with ten queries at most, regardless of their number.

Types, lengths and precisions are decoded as in the server's information schema (PostgreSQL, "System
Catalogs": pg_attribute.atttypmod).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import psycopg

from webapp.connectors.schema import (
    Column,
    ColumnType,
    Entity,
    Relation,
    UniqueIndex,
    by_stored_columns,
    named_columns,
)
from webapp.connectors.sql.base import find_entity

_TABLES: Final = """
SELECT c.oid, n.nspname, c.relname, c.relkind::text, obj_description(c.oid, 'pg_class')
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_(toast|temp)'
  AND has_schema_privilege(n.oid, 'USAGE')
  AND (has_any_column_privilege(c.oid, 'SELECT, INSERT, UPDATE') OR has_table_privilege(c.oid, 'DELETE'))
  AND (%(name)s::text IS NULL OR c.relname = %(name)s) AND (%(schema)s::text IS NULL OR n.nspname = %(schema)s)
ORDER BY n.nspname <> %(own)s, n.nspname, c.relname
"""
_COLUMNS: Final = """
SELECT a.attrelid, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.atttypid, a.atttypmod,
  a.attnotnull, a.attidentity::text, a.attgenerated::text, pg_get_expr(d.adbin, d.adrelid),
  col_description(a.attrelid, a.attnum)
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = ANY(%(tables)s) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""
# The types of these columns, with the base types of domains and the item types of arrays.
_TYPES: Final = """
WITH RECURSIVE used(oid) AS (
  SELECT DISTINCT atttypid FROM pg_attribute WHERE attrelid = ANY(%(tables)s) AND attnum > 0 AND NOT attisdropped
  UNION
  SELECT part FROM used JOIN pg_type t ON t.oid = used.oid
  CROSS JOIN LATERAL (VALUES (t.typbasetype), (CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE 0 END)) p(part)
  WHERE part <> 0
)
SELECT t.oid, t.typname, t.typtype::text, t.typbasetype, t.typtypmod, t.typnotnull,
  CASE WHEN t.typcategory = 'A' THEN t.typelem ELSE 0 END,
  CASE WHEN t.typtype = 'e' THEN ARRAY(
    SELECT e.enumlabel::text FROM pg_enum e WHERE e.enumtypid = t.oid ORDER BY e.enumsortorder) END
FROM used JOIN pg_type t ON t.oid = used.oid
"""
_CONSTRAINTS: Final = """
SELECT k.conrelid, k.contype::text, k.conname, k.conkey, n.nspname, f.relname,
  ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY u(num, place)
        JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.num ORDER BY u.place),
  CASE WHEN k.contype = 'c' THEN pg_get_constraintdef(k.oid, true) END
FROM pg_constraint k LEFT JOIN pg_class f ON f.oid = k.confrelid LEFT JOIN pg_namespace n ON n.oid = f.relnamespace
WHERE k.conrelid = ANY(%(tables)s) AND k.contype IN ('p', 'u', 'f', 'c') ORDER BY k.conrelid, k.conname
"""
_DOMAIN_CHECKS: Final = """
SELECT contypid, pg_get_constraintdef(oid, true) FROM pg_constraint
WHERE contypid = ANY(%(types)s) AND contype = 'c' ORDER BY contypid, conname
"""
_INDEXES: Final = """
SELECT i.indrelid, (i.indkey::int2[])[0:i.indnkeyatts - 1] FROM pg_index i
WHERE i.indrelid = ANY(%(tables)s) AND i.indisunique AND NOT i.indisprimary AND i.indisvalid
  AND i.indpred IS NULL AND i.indexprs IS NULL
  AND NOT EXISTS (SELECT FROM pg_constraint k WHERE k.conindid = i.indexrelid AND k.contype = 'u')
ORDER BY i.indexrelid
"""
# Unique indexes with a condition or expressions, and exclusion constraints: of those, the columns compared by =.
_CONDITIONAL: Final = """
SELECT i.indrelid,
  ARRAY(SELECT a.attname::text FROM unnest((i.indkey::int2[])[0:i.indnkeyatts - 1]) WITH ORDINALITY u(num, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = u.num
        WHERE k.oid IS NULL OR 1 = ALL (SELECT count(*) FROM pg_operator o
          WHERE o.oid = k.conexclop[u.place] AND o.oprname = '=') ORDER BY u.place),
  pg_get_expr(i.indexprs, i.indrelid), pg_get_expr(i.indpred, i.indrelid)
FROM pg_index i LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid AND k.contype = 'x'
WHERE i.indrelid = ANY(%(tables)s) AND i.indisvalid
  AND (k.oid IS NOT NULL OR i.indisunique AND (i.indpred IS NOT NULL OR i.indexprs IS NOT NULL))
ORDER BY i.indexrelid
"""
# Functions of triggers that run for each inserted row.
_TRIGGERS: Final = """
SELECT DISTINCT t.tgrelid, p.prosrc FROM pg_trigger t JOIN pg_proc p ON p.oid = t.tgfoid
WHERE t.tgrelid = ANY(%(tables)s) AND NOT t.tgisinternal AND t.tgenabled <> 'D' AND t.tgtype & 5 = 5
"""
# Functions that functions of triggers may call.
_FUNCTIONS: Final = """
SELECT p.proname, p.prosrc FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE l.lanname IN ('sql', 'plpgsql') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') ORDER BY p.oid
"""
# Partitioned tables with the first column of the key (null: an expression), and their partitions, if there are any.
_PARTITIONS: Final = """
SELECT p.partrelid, a.attname::text, p.partstrat::text, pg_get_expr(c.relpartbound, c.oid), c.oid
FROM pg_partitioned_table p LEFT JOIN pg_inherits i ON i.inhparent = p.partrelid
LEFT JOIN pg_class c ON c.oid = i.inhrelid
LEFT JOIN pg_attribute a ON a.attrelid = p.partrelid AND a.attnum = p.partattrs[0]
WHERE p.partrelid = ANY(%(tables)s) ORDER BY c.oid
"""
_NO_PARTITION: Final = "It is partitioned and has no partition yet, so it cannot store a row."
_SAME_NAME: Final = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE lower(c.relname) = lower(%(name)s) OR lower(n.nspname || '.' || c.relname) = lower(%(name)s)
"""

# Types by pg_type.typname.
_KINDS: Final[Mapping[str, ColumnType]] = {
    "int2": "integer", "int4": "integer", "int8": "integer", "numeric": "decimal", "money": "other",
    "float4": "float", "float8": "float", "bool": "boolean", "date": "date", "time": "time", "timetz": "other",
    "timestamp": "timestamp", "timestamptz": "timestamptz", "interval": "interval", "uuid": "uuid",
    "bytea": "binary", "json": "json", "jsonb": "json", "text": "text", "varchar": "text", "bpchar": "text",
    "name": "text", "citext": "text",
}  # fmt: skip
_BOUND: Final = re.compile(
    r"FOR VALUES (?:IN \((?P<list>.*)\)|FROM \((?P<low>.*)\) TO \((?P<high>.*)\))", re.S
)
_INSERT: Final = re.compile(r'\binsert\s+into\s+((?:[\w$]+|"[^"]+")(?:\.(?:[\w$]+|"[^"]+"))?)', re.I)
_BITS: Final = {"int2": 16, "int4": 32, "int8": 64}
_HEADER: Final = 4  # the typmod of text or numeric includes the four bytes of the length header


@dataclass(frozen=True, slots=True)
class _Type:
    name: str
    sort: str
    base: int
    modifier: int
    not_null: bool
    items: int
    labels: list[str] | None


class Catalog:
    """Reads tables through a connection. Tables of the schema `own` have plain names."""

    def __init__(self, connection: psycopg.Connection[Any], own: str) -> None:
        self._connection, self._own_schema = connection, own

    def entities(self, schema: str | None = None, name: str | None = None) -> list[Entity]:
        """Return tables and views that the account can use, those of its own schema first, optionally only
        those of one name.

        Partitions are represented by their parent.
        """
        values = {"name": name, "schema": schema, "own": self._own_schema}
        tables = self._rows(_TABLES, values)
        if not tables:
            return []
        selected = {"tables": [row[0] for row in tables]}
        types = {row[0]: _Type(*row[1:]) for row in self._rows(_TYPES, selected)}
        columns = _group_by_table(self._rows(_COLUMNS, selected))
        constraints = _group_by_table(self._rows(_CONSTRAINTS, selected))
        used = [oid for oid, kind in types.items() if kind.sort == "d"]
        domains = _group_by_table(self._rows(_DOMAIN_CHECKS, {"types": used}) if used else [])
        indexes = _group_by_table(self._rows(_INDEXES, selected))
        conditional = _group_by_table(self._rows(_CONDITIONAL, selected))
        partitions = _group_by_table(self._rows(_PARTITIONS, selected))
        result = []
        for row in tables:
            built = self._entity(row, columns[row[0]], constraints[row[0]], indexes[row[0]], types)
            names = [item[2] for item in columns[row[0]]]
            unique = []
            for _, column_names, expressions, condition in conditional[row[0]]:
                compared = tuple(dict.fromkeys((*column_names, *named_columns([expressions or ""], names))))
                if compared:
                    unique.append(UniqueIndex(compared, condition or ""))
            checks = (
                *built.checks,
                *_domain_checks(columns[row[0]], types, domains),
                *_partition_checks(partitions[row[0]]),
            )
            obstacle = _NO_PARTITION if any(item[4] is None for item in partitions[row[0]]) else ""
            built = replace(
                built, unique_indexes=tuple(dict.fromkeys(unique)), checks=checks, obstacle=obstacle
            )
            computed = {item[2]: item[9] for item in columns[row[0]] if item[8] and item[9]}
            result.append(by_stored_columns(built, computed) if computed else built)
        triggers = _group_by_table(self._rows(_TRIGGERS, selected))
        functions = dict(self._rows(_FUNCTIONS, {})) if triggers else {}
        texts = {table: _with_called([row[1] for row in rows], functions) for table, rows in triggers.items()}
        # The table whose trigger inserts the rows of another table: their keys are the same.
        filled = {}
        for row, entity in zip(tables, result, strict=True):
            targets = {name.replace('"', "").casefold() for name in _INSERT.findall(texts.get(row[0], ""))}
            for other in result if targets else ():
                is_child = any(
                    relation.columns == other.keys and relation.entity == entity.name
                    for relation in other.relations
                )
                if is_child and {other.name.casefold(), other.parts[-1].casefold()} & targets:
                    filled[other.name] = entity.name
        return [replace(item, filled_by=filled.get(item.name, "")) for item in result]

    def entity(self, name: str) -> Entity | None:
        """Return the table with this `Entity.name`, or else the only one whose name differs only in case."""
        entities = self.entities(self._own_schema, name)
        parts = name.split(".")
        for length in range(1, len(parts)):
            entities = entities or self.entities(".".join(parts[:length]), ".".join(parts[length:]))
        if entities:
            return entities[0]
        candidates = self._rows(_SAME_NAME, {"name": name})
        return find_entity([entity for pair in candidates for entity in self.entities(*pair)], name)

    def _rows(self, query: str, values: Mapping[str, Any]) -> list[Any]:
        return self._connection.execute(query, values).fetchall()

    def name_of(self, schema: str, name: str) -> str:
        """Return the `Entity.name` of a table."""
        return name if schema == self._own_schema else f"{schema}.{name}"

    def _entity(
        self,
        row: Any,
        columns: list[Any],
        constraints: list[Any],
        indexes: list[Any],
        types: Mapping[int, _Type],
    ) -> Entity:
        _, schema, name, table_kind, comment = row
        names = {column[1]: column[2] for column in columns}
        keys: tuple[str, ...] = ()
        uniques: list[tuple[str, ...]] = []
        relations: list[Relation] = []
        checks: list[str] = []
        for _, kind, label, numbers, other_schema, other, other_columns, check in constraints:
            own_columns = tuple(names[number] for number in numbers or ())
            if kind == "p":
                keys = own_columns
            elif kind == "u":
                uniques.append(own_columns)
            elif kind == "f":
                relations.append(
                    Relation(label, own_columns, self.name_of(other_schema, other), tuple(other_columns))
                )
            else:
                checks.append(_condition(check))
        uniques += [tuple(names[number] for number in numbers) for _, numbers in indexes]
        single = {item[0] for item in (*uniques, keys) if len(item) == 1}
        return Entity(
            self.name_of(schema, name),
            (schema, name),
            tuple(_column(column, types, keys, single) for column in columns),
            "view" if table_kind in "vm" else "table",
            keys,
            tuple(dict.fromkeys(uniques)),
            tuple(relations),
            tuple(checks),
            comment or "",
        )


def _with_called(texts: list[str], functions: Mapping[str, str]) -> str:
    """Return the texts of functions with those of the functions that they call, directly or through others."""
    remaining, collected, pending = (
        {name.casefold(): text for name, text in functions.items()},
        [*texts],
        [*texts],
    )
    while pending:
        words = {word.casefold() for word in _WORD.findall(pending.pop())}
        called = [remaining.pop(name) for name in words & remaining.keys()]
        collected, pending = collected + called, pending + called
    return " ".join(collected)


_WORD: Final = re.compile(r"[^\W\d][\w$]*")


def _condition(check: str) -> str:
    return check.removesuffix(" NOT VALID").removeprefix("CHECK ").removeprefix("(").removesuffix(")")


def _domain_checks(
    columns: Sequence[Any], types: Mapping[int, _Type], checks: Mapping[int, list[Any]]
) -> list[str]:
    """Return the checks of the domains of columns, as checks of the table."""
    result = []
    for column in columns:
        quoted = '"' + column[2].replace('"', '""') + '"'
        oid = column[4]
        while oid in types:
            result += [_column_check(check, quoted) for _, check in checks.get(oid, ())]
            oid = types[oid].base
    return result


def _column_check(check: str, quoted: str) -> str:
    return _VALUE.sub(lambda part: part[1] or quoted, _condition(check))


_VALUE: Final = re.compile(r"('(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")|\bVALUE\b")
"""The word for the value in the check of a domain; texts and quoted names are kept."""


def _partition_checks(rows: Sequence[Any]) -> list[str]:
    """Return the condition of partitions by list or range on the first column of their key, as a check. Gaps between
    ranges are not considered; a default partition accepts all rows."""
    if (
        not rows
        or rows[0][2] not in "lr"
        or any(row[1] is None or row[3] in (None, "DEFAULT") for row in rows)
    ):
        return []
    column = '"' + rows[0][1].replace('"', '""') + '"'
    bounds = [_BOUND.fullmatch(row[3]) for row in rows]
    if None in bounds:
        return []
    if rows[0][2] == "l":
        values = ", ".join(dict.fromkeys(bound["list"] for bound in bounds if bound and bound["list"]))
        return [f"{column} IN ({values})"] if values and "NULL" not in values.split(", ") else []
    low = [_first(bound["low"]) for bound in bounds if bound and bound["low"]]
    high = [_first(bound["high"]) for bound in bounds if bound and bound["high"]]
    checks = []
    if low and "MINVALUE" not in low:
        checks.append(f"{column} >= {min(low, key=_sortable)}")
    if high and "MAXVALUE" not in high:
        checks.append(f"{column} < {max(high, key=_sortable)}")
    return checks


def _first(bound: str) -> str:
    """Return the first value of the bound of a range: text in quotes, or a number."""
    match = re.match(r"'(?:[^']|'')*'|[^,]+", bound)
    return match[0].strip() if match else bound


def _sortable(value: str) -> tuple[Decimal, str]:
    try:
        return Decimal(value.strip("'")), ""
    except InvalidOperation:
        return Decimal(0), value


def _group_by_table(rows: Sequence[Any]) -> defaultdict[int, list[Any]]:
    groups: defaultdict[int, list[Any]] = defaultdict(list)
    for row in rows:
        groups[row[0]].append(row)
    return groups


def _column(row: Any, types: Mapping[int, _Type], keys: tuple[str, ...], single: set[str]) -> Column:
    _, _, name, declared, oid, modifier, not_null, identity, computed, default, comment = row
    generated = "computed" if computed else ""
    if identity or (default or "").startswith("nextval("):
        generated = "identity"
    column = Column(
        name,
        "other",
        declared,
        nullable=not (not_null or any(base.not_null for base in _bases(oid, types))),
        key=name in keys,
        unique=name in single,
        generated=generated,
        default=None if generated else default,
        comment=comment or "",
    )
    return replace(column, **_shape(oid, modifier, types))


def _bases(oid: int, types: Mapping[int, _Type]) -> Iterator[_Type]:
    """Yield a type, and the types that it is a domain over."""
    while oid in types:
        yield types[oid]
        oid = types[oid].base


def _shape(oid: int, modifier: int, types: Mapping[int, _Type]) -> dict[str, Any]:
    """Return the fields of `Column` that follow from a type."""
    for kind in _bases(oid, types):
        if kind.sort == "d":
            modifier = kind.modifier
    if kind.labels is not None:
        return {"type": "enum", "choices": tuple(kind.labels)}
    if kind.items:
        return {"type": "array", "items": _shape(kind.items, modifier, types)["type"]}
    shape: dict[str, Any] = {"type": _KINDS.get(kind.name, "other")}
    if kind.name in _BITS:
        shape["bits"] = _BITS[kind.name]
    elif kind.name in ("varchar", "bpchar") and modifier >= _HEADER:
        shape["max_length"] = modifier - _HEADER
    elif kind.name == "name":
        shape["max_length"] = 63
    elif kind.name == "numeric" and modifier >= _HEADER:
        # The scale has eleven bits, signed since PostgreSQL 15, below sixteen bits of precision.
        scale = (modifier - _HEADER) & 0x7FF
        shape |= {"precision": (modifier - _HEADER) >> 16 & 0xFFFF, "scale": (scale ^ 1024) - 1024}
    return shape
