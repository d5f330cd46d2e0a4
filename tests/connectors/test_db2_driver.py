"""The driver of Db2: its calls, taken down by a module in its place, and the real one, where it is installed."""

from __future__ import annotations

import socket
import threading
from decimal import Decimal
from types import SimpleNamespace

import pytest

from tests.connectors import db2_fixtures
from tests.connectors.db2_fixtures import CERTIFICATE, to
from tests.fakes.certificates import Authority
from webapp import limits
from webapp.connectors.base import ConnectionLost, ConnectorError
from webapp.connectors.db2 import errors as db2_errors
from webapp.connectors.db2.connector import Db2Connector, dsn
from webapp.net.gate import Gate

ibm_db = db2_fixtures.ibm_db
server = db2_fixtures.server


# --- Verification -------------------------------------------------------------------------------------------


def test_a_closed_network_is_never_reached(ibm_db):
    closed = to(9, Gate())
    assert [stage.code for stage in closed.stages()] == ["not_allowed"]
    with pytest.raises(ConnectorError) as caught:
        closed.open()
    assert caught.value.code == "target_not_allowed"
    assert ibm_db.told == []


@pytest.fixture
def link(ibm_db, server):
    result = to(server.getsockname()[1], host="localhost")._link(5)
    ibm_db.told.clear()
    yield result
    result.close()


# --- The driver's calls, taken down by a module in its place ------------------------------------------------


def test_the_driver_is_given_the_address_that_was_judged_and_commits_by_itself(ibm_db, server):
    link = to(server.getsockname()[1], host="localhost")._link(5)
    link.close()
    (_, text, options), *_ = ibm_db.told
    assert "HOSTNAME=127.0.0.1;" in text or "HOSTNAME=::1;" in text
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
    stored = ibm_db.socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    assert (stored, ibm_db.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)) == (1, 15)


def test_rows_come_with_their_names_and_exact_decimals(ibm_db, link):
    ibm_db.kinds, ibm_db.rows = ["int", "decimal"], [(1, "1.50"), (2, None)]
    names, rows = link.query("SELECT", (3,), None, 2.5)
    assert (names, [tuple(row) for row in rows]) == (["C0", "C1"], [(1, Decimal("1.50")), (2, None)])
    assert ibm_db.told == [
        ("prepare", "SELECT"), ("set_option", {ibm_db.SQL_ATTR_QUERY_TIMEOUT: 2}, 0), ("execute", (3,)), ("free_stmt",),
    ]  # fmt: skip


def test_an_answer_of_wide_rows_comes_piece_by_piece(ibm_db, link, monkeypatch):
    monkeypatch.setattr(limits, "QUERY_BATCH_BYTES", 2_000)
    ibm_db.rows = [("x" * 1_000,) for _ in range(5)]
    assert [len(rows) for _, rows in link.stream("SELECT")] == [2, 2, 1]
    assert ibm_db.told[-1] == ("free_stmt",)


def test_a_transaction_ends_in_autocommit(ibm_db, link):
    link.begin()
    assert link.run("INSERT") == 7
    link.commit()
    assert ibm_db.told == [
        ("autocommit", 0), ("exec_immediate", "INSERT"), ("free_stmt",), ("commit",), ("autocommit", 1),
    ]  # fmt: skip


def test_exceptions_of_the_driver_are_converted(ibm_db, link):
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
        except ConnectionLost as error:
            ended.append(error.reason)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert ibm_db.waits.wait(10)
    link.abort()
    waiting.join(10)
    assert ended == ["lost"]
    link.close()
    link.abort()  # harmless


@pytest.mark.parametrize(
    ("text", "reason"),
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
def test_sign_in_failures_are_reported_at_their_stage(ibm_db, server, text, reason):
    ibm_db.fails["connect"] = f"[IBM][CLI Driver] {text}"
    stages = list(to(server.getsockname()[1]).stages())
    assert (stages[-1].name, stages[-1].code) == ("auth", reason)


@pytest.fixture
def real():
    return pytest.importorskip("ibm_db", reason="the extra [db2] is not installed")


# --- The real driver, where it is installed -----------------------------------------------------------------


def test_the_real_driver_is_found(real):
    assert Db2Connector.driver() is real


def test_the_real_driver_times_out_without_an_answer(real, server):
    text = dsn(to(server.getsockname()[1]).connect_options(), "127.0.0.1", 1, None)
    with pytest.raises(Exception, match="SQL30081N") as caught:
        real.connect(text, "", "")
    assert isinstance(db2_errors.convert_error(str(caught.value)), ConnectionLost)


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
    assert [(stage.name, stage.code) for stage in stages] == [
        ("resolve", ""),
        ("connect", ""),
        ("auth", "refused"),
    ]
    assert [item for item in heard.said if item] == [DRDA]


def test_the_certificate_that_was_given_is_the_one_that_counts(real, server, heard, tmp_path):
    folders = [tmp_path / "ours", tmp_path / "theirs"]
    for folder in folders:
        folder.mkdir()
    ours, theirs = map(Authority, folders)
    heard.tls = ours.server("db.example")
    for authority, code, text in ((ours, "refused", DRDA), (theirs, "tls_failed", b"no TLS")):
        stages = list(to(server.getsockname()[1], ca_certificate=authority.file.read_text()).stages())
        assert (stages[-1].name, stages[-1].code) == ("auth", code)
        assert heard.said[-1] == text
