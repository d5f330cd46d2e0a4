"""The trail's chain of hashes, what it is searched by, what keeps it whole; usage by the hour."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)
INDEXES = {
    "ix_audit_entries_action_at": ["workspace_id", "action", "at"],
    "ix_audit_entries_object_type_at": ["workspace_id", "object_type", "at"],
    "ix_audit_entries_address_at": ["workspace_id", "address", "at"],
    "ix_audit_entries_object_id_at": ["workspace_id", "object_id", "at"],
    "ix_audit_entries_project_id_at": ["workspace_id", "project_id", "at"],
    "ix_audit_entries_user_id_at": ["workspace_id", "user_id", "at"],
    "ix_audit_entries_key_id_at": ["workspace_id", "key_id", "at"],
}
REMOVED = "SELECT 1 FROM audit_heads WHERE workspace_id = OLD.workspace_id AND removed_until >= OLD.{at}"
SEALED = "workspace_id number count first_id last_id last_at previous chain hash sealed_at".split()
FIXED = "audit entries are never changed"
KEPT = "audit entries are removed by retention alone"
SEALS_FIXED = "seals of the audit trail are never changed"
SEALS_KEPT = "seals of the audit trail stay"
SQLITE = (
    (
        "audit_entries_pending",
        "AFTER INSERT ON audit_entries",
        "INSERT OR IGNORE INTO audit_pending (workspace_id, entry_id) VALUES (NEW.workspace_id, NEW.id)",
    ),
    ("audit_entries_fixed", "BEFORE UPDATE ON audit_entries", f"SELECT RAISE(ABORT, '{FIXED}')"),
    (
        "audit_entries_kept",
        f"BEFORE DELETE ON audit_entries WHEN NOT EXISTS ({REMOVED.format(at='at')})",
        f"SELECT RAISE(ABORT, '{KEPT}')",
    ),
    (
        "audit_seals_fixed",
        f"BEFORE UPDATE OF {', '.join(SEALED)} ON audit_seals",
        f"SELECT RAISE(ABORT, '{SEALS_FIXED}')",
    ),
    (
        "audit_seals_kept",
        f"BEFORE DELETE ON audit_seals WHEN NOT EXISTS ({REMOVED.format(at='last_at')})",
        f"SELECT RAISE(ABORT, '{SEALS_KEPT}')",
    ),
)
SAME = " AND ".join(f"NEW.{name} = OLD.{name}" for name in SEALED)
POSTGRESQL = (
    (
        "audit_entries_pending",
        "AFTER INSERT ON audit_entries FOR EACH ROW",
        "INSERT INTO audit_pending (workspace_id, entry_id) VALUES (NEW.workspace_id, NEW.id)"
        " ON CONFLICT DO NOTHING; RETURN NULL;",
    ),
    ("audit_entries_fixed", "BEFORE UPDATE ON audit_entries FOR EACH ROW", f"RAISE EXCEPTION '{FIXED}';"),
    (
        "audit_entries_kept",
        "BEFORE DELETE ON audit_entries FOR EACH ROW",
        f"IF NOT EXISTS ({REMOVED.format(at='at')}) THEN RAISE EXCEPTION '{KEPT}'; END IF; RETURN OLD;",
    ),
    (
        "audit_entries_whole",
        "BEFORE TRUNCATE ON audit_entries FOR EACH STATEMENT",
        f"RAISE EXCEPTION '{KEPT}';",
    ),
    (
        "audit_seals_fixed",
        "BEFORE UPDATE ON audit_seals FOR EACH ROW",
        f"IF NOT ({SAME}) THEN RAISE EXCEPTION '{SEALS_FIXED}'; END IF; RETURN NEW;",
    ),
    (
        "audit_seals_kept",
        "BEFORE DELETE ON audit_seals FOR EACH ROW",
        f"IF NOT EXISTS ({REMOVED.format(at='last_at')}) THEN RAISE EXCEPTION '{SEALS_KEPT}'; END IF; RETURN OLD;",
    ),
)


def upgrade() -> None:
    """To this revision."""
    for name, columns in INDEXES.items():
        op.create_index(name, "audit_entries", columns, unique=False)
    op.drop_index("ix_audit_entries_workspace_id", table_name="audit_entries")  # others begin with it
    _tables()
    # What was written before is sealed, and counted by the hour, as what is written from now on.
    op.execute(
        "INSERT INTO audit_pending (workspace_id, entry_id) SELECT workspace_id, id FROM audit_entries"
    )
    if op.get_bind().dialect.name == "sqlite":
        for name, when, then in SQLITE:
            op.execute(f"CREATE TRIGGER {name} {when} BEGIN {then}; END")
        return
    for name, when, then in POSTGRESQL:
        op.execute(f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {then} END $$")
        op.execute(f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION {name}()")


def _tables() -> None:
    op.create_table(
        "audit_pending",
        sa.Column("workspace_id", sa.String(length=40), nullable=False),
        sa.Column("entry_id", sa.String(length=40), nullable=False),
        sa.PrimaryKeyConstraint("workspace_id", "entry_id", name=op.f("pk_audit_pending")),
    )
    op.create_table(
        "audit_seals",
        sa.Column("workspace_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("first_id", sa.String(length=40), nullable=False),
        sa.Column("last_id", sa.String(length=40), nullable=False),
        sa.Column("last_at", TIME, nullable=False),
        sa.Column("previous", sa.String(length=64), nullable=False),
        sa.Column("chain", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("links", sa.LargeBinary(), nullable=True),
        sa.Column("sealed_at", TIME, nullable=False),
        sa.Column("removed_at", TIME, nullable=True),
        _workspace("audit_seals"),
        sa.PrimaryKeyConstraint("workspace_id", "number", name=op.f("pk_audit_seals")),
    )
    op.create_table(
        "audit_heads",
        sa.Column("workspace_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("last_id", sa.String(length=40), nullable=False),
        sa.Column("removed", sa.Integer(), nullable=False),
        sa.Column("removed_until", TIME, nullable=True),
        sa.PrimaryKeyConstraint("workspace_id", name=op.f("pk_audit_heads")),
    )
    parts = ("project_id", "template_id", "key_id", "user_id")
    op.create_table(
        "usage_hours",
        sa.Column("workspace_id", sa.String(length=40), nullable=False),
        sa.Column("hour", TIME, nullable=False),
        *(sa.Column(name, sa.String(length=40), nullable=False) for name in parts),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("requests", sa.BigInteger(), nullable=False),
        _workspace("usage_hours"),
        sa.PrimaryKeyConstraint("workspace_id", "hour", *parts, name=op.f("pk_usage_hours")),
    )
    op.create_index("ix_usage_hours_hour", "usage_hours", ["hour"], unique=False)
    op.create_table(
        "usage_folds",
        sa.Column("workspace_id", sa.String(length=40), nullable=False),
        sa.Column("fold", sa.String(length=40), nullable=False),
        _workspace("usage_folds"),
        sa.PrimaryKeyConstraint("workspace_id", name=op.f("pk_usage_folds")),
    )


def _workspace(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_workspace_id")
    return sa.ForeignKeyConstraint(["workspace_id"], ["workspaces.id"], name=name, ondelete="CASCADE")


def downgrade() -> None:
    """Back from it."""
    if op.get_bind().dialect.name == "sqlite":
        for name, _, _ in SQLITE:
            op.execute(f"DROP TRIGGER {name}")
    else:
        for name, when, _ in POSTGRESQL:
            op.execute(f"DROP TRIGGER {name} ON {when.split()[3]}")
            op.execute(f"DROP FUNCTION {name}()")
    for table in ("usage_folds", "usage_hours", "audit_heads", "audit_seals", "audit_pending"):
        op.drop_table(table)
    op.create_index("ix_audit_entries_workspace_id", "audit_entries", ["workspace_id"], unique=False)
    for name in INDEXES:
        op.drop_index(name, table_name="audit_entries")
