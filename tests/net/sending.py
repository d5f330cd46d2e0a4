"""What the tests of HTTP sessions share: targets, a session, and requests by it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests

from tests.fakes.certificates import Authority
from tests.fakes.echo_target import MB, EchoTarget
from webapp.net.gate import Gate
from webapp.net.session import NetError, Reply, Session, exchange, open_session

OPEN = ("127.0.0.0/8", "::1/128")
SECRET = "hunter2-hunter2"


@pytest.fixture
def target() -> Iterator[EchoTarget]:
    with EchoTarget() as result:
        yield result


@pytest.fixture
def other() -> Iterator[EchoTarget]:
    with EchoTarget() as result:
        yield result


@pytest.fixture
def session() -> Iterator[Session]:
    with open_session(Gate(OPEN)) as result:
        yield result


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def send(
    session: Session, method: str, url: str, *, seconds: float = 20, most: int = MB, follow=True, **more
) -> Reply:
    request = requests.Request(method, url, **more)
    return exchange(session, request, timeout_seconds=seconds, max_bytes=most, follow=follow)


def failing(session: Session, method: str, url: str, **more) -> NetError:
    with pytest.raises(NetError) as failed:
        send(session, method, url, **more)
    assert SECRET not in failed.value.message
    return failed.value
