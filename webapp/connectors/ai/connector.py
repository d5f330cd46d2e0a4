"""AI: any server with OpenAI's chat completions API, such as Ollama, vLLM, llama.cpp, or a hosted one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from webapp import limits
from webapp.connectors.ai.chat import AiChat, Completion, Prompt
from webapp.connectors.ai.verification import stages
from webapp.connectors.base import Capabilities, ConnectorError, Stage, WriteSpec
from webapp.connectors.http.authentication import SECRET, BearerAuth, NoAuth, Url
from webapp.connectors.http.channel import Channel, HttpConnector, SendControl, Sender
from webapp.connectors.http.request_template import FixedHeaders
from webapp.connectors.http.retry import Retry
from webapp.connectors.http.tls import BINDS, TlsSettings
from webapp.connectors.schema import Entity, Metadata
from webapp.net import session as net

_Price = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


def _key(text: str) -> str:
    if any(sign.isspace() or not sign.isprintable() or not sign.isascii() for sign in text):
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
    api_key: Annotated[str, Field(max_length=limits.TOKEN_CHARS), AfterValidator(_key)] | None = Field(
        None, repr=False, json_schema_extra=SECRET,
        description="Sent as a bearer token. Local servers usually need none.",
    )  # fmt: skip
    default_headers: FixedHeaders = Field(default_factory=dict, description="Sent with every request.")
    response_format: Literal["auto", "json_schema", "json_object", "none"] = Field(
        "auto", description="Format of answers. auto: JSON Schema if the server supports it."
    )
    rows_per_request: int = Field(
        limits.AI_ROWS, ge=1, le=limits.AI_MOST_ROWS, description="Rows per request."
    )
    parallel: int = Field(
        limits.AI_PARALLEL, ge=1, le=limits.HTTP_MOST_PARALLEL, description="Requests at the same time."
    )
    retry: Retry = Field(default_factory=lambda: Retry(timeout_seconds=limits.AI_TIMEOUT_SECONDS))
    max_calls: int = Field(
        limits.AI_CALLS, ge=1, le=limits.AI_MOST_CALLS, description="Maximum requests per run."
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
    harmless: ClassVar[frozenset[str]] = frozenset(AiSettings.model_fields) - {
        "base_url",
        "api_key",
        *BINDS,
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

    def ask(self, prompt: Prompt) -> Completion:
        """See `AiChat.complete`."""
        return self.chat.ask(prompt)

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

    def sending(self, writing: WriteSpec, hand: SendControl) -> Sender:
        """Raise an error: a model accepts no rows."""
        raise ConnectorError("An AI model does not accept rows.", reason="unsupported")
