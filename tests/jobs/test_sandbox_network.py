"""What a program reaches: the API and the internet, and nothing else."""

from __future__ import annotations

import errno
import http.server
import os
import socket
import threading
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest

from jobs.sandbox import SandboxUnavailable, mode, network_access
from jobs.sandbox import seccomp as seccomp_notify
from jobs.scenarios import program
from tests.conftest import VAULT_KEY
from tests.jobs.sandboxing import Lab, Listener, folders, own_address
from webapp.config import Settings
from webapp.config.values import Scanner
from webapp.net import addresses
from webapp.scenarios.models import Run


@pytest.fixture(params=["bubblewrap", "bubblewrap without asking", "landlock"])
def lab(request):
    name, _, less = request.param.partition(" ")
    try:
        way = mode(name)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    if not less and not way.notify:
        pytest.skip("this kernel does not ask")
    with folders() as top:
        yield Lab(top, replace(way, notify=False) if less else way)


@pytest.fixture
def asking(lab):
    if not lab.way.notify:
        pytest.skip("without asking there is a proxy instead")
    return lab


@pytest.fixture
def api():
    result = Listener()
    yield result
    result.close()


@pytest.fixture
def canary():
    result = Listener()
    yield result
    result.close()


@pytest.fixture
def outside():
    host = own_address()
    if host is None:
        pytest.skip("this machine has no address but loopback")
    result = Listener(host)
    yield result
    result.close()


COMING = """
import os, socket
def come(host, port, wait=5.0):
    try:
        with socket.create_connection((host, port), wait) as one:
            return one.recv(10).decode()
    except OSError as error:
        return error.strerror or str(error)
API, CANARY = int(os.environ["API"]), int(os.environ["CANARY"])
"""


def env(api: Listener, canary: Listener, **more: object) -> dict[str, str]:
    return {
        "API": str(api.port),
        "CANARY": str(canary.port),
        **{name: str(value) for name, value in more.items()},
    }


@pytest.mark.parametrize("network", ["full", "api"])
def test_the_api_is_reached_under_its_own_address_and_other_services_of_the_host_are_not(
    lab, network, api, canary
):
    source = COMING + "print(come('127.0.0.1', API)); print(come('127.0.0.1', CANARY) != 'hello')"
    ended = lab.run(source, network=network, api=api.address, env=env(api, canary))
    assert ended.output == "hello\nTrue\n"
    assert (api.visits, canary.visits) == (1, 0)


def test_the_api_identifies_a_program_by_its_address(lab, api, canary):
    source = (
        COMING
        + """
print(come("127.0.0.1", API))
for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
    one = socket.socket(family)
    one.settimeout(5)
    try:
        one.bind((host, 0))
        one.connect(("::ffff:127.0.0.1" if family == socket.AF_INET6 else "127.0.0.1", API))
        one.recv(10)
        one.connect_ex(("", 0))
    except OSError as error:
        print(error)
    one.close()
again = socket.socket()
again.settimeout(5)
again.connect(("127.0.0.1", API))
again.recv(10)
import ctypes
libc = ctypes.CDLL(None)
libc.connect(again.fileno(), bytes(16), 16)  # disconnects
try:
    again.connect(("127.0.0.1", API))
    again.recv(10)
except OSError as error:
    print(error)
"""
    )
    ended = lab.run(
        source,
        network="api",
        api=api.address,
        env=env(api, canary),
        api_source=addresses.SCENARIO_RUN_ADDRESS,
    )
    assert ended.output.startswith("hello\n"), ended.output
    assert set(api.peers) == {addresses.SCENARIO_RUN_ADDRESS}
    assert len(api.peers) >= 2


def test_no_host_is_reachable_without_a_network(lab, api, canary):
    source = COMING + "print(come('127.0.0.1', API) != 'hello', come('127.0.0.1', CANARY) != 'hello')"
    ended = lab.run(source, network="none", api=api.address, env=env(api, canary))
    assert ended.output == "True True\n"
    assert api.visits == canary.visits == 0


def test_networks_opened_by_the_operator_are_the_only_reachable_ones(asking, api, canary, outside):
    source = COMING + "print(come(os.environ['HOST'], int(os.environ['PORT'])))"
    value = {"api": api.address, "env": env(api, canary, HOST=outside.address[0], PORT=outside.port)}
    opened = (f"{outside.address[0]}/32",)
    assert asking.run(source, network="full", networks=opened, **value).output == "hello\n"
    assert asking.run(source, network="full", **value).output == "Permission denied\n"
    assert asking.run(source, network="api", networks=opened, **value).output == "Permission denied\n"
    assert outside.visits == 1


class Erp(http.server.ThreadingHTTPServer):
    """An internal program of the operator's, on one address of loopback. It sends who asks for /away to `away`."""

    daemon_threads = True

    def __init__(self, host: str, away: str = "") -> None:
        erp = self
        self.peers: list[str] = []

        class Page(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                erp.peers.append(self.client_address[0])
                self.send_response(302 if self.path == "/away" else 200)
                self.send_header("Location", away)
                self.end_headers()
                self.wfile.write(b"" if self.path == "/away" else b"orders")

            def log_message(self, *_) -> None:
                pass

        super().__init__((host, 0), Page)
        self.place = f"{host}:{self.server_port}"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()


FETCHING = """
import os, urllib.error, urllib.request
def fetch(place):
    try:
        return urllib.request.urlopen(f"http://{place}", timeout=5).read(20).decode()
    except urllib.error.HTTPError as error:
        return f"closed {error.code}"
    except urllib.error.URLError as error:
        return "closed" if isinstance(error.reason, OSError) and not isinstance(error.reason, TimeoutError) else error
    except OSError as error:
        return f"odd: {error!r}"
for place in os.environ["PLACES"].split():
    print(fetch(place))
"""


def erp_of(request, **given) -> Erp:
    """An ERP that ends with the test."""
    erp = Erp("127.0.0.7", **given)
    request.addfinalizer(erp.server_close)
    request.addfinalizer(erp.shutdown)
    return erp


def test_an_erp_in_an_opened_network_answers_and_the_parts_of_the_service_do_not(lab, request, canary):
    """All of loopback is opened; what listens at the canary's port is ours."""
    twin = Listener("127.0.0.2", canary.port)  # another server at that port: the part might listen there too
    request.addfinalizer(twin.close)
    erp = erp_of(request, away=f"http://127.0.0.2:{canary.port}/")
    spellings = (
        "127.0.0.1",
        "127.0.0.2",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:2]",
        "0.0.0.0",
        "127.2",
        "2130706434",
    )
    places = [erp.place, f"{erp.place}/away", *(f"{spelling}:{canary.port}" for spelling in spellings)]
    value = {
        "network": "full",
        "env": {"PLACES": " ".join(places)},
        "api_source": addresses.SCENARIO_RUN_ADDRESS,
    }
    hidden = (("localhost", canary.port),)
    for networks in (("127.0.0.0/8",), ("0.0.0.0/0", "::/0")):
        ended = lab.run(FETCHING, networks=networks, hidden=hidden, **value)
        first, *others = ended.output.splitlines()
        assert first == "orders"
        assert len(others) == len(places) - 1
        assert [other for other in others if not other.startswith("closed")] == []
        assert set(erp.peers) == {addresses.SCENARIO_RUN_ADDRESS}, (
            "on loopback, programs have a different source address"
        )
    assert canary.visits == twin.visits == 0
    if lab.way.notify:
        lab.run(FETCHING, networks=("127.0.0.0/8",), **value)
        assert twin.visits > 0, "it is the rule about our parts that keeps a program away from it"


@pytest.mark.parametrize(
    ("network", "networks"),
    [("full", ()), ("full", ("127.0.0.8/29", "10.0.0.0/8")), ("api", ("127.0.0.0/8",))],
)
def test_an_erp_stays_closed_where_its_network_or_the_scenarios_is(lab, request, network, networks):
    erp = erp_of(request)
    ended = lab.run(FETCHING, network=network, networks=networks, env={"PLACES": erp.place})
    assert ended.output.startswith("closed")
    assert erp.peers == []


def test_a_private_address_outside_of_the_opened_networks_is_never_connected_to(lab, monkeypatch):
    """Nothing here leaves this machine: connections are noted down and refused."""
    noted = []

    def call(name, one, *arguments):
        target = network_access.parse_sockaddr(arguments[0]) if name == "connect" else None
        if target is None or target.address.is_loopback:
            return real(name, one, *arguments)
        noted.append(f"{target.address}:{target.port}")
        return errno.ECONNREFUSED

    def dial(place, *_):
        noted.append("{}:{}".format(*place))
        raise ConnectionRefusedError

    real = seccomp_notify.call_libc
    monkeypatch.setattr(seccomp_notify, "call_libc", call)
    monkeypatch.setattr(network_access.socket, "create_connection", dial)
    places = "10.1.2.3:80 10.1.2.4:81 192.168.0.9:80 [::ffff:10.1.2.3]:82 [::ffff:192.168.0.9]:80 169.254.169.254:80"
    ended = lab.run(
        FETCHING, network="full", networks=("10.1.2.3/32", "169.254.0.0/16"), env={"PLACES": places}
    )
    assert len(ended.output.splitlines()) == 6, ended.output
    assert noted == ["10.1.2.3:80", "10.1.2.3:82"]


def test_a_name_reaches_those_of_its_addresses_that_are_open(lab, request, canary, monkeypatch):
    """A name that changes its mind, too: each connection goes to an address that was judged."""
    if lab.way.notify:
        pytest.skip("the program resolves by itself there, and connects to addresses")
    erp, real = erp_of(request), network_access.socket.getaddrinfo
    answers = [["10.9.9.9", "127.0.0.7"], ["127.0.0.7"], ["127.0.0.1"], ["10.9.9.9", "127.0.0.1"]]

    def resolve(host, port, *rest, **more):
        if host != "erp.example":
            return real(host, port, *rest, **more)
        return [(2, 1, 6, "", (item, port)) for item in answers.pop(0)]

    monkeypatch.setattr(network_access.socket, "getaddrinfo", resolve)
    port = erp.server_port
    places = f"erp.example:{port} erp.example:{port} erp.example:{canary.port} erp.example:{canary.port}"
    hidden, env = (("127.0.0.1", canary.port),), {"PLACES": places}
    ended = lab.run(FETCHING, network="full", networks=("127.0.0.0/8",), hidden=hidden, env=env)
    assert ended.output == "orders\norders\nclosed 403\nclosed 403\n"
    assert (answers, canary.visits) == ([], 0)


def test_a_program_still_talks_to_itself_where_loopback_is_opened(lab, request):
    if lab.way.name == "landlock":
        pytest.skip("there it may not listen")
    other = Listener("127.0.0.7")
    request.addfinalizer(other.close)
    source = """
        import os, socket
        port = int(os.environ["PORT"])
        for family, host in ((socket.AF_INET, "127.0.0.7"), (socket.AF_INET6, "::")):
            with socket.create_server((host, port), family=family, dualstack_ipv6=family == socket.AF_INET6) as server:
                with socket.create_connection(("127.0.0.7", port)) as one:
                    server.accept()[0].send(b"mine")
                    print(one.recv(9))
    """
    ended = lab.run(source, network="full", networks=("127.0.0.0/8",), env={"PORT": str(other.port)})
    assert ended.output == "b'mine'\n" * 2
    assert other.visits == 0


def test_a_scenario_gets_the_networks_that_the_operator_named_and_no_part_of_the_service(
    lab, tmp_path, request
):
    parts = {name: Listener() for name in ("redis", "database", "storage", "scanner", "mail", "web")}
    erp = erp_of(request)
    for part in parts.values():
        request.addfinalizer(part.close)
    port = {name: part.port for name, part in parts.items()}
    value = {
        "secret_key": "0123456789abcdefghijklmnopqrstuvwxyz",
        "vault_keys": (VAULT_KEY,),
        "data_dir": tmp_path,
        "redis_url": f"redis://:secret@localhost:{port['redis']}/0",
        "database_url": f"postgresql://u:p@/d?host=localhost:{port['database']}",
        "storage_url": "s3://bucket",
        "aws_endpoint_url": f"http://localhost:{port['storage']}",
        "scanner": Scanner("", "127.0.0.1", port["scanner"]),
        "smtp_url": f"smtp://127.0.0.1:{port['mail']}?tls=off",
        "mail_from": "a@example.org",
        "host": "0.0.0.0",
        "port": port["web"],
        "tls_cert": __file__,
        "tls_key": __file__,
        "public_url": "https://data.example",
        "run_api_url": "https://api.example",
    }
    places = " ".join([erp.place, *(f"127.0.0.2:{address}" for address in port.values())])
    places += " " + " ".join(f"127.0.0.1:{address}" for address in port.values())
    run = Run(settings={"network": "full", "timeout_seconds": 60})
    place = SimpleNamespace(code=tmp_path, uploads=tmp_path, outputs=tmp_path)
    for networks, first in (((), "closed"), (("none",), "closed"), (("127.0.0.0/8",), "orders")):
        settings = Settings(**value, target_networks=networks)
        box = program.sandbox_spec(settings, run, place, tmp_path, {})
        ended = lab.run(
            FETCHING, network=box.network, networks=box.networks, hidden=box.hidden, env={"PLACES": places}
        )
        text = ended.output.splitlines()
        assert text[0].split()[0] == first
        assert len(text) == 13
        assert {item.split()[0] for item in text[1:]} == {"closed"}
    assert {name: part.visits for name, part in parts.items()} == dict.fromkeys(parts, 0)


def test_the_default_networks_of_connections_are_not_opened_to_programs(tmp_path):
    plain = Settings(secret_key="0123456789abcdefghijklmnopqrstuvwxyz", vault_keys=(VAULT_KEY,))
    assert "127.0.0.0/8" in plain.reachable_networks
    run = Run(settings={"network": "full", "timeout_seconds": 60})
    place = SimpleNamespace(code=tmp_path, uploads=tmp_path, outputs=tmp_path)
    assert program.sandbox_spec(plain, run, place, tmp_path, {}).networks == ()
    named = replace(plain, target_networks=("10.0.0.0/8",))
    assert program.sandbox_spec(named, run, place, tmp_path, {}).networks == ("10.0.0.0/8",)


def test_parts_of_the_service_are_read_from_the_settings():
    value = {"secret_key": "0123456789abcdefghijklmnopqrstuvwxyz", "vault_keys": (VAULT_KEY,)}
    plain = Settings(**value, redis_url="unix:///run/redis.sock")
    assert program.service_addresses(plain) == [("127.0.0.1", 8000)]
    several = Settings(
        **value,
        public_url="https://data.example",
        trusted_proxies=("172.30.7.0/24", "unix"),
        redis_url="rediss://cache",
        database_url="postgresql://u:p@/d?host=one:5433&host=two:5434",
    )
    assert program.service_addresses(several) == [
        ("127.0.0.1", 8000), ("data.example", 443), ("172.30.7.0/24", 8000), ("one", 5433), ("two", 5434),
        ("cache", 6379),
    ]  # fmt: skip
    by_socket = Settings(
        **value, database_url="postgresql://u@/d?host=/run/postgresql", redis_url="redis://h:1"
    )
    assert ("127.0.0.1", 5432) in program.service_addresses(by_socket)


def test_waiting_threads_get_a_connection_with_their_own_options(asking, api, canary):
    source = (
        COMING
        + """
import asyncio, fcntl, select
one = socket.socket()
one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
one.setblocking(False)
print(one.connect_ex(("127.0.0.1", API)) in (0, 115))
select.select([], [one], [], 5)
print(one.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), one.getpeername() == ("127.0.0.1", API))
print(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
flags = fcntl.fcntl(one, fcntl.F_GETFL)
print(one.getblocking(), bool(fcntl.fcntl(one, fcntl.F_GETFD) & 1), bool(flags & os.O_NONBLOCK))
kept = socket.socket()
os.set_inheritable(kept.fileno(), True)
kept.connect(("127.0.0.1", API))
print(os.get_inheritable(kept.fileno()), kept.recv(10))
async def main():
    reader, writer = await asyncio.open_connection("127.0.0.1", API)
    print(await reader.read())
    writer.close()
asyncio.run(main())
"""
    )
    ended = asking.run(source, network="full", api=api.address, env=env(api, canary))
    assert ended.output.splitlines() == [
        "True", "0 True", "1 1", "False True True", "True b'hello'", "b'hello'",
    ], ended.output  # fmt: skip


def test_a_refused_connection_is_reported_and_a_slow_one_times_out(asking, api, canary, outside):
    with socket.socket() as free:
        free.bind((outside.address[0], 0))  # and does not listen
        source = (
            COMING
            + """
import time
host, port = os.environ["HOST"], int(os.environ["PORT"])
print(come(host, port))
one = socket.socket()
try:
    one.connect((host, port))
except OSError as error:
    print(error.strerror)
"""
        )
        value = env(api, canary, HOST=outside.address[0], PORT=free.getsockname()[1])
        ended = asking.run(
            source, network="full", networks=(f"{outside.address[0]}/32",), api=api.address, env=value
        )
    assert ended.output == "Connection refused\nConnection refused\n"


def test_a_program_may_talk_to_itself(lab):
    if lab.way.name == "landlock":
        pytest.skip("there it may not listen: the port would be the host's")
    ended = lab.run(
        """
        import multiprocessing, socket
        server = socket.create_server(("127.0.0.1", 0))
        one = socket.create_connection(server.getsockname())
        other, _ = server.accept()
        other.send(b"tcp")
        print(one.recv(9))
        unix = socket.socket(socket.AF_UNIX)
        unix.bind("socket")
        unix.listen()
        one = socket.socket(socket.AF_UNIX)
        one.connect("socket")
        print(unix.accept()[0].send(b"unix"), one.recv(9))
        first, second = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
        first.bind(("127.0.0.1", 0))
        second.connect(first.getsockname())
        second.send(b"udp")
        print(first.recv(9))
        if __name__ == "__main__":
            with multiprocessing.Manager() as manager:
                print(manager.dict(a=1)["a"], multiprocessing.Pool(2).map(abs, [-1, -2]))
        """,
        network="full",
    )
    assert ended.output == "b'tcp'\n4 b'unix'\nb'udp'\n1 [1, 2]\n"


def test_names_are_resolved_by_the_name_servers_of_the_sandbox(lab, api):
    if lab.way.name == "landlock":
        pytest.skip("there the C library asks those of the host")
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        server.bind(("127.0.0.153", 53))
    except OSError as error:
        server.close()
        pytest.skip(f"port 53 is not ours: {error}")

    def answer() -> None:
        while True:
            try:
                question, client = server.recvfrom(512)
            except OSError:
                return
            if not question:
                return  # shut down
            ends = question.index(b"\0", 12) + 5
            four = question[ends - 4 : ends - 2] == b"\0\1"
            head = question[:2] + b"\x81\x80\0\1" + (b"\0\1" if four else b"\0\0") + bytes(4)
            record = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4" + bytes([192, 0, 2, 77]) if four else b""
            server.sendto(head + question[12:ends] + record, client)

    threading.Thread(target=answer, daemon=True).start()
    source = "import socket; print({one[4][0] for one in socket.getaddrinfo('erp.example', 443)})"
    try:
        ended = lab.run(source, network="full", resolvers=("127.0.0.153",), api=api.address)
        assert ended.output == "{'192.0.2.77'}\n"
        assert (
            "gaierror" in lab.run(source, network="api", resolvers=("127.0.0.153",), api=api.address).output
        )
    finally:
        with suppress(OSError):  # it is not connected, but the waiting thread is woken anyway
            server.shutdown(socket.SHUT_RDWR)
        server.close()


def test_without_asking_http_goes_through_a_proxy_that_judges_as_well(lab, canary):
    if lab.way.notify:
        pytest.skip("programs connect by themselves")

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"page " + self.path.encode())

        def log_message(self, *_):
            pass

    host = own_address()
    if host is None:
        pytest.skip("this machine has no address but loopback")
    with http.server.ThreadingHTTPServer((host, 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://{host}:{server.server_port}/a?b"
        source = """
            import os, urllib.error, urllib.request
            for place in os.environ["PLACES"].split():
                try:
                    print(urllib.request.urlopen(place, timeout=5).read().decode())
                except urllib.error.HTTPError as error:
                    print(error.code)
        """
        places = {"PLACES": f"{place} http://10.0.0.1/ http://[::ffff:127.0.0.1]:{canary.port}/"}
        ended = lab.run(source, network="full", networks=(f"{host}/32",), env=places)
        server.shutdown()
    assert ended.output == "page /a?b\n403\n403\n"
    assert canary.visits == 0


def test_a_thousand_connections_leave_nothing_open_in_the_worker(asking, api, canary):
    before = len(os.listdir("/proc/self/fd"))
    source = COMING + "print({come('127.0.0.1', API) for _ in range(1000)})"
    ended = asking.run(source, network="api", api=api.address, env=env(api, canary))
    assert ended.output == "{'hello'}\n"
    assert api.visits == 1000
    assert len(os.listdir("/proc/self/fd")) <= before + 1  # the server's last may still be closing
