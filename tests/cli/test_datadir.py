"""The data folder: private, held by one, keys made once."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT
from webapp.cli.datadir import CliError, DataDir, RunningProcess, resolve
from webapp.config import Settings

NOBODY = 65534


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    result = DataDir(tmp_path / "data")
    result.prepare()
    return result


@pytest.fixture
def ordinary_user():
    """Not root, for the rest of the test: root may write everywhere."""
    if os.geteuid() == 0:
        os.seteuid(NOBODY)
        yield
        os.seteuid(0)
    else:
        yield


@pytest.fixture
def read_only(tmp_path: Path) -> Path:
    folder = tmp_path / "read-only"
    folder.mkdir(mode=0o555)
    for parent in (tmp_path, *tmp_path.parents):
        if parent.stat().st_uid == os.geteuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)
    return folder


@pytest.mark.usefixtures("read_only", "ordinary_user")
@pytest.mark.parametrize("inside", [".", "below"])
def test_a_read_only_data_folder_is_one_sentence(read_only, inside):
    with pytest.raises(CliError) as error:
        DataDir(read_only / inside).prepare()
    assert str(error.value) == (
        f"The data folder {read_only / inside} cannot be written (Permission denied): "
        "choose another one with --data-dir."
    )


def test_a_file_in_the_place_of_the_folder_is_one_sentence(tmp_path):
    (tmp_path / "data").touch()
    with pytest.raises(CliError, match="cannot be written"):
        DataDir(tmp_path / "data").prepare()


def test_everything_in_it_is_only_accessible_to_its_owner(data):
    data.keys(create=True)
    data.lock()
    data.write_running(RunningProcess(1, "http://127.0.0.1:1", "unix:///x"))
    for path in (data.path, *data.path.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    data.release()


def test_keys_are_generated_once_and_used_by_the_service(data):
    result = data.keys(create=True)
    assert data.keys(create=True) == result
    settings = Settings.from_env(data.environment({}))
    assert settings.secret_key == result["SECRET_KEY"]
    assert settings.vault_keys == (result["VAULT_KEYS"],)
    assert settings.data_dir == data.path


def test_no_keys_are_created_as_a_side_effect(data):
    assert data.keys(create=False) == {}
    assert "SECRET_KEY" not in data.environment({})


def test_values_of_the_caller_take_precedence(data):
    own = {"SECRET_KEY": "mine", "REDIS_URL": "redis://elsewhere"}
    env = data.environment({**own, "ROWSMITH_VENV": "/x", "ROWSMITH_DATA_DIR": "/y"}, create_keys=True)
    assert env.items() >= own.items()
    assert "ROWSMITH_VENV" not in env, "the launcher's names are no settings"
    assert env["ROWSMITH_DATA_DIR"] == str(data.path)


def test_the_folder_is_held_by_one_at_a_time(data):
    running = RunningProcess(4711, "http://127.0.0.1:8000", "unix:///data/valkey.sock")
    second = DataDir(data.path)
    data.lock()
    with pytest.raises(CliError, match="still starting"):
        second.lock()
    data.write_running(running)
    assert second.running() == running
    with pytest.raises(CliError, match=r"at http://127\.0\.0\.1:8000, pid 4711"):
        second.lock()
    data.release()
    second.lock()
    assert data.running() is None
    second.release()


def test_leftovers_of_a_killed_process_are_ignored(data):
    data.write_running(RunningProcess(4711, "http://127.0.0.1:8000", "unix:///data/valkey.sock"))
    (data.path / "up.lock").touch()
    assert data.running() is None
    assert "REDIS_URL" not in data.environment({})


def test_a_relative_folder_is_the_callers(tmp_path):
    caller = {"ROWSMITH_CALLER_DIR": str(tmp_path)}
    assert resolve("here", caller) == tmp_path / "here"
    assert resolve(None, {**caller, "ROWSMITH_DATA_DIR": "there"}) == tmp_path / "there"
    assert resolve("/elsewhere", caller) == Path("/elsewhere")
    assert resolve(None, caller) == Path.cwd() / "var"
    assert Path.cwd() == ROOT
