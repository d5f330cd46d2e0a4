"""PostgreSQL through psycopg 3: settings, connecting, and verification."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self

from pydantic import Field, model_validator

from webapp import limits
from webapp.connectors.base import Capabilities, ConnectorError, Settings, Stage
from webapp.connectors.sql.server import (
    ServerConnector,
    ServerSettings,
    address_field,
    options_field,
    tls_field,
)
from webapp.connectors.verification import Step, bad_settings_error, from_gate_error, run_stages
from webapp.net.gate import GateError

if TYPE_CHECKING:
    import psycopg

    from webapp.connectors.postgresql.session import PostgresqlSession

# Allowed in a connection string or `options` (libpq, "Parameter Key Words"). Excluded are parameters that
# name local files, and those that Rowsmith sets.
_ALLOWED: Final = frozenset(
    "host hostaddr port dbname user password sslmode connect_timeout options application_name target_session_attrs"
    " channel_binding client_encoding keepalives keepalives_idle keepalives_interval keepalives_count"
    " load_balance_hosts require_auth ssl_min_protocol_version ssl_max_protocol_version".split()
)
_OPTIONS: Final = _ALLOWED - {"host", "hostaddr", "port", "dbname", "user", "password", "sslmode"}
_SSL_REQUEST: Final = b"\x00\x00\x00\x08\x04\xd2\x16\x2f"  # PostgreSQL, "Message Formats": SSLRequest
_VERIFYING: Final = ("verify-ca", "verify-full")


class PostgresqlSettings(ServerSettings):
    """`connection_string` is a URL or `key=value` pairs. Separate settings override its parts."""

    database: str | None = address_field(4, 63)
    username: str | None = Field(None, max_length=63, json_schema_extra={"group": "server", "order": 5})
    db_schema: str | None = address_field(7, 63, alias="schema")
    tls: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] | None = tls_field()
    options: dict[str, str] = options_field()

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        if unknown := sorted(set(self.options) - _OPTIONS):
            known = ", ".join(sorted(_OPTIONS))
            instead = "; use the setting tls" if {"sslmode", "ssl", "tls"} & set(unknown) else ""
            raise ValueError(
                f"options: {', '.join(unknown)} are not supported{instead}; supported are {known}"
            )
        return self


class PostgresqlConnector(ServerConnector):
    """See `Connector`."""

    kind: ClassVar[str] = "postgresql"
    title: ClassVar[str] = "PostgreSQL"
    extra: ClassVar[str] = "postgresql"
    module: ClassVar[str] = "psycopg"
    default_port: ClassVar[int | None] = 5432
    can: ClassVar[Capabilities] = Capabilities()
    Settings: ClassVar[type[Settings]] = PostgresqlSettings
    settings: PostgresqlSettings

    # --- connecting ---

    def _parameters(self) -> dict[str, str]:
        """Return libpq's parameters, except for addresses and certificates."""
        psycopg, settings = self.driver(), self.settings
        parameters: dict[str, str] = {}
        if settings.connection_string:
            text = settings.connection_string.strip().removeprefix("jdbc:")
            scheme, separator, rest = text.partition("://")
            if separator:
                text = scheme.partition("+")[0] + separator + rest  # SQLAlchemy's postgresql+psycopg://
            try:
                parameters = {
                    key: str(value) for key, value in psycopg.conninfo.conninfo_to_dict(text).items()
                }
            except psycopg.ProgrammingError:
                raise bad_settings_error(
                    "The connection string is invalid."
                    if text.startswith("postgres") or not separator
                    else f"{scheme}:// is not a PostgreSQL URL.",
                    "Use postgresql://user:password@host:5432/database, with characters such as @ / : in the password"
                    " percent-encoded.",
                ) from None
            if unknown := sorted(set(parameters) - _ALLOWED):
                raise bad_settings_error(
                    f"The connection string must not contain {', '.join(unknown)}.",
                    "Remove it, or use the separate settings.",
                )
        parts = {
            "host": settings.host, "port": settings.port, "dbname": settings.database, "user": settings.username,
            "password": settings.password, "sslmode": settings.tls,
        }  # fmt: skip
        parameters |= settings.options
        parameters |= {key: str(value) for key, value in parts.items() if value is not None}
        host = parameters.pop("hostaddr", None) if not parameters.get("host") else parameters.get("host")
        parameters.pop("hostaddr", None)
        if not host or "," in host or host.startswith(("/", "@")):
            raise bad_settings_error(
                "A single host name is required.",
                "Enter one host. Sockets and lists of hosts are not supported.",
            )
        parameters["host"] = host
        parameters.setdefault("port", "5432")
        if not parameters["port"].isdigit() or not 0 < int(parameters["port"]) < 65_536:
            raise bad_settings_error(
                f"{parameters['port']} is not a valid port.", "Enter a number from 1 to 65535."
            )
        return parameters

    def _addresses(self, parameters: Mapping[str, str]) -> list[str]:
        try:
            return self.gate.addresses(parameters["host"], int(parameters["port"]))
        except GateError as error:
            raise from_gate_error(error) from None

    @contextmanager
    def _driver_arguments(self, parameters: dict[str, str], seconds: float) -> Iterator[dict[str, str]]:
        """Yield libpq's parameters with the addresses that the guard allowed, and without anything from local
        files.

        The certificate's file exists until the block ends.
        """
        addresses = self._addresses(parameters)
        arguments = {
            "connect_timeout": str(max(2, round(seconds))),
            "tcp_user_timeout": str(int(limits.TARGET_UNACKNOWLEDGED_SECONDS * 1000)),
            "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "4",
            "application_name": "rowsmith", "dbname": "postgres", "user": "postgres", **parameters,
            "host": ",".join([parameters["host"]] * len(addresses)), "hostaddr": ",".join(addresses),
            "port": ",".join([parameters["port"]] * len(addresses)),
            "sslcertmode": "disable", "gssencmode": "disable", "client_encoding": "UTF8",
        }  # fmt: skip
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            arguments["passfile"] = f"{file.name}.none"  # otherwise libpq reads the operator's password file
            system = ssl.get_default_verify_paths().cafile if arguments.get("sslmode") in _VERIFYING else None
            if self.settings.ca_certificate:
                file.write(self.settings.ca_certificate)
                file.flush()
                arguments["sslrootcert"] = file.name
            elif system:
                arguments["sslrootcert"] = system
            yield arguments

    def open(self, timeout: float | None = None) -> PostgresqlSession:
        """See `Connector.open`."""
        from webapp.connectors.postgresql.session import PostgresqlSession

        driver = self.driver()
        from webapp.connectors.postgresql.errors import convert_connect_error

        parameters = self._parameters()
        with self._driver_arguments(parameters, timeout or limits.TARGET_CONNECT_SECONDS) as arguments:
            try:
                connection: psycopg.Connection[Any] = driver.connect(
                    autocommit=True, prepare_threshold=None, **arguments
                )
            except driver.Error as error:
                raise convert_connect_error(error, parameters["host"]) from None
        try:
            return PostgresqlSession(connection, self.settings.db_schema or "", self.read_only)
        except BaseException:
            connection.close()
            raise

    # --- verification ---

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`. `sample` reads one row of the first readable table."""
        sessions: list[PostgresqlSession] = []

        def enter() -> str:
            sessions.append(self.open(limits.TARGET_CONNECT_SECONDS))
            return f"Signed in to {sessions[0].describe()}."

        steps: tuple[tuple[str, Step], ...] = (
            ("resolve", self._resolve),
            ("connect", self._connect),
            ("tls", self._negotiate_tls),
            ("auth", enter),
            ("permission", lambda: sessions[0].check_permission()),
            ("sample", lambda: sessions[0].check_sample()),
        )
        try:
            yield from run_stages(steps)
        finally:
            for session in sessions:
                session.close()

    def _resolve(self) -> str:
        parameters = self._parameters()
        return f"{parameters['host']} resolves to {', '.join(self._addresses(parameters))}."

    def _connect(self) -> str:
        parameters = self._parameters()
        self.gate.connect(parameters["host"], int(parameters["port"]), limits.TARGET_CONNECT_SECONDS).close()
        return f"Port {parameters['port']} accepts connections."

    def _negotiate_tls(self) -> str:
        """Negotiate TLS as libpq does, and verify the certificate if the mode requires it."""
        parameters = self._parameters()
        mode = parameters.get("sslmode", "prefer")
        if mode == "disable":
            return "Without TLS, as configured."
        host = parameters["host"]
        try:
            with self.gate.connect(
                host, int(parameters["port"]), limits.TARGET_CONNECT_SECONDS
            ) as connection:
                connection.sendall(_SSL_REQUEST)
                answer = connection.recv(1)
                if answer == b"S":
                    verdict = "verified" if mode in _VERIFYING else "not verified"
                    with self._tls_context(mode).wrap_socket(connection, server_hostname=host) as secure:
                        return f"{secure.version()}, certificate {verdict}."
        except ssl.SSLCertVerificationError as error:
            raise ConnectorError(
                f"The certificate was rejected: {error.verify_message}",
                reason="tls_failed",
                hint="Enter the certificate of the authority that signed it, and the host name it was issued for.",
            ) from None
        except TimeoutError:
            raise ConnectorError(
                f"{host}:{parameters['port']} accepted the connection but did not respond in time.",
                code="target_timeout",
                reason="timeout",
                hint="Check that a PostgreSQL server listens on this address.",
            ) from None
        except OSError as error:
            raise ConnectorError(
                f"The server closed the connection: {error}",
                reason="tls_failed",
                hint="Check that a PostgreSQL server listens on this address.",
            ) from None
        if answer != b"N":
            raise ConnectorError(
                "The server at this address is not PostgreSQL.",
                reason="not_postgresql",
                hint="Check the host and the port.",
            )
        if mode != "prefer":
            raise ConnectorError(
                "The server does not support TLS.",
                reason="tls_failed",
                hint="Enable TLS on the server, or set tls to prefer.",
            )
        return "The server does not support TLS; passwords and rows are sent unencrypted."

    def _tls_context(self, mode: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.settings.ca_certificate)
        context.check_hostname = mode == "verify-full"
        if mode not in _VERIFYING:
            context.verify_mode = ssl.CERT_NONE
        return context
