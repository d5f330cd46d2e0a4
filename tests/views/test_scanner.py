"""A virus scanner looks at each file before anybody can have it, and where it says nothing, nothing is stored."""

from __future__ import annotations

import io

import pytest

from tests.conftest import settings_for
from tests.fakes.clamd import EICAR, MOST, NAME, Clamd
from tests.views.uploading import address, problem, send
from webapp import limits
from webapp.config.values import Scanner


@pytest.fixture
def scanner():
    server = Clamd()
    yield server
    if server.mood != "gone":
        server.stop()


@pytest.fixture
def settings(database_url, shared_redis, data_dir, scanner):
    return settings_for(database_url, shared_redis, data_dir, scanner=Scanner("", "127.0.0.1", scanner.port))


def test_a_clean_file_is_stored_as_ever(api, cast):
    edith = api(cast.edith)
    content = b"a,b\n1,2\n" * 20_000
    assert send(edith, "in/good.csv", content).status_code == 201
    assert edith.get(address("in/good.csv")).data == content


def test_infected_files_are_rejected_and_existing_files_stay(api, cast, stored):
    edith = api(cast.edith)
    send(edith, "in/a.com", b"before")
    there = stored()
    for name in ("in/a.com", "in/new.com"):
        answer = send(edith, name, EICAR)
        assert problem(answer) == (422, "validation_error")
        fault = answer.json["error"]["details"]["fields"][0]
        assert (fault["path"], fault["code"]) == ("", "malware")
        assert NAME in fault["message"]
    assert edith.get(address("in/a.com")).data == b"before"
    assert edith.get(address("in/new.com")).status_code == 404
    assert stored() == there


def test_a_user_sees_the_error_on_the_page(browser, cast):
    edith = browser(cast.edith)
    answer = edith.submit("/workspace/files", {"file": (io.BytesIO(EICAR), "a.com")})
    assert answer.status_code == 422
    assert f"found {NAME}" in answer.text


@pytest.mark.parametrize("mood", ["silent", "odd", "cut", "gone"])
def test_without_a_verdict_nothing_is_stored(api, cast, stored, scanner, mood, monkeypatch):
    monkeypatch.setattr(limits, "SCANNER_SECONDS", 0.2)
    scanner.mood = mood
    if mood == "gone":
        scanner.stop()
    answer = send(api(cast.edith), "in/good.csv")
    assert problem(answer) == (503, "unavailable")
    assert answer.json["error"]["details"]["reason"] == "scanner"
    assert int(answer.headers["Retry-After"]) > 0
    assert stored() == []


def test_a_file_is_rejected_and_logged_if_the_scanner_is_misconfigured(api, cast, stored, caplog):
    answer = send(api(cast.edith), "in/large.csv", b"x" * (MOST + 100_000))
    assert problem(answer) == (503, "unavailable")
    assert "SCANNER_URL" in caplog.text
    assert stored() == []
