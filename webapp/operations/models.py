"""Work that a worker does: exports now, pushes and runs on the same columns."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import CheckConstraint, Index, Integer, LargeBinary, SmallInteger, String, UniqueConstraint
from sqlalchemy.orm import Mapped, declared_attr, mapped_column

from webapp.accounts.models import HASH_CHARS
from webapp.model_base import ID_CHARS, JSON_DOC, Base, Created, InWorkspace, identity

STATES: Final = ("queued", "running", "completed", "failed", "cancelled", "timed_out")
END_STATES: Final = ("completed", "failed", "cancelled", "timed_out")
# States move only forward; `running` to `running` is a lost piece of work taken up again.
NEXT_STATES: Final = {
    "queued": frozenset({"running", "failed", "cancelled"}),
    "running": frozenset({"running", "completed", "failed", "cancelled", "timed_out"}),
}


class Work(Created):
    """State, lease and attempts of one piece of work. The row is the truth; the queue only wakes a worker.

    Who holds the lease writes only with `WHERE epoch = <the epoch it took>`; taking the lease raises the epoch
    by one, so a worker that was thought dead and wakes up changes nothing.
    """

    if TYPE_CHECKING:  # each kind of work has a table, and ids with a prefix of its own
        __tablename__: str
        id: Mapped[str]

    status: Mapped[str] = mapped_column(String(16), default="queued")
    attempt: Mapped[int] = mapped_column(Integer, default=0)  # 1 for the first worker that takes it
    epoch: Mapped[int] = mapped_column(Integer, default=0)
    lease_owner: Mapped[str | None] = mapped_column(String(200))
    lease_until: Mapped[datetime | None]
    cancel_requested_at: Mapped[datetime | None]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    error: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)  # {code, message, details} of a bad end

    @declared_attr.directive
    def __table_args__(cls) -> tuple[Any, ...]:
        states = ", ".join(f"'{state}'" for state in STATES)
        return (
            CheckConstraint(f"status IN ({states})", name="status"),
            # What the sweeper asks: open work by state and age of the lease.
            Index(f"ix_{cls.__tablename__}_status_lease_until", "status", "lease_until"),
            # What retention asks: ended work by age.
            Index(f"ix_{cls.__tablename__}_finished_at", "finished_at"),
        )

    @property
    def ended(self) -> bool:
        """Whether the work has reached an end state."""
        return self.status in END_STATES


# The first answer to each Idempotency-Key, for 24 hours.


class IdempotencyRecord(Created, InWorkspace, Base):
    """One use of a key by one caller. The unique constraint is what makes the first the only one.

    The key is kept as a hash, and the answer is sealed with a key made from the caller's Idempotency-Key, so the
    table gives away nothing that an answer may have shown once (a new API key's secret).
    """

    __tablename__ = "idempotency_records"
    __table_args__ = (UniqueConstraint("workspace_id", "caller", "key_hash"),)

    id: Mapped[str] = identity("idm")
    caller: Mapped[str] = mapped_column(String(ID_CHARS))  # id of the API key or user
    key_hash: Mapped[str] = mapped_column(String(HASH_CHARS))
    request_hash: Mapped[str] = mapped_column(String(HASH_CHARS))  # method, path, query, project, body
    state: Mapped[str] = mapped_column(String(16), default="running")  # running, acted, answered
    expires_at: Mapped[datetime] = mapped_column(index=True)
    status: Mapped[int | None] = mapped_column(SmallInteger)
    headers: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    body: Mapped[bytes | None] = mapped_column(LargeBinary)  # sealed
