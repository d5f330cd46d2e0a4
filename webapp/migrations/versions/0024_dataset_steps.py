"""Steps of a dataset that can be undone."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""
    op.add_column("dataset_versions", sa.Column("step", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    """Back from this revision."""
    with op.batch_alter_table("dataset_versions") as batch:
        batch.drop_column("step")
