"""Pushes that wait for their target, and chunks of ended pushes whose commit is still in doubt."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""
    op.add_column("pushes", sa.Column("retry_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("pushes", sa.Column("waiting", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("pushes", sa.Column("unsettled", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Back from this revision."""
    with op.batch_alter_table("pushes") as batch:
        for name in ("retry_at", "waiting", "unsettled"):
            batch.drop_column(name)
