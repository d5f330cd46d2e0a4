"""Plans of pushes, and the options of the MCP server; does not need the protocol's package."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import pytest

from webapp.paths import ROOT

sys.path.insert(0, str(ROOT / "sdk" / "mcp" / "src"))

plans: ModuleType = importlib.import_module("rowsmith_mcp.plans")
limits: ModuleType = importlib.import_module("rowsmith_mcp.limits")
settings: ModuleType = importlib.import_module("rowsmith_mcp.settings")
error_text: ModuleType = importlib.import_module("rowsmith_mcp.error_text")
error: ModuleType = importlib.import_module("rowsmith.error")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept(clock: Clock):
    return plans.Plans(clock)


def keep(kept, owner: str = "me", **request):
    return kept.keep(owner, "template", "tpl_1", 3, request)


def test_a_plan_is_read_as_created(kept):
    request = {"mapping": {"a": "b"}}
    result = kept.keep("me", "template", "tpl_1", 3, request, "Shop")
    request["mapping"]["a"] = "other"
    found = kept.find("me", result.id)
    assert (found.request, found.version, found.confirm) == ({"mapping": {"a": "b"}}, 3, "Shop")


def test_a_plan_of_another_key_is_unknown(kept):
    result = keep(kept)
    with pytest.raises(plans.Unknown):
        kept.find("somebody", result.id)
    with pytest.raises(plans.Unknown):
        kept.find("me", "plan_00")


def test_a_plan_is_over_after_its_time_to_the_second(kept, clock: Clock):
    result = keep(kept)
    clock.now += limits.PLAN_SECONDS - 1
    assert kept.find("me", result.id) is result
    clock.now += 1
    with pytest.raises(plans.Unknown):
        kept.find("me", result.id)
    keep(kept)
    assert len(kept) == 1, "and it is forgotten"


def test_only_the_newest_plans_of_one_key_are_kept_and_other_keys_lose_none(kept):
    others = keep(kept, "somebody")
    mine = [keep(kept).id for _ in range(limits.PLANS_OF_ONE + 5)]
    assert kept.find("somebody", others.id) is others
    for gone in mine[:5]:
        with pytest.raises(plans.Unknown):
            kept.find("me", gone)
    assert all(kept.find("me", item) for item in mine[5:])


def test_the_memory_for_plans_is_bounded(kept):
    for number in range(limits.PLANS_OF_ALL + 50):
        keep(kept, f"owner {number}")
    assert len(kept) == limits.PLANS_OF_ALL


def test_an_owner_is_a_key_in_a_project_and_does_not_hold_the_key():
    owner = plans.owner_of("rws_secret", "prj_1")
    assert owner != plans.owner_of("rws_secret", "prj_2") != plans.owner_of("rws_other", "prj_2")
    assert "secret" not in owner


def test_over_http_the_key_of_the_environment_is_not_taken():
    env = {
        "SERVICE_API_URL": "http://127.0.0.1:8000",
        "SERVICE_API_KEY": "rws_mine",
        "ROWSMITH_MCP_READ_ONLY": "1",
    }
    result = settings.read(["--http"], env)
    assert (result.key, result.host, result.read_only) == ("", "127.0.0.1", True)
    assert settings.read([], env).key == "rws_mine"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--http", "--host", "0.0.0.0"], "unencrypted"),
        (["--http", "--host", "0.0.0.0", "--behind-tls-proxy"], "--allowed-host"),
        (["--tls-key", "key.pem", "--http"], "must be used together"),
        ([], "SERVICE_API_KEY"),
    ],
)
def test_unsafe_settings_are_rejected_with_their_reason(words: list[str], says: str):
    with pytest.raises(settings.Wrong, match=says):
        settings.read([*words, "--url", "http://127.0.0.1:8000"], {})


def test_an_error_lists_every_problem_with_its_path_and_hint():
    faults = [
        {
            "path": "fields[0].type",
            "code": "unknown_type",
            "message": "No such type.",
            "hint": "Did you mean `email`?",
        },
        {"path": "", "code": "too_many", "message": "Too many fields."},
    ]
    text = error_text.error_text(
        error.ValidationError("validation_error", 422, {"fields": faults}, "req_1", "Two faults.")
    )
    assert text.splitlines() == [
        "validation_error: Two faults.",
        "- fields[0].type (unknown_type): No such type. Hint: Did you mean `email`?",
        "- request (too_many): Too many fields.",
        "request: req_1",
    ]
    many = error_text.error_text(
        error.ValidationError("validation_error", 422, {"fields": faults * 40}, None, "Many.")
    )
    assert "and 30 more errors" in many
