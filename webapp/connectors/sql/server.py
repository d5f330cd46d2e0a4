"""Settings, driver loading and verification for the kinds that connect to a server by host name."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, ClassVar, Final, Protocol, Self, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import Field, model_validator

from webapp import limits
from webapp.connectors.base import Connector, ConnectorError, DriverMissing, Session, Settings, Stage
from webapp.connectors.verification import from_gate_error, run_stages
from webapp.net.gate import Gate, GateError

TLS_MESSAGES: Final = {
    "disable": "Without TLS, as configured.",
    "require": "With TLS, certificate not verified.",
    "verify-full": "With TLS, certificate verified.",
}
"""Messages about TLS by mode, for drivers that report no details."""
_PEM: Final = "-----BEGIN CERTIFICATE-----"
SessionT = TypeVar("SessionT", bound=Session)


def address_field(order: int, max_length: int, **field_options: Any) -> Any:
    """Return the form field of a text that is part of the server's address."""
    return Field(
        None,
        min_length=1,
        max_length=max_length,
        json_schema_extra={"group": "server", "order": order},
        **field_options,
    )


def tls_field() -> Any:
    """Return the form field of the TLS mode. Each kind has its own modes."""
    return Field(None, json_schema_extra={"group": "tls", "order": 8})


def options_field() -> Any:
    """Return the form field of further options."""
    return Field(default_factory=dict, json_schema_extra={"group": "more", "order": 10})


class ServerSettings(Settings):
    """Settings of a server. Separate settings override the parts of `connection_string`."""

    connection_string: str | None = Field(
        None, max_length=2_000, json_schema_extra={"secret": True, "group": "string", "order": 1}
    )
    host: str | None = address_field(2, 255)
    port: int | None = Field(None, ge=1, le=65_535, json_schema_extra={"group": "server", "order": 3})
    database: str | None = address_field(4, 128)
    username: str | None = Field(None, max_length=128, json_schema_extra={"group": "server", "order": 5})
    password: str | None = Field(
        None, max_length=1_000, json_schema_extra={"secret": True, "group": "server", "order": 6}
    )
    ca_certificate: str | None = Field(
        None, max_length=100_000, json_schema_extra={"group": "tls", "order": 9, "multiline": True}
    )

    @model_validator(mode="after")
    def _has_host(self) -> Self:
        if not self.connection_string and not self.host:
            raise ValueError("enter a connection_string or a host")
        if self.ca_certificate and _PEM not in self.ca_certificate:
            raise ValueError(f"ca_certificate: enter the certificate as PEM text ({_PEM})")
        return self


class ServerConnector(Connector):
    """See `Connector`. `module` is the driver's, imported when it is first needed."""

    module: ClassVar[str]

    @classmethod
    def driver(cls) -> ModuleType:
        """See `Connector.driver`."""
        try:
            return importlib.import_module(cls.module)
        except ImportError:
            raise DriverMissing(cls.title, cls.extra) from None


def parse_url(rest: str) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Parse a URL after its scheme. Returns host, port, database, user name and password if given, and the
    query's options.

    Raises ValueError.
    """
    parts = urlsplit(f"any://{rest}")
    parsed: dict[str, Any] = {
        "host": parts.hostname,
        "port": parts.port,
        "database": unquote(parts.path.removeprefix("/")),
        "username": unquote(parts.username or ""),
    }
    parsed = {name: value for name, value in parsed.items() if value}
    if parts.password is not None:
        parsed["password"] = unquote(parts.password)  # may be empty
    return parsed, parse_qsl(parts.query, keep_blank_values=True)


class ConnectOptions(Protocol):
    """The part of the connect options that verification uses."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def tls(self) -> str: ...


def single_call_stages(
    gate: Gate,
    connect_options: Callable[[], ConnectOptions],
    sign_in: Callable[[], Any],
    tls_messages: Mapping[str, str],
) -> Iterator[Stage]:
    """Yield the stages for a driver that connects, agrees on TLS and signs in with one call.

    `sign_in` opens a session with `title`, `check_permission` and `check_sample`; `tls_messages` are messages by TLS
    mode.
    """
    sessions: list[Any] = []
    options: list[ConnectOptions] = []

    def resolve() -> str:
        options.append(connect_options())
        return f"{options[0].host} resolves to {', '.join(gate.addresses(options[0].host, options[0].port))}."

    def connect() -> str:
        gate.connect(options[0].host, options[0].port, limits.TARGET_CONNECT_SECONDS).close()
        return f"Port {options[0].port} accepts connections."

    def auth() -> str:
        sessions.append(sign_in())
        return f"Signed in to {sessions[0].title}. {tls_messages[options[0].tls]}"

    try:
        yield from run_stages(
            (
                ("resolve", resolve),
                ("connect", connect),
                ("auth", auth),
                ("permission", lambda: sessions[0].check_permission()),
                ("sample", lambda: sessions[0].check_sample()),
            )
        )
    finally:
        for session in sessions:
            session.close()


def reachable_address(gate: Gate, host: str, port: int, seconds: float) -> str:
    """Connect to a host through the address guard, and return the address that answered. Raises
    `ConnectorError`."""
    try:
        with gate.connect(host, port, seconds) as connection:
            return str(connection.getpeername()[0])
    except GateError as error:
        raise from_gate_error(error) from None


def connect_session(
    connect: Callable[[float], Any],
    session: Callable[[Any, Callable[[], Any]], SessionT],
    timeout: float | None,
) -> SessionT:
    """Open a session over a connection that `connect` opens within the timeout.

    `session` gets the connection and a function that opens another one.
    """
    seconds = timeout or limits.TARGET_CONNECT_SECONDS
    connection = connect(seconds)
    try:
        return session(connection, lambda: connect(seconds))
    except BaseException:
        connection.close()
        raise


def connection_failed_error(message: str, hint: str, code: str = "target_failed") -> ConnectorError:
    """Return the error for a failed connection whose driver does not report the cause."""
    return ConnectorError(
        f"The connection failed: {message}", code=code, reason="refused", hint=hint, transient=True
    )
