"""Rows of a push that were undone are counted by themselves."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""
    op.add_column("pushes", sa.Column("undone", sa.BigInteger(), nullable=False, server_default="0"))
    # Before this revision, rows deleted by an undo were only counted in the undo.
    op.execute(
        "UPDATE pushes SET undone = (SELECT COALESCE(SUM(u.delivered), 0) FROM pushes u"
        " WHERE u.of_id = pushes.id AND u.kind = 'undo') WHERE kind = 'push'"
    )
    op.execute("UPDATE pushes SET delivered = delivered - undone WHERE undone > 0")


def downgrade() -> None:
    """Back to the one before."""
    op.execute("UPDATE pushes SET delivered = delivered + undone WHERE undone > 0")
    op.drop_column("pushes", "undone")
