"""The command line's reference names everything the command line understands, and help lists it."""

from __future__ import annotations

import pytest

from tests.cli.conftest import ROOT
from webapp.cli import arguments, development
from webapp.cli.__main__ import COMMAND_FUNCTIONS

REFERENCE = (ROOT / "docs" / "reference" / "cli.md").read_text()
_, PARSERS = arguments.build_parsers()


@pytest.mark.parametrize("command", arguments.COMMANDS)
def test_every_command_and_option_has_its_line_in_the_reference(command):
    assert f"`{command}`" in REFERENCE
    for action in PARSERS[command]._actions:
        for option in action.option_strings:
            if option not in ("-h", "--help"):
                assert option in REFERENCE, f"{command} {option}"


def test_help_lists_every_command():
    listed = arguments.help_text()
    for command, line in arguments.COMMANDS.items():
        assert f"  {command} " in listed
        assert line in listed


def test_every_command_has_its_module():
    assert {*COMMAND_FUNCTIONS, "help"} == set(arguments.COMMANDS)


def test_the_plans_are_those_of_the_service():
    from webapp import limits

    assert tuple(limits.PLANS) == arguments.PLANS


def test_a_whole_run_checks_everything_before_the_tests():
    assert [name for name, _ in development.test_steps(False, [])] == [
        "layers",
        "lint",
        "format",
        "types",
        "tests",
    ]
    assert [name for name, _ in development.test_steps(False, ["tests/cli"])] == ["tests"]


@pytest.mark.parametrize(
    ("everything", "rest", "ignored", "parallel"),
    [
        (False, [], True, True),
        (True, [], False, True),
        (False, ["tests/cli", "-n0"], True, False),
    ],
)
def test_long_tests_run_only_with_all(everything, rest, ignored, parallel):
    found = development.pytest_arguments(everything, rest)
    assert ("--ignore=tests/chaos" in found) is ignored
    assert ("worksteal" in found) is parallel


def test_a_long_test_that_is_named_runs():
    assert "--ignore=tests/chaos" not in development.pytest_arguments(
        False, ["tests/chaos/test_kill.py::test_it"]
    )


def test_naming_a_folder_names_the_long_tests_in_it():
    found = development.pytest_arguments(False, ["tests/deploy", "tests/typescript/"])
    assert "--ignore=tests/deploy/test_hosts.py" not in found
    assert "--ignore=tests/typescript/live" not in found
    assert "--ignore=tests/chaos" in found
    assert "--ignore=tests/chaos" in development.pytest_arguments(False, ["tests"])
