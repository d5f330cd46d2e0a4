"""The log of every process, as text or as JSON, on standard error and without secrets.

JSON is one object a line: `time`, `level`, `logger`, `message`, `process` (host:pid); within a request `request_id`,
`workspace_id`, `user_id`, `key_id`; within work `export_id`, `part_id`, `push_id` or `run_id`; of a request's own line
`method`, `route`, `status`, `ms`; of an error `error` (its type) and `trace`. What is not known is left out.

Secrets are redacted, in the messages and tracebacks of libraries as well (promise 20), in two ways. Known secrets are
redacted in every form they may be written in: those of the settings, those that this process has opened, and the
credentials of the current request. Texts that look like a secret are redacted by their shape: our keys, bearer tokens,
passwords in URLs, values after a name such as `password=`.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import orjson
from flask import g, has_request_context, request

from webapp import limits
from webapp.config import Settings
from webapp.connectors import redaction
from webapp.monitoring.health import process_name

REDACTED: Final = "********"
_NAMES: Final = (
    r"pass(?:word|wd|phrase)|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|vault[_-]?keys?"
    r"|credential|signature|authorization|session[_-]?id|\bsid"
)
_SEPARATOR: Final = r"[\"']?\s*(?:[:=]|=>|%3[AaDd])\s*"
_SECRET_PATTERNS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
        ),
        REDACTED,
    ),
    (re.compile(r"(?i)\b((?:set-)?cookie[\"']?\s*[:=]\s*)[^\r\n]+"), rf"\g<1>{REDACTED}"),
    (
        re.compile(r"(?i)\b(bearer|basic|digest|negotiate)(\s|%20|\+)+[A-Za-z0-9._~+/=%-]{6,}"),
        rf"\g<1> {REDACTED}",
    ),
    (re.compile(r"\b(rws_[0-9A-Za-z]+)_[0-9A-Za-z]{8,}"), rf"\g<1>_{REDACTED}"),
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://[^\s/:@\"']*):[^\s@\"']+@"), rf"\g<1>:{REDACTED}@"),
    (
        re.compile(
            rf"(?i)([\w.-]*(?:{_NAMES})[\w.-]*{_SEPARATOR})(\"[^\"]*\"|'[^']*'|(?!\*{{8}})[^\s,;&)}}\]\"']+)"
        ),
        rf"\g<1>{REDACTED}",
    ),
    # Links that sign someone in: /sign-in/<token>, /invitations/accept/<token>.
    (
        re.compile(r"(/(?:sign-in|invitations|reset|confirm)(?:/accept)?/)[A-Za-z0-9_-]{16,}"),
        rf"\g<1>{REDACTED}",
    ),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*"), REDACTED),  # JSON Web Tokens
    (re.compile(r"\bgAAAA[A-Za-z0-9_-]{20,}={0,2}"), REDACTED),  # Fernet: encrypted values of the database
    (re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"), REDACTED),
)

_lock = threading.Lock()
_known_secrets: OrderedDict[str, tuple[str, ...] | None] = OrderedDict()
"""Secrets with their encoded forms, which are created when a line is first searched for them."""


def add_secrets(*secrets: str) -> None:
    """Remember secrets of this process. Beyond REDACTED_SECRETS, those not learned for longest are forgotten."""
    with _lock:
        for secret in secrets:
            if len(secret) >= limits.REDACTED_SECRET_MIN_CHARS:
                _known_secrets.setdefault(secret, None)
                _known_secrets.move_to_end(secret)
        while len(_known_secrets) > limits.REDACTED_SECRETS:
            _known_secrets.popitem(last=False)


def add_settings_secrets(settings: Settings) -> None:
    """Remember the secrets of the settings, including the passwords in their URLs."""
    found = [settings.secret_key, *settings.vault_keys, settings.metrics_token]
    found += [settings.aws_secret_access_key, settings.aws_session_token]
    for url in (settings.database_url, settings.redis_url):
        password = urlsplit(url).password
        if password:
            found += [password, unquote(password)]
    add_secrets(*found)


def redact(text: str) -> str:
    """Redact the secrets in a text."""
    folded = text.casefold()
    with _lock:
        for secret, stored_forms in _known_secrets.items():
            if stored_forms is None:
                _known_secrets[secret] = _folded_forms(secret)
        secrets = [(secret, stored_forms or ()) for secret, stored_forms in _known_secrets.items()]
    present = [item for item, secret_forms in secrets if _may_contain(folded, secret_forms)]
    present += [item for item in _credentials_of_request() if _may_contain(folded, _folded_forms(item))]
    text = redaction.redact(text, present) if present else text
    for shape, replacement in _SECRET_PATTERNS:
        text = shape.sub(replacement, text)
    return text


def _folded_forms(secret: str) -> tuple[str, ...]:
    return tuple({form.casefold() for form in redaction.encoded_forms(secret)})


def _may_contain(folded: str, forms: tuple[str, ...]) -> bool:
    """Return whether a text may contain any form. This check is much cheaper than redacting."""
    return any(form in folded for form in forms)


def _credentials_of_request() -> Iterator[str]:
    """Yield the secrets of the current request: its key, its cookies, and secret fields of its form."""
    if not has_request_context():
        return
    key = request.environ.get("HTTP_X_API_KEY", "")
    _, _, token = request.environ.get("HTTP_AUTHORIZATION", "").partition(" ")
    yield from (item for item in (key, token.strip()) if len(item) >= limits.REDACTED_SECRET_MIN_CHARS)
    yield from (
        cookie for cookie in request.cookies.values() if len(cookie) >= limits.REDACTED_COOKIE_MIN_CHARS
    )
    form = request.__dict__.get("form")  # only if it was parsed already, because parsing can fail
    for name, value in form.items() if form else ():
        if re.search(_NAMES, name, re.IGNORECASE) and len(value) >= limits.REDACTED_SECRET_MIN_CHARS:
            yield value


# --- Log ----------------------------------------------------------------------------------------------------

TEXT_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
REQUEST_LOGGER: Final = "rowsmith.requests"
"""The logger of the line that each request leaves."""
_EXTRA_FIELDS: Final = ("method", "route", "status", "ms")
# The work in hand. A process does one piece at a time, and its threads speak of the same one.
_current_job: dict[str, str] = {}


def configure(settings: Settings) -> None:
    """Log to standard error in this process, in the format of the settings."""
    add_settings_secrets(settings)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else TextFormatter(TEXT_FORMAT))
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)


def begin_work(kind: str, work_id: str) -> None:
    """Set the job that the following log lines are about."""
    _current_job.clear()
    _current_job[f"{kind}_id"] = work_id


def end_work() -> None:
    """Clear the job of the log lines."""
    _current_job.clear()


class TextFormatter(logging.Formatter):
    """A redacted line of text, with the request id."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the line, followed by a traceback if there is one."""
        return redact(super().format(record))


class JsonFormatter(logging.Formatter):
    """One redacted JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the record as one line of JSON."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        message = record.getMessage()
        if record.name != REQUEST_LOGGER:  # else a method and a route template, nothing of the caller's
            message = redact(message)[: limits.LOG_MESSAGE_CHARS]
        entry: dict[str, Any] = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": message,
            "process": process_name(),
            **_request_fields(),
            **_current_job,
        }
        entry |= {name: record.__dict__[name] for name in _EXTRA_FIELDS if name in record.__dict__}
        if record.exc_info and record.exc_info[0] is not None:
            entry["error"] = record.exc_info[0].__name__
            entry["trace"] = redact(self.formatException(record.exc_info))[-limits.LOG_TRACE_CHARS :]
        return orjson.dumps(entry, default=str).decode()


def _request_fields() -> dict[str, str]:
    if not has_request_context():
        return {}
    found = {"request_id": g.get("request_id")}
    actor = g.get("actor")
    if actor is not None:
        found |= {
            "workspace_id": actor.workspace_id,
            "user_id": actor.user_id,
            "key_id": actor.key_id,
            "run_id": actor.run_id,
        }
    return {name: value for name, value in found.items() if value}
