"""Schedules of exports and pushes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

ID = sa.String(length=40)
TIME = sa.DateTime(timezone=True)
_PARENTS = (
    ("project_id", "projects", "CASCADE"),
    ("team_id", "teams", "CASCADE"),
    ("workspace_id", "workspaces", "CASCADE"),
    ("template_id", "templates", "CASCADE"),
    ("dataset_id", "datasets", "CASCADE"),
    ("saved_by", "users", "SET NULL"),
)


def upgrade() -> None:
    """To this revision."""
    op.create_table(
        "schedules",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("template_id", ID, nullable=True),
        sa.Column("dataset_id", ID, nullable=True),
        sa.Column("request", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("cron", sa.String(length=120), nullable=False),
        sa.Column("timezone", sa.String(length=64), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("new_seed", sa.Boolean(), nullable=False),
        sa.Column("next_run_at", TIME, nullable=True),
        sa.Column("last_job_id", ID, nullable=True),
        sa.Column("last_run_at", TIME, nullable=True),
        sa.Column("problem", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("saved_by", ID, nullable=True),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        *(sa.Column(column, ID, nullable=False) for column in ("project_id", "team_id", "workspace_id")),
        *(
            sa.ForeignKeyConstraint(
                [column], [f"{table}.id"], name=op.f(f"fk_schedules_{column}"), ondelete=ondelete
            )
            for column, table, ondelete in _PARENTS
        ),
        sa.CheckConstraint("kind IN ('export', 'push')", name=op.f("ck_schedules_kind")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_schedules")),
    )
    for column in ("project_id", "workspace_id", "template_id", "dataset_id", "next_run_at"):
        op.create_index(op.f(f"ix_schedules_{column}"), "schedules", [column])


def downgrade() -> None:
    """Back from this revision."""
    op.drop_table("schedules")
