"""Settings: one frozen object, made from a mapping of environment names, checked whole before anything starts.

Each setting is one field with its environment name and its sentence of documentation; the reference page
`docs/reference/settings.md` is made from these (`reference()`), and a test keeps the two equal. Nothing here
reads the process's environment by itself: `Settings.from_env(os.environ)` does, once, in `wsgi.py` and the CLI.
"""

# ruff: noqa: RUF009 - `_setting` returns a dataclass field, as `field` itself does

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from webapp import config_values as read
from webapp import limits
from webapp.config_faults import faults, is_loopback
from webapp.config_mail import MailServer, mail_server
from webapp.config_oidc import NEW_PEOPLE, SECOND_FACTOR
from webapp.errors import did_you_mean

PREFIX: Final = "ROWSMITH_"
# Names that the launcher reads (docs/reference/cli.md); they are no settings of the service, and no mistakes either.
LAUNCHER_NAMES: Final = ("ROWSMITH_CALLER_DIR", "ROWSMITH_PYTHON", "ROWSMITH_VENV")
EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - where we ask, not bind
# What the default local set-up may reach: loopback, and the private networks of RFC 1918 and RFC 4193.
LOCAL_NETWORKS: Final = (
    "127.0.0.0/8",
    "::1/128",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "fc00::/7",
)
# What the S3 client takes from the environment when STORAGE_URL is s3://.
S3_NAMES: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_ENDPOINT_URL",
)


class SettingsError(Exception):
    """The settings cannot be used. The message has one sentence per fault, each naming its setting."""

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
    """Everything that can be set, and nothing that cannot. Made by `from_env`; checked when made."""

    secret_key: str = _setting(
        "SECRET_KEY",
        "Signs cookies, CSRF tokens and cursors. At least 32 characters, random, the same on every machine. "
        "`./rowsmith up` makes one and keeps it in the data folder.",
        "",
        secret=True,
    )
    data_dir: Path = _setting(
        "ROWSMITH_DATA_DIR",
        "Folder of the embedded parts: SQLite file, stored files, keys.",
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
        "`redis://`, `rediss://` or `unix://` address of Redis or Valkey (rates, queue, log streams). "
        "`./rowsmith up` starts one of its own when this is not set.",
        "redis://127.0.0.1:6379/0",
        secret=True,
    )
    storage_url: str = _setting(
        "STORAGE_URL",
        "Where files lie: `file:///folder` or `s3://bucket/prefix`. Default: `storage` in the data folder. For "
        "S3 the AWS_* names below are used.",
        "",
    )
    scanner: read.Scanner | None = _setting(
        "SCANNER_URL",
        "A virus scanner that looks at each workspace file before anybody can have it: clamd at `clamd://host:3310` or "
        "`clamd:///run/clamav/clamd.ctl`. Default: none.",
        None,
        read.scanner,
    )
    vault_keys: tuple[str, ...] = _setting(
        "VAULT_KEYS",
        "Fernet keys for stored secrets, newest first, separated by commas; older ones still read. "
        "`./rowsmith up` makes one and keeps it in the data folder.",
        (),
        read.words,
        secret=True,
    )
    public_url: str = _setting(
        "PUBLIC_URL",
        "The address people and programs use, for links: `https://data.example.org`. Plain http only on "
        "loopback. Default: the address a request came to.",
        "",
    )
    trusted_proxies: tuple[str, ...] = _setting(
        "TRUSTED_PROXIES",
        "Addresses or networks whose X-Forwarded-For and X-Forwarded-Proto are believed; the word `unix` for a "
        "proxy that connects by a socket file. Nobody by default.",
        (),
        read.networks,
    )
    target_networks: tuple[str, ...] = _setting(
        "TARGET_NETWORKS",
        "Networks in addition to the public internet that connections may lead to, separated by commas; the word "
        "`none` for none. Default: loopback and private networks where ROWSMITH_HOST is on loopback and PUBLIC_URL "
        "too or not set, else none. "
        "Link-local addresses and those of cloud metadata services stay closed unless a network here names just them. "
        "Scenarios with network `full` reach these networks too, but only if you set this: the default does not apply "
        "to them. They never reach metadata services or the service's own parts (docs/reference/sandbox.md).",
        (),
        read.target_networks,
    )
    target_wait_seconds: int = _setting(
        "TARGET_WAIT_SECONDS",
        "How long a push waits for a target that cannot be reached, in seconds, before it fails. A push can "
        "set its own `target_wait_seconds`. 0: no wait.",
        limits.PUSH_TARGET_WAIT_SECONDS,
        read.whole(0, limits.PUSH_MOST_TARGET_WAIT_SECONDS),
    )
    run_api_url: str = _setting(
        "RUN_API_URL",
        "The address by which the programs of runs reach this service, where PUBLIC_URL does not lead here from the "
        "machines of the runners. Default: PUBLIC_URL, else the address the web server binds.",
        "",
    )
    sandbox: str = _setting(
        "SANDBOX",
        "How runners keep programs apart: `bubblewrap` (namespaces), `landlock` (Landlock, seccomp and resource "
        "limits), `auto` for the better one that this machine can do, or `plain` for not at all: only for programs "
        "you would run yourself.",
        "auto",
        read.sandbox,
    )
    tls_cert: str = _setting("TLS_CERT", "Certificate chain (PEM file) when TLS ends at this server.", "")
    tls_key: str = _setting("TLS_KEY", "Private key (PEM file) of TLS_CERT.", "")
    host: str = _setting("ROWSMITH_HOST", "Address the web server binds.", "127.0.0.1")
    port: int = _setting("ROWSMITH_PORT", "Port the web server binds.", 8000, read.whole(0, 65535))
    web_workers: int = _setting(
        "ROWSMITH_WEB_WORKERS", "Web processes.", limits.WEB_WORKERS, read.whole(1, 64)
    )
    web_threads: int = _setting(
        "ROWSMITH_WEB_THREADS", "Threads of each web process.", limits.WEB_THREADS, read.whole(1, 512)
    )
    hosts: int = _setting(
        "ROWSMITH_HOSTS",
        "How many machines run this service together. More than one needs PostgreSQL, a Redis all of them "
        "reach, and S3.",
        1,
        read.whole(1, 1000),
    )
    log_level: str = _setting("ROWSMITH_LOG_LEVEL", "DEBUG, INFO, WARNING or ERROR.", "INFO", read.level)
    log_format: str = _setting(
        "ROWSMITH_LOG_FORMAT",
        "`text`, or `json`: one object a line, and a line for each request (docs/guide/operation.md).",
        "text",
        read.log_format,
    )
    metrics: bool = _setting(
        "ROWSMITH_METRICS", "Whether /metrics (Prometheus) is served.", False, read.switch
    )
    metrics_token: str = _setting(
        "ROWSMITH_METRICS_TOKEN",
        "What a scraper sends as `Authorization: Bearer`. Where it is set nobody reads /metrics without it, from "
        "wherever they ask. At least 32 characters.",
        "",
        secret=True,
    )
    metrics_networks: tuple[str, ...] = _setting(
        "ROWSMITH_METRICS_NETWORKS",
        "Addresses or networks that read /metrics without a token, where none is set; the word `unix` for a proxy "
        "that connects by a socket file. Default: 127.0.0.0/8 on this machine, and not through a proxy. Programs of "
        "runs need the token in any case.",
        (),
        read.networks,
    )
    smtp_url: str = _setting(
        "SMTP_URL",
        "The mail server that takes our mails: `smtp://user:password@host:587` (STARTTLS) or `smtps://` (TLS at once). "
        "Its certificate is verified; `?ca=/file.pem` trusts another authority, `?tls=off` is for a relay without TLS "
        "and without a password. Default: no mail.",
        "",
        secret=True,
    )
    mail_from: str = _setting(
        "MAIL_FROM",
        "Whom mails come from: `rowsmith@example.org` or `Name <address>`; needed with SMTP_URL.",
        "",
    )
    oidc_issuer: str = _setting(
        "OIDC_ISSUER",
        "The provider of OpenID Connect that people may sign in with, as its metadata call it: "
        "`https://login.example.org/realms/main`. Default: passwords alone (docs/guide/signing-in.md).",
        "",
    )
    oidc_client_id: str = _setting("OIDC_CLIENT_ID", "What that provider calls this service.", "")
    oidc_client_secret: str = _setting(
        "OIDC_CLIENT_SECRET", "The secret that the provider gave it.", "", secret=True
    )
    oidc_name: str = _setting(
        "OIDC_NAME", "What people call the provider; the button says `Sign in with` it.", "single sign-on"
    )
    oidc_domains: tuple[str, ...] = _setting(
        "OIDC_DOMAINS",
        "Only people with an e-mail address of one of these domains come in through the provider. Default: no limit.",
        (),
        lambda text: tuple(one.casefold() for one in read.words(text)),
    )
    oidc_new_people: str = _setting(
        "OIDC_NEW_PEOPLE",
        "Who comes in through the provider without an account: `invited`, those whose address has an open invitation; "
        "`viewer` or `editor`, everybody of OIDC_DOMAINS, with that role.",
        "invited",
        read.one_of(NEW_PEOPLE),
    )
    oidc_workspace: str = _setting(
        "OIDC_WORKSPACE",
        "Id or name of the workspace that OIDC_NEW_PEOPLE lets them into. Default: the oldest.",
        "",
    )
    oidc_second_factor: str = _setting(
        "OIDC_SECOND_FACTOR",
        "`ask`: who has a second factor here is asked for it, unless the provider says that it saw one (`amr` holds "
        "`mfa`); `trust`: a sign-in through the provider counts as one with two factors.",
        "ask",
        read.one_of(SECOND_FACTOR),
    )
    code_drift: int = _setting(
        "TWO_FACTOR_DRIFT",
        "How many steps of 30 seconds an authenticator's clock may be early or late. 0 lets a code live for 30 seconds "
        "and no longer, which asks for clocks that are right and for quick fingers.",
        limits.TOTP_DRIFT_STEPS,
        read.whole(0, limits.TOTP_DRIFT_STEPS),
    )
    aws_access_key_id: str = _setting("AWS_ACCESS_KEY_ID", "S3 key id.", "")
    aws_secret_access_key: str = _setting("AWS_SECRET_ACCESS_KEY", "S3 secret key.", "", secret=True)
    aws_session_token: str = _setting("AWS_SESSION_TOKEN", "S3 session token.", "", secret=True)
    aws_region: str = _setting("AWS_REGION", "S3 region.", "")
    aws_endpoint_url: str = _setting("AWS_ENDPOINT_URL", "Address of another S3 service than Amazon's.", "")

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
        """Settings from environment names. SettingsError names every wrong or unknown one at once."""
        values: dict[str, Any] = {}
        found = _unknown(env)
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
        shown = (
            f"{f.name}={'***' if f.metadata['secret'] and getattr(self, f.name) else getattr(self, f.name)!r}"
            for f in fields(self)
        )
        return f"Settings({', '.join(shown)})"

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
        """Whether people reach the service by https, so that cookies may be Secure and carry `__Host-`."""
        return self.public_url.startswith("https://") or bool(self.tls_cert)

    @property
    def is_local(self) -> bool:
        """Whether people reach the service on this machine alone."""
        here = not self.public_url or is_loopback(urlsplit(self.public_url).hostname or "")
        return here and is_loopback(self.host)

    @property
    def here_url(self) -> str:
        """The address by which this machine reaches the web server that these settings start."""
        host = EVERYWHERE.get(self.host, self.host)
        scheme = "https" if self.tls_cert else "http"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def api_url(self) -> str:
        """The address by which programs of runs reach the API."""
        return self.run_api_url or self.public_url or self.here_url

    @cached_property
    def reachable_networks(self) -> tuple[str, ...]:
        """Where connections may lead beside the public internet."""
        if self.target_networks:
            return self.program_networks
        return LOCAL_NETWORKS if self.is_local else ()

    @cached_property
    def program_networks(self) -> tuple[str, ...]:
        """Where programs of scenarios may connect to, in addition to the public internet: only what the operator
        names, never the default of connections."""
        return tuple(one for one in self.target_networks if one != "none")

    @cached_property
    def mail_server(self) -> MailServer | None:
        """Where mails are handed in; None where there is no mail."""
        return mail_server(self.smtp_url) if self.smtp_url else None

    @property
    def link_url(self) -> str:
        """What the links in mails begin with."""
        return self.public_url or self.here_url

    @cached_property
    def s3_options(self) -> dict[str, str]:
        """The AWS_* settings that are set, under their environment names."""
        named = {name: getattr(self, name.lower()) for name in S3_NAMES}
        return {name: value for name, value in named.items() if value}


def _unknown(env: Mapping[str, str]) -> list[str]:
    known = [item.metadata["env"] for item in fields(Settings)]
    out = []
    for name in sorted(env):
        if name.startswith(PREFIX) and name not in known and name not in LAUNCHER_NAMES:
            hint = did_you_mean(name, [k for k in known if k.startswith(PREFIX)])
            out.append(f"{name} is not a setting. {hint or 'See docs/reference/settings.md.'}")
    return out


def reference() -> str:
    """The reference page of the settings, as Markdown."""
    lines = [
        "# Settings",
        "",
        "All settings are environment variables, read once at start by `webapp/config.py`. A wrong or contradictory",
        "one stops the start with a sentence that names it; so does a name that begins with `ROWSMITH_` and is not",
        "listed here.",
        "",
        "| name | default | meaning |",
        "|---|---|---|",
    ]
    for item in fields(Settings):
        default = item.default
        shown = (
            "" if default in ("", (), None) else f"`{str(default).lower() if default is False else default}`"
        )
        lines.append(f"| `{item.metadata['env']}` | {shown} | {item.metadata['doc']} |")
    return "\n".join(lines) + "\n"
