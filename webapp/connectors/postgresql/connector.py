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
from webapp.connectors.sql.server import ServerConnector, ServerSettings, more_part, part, tls_part
from webapp.connectors.verification import Step, bad_settings, from_gate_error, staged
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

    database: str | None = part(4, 63)
    username: str | None = Field(None, max_length=63, json_schema_extra={"group": "server", "order": 5})
    db_schema: str | None = part(7, 63, alias="schema")
    tls: Literal["disable", "prefer", "require", "verify-ca", "verify-full"] | None = tls_part()
    options: dict[str, str] = more_part()

    @model_validator(mode="after")
    def _sets_what_may_be_set(self) -> Self:
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
        psycopg, given = self.driver(), self.settings
        found: dict[str, str] = {}
        if given.connection_string:
            text = given.connection_string.strip().removeprefix("jdbc:")
            scheme, separator, rest = text.partition("://")
            if separator:
                text = scheme.partition("+")[0] + separator + rest  # SQLAlchemy's postgresql+psycopg://
            try:
                found = {key: str(value) for key, value in psycopg.conninfo.conninfo_to_dict(text).items()}
            except psycopg.ProgrammingError:
                raise bad_settings(
                    "The connection string is invalid."
                    if text.startswith("postgres") or not separator
                    else f"{scheme}:// is not a PostgreSQL URL.",
                    "Use postgresql://user:password@host:5432/database, with characters such as @ / : in the password"
                    " percent-encoded.",
                ) from None
            if unknown := sorted(set(found) - _ALLOWED):
                raise bad_settings(
                    f"The connection string must not contain {', '.join(unknown)}.",
                    "Remove it, or use the separate settings.",
                )
        parts = {
            "host": given.host, "port": given.port, "dbname": given.database, "user": given.username,
            "password": given.password, "sslmode": given.tls,
        }  # fmt: skip
        found |= given.options
        found |= {key: str(value) for key, value in parts.items() if value is not None}
        host = found.pop("hostaddr", None) if not found.get("host") else found.get("host")
        found.pop("hostaddr", None)
        if not host or "," in host or host.startswith(("/", "@")):
            raise bad_settings(
                "A single host name is required.",
                "Enter one host. Sockets and lists of hosts are not supported.",
            )
        found["host"] = host
        found.setdefault("port", "5432")
        if not found["port"].isdigit() or not 0 < int(found["port"]) < 65_536:
            raise bad_settings(f"{found['port']} is not a valid port.", "Enter a number from 1 to 65535.")
        return found

    def _address(self, found: Mapping[str, str]) -> list[str]:
        try:
            return self.gate.addresses(found["host"], int(found["port"]))
        except GateError as error:
            raise from_gate_error(error) from None

    @contextmanager
    def _connected(self, found: dict[str, str], seconds: float) -> Iterator[dict[str, str]]:
        """Yield libpq's parameters with the addresses that the guard allowed, and without anything from local
        files.

        The certificate's file exists until the block ends.
        """
        addresses = self._address(found)
        told = {
            "connect_timeout": str(max(2, round(seconds))),
            "tcp_user_timeout": str(int(limits.TARGET_SILENT_SECONDS * 1000)),
            "keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "4",
            "application_name": "rowsmith", "dbname": "postgres", "user": "postgres", **found,
            "host": ",".join([found["host"]] * len(addresses)), "hostaddr": ",".join(addresses),
            "port": ",".join([found["port"]] * len(addresses)),
            "sslcertmode": "disable", "gssencmode": "disable", "client_encoding": "UTF8",
        }  # fmt: skip
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            told["passfile"] = f"{file.name}.none"  # otherwise libpq reads the operator's password file
            system = ssl.get_default_verify_paths().cafile if told.get("sslmode") in _VERIFYING else None
            if self.settings.ca_certificate:
                file.write(self.settings.ca_certificate)
                file.flush()
                told["sslrootcert"] = file.name
            elif system:
                told["sslrootcert"] = system
            yield told

    def open(self, timeout: float | None = None) -> PostgresqlSession:
        """See `Connector.open`."""
        from webapp.connectors.postgresql.session import PostgresqlSession

        driver = self.driver()
        from webapp.connectors.postgresql.errors import at_connect

        found = self._parameters()
        with self._connected(found, timeout or limits.TARGET_CONNECT_SECONDS) as told:
            try:
                connection: psycopg.Connection[Any] = driver.connect(
                    autocommit=True, prepare_threshold=None, **told
                )
            except driver.Error as error:
                raise at_connect(error, found["host"]) from None
        try:
            return PostgresqlSession(connection, self.settings.db_schema or "", self.read_only)
        except BaseException:
            connection.close()
            raise

    # --- verification ---

    def stages(self) -> Iterator[Stage]:
        """See `Connector.stages`. `sample` reads one row of the first readable table."""
        session: list[PostgresqlSession] = []

        def enter() -> str:
            session.append(self.open(limits.TARGET_CONNECT_SECONDS))
            return f"Signed in to {session[0].describe()}."

        steps: tuple[tuple[str, Step], ...] = (
            ("resolve", self._resolve),
            ("connect", self._reach),
            ("tls", self._greet),
            ("auth", enter),
            ("permission", lambda: session[0].permitted()),
            ("sample", lambda: session[0].sampled()),
        )
        try:
            yield from staged(steps)
        finally:
            for one in session:
                one.close()

    def _resolve(self) -> str:
        found = self._parameters()
        return f"{found['host']} resolves to {', '.join(self._address(found))}."

    def _reach(self) -> str:
        found = self._parameters()
        self.gate.connect(found["host"], int(found["port"]), limits.TARGET_CONNECT_SECONDS).close()
        return f"Port {found['port']} accepts connections."

    def _greet(self) -> str:
        """Negotiate TLS as libpq does, and verify the certificate if the mode requires it."""
        found = self._parameters()
        mode = found.get("sslmode", "prefer")
        if mode == "disable":
            return "Without TLS, as configured."
        host = found["host"]
        try:
            with self.gate.connect(host, int(found["port"]), limits.TARGET_CONNECT_SECONDS) as params:
                params.sendall(_SSL_REQUEST)
                answer = params.recv(1)
                if answer == b"S":
                    judged = "verified" if mode in _VERIFYING else "not verified"
                    with self._context(mode).wrap_socket(params, server_hostname=host) as secure:
                        return f"{secure.version()}, certificate {judged}."
        except ssl.SSLCertVerificationError as error:
            raise ConnectorError(
                f"The certificate was rejected: {error.verify_message}",
                reason="tls_failed",
                hint="Enter the certificate of the authority that signed it, and the host name it was issued for.",
            ) from None
        except TimeoutError:
            raise ConnectorError(
                f"{host}:{found['port']} accepted the connection but did not respond in time.",
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

    def _context(self, mode: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.settings.ca_certificate)
        context.check_hostname = mode == "verify-full"
        if mode not in _VERIFYING:
            context.verify_mode = ssl.CERT_NONE
        return context
