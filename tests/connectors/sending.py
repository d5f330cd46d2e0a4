"""Short ways to send rows, for the tests of every kind."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from webapp.connectors.base import Session, Target, WriteResult, WriteSpec


def target_of(session: Session, table: str, columns: list[str], **how: Any) -> Target:
    """A target that writes these columns of a table, its transaction open."""
    entity = session.entity(table)
    assert entity is not None, table
    target = session.target(WriteSpec(entity, tuple(entity.column(name) for name in columns), **how))
    target.begin()
    return target


def deliver(session: Session, table: str, rows: dict[str, Any], **how: Any) -> WriteResult:
    """Send rows, given as columns, and commit."""
    target = target_of(session, table, list(rows), **how)
    sent = target.send(pa.record_batch(rows))
    target.commit()
    return sent


def reasons(sent: WriteResult) -> dict[int, str]:
    """The reason of each refused row."""
    return {failure.index: failure.reason for failure in sent.failures}
