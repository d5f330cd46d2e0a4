"""Settings at startup. The key is only read from the environment, because other users can see command lines."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rowsmith_mcp.limits import PORT

LOOPBACK = ("127.0.0.1", "localhost", "::1")
EPILOG = """environment:
  SERVICE_API_URL            the address of Rowsmith (or --url)
  SERVICE_API_KEY            the API key, for standard input and output; over HTTP each request carries its caller's key
  SERVICE_PROJECT_ID         a project other than the key's (or --project)
  ROWSMITH_MCP_READ_ONLY     1: same as --read-only
"""


class Wrong(Exception):
    """Invalid or contradictory settings. The message is for the person who configures the server."""


@dataclass(frozen=True)
class Settings:
    """Server settings. `key` and `project` are only used with standard input and output."""

    url: str
    key: str = ""
    project: str = ""
    read_only: bool = False
    http: bool = False
    host: str = "127.0.0.1"
    port: int = PORT
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    tls_cert: str = ""
    tls_key: str = ""
    behind_tls_proxy: bool = False
    ca_file: str = ""


def read(arguments: Sequence[str], env: Mapping[str, str] | None = None) -> Settings:
    """Read settings from the command line and the environment. Raises Wrong if a setting is missing or
    unsafe."""
    env = os.environ if env is None else env
    given = _parser().parse_args(list(arguments))
    result = Settings(
        url=(given.url or env.get("SERVICE_API_URL", "")).strip().rstrip("/"),
        key="" if given.http else env.get("SERVICE_API_KEY", "").strip(),
        project="" if given.http else (given.project or env.get("SERVICE_PROJECT_ID", "")).strip(),
        read_only=given.read_only
        or env.get("ROWSMITH_MCP_READ_ONLY", "").lower() in ("1", "true", "yes", "on"),
        http=given.http,
        host=given.host,
        port=given.port,
        hosts=tuple(given.allowed_host),
        origins=tuple(given.allowed_origin),
        tls_cert=given.tls_cert,
        tls_key=given.tls_key,
        behind_tls_proxy=given.behind_tls_proxy,
        ca_file=given.ca_file,
    )
    _check(result)
    return result


def _check(result: Settings) -> None:
    if not result.url:
        raise Wrong("The address of Rowsmith is missing. Set SERVICE_API_URL or use --url.")
    if not result.http and not result.key:
        raise Wrong("The API key is missing. Set SERVICE_API_KEY.")
    if bool(result.tls_cert) != bool(result.tls_key):
        raise Wrong("--tls-cert and --tls-key must be used together.")
    if not result.http or result.host in LOOPBACK:
        return
    if not result.tls_cert and not result.behind_tls_proxy:
        text = "keys would be sent unencrypted. Use --tls-cert and --tls-key, or --behind-tls-proxy."
        raise Wrong(f"{result.host} is not loopback, and {text}")
    if not result.hosts:
        raise Wrong(
            f"{result.host} is not a loopback address. List the host names of this server with --allowed-host."
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rowsmith-mcp",
        description=("MCP server for Rowsmith, over standard input and output or (--http) over "
                    "streamable HTTP."),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--url", default="", help="the address of Rowsmith")
    add("--project", default="", help="a project other than the key's")
    add("--read-only", action="store_true", help="offer no tools that write")
    add(
        "--ca-file",
        default="",
        help="certificate authorities to trust for Rowsmith's certificate, instead of the system's",
    )
    add("--http", action="store_true", help="serve streamable HTTP at /mcp")
    add("--host", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    add("--port", type=int, default=PORT, help=f"the port to listen on ({PORT})")
    add(
        "--allowed-host",
        action="append",
        default=[],
        help="an allowed Host header, as name or name:port",
    )
    add("--allowed-origin", action="append", default=[], help="an allowed Origin header")
    add("--tls-cert", default="", help="a certificate, to serve https")
    add("--tls-key", default="", help="the private key of the certificate")
    add("--behind-tls-proxy", action="store_true", help="a proxy in front of this server terminates TLS")
    return parser
