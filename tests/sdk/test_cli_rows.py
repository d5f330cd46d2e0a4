"""`rowsmith generate` and `preview`: the service's bytes, whole or not at all, and the engine's own without it."""

from __future__ import annotations

import json
import os
import pty
import signal
import sys
from functools import partial
from pathlib import Path

import pytest
import rowsmith
from rowsmith import Template
from rowsmith.cli import main, offline, parser, row_options
from rowsmith.fields import EmailField, FirstNameField, NumberField, RowNumberField

from tests.fakes.echo_target import Answer
from webapp.paths import ROOT
from webapp.pushes.schemas import PushInput
from webapp.row_templates.schemas import GenerateInput

PEOPLE = Template(
    "People",
    quantity=5,
    fields=[
        RowNumberField("id"),
        FirstNameField("first"),
        EmailField("email", unique=True),
        NumberField("age", min=18, max=99, percent_blank=10),
    ],
)
LINES = Template(
    "Lines",
    quantity=30,
    fields=[
        RowNumberField("id"),
        {"name": "person", "type": "reference", "options": {"template_id": "", "field": "id"}},
        {"name": "since", "type": "date"},
    ],
)


@pytest.fixture
def people(sdk):
    return sdk().templates.create(PEOPLE)


@pytest.mark.parametrize("format", ["json", "csv", "sql", "ndjson", "parquet"])
def test_rows_on_standard_output_are_the_bytes_of_the_api(shell, sdk, people, format):
    ended = shell.good("generate", "People", "-n", "40", "-f", format, "--seed", "s")
    requests = {"count": 40, "format": format, "seed": "s"}
    assert ended.raw == sdk().templates.stream(people["id"], **requests).read()
    assert ended.err == ""
    assert shell.good("generate", people["id"], "-n", "40", "-f", format, "--seed", "s").raw == ended.raw


def test_the_options_of_formats_and_values_reach_the_service(shell, people):
    ended = shell.good(
        *"generate People -n 2 -f csv --csv-delimiter ; --csv-quote all --no-header --offset 3 --set age=7".split(),
        *("--set", 'first="12"'),
    )
    lines = ended.out.splitlines()
    assert [line.split(";")[0] for line in lines] == ['"4"', '"5"']
    assert all(line.endswith('"7"') and ';"12";' in line for line in lines)
    ended = shell.good(
        *"generate People -n 5 -f sql --sql-table a.b --create-table --sql-dialect mysql "
        "--rows-per-statement 2".split()
    )
    assert ended.out.count("INSERT INTO") == 3
    assert "CREATE TABLE `a`.`b`" in ended.out


def test_every_key_of_the_requests_has_an_option():
    """What the API takes, the command takes: named otherwise only where this list says so."""
    called = {"overrides": "set", "csv": "csv_delimiter", "sql": "sql_dialect", "mapping": "map"}
    called |= {"computed": "compute", "key_columns": "key_column", "connection_id": "to", "endpoint_id": "to"}
    root = parser.subcommands(parser.build())
    for command, model in (("generate", GenerateInput), ("push", PushInput)):
        known = {action.dest for action in root[command]._actions}
        assert {called.get(key, key) for key in model.model_fields} <= known
    schema = GenerateInput.model_json_schema()["$defs"]
    options = {action.dest for action in root["generate"]._actions}
    assert {*schema["CsvOptions"]["properties"]} == {"delimiter", "header", "quote", "escape_formulas"}
    assert {*schema["SqlOptions"]["properties"]} <= options | {"table", "dialect"}
    choices = next(item for item in root["generate"]._actions if item.dest == "sql_dialect").choices
    assert list(choices) == schema["SqlOptions"]["properties"]["dialect"]["enum"]
    assert list(row_options.FORMATS) == GenerateInput.model_json_schema()["properties"]["format"]["enum"]


def test_the_format_of_a_file_follows_its_name_and_is_reported_as_json(shell, people):
    result = shell.good("generate", "People", "-n", "9", "-o", "people.csv", "--seed", "s", "--json").json
    assert len(Path("people.csv").read_text().splitlines()) == 10
    assert (result["seed"], result["template_version"], result["bytes"]) == (
        "s",
        "1",
        os.path.getsize("people.csv"),
    )
    refused = shell("generate", "People", "-o", "people.doc")
    assert (refused.status, refused.err.count("\n")) == (2, 1)
    assert sorted(os.listdir()) == ["people.csv"]


def test_a_file_that_breaks_off_is_not_there(far, target, monkeypatch, capsysbinary, tmp_path):
    monkeypatch.setenv("SERVICE_API_URL", target.url(""))
    monkeypatch.setenv("SERVICE_API_KEY", "rws_test_secretsecretsecret")
    target.on(
        "/templates/tpl_01M813MYFY9XBCBPTN8TKF0TZK/generate", Answer(200, b"id\n1\n" * 9999, cut="body")
    )
    monkeypatch.setattr(rowsmith, "Api", partial(rowsmith.Api, retries=1))
    out = tmp_path / "rows.csv"
    assert main(["generate", "tpl_01M813MYFY9XBCBPTN8TKF0TZK", "-o", str(out)]) == 8
    assert len(target.calls()) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["-o", "people.csv"], []], ids=["file", "pipe"])
def test_a_bar_is_drawn_where_standard_error_is_a_terminal_and_nowhere_else(shell, people, words):
    requests = ["generate", "People", "-n", "5", "-f", "csv", *words]
    ours, theirs = pty.openpty()
    seen = shell.begin(*requests, folder=Path.cwd(), stderr=theirs)
    out, _ = seen.communicate(timeout=60)
    drawn = os.read(ours, 10_000).decode()
    os.close(theirs)
    os.close(ours)
    assert (seen.returncode, "\r\x1b[2K" in drawn) == (0, True), drawn
    piped = shell.begin(*requests, folder=Path.cwd())
    again, err = piped.communicate(timeout=60)
    assert (piped.returncode, "\x1b" in err.decode(), out.count(b"\n")) == (0, False, again.count(b"\n"))
    assert b"\x1b" not in out + again


def test_a_disconnecting_reader_is_not_logged_as_an_error(shell, people):
    running = shell.begin("generate", "People", "-n", "90000", "-f", "csv")
    assert running.stdout.readline() == b"id,first,email,age\r\n"
    running.stdout.close()
    assert running.wait(60) == 141
    assert running.stderr.read() == b""
    running.stderr.close()


def test_ctrl_c_ends_with_130_and_leaves_no_file(shell, people):
    running = shell.begin("generate", "People", "-n", "95000", "-o", "people.csv", folder=Path.cwd())
    for _ in range(3000):
        if list(Path.cwd().glob(".people.csv.*")) or running.poll() is not None:
            break
        os.sched_yield()
        try:
            running.wait(0.01)
        except Exception:  # it is still running
            continue
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert (running.returncode, err) == (130, b"")
    assert os.listdir() == []


def test_a_preview_shows_three_rows_and_does_not_count(shell, sdk, people):
    lines = shell.good("preview", "People", "--seed", "s").out.splitlines()
    assert lines[0].split() == ["ID", "FIRST", "EMAIL", "AGE"]
    assert len(lines) == 4
    result = shell.good("preview", "People", "--seed", "s", "--json").json
    assert result["rows"] == sdk().templates.generate(people["id"], count=3, seed="s")


def test_a_file_of_a_template_gives_rows_without_being_saved(shell, sdk, people):
    shell.good("templates", "pull", "People")
    drafted = shell.good("generate", "templates/people.json", "-n", "20", "-f", "csv", "--seed", "s")
    assert drafted.raw == shell.good("generate", "People", "-n", "20", "-f", "csv", "--seed", "s").raw
    assert sdk().templates.list().total == 1


@pytest.mark.parametrize("format", ["json", "csv", "sql", "ndjson", "parquet"])
def test_the_engine_here_gives_the_bytes_of_the_service(shell, sdk, people, format):
    lines = LINES.to_dict()
    lines["fields"][1]["options"]["template_id"] = people["id"]
    sdk().templates.create(lines)
    shell.good("templates", "pull")
    for name in ("people", "lines"):
        for more in ((), ("--now", "2031-05-06T07:08:09Z", "--offset", "7", "--locale", "de_DE")):
            request = ("-n", "60", "-f", format, "--seed", "s", *more)
            there = shell.good("generate", name.title(), *request).raw
            assert shell.good("generate", f"templates/{name}.json", "--offline", *request).raw == there


def test_the_offline_engine_reports_the_same_errors_and_writes_complete_files(shell, people):
    shell.good("templates", "pull")
    refused = shell("generate", "templates/people.json", "--offline", "--set", "nme=1")
    assert refused.status == 6
    assert refused.err.startswith("rowsmith: validation_error: ")
    refused = shell("generate", "templates/people.json", "--offline", "--csv-delimiter", "#")
    assert (refused.status, "csv.delimiter" in refused.err) == (6, True)
    refused = shell("generate", "templates/people.json", "--offline", "--vocabulary", "0" * 16)
    assert refused.status != 0
    result = shell.good(
        "generate", "templates/people.json", "--offline", "-o", "a.csv", "--seed", "s", "--json"
    ).json
    words = result["vocabulary"]
    shell.good(
        "generate", "templates/people.json", "--offline", "-o", "b.csv", "--seed", "s", "--vocabulary", words
    )
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    assert shell("generate", "People", "--offline").status == 2


def test_without_the_engine_one_sentence_says_so(shell, people, monkeypatch):
    shell.good("templates", "pull")
    monkeypatch.setattr(offline, "PACKAGE", "no_such_server")
    ended = shell("generate", "templates/people.json", "--offline")
    assert ended.status == 1
    assert "offline_missing: --offline needs the server's package" in ended.err
    assert ended.out == ""


def test_a_clone_is_found_where_the_environment_names_it(shell, people, tmp_path):
    shell.good("templates", "pull")
    shell.environment["RWS_SERVER"] = str(ROOT)
    running = shell.begin(
        *"generate templates/people.json --offline -n 3 -f csv --seed s".split(), folder=Path.cwd()
    )
    out, err = running.communicate(timeout=120)
    assert (running.returncode, err) == (0, b"")
    assert out == shell.good("generate", "People", "-n", "3", "-f", "csv", "--seed", "s").raw


def test_values_that_come_from_outside_are_the_services(shell):
    field = {"name": "a", "type": "api_response", "options": {"url": "https://example.org/a", "path": "$.a"}}
    Path("a.json").write_text(json.dumps({"name": "A", "fields": [field]}))
    ended = shell("generate", "a.json", "--offline")
    assert ended.status == 6, ended.err


def test_bytes_are_nothing_for_a_terminal(shell, people, monkeypatch):
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda _: True)
    assert shell("generate", "People", "-f", "xlsx").status == 2
