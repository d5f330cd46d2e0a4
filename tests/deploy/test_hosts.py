"""What is done on one host is there on the other, and a host that is lost takes nothing along."""

from __future__ import annotations

import hashlib
import re
import urllib.parse
import urllib.request

import pytest
import rowsmith

from tests.jobs.waiting import eventually

FIELDS = [
    {"name": "id", "type": "row_number"},
    {"name": "name", "type": "name"},
    {"name": "email", "type": "email", "unique": True},
    {"name": "day", "type": "date", "options": {"min": "-30d", "max": "now"}},
]
PINS = {"seed": "s", "now": "2026-01-01T00:00:00Z"}
PROGRAM = """
import os
from pathlib import Path

from rowsmith import Client

rows = Client().generate_from_template_id(os.environ["TEMPLATE"], 3)
inputs = Path(os.environ["SERVICE_WORKSPACE_UPLOADS"])
print("rows", len(rows), (inputs / "in" / "a.txt").read_text())
Path(os.environ["SERVICE_WORKSPACE_OUTPUTS"], "out.txt").write_text("made by the second host")
"""


@pytest.fixture(scope="module")
def template(hosts):
    """The id of a template that was saved on the first host."""
    return hosts.api.templates.create({"name": "People", "fields": FIELDS})["id"]


def whole(api, template, count, format="csv"):
    with api.templates.stream(template, count=count, format=format, **PINS) as stream:
        return stream.read()


def downloaded(api, export_id):
    with api.exports.stream(export_id) as stream:
        return stream.read()


def told(host, key):
    """Return a host's health report without the latencies of the components."""
    found = host.ready(key)
    for part in found["parts"].values():
        assert part.pop("ms") >= 0
    return found


def test_both_are_ready_and_say_the_same(hosts):
    found = told(hosts.first, hosts.key)
    assert found == told(hosts.second, hosts.key)
    assert {name: found["parts"][name]["kind"] for name in ("database", "storage")} == {
        "database": "postgresql",
        "storage": "s3",
    }
    counts = {name: found["parts"][name]["count"] for name in ("worker", "runner")}
    assert counts == {"worker": 2, "runner": 1}, "of both hosts"


def test_rows_are_the_same_bytes_on_both(hosts, template):
    assert whole(hosts.api, template, 5_000) == whole(hosts.other, template, 5_000)


def test_a_change_on_one_host_is_immediately_visible_on_the_other(hosts):
    created = hosts.api.templates.create({"name": "Changes", "fields": FIELDS})
    assert len(hosts.other.templates.generate(created["id"], count=1)[0]) == len(FIELDS)
    hosts.api.templates.update(created["id"], fields=FIELDS[:2])
    assert list(hosts.other.templates.generate(created["id"], count=1)[0]) == ["id", "name"]


def test_a_key_revoked_on_one_host_is_immediately_rejected_by_the_other(hosts):
    created = hosts.api.api_keys.create(name="short lived")
    there = rowsmith.Api(created["key"], hosts.second.url)
    assert there.workspace.me()
    hosts.api.api_keys.revoke(created["id"])
    with pytest.raises(rowsmith.error.Unauthenticated):
        there.workspace.me()


def test_a_form_and_a_session_of_one_are_good_on_the_other(hosts):
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())

    def visit(url, **form):
        headers = {"Accept": "text/html", **({"Origin": hosts.first.url} if form else {})}
        body = urllib.parse.urlencode(form).encode() if form else None
        with browser.open(urllib.request.Request(url, body, headers), timeout=30) as page:
            return page.url, page.read().decode()

    path = urllib.parse.urlsplit(hosts.ways_in["sign_in_url"]).path
    _, page = visit(hosts.first.url + path)
    token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)[1]
    where, _ = visit(hosts.second.url + path, csrf_token=token)
    assert "sign-in" not in where
    for host in (hosts.first, hosts.second):
        where, page = visit(f"{host.url}/templates")
        assert where == f"{host.url}/templates"
        assert "Customers" in page


def test_a_secret_sealed_on_one_opens_on_the_other(hosts):
    hosts.api.secrets.put("PASSWORD", "a horse")
    code = "import os\nprint('it has', len(os.environ['PASSWORD']))"
    created = hosts.api.scenarios.create(name="Sealed", code=code, secrets=["PASSWORD"])
    run = hosts.api.runs.wait(created["id"], hosts.api.runs.start(created["id"])["id"], timeout=300)
    assert run["status"] == "completed", run
    assert "it has 7" in log(hosts.other, run)


def test_a_file_of_one_is_read_on_the_other(hosts):
    hosts.api.files.upload(b"\x00\x01" * 100_000, "in/b.bin")
    assert hosts.other.files.read("in/b.bin") == b"\x00\x01" * 100_000


@pytest.mark.parametrize("format", ["csv", "json", "ndjson", "sql"])
def test_an_export_asked_for_on_one_is_downloaded_from_the_other(hosts, template, format):
    result = hosts.api.templates.export(template, count=20_000, format=format, **PINS)
    done = hosts.other.exports.wait(result["id"], timeout=120)
    assert done["status"] == "completed", done
    content = downloaded(hosts.other, result["id"])
    assert content == whole(hosts.api, template, 20_000, format)
    assert hashlib.sha256(content).hexdigest() == done["sha256"]


def test_an_export_in_parts_is_one_file_whichever_worker_created_them(hosts, template):
    result = hosts.api.templates.export(template, count=200_000, part_rows=10_000, format="csv", **PINS)
    done = hosts.other.exports.wait(result["id"], timeout=300)
    assert (done["status"], done["parts"], done["parts_done"]) == ("completed", 20, 20), done
    assert downloaded(hosts.other, result["id"]) == whole(hosts.api, template, 200_000)
    manifest = hosts.other.request("GET", f"/exports/{result['id']}/manifest")
    assert [part["offset"] for part in manifest["parts"]] == list(range(0, 200_000, 10_000))


def test_a_run_takes_what_the_other_host_has_and_leaves_its_outputs_there(hosts, template):
    hosts.api.files.upload(b"from the first host", "in/a.txt")
    created = hosts.api.scenarios.create(name="Both", code=PROGRAM, env={"TEMPLATE": template})
    run = hosts.api.runs.wait(created["id"], hosts.api.runs.start(created["id"])["id"], timeout=300)
    assert run["status"] == "completed", (run, log(hosts.api, run))
    assert "rows 3 from the first host" in log(hosts.api, run)
    assert [output["name"].rpartition("/")[2] for output in run["outputs"]] == ["out.txt"]
    assert hosts.api.files.read(run["outputs"][0]["file_id"]) == b"made by the second host"


def log(api, run):
    return api.runs.log(run["scenario_id"], run["id"])


# --- Lost hosts; the last tests of this module ----------------------------------------------------------------------


def test_a_worker_that_is_lost_takes_no_export_along(hosts, template):
    expected = whole(hosts.other, template, 100_000)
    result = [
        hosts.api.templates.export(template, count=100_000, format="csv", **PINS)["id"] for _ in range(6)
    ]
    eventually(lambda: hosts.other.exports.get(result[0])["status"] != "queued", within=60)
    hosts.first.kill("worker")
    for item in result:
        done = hosts.other.exports.wait(item, timeout=180)
        assert done["status"] == "completed", done
        assert downloaded(hosts.other, item) == expected


def test_without_the_first_host_the_second_continues(hosts, template):
    hosts.first.stop()
    assert hosts.second.ready()
    assert len(whole(hosts.other, template, 100).splitlines()) == 101


def test_every_part_of_the_procfile_ends_well_when_asked(hosts):
    codes = hosts.second.stop()
    assert set(codes.values()) == {0}, codes
