"""Verifying a connection to a model: the way there, the key, the model among those it has, and a word from it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import orjson
import requests

from webapp import limits
from webapp.connectors.ai_chat import AiChat, Prompt, saying
from webapp.connectors.base import ConnectorError, Stage
from webapp.connectors.http_auth import authorised
from webapp.connectors.http_stages import of_net
from webapp.connectors.rest_sending import over, url_of
from webapp.connectors.stages import Step, staged
from webapp.errors import did_you_mean
from webapp.net.session import NetError, Reply, Session, checked, shown

if TYPE_CHECKING:
    from webapp.connectors.ai import AiConnector

_HELLO: Final = Prompt("You are being tested.", "Answer with the one word: ready")


def stages(session: Session, connector: AiConnector) -> Iterator[Stage]:
    """The stages in order, ending with the first that fails. The last has the `response`."""
    look = _Look(session, connector)
    held: Stage | None = None
    for stage in staged(look.steps()):
        if held is not None:
            yield held
        held = stage
    if held is not None:
        yield replace(held, response=look.response())


class _Look:
    """One look at a server. Its models are asked for once; each stage says what it sees in the answer."""

    def __init__(self, session: Session, connector: AiConnector) -> None:
        self._session, self._settings, self._hush = session, connector.settings, connector.hush
        self._url = url_of(connector.settings.base_url, "models")
        self._timeout = min(connector.settings.retry.timeout_seconds, limits.VERIFY_STEP_SECONDS)
        self._reply: Reply | None = None

    def steps(self) -> list[tuple[str, Step]]:
        """The stages that apply."""
        way: list[tuple[str, Step]] = [("resolve", self.resolve), ("connect", self.connect)]
        if self._url.startswith("https:"):
            way.append(("tls", self.tls))
        return [*way, ("auth", self.auth), ("permission", self.permission), ("sample", self.sample)]

    def resolve(self) -> str:
        """Stage resolve."""
        try:
            checked(self._url)
        except NetError as error:
            raise of_net(error) from None
        found = self._session.gate.addresses(*self._place())
        host = self._place()[0]
        return f"{host} is {', '.join(found)}" if found != [host] else ""

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
        """Stage auth: the key is known."""
        if self._ask().status == 401:
            raise ConnectorError(
                self._told(), reason="auth_failed", hint="Check api_key, or give one where there is none."
            )
        return "" if self._settings.api_key else "no key is sent"

    def permission(self) -> str:
        """Stage permission: the key may ask, and the server has the model, where it says which it has."""
        reply = self._ask()
        if reply.status == 403:
            raise ConnectorError(self._told(), reason="forbidden", hint="The key may not list models.")
        if reply.status >= 500:
            raise ConnectorError(
                self._told(), reason="unavailable", hint="Look at the server's log, or try later."
            )
        names, model = _models(reply), self._settings.model
        if names is None:
            return f"{self._told()}: which models there are is not told"
        # Ollama calls the newest of a model by its plain name, and lists it with a tag.
        if model not in names and f"{model}:latest" not in names:
            known = ", ".join(names[: limits.AI_MODELS_TOLD]) or "none"
            more = (
                f" and {len(names) - limits.AI_MODELS_TOLD} more"
                if len(names) > limits.AI_MODELS_TOLD
                else ""
            )
            hint = f"{did_you_mean(model, names) or ''} There are {known}{more}.".strip()
            raise ConnectorError(
                f'The server has no model "{model}".', reason="no_model", hint=self._hush(hint)
            )
        return f"{len(names)} models" if len(names) > 1 else ""

    def sample(self) -> str:
        """Stage sample: the model says a word."""
        quick = self._settings.model_copy(
            update={"retry": self._settings.retry.model_copy(update={"retries": 0})}
        )
        seconds = limits.VERIFY_SECONDS / 2  # a model that is being loaded takes its time
        answer = AiChat(quick, self._session, self._hush, time.monotonic() + seconds).ask(_HELLO)
        text = self._hush(" ".join(answer.text.split()))[:50]
        return f"{self._settings.model} says: {text}" if text else f"{self._settings.model} answered nothing"

    def response(self) -> dict[str, Any] | None:
        """What the server answered when it was asked for its models."""
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
        said = saying(reply, self._hush) if reply.status >= 400 else ""
        return f"GET {shown(self._url)} answered {reply.status}.{said}"

    def _ask(self) -> Reply:
        if self._reply is None:
            headers = over({"Accept": "application/json"}, self._settings.default_headers)
            auth = self._settings.auth.on_wire(self._session)
            request = requests.Request("GET", self._url, headers=headers, auth=auth)
            try:
                self._reply = authorised(
                    self._session, request, timeout_seconds=self._timeout, max_bytes=limits.AI_ANSWER_BYTES
                )
            except NetError as error:
                raise of_net(error) from None
        return self._reply


def _models(reply: Reply) -> list[str] | None:
    """The models that a server lists; None where it lists none in OpenAI's shape."""
    if reply.status != 200:
        return None
    try:
        return [str(one["id"]) for one in orjson.loads(reply.body)["data"]]
    except (orjson.JSONDecodeError, LookupError, TypeError):
        return None
