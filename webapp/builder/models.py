"""Drafts of templates: what a user has changed and not saved, with the steps that lead there."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import (
    JSON_DOC,
    Base,
    CreatedAtMixin,
    ProjectMixin,
    UpdatedAtMixin,
    foreign_key_column,
    id_column,
)


class TemplateDraft(UpdatedAtMixin, ProjectMixin, Base):
    """The draft of one user: of a saved template, or of a template that does not exist yet.

    `position` is the number of the revision that the user sees. Revisions after it can be redone.
    """

    __tablename__ = "template_drafts"
    __table_args__ = (UniqueConstraint("user_id", "template_id"),)

    id: Mapped[str] = id_column("drf")
    user_id: Mapped[str] = foreign_key_column("users.id", ondelete="CASCADE")
    template_id: Mapped[str | None] = foreign_key_column("templates.id", nullable=True, ondelete="CASCADE")
    loaded_version: Mapped[int | None] = mapped_column(Integer)
    """The version of the template that the draft was started from, or saved as."""
    position: Mapped[int] = mapped_column(Integer, default=0)
    saved_position: Mapped[int | None] = mapped_column(Integer)
    """The revision that equals the saved version; None while the template does not exist."""


class DraftRevision(CreatedAtMixin, Base):
    """The whole draft after one change. `key` names what was changed: the next change of the same input shortly
    afterwards replaces the revision instead of adding one."""

    __tablename__ = "template_draft_revisions"
    __table_args__ = (UniqueConstraint("draft_id", "number"),)
    quota_columns: ClassVar[tuple[str, ...]] = ("spec",)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    draft_id: Mapped[str] = foreign_key_column("template_drafts.id", ondelete="CASCADE")
    number: Mapped[int] = mapped_column(Integer)
    label: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    key: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS), default="")
    spec: Mapped[dict[str, Any]] = mapped_column(JSON_DOC)
