"""Templates remember the table of a connection that they were made from."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""
    with op.batch_alter_table("templates") as table:
        table.add_column(sa.Column("made_from_id", sa.String(length=40), nullable=True))
        table.add_column(sa.Column("made_from_entity", sa.String(length=200), nullable=True))
        table.create_foreign_key(
            op.f("fk_templates_made_from_id"), "connections", ["made_from_id"], ["id"], ondelete="SET NULL"
        )
        table.create_index(op.f("ix_templates_made_from_id"), ["made_from_id"], unique=False)


def downgrade() -> None:
    """Back to the one before."""
    with op.batch_alter_table("templates") as table:
        table.drop_index(op.f("ix_templates_made_from_id"))
        table.drop_constraint(op.f("fk_templates_made_from_id"), type_="foreignkey")
        table.drop_column("made_from_entity")
        table.drop_column("made_from_id")
