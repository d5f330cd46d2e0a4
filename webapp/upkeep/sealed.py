"""Everything that lies sealed by the vault: whether a ring opens it."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from webapp import limits
from webapp.security.vault import Vault, VaultError
from webapp.upkeep import tables

_BEGINS = "sealed"
"""How the columns are called, in every table: tests/upkeep holds them to it."""


def count(connection: sa.Connection, ring: Sequence[str]) -> tuple[int, int]:
    """How many a ring opens, and how many it does not."""
    vault, opened, lost = Vault(ring), 0, 0
    for table in tables.tables(connection):
        for name, kind in table.columns.items():
            if kind != "binary" or not name.startswith(_BEGINS):
                continue
            column = sa.column(name, sa.LargeBinary)
            read = sa.select(column).select_from(sa.table(table.name)).where(column.is_not(None))
            for one in connection.execute(read.execution_options(yield_per=limits.UPKEEP_ROWS)).scalars():
                try:
                    vault.open(bytes(one))
                    opened += 1
                except VaultError:
                    lost += 1
    return opened, lost
