"""Scenarios, runs, their logs, and workspace files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

DOC = sa.JSON(none_as_null=True)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """To this revision."""
    _scenarios()
    _runs()
    _files()
    with op.batch_alter_table("api_keys") as batch:
        batch.add_column(sa.Column("run_id", sa.String(length=40), nullable=True))
        batch.add_column(sa.Column("writable_secrets", DOC, nullable=False, server_default="[]"))
        batch.create_foreign_key(op.f("fk_api_keys_run_id"), "runs", ["run_id"], ["id"], ondelete="CASCADE")
        batch.create_index(op.f("ix_api_keys_run_id"), ["run_id"], unique=False)
    with op.batch_alter_table("api_keys") as batch:
        batch.alter_column("writable_secrets", server_default=None)


def _scenarios() -> None:
    op.create_table(
        "scenarios",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("timeout_seconds", sa.Integer(), nullable=False),
        sa.Column("network", sa.String(length=8), nullable=False),
        sa.Column("env", DOC, nullable=False),
        sa.Column("secrets", DOC, nullable=False),
        sa.Column("writable_secrets", DOC, nullable=False),
        sa.Column("schedule", DOC, nullable=True),
        sa.Column("next_run_at", TIME, nullable=True),
        sa.Column("schedule_problem", DOC, nullable=True),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("description", sa.String(length=10000), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("deleted_at", TIME, nullable=True),
        sa.Column("created_by", sa.String(length=40), nullable=True),
        *_in_project("scenarios"),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_scenarios_created_by"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scenarios")),
    )
    for column in ("deleted_at", "name", "next_run_at", "project_id", "workspace_id"):
        op.create_index(op.f(f"ix_scenarios_{column}"), "scenarios", [column], unique=False)
    op.create_table(
        "scenario_versions",
        sa.Column("scenario_id", sa.String(length=40), nullable=False),
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("spec", DOC, nullable=False),
        sa.Column("pins", DOC, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=True),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_scenario_versions_created_by"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["scenario_id"],
            ["scenarios.id"],
            name=op.f("fk_scenario_versions_scenario_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_scenario_versions")),
        sa.UniqueConstraint("scenario_id", "number", name=op.f("uq_scenario_versions_scenario_id_number")),
    )
    op.create_index(
        op.f("ix_scenario_versions_scenario_id"), "scenario_versions", ["scenario_id"], unique=False
    )


def _runs() -> None:
    op.create_table(
        "runs",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("scenario_id", sa.String(length=40), nullable=False),
        sa.Column("scenario_version", sa.Integer(), nullable=False),
        sa.Column("of_id", sa.String(length=40), nullable=True),
        sa.Column("params", DOC, nullable=False),
        sa.Column("trigger", sa.String(length=16), nullable=False),
        sa.Column("settings", DOC, nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("max_rss_bytes", sa.BigInteger(), nullable=True),
        sa.Column("cpu_ms", sa.BigInteger(), nullable=True),
        sa.Column("rows_generated", sa.BigInteger(), nullable=False),
        sa.Column("line_count", sa.BigInteger(), nullable=False),
        sa.Column("log_bytes", sa.BigInteger(), nullable=False),
        sa.Column("outputs", DOC, nullable=False),
        sa.Column("usage", DOC, nullable=False),
        sa.Column("created_by", sa.String(length=40), nullable=True),
        sa.Column("key_id", sa.String(length=40), nullable=True),
        sa.Column("closed_at", TIME, nullable=True),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("lease_owner", sa.String(length=200), nullable=True),
        sa.Column("lease_until", TIME, nullable=True),
        sa.Column("cancel_requested_at", TIME, nullable=True),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("error", DOC, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        *_in_project("runs"),
        sa.CheckConstraint(
            "status IN ('queued', 'running', 'completed', 'failed', 'cancelled', 'timed_out')",
            name=op.f("ck_runs_status"),
        ),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_runs_created_by"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(["of_id"], ["runs.id"], name=op.f("fk_runs_of_id"), ondelete="SET NULL"),
        sa.ForeignKeyConstraint(
            ["scenario_id"], ["scenarios.id"], name=op.f("fk_runs_scenario_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    for column in ("closed_at", "of_id", "project_id", "scenario_id", "workspace_id"):
        op.create_index(op.f(f"ix_runs_{column}"), "runs", [column], unique=False)
    op.create_index("ix_runs_status_lease_until", "runs", ["status", "lease_until"], unique=False)
    op.create_table(
        "run_chunks",
        sa.Column("run_id", sa.String(length=40), nullable=False),
        sa.Column("first", sa.BigInteger(), nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_run_chunks_run_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "first", name=op.f("pk_run_chunks")),
    )


def _files() -> None:
    op.create_table(
        "workspace_files",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("content_type", sa.String(length=200), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("storage_key", sa.String(length=300), nullable=False),
        sa.Column("run_id", sa.String(length=40), nullable=True),
        sa.Column("created_by", sa.String(length=40), nullable=True),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("deleted_at", TIME, nullable=True),
        sa.Column("workspace_id", sa.String(length=40), nullable=False),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_workspace_files_created_by"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name=op.f("fk_workspace_files_run_id"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"],
            ["workspaces.id"],
            name=op.f("fk_workspace_files_workspace_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workspace_files")),
    )
    for column in ("deleted_at", "run_id", "workspace_id"):
        op.create_index(op.f(f"ix_workspace_files_{column}"), "workspace_files", [column], unique=False)
    live = sa.text("deleted_at IS NULL")
    op.create_index(
        "ix_workspace_files_live_name",
        "workspace_files",
        ["workspace_id", "name"],
        unique=True,
        sqlite_where=live,
        postgresql_where=live,
    )


def _in_project(table: str) -> list[sa.schema.SchemaItem]:
    owners = {"project": "projects", "team": "teams", "workspace": "workspaces"}
    return [
        *(sa.Column(f"{owner}_id", sa.String(length=40), nullable=False) for owner in owners),
        *(
            sa.ForeignKeyConstraint(
                [f"{owner}_id"], [f"{of}.id"], name=op.f(f"fk_{table}_{owner}_id"), ondelete="CASCADE"
            )
            for owner, of in owners.items()
        ),
    ]


def downgrade() -> None:
    """Back to the one before."""
    with op.batch_alter_table("api_keys") as batch:
        batch.drop_index(op.f("ix_api_keys_run_id"))
        batch.drop_constraint(op.f("fk_api_keys_run_id"), type_="foreignkey")
        batch.drop_column("writable_secrets")
        batch.drop_column("run_id")
    for table in ("workspace_files", "run_chunks", "runs", "scenario_versions", "scenarios"):
        op.drop_table(table)
