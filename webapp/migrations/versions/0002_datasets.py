"""Datasets, and exports of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("description", sa.String(length=10000), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("table_count", sa.Integer(), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=True),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("project_id", sa.String(length=40), nullable=False),
        sa.Column("team_id", sa.String(length=40), nullable=False),
        sa.Column("workspace_id", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_datasets_created_by"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_datasets_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["team_id"], ["teams.id"], name=op.f("fk_datasets_team_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_datasets_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
    )
    for column in ("deleted_at", "name", "project_id", "workspace_id"):
        op.create_index(op.f(f"ix_datasets_{column}"), "datasets", [column])
    op.create_table(
        "dataset_versions",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("dataset_id", sa.String(length=40), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("spec", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("pins", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_dataset_versions_created_by"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["dataset_id"], ["datasets.id"], name=op.f("fk_dataset_versions_dataset_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_versions")),
        sa.UniqueConstraint("dataset_id", "number", name=op.f("uq_dataset_versions_dataset_id_number")),
    )
    op.create_index(op.f("ix_dataset_versions_dataset_id"), "dataset_versions", ["dataset_id"])
    with op.batch_alter_table("exports") as exports:
        exports.add_column(sa.Column("dataset_id", sa.String(length=40), nullable=True))
        exports.add_column(sa.Column("dataset_version", sa.Integer(), nullable=True))
        exports.create_foreign_key(
            op.f("fk_exports_dataset_id"), "datasets", ["dataset_id"], ["id"], ondelete="SET NULL"
        )
        exports.create_index(op.f("ix_exports_dataset_id"), ["dataset_id"])


def downgrade() -> None:
    """Back from this revision. Exports of datasets go with them: nothing before it could make or describe them."""
    op.execute("DELETE FROM exports WHERE dataset_version IS NOT NULL")
    with op.batch_alter_table("exports") as exports:
        exports.drop_index(op.f("ix_exports_dataset_id"))
        exports.drop_constraint(op.f("fk_exports_dataset_id"), type_="foreignkey")
        exports.drop_column("dataset_version")
        exports.drop_column("dataset_id")
    op.drop_table("dataset_versions")
    op.drop_table("datasets")
