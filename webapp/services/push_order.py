"""What a worker needs to carry out a push: its rows, its target, where captured keys lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flask import current_app

from webapp import limits, storage
from webapp.connectors import KINDS
from webapp.connectors.base import Capabilities, Link
from webapp.errors import ApiError
from webapp.extensions import db, reading
from webapp.models import Connection, Endpoint, Push
from webapp.services import connection_links, http_targets, key_spool, ledger_rows, push_rows
from webapp.services.key_spool import KeySpool
from webapp.services.push_rows import TableRows


@dataclass(frozen=True, slots=True)
class Order:
    """A push to be carried out. `open` connects to its target and raises `ConnectorError`."""

    push: Push
    tables: list[TableRows]
    open: Callable[[], Link]
    can: Capabilities
    spool: KeySpool

    @property
    def transactions(self) -> bool:
        """A chunk of this target is all or nothing."""
        return self.can.transactions

    @property
    def ask(self) -> dict[str, Any]:
        """The body as accepted."""
        return self.push.request["ask"]

    @property
    def canary(self) -> int:
        """Rows to be tried before all others; 0 where none are."""
        asked = self.ask.get("canary") if self.push.kind == "push" else None
        return limits.PUSH_CANARY_ROWS if asked is True else int(asked or 0)

    def idempotency_keys(self, place: int, numbers: Sequence[int]) -> list[str]:
        """By what a target tells rows of a table apart: see `ledger_rows.sent_as`."""
        with reading() as session:
            keys = ledger_rows.sent_as(session, self.push, place, numbers)
        return [keys[number] for number in numbers]

    @property
    def wait_seconds(self) -> int:
        """How long the push waits for a target that is away."""
        asked = self.ask.get("target_wait_seconds")
        return int(current_app.config["SETTINGS"].target_wait_seconds if asked is None else asked)

    @property
    def stops(self) -> bool:
        """The first refused row is the end."""
        return self.ask.get("on_error") == "stop"

    @property
    def stops_when_all_fail(self) -> bool:
        """A table whose first rows all fail for one reason ends the push."""
        return self.ask.get("on_error") == "stop_when_all_fail"


def order(push_id: str) -> Order:
    """What it takes to carry out a push. Needs no request.

    Errors: not_found (its connection or template is gone), those of `push_rows.tables`.
    """
    with reading() as session:
        push = session.get_one(Push, push_id)
        first = ledger_rows.first_of(session, push)
        connection = session.get(Connection, push.connection_id) if push.connection_id else None
        endpoint = session.get(Endpoint, push.endpoint_id) if push.endpoint_id else None
    if connection is None or connection.deleted_at is not None:
        raise ApiError("not_found", "The connection of this push is gone.")
    app = current_app._get_current_object()  # type: ignore[attr-defined]
    spool = KeySpool(storage.of(app), key_spool.folder_of(first.workspace_id, first.id))
    changed = http_targets.changed(endpoint, push.request["ask"])
    return Order(
        push, push_rows.tables(push), lambda: _opened(connection, changed), KINDS[connection.type].can, spool
    )


def _opened(connection: Connection, changed: Mapping[str, Any]) -> Link:
    """Connect, and leave nothing of our own database open: a push takes long."""
    try:
        return connection_links.open_link(connection, changed=changed)
    finally:
        db.session.remove()
