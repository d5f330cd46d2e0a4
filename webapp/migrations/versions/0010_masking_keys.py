"""Keys that real values are masked by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "masking_keys",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("workspace_id", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_masking_keys_created_by"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_masking_keys_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_masking_keys")),
        sa.UniqueConstraint("workspace_id", "version", name=op.f("uq_masking_keys_workspace_id_version")),
    )
    op.create_index(op.f("ix_masking_keys_workspace_id"), "masking_keys", ["workspace_id"], unique=False)


def downgrade() -> None:
    """Back to the one before."""
    op.drop_table("masking_keys")
