"""Schedules that undo their previous push."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""
    op.add_column(
        "schedules", sa.Column("undo_previous", sa.Boolean(), nullable=False, server_default=sa.false())
    )


def downgrade() -> None:
    """Back from this revision."""
    with op.batch_alter_table("schedules") as batch:
        batch.drop_column("undo_previous")
