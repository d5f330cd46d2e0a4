"""A backup brings every value back, to either kind of database."""

from __future__ import annotations

import pytest

from tests.conftest import SECRET_KEY, VAULT_KEY
from tests.upkeep import filling

KINDS = ("sqlite", "postgresql")
TRAIL = ("audit_entries", "audit_pending")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_every_value_of_every_table_comes_back_on_either_kind_of_database(kind, other, new_place, file):
    here, there = new_place(kind), new_place(other)
    here.bring()
    with here.connect() as connection:
        filled = filling.fill(connection)
        before = filling.contents(connection)
    assert here.run("backup", str(file), "--include-keys") == 1  # rows name files that were never there
    assert there.run("restore", str(file)) == 0
    with there.connect() as connection:
        after = filling.contents(connection)
    for name in TRAIL:  # each workspace's trail tells of the restoration
        assert set(before[name]) <= set(after[name])
        assert len(after.pop(name)) == len(before.pop(name)) + filled["workspaces"]
    assert after == before
    assert (there.data / "keys.env").read_text() == f"SECRET_KEY={SECRET_KEY}\nVAULT_KEYS={VAULT_KEY}\n"
