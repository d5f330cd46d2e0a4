"""Only its owner can connect to the embedded Valkey."""

from __future__ import annotations

import stat
import subprocess

import pytest
import redis

from tests.jobs.waiting import eventually
from webapp.cli import probe, valkey
from webapp.cli.datadir import CliError
from webapp.work import jobs_queue


@pytest.fixture
def running():
    """Starts the server of a folder; returns its address."""
    started = []

    def start(folder) -> str:
        server = valkey.prepare(folder)
        started.append(subprocess.Popen(server.command, stdout=subprocess.DEVNULL))
        eventually(probe.redis_check(server.url))
        return server.url

    yield start
    for process in started:
        process.terminate()
        process.wait()


def test_a_socket_in_the_private_folder_is_the_only_way_in(running, tmp_path):
    url = running(tmp_path)
    assert url.startswith("unix://")
    with redis.Redis.from_url(url) as client:
        assert client.config_get("port") == {"port": "0"}
    assert stat.S_IMODE((tmp_path / "valkey.sock").stat().st_mode) & 0o077 == 0


def test_work_waits_if_the_queue_has_some_twice_in_a_row(running, tmp_path):
    url = running(tmp_path)
    ask = probe.waiting_work_check(url, ["run"])
    assert not ask()
    with redis.Redis.from_url(url) as client:
        jobs_queue.enqueue(client, "export", "exp_1")
        assert [ask(), ask()] == [False, False], "a runner takes no exports"
        jobs_queue.enqueue(client, "run", "run_1")
        assert [ask(), ask()] == [False, True]
        client.flushall()
    assert not ask()


def test_a_path_too_long_for_a_socket_gets_a_port_with_a_password(running, tmp_path):
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    url = running(folder)
    assert url.startswith("redis://:")
    with redis.Redis.from_url(url) as client:
        assert client.ping()
    with (
        redis.Redis.from_url("redis://" + url.split("@")[1]) as stranger,
        pytest.raises(redis.AuthenticationError),
    ):
        stranger.ping()
    assert stat.S_IMODE((folder / "valkey.conf").stat().st_mode) == 0o600


def test_a_folder_with_blanks_and_quotes_in_its_name_works(running, tmp_path):
    folder = tmp_path / 'my "data" folder'
    folder.mkdir()
    with redis.Redis.from_url(running(folder)) as client:
        assert client.ping()


def test_a_machine_without_a_server_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(valkey, "_packaged", lambda: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CliError, match="install valkey or redis, or set REDIS_URL"):
        valkey.find_server()


def test_a_packaged_server_that_does_not_run_here_gives_way_to_the_paths(monkeypatch, tmp_path):
    broken, own = tmp_path / "broken", tmp_path / "valkey-server"
    broken.write_text("#!/bin/sh\nexit 127\n")
    own.write_text("#!/bin/sh\nexit 0\n")
    for file in (broken, own):
        file.chmod(0o755)
    monkeypatch.setattr(valkey, "_packaged", lambda: str(broken))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert valkey.find_server() == str(own)


def test_a_snapshot_that_cannot_be_read_is_set_aside(running, tmp_path):
    (tmp_path / valkey.SNAPSHOT).write_bytes(b"REDIS0099 torn by a power cut")
    server = valkey.prepare(tmp_path)
    assert subprocess.run(server.command, stdout=subprocess.DEVNULL, timeout=20, check=False).returncode != 0
    assert valkey.move_snapshot_aside(tmp_path)
    running(tmp_path)
    assert not valkey.move_snapshot_aside(tmp_path), "it was moved already"
