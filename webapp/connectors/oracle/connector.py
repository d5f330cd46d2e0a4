"""Oracle through python-oracledb in thin mode: settings, connecting, and verification."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from webapp.connectors import base
from webapp.connectors.base import Capabilities, Stage
from webapp.connectors.sql.server import (
    TLS_MESSAGES,
    ServerConnector,
    ServerSettings,
    connect_session,
    connection_failed_error,
    parse_url,
    reachable_address,
    single_call_stages,
    tls_field,
)
from webapp.connectors.verification import bad_settings_error, unknown_option_error

if TYPE_CHECKING:
    from webapp.connectors.oracle.connection import OracleConnection
    from webapp.connectors.oracle.session import OracleSession

# host:1521/service, tcps://host/service, jdbc:oracle:thin:user/password@//host:1521/service
_EASY: Final = re.compile(
    r"(?:(?P<user>[^/@]+)/(?P<password>.*)@)?(?:(?P<protocol>tcps?):)?(?://)?"
    r"(?P<host>\[[^\]]+\]|[^:/\s()=]+)(?::(?P<port>\d+))?/(?P<service>[\w.$#-]+)"
)


class OracleSettings(ServerSettings):
    """`connection_string` is a URL or an easy connect string. Separate settings override its parts.
    `database` is the service name."""

    tls: Literal["disable", "require", "verify-full"] | None = tls_field()


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """Connect options that are combined from all settings."""

    host: str
    port: int
    service: str
    username: str
    password: str = field(repr=False)
    tls: str = "disable"


class OracleConnector(ServerConnector):
    """See `Connector`."""

    kind: ClassVar[str] = "oracle"
    title: ClassVar[str] = "Oracle"
    extra: ClassVar[str] = "oracle"
    module: ClassVar[str] = "oracledb"
    default_port: ClassVar[int | None] = 1521
    can: ClassVar[Capabilities] = Capabilities(name_chars=128)
    Settings: ClassVar[type[base.Settings]] = OracleSettings
    settings: OracleSettings

    # --- connecting ---

    def connect_options(self) -> ConnectOptions:
        """Return the connect options from the settings. Raises `ConnectorError` (reason `bad_settings`)."""
        settings = self.settings
        parsed = _parse_connection_string(settings.connection_string) if settings.connection_string else {}
        host, service = (
            settings.host or parsed.get("host") or "",
            settings.database or parsed.get("service") or "",
        )
        if not host or not service or re.search(r"[\s()=/]", host + service):
            raise bad_settings_error(
                "A host and a service name are required.", "Enter a host, and the service name as database."
            )
        tls = settings.tls or parsed.get("tls") or ("verify-full" if settings.ca_certificate else "disable")
        return ConnectOptions(
            host,
            settings.port or parsed.get("port") or (1521 if tls == "disable" else 2484),
            service,
            (parsed.get("username") or "") if settings.username is None else settings.username,
            (parsed.get("password") or "") if settings.password is None else settings.password,
            tls,
        )

    def open(self, timeout: float | None = None) -> OracleSession:
        """See `Connector.open`."""
        self.driver()
        from webapp.connectors.oracle.session import OracleSession

        return connect_session(
            self._link, lambda link, another: OracleSession(link, another, self.read_only), timeout
        )

    def _link(self, seconds: float) -> OracleConnection:
        """Connect to an address that the guard allowed."""
        from webapp.connectors.oracle.connection import OracleConnection

        params = self.connect_options()
        address = reachable_address(self.gate, params.host, params.port, seconds)
        tls_options: dict[str, Any] = {"protocol": "tcp"}
        if params.tls != "disable":
            tls_options = {
                "protocol": "tcps",
                "ssl_server_dn_match": False,
                "ssl_context": self._tls_context(params),
            }
        try:
            return OracleConnection(
                self.gate,
                user=params.username,
                password=params.password,
                host=address,
                port=params.port,
                service_name=params.service,
                tcp_connect_timeout=seconds,
                retry_count=0,
                **tls_options,
            )
        except base.ConnectionLost as error:
            hint = (
                "Check that an Oracle listener responds on this address, with or without TLS as configured."
            )
            raise connection_failed_error(error.message, hint) from None

    def _tls_context(self, params: ConnectOptions) -> ssl.SSLContext:
        """Return a TLS context for the host name in the settings, because the driver only knows the address."""

        class Named(ssl.SSLContext):
            def wrap_socket(self, sock: socket.socket, *args: Any, **kwargs: Any) -> ssl.SSLSocket:
                self.check_hostname = self.verify_mode == ssl.CERT_REQUIRED  # the driver turns it off
                return super().wrap_socket(sock, *args, **{**kwargs, "server_hostname": params.host})

        context = Named(ssl.PROTOCOL_TLS_CLIENT)
        if params.tls == "require":
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            return context
        try:
            if self.settings.ca_certificate:
                context.load_verify_locations(cadata=self.settings.ca_certificate)
            else:
                context.load_default_certs()
        except ssl.SSLError as error:
            message = f"The CA certificate is invalid: {error.reason}."
            raise bad_settings_error(message, "Enter it in PEM format.") from None
        return context

    # --- verification ---

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`."""
        return single_call_stages(self.gate, self.connect_options, self.open, TLS_MESSAGES)


def _parse_connection_string(text: str) -> dict[str, Any]:
    """Parse a connection string."""
    stripped = text.strip().removeprefix("jdbc:oracle:thin:").removeprefix("@")
    try:
        if stripped.lower().startswith(("oracle://", "oracle+oracledb://")):
            parsed, options = parse_url(stripped.partition("://")[2])
            query = dict(options)
            for name in query.keys() - {"service_name"}:
                raise unknown_option_error(name, ("service_name",))
            return {**parsed, "service": parsed.get("database") or query.get("service_name", "")}
    except ValueError:
        pass
    match = _EASY.fullmatch(stripped)
    if match is None:
        raise bad_settings_error(
            "The connection string is invalid.",
            "Use oracle://user:password@host:1521/service or host:1521/service.",
        )
    return {
        "host": match["host"].strip("[]"),
        "port": int(match["port"]) if match["port"] else None,
        "service": match["service"],
        "username": match["user"] or "",
        "password": match["password"] or "",
        "tls": "verify-full" if match["protocol"] == "tcps" else None,
    }
