"""Rows that were never sent, because their push ended early: resumed by a retry, and undone."""

from __future__ import annotations

import pytest

from jobs import lease
from jobs.pushes import push
from tests.jobs.pushing import rows, table_spec
from tests.jobs.test_push import people
from tests.jobs.test_push_crash import Died, dies, lose  # noqa: F401
from webapp.pushes.services.ledger import read

pytestmark = pytest.mark.usefixtures("small_chunks")


def counts(pushing, push_id) -> dict[str, int]:
    """What is not zero; the total is the sum of the others at all times."""
    found = read.counts(pushing.read(push_id))
    assert found["total"] == sum(number for name, number in found.items() if name != "total")
    assert min(found.values()) >= 0
    return {name: number for name, number in found.items() if number}


def states(pushing, push_id) -> dict[str, int]:
    """The ledger's rows by state, counted one by one; they must be what the counts say."""
    result: dict[str, int] = {}
    for row in read.rows(push_id, limit=5_000):
        result[row.state] = result.get(row.state, 0) + 1
    found = counts(pushing, push_id)
    assert result == {name: number for name, number in found.items() if name not in ("total", "pending")}
    for state in ("failed", "unknown", "delivered", "undone"):
        assert len(read.rows(push_id, state=state, limit=5_000)) == found.get(state, 0)
    return result


@pytest.fixture
def stopped(pushing):
    """A push of 500 rows that was stopped at row 130."""
    push_id = pushing.push(people(500, age=lambda i: 95 if i in (130, 240) else 30), ask={"on_error": "stop"})
    assert pushing.do(push_id).status == "failed"
    assert counts(pushing, push_id) == {"total": 500, "delivered": 129, "failed": 1, "pending": 370}
    return push_id


def test_rows_that_were_never_sent_are_sent_and_the_first_pushs_ledger_is_whole(pushing, ask, stopped):
    again = pushing.retry(stopped, ["pending"])
    assert pushing.do(again).status == "completed"
    assert states(pushing, again) == {"delivered": 369, "failed": 1}
    assert states(pushing, stopped) == {"delivered": 498, "failed": 2}
    assert pushing.ranges(stopped) == [(0, 1, 500)]
    assert [row.row for row in read.rows(stopped, state="failed")] == [130, 240]
    assert ask("SELECT count(*), max(id) FROM people") == [(498, 500)]
    undo = pushing.undo(stopped)
    assert counts(pushing, undo) == {"total": 498, "pending": 498}
    assert pushing.do(undo).status == "completed"
    assert ask("SELECT count(*) FROM people") == [(0,)]
    assert states(pushing, stopped) == {"undone": 498, "failed": 2}
    assert states(pushing, again) == {"undone": 369, "failed": 1}
    assert counts(pushing, undo) == {"total": 498, "delivered": 498}


def test_failed_rows_and_rows_that_were_never_sent_go_together(pushing, ask, stopped):
    again = pushing.retry(stopped, ["failed", "pending"])
    assert counts(pushing, again)["total"] == 371
    pushing.makers[again][0] = type(pushing.makers[again][0])(rows(500, age=lambda i: 30), {})
    assert pushing.do(again).status == "completed"
    assert states(pushing, stopped) == {"delivered": 500}
    assert ask("SELECT count(*) FROM people") == [(500,)]


@pytest.mark.parametrize("after", [True, False])
def test_no_row_is_sent_twice_or_lost_if_the_resuming_worker_dies(
    pushing, ask, stopped, dies, after
):  # fmt: skip
    again = pushing.retry(stopped, ["pending"])
    dies(2, after=after)
    with pytest.raises(Died):
        pushing.do(again)
    counts(pushing, stopped)
    lose(again)
    assert pushing.do(again).attempt == 2
    assert states(pushing, again) == {"delivered": 369, "failed": 1}
    assert states(pushing, stopped) == {"delivered": 498, "failed": 2}
    assert ask("SELECT count(*), count(DISTINCT id) FROM people") == [(498, 498)]


def test_a_resumed_push_can_be_stopped_and_resumed_again(pushing, ask, stopped, monkeypatch):
    again = pushing.retry(stopped, ["pending"], request={"ask": {"on_error": "stop"}})
    assert pushing.do(again).status == "failed"
    assert counts(pushing, again) == {"total": 370, "delivered": 109, "failed": 1, "pending": 260}
    assert counts(pushing, stopped) == {"total": 500, "delivered": 238, "failed": 2, "pending": 260}
    third = pushing.retry(stopped, ["pending"])
    assert pushing.do(third).status == "completed"
    assert states(pushing, stopped) == {"delivered": 498, "failed": 2}
    assert counts(pushing, again) == {"total": 370, "delivered": 109, "failed": 1, "pending": 260}
    pushing.do(pushing.undo(stopped))
    assert states(pushing, again) == {"undone": 109, "failed": 1}
    assert states(pushing, third) == {"undone": 260}


def test_single_rows_leave_gaps_that_are_not_taken_for_delivered(pushing, ask, stopped):
    some = pushing.retry(stopped, ["pending"], rows=[131, 300, 301, 450])
    pushing.do(some)
    assert pushing.ranges(stopped) == [(0, 1, 131), (0, 300, 301), (0, 450, 450)]
    assert states(pushing, stopped) == {"delivered": 133, "failed": 1}
    page = read.rows(stopped, after=(0, 129), limit=10)
    assert [item.row for item in page] == [130, 131, 300, 301, 450]
    pushing.do(pushing.undo(stopped))
    assert ask("SELECT count(*) FROM people") == [(0,)]
    assert states(pushing, stopped) == {"undone": 133, "failed": 1}
    rest = pushing.retry(stopped, ["pending"])
    pushing.do(rest)
    assert pushing.ranges(stopped) == [(0, 1, 500)]
    assert states(pushing, stopped) == {"undone": 133, "failed": 2, "delivered": 365}
    second = pushing.undo(stopped)
    assert pushing.do(second).delivered == 365
    assert states(pushing, stopped) == {"undone": 498, "failed": 2}


def test_rows_of_a_retry_after_an_undo_are_undone_by_the_next(pushing, ask, stopped):
    pushing.do(pushing.undo(stopped))
    again = pushing.retry(stopped, ["failed"])
    pushing.makers[again] = [type(pushing.makers[again][0])(rows(500, age=lambda i: 30), {})]
    pushing.do(again)
    assert states(pushing, stopped) == {"undone": 129, "delivered": 1}
    assert pushing.do(pushing.undo(stopped)).delivered == 1
    assert ask("SELECT count(*) FROM people") == [(0,)]


def test_a_push_that_never_started_resumes_from_its_first_row(pushing, ask):
    push_id = pushing.push(people(230), status="cancelled")
    again = pushing.retry(push_id, ["pending"])
    assert pushing.do(again).status == "completed"
    assert states(pushing, push_id) == {"delivered": 230}


def test_keys_of_parents_that_are_there_go_to_children_that_are_sent_later(pushing, ask, monkeypatch):
    parents, children = rows(230).drop_columns(["id"]), rows(230, boss=lambda i: i - 1).drop_columns(["id"])
    refer = {"boss": {"table": 0, "column": "id", "field": "boss"}}
    tables = [
        (table_spec("staff", parents, capture=["id"]), parents),
        (table_spec("staff", children, capture=["id"], from_parent=refer), children),
    ]
    push_id = pushing.push(tables, parents={"boss": "boss"})
    monkeypatch.setattr(push.DatabaseSender, "_send", _until(push.DatabaseSender._send, table=1, number=51))
    lease.stopping.clear()
    assert pushing.do(push_id).status == "cancelled"
    monkeypatch.undo()
    monkeypatch.setattr("webapp.limits.PUSH_CHUNK_ROWS", 100)
    monkeypatch.setattr(push.planning, "load_push_job", pushing.order)
    assert counts(pushing, push_id) == {"total": 460, "delivered": 280, "pending": 180}
    again = pushing.retry(push_id, ["pending"])
    pushing.do(again)
    assert states(pushing, push_id) == {"delivered": 460}
    assert ask("SELECT count(*) FROM staff c JOIN staff p ON c.boss = p.id WHERE c.name = p.name") == [(230,)]


def _until(real, *, table: int, number: int):
    """Sending, until a row of a table is in hand: there it is cancelled."""

    def sending(sender, part):
        if sender.table_index == table and part.numbers[0] >= number:
            raise lease.Cancelled(sender.work.id)
        real(sender, part)

    return sending
