"""Lists of hosts that a secret may be sent to."""

from __future__ import annotations

import pytest

from webapp.net import urls
from webapp.net.gate import Gate, GateError


@pytest.mark.parametrize(
    ("inputs", "stored"),
    [
        ("api.example.com", "api.example.com"),
        (" API.Example.COM. ", "api.example.com"),
        ("*.example.com", "*.example.com"),
        ("api.example.com:8443", "api.example.com:8443"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("10.0.0.5:5432", "10.0.0.5:5432"),
        ("::1", "::1"),
        ("[::1]:8080", "[::1]:8080"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("localhost", "localhost"),
    ],
)
def test_entries_are_stored_in_one_form(inputs, stored):
    assert urls.check_host_entry(inputs) == stored
    assert urls.check_host_entry(stored) == stored


@pytest.mark.parametrize(
    "inputs",
    [
        "", "*", "*.com", "*.*.example.com", "a.*.com", "https://api.example.com", "api.example.com/path",
        "user@host.com",
        "api.example.com:0", "api.example.com:65536", "api.example.com:http", "*.1.2.3.4", "a b.com", "a..com",
        "-a.com",
        "example.com\n", "exam\0ple.com", "${host}", "a" * 64 + ".com", "x." * 130 + "com",
    ],
)  # fmt: skip
def test_entries_that_are_no_hosts_are_rejected(inputs):
    if inputs == "example.com\n":
        assert urls.check_host_entry(inputs) == "example.com"
        return
    with pytest.raises(ValueError, match=r"host|port|wildcard"):
        urls.check_host_entry(inputs)


@pytest.mark.parametrize(
    "host",
    [
        "api.example.com", "API.EXAMPLE.COM", "api.example.com.", "Api.Example.Com.", "ａpi.example.com",
    ],
)  # fmt: skip
def test_spellings_of_an_allowed_host_match(host):
    assert urls.matches("api.example.com", host, 443)


@pytest.mark.parametrize(
    "host",
    [
        "example.com", "evil.com", "api.example.com.evil.com", "xapi.example.com", "api.example.com@evil.com",
        "api-example.com", "api.example.com\0.evil.com", "api.example.com/", "", ".", "аpi.example.com", "127.0.0.1",
        "api.example.com%2eevil.com", "a.api.example.com",
    ],
)  # fmt: skip
def test_other_hosts_do_not_match(host):
    assert not urls.matches("api.example.com", host, 443)


def test_a_wildcard_names_subdomains_and_not_the_domain():
    assert urls.matches("*.example.com", "a.example.com", 1)
    assert urls.matches("*.example.com", "a.b.example.com", 1)
    for host in ("example.com", "badexample.com", "example.com.evil.com", "*.evil.com", ".example.com"):
        assert not urls.matches("*.example.com", host, 1)


def test_a_port_is_part_of_the_entry_where_it_has_one():
    assert urls.matches("a.example:8443", "a.example", 8443)
    assert not urls.matches("a.example:8443", "a.example", 443)
    assert urls.matches("[::1]:80", "::1", 80)
    assert not urls.matches("[::1]:80", "::1", 81)
    assert urls.matches("::1", "0:0::1", 81)


def test_the_gate_opens_the_hosts_of_every_secret_and_no_other():
    gate = Gate(["127.0.0.0/8"], {"a": ["127.0.0.1", "127.0.0.2"], "b": ["127.0.0.2:80"]})
    assert gate.addresses("127.0.0.2", 80) == ["127.0.0.2"]
    for host, port in (
        ("127.0.0.1", 80),
        ("127.0.0.2", 81),
        ("127.0.0.3", 80),
        ("127.1", 80),
        ("2130706434", 80),
    ):
        with pytest.raises(GateError) as found:
            gate.addresses(host, port)
        assert found.value.reason == "secret_host", (host, port)
    assert gate.without_secrets().addresses("127.0.0.3", 80) == ["127.0.0.3"]


def test_a_host_is_checked_before_it_is_resolved(monkeypatch):
    """Otherwise a secret in a host name would reach the name server of its domain."""
    monkeypatch.setattr("socket.getaddrinfo", lambda *_args, **_how: pytest.fail("a name was looked up"))
    with pytest.raises(GateError):
        Gate([], {"a": ["api.example.com"]}).addresses("s3cret.evil.example", 443)
