"""Promise 17 for webhooks: however an address is written, neither making, nor testing, nor sending reaches a network
that the operator closed, and a name that changes its mind reaches nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.fakes.echo_target import EchoTarget, redirect
from tests.net.ways import CLOSED, HERE, METADATA, Canary
from webapp import clock
from webapp.connections.services import access
from webapp.extensions import write_session
from webapp.net.gate import Gate
from webapp.notifications.models import Delivery, Webhook
from webapp.notifications.services import webhooks


@pytest.fixture
def settings(settings):
    """The operator opened nothing."""
    return replace(settings, target_networks=("none",))


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    result = Canary()
    yield result
    result.close()


def url(host: str, port: int) -> str:
    return f"http://{f'[{host}]' if ':' in host and not host.startswith('[') else host}:{port}/hook"


def test_no_way_to_write_a_closed_address_is_taken_or_sent_to(app, api, cast, canary):
    edith = api(cast.edith)
    for host in [*HERE, *CLOSED[:12], *METADATA]:
        address = url(host, canary.port)
        answer = edith.post("/webhooks", json={"url": address, "events": ["*"]})
        known = {403: "target_not_allowed", 422: "validation_error", 400: "invalid_request"}
        # A host that no resolver knows may be known at the first event, and is judged then.
        assert answer.status_code == 201 or answer.json["error"]["code"] == known[answer.status_code], host
        if "\0" in address:
            continue
        with app.app_context():
            outcome = webhooks.send(address, ["whsec_AAAA"], "dlv_1", "{}", clock.now(), access.create_gate())
        assert outcome.verdict in ("failed", "again"), host
        assert outcome.status is None, host
    assert canary.count == 0


def test_a_name_that_turns_to_the_inside_after_it_was_taken_reaches_nothing(
    app, api, cast, canary, monkeypatch
):
    real, answers = socket.getaddrinfo, iter(["93.184.216.34"])

    def resolve(host, port, *rest, **more):
        if host == "turning.example.org":
            return real(next(answers, "127.0.0.1"), port, *rest, **more)
        return real(host, port, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    edith = api(cast.edith)
    hook = edith.post(
        "/webhooks", json={"url": url("turning.example.org", canary.port), "events": ["*"]}
    ).json
    sent = edith.post(f"/webhooks/{hook['id']}/test").json
    assert (sent["status"], sent["response_status"]) == ("failed", None)
    assert "connections are not allowed" in sent["reason"]
    with app.app_context(), write_session() as session:
        session.add(Delivery(webhook_id=hook["id"], event="run.failed", body="{}", next_at=clock.now()))
    with app.app_context():
        assert webhooks.deliver(webhooks.claim(clock.now())).verdict == "failed"
    assert canary.count == 0


def test_a_redirect_to_the_inside_is_not_followed(app, canary):
    with EchoTarget() as target:
        target.on("/hook", redirect(url("127.0.0.1", canary.port), 307))
        with app.app_context():
            gate = Gate([f"{target.host}/32"])
            outcome = webhooks.send(target.url("/hook"), ["whsec_AAAA"], "dlv_1", "{}", clock.now(), gate)
    assert (outcome.verdict, outcome.status, canary.count) == ("failed", 307, 0)


def test_objects_of_another_workspace_are_not_found(api, cast):
    edith, mallory = api(cast.edith), api(cast.mallory)
    hook = edith.post("/webhooks", json={"url": "https://192.0.2.1.nip.example/hook", "events": ["*"]}).json
    for method, path in [
        ("get", ""), ("patch", ""), ("delete", ""), ("post", "/secret"), ("post", "/test"), ("get", "/deliveries"),
    ]:  # fmt: skip
        answer = getattr(mallory, method)(
            f"/webhooks/{hook['id']}{path}", **({"json": {}} if method == "patch" else {})
        )
        assert answer.status_code == 404, (method, path)
    assert edith.get(f"/webhooks/{hook['id']}").json == {key: hook[key] for key in hook if key != "secret"}


def test_a_secret_of_a_webhook_is_in_no_answer_entry_or_log(app, api, cast, caplog, database_bytes):
    caplog.set_level("DEBUG")
    adam = api(cast.adam)
    hook = adam.post(
        "/webhooks", json={"url": "https://hooks.example.invalid/x?key=urlcanary99", "events": ["*"]}
    ).json
    secrets = [hook["secret"], adam.post(f"/webhooks/{hook['id']}/secret").json["secret"]]
    adam.post(f"/webhooks/{hook['id']}/test")
    seen = [adam.get(path).text for path in ("/webhooks", f"/webhooks/{hook['id']}", "/audit?limit=100")]
    seen.append(adam.get(f"/webhooks/{hook['id']}/deliveries").text)
    stored = database_bytes()
    with app.app_context(), write_session() as session:
        assert session.get_one(Webhook, hook["id"]).sealed_before is not None
    for secret in secrets:
        for form in (secret, secret.removeprefix("whsec_")):
            assert form not in caplog.text
            assert not any(form in item for item in seen)
            assert form.encode() not in stored
    assert "urlcanary99" not in caplog.text
    assert "urlcanary99" not in seen[2], "the trail has an address without its query"
