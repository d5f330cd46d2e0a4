"""Pushes, runs and files from the command line: following to the end, Ctrl-C without cancelling, and exit codes."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest
from rowsmith import Template
from rowsmith.fields import RowNumberField

from jobs.pushes import push as push_job
from tests.jobs.running import Running, running  # noqa: F401
from tests.jobs.waiting import eventually
from tests.views.targets import CUSTOMERS, sqlite_target
from webapp.extensions import db


@pytest.fixture
def shop(app, cast, sdk):
    """An empty table, and a template for it."""
    result = sqlite_target(app, cast)
    sdk().templates.create({"name": "customers", "quantity": 12, "fields": CUSTOMERS})
    return result


@pytest.fixture
def worker(app, sdk):
    """Carries out the next push, as a worker would, as soon as there is one."""
    threads: list[threading.Thread] = []

    def work() -> None:
        found = eventually(lambda: sdk().pushes.list(status="queued").first())
        with app.app_context():
            push_job.run(found["id"])
            db.session.remove()

    def begin() -> None:
        threads.append(threading.Thread(target=work))
        threads[-1].start()

    yield begin
    for thread in threads:
        thread.join()


PUSH = ("push", "customers", "--to", "Shop", "--target", "customers")


def test_a_dry_push_shows_statements_and_sends_nothing(shell, shop, sdk):
    lines = shell.good(*PUSH, "--dry-run").out.splitlines()
    assert len(lines) == 3
    assert all("INSERT" in line for line in lines)
    assert sdk().pushes.list().total == 0
    assert shell(*PUSH, "--dry-run", "--watch").status == 2


def test_a_watched_push_ends_with_0_where_every_row_arrived(shell, shop, worker):
    worker()
    ended = shell.good(*PUSH, "-n", "12", "--watch")
    assert ended.out == "completed: 12 delivered\n"
    assert "\x1b" not in ended.err
    assert shop.count("customers") == 12


def test_a_watched_push_ends_with_1_where_a_row_did_not_arrive(shell, shop, worker):
    worker()
    ended = shell(*PUSH, "-n", "4", "--seed", "s", "--watch", "--json", "--map", "age=")
    assert (ended.status, ended.json["counts"]["delivered"]) == (0, 4)
    shop.execute("UPDATE customers SET id = id + 100")
    worker()
    ended = shell(*PUSH, "-n", "4", "--seed", "s", "--watch", "--json")  # the same addresses once more
    assert (ended.status, ended.json["counts"]["failed"]) == (1, 4)


def test_a_dry_fill_lists_a_table_a_line_and_sends_nothing(shell, shop, sdk):
    assert shell.good("fill", "Shop", "--rows", "7", "--dry-run").out.splitlines() == [
        "customers: 7 rows",
        "orders: 7 rows",
    ]
    assert sdk().pushes.list().total == 0
    assert shell("fill", "Shop", "--dry-run", "--watch").status == 2


def test_a_watched_fill_ends_with_0_where_every_row_arrived(shell, shop, worker):
    worker()
    assert (
        shell.good("fill", "Shop", "--rows", "7", "--seed", "s", "--watch").out == "completed: 14 delivered\n"
    )
    assert (shop.count("customers"), shop.count("orders")) == (7, 7)


def test_a_fill_names_a_table_that_is_not_there(shell, shop):
    ended = shell("fill", "Shop", "--table", "nothing")
    assert ended.status != 0
    assert "nothing" in ended.err


def test_a_push_that_is_not_watched_gives_its_id_to_logs_and_cancel(shell, shop, sdk):
    id = shell.good(*PUSH).out.strip()
    assert id.startswith("psh_")
    shell.good("logs", id)
    assert shell.good("cancel", id, "--json").json[0]["id"] == id
    assert shell("cancel", id).status == 5


@pytest.mark.parametrize("expected", [False, True])
def test_ctrl_c_does_not_cancel_a_push_by_default(shell, shop, sdk, expected):
    more = ("--cancel-on-interrupt",) if expected else ()
    process = shell.begin(*PUSH, "--watch", *more)
    text = process.stderr.readline()
    found = eventually(lambda: sdk().pushes.list().first())
    assert found["id"].encode() in text
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, b"")
    assert (b"is being cancelled" if expected else b"is still running") in err
    assert sdk().pushes.get(found["id"])["status"] == ("cancelled" if expected else "queued")


@pytest.fixture
def scenario(sdk, running: Running):
    """`scenario(code)`: a scenario called Nightly, and a runner that carries out its next run."""
    threads: list[threading.Thread] = []

    def work() -> None:
        found = eventually(lambda: sdk().runs.list(status="queued").first())
        running.do(found["id"])

    def make(code: str, runs: bool = True) -> str:
        created = sdk().scenarios.create(name="Nightly", code=code)
        if runs:
            threads.append(threading.Thread(target=work))
            threads[-1].start()
        return created["id"]

    yield make
    for thread in threads:
        thread.join()


def test_a_run_that_is_followed_prints_what_its_program_prints(shell, scenario):
    scenario("import os\nprint('count', os.environ['COUNT'])\nprint('ü')")
    ended = shell.good("run", "Nightly", "--param", "COUNT=3", "--follow")
    assert ended.out == "count 3\nü\n"
    assert "completed, exit code 0" in ended.err
    id = ended.err.split()[0]
    assert shell.good("logs", id).out == ended.out
    assert shell.good("logs", id, "--follow", "--after", "1").out == "ü\n"
    assert shell.good("runs", id, "--json").json["exit_code"] == 0
    assert [item["id"] for item in shell.good("runs", "--scenario", "Nightly", "--json").json] == [id]
    assert id in shell.good("runs", "--status", "completed").out


def test_output_of_a_program_commands_no_terminal(shell, scenario):
    """Colours stay; links, titles and movements are written out. JSON has the lines as printed."""
    scenario(
        r"print('\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07click\x1b]8;;\x07 \x1b[2Jx\x0browsmith: ok')"
    )
    shown = "\x1b[31mred\x1b[0m \\x1b]8;;https://evil.example\\x07click\\x1b]8;;\\x07 \\x1b[2Jx\\x0browsmith: ok\n"
    ended = shell.good("run", "Nightly", "--follow")
    id = ended.err.split()[0]
    assert [ended.out, shell.good("logs", id).out, shell.good("logs", id, "--follow").out] == [shown] * 3
    assert len(shell.good("logs", id, "--json").json["lines"]) == 1


def test_a_run_that_fails_ends_with_1(shell, scenario):
    scenario("raise SystemExit(3)")
    ended = shell("run", "Nightly", "--wait", "--json")
    assert (ended.status, ended.json["exit_code"], ended.json["status"]) == (1, 3, "failed")


def test_a_wait_exits_with_8_after_its_timeout_and_the_run_continues(shell, scenario, sdk):
    scenario("print(1)", runs=False)
    ended = shell("run", "Nightly", "--wait", "--timeout", "0.5")
    assert ended.status == 8
    assert sdk().runs.list().first()["status"] == "queued"
    id = shell.good("run", "Nightly").out.strip()
    assert shell.good("cancel", id).status == 0
    assert sdk().runs.list(status="cancelled").total == 1


def test_a_parameter_without_a_value_is_usage(shell, scenario):
    scenario("print(1)", runs=False)
    ended = shell("run", "Nightly", "--param", "COUNT")
    assert (ended.status, "NAME=VALUE" in ended.err) == (2, True)


def test_files_go_up_come_down_and_go_away(shell):
    Path("a ü.csv").write_text("x,y\n")
    Path("b.bin").write_bytes(bytes(range(256)) * 999)
    shell.good("files", "put", "a ü.csv", "b.bin", "--to", "in/here")
    result = shell.good("files", "list", "in", "--json").json
    assert [(item["name"], item["content_type"]) for item in result if item["name"].endswith("csv")] == [
        ("in/here/a ü.csv", "text/csv")
    ]
    assert shell.good("files", "get", "in/here/b.bin", "-o", "-").raw == Path("b.bin").read_bytes()
    shell.good("files", "get", "in/here/b.bin", "-o", "back.bin")
    assert Path("back.bin").read_bytes() == Path("b.bin").read_bytes()
    assert shell("files", "put", "b.bin", "--as", "in/here/b.bin", "--only-new").status == 5
    shell.good("files", "rm", "in/here/b.bin")
    assert shell("files", "get", "in/here/b.bin").status == 3
    gone = shell("files", "put", "a ü.csv", "none.csv")
    assert (gone.status, "none.csv" in gone.err) == (3, True)
    assert shell("files", "put", "-").status == 2


def test_standard_input_becomes_a_file(shell):
    process = shell.begin("files", "put", "-", "--as", "piped.txt", stdin=-1)
    _, err = process.communicate(b"from a pipe", timeout=60)
    assert (process.returncode, err) == (0, b"")
    assert shell.good("files", "get", "piped.txt", "-o", "-").raw == b"from a pipe"


def test_names_of_others_do_nothing_to_a_terminal(shell, sdk):
    sdk().templates.create(Template("\x1b]0;owned\x07evil", fields=[RowNumberField("id")]))
    result = shell.good("templates", "list").raw
    assert b"\x1b" not in result
    assert rb"\x1b]0;owned\x07evil" in result


def test_an_export_is_repeated_by_a_schedule(shell, shop, sdk):
    template = sdk().templates.list().first()["id"]
    export = sdk().templates.export(template, format="csv")["id"]
    result = shell.good(
        "schedules",
        "new",
        "nightly",
        "--repeats",
        export,
        "--cron",
        "0 2 * * *",
        "--timezone",
        "Europe/Berlin",
    )
    schedule = result.out.strip()
    found = sdk().schedules.get(schedule)
    assert (found["name"], found["kind"], found["cron"], found["timezone"]) == (
        "nightly", "export", "0 2 * * *", "Europe/Berlin",
    )  # fmt: skip
    assert "nightly" in shell.good("schedules", "list").out
    job = shell.good("schedules", "start", schedule).out.strip()
    assert sdk().exports.get(job)["template_id"] == template
    shell.good("schedules", "delete", schedule)
    assert sdk().schedules.list().total == 0
    assert shell("schedules", "delete", schedule).status == 3


def test_a_schedule_can_be_created_off(shell, shop, sdk):
    template = sdk().templates.list().first()["id"]
    export = sdk().templates.export(template, format="csv")["id"]
    result = shell.good(
        "schedules", "new", "later", "--repeats", export, "--cron", "0 2 * * *", "--off", "--new-seed"
    )
    found = sdk().schedules.get(result.out.strip())
    assert (found["enabled"], found["new_seed"], found["next_run_at"]) == (False, True, None)
