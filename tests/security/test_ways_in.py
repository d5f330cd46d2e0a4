"""No setting of a connection leads to a network that the operator did not open, nor to a file of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.net.ways import CLOSED, HERE, METADATA, Canary
from webapp.connectors import KINDS
from webapp.connectors.base import ConnectorError
from webapp.net.gate import Gate

NETWORKED = [kind for kind, connector in KINDS.items() if "host" in connector.Settings.model_fields]
# One of each kind of trick; the guard's own test tries them all.
TRICKS = [
    HERE[0],
    "0x7f.1",
    "2130706433",
    "localhost",
    "::1",
    "::ffff:127.0.0.1",
    "0.0.0.0",
    METADATA[0],
    CLOSED[0],
]

STRINGS = {
    "postgresql": [
        "postgresql://u:p@127.0.0.1:{port}/db",
        "postgresql://u:p@203.0.113.1,127.0.0.1:{port}/db",
        "postgresql://u:p@203.0.113.1:1,127.0.0.1:{port}/db",
        "postgresql://u:p@%2Fvar%2Frun%2Fpostgresql:{port}/db",
        "postgresql://u:p@/db?host=/var/run/postgresql&port={port}",
        "postgresql://u:p@/db?host=127.0.0.1&port={port}",
        "postgresql://u:p@203.0.113.1/db?host=127.0.0.1&port={port}",
        "postgresql://u:p@203.0.113.1:{port}/db?hostaddr=127.0.0.1",
        "host=203.0.113.1 hostaddr=127.0.0.1 port={port} user=u",
        "hostaddr=127.0.0.1 port={port} user=u",
        "host=@abstract port={port}",
        "host='' port={port}",
        "port={port} user=u",
        "service=evil",
        "host=127.0.0.1 port={port} servicefile=/etc/passwd",
        "host=127.0.0.1 port={port} passfile=/etc/passwd",
        "host=127.0.0.1 port={port} sslrootcert=/etc/passwd",
        "host=127.0.0.1 port={port} sslcert=/etc/passwd sslkey=/etc/passwd",
        "host=127.0.0.1 port={port} replication=database",
        "jdbc:postgresql://127.0.0.1:{port}/db?socketFactory=x",
        "postgresql+psycopg://u:p@127.0.0.1:{port}/db",
    ],
    "mysql": [
        "mysql://u:p@127.0.0.1:{port}/db",
        "mysql+pymysql://u:p@127.0.0.1:{port}/db",
        "mysql://u:p@203.0.113.1,127.0.0.1:{port}/db",
        "mysql://u:p@/db?unix_socket=/var/run/mysqld/mysqld.sock",
        "mysql://u:p@localhost:{port}/db?unix_socket=/run/mysqld/mysqld.sock",
        "mysql://u:p@%2Frun%2Fmysqld%2Fmysqld.sock/db",
        "mysql://u:p@localhost:{port}/db?read_default_file=/etc/mysql/my.cnf",
        "mysql://u:p@localhost:{port}/db?local_infile=1&ssl_ca=/etc/passwd",
        "mysql://u:p@127.1:{port}/db?host=203.0.113.1",
        "mysql://u:p@203.0.113.1/db?host=127.0.0.1&port={port}",
    ],
    "mongodb": [
        "mongodb://u:p@127.0.0.1:{port}/db",
        "mongodb://u:p@127.0.0.1:{port},203.0.113.1:{port}/db",
        "mongodb://u:p@203.0.113.1:1,127.0.0.1:{port}/db",
        "mongodb://u:p@%2Ftmp%2Fmongodb.sock/db",
        "mongodb://u:p@127.0.0.1:{port}/db?tlsCAFile=/etc/passwd&tls=true",
        "mongodb://u:p@127.0.0.1:{port}/db?tlsCertificateKeyFile=/etc/passwd",
        "mongodb://u:p@203.0.113.1/db?proxyHost=127.0.0.1&proxyPort={port}",
        "mongodb://u:p@127.0.0.1:{port}/db?authMechanism=MONGODB-AWS",
        "mongodb+srv://u:p@127.0.0.1/db",
    ],
}


@pytest.fixture
def settings(settings):
    """The operator opened nothing."""
    return replace(settings, target_networks=("none",))


@pytest.fixture
def edith(api, cast):
    return api(cast.edith)


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    result = Canary()
    yield result
    result.close()


def refused_everywhere(kind: str, settings: dict[str, object]) -> None:
    """Neither verifying nor opening gets anywhere."""
    connector = KINDS[kind]
    try:
        result = connector(connector.Settings.model_validate(settings), Gate())
    except ValueError:
        return
    stages = list(result.stages())
    assert (stages[-1].name, stages[-1].ok) == ("resolve", False), stages
    with pytest.raises(ConnectorError):
        result.open(1.0)


@pytest.mark.parametrize("host", TRICKS)
@pytest.mark.parametrize("kind", NETWORKED)
def test_no_host_leads_into_a_closed_network(canary, kind, host):
    refused_everywhere(kind, {"host": host, "port": canary.port, "username": "u", "password": "p"})
    assert canary.count == 0


@pytest.mark.parametrize(
    "host", ["/var/run/postgresql", "/run/mysqld/x.sock", "@abstract", "203.0.113.1,127.0.0.1"]
)
@pytest.mark.parametrize("kind", NETWORKED)
def test_sockets_of_the_file_system_and_lists_of_hosts_are_not_taken(canary, kind, host):
    refused_everywhere(kind, {"host": host, "port": canary.port, "username": "u", "password": "p"})
    assert canary.count == 0


@pytest.mark.parametrize(
    ("kind", "text"), [(kind, text) for kind, texts in STRINGS.items() for text in texts]
)
def test_no_connection_string_leads_into_a_closed_network(canary, kind, text):
    refused_everywhere(kind, {"connection_string": text.format(port=canary.port)})
    assert canary.count == 0


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("postgresql", {"hostaddr": "127.0.0.1"}),
        ("postgresql", {"service": "x"}),
        ("postgresql", {"sslrootcert": "/etc/passwd"}),
        ("postgresql", {"passfile": "/etc/passwd"}),
        ("mysql", {"unix_socket": "/run/mysqld/mysqld.sock"}),
    ],
)
def test_options_lead_nowhere_else(canary, kind, options):
    refused_everywhere(kind, {"host": "127.0.0.1", "port": canary.port, "options": options})
    assert canary.count == 0


@pytest.mark.parametrize("kind", NETWORKED)
def test_the_api_says_that_the_network_is_closed_and_who_opens_it(edith, canary, kind):
    settings = {"host": "127.0.0.1", "port": canary.port, "username": "u", "password": "p", "database": "d"}
    answer = edith.post("/connections", json={"name": "x", "type": kind, "settings": settings})
    result = answer.json
    last = result["verification"]["stages"][-1]
    if last["code"] == "driver_missing":
        pytest.skip(f"the driver for {kind} is not installed")
    assert (last["name"], last["code"]) == ("resolve", "not_allowed")
    assert "TARGET_NETWORKS" in last["hint"]
    answer = edith.get(f"/connections/{result['id']}/metadata")
    assert (answer.status_code, answer.json["error"]["code"]) == (403, "target_not_allowed")
    assert canary.count == 0


@pytest.mark.parametrize(
    "file",
    ["../rowsmith.db", "/etc/passwd", "..", ".", "a/b.db", "a\\b.db", "\0", "x\0.db", "file:/etc/passwd", ":memory:",
     "file:x?mode=rw", "x.db-wal", ".hidden", "-x", " x", "sqlite:////etc/passwd", "a" * 300],
)  # fmt: skip
def test_a_file_is_stored_in_the_workspaces_folder(edith, settings, cast, file):
    value = {"connection_string": file} if file.startswith("sqlite:") else {"file": file}
    answer = edith.post("/connections", json={"name": "x", "type": "sqlite", "settings": value})
    assert answer.status_code in (400, 422), answer.text
    assert not (settings.data_dir / "targets").exists()
