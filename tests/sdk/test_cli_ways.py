"""The CLI's key and server settings, error messages, `--json`, help, completion and reference."""

from __future__ import annotations

import ast
import importlib.util
import io
import json
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from rowsmith.cli import completion, console, main, parser, problems, profiles

from tests.sdk.conftest import PACKAGE
from tests.views.targets import sqlite_target
from webapp.cli import arguments
from webapp.paths import ROOT

CLI = PACKAGE / "src" / "rowsmith" / "cli"
REFERENCE = ROOT / "docs" / "reference" / "rowsmith-command.md"


@pytest.fixture
def bare(shell, monkeypatch):
    """A shell with nothing in its environment but where profiles are kept."""
    for name in ("SERVICE_API_URL", "SERVICE_API_KEY"):
        monkeypatch.delenv(name)
        del shell.environment[name]
    return shell


def log_in(shell, monkeypatch, key: str, *words: str):
    monkeypatch.setattr("sys.stdin", io.StringIO(key + "\n"))
    return shell("login", *words)


def test_login_stores_a_key_in_a_private_file_and_never_shows_it(bare, origin, cast, monkeypatch):
    ended = log_in(bare, monkeypatch, cast.edith.key, "--url", origin)
    assert ended.status == 0, ended.err
    secret = cast.edith.key.rpartition("_")[2]
    path = Path(os.environ["RWS_CONFIG"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret in path.read_text()
    assert secret not in ended.out + ended.err
    output = bare.good("whoami").out + bare.good("profiles", "list", "--json").out
    assert cast.edith.email in output
    assert secret not in output


def test_a_key_that_does_not_work_is_not_kept(bare, origin, monkeypatch):
    ended = log_in(bare, monkeypatch, "rws_wrong_key", "--url", origin)
    assert ended.status == 4
    assert "rws_wrong_key" not in ended.err
    assert not Path(os.environ["RWS_CONFIG"]).exists()
    assert bare("whoami").status == 4
    assert "rowsmith login" in bare("whoami").err


def test_profiles_are_chosen_by_name_and_the_environment_wins(bare, origin, cast, monkeypatch):
    log_in(bare, monkeypatch, cast.edith.key, "--url", origin)
    log_in(bare, monkeypatch, cast.victor.key, "--url", origin, "--profile", "viewer", "--no-use")

    def who(*words: str) -> str:
        return bare.good(*words, "--json").json["email"]

    assert who("whoami") == cast.edith.email
    assert who("--profile", "viewer", "whoami") == cast.victor.email
    bare.good("profiles", "use", "viewer")
    assert who("whoami") == cast.victor.email
    monkeypatch.setenv("RWS_PROFILE", "default")
    assert who("whoami") == cast.edith.email
    monkeypatch.setenv("SERVICE_API_KEY", cast.olivia.key)
    assert who("whoami", "--profile", "viewer") == cast.olivia.email
    bare.good("profiles", "rm", "viewer")
    monkeypatch.delenv("SERVICE_API_KEY")
    assert bare("whoami", "--profile", "viewer").status == 3


def test_a_profiles_key_goes_to_no_other_address(bare, origin, cast, monkeypatch, target):
    log_in(bare, monkeypatch, cast.edith.key, "--url", origin)
    monkeypatch.setenv("SERVICE_API_URL", target.url(""))
    ended = bare("whoami")
    assert (ended.status, target.calls()) == (4, [])
    assert "Set SERVICE_API_KEY as well" in ended.err


def test_the_profiles_are_stored_in_the_users_config_folder(tmp_path):
    assert profiles.config_file({"XDG_CONFIG_HOME": "/x"}) == Path("/x/rowsmith/config.json")
    assert profiles.config_file({"RWS_CONFIG": "/y.json"}) == Path("/y.json")


def test_keys_are_created_shown_once_and_revoked(shell):
    result = shell.good("keys", "new", "ci", "--scope", "read", "--json").json
    assert result["key"].startswith("rws_")
    assert result["scopes"] == ["read"]
    assert result["key"] not in shell.good("keys", "list").out
    plain = shell.good("keys", "new", "other")
    assert re.fullmatch(r"rws_\S+\n", plain.out)
    assert shell.good("keys", "revoke", result["id"], "--json").json[0]["revoked_at"]


def test_connections_are_listed_and_tried(shell, app, cast):
    shop = sqlite_target(app, cast)
    assert shop.connection_id in shell.good("connections", "list").out
    assert shell.good("connections", "verify", "Shop").out.endswith("verified\n")
    assert shell("connections", "verify", "Shp").err.endswith('Did you mean "Shop"?\n')


def test_an_error_is_printed_with_code_message_request_id_and_all_problems(shell):
    fields = [{"name": "a", "type": "nmber"}, {"name": "b", "type": "number", "options": {"min": "x"}}]
    Path("bad.json").write_text(json.dumps({"name": "x", "fields": fields}))
    ended = shell("generate", "bad.json")
    first, *more = ended.err.splitlines()
    assert ended.status == 6
    assert re.fullmatch(r"rowsmith: validation_error: .* \(request req_\w+\)", first)
    assert [line.split(":")[0].strip() for line in more] == ["fields[0].type", "fields[1].options.min"]
    assert "Did you mean" in more[0]
    reported = json.loads(shell("generate", "bad.json", "--json").err)["error"]
    assert (reported["code"], reported["status"], len(reported["details"]["fields"])) == (
        "validation_error",
        422,
        2,
    )


def test_every_kind_of_failure_has_its_status(shell, cast, monkeypatch, origin):
    assert shell("templates", "get", "tpl_00000000000000000000000000").status == problems.NOT_FOUND
    assert shell("nonsense").status == problems.USAGE
    assert shell("files").status == problems.USAGE
    assert shell("generate", "x", "-n", "0").status == problems.USAGE
    assert shell("--version").status == 0
    monkeypatch.setenv("SERVICE_API_KEY", cast.victor.key)
    Path("a.txt").write_text("x")
    refused = shell("files", "put", "a.txt")
    assert (refused.status, "forbidden" in refused.err) == (problems.NOT_ALLOWED, True)
    monkeypatch.setenv("SERVICE_API_URL", "http://127.0.0.1:9")
    monkeypatch.setattr("rowsmith.wire.caller.Retries.wait", lambda *_: None)
    assert shell("whoami").status == problems.UNREACHABLE


def test_the_servers_commands_are_not_this_ones_and_are_pointed_at(shell):
    ours = set(parser.subcommands(parser.build()))
    theirs = set(arguments.COMMANDS) - {"help"}
    assert not ours & theirs
    assert theirs <= parser.SERVERS
    ended = shell("up")
    assert ended.status == 2
    assert "./rowsmith up" in ended.err


def test_every_command_takes_json_and_has_a_sentence():
    for path, item in parser.walk(parser.build()):
        names = {name for action in parser.options(item) for name in action.option_strings}
        assert {"--json", "--quiet", "--profile", "--project"} <= names, path
        assert item.description
        assert item.description.endswith(".")
        for action in [*parser.options(item), *parser.operands(item)]:
            assert action.help, (path, action.dest)


def test_the_reference_is_that_of_the_commands():
    spec = importlib.util.spec_from_file_location(
        "command_reference", PACKAGE / "tools" / "command_reference.py"
    )
    created = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(created)
    text = created.page()
    assert REFERENCE.read_text("utf-8") == text, "run sdk/python/tools/command_reference.py"
    for path, _ in parser.walk(parser.build()):
        assert not path or f"`{' '.join(path)}`\n" in text


def test_functions_are_short():
    for path in CLI.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef):
                assert node.end_lineno - node.lineno < 60, (path.name, node.name)


def test_the_package_has_the_command_and_can_be_run_as_a_module(shell):
    text = (PACKAGE / "pyproject.toml").read_text()
    assert '[project.scripts]\nrowsmith = "rowsmith.cli:main"\n' in text
    process = shell.begin("--version")
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.startswith(b"rowsmith ")) == (0, True)


def completed(*words: str) -> list[str]:
    script = completion.script("bash", parser.build())
    line = " ".join(f"'{word}'" for word in ("rowsmith", *words))
    request = f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _rowsmith; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    result = subprocess.run(["bash", "-c", request], capture_output=True, text=True, check=True)
    assert result.stderr == ""
    return result.stdout.split()


def test_bash_completes_commands_options_choices_and_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.json").write_text("{}")
    assert completed("temp") == ["templates"]
    assert completed("templates", "p") == ["pull", "plan"]
    assert completed("generate", "-f", "") == list(parser_choices("generate", "format"))
    assert "--dry-run" in completed("--quiet", "templates", "apply", "--")
    assert "people.json" in completed("generate", "peo")
    assert completed("completion", "b") == ["bash"]


def parser_choices(command: str, option: str) -> list[str]:
    actions = parser.subcommands(parser.build())[command]._actions
    return next(action.choices for action in actions if action.dest == option)


@pytest.mark.parametrize("shell_name", ["zsh", "fish"])
def test_the_other_shells_know_every_command_and_option(shell_name):
    script = completion.script(shell_name, parser.build())
    for path, item in parser.walk(parser.build()):
        for word in path:
            assert word in script
        for action in parser.options(item):
            for name in action.option_strings:
                assert (name if shell_name == "zsh" else name.lstrip("-")) in script
    found = shutil.which(shell_name)
    if found:
        result = subprocess.run([found, "-n", "/dev/stdin"], input=script, text=True, capture_output=True)
        assert (result.returncode, result.stderr) == (0, "")


def test_a_progress_bar_is_only_shown_on_a_terminal(capsys, monkeypatch):
    ticks = iter(range(100))
    monkeypatch.setattr(console.time, "monotonic", lambda: float(next(ticks)))
    with console.Console().bar("rows", 10) as bar:
        bar.at(5)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda _: True, raising=False)
    with console.Console().bar("rows", 10) as bar:
        bar.at(5)
    output = capsys.readouterr().err
    assert "[############............]" in output
    assert "5 of 10 rows" in output
    assert output.endswith("\r\x1b[2K")
    with console.Console(quiet=True).bar("rows", 10) as bar:
        bar.at(5)
    assert capsys.readouterr().err == ""


def test_help_of_a_branch_goes_to_standard_error_with_status_2(capsys):
    assert main(["templates"]) == 2
    assert "pull" in capsys.readouterr().err
