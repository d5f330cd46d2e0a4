"""Models of imports, in addition to the templates that they create: what each import found, and imports that a worker
does."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import Boolean, Integer, String
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import JSON_DOC, Base, CreatedAtMixin, ProjectMixin, foreign_key_column, id_column
from webapp.work.models import Work


class TemplateImport(CreatedAtMixin, Base):
    """One import into a template, the first or a later one; immutable.

    `report`: `[{table, column, type, state, reason}]`. `columns`: by column, the field that its schema led to at that
    time (None without one); the next import of a changed schema is compared with these.
    """

    __tablename__ = "template_imports"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    template_id: Mapped[str] = foreign_key_column("templates.id", ondelete="CASCADE")
    version: Mapped[int] = mapped_column(Integer)
    """Of the template, as the import left it."""
    format: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    source: Mapped[str] = mapped_column(String(limits.MAX_FILE_NAME_CHARS), default="")
    """The file's name; "" for a text."""
    entity: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    """The table, as the file calls it."""
    report: Mapped[list[dict[str, Any]]] = mapped_column(JSON_DOC)
    columns: Mapped[dict[str, Any]] = mapped_column(JSON_DOC)


class ImportJob(Work, ProjectMixin, Base):
    """One import that a worker does. The document and the result are files in storage, which are deleted with the row
    a day after its end.

    `request` is the body as accepted: format, name, quantity, save, types, samples.
    """

    __tablename__ = "import_jobs"
    work_kind: ClassVar[str] = "import"

    id: Mapped[str] = id_column("imp")
    request: Mapped[dict[str, Any]] = mapped_column(JSON_DOC)
    document_key: Mapped[str] = mapped_column(String(300))
    result_key: Mapped[str | None] = mapped_column(String(300))
    tables: Mapped[int] = mapped_column(Integer, default=0)
    """In the document; 0 until they are known."""
    tables_done: Mapped[int] = mapped_column(Integer, default=0)
    """Whose field types are detected."""
    saving: Mapped[bool] = mapped_column(Boolean, default=False)
    """Templates may have been created. An import that is interrupted from here on is not repeated."""
    created_by: Mapped[str] = foreign_key_column("users.id", ondelete="CASCADE", index=False)
