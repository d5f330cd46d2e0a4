"""Files of projects, folders of SQLite files, and where named secrets may be sent.

Existing files stay shared with their workspace, existing SQLite connections keep their files, and existing secrets may
be sent to any host, until a user changes that.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

ID = sa.String(length=40)
LIVE = sa.text("deleted_at IS NULL")
SHARED = sa.text("deleted_at IS NULL AND project_id IS NULL")
OWNED = sa.text("deleted_at IS NULL AND project_id IS NOT NULL")
NAME = "ix_workspace_files_live_name"
IN_PROJECT = "ix_workspace_files_project_name"


def upgrade() -> None:
    """To this revision."""
    op.drop_index(NAME, table_name="workspace_files")
    with op.batch_alter_table("workspace_files") as batch:
        batch.add_column(sa.Column("project_id", ID, nullable=True))
        batch.add_column(sa.Column("team_id", ID, nullable=True))
        for column, table in (("project_id", "projects"), ("team_id", "teams")):
            name = batch.f(f"fk_workspace_files_{column}")
            batch.create_foreign_key(name, table, [column], ["id"], ondelete="CASCADE")
        batch.create_index(batch.f("ix_workspace_files_project_id"), ["project_id"])
    unique: dict[str, Any] = {"unique": True, "sqlite_where": SHARED, "postgresql_where": SHARED}
    op.create_index(NAME, "workspace_files", ["workspace_id", "name"], **unique)
    unique = {"unique": True, "sqlite_where": OWNED, "postgresql_where": OWNED}
    op.create_index(IN_PROJECT, "workspace_files", ["workspace_id", "project_id", "name"], **unique)
    with op.batch_alter_table("connections") as batch:
        batch.add_column(sa.Column("file_folder", ID, nullable=True))
    with op.batch_alter_table("secrets") as batch:
        batch.add_column(sa.Column("allowed_hosts", sa.JSON(none_as_null=True), nullable=True))
        batch.add_column(sa.Column("project_id", ID, nullable=True))
        name = batch.f("fk_secrets_project_id")
        batch.create_foreign_key(name, "projects", ["project_id"], ["id"], ondelete="CASCADE")
        batch.create_index(batch.f("ix_secrets_project_id"), ["project_id"])
    op.create_table(
        "storage_holds",
        sa.Column("key", sa.String(length=300), nullable=False),
        sa.Column("area", sa.String(length=8), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("workspace_id", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_storage_holds_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_storage_holds")),
    )
    op.create_index(op.f("ix_storage_holds_workspace_id"), "storage_holds", ["workspace_id"])


def downgrade() -> None:
    """Back from it. Fails where two projects have files of one name: delete or rename one of them first."""
    op.drop_table("storage_holds")
    with op.batch_alter_table("secrets") as batch:
        batch.drop_index(batch.f("ix_secrets_project_id"))
        batch.drop_constraint(batch.f("fk_secrets_project_id"), type_="foreignkey")
        batch.drop_column("project_id")
        batch.drop_column("allowed_hosts")
    with op.batch_alter_table("connections") as batch:
        batch.drop_column("file_folder")
    for name in (NAME, IN_PROJECT):
        op.drop_index(name, table_name="workspace_files")
    with op.batch_alter_table("workspace_files") as batch:
        batch.drop_index(batch.f("ix_workspace_files_project_id"))
        for column in ("project_id", "team_id"):
            batch.drop_constraint(batch.f(f"fk_workspace_files_{column}"), type_="foreignkey")
            batch.drop_column(column)
    unique: dict[str, Any] = {"unique": True, "sqlite_where": LIVE, "postgresql_where": LIVE}
    op.create_index(NAME, "workspace_files", ["workspace_id", "name"], **unique)
