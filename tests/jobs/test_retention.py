"""What a plan keeps stays, what it keeps no longer goes, a little at a time; on both databases."""

from __future__ import annotations

import shutil
from datetime import timedelta

import pytest
import sqlalchemy as sa

from jobs.sweeper import Sweeper
from tests.conftest import ON_POSTGRES, settings_for, shared_app
from webapp import limits, storage
from webapp.access.models import Project, Team, Workspace
from webapp.audit.models import AuditEntry
from webapp.exports.models import Export, ExportPart
from webapp.extensions import db, read_session, write_session
from webapp.files.models import WorkspaceFile
from webapp.operations import retention
from webapp.pushes.models import Push, PushLine, PushRange, PushRow
from webapp.pushes.services.ledger import read
from webapp.scenarios.models import Run, RunChunk, Scenario
from webapp.scenarios.services import run_completion
from webapp.work import batch_delete
from webapp.work.batch_delete import TimeBudget

DAY = timedelta(days=1)
FREE = limits.RETENTION["free"]


@pytest.fixture
def any_app(request, data_dir, shared_redis, applications, empty_database):
    """The application on an empty database."""
    path = data_dir / "x.db"
    url = request.getfixturevalue("postgres_url") if ON_POSTGRES else f"sqlite:///{path}"
    if not ON_POSTGRES:
        shutil.copyfile(empty_database, path)
    with (
        shared_app(settings_for(url, shared_redis, data_dir), applications) as result,
        result.app_context(),
    ):
        if ON_POSTGRES:
            db.create_all()
        yield result


class Place:
    """A workspace on a plan, and finished work in it."""

    def __init__(self, plan: str, now) -> None:
        self.now = now
        with write_session() as session:
            workspace = Workspace(name=plan, plan=plan)
            session.add(workspace)
            session.flush()
            team = Team(name="t", workspace_id=workspace.id)
            session.add(team)
            session.flush()
            project = Project(name="p", workspace_id=workspace.id, team_id=team.id)
            session.add(project)
            session.flush()
            self.at = {"workspace_id": workspace.id, "team_id": team.id, "project_id": project.id}
            scenario = Scenario(name="s", timeout_seconds=60, network="none", **self.at)
            session.add(scenario)
            session.flush()
            self.scenario = scenario.id

    def ended(self, days: float) -> dict:
        moment = self.now - timedelta(days=days)
        return {"status": "completed", "finished_at": moment, "created_at": moment, **self.at}

    def run(self, days: float, lines: int = 9) -> str:
        with write_session() as session:
            run = Run(
                scenario_id=self.scenario,
                scenario_version=1,
                trigger="api",
                closed_at=self.now,
                line_count=lines,
                log_bytes=lines * 3,
                **self.ended(days),
            )
            session.add(run)
            session.flush()
            for first in range(1, lines + 1, 3):
                session.add(RunChunk(run_id=run.id, first=first, last=first + 2, at=self.now, text="a\nb\nc"))
            return run.id

    def push(self, days: float, rows: int = 0, lines: int = 5, **columns) -> str:
        with write_session() as session:
            push = Push(target="t", total=rows, request={"settled": True}, **self.ended(days), **columns)
            session.add(push)
            session.flush()
            session.add(PushRange(push_id=push.id, table=0, first=1, last=max(1, rows)))
            for number in range(1, lines + 1):
                session.add(PushLine(push_id=push.id, number=number, at=self.now, text=f"line {number}"))
            if rows:
                session.execute(
                    sa.insert(PushRow),
                    [{"push_id": push.id, "row": number, "state": "failed"} for number in range(1, rows + 1)],
                )
            return push.id

    def export(self, days: float, app, **columns) -> tuple[str, str]:
        key = f"exports/{self.at['workspace_id']}/{days}-{len(columns)}.csv"
        storage.get_storage(app).put(key, [b"a\n"])
        with write_session() as session:
            result = {"format": "csv", "count": 1, "storage_key": key, **self.ended(days), **columns}
            export = Export(**result)
            session.add(export)
            session.flush()
            return export.id, key


def there(model, **columns) -> int:
    with read_session() as session:
        return session.scalar(sa.select(sa.func.count()).select_from(model).filter_by(**columns))


def one(model, row_id):
    with read_session() as session:
        found = session.get(model, row_id)
        if found is not None:
            session.expunge(found)
        return found


def test_logs_are_deleted_after_the_plans_retention_and_the_run_says_so(any_app, clock):
    free, pro = Place("free", clock()), Place("pro", clock())
    old, young = free.run(FREE.log_days + 0.1), free.run(FREE.log_days - 0.1)
    paid, push, dear = pro.run(FREE.log_days + 0.1), free.push(FREE.log_days + 1), pro.push(FREE.log_days + 1)
    assert retention.sweep(clock(), TimeBudget()) == 2
    assert [piece.lines for piece in run_completion.read_chunks(old)] == [[run_logs_removed("free")]]
    assert one(Run, old).line_count == 1
    assert [line.text for line in read.log_lines(push)] == [run_logs_removed("free")]
    for stored in (young, paid):
        assert one(Run, stored).line_count == 9
        assert there(RunChunk, run_id=stored) == 3
    assert there(PushLine, push_id=dear) == 5
    assert retention.sweep(clock(), TimeBudget()) == 0  # once is enough


def test_the_oldest_run_logs_make_room_for_a_new_one(any_app, clock, monkeypatch):
    place, other = Place("free", clock()), Place("free", clock())
    runs = [place.run(days) for days in (3, 2, 1)]
    foreign = other.run(9)
    size = one(Run, runs[0]).log_bytes
    monkeypatch.setattr(limits, "RUN_LOG_BYTES", size)
    monkeypatch.setattr(limits, "RUN_LOGS_BYTES", {"free": 4 * size})
    assert retention.make_room_for_log(place.at["workspace_id"], clock()) == 0
    monkeypatch.setattr(limits, "RUN_LOGS_BYTES", {"free": 2 * size})
    assert retention.make_room_for_log(place.at["workspace_id"], clock()) == 2
    assert [there(RunChunk, run_id=item) for item in (*runs, foreign)] == [1, 1, 3, 3]
    text = "\n".join(run_completion.read_chunks(runs[0])[0].lines)
    assert text.startswith("rowsmith: this log was removed: the logs of all runs can take at most")
    assert [one(Run, run).log_removed_at is not None for run in runs] == [True, True, False]
    assert retention.make_room_for_log(place.at["workspace_id"], clock()) == 0


def test_the_log_of_a_running_run_is_not_removed_for_another(any_app, clock, monkeypatch):
    place = Place("free", clock())
    run = place.run(1)
    with write_session() as session:
        session.execute(sa.update(Run).where(Run.id == run).values(status="running", closed_at=None))
    monkeypatch.setattr(limits, "RUN_LOGS_BYTES", {"free": 1})
    assert retention.make_room_for_log(place.at["workspace_id"], clock()) == 0
    assert there(RunChunk, run_id=run) == 3


def run_logs_removed(plan):
    days = limits.RETENTION[plan].log_days
    return f"rowsmith: this log was removed: the {plan} plan keeps logs for {days} days"


def test_files_of_exports_go_before_the_exports(any_app, clock):
    free, store = Place("free", clock()), storage.get_storage(any_app)
    old, key = free.export(FREE.file_days + 1, any_app)
    young, stored = free.export(FREE.file_days - 1, any_app)
    assert retention.sweep(clock(), TimeBudget()) == 1
    with pytest.raises(storage.MissingError):
        store.head(key)
    assert store.head(stored).size == 2
    assert (one(Export, old).storage_key, one(Export, old).file_removed_at) == (None, clock())
    assert one(Export, young).storage_key == stored


def test_a_file_that_a_part_of_another_export_still_needs_stays(any_app, clock):
    free, store = Place("free", clock()), storage.get_storage(any_app)
    store.put("exports/shared.csv", [b"x"])
    old, _ = free.export(FREE.file_days + 1, any_app, storage_key=None, part_rows=1)
    again, _ = free.export(1, any_app, storage_key=None, part_rows=1, of_id=old)
    with write_session() as session:
        for export_id in (old, again):
            session.add(
                ExportPart(
                    export_id=export_id,
                    number=1,
                    offset=0,
                    count=1,
                    status="completed",
                    storage_key="exports/shared.csv",
                )
            )
    retention.sweep(clock(), TimeBudget())
    assert store.head("exports/shared.csv").size == 1
    assert there(ExportPart, storage_key="exports/shared.csv") == 1
    clock.forward(FREE.file_days * 86_400)
    retention.sweep(clock(), TimeBudget())
    with pytest.raises(storage.MissingError):
        store.head("exports/shared.csv")


def test_finished_work_is_removed_with_all_its_dependents(any_app, clock):
    free = Place("free", clock())
    days = FREE.work_days + 1
    run, push, (export, _) = free.run(days), free.push(days, rows=20), free.export(days, any_app)
    with write_session() as session:
        session.add(
            WorkspaceFile(
                name=f"outputs/{run}/a.csv",
                size=1,
                content_type="text/csv",
                sha256="0",
                storage_key="files/x",
                run_id=run,
                workspace_id=free.at["workspace_id"],
            )
        )
    storage.get_storage(any_app).put(f"pushes/{free.at['workspace_id']}/{push}/keys/1", [b"k"])
    stored = free.run(FREE.work_days - 1)
    retention.sweep(clock(), TimeBudget())
    assert (one(Run, run), one(Push, push), one(Export, export)) == (None, None, None)
    assert one(Run, stored) is not None
    assert (there(PushRow), there(PushRange), there(PushLine), there(RunChunk, run_id=run)) == (0, 0, 0, 0)
    assert storage.get_storage(any_app).listing("pushes") == []
    with read_session() as session:
        (output,) = session.scalars(sa.select(WorkspaceFile)).all()
    assert (output.deleted_at, output.run_id) == (clock(), None)  # in the trash


def test_a_file_that_a_run_stored_outside_of_its_outputs_stays(any_app, clock):
    free = Place("free", clock())
    run = free.run(FREE.work_days + 1)
    names = ("inputs/replaced.csv", "outputs/report.csv", "outputs/run_other/a.csv", f"outputs/{run}/a.csv")
    with write_session() as session:
        for name in names:
            file = {"size": 1, "content_type": "text/csv", "sha256": "0", "storage_key": f"files/{name}"}
            place = {"workspace_id": free.at["workspace_id"], "run_id": run}
            session.add(WorkspaceFile(name=name, **file, **place))
    retention.sweep(clock(), TimeBudget())
    with read_session() as session:
        files = session.scalars(sa.select(WorkspaceFile)).all()
    assert {file.name for file in files if file.deleted_at is None} == set(names[:3])
    assert {file.run_id for file in files} == {None}


def test_a_push_stays_as_long_as_a_retry_of_it_is_young(any_app, clock):
    free = Place("free", clock())
    home = free.push(FREE.work_days + 30, rows=3)
    young = free.push(1, of_id=home, kind="retry")
    retention.sweep(clock(), TimeBudget())
    assert one(Push, home) is not None
    clock.forward(FREE.work_days * 86_400)
    retention.sweep(clock(), TimeBudget())
    assert (one(Push, home), one(Push, young)) == (None, None)


def test_running_work_is_never_removed(any_app, clock):
    free = Place("free", clock())
    run = free.run(1_000)
    with write_session() as session:
        session.execute(sa.update(Run).values(status="running", finished_at=None))
    push = free.push(1_000, rows=1)
    with write_session() as session:
        session.execute(sa.update(Push).values(status="queued", finished_at=None))
    assert retention.sweep(clock(), TimeBudget()) == 0
    assert one(Run, run) is not None
    assert there(PushRow, push_id=push) == 1


def test_removed_objects_are_audited_by_workspace(any_app, clock):
    free = Place("free", clock())
    free.run(FREE.log_days + 1)
    free.push(FREE.log_days + 1)
    retention.sweep(clock(), TimeBudget())
    with read_session() as session:
        (entry,) = session.scalars(sa.select(AuditEntry).where(AuditEntry.action == "retention.sweep")).all()
    assert (entry.workspace_id, entry.user_id) == (free.at["workspace_id"], None)
    assert {name: entry.details[name] for name in ("run_logs", "push_logs")} == {
        "run_logs": 1,
        "push_logs": 1,
    }


def test_no_transaction_removes_more_than_a_batch(any_app, clock, monkeypatch):
    monkeypatch.setattr(limits, "RETENTION_BATCH_ROWS", 100)
    free = Place("free", clock())
    push = free.push(FREE.work_days + 1, rows=450, lines=1)
    taken = []

    def note(connection, cursor, statement, parameters, context, many):
        if statement.lstrip().upper().startswith("DELETE FROM PUSH_ROWS"):
            taken.append(cursor.rowcount)

    sa.event.listen(db.engine, "after_cursor_execute", note)
    assert batch_delete.delete_rows(PushRow, PushRow.push_id == push, TimeBudget(), 100) == 450
    assert taken == [100, 100, 100, 100, 50]


def test_an_interrupted_cleanup_continues_in_the_next_sweep(any_app, clock):
    free = Place("free", clock())
    push = free.push(FREE.work_days + 1, rows=50)
    ticks = iter([0.0, 0.0, 0.0, 0.0, 99.0, *[99.0] * 100])
    turn = TimeBudget(1.0, lambda: next(ticks))
    retention.sweep(clock(), turn)
    assert turn.was_cut_short
    assert one(Push, push) is not None
    retention.sweep(clock(), TimeBudget())
    assert one(Push, push) is None


def test_the_sweeper_continues_removing_at_its_next_run(any_app, clock, monkeypatch):
    monkeypatch.setattr(limits, "RETENTION_TURN_SECONDS", 0.0)
    free = Place("free", clock())
    run = free.run(FREE.log_days + 1)
    sweeper = Sweeper(any_app, lambda _seconds: True, clock)
    sweeper.run_once()
    assert (sweeper.purged_at, one(Run, run).line_count) == (None, 9)
    monkeypatch.setattr(limits, "RETENTION_TURN_SECONDS", 60.0)
    clock.forward(10)
    sweeper.run_once()
    assert (sweeper.purged_at, one(Run, run).line_count) == (clock(), 1)
