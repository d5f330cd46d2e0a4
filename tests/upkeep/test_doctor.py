"""The doctor says what is wrong and what mends it, and is not silenced by what is broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs.sandbox import supervisor
from tests.cli.conftest import ROOT, clean_environment
from tests.fakes.clamd import Clamd
from webapp.access.models import Workspace
from webapp.cli import doctor_machine, doctor_service
from webapp.cli.findings import FAIL, OK, WARN, Finding, Installation, run_checks, worst_state
from webapp.connections.models import Secret
from webapp.extensions import create_redis_client, write_session
from webapp.monitoring import health
from webapp.security.sealing import Vault


@pytest.fixture
def examine(place, capsys, shared_redis):
    """What `./rowsmith doctor --json` says of an installation, by name."""
    create_redis_client(shared_redis).flushdb()

    def look(**env: str) -> dict[str, list[dict[str, str]]]:
        place.env |= env
        place.run("doctor", "--json")
        found: dict[str, list[dict[str, str]]] = {}
        for finding in json.loads(capsys.readouterr().out)["findings"]:
            found.setdefault(finding["name"], []).append(finding)
        return found

    os.chmod(place.data, 0o700)
    os.chmod(place.data / "keys.env", 0o600)
    return look


def states(found: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {
        name: worst_state(Finding(item["state"], item["name"], item["told"], item["mend"]) for item in some)
        for name, some in found.items()
    }


def test_an_installation_in_order_has_no_failure(examine, place):
    found = states(examine())
    named = ("database", "integrity", "keys", "vocabularies", "redis", "storage", "settings", "data folder")
    assert {name: found[name] for name in named} == dict.fromkeys(named, OK)
    assert found["workers"] == WARN  # the service does not run
    assert place.run("doctor") == (1 if FAIL in found.values() else 0)


def test_a_machine_that_cannot_isolate_programs_is_a_warning(examine, monkeypatch):
    def unavailable(setting: str) -> None:
        raise supervisor.SandboxUnavailable("no bubblewrap")

    monkeypatch.setattr(supervisor, "mode", unavailable)
    (finding,) = examine()["sandbox"]
    assert finding["state"] == WARN
    assert "cannot be isolated on this machine: no bubblewrap." in finding["told"]


def test_problems_are_reported_with_a_remedy(examine, place, shared_redis):
    app = place.app()
    with app.app_context(), write_session() as session:
        workspace = Workspace(name="W")
        session.add(workspace)
        session.flush()
        lost = Vault(["b3RoZXJvdGhlcm90aGVyb3RoZXJvdGhlcm90aGVyMTI="]).seal("lost")
        session.add(Secret(workspace_id=workspace.id, name="token", sealed=lost))
    os.chmod(place.data / "keys.env", 0o644)
    (place.data / "up.json").write_text(
        '{"pid": 1, "url": "http://127.0.0.1:1", "redis_url": "unix:///none"}'
    )
    (place.data / ".rowsmith.db.restoring").touch()
    client = create_redis_client(shared_redis)
    health.record_heartbeat(client, health.WORKER, "here:1", time.time())
    found = examine()
    (keys,) = found["keys"]
    assert keys["told"].startswith("1 of 1 stored secrets cannot be decrypted")
    assert found["data folder"][0]["mend"] == f"chmod 600 {place.data / 'keys.env'}"
    assert found["up"][0]["mend"] == f"rm {place.data / 'up.json'}"
    assert found["left behind"][0]["mend"] == f"rm {place.data / '.rowsmith.db.restoring'}"
    assert {worker["mend"] for worker in found["workers"]} == {
        "./rowsmith worker --queues runs",
        "./rowsmith sweeper",
    }
    client.flushdb()
    client.close()


def test_a_damaged_database_is_a_failure_and_the_rest_is_still_looked_at(examine, place):
    path = place.data / "rowsmith.db"
    raw = bytearray(path.read_bytes())
    raw[8192:200_000] = bytes(len(raw[8192:200_000]))
    path.write_bytes(raw)
    found = states(examine())
    assert FAIL in (found["database"], found.get("integrity"))
    assert found["storage"] == OK


def test_each_error_of_the_settings_is_a_line(examine):
    found = examine(PUBLIC_URL="http://example.org", TLS_CERT="/none")
    result = " ".join(setting["told"] for setting in found["settings"])
    assert "PUBLIC_URL is plain http" in result
    assert "TLS_CERT is set without TLS_KEY" in result


def test_a_redis_that_is_away_and_a_storage_that_takes_nothing_are_failures(examine, place):
    found = examine(REDIS_URL="redis://127.0.0.1:9/0", STORAGE_URL="s3://none", AWS_ENDPOINT_URL="http://127.0.0.1:9",
                    AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", AWS_REGION="x")  # fmt: skip
    assert states(found)["redis"] == FAIL
    assert states(found)["storage"] == FAIL


def test_a_virus_scanner_that_gives_no_verdict_is_a_failure(examine):
    assert "scanner" not in examine()
    server = Clamd()
    address = {"SCANNER_URL": f"clamd://127.0.0.1:{server.port}"}
    assert states(examine(**address))["scanner"] == OK
    server.mood = "odd"
    (found,) = examine(**address)["scanner"]
    server.stop()
    assert found["state"] == FAIL
    assert "PONG" in found["told"]


@pytest.mark.parametrize(
    ("policy", "most", "state"), [("noeviction", 0, OK), ("allkeys-lru", 0, FAIL), ("noeviction", 100, WARN)]
)
def test_a_redis_that_evicts_keys_or_is_full_is_reported(policy, most, state):
    result = {"maxmemory_policy": policy, "used_memory": 95, "maxmemory": most, "redis_version": "7"}
    assert [finding.state for finding in doctor_service._memory("Redis", result)] == [state]


def test_a_check_that_stumbles_is_a_finding_and_the_others_are_heard():
    def stumbles(_patient):
        raise RuntimeError("no such luck")

    found = run_checks(Installation(ROOT), [("first", stumbles), ("python", doctor_machine.check_python)])
    assert [(finding.name, finding.state) for finding in found] == [("first", FAIL), ("python", OK)]


def test_packages_that_are_not_those_of_the_lock_file_are_named(tmp_path):
    lock = tmp_path / "requirements.lock"
    lock.write_text('flask==0.0.1 \\\n    --hash=sha256:00\nnonesuch==1 ; sys_platform == "linux" \\\nother==1 ; '
                    'sys_platform == "win32"\n')  # fmt: skip
    wrong = doctor_machine._mismatched_packages(lock)
    assert len(wrong) == 2
    assert "not 0.0.1" in wrong[0]
    assert wrong[1] == "nonesuch is missing"


def test_it_runs_where_no_package_is_installed(tmp_path: Path):
    """As the launcher starts it: with a Python that has only the standard library."""
    done = subprocess.run(
        [
            sys.executable,
            "-S",
            "-m",
            "webapp.cli.doctor",
            "doctor",
            "--json",
            "--data-dir",
            str(tmp_path / "none"),
        ],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout)
    assert done.returncode == 1
    names = {finding["name"]: finding["state"] for finding in found["findings"]}
    assert names["python"] == OK
    assert names["packages"] == FAIL


def test_the_launcher_runs_the_doctor_without_installing_anything(tmp_path: Path):
    env = clean_environment(ROWSMITH_VENV=str(tmp_path / "venv"))
    script = [str(ROOT / "rowsmith"), "doctor", "--data-dir", str(tmp_path / "none")]
    done = subprocess.run(script, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"The virtual environment {tmp_path / 'venv'} does not exist" in done.stdout
    assert not (tmp_path / "venv").exists()
