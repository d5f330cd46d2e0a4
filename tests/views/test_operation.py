"""What operators look at: readiness, metrics, the status page, and work taken from a worker that is stuck."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest
import redis as redis_errors
import sqlalchemy as sa
from prometheus_client.parser import text_string_to_metric_families
from redis.backoff import NoBackoff
from redis.retry import Retry

from jobs import lease
from tests.conftest import close_app, settings_for
from webapp import clock, create_app, limits
from webapp.access import actors
from webapp.accounts.services import workspaces
from webapp.audit.models import AuditEntry
from webapp.exports.models import Export
from webapp.extensions import db, redis_client, write_session
from webapp.monitoring import health, metrics
from webapp.net import addresses
from webapp.operations import work as operations_work
from webapp.scenarios.models import Run, Scenario

TOKEN = "scrape-me-with-this-token-and-no-other-01"


# --- Readiness ------------------------------------------------------------------------------------------------


def test_readiness_reports_each_component_its_queues_and_no_location(api, app, cast):
    details = api(cast.adam).get("/health/ready").json["error"]["details"]
    assert details["parts"]["storage"] | {"ms": 0} == {"state": "ok", "kind": "file", "ms": 0}
    assert details["parts"]["worker"]["state"] == "missing"
    text = str(details)
    settings = app.config["SETTINGS"]
    assert str(settings.data_dir) not in text
    assert settings.redis_url not in text


def test_admins_see_the_leading_number_of_versions_only(api, app, cast):
    with app.app_context():
        health.record_heartbeat(redis_client(), health.WORKER, "secret-host:1", clock.epoch())
        health.record_heartbeat(redis_client(), health.RUNNER, "secret-host:2", clock.epoch())
    answer = api(cast.adam).get("/health/ready")
    assert answer.status_code == 200
    result = answer.json
    assert "." not in result["parts"]["database"]["version"] + result["parts"]["redis"]["version"]
    assert set(result["queues"]) == {"exports", "imports", "pushes", "parts", "runs"}
    assert "secret-host" not in answer.text


def test_a_hanging_component_is_slow_and_the_others_are_reported(app, api, cast, monkeypatch):
    monkeypatch.setattr(limits, "READY_SECONDS", 0.2)
    with app.app_context():
        request = health._checks()["storage"]
    calls = []

    def hang():
        calls.append(1)
        time.sleep(1)
        return "ok", {}

    monkeypatch.setattr(request, "_check", hang)
    first, second = (api(cast.adam).get("/health/ready").json["error"] for _ in range(2))
    assert (
        first["details"]["parts"]["storage"]["state"]
        == second["details"]["parts"]["storage"]["state"]
        == "slow"
    )
    assert "storage (no answer in time)" in first["message"]
    assert first["details"]["database"] is True
    assert calls == [1]  # requests in the meantime reuse the result


def test_a_schema_older_than_the_release_is_not_ready(app, api, cast):
    with app.app_context(), write_session() as session:
        session.execute(sa.text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
        session.execute(sa.text("INSERT INTO alembic_version VALUES ('0001')"))
    reported = api(cast.adam).get("/health/ready").json["error"]
    assert reported["details"]["parts"]["database"]["state"] == "behind"
    assert "database (its schema is older than this release)" in reported["message"]


@pytest.fixture
def all_ready(app):
    """A worker and a runner that were heard of."""
    with app.app_context():
        health.record_heartbeat(redis_client(), health.WORKER, "secret-host:1", clock.epoch())
        health.record_heartbeat(redis_client(), health.RUNNER, "secret-host:2", clock.epoch())


def test_readiness_without_an_admins_credential_is_a_status_only(api, browser, cast, all_ready):
    wrong = cast.adam.key[:-4] + "xxxx"
    programs = api(), api("nonsense"), api(wrong), api(cast.edith), api(cast.victor)
    for caller in (*programs, browser(), browser(cast.edith)):
        answer = caller.get("/health/ready")
        assert (answer.status_code, answer.json) == (200, {"status": "ok"})
    for admin in (api(cast.adam), browser(cast.adam)):
        assert "parts" in admin.get("/health/ready").json


def test_missing_components_are_only_shown_to_admins(api, cast):
    error = api().get("/health/ready").json["error"]
    assert error["message"] == "The service is not ready."
    assert set(error["details"]) == {"request_id"}
    assert api(cast.adam).get("/health/ready").json["error"]["details"]["worker"] is False


def test_frequent_readiness_checks_with_a_key_are_not_rejected(app, api, cast, all_ready):
    with app.app_context():
        workspaces.change_workspace(
            actors.system_actor(cast.acme), {"plan": "enterprise", "own_limits": {"requests_per_minute": 2}}
        )
    result = [api(cast.adam).get("/health/ready") for _ in range(4)]
    assert [answer.status_code for answer in result] == [200] * 4
    assert ["parts" in answer.json for answer in result] == [True, True, False, False]


# --- Metrics --------------------------------------------------------------------------------------------------


@pytest.fixture
def counting(database_url, shared_redis, tmp_path):
    """Makes an application that counts, with the settings given."""
    result = []

    def start(**settings):
        one = create_app(settings_for(database_url, shared_redis, tmp_path, metrics=True, **settings))
        if not result:
            with one.app_context():
                redis_client().flushdb()
        result.append(one)
        return one

    yield start
    for item in result:
        close_app(item)


def scraped(app, **how):
    answer = app.test_client().get("/metrics", **how)
    assert answer.status_code == 200, answer.text
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def from_address(app, address):
    """The response to another client, which connected by TLS."""
    how = {"environ_base": {"REMOTE_ADDR": address}, "base_url": "https://data.example.org"}
    return app.test_client().get("/metrics", **how)


def test_without_the_setting_there_are_no_metrics(api):
    assert api().get("/metrics").status_code == 404


def test_requests_are_counted_by_route_template_and_never_by_address(counting, cast):
    app = counting()
    client = app.test_client()
    for path in ("/health/live", "/templates/tpl_NONE", "/templates/tpl_OTHER", "/no/such/place"):
        client.get(path, headers={"Authorization": f"Bearer {cast.edith.key}"})
    found = scraped(app)
    of = {name: value for (metric, name), value in found.items() if metric == "rowsmith_requests_total"}
    assert of[("method", "GET"), ("route", "/templates/<template_id>"), ("status", "404")] == 2
    assert of[("method", "GET"), ("route", "none"), ("status", "404")] == 1
    buckets = [key for key in found if key[0] == "rowsmith_request_seconds_bucket"]
    assert {dict(labels)["le"] for _, labels in buckets} >= {"0.005", "60.0", "+Inf"}
    text = app.test_client().get("/metrics").text
    assert "tpl_" not in text
    assert "Acme" not in text


def test_two_processes_add_up_and_rows_are_counted_by_format(counting, api, cast):
    one, other = counting(), counting()
    for app in (one, other):
        client = app.test_client()
        headers = {"Authorization": f"Bearer {cast.edith.key}"}
        body = {"name": "t", "fields": [{"name": "n", "type": "row_number"}], "count": 7, "format": "csv"}
        assert client.post("/generate", json=body, headers=headers).status_code == 200
    with other.app_context():
        metrics.flush()
    assert scraped(one)["rowsmith_rows_generated_total", (("format", "csv"),)] == 14


def test_jobs_are_counted_when_their_process_sends_its_metrics(counting, cast):
    app = counting()
    with app.app_context():
        with write_session() as session:
            place = {"workspace_id": cast.acme, "team_id": cast.blue, "project_id": cast.main}
            export = Export(format="csv", count=1, request={"quota": {"rows": 1, "second": 0}}, **place)
            session.add(export)
        with lease.leased("export", export.id) as work:
            work.finish()
        metrics.flush()
    found = scraped(app)
    assert found["rowsmith_work_ended_total", (("kind", "export"), ("status", "completed"))] == 1
    assert found["rowsmith_work_seconds_count", (("kind", "export"),)] == 1
    assert found["rowsmith_part_up", (("part", "database"),)] == 1


def test_counts_are_kept_while_redis_is_unavailable(counting, monkeypatch):
    app = counting()
    with app.app_context():
        metrics.count("rows_generated", 5, format="csv")
        with monkeypatch.context() as without:
            away = redis_errors.Redis(port=1, retry=Retry(NoBackoff(), 0))
            without.setattr(metrics, "redis_client", lambda: away)
            assert metrics.meter().flush() is False
    assert scraped(app)["rowsmith_rows_generated_total", (("format", "csv"),)] == 5


def test_a_token_that_is_set_is_needed_from_everywhere(counting):
    app = counting(metrics_token=TOKEN)
    for headers in ({}, {"Authorization": "Bearer other"}, {"Authorization": f"Basic {TOKEN}"}):
        answer = app.test_client().get("/metrics", headers=headers)
        assert (answer.status_code, answer.json["error"]["code"]) == (401, "unauthenticated")
    assert app.test_client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_without_a_token_only_this_machine_reads_metrics(counting):
    app = counting()
    answer = from_address(app, "203.0.113.9")
    assert (answer.status_code, answer.json["error"]["code"]) == (403, "forbidden")
    assert app.test_client().get("/metrics").status_code == 200


def test_behind_a_proxy_of_this_machine_its_address_opens_nothing(counting):
    app = counting(trusted_proxies=("127.0.0.1/32",))
    for headers in ({}, {"X-Forwarded-For": "127.0.0.1"}, {"X-Forwarded-For": "203.0.113.9"}):
        answer = app.test_client().get("/metrics", headers={"X-Forwarded-Proto": "https", **headers})
        assert (answer.status_code, answer.json["error"]["code"]) == (403, "forbidden")


@pytest.mark.parametrize("networks", [(), ("127.0.0.0/8", f"{addresses.SCENARIO_RUN_ADDRESS}/32")])
def test_program_of_a_run_reads_no_metrics_without_the_token(counting, networks):
    app = counting(metrics_networks=networks)
    for address in (addresses.SCENARIO_RUN_ADDRESS, f"::ffff:{addresses.SCENARIO_RUN_ADDRESS}"):
        answer = app.test_client().get("/metrics", environ_base={"REMOTE_ADDR": address})
        assert (answer.status_code, answer.json["error"]["code"]) == (403, "forbidden")
    assert app.test_client().get("/metrics").status_code == 200


def test_program_of_a_run_does_not_pass_for_a_trusted_proxy(counting):
    app = counting(trusted_proxies=("127.0.0.0/8",), metrics_networks=("203.0.113.0/24",))
    how = {
        "environ_base": {"REMOTE_ADDR": addresses.SCENARIO_RUN_ADDRESS},
        "headers": {"X-Forwarded-For": "203.0.113.9"},
    }
    assert app.test_client().get("/metrics", **how).status_code == 403


def test_loopback_of_ipv6_reads_metrics_only_where_it_is_named(counting):
    """Programs of runs and everybody else come from the one address ::1 there."""
    for networks, status in (((), 403), (("::1/128",), 200)):
        app = counting(metrics_networks=networks)
        assert app.test_client().get("/metrics", environ_base={"REMOTE_ADDR": "::1"}).status_code == status


def test_networks_that_are_named_read_metrics(counting):
    app = counting(metrics_networks=("203.0.113.0/24",))
    for address, status in (("203.0.113.9", 200), ("198.51.100.1", 403), ("127.0.0.1", 403)):
        assert from_address(app, address).status_code == status


# --- The status page ------------------------------------------------------------------------------------------


@pytest.fixture
def held(app, cast):
    """A running export of Acme's that a worker holds, as (id, epoch)."""
    with app.app_context(), write_session() as session:
        export = Export(
            workspace_id=cast.acme,
            team_id=cast.blue,
            project_id=cast.main,
            format="csv",
            count=1,
            file_name="stuck.csv",
            request={"quota": {"rows": 1, "second": 0}},
        )
        session.add(export)
        session.flush()
        work_id = export.id
    with app.app_context():
        taken = lease.acquire("export", work_id, clock.now)
        return work_id, taken


def test_the_status_page_shows_admins_who_holds_what(app, browser, cast, held):
    with app.app_context():
        health.record_heartbeat(redis_client(), health.WORKER, "host-one:77", clock.epoch())
        doing = {"since": clock.epoch() - 300, "kind": "export", "id": held[0], "at": clock.epoch()}
        health.report_activity(redis_client(), health.WORKER, "host-one:77", doing)
    page = browser(cast.adam).get("/status").text
    for result in ("stuck.csv", "host-one", "77", health.process_name(), "Release"):
        assert result in page, result


@pytest.mark.parametrize("name", ["edith", "victor", "mallory"])
def test_others_see_parts_and_nothing_of_the_work(app, browser, cast, held, name):
    with app.app_context():
        health.record_heartbeat(redis_client(), health.WORKER, "host-one:77", clock.epoch())
        doing = {"since": clock.epoch(), "kind": "export", "id": held[0], "at": clock.epoch()}
        health.report_activity(redis_client(), health.WORKER, "host-one:77", doing)
    page = browser(cast.people[name]).get("/status").text
    assert "Database" in page
    assert "stuck.csv" not in page
    assert held[0] not in page
    assert ("host-one" in page) is (
        name == "mallory"
    )  # an admin of her own workspace sees that somebody works


def test_failures_of_the_last_days_are_listed_with_their_reason(app, browser, cast):
    with app.app_context(), write_session() as session:
        for days, name in ((1, "new.csv"), (limits.STATUS_FAILED_DAYS + 1, "old.csv")):
            session.add(
                Export(
                    workspace_id=cast.acme,
                    team_id=cast.blue,
                    project_id=cast.main,
                    format="csv",
                    count=1,
                    file_name=name,
                    status="failed",
                    finished_at=clock.now() - timedelta(days=days),
                    error={"code": "unavailable", "message": "The vocabulary is missing.", "details": {}},
                )
            )
    page = browser(cast.adam).get("/status").text
    assert "The vocabulary is missing." in page
    assert "new.csv" in page
    assert "old.csv" not in page


def test_a_release_takes_the_work_from_its_holder_who_writes_nothing_more(app, browser, cast, held):
    work_id, taken = held
    adam = browser(cast.adam)
    answer = adam.submit(f"/status/leases/{work_id}/release", {"epoch": str(taken.epoch)}, "POST")
    assert answer.status_code == 303
    assert f"stuck.csv was released from {health.process_name()}." in adam.get("/status").text
    with app.app_context():
        with pytest.raises(lease.LeaseLost):
            taken.save(rows_done=1)
        with pytest.raises(lease.LeaseLost):
            taken.finish()
        again = lease.acquire("export", work_id, clock.now)
        assert (again.epoch, again.attempt) == (taken.epoch + 2, taken.attempt)
        entry = db.session.scalars(sa.select(AuditEntry).where(AuditEntry.action == "export.release")).one()
        assert (entry.object_id, entry.user_id) == (work_id, cast.adam.user_id)
        assert entry.details["owner"] == health.process_name()


def test_releasing_work_that_another_worker_has_taken_is_rejected(app, browser, cast, held):
    work_id, taken = held
    answer = browser(cast.adam).submit(
        f"/status/leases/{work_id}/release", {"epoch": str(taken.epoch - 1)}, "POST"
    )
    assert answer.status_code == 409
    with app.app_context():
        taken.save(rows_done=1)  # it still holds it


def test_a_released_run_ends_failed_and_is_not_repeated(app, browser, cast):
    with app.app_context():
        with write_session() as session:
            place = {"workspace_id": cast.acme, "team_id": cast.blue, "project_id": cast.main}
            scenario = Scenario(name="s", timeout_seconds=60, network="none", **place)
            session.add(scenario)
            session.flush()
            run = Run(
                scenario_id=scenario.id, scenario_version=1, trigger="api", line_count=0, log_bytes=0, **place
            )
            session.add(run)
        taken = lease.acquire("run", run.id, clock.now)
    answer = browser(cast.adam).submit(
        f"/status/leases/{run.id}/release", {"epoch": str(taken.epoch)}, "POST"
    )
    assert answer.status_code == 303
    with app.app_context():
        found = db.session.get_one(Run, run.id)
        assert (found.status, found.error["code"]) == ("failed", "worker_lost")
        assert found.closed_at is not None
        db.session.remove()
        with pytest.raises(lease.NotAvailable):
            lease.acquire("run", run.id, clock.now)
        with pytest.raises(lease.LeaseLost):
            taken.finish()


def test_work_of_another_workspace_cannot_be_released(app, browser, cast, held):
    work_id, taken = held
    answer = browser(cast.mallory).submit(
        f"/status/leases/{work_id}/release", {"epoch": str(taken.epoch)}, "POST"
    )
    assert answer.status_code == 404
    with app.app_context():
        taken.save(rows_done=1)


def test_running_work_of_other_workspaces_is_only_shown_by_kind(app, cast, held):
    with app.app_context():
        health.record_heartbeat(redis_client(), health.WORKER, "h:1", clock.epoch())
        doing = {"since": 1.0, "kind": "export", "id": held[0], "at": 2.0}
        health.report_activity(redis_client(), health.WORKER, "h:1", doing)
        mallory = actor_of(cast.mallory_inc)
        (seen,) = operations_work.processes(mallory)
        assert (seen.about["kind"], seen.about["id"]) == ("export", None)
        assert operations_work.unfinished_work(mallory) == []


def actor_of(workspace_id):
    from webapp.access import actors

    return actors.system_actor(workspace_id)


# --- The file of an export that retention took ----------------------------------------------------------------


def test_an_export_without_its_file_says_how_to_reproduce_it(app, edith, path, work, row):
    from webapp.exports import export_files

    export = edith.post(f"{path}/exports", json={"count": 3, "format": "csv", "seed": "s"}).json
    work(export["id"])
    assert edith.get(f"/exports/{export['id']}/download").status_code == 200
    with app.app_context():
        export_files.remove_files(export["id"], clock.now())
    answer = edith.get(f"/exports/{export['id']}/download")
    assert (answer.status_code, answer.json["error"]["code"]) == (404, "not_found")
    assert "produces the same bytes again" in answer.json["error"]["message"]
    assert edith.get(f"/exports/{export['id']}").json["download_url"] is None
    (part,) = edith.get(f"/exports/{export['id']}/manifest").json["parts"]
    assert part["download_url"] is None


def test_every_metric_has_its_line_in_the_guide(counting):
    text = (Path(__file__).parents[2] / "docs" / "guide" / "operation.md").read_text("utf-8")
    app = counting()
    app.test_client().get("/health/live")
    families = text_string_to_metric_families(app.test_client().get("/metrics").text)
    names = {family.name for family in families}
    assert {"rowsmith_requests", "rowsmith_lease_ahead_seconds", "rowsmith_build_info"} <= names
    assert [name for name in names if f"`{name}`" not in text and f"`{name}_total`" not in text] == []


def test_the_guide_lists_the_retention_of_every_plan():
    text = (Path(__file__).parents[2] / "docs" / "guide" / "operation.md").read_text("utf-8")
    for plan, stored in limits.RETENTION.items():
        line = f"| {plan} | {stored.log_days} days | {stored.file_days} days | {stored.work_days} days |"
        assert line in text
