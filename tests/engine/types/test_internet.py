"""IP addresses, host names and URLs: valid, but not in use by anyone."""

from __future__ import annotations

import ipaddress
import string

import pytest
from stdnum import mac

from tests.engine.types.made import assert_laws, bound, faults, table, values


@pytest.mark.parametrize(
    ("kind", "options"),
    [("url", {}), ("domain_name", {}), ("domain_name", {"tld": "co.uk"}), ("ipv4", {}), ("ipv4", {"private": True}),
     ("ipv4", {"cidr": "10.1.0.0/24"}), ("ipv6", {}), ("ipv6", {"cidr": "fe80::/10"}), ("mac_address", {}),
     ("user_agent", {}), ("http_method", {}), ("http_status", {}), ("mime_type", {}), ("file_name", {}),
     ("file_name", {"extension": "csv"}), ("password", {}), ("password", {"length": 4})],
)  # fmt: skip
def test_rows_depend_only_on_their_number(kind, options):
    assert_laws(kind, options)


def test_addresses_are_of_the_internet_and_spread_over_it():
    generated = [ipaddress.IPv4Address(text) for text in values("ipv4", 8192)]
    assert all(address.is_global and not address.is_multicast for address in generated)
    assert len({int(address) >> 24 for address in generated}) > 200


def test_private_addresses_are_of_rfc_1918():
    networks = [ipaddress.IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")]
    generated = [ipaddress.IPv4Address(text) for text in values("ipv4", 8192, options={"private": True})]
    seen = {network for address in generated for network in networks if address in network}
    assert seen == set(networks)
    assert all(any(address in network for network in networks) for address in generated)


def test_addresses_of_a_network_leave_out_its_own_and_the_broadcast_address():
    generated = set(values("ipv4", 254, options={"cidr": "192.0.2.77/24"}, unique=True))
    assert generated == {str(host) for host in ipaddress.IPv4Network("192.0.2.0/24").hosts()}
    assert set(values("ipv4", 20, options={"cidr": "192.0.2.4/32"})) == {"192.0.2.4"}
    assert set(values("ipv4", 200, options={"cidr": "192.0.2.4/31"})) == {"192.0.2.4", "192.0.2.5"}


def test_invalid_networks_are_rejected():
    assert faults("ipv4", {"cidr": "10.0.0.0/33"}) == {"options.cidr": "wrong_format"}
    assert faults("ipv4", {"cidr": "10.0.0.0/8", "private": True}) == {"options.private": "conflict"}
    assert faults("ipv6", {"cidr": "2001:db8::/129"}) == {"options.cidr": "wrong_format"}


@pytest.mark.parametrize(
    "cidr", ["2001:db8::/32", "2001:db8::/64", "fe80::/10", "::/0", "fd00::/8", "2001:db8:0:7::/120", "::1/128",
             "2001:db8:0:0:100::/72", "1:0:0:2:0:0:0:0/96"],
)  # fmt: skip
def test_ipv6_addresses_are_in_their_network_and_formatted_as_in_rfc_5952(cidr):
    network = ipaddress.IPv6Network(cidr)
    for text in values("ipv6", 300, options={"cidr": cidr}):
        assert ipaddress.IPv6Address(text) in network
        assert str(ipaddress.IPv6Address(text)) == text


def test_mac_addresses_are_local_and_of_one_card():
    for separator in (":", "-"):
        generated = values("mac_address", 5000, options={"separator": separator})
        assert all(
            mac.is_valid(text) and mac.is_unicast(text) and mac.is_locally_administered(text)
            for text in generated
        )
        assert all(text.count(separator) == 5 for text in generated)
    dotted = values("mac_address", 20, options={"separator": "."})
    assert all(len(text) == 14 and text[4] == text[9] == "." for text in dotted)


def test_sites_lie_under_reserved_names():
    ends = (".example", ".example.com", ".example.net", ".example.org")
    generated = values("domain_name", 8192)
    assert all(name.endswith(ends) for name in generated)
    assert {next(e for e in sorted(ends, key=len, reverse=True) if n.endswith(e)) for n in generated} == set(
        ends
    )
    for url in values("url", 500):
        scheme, _, rest = url.partition("://")
        assert scheme == "https"
        assert rest.partition("/")[0].endswith(ends)


def test_sites_have_the_requested_domain():
    assert all(name.endswith(".co.uk") for name in values("domain_name", 50, options={"tld": ".CO.UK"}))
    assert all(".dev/" in url for url in values("url", 50, options={"tld": "dev"}))
    assert faults("domain_name", {"tld": "-x-"}) == {"options.tld": "wrong_format"}


CLASSES = {
    "lower": string.ascii_lowercase,
    "upper": string.ascii_uppercase,
    "digits": string.digits,
    "symbols": string.punctuation,
}


@pytest.mark.parametrize("classes", [["lower"], ["digits", "upper"], list(CLASSES)])
@pytest.mark.parametrize("length", [4, 12, 30])
def test_passwords_hold_every_class_and_nothing_else(classes, length):
    for text in values("password", 500, options={"length": length, "classes": classes}):
        assert len(text) == length
        assert all(any(ch in CLASSES[name] for ch in text) for name in classes)
        assert all(any(ch in CLASSES[name] for name in classes) for ch in text)


def test_first_characters_of_passwords_are_of_every_class():
    firsts = {text[0] for text in values("password", 3000)}
    assert all(firsts & set(alphabet) for alphabet in CLASSES.values())


def test_passwords_too_short_for_every_class_are_rejected():
    assert faults("password", {"length": 3}) == {"options.length": "too_short"}
    assert faults("password", {"classes": []}) == {"options.classes": "too_short"}
    assert faults("password", {"classes": ["runes"]})["options.classes[0]"] == "literal_error"


def test_files_have_the_requested_extension():
    assert all(name.endswith(".csv") for name in values("file_name", 50, options={"extension": "csv"}))


def test_names_people_know_find_the_types():
    names = ("IPv4", "MAC Address", "Domain Name", "IP Address v6", "User Agent")
    assert set(table(bound([{"name": name, "type": name} for name in names]), 0, 1)) == set(names)
