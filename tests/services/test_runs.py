"""The documentation of runs matches the code."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.cli.conftest import ROOT
from webapp import limits
from webapp.scenarios.services import run_completion, runs
from webapp.work.models import STATES

REFERENCE = (ROOT / "docs" / "reference" / "runs.md").read_text()


@pytest.mark.parametrize("code", run_completion.ERROR_MESSAGES)
def test_every_code_of_a_runs_error_has_its_line(code):
    assert f"| `{code}` |" in REFERENCE


def test_every_state_and_trigger_is_named():
    assert " ".join(STATES) in REFERENCE
    assert " ".join(get_args(runs.Trigger)) in REFERENCE


def test_the_limits_are_those_of_the_service():
    for numbers, words in (
        (limits.RUNS_AT_ONCE, "Free {free}, Pro {pro}, Enterprise {enterprise}"),
        (limits.RUNS_QUEUED, "Free {free}, Pro {pro}, Enterprise {enterprise:,}"),
    ):
        assert words.format(**numbers) in REFERENCE
    assert set(limits.RUNS_AT_ONCE) == set(limits.RUNS_QUEUED) == set(limits.PLANS)
    assert f"{limits.RUN_LOG_BYTES // limits.MB} MiB, {limits.RUN_LOG_LINES:,} lines" in REFERENCE
    assert f"{limits.RUN_GRACE_SECONDS:g} seconds" in REFERENCE
    assert limits.RUN_DRAIN_SECONDS + limits.RUN_GRACE_SECONDS < limits.RELEASE_SECONDS
