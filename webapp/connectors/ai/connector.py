"""AI: any server with OpenAI's chat completions API, such as Ollama, vLLM, llama.cpp, or a hosted one.

Chat completions are requested with the connection's retries, within the limits of a run. Verification checks the
connection, the key, the availability of the model, and a short answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Final, Literal, Self
from urllib.parse import urlsplit

import orjson
import requests
from pydantic import AfterValidator, ConfigDict, Field, model_validator

from webapp import limits
from webapp.connectors.base import Capabilities, ConnectorError, Stage, WriteSpec
from webapp.connectors.http.authentication import (
    SECRET,
    SECRET_BINDING_SETTINGS,
    BearerAuth,
    NoAuth,
    TlsSettings,
    Url,
    send_authenticated,
)
from webapp.connectors.http.channel import Channel, HttpConnector, SendControl, Sender
from webapp.connectors.http.request_template import FixedHeaders
from webapp.connectors.http.retry import Retry, send_with_retries
from webapp.connectors.http.verification import from_net_error
from webapp.connectors.rest.sending import join_url, merge_headers
from webapp.connectors.schema import Entity, Metadata
from webapp.connectors.verification import Step, run_stages
from webapp.errors import did_you_mean
from webapp.net import session as net
from webapp.net.session import NetError, Reply, Session, check_url
from webapp.net.urls import display_url

FORMATS: Final = ("json_schema", "json_object", "none")
"""Ways to request the format of an answer, the most reliable first."""
_FORMAT_REFUSED: Final = frozenset({400, 422})
_BASE_URL: Final = "Check base_url: it is the part before /chat/completions, and usually ends with /v1."
_STATUS_ERRORS: Final = {
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
    is_complete: bool = True
    """False if the answer was cut off at the model's limit."""


@dataclass(slots=True)
class TokenUsage:
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
        self._stopped = threading.Event()
        self.usage = TokenUsage()
        response_format = settings.response_format
        self._formats = list(FORMATS) if response_format == "auto" else [response_format]

    def complete(self, prompt: Prompt) -> Completion:
        """Return the answer to a prompt.

        If the server does not support a response format, the request is repeated with a weaker one, which is
        used from then on. Raises ConnectorError: cap_reached, auth_failed, forbidden, not_found, throttled,
        unavailable, rejected, bad_answer (the response is not a chat completion), timeout and network errors.
        """
        formats = list(self._formats) if prompt.schema is not None else ["none"]
        for index, form in enumerate(formats):
            reply = self._reply(self._body(prompt, form))
            last = index == len(formats) - 1
            if reply.status in _FORMAT_REFUSED and not last:
                continue
            if not 200 <= reply.status < 300:
                if reply.status >= 500:
                    reason, meaning, hint = "unavailable", "The server has a problem.", "Try again later."
                else:
                    otherwise = (
                        "rejected",
                        "It rejected the request.",
                        "Verify the connection, and check the model.",
                    )
                    reason, meaning, hint = _STATUS_ERRORS.get(reply.status, otherwise)
                message = f"The model's server returned {reply.status}. {meaning}{self._error_message(reply)}"
                raise ConnectorError(message, reason=reason, hint=hint, details={"status": reply.status})
            if index:
                self._formats = formats[index:]
            return self._parse_completion(reply, prompt)
        raise AssertionError("the last format returns or raises")

    def stop(self) -> None:
        """Cancel waiting for further attempts, from another thread."""
        self._stopped.set()

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
        outcome = send_with_retries(
            lambda: self._send(body),
            self._settings.retry,
            wait=self._wait,
            raise_if_stopped=self._raise_if_stopped,
        )
        if outcome.reply is not None:
            return outcome.reply
        assert outcome.error is not None
        if time.monotonic() >= self._until:
            raise timeout_error()
        error = from_net_error(outcome.error)
        error.message = self._redact(error.message)
        error.args = (error.message,)
        error.details = {**error.details, "attempts": outcome.attempts}
        raise error

    def _send(self, body: dict[str, Any]) -> Reply:
        settings = self._settings
        headers = merge_headers(
            {"Accept": "application/json", "Content-Type": "application/json"}, settings.default_headers
        )
        url, data = join_url(settings.base_url, "chat/completions"), orjson.dumps(body)
        request = requests.Request("POST", url, headers=headers, data=data, auth=self._auth)
        seconds = max(min(settings.retry.timeout_seconds, self._until - time.monotonic()), 0.001)
        reply = send_authenticated(
            self._session, request, timeout_seconds=seconds, max_bytes=limits.AI_RESPONSE_BYTES
        )
        if reply.truncated and reply.status == 200:
            if len(reply.body) >= limits.AI_RESPONSE_BYTES:
                message = f"The response is larger than {limits.AI_RESPONSE_BYTES // limits.MB} MB."
                raise ConnectorError(message, reason="too_large", hint="Reduce rows_per_request.")
            raise ConnectorError("The response was interrupted.", reason="reset", transient=True)
        return reply

    def _raise_if_stopped(self) -> None:
        """Check the limits before each request, and count it. The limits therefore hold for any number of
        parallel requests."""
        if self._session.stopped or time.monotonic() >= self._until:
            raise timeout_error()
        settings, spent = self._settings, self.usage
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
        if seconds >= self._until - time.monotonic() or self._stopped.wait(seconds):
            raise timeout_error()

    # --- Responses

    def _parse_completion(self, reply: Reply, prompt: Prompt) -> Completion:
        try:
            answer = orjson.loads(reply.body)
            choice = answer["choices"][0]
            text = _text(choice["message"])
        except (orjson.JSONDecodeError, LookupError, TypeError):
            raise ConnectorError(
                f"The response is not a chat completion.{self._error_message(reply)}",
                reason="bad_answer",
                hint=_BASE_URL,
                details={"status": reply.status},
            ) from None
        usage = answer.get("usage")
        counts = usage if isinstance(usage, Mapping) else {}
        sent, received = counts.get("prompt_tokens"), counts.get("completion_tokens")
        if not isinstance(sent, int) or sent < 0:
            sent = (len(prompt.system) + len(prompt.user)) // limits.AI_TOKEN_CHARS + 1
        if not isinstance(received, int) or received < 0:
            received = len(text) // limits.AI_TOKEN_CHARS + 1
        prices = self._settings
        cost = sent * (prices.price_per_1k_input or 0) + received * (prices.price_per_1k_output or 0)
        with self._lock:
            self.usage.input_tokens += sent
            self.usage.output_tokens += received
            self.usage.cost += cost / 1000
        return Completion(text, choice.get("finish_reason") != "length")

    def _error_message(self, reply: Reply) -> str:
        return error_message(reply, self._redact)


def error_message(reply: Reply, redact: Callable[[str], str]) -> str:
    """Return a server's error message: from OpenAI's format if it has that, otherwise the beginning of the
    body."""
    text = reply.body[: limits.HTTP_BODY_CHARS].decode("utf-8", "replace")
    try:
        error = orjson.loads(reply.body)["error"]
        text = str(error.get("message") or text) if isinstance(error, dict) else str(error)
    except (orjson.JSONDecodeError, LookupError, TypeError):
        pass
    text = " ".join(redact(text).split())
    text = "".join(char if char.isprintable() else " " for char in text)[: limits.FETCHED_MESSAGE_CHARS]
    return f" Its message: {text}" if text else ""


def timeout_error() -> ConnectorError:
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


# --- Verification -------------------------------------------------------------------------------------------

_TEST_PROMPT: Final = Prompt("You are being tested.", "Answer with the one word: ready")


def stages(session: Session, connector: AiConnector) -> Iterator[Stage]:
    """Run the stages in order, up to the first failure. The last stage has the `response`."""
    verification = _Verification(session, connector)
    previous: Stage | None = None
    for stage in run_stages(verification.steps()):
        if previous is not None:
            yield previous
        previous = stage
    if previous is not None:
        yield replace(previous, response=verification.response())


class _Verification:
    """One verification. It requests the list of models once, and each stage reports a part of the result."""

    def __init__(self, session: Session, connector: AiConnector) -> None:
        self._session, self._settings, self._redact = session, connector.settings, connector.redact
        self._url = join_url(connector.settings.base_url, "models")
        self._timeout = min(connector.settings.retry.timeout_seconds, limits.VERIFY_STEP_SECONDS)
        self._reply: Reply | None = None

    def steps(self) -> list[tuple[str, Step]]:
        """Return the stages that apply."""
        result: list[tuple[str, Step]] = [("resolve", self.resolve), ("connect", self.connect)]
        if self._url.startswith("https:"):
            result.append(("tls", self.tls))
        return [*result, ("auth", self.auth), ("permission", self.permission), ("sample", self.sample)]

    def resolve(self) -> str:
        """Stage resolve."""
        try:
            check_url(self._url)
        except NetError as error:
            raise from_net_error(error) from None
        addresses = self._session.gate.addresses(*self._address())
        host = self._address()[0]
        return f"{host} resolves to {', '.join(addresses)}" if addresses != [host] else ""

    def connect(self) -> str:
        """Stage connect."""
        self._session.gate.connect(*self._address(), self._timeout).close()
        return ""

    def _address(self) -> tuple[str, int]:
        parts = urlsplit(self._url)
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

    def tls(self) -> str:
        """Stage tls."""
        self._request_models()
        return ""

    def auth(self) -> str:
        """Stage auth: the key is accepted."""
        if self._request_models().status == 401:
            raise ConnectorError(
                self._status_message(),
                reason="auth_failed",
                hint="Check api_key, or enter one if there is none.",
            )
        return "" if self._settings.api_key else "no key is configured"

    def permission(self) -> str:
        """Stage permission: the key is allowed to list models, and the server has the model if it lists any."""
        reply = self._request_models()
        if reply.status == 403:
            raise ConnectorError(
                self._status_message(), reason="forbidden", hint="The API key is not allowed to list models."
            )
        if reply.status >= 500:
            raise ConnectorError(
                self._status_message(),
                reason="unavailable",
                hint="Check the server's log, or try again later.",
            )
        names, model = _models(reply), self._settings.model
        if names is None:
            return f"{self._status_message()}: the server does not list its models"
        # Ollama uses the plain name for the newest version of a model, and lists it with a tag.
        if model not in names and f"{model}:latest" not in names:
            known = ", ".join(names[: limits.AI_LISTED_MODELS]) or "none"
            more = (
                f" and {len(names) - limits.AI_LISTED_MODELS} more"
                if len(names) > limits.AI_LISTED_MODELS
                else ""
            )
            hint = f"{did_you_mean(model, names) or ''} Available models: {known}{more}.".strip()
            raise ConnectorError(
                f'The server has no model "{model}".', reason="no_model", hint=self._redact(hint)
            )
        return f"{len(names)} models" if len(names) > 1 else ""

    def sample(self) -> str:
        """Stage sample: a short answer of the model."""
        quick = self._settings.model_copy(
            update={"retry": self._settings.retry.model_copy(update={"retries": 0})}
        )
        seconds = limits.VERIFY_SECONDS / 2  # loading a model takes time
        answer = AiChat(quick, self._session, self._redact, time.monotonic() + seconds).complete(_TEST_PROMPT)
        text = self._redact(" ".join(answer.text.split()))[:50]
        return (
            f"{self._settings.model} answered: {text}"
            if text
            else f"{self._settings.model} returned an empty answer"
        )

    def response(self) -> dict[str, Any] | None:
        """Return the server's response to the request for its models."""
        reply = self._reply
        if reply is None:
            return None
        return {
            "method": "GET",
            "url": display_url(reply.url),
            "status": reply.status,
            "content_type": reply.headers.get("Content-Type", ""),
            "body": reply.body.decode("utf-8", "replace")[: limits.HTTP_BODY_CHARS],
            "ms": reply.ms,
        }

    def _status_message(self) -> str:
        reply = self._request_models()
        detail = error_message(reply, self._redact) if reply.status >= 400 else ""
        return f"GET {display_url(self._url)} returned {reply.status}.{detail}"

    def _request_models(self) -> Reply:
        if self._reply is None:
            headers = merge_headers({"Accept": "application/json"}, self._settings.default_headers)
            auth = self._settings.auth.requests_auth(self._session)
            request = requests.Request("GET", self._url, headers=headers, auth=auth)
            try:
                self._reply = send_authenticated(
                    self._session, request, timeout_seconds=self._timeout, max_bytes=limits.AI_RESPONSE_BYTES
                )
            except NetError as error:
                raise from_net_error(error) from None
        return self._reply


def _models(reply: Reply) -> list[str] | None:
    """Return the models that a server lists; None if the response is not in OpenAI's format."""
    if reply.status != 200:
        return None
    try:
        return [str(load["id"]) for load in orjson.loads(reply.body)["data"]]
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return None


# --- Connector ----------------------------------------------------------------------------------------------

_Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


def _check_key(text: str) -> str:
    if any(char.isspace() or not char.isprintable() or not char.isascii() for char in text):
        raise ValueError("a key consists of letters, digits and punctuation: no spaces, no line breaks")
    return text


class AiSettings(TlsSettings):
    """Settings to reach a model, and the limits of a run."""

    model_config = ConfigDict(hide_input_in_errors=True)

    base_url: Url = Field(
        description="The address before /chat/completions, such as http://127.0.0.1:11434/v1."
    )
    model: str = Field(
        min_length=1, max_length=limits.AI_MODEL_CHARS, pattern=r"^\S(.*\S)?$",
        description="The name of the model on the server.",
    )  # fmt: skip
    api_key: Annotated[str, Field(max_length=limits.TOKEN_CHARS), AfterValidator(_check_key)] | None = Field(
        None, repr=False, json_schema_extra=SECRET,
        description="Sent as a bearer token. Local servers usually need none.",
    )  # fmt: skip
    default_headers: FixedHeaders = Field(default_factory=dict, description="Sent with every request.")
    response_format: Literal["auto", "json_schema", "json_object", "none"] = Field(
        "auto", description="Format of answers. auto: JSON Schema if the server supports it."
    )
    rows_per_request: int = Field(
        limits.AI_ROWS, ge=1, le=limits.AI_MAX_ROWS, description="Rows per request."
    )
    parallel: int = Field(
        limits.AI_PARALLEL, ge=1, le=limits.HTTP_MAX_PARALLEL, description="Requests at the same time."
    )
    retry: Retry = Field(default_factory=lambda: Retry(timeout_seconds=limits.AI_TIMEOUT_SECONDS))
    max_calls: int = Field(
        limits.AI_CALLS, ge=1, le=limits.AI_MAX_CALLS, description="Maximum requests per run."
    )
    max_cost: _Price | None = Field(None, description="Maximum cost of a run, in the currency of the prices.")
    price_per_1k_input: _Price | None = Field(None, description="Price of 1,000 input tokens.")
    price_per_1k_output: _Price | None = Field(None, description="Price of 1,000 output tokens.")

    @model_validator(mode="after")
    def _cost_has_prices(self) -> Self:
        if self.max_cost is not None and not (self.price_per_1k_input or self.price_per_1k_output):
            raise ValueError("max_cost needs price_per_1k_input or price_per_1k_output")
        return self

    @property
    def auth(self) -> NoAuth | BearerAuth:
        """The authentication of requests."""
        return BearerAuth(type="bearer", token=self.api_key) if self.api_key else NoAuth()


class AiConnector(HttpConnector):
    """A model that answers prompts. It accepts no rows."""

    kind = "ai"
    title = "AI model"
    Settings = AiSettings
    settings: AiSettings
    can: ClassVar[Capabilities] = replace(
        HttpConnector.can, modes=(), capture=False, by_row=False, prompts=True
    )
    secret_independent_settings: ClassVar[frozenset[str]] = frozenset(AiSettings.model_fields) - {
        "base_url",
        "api_key",
        *SECRET_BINDING_SETTINGS,
    }

    def stages(self) -> Iterator[Stage]:
        """Verify the connection, the key and the model, and request a short answer."""
        with net.open_session(self.gate, verify_tls=self.settings.trust) as session:
            yield from stages(session, self)

    def open(self, timeout: float | None = None) -> AiChannel:
        """Open a channel, which counts requests and cost."""
        return AiChannel(self)


class AiChannel(Channel):
    """A connection to a model for one run of limits.AI_SECONDS."""

    def __init__(self, connector: AiConnector) -> None:
        settings = connector.settings
        self.settings = settings
        self._session = net.open_session(connector.gate, verify_tls=settings.trust, pool=settings.parallel)
        self.chat = AiChat(settings, self._session, connector.redact, time.monotonic() + limits.AI_SECONDS)

    def complete(self, prompt: Prompt) -> Completion:
        """See `AiChat.complete`."""
        return self.chat.complete(prompt)

    def close(self) -> None:
        """See `Link.close`."""
        self._session.close()

    def cancel(self) -> None:
        """See `Link.cancel`."""
        self._session.stop()
        self.chat.stop()

    def metadata(self) -> Metadata:
        """Return no entities."""
        return Metadata("ai", "", ())

    def entity(self, name: str) -> Entity | None:
        """Return None: a model has no tables."""
        return None

    def create_sender(self, spec: WriteSpec, control: SendControl) -> Sender:
        """Raise an error: a model accepts no rows."""
        raise ConnectorError("An AI model does not accept rows.", reason="unsupported")
