"""Promise 17: sixty ways to write a private or metadata address (decimal, hex, mapped, NAT64, 6to4, CGNAT, redirect,
DNS that changes its mind) reach a loopback canary 0 times from push, verify, api_response, token_url, metadata, AI
endpoint and webhooks, unless the operator allowed that network.

The operator of this product allowed only 127.77.0.0/16. The redirecting target listens there, and host names resolve to
it on the first query.
"""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.echo_target import EchoTarget, redirect
from tests.net.ways import HERE, METADATA, Canary
from tests.promises.name_server import ALLOWED, ZONE, NameServer, command
from tests.promises.product import Api, Product, running

WAYS = [*HERE, *METADATA[:12]]
# The guard does not depend on the storage of the service: the second stack only shows that it is active there, too.
FEWER = 5
_number = count()
_made: dict[str, dict[str, str | None]] = {}


class Listener:
    """Counts who connects to one address."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.count = 0
        self._socket = socket.create_server(address)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                came, _ = self._socket.accept()
            except OSError:
                return
            self.count += 1
            came.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@pytest.fixture(scope="module")
def product(stack: str) -> Iterator[Product]:
    """It asks a name server of the tests, and the operator opened one network."""
    with tempfile.TemporaryDirectory() as folder:
        server = NameServer()
        try:
            within = command(Path(folder))
            with running(
                stack, "--workers", "1", "--runners", "1", within=within, TARGET_NETWORKS="127.77.0.0/16"
            ) as result:
                result.plan(requests_per_minute=60_000, rows_per_hour=100_000_000_000)
                result.names = server
                yield result
        finally:
            server.close()


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    result = Canary()
    yield result
    result.close()


@pytest.fixture(scope="module")
def allowed() -> Iterator[EchoTarget]:
    """A target in the network that is open."""
    with EchoTarget(host=ALLOWED) as result:
        yield result


# --- All places that accept an address. Each tries it and ignores the response; the canary counts connections.


def _connection(api: Api, kind: str, settings: dict[str, Any]) -> str | None:
    """A connection, made and so verified; None where its address is refused as such. One that was made before does,
    since verifying starts a process."""
    known = _made.setdefault(api.url, {})
    mark = repr((kind, settings))
    if mark not in known:
        answer = api.post(
            "/connections", {"name": f"{kind} {next(_number)}", "type": kind, "settings": settings}
        )
        known[mark] = answer.json()["id"] if answer.status_code == 201 else None
    return known[mark]


def verify(api: Api, url: str, _allowed: str) -> None:
    _connection(api, "rest", {"base_url": url, "retry": {"retries": 0}})


def push(api: Api, url: str, _allowed: str) -> None:
    rows = [{"id": 1}]
    result = _connection(api, "rest", {"base_url": url, "retry": {"retries": 0}})
    if result:
        api.post("/export/rest", {"connection_id": result, "target": "rows", "rows": rows})
    endpoint = api.post("/endpoints", {"name": f"e {next(_number)}", "url": url, "method": "POST"})
    if endpoint.status_code == 201:
        api.post("/export/rest", {"endpoint_id": endpoint.json()["id"], "rows": rows})


def api_response(api: Api, url: str, _allowed: str) -> None:
    result = _connection(api, "rest", {"base_url": url, "retry": {"retries": 0}})
    if result:
        options = {"connection_id": result, "path": "/x", "extract": "$.a"}
        fields = [{"name": "v", "type": "api_response", "options": options}]
        api.post("/preview", {"name": "T", "fields": fields, "fetch": True})


def token_url(api: Api, url: str, allowed: str) -> None:
    auth = {"type": "oauth2-client-credentials", "token_url": url, "client_id": "c", "client_secret": "s"}
    _connection(api, "rest", {"base_url": allowed, "auth": auth, "retry": {"retries": 0}})


def metadata(api: Api, url: str, _allowed: str) -> None:
    for kind, name in (("odata", "service_url"), ("openapi", "document_url")):
        result = _connection(api, kind, {name: url})
        if result:
            api.get(f"/connections/{result}/metadata?refresh=true")


def ai_endpoint(api: Api, url: str, _allowed: str) -> None:
    result = _connection(api, "ai", {"base_url": url, "model": "m"})
    if result:
        api.post("/describe", {"description": "Customers", "connection_id": result})


def webhook(api: Api, url: str, _allowed: str) -> None:
    answer = api.post("/webhooks", {"url": url, "events": ["push.*"]})
    assert answer.status_code in (201, 400, 403, 409, 422), answer.text
    if answer.status_code == 201:
        api.post(f"/webhooks/{answer.json()['id']}/test")
        api.call("DELETE", f"/webhooks/{answer.json()['id']}")


WHERE = {
    item.__name__: item for item in (verify, push, api_response, token_url, metadata, ai_endpoint, webhook)
}


def urls(way: str, port: int) -> list[str]:
    """Return the URLs for an address."""
    host = f"[{way}]" if ":" in way and not way.startswith("[") else way
    return [f"http://{host}:{port}/"]


def all_tried(product: Product, where: Callable[..., None], given: list[str], allowed: EchoTarget) -> None:
    with ThreadPoolExecutor(4) as threads:
        apis = {number: product.api() for number in range(4)}
        work = [(apis[number % 4], url) for number, url in enumerate(given)]
        for done in [threads.submit(where, api, url, allowed.url("/")) for api, url in work]:
            done.result()


@pytest.mark.parametrize("where", WHERE)
def test_promise_17_no_way_to_write_an_address_reaches_the_canary(product, canary, allowed, where):
    assert len(WAYS) >= 60
    before, step = canary.count, 1 if product.stack == "sqlite+valkey" else FEWER
    all_tried(product, WHERE[where], [url for way in WAYS[::step] for url in urls(way, canary.port)], allowed)
    assert canary.count == before


@pytest.mark.parametrize("where", WHERE)
def test_promise_17_the_network_that_the_operator_allowed_is_reached(product, canary, allowed, where):
    """The same calls with an address of it: what the tests count can be counted."""
    before = canary.count
    WHERE[where](product.api(), f"http://{ALLOWED}:{canary.port}/", allowed.url("/"))
    assert canary.count > before


@pytest.mark.parametrize("where", WHERE)
def test_promise_17_redirects_do_not_lead_there(product, canary, allowed, where):
    found = [
        url for way in HERE if way.isascii() and way.isprintable() for url in urls(way.strip(), canary.port)
    ]
    found = found[:12] + [f"http://{name}.canary.test:{canary.port}/" for name in ("inside", "zero", "alias")]
    value = []
    for number, url in enumerate(found):
        allowed.on(f"/{where}/{number}/*", redirect(url, (302, 307, 308)[number % 3]))
        value.append(allowed.url(f"/{where}/{number}/"))
    before, request = canary.count, len(allowed.seen)
    all_tried(product, WHERE[where], value, allowed)
    assert canary.count == before
    assert len(allowed.seen) > request, "the redirects were requested"


@pytest.mark.parametrize("where", WHERE)
def test_promise_17_names_that_lead_inside_or_change_their_mind_do_not_either(
    product, canary, allowed, where
):
    """On the port of the allowed target there is a canary too, at 127.0.0.1: where a name leads when asked again."""
    inside = Listener(("127.0.0.1", allowed.port))
    try:
        kinds = [kind for kind in ZONE if kind != "good"]
        names = [f"{kind}-{where.replace('_', '-')}-{n}.canary.test" for kind in kinds for n in range(1)]
        request = sum(product.names.asked.values())
        all_tried(product, WHERE[where], [f"http://{name}:{allowed.port}/" for name in names], allowed)
        assert sum(product.names.asked.values()) > request, "the names were resolved"
        assert inside.count == 0
        # Those that never lead to the allowed network, where the canary of all addresses listens too.
        closed = [name for name in names if not name.startswith(("both", "rebind", "flips"))]
        before = canary.count
        all_tried(product, WHERE[where], [f"http://{name}:{canary.port}/" for name in closed], allowed)
        assert canary.count == before
    finally:
        inside.close()
