"""Imports that a worker does."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

ID = sa.String(length=40)
TIME = sa.DateTime(timezone=True)
JSON = sa.JSON(none_as_null=True)


def upgrade() -> None:
    """To this revision."""
    parents = {
        "created_by": "users", "project_id": "projects", "team_id": "teams", "workspace_id": "workspaces",
    }  # fmt: skip
    op.create_table(
        "import_jobs",
        sa.Column("id", ID, nullable=False),
        sa.Column("request", JSON, nullable=False),
        sa.Column("document_key", sa.String(length=300), nullable=False),
        sa.Column("result_key", sa.String(length=300), nullable=True),
        sa.Column("tables", sa.Integer(), nullable=False),
        sa.Column("tables_done", sa.Integer(), nullable=False),
        sa.Column("saving", sa.Boolean(), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(length=200), nullable=True),
        sa.Column("lease_until", TIME, nullable=True),
        sa.Column("cancel_requested_at", TIME, nullable=True),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("error", JSON, nullable=True),
        *(sa.Column(name, ID, nullable=False) for name in parents),
        sa.Column("created_at", TIME, nullable=False),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'completed', 'failed', 'cancelled', 'timed_out')",
            name=op.f("ck_import_jobs_status"),
        ),
        *(
            sa.ForeignKeyConstraint(
                [name], [f"{table}.id"], name=op.f(f"fk_import_jobs_{name}"), ondelete="CASCADE"
            )
            for name, table in parents.items()
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_import_jobs")),
    )
    for columns in (["project_id"], ["workspace_id"], ["status", "lease_until"], ["finished_at"]):
        op.create_index(op.f(f"ix_import_jobs_{'_'.join(columns)}"), "import_jobs", columns)


def downgrade() -> None:
    """Back from this revision."""
    op.drop_table("import_jobs")
