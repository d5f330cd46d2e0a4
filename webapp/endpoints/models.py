"""Endpoints: one request that rows are sent with, kept under a name."""

from __future__ import annotations

from typing import Any

from sqlalchemy import String
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import JSON_DOC, Base, InProject, SoftDeleted, Updated, identity, reference


class Endpoint(Updated, SoftDeleted, InProject, Base):
    """A request on a connection: one that others use too, or, for an endpoint with an address of its own, one made for
    it (`Connection.of_endpoint`). `settings` are those of the connection that this endpoint puts others in place of:
    method, path, headers, body, how rows are sent. Secrets are the connection's alone."""

    __tablename__ = "endpoints"

    id: Mapped[str] = identity("end")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS), index=True)
    connection_id: Mapped[str] = reference("connections.id", ondelete="CASCADE")
    settings: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)
