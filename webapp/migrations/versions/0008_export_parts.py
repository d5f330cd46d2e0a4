"""Exports in parts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

DOC = sa.JSON(none_as_null=True)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """To this revision."""
    with op.batch_alter_table("exports") as batch:
        batch.add_column(sa.Column("part_rows", sa.BigInteger(), nullable=True))
        batch.add_column(sa.Column("parts_done", sa.Integer(), nullable=False, server_default="0"))
        batch.add_column(sa.Column("of_id", sa.String(length=40), nullable=True))
        batch.create_foreign_key(op.f("fk_exports_of_id"), "exports", ["of_id"], ["id"], ondelete="SET NULL")
        batch.create_index(op.f("ix_exports_of_id"), ["of_id"], unique=False)
    with op.batch_alter_table("exports") as batch:
        batch.alter_column("parts_done", server_default=None)
    op.create_table(
        "export_parts",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("export_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("offset", sa.BigInteger(), nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("rows_done", sa.BigInteger(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=True),
        sa.Column("storage_key", sa.String(length=300), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(length=200), nullable=True),
        sa.Column("lease_until", TIME, nullable=True),
        sa.Column("cancel_requested_at", TIME, nullable=True),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("error", DOC, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'completed', 'failed', 'cancelled', 'timed_out')",
            name=op.f("ck_export_parts_status"),
        ),
        sa.ForeignKeyConstraint(
            ["export_id"], ["exports.id"], name=op.f("fk_export_parts_export_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_export_parts")),
        sa.UniqueConstraint("export_id", "number", name=op.f("uq_export_parts_export_id_number")),
    )
    op.create_index(op.f("ix_export_parts_storage_key"), "export_parts", ["storage_key"], unique=False)
    op.create_index(
        "ix_export_parts_status_lease_until", "export_parts", ["status", "lease_until"], unique=False
    )


def downgrade() -> None:
    """Back to the one before."""
    op.drop_table("export_parts")
    with op.batch_alter_table("exports") as batch:
        batch.drop_index(op.f("ix_exports_of_id"))
        batch.drop_constraint(op.f("fk_exports_of_id"), type_="foreignkey")
        batch.drop_column("of_id")
        batch.drop_column("parts_done")
        batch.drop_column("part_rows")
