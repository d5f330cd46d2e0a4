"""Mail and webhooks about work that ended."""

from __future__ import annotations

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""


def downgrade() -> None:
    """Back from it."""
