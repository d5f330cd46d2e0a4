"""`./rowsmith test | soak | format | lock | build`: what only a clone can do.

    test              layers, lint, format, types, tests; everything runs, and the summary names what failed
    soak              hours of mixed load on one stack, with measurements and charts; promise 25 requires four hours
    format [--check]  Python by ruff; pages, style sheets and scripts by the packages of tools/format, which are
                      installed by their lock file into the virtual environment, once for each version of it
    lock              resolve the dependencies and write every lock file; needs uv and npm on the PATH
    build             the packages of a release, in dist/ of the clone; needs git and npm on the PATH

A release is the server as a wheel that needs neither a clone nor npm, the packages of `sdk/` for Python, and the npm
package; each Python package also as its source. They are built from the last commit, with its time, by the tools of
requirements-build.lock: the same commit results in the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from webapp.cli import assets
from webapp.cli.datadir import CliError
from webapp.config import LAUNCHER_NAMES
from webapp.engine.data import vocabulary
from webapp.engine.data.vocab_lock import current_entry
from webapp.paths import ROOT, static_folder
from webapp.scenarios.services.requirements import COMMON

# Tests that take minutes or need additional services: only with --all.
LONG_TESTS: Final = (
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
TESTS_ON_BOTH_STACKS: Final = (
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
HIDDEN_VARIABLES: Final = (
    *("SECRET_KEY", "VAULT_KEYS", "DATABASE_URL", "REDIS_URL", "STORAGE_URL", "PUBLIC_URL"),
    "PYTHONDONTWRITEBYTECODE",
)


def run_test(arguments: argparse.Namespace) -> int:
    """Run the checks and tests, or with arguments for pytest only pytest. Return 0 if everything passed."""
    assets.ensure_built()
    env = {
        name: value for name, value in os.environ.items() if name not in (*HIDDEN_VARIABLES, *LAUNCHER_NAMES)
    }
    # Where lint-imports finds the packages of sdk/.
    env["PYTHONPATH"] = os.pathsep.join(
        str(ROOT / "sdk" / name / "src") for name in ("python", "mcp", "spark")
    )
    failed = [
        name
        for name, command in test_steps(arguments.all, arguments.rest)
        if not run_step(name, command, env)
    ]
    print(f"\nfailed: {', '.join(failed)}" if failed else "\nall passed", flush=True)
    return 1 if failed else 0


def test_steps(everything: bool, rest: list[str]) -> list[tuple[str, list[str]]]:
    """Return name and command of each step."""
    tests = ("tests", [sys.executable, "-m", "pytest", *pytest_arguments(everything, rest)])
    if rest:
        return [tests]
    bin_folder = Path(sys.executable).parent
    result = [
        ("layers", [str(bin_folder / "lint-imports"), "--no-logo", "--no-cache"]),
        ("lint", [sys.executable, "-m", "ruff", "check"]),
        ("format", [sys.executable, "-m", "webapp.cli", "format", "--check"]),
        (
            "types",
            [
                *(sys.executable, "-m", "mypy", "--cache-dir", str(ROOT / ".mypy_cache")),
                *("--num-workers", str(os.cpu_count() or 1)),
            ],
        ),
        tests,
    ]
    if everything:
        on_postgresql = [
            "env",
            "TEST_ON=postgresql",
            sys.executable,
            "-m",
            "pytest",
            *pytest_arguments(True, list(TESTS_ON_BOTH_STACKS)),
        ]
        result.append(("promises on PostgreSQL and Redis", on_postgresql))
    return result


def pytest_arguments(everything: bool, rest: list[str]) -> list[str]:
    """Return the arguments of pytest: one process more than processors; without --all, no long tests unless named."""
    has_processes = any(argument.startswith(("-n", "--numprocesses", "--pdb")) for argument in rest)
    # Tests wait a fifth of the time for their servers, and each process imports the application and collects all tests:
    # on two processors three take about a minute less than four. `worksteal` gives each process neighbouring tests,
    # which share fixtures, and moves tests to idle processes.
    processes = ["-n", str((os.cpu_count() or 1) + 1), "--dist", "worksteal"]
    result = [] if has_processes else processes
    if not everything:
        selected = {argument.split("::")[0].rstrip("/") for argument in rest}
        result += [
            f"--ignore={long}" for long in LONG_TESTS if not any(is_within(long, name) for name in selected)
        ]
    return [*result, *rest]


def is_within(one: str, other: str) -> bool:
    """Return whether one of the two paths is equal to the other or inside it: a folder of `tests` includes its
    files."""
    deep, top = sorted((one, other), key=len, reverse=True)
    return top != "tests" and (deep == top or deep.startswith(f"{top}/"))


def run_step(name: str, command: list[str], env: dict[str, str]) -> bool:
    """Run one step with its output in the terminal. Returns whether its exit code is 0."""
    print(f"\n== {name}", flush=True)
    return subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, check=False).returncode == 0


# --- soak ---------------------------------------------------------------------------------------------------

TEST: Final = "tests/soak/test_mixed_load.py"


def run_soak(arguments: argparse.Namespace) -> int:
    """Run the load test. Return 0 if all checks passed. The measurements are written to `--out` in any case."""
    if not (ROOT / TEST).is_file():
        raise CliError(f"{TEST} does not exist: run the soak test from a clone of the repository.")
    assets.ensure_built()
    folder = Path(arguments.out).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    env = {
        name: value for name, value in os.environ.items() if name not in (*HIDDEN_VARIABLES, *LAUNCHER_NAMES)
    }
    env |= {
        "SOAK_MINUTES": str(60 * arguments.hours),
        "SOAK_STACK": arguments.stack,
        "SOAK_FOLDER": str(folder),
        "PYTHONPATH": str(ROOT / "sdk" / "python" / "src"),
    }
    print(
        f"{arguments.hours:g} h on {arguments.stack}; measurements go to {folder / arguments.stack}",
        flush=True,
    )
    command = [sys.executable, "-m", "pytest", "-s", "-o", "faulthandler_timeout=0", TEST]
    return subprocess.run(command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, check=False).returncode


# --- format -------------------------------------------------------------------------------------------------

TOOLS: Final = ROOT / "tools" / "format"
FILES: Final = ("package.json", "package-lock.json", "format.js")


def run_format(arguments: argparse.Namespace) -> int:
    """Format the files, or with --check list those that are not formatted. Returns 1 if there are any."""
    check = ["--check"] if arguments.check else []
    python = subprocess.run([sys.executable, "-m", "ruff", "format", *check, "."], cwd=ROOT, check=False)
    folder = ensure_installed()
    files = "\n".join(
        str(path)
        for folder_name in ("static", "templates")
        for path in sorted((ROOT / folder_name).rglob("*"))
        if path.suffix in (".css", ".js", ".html") and "vendor" not in path.parts
    )
    script = [assets.node_path(folder), str(folder / "format.js"), *check]
    pages = subprocess.run(script, input=files, text=True, cwd=folder, check=False)
    return int(python.returncode != 0 or pages.returncode != 0)


def ensure_installed() -> Path:
    """Return the folder with the installed packages. CliError if they cannot be installed."""
    digest = hashlib.sha256(b"".join((TOOLS / name).read_bytes() for name in FILES)).hexdigest()[:16]
    place = Path(sys.prefix) / f"format-{digest}"
    if place.exists():
        return place
    with tempfile.TemporaryDirectory(prefix=".format-", dir=sys.prefix) as name:
        fresh = Path(name) / "format"
        fresh.mkdir()
        for file in FILES:
            shutil.copy(TOOLS / file, fresh)
        if problem := assets.run_npm_ci(fresh):
            raise CliError(f"The formatters could not be installed: {problem}")
        try:
            fresh.rename(place)
        except OSError:
            if not place.exists():  # otherwise another process has just done the same
                raise
    return place


# --- lock ---------------------------------------------------------------------------------------------------

COMPILE: Final = (
    "pip compile --quiet --universal --upgrade --python-version 3.11 --generate-hashes --no-emit-index-url"
).split()


def run_lock(_arguments: argparse.Namespace) -> int:
    """Write the lock files: requirements.lock, those for development, assets, building and scenarios, and
    package-lock.json of the browser code and of the formatters."""
    uv, npm = find_program("uv"), find_program("npm")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    _compile(uv, "requirements.lock", "--extra", "drivers", "pyproject.toml")
    # The same versions: what is tested is what runs.
    development = ["--extra", "drivers", "--group", "dev", "--constraints", "requirements.lock"]
    _compile(uv, "requirements-dev.lock", *development, "pyproject.toml")
    assets = "\n".join(project["optional-dependencies"]["assets"])
    _compile(uv, "requirements-assets.lock", "-", text=assets)
    # What builds the packages of a release.
    _compile(uv, "requirements-build.lock", "-", text="hatchling")
    # Programs of scenarios run by the service's own Python, and nothing is built for them.
    _compile(uv, "requirements-scenarios.lock", "--only-binary", ":all:", "-", text="\n".join(COMMON))
    for folder in (ROOT, ROOT / "tools" / "format"):
        # Newest versions that package.json allows, and no registry's address in the lock.
        lock = folder / "package-lock.json"
        lock.unlink(missing_ok=True)
        command = [
            npm,
            "install",
            "--package-lock-only",
            "--ignore-scripts",
            "--omit-lockfile-registry-resolved",
        ]
        if subprocess.run([*command, "--no-audit", "--no-fund"], cwd=folder, check=False).returncode != 0:
            raise CliError(f"{lock} could not be resolved; see the lines above.")
    return 0


def find_program(name: str) -> str:
    """Return the path of a program. CliError if it is not on the PATH."""
    found = shutil.which(name)
    if not found:
        raise CliError(f"{name} is required, but is not on the PATH.")
    return found


def _compile(uv: str, output: str, *arguments: str, text: str | None = None) -> None:
    command = [
        uv,
        *COMPILE,
        "--custom-compile-command",
        "./rowsmith lock",
        "--output-file",
        output,
        *arguments,
    ]
    if subprocess.run(command, cwd=ROOT, input=text, text=True, check=False).returncode != 0:
        raise CliError(f"{output} could not be resolved; see the lines above.")


# --- build --------------------------------------------------------------------------------------------------

PYTHON_PACKAGES: Final = (".", "sdk/python", "sdk/mcp", "sdk/spark")
SUMS: Final = "SHA256SUMS"


def run_build(arguments: argparse.Namespace) -> int:
    """Build all packages into a folder, and write their checksums next to them."""
    git, npm, uv = find_program("git"), find_program("npm"), str(Path(sys.executable).with_name("uv"))
    out = (
        Path(os.environ.get("ROWSMITH_CALLER_DIR") or ".") / arguments.out if arguments.out else ROOT / "dist"
    )
    out = out.resolve()
    if out.exists() and any(out.iterdir()):
        raise CliError(f"{out} is not empty: remove it, or choose another folder with --out.")
    out.mkdir(parents=True, exist_ok=True)
    assets.ensure_built()
    vocabulary.open_default()
    commit_time = _run_checked([git, "log", "-1", "--format=%ct"], ROOT, os.environ).strip()
    env = {**os.environ, "SOURCE_DATE_EPOCH": commit_time, "npm_config_update_notifier": "false"}
    with tempfile.TemporaryDirectory(prefix="rowsmith-build-") as scratch:
        source = Path(scratch) / "source"
        source.mkdir()
        archive = subprocess.Popen([git, "archive", "HEAD"], cwd=ROOT, stdout=subprocess.PIPE)
        with tarfile.open(fileobj=archive.stdout, mode="r|") as commit:
            commit.extractall(source, filter="data")
        if archive.wait() != 0:
            raise CliError(f"{ROOT} has no commit to build from.")
        shutil.copytree(static_folder() / "vendor", source / "static" / "vendor")
        vocabulary_file = Path("var", "vocab", f"{current_entry().id}.arrow")
        (source / vocabulary_file.parent).mkdir(parents=True)
        shutil.copy(ROOT / vocabulary_file, source / vocabulary_file)
        lock = ROOT / "requirements-build.lock"
        for package in PYTHON_PACKAGES:
            print(f"rowsmith: building {package}", file=sys.stderr, flush=True)
            build = [uv, "build", "--quiet", "--build-constraints", str(lock), "--require-hashes"]
            _run_checked([*build, "--out-dir", str(out), str(source / package)], source, env)
        print("rowsmith: building sdk/typescript", file=sys.stderr, flush=True)
        typescript = source / "sdk" / "typescript"
        _run_checked([npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"], typescript, env)
        _run_checked([npm, "pack", "--silent", "--pack-destination", str(out)], typescript, env)
    (out / ".gitignore").unlink(missing_ok=True)  # uv writes one
    files = sorted(out.iterdir())
    sums = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files]
    (out / SUMS).write_text("".join(sums))
    print("".join(sums), end="")
    return 0


def _run_checked(command: list[str], folder: Path, env: Mapping[str, str]) -> str:
    """Run a command and return its output. CliError with the end of its error output if it fails."""
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    if done.returncode != 0:
        reason = "\n".join((done.stderr or done.stdout).strip().splitlines()[-12:])
        raise CliError(f"{' '.join(command[:3])} failed in {folder.name}:\n{reason}")
    return done.stdout
