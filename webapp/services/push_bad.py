"""What became of the rows of a push that were bad on purpose: refused, as hoped for, or taken."""

from __future__ import annotations

from typing import Final

import numpy as np
from sqlalchemy import select

from webapp import limits
from webapp.extensions import db
from webapp.models import Push, PushRow
from webapp.services import ledger_rows, push_rows
from webapp.services.row_makers import Maker

_WORDS: Final = ("bad", "refused", "taken", "unknown", "good_refused")


def has_bad(push: Push) -> bool:
    """Whether some of the rows that it sends are bad on purpose."""
    return push.kind != "undo" and any(one.get("bad") for one in push.tables)


def report(push: Push) -> dict[str, int]:
    """`{bad, refused, taken, unknown, good_refused}`: how many of the rows that have their end were bad on purpose;
    of these the target refused some, took others, and of some it is not known; and how many it refused that were
    good.

    Errors: those of `push_rows.makers_of`.
    """
    if not has_bad(push):
        return dict.fromkeys(_WORDS, 0) | {"good_refused": push.failed if push.kind != "undo" else 0}
    makers = push_rows.makers_of(push.pins, push.request["ask"], [one.get("given") for one in push.tables])
    found = np.zeros(len(_WORDS), np.int64)
    for place, one in enumerate(push.tables):
        names = {each["field"] for each in one["columns"] if each.get("field")}
        found += _of_table(push, place, makers[one.get("recipe", 0)], names)
    return dict(zip(_WORDS, found.tolist(), strict=True))


def _of_table(push: Push, place: int, maker: Maker, names: set[str]) -> np.ndarray:
    one = push.tables[place]
    total = np.zeros(len(_WORDS), np.int64)
    for first in range(1, one["count"] + 1, limits.ANSWER_BLOCK_ROWS):
        last = min(first + limits.ANSWER_BLOCK_ROWS - 1, one["count"])
        numbers = ledger_rows.ended(db.session(), push, place, first, last)
        if not numbers.size:
            continue
        rows = (numbers - 1 + one["offset"]).astype(np.uint64)
        bad = maker.bad_rows(rows, names)
        refused, unknown = (
            np.isin(numbers, _in_state(push.id, place, state, first, last)) for state in ("failed", "unknown")
        )
        masks = (bad, bad & refused, bad & ~refused & ~unknown, bad & unknown, ~bad & refused)
        total += [int(mask.sum()) for mask in masks]
    return total


def _in_state(push_id: str, table: int, state: str, first: int, last: int) -> list[int]:
    found = select(PushRow.row).where(
        PushRow.push_id == push_id,
        PushRow.table == table,
        PushRow.state == state,
        PushRow.row >= first,
        PushRow.row <= last,
    )
    return list(db.session.scalars(found))
