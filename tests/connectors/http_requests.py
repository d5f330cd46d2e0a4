"""What the tests of authentication share: a target, a token endpoint, a session, and requests that are authorised."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests
from pydantic import TypeAdapter

from tests.fakes.echo_target import MB, EchoTarget
from webapp.connectors.http import tokens
from webapp.connectors.http.authentication import Auth, send_authenticated
from webapp.net.gate import Gate
from webapp.net.session import Reply, Session, open_session

AUTH = TypeAdapter(Auth)
SECRET = "s3cret/+ &=ü"
OPEN = ("127.0.0.0/8",)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    tokens.tokens.clear()
    yield
    tokens.tokens.clear()


@pytest.fixture
def target() -> Iterator[EchoTarget]:
    with EchoTarget() as result:
        yield result


@pytest.fixture
def session() -> Iterator[Session]:
    with open_session(Gate(OPEN)) as result:
        yield result


def send(session: Session, auth, url: str, method: str = "POST") -> Reply:
    """Settings as JSON has them, or an auth object."""
    wire = AUTH.validate_python(auth).requests_auth(session) if isinstance(auth, dict) else auth
    return send_authenticated(
        session, requests.Request(method, url, json={}, auth=wire), timeout_seconds=20, max_bytes=MB
    )
