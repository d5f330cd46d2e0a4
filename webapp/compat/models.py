"""Objects that only programs of the hosted service's clients create: the API itself has no resource for them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Integer, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from webapp import clock, limits
from webapp.model_base import JSON_DOC, Base, InProject, Updated, identity, reference


class CompatObject(Updated, InProject, Base):
    """A saved set, a custom data type, a masking policy, a plan, or a folder of templates or endpoints.

    `document` holds what its `kind` has beside a name. `rows` are the rows of a set, loaded only where they are
    needed, and `size` their bytes as JSON.
    """

    __tablename__ = "compat_objects"

    id: Mapped[str] = identity("cmp")
    kind: Mapped[str] = mapped_column(String(24))
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    document: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    rows: Mapped[Any | None] = mapped_column(JSON_DOC, deferred=True)
    size: Mapped[int] = mapped_column(Integer, default=0)
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)


class KeyMapEntry(InProject, Base):
    """The key that a record of a source system got in a target system. The newest key of an old one counts."""

    __tablename__ = "key_map_entries"
    __table_args__ = (UniqueConstraint("project_id", "map_name", "object_name", "old_key"),)

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=True)
    map_name: Mapped[str] = mapped_column(String(limits.KEY_MAP_NAME_CHARS))
    object_name: Mapped[str] = mapped_column(String(limits.KEY_MAP_NAME_CHARS))
    old_key: Mapped[str] = mapped_column(String(limits.KEY_MAP_KEY_CHARS))
    new_key: Mapped[str] = mapped_column(String(limits.KEY_MAP_KEY_CHARS))
    run_id: Mapped[str | None] = mapped_column(String(limits.KEY_MAP_NAME_CHARS))
    """What the program says of the run that created the key; any text."""
    updated_at: Mapped[datetime] = mapped_column(default=clock.now)
