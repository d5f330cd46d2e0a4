"""The audit trail: who did what to which object, when, from where. Never secrets, never rows of data.

Entries are only ever added (the triggers of `audit_guard` enforce this). Seals chain them by hashes afterwards; see
`services/seals.py`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import DDL, BigInteger, ForeignKey, Index, Integer, LargeBinary, MetaData, String, event
from sqlalchemy.orm import Mapped, mapped_column

from webapp import clock
from webapp.model_base import ID_CHARS, JSON_DOC, Base, foreign_key_column, id_column

_REMOVED: Final = (
    "SELECT 1 FROM audit_heads WHERE workspace_id = OLD.workspace_id AND removed_until >= OLD.{at}"
)
_SEALED: Final = (
    "workspace_id",
    "number",
    "count",
    "first_id",
    "last_id",
    "last_at",
    "previous",
    "chain",
    "hash",
    "sealed_at",
)


def _sqlite_triggers() -> list[str]:
    def refused(name: str, event: str, message: str) -> str:
        return f"CREATE TRIGGER {name} {event} BEGIN SELECT RAISE(ABORT, '{message}'); END"

    return [
        "CREATE TRIGGER audit_entries_pending AFTER INSERT ON audit_entries BEGIN INSERT OR IGNORE INTO"
        " audit_pending (workspace_id, entry_id) VALUES (NEW.workspace_id, NEW.id); END",
        refused("audit_entries_fixed", "BEFORE UPDATE ON audit_entries", "audit entries are never changed"),
        refused(
            "audit_entries_kept",
            f"BEFORE DELETE ON audit_entries WHEN NOT EXISTS ({_REMOVED.format(at='at')})",
            "audit entries are removed by retention alone",
        ),
        refused(
            "audit_seals_fixed",
            f"BEFORE UPDATE OF {', '.join(_SEALED)} ON audit_seals",
            "seals of the audit trail are never changed",
        ),
        refused(
            "audit_seals_kept",
            f"BEFORE DELETE ON audit_seals WHEN NOT EXISTS ({_REMOVED.format(at='last_at')})",
            "seals of the audit trail stay",
        ),
    ]


def _postgresql_triggers() -> list[str]:
    def function(name: str, body: str) -> str:
        return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"

    def kept(column: str, message: str) -> str:
        return f"IF NOT EXISTS ({_REMOVED.format(at=column)}) THEN RAISE EXCEPTION '{message}'; END IF; RETURN OLD;"

    unchanged = " AND ".join(f"NEW.{name} = OLD.{name}" for name in _SEALED)
    removal_message = "audit entries are removed by retention alone"
    return [
        function(
            "audit_entries_pending",
            "INSERT INTO audit_pending (workspace_id, entry_id) VALUES (NEW.workspace_id, NEW.id)"
            " ON CONFLICT DO NOTHING; RETURN NULL;",
        ),
        function("audit_entries_fixed", "RAISE EXCEPTION 'audit entries are never changed';"),
        function("audit_entries_kept", kept("at", removal_message)),
        function("audit_entries_whole", f"RAISE EXCEPTION '{removal_message}';"),
        function(
            "audit_seals_fixed",
            f"IF NOT ({unchanged}) THEN RAISE EXCEPTION 'seals of the audit trail are never changed'; END IF;"
            " RETURN NEW;",
        ),
        function("audit_seals_kept", kept("last_at", "seals of the audit trail stay")),
        *(
            f"CREATE TRIGGER {name} {when} ON {table} FOR EACH {each} EXECUTE FUNCTION {name}()"
            for name, when, table, each in (
                ("audit_entries_pending", "AFTER INSERT", "audit_entries", "ROW"),
                ("audit_entries_fixed", "BEFORE UPDATE", "audit_entries", "ROW"),
                ("audit_entries_kept", "BEFORE DELETE", "audit_entries", "ROW"),
                ("audit_entries_whole", "BEFORE TRUNCATE", "audit_entries", "STATEMENT"),
                ("audit_seals_fixed", "BEFORE UPDATE", "audit_seals", "ROW"),
                ("audit_seals_kept", "BEFORE DELETE", "audit_seals", "ROW"),
            )
        ),
    ]


STATEMENTS: Final = {"sqlite": _sqlite_triggers(), "postgresql": _postgresql_triggers()}
FUNCTIONS: Final = (
    "entries_pending",
    "entries_fixed",
    "entries_kept",
    "entries_whole",
    "seals_fixed",
    "seals_kept",
)


def attach(metadata: MetaData) -> None:
    """Create the triggers together with the tables, and drop PostgreSQL's functions with them."""
    for dialect, statements in STATEMENTS.items():
        for text in statements:
            create = DDL(text.replace("%", "%%"))  # type: ignore[no-untyped-call]  # SQLAlchemy does not annotate it
            event.listen(metadata, "after_create", create.execute_if(dialect=dialect))
    for name in FUNCTIONS:
        drop = DDL(f"DROP FUNCTION IF EXISTS audit_{name}()")  # type: ignore[no-untyped-call]  # as above
        event.listen(metadata, "after_drop", drop.execute_if(dialect="postgresql"))


HASH_CHARS = 64  # SHA-256 in hexadecimal


class AuditEntry(Base):
    """An audit entry. Ids are stored as text without foreign keys, because entries outlive the objects they refer to.

    Every searchable column has an index that also orders by time, so that the latest page is read quickly.
    """

    __tablename__ = "audit_entries"
    __table_args__ = (
        Index("ix_audit_entries_workspace_id_at", "workspace_id", "at", "id"),
        Index("ix_audit_entries_action_at", "workspace_id", "action", "at"),
        Index("ix_audit_entries_object_type_at", "workspace_id", "object_type", "at"),
        Index("ix_audit_entries_address_at", "workspace_id", "address", "at"),
        Index("ix_audit_entries_object_id_at", "workspace_id", "object_id", "at"),
        Index("ix_audit_entries_project_id_at", "workspace_id", "project_id", "at"),
        Index("ix_audit_entries_user_id_at", "workspace_id", "user_id", "at"),
        Index("ix_audit_entries_key_id_at", "workspace_id", "key_id", "at"),
    )

    id: Mapped[str] = id_column("aud")
    workspace_id: Mapped[str] = foreign_key_column("workspaces.id", ondelete="CASCADE", index=False)
    at: Mapped[datetime] = mapped_column(default=clock.now)
    action: Mapped[str] = mapped_column(String(64))  # "template.create", "template.generate", "session.start"
    object_type: Mapped[str] = mapped_column(String(32), default="")
    object_id: Mapped[str] = mapped_column(String(ID_CHARS), default="")
    project_id: Mapped[str | None] = mapped_column(String(ID_CHARS))
    user_id: Mapped[str | None] = mapped_column(String(ID_CHARS))
    key_id: Mapped[str | None] = mapped_column(String(ID_CHARS))
    address: Mapped[str] = mapped_column(String(64), default="")
    request_id: Mapped[str] = mapped_column(String(128), default="")
    rows: Mapped[int | None] = mapped_column(BigInteger)
    details: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)


class AuditPending(Base):
    """An entry without a seal. The database adds the row together with the entry; sealing deletes it."""

    __tablename__ = "audit_pending"

    workspace_id: Mapped[str] = mapped_column(String(ID_CHARS), primary_key=True)
    entry_id: Mapped[str] = mapped_column(String(ID_CHARS), primary_key=True)


class AuditSeal(Base):
    """Some entries of a workspace, chained to those of the seal before.

    `links` names each entry in the order of the chain with the hash up to it (48 bytes an entry, see
    `services.seals`); None once retention has removed the entries. `last_at` is the latest time of any entry up to
    here, `chain` the hash up to the last entry, `hash` that of the whole seal, which the next seal continues.
    """

    __tablename__ = "audit_seals"

    workspace_id: Mapped[str] = mapped_column(
        String(ID_CHARS), ForeignKey("workspaces.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    count: Mapped[int] = mapped_column(Integer)
    first_id: Mapped[str] = mapped_column(String(ID_CHARS))
    last_id: Mapped[str] = mapped_column(String(ID_CHARS))
    last_at: Mapped[datetime]
    previous: Mapped[str] = mapped_column(String(HASH_CHARS))
    chain: Mapped[str] = mapped_column(String(HASH_CHARS))
    hash: Mapped[str] = mapped_column(String(HASH_CHARS))
    links: Mapped[bytes | None] = mapped_column(LargeBinary)
    sealed_at: Mapped[datetime] = mapped_column(default=clock.now)
    removed_at: Mapped[datetime | None]


class AuditHead(Base):
    """The end of a workspace's chain (`last_id`: the highest id of any sealed entry), and the point up to which
    retention has deleted entries (number of the seal, and time).

    It has no foreign key, because it must outlive a workspace that is permanently deleted, to allow the deletion of its
    entries.
    """

    __tablename__ = "audit_heads"

    workspace_id: Mapped[str] = mapped_column(String(ID_CHARS), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, default=0)
    hash: Mapped[str] = mapped_column(String(HASH_CHARS), default="")
    last_id: Mapped[str] = mapped_column(String(ID_CHARS), default="")
    removed: Mapped[int] = mapped_column(Integer, default=0)
    removed_until: Mapped[datetime | None]


attach(Base.metadata)
