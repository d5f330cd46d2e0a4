"""What a program reaches: the API and the internet, and nothing else."""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import replace

import pytest

from jobs.sandbox import Unprotected, mode
from tests.jobs.sandboxing import Lab, Listener, folders, own_address
from webapp.net import addresses


@pytest.fixture(params=["bubblewrap", "bubblewrap without asking", "landlock"])
def lab(request):
    name, _, less = request.param.partition(" ")
    try:
        way = mode(name)
    except Unprotected as error:
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
    made = Listener()
    yield made
    made.close()


@pytest.fixture
def canary():
    made = Listener()
    yield made
    made.close()


@pytest.fixture
def outside():
    host = own_address()
    if host is None:
        pytest.skip("this machine has no address but loopback")
    made = Listener(host)
    yield made
    made.close()


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


def test_the_api_knows_a_program_by_its_address_whatever_the_program_does(lab, api, canary):
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
    ended = lab.run(source, network="api", api=api.address, env=env(api, canary), api_source=addresses.RUNS)
    assert ended.output.startswith("hello\n"), ended.output
    assert set(api.peers) == {addresses.RUNS}
    assert len(api.peers) >= 2


def test_nothing_is_reached_where_there_is_no_network(lab, api, canary):
    source = COMING + "print(come('127.0.0.1', API) != 'hello', come('127.0.0.1', CANARY) != 'hello')"
    ended = lab.run(source, network="none", api=api.address, env=env(api, canary))
    assert ended.output == "True True\n"
    assert api.visits == canary.visits == 0


def test_what_the_operator_opens_is_reached_in_full_alone(asking, api, canary, outside):
    source = COMING + "print(come(os.environ['HOST'], int(os.environ['PORT'])))"
    given = {"api": api.address, "env": env(api, canary, HOST=outside.address[0], PORT=outside.port)}
    opened = (f"{outside.address[0]}/32",)
    assert asking.run(source, network="full", networks=opened, **given).output == "hello\n"
    assert asking.run(source, network="full", **given).output == "Permission denied\n"
    assert asking.run(source, network="api", networks=opened, **given).output == "Permission denied\n"
    assert outside.visits == 1


def test_who_does_not_wait_for_a_connection_gets_it_too_with_the_options_it_has_set(asking, api, canary):
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


def test_a_refused_connection_is_refused_and_a_slow_one_ends_in_the_callers_time(
    asking, api, canary, outside
):
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
        given = env(api, canary, HOST=outside.address[0], PORT=free.getsockname()[1])
        ended = asking.run(
            source, network="full", networks=(f"{outside.address[0]}/32",), api=api.address, env=given
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


def test_names_are_asked_for_at_the_name_servers_of_the_box(lab, api):
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
        server.close()


def test_without_asking_http_goes_through_a_proxy_that_judges_as_well(lab, canary):
    if lab.way.notify:
        pytest.skip("programs connect by themselves")
    import http.server

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
