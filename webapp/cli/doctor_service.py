"""Service checks of the doctor: Redis, file storage, worker processes, the sandbox of programs."""

from __future__ import annotations

import importlib
import time
from collections.abc import Iterator
from typing import Any, Final

import redis

from webapp import limits, storage
from webapp.cli import valkey
from webapp.cli.datadir import CliError
from webapp.cli.doctor_database import clock_skew_finding
from webapp.cli.findings import FAIL, OK, WARN, Check, Finding, Installation
from webapp.monitoring import health
from webapp.net import clamd


def check_queue(patient: Installation) -> Iterator[Finding]:
    """Check Redis or Valkey: the connection, the eviction policy, the clock."""
    if patient.settings is None:
        return
    if not patient.env.get("REDIS_URL"):
        try:
            yield Finding(OK, "redis", f"./rowsmith up starts an embedded server: {valkey.find_server()}.")
        except CliError as error:
            yield Finding(FAIL, "redis", str(error), "install valkey, or set REDIS_URL")
        return
    client = redis.Redis.from_url(
        patient.settings.redis_url,
        socket_timeout=limits.PROBE_SECONDS,
        socket_connect_timeout=limits.PROBE_SECONDS,
    )
    try:
        started = time.time()
        seconds, micros = client.time()
        finished = time.time()
        info: dict[str, Any] = client.info()
    except redis.RedisError as error:
        yield Finding(
            FAIL, "redis", f"REDIS_URL does not respond: {error}.", "start it, or correct REDIS_URL"
        )
        return
    patient.results["redis"] = client
    name = "Valkey" if info.get("server_name") == "valkey" else "Redis"
    yield from _memory(name, info)
    yield clock_skew_finding(name, seconds + micros / 1_000_000 - (started + finished) / 2)


def _memory(name: str, info: dict[str, Any]) -> Iterator[Finding]:
    policy, used, maximum = (
        info.get("maxmemory_policy", "noeviction"),
        info["used_memory"],
        info.get("maxmemory", 0),
    )
    prefix = f"{name} {info.get('valkey_version') or info.get('redis_version')} responds"
    if policy != "noeviction":
        message = (
            f"{prefix}, but when it is full, it evicts the rate limit counters (maxmemory-policy {policy})."
        )
        yield Finding(
            FAIL,
            "redis",
            message,
            "redis-cli CONFIG SET maxmemory-policy noeviction, also in its configuration file",
        )
    elif maximum and used > maximum * limits.REDIS_FULL_SHARE:
        message = f"{prefix}, with {used / maximum:.0%} of its memory in use: it will reject writes."
        yield Finding(WARN, "redis", message, "raise maxmemory")
    else:
        yield Finding(OK, "redis", f"{prefix}, {used / limits.MB:,.0f} MB in use, {policy}.")


def check_storage(patient: Installation) -> Iterator[Finding]:
    """Check that the storage stores a file and returns it unchanged."""
    settings = patient.settings
    if settings is None:
        return
    url = settings.storage_url
    if url.startswith("file:") and not patient.folder.exists():
        return  # reported above
    try:
        good = storage.from_url(url, settings.s3_options).is_usable()
    except Exception as error:  # any error of the disk, the network or the bucket
        reason = str(error).strip().partition("\n")[0][:300]
        yield Finding(
            FAIL,
            "storage",
            f"{url} does not accept files: {reason}.",
            "correct STORAGE_URL, AWS_* or the permissions",
        )
        return
    if good:
        yield Finding(OK, "storage", f"{url} stores and returns files.")
    else:
        yield Finding(FAIL, "storage", f"{url} returns different content than was stored.", "check its disk")


def check_scanner(patient: Installation) -> Iterator[Finding]:
    """Check that the virus scanner responds, if one is configured."""
    if patient.settings is None or patient.settings.scanner is None:
        return
    try:
        with clamd.open_scan(patient.settings.scanner) as scan:
            scan.verdict()
    except clamd.ScannerError as error:
        message = f"The virus scanner returned no verdict: {error}. Workspace files cannot be stored."
        yield Finding(FAIL, "scanner", message, "start clamd, or correct SCANNER_URL")
    else:
        yield Finding(OK, "scanner", "The virus scanner returns verdicts.")


def check_processes(patient: Installation) -> Iterator[Finding]:
    """Check the running processes."""
    client = patient.results.get("redis")
    if client is None:
        return
    since = time.time() - limits.WORKER_HEARTBEAT_MAX_AGE_SECONDS
    parts = (health.WORKER, health.RUNNER, health.SWEEPER)
    alive = {part: health.count_alive(client, part, since) for part in parts}
    message = ", ".join(f"{count} {part}(s)" for part, count in alive.items())
    if not any(alive.values()):
        yield Finding(
            WARN,
            "workers",
            "No processes found: the service is not running.",
            f"./rowsmith up{patient.data_dir_option}",
        )
        return
    missing = [part for part, count in alive.items() if not count]
    for part in missing:
        command = "worker --queues runs" if part == health.RUNNER else part
        yield Finding(
            FAIL, "workers", f"No {part} is running. Other processes: {message}.", f"./rowsmith {command}"
        )
    if not missing:
        yield Finding(OK, "workers", f"Running: {message}.")


def check_sandbox(patient: Installation) -> Iterator[Finding]:
    """Report how programs are isolated on this machine."""
    if patient.settings is None:
        return
    modes = importlib.import_module("jobs.sandbox.supervisor")
    setting = patient.settings.sandbox
    try:
        found = modes.mode(setting)
    except modes.SandboxUnavailable as error:
        message = f"SANDBOX={setting}: programs of scenarios cannot be isolated on this machine: {error}."
        yield Finding(WARN, "sandbox", message, "see docs/reference/sandbox.md")
        return
    if found.name == "plain":
        yield Finding(
            WARN, "sandbox", "SANDBOX=plain: programs have all permissions of this service.", "SANDBOX=auto"
        )
    else:
        yield Finding(OK, "sandbox", f"Programs run in {found.name}.")


CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("redis", check_queue),
    ("storage", check_storage),
    ("scanner", check_scanner),
    ("workers", check_processes),
    ("sandbox", check_sandbox),
)
