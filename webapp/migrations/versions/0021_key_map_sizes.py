"""Sizes of the entries of key maps, which count toward the quota of files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

TABLE = "key_map_entries"
INDEX = "ix_key_map_entries_workspace_size"


def upgrade() -> None:
    """To this revision. Existing entries get the size that new ones have: see `key_maps.entry_bytes`."""
    op.add_column(TABLE, sa.Column("size", sa.Integer(), nullable=False, server_default="0"))
    names = ("map_name", "object_name", "old_key", "new_key", "run_id")
    entries = sa.table(TABLE, sa.column("size"), *(sa.column(name, sa.String()) for name in names))
    on_postgresql = op.get_bind().dialect.name == "postgresql"

    def length(name: str) -> sa.ColumnElement[int]:
        text = sa.func.coalesce(entries.c[name], "")
        return sa.func.octet_length(text) if on_postgresql else sa.func.length(sa.cast(text, sa.LargeBinary))

    indexed = length("map_name") + length("object_name") + length("old_key")
    op.execute(entries.update().values(size=200 + 2 * indexed + length("new_key") + length("run_id")))
    op.create_index(INDEX, TABLE, ["workspace_id", "size"])


def downgrade() -> None:
    """Back from this revision."""
    op.drop_index(INDEX, table_name=TABLE)
    with op.batch_alter_table(TABLE) as batch:
        batch.drop_column("size")
