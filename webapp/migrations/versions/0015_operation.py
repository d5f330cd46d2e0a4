"""What the operators' pages and sweeps keep."""

from __future__ import annotations

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """To this revision."""


def downgrade() -> None:
    """Back from it."""
