"""The columns that all kinds of background work share: exports and their parts, pushes and runs."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    Index,
    Integer,
    String,
)
from sqlalchemy.orm import Mapped, declared_attr, mapped_column

from webapp.model_base import (
    JSON_DOC,
    CreatedAtMixin,
)

STATES: Final = ("queued", "running", "completed", "failed", "cancelled", "timed_out")
END_STATES: Final = ("completed", "failed", "cancelled", "timed_out")
# States only move forward. `running` to `running` means that another worker continues lost work.
NEXT_STATES: Final = {
    "queued": frozenset({"running", "failed", "cancelled"}),
    "running": frozenset({"running", "completed", "failed", "cancelled", "timed_out"}),
}
MODELS: Final[dict[str, type[Work]]] = {}
"""The table of each kind of work, by its `work_kind`. A table adds itself when its module is imported."""


class Work(CreatedAtMixin):
    """State, lease and attempts of one piece of work. The row is authoritative; the queue only wakes a
    worker.

    The holder of the lease writes only with `WHERE epoch = <the epoch it acquired>`. Acquiring the lease
    increments the epoch, so a worker that was considered dead and resumes cannot change anything.
    """

    work_kind: ClassVar[str]
    if TYPE_CHECKING:  # each kind of work has a table and an id prefix
        __tablename__: str
        id: Mapped[str]
        workspace_id: Any

    status: Mapped[str] = mapped_column(String(16), default="queued")
    attempt: Mapped[int] = mapped_column(Integer, default=0)  # 1 for the first worker
    epoch: Mapped[int] = mapped_column(Integer, default=0)
    lease_owner: Mapped[str | None] = mapped_column(String(200))
    lease_until: Mapped[datetime | None]
    cancel_requested_at: Mapped[datetime | None]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)  # {code, message, details} of a failure

    @declared_attr.directive
    def __table_args__(cls) -> tuple[Any, ...]:
        states = ", ".join(f"'{state}'" for state in STATES)
        return (
            CheckConstraint(f"status IN ({states})", name="status"),
            # For the sweeper: open work by state and age of the lease.
            Index(f"ix_{cls.__tablename__}_status_lease_until", "status", "lease_until"),
            # For retention: ended work by age.
            Index(f"ix_{cls.__tablename__}_finished_at", "finished_at"),
        )

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "work_kind" in cls.__dict__:
            MODELS[cls.work_kind] = cls

    @classmethod
    def in_workspace(cls, workspace_id: str) -> ColumnElement[bool]:
        """Return the condition for the work of one workspace."""
        return cls.workspace_id == workspace_id  # type: ignore[no-any-return]

    @classmethod
    def worker_conditions(cls) -> list[ColumnElement[bool]]:
        """Return the conditions for work that a worker executes itself. An export in parts is executed as its
        parts."""
        return []

    @property
    def has_ended(self) -> bool:
        """Whether the work has reached an end state."""
        return self.status in END_STATES


# The first response for each Idempotency-Key, for 24 hours.


class Notifiable:
    """Work with notifications when it ends. A row that has ended and has no `noticed` mark still needs its
    notification. The mark is cleared in the transaction that ends the work."""

    noticed_at: Mapped[datetime | None] = mapped_column(index=True)
