"""What the leak check saw of rows that are taken from real data."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

DOC = sa.JSON(none_as_null=True)
TABLES = ("exports", "export_parts", "pushes")


def upgrade() -> None:
    """To this revision."""
    for table in TABLES:
        with op.batch_alter_table(table) as batch:
            batch.add_column(sa.Column("leaks", DOC, nullable=True))


def downgrade() -> None:
    """Back from it."""
    for table in reversed(TABLES):
        with op.batch_alter_table(table) as batch:
            batch.drop_column("leaks")
