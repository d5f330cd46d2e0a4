"""No secret reaches our own log, however it is written and wherever a library puts it (promise 20)."""

from __future__ import annotations

import base64
import json
import logging
import urllib.parse

import pytest
from flask import g

from webapp import limits
from webapp.monitoring import process_log
from webapp.security import keys

CANARY = "c4n/ary+pass word?7"  # has what URL and base64 write otherwise
KEY = keys.new_key(lambda n: bytes(range(7, 7 + n)))[0]


@pytest.fixture(autouse=True)
def forgotten():
    process_log._known_secrets.clear()
    yield
    process_log._known_secrets.clear()


def ways(secret: str) -> dict[str, str]:
    raw = secret.encode()
    return {
        "plain": secret,
        "url": urllib.parse.quote(secret, safe=""),
        "url, small letters": urllib.parse.quote(secret, safe="").replace("%2F", "%2f"),
        "form": urllib.parse.quote_plus(secret),
        "json": json.dumps(secret),
        "base64": base64.b64encode(raw).decode(),
        "base64 of a pair": base64.b64encode(b"user:" + raw).decode(),
        "base64url": base64.urlsafe_b64encode(raw).decode(),
        "in a longer base64": base64.b64encode(b"ab" + raw + b"tail").decode(),
    }


def leaks(text: str, secret: str) -> bool:
    """Whether a reader could have the secret, or most of it, from a text."""
    plain = urllib.parse.unquote_plus(text)
    if secret in text or secret in plain:
        return True
    core = base64.b64encode(secret.encode()).decode()[4:-4]
    return any(core[at : at + 12] in text for at in range(len(core) - 12))


def line(formatter: logging.Formatter, message: str, *args: object, exc_info: object = None) -> str:
    result = logging.makeLogRecord(
        {"name": "x", "levelname": "ERROR", "msg": message, "args": args, "exc_info": exc_info}
    )
    return formatter.format(result)


@pytest.mark.parametrize("how", list(ways("x" * 12)))
@pytest.mark.parametrize(
    "formatter",
    [process_log.JsonFormatter(), process_log.TextFormatter(process_log.TEXT_FORMAT)],
    ids=["json", "text"],
)
def test_a_secret_that_was_opened_is_cut_in_every_form(formatter, how):
    process_log.add_secrets(CANARY)
    result = line(formatter, "the server said: %s; and more", ways(CANARY)[how])
    assert not leaks(result, CANARY), result
    assert "and more" in result


@pytest.mark.parametrize(
    "formatter",
    [process_log.JsonFormatter(), process_log.TextFormatter(process_log.TEXT_FORMAT)],
    ids=["json", "text"],
)
def test_a_secret_in_a_traceback_is_cut(formatter):
    process_log.add_secrets(CANARY)
    try:
        try:
            raise ValueError(f"could not connect with {CANARY}")
        except ValueError as cause:
            raise RuntimeError(f"https://x?q={urllib.parse.quote(CANARY, safe='')}") from cause
    except RuntimeError as error:
        reported = line(formatter, "it failed", exc_info=(type(error), error, error.__traceback__))
    assert "could not connect with" in reported
    assert not leaks(reported, CANARY), reported


@pytest.mark.parametrize(
    "text",
    [
        f"key {KEY} refused",
        f"Authorization: Bearer {CANARY.replace(' ', '')}",
        "proxy-authorization: Basic " + base64.b64encode(b"user:" + CANARY.encode()).decode(),
        f"postgresql+psycopg://me:{CANARY.replace(' ', '')}@host:5432/name",
        f"redis://:{urllib.parse.quote(CANARY, safe='')}@host/0",
        f'{{"password": "{CANARY}", "user": "me"}}',
        f"{{'client_secret': '{CANARY}'}}",
        f"https://x/token?client_secret={urllib.parse.quote(CANARY, safe='')}&user=me",
        f"body: grant%3Dx%26client_secret%3D{urllib.parse.quote(CANARY, safe='')}%26user=me",
        f"api-key={CANARY.split(' ')[0]}, next",
        f"AWS_SECRET_ACCESS_KEY={CANARY.split(' ')[0]}",
        f"Cookie: rowsmith=abc.{CANARY.replace(' ', '')}; theme=dark",
        "opened https://data.example.org/sign-in/" + "A1b2C3d4" * 5,
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJl",
        "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\ncanary\n-----END PRIVATE KEY-----",
        "gAAAAABm" + "Zx9_-" * 12 + "==",
    ],
)
def test_a_likely_secret_is_redacted_even_if_unknown(text):
    reported = process_log.redact(text)
    for part in (
        CANARY,
        CANARY.replace(" ", ""),
        CANARY.split(" ")[0],
        KEY.rpartition("_")[2],
        "A1b2C3d4",
        "Zx9_-",
    ):
        assert part not in reported
    assert "canary" not in reported
    assert not leaks(reported, CANARY), reported
    assert "********" in reported


@pytest.mark.parametrize(
    "text",
    [
        "export exp_01M81TTWCBK3Q8QQ7W8Q4MHH59: attempt 1, epoch 1",
        "GET /templates/<template_id> took 12 ms",
        "connecting to https://example.org:8443/odata/v4?$top=1",
        "the database does not respond: OperationalError",
    ],
)
def test_a_value_that_is_not_a_secret_is_kept(text):
    assert process_log.redact(text) == text


def test_the_credentials_of_the_request_in_hand_are_cut(app):
    cookie = "session-cookie-value-77"
    headers = {"Authorization": f"Bearer {KEY}", "Cookie": f"rowsmith={cookie}; theme=dark"}
    secret = KEY.rpartition("_")[2]
    with app.test_request_context("/x", headers=headers):
        g.request_id = "req_1"
        result = line(
            process_log.JsonFormatter(),
            "seen %s and %s on dark",
            base64.b64encode(KEY.encode()).decode(),
            cookie,
        )
    assert cookie not in result
    assert not leaks(result, secret), result
    assert json.loads(result)["request_id"] == "req_1"
    assert "on dark" in result


def test_secrets_of_the_settings_are_known_from_the_start(app):
    settings = app.config["SETTINGS"]
    process_log.add_settings_secrets(settings)
    assert settings.secret_key not in process_log.redact(f"oops {settings.secret_key}")
    assert settings.vault_keys[0] not in process_log.redact(f"oops {settings.vault_keys[0]}")


def test_only_a_limited_number_of_secrets_is_remembered():
    for number in range(limits.REDACTED_SECRETS + 10):
        process_log.add_secrets(f"secret-{number:06}")
    assert len(process_log._known_secrets) == limits.REDACTED_SECRETS
    assert "secret-000509" not in process_log.redact("x secret-000509 y")
