"""Values from a database: keys of a table, and the answers of queries, as far as they are few enough to be kept."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from webapp import limits
from webapp.connectors.base import ConnectorError, TableReader
from webapp.engine.outside import Ask, Question

_SPELLING: Final = "Check its spelling: the connection's metadata lists its tables."


def keys(session: TableReader, question: Question) -> pa.Table:
    """The distinct values of some columns of a table, without those that hold a null, in ascending order. Raises
    `ConnectorError`."""
    entity = session.entity(question["table"])
    if entity is None:
        raise ConnectorError(f'There is no table "{question["table"]}".', reason="no_table", hint=_SPELLING)
    names = [_column(entity, name) for name in question["columns"]]
    batches, count, size = [], 0, 0
    for batch in session.keys(entity, names, question["filter"]):
        batches.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if size > limits.FETCHED_BYTES:
            told = f'The keys of "{entity.name}" are larger than {limits.FETCHED_BYTES // limits.MB} MB.'
            raise ConnectorError(told, reason="too_large", hint="Choose among them by a filter.")
        if count > limits.FETCHED_KEYS:
            told = f'"{entity.name}" has more than {limits.FETCHED_KEYS:,} keys.'
            raise ConnectorError(told, reason="too_large", hint="Choose among them by a filter.")
    if not batches:
        return pa.table({name: pa.array([], pa.string()) for name in question["columns"]})
    table = pa.Table.from_batches(batches).rename_columns(question["columns"])
    whole = pc.is_valid(table.column(0))
    for name in question["columns"][1:]:
        whole = pc.and_(whole, pc.is_valid(table.column(name)))
    distinct = table.filter(whole).group_by(question["columns"], use_threads=False).aggregate([])
    return distinct.sort_by([(name, "ascending") for name in question["columns"]]).combine_chunks()


def _column(entity: Any, name: str) -> str:
    found = entity.column(name)
    if found is None:
        close = [one.name for one in entity.fields if one.name.casefold() == name.casefold()]
        if len(close) != 1:
            told = f'"{entity.name}" has no column "{name}".'
            known = ", ".join(one.name for one in entity.fields[: limits.FETCHED_TOLD])
            raise ConnectorError(told, reason="no_column", hint=f"It has {known}.")
        return close[0]
    return found.name


def query(session: TableReader, one: Ask, values: tuple[Any, ...]) -> pa.Table:
    """What a field's query answers for one set of values, which it calls p0, p1 ... Raises `ConnectorError`."""
    most = limits.FETCHED_SET_ROWS if one.keyed else limits.FETCHED_ROWS
    named = {f"p{place}": value for place, value in enumerate(values)}
    batch = session.query(one.question["query"], named, most + 1)
    if batch.num_rows > most:
        told = f"The query answers more than {most:,} rows."
        raise ConnectorError(
            told, reason="too_large", hint="Let it answer fewer: by a condition, or a limit."
        )
    if not batch.num_columns:
        raise ConnectorError(
            "The query answers no columns.", reason="no_column", hint="Write one that selects."
        )
    return pa.Table.from_batches([batch])
