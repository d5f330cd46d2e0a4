"""Keys, passwords, seals, and where a request came from."""

from __future__ import annotations

import hashlib
import os

import argon2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp import limits
from webapp.net import addresses
from webapp.net.addresses import Proxies
from webapp.security import keys, passwords, sealing


def test_passwords_are_hashed_with_owasps_parameters():
    found = argon2.PasswordHasher(
        time_cost=limits.ARGON2_PASSES, memory_cost=limits.ARGON2_MEMORY_KIB, parallelism=limits.ARGON2_LANES
    ).hash("x")
    assert found.startswith("$argon2id$v=19$m=19456,t=2,p=1$")


def test_a_password_is_known_by_its_hash_and_no_other_is():
    stored = passwords.hash_password("a horse")
    assert passwords.verify("a horse", stored)
    assert not passwords.verify("a house", stored)
    assert not passwords.verify("a horse", None)
    assert not passwords.verify("a horse", "no hash at all")


def test_the_password_of_an_unknown_user_is_never_right():
    assert not passwords.verify("nobody", None)


def test_a_hash_made_with_other_parameters_is_renewed():
    old = argon2.PasswordHasher(time_cost=3, memory_cost=64, parallelism=1).hash("x")
    assert passwords.needs_rehash(old)
    assert not passwords.needs_rehash(passwords.hash_password("x"))


def test_a_key_is_taken_apart_into_what_it_was_made_of():
    text, handle, stored = keys.new_key(os.urandom)
    assert text.startswith(f"rws_{handle}_")
    found = keys.split_key(text)
    assert found[0] == handle
    assert keys.matches(found[1], stored)
    assert stored == hashlib.sha256(found[1].encode()).hexdigest()


def test_a_key_holds_256_bits_of_secret():
    low, _, _ = keys.new_key(bytes)
    high, _, _ = keys.new_key(lambda n: b"\xff" * n)
    assert low == "rws_" + "0" * 12 + "_" + "0" * 43
    secret = high.rsplit("_", 1)[1]
    assert sum(keys._ALPHABET.index(c) * 62**i for i, c in enumerate(secret)) == 2**256 - 1


@given(st.text())
def test_no_text_breaks_the_key_parser(text):
    assert keys.split_key(text) is None or keys._FORM.fullmatch(text)


def test_a_cut_or_lengthened_key_is_no_key():
    text, _, _ = keys.new_key(os.urandom)
    for wrong in (text[:-1], text + "0", " " + text, text + "\n", text.upper(), text.replace("_", "-")):
        assert keys.split_key(wrong) is None


def test_encrypted_data_can_only_be_decrypted_with_their_key():
    key = sealing.derive("s" * 32, "idempotency", "mine")
    sealed = sealing.seal(key, b"secret")
    assert b"secret" not in sealed
    assert sealing.unseal(key, sealed) == b"secret"
    assert sealing.unseal(sealing.derive("s" * 32, "idempotency", "yours"), sealed) is None
    assert sealing.unseal(key, sealed[:-2] + b"AA") is None


def test_each_purpose_has_its_own_key():
    assert len({sealing.derive("s" * 32, purpose) for purpose in ("cursor", "idempotency", "x")}) == 3


@given(st.text(), st.binary(min_size=32, max_size=32))
def test_unsigned_data_are_rejected(text, key):
    assert sealing.unsign(key, text) is None


def test_signed_data_are_returned_unchanged():
    key = sealing.derive("s" * 32, "cursor")
    assert sealing.unsign(key, sealing.sign(key, ["a", 1, None])) == ["a", 1, None]


PROXIES = Proxies(["10.0.0.0/8", "2001:db8::/32", "unix"])


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        ("203.0.113.9", "1.2.3.4", "203.0.113.9"),  # no trusted proxy sent it
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "1.2.3.4, 203.0.113.9", "203.0.113.9"),  # the left one is the client's own word
        ("10.0.0.1", "203.0.113.9, 10.0.0.2", "203.0.113.9"),
        ("10.0.0.1", "10.0.0.7, 10.0.0.2", "10.0.0.7"),
        ("10.0.0.1", "nonsense, 10.0.0.2", "10.0.0.2"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9:4711", "203.0.113.9"),
        ("10.0.0.1", "[2001:db9::1]:4711", "2001:db9::1"),
        ("::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("2001:db8::5", "203.0.113.9", "203.0.113.9"),
        ("", "203.0.113.9", "203.0.113.9"),  # by a socket file
    ],
)
def test_the_client_is_the_last_one_a_trusted_proxy_names(peer, forwarded, client):
    assert PROXIES.origin(peer, "http", forwarded, "").address == client


@pytest.mark.parametrize(
    ("peer", "proto", "scheme"),
    [
        ("10.0.0.1", "https", "https"),
        ("10.0.0.1", "http, https", "https"),
        ("10.0.0.1", "https, http", "http"),
        ("10.0.0.1", "gopher", "http"),
        ("203.0.113.9", "https", "http"),
    ],
)
def test_the_scheme_is_what_the_last_trusted_proxy_says(peer, proto, scheme):
    assert PROXIES.origin(peer, "http", "1.1.1.1", proto).scheme == scheme


def test_a_socket_file_is_trusted_only_when_named():
    assert Proxies([]).origin("", "http", "1.1.1.1", "https").scheme == "http"


@given(st.text())
def test_no_text_breaks_the_address_parser(text):
    assert addresses.parse(text) is None or addresses.is_loopback(text) in (True, False)
