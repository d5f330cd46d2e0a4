"""Endpoints, metadata documents, pushes over HTTP."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "endpoints",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("connection_id", sa.String(length=40), nullable=False),
        sa.Column("settings", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("team_id", sa.String(length=40), nullable=False),
        sa.Column("workspace_id", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["connection_id"], ["connections.id"], name=op.f("fk_endpoints_connection_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_endpoints_created_by"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_endpoints_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["team_id"], ["teams.id"], name=op.f("fk_endpoints_team_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_endpoints_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_endpoints")),
    )
    for column in ("connection_id", "deleted_at", "name", "project_id", "workspace_id"):
        op.create_index(op.f(f"ix_endpoints_{column}"), "endpoints", [column], unique=False)
    op.add_column("connections", sa.Column("document_key", sa.String(length=300), nullable=True))
    op.add_column("pushes", sa.Column("status_code", sa.Integer(), nullable=True))
    op.add_column(
        "connections", sa.Column("of_endpoint", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    with op.batch_alter_table("connections") as batch:
        batch.alter_column("of_endpoint", server_default=None)
    with op.batch_alter_table("pushes") as batch:
        batch.add_column(sa.Column("endpoint_id", sa.String(length=40), nullable=True))
        batch.create_foreign_key(
            op.f("fk_pushes_endpoint_id"), "endpoints", ["endpoint_id"], ["id"], ondelete="SET NULL"
        )
        batch.create_index(op.f("ix_pushes_endpoint_id"), ["endpoint_id"], unique=False)


def downgrade() -> None:
    """Back to the one before."""
    op.drop_index(op.f("ix_pushes_endpoint_id"), table_name="pushes")
    with op.batch_alter_table("pushes") as batch:
        batch.drop_constraint(op.f("fk_pushes_endpoint_id"), type_="foreignkey")
        batch.drop_column("endpoint_id")
    op.drop_column("pushes", "status_code")
    op.drop_column("connections", "of_endpoint")
    op.drop_column("connections", "document_key")
    op.drop_table("endpoints")
