"""Connections, secrets, what was fetched, pushes and their ledger."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "connections",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("type", sa.String(length=20), nullable=False),
        sa.Column("settings", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("environment", sa.String(length=8), nullable=False),
        sa.Column("read_only", sa.Boolean(), nullable=False),
        sa.Column("verification", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("metadata_key", sa.String(length=300), nullable=True),
        sa.Column("metadata_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_by", sa.String(length=40), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("team_id", sa.String(length=40), nullable=False),
        sa.Column("workspace_id", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_connections_created_by"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_connections_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["team_id"], ["teams.id"], name=op.f("fk_connections_team_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_connections_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_connections")),
    )
    op.create_index(op.f("ix_connections_deleted_at"), "connections", ["deleted_at"], unique=False)
    op.create_index(op.f("ix_connections_name"), "connections", ["name"], unique=False)
    op.create_index(op.f("ix_connections_project_id"), "connections", ["project_id"], unique=False)
    op.create_index(op.f("ix_connections_workspace_id"), "connections", ["workspace_id"], unique=False)
    op.create_table(
        "fetched",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("connection_id", sa.String(length=40), nullable=False),
        sa.Column("question", sa.String(length=64), nullable=False),
        sa.Column("value", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("storage_key", sa.String(length=300), nullable=True),
        sa.Column("snapshot", sa.String(length=64), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("fetched_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("workspace_id", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["connection_id"], ["connections.id"], name=op.f("fk_fetched_connection_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_fetched_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_fetched")),
        sa.UniqueConstraint(
            "workspace_id",
            "connection_id",
            "question",
            name=op.f("uq_fetched_workspace_id_connection_id_question"),
        ),
    )
    op.create_index(op.f("ix_fetched_connection_id"), "fetched", ["connection_id"], unique=False)
    op.create_index("ix_fetched_expires_at", "fetched", ["expires_at"], unique=False)
    op.create_index(op.f("ix_fetched_workspace_id"), "fetched", ["workspace_id"], unique=False)
    op.create_table(
        "pushes",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("of_id", sa.String(length=40), nullable=True),
        sa.Column("connection_id", sa.String(length=40), nullable=True),
        sa.Column("template_id", sa.String(length=40), nullable=True),
        sa.Column("template_version", sa.Integer(), nullable=True),
        sa.Column("dataset_id", sa.String(length=40), nullable=True),
        sa.Column("dataset_version", sa.Integer(), nullable=True),
        sa.Column("target", sa.String(length=200), nullable=False),
        sa.Column("total", sa.BigInteger(), nullable=False),
        sa.Column("delivered", sa.BigInteger(), nullable=False),
        sa.Column("failed", sa.BigInteger(), nullable=False),
        sa.Column("unknown", sa.BigInteger(), nullable=False),
        sa.Column("tables", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("request", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("pins", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("intent", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("progress", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=True),
        sa.Column("key_id", sa.String(length=40), nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(length=200), nullable=True),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("error", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("team_id", sa.String(length=40), nullable=False),
        sa.Column("workspace_id", sa.String(length=40), nullable=False),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'completed', 'failed', 'cancelled', 'timed_out')",
            name=op.f("ck_pushes_status"),
        ),
        sa.ForeignKeyConstraint(
            ["connection_id"], ["connections.id"], name=op.f("fk_pushes_connection_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_pushes_created_by"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_pushes_dataset_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["of_id"], ["pushes.id"], name=op.f("fk_pushes_of_id"), ondelete="SET NULL"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_pushes_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["team_id"], ["teams.id"], name=op.f("fk_pushes_team_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["template_id"], ["templates.id"], name=op.f("fk_pushes_template_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_pushes_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pushes")),
    )
    op.create_index(op.f("ix_pushes_connection_id"), "pushes", ["connection_id"], unique=False)
    op.create_index(op.f("ix_pushes_dataset_id"), "pushes", ["dataset_id"], unique=False)
    op.create_index(op.f("ix_pushes_deleted_at"), "pushes", ["deleted_at"], unique=False)
    op.create_index(op.f("ix_pushes_of_id"), "pushes", ["of_id"], unique=False)
    op.create_index(op.f("ix_pushes_project_id"), "pushes", ["project_id"], unique=False)
    op.create_index("ix_pushes_status_lease_until", "pushes", ["status", "lease_until"], unique=False)
    op.create_index(op.f("ix_pushes_template_id"), "pushes", ["template_id"], unique=False)
    op.create_index(op.f("ix_pushes_workspace_id"), "pushes", ["workspace_id"], unique=False)
    op.create_table(
        "secrets",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=True),
        sa.Column("connection_id", sa.String(length=40), nullable=True),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("workspace_id", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["connection_id"], ["connections.id"], name=op.f("fk_secrets_connection_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_secrets_created_by"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_secrets_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_secrets")),
        sa.UniqueConstraint("workspace_id", "name", name=op.f("uq_secrets_workspace_id_name")),
    )
    op.create_index(op.f("ix_secrets_connection_id"), "secrets", ["connection_id"], unique=False)
    op.create_index(op.f("ix_secrets_workspace_id"), "secrets", ["workspace_id"], unique=False)
    op.create_table(
        "push_lines",
        sa.Column("push_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["push_id"], ["pushes.id"], name=op.f("fk_push_lines_push_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("push_id", "number", name=op.f("pk_push_lines")),
    )
    op.create_table(
        "push_ranges",
        sa.Column("push_id", sa.String(length=40), nullable=False),
        sa.Column("table_no", sa.Integer(), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["push_id"], ["pushes.id"], name=op.f("fk_push_ranges_push_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("push_id", "table_no", "first", name=op.f("pk_push_ranges")),
    )
    op.create_table(
        "push_rows",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("push_id", sa.String(length=40), nullable=False),
        sa.Column("table_no", sa.Integer(), nullable=False),
        sa.Column("row_no", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("code", sa.String(length=40), nullable=False),
        sa.Column("native", sa.String(length=40), nullable=False),
        sa.Column("column_name", sa.String(length=200), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("key", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("ms", sa.Integer(), nullable=True),
        sa.Column("retried_by", sa.String(length=40), nullable=True),
        sa.ForeignKeyConstraint(
            ["push_id"], ["pushes.id"], name=op.f("fk_push_rows_push_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_push_rows")),
    )
    op.create_index("ix_push_rows_of", "push_rows", ["push_id", "table_no", "row_no"], unique=True)
    op.create_index("ix_push_rows_retried_by", "push_rows", ["retried_by"], unique=False)
    op.create_index(
        "ix_push_rows_state", "push_rows", ["push_id", "state", "table_no", "row_no"], unique=False
    )


def downgrade() -> None:
    """Back to the one before."""
    op.drop_index("ix_push_rows_state", table_name="push_rows")
    op.drop_index("ix_push_rows_retried_by", table_name="push_rows")
    op.drop_index("ix_push_rows_of", table_name="push_rows")
    op.drop_table("push_rows")
    op.drop_table("push_ranges")
    op.drop_table("push_lines")
    op.drop_index(op.f("ix_secrets_workspace_id"), table_name="secrets")
    op.drop_index(op.f("ix_secrets_connection_id"), table_name="secrets")
    op.drop_table("secrets")
    op.drop_index(op.f("ix_pushes_workspace_id"), table_name="pushes")
    op.drop_index(op.f("ix_pushes_template_id"), table_name="pushes")
    op.drop_index("ix_pushes_status_lease_until", table_name="pushes")
    op.drop_index(op.f("ix_pushes_project_id"), table_name="pushes")
    op.drop_index(op.f("ix_pushes_of_id"), table_name="pushes")
    op.drop_index(op.f("ix_pushes_deleted_at"), table_name="pushes")
    op.drop_index(op.f("ix_pushes_dataset_id"), table_name="pushes")
    op.drop_index(op.f("ix_pushes_connection_id"), table_name="pushes")
    op.drop_table("pushes")
    op.drop_index(op.f("ix_fetched_workspace_id"), table_name="fetched")
    op.drop_index("ix_fetched_expires_at", table_name="fetched")
    op.drop_index(op.f("ix_fetched_connection_id"), table_name="fetched")
    op.drop_table("fetched")
    op.drop_index(op.f("ix_connections_workspace_id"), table_name="connections")
    op.drop_index(op.f("ix_connections_project_id"), table_name="connections")
    op.drop_index(op.f("ix_connections_name"), table_name="connections")
    op.drop_index(op.f("ix_connections_deleted_at"), table_name="connections")
    op.drop_table("connections")
