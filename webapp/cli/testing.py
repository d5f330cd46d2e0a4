"""`./rowsmith test`: layers, lint, format, types, tests. Everything runs, and the summary names what failed."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from webapp.cli import assets
from webapp.config import LAUNCHER_NAMES
from webapp.paths import ROOT

# Tests that take minutes or need additional services: only with --all.
LONG: Final = (
    "tests/browser",
    "tests/chaos",
    "tests/compat",
    "tests/soak",
    "tests/loads",
    "tests/promises",
    "tests/fuzz",
    "tests/odata",
    "tests/s3",
    "tests/mongodb",
    "tests/mcp",
    "tests/spark",
    "tests/packages",
    "tests/deploy/test_hosts.py",
    "tests/deploy/test_release.py",
    "tests/typescript/live",
    "tests/upkeep/live",
    "tests/cli/test_script.py",
    "tests/cli/test_vocab.py",
    "tests/connectors/test_memory_attacks.py",
    "tests/engine/masking/test_a_million.py",
    "tests/jobs/test_push_http_waits.py",
    "tests/jobs/test_push_target_away.py",
    "tests/sdk/test_cli_guide.py",
    "tests/sdk/test_docs_samples.py",
    "tests/sdk/test_wheel.py",
    "tests/security/test_http_ways.py",
    "tests/views/test_export_parts_workers.py",
    "tests/views/test_slow_clients.py",
)
# What shows a promise on SQLite and Valkey, and with TEST_ON=postgresql on PostgreSQL and Redis; tests/promises itself
# goes through both.
ON_BOTH: Final = (
    "tests/chaos",
    "tests/jobs/test_retention.py",
    "tests/security/test_http_secrets.py",
    "tests/security/test_login.py",
    "tests/security/test_ways_in.py",
    "tests/services/test_audit.py",
    "tests/services/test_audit_kept.py",
    "tests/services/test_audit_seals.py",
    "tests/services/test_limit_notices.py",
    "tests/services/test_mail.py",
    "tests/services/test_notices.py",
    "tests/services/test_webhook_sending.py",
    "tests/views/test_idempotency.py",
    "tests/views/test_rates.py",
    "tests/views/test_row_quota.py",
    "tests/views/test_sign_in.py",
    "tests/views/test_streaming.py",
    "tests/views/test_trash.py",
    "tests/views/test_usage.py",
    "tests/views/test_webhooks.py",
)
# Environment variables of the user's shell that tests must not see: settings of the product, and one that would make
# each of several hundred processes compile all modules again.
UNSEEN: Final = (
    *("SECRET_KEY", "VAULT_KEYS", "DATABASE_URL", "REDIS_URL", "STORAGE_URL", "PUBLIC_URL"),
    "PYTHONDONTWRITEBYTECODE",
)


def run(arguments: argparse.Namespace) -> int:
    """Returns 0 when all is well. Arguments for pytest narrow the run to pytest."""
    assets.ensure()
    env = {name: value for name, value in os.environ.items() if name not in (*UNSEEN, *LAUNCHER_NAMES)}
    # Where lint-imports finds the packages of sdk/.
    env["PYTHONPATH"] = os.pathsep.join(
        str(ROOT / "sdk" / name / "src") for name in ("python", "mcp", "spark")
    )
    failed = [
        name for name, command in steps(arguments.all, arguments.rest) if not passes(name, command, env)
    ]
    print(f"\nfailed: {', '.join(failed)}" if failed else "\nall passed", flush=True)
    return 1 if failed else 0


def steps(everything: bool, rest: list[str]) -> list[tuple[str, list[str]]]:
    """Name and command of each step."""
    tests = ("tests", [sys.executable, "-m", "pytest", *pytest_arguments(everything, rest)])
    if rest:
        return [tests]
    beside = Path(sys.executable).parent
    made = [
        ("layers", [str(beside / "lint-imports"), "--no-logo", "--no-cache"]),
        ("lint", [sys.executable, "-m", "ruff", "check"]),
        ("format", [sys.executable, "-m", "webapp.cli", "format", "--check"]),
        ("types", [sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache")]),
        tests,
    ]
    if everything:
        again = [
            "env",
            "TEST_ON=postgresql",
            sys.executable,
            "-m",
            "pytest",
            *pytest_arguments(True, list(ON_BOTH)),
        ]
        made.append(("promises on PostgreSQL and Redis", again))
    return made


def pytest_arguments(everything: bool, rest: list[str]) -> list[str]:
    """Twice as many processes as processors, and without --all none of the long directories, unless one is named."""
    alone = any(word.startswith(("-n", "--numprocesses", "--pdb")) for word in rest)
    # Tests wait half of the time for their servers. `worksteal` gives each process neighbouring tests, which share
    # fixtures, and moves tests to idle processes.
    processes = ["-n", str(2 * (os.cpu_count() or 1)), "--dist", "worksteal"]
    out = [] if alone else processes
    if not everything:
        named = {word.split("::")[0].rstrip("/") for word in rest}
        out += [f"--ignore={long}" for long in LONG if not any(within(long, name) for name in named)]
    return [*out, *rest]


def within(one: str, other: str) -> bool:
    """Return whether one of the two paths is equal to the other or inside it: a folder of `tests` includes its
    files."""
    deep, top = sorted((one, other), key=len, reverse=True)
    return top != "tests" and (deep == top or deep.startswith(f"{top}/"))


def passes(name: str, command: list[str], env: dict[str, str]) -> bool:
    """Run one step with its output in the terminal. Returns whether its exit code is 0."""
    print(f"\n== {name}", flush=True)
    return subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, check=False).returncode == 0
