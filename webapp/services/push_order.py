"""What a worker needs to carry out a push: its rows, its target, where captured keys lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flask import current_app

from webapp import limits, storage
from webapp.connectors import KINDS
from webapp.connectors.base import Session
from webapp.errors import ApiError
from webapp.extensions import db, reading
from webapp.models import Connection, Push
from webapp.services import connections, key_spool, ledger_rows, push_rows
from webapp.services.key_spool import KeySpool
from webapp.services.push_rows import TableRows


@dataclass(frozen=True, slots=True)
class Order:
    """A push to be carried out. `open` connects to its target and raises `ConnectorError`."""

    push: Push
    tables: list[TableRows]
    open: Callable[[], Session]
    transactions: bool
    """A chunk of this target is all or nothing."""
    spool: KeySpool

    @property
    def ask(self) -> dict[str, Any]:
        """The body as accepted."""
        return self.push.request["ask"]

    @property
    def canary(self) -> int:
        """Rows to be tried before all others; 0 where none are."""
        asked = self.ask.get("canary") if self.push.kind == "push" else None
        return limits.PUSH_CANARY_ROWS if asked is True else int(asked or 0)

    @property
    def stops(self) -> bool:
        """The first refused row is the end."""
        return self.ask.get("on_error") == "stop"


def order(push_id: str) -> Order:
    """What it takes to carry out a push. Needs no request.

    Errors: not_found (its connection or template is gone), those of `push_rows.tables`.
    """
    with reading() as session:
        push = session.get_one(Push, push_id)
        first = ledger_rows.first_of(session, push)
        connection = session.get(Connection, push.connection_id) if push.connection_id else None
    if connection is None or connection.deleted_at is not None:
        raise ApiError("not_found", "The connection of this push is gone.")
    app = current_app._get_current_object()  # type: ignore[attr-defined]
    spool = KeySpool(storage.of(app), key_spool.folder_of(first.workspace_id, first.id))
    can = KINDS[connection.type].can
    return Order(push, push_rows.tables(push), lambda: _opened(connection), can.transactions, spool)


def _opened(connection: Connection) -> Session:
    """Connect, and leave nothing of our own database open: a push takes long."""
    try:
        return connections.open_session(connection)
    finally:
        db.session.remove()
