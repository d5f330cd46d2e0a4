"""Templates and their versions."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.models.base import JSON_DOC, Base, Created, InProject, SoftDeleted, Updated, identity, reference


class Template(Updated, SoftDeleted, InProject, Base):
    """A template's head: what lists and searches need, and the number of its newest version."""

    __tablename__ = "templates"

    id: Mapped[str] = identity("tpl")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS), index=True)
    description: Mapped[str] = mapped_column(String(limits.MAX_DESCRIPTION_CHARS), default="")
    version: Mapped[int] = mapped_column(Integer, default=1)
    field_count: Mapped[int] = mapped_column(Integer, default=0)
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)


class TemplateVersion(Created, Base):
    """A whole template as of one version; never changed.

    `spec`: name, description, quantity, fields, locale, anchor. `pins`: the versions of the templates it refers
    to as they were when it was saved, and the vocabulary and engine it was saved under.
    """

    __tablename__ = "template_versions"
    __table_args__ = (UniqueConstraint("template_id", "number"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    template_id: Mapped[str] = reference("templates.id", ondelete="CASCADE")
    number: Mapped[int] = mapped_column(Integer)
    spec: Mapped[dict[str, Any]] = mapped_column(JSON_DOC)
    pins: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)
