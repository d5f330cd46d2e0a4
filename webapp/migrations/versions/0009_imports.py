"""What imports made of files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

DOC = sa.JSON(none_as_null=True)


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "template_imports",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("template_id", sa.String(length=40), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("format", sa.String(length=200), nullable=False),
        sa.Column("source", sa.String(length=255), nullable=False),
        sa.Column("entity", sa.String(length=200), nullable=False),
        sa.Column("report", DOC, nullable=False),
        sa.Column("columns", DOC, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["template_id"],
            ["templates.id"],
            name=op.f("fk_template_imports_template_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_template_imports")),
    )
    op.create_index(
        op.f("ix_template_imports_template_id"), "template_imports", ["template_id"], unique=False
    )


def downgrade() -> None:
    """Back to the one before."""
    op.drop_table("template_imports")
