"""Due scenarios: one run each, with the permissions of the user who saved the program, or an error."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from webapp import clock, limits
from webapp.access.models import Membership, Project, User
from webapp.accounts.services import identity
from webapp.errors import ApiError
from webapp.extensions import db, read_session, write_session
from webapp.scenarios.models import Run, Scenario
from webapp.scenarios.services import runs, scenarios, schedules

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def adam(app, cast):
    """An admin of the whole workspace."""
    with app.app_context():
        return identity.actor_of_user(cast.adam.user_id, cast.main)


@pytest.fixture
def scenario(app, cast):
    """A scenario of Edith's, due at every full hour, for the first time at noon."""
    with app.app_context():
        edith = identity.actor_of_user(cast.edith.user_id, cast.main)
        schedule = {"cron": "0 * * * *", "timezone": "UTC", "enabled": True, "params": {"DAY": "today"}}
        created = scenarios.create(edith, name="Hourly", code="print(1)\n", schedule=schedule)["id"]
        first_due(created)
    return created


def first_due(scenario_id, moment=NOON):
    with write_session() as session:
        session.get_one(Scenario, scenario_id).next_run_at = moment


@pytest.fixture
def sweep(app):
    """Start what is due at a moment; how many runs that brought."""

    def run(now=NOON):
        with app.app_context():
            try:
                return schedules.run_due(now)
            finally:
                db.session.remove()

    return run


@pytest.fixture
def shown(app, adam):
    """A scenario as the API shows it."""

    def show(scenario_id):
        with app.app_context():
            try:
                return scenarios.show(scenarios.get(adam, scenario_id))
            finally:
                db.session.remove()

    return show


@pytest.fixture
def queued(app):
    """Return the runs in the order of their creation."""

    def read():
        with app.app_context(), read_session() as session:
            return list(session.scalars(sa.select(Run).order_by(Run.id)))

    return read


def test_a_scenario_is_run_when_its_time_has_come_and_not_before(sweep, scenario, queued, shown, cast):
    assert sweep(NOON - timedelta(seconds=1)) == 0
    assert sweep() == 1
    (run,) = queued()
    assert (run.scenario_id, run.trigger, run.params, run.created_by) == (
        scenario,
        "schedule",
        {"DAY": "today"},
        cast.edith.user_id,
    )
    assert shown(scenario)["next_run_at"] == "2026-11-22T13:00:00Z"
    assert sweep() == 0
    assert sweep(NOON + timedelta(hours=1)) == 1
    assert len(queued()) == 2


def test_missed_schedules_run_once(sweep, scenario, queued, shown):
    assert sweep(NOON + timedelta(days=3, minutes=5)) == 1
    assert len(queued()) == 1
    assert shown(scenario)["next_run_at"] == "2026-11-25T13:00:00Z"


def test_many_concurrent_sweepers_start_one_run(app, sweep, scenario, queued, monkeypatch):
    found = schedules.due_scenarios
    together = threading.Barrier(4)

    def due(now):
        with app.app_context():
            seen = found(now)
        together.wait(timeout=30)  # everybody has seen it before anybody takes it
        return seen

    monkeypatch.setattr(schedules, "due_scenarios", due)
    brought = []
    threads = [threading.Thread(target=lambda: brought.append(sweep())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(brought) == [0, 0, 0, 1]
    assert len(queued()) == 1


def test_a_time_is_not_lost_with_a_sweeper_that_dies_before_its_run_is_saved(
    sweep, scenario, queued, monkeypatch
):
    class Killed(BaseException):
        pass

    def killed(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(runs, "queue", killed)
        with pytest.raises(Killed):
            sweep()
    assert queued() == []
    assert sweep() == 1


@pytest.mark.parametrize("why", ["deleted", "off", "project"])
def test_deleted_and_disabled_scenarios_are_not_run(app, sweep, scenario, adam, cast, queued, why):
    with app.app_context():
        if why == "project":
            with write_session() as session:
                session.get_one(Project, cast.main).deleted_at = clock.now()
        else:
            found = scenarios.get(adam, scenario, "write", lock=True)
            if why == "deleted":
                scenarios.delete(adam, found)
            else:
                scenarios.change(adam, found, {"schedule": {**found.schedule, "enabled": False}})
        db.session.remove()
    assert sweep(NOON + timedelta(days=365)) == 0
    assert queued() == []


def test_a_restored_scenario_does_not_make_up_for_what_it_missed(app, sweep, scenario, adam, shown, queued):
    with app.app_context():
        scenarios.delete(adam, scenarios.get(adam, scenario, "write", lock=True))
        db.session.rollback()
        first_due(scenario, NOON - timedelta(days=400))
        scenarios.restore(adam, scenarios.get(adam, scenario, "write", lock=True, deleted=True))
        db.session.remove()
    assert shown(scenario)["next_run_at"] > clock.to_text(clock.now())
    assert sweep(clock.now()) == 0
    assert queued() == []


@pytest.mark.parametrize("how", ["disabled", "left", "viewer"])
def test_a_program_of_a_user_without_permission_is_not_run_and_reported(
    app, sweep, scenario, shown, queued, cast, how
):
    with app.app_context(), write_session() as session:
        member = sa.select(Membership).where(Membership.user_id == cast.edith.user_id)
        if how == "disabled":
            session.get_one(User, cast.edith.user_id).disabled_at = clock.now()
        elif how == "left":
            session.delete(session.scalars(member).one())
        else:
            session.scalars(member).one().role = "viewer"
    assert sweep() == 0
    assert queued() == []
    data = shown(scenario)
    (warning,) = data["warnings"]
    assert (warning["path"], warning["code"]) == ("schedule", "forbidden")
    assert data["next_run_at"] == "2026-11-22T13:00:00Z", "the next time is another try"


def test_a_run_has_the_current_permissions_of_the_user_who_saved_the_program(
    app, sweep, scenario, adam, queued, cast
):
    """Editing a program of a user with more permissions does not grant these permissions."""
    with app.app_context():
        tessa = identity.actor_of_user(cast.tessa.user_id, cast.main)
        schedule = {"cron": "0 * * * *", "timezone": "UTC", "enabled": True, "params": {}}
        created = scenarios.create(adam, name="Adam's", code="print(1)\n", schedule=schedule)["id"]
        found = scenarios.get(tessa, created, "write")
        program = scenarios.prepare_change(tessa, found, {"code": "print(2)\n"})
        scenarios.change(
            tessa, scenarios.get(tessa, created, "write", lock=True), {"code": "print(2)\n"}, program
        )
        first_due(created)
        db.session.remove()
    assert sweep() == 2
    assert {run.scenario_id: run.created_by for run in queued()}[created] == cast.tessa.user_id


def test_a_scheduled_run_without_a_free_slot_is_skipped_and_reported_until_the_next_one(
    app, sweep, scenario, queued, shown, monkeypatch
):
    def full(*_, **__):
        raise ApiError("quota_exceeded", "20 runs of this workspace wait already; no more can be queued.")

    with monkeypatch.context() as patch:
        patch.setattr(runs, "queue", full)
        assert sweep() == 0
    (warning,) = shown(scenario)["warnings"]
    assert warning["code"] == "quota_exceeded"
    assert "20 runs" in warning["message"]
    assert sweep() == 0, "it is skipped, not put off"
    assert sweep(NOON + timedelta(hours=1)) == 1
    assert shown(scenario)["warnings"] == []


def test_a_scenario_that_breaks_its_sweeper_keeps_no_other_from_running(
    app, sweep, scenario, adam, queued, shown, monkeypatch
):
    with app.app_context():
        other = scenarios.create(adam, name="Other", code="print(1)\n")["id"]
        found = scenarios.get(adam, other, "write", lock=True)
        schedule = {"cron": "0 * * * *", "timezone": "UTC", "enabled": True, "params": {}}
        scenarios.change(adam, found, {"schedule": schedule})
        first_due(other, NOON - timedelta(minutes=1))
        db.session.remove()
    real = runs.queue

    def queue(actor, found, *arguments, **how):
        if found.id == other:
            raise RuntimeError("a bug")
        return real(actor, found, *arguments, **how)

    monkeypatch.setattr(runs, "queue", queue)
    assert sweep() == 1
    assert [run.scenario_id for run in queued()] == [scenario]
    assert shown(other)["warnings"][0]["code"] == "internal_error"


def test_one_sweep_starts_a_batch_and_the_next_one_the_others(
    sweep, scenario, app, adam, queued, monkeypatch
):
    monkeypatch.setattr(limits, "SCHEDULE_BATCH", 1)
    with app.app_context():
        schedule = {"cron": "0 * * * *", "timezone": "UTC", "enabled": True, "params": {}}
        other = scenarios.create(adam, name="Other", code="print(1)\n", schedule=schedule)["id"]
        first_due(other, NOON - timedelta(minutes=1))
        db.session.remove()
    assert [sweep(), sweep(), sweep()] == [1, 1, 0]
    assert [run.scenario_id for run in queued()] == [other, scenario]
