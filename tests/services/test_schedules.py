"""Schedules of exports and pushes: repetitions in words, and jobs that start exactly once for each due time."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.sweeper import Scheduler
from tests.cast import Browser
from webapp import clock, limits
from webapp.access.models import Membership
from webapp.accounts.services import identity
from webapp.errors import ApiError
from webapp.exports.models import Export
from webapp.extensions import db, read_session, write_session
from webapp.metering import stored_json
from webapp.pushes.models import Push
from webapp.schedules import services
from webapp.schedules.models import Schedule
from webapp.schedules.services import Repetition

NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
FIELDS = [{"name": "id", "type": "row_number"}, {"name": "n", "type": "number"}]
DAILY = {"name": "Nightly", "cron": "0 2 * * *", "timezone": "UTC", "enabled": True, "new_seed": False}

clocks = st.builds("{:02}:{:02}".format, st.integers(0, 23), st.integers(0, 59))
usual = st.one_of(
    st.builds(lambda minute: Repetition("hour", f"00:{minute:02}"), st.integers(0, 59)),
    st.builds(lambda at: Repetition("day", at), clocks),
    st.builds(lambda at: Repetition("weekdays", at), clocks),
    st.builds(lambda at: Repetition("last_day", at), clocks),
    st.builds(lambda at, day: Repetition("week", at, weekday=day), clocks, st.integers(0, 6)),
    st.builds(lambda at, day: Repetition("month", at, day=day), clocks, st.integers(1, 31)),
)


@settings(deadline=None)
@given(usual)
def test_every_usual_repetition_is_a_valid_cron_expression_and_is_read_back(repeat):
    cron = services.to_cron(repeat)
    assert services.from_cron(cron) == repeat
    assert services.time_faults(cron, "Europe/Berlin") == []


@pytest.mark.parametrize(
    ("cron", "words"),
    [
        ("0 2 * * *", "Every day at 02:00"),
        ("30 18 * * 1-5", "Weekdays at 18:30"),
        ("0 6 * * 1", "Mondays at 06:00"),
        ("0 * * * *", "Every hour"),
        ("0 23 L * *", "Last day of the month at 23:00"),
        ("5 4 3 * *", "Day 3 of the month at 04:05"),
        ("*/5 0-6 * * *", "Cron */5 0-6 * * *"),
    ],
)
def test_repetitions_are_shown_in_words(cron, words):
    assert services.describe_cron(cron) == words


def test_the_next_three_times_are_in_the_time_zone_of_the_schedule():
    found = services.next_times("0 2 * * *", "Europe/Berlin")
    assert [f"{at:%H:%M}" for at in found] == ["02:00"] * 3
    assert [item - two for item, two in zip(found[1:], found, strict=False)] == [timedelta(days=1)] * 2
    assert services.next_times("0 2 * *", "UTC") == []


def test_a_schedule_that_is_due_again_only_after_many_years_has_few_next_times():
    fifth_sunday = "0 0 29 2 7#5"  # in February: 2032, 2060
    assert services.time_faults(fifth_sunday, "America/Sao_Paulo") == []
    assert len(services.next_times(fifth_sunday, "America/Sao_Paulo")) < 3


@pytest.fixture
def edith(app, cast):
    with app.app_context():
        return identity.actor_of_user(cast.edith.user_id, cast.main)


@pytest.fixture
def template(api, cast):
    return api(cast.edith).post("/templates", json={"name": "Rows", "fields": FIELDS}).json["id"]


@pytest.fixture
def scheduled(app, api, cast, edith, template):
    """A schedule of an export, due at noon."""
    export = (
        api(cast.edith).post(f"/templates/{template}/exports", json={"count": 7, "format": "csv"}).json["id"]
    )
    with app.app_context():
        created = services.create_from(edith, db.session.get_one(Export, export), DAILY).id
        db.session.remove()
        due(created)
    return created


def due(schedule_id, moment=NOON):
    with write_session() as session:
        session.get_one(Schedule, schedule_id).next_run_at = moment


def sweep(app, now=NOON):
    with app.app_context():
        try:
            return services.run_due(now)
        finally:
            db.session.remove()


def started(model=Export):
    with read_session() as session:
        return [export for export in session.scalars(sa.select(model)) if export.request.get("schedule")]


def test_a_due_export_starts_once_with_the_rows_of_the_first(app, scheduled):
    assert sweep(app) == 1
    assert sweep(app) == 0
    with app.app_context():
        (export,) = started()
        schedule = db.session.get_one(Schedule, scheduled)
        assert (export.count, export.format, export.request["schedule"]) == (7, "csv", scheduled)
        first = db.session.scalars(sa.select(Export).order_by(Export.id)).first()
        assert export.pins["seed"] == first.pins["seed"]
        assert schedule.last_job_id == export.id
        assert schedule.next_run_at == NOON.replace(hour=2) + timedelta(days=1)
        db.session.remove()


def test_several_sweepers_start_one_job_for_a_due_time(app, scheduled):
    gate, numbers = threading.Barrier(4), []

    def work():
        gate.wait()
        numbers.append(sweep(app))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with app.app_context():
        assert len(started()) == 1
    assert sum(numbers) == 1


def test_missed_times_count_as_one(app, scheduled):
    assert sweep(app, NOON + timedelta(days=9)) == 1
    with app.app_context():
        assert db.session.get_one(Schedule, scheduled).next_run_at == NOON.replace(hour=2) + timedelta(
            days=10
        )
        db.session.remove()


def test_a_new_seed_gives_other_rows(app, scheduled):
    with app.app_context(), write_session() as session:
        session.get_one(Schedule, scheduled).new_seed = True
    sweep(app)
    with app.app_context():
        (export,) = started()
        assert export.pins["seed"] != db.session.get_one(Schedule, scheduled).request["seed"]
        db.session.remove()


def test_a_schedule_that_is_off_starts_nothing(app, edith, scheduled):
    with app.app_context():
        services.change(edith, services.get(edith, scheduled, "generate", lock=True), {"enabled": False})
        db.session.remove()
    assert sweep(app, NOON + timedelta(days=30)) == 0


def test_a_job_that_cannot_start_leaves_its_reason_and_the_next_time(app, api, cast, template, scheduled):
    api(cast.edith).delete(f"/templates/{template}")
    assert sweep(app) == 0
    with app.app_context():
        schedule = db.session.get_one(Schedule, scheduled)
        assert schedule.problem["code"] == "not_found"
        assert schedule.next_run_at > NOON
        assert started() == []
        db.session.remove()


def test_a_user_who_lost_the_right_starts_nothing(app, cast, scheduled):
    with app.app_context(), write_session() as session:
        for role in session.scalars(sa.select(Membership).where(Membership.user_id == cast.edith.user_id)):
            role.role = "viewer"
    assert sweep(app) == 0
    with app.app_context():
        assert db.session.get_one(Schedule, scheduled).problem["code"] == "forbidden"
        db.session.remove()


def test_a_due_push_starts_once(app, api, cast, edith, template, tmp_path):
    program = api(cast.edith)
    connection = program.post(
        "/connections", json={"name": "Target", "type": "sqlite", "settings": {"file": "target.db"}}
    ).json["id"]
    push = program.post(
        f"/templates/{template}/push",
        json={"connection_id": connection, "target": "rows", "create_table": True, "count": 5},
    )
    assert push.status_code == 201, push.json
    with app.app_context():
        created = services.create_from(edith, db.session.get_one(Push, push.json["id"]), DAILY).id
        db.session.remove()
        due(created)
    assert [sweep(app), sweep(app)] == [1, 0]
    with app.app_context():
        (job,) = started(Push)
        assert (job.target, job.total, job.connection_id) == ("rows", 5, connection)


def test_statements_of_an_admin_are_not_scheduled_with_the_permissions_of_others(app, cast, edith, template):
    with app.app_context():
        adam = identity.actor_of_user(cast.adam.user_id, cast.main)
        ask = {"connection_id": "con_x", "target": "t", "count": 1, "before_sql": ["delete from t"]}
        push = Push(
            id="psh_01KAK3ZZZZZZZZZZZZZZZZZZZZ", workspace_id=cast.acme, project_id=cast.main, team_id=cast.blue,
            kind="push", template_id=template, target="t", total=1, request={"ask": ask}, pins={"seed": "s"},
            status="completed",
        )  # fmt: skip
        db.session.add(push)
        db.session.commit()
        created = services.create_from(adam, push, DAILY)
        for actor in (edith, replace(adam, kind="key", scopes=frozenset({"generate", "push"}))):
            for attempt in (
                lambda actor=actor: services.create_from(actor, push, DAILY),
                lambda actor=actor: services.change(actor, created, {"enabled": True}),
            ):
                with pytest.raises(ApiError) as refused:
                    attempt()
                assert refused.value.code == "forbidden"
                db.session.rollback()
        assert db.session.get_one(Schedule, created.id).saved_by == cast.adam.user_id
        db.session.remove()


def test_a_run_saves_no_schedule_whose_jobs_would_outlive_it(app, edith, scheduled):
    with app.app_context():
        job = db.session.scalars(sa.select(Export)).first()
        with pytest.raises(ApiError) as refused:
            services.create_from(replace(edith, kind="key", run_id="run_x"), job, DAILY)
        db.session.remove()
    assert refused.value.code == "forbidden"


def test_a_retry_cannot_be_repeated(app, cast, edith):
    with app.app_context():
        push = Push(
            id="psh_01KAK3ZZZZZZZZZZZZZZZZZZZZ", workspace_id=cast.acme, project_id=cast.main, team_id=cast.blue,
            kind="retry", target="t", total=1, request={"ask": {}}, pins={"seed": "s"}, status="completed",
        )  # fmt: skip
        db.session.add(push)
        db.session.commit()
        with pytest.raises(ApiError) as refused:
            services.create_from(edith, push, DAILY)
        db.session.remove()
    assert refused.value.code == "conflict"


def test_the_page_creates_changes_and_deletes_a_schedule(app, api, cast, template):
    export = api(cast.edith).post(f"/templates/{template}/exports", json={"count": 7}).json["id"]
    person = Browser(app, cast.edith)
    form = {
        "name": "Weekly",
        "every": "week",
        "at": "06:00",
        "weekday": "1",
        "timezone": "Europe/Berlin",
        "enabled": "true",
    }
    assert person.submit(f"/schedules/new?of={export}", form).status_code == 303
    page = person.get("/schedules").text
    assert "Mondays at 06:00" in page
    assert "Europe/Berlin" in page
    with app.app_context():
        result = db.session.scalars(sa.select(Schedule)).one().id
        db.session.remove()
    wrong = person.submit(f"/schedules/{result}", {**form, "timezone": "Europe/Berlni", "at": "25:00"})
    assert wrong.status_code == 422
    person.submit(f"/schedules/{result}", {**form, "every": "cron", "cron": "*/5 * * * *"})
    assert "Cron */5 * * * *" in person.get("/schedules").text
    person.submit(f"/schedules/{result}/switch")
    assert "paused" in person.get("/schedules").text
    person.submit(f"/schedules/{result}?_method=DELETE")
    assert "No schedules yet" in person.get("/schedules").text


def test_the_page_of_a_dataset_leads_to_a_schedule_of_its_newest_job(app, api, cast, template):
    program, person = api(cast.edith), Browser(app, cast.edith)
    dataset = program.post("/datasets", json={"name": "Shop", "templates": [{"template_id": template}]}).json[
        "id"
    ]
    address = f"/schedules/new?of={dataset}"
    assert address in person.get(f"/datasets/{dataset}").text
    page = person.get(address).text
    assert "Nothing to repeat yet" in page
    assert f'href="/datasets/{dataset}"' in page
    program.post(f"/datasets/{dataset}/exports", json={"format": "xlsx"})
    newest = program.post(f"/datasets/{dataset}/exports", json={"format": "sql"}).json["id"]
    assert f'action="/schedules/new?of={newest}"' in person.get(address).text


def test_the_schedule_of_a_scenario_is_changed_on_the_same_page(app, api, cast):
    created = api(cast.edith).post("/scenarios", json={"name": "Hourly", "code": "print(1)\n"}).json["id"]
    person = Browser(app, cast.edith)
    form = {"every": "day", "at": "02:00", "timezone": "UTC", "enabled": "true"}
    assert person.submit(f"/schedules/{created}", form).status_code == 303
    shown = api(cast.edith).get(f"/scenarios/{created}").json["schedule"]
    assert (shown["cron"], shown["enabled"]) == ("0 2 * * *", True)
    assert "Hourly" in person.get("/schedules").text
    assert clock.now() < datetime.fromisoformat(
        api(cast.edith).get(f"/scenarios/{created}").json["next_run_at"]
    )


@pytest.fixture
def of_mallory(app, api, cast):
    """A schedule of another workspace, due at noon."""
    program = api(cast.mallory)
    created = program.post("/templates", json={"name": "Rows", "fields": FIELDS}).json["id"]
    export = program.post(f"/templates/{created}/exports", json={"count": 7, "format": "csv"}).json["id"]
    with app.app_context():
        mallory = identity.actor_of_user(cast.mallory.user_id, cast.mallorys)
        found = services.create_from(mallory, db.session.get_one(Export, export), DAILY).id
        db.session.remove()
        due(found)
    return found


def test_a_job_that_takes_long_to_start_delays_no_other_workspace_and_not_the_sweeper(
    app, scheduled, of_mallory, monkeypatch
):
    hangs, goes_on, begun = threading.Event(), threading.Event(), services._start_job

    def slowly(actor, schedule, claim):
        if schedule.id == scheduled:
            hangs.set()
            assert goes_on.wait(60)
        return begun(actor, schedule, claim)

    monkeypatch.setattr(services, "_start_job", slowly)
    scheduler = Scheduler(app, lambda: NOON)
    with app.app_context():
        assert scheduler.run_once() == 2
        assert hangs.wait(60)
        for _ in range(600):
            if of_mallory in {export.request["schedule"] for export in started()}:
                break
            threading.Event().wait(0.1)
        assert {export.request["schedule"] for export in started()} == {of_mallory}
        assert scheduler.run_once() == 0  # the workspace whose job does not start has no second thread
        goes_on.set()
        for thread in list(scheduler._running.values()):
            thread.join(60)
        assert {export.request["schedule"] for export in started()} == {of_mallory, scheduled}


def test_the_workspace_that_had_its_turn_longest_ago_is_next(app, scheduled, of_mallory, monkeypatch):
    monkeypatch.setattr(limits, "SCHEDULE_THREADS", 1)
    order, both = [], services.workspaces_due

    def note(_now, workspace_id, _seconds):
        order.append(workspace_id)

    monkeypatch.setattr(services, "run_due", note)  # nothing starts, so both stay due
    scheduler = Scheduler(app, lambda: NOON)
    with app.app_context():
        for _ in range(4):
            assert scheduler.run_once() == 1
            for thread in list(scheduler._running.values()):
                thread.join(60)
        assert order == 2 * both(NOON)


def test_starting_due_jobs_of_a_workspace_ends_with_its_turn(app, scheduled):
    with app.app_context():
        assert services.run_due(NOON, None, -1.0) == 0
        assert services.run_due(NOON, "wsp_01KAK3ZZZZZZZZZZZZZZZZZZZZ") == 0
        assert services.run_due(NOON) == 1


def test_requests_of_schedules_count_toward_the_json_that_a_workspace_stores(
    app, api, cast, edith, template, monkeypatch
):
    monkeypatch.setattr(limits, "STORED_JSON_BYTES", dict.fromkeys(limits.STORED_JSON_BYTES, 100_000))
    body = {"count": 1, "overrides": {"n": "y" * 30_000}}
    export = api(cast.edith).post(f"/templates/{template}/exports", json=body).json["id"]
    with app.app_context():
        job = db.session.get_one(Export, export)
        services.create_from(edith, job, DAILY)
        services.create_from(edith, job, DAILY)
        with pytest.raises(ApiError) as refused:
            services.create_from(edith, job, DAILY)
        db.session.remove()
        assert 90_000 < stored_json.stored_bytes(cast.acme) < 100_000
    assert refused.value.code == "quota_exceeded"


def test_the_number_of_schedules_of_a_workspace_is_limited(app, edith, scheduled, monkeypatch):
    monkeypatch.setattr(limits, "MAX_SCHEDULES", 2)
    with app.app_context():
        job = db.session.scalars(sa.select(Export)).first()
        services.create_from(edith, job, DAILY)
        with pytest.raises(ApiError) as refused:
            services.create_from(edith, job, DAILY)
        db.session.remove()
    assert (refused.value.code, refused.value.details["limit"]) == ("quota_exceeded", 2)
