"""Models of objects with versions: a head, and one row for each version."""

from __future__ import annotations

from typing import Any, ClassVar

from sqlalchemy import Integer, String
from sqlalchemy.orm import Mapped, MappedColumn, declared_attr, mapped_column

from webapp import limits
from webapp.model_base import (
    JSON_DOC,
    Base,
    CreatedAtMixin,
    ProjectMixin,
    SoftDeleteMixin,
    UpdatedAtMixin,
    foreign_key_column,
)


def _creator() -> MappedColumn[Any]:
    return foreign_key_column("users.id", nullable=True, ondelete="SET NULL", index=False)


class Versioned(UpdatedAtMixin, SoftDeleteMixin, ProjectMixin, Base):
    """The head: what lists and searches need, and the number of the newest version."""

    __abstract__ = True

    id: Mapped[str]
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS), index=True)
    description: Mapped[str] = mapped_column(String(limits.MAX_DESCRIPTION_CHARS), default="")
    version: Mapped[int] = mapped_column(Integer, default=1)

    @declared_attr
    def created_by(cls) -> Mapped[str | None]:
        """The user who created it."""
        return _creator()


class Version(CreatedAtMixin, Base):
    """The whole of it as of one version; never changed. The reference to the head is each class's own column,
    `<kind>_id`."""

    __abstract__ = True

    quota_columns: ClassVar[tuple[str, ...]] = ("spec", "pins")
    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    number: Mapped[int] = mapped_column(Integer)
    spec: Mapped[dict[str, Any]] = mapped_column(JSON_DOC)
    pins: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)

    @declared_attr
    def created_by(cls) -> Mapped[str | None]:
        """The user who created this version."""
        return _creator()
