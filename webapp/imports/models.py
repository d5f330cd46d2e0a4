"""Models of imports, in addition to the templates that they create."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import JSON_DOC, Base, Created, reference


class TemplateImport(Created, Base):
    """One import into a template, the first or a later one; immutable.

    `report`: `[{table, column, type, state, reason}]`. `columns`: by column, the field that its schema led to at that
    time (None without one); the next import of a changed schema is compared with these.
    """

    __tablename__ = "template_imports"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    template_id: Mapped[str] = reference("templates.id", ondelete="CASCADE")
    version: Mapped[int] = mapped_column(Integer)
    """Of the template, as the import left it."""
    format: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    source: Mapped[str] = mapped_column(String(limits.MAX_FILE_NAME_CHARS), default="")
    """The file's name; "" for a text."""
    entity: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    """The table, as the file calls it."""
    report: Mapped[list[dict[str, Any]]] = mapped_column(JSON_DOC)
    columns: Mapped[dict[str, Any]] = mapped_column(JSON_DOC)
