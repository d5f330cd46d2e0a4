"""`./rowsmith up`: everything on this machine, in order, until Ctrl-C."""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis
from sqlalchemy.orm import configure_mappers

from webapp import clock, connectors, limits, memory
from webapp.cli import assets, probe, valkey
from webapp.cli.arguments import port as port_of
from webapp.cli.datadir import CliError, DataDir, RunningProcess, resolve
from webapp.cli.supervisor import ProcessSpec, StopRequested, Supervisor, exec_program
from webapp.config import EVERYWHERE, Settings
from webapp.config.values import is_loopback
from webapp.monitoring import health
from webapp.paths import ROOT
from webapp.work import jobs_queue


def print_line(line: str) -> None:
    """Print a line and flush it."""
    print(line, flush=True)


def run(arguments: argparse.Namespace) -> int:
    """Start, watch, stop. Returns 0 after Ctrl-C or SIGTERM; CliError if it cannot start or continue."""
    os.umask(0o077)  # files are accessible only to the owner
    data = DataDir(resolve(arguments.data_dir, os.environ))
    data.prepare()
    data.lock()
    supervisor = Supervisor(data.logs, ROOT, print_line)
    try:
        with supervisor.signals():
            try:
                _start(arguments, data, supervisor)
                supervisor.run()
            except StopRequested:
                pass
            finally:
                supervisor.stop()
    finally:
        data.release()
    return 0


def _start(arguments: argparse.Namespace, data: DataDir, supervisor: Supervisor) -> None:
    """Start all parts in order, each after those that it needs, and print the banner."""
    port = arguments.port
    if port is None:
        try:
            port = port_of(os.environ.get("ROWSMITH_PORT") or "8000")
        except argparse.ArgumentTypeError as error:
            raise CliError(f"ROWSMITH_PORT: {error}.") from None
    port = port or valkey.free_port()
    host = arguments.host or os.environ.get("ROWSMITH_HOST") or "127.0.0.1"
    if reason := probe.port_error(host, port):
        raise CliError(f"Port {port} of {host} cannot be used ({reason}): choose another one with --port.")
    assets.ensure_built()
    supervisor.raise_if_stopping()
    env = data.environment(os.environ, create_keys=True)
    env |= {"ROWSMITH_HOST": host, "ROWSMITH_PORT": str(port), "PYTHONUNBUFFERED": "1"}
    queue = None if env.get("REDIS_URL") else valkey.prepare(data.valkey)
    if queue:
        env["REDIS_URL"] = queue.url
    settings = Settings.from_env(env)  # report invalid settings here, before anything runs
    local_url = settings.local_url
    if not is_loopback(urlsplit(local_url).hostname or "") and not settings.is_https:
        raise CliError(
            f"Outside loopback only https is served: for --host {host} set TLS_CERT and TLS_KEY, "
            "or PUBLIC_URL and TRUSTED_PROXIES."
        )
    env.setdefault("PUBLIC_URL", local_url)
    print_line(f"Starting Rowsmith (data folder {data.path})")
    if queue:
        command = partial(exec_program, queue.command)
        _start_queue(supervisor, ProcessSpec("valkey", command, env, probe.redis_check(queue.url)), data)
    elif not probe.redis_check(settings.redis_url)():
        raise CliError(
            "REDIS_URL is set, but no server responds there: start it, or unset REDIS_URL to use the embedded server."
        )
    _import_parts()
    demo = _prepare(supervisor, env, arguments.plan)
    workers, runners = arguments.workers or limits.UP_WORKERS, arguments.runners or limits.UP_RUNNERS
    supervisor.start(*_process_specs(env, settings, local_url, workers, runners))
    client = redis.Redis.from_url(settings.redis_url, socket_timeout=limits.PROBE_SECONDS)
    with suppress(redis.RedisError):
        if "none" in health.reported_values(client, health.RUNNER, 0):
            print_line(
                "  Scenarios cannot run: this machine has no way to isolate their programs (docs/reference/sandbox.md)."
            )
    data.write_running(RunningProcess(os.getpid(), env["PUBLIC_URL"], env["REDIS_URL"]))
    print_line(banner(env["PUBLIC_URL"], data.path, demo))
    if host in EVERYWHERE and not settings.is_https:
        print_line(
            "  To allow other machines to connect, set TLS_CERT and TLS_KEY: only loopback is served without https.\n"
        )


def _start_queue(supervisor: Supervisor, part: ProcessSpec, data: DataDir) -> None:
    """Start Valkey; once more without its snapshot if it cannot read that."""
    try:
        supervisor.start(part)
    except CliError as error:
        if not valkey.move_snapshot_aside(data.valkey):
            raise
        print_line(f"{error}\nvalkey starts again without its old snapshot")
        supervisor.start(part)


def _import_parts() -> None:
    """Import what the parts run, once for all of them, before they are forked.

    The collector of cyclic garbage is off in the meantime: nothing that an import creates is garbage. Afterwards
    `gc.freeze` keeps it away from these objects, so that processes do not copy them.
    """
    memory.configure_malloc()
    os.environ.setdefault(
        "OPENBLAS_NUM_THREADS", "1"
    )  # a thread of this process would be missing in forked ones
    gc.disable()
    for module in (
        "webapp.blueprints",
        "webapp.serving",
        "gunicorn.app.wsgiapp",
        "obstore.store",
        "jobs.worker",
        "jobs.sweeper",
        *(kind.job.rpartition(".")[0] for kind in jobs_queue.KINDS.values()),
    ):
        importlib.import_module(module)
    tuple(connectors.KINDS.values())
    configure_mappers()
    gc.collect()
    gc.freeze()
    gc.enable()


def _prepare(supervisor: Supervisor, env: Mapping[str, str], plan: str | None) -> dict[str, Any]:
    """Migrate and seed in a separate process, so that this one has no connection to the database."""
    started = supervisor.clock()
    main = _module_main("webapp.cli.prepare", *([plan] if plan else []))
    result: dict[str, Any] = json.loads(supervisor.run_once("prepare", main, env) or "{}")
    print_line(f"  {'database':<12} ready in {supervisor.clock() - started:.1f} s")
    return result


def _module_main(module: str, *arguments: str) -> Callable[[], object]:
    """Return what `python -m module arguments` does. Dotted, because the application does not import jobs; imported by
    the process that runs it, unless this one has imported it for all."""
    return lambda: importlib.import_module(module).main(arguments)


def _serve() -> None:
    """Run the web server."""
    sys.argv = ["gunicorn", "--config", str(ROOT / "gunicorn.conf.py"), "wsgi:app"]
    importlib.import_module("gunicorn.app.wsgiapp").run()


def _process_specs(
    env: Mapping[str, str], settings: Settings, local_url: str, workers: int, runners: int
) -> list[ProcessSpec]:
    """Return the parts: workers, runners, sweeper, web. /health/ready of the web server needs all others: it is last.

    The first worker and the first runner start immediately, the others when all started ones are busy."""
    now = clock.epoch()
    runs = [name for name, kind in jobs_queue.KINDS.items() if kind.queue == "runs"]
    others = [name for name in jobs_queue.KINDS if name not in runs]
    heartbeat_parts = [
        ProcessSpec(
            f"{part}-{number}",
            _module_main("jobs.worker", *more),
            env,
            probe.heartbeat_check(settings.redis_url, part, number, now),
            needed if number > 1 else None,
        )
        for part, maximum, more, needed in (
            (health.WORKER, workers, (), probe.waiting_work_check(settings.redis_url, others)),
            (
                health.RUNNER,
                runners,
                ("--queues", "runs"),
                probe.waiting_work_check(settings.redis_url, runs),
            ),
        )
        for number in range(1, maximum + 1)
    ]
    sweeper = ProcessSpec(
        "sweeper",
        _module_main("jobs.sweeper"),
        env,
        probe.heartbeat_check(settings.redis_url, health.SWEEPER, 1, now),
    )
    web = ProcessSpec("web", _serve, env, probe.http_ok(local_url, "/health/ready"))
    return [*heartbeat_parts, sweeper, web]


def banner(url: str, data_dir: Path, demo: Mapping[str, Any]) -> str:
    """Print what the user needs: the URL, how to sign in, and a first command.

    `demo`: `sign_in_url`, `api_key` (on the first start, when it is created), `template_id`; each may be missing.
    """
    option = "" if data_dir == ROOT / "var" else f" --data-dir {shlex.quote(str(data_dir))}"
    script = ROOT / "rowsmith"  # only in a clone
    command = f"{shlex.quote(str(script)) if script.exists() else 'rowsmith-server'} key new{option}"
    key = demo.get("api_key")
    lines = ["", f"Rowsmith is running at {url}", ""]
    if link := demo.get("sign_in_url"):
        lines.append(f"  sign in   {link}   (works once, for {limits.SIGN_IN_LINK_HOURS} hours)")
    lines.append(
        f"  API key   {key}   (shown only once)" if key else f"  API key   to create another one: {command}"
    )
    if template := demo.get("template_id"):
        lines += ["  try it    " + curl_command(url, template, key or f"$({command})")]
    lines += [f"  logs      {data_dir / 'logs'}", "  stop      Ctrl-C", ""]
    return "\n".join(lines)


def curl_command(url: str, template_id: str, key: str) -> str:
    """Return a shell command that generates three rows of a template."""
    body = shlex.quote('{"count": 3, "format": "csv"}')
    headers = f'-H "Authorization: Bearer {key}" -H "Content-Type: application/json"'
    return f"curl -s {url}/templates/{template_id}/generate {headers} -d {body}"
