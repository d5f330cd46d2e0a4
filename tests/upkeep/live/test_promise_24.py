"""Promise 24 at the running product: backup under load, restore on an empty machine: counts, one seeded generate, one
secret, one key all match. From each stack to itself and to the other."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import rowsmith
from tests.conftest import _database
from tests.jobs.waiting import eventually
from tests.promises.product import STACKS, Api, OwnRedis, Product, running
from tests.upkeep import filling
from webapp.backup.archive import BackupReader
from webapp.backup.backup import create_engine
from webapp.backup.restore import with_driver

FIELDS = [
    {"name": "id", "type": "row_number"},
    {"name": "name", "type": "full_name"},
    {"name": "mail", "type": "email"},
    {"name": "city", "type": "city"},
]
SEEDED = {"count": 2_000, "seed": "backup", "format": "csv"}
SECRET = "a secret nobody saw 😀"
SHOWS = """
import hashlib, os, time
print("digest", hashlib.sha256(os.environ["TOKEN"].encode()).hexdigest())
"""
SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(600)\n"
ROUNDS = 5


@dataclass
class Load:
    """Programs that write while the backup is made: templates with versions, files replaced, exports, pushes."""

    api: Callable[[], Api]
    template: str
    database: str
    ended: threading.Event = field(default_factory=threading.Event)
    done: int = 0
    faults: list[str] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        for turn in (self.templates, self.files, self.work):
            thread = threading.Thread(target=self.go_on, args=(turn, self.api()))
            thread.start()
            self.threads.append(thread)

    def go_on(self, turn: Callable[[Api, int], None], api: Api) -> None:
        number = 0
        while not self.ended.is_set():
            number += 1
            try:
                turn(api, number)
                self.done += 1
            except Exception as error:
                self.faults.append(f"{turn.__name__}: {error}")

    def stop(self) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def templates(self, api: Api, number: int) -> None:
        result = api.made("/templates", {"name": f"load {number}", "fields": FIELDS})
        for version in range(3):
            answer = api.call("PATCH", f"/templates/{result['id']}", json={"description": str(version)})
            assert answer.status_code == 200, answer.text[:300]

    def files(self, api: Api, number: int) -> None:
        content = f"round {number}\n".encode() * 2_000
        upload(api, "churn.txt", content)

    def work(self, api: Api, number: int) -> None:
        ask = {"count": 200, "format": "csv", "seed": str(number)}
        export = api.made(f"/templates/{self.template}/exports", ask)["id"]
        push = {"connection_id": self.database, "target": f"t{number}", "create_table": True, "count": 200}
        api.made(f"/templates/{self.template}/push", push)
        if number % 3 == 0:  # some are always open, and never more than a worker gets done
            api.ended(f"/exports/{export}")


def upload(api: Api, name: str, content: bytes) -> None:
    """A workspace file, in place of the one of this name."""
    answer = api.call("POST", "/workspace/files", data={"name": name}, files={"file": (name, content)})
    assert answer.status_code == 201, answer.text[:300]


@contextmanager
def empty_machine(stack: str, key: str) -> Iterator[Product]:
    """A product that was never started."""
    folder = Path(tempfile.mkdtemp(prefix="rowsmith-restored-"))
    with ExitStack() as stored:
        stored.callback(shutil.rmtree, folder, ignore_errors=True)
        settings = {}
        if stack == "postgresql+redis":
            own = OwnRedis()
            stored.callback(own.stop)
            settings = {"DATABASE_URL": stored.enter_context(_database()), "REDIS_URL": own.url}
        result = Product(stack, folder, "--workers", "1", "--runners", "1", **settings)
        result.key = key
        stored.callback(result.close)
        yield result


def rows_of(product: Product) -> dict[str, int]:
    """Rows by table."""
    result = create_engine(with_driver(product.database_url))
    try:
        with result.connect() as connection:
            return filling.counts(filling.contents(connection))
    finally:
        result.dispose()


@pytest.fixture(scope="module", params=STACKS)
def backed_up(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """A backup that was made under load, and what was true when it was."""
    with (
        running(request.param, "--workers", "1", "--runners", "1") as product,
        tempfile.TemporaryDirectory() as name,
    ):
        product.plan(requests_per_minute=60_000, rows_per_hour=100_000_000)
        api = product.api()
        template = api.made("/templates", {"name": "Kept", "fields": FIELDS})
        api.call("PUT", "/secrets/TOKEN", json={"value": SECRET})
        database = api.made(
            "/connections", {"name": "Kept", "type": "sqlite", "settings": {"file": "kept.db"}}
        )["id"]
        shows = api.made(
            "/scenarios", {"name": "Shows", "code": SHOWS, "secrets": ["TOKEN"], "network": "none"}
        )["id"]
        sleeps = api.made("/scenarios", {"name": "Sleeps", "code": SLEEPS, "network": "none"})["id"]
        upload(api, "kept.bin", bytes(range(256)) * 4_000)
        first = api.made(f"/templates/{template['id']}/push", {"connection_id": database, "target": "first",
                         "create_table": True, "count": 500, "seed": "first"})  # fmt: skip
        assert api.ended(f"/pushes/{first['id']}")["status"] == "completed"
        sleeping = api.made(f"/scenarios/{sleeps}/run")["id"]
        waiting = api.made(f"/scenarios/{sleeps}/run")["id"]
        eventually(lambda: api.read(f"/scenarios/{sleeps}/runs/{sleeping}")["status"] == "running", within=60)
        load = Load(product.api, template["id"], database)
        load.start()
        try:
            eventually(lambda: load.done >= ROUNDS or load.faults, within=120)
            before = load.done
            file = Path(name) / "backup.zip"
            text = product.command("backup", str(file), "--include-keys")
            during = load.done - before
        finally:
            load.stop()
        assert load.faults == []
        assert during > 0, "nothing was written while the backup was made"
        assert "MISSING" not in text
        generated = api.post(f"/templates/{template['id']}/generate", SEEDED)
        yield {
            "stack": request.param, "file": file, "key": product.key, "template": template["id"], "shows": shows,
            "sleeps": sleeps, "sleeping": sleeping, "waiting": waiting, "database": database,
            "digest": hashlib.sha256(generated.content).hexdigest(),
        }  # fmt: skip


@pytest.mark.parametrize("other", STACKS)
def test_backup_under_load_restored_on_an_empty_machine_counts_one_seeded_generate_one_secret_one_key_all_match(
    backed_up: dict[str, Any], other: str
):
    file = backed_up["file"]
    assert "is complete" in rowsmith("backup", str(file), "--verify").stdout
    with BackupReader(file) as reader:
        manifest = reader.manifest
    with empty_machine(other, backed_up["key"]) as product:
        product.command("restore", str(file))
        expected = {name: table.rows for name, table in manifest.tables.items()}
        found = rows_of(product)
        # The trail has an entry more, and an end for each push that was open; logs of those have their last line.
        result = {name for name in found if found[name] != expected[name]}
        assert result <= {"audit_entries", "audit_pending", "push_lines", "push_rows", "push_ranges"}, result
        product.start()
        api = product.api()
        generated = api.post(f"/templates/{backed_up['template']}/generate", SEEDED)
        assert hashlib.sha256(generated.content).hexdigest() == backed_up["digest"]
        runs = f"/scenarios/{backed_up['shows']}"
        run = api.ended(f"{runs}/runs/{api.made(f'{runs}/run')['id']}")
        assert run["status"] == "completed", run["error"]
        log = api.get(f"{runs}/runs/{run['id']}/logs").text
        assert hashlib.sha256(SECRET.encode()).hexdigest() in log
        assert api.get("/workspace/files/kept.bin").content == bytes(range(256)) * 4_000
        for item in ("sleeping", "waiting"):
            ended = api.ended(f"/scenarios/{backed_up['sleeps']}/runs/{backed_up[item]}")
            assert (ended["status"], ended["error"]["code"]) == ("failed", "worker_lost")
        exports_are_whole(api)
        with closing(sqlite3.connect(next((product.data / "targets").glob("*/*/kept.db")))) as target:
            assert target.execute("SELECT count(*) FROM first").fetchone() == (500,)
        state = json.loads(
            rowsmith("doctor", "--json", "--data-dir", str(product.data), **product.settings).stdout
        )
        assert [finding for finding in state["findings"] if finding["state"] == "fail"] == []


def exports_are_whole(api: Api) -> None:
    """Every export has a file, or gets one."""
    listed = api.read("/exports?limit=100")["items"]
    assert listed
    for item in listed:
        ended = api.ended(f"/exports/{item['id']}")
        assert ended["status"] == "completed", ended["error"]
        content = api.get(f"/exports/{item['id']}/download").content
        assert hashlib.sha256(content).hexdigest() == ended["sha256"]
