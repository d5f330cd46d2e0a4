"""What the operators' pages and sweeps keep."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


WORK = ("exports", "export_parts", "pushes", "runs")
REMOVED = (("exports", "file_removed_at"), ("pushes", "log_removed_at"), ("runs", "log_removed_at"))


def upgrade() -> None:
    """To this revision."""
    for table, column in REMOVED:
        with op.batch_alter_table(table) as batch:
            batch.add_column(sa.Column(column, sa.DateTime(timezone=True), nullable=True))
    for table in WORK:
        op.create_index(f"ix_{table}_finished_at", table, ["finished_at"])
    with op.batch_alter_table("api_keys") as batch:
        batch.add_column(sa.Column("last_used_address", sa.String(64), nullable=True))
    with op.batch_alter_table("workspaces") as batch:
        batch.add_column(sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True))
        batch.create_index(batch.f("ix_workspaces_deleted_at"), ["deleted_at"])


def downgrade() -> None:
    """Back from it."""
    for table in WORK:
        op.drop_index(f"ix_{table}_finished_at", table_name=table)
    for table, column in REMOVED:
        with op.batch_alter_table(table) as batch:
            batch.drop_column(column)
    with op.batch_alter_table("workspaces") as batch:
        batch.drop_index(batch.f("ix_workspaces_deleted_at"))
        batch.drop_column("deleted_at")
    with op.batch_alter_table("api_keys") as batch:
        batch.drop_column("last_used_address")
