"""Verification of a connection to a model: connection, key, availability of the model, and a short answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import orjson
import requests

from webapp import limits
from webapp.connectors.ai.chat import AiChat, Prompt, saying
from webapp.connectors.base import ConnectorError, Stage
from webapp.connectors.http.authentication import send_authenticated
from webapp.connectors.http.verification import from_net_error
from webapp.connectors.rest.sending import over, url_of
from webapp.connectors.verification import Step, staged
from webapp.errors import did_you_mean
from webapp.net.session import NetError, Reply, Session, checked
from webapp.net.urls import shown

if TYPE_CHECKING:
    from webapp.connectors.ai.connector import AiConnector

_HELLO: Final = Prompt("You are being tested.", "Answer with the one word: ready")


def stages(session: Session, connector: AiConnector) -> Iterator[Stage]:
    """Run the stages in order, up to the first failure. The last stage has the `response`."""
    look = _Look(session, connector)
    held: Stage | None = None
    for stage in staged(look.steps()):
        if held is not None:
            yield held
        held = stage
    if held is not None:
        yield replace(held, response=look.response())


class _Look:
    """One verification. It requests the list of models once, and each stage reports a part of the result."""

    def __init__(self, session: Session, connector: AiConnector) -> None:
        self._session, self._settings, self._redact = session, connector.settings, connector.redact
        self._url = url_of(connector.settings.base_url, "models")
        self._timeout = min(connector.settings.retry.timeout_seconds, limits.VERIFY_STEP_SECONDS)
        self._reply: Reply | None = None

    def steps(self) -> list[tuple[str, Step]]:
        """Return the stages that apply."""
        way: list[tuple[str, Step]] = [("resolve", self.resolve), ("connect", self.connect)]
        if self._url.startswith("https:"):
            way.append(("tls", self.tls))
        return [*way, ("auth", self.auth), ("permission", self.permission), ("sample", self.sample)]

    def resolve(self) -> str:
        """Stage resolve."""
        try:
            checked(self._url)
        except NetError as error:
            raise from_net_error(error) from None
        found = self._session.gate.addresses(*self._place())
        host = self._place()[0]
        return f"{host} resolves to {', '.join(found)}" if found != [host] else ""

    def connect(self) -> str:
        """Stage connect."""
        self._session.gate.connect(*self._place(), self._timeout).close()
        return ""

    def _place(self) -> tuple[str, int]:
        parts = urlsplit(self._url)
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)

    def tls(self) -> str:
        """Stage tls."""
        self._ask()
        return ""

    def auth(self) -> str:
        """Stage auth: the key is accepted."""
        if self._ask().status == 401:
            raise ConnectorError(
                self._told(), reason="auth_failed", hint="Check api_key, or enter one if there is none."
            )
        return "" if self._settings.api_key else "no key is configured"

    def permission(self) -> str:
        """Stage permission: the key is allowed to list models, and the server has the model if it lists any."""
        reply = self._ask()
        if reply.status == 403:
            raise ConnectorError(
                self._told(), reason="forbidden", hint="The API key is not allowed to list models."
            )
        if reply.status >= 500:
            raise ConnectorError(
                self._told(), reason="unavailable", hint="Check the server's log, or try again later."
            )
        names, model = _models(reply), self._settings.model
        if names is None:
            return f"{self._told()}: the server does not list its models"
        # Ollama uses the plain name for the newest version of a model, and lists it with a tag.
        if model not in names and f"{model}:latest" not in names:
            known = ", ".join(names[: limits.AI_MODELS_TOLD]) or "none"
            more = (
                f" and {len(names) - limits.AI_MODELS_TOLD} more"
                if len(names) > limits.AI_MODELS_TOLD
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
        answer = AiChat(quick, self._session, self._redact, time.monotonic() + seconds).ask(_HELLO)
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
            "url": shown(reply.url),
            "status": reply.status,
            "content_type": reply.headers.get("Content-Type", ""),
            "body": reply.body.decode("utf-8", "replace")[: limits.HTTP_BODY_CHARS],
            "ms": reply.ms,
        }

    def _told(self) -> str:
        reply = self._ask()
        said = saying(reply, self._redact) if reply.status >= 400 else ""
        return f"GET {shown(self._url)} returned {reply.status}.{said}"

    def _ask(self) -> Reply:
        if self._reply is None:
            headers = over({"Accept": "application/json"}, self._settings.default_headers)
            auth = self._settings.auth.requests_auth(self._session)
            request = requests.Request("GET", self._url, headers=headers, auth=auth)
            try:
                self._reply = send_authenticated(
                    self._session, request, timeout_seconds=self._timeout, max_bytes=limits.AI_ANSWER_BYTES
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
