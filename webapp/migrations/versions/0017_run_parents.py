"""Which run's program started a run, and how deep it is below the first."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""
    with op.batch_alter_table("runs") as runs:
        runs.add_column(sa.Column("parent_id", sa.String(length=40), nullable=True))
        runs.add_column(sa.Column("depth", sa.Integer(), nullable=False, server_default="0"))
        runs.create_foreign_key(op.f("fk_runs_parent_id"), "runs", ["parent_id"], ["id"], ondelete="SET NULL")
        runs.create_index(op.f("ix_runs_parent_id"), ["parent_id"])


def downgrade() -> None:
    """Back from this revision."""
    with op.batch_alter_table("runs") as runs:
        runs.drop_index(op.f("ix_runs_parent_id"))
        runs.drop_constraint(op.f("fk_runs_parent_id"), type_="foreignkey")
        runs.drop_column("depth")
        runs.drop_column("parent_id")
