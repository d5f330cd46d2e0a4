"""A run with the real sandbox, a real environment, and a running API."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator

import pytest
from werkzeug.serving import make_server

from jobs.sandbox import SandboxUnavailable, mode
from jobs.scenarios import environments
from tests.cast import PASSWORD
from tests.conftest import app, data_dir, database_url, settings_for  # noqa: F401
from tests.jobs.running import Running
from webapp.access import actors
from webapp.extensions import db
from webapp.row_templates.services import templates

PROGRAM = """
import json, os, time, urllib.request
from pathlib import Path

import rowsmith

print("client", rowsmith.__name__)
inputs = Path(os.environ["SERVICE_WORKSPACE_UPLOADS"])
print("read", (inputs / "in" / "numbers.txt").read_text())
ask = urllib.request.Request(
    os.environ["SERVICE_API_URL"] + "/templates/" + os.environ["TEMPLATE"] + "/generate",
    data=json.dumps({"count": 7}).encode(),
    headers={"X-API-Key": os.environ["SERVICE_API_KEY"], "Content-Type": "application/json"},
)
rows = json.load(urllib.request.urlopen(ask))
print("rows", len(rows))
Path(os.environ["SERVICE_WORKSPACE_OUTPUTS"], "rows.json").write_text(json.dumps(rows))
try:
    open("/etc/shadow").read()
except OSError as error:
    print("closed", type(error).__name__)
time.sleep(0.5)  # so that its memory is measured once at least
"""


ATTACK = """
import http.cookiejar, os, re, urllib.error, urllib.parse, urllib.request

base = os.environ["SERVICE_API_URL"]
ask = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))

def status(path, data=None, **headers):
    try:
        return ask.open(urllib.request.Request(base + path, data, headers)).status
    except urllib.error.HTTPError as error:
        return error.code

print("metrics", {status("/metrics", **{"X-Forwarded-For": one}) for one in ("", "127.0.0.1", "203.0.113.9")})
page = ask.open(urllib.request.Request(base + "/sign-in", headers={"Accept": "text/html"})).read().decode()
token = re.search('name="csrf_token"[^>]*value="([^"]*)"', page)[1]
for number in range(15):
    form = {"email": f"{number}-" + os.environ["EMAIL"], "password": "wrong", "csrf_token": token}
    print("sign-in", status("/sign-in", urllib.parse.urlencode(form).encode(), Accept="text/html"))
"""


@pytest.fixture
def settings(database_url, shared_redis, data_dir):
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return settings_for(database_url, shared_redis, data_dir, port=port, metrics=True)


@pytest.fixture
def served(app, settings) -> Iterator[None]:
    """The API where the settings say."""
    server = make_server("127.0.0.1", settings.port, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def running(app, cast, monkeypatch):
    try:
        mode("auto")
    except SandboxUnavailable as error:
        pytest.skip(f"nothing on this machine can keep programs apart: {error}")

    def offline(*_):
        raise environments.EnvironmentCreationError("tests reach no package index")

    monkeypatch.setattr(
        environments.EnvironmentCache, "_ensure_common", offline
    )  # skips our client, which uv would build
    return Running(app, cast)


def test_a_scenario_reads_generates_writes_and_reaches_nothing_else(app, api, cast, served, running):
    acme = actors.system_actor(cast.acme, cast.main, cast.blue)
    with app.app_context():
        template = templates.create(acme, name="People", fields=[{"name": "id", "type": "row_number"}])["id"]
        db.session.remove()
    file = {"file": (io.BytesIO(b"1 2 3"), "in/numbers.txt")}
    answer = api(cast.edith).post("/workspace/files", data={**file, "name": "in/numbers.txt"})
    assert answer.status_code == 201, answer.text
    run = running.run(PROGRAM, {"TEMPLATE": template})
    log = running.log(run.id)
    assert (run.status, run.error) == ("completed", None), log
    lines = [line for line in log.splitlines() if not line.startswith("rowsmith: ")]
    assert lines[:3] == ["client rowsmith", "read 1 2 3", "rows 7"]
    assert lines[3].startswith("closed")
    assert run.rows_generated == 7
    assert [output["name"] for output in run.outputs] == [f"outputs/{run.id}/rows.json"]
    assert run.max_rss_bytes > 1_000_000


def test_the_program_of_a_run_cannot_read_metrics_or_block_sign_ins(
    app, cast, browser, served, running, settings
):
    run = running.run(ATTACK, {"EMAIL": cast.edith.email})
    log = running.log(run.id)
    assert (run.status, run.error) == ("completed", None), log
    text = [line for line in log.splitlines() if line.startswith(("metrics", "sign-in"))]
    assert text == ["metrics {403}", *["sign-in 403"] * 15]
    assert app.test_client().get("/metrics").status_code == 200
    form = {"email": cast.edith.email, "password": PASSWORD}
    assert browser().submit("/sign-in", form).status_code == 303
