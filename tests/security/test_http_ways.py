"""However an address is written, no way of the API that speaks HTTP reaches a network that the operator closed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from jobs.pushes import push as job
from tests.net.ways import CLOSED, HERE, METADATA, Canary
from tests.views.speak import make
from tests.views.targets import connection
from webapp.errors import ApiError
from webapp.extensions import db

# The guard's own tests try all of them; here are those that lead to the canary.
FEW = [HERE[0], "0x7f.1", "2130706433", "::ffff:127.0.0.1", METADATA[0], CLOSED[0]]
AWAY = "192.0.2.1"  # of documentation (RFC 5737), and closed as well


@pytest.fixture
def settings(settings):
    """The operator opened nothing."""
    return replace(settings, target_networks=("none",))


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    result = Canary()
    yield result
    result.close()


@pytest.fixture
def carry_out(app):
    def do(push_id: str) -> None:
        with app.app_context():
            job.run(push_id)
            db.session.remove()

    return do


def url(host: str, port: int, path: str = "/x") -> str:
    return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{port}{path}"


def settings_of(kind: str, address: str) -> dict[str, object]:
    word = {"rest": "base_url", "odata": "service_url", "openapi": "document_url"}[kind]
    return {word: address, "retry": {"retries": 0}} if kind == "rest" else {word: address}


def connected(edith, kind: str, settings: dict[str, object]) -> str | None:
    """Create a connection, which is verified immediately; return None if the address was rejected."""
    answer = edith.post("/connections", json={"name": "x", "type": kind, "settings": settings})
    if answer.status_code in (400, 422):
        return None
    assert answer.status_code == 201, answer.text
    assert answer.json["verification"]["status"] == "failed"
    return answer.json["id"]


@pytest.mark.parametrize("kind", ["rest", "odata", "openapi"])
def test_neither_verifying_nor_metadata_nor_templates_reach_it(edith, canary, kind):
    for host in HERE if kind == "rest" else FEW:
        result = connected(edith, kind, settings_of(kind, url(host, canary.port)))
        if result is not None and host in FEW:
            assert edith.post(f"/connections/{result}/verify").json["status"] == "failed"
            edith.get(f"/connections/{result}/metadata")
            edith.post(f"/connections/{result}/templates", json={"entities": ["a"]})
    assert canary.count == 0


@pytest.mark.parametrize("host", FEW)
def test_no_push_reaches_it(edith, canary, carry_out, host):
    result = connected(edith, "rest", settings_of("rest", url(host, canary.port)))
    if result is None:
        return
    template = make(edith)["id"]
    how = {"connection_id": result, "target": "rows", "count": 2}
    push = edith.post(f"/templates/{template}/push", json=how).json
    carry_out(push["id"])
    ended = edith.get(f"/pushes/{push['id']}").json
    assert ended["counts"]["delivered"] == 0
    assert canary.count == 0


def test_no_token_is_requested_there(app, cast, edith, canary, carry_out):
    """A token is fetched before anything is sent to the target, which is closed as well."""
    template, codes = make(edith)["id"], set()
    for host in HERE:
        auth = {"type": "oauth2-client-credentials", "client_id": "c", "client_secret": "s3cret-value"}
        how = {"base_url": f"http://{AWAY}/x", "auth": {**auth, "token_url": url(host, canary.port)}}
        try:
            result = connection(app, cast, "rest", {**how, "retry": {"retries": 0}})
        except ApiError:  # the address is invalid
            continue
        body = {"connection_id": result, "target": "rows", "count": 1}
        push = edith.post(f"/templates/{template}/push", json=body).json
        carry_out(push["id"])
        ended = edith.get(f"/pushes/{push['id']}").json
        assert ended["counts"]["pending"] == 1
        if (
            ended["error"] is None
        ):  # whether a name such as "localhost." is known depends on the machine's resolver
            assert (ended["status"], ended["waiting"]["reason"]) == ("running", "unresolved")
            continue
        codes.add(ended["error"]["code"])
    assert "target_not_allowed" in codes
    assert codes <= {"target_not_allowed", "token_request_failed"}
    assert canary.count == 0


@pytest.mark.parametrize("host", FEW)
def test_no_field_reads_from_there(edith, canary, host):
    result = connected(edith, "rest", settings_of("rest", url(host, canary.port)))
    if result is None:
        return
    field = {
        "name": "a",
        "type": "api_response",
        "options": {"connection_id": result, "path": "/x", "extract": "$.a"},
    }
    answer = edith.post("/templates", json={"name": "T", "fields": [field]})
    if answer.status_code == 201:
        for path, body in (("generate", {"count": 1}), ("preview", {})):
            got = edith.post(f"/templates/{answer.json['id']}/{path}", json=body)
            assert got.status_code < 500 or got.json["error"]["code"].startswith("target_"), got.text
    assert canary.count == 0
