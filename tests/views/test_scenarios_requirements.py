"""Requirements of scenarios over REST: resolved when code is saved, kept with the version."""

from __future__ import annotations

import shutil
import threading

import pytest

from tests import wheels
from tests.views.speak import code_of, faults
from webapp.scenarios.services import requirements

CODE = "# requirements: tool\nimport tool\n"


@pytest.fixture
def index(tmp_path, monkeypatch):
    return wheels.index(tmp_path, monkeypatch)


@pytest.fixture
def scenario(edith, index):
    answer = edith.post("/scenarios", json={"name": "N", "code": CODE})
    assert answer.status_code == 201, answer.json
    return answer.json


def at(scenario):
    return f"/scenarios/{scenario['id']}"


def test_a_version_keeps_what_its_requirements_came_to(edith, scenario, index):
    assert scenario["requirements"] == ["tool"]
    assert scenario["lock"]["packages"] == {"beside": "2.0", "common": "1.0", "tool": "2.0"}
    index.add("tool", "3.0")
    second = edith.put(at(scenario), json={"code": CODE + "print(2)\n"}).json
    assert second["lock"] == scenario["lock"], "another line of code changes no package"
    third = edith.put(at(scenario), json={"code": "# requirements: tool<2\n"}).json
    assert third["lock"]["packages"]["tool"] == "1.0"
    diff = edith.get(f"{at(scenario)}@v1/diff").json
    assert diff["requirements"] == {"added": ["tool<2"], "removed": ["tool"]}
    assert diff["packages"] == {"tool": {"from": "2.0", "to": "1.0"}}
    back = edith.post(f"{at(scenario)}/versions/1/restore").json
    assert (back["version"], back["lock"]) == (4, scenario["lock"])


def test_requirements_are_updated_on_request(edith, scenario, index):
    same = edith.post(f"{at(scenario)}/refresh-requirements")
    assert same.status_code == 200
    assert same.json["lock"]["packages"]["common"] == "1.0"
    assert same.json["version"] == 1, "they were the newest"
    index.add("tool", "3.0")
    fresh = edith.post(f"{at(scenario)}/refresh-requirements").json
    assert (fresh["version"], fresh["lock"]["packages"]["tool"], fresh["code"]) == (2, "3.0", CODE)


def test_an_unavailable_package_is_an_error_of_the_code_and_nothing_is_saved(edith, scenario):
    answer = edith.put(at(scenario), json={"code": "# requirements: nowhere\n"})
    assert faults(answer) == {"code": "not_resolved"}
    assert "nowhere was not found" in answer.json["error"]["message"]
    assert edith.get(at(scenario)).json == scenario
    answer = edith.post("/scenarios", json={"name": "N", "code": "# requirements: ./x, -e .\n"})
    assert [field["code"] for field in answer.json["error"]["details"]["fields"]] == [
        "invalid_requirement"
    ] * 2


def test_code_is_saved_without_an_index_as_long_as_its_requirements_stay(edith, scenario, index, tmp_path):
    shutil.rmtree(index.folder)
    shutil.rmtree(tmp_path / "uv-cache", ignore_errors=True)
    assert edith.put(at(scenario), json={"code": CODE + "print(2)\n"}).status_code == 200
    assert edith.put(at(scenario), json={"code": "print(2)\n"}).json["lock"] is None


def test_the_check_queries_the_index_if_requested(edith, index):
    found = edith.post("/scenarios/check", json={"code": CODE, "resolve": True}).json
    assert found["packages"] == {"beside": "2.0", "common": "1.0", "tool": "2.0"}
    found = edith.post("/scenarios/check", json={"code": "# requirements: nowhere\n", "resolve": True})
    assert (found.status_code, [fault["code"] for fault in found.json["faults"]]) == (200, ["not_resolved"])


def _meanwhile(monkeypatch, waiting, act):
    """The answers of `waiting`, which asks the index, and of `act`, done while that takes its time."""
    waits, goes_on, real = threading.Event(), threading.Event(), requirements._lock

    def slow(*arguments):
        waits.set()
        assert goes_on.wait(30)
        return real(*arguments)

    monkeypatch.setattr(requirements, "_lock", slow)
    answers = []
    thread = threading.Thread(target=lambda: answers.append(waiting()))
    thread.start()
    assert waits.wait(30)
    try:
        between = act()
    finally:
        goes_on.set()
        thread.join()
    return answers[0], between


def test_others_can_write_while_a_request_waits_for_the_index(edith, index, scenario, monkeypatch):
    headers = {"If-Match": edith.get(at(scenario)).headers["ETag"]}
    body = {"code": "# requirements: tool, beside\n"}
    late, between = _meanwhile(
        monkeypatch,
        lambda: edith.put(at(scenario), json=body, headers=headers),
        lambda: edith.patch(at(scenario), json={"name": "Renamed in between"}),
    )
    assert (between.status_code, between.json["version"]) == (200, 2)
    assert code_of(late) == (412, "version_conflict")


def test_others_write_while_a_new_scenario_waits_for_the_index(edith, index, scenario, monkeypatch):
    created, between = _meanwhile(
        monkeypatch,
        lambda: edith.post(
            "/scenarios",
            json={"name": "New", "code": "# requirements: beside\n", "env": {"A": "1"}},
            headers={"Idempotency-Key": "k"},
        ),
        lambda: edith.patch(at(scenario), json={"name": "Renamed in between"}),
    )
    assert (between.status_code, created.status_code) == (200, 201)
