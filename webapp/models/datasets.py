"""Datasets and their versions."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.models.base import JSON_DOC, Base, Created, InProject, SoftDeleted, Updated, identity, reference


class Dataset(Updated, SoftDeleted, InProject, Base):
    """A dataset's head: what lists and searches need, and the number of its newest version."""

    __tablename__ = "datasets"

    id: Mapped[str] = identity("dst")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS), index=True)
    description: Mapped[str] = mapped_column(String(limits.MAX_DESCRIPTION_CHARS), default="")
    version: Mapped[int] = mapped_column(Integer, default=1)
    table_count: Mapped[int] = mapped_column(Integer, default=0)
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)


class DatasetVersion(Created, Base):
    """A whole dataset as of one version; never changed.

    `spec`: name, description, templates, seed, anchor, warnings. `pins`: the version of each of its templates as it
    was when the dataset was saved, by template id.
    """

    __tablename__ = "dataset_versions"
    __table_args__ = (UniqueConstraint("dataset_id", "number"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    dataset_id: Mapped[str] = reference("datasets.id", ondelete="CASCADE")
    number: Mapped[int] = mapped_column(Integer)
    spec: Mapped[dict[str, Any]] = mapped_column(JSON_DOC)
    pins: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)
