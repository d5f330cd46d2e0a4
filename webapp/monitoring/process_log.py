"""The log of every process, as text or as JSON, on standard error and without secrets.

JSON is one object a line: `time`, `level`, `logger`, `message`, `process` (host:pid); within a request `request_id`,
`workspace_id`, `user_id`, `key_id`; within work `export_id`, `part_id`, `push_id` or `run_id`; of a request's own line
`method`, `route`, `status`, `ms`; of an error `error` (its type) and `trace`. What is not known is left out.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from flask import g, has_request_context

from webapp import limits
from webapp.config import Settings
from webapp.monitoring import log_redaction
from webapp.monitoring.health import process_name

TEXT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
REQUESTS: Final = "rowsmith.requests"
"""The logger of the line that each request leaves."""
_EXTRA: Final = ("method", "route", "status", "ms")
# The work in hand. A process does one piece at a time, and its threads speak of the same one.
_work: dict[str, str] = {}


def configure(settings: Settings) -> None:
    """Have everything that is logged in this process go to standard error, in the format of the settings."""
    log_redaction.learn_settings(settings)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Json() if settings.log_format == "json" else Text(TEXT))
    logging.basicConfig(level=settings.log_level, handlers=[handler], force=True)


def begin_work(kind: str, work_id: str) -> None:
    """Say which piece of work the lines to come are about."""
    _work.clear()
    _work[f"{kind}_id"] = work_id


def end_work() -> None:
    """Say that it is over."""
    _work.clear()


class Text(logging.Formatter):
    """A redacted line of text, with the request id."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the line, followed by a traceback if there is one."""
        return log_redaction.hushed(super().format(record))


class Json(logging.Formatter):
    """One redacted JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        told: dict[str, Any] = {
            "time": _time(record.created),
            "level": record.levelname,
            "logger": record.name,
            "message": _message(record),
            "process": process_name(),
            **_of_request(),
            **_work,
        }
        told |= {name: record.__dict__[name] for name in _EXTRA if name in record.__dict__}
        if record.exc_info and record.exc_info[0] is not None:
            told["error"] = record.exc_info[0].__name__
            told["trace"] = log_redaction.hushed(self.formatException(record.exc_info))[
                -limits.LOG_TRACE_CHARS :
            ]
        return orjson.dumps(told, default=str).decode()


def _message(record: logging.LogRecord) -> str:
    text = record.getMessage()
    if record.name == REQUESTS:  # a method and a route template, nothing of the caller's
        return text
    return log_redaction.hushed(text)[: limits.LOG_MESSAGE_CHARS]


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _of_request() -> dict[str, str]:
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
