"""The way to Db2: settings, the driver's string, its calls, and verification, with and without the driver."""

from __future__ import annotations

import socket
import sys
import threading
from decimal import Decimal
from types import SimpleNamespace

import pytest

from tests.connectors.kinds import GATE
from tests.fakes.certificates import Authority
from webapp.connectors import db2, db2_errors
from webapp.connectors.base import ConnectorError, DriverMissing, Lost
from webapp.connectors.db2 import Db2Connector, dsn
from webapp.net.gate import Gate

CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"


def connector(gate=GATE, **settings):
    return Db2Connector(Db2Connector.Settings.model_validate(settings), gate)


def to(port, gate=GATE, **settings):
    given = {"host": "127.0.0.1", "port": port, "database": "D", "username": "u", "password": "p"}
    return connector(gate, **{**given, **settings})


@pytest.fixture
def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@pytest.fixture
def no_driver(monkeypatch):
    monkeypatch.setitem(sys.modules, "ibm_db", None)


# --- Settings -----------------------------------------------------------------------------------------------------


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
    way = connector(connection_string=text).way()
    assert way == db2.Way("db.example", 50001, "ORDERS", "shop", "p@ss", "S", "verify-ca")
    assert "p@ss" not in repr(way)


def test_parts_win_over_the_connection_string():
    way = connector(connection_string="db2://a:b@one/X", host="two", port=1, password="c", schema="S").way()
    assert (way.host, way.port, way.username, way.password, way.schema, way.tls) == (
        "two",
        1,
        "a",
        "c",
        "S",
        "disable",
    )


def test_a_certificate_asks_for_encryption():
    assert to(50_000, ca_certificate=CERTIFICATE).way().tls == "verify-ca"


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
def test_settings_that_lead_nowhere_are_told_at_the_first_stage(settings):
    assert [one.code for one in connector(**settings).stages()] == ["bad_settings"]


@pytest.mark.parametrize("key", ["host", "database", "username", "password"])
@pytest.mark.parametrize("value", ["x;TraceFileName=/tmp/x", "{x}", "x\ny"])
def test_no_setting_smuggles_a_keyword_into_the_driver(key, value):
    with pytest.raises(ConnectorError) as caught:
        to(50_000, **{key: value}).way()
    assert caught.value.reason == "bad_settings"
    assert value not in caught.value.message


@pytest.mark.parametrize("word", ["SSLServerCertificate=/etc/passwd", "TraceFileName=/tmp/x", "DSN=other"])
def test_a_keyword_of_a_connection_string_that_is_not_ours_is_refused(word):
    with pytest.raises(ConnectorError) as caught:
        connector(connection_string=f"DATABASE=D;HOSTNAME=h;UID=u;PWD=p;{word};").way()
    assert word.partition("=")[0] in caught.value.message


def test_the_driver_is_told_an_address_and_no_name():
    way = connector(connection_string="DATABASE=D;HOSTNAME=h;PROTOCOL=TCPIP;UID=u;PWD=p").way()
    assert dsn(way, "192.0.2.1", 10, None) == (
        "HOSTNAME=192.0.2.1;PORT=50000;PROTOCOL=TCPIP;ConnectTimeout=10;DATABASE=D;UID=u;PWD=p;"
    )


def test_encryption_verifies_against_the_certificate_that_was_given():
    way = to(50_000, ca_certificate=CERTIFICATE).way()
    assert "SECURITY=SSL;SSLClientHostnameValidation=Off;SSLServerCertificate=/x.pem;" in dsn(
        way, "192.0.2.1", 1, "/x.pem"
    )


# --- Verification -------------------------------------------------------------------------------------------------


def test_a_missing_driver_names_its_extra(no_driver):
    with pytest.raises(DriverMissing) as caught:
        Db2Connector.driver()
    assert (caught.value.code, caught.value.details) == ("driver_missing", {"extra": "db2"})
    assert "rowsmith-server[db2]" in caught.value.hint


def test_without_the_driver_the_stages_end_at_signing_in(no_driver):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        stages = list(to(port).stages())
    assert [(one.name, one.code) for one in stages] == [
        ("resolve", ""),
        ("connect", ""),
        ("auth", "driver_missing"),
    ]


def test_nobody_listening_is_told_at_its_stage(free_port):
    stages = list(to(free_port).stages())
    assert (stages[-1].name, stages[-1].code) == ("connect", "refused")


def test_a_closed_network_is_never_reached(ibm_db):
    closed = to(9, Gate())
    assert [one.code for one in closed.stages()] == ["not_allowed"]
    with pytest.raises(ConnectorError) as caught:
        closed.open()
    assert caught.value.code == "target_not_allowed"
    assert ibm_db.told == []


# --- The driver's calls, taken down by a module in its place ------------------------------------------------------


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
    made = Driver()
    monkeypatch.setitem(sys.modules, "ibm_db", made)
    monkeypatch.delitem(sys.modules, "webapp.connectors.db2_link", raising=False)
    yield made
    sys.modules.pop("webapp.connectors.db2_link", None)


@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture
def link(ibm_db, server):
    made = to(server.getsockname()[1], host="localhost")._link(5)
    ibm_db.told.clear()
    yield made
    made.close()


def test_the_driver_is_given_the_address_that_was_judged_and_commits_by_itself(ibm_db, server):
    link = to(server.getsockname()[1], host="localhost")._link(5)
    link.close()
    (_, said, options), *_ = ibm_db.told
    assert "HOSTNAME=127.0.0.1;" in said or "HOSTNAME=::1;" in said
    assert options == {ibm_db.SQL_ATTR_AUTOCOMMIT: ibm_db.SQL_AUTOCOMMIT_ON}
    assert ibm_db.told[-2:] == [("rollback",), ("close",)]


def test_a_driver_that_went_elsewhere_than_to_that_address_is_stopped(ibm_db, server):
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        ibm_db.led = elsewhere.getsockname()[1]
        stages = list(to(server.getsockname()[1]).stages())
    assert (stages[-1].name, stages[-1].code) == ("auth", "not_allowed")
    assert ibm_db.told[-1] == ("close",)


def test_the_certificate_is_a_file_for_as_long_as_the_driver_connects(ibm_db, server, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    to(server.getsockname()[1], ca_certificate=CERTIFICATE)._link(5).close()
    assert ibm_db.file[0].startswith(str(tmp_path))
    assert ibm_db.file[1] == CERTIFICATE
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_fell_silent_is_noticed(ibm_db, link):
    kept = ibm_db.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert (kept, ibm_db.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)) == (1, 15)


def test_rows_come_with_their_names_and_exact_decimals(ibm_db, link):
    ibm_db.kinds, ibm_db.rows = ["int", "decimal"], [(1, "1.50"), (2, None)]
    names, rows = link.ask("SELECT", (3,), 2.5)
    assert (names, [tuple(row) for row in rows]) == (["C0", "C1"], [(1, Decimal("1.50")), (2, None)])
    assert ibm_db.told == [
        ("prepare", "SELECT"), ("set_option", {ibm_db.SQL_ATTR_QUERY_TIMEOUT: 2}, 0), ("execute", (3,)), ("free_stmt",),
    ]  # fmt: skip


def test_a_long_answer_comes_piece_by_piece(ibm_db, link):
    ibm_db.rows = [(one,) for one in range(5)]
    assert [len(rows) for _, rows in link.stream("SELECT", 2)] == [2, 2, 1]
    assert ibm_db.told[-1] == ("free_stmt",)


def test_a_transaction_ends_in_autocommit(ibm_db, link):
    link.begin()
    assert link.run("INSERT") == 7
    link.commit()
    assert ibm_db.told == [
        ("autocommit", 0), ("exec_immediate", "INSERT"), ("free_stmt",), ("commit",), ("autocommit", 1),
    ]  # fmt: skip


def test_what_the_driver_raises_comes_out_as_ours(ibm_db, link):
    ibm_db.fails["exec_immediate"] = (
        "[IBM][CLI Driver][DB2/LINUXX8664] SQL0204N  x  SQLSTATE=42704 SQLCODE=-204"
    )
    with pytest.raises(ConnectorError) as caught:
        link.run("SELECT")
    assert (caught.value.reason, caught.value.details["native"]) == ("no_table", "-204")


def test_another_thread_ends_the_wait_for_the_server(ibm_db, link):
    ibm_db.waits = threading.Event()
    ended = []

    def wait():
        try:
            link.run("SELECT")
        except Lost as error:
            ended.append(error.reason)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert ibm_db.waits.wait(10)
    link.cut()
    waiting.join(10)
    assert ended == ["lost"]
    link.close()
    link.cut()  # harmless


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            'SQL30082N  Security processing failed with reason "24".  SQLSTATE=08001 SQLCODE=-30082',
            "auth_failed",
        ),
        ("SQL1013N  The database could not be found.  SQLSTATE=42705 SQLCODE=-1013", "no_database"),
        ("SQL30081N  A communication error.  SQLSTATE=08001 SQLCODE=-30081", "refused"),
        (
            "SQL20576N  A TLS connection could not be established.  SQLSTATE=08001 SQLCODE=-20576",
            "tls_failed",
        ),
    ],
)
def test_what_fails_at_signing_in_is_told_at_its_stage(ibm_db, server, said, reason):
    ibm_db.fails["connect"] = f"[IBM][CLI Driver] {said}"
    stages = list(to(server.getsockname()[1]).stages())
    assert (stages[-1].name, stages[-1].code) == ("auth", reason)


# --- The real driver, where it is installed -----------------------------------------------------------------------


@pytest.fixture
def real():
    return pytest.importorskip("ibm_db", reason="the extra [db2] is not installed")


def test_the_real_driver_is_found(real):
    assert Db2Connector.driver() is real


def test_the_real_driver_says_in_time_that_nobody_answers(real, server):
    said = dsn(to(server.getsockname()[1]).way(), "127.0.0.1", 1, None)
    with pytest.raises(Exception, match="SQL30081N") as caught:
        real.connect(said, "", "")
    assert isinstance(db2_errors.converted(str(caught.value)), Lost)


@pytest.fixture
def heard(server):
    """What a server that is no Db2 hears before it hangs up, and how it may speak TLS."""
    found = SimpleNamespace(said=[], tls=None)

    def hang_up():
        while True:
            try:
                one, _ = server.accept()
            except OSError:
                return
            try:
                with found.tls.wrap_socket(one, server_side=True) if found.tls else one as speaking:
                    found.said.append(speaking.recv(10)[2:3])
            except OSError:
                found.said.append(b"no TLS")

    threading.Thread(target=hang_up, daemon=True).start()
    return found


DRDA = b"\xd0"  # how its messages begin


def test_a_server_that_is_not_db2_fails_at_signing_in_and_is_not_asked_again(real, server, heard):
    stages = list(to(server.getsockname()[1]).stages())
    assert [(one.name, one.code) for one in stages] == [("resolve", ""), ("connect", ""), ("auth", "refused")]
    assert [one for one in heard.said if one] == [DRDA]


def test_the_certificate_that_was_given_is_the_one_that_counts(real, server, heard, tmp_path):
    folders = [tmp_path / "ours", tmp_path / "theirs"]
    for folder in folders:
        folder.mkdir()
    ours, theirs = map(Authority, folders)
    heard.tls = ours.server("db.example")
    for authority, code, said in ((ours, "refused", DRDA), (theirs, "tls_failed", b"no TLS")):
        stages = list(to(server.getsockname()[1], ca_certificate=authority.file.read_text()).stages())
        assert (stages[-1].name, stages[-1].code) == ("auth", code)
        assert heard.said[-1] == said
