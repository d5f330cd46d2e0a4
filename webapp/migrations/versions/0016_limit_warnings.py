"""Warnings that most of a plan's limit is used."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

ID = sa.String(length=40)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "limit_warnings",
        sa.Column("id", ID, nullable=False),
        sa.Column("limit_name", sa.String(length=12), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.Column("most", sa.BigInteger(), nullable=False),
        sa.Column("crossed_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("workspace_id", ID, nullable=False),
        sa.CheckConstraint("limit_name IN ('requests', 'rows')", name=op.f("ck_limit_warnings_limit_name")),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_limit_warnings_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_limit_warnings")),
    )
    op.create_index(op.f("ix_limit_warnings_workspace_id"), "limit_warnings", ["workspace_id"])
    op.create_index(
        "ix_limit_warnings_workspace_id_created_at", "limit_warnings", ["workspace_id", "created_at"]
    )


def downgrade() -> None:
    """Back from this revision."""
    op.drop_table("limit_warnings")
