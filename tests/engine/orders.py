"""Orders and their lines, for tests of children and of what is made of them."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.engine.relating import World, reference

ID = {"name": "id", "type": "row_number"}
NAME = {"name": "name", "type": "name"}
AMOUNT = {"name": "amount", "type": "number", "options": {"min": -50, "max": 100, "decimals": 2}}
SOME = {**AMOUNT, "name": "some", "percent_blank": 60}
POSITION = {"name": "position", "type": "position_in_parent"}
LAYOUTS = pytest.mark.parametrize("layout", ["together", "mixed"])


def lines_of(cardinality, *fields, orders=200, order_fields=(), stated=None, **how):
    """Orders and their lines."""
    lines = [
        reference("order_id", "orders", "id", cardinality=cardinality, **how),
        POSITION,
        AMOUNT,
        SOME,
        *fields,
    ]
    return World(orders=(orders, [ID, NAME, *order_fields]), lines=(10, lines), stated=stated)


def families(rows, key="order_id"):
    """Rows by their parent."""
    found = defaultdict(list)
    for row in rows:
        found[row[key]].append(row)
    return found
