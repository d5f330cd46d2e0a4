"""Mail and webhooks about work that ended."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

ID = sa.String(length=40)
DOC = sa.JSON(none_as_null=True)
TIME = sa.DateTime(timezone=True)
WORK = ("exports", "pushes", "runs")


def upgrade() -> None:
    """Migrate to this revision. No notifications are sent about work that finished earlier."""
    for table in WORK:
        with op.batch_alter_table(table) as batch:
            batch.add_column(sa.Column("noticed_at", TIME, nullable=True))
            batch.create_index(op.f(f"ix_{table}_noticed_at"), ["noticed_at"], unique=False)
        op.execute(
            f"UPDATE {table} SET noticed_at = coalesce(finished_at, created_at) "  # noqa: S608 - constant names
            "WHERE status NOT IN ('queued', 'running')"
        )
    _mails()
    _webhooks()


def _mails() -> None:
    op.create_table(
        "mails",
        sa.Column("id", ID, nullable=False),
        sa.Column("workspace_id", ID, nullable=True),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("about", ID, nullable=True),
        sa.Column("recipient", sa.String(length=320), nullable=False),
        sa.Column("subject", sa.String(length=150), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.Column("status", sa.String(length=8), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_at", TIME, nullable=False),
        sa.Column("claimed_until", TIME, nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.CheckConstraint("status IN ('queued', 'sent', 'failed')", name=op.f("ck_mails_status")),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_mails_workspace_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["user_id"], ["users.id"], name=op.f("fk_mails_user_id"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_mails")),
    )
    op.create_index(op.f("ix_mails_workspace_id"), "mails", ["workspace_id"], unique=False)
    op.create_index(op.f("ix_mails_about"), "mails", ["about"], unique=False)
    op.create_index("ix_mails_status_next_at", "mails", ["status", "next_at"], unique=False)
    op.create_index("ix_mails_user_id_created_at", "mails", ["user_id", "created_at"], unique=False)
    op.create_table(
        "notice_choices",
        sa.Column("user_id", ID, nullable=False),
        sa.Column("mail", sa.String(length=8), nullable=False),
        sa.Column("minutes", sa.Integer(), nullable=False),
        sa.CheckConstraint("mail IN ('never', 'failed', 'always')", name=op.f("ck_notice_choices_mail")),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_notice_choices_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_notice_choices")),
    )


def _webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("id", ID, nullable=False),
        sa.Column("project_id", ID, nullable=True),
        sa.Column("team_id", ID, nullable=True),
        sa.Column("description", sa.String(length=200), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", DOC, nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_before", sa.LargeBinary(), nullable=True),
        sa.Column("before_until", TIME, nullable=True),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("off_reason", sa.String(length=16), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("failing_since", TIME, nullable=True),
        sa.Column("created_by", ID, nullable=True),
        sa.Column("updated_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("deleted_at", TIME, nullable=True),
        sa.Column("workspace_id", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["project_id"], ["projects.id"], name=op.f("fk_webhooks_project_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["team_id"], ["teams.id"], name=op.f("fk_webhooks_team_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["created_by"], ["users.id"], name=op.f("fk_webhooks_created_by"), ondelete="SET NULL"
        ),
        sa.ForeignKeyConstraint(
            ["workspace_id"], ["workspaces.id"], name=op.f("fk_webhooks_workspace_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhooks")),
    )
    for column in ("project_id", "deleted_at", "workspace_id"):
        op.create_index(op.f(f"ix_webhooks_{column}"), "webhooks", [column], unique=False)
    op.create_table(
        "deliveries",
        sa.Column("id", ID, nullable=False),
        sa.Column("webhook_id", ID, nullable=False),
        sa.Column("event", sa.String(length=40), nullable=False),
        sa.Column("object_id", ID, nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("status", sa.String(length=12), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("tries", DOC, nullable=False),
        sa.Column("response_status", sa.Integer(), nullable=True),
        sa.Column("ms", sa.Integer(), nullable=True),
        sa.Column("reason", sa.String(length=500), nullable=False),
        sa.Column("head", sa.String(length=200), nullable=False),
        sa.Column("next_at", TIME, nullable=True),
        sa.Column("claimed_until", TIME, nullable=True),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.CheckConstraint("status IN ('pending', 'delivered', 'failed')", name=op.f("ck_deliveries_status")),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhooks.id"], name=op.f("fk_deliveries_webhook_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
    )
    op.create_index("ix_deliveries_status_next_at", "deliveries", ["status", "next_at"], unique=False)
    op.create_index("ix_deliveries_webhook_id_id", "deliveries", ["webhook_id", "id"], unique=False)


def downgrade() -> None:
    """Back to the one before."""
    for table in ("deliveries", "webhooks", "notice_choices", "mails"):
        op.drop_table(table)
    for table in WORK:
        with op.batch_alter_table(table) as batch:
            batch.drop_index(op.f(f"ix_{table}_noticed_at"))
            batch.drop_column("noticed_at")
