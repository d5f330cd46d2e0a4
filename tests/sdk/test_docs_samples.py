"""The samples of the API reference call the documented operation: curl and Python against the running application."""

from __future__ import annotations

import io
import itertools
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rowsmith.wire.caller import Caller

from jobs import exports
from jobs.pushes import push as push_job
from tests.cast import Browser, Cast, Program
from tests.jobs.running import Running, running  # noqa: F401
from tests.sdk.test_every_route import Recorder, document, tries  # noqa: F401
from tests.views.samples import Shown, shown
from webapp.documentation.api import samples
from webapp.extensions import db
from webapp.pushes.views import exports as pushes_exports

SECONDS = 30
METADATA = """<edmx:Edmx xmlns:edmx="http://docs.oasis-open.org/odata/ns/edmx" Version="4.0"><edmx:DataServices>
<Schema xmlns="http://docs.oasis-open.org/odata/ns/edm" Namespace="S"><EntityType Name="Thing"><Key><PropertyRef
Name="Id"/></Key><Property Name="Id" Type="Edm.Int32" Nullable="false"/></EntityType><EntityContainer Name="C">
<EntitySet Name="Things" EntityType="S.Thing"/></EntityContainer></Schema></edmx:DataServices></edmx:Edmx>"""
# What is outside: a model, and a system that takes rows over HTTP.
OUTSIDE = {"POST /describe", "POST /export/rest"}
# What the service answers to samples of objects as they are here.
REFUSED = {
    "DELETE /teams/{team_id}": 409,  # it contains projects
    "DELETE /workspace": 422,  # its name is another
    "GET /connections/{connection_id}/metadata-document": 404,  # none was uploaded
    "GET /health/ready": 503,  # no worker is there
    "POST /exports/{export_id}/retry": 409,  # it is one file
    "POST /pushes/{push_id}/retry": 422,  # all rows arrived
}
COMMON = (
    "GET /me",
    "GET /templates",
    "POST /templates",
    "GET /templates/{template_id}",
    "POST /templates/{template_id}/generate",
    "POST /templates/{template_id}/preview",
    "POST /templates/{template_id}/exports",
    "POST /templates/{template_id}/push",
    "POST /generate",
    "POST /preview",
    "POST /datasets",
    "POST /datasets/{dataset_id}/preview",
    "POST /connections",
    "GET /connections/{connection_id}/metadata",
    "GET /exports/{export_id}/download",
    "GET /exports/{export_id}/manifest",
    "GET /pushes/{push_id}/logs",
    "POST /workspace/files",
    "GET /workspace/files/{name}",
    "POST /scenarios/check",
    "POST /scenarios/{scenario_id}/run",
)


class World:
    """Objects of Olivia's, and the samples that the reference shows her."""

    def __init__(self, origin: str, program: Program, cast: Cast, pages: Callable[[], list[Shown]]) -> None:
        self.origin, self.program, self.cast = origin, program, cast
        self.pages = pages

    def make(self, path: str, **body: Any) -> str:
        answer = self.program.post(path, json=body)
        assert answer.status_code in (200, 201, 202), (path, answer.json)
        return answer.json["id"]

    def samples(self) -> list[Shown]:
        """The samples of the pages, with the origin of the running application."""
        return self.pages()


@pytest.fixture
def world(
    app: Any, api: Any, browser: Any, cast: Cast, origin: str, running: Running, monkeypatch: Any
) -> World:
    program = api(cast.olivia)

    def work(job: Any, id: str) -> None:
        with app.app_context():
            job.run(id)
            db.session.remove()

    monkeypatch.setattr(
        pushes_exports, "wait_until_finished", lambda push_id: work(push_job, push_id)
    )  # a worker is there

    def pages() -> list[Shown]:
        found = shown(browser(cast.olivia))
        for item in found:
            for name, text in item.samples.items():
                item.samples[name] = text.replace("http://localhost", origin)
        return found

    result = World(origin, program, cast, pages)
    template = result.make("/templates", **samples.BODIES["POST /templates"])
    result.make("/datasets", name="Shop", templates=[{"template_id": template, "count": 3}], seed="s")
    target = result.make("/connections", **samples.BODIES["POST /connections"])
    result.make("/endpoints", **samples.BODIES["POST /endpoints"])
    ask = {"connection_id": target, "target": "customers", "create_table": True, "count": 5}
    work(push_job, result.make(f"/templates/{template}/push", **ask))
    work(exports, result.make(f"/templates/{template}/exports", count=5, format="csv", seed="s"))
    running.do(running.queue("print('hello')"))
    upload = {"name": "samples/rows.csv", "file": (io.BytesIO(b"id\n1\n"), "rows.csv")}
    assert program.post("/workspace/files", data=upload).status_code == 201
    assert program.put("/secrets/db_password", json={"value": "v"}).status_code == 201
    return result


def argv(sample: str, key: str) -> list[str]:
    """The words of a command, the variable filled in as a shell does."""
    return [word.replace("$ROWSMITH_KEY", key) for word in shlex.split(sample.replace("\\\n", " "))]


def put_in(world: World, one: Shown) -> dict[str, str]:
    """What the reader puts in for the words in capitals: objects made for that."""
    key, result = one.key, {}
    expected = set(re.findall(r"\b([A-Z]+_ID)\b", one.samples["curl"]))
    for name in sorted(expected):
        result[name] = PUT_IN[name](world, key)
    return result


def _first(world: World, path: str, **found: str) -> str:
    items = world.program.get(path).json["items"]
    return next(item["id"] for item in items if all(item[k] == v for k, v in found.items()))


def _session(world: World, key: str) -> str:
    Browser(world.program._client.application, world.cast.olivia)
    return _first(world, "/me/sessions")


_NUMBERS = itertools.count()
_TOLD = "https://told.invalid/hook"


def _webhook(world: World, key: str) -> str:
    """One that has a delivery, where one is spoken of."""
    if "delivery_id" in key:
        return _first(world, "/webhooks", url=_TOLD)
    return world.make("/webhooks", url="https://example.org/hook", events=["*"])


def _delivery(world: World) -> str:
    hook = world.make("/webhooks", url=_TOLD, events=["*"])
    return str(world.program.post(f"/webhooks/{hook}/test").json["id"])


def _schedule(world: World, key: str) -> str:
    subject = {
        "kind": "export",
        "template_id": _first(world, "/templates"),
        "request": {"format": "csv", "count": 5},
    }
    return world.make("/schedules", name="Nightly", cron="0 2 * * *", **subject)


def _export(world: World, key: str) -> str:
    return world.make(f"/templates/{_first(world, '/templates')}/exports", count=5)


def _import(world: World, key: str) -> str:
    return world.make("/import", content="id,name\n1,Ann\n", wait=False)


def _push(world: World, key: str) -> str:
    if key.startswith("POST"):
        return _first(world, "/pushes?status=completed")
    target = _first(world, "/connections?type=sqlite", name="Fixtures")
    ask = {"connection_id": target, "target": "customers", "count": 5}
    return world.make(f"/templates/{_first(world, '/templates')}/push", **ask)


def _run(world: World, key: str) -> str:
    return _first(world, "/runs?status=queued")


def _scenario(world: World, key: str) -> str:
    if "run_id" in key:
        return world.program.get("/runs?status=queued").json["items"][0]["scenario_id"]
    return _first(world, "/scenarios")


def _connection(world: World, key: str) -> str:
    if key == "DELETE /connections/{connection_id}/metadata-document":
        return _first(world, "/connections?type=odata")
    if "metadata-document" in key:  # what it leads to is not asked for its metadata
        settings = {"service_url": "http://127.0.0.1:1/"}
        return world.make("/connections", name="Far", type="odata", settings=settings)
    return world.make("/connections", name="Other", type="sqlite", settings={"file": "other.db"})


def _fresh(path: str, example: str) -> Callable[[World, str], str]:
    return lambda world, key: world.make(path, **samples.BODIES[example])


PUT_IN: dict[str, Callable[[World, str], str]] = {
    "CONNECTION_ID": _connection,
    "DATASET_ID": lambda world, key: _first(world, "/datasets"),
    "ENDPOINT_ID": _fresh("/endpoints", "POST /endpoints"),
    "EXPORT_ID": _export,
    "FILE_ID": lambda world, key: _first(world, "/workspace/files"),
    "IMPORT_ID": _import,
    "INVITATION_ID": lambda world, key: world.make("/invitations", email=f"ida{next(_NUMBERS)}@example.org"),
    "KEY_ID": _fresh("/api-keys", "POST /api-keys"),
    "MEMBER_ID": lambda world, key: _first(world, "/members", email="victor@example.org"),
    "OBJECT_ID": lambda world, key: _first(world, "/templates"),
    "PROJECT_ID": _fresh("/projects", "POST /projects"),
    "PUSH_ID": _push,
    "RUN_ID": _run,
    "SCENARIO_ID": _scenario,
    "SCHEDULE_ID": _schedule,
    "SESSION_ID": _session,
    "TEAM_ID": lambda world, key: world.cast.red,
    "TEMPLATE_ID": _fresh("/templates", "POST /templates"),
    "DELIVERY_ID": lambda world, key: _delivery(world),
    "WEBHOOK_ID": lambda world, key: _webhook(world, key),
    "USER_ID": lambda world, key: world.cast.victor.user_id,
}
ORDER = ("GET", "POST", "PATCH", "PUT", "DELETE")


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_every_curl_sample_is_answered(world, tmp_path):
    Path(tmp_path, "customers.csv").write_text("id,email\n1,ada@example.org\n")
    Path(tmp_path, "metadata.xml").write_text(METADATA)
    wrong, request = {}, 0
    for sample in sorted(world.samples(), key=lambda item: ORDER.index(item.key.split()[0])):
        if sample.key in OUTSIDE:
            continue
        words = argv(sample.samples["curl"], world.cast.olivia.key)
        for name, value in put_in(world, sample).items():
            words = [re.sub(rf"\b{name}\b", value, word) for word in words]
        assert words[0] == "curl"
        result = ["-w", "\n%{http_code}", "--max-time", str(SECONDS), "--noproxy", "*"]
        done = subprocess.run(
            [*words, *result], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=SECONDS * 2
        )
        body, _, status = done.stdout.rpartition("\n")
        request += 1
        expected = REFUSED.get(sample.key)
        if done.returncode or not (int(status) == expected if expected else 200 <= int(status) < 300):
            wrong[sample.key] = (done.returncode, status, body[:300], done.stderr[:200])
    assert not wrong, json.dumps(wrong, indent=1)
    assert request >= 120


def test_every_python_sample_asks_for_its_operation_and_no_other(world, monkeypatch, tmp_path):
    """Run each sample with a recording client, and compare its request with that of the curl sample."""
    monkeypatch.chdir(tmp_path)
    Path("metadata.xml").write_text(METADATA)
    Path("customers.csv").write_text("id\n1\n")
    monkeypatch.setenv("ROWSMITH_KEY", "rws_x_y")
    recorder = Recorder()
    for name in ("json", "text", "open"):
        method = getattr(Recorder, name)
        monkeypatch.setattr(Caller, name, lambda _self, *a, method=method, **k: method(recorder, *a, **k))
    for sample in world.samples():
        recorder.calls.clear()
        exec(compile(sample.samples["python"], sample.key, "exec"), {"__name__": "sample"})
        method, path = sample.key.split(" ")
        fits = re.compile(re.sub(r"\\\{\w+\\\}", "[^/@]+", re.escape(path)))
        requests = [call for call in recorder.calls if call[0] == method and fits.fullmatch(call[1])]
        assert requests, (sample.key, recorder.calls)
        assert len(recorder.calls) == 1 or sample.key == "GET /exports/{export_id}/download", sample.key
        how = requests[-1][2]
        sent, expected = how.get("json"), examples_of(sample)
        if expected is not None:
            extra = {k: v for k, v in sent.items() if k not in expected and v is not None}
            assert {k: v for k, v in sent.items() if k in expected} == expected, sample.key
            assert extra in ({}, {"format": "json"}), sample.key


def examples_of(one: Shown) -> dict[str, Any] | None:
    """The body that the curl sample sends."""
    words = argv(one.samples["curl"], "k")
    return json.loads(words[words.index("-d") + 1]) if "-d" in words else None


def test_the_commonest_python_samples_run(world, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    Path("customers.csv").write_text("id,email\n1,ada@example.org\n")
    monkeypatch.setenv("ROWSMITH_KEY", world.cast.olivia.key)
    found = {sample.key: sample.samples["python"] for sample in world.samples()}
    for key in COMMON:
        names: dict[str, Any] = {"__name__": "sample"}
        exec(compile(found[key], key, "exec"), names)
        names["api"].close()
        assert capsys.readouterr().out.strip(), key


def test_methods_are_of_operations_that_there_are(described):
    known = {f"{m.upper()} {path}" for path, methods in described["paths"].items() for m in methods}
    assert set(samples.METHODS) <= known
    assert set(samples.BODIES) <= known


def test_an_operation_is_called_by_its_method_where_there_is_one(document, tries):
    for method, path in document:
        named = any(
            (m, re.sub(r"\{[^}]*\}", "{}", p)) == (method, path) for m, p in map(str.split, samples.METHODS)
        )
        there = [name for name, _ in tries.get((method, path), ())]
        assert named or not there, f"calls.METHODS has no line for {method} {path}: {there}"


def test_the_typescript_package_has_every_method_that_a_sample_calls(world):
    folder = Path(__file__).parents[2] / "sdk" / "typescript" / "src"
    client = (folder / "client.ts").read_text("utf-8")
    source = "\n".join(path.read_text("utf-8") for path in (folder / "resources").glob("*.ts"))
    for sample in world.samples():
        named = re.search(r"client\.(\w+)(?:\.(\w+))?\(", sample.samples["typescript"])
        if named[2] is None:
            assert named[1] == "request", sample.key
            continue
        kind = re.search(rf"readonly {named[1]}: (\w+);", client)[1]
        body = re.search(rf"export class {kind} extends Resource \{{.*?^\}}", source, re.M | re.S)[0]
        assert re.search(rf"^  (?:async \*?)?{named[2]}[(<]", body, re.M), (sample.key, named[0])
