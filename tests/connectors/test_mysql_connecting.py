"""Connecting to a MySQL server: settings, TLS, and servers that request what they must not get."""

from __future__ import annotations

import socket
import ssl
import struct
import threading

import pytest
from pydantic import ValidationError

from tests.connectors.kind_mysql import MysqlKind
from tests.connectors.kinds import GATE
from tests.connectors.one_kind import only
from webapp.connectors.base import ConnectorError
from webapp.connectors.mysql.connector import MysqlConnector
from webapp.net.gate import Gate

_OFFERED = 0xF7FF  # all capabilities of the first half but TLS
_TLS = 0x0800


def connector(**settings):
    return MysqlConnector(MysqlConnector.Settings(**settings), GATE)


def stages(found):
    """How each stage went: its code, empty where it went well."""
    return {stage.name: stage.code for stage in found.stages()}


# --- settings ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mysql://ann:s%40fe@db.example:3307/shop", ("db.example", 3307, "shop", "ann", "s@fe", "prefer")),
        ("mariadb://ann@db.example", ("db.example", 3306, None, "ann", "", "prefer")),
        ("mysql+pymysql://db.example/shop?charset=utf8", ("db.example", 3306, "shop", "root", "", "prefer")),
        ("jdbc:mysql://d/shop?user=ann&password=pw&ssl-mode=REQUIRED", ("d", 3306, "shop", "ann", "pw", "require")),
        ("mysql://[::1]:3306/x?ssl_mode=VERIFY_IDENTITY", ("::1", 3306, "x", "root", "", "verify-full")),
        ("jdbc:mysql://d/x?sslMode=VERIFY_CA&connectTimeout=5", ("d", 3306, "x", "root", "", "verify-ca")),
        ("mysql://d/x?tls=skip-verify&parseTime=true", ("d", 3306, "x", "root", "", "require")),
    ],
)  # fmt: skip
def test_connection_strings_of_other_programs_are_read(text, expected):
    params = connector(connection_string=text).connect_options()
    assert (
        params.host,
        params.port,
        params.database,
        params.username,
        params.password,
        params.tls,
    ) == expected


def test_parts_win_over_the_connection_string():
    params = connector(
        connection_string="mysql://ann:pw@one/first", host="two", database="second", password=""
    ).connect_options()
    assert (params.host, params.database, params.username, params.password) == ("two", "second", "ann", "")


@pytest.mark.parametrize(
    "text", ["nonsense", "postgresql://x/y", "mysql://host:port/x", "mysql:///x", "mysql://h/?sslmode=odd"]
)
def test_a_connection_string_without_a_host_is_reported_without_its_secrets(text):
    with pytest.raises(ConnectorError) as error:
        connector(connection_string=text).connect_options()
    assert error.value.reason == "bad_settings"


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("sslmod=REQUIRED", "Did you mean sslmode?"),
        ("ssl-ca=/etc/passwd", "Did you mean ssl?"),
        ("sql_mode=", "Use the setting options for session variables."),
    ],
)
def test_unsupported_options_of_a_connection_string_are_rejected(option, meant):
    with pytest.raises(ConnectorError) as error:
        connector(connection_string=f"mysql://ann:pw@h/x?{option}").connect_options()
    assert error.value.reason == "bad_settings"
    assert option.partition("=")[0] in error.value.message
    assert meant in error.value.hint


def test_a_certificate_without_a_mode_is_meant_to_be_used():
    params = connector(host="x", ca_certificate="-----BEGIN CERTIFICATE-----").connect_options()
    assert params.tls == "verify-full"


@pytest.mark.parametrize("name", ["sql_mode", "time_zone", "autocommit", "x = 1, sql_mode", "NAMES"])
def test_settings_that_writing_relies_on_cannot_be_changed(name):
    with pytest.raises(ValidationError):
        MysqlConnector.Settings(host="x", options={name: "1"})


# --- verification, with a real server ---


kind = only(MysqlKind)


GOOD = dict.fromkeys(("resolve", "connect", "tls", "auth", "permission", "sample"), "")


def test_every_stage_is_passed_where_all_is_well(kind):
    kind.run("CREATE TABLE t (n INT)")
    assert stages(kind.connector()) == GOOD


def test_each_error_is_reported_at_its_stage(kind):
    good = kind.connector().settings
    kind.stranger()

    def verified(**changed):
        settings = MysqlConnector.Settings(**{**good.model_dump(exclude_none=True), **changed})
        return list(stages(MysqlConnector(settings, GATE)).items())[-1]

    assert verified(username=kind.place, password="wrong") == ("auth", "auth_failed")
    assert verified(database="there_is_none") == ("auth", "no_database")
    assert verified(host="no-such-host.invalid") == ("resolve", "unresolved")
    assert verified(port=9) == ("connect", "refused")


def test_a_closed_network_is_not_entered():
    found = MysqlConnector(MysqlConnector.Settings(host="127.0.0.1"), Gate())
    assert stages(found) == {"resolve": "not_allowed"}


def test_options_are_session_variables(kind):
    settings = kind.connector().settings.model_copy(
        update={"options": {"group_concat_max_len": "77", "lc_time_names": "de_DE"}}
    )
    with MysqlConnector(settings, GATE).open() as session:
        row = session.query("SELECT @@group_concat_max_len AS n, @@lc_time_names AS l", {}, 1).to_pylist()
    assert row == [{"n": 77, "l": "de_DE"}]


# --- servers that are not what they should be ---


def packet(number: int, payload: bytes) -> bytes:
    return struct.pack("<I", len(payload))[:3] + bytes([number]) + payload


def greeting(capabilities: int = _OFFERED) -> bytes:
    """MySQL, "Protocol::HandshakeV10"."""
    return packet(
        0,
        b"\x0a5.7.40\0" + struct.pack("<I", 7) + b"12345678\0" + struct.pack("<H", capabilities) + b"\x2d"
        + struct.pack("<HH", 2, 0x00FF) + b"\x15" + b"\0" * 10 + b"123456789012\0" + b"mysql_native_password\0",
    )  # fmt: skip


def received(way) -> bytes:
    head = way.recv(4)
    return way.recv(int.from_bytes(head[:3], "little")) if len(head) == 4 else b""


@pytest.fixture
def pretender():
    """A server that answers one connection as configured; `heard` is what the client sent."""
    listener = socket.create_server(("127.0.0.1", 0))
    heard: list[bytes] = []
    threads = []

    def start(talk):
        def serve():
            try:
                way, _ = listener.accept()
                with way:
                    talk(way, heard)
            except OSError:
                pass  # the client went away, or the test is over

        threads.append(threading.Thread(target=serve))
        threads[-1].start()
        return {
            "host": "127.0.0.1",
            "port": listener.getsockname()[1],
            "username": "ann",
            "password": "hunter2",
        }

    start.heard = heard
    yield start
    listener.close()
    for thread in threads:
        thread.join(10)


def test_something_that_is_no_mysql_is_named_so(pretender):
    settings = pretender(lambda way, _: way.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"))
    assert list(stages(connector(**settings)).items())[-1] == ("tls", "not_mysql")


def test_a_server_without_tls_gets_no_password_where_tls_is_wanted(pretender):
    def talk(way, heard):
        way.sendall(greeting())
        heard.append(received(way))

    settings = pretender(talk)
    assert list(stages(connector(**settings, tls="require")).items())[-1] == ("tls", "tls_failed")
    assert b"ann" not in b"".join(pretender.heard)


def test_a_password_in_clear_text_is_not_given_without_tls(pretender):
    def talk(way, heard):
        way.sendall(greeting())
        heard.append(received(way))
        way.sendall(packet(2, b"\xfemysql_clear_password\0"))
        heard.append(received(way))

    settings = pretender(talk)
    found = list(stages(connector(**settings)).items())[-1]
    assert found == ("tls", "tls_failed")
    assert b"hunter2" not in b"".join(pretender.heard)


def test_a_server_that_requests_a_local_file_gets_none(pretender):
    def talk(way, heard):
        way.sendall(greeting())
        received(way)
        way.sendall(packet(2, b"\0\0\0\2\0\0\0"))
        while text := received(way):
            heard.append(text)
            way.sendall(packet(1, b"\xfb/etc/passwd"))

    settings = pretender(talk)
    with pytest.raises(ConnectorError, match="file of this machine"):
        connector(**settings).open()
    assert b"root" not in b"".join(pretender.heard)


@pytest.fixture
def certificate(tmp_path):
    """A self-signed certificate for `localhost` in PEM format, with its key."""
    x509 = pytest.importorskip("cryptography.x509")
    from datetime import UTC, datetime, timedelta

    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    start = datetime.now(UTC) - timedelta(days=1)
    result = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=9))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = result.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = tmp_path / "server.pem"
    path.write_bytes(pem + secret)
    return path, pem.decode()


@pytest.mark.parametrize(
    ("host", "trusted", "tls", "expected"),
    [
        ("localhost", True, "verify-full", ("auth", "auth_failed")),
        ("localhost", False, "verify-full", ("tls", "tls_failed")),
        ("127.0.0.1", True, "verify-full", ("tls", "tls_failed")),
        ("127.0.0.1", True, "verify-ca", ("auth", "auth_failed")),
        ("127.0.0.1", False, "require", ("auth", "auth_failed")),
    ],
)
def test_the_certificate_is_held_against_the_name_and_the_authority(
    pretender, certificate, host, trusted, tls, expected
):
    path, authority = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)

    def talk(way, heard):
        way.sendall(greeting(_OFFERED | _TLS))
        received(way)  # SSLRequest
        with context.wrap_socket(way, server_side=True) as secure:
            heard.append(received(secure))
            secure.sendall(packet(3, b"\xff\x15\x04#28000Access denied"))

    settings = pretender(talk)
    if trusted:
        settings["ca_certificate"] = authority
    found = list(stages(connector(**{**settings, "host": host, "tls": tls})).items())
    assert found[-1] == expected
    assert bool(pretender.heard and b"ann" in pretender.heard[0]) is (expected[0] == "auth")
