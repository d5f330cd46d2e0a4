"""`./rowsmith up`: says how to get in, keeps its parts running, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import stat
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.cli.conftest import Up, descendants, processes, rowsmith
from tests.jobs.waiting import eventually

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc to see processes")


def get(url: str, key: str | None = None) -> int:
    """Return the status of a GET; 0 if the connection fails."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code
    except OSError:
        return 0


def test_up_is_ready_when_it_reports_so(up: Up):
    assert get(f"{up.url}/health/ready") == 200


def test_the_printed_sign_in_link_opens(up: Up):
    link = up.printed(r"sign in   (\S+)")
    assert link.startswith(up.url)
    assert get(link) == 200


def test_the_printed_key_works(up: Up):
    assert get(f"{up.url}/templates", up.printed(r"API key   (rws_\S+)")) == 200


def test_the_printed_curl_line_works_when_pasted(up: Up):
    line = up.printed(r"try it    (curl .*)")
    answer = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True, timeout=30).stdout
    assert len(answer.splitlines()) == 4, "a header and three rows"


def test_the_data_folder_is_only_accessible_to_its_owner(up: Up):
    # Packages are readable for programs, which run as other users, but only the owner can enter the parent folder.
    open_ones = up.data / "environments"
    for path in (up.data, *up.data.rglob("*")):
        if path.is_relative_to(open_ones):
            continue
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode):
            assert stat.S_IMODE(mode) & 0o077 == 0, path


def test_a_second_up_shows_the_address_of_the_first(up: Up):
    second = rowsmith("up", "--port", "0", "--data-dir", str(up.data))
    assert second.returncode == 1
    assert f"already running at {up.url}, pid {up.process.pid}" in second.stderr
    assert second.stderr.count("\n") == 1
    assert get(f"{up.url}/health/live") == 200, "the first one is still running"


def test_a_taken_port_is_one_sentence(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        refused = rowsmith("up", "--port", str(port), "--data-dir", str(tmp_path / "data"))
    assert refused.returncode == 1
    assert refused.stderr.startswith(
        f"rowsmith: Port {port} of 127.0.0.1 cannot be used (Address already in use)"
    )
    assert refused.stderr.count("\n") == 1
    assert refused.stdout == ""


def test_the_port_of_the_environment_is_used(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = rowsmith("up", "--data-dir", str(tmp_path / "data"), ROWSMITH_PORT=port)
    assert refused.returncode == 1
    assert f"Port {port} of 127.0.0.1 cannot be used" in refused.stderr


def test_an_address_of_another_machine_is_one_sentence(tmp_path: Path):
    refused = rowsmith("up", "--host", "203.0.113.7", "--data-dir", str(tmp_path / "data"))
    assert refused.returncode == 1
    assert refused.stderr.count("\n") == 1
    assert "203.0.113.7" in refused.stderr


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("SECRET_KEY", "short", "SECRET_KEY has 5 characters"),
        ("REDIS_URL", "unix:///nowhere/redis.sock", "REDIS_URL is set, but no server responds there"),
        ("DATABASE_URL", "oracle://x/y", "DATABASE_URL must begin with"),
        ("ROWSMITH_PORT", "80000", "ROWSMITH_PORT: '80000' is not a port (0 to 65535)."),
        ("ROWSMITH_PROT", "80", "Did you mean `ROWSMITH_PORT`?"),
    ],
)
def test_a_wrong_setting_is_one_sentence_before_anything_starts(
    tmp_path: Path, name: str, value: str, says: str
):
    port = [] if name == "ROWSMITH_PORT" else ["--port", "0"]
    refused = rowsmith("up", *port, "--data-dir", str(tmp_path / "data"), **{name: value})
    assert refused.returncode == 1
    assert says in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert "ready" not in refused.stdout


def test_a_key_of_the_command_line_works_until_it_is_revoked(up: Up, command):
    result = command("key", "new", "--name", "ci", "--scopes", "read", "--data-dir", str(up.data))
    key = result.stdout.strip()
    assert get(f"{up.url}/templates", key) == 200
    handle = key.split("_")[1]
    assert handle in command("key", "list", "--data-dir", str(up.data)).stdout
    assert command("key", "revoke", handle, "--data-dir", str(up.data)).returncode == 0
    assert get(f"{up.url}/templates", key) == 401


def test_a_new_sign_in_link_opens(up: Up, command):
    link = rowsmith("sign-in", "--data-dir", str(up.data)).stdout.strip()
    assert get(link) == 200
    unknown = command("sign-in", "nobody@example.com", "--data-dir", str(up.data))
    assert (unknown.returncode, unknown.stderr) == (
        1,
        "rowsmith: There is no user with the address nobody@example.com.\n",
    )


def test_the_plan_changes_from_the_next_request_on(up: Up, command):
    key = up.printed(r"API key   (rws_\S+)")
    shown = command("plan", "--data-dir", str(up.data)).stdout
    workspace = shown.split()[0]
    assert "enterprise: 6,000 requests a minute" in shown

    def limit() -> str | None:
        request = urllib.request.Request(f"{up.url}/templates", headers={"X-API-Key": key})
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.headers["X-RateLimit-Limit"]

    own = ("plan", workspace, "enterprise", "--requests-per-minute", "777", "--data-dir", str(up.data))
    assert command(*own).returncode == 0
    assert limit() == "777"
    assert command("plan", workspace, "enterprise", "--data-dir", str(up.data)).returncode == 0
    assert limit() == "6000"


@pytest.mark.parametrize("words", [("key", "list"), ("plan",), ("sign-in",)], ids=" ".join)
def test_commands_say_when_nothing_runs(tmp_path: Path, command, words: tuple[str, ...]):
    refused = command(*words, "--data-dir", str(tmp_path))
    assert refused.returncode == 1
    assert refused.stderr.startswith(f"rowsmith: Rowsmith is not running on the data folder {tmp_path}")
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["valkey-server", "worker-1", "runner-1", "sweeper", "web"])
def test_a_part_that_is_killed_is_started_again(up: Up, name: str):
    (pid,) = up.part(name)
    left = {pid, *descendants(pid)}
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not left & processes().keys())
    eventually(lambda: up.part(name) - left, within=60)
    eventually(lambda: get(f"{up.url}/health/ready") == 200, within=60)


def test_ctrl_c_stops_everything_and_a_later_start_finds_its_data(start_up):
    first = start_up()
    key = first.printed(r"API key   (rws_\S+)")
    # Valkey, worker, runner, sweeper, gunicorn and its two; one of the two may answer before the other is forked.
    parts = eventually(lambda: len(found := descendants(first.process.pid)) >= 7 and found)
    first.process.send_signal(signal.SIGINT)
    assert first.process.wait(timeout=60) == 0
    assert not parts & processes().keys()
    stopped = [line.split()[0] for line in first.text.splitlines() if line.endswith("stopped")]
    assert stopped == ["web", "sweeper", "runner-1", "worker-1", "valkey"]
    assert not (first.data / "up.json").exists()

    again = start_up(data=first.data)
    assert get(f"{again.url}/templates", key) == 200
    assert "rws_" not in again.text, "a key is shown once"
    assert "rowsmith key new" in again.text

    parts = descendants(again.process.pid)
    again.process.send_signal(signal.SIGKILL)
    again.process.wait()
    eventually(lambda: not parts & processes().keys())
