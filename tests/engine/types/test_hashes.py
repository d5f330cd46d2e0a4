"""Digests, hashed passwords, tokens and signed tokens, and addresses of Bitcoin: what checks them accepts them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re

import pytest
from stdnum import bitcoin

from tests.engine.types.made import NOW, assert_laws, bound, faults, table, values


def url64(text: str) -> bytes:
    assert "=" not in text
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@pytest.mark.parametrize(("kind", "digits"), [("md5", 32), ("sha1", 40), ("sha256", 64)])
def test_digests_are_hexadecimal_and_unique(kind, digits):
    generated = values(kind, 20_000)
    assert all(re.fullmatch(f"[0-9a-f]{{{digits}}}", item) for item in generated)
    assert len(set(generated)) == 20_000
    assert {sign for item in generated[:500] for sign in item} == set("0123456789abcdef")
    assert values(kind, 5, options={"case": "upper"}) == [item.upper() for item in generated[:5]]
    assert_laws(kind)


@pytest.mark.parametrize(
    ("options", "form", "salt", "digest"),
    [
        ({}, r"\$2b\$12\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})", 16, 23),
        ({"cost": 10}, r"\$2b\$10\$([./A-Za-z0-9]{22})([./A-Za-z0-9]{31})", 16, 23),
        (
            {"algorithm": "argon2id"},
            r"\$argon2id\$v=19\$m=65536,t=3,p=4\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})",
            16,
            32,
        ),
    ],
)
def test_hashed_passwords_hold_whole_bytes(options, form, salt, digest):
    usual = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    for unique in (False, True):
        for value in values("password_hash", 300, options=options, unique=unique):
            found = re.fullmatch(form, value)
            assert found, value
            for part, size in zip(found.groups(), (salt, digest), strict=True):
                if value.startswith("$2b"):
                    table = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                    part = part.translate(str.maketrans(table, usual))
                raw = base64.b64decode(part + "=" * (-len(part) % 4))
                assert len(raw) == size
                assert (
                    base64.b64encode(raw).decode().rstrip("=") == part
                )  # no bits are set beyond the last byte


def test_other_schemes_and_their_costs():
    django = values("password_hash", 50, options={"algorithm": "pbkdf2_sha256"})
    assert all(
        re.fullmatch(r"pbkdf2_sha256\$600000\$[A-Za-z0-9]{22}\$[A-Za-z0-9+/]{43}=", item) for item in django
    )
    assert all(len(base64.b64decode(item.rpartition("$")[2])) == 32 for item in django)
    crypt = values("password_hash", 50, options={"algorithm": "sha512_crypt", "cost": 9000})
    assert all(
        re.fullmatch(r"\$6\$rounds=9000\$[./A-Za-z0-9]{16}\$[./A-Za-z0-9]{86}", item) for item in crypt
    )
    assert faults("password_hash", {"cost": 99}) == {"options.cost": "out_of_range"}


def test_tokens_use_their_alphabet_and_differ_ignoring_case():
    assert all(re.fullmatch("[A-Za-z0-9]{32}", value) for value in values("token", 500))
    assert all(
        re.fullmatch("[0-9a-f]{64}", value)
        for value in values("token", 500, options={"alphabet": "hex", "length": 64})
    )
    assert all(
        re.fullmatch("[A-Z2-7]{16}", value)
        for value in values("token", 500, options={"alphabet": "base32", "length": 16})
    )
    assert all(
        re.fullmatch("[A-Za-z0-9_-]{32}", value)
        for value in values("token", 500, options={"alphabet": "urlsafe"})
    )
    generated = values("token", 36**2, options={"length": 2}, unique=True)
    assert len({item.lower() for item in generated}) == 36**2
    keys = values("api_key", 500, options={"lead": "sk_sandbox_", "length": 20})
    assert all(re.fullmatch("sk_sandbox_[A-Za-z0-9]{20}", key) for key in keys)
    assert all(value.startswith("key_test_") for value in values("api_key", 5, unique=True))


def test_signed_tokens_are_signed_and_in_time():
    secret = "another-secret-for-tests-of-256-bits"
    options = {"secret": secret, "issuer": "https://auth.example/ü", "expires_in": 600}
    for unique in (False, True):
        generated = values("jwt", 500, options=options, unique=unique)
        assert len(set(generated)) == 500
        for item in generated:
            head, claims, signature = item.split(".")
            assert json.loads(url64(head)) == {"alg": "HS256", "typ": "JWT"}
            text = json.loads(url64(claims))
            assert set(text) == {"iat", "exp", "iss", "sub"}
            assert (text["iat"], text["exp"], text["iss"]) == (
                int(NOW.timestamp()), int(NOW.timestamp()) + 600, "https://auth.example/ü",
            )  # fmt: skip
            assert re.fullmatch(r"\d{15}", text["sub"])
            assert url64(signature) == hmac.digest(
                secret.encode(), f"{head}.{claims}".encode(), hashlib.sha256
            )


@pytest.mark.parametrize("issuer", [None, "a", "ab", "abc"])
def test_claims_are_read_with_any_length(issuer):
    for value in values("jwt", 20, options={} if issuer is None else {"issuer": issuer}):
        text = json.loads(url64(value.split(".")[1]))
        assert text.get("iss") == issuer
        assert text["exp"] - text["iat"] == 3600


def test_a_short_secret_is_rejected():
    assert faults("jwt", {"secret": "short"}) == {"options.secret": "string_too_short"}


# --- Bitcoin ------------------------------------------------------------------------------------------------

BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def base58check(text: str) -> bytes:
    """The 21 bytes of an address in base 58; its checksum is asserted."""
    number = 0
    for sign in text:
        number = number * 58 + BASE58.index(sign)
    raw = number.to_bytes(25, "big")
    assert len(raw) - len(raw.lstrip(b"\0")) == len(text) - len(text.lstrip("1"))
    assert hashlib.sha256(hashlib.sha256(raw[:21]).digest()).digest()[:4] == raw[21:]
    return raw[:21]


def polymod(values: list[int]) -> int:
    state = 1
    for value in values:
        top = state >> 25
        state = (state & 0x1FFFFFF) << 5 ^ value
        for bit, generator in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)):
            state ^= generator if top >> bit & 1 else 0
    return state


def segwit(text: str) -> tuple[str, int, int, int]:
    """Prefix, version, bytes of the program and what the checksum leaves."""
    prefix, _, rest = text.rpartition("1")
    data = [BECH32.index(sign) for sign in rest]
    expanded = [ord(sign) >> 5 for sign in prefix] + [0] + [ord(sign) & 31 for sign in prefix]
    bits = (len(data) - 7) * 5
    assert data[-7] & (1 << bits % 8) - 1 == 0  # the padding is nought
    return prefix, data[0], bits // 8, polymod(expanded + data)


def test_the_checks_here_know_published_addresses():
    assert base58check("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa")[0] == 0
    assert segwit("bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4") == ("bc", 0, 20, 1)
    taproot = "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"
    assert segwit(taproot) == ("bc", 1, 32, 0x2BC830A3)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ("bc", 0, 20, 1)),
        ({"network": "testnet"}, ("tb", 0, 20, 1)),
        ({"format": "p2tr"}, ("bc", 1, 32, 0x2BC830A3)),
        ({"format": "p2tr", "network": "testnet"}, ("tb", 1, 32, 0x2BC830A3)),
    ],
)
def test_bech32_addresses_have_a_right_checksum(options, expected):
    generated = values("bitcoin_address", 2_000, options=options)
    assert {segwit(item) for item in generated} == {expected}
    assert len(set(generated)) == 2_000
    if options == {}:
        assert all(bitcoin.is_valid(item) for item in generated)
    assert_laws("bitcoin_address", options)


@pytest.mark.parametrize(
    ("options", "first", "signs"),
    [
        ({"format": "p2pkh"}, 0x00, "1"),
        ({"format": "p2sh"}, 0x05, "3"),
        ({"format": "p2pkh", "network": "testnet"}, 0x6F, "mn"),
        ({"format": "p2sh", "network": "testnet"}, 0xC4, "2"),
    ],
)
def test_base58_addresses_have_a_right_checksum(options, first, signs):
    generated = values("bitcoin_address", 5_000, options=options)
    assert {base58check(item)[0] for item in generated} == {first}
    assert {item[0] for item in generated} == set(signs)
    if "network" not in options:
        assert all(bitcoin.is_valid(item) for item in generated)
    if first == 0:
        assert any(
            item.startswith("11") for item in generated
        )  # a second byte that is zero is encoded as a separate letter
    assert faults("bitcoin_address", options, unique=True) == {"unique": "not_unique"}


def test_an_override_is_an_address_like_any_other():
    source = bound([{"name": "x", "type": "bitcoin_address"}], overrides={"x": "bc1qmine"})
    assert table(source, 0, 2)["x"] == ["bc1qmine", "bc1qmine"]
