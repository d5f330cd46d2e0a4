"""Templates and their versions."""

from __future__ import annotations

from sqlalchemy import Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import foreign_key_column, id_column
from webapp.versioning.models import Version, Versioned


class Template(Versioned):
    """A template's head: what lists and searches need, and the number of its newest version."""

    __tablename__ = "templates"

    id: Mapped[str] = id_column("tpl")
    field_count: Mapped[int] = mapped_column(Integer, default=0)
    made_from_id: Mapped[str | None] = foreign_key_column(
        "connections.id", nullable=True, ondelete="SET NULL"
    )
    """The connection of the table from which it was created."""
    made_from_entity: Mapped[str | None] = mapped_column(String(limits.MAX_NAME_CHARS))
    """That table, as the connection's metadata called it then."""


class TemplateVersion(Version):
    """One immutable version of a template.

    `spec`: name, description, quantity, fields, locale, anchor. `pins`: the versions of related templates when it was
    saved, and the vocabulary and engine it was saved with.
    """

    __tablename__ = "template_versions"
    __table_args__ = (UniqueConstraint("template_id", "number"),)

    template_id: Mapped[str] = foreign_key_column("templates.id", ondelete="CASCADE")
