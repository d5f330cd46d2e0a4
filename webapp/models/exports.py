"""Exports: files that a worker makes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from webapp.models.base import JSON_DOC, Base, InProject, SoftDeleted, identity, reference
from webapp.models.people import HASH_CHARS
from webapp.models.work import Work


class Export(Work, SoftDeleted, InProject, Base):
    """One file to be made from one template version, or from all tables of one dataset version.

    `request` is the body as accepted (format, overrides, options); `pins` is what it takes to make the same bytes
    again: seed, now, version, vocabulary, engine; for a dataset those of each table, with its name and count.
    """

    __tablename__ = "exports"

    id: Mapped[str] = identity("exp")
    template_id: Mapped[str | None] = reference("templates.id", nullable=True, ondelete="SET NULL")
    template_version: Mapped[int | None] = mapped_column(Integer)
    dataset_id: Mapped[str | None] = reference("datasets.id", nullable=True, ondelete="SET NULL")
    dataset_version: Mapped[int | None] = mapped_column(Integer)
    format: Mapped[str] = mapped_column(String(16))
    count: Mapped[int] = mapped_column(BigInteger)
    rows_done: Mapped[int] = mapped_column(BigInteger, default=0)
    bytes: Mapped[int | None] = mapped_column(BigInteger)
    sha256: Mapped[str | None] = mapped_column(String(HASH_CHARS))
    storage_key: Mapped[str | None] = mapped_column(String(300))
    file_name: Mapped[str | None] = mapped_column(String(300))
    request: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    pins: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)
    key_id: Mapped[str | None] = mapped_column(String(40))
