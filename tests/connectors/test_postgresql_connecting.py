"""The way to PostgreSQL: what settings may say, and what each stage of a verification tells where it fails."""

from __future__ import annotations

import datetime as dt
import ipaddress
import socket
import ssl
import threading

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pydantic import ValidationError

from tests.connectors import conftest
from tests.connectors.kind_postgresql import URL, PostgresqlKind
from tests.connectors.kinds import GATE
from webapp.connectors.base import ConnectorError
from webapp.connectors.postgresql.connector import PostgresqlConnector
from webapp.net.gate import Gate

Settings = PostgresqlConnector.Settings


def last_stage(settings, gate=GATE):
    """The stage at which a verification ends."""
    return list(PostgresqlConnector(Settings(**settings), gate).stages())[-1]


@pytest.fixture
def server():
    if reason := conftest.missing(PostgresqlKind):
        pytest.skip(reason)
    return {"connection_string": URL}


@pytest.fixture
def listener():
    """A port that answers each caller with what `answer` does."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve(answer):
            def run():
                while True:
                    try:
                        way, _ = listening.accept()
                    except OSError:
                        return
                    with way:
                        try:
                            answer(way)
                        except OSError:
                            pass

            threading.Thread(target=run, daemon=True).start()
            return {"host": "127.0.0.1", "port": listening.getsockname()[1], "username": "x", "database": "y"}

        yield serve
        listening.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("more", "stage", "code"),
    [
        ({"host": "nowhere.invalid"}, "resolve", "unresolved"),
        ({"host": "127.0.0.1", "port": 1}, "connect", "refused"),
        ({"tls": "require"}, "tls", "tls_failed"),
        ({"username": "nobody_here"}, "auth", "auth_failed"),
        ({"database": "no_such_base"}, "auth", "no_database"),
        ({"schema": "no_such_schema"}, "permission", "no_schema"),
    ],
)
def test_verification_stops_at_the_failing_stage_with_a_remedy(server, more, stage, code):
    found = last_stage({**server, **more})
    assert (found.name, found.code, found.ok) == (stage, code, False)
    assert found.message
    assert found.hint


def test_an_address_that_is_not_allowed_is_not_even_tried(server):
    found = last_stage(server, Gate([]))
    assert (found.name, found.code) == ("resolve", "not_allowed")
    with pytest.raises(ConnectorError) as caught:
        PostgresqlConnector(Settings(**server), Gate([])).open()
    assert caught.value.code == "target_not_allowed"


def test_a_server_that_is_not_postgresql_is_reported(listener):
    found = last_stage(listener(lambda way: way.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")))
    assert (found.name, found.code) == ("tls", "not_postgresql")


def test_a_server_that_disconnects_is_reported(listener):
    assert last_stage(listener(lambda way: way.close())).ok is False


def certificate(host):
    """A self-signed certificate of a host: PEM of the certificate, PEM of both."""
    key, name = (
        ec.generate_private_key(ec.SECP256R1()),
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)]),
    )
    today = dt.datetime.now(dt.UTC)
    result = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(today - dt.timedelta(1)).not_valid_after(today + dt.timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    public = result.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return public.decode(), public + private


@pytest.mark.parametrize(
    ("mode", "host", "trusted", "good"),
    [
        ("require", "127.0.0.1", False, True),
        ("verify-full", "127.0.0.1", False, False),
        ("verify-full", "127.0.0.1", True, True),
        ("verify-full", "127.0.0.9", True, False),
        ("verify-ca", "127.0.0.9", True, True),
    ],
)
def test_a_certificate_is_verified_as_the_tls_mode_says(listener, tmp_path, mode, host, trusted, good):
    public, both = certificate(host)
    (tmp_path / "server.pem").write_bytes(both)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")

    def answer(way):
        if way.recv(8):
            way.sendall(b"S")
            context.wrap_socket(way, server_side=True).close()

    settings = {**listener(answer), "tls": mode, "ca_certificate": public if trusted else None}
    stages = {stage.name: stage for stage in PostgresqlConnector(Settings(**settings), GATE).stages()}
    assert stages["tls"].ok is good
    assert ("auth" in stages) is good


@pytest.mark.parametrize(
    "text",
    [
        "postgresql+psycopg://u:p%40ss@127.0.0.1:5432/base",
        "jdbc:postgresql://127.0.0.1:5432/base?user=u&password=p%40ss",
        "postgres://u:p%40ss@127.0.0.1/base",
        "host=127.0.0.1 dbname=base user=u password=p@ss",
    ],
)
def test_connection_strings_are_understood_in_every_spelling(text):
    found = PostgresqlConnector(Settings(connection_string=text), GATE)._parameters()
    assert {name: found[name] for name in ("host", "port", "dbname", "user", "password")} == {
        "host": "127.0.0.1", "port": "5432", "dbname": "base", "user": "u", "password": "p@ss",
    }  # fmt: skip


def test_parts_win_over_the_connection_string():
    settings = Settings(connection_string="postgresql://a:b@127.0.0.1:1/x", port=2, username="c")
    found = PostgresqlConnector(settings, GATE)._parameters()
    assert (found["port"], found["user"], found["password"]) == ("2", "c", "b")


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://u@/base?host=/var/run/postgresql",
        "postgresql://u@127.0.0.1,10.0.0.1/base",
        "postgresql://u@127.0.0.1/base?passfile=/etc/passwd",
        "postgresql://u@127.0.0.1/base?sslkey=/etc/ssl/key",
        "postgresql://u@127.0.0.1/base?service=other",
        "postgresql://u@127.0.0.1:99999/base",
        "postgresql://",
        "not one at all",
    ],
)
def test_connection_strings_with_redirections_or_without_hosts_are_rejected(text):
    found = last_stage({"connection_string": text})
    assert (found.name, found.code) == ("resolve", "bad_settings")
    assert found.hint


def test_a_second_address_in_the_string_is_not_connected_to(server):
    settings = {"connection_string": "postgresql://postgres@nowhere.invalid:5432/postgres?hostaddr=127.0.0.1"}
    assert last_stage(settings).code == "unresolved"


@pytest.mark.parametrize(
    "inputs",
    [
        {},
        {"host": "a", "options": {"sslkey": "/etc/x"}},
        {"host": "a", "port": 0},
        {"host": "a", "tls": "yes"},
        {"host": "a", "ca_certificate": "/etc/ssl/ca.pem"},
        {"host": "a", "nobody": 1},
    ],
)
def test_invalid_settings_are_rejected(inputs):
    with pytest.raises(ValidationError):
        Settings(**inputs)


def test_no_message_of_a_failed_sign_in_holds_the_password(server):
    found = last_stage({**server, "username": "nobody_here", "password": "very-secret-word"})
    assert "very-secret-word" not in f"{found.message} {found.hint}"


def test_a_server_that_says_nothing_is_given_up(listener, monkeypatch):
    monkeypatch.setattr("webapp.limits.TARGET_CONNECT_SECONDS", 0.3)
    release = threading.Event()
    found = last_stage(listener(lambda way: release.wait(20)))
    release.set()
    assert (found.name, found.ok) == ("tls", False)


@pytest.mark.parametrize(
    "text",
    [
        "the database system is starting up",
        "the database system is not yet accepting connections",
        "the database system is not accepting connections",
        "the database system is in recovery mode",
        "the database system is shutting down",
    ],
)
def test_a_server_that_is_starting_is_not_a_missing_database(text):
    import psycopg

    from webapp.connectors.postgresql.errors import convert_connect_error

    reported = convert_connect_error(
        psycopg.OperationalError(f"connection failed: FATAL:  {text}"), "db.example.org"
    )
    assert (reported.reason, reported.transient) == ("starting", True)
