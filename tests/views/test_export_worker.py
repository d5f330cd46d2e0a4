"""An export by a real worker process, fork and storage included."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from tests.conftest import SECRET_KEY
from tests.jobs.waiting import eventually
from tests.views.speak import make


@pytest.fixture
def worker(settings, database_url, shared_redis, data_dir):
    """`python -m jobs.worker` on this test's database and Redis."""
    env = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "SECRET_KEY": SECRET_KEY,
        "DATABASE_URL": database_url,
        "REDIS_URL": shared_redis,
        "ROWSMITH_DATA_DIR": str(data_dir),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "jobs.worker"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    yield process
    process.terminate()
    process.wait(30)


def test_a_worker_process_makes_the_file_that_generate_gives(api, cast, worker):
    edith = api(cast.edith)
    path = f"/templates/{make(edith)['id']}"
    ask = {"count": 30_000, "seed": "s", "format": "csv"}
    exports = [edith.post(f"{path}/exports", json={**ask, "format": kind}).json for kind in ("csv", "xlsx")]

    def ended():
        found = [edith.get(f"/exports/{export['id']}").json for export in exports]
        return all(item["finished_at"] for item in found) and found

    csv, xlsx = eventually(ended, within=60)
    assert [(item["status"], item["attempt"], item["error"]) for item in (csv, xlsx)] == [
        ("completed", 1, None)
    ] * 2
    file = edith.get(f"/exports/{csv['id']}/download").data
    assert file == edith.post(f"{path}/generate", json=ask).data
    assert hashlib.sha256(file).hexdigest() == csv["sha256"]
    assert edith.get(f"/exports/{xlsx['id']}/download").data.startswith(b"PK")
