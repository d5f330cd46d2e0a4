"""Chat completions of a model, with the connection's retries, within the limits of a run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson
import requests

from webapp import limits
from webapp.connectors.base import ConnectorError
from webapp.connectors.http.authentication import send_authenticated
from webapp.connectors.http.retry import attempt
from webapp.connectors.http.verification import from_net_error
from webapp.connectors.rest.sending import over, url_of
from webapp.net.session import Reply, Session

if TYPE_CHECKING:
    from webapp.connectors.ai.connector import AiSettings

FORMATS: Final = ("json_schema", "json_object", "none")
"""Ways to request the format of an answer, the most reliable first."""
_FORMAT_REFUSED: Final = frozenset({400, 422})
_BASE_URL: Final = "Check base_url: it is the part before /chat/completions, and usually ends with /v1."
_TOLD: Final = {
    401: ("auth_failed", "It does not accept the API key.", "Check api_key of the connection."),
    403: ("forbidden", "The API key is not allowed to use this model.", "Use another key or another model."),
    404: ("not_found", "The address or the model does not exist.", f"Verify the connection. {_BASE_URL}"),
    429: (
        "throttled",
        "It currently accepts no more requests.",
        "Reduce parallel of the connection, or request fewer rows.",
    ),
}


@dataclass(frozen=True, slots=True)
class Prompt:
    """A request to a model. `schema` is the JSON Schema of the answer, an object; None allows any text."""

    system: str
    user: str
    schema: Mapping[str, Any] | None = None
    temperature: float | None = None
    strict: bool = True
    """The schema is closed: every key is required, and no others are allowed."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a model."""

    text: str
    whole: bool = True
    """False if the answer was cut off at the model's limit."""


@dataclass(slots=True)
class Spent:
    """What a run has used so far."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0

    def __str__(self) -> str:
        tokens = f"{self.input_tokens:,} tokens sent, {self.output_tokens:,} received"
        return f"{self.calls:,} calls, {tokens}" + (f", cost {self.cost:.4g}" if self.cost else "")


class AiChat:
    """A run's requests to a model, by any number of threads, until `until` (`time.monotonic()`)."""

    def __init__(
        self, settings: AiSettings, session: Session, redact: Callable[[str], str], until: float
    ) -> None:
        self._settings, self._session, self._redact, self._until = settings, session, redact, until
        self._auth = settings.auth.requests_auth(session)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self.spent = Spent()
        wanted = settings.response_format
        self._formats = list(FORMATS) if wanted == "auto" else [wanted]

    def ask(self, prompt: Prompt) -> Completion:
        """Return the answer to a prompt.

        If the server does not support a response format, the request is repeated with a weaker one, which is
        used from then on. Raises ConnectorError: cap_reached, auth_failed, forbidden, not_found, throttled,
        unavailable, rejected, bad_answer (the response is not a chat completion), timeout and network errors.
        """
        formats = list(self._formats) if prompt.schema is not None else ["none"]
        for place, form in enumerate(formats):
            reply = self._reply(self._body(prompt, form))
            last = place == len(formats) - 1
            if reply.status in _FORMAT_REFUSED and not last:
                continue
            if not 200 <= reply.status < 300:
                raise self._refused(reply)
            if place:
                self._formats = formats[place:]
            return self._read(reply, prompt)
        raise AssertionError("the last format returns or raises")

    def stop(self) -> None:
        """Cancel waiting for further attempts, from another thread."""
        self._over.set()

    def _body(self, prompt: Prompt, form: str) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._settings.model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            "stream": False,
        }
        if form == "json_schema":
            schema = {"name": "answer", "strict": prompt.strict, "schema": prompt.schema}
            body["response_format"] = {"type": form, "json_schema": schema}
        elif form == "json_object":
            body["response_format"] = {"type": form}
        if prompt.temperature is not None:
            body["temperature"] = prompt.temperature
        return body

    # --- Requests and their cost

    def _reply(self, body: dict[str, Any]) -> Reply:
        ended = attempt(lambda: self._sent(body), self._settings.retry, wait=self._wait, may_go=self._may_go)
        if ended.reply is not None:
            return ended.reply
        assert ended.error is not None
        if time.monotonic() >= self._until:
            raise late()
        error = from_net_error(ended.error)
        error.message = self._redact(error.message)
        error.args = (error.message,)
        error.details = {**error.details, "attempts": ended.attempts}
        raise error

    def _sent(self, body: dict[str, Any]) -> Reply:
        settings = self._settings
        headers = over(
            {"Accept": "application/json", "Content-Type": "application/json"}, settings.default_headers
        )
        url, data = url_of(settings.base_url, "chat/completions"), orjson.dumps(body)
        request = requests.Request("POST", url, headers=headers, data=data, auth=self._auth)
        seconds = max(min(settings.retry.timeout_seconds, self._until - time.monotonic()), 0.001)
        reply = send_authenticated(
            self._session, request, timeout_seconds=seconds, max_bytes=limits.AI_ANSWER_BYTES
        )
        if reply.truncated and reply.status == 200:
            if len(reply.body) >= limits.AI_ANSWER_BYTES:
                message = f"The response is larger than {limits.AI_ANSWER_BYTES // limits.MB} MB."
                raise ConnectorError(message, reason="too_large", hint="Reduce rows_per_request.")
            raise ConnectorError("The response was interrupted.", reason="reset", transient=True)
        return reply

    def _may_go(self) -> None:
        """Check the limits before each request, and count it. The limits therefore hold for any number of
        parallel requests."""
        if self._session.stopped or time.monotonic() >= self._until:
            raise late()
        settings, spent = self._settings, self.spent
        with self._lock:
            reached = ""
            if spent.calls >= settings.max_calls:
                reached = f"{settings.max_calls:,} calls (max_calls)"
            elif settings.max_cost is not None and spent.cost >= settings.max_cost:
                reached = f"a cost of {settings.max_cost:g} (max_cost)"
            if reached:
                raise ConnectorError(
                    f"The connection's limit of {reached} for one run has been reached: {spent}.",
                    reason="cap_reached",
                    hint="Results so far are kept, and a new request continues from there. Request fewer rows, or "
                    "increase the limit in the connection.",
                    details={"calls": spent.calls, "cost": spent.cost},
                )
            spent.calls += 1

    def _wait(self, seconds: float) -> None:
        if seconds >= self._until - time.monotonic() or self._over.wait(seconds):
            raise late()

    def _count(self, usage: Any, prompt: Prompt, text: str) -> None:
        told = usage if isinstance(usage, Mapping) else {}
        sent, got = told.get("prompt_tokens"), told.get("completion_tokens")
        if not isinstance(sent, int) or sent < 0:
            sent = (len(prompt.system) + len(prompt.user)) // limits.AI_TOKEN_CHARS + 1
        if not isinstance(got, int) or got < 0:
            got = len(text) // limits.AI_TOKEN_CHARS + 1
        prices = self._settings
        cost = sent * (prices.price_per_1k_input or 0) + got * (prices.price_per_1k_output or 0)
        with self._lock:
            self.spent.input_tokens += sent
            self.spent.output_tokens += got
            self.spent.cost += cost / 1000

    # --- Responses

    def _read(self, reply: Reply, prompt: Prompt) -> Completion:
        try:
            answer = orjson.loads(reply.body)
            choice = answer["choices"][0]
            text = _text(choice["message"])
        except (orjson.JSONDecodeError, LookupError, TypeError):
            raise ConnectorError(
                f"The response is not a chat completion.{self._saying(reply)}",
                reason="bad_answer",
                hint=_BASE_URL,
                details={"status": reply.status},
            ) from None
        self._count(answer.get("usage"), prompt, text)
        return Completion(text, choice.get("finish_reason") != "length")

    def _refused(self, reply: Reply) -> ConnectorError:
        if reply.status >= 500:
            reason, meaning, hint = "unavailable", "The server has a problem.", "Try again later."
        else:
            otherwise = (
                "rejected",
                "It rejected the request.",
                "Verify the connection, and check the model.",
            )
            reason, meaning, hint = _TOLD.get(reply.status, otherwise)
        message = f"The model's server returned {reply.status}. {meaning}{self._saying(reply)}"
        return ConnectorError(message, reason=reason, hint=hint, details={"status": reply.status})

    def _saying(self, reply: Reply) -> str:
        return saying(reply, self._redact)


def saying(reply: Reply, redact: Callable[[str], str]) -> str:
    """Return a server's error message: from OpenAI's format if it has that, otherwise the beginning of the
    body."""
    text = reply.body[: limits.HTTP_BODY_CHARS].decode("utf-8", "replace")
    try:
        told = orjson.loads(reply.body)["error"]
        text = str(told.get("message") or text) if isinstance(told, dict) else str(told)
    except (orjson.JSONDecodeError, LookupError, TypeError):
        pass
    text = " ".join(redact(text).split())
    text = "".join(sign if sign.isprintable() else " " for sign in text)[: limits.FETCHED_SAID_CHARS]
    return f" Its message: {text}" if text else ""


def late() -> ConnectorError:
    """Return the error for an exceeded time limit."""
    return ConnectorError(
        f"The model did not finish within {limits.AI_SECONDS:g} s.",
        code="target_timeout",
        reason="timeout",
        hint="Results so far are kept, and a new request continues from there. Request fewer rows, or increase "
        "parallel of the connection.",
    )


def _text(message: Any) -> str:
    """Return the text of a message: a string, or the texts of its parts. Empty if the model refused to
    answer."""
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if content is not None and not isinstance(content, str):
        raise TypeError
    return content or ""
