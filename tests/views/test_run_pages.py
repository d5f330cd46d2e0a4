"""The pages of runs, without a script: the log as it is, searched and by line; resources, outputs, repeating."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.forms.in_html import controls
from webapp import clock, limits
from webapp.extensions import db
from webapp.scenarios.models import Run, RunChunk
from webapp.scenarios.services import run_completion
from webapp.scenarios.views import run_pages


@pytest.fixture
def person(browser, cast):
    return browser(cast.edith)


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture
def scenario(edith):
    return edith.post("/scenarios", json={"name": "Nightly", "code": "print(1)\n"}).json


@pytest.fixture
def ran(app, cast, scenario):
    """`ran(lines, status="failed", ...)`: the address of a run that is as one says."""

    def make(lines=(), status="completed", **more):
        with app.app_context():
            now = clock.now()
            ended = status in ("completed", "failed", "cancelled", "timed_out")
            run = Run(
                workspace_id=cast.acme, project_id=cast.main, team_id=cast.blue, scenario_id=scenario["id"],
                scenario_version=1, trigger="browser", created_by=cast.edith.user_id, status=status,
                settings={"timeout_seconds": 900, "network": "api"}, created_at=now - timedelta(minutes=2),
                started_at=None if status == "queued" else now - timedelta(minutes=1),
                finished_at=now if ended else None, closed_at=now if ended else None, line_count=len(lines), **more,
            )  # fmt: skip
            db.session.add(run)
            db.session.flush()
            for first in range(0, len(lines), 1000):
                some = list(lines[first : first + 1000])
                chunk = RunChunk(
                    run_id=run.id, first=first + 1, last=first + len(some), at=now, text="\n".join(some)
                )
                db.session.add(chunk)
            db.session.commit()
            return f"/scenarios/{scenario['id']}/runs/{run.id}"

    return make


def numbers(text: str) -> list[int]:
    """The numbers of the lines that a page holds."""
    return [int(part.partition('"')[0]) for part in text.split('<li id="L')[1:]]


def test_a_run_reports_its_state_usage_and_outputs(person, ran):
    outputs = [{"name": "customers.csv", "size": 1234, "file_id": "fil_1"}]
    usage = [[0.0, 1_000_000, 0], [1.0, 30_000_000, 900], [2.0, 20_000_000, 1800]]
    path = ran(
        ["a"], exit_code=0, max_rss_bytes=30_000_000, cpu_ms=1800, rows_generated=500, outputs=outputs, usage=usage,
        params={"ROWS": "5"},
    )  # fmt: skip
    text = person.get(path).text
    for result in (
        "completed",
        "30.0 MB",
        "1.8 s",
        "500",
        "customers.csv",
        "1.2 kB",
        "took 60 s",
        "by Edith",
        "ROWS=5",
    ):
        assert result in text, result
    assert text.count('<figure class="rate">') == 2
    assert (
        "hx-get" not in text.partition('id="log-card"')[0].partition('id="work"')[2]
    )  # nothing more will come
    assert "/workspace/files/fil_1" in text


@pytest.mark.parametrize("code", run_completion.ERROR_MESSAGES)
def test_every_kind_of_failure_has_a_remedy(code):
    assert run_pages.ADVICE[code].endswith(".")


def test_a_failure_says_in_words_what_happened_and_what_to_do(person, ran):
    path = ran(["Killed"], status="failed", exit_code=-9, error=run_completion.run_error("memory_limit"))
    text = person.get(path).text
    assert "exceeded the memory limit of a run" in text
    assert "Process rows in batches" in text


def test_the_end_of_a_long_log_is_shown_and_older_lines_are_a_link_away(person, ran):
    path = ran([f"line {n}" for n in range(1, 5001)])
    page = person.get(path)
    assert numbers(page.text) == list(range(4801, 5001))
    assert f'href="{path}?line=4651"' in page.text
    assert len(page.text.encode()) < 50_000
    around = person.get(f"{path}?line=2500")
    assert 2500 in numbers(around.text)
    assert '<li id="L2500" class="at">' in around.text
    assert "5,000 lines" in around.text


def test_long_lines_do_not_make_a_long_page(person, ran):
    page = person.get(ran(["x" * 60_000 for _ in range(300)]))
    assert len(page.text.encode()) < 50_000
    assert "56,000 characters more" in page.text
    assert numbers(page.text)[-1] == 300


def test_any_piece_of_a_log_can_be_fetched(person, ran):
    path = ran([f"line {n}" for n in range(1, 2501)])
    part = person.get(f"{path}/log?first=990&most=20", headers={"HX-Request": "true"}).text
    assert "<html" not in part
    assert numbers(part) == list(range(990, 1010))
    assert numbers(person.get(f"{path}/log?first=2499").text) == [2499, 2500]
    assert numbers(person.get(f"{path}/log?first=9999").text) == []
    assert numbers(person.get(f"{path}/log").text)[-1] == 2500


def test_a_search_looks_through_all_lines_and_leads_to_them(person, ran):
    path = ran([f"{'Needle' if n in (3, 2400) else 'hay'} {n}" for n in range(1, 2501)])
    text = person.get(f"{path}?q=nEEdle").text
    assert "2 lines with “nEEdle”" in text
    assert f'href="{path}?line=3#L3"' in text
    assert f'href="{path}?line=2400#L2400"' in text
    part = person.get(f"{path}/log?q=hay", headers={"HX-Request": "true"}).text
    assert f"2,498 lines with “hay”, the first {limits.LOG_HITS}" in part
    assert person.get(f"{path}/log?q=", headers={"HX-Request": "true"}).text.strip() == ""


def test_colours_and_commands_to_a_terminal_are_taken_out(person, ran):
    result = [
        "\x1b[31;1mred\x1b[0m and \x1b]0;title\x07plain",
        "\x1b[2Kbar 50%",
        "tab\there",
        "nul\x00bell\x07",
    ]
    text = person.get(ran(result)).text
    for plain in (">red and plain<", ">bar 50%<", ">tab\there<", ">nulbell<"):
        assert plain in text
    assert "\x1b" not in text


def test_output_of_a_program_stays_text(person, ran):
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'</li></ol>"
    error = run_completion.run_error("program_failed", evil)
    outputs = [{"name": evil, "size": 1, "file_id": "fil_1"}]
    path = ran([evil], status="failed", error=error, outputs=outputs, params={"A": evil})
    for where in (path, f"{path}?q=script", f"{path}/log", f"{path}/state"):
        assert "<script>alert" not in person.get(where).text
        assert "<img src=x" not in person.get(where).text


def test_a_log_is_had_as_a_text_with_everything_that_was_printed(person, ran):
    path = ran(["\x1b[31mred", "x" * 9000])
    answer = person.get(f"{path}/logs")
    assert answer.mimetype == "text/plain"
    assert answer.text == "\x1b[31mred\n" + "x" * 9000 + "\n"


def test_a_log_is_followed_from_the_line_that_is_there(person, ran):
    text = person.get(f"{ran(['a', 'b', 'c'])}/log/follow?after=2").text
    assert "data: c" in text
    assert "data: b" not in text
    assert "event: end" in text


def test_a_running_run_is_polled_until_it_ends(person, ran, app):
    path = ran([], status="running")
    text = person.get(path).text
    assert "Cancel the run" in text
    assert f'hx-get="{path}/state"' in text
    assert "No output yet." in text
    with app.app_context():
        run = db.session.get_one(Run, path.rsplit("/", 1)[1])
        run.status = "completed"
        db.session.commit()
    part = person.get(f"{path}/state", headers={"HX-Request": "true"}).text
    assert "completed" in part
    assert "hx-get" not in part
    assert "Cancel" not in part


def test_a_queued_run_is_cancelled_by_its_button(person, edith, ran):
    path = ran([], status="queued")
    assert "waiting for a runner" in person.get(path).text
    assert person.submit(path, method="DELETE").headers["Location"] == path
    assert edith.get(path).json["status"] == "cancelled"


def test_a_run_is_repeated_as_it_was_or_with_other_parameters(person, edith, ran, scenario):
    path = ran([], params={"N": "1"})
    edith.patch(f"/scenarios/{scenario['id']}", json={"code": "print(2)\n"})
    text = person.get(path).text
    assert "(latest: 2)" in text
    same = person.submit(f"{path}/rerun", {"version": "same"}).headers["Location"]
    result = edith.get(same).json
    assert (result["scenario_version"], result["params"], result["trigger"]) == (1, {"N": "1"}, "rerun")
    form = {"version": "newest", "params[0].name": "N", "params[0].value": "2"}
    other = person.submit(f"{path}/again", form).headers["Location"]
    result = edith.get(other).json
    assert (result["scenario_version"], result["params"], result["of_id"]) == (
        2,
        {"N": "2"},
        path.rsplit("/", 1)[1],
    )
    assert other in person.get(path).text  # among those that repeat it
    assert person.submit(f"{path}/again", {"params[0].value": "2"}).status_code == 422


def test_the_history_lists_all_runs_with_their_durations_in_the_requested_order(person, edith, ran, scenario):
    first = ran(["a", "b", "c"], rows_generated=1)
    ran(["a"], status="failed", error=run_completion.run_error("program_failed"), rows_generated=9)
    path = f"/scenarios/{scenario['id']}/runs"
    text = person.get(path).text
    assert text.index("The program failed") < text.index(first)  # newest first
    assert 'class="spark"' in text
    assert "The program failed." in text
    found = [item["line_count"] for item in edith.get(f"{path}?sort=-lines").json["items"]]
    assert found == [3, 1]
    assert [item["rows_generated"] for item in edith.get(f"{path}?sort=-rows").json["items"]] == [9, 1]
    assert first in person.get(f"{path}?status=completed").text
    assert "No runs with this status" in person.get(f"{path}?status=timed_out").text
    everything = person.get("/runs")
    assert (everything.status_code, everything.headers["Location"].partition("?")[0]) == (303, "/activity")


def test_a_run_is_started_with_parameters_from_the_history(person, edith, scenario):
    path = f"/scenarios/{scenario['id']}"
    text = person.get(f"{path}/runs").text
    assert "No runs yet" in text
    where = person.submit(f"{path}/start", {"params[0].name": "A", "params[0].value": "b\r\nc"}).headers[
        "Location"
    ]
    assert edith.get(where).json["params"] == {"A": "b\nc"}
    assert controls(person.get(f"{path}/runs").text).to_dict()["params[0].name"] == "A"


def test_a_viewer_sees_a_run_and_can_do_nothing_to_it(browser, cast, ran):
    victor = browser(cast.victor)
    text = victor.get(ran(["a"], status="running")).text
    assert "Cancel the run" not in text
    assert "Run again" not in text


def test_runs_of_a_deleted_scenario_can_still_be_read(person, ran, scenario):
    path = ran(["still here"])
    person.submit(f"/scenarios/{scenario['id']}", method="DELETE")
    text = person.get(path).text
    assert "still here" in text
    assert "(deleted)" in text
    assert "Run again" not in text
