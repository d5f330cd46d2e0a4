"""Settings: one immutable object, created from environment variables and validated before anything starts.

Each setting is one field with the name of its environment variable and one sentence of documentation. The page
`docs/reference/settings.md` is generated from these (`reference()`), and a test checks that it is up to date. This
module does not read the process's environment: `Settings.from_env(os.environ)` does, once, in `wsgi.py` and the CLI.
"""

# ruff: noqa: RUF009 - `_setting` returns a dataclass field, as `field` itself does

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from webapp import limits
from webapp.config import values as read
from webapp.config.values import NEW_PEOPLE, SECOND_FACTOR, MailServer, faults, is_loopback, mail_server
from webapp.errors import did_you_mean

PREFIX: Final = "ROWSMITH_"
# Names that the launcher reads (docs/reference/cli.md); they are no settings of the service, and no mistakes either.
LAUNCHER_NAMES: Final = ("ROWSMITH_CALLER_DIR", "ROWSMITH_PYTHON", "ROWSMITH_VENV")
EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - for clients, not servers
# Networks that a default local installation may connect to: loopback, and the private networks of RFC 1918 and RFC
# 4193.
LOCAL_NETWORKS: Final = (
    "127.0.0.0/8",
    "::1/128",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "fc00::/7",
)
# Environment variables that the S3 client uses if STORAGE_URL is s3://.
S3_NAMES: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_ENDPOINT_URL",
)


class SettingsError(Exception):
    """The settings cannot be used. The message has one sentence per error, each with the name of the setting."""

    def __init__(self, faults: list[str]) -> None:
        self.faults = faults
        super().__init__("\n".join(faults))


def _setting(
    env: str, doc: str, default: Any = None, parse: Callable[[str], Any] = read.plain, *, secret: bool = False
) -> Any:
    meta = {"env": env, "doc": doc, "parse": parse, "secret": secret}
    return field(default=default, metadata=meta)


@dataclass(frozen=True)
class Settings:
    """All settings. Created by `from_env`, which validates them."""

    secret_key: str = _setting(
        "SECRET_KEY",
        "Signs cookies, CSRF tokens and cursors. At least 32 random characters, the same on every "
        "machine. `./rowsmith up` creates one and stores it in the data folder.",
        "",
        secret=True,
    )
    data_dir: Path = _setting(
        "ROWSMITH_DATA_DIR",
        "Data folder: SQLite database, stored files, keys.",
        Path("var"),
        Path,
    )
    database_url: str = _setting(
        "DATABASE_URL",
        "`sqlite:///file` or `postgresql://user:password@host/name`. Default: `rowsmith.db` in the data folder.",
        "",
        secret=True,
    )
    redis_url: str = _setting(
        "REDIS_URL",
        "URL of Redis or Valkey (`redis://`, `rediss://` or `unix://`), which is used for rate limits, "
        "the queue and log streams. If it is not set, `./rowsmith up` starts an embedded server.",
        "redis://127.0.0.1:6379/0",
        secret=True,
    )
    storage_url: str = _setting(
        "STORAGE_URL",
        "Where files are stored: `file:///folder` or `s3://bucket/prefix`. Default: `storage` in the "
        "data folder. S3 uses the AWS_* settings below.",
        "",
    )
    scanner: read.Scanner | None = _setting(
        "SCANNER_URL",
        "Virus scanner that checks each workspace file before anyone can download it: clamd at "
        "`clamd://host:3310` or `clamd:///run/clamav/clamd.ctl`. Default: none.",
        None,
        read.scanner,
    )
    vault_keys: tuple[str, ...] = _setting(
        "VAULT_KEYS",
        "Fernet keys that encrypt stored secrets, newest first, separated by commas. Older keys can "
        "still decrypt. `./rowsmith up` creates one and stores it in the data folder.",
        (),
        read.words,
        secret=True,
    )
    public_url: str = _setting(
        "PUBLIC_URL",
        "Public URL of this service, used in links: `https://data.example.org`. Plain HTTP is only "
        "allowed on loopback. Default: the address of the current request.",
        "",
    )
    trusted_proxies: tuple[str, ...] = _setting(
        "TRUSTED_PROXIES",
        "IP addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto headers are "
        "trusted. `unix` trusts a proxy that connects through a socket file. Default: none.",
        (),
        read.networks,
    )
    target_networks: tuple[str, ...] = _setting(
        "TARGET_NETWORKS",
        "Networks in addition to the public internet that connections may reach, separated by commas, or "
        "`none`. Default: loopback and private networks if ROWSMITH_HOST is a loopback address and "
        "PUBLIC_URL is one too or not set; otherwise none. Link-local addresses and cloud metadata "
        "services stay blocked unless a network in this list contains only them. Scenarios with network "
        "`full` also reach these networks, but only if you set this: the default does not apply to them. "
        "They never reach metadata services or the service's own components (docs/reference/sandbox.md).",
        (),
        read.target_networks,
    )
    target_wait_seconds: int = _setting(
        "TARGET_WAIT_SECONDS",
        "How many seconds a push waits for an unreachable target before it fails. A push can set its own "
        "`target_wait_seconds`. 0: no wait.",
        limits.PUSH_TARGET_WAIT_SECONDS,
        read.whole_number(0, limits.PUSH_MAX_TARGET_WAIT_SECONDS),
    )
    run_api_url: str = _setting(
        "RUN_API_URL",
        "URL at which scenario programs reach this service, if PUBLIC_URL does not work on the machines "
        "of the runners. Default: PUBLIC_URL, or the address that the web server binds to.",
        "",
    )
    sandbox: str = _setting(
        "SANDBOX",
        "How runners isolate programs: `bubblewrap` (namespaces), `landlock` (Landlock, seccomp and "
        "resource limits), `auto` (the better one that works on this machine) or `plain` (no isolation; "
        "only for programs that you would run yourself).",
        "auto",
        read.sandbox,
    )
    tls_cert: str = _setting("TLS_CERT", "Certificate chain (PEM file), if this server terminates TLS.", "")
    tls_key: str = _setting("TLS_KEY", "Private key (PEM file) of TLS_CERT.", "")
    host: str = _setting("ROWSMITH_HOST", "Address that the web server binds to.", "127.0.0.1")
    port: int = _setting(
        "ROWSMITH_PORT", "Port that the web server binds to.", 8000, read.whole_number(0, 65535)
    )
    web_workers: int = _setting(
        "ROWSMITH_WEB_WORKERS", "Number of web processes.", limits.WEB_WORKERS, read.whole_number(1, 64)
    )
    web_threads: int = _setting(
        "ROWSMITH_WEB_THREADS",
        "Number of threads per web process.",
        limits.WEB_THREADS,
        read.whole_number(1, 512),
    )
    generate_seconds: int = _setting(
        "ROWSMITH_GENERATE_SECONDS",
        "Processor time, in seconds, that one request may take to generate up to 100,000 rows. More rows have more "
        "time in proportion, and previews have a third of it. Exports and pushes run in workers and have no such "
        "limit.",
        limits.GENERATE_SECONDS,
        read.whole_number(1, 3_600),
    )
    hosts: int = _setting(
        "ROWSMITH_HOSTS",
        "Number of machines that run this service together. More than one requires PostgreSQL, S3 and a "
        "Redis that all machines can reach.",
        1,
        read.whole_number(1, 1000),
    )
    log_level: str = _setting(
        "ROWSMITH_LOG_LEVEL", "Log level: DEBUG, INFO, WARNING or ERROR.", "INFO", read.level
    )
    log_format: str = _setting(
        "ROWSMITH_LOG_FORMAT",
        "`text` or `json`. `json` writes one object per line and one line per request "
        "(docs/guide/operation.md).",
        "text",
        read.log_format,
    )
    metrics: bool = _setting(
        "ROWSMITH_METRICS", "Whether to serve /metrics (Prometheus).", False, read.switch
    )
    metrics_token: str = _setting(
        "ROWSMITH_METRICS_TOKEN",
        "Token that a scraper sends as `Authorization: Bearer`. If it is set, /metrics requires it from "
        "every address. At least 32 characters.",
        "",
        secret=True,
    )
    metrics_networks: tuple[str, ...] = _setting(
        "ROWSMITH_METRICS_NETWORKS",
        "IP addresses or networks that may read /metrics without a token if ROWSMITH_METRICS_TOKEN is "
        "not set. `unix` allows a proxy that connects through a socket file. Default: 127.0.0.0/8 on "
        "this machine, not through a proxy. Scenario programs always need the token.",
        (),
        read.networks,
    )
    smtp_url: str = _setting(
        "SMTP_URL",
        "Mail server for outgoing e-mail: `smtp://user:password@host:587` (STARTTLS) or `smtps://` "
        "(implicit TLS). The certificate is verified. `?ca=/file.pem` trusts another certificate "
        "authority; `?tls=off` is for a relay without TLS and password. Default: no e-mail.",
        "",
        secret=True,
    )
    mail_from: str = _setting(
        "MAIL_FROM",
        "Sender of e-mails: `rowsmith@example.org` or `Name <address>`. Required with SMTP_URL.",
        "",
    )
    oidc_issuer: str = _setting(
        "OIDC_ISSUER",
        "Issuer of the OpenID Connect provider that users can sign in with, as in its metadata: "
        "`https://login.example.org/realms/main`. Default: sign-in with passwords only "
        "(docs/guide/signing-in.md).",
        "",
    )
    oidc_client_id: str = _setting("OIDC_CLIENT_ID", "Client ID of this service at the provider.", "")
    oidc_client_secret: str = _setting(
        "OIDC_CLIENT_SECRET", "Client secret of this service at the provider.", "", secret=True
    )
    oidc_name: str = _setting(
        "OIDC_NAME", "Name of the provider, shown on the `Sign in with` button.", "single sign-on"
    )
    oidc_domains: tuple[str, ...] = _setting(
        "OIDC_DOMAINS",
        "E-mail domains whose users may sign in through the provider. Default: any.",
        (),
        lambda text: tuple(word.casefold() for word in read.words(text)),
    )
    oidc_new_people: str = _setting(
        "OIDC_NEW_PEOPLE",
        "Which users without an account may sign in through the provider. `invited`: users with an open "
        "invitation for their address. `viewer` or `editor`: every user with an address in OIDC_DOMAINS, "
        "who gets that role.",
        "invited",
        read.one_of(NEW_PEOPLE),
    )
    oidc_workspace: str = _setting(
        "OIDC_WORKSPACE",
        "ID or name of the workspace that users admitted by OIDC_NEW_PEOPLE join. Default: the oldest "
        "workspace.",
        "",
    )
    oidc_second_factor: str = _setting(
        "OIDC_SECOND_FACTOR",
        "`ask`: users with a second factor must enter it unless the provider reports one (`amr` contains "
        "`mfa`). `trust`: every sign-in through the provider counts as two-factor.",
        "ask",
        read.one_of(SECOND_FACTOR),
    )
    code_drift: int = _setting(
        "TWO_FACTOR_DRIFT",
        "How many steps of 30 seconds an authenticator's clock may be fast or slow. With 0, a code is "
        "valid for 30 seconds only, which requires accurate clocks and leaves users little time.",
        limits.TOTP_DRIFT_STEPS,
        read.whole_number(0, limits.TOTP_DRIFT_STEPS),
    )
    aws_access_key_id: str = _setting("AWS_ACCESS_KEY_ID", "S3 access key ID.", "")
    aws_secret_access_key: str = _setting("AWS_SECRET_ACCESS_KEY", "S3 secret access key.", "", secret=True)
    aws_session_token: str = _setting("AWS_SESSION_TOKEN", "S3 session token.", "", secret=True)
    aws_region: str = _setting("AWS_REGION", "S3 region.", "")
    aws_endpoint_url: str = _setting(
        "AWS_ENDPOINT_URL", "Endpoint URL of an S3-compatible service other than Amazon S3.", ""
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "data_dir", Path(self.data_dir).absolute())
        if not self.database_url:
            object.__setattr__(self, "database_url", f"sqlite:///{self.data_dir / 'rowsmith.db'}")
        if not self.storage_url:
            object.__setattr__(self, "storage_url", f"file://{self.data_dir / 'storage'}")
        object.__setattr__(self, "public_url", self.public_url.rstrip("/"))
        object.__setattr__(self, "run_api_url", self.run_api_url.rstrip("/"))
        if found := faults(self):
            raise SettingsError(found)

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> Settings:
        """Read the settings from environment variables. SettingsError lists every invalid or unknown one."""
        values: dict[str, Any] = {}
        found = []
        names = [item.metadata["env"] for item in fields(cls)]
        for name in sorted(env):
            if name.startswith(PREFIX) and name not in names and name not in LAUNCHER_NAMES:
                hint = did_you_mean(name, [entry for entry in names if entry.startswith(PREFIX)])
                found.append(f"{name} is not a setting. {hint or 'See docs/reference/settings.md.'}")
        for item in fields(cls):
            text = env.get(item.metadata["env"], "").strip()
            if not text:
                continue
            try:
                values[item.name] = item.metadata["parse"](text)
            except ValueError as error:
                found.append(f"{item.metadata['env']} {error}.")
        if found:
            raise SettingsError(found)
        return cls(**values)

    def __repr__(self) -> str:
        values = (
            f"{f.name}={'***' if f.metadata['secret'] and getattr(self, f.name) else getattr(self, f.name)!r}"
            for f in fields(self)
        )
        return f"Settings({', '.join(values)})"

    @property
    def sqlalchemy_url(self) -> str:
        """DATABASE_URL as SQLAlchemy wants it: PostgreSQL through psycopg 3, SQLite by an absolute path."""
        if self.is_sqlite:
            path, _, query = self.database_url.removeprefix("sqlite:///").partition("?")
            return f"sqlite:///{Path(path).absolute()}{'?' + query if query else ''}"
        scheme, rest = self.database_url.split(":", 1)
        return f"postgresql+psycopg:{rest}" if scheme in ("postgres", "postgresql") else self.database_url

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is SQLite."""
        return self.database_url.startswith("sqlite")

    @property
    def is_https(self) -> bool:
        """Whether users connect by https, so that cookies can be Secure and have the prefix `__Host-`."""
        return self.public_url.startswith("https://") or bool(self.tls_cert)

    @property
    def is_local(self) -> bool:
        """Whether the service is only reachable from this machine."""
        is_local_url = not self.public_url or is_loopback(urlsplit(self.public_url).hostname or "")
        return is_local_url and is_loopback(self.host)

    @property
    def local_url(self) -> str:
        """The address by which this machine reaches the web server that these settings start."""
        host = EVERYWHERE.get(self.host, self.host)
        scheme = "https" if self.tls_cert else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def api_url(self) -> str:
        """The address by which programs of runs reach the API."""
        return self.run_api_url or self.public_url or self.local_url

    @cached_property
    def reachable_networks(self) -> tuple[str, ...]:
        """Return the networks that connections can reach in addition to the public internet."""
        if self.target_networks:
            return self.program_networks
        return LOCAL_NETWORKS if self.is_local else ()

    @cached_property
    def program_networks(self) -> tuple[str, ...]:
        """Networks that programs of scenarios may connect to, in addition to the public internet: only those that the
        operator configured, not the default for connections."""
        return tuple(network for network in self.target_networks if network != "none")

    @cached_property
    def mail_server(self) -> MailServer | None:
        """The mail server; None if mail is not configured."""
        return mail_server(self.smtp_url) if self.smtp_url else None

    @property
    def link_url(self) -> str:
        """The base URL of links in e-mails."""
        return self.public_url or self.local_url

    @cached_property
    def s3_options(self) -> dict[str, str]:
        """The AWS_* settings that are set, under their environment names."""
        options = {name: getattr(self, name.lower()) for name in S3_NAMES}
        return {name: value for name, value in options.items() if value}


def reference() -> str:
    """Return the reference page of the settings as Markdown."""
    lines = [
        "# Settings",
        "",
        "All settings are environment variables. They are read once at start by `webapp/config`. An invalid or",
        "contradictory setting, or an unknown name that begins with `ROWSMITH_`, stops the start with a message that",
        "names it.",
        "",
        "| name | default | meaning |",
        "|---|---|---|",
    ]
    for item in fields(Settings):
        default = item.default
        default_text = (
            "" if default in ("", (), None) else f"`{str(default).lower() if default is False else default}`"
        )
        lines.append(f"| `{item.metadata['env']}` | {default_text} | {item.metadata['doc']} |")
    return "\n".join(lines) + "\n"
