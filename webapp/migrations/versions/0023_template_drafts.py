"""Drafts of templates and their revisions."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

ID = sa.String(length=40)
TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """To this revision."""
    parents = {
        "user_id": "users", "template_id": "templates",
        "project_id": "projects", "team_id": "teams", "workspace_id": "workspaces",
    }  # fmt: skip
    op.create_table(
        "template_drafts",
        sa.Column("id", ID, nullable=False),
        *(sa.Column(name, ID, nullable=name == "template_id") for name in parents),
        sa.Column("loaded_version", sa.Integer(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("saved_position", sa.Integer(), nullable=True),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        *(
            sa.ForeignKeyConstraint(
                [name], [f"{table}.id"], name=op.f(f"fk_template_drafts_{name}"), ondelete="CASCADE"
            )
            for name, table in parents.items()
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_template_drafts")),
        sa.UniqueConstraint("user_id", "template_id", name=op.f("uq_template_drafts_user_id_template_id")),
    )
    op.create_table(
        "template_draft_revisions",
        sa.Column("id", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("draft_id", ID, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("label", sa.String(length=200), nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("spec", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["draft_id"], ["template_drafts.id"], name=op.f("fk_template_draft_revisions_draft_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_template_draft_revisions")),
        sa.UniqueConstraint(
            "draft_id", "number", name=op.f("uq_template_draft_revisions_draft_id_number")
        ),
    )  # fmt: skip
    for column in ("user_id", "template_id", "project_id", "workspace_id"):
        op.create_index(op.f(f"ix_template_drafts_{column}"), "template_drafts", [column])
    op.create_index(op.f("ix_template_draft_revisions_draft_id"), "template_draft_revisions", ["draft_id"])


def downgrade() -> None:
    """Back from this revision."""
    op.drop_table("template_draft_revisions")
    op.drop_table("template_drafts")
