"""Connecting to Db2: settings, the driver's string, and verification without the driver."""

from __future__ import annotations

import socket
import sys

import pytest

from tests.connectors import db2_fixtures
from tests.connectors.db2_fixtures import CERTIFICATE, connector, to
from webapp.connectors.base import ConnectorError, DriverMissing
from webapp.connectors.db2 import connector as db2_connector
from webapp.connectors.db2.connector import Db2Connector, dsn

ibm_db = db2_fixtures.ibm_db
server = db2_fixtures.server


@pytest.fixture
def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.fixture
def no_driver(monkeypatch):
    monkeypatch.setitem(sys.modules, "ibm_db", None)


# --- Settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "db2://shop:p%40ss@db.example:50001/ORDERS?currentSchema=S&security=SSL",
        "db2+ibm_db://shop:p%40ss@db.example:50001/ORDERS?Security=ssl&CurrentSchema=S",
        "DATABASE=ORDERS;HOSTNAME=db.example;PORT=50001;PROTOCOL=TCPIP;UID=shop;PWD=p@ss;Security=SSL;CurrentSchema=S;",
        "jdbc:db2://db.example:50001/ORDERS:user=shop;password=p@ss;sslConnection=true;currentSchema=S;",
    ],
)
def test_a_connection_string_is_read(text):
    params = connector(connection_string=text).connect_options()
    assert params == db2_connector.ConnectOptions(
        "db.example", 50001, "ORDERS", "shop", "p@ss", "S", "verify-ca"
    )
    assert "p@ss" not in repr(params)


def test_parts_win_over_the_connection_string():
    settings = {"host": "two", "port": 1, "password": "c", "schema": "S"}
    params = connector(connection_string="db2://a:b@one/X", **settings).connect_options()
    assert (params.host, params.port, params.username, params.password, params.schema, params.tls) == (
        "two",
        1,
        "a",
        "c",
        "S",
        "disable",
    )


def test_a_certificate_asks_for_encryption():
    assert to(50_000, ca_certificate=CERTIFICATE).connect_options().tls == "verify-ca"


@pytest.mark.parametrize(
    "settings",
    [
        {"host": "h"},
        {"host": "h", "database": "D"},
        {"connection_string": "hello"},
        {"connection_string": "db2://u:p@h:x/D"},
        {"connection_string": "DSN=mine"},
    ],
)
def test_settings_with_an_unknown_host_are_reported_at_the_first_stage(settings):
    assert [stage.code for stage in connector(**settings).stages()] == ["bad_settings"]


@pytest.mark.parametrize("key", ["host", "database", "username", "password"])
@pytest.mark.parametrize("value", ["x;TraceFileName=/tmp/x", "{x}", "x\ny"])
def test_no_setting_smuggles_a_keyword_into_the_driver(key, value):
    with pytest.raises(ConnectorError) as caught:
        to(50_000, **{key: value}).connect_options()
    assert caught.value.reason == "bad_settings"
    assert value not in caught.value.message


@pytest.mark.parametrize("word", ["SSLServerCertificate=/etc/passwd", "TraceFileName=/tmp/x", "DSN=other"])
def test_an_unknown_keyword_in_a_connection_string_is_rejected(word):
    with pytest.raises(ConnectorError) as caught:
        connector(connection_string=f"DATABASE=D;HOSTNAME=h;UID=u;PWD=p;{word};").connect_options()
    assert word.partition("=")[0] in caught.value.message


def test_the_driver_gets_an_address_and_no_name():
    params = connector(connection_string="DATABASE=D;HOSTNAME=h;PROTOCOL=TCPIP;UID=u;PWD=p").connect_options()
    assert dsn(params, "192.0.2.1", 10, None) == (
        "HOSTNAME=192.0.2.1;PORT=50000;PROTOCOL=TCPIP;ConnectTimeout=10;DATABASE=D;UID=u;PWD=p;"
    )


def test_encryption_verifies_against_the_certificate_that_was_given():
    params = to(50_000, ca_certificate=CERTIFICATE).connect_options()
    assert "SECURITY=SSL;SSLClientHostnameValidation=Off;SSLServerCertificate=/x.pem;" in dsn(
        params, "192.0.2.1", 1, "/x.pem"
    )


# --- Verification -------------------------------------------------------------------------------------------


def test_a_missing_driver_names_its_extra(no_driver):
    with pytest.raises(DriverMissing) as caught:
        Db2Connector.driver()
    assert (caught.value.code, caught.value.details) == ("driver_missing", {"extra": "db2"})
    assert "'ibm_db>=3.2'" in caught.value.hint


def test_without_the_driver_the_stages_end_at_signing_in(no_driver):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        stages = list(to(port).stages())
    assert [(stage.name, stage.code) for stage in stages] == [
        ("resolve", ""),
        ("connect", ""),
        ("auth", "driver_missing"),
    ]


def test_a_refused_connection_is_reported_at_its_stage(free_port):
    stages = list(to(free_port).stages())
    assert (stages[-1].name, stages[-1].code) == ("connect", "refused")
