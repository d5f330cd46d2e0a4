"""The declarative base, portable column types, and the mixins that tables share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, ForeignKey, MetaData, String
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedColumn, declared_attr, mapped_column, registry
from sqlalchemy.types import TypeDecorator

from webapp import clock, ids

ID_CHARS = 40

# JSON as text, on PostgreSQL too: JSONB would reorder keys, and the order of a template's options is part of
# what it generates. The value is replaced whole; changes inside it are not tracked.
JSON_DOC = JSON(none_as_null=True)


class UtcTime(TypeDecorator[datetime]):
    """A timezone-aware UTC datetime. SQLite stores it without a time zone, PostgreSQL with one; naive values are
    rejected."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a value for the driver. Raises ValueError for a naive time."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert a value from the driver to aware UTC."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Every table of the service."""

    registry = registry(
        metadata=MetaData(
            naming_convention={
                "ix": "ix_%(table_name)s_%(column_0_N_name)s",
                "uq": "uq_%(table_name)s_%(column_0_N_name)s",
                "ck": "ck_%(table_name)s_%(constraint_name)s",
                "fk": "fk_%(table_name)s_%(column_0_N_name)s",
                "pk": "pk_%(table_name)s",
            }
        ),
        type_annotation_map={datetime: UtcTime(), dict[str, Any]: JSON_DOC, list[Any]: JSON_DOC},
    )


def id_column(prefix: str) -> Mapped[str]:
    """Return a primary key column whose default is a new id with this prefix."""
    return mapped_column(String(ID_CHARS), primary_key=True, default=lambda: ids.new(prefix))


def foreign_key_column(
    target: str, *, nullable: bool = False, ondelete: str = "RESTRICT", index: bool = True
) -> MappedColumn[Any]:
    """Return a foreign key column to `table.column`."""
    return mapped_column(
        String(ID_CHARS), ForeignKey(target, ondelete=ondelete), nullable=nullable, index=index
    )


class CreatedAtMixin:
    """When the row was created."""

    created_at: Mapped[datetime] = mapped_column(default=clock.now)


class UpdatedAtMixin(CreatedAtMixin):
    """When the row was created and last changed. Services set `updated_at`, so that a no-op does not change it."""

    updated_at: Mapped[datetime] = mapped_column(default=clock.now)


class SoftDeleteMixin:
    """Deletes are soft: the row stays, can be restored for 30 days, and is then removed by the sweeper."""

    deleted_at: Mapped[datetime | None] = mapped_column(index=True)


class WorkspaceMixin:
    """Belongs to a workspace. Every query over such a table names the workspace."""

    @declared_attr
    def workspace_id(cls) -> Mapped[str]:
        """The workspace."""
        return foreign_key_column("workspaces.id", ondelete="CASCADE")


class ProjectMixin(WorkspaceMixin):
    """Belongs to a project, and so to its team and workspace, which are stored with it for the tenancy check."""

    @declared_attr
    def project_id(cls) -> Mapped[str]:
        """The project."""
        return foreign_key_column("projects.id", ondelete="CASCADE")

    @declared_attr
    def team_id(cls) -> Mapped[str]:
        """The project's team."""
        return foreign_key_column("teams.id", ondelete="CASCADE", index=False)
