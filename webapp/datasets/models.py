"""Datasets and their versions."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from webapp.model_base import JSON_DOC, foreign_key_column, id_column
from webapp.versioning.models import Version, Versioned


class Dataset(Versioned):
    """A dataset's head: what lists and searches need, and the number of its newest version."""

    __tablename__ = "datasets"

    id: Mapped[str] = id_column("dst")
    table_count: Mapped[int] = mapped_column(Integer, default=0)


class DatasetVersion(Version):
    """A whole dataset as of one version; never changed.

    `spec`: name, description, templates, seed, anchor, warnings. `pins`: the version of each of its templates as it
    was when the dataset was saved, by template id.
    """

    __tablename__ = "dataset_versions"
    __table_args__ = (UniqueConstraint("dataset_id", "number"),)

    dataset_id: Mapped[str] = foreign_key_column("datasets.id", ondelete="CASCADE")
    step: Mapped[dict[str, Any] | None] = mapped_column(JSON_DOC)
    """How the page of the dataset undoes this version: see `webapp/dataset_editor/editing.py`. NULL for a version that
    was not saved there."""
