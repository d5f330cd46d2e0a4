"""Signing in by OpenID Connect and with a second factor."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """To this revision."""
    with op.batch_alter_table("browser_sessions") as batch:
        batch.add_column(sa.Column("how", sa.String(length=16), nullable=False, server_default=""))
        batch.add_column(sa.Column("two_factor", sa.Boolean(), nullable=False, server_default=sa.false()))
    with op.batch_alter_table("browser_sessions") as batch:
        batch.alter_column("how", server_default=None)
        batch.alter_column("two_factor", server_default=None)
    op.create_table(
        "identities",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("user_id", sa.String(length=40), nullable=False),
        sa.Column("issuer", sa.String(length=500), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("email", sa.String(length=320), nullable=False),
        sa.Column("last_used_at", TIME, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_identities_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identities")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_identities_issuer_subject")),
    )
    op.create_index(op.f("ix_identities_user_id"), "identities", ["user_id"], unique=False)
    op.create_table(
        "second_factors",
        sa.Column("user_id", sa.String(length=40), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("last_step", sa.BigInteger(), nullable=False),
        sa.Column("confirmed_at", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_second_factors_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_second_factors")),
    )
    op.create_table(
        "recovery_codes",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("user_id", sa.String(length=40), nullable=False),
        sa.Column("code_hash", sa.String(length=64), nullable=False),
        sa.Column("used_at", TIME, nullable=True),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"], ["users.id"], name=op.f("fk_recovery_codes_user_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_recovery_codes")),
        sa.UniqueConstraint("user_id", "code_hash", name=op.f("uq_recovery_codes_user_id_code_hash")),
    )


def downgrade() -> None:
    """Back from it."""
    for table in ("recovery_codes", "second_factors", "identities"):
        op.drop_table(table)
    with op.batch_alter_table("browser_sessions") as batch:
        batch.drop_column("two_factor")
        batch.drop_column("how")
