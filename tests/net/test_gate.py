"""The address guard: however an address is written, what is closed is not reached."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from tests.net.ways import CLOSED, HERE, METADATA, Canary
from webapp.config import LOCAL_NETWORKS
from webapp.net.gate import Gate, GateError


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    result = Canary()
    yield result
    result.close()


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Every name has these addresses."""
    found = [
        (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))
        for address in addresses
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_how: found)


@pytest.mark.parametrize("host", HERE + CLOSED + METADATA)
def test_a_blocked_address_is_rejected_in_any_notation(canary, host):
    with pytest.raises(GateError) as refused:
        Gate().connect(host, canary.port, 1.0)
    assert refused.value.reason in ("not_allowed", "unresolved")
    assert canary.count == 0


@pytest.mark.parametrize("host", METADATA)
@pytest.mark.parametrize(
    "networks", [LOCAL_NETWORKS, ("0.0.0.0/0", "fc00::/6"), ("100.64.0.0/10", "192.0.0.0/24")]
)
def test_the_credentials_of_a_cloud_machine_stay_closed_in_a_network_that_is_open(host, networks):
    with pytest.raises(GateError):
        Gate(networks).addresses(host, 80)


def test_a_metadata_address_is_open_where_the_operator_names_it():
    assert Gate(["169.254.169.254/32"]).addresses("169.254.169.254", 80) == ["169.254.169.254"]
    with pytest.raises(GateError):
        Gate(["169.254.169.254/32"]).addresses("169.254.170.2", 80)


@pytest.mark.parametrize("host", ["127.0.0.1", "0x7f.1", "::1", "::ffff:127.0.0.1"])
def test_networks_opened_by_the_operator_are_reachable(host):
    canary = Canary()
    with Gate(LOCAL_NETWORKS).connect(host, canary.port, 5.0):
        pass
    canary.close()


@pytest.mark.parametrize("host", ["10.1.2.3", "172.20.0.1", "192.168.7.7", "fd12::1"])
def test_private_networks_are_open_in_a_local_set_up(host):
    assert Gate(LOCAL_NETWORKS).addresses(host, 80) == [host]


@pytest.mark.parametrize("host", ["8.8.8.8", "2606:4700::1111", "64:ff9b::8.8.8.8"])
def test_the_public_internet_is_open(host):
    assert Gate().addresses(host, 80)


def test_a_name_is_judged_by_what_it_resolves_to(monkeypatch, canary):
    resolving(monkeypatch, "127.0.0.1")
    with pytest.raises(GateError, match="connections are not allowed"):
        Gate().connect("innocent.example.org", canary.port, 1.0)
    assert canary.count == 0


def test_of_a_name_with_public_and_private_addresses_only_the_public_one_is_tried(monkeypatch):
    resolving(monkeypatch, "127.0.0.1", "8.8.8.8", "::1", "169.254.169.254")
    assert Gate().addresses("both.example.org", 80) == ["8.8.8.8"]


def test_a_name_is_resolved_once_and_the_checked_address_is_used(monkeypatch):
    request, connected = [], []

    def once(*_args, **_how):
        request.append(1)
        address = "8.8.8.8" if len(request) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", once)
    monkeypatch.setattr(socket, "create_connection", lambda where, _timeout: connected.append(where[0]))
    Gate().connect("fickle.example.org", 80, 1.0)
    assert (len(request), connected) == (1, ["8.8.8.8"])


def test_a_name_with_many_silent_addresses_takes_no_longer_than_its_time(monkeypatch):
    clock = [0.0]

    def silent(_where, timeout):
        clock[0] += timeout
        raise TimeoutError

    resolving(monkeypatch, *(f"8.8.8.{n}" for n in range(200)))
    monkeypatch.setattr("webapp.net.gate.time.monotonic", lambda: clock[0])
    monkeypatch.setattr(socket, "create_connection", silent)
    with pytest.raises(GateError) as late:
        Gate().connect("many.example.org", 80, 3.0)
    assert (late.value.reason, clock[0]) == ("timeout", 3.0)
