"""The first answer to each Idempotency-Key, for 24 hours."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    LargeBinary,
    SmallInteger,
    String,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from webapp.access.models import HASH_CHARS
from webapp.model_base import (
    ID_CHARS,
    JSON_DOC,
    Base,
    CreatedAtMixin,
    WorkspaceMixin,
    id_column,
)


class IdempotencyRecord(CreatedAtMixin, WorkspaceMixin, Base):
    """One use of an Idempotency-Key by one client. The unique constraint guarantees that only one request is the first.

    The key is stored as a hash, and the response is encrypted with a key derived from the Idempotency-Key. So the table
    does not reveal secrets that a response shows only once, such as a new API key.
    """

    __tablename__ = "idempotency_records"
    quota_columns: ClassVar[tuple[str, ...]] = ("body",)
    __table_args__ = (UniqueConstraint("workspace_id", "caller", "key_hash"),)

    id: Mapped[str] = id_column("idm")
    caller: Mapped[str] = mapped_column(String(ID_CHARS))  # id of the API key or user
    key_hash: Mapped[str] = mapped_column(String(HASH_CHARS))
    request_hash: Mapped[str] = mapped_column(String(HASH_CHARS))  # method, path, query, project, body
    state: Mapped[str] = mapped_column(String(16), default="running")  # running, acted, answered
    expires_at: Mapped[datetime] = mapped_column(index=True)
    status: Mapped[int | None] = mapped_column(SmallInteger)
    headers: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    body: Mapped[bytes | None] = mapped_column(LargeBinary)  # sealed
