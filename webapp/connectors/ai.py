"""AI: any server that speaks OpenAI's chat completions, such as Ollama, vLLM, llama.cpp, or one that is hosted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from webapp import limits
from webapp.connectors.ai_chat import AiChat, Completion, Prompt
from webapp.connectors.ai_stages import stages
from webapp.connectors.base import Capabilities, ConnectorError, Stage, Writing
from webapp.connectors.channel import Channel, Hand, HttpConnector, Sending
from webapp.connectors.http_auth import SECRET, BearerAuth, NoAuth, Url
from webapp.connectors.http_tls import BINDS, TlsSettings
from webapp.connectors.request_template import FixedHeaders
from webapp.connectors.retry import Retry
from webapp.connectors.shape import Entity, Metadata
from webapp.net import session as net

_Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


def _key(text: str) -> str:
    if any(sign.isspace() or not sign.isprintable() or not sign.isascii() for sign in text):
        raise ValueError("a key has letters, digits and signs only: no spaces, no line breaks")
    return text


class AiSettings(TlsSettings):
    """Where the model is, and what one run may cost."""

    model_config = ConfigDict(hide_input_in_errors=True)

    base_url: Url = Field(
        description="The address before /chat/completions, such as http://127.0.0.1:11434/v1."
    )
    model: str = Field(
        min_length=1, max_length=limits.AI_MODEL_CHARS, pattern=r"^\S(.*\S)?$",
        description="The model, by the name that the server has for it.",
    )  # fmt: skip
    api_key: Annotated[str, Field(max_length=limits.TOKEN_CHARS), AfterValidator(_key)] | None = Field(
        None, repr=False, json_schema_extra=SECRET,
        description="Sent as a bearer token; local servers need none.",
    )  # fmt: skip
    default_headers: FixedHeaders = Field(default_factory=dict, description="Sent with every request.")
    response_format: Literal["auto", "json_schema", "json_object", "none"] = Field(
        "auto", description="How answers are asked for; auto: by JSON Schema, else as the server allows."
    )
    rows_per_request: int = Field(
        limits.AI_ROWS, ge=1, le=limits.AI_MOST_ROWS, description="Rows of one request."
    )
    parallel: int = Field(
        limits.AI_PARALLEL, ge=1, le=limits.HTTP_MOST_PARALLEL, description="Requests at once."
    )
    retry: Retry = Field(default_factory=lambda: Retry(timeout_seconds=limits.AI_TIMEOUT_SECONDS))
    max_calls: int = Field(
        limits.AI_CALLS, ge=1, le=limits.AI_MOST_CALLS, description="Requests of one run, at most."
    )
    max_cost: _Price | None = Field(
        None, description="What one run may cost, at most; in the currency of the prices."
    )
    price_per_1k_input: _Price | None = Field(None, description="Price of 1,000 tokens that are sent.")
    price_per_1k_output: _Price | None = Field(None, description="Price of 1,000 tokens that are answered.")

    @model_validator(mode="after")
    def _cost_has_prices(self) -> Self:
        if self.max_cost is not None and not (self.price_per_1k_input or self.price_per_1k_output):
            raise ValueError("max_cost needs price_per_1k_input or price_per_1k_output")
        return self

    @property
    def auth(self) -> NoAuth | BearerAuth:
        """How requests are authenticated."""
        return BearerAuth(type="bearer", token=self.api_key) if self.api_key else NoAuth()


class AiConnector(HttpConnector):
    """A model that answers prompts. It takes no rows."""

    kind = "ai"
    title = "AI model"
    Settings = AiSettings
    settings: AiSettings
    can: ClassVar[Capabilities] = replace(
        HttpConnector.can, modes=(), capture=False, by_row=False, prompts=True
    )
    harmless: ClassVar[frozenset[str]] = frozenset(AiSettings.model_fields) - {
        "base_url",
        "api_key",
        *BINDS,
    }

    def stages(self) -> Iterator[Stage]:
        """Resolve, connect, TLS, the key, whether the model is there, and a word from it."""
        with net.open_session(self.gate, verify_tls=self.settings.trust) as session:
            yield from stages(session, self)

    def open(self, timeout: float | None = None) -> AiChannel:
        """Ready to ask; what it answers and costs is counted from here on."""
        return AiChannel(self)


class AiChannel(Channel):
    """An open way to a model: one run, of limits.AI_SECONDS."""

    def __init__(self, connector: AiConnector) -> None:
        settings = connector.settings
        self.settings = settings
        self._session = net.open_session(connector.gate, verify_tls=settings.trust, pool=settings.parallel)
        self.chat = AiChat(settings, self._session, connector.hush, time.monotonic() + limits.AI_SECONDS)

    def ask(self, prompt: Prompt) -> Completion:
        """See `AiChat.ask`."""
        return self.chat.ask(prompt)

    def close(self) -> None:
        """See `Link.close`."""
        self._session.close()

    def cancel(self) -> None:
        """See `Link.cancel`."""
        self._session.stop()
        self.chat.stop()

    def metadata(self) -> Metadata:
        """A model has no tables."""
        return Metadata("ai", "", ())

    def entity(self, name: str) -> Entity | None:
        """A model has no tables."""
        return None

    def sending(self, writing: Writing, hand: Hand) -> Sending:
        """A model takes no rows."""
        raise ConnectorError("A model takes no rows.", reason="unsupported")
