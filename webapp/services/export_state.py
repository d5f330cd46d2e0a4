"""The present state of an export, as its followers are told it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from webapp.extensions import reading
from webapp.models import END_STATES, Export


@dataclass(frozen=True, slots=True)
class State:
    """What a follower is told of an export."""

    status: str
    attempt: int
    rows_done: int
    count: int
    bytes: int | None
    sha256: str | None
    error: dict[str, Any] | None

    @property
    def ended(self) -> bool:
        """Whether nothing will change any more."""
        return self.status in END_STATES

    @property
    def mark(self) -> str:
        """What tells this state from the ones before it; the id of its event."""
        return f"{self.attempt}-{self.status}-{self.rows_done}"

    def counts(self) -> dict[str, Any]:
        """The data of a `progress` event."""
        return {
            "status": self.status,
            "attempt": self.attempt,
            "rows_done": self.rows_done,
            "count": self.count,
        }

    def end(self) -> dict[str, Any]:
        """The data of the `end` event."""
        return {**self.counts(), "bytes": self.bytes, "sha256": self.sha256, "error": self.error}


def of(export_id: str) -> State | None:
    """The present state of an export; None when it is gone. A short read of its own."""
    columns = (
        Export.status,
        Export.attempt,
        Export.rows_done,
        Export.count,
        Export.bytes,
        Export.sha256,
        Export.error,
    )
    with reading() as session:
        row = session.execute(select(*columns).where(Export.id == export_id)).one_or_none()
    return State(*row) if row is not None else None
