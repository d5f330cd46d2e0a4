"""Helpers for tests that connect to Db2."""

from __future__ import annotations

import socket
import sys
from types import SimpleNamespace

import pytest

from tests.connectors.kinds import GATE
from webapp.connectors.db2.connector import Db2Connector

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def connector(gate=GATE, **settings):
    return Db2Connector(Db2Connector.Settings.model_validate(settings), gate)


def to(port, gate=GATE, **settings):
    value = {"host": "127.0.0.1", "port": port, "database": "D", "username": "u", "password": "p"}
    return connector(gate, **{**value, **settings})


class Driver(SimpleNamespace):
    """`ibm_db` as far as the link calls it: one statement at a time, its rows and types given beforehand."""

    SQL_ATTR_AUTOCOMMIT, SQL_AUTOCOMMIT_ON, SQL_AUTOCOMMIT_OFF = 102, 1, 0
    SQL_ATTR_QUERY_TIMEOUT, SQL_DBMS_NAME, SQL_DBMS_VER = 0, 17, 18

    def __init__(self):
        super().__init__(told=[], rows=[], kinds=["int"], fails={}, waits=None, file="", led=0)

    def _told(self, *what):
        self.told.append(what)
        if what[0] in self.fails:
            raise Exception(self.fails[what[0]])  # the driver has no other class

    def connect(self, dsn, user, password, options):
        self._told("connect", dsn, options)
        pairs = dict(pair.split("=", 1) for pair in dsn.rstrip(";").split(";"))
        self.socket = socket.create_connection((pairs["HOSTNAME"], self.led or int(pairs["PORT"])))
        if name := pairs.get("SSLServerCertificate"):
            with open(name) as file:
                self.file = (name, file.read())
        return "connection"

    def prepare(self, connection, text):
        self._told("prepare", text)
        return "statement"

    def execute(self, statement, *values):
        self._told("execute", *values)
        self.left = list(self.rows)

    def exec_immediate(self, connection, text):
        self._told("exec_immediate", text)
        if self.waits is not None:
            self.waits.set()
            if not self.socket.recv(1):
                raise Exception("[IBM][CLI Driver] SQL30081N  Gone.  SQLSTATE=08001 SQLCODE=-30081")
        self.left = list(self.rows)
        return "statement"

    def fetch_tuple(self, statement):
        return self.left.pop(0) if self.left else False

    def num_fields(self, statement):
        return len(self.kinds)

    def field_name(self, statement, place):
        return f"C{place}"

    def field_type(self, statement, place):
        return self.kinds[place]

    def num_rows(self, statement):
        return 7

    def get_db_info(self, connection, what):
        return {17: "DB2/LINUXX8664", 18: "11.05.0900"}[what]

    def set_option(self, statement, options, kind):
        self._told("set_option", options, kind)

    def free_stmt(self, statement):
        self._told("free_stmt")

    def autocommit(self, connection, value):
        self._told("autocommit", value)

    def commit(self, connection):
        self._told("commit")

    def rollback(self, connection):
        self._told("rollback")

    def close(self, connection):
        self._told("close")
        self.socket.close()


@pytest.fixture
def ibm_db(monkeypatch):
    result = Driver()
    monkeypatch.setitem(sys.modules, "ibm_db", result)
    monkeypatch.delitem(sys.modules, "webapp.connectors.db2.connection", raising=False)
    yield result
    sys.modules.pop("webapp.connectors.db2.connection", None)


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as created:
        yield created
