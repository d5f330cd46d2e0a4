"""Signing in by OpenID Connect and with a second factor."""

from __future__ import annotations

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""


def downgrade() -> None:
    """Back from it."""
