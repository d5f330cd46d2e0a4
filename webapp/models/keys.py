"""API keys. The secret is shown once and lies here as a hash; the handle finds the row."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.models.base import JSON_DOC, Base, Created, InProject, identity, reference
from webapp.models.people import HASH_CHARS


class ApiKey(Created, InProject, Base):
    """A program's credential. It may do what its maker may do now, narrowed by `scopes` where it has any."""

    __tablename__ = "api_keys"

    id: Mapped[str] = identity("key")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    handle: Mapped[str] = mapped_column(String(limits.KEY_HANDLE_CHARS), unique=True)
    secret_hash: Mapped[str] = mapped_column(String(HASH_CHARS))
    scopes: Mapped[list[Any] | None] = mapped_column(JSON_DOC)  # NULL: all that the maker's role allows
    created_by: Mapped[str] = reference("users.id", ondelete="CASCADE")
    api_version: Mapped[str] = mapped_column(String(10))  # the newest when the key was made
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    last_used_address: Mapped[str | None] = mapped_column(String(64))
    revoked_at: Mapped[datetime | None]
    run_id: Mapped[str | None] = reference("runs.id", nullable=True, ondelete="CASCADE")
    """The run that it was made for; such a key is in no list and ends with the run."""
    writable_secrets: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    """Of a run's key: the secrets that it may set, whatever its maker's role."""
