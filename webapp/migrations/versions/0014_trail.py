"""The trail's chain of hashes, and what it is searched by."""

from __future__ import annotations

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""


def downgrade() -> None:
    """Back from it."""
