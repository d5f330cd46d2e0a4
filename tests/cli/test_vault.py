"""`./rowsmith vault`: keys are rotated while others read and write, and nothing is lost on the way."""

from __future__ import annotations

import argparse
import threading

import pytest

from tests.conftest import SECRET_KEY, VAULT_KEY
from webapp import app_vault
from webapp.access import actors
from webapp.cli import vault
from webapp.cli.datadir import CliError, DataDir, RunningProcess
from webapp.connections.models import Secret
from webapp.connections.services import secrets
from webapp.extensions import db
from webapp.security.sealing import Vault


@pytest.fixture
def folder(app, settings, monkeypatch):
    """The data folder of a service, with its keys in it."""
    (settings.data_dir / "keys.env").write_text(f"SECRET_KEY={SECRET_KEY}\nVAULT_KEYS={VAULT_KEY}\n")
    for name, value in (
        ("DATABASE_URL", settings.database_url),
        ("REDIS_URL", settings.redis_url),
        ("STORAGE_URL", settings.storage_url),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("VAULT_KEYS", raising=False)
    return settings.data_dir


@pytest.fixture
def run(folder):
    return lambda action: vault.run(argparse.Namespace(action=action, data_dir=str(folder)))


@pytest.fixture
def acme(app, cast):
    with app.app_context():
        yield actors.system_actor(cast.acme, cast.main, cast.blue)
        db.session.remove()


def value(name):
    db.session.expire_all()
    return secrets.decrypt(db.session.query(Secret).filter_by(name=name).one())


def test_a_running_process_reads_secrets_of_a_key_made_after_its_start(app, acme, run, folder):
    secrets.put(acme, "old", "before")
    run("rotate")
    assert value("old") == "before"
    assert len(app_vault.read_key_ring(folder / "keys.env")) == 2


def test_no_secret_is_lost_while_keys_are_rotated_under_traffic(app, acme, run, capsys):
    for number in range(20):
        secrets.put(acme, f"s{number}", f"value {number}")
    ended, faults = threading.Event(), []

    def traffic() -> None:
        with app.app_context():
            turn = 0
            while not ended.is_set():
                turn += 1
                try:
                    secrets.put(acme, f"s{turn % 20}", f"value {turn % 20}")
                    assert value(f"s{(turn * 7) % 20}") == f"value {(turn * 7) % 20}"
                except Exception as error:
                    faults.append(error)
                db.session.remove()

    thread = threading.Thread(target=traffic)
    thread.start()
    try:
        for _ in range(3):
            run("rotate")
    finally:
        ended.set()
        thread.join()
    assert faults == []
    assert [value(f"s{number}") for number in range(20)] == [f"value {number}" for number in range(20)]


def test_after_removing_older_keys_the_newest_one_decrypts_everything(app, acme, run, folder):
    secrets.put(acme, "token", "kept")
    run("rotate")
    run("drop-old")
    (key,) = app_vault.read_key_ring(folder / "keys.env")
    assert key != VAULT_KEY
    assert Vault([key]).open(db.session.query(Secret).filter_by(name="token").one().sealed) == "kept"
    assert "SECRET_KEY=" in (folder / "keys.env").read_text()


def test_older_keys_stay_while_the_service_runs(run, settings, monkeypatch):
    running = RunningProcess(url="http://127.0.0.1:8000", redis_url=settings.redis_url, pid=1)
    monkeypatch.setattr(DataDir, "running", lambda _self: running)
    with pytest.raises(CliError, match="Stop Rowsmith first"):
        run("drop-old")


def test_two_concurrent_rotations_do_not_lose_a_key(run, folder):
    with vault._lock_ring(DataDir(folder)), pytest.raises(CliError, match="being changed"):
        run("rotate")
    assert app_vault.read_key_ring(folder / "keys.env") == [VAULT_KEY]
