"""Runs over the API: started, waited for, listed, followed, cancelled, repeated; and what a run's own key may do."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select, update

from jobs import lease
from tests.jobs.running import Running, running  # noqa: F401
from tests.jobs.waiting import eventually
from webapp import clock, limits
from webapp.access import actors
from webapp.connections.services import secrets
from webapp.extensions import db, write_session
from webapp.scenarios.models import Run
from webapp.scenarios.services import run_completion
from webapp.scenarios.views.run_pages import FollowedRun
from webapp.web import events, hooks

HELLO = "print('hello')"


@pytest.fixture
def scenario_id(running):
    return running.scenario(HELLO)


@pytest.fixture
def runner(running):
    """Does queued runs in a thread as they come; `stop` ends it."""
    stop = threading.Event()

    def work() -> None:
        while not stop.wait(0.02):
            with running.app.app_context():
                found = db.session.scalars(select(Run.id).where(Run.status == "queued")).all()
                db.session.remove()
            for run_id in found:
                running.do(run_id)

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stop.set()
    thread.join(20)


def events_of(text: str) -> list[dict[str, str]]:
    """Server-sent events as {id, event, data}; comments left out."""
    found = []
    for block in text.split("\n\n"):
        fields = [line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":")]
        if fields:
            found.append(dict([*field, ""][:2] for field in fields))
    return found


def begin(running: Running, run_id: str, *lines: str) -> lease.Lease:
    """Take a run, as a runner does, and print some lines."""
    with running.app.app_context():
        work = lease.acquire("run", run_id, clock.now)
    write(running, run_id, *lines)
    return work


def write(running: Running, run_id: str, *lines: str) -> None:
    with running.app.app_context():
        with write_session() as session:
            run_completion.append_lines(
                session, session.get_one(Run, run_id, with_for_update=True), lines, clock.now()
            )
        run_completion.notify_followers(run_id)


def end(running: Running, run_id: str, **values: object) -> None:
    with running.app.app_context():
        from webapp.scenarios.services import run_completion

        ended = {"status": "completed", "exit_code": 0, "finished_at": clock.now(), **values}
        with write_session() as session:
            session.execute(update(Run).where(Run.id == run_id).values(**ended))
        run_completion.settle(run_id)


# --- Starting ---------------------------------------------------------------------------------------------------


def test_a_run_is_queued_immediately_and_returned_completely(edith, scenario_id, cast):
    answer = edith.post(f"/scenarios/{scenario_id}/run")
    assert answer.status_code == 201
    run = answer.json
    assert answer.headers["Location"] == f"/scenarios/{scenario_id}/runs/{run['run_id']}"
    assert run["run_id"] == run["id"]
    assert (run["status"], run["trigger"], run["scenario_version"]) == ("queued", "api", 1)
    assert run["created_by"] == cast.edith.user_id
    expected = (
        "id run_id scenario_id scenario_version status params trigger exit_code error created_at started_at "
        "finished_at duration_ms max_rss_bytes cpu_ms rows_generated outputs"
    )
    assert set(expected.split()) <= set(run)
    assert edith.get(answer.headers["Location"]).json == run


@pytest.mark.parametrize("wait", ["true", True])
def test_wait_answers_with_the_run_as_it_ended(edith, running, runner, wait):
    scenario_id = running.scenario("import os\nraise SystemExit(int(os.environ['CODE']))")
    answer = edith.post(f"/scenarios/{scenario_id}/run", json={"params": {"CODE": "7"}, "wait": wait})
    assert answer.status_code == 200
    assert (answer.json["status"], answer.json["exit_code"]) == ("failed", 7)
    assert answer.json["duration_ms"] > 0


def test_wait_answers_with_the_present_state_after_its_time(edith, scenario_id, monkeypatch):
    monkeypatch.setattr(limits, "WAIT_SECONDS", 0.3)
    answer = edith.post(f"/scenarios/{scenario_id}/run", json={"wait": "true"})
    assert (answer.status_code, answer.json["status"]) == (200, "queued")


def test_wait_returns_immediately_if_the_maximum_is_waiting(app, edith, scenario_id):
    app.extensions["rowsmith.stream_slots"] = events.StreamSlots(0)
    answer = edith.post(f"/scenarios/{scenario_id}/run", json={"wait": True})
    assert (answer.status_code, answer.json["status"]) == (200, "queued")


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"params": {"PATH": "x"}}, "params.PATH"),
        ({"params": {"SERVICE_API_KEY": "x"}}, "params.SERVICE_API_KEY"),
        ({"params": {"a b": "x"}}, "params.a b"),
        ({"params": {"N": 5}}, "params.N"),
        ({"params": {"TOKEN": "x"}}, "params.TOKEN"),
        ({"wait": "perhaps"}, "wait"),
        ({"parms": {}}, "parms"),
    ],
)
def test_impossible_options_are_rejected_with_their_position(edith, running, body, path):
    scenario_id = running.scenario(HELLO, secrets=["TOKEN"])
    answer = edith.post(f"/scenarios/{scenario_id}/run", json=body)
    assert answer.status_code == 422
    assert [fault["path"] for fault in answer.json["error"]["details"]["fields"]] == [path]


def test_the_same_idempotency_key_runs_once(edith, scenario_id):
    path, headers = f"/scenarios/{scenario_id}/run", {"Idempotency-Key": "once"}
    first, second = (edith.post(path, json={}, headers=headers) for _ in range(2))
    assert first.json["id"] == second.json["id"]
    assert edith.get(f"/scenarios/{scenario_id}/runs").json["total"] == 1


def test_no_more_runs_are_queued_than_a_plan_allows(api, cast, running, edith, monkeypatch):
    monkeypatch.setattr(limits, "RUNS_QUEUED", {"enterprise": 2})
    scenario_id = running.scenario(HELLO)
    answers = [edith.post(f"/scenarios/{scenario_id}/run") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [201, 201, 429]
    assert answers[2].json["error"]["code"] == "quota_exceeded"
    assert int(answers[2].headers["Retry-After"]) > 0


# --- Looking, cancelling, repeating -----------------------------------------------------------------------------


def test_runs_are_listed_newest_first_and_narrowed(edith, running, api, cast):
    one, other = running.scenario(HELLO), running.scenario(HELLO)
    first, second, third = (edith.post(f"/scenarios/{each}/run").json["id"] for each in (one, one, other))
    edith.delete(f"/scenarios/{one}/runs/{first}")
    assert [run["id"] for run in edith.get("/runs").json["items"]] == [third, second, first]
    assert [run["id"] for run in edith.get(f"/scenarios/{one}/runs").json["items"]] == [second, first]
    assert [run["id"] for run in edith.get("/runs?status=cancelled").json["items"]] == [first]
    assert edith.get(f"/scenarios/{other}/runs/{first}").status_code == 404, "it is of another scenario"
    assert api(cast.mallory).get(f"/scenarios/{one}/runs/{first}").status_code == 404


def test_cancelling_answers_200_once_and_409_after_the_end(edith, scenario_id):
    path = edith.post(f"/scenarios/{scenario_id}/run").headers["Location"]
    answer = edith.delete(path)
    assert (answer.status_code, answer.json["status"]) == (200, "cancelled")
    again = edith.delete(path)
    assert (again.status_code, again.json["error"]["code"]) == (409, "run_finished")


def test_a_run_is_repeated_of_the_same_version_or_the_newest(edith, running):
    from webapp.scenarios.models import Scenario, ScenarioVersion

    scenario_id = running.scenario(HELLO)
    path = edith.post(f"/scenarios/{scenario_id}/run", json={"params": {"A": "1"}}).headers["Location"]
    with running.app.app_context(), write_session() as session:
        session.get_one(Scenario, scenario_id).version = 2
        session.add(
            ScenarioVersion(scenario_id=scenario_id, number=2, spec={"code": "print('newer')"}, pins={})
        )
    same = edith.post(f"{path}/rerun").json
    newest = edith.post(f"{path}/rerun", json={"version": "newest", "params": {"B": "2"}}).json
    assert (same["scenario_version"], same["params"], same["trigger"]) == (1, {"A": "1"}, "rerun")
    assert (newest["scenario_version"], newest["params"]) == (2, {"B": "2"})
    assert same["of_id"] == newest["of_id"] == path.rpartition("/")[2]
    assert running.do(newest["id"]).status == "completed"
    assert running.log(newest["id"]) == "newer\n"


# --- The log ----------------------------------------------------------------------------------------------------


def test_the_log_is_text_as_printed(edith, running):
    run = running.run("print('a')\nprint('ü\u2028x')\nprint()\nprint('b')")
    answer = edith.get(f"/scenarios/{run.scenario_id}/runs/{run.id}/logs")
    assert answer.mimetype == "text/plain"
    assert answer.text == "a\nü\u2028x\n\nb\n"


def test_a_follower_gets_every_line_under_its_number_and_the_end(edith, running):
    run = running.run("print('a')\nprint('ü\u2028x')\nprint()\nprint('b')")
    path = f"/scenarios/{run.scenario_id}/runs/{run.id}/logs?follow=true"
    answer = edith.get(path)
    assert answer.mimetype == "text/event-stream"
    *lines, last = events_of(answer.text)
    assert [(line["id"], line["event"], line["data"]) for line in lines] == [
        ("1", "log", "a"), ("2", "log", "ü\u2028x"), ("3", "log", ""), ("4", "log", "b"),
    ]  # fmt: skip
    assert last["event"] == "end"
    assert json.loads(last["data"]) == {"status": "completed", "exit_code": 0, "error": None}
    for seen, left in (("2", ["3", "4"]), ("4", []), ("99", []), ("nonsense", ["1", "2", "3", "4"])):
        found = events_of(edith.get(path, headers={"Last-Event-ID": seen}).text)
        assert [item["id"] for item in found if item["event"] == "log"] == left
        assert found[-1]["event"] == "end", "always an end"


def test_followers_that_come_at_any_time_get_every_line_once_and_in_order(edith, running, scenario_id):
    run_id = edith.post(f"/scenarios/{scenario_id}/run").json["id"]
    path = f"/scenarios/{scenario_id}/runs/{run_id}/logs?follow=true"
    begin(running, run_id, *(f"line {number}" for number in range(1, 101)))
    reported: dict[int, str] = {}

    def follow(after: int) -> None:
        reported[after] = edith.get(path, headers={"Last-Event-ID": str(after)}).text

    threads = []
    for number in range(8):
        threads.append(threading.Thread(target=follow, args=(number * 10,)))
        threads[-1].start()
        write(running, run_id, *(f"line {101 + 50 * number + at}" for at in range(50)))
    end(running, run_id)
    for thread in threads:
        thread.join(30)
    for after, text in reported.items():
        *lines, last = events_of(text)
        assert [int(line["id"]) for line in lines] == list(range(after + 1, 501))
        assert all(line["data"] == f"line {line['id']}" for line in lines)
        assert last["event"] == "end"


def test_a_follower_who_is_far_behind_gets_what_the_window_no_longer_holds(
    edith, running, scenario_id, monkeypatch
):
    monkeypatch.setattr(limits, "FOLLOW_WINDOW_BYTES", 2_000)
    run_id = edith.post(f"/scenarios/{scenario_id}/run").json["id"]
    begin(running, run_id)
    followed = FollowedRun(run_id)
    with running.app.app_context():
        hub = events.log_hub(running.app)
        feed = hub.attach(followed, lines=True)
        for number in range(20):
            write(running, run_id, *(f"line {number * 50 + at + 1}" for at in range(50)))
        eventually(lambda: feed.reached == 1_000)
        assert feed.base > 0, "the window has moved on"
    end(running, run_id)
    found = events_of(edith.get(f"/scenarios/{scenario_id}/runs/{run_id}/logs?follow=true").text)
    assert [int(item["id"]) for item in found[:-1]] == list(range(1, 1_001))
    hub.detach(feed, lines=True)


TERMINAL = {
    "\x1b[31mred\x1b[0m": "\x1b[31mred\x1b[0m",
    "\x1b[38;5;196mred\x1b[m": "\x1b[38;5;196mred\x1b[m",
    "a\tb ä 😀": "a\tb ä 😀",
    "\x1b]8;;https://evil.example\x07click\x1b]8;;\x07": "\\x1b]8;;https://evil.example\\x07click\\x1b]8;;\\x07",
    "\x1b]0;title\x07": "\\x1b]0;title\\x07",
    "\x1b]52;c;ZXZpbA==\x07": "\\x1b]52;c;ZXZpbA==\\x07",
    "\x1b[2J\x1b[H": "\\x1b[2J\\x1b[H",
    "\x1b[1A\x1b[2K": "\\x1b[1A\\x1b[2K",
    "\x1b[?1049h": "\\x1b[?1049h",
    "\x1bP+q544e\x1b\\": "\\x1bP+q544e\\x1b\\",
    "\x1bc": "\\x1bc",
    "\x9b2J": "\\x9b2J",
    "a\x08\x08b\x0bc\x0cd\x7f": "a\\x08\\x08b\\x0bc\\x0cd\\x7f",
    "\x1b[31;\x1b[0mm": "\\x1b[31;\x1b[0mm",
}


def test_text_of_a_log_commands_no_terminal_and_events_are_as_printed(edith, running, scenario_id):
    run_id = edith.post(f"/scenarios/{scenario_id}/run").json["id"]
    begin(running, run_id, *TERMINAL)
    path = f"/scenarios/{scenario_id}/runs/{run_id}/logs"
    assert edith.get(path).text.split("\n")[:-1] == list(TERMINAL.values())
    end(running, run_id)
    text = [
        item["data"] for item in events_of(edith.get(f"{path}?follow=true").text) if item["event"] == "log"
    ]
    assert text[: len(TERMINAL)] == list(TERMINAL)


def test_emptying_redis_loses_no_line_and_no_end(edith, running, scenario_id):
    from webapp.extensions import redis_client

    run_id = edith.post(f"/scenarios/{scenario_id}/run").json["id"]
    begin(running, run_id, "one")
    result = []
    thread = threading.Thread(
        target=lambda: result.append(
            edith.get(f"/scenarios/{scenario_id}/runs/{run_id}/logs?follow=true").text
        )
    )
    thread.start()
    eventually(lambda: events.stream_slots(running.app).used == 1)
    with running.app.app_context():
        redis_client().flushall()
    write(running, run_id, "two")
    end(running, run_id)
    thread.join(20)
    assert [item["data"] for item in events_of(result[0])][:2] == ["one", "two"]
    assert events_of(result[0])[-1]["event"] == "end"


def test_a_follower_without_a_free_slot_gets_a_retry_after(app, edith, scenario_id):
    path = edith.post(f"/scenarios/{scenario_id}/run").headers["Location"]
    app.extensions["rowsmith.stream_slots"] = events.StreamSlots(0)
    for address in (f"{path}/logs?follow=true", f"{path}/events"):
        answer = edith.get(address)
        assert (answer.status_code, answer.json["error"]["code"]) == (503, "unavailable")
        assert int(answer.headers["Retry-After"]) > 0


def test_places_are_free_again_once_followers_have_gone(app, edith, running):
    run = running.run(HELLO)
    path = f"/scenarios/{run.scenario_id}/runs/{run.id}"
    edith.get(f"{path}/logs?follow=true").get_data()
    edith.get(f"{path}/events").close()  # without a look at it
    edith.open("HEAD", f"{path}/logs?follow=true").close()
    assert events.stream_slots(app).used == 0
    eventually(lambda: not any(thread.name == "log-hub" for thread in threading.enumerate()))


def test_the_page_of_a_run_receives_its_counts_and_the_end(edith, running):
    run = running.run(HELLO)
    (last,) = events_of(edith.get(f"/scenarios/{run.scenario_id}/runs/{run.id}/events").text)
    assert (last["event"], json.loads(last["data"])["status"]) == ("end", "completed")


# --- A run's own key --------------------------------------------------------------------------------------------


@pytest.fixture
def as_run(api, running, scenario_id, edith) -> Callable[..., object]:
    """A program with the key of a run that may set the secret TOKEN."""
    result = running.scenario(HELLO, writable_secrets=["TOKEN"])
    run_id = edith.post(f"/scenarios/{result}/run").json["id"]
    begin(running, run_id)
    with running.app.app_context(), write_session() as session:
        run = session.get_one(Run, run_id)
        text = run_completion.issue_key(session, run, running.cast.edith.user_id, clock.now())
    program = api(text)
    program.run_id, program.scenario_id = run_id, result
    return program


def test_a_runs_key_has_its_makers_role_in_its_project_and_ends_with_the_run(as_run, running, cast):
    assert as_run.get("/templates").status_code == 200
    fields = [{"name": "id", "type": "row_number"}]
    created = as_run.post("/templates", json={"name": "By a run", "fields": fields})
    assert (created.status_code, created.json["project_id"]) == (201, cast.main)
    assert as_run.get("/secrets").status_code == 403
    assert as_run.post("/api-keys", json={"name": "more"}).status_code == 403
    end(running, as_run.run_id)
    answer = as_run.get("/templates")
    assert (answer.status_code, answer.json["error"]["details"]["reason"]) == (401, "revoked")


def test_a_run_sets_the_secrets_that_its_scenario_names_and_no_other(as_run, running, cast):
    assert as_run.put("/secrets/TOKEN", json={"value": "fresh"}).status_code == 201
    assert as_run.put("/secrets/OTHER", json={"value": "fresh"}).status_code == 403
    assert as_run.delete("/secrets/TOKEN").status_code == 403
    with running.app.app_context():
        found = secrets.listing(actors.system_actor(cast.acme)).items
        assert [(secret.name, secrets.decrypt(secret)) for secret in found] == [("TOKEN", "fresh")]


@pytest.fixture
def key_of(api, running) -> Callable[[str], Any]:
    """An API client with the key of a run in progress."""

    def issue(run_id: str) -> Any:
        begin(running, run_id)
        with running.app.app_context(), write_session() as session:
            run = session.get_one(Run, run_id)
            return api(run_completion.issue_key(session, run, running.cast.edith.user_id, clock.now()))

    return issue


@pytest.mark.parametrize("how", ["run", "rerun"])
def test_scenario_that_starts_itself_ends_at_the_limit_of_depth(edith, running, scenario_id, key_of, how):
    run_id = edith.post(f"/scenarios/{scenario_id}/run").json["id"]
    started = []
    while len(started) < 2 * limits.MAX_RUN_DEPTH:
        path = "run" if how == "run" else f"runs/{run_id}/rerun"
        answer = key_of(run_id).post(f"/scenarios/{scenario_id}/{path}")
        if answer.status_code != 201:
            break
        started.append(answer.json["id"])
        run_id = started[-1]
    assert len(started) == limits.MAX_RUN_DEPTH
    error = answer.json["error"]
    assert (answer.status_code, error["code"], error["details"]["needs"]) == (403, "forbidden", "depth")
    assert running.read(started[-1]).parent_id == started[-2]
    # From outside it starts as before.
    assert edith.post(f"/scenarios/{scenario_id}/run").status_code == 201
    again = edith.post(f"/scenarios/{scenario_id}/runs/{run_id}/rerun")
    assert (again.status_code, running.read(again.json["id"]).depth) == (201, 0)


def test_a_run_starts_no_more_runs_than_it_may_have_unfinished(
    edith, running, scenario_id, key_of, monkeypatch
):
    monkeypatch.setattr(limits, "MAX_RUNS_OF_RUN", 3)
    program = key_of(edith.post(f"/scenarios/{scenario_id}/run").json["id"])
    started = [program.post(f"/scenarios/{scenario_id}/run").json["id"] for _ in range(3)]
    answer = program.post(f"/scenarios/{scenario_id}/run")
    assert (answer.status_code, answer.json["error"]["code"]) == (429, "quota_exceeded")
    assert answer.json["error"]["details"]["limit"] == 3
    assert int(answer.headers["Retry-After"]) > 0
    running.do(started[0])
    assert program.post(f"/scenarios/{scenario_id}/run").status_code == 201


def test_an_editor_sets_no_secret_by_the_same_way(edith):
    assert edith.put("/secrets/TOKEN", json={"value": "fresh"}).status_code == 403


def test_a_runs_key_is_in_no_list_of_keys(as_run, api, cast):
    for who in (cast.edith, cast.adam):
        assert not any(
            key["name"].startswith("run_") for key in api(who).get("/api-keys?limit=100").json["items"]
        )


def test_a_run_started_by_a_run_says_so(as_run):
    answer = as_run.post(f"/scenarios/{as_run.scenario_id}/run")
    assert (answer.status_code, answer.json["trigger"]) == (201, "scenario")


def test_the_key_of_a_run_speaks_the_newest_version_of_the_api():
    assert run_completion.API_VERSION == hooks.NEWEST_VERSION
