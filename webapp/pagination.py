"""Lists: `{items, next_cursor, total}` with keyset pagination and signed opaque cursors.

A cursor contains the position where the last page ended and the identity of the list (its name, workspace, search and
order). It is signed, so clients can neither create cursors nor use them for another list.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeVar

from flask import current_app
from sqlalchemy import (
    ColumnElement,
    Select,
    SQLColumnExpression,
    Text,
    and_,
    cast,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute

from webapp import limits
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.security import sealing

T = TypeVar("T")
_SIGN_KEY: Final = "rowsmith.cursor_key"


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a list. `next_cursor` is None on the last page; `total` counts all pages; `size` is the bytes of its
    items' large columns."""

    items: list[T]
    next_cursor: str | None
    total: int
    size: int = 0

    def as_dict(self, item: Callable[[T], Any]) -> dict[str, Any]:
        """Return the JSON form, with each item converted by `item`."""
        return {"items": [item(x) for x in self.items], "next_cursor": self.next_cursor, "total": self.total}


def paginate(
    statement: Select[T],
    *,
    name: str,
    id_column: InstrumentedAttribute[Any],
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
    search: tuple[str | None, SQLColumnExpression[str | None]] | None = None,
    order_column: InstrumentedAttribute[Any] | None = None,
    descending: bool = True,
    order_value: Callable[[T], Any] | None = None,
    context: str = "",
    sizes: Sequence[SQLColumnExpression[Any]] = (),
) -> Page[T]:
    """Return one page of `statement` (a select of one entity, restricted to the actor's workspace).

    `id_column` is the column that breaks ties; the newest items come first unless `order_column` names another column,
    which must not be NULL; `order_value` reads its value if it belongs to another entity. `search` is `(?q=, column)`:
    a part of the text, ignoring case. `context`: other filters of the statement (the workspace, a state): a cursor is
    only valid for the same context. `sizes` are columns that can be large: the page ends before the item with which
    they exceed `PAGE_BYTES`, but has at least one item. Errors: invalid_request for an invalid limit, search or cursor.
    """
    if not 1 <= limit <= limits.PAGE_LIMIT_MAX:
        raise ApiError(
            "invalid_request", f"limit must be from 1 to {limits.PAGE_LIMIT_MAX}.", {"limit": limit}
        )
    text = (search[0] or "").strip() if search else ""
    if len(text) > limits.MAX_QUERY_TEXT:
        raise ApiError("invalid_request", f"q must have at most {limits.MAX_QUERY_TEXT} characters.")
    if search and text:
        statement = statement.where(contains(search[1], text))
    total = db.session.scalar(select(func.count()).select_from(statement.order_by(None).subquery())) or 0
    column = order_column if order_column is not None else id_column
    list_identity = [name, context, text, column.key, descending]
    if cursor:
        statement = statement.where(
            _after_condition(_decode_position(cursor, list_identity), column, id_column, descending)
        )
    ordering = [column.desc() if descending else column.asc()]
    if column is not id_column:
        ordering.append(id_column.desc() if descending else id_column.asc())
    statement = statement.order_by(*ordering)
    size = 0
    if sizes:
        limit, size = _count_fitting_rows(statement, sizes, limit)
    rows = list(db.session.scalars(statement.limit(limit + 1)))
    next_cursor = None
    if len(rows) > limit:
        last = rows[limit - 1]
        value = order_value(last) if order_value is not None else getattr(last, column.key)
        value = {"time": value.isoformat()} if isinstance(value, datetime) else value
        position = [value, getattr(last, id_column.key)]
        next_cursor = sealing.sign(_sign_key(), [list_identity, position])
    return Page(rows[:limit], next_cursor, total, size)


def _count_fitting_rows(
    statement: Select[Any], sizes: Sequence[SQLColumnExpression[Any]], limit: int
) -> tuple[int, int]:
    """Return how many of the first `limit` rows fit into `PAGE_BYTES`, at least one, and their size."""
    row_size = sum((func.coalesce(func.length(cast(column, Text)), 0) for column in sizes), start=literal(0))
    total = 0
    statement = statement.with_only_columns(row_size, maintain_column_froms=True).limit(limit)
    for number, size in enumerate(db.session.scalars(statement).all()):
        if number and total + size > limits.PAGE_BYTES:
            return number, total
        total += size
    return limit, total


def paginate_list(
    items: Sequence[T], *, name: str, cursor: str | None = None, limit: int | None = None, context: str = ""
) -> Page[T]:
    """Return one page of a list in memory, in its order; all of it without a `limit`.

    `context` as in `paginate`. Errors: invalid_request for a bad limit or cursor.
    """
    if limit is not None and not 1 <= limit <= limits.PAGE_LIMIT_MAX:
        raise ApiError(
            "invalid_request", f"limit must be from 1 to {limits.PAGE_LIMIT_MAX}.", {"limit": limit}
        )
    list_identity = [name, context]
    start = int(_decode_position(cursor, list_identity)[0]) if cursor else 0
    end = len(items) if limit is None else start + limit
    next_cursor = sealing.sign(_sign_key(), [list_identity, [end]]) if end < len(items) else None
    return Page(list(items[start:end]), next_cursor, len(items))


def encode_cursor(name: str, context: str, position: list[Any]) -> str:
    """Return a cursor for a list that implements its own paging: the position where the last page ended. See
    `decode_cursor`."""
    return sealing.sign(_sign_key(), [[name, context], position])


def decode_cursor(name: str, context: str, cursor: str) -> list[Any]:
    """Return the position in a cursor that `encode_cursor` created for the same list: two values. Error:
    invalid_request."""
    return _decode_position(cursor, [name, context])


def contains(column: SQLColumnExpression[str | None], text: str) -> ColumnElement[bool]:
    """Return a condition: a column contains a text, ignoring case, with the wildcards of LIKE escaped."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return func.lower(column).like(f"%{escaped.lower()}%", escape="\\")


def _after_condition(
    position: list[Any],
    column: InstrumentedAttribute[Any],
    identity: InstrumentedAttribute[Any],
    descending: bool,
) -> ColumnElement[bool]:
    value: Any = position[0]
    if isinstance(value, dict):
        value = datetime.fromisoformat(value["time"])
    compare: Callable[[Any, Any], ColumnElement[bool]] = operator.lt if descending else operator.gt
    if column is identity:
        return compare(identity, value)
    return or_(compare(column, value), and_(column == value, compare(identity, position[1])))


def _decode_position(cursor: str, list_identity: list[Any]) -> list[Any]:
    value = sealing.unsign(_sign_key(), cursor)
    if not isinstance(value, list) or len(value) != 2 or value[0] != list_identity:
        raise ApiError(
            "invalid_request", "This cursor does not belong to this list.", {"cursor": cursor[:100]}
        )
    position: list[Any] = value[1]
    return position


def _sign_key() -> bytes:
    found: bytes | None = current_app.extensions.get(_SIGN_KEY)
    if found is None:
        found = sealing.derive(str(current_app.secret_key), "cursor")
        current_app.extensions[_SIGN_KEY] = found
    return found
