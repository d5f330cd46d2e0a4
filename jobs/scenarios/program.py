"""The environment of a run's program: its folders, sandbox, environment variables and limits."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from flask import Flask
from sqlalchemy import make_url, select

from jobs.sandbox import Caps, Mode, Network, SandboxSpec, SandboxUnavailable, Setting, mode, outputs
from webapp import limits
from webapp.config import Settings
from webapp.extensions import read_session
from webapp.net import addresses
from webapp.scenarios.models import Run, ScenarioVersion


@dataclass(frozen=True)
class RunFolders:
    """The folders of one run."""

    code: Path
    uploads: Path
    outputs: Path

    def make_readable(self) -> None:
        """Make the files readable for the user that runs the program, whatever the umask is. Uploads are
        readable already, and other runs may share them."""
        for folder in (self.code, self.uploads):
            for path, _, _ in os.walk(folder):
                os.chmod(path, 0o755)  # noqa: S103 - other users cannot access the parent folder
        (self.code / "main.py").chmod(0o644)


def runs_folder(settings: Settings) -> Path:
    """Return the parent folder of all runs' folders."""
    return settings.data_dir / "runs"


@contextmanager
def run_folders(settings: Settings, run_id: str, epoch: int, code: str) -> Iterator[RunFolders]:
    """Create the folders of a run, with its code as `main.py`, and remove them when the block ends."""
    root = runs_folder(settings) / f"{run_id}.{epoch}"
    folders = RunFolders(root / "code", root / "uploads", root / "outputs")
    root.mkdir(parents=True, mode=0o700)
    try:
        for folder in (folders.code, folders.uploads, folders.outputs):
            folder.mkdir()
        (folders.code / "main.py").write_text(code, encoding="utf-8", newline="")
        yield folders
    finally:
        _remove(root)


def remove_ended_runs(app: Flask) -> None:
    """Remove folders of ended runs whose runner was killed."""
    folder = runs_folder(app.config["SETTINGS"])
    folders = {path.name.partition(".")[0]: path for path in folder.iterdir()} if folder.is_dir() else {}
    if not folders:
        return
    with read_session() as session:
        statement = select(Run.id).where(Run.id.in_(folders), Run.status.in_(("queued", "running")))
        running = set(session.scalars(statement))
    for run_id, path in folders.items():
        if run_id not in running:
            _remove(path)


def _remove(root: Path) -> None:
    """Remove a folder and everything that a program left in it."""
    try:
        outputs.remove(root)
    except OSError as error:
        log.warning("could not remove %s: %s", root, error)


log = logging.getLogger(__name__)

COMMAND: Final = ("python3", "main.py")  # specification, Scenario runtime
NO_ISOLATION: Final = "none"  # what a runner without a working sandbox reports
_PORTS: Final = {"http": 80, "https": 443, "postgresql+psycopg": 5432, "redis": 6379, "rediss": 6379}
_LOCALHOST: Final = "127.0.0.1"


@dataclass(frozen=True)
class RunInput:
    """A run with what its runner needs."""

    run: Run
    code: str
    pins: Mapping[str, Any]


def load_run_input(run_id: str) -> RunInput | None:
    """Return the run with its version's code, or None if it was deleted."""
    with read_session() as session:
        run = session.get_one(Run, run_id)
        statement = select(ScenarioVersion).where(
            ScenarioVersion.scenario_id == run.scenario_id, ScenarioVersion.number == run.scenario_version
        )
        version = session.scalar(statement)
    return RunInput(run, version.spec["code"], version.pins) if version is not None else None


def isolation_name(setting: str) -> str:
    """Return how this machine isolates programs: bubblewrap, landlock, plain or none."""
    try:
        found = mode(cast(Setting, setting))
    except SandboxUnavailable as error:
        log.error("this machine cannot run scenarios: %s", error)
        return NO_ISOLATION
    log.info("programs are isolated with %s: %s", found.name, found.why)
    return found.name


def isolation_mode(setting: str) -> Mode:
    """Return the sandbox mode. Raise SandboxUnavailable if there is none."""
    return mode(cast(Setting, setting))


def sandbox_spec(
    settings: Settings, run: Run, folders: RunFolders, environment: Path, variables: Mapping[str, str]
) -> SandboxSpec:
    """Return the specification of the program's sandbox."""
    parts = urlsplit(settings.api_url)
    return SandboxSpec(
        command=COMMAND,
        code=folders.code,
        environment=environment,
        read_only=(Path(sys.base_prefix),),
        uploads=folders.uploads,
        outputs=folders.outputs,
        env=variables,
        network=cast(Network, run.settings["network"]),
        api=(parts.hostname or "", parts.port or _PORTS[parts.scheme]),
        caps=resource_limits(run.settings["timeout_seconds"]),
        networks=settings.program_networks,
        hidden=tuple(service_addresses(settings)),
        api_source=addresses.SCENARIO_RUN_ADDRESS,
    )


def service_addresses(settings: Settings) -> list[tuple[str, int]]:
    """Return host (or network) and port of every TCP component of the service that the settings name."""
    found = [(settings.host, settings.port), *_address_of_url(settings.api_url)]
    # A web server that trusts X-Forwarded-For from its proxies would trust a program in the same network.
    found += [
        (trusted_proxy, settings.port)
        for trusted_proxy in settings.trusted_proxies
        if trusted_proxy != "unix"
    ]
    if not settings.is_sqlite:
        found += _database_addresses(settings.sqlalchemy_url)
    if not settings.redis_url.startswith("unix:"):
        found += _address_of_url(settings.redis_url)
    if settings.storage_url.startswith("s3:") and settings.aws_endpoint_url:
        found += _address_of_url(settings.aws_endpoint_url)
    if settings.scanner is not None and settings.scanner.host:
        found.append((settings.scanner.host, settings.scanner.port))
    if settings.mail_server is not None:
        found.append((settings.mail_server.host, settings.mail_server.port))
    return list(dict.fromkeys(found))


def _address_of_url(url: str) -> list[tuple[str, int]]:
    parts = urlsplit(url)
    return [(parts.hostname or _LOCALHOST, parts.port or _PORTS[parts.scheme])]


def _database_addresses(url: str) -> list[tuple[str, int]]:
    """Return the hosts of a PostgreSQL URL, which may list several in its query (libpq, 34.1.1.3). A socket
    file counts as this machine, where the same server usually listens on TCP too."""
    parts = make_url(url)
    default = parts.port or _PORTS["postgresql+psycopg"]
    ports = [
        int(part) for text in _as_tuple(parts.query.get("port")) for part in text.split(",") if part.isdigit()
    ]
    hosts = [
        part
        for name in ("host", "hostaddr")
        for text in _as_tuple(parts.query.get(name))
        for part in text.split(",")
    ]
    found = [(parts.host, default)] if parts.host else []
    for address in hosts:
        host, _, port = address.rpartition(":") if address.count(":") == 1 else (address, "", "")
        found += (
            [(host, int(port))] if port.isdigit() else [(address, number) for number in ports or [default]]
        )
    found = found or [(_LOCALHOST, number) for number in ports or [default]]
    return [(_LOCALHOST if not host or host.startswith("/") else host, port) for host, port in found]


def _as_tuple(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value or ()


def resource_limits(seconds: int) -> Caps:
    """Return the resource limits of a program. The runner enforces the time limit; the sandbox does so a
    little later if the runner does not."""
    wall = seconds + limits.RUN_WALL_MARGIN_SECONDS
    return Caps(
        wall_seconds=wall,
        cpu_seconds=wall * limits.RUN_PROCESSORS,
        memory_bytes=limits.RUN_MEMORY_BYTES,
        processes=limits.RUN_PROCESSES,
        file_bytes=limits.RUN_FILE_BYTES,
        tmp_bytes=limits.RUN_TMP_BYTES,
        outputs_bytes=limits.RUN_OUTPUTS_BYTES,
    )


def environment_variables_of(
    settings: Settings, run: Run, folders: RunFolders, key: str, secrets: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment variables of a program: the scenario's variables, the run's parameters, its
    secrets, and the ones of the specification, which cannot be overridden. Each of the latter also has the
    name that clients of the hosted service use."""
    service = {
        "API_KEY": key,
        "API_URL": settings.api_url,
        "PROJECT_ID": run.project_id,
        "TEAM_ID": run.team_id,
        "SCENARIO_ID": run.scenario_id,
        "RUN_ID": run.id,
        "WORKSPACE_UPLOADS": str(folders.uploads),
        "WORKSPACE_OUTPUTS": str(folders.outputs),
    }
    hosted = {**service, "API_URL": f"{settings.api_url}/compat"}
    return {
        **run.settings["env"],
        **run.params,
        **secrets,
        **{f"SERVICE_{name}": value for name, value in service.items()},
        **{f"DATAMAKER_{name}": value for name, value in hosted.items()},
        "PYTHONUNBUFFERED": "1",
    }
