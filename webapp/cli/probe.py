"""Checks that a part of the service is running. Each returns False while it is not, and raises nothing."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

import redis

from webapp import limits
from webapp.config.values import is_loopback
from webapp.monitoring import health
from webapp.work import jobs_queue


def redis_check(url: str) -> Callable[[], bool]:
    """Return whether Redis answers a ping and has loaded its data."""
    client = redis.Redis.from_url(url, socket_timeout=limits.PROBE_SECONDS)

    def check() -> bool:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False

    return check


def heartbeat_check(url: str, part: str, minimum: int, since: float) -> Callable[[], bool]:
    """Return whether at least `minimum` processes of a kind have sent a heartbeat since `since` (epoch seconds)."""
    client = redis.Redis.from_url(url, socket_timeout=limits.PROBE_SECONDS)

    def check() -> bool:
        try:
            return health.count_alive(client, part, since) >= minimum
        except redis.RedisError:
            return False

    return check


def waiting_work_check(url: str, kinds: Iterable[str]) -> Callable[[], bool]:
    """Return whether work of these kinds waits in the queue, now and at the previous check: a single result may
    be from the moment before an idle worker takes it."""
    client = redis.Redis.from_url(url, socket_timeout=limits.PROBE_SECONDS)
    queues = [jobs_queue.queue_of(client, kind) for kind in kinds]
    has_work = False

    def check() -> bool:
        nonlocal has_work
        had_work = has_work
        try:
            has_work = any(queue.count for queue in queues)
        except redis.RedisError:
            has_work = False
        return had_work and has_work

    return check


def http_ok(url: str, path: str) -> Callable[[], bool]:
    """Return whether a server on this machine answers `GET path` with 200. Its certificate need not be valid for this
    name.

    Behind a proxy that terminates TLS, a plain request to an address outside of loopback gets a 403: this also shows
    that the server is running.
    """
    parts = urlsplit(url)
    host, port = parts.hostname or "127.0.0.1", parts.port
    expected = {http.client.OK} if is_loopback(host) else {http.client.OK, http.client.FORBIDDEN}

    def check() -> bool:
        if parts.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=limits.PROBE_SECONDS, context=context
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=limits.PROBE_SECONDS)
        try:
            connection.request("GET", path)
            return connection.getresponse().status in expected
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    return check


def port_error(host: str, port: int) -> str | None:
    """Return None if a server can listen there, else the reason why it cannot."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        return f"{host} is not an address of this machine ({error.strerror})"
    family, kind, protocol, _, address = found[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
            probe.listen(1)
        except OSError as error:
            return error.strerror or str(error)
    return None
