"""The requirements of a program: parse them when it is saved, and resolve them.

They are in the comment `# requirements: a, b>=1` or in the PEP 723 block. The lines are parsed here instead of being
passed to the resolver, because only package names are allowed: an address, a folder or an option in such a line would
let a program choose where this machine fetches code from.

The lock is stored with the version, so that every run of that version has the same packages. Only wheels are allowed:
nothing is built, and no interpreter of an environment is started outside the sandbox (jobs/scenarios/environments.py),
so no code of packages runs here.
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import tokenize
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import uv
from flask import current_app
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from webapp import document_process, limits
from webapp.errors import ApiError, Fault, did_you_mean, validation_error

PROVIDED: Final = frozenset({"rowsmith"})
"""Packages that every program has without declaring them, and that are never requested from an index."""

_COMMENT: Final = re.compile(r"#\s*requirements[ \t]*:(.*)")
_MISPLACED_COMMENT: Final = re.compile(r"(?m)^#[ \t]*requirements[ \t]*:")
_CONTINUATION: Final = re.compile(r"#(?:[ \t]*[-*][ \t]+| {2,}|\t+)(\S.*)")
# The PEP 723 block, matched with the regular expression from the specification.
_BLOCK: Final = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")

# Segments and dots of a dotted TOML key, whitespace, and any other character.
_KEY_TOKEN: Final = re.compile(
    r"""[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?|[ \t]++|(?P<point>\.)|(?P<other>.)""", re.S
)

_SEPARATOR: Final = re.compile(
    r"[,\s]"
)  # \s also matches Unicode line separators, which do not end a line in Python
_NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_EXTRAS: Final = rf"\[[ \t]*(?:{_NAME}(?:[ \t]*,[ \t]*{_NAME})*)?[ \t]*\]"
_VERSION: Final = r"(?:~=|===|==|!=|<=|>=|<|>)[ \t]*[A-Za-z0-9][A-Za-z0-9.*+!_-]*"
_VERSIONS: Final = rf"{_VERSION}(?:[ \t]*,[ \t]*{_VERSION})*"
_MARKER: Final = r"""(?:[A-Za-z0-9_.<>=!~() \t-]|'[^'\\]*'|"[^"\\]*")+"""
# A PEP 508 requirement with only a name.
REQUIREMENT: Final = re.compile(
    rf"(?P<name>{_NAME})(?:[ \t]*(?P<extras>{_EXTRAS}))?"
    rf"(?:[ \t]*\([ \t]*(?P<inner>{_VERSIONS})[ \t]*\)|[ \t]*(?P<versions>{_VERSIONS}))?"
    rf"(?:[ \t]*;[ \t]*(?P<marker>{_MARKER}))?"
)


@dataclass
class ParsedRequirements:
    """The parsed requirements of a program: `requirements` in the resolver's format, and the faults of the others."""

    requirements: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)


def parse(code: str) -> ParsedRequirements:
    """Return the requirements in a program's comments and block, without duplicates. Nothing is looked up.

    A comment counts if it is at the left margin and above the first statement that is neither an import nor the module
    docstring. Names follow PEP 508. Faults have the path `code` and include the line.
    """
    parsed = ParsedRequirements()
    code = code.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    lines, end = _find_comments(code)
    found: list[str] = []
    for number, text in lines:
        found += _parse_line(text, number, parsed)
    found += _block_requirements(code, parsed)
    for requirement in dict.fromkeys(found):
        if len(requirement) > limits.MAX_REQUIREMENT_CHARS:
            text = f'"{requirement[:60]}..." is longer than {limits.MAX_REQUIREMENT_CHARS} characters.'
            parsed.faults.append(Fault("code", "invalid_requirement", text))
        elif normalized_name(re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]) not in PROVIDED:
            parsed.requirements.append(requirement)
    if len(parsed.requirements) > limits.MAX_REQUIREMENTS:
        text = f"The program requires {len(parsed.requirements)} packages; the maximum is {limits.MAX_REQUIREMENTS}."
        parsed.faults.append(Fault("code", "invalid_requirement", text))
    if late := next(
        (item for item in _MISPLACED_COMMENT.finditer(code) if code.count("\n", 0, item.start()) + 1 > end),
        None,
    ):
        line = code.count("\n", 0, late.start()) + 1
        text = f"Line {line} is ignored: `# requirements:` must be above the first statement."
        parsed.warnings.append(
            Fault("code", "late_requirements", text, "Move it to the beginning of the program.")
        )
    return parsed


def in_process(file: IO[bytes]) -> dict[str, Any]:
    """Return the result of `read` as JSON. Runs in a document process."""
    return asdict(parse(file.read().decode("utf-8", "replace")))


def _find_comments(code: str) -> tuple[list[tuple[int, str]], int]:
    """Return the requirement comments of the head with their lines, and the last line of the head."""
    found: list[tuple[int, str]] = []
    continues = False
    end = 0
    for number, text in _head_comments(code):
        end = max(end, number)
        if match := _COMMENT.fullmatch(text):
            declared = match[1].strip()
            continues = not declared or declared.endswith(",")
            found.append((number, declared))
        elif continues and found and number == found[-1][0] + 1 and (more := _CONTINUATION.fullmatch(text)):
            found.append((number, more[1].strip()))
        else:
            continues = False
    return found, end


def _head_comments(code: str) -> list[tuple[int, str]]:
    """Return the comments at the left margin above the first statement that is neither an import nor the module
    docstring. The last pair is the position of that statement, with an empty text."""
    found: list[tuple[int, str]] = []
    is_skipped = False  # Within an import or a docstring
    number = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            number = token.start[0]
            if token.type == tokenize.COMMENT and token.start[1] == 0:
                found.append((number, token.string.rstrip()))
            elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                is_skipped = False
            elif token.type in (tokenize.NL, tokenize.COMMENT, tokenize.ENCODING):
                continue
            elif not is_skipped:
                if token.type != tokenize.STRING and token.string not in ("import", "from"):
                    break
                is_skipped = True
    except (tokenize.TokenError, SyntaxError):
        pass  # An unfinished program: what was parsed up to here counts
    return [*found, (number, "")]


def _parse_line(text: str, line: int, parsed: ParsedRequirements) -> list[str]:
    """Split a line into requirements at commas and whitespace. Invalid ones become faults, up to MAX_FAULTS."""
    found: list[str] = []
    place = 0
    while place < len(text) and len(parsed.faults) < limits.MAX_FAULTS:
        if _SEPARATOR.match(text, place):
            place += 1
            continue
        match = REQUIREMENT.match(text, place)
        if match and (match.end() == len(text) or _SEPARATOR.match(text, match.end())):
            found.append(_normalize_requirement(match))
            place = match.end()
            continue
        end = _SEPARATOR.search(text, place)
        invalid = text[place : end.start() if end else len(text)]
        if invalid.startswith("-"):  # An option and its argument are reported together
            invalid = text[place:].partition(",")[0].rstrip()
        parsed.faults.append(_invalid_requirement(invalid, f"Line {line}: "))
        place += len(invalid)
    return found


def _normalize_requirement(match: re.Match[str]) -> str:
    versions = re.sub(r"\s+", "", match["inner"] or match["versions"] or "")
    marker = f" ; {match['marker'].strip()}" if match["marker"] else ""
    return match["name"] + re.sub(r"\s+", "", match["extras"] or "") + versions + marker


def _invalid_requirement(text: str, prefix: str) -> Fault:
    """Return the reason why a text is not a valid requirement."""
    quoted = f'"{text[:80]}"'
    hint = "List package names, with versions if needed: `# requirements: tenacity, pandas>=2`."
    if re.match(r"(?i)(-i|--index-url|--extra-index-url|--index|--find-links|-f)\b", text):
        message = (
            f"{quoted} cannot be set by a program: packages come from the index that the operator configured."
        )
    elif re.match(r"(?i)(-e|--editable)\b", text):
        message = f"{quoted} is an editable installation. Only packages from the index can be required."
    elif re.match(r"(?i)(-r|-c|--requirement|--constraint)\b", text):
        message = f"{quoted} refers to another file. List the requirements in the program itself."
    elif text.startswith("-"):
        message = f"{quoted} is a pip option, and options are not supported."
    elif "://" in text or "@" in text or text.startswith("git+"):
        message = f"{quoted} is a URL. Only packages from the index can be required, by name."
    elif (
        text.startswith((".", "/", "~")) or "/" in text or "\\" in text or text.endswith((".whl", ".tar.gz"))
    ):
        message = f"{quoted} is a file or folder. Only packages from the index can be required, by name."
    else:
        message = f"{quoted} is not a valid requirement."
    return Fault("code", "invalid_requirement", prefix + message, hint)


def _block_requirements(code: str, parsed: ParsedRequirements) -> list[str]:
    """Return the `dependencies` of the PEP 723 block, after checking its `requires-python`."""
    blocks = [item for item in _BLOCK.finditer(code) if item["type"] == "script"]
    if not blocks:
        return []
    if len(blocks) > 1:
        parsed.faults.append(_block_fault("there is more than one `# /// script` block"))
        return []
    content = blocks[0]["content"]
    if len(content) > limits.MAX_REQUIREMENTS_BLOCK_CHARS:
        limit = limits.MAX_REQUIREMENTS_BLOCK_CHARS
        parsed.faults.append(_block_fault(f"the `# /// script` block is longer than {limit:,} characters"))
        return []
    text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in content.splitlines())
    if _longest_key_parts(text) > limits.MAX_REQUIREMENTS_KEY_PARTS:
        limit = limits.MAX_REQUIREMENTS_KEY_PARTS
        parsed.faults.append(
            _block_fault(f"the `# /// script` block has a key with more than {limit} dotted parts")
        )
        return []
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        parsed.faults.append(_block_fault(f"the `# /// script` block is not valid TOML: {str(error)[:200]}"))
        return []
    except RecursionError:
        parsed.faults.append(_block_fault("the `# /// script` block is nested too deeply"))
        return []
    _check_python(data.get("requires-python"), parsed)
    dependencies = data.get("dependencies", [])
    if not isinstance(dependencies, list) or not all(isinstance(item, str) for item in dependencies):
        parsed.faults.append(_block_fault("`dependencies` must be a list of strings"))
        return []
    if "tool" in data:
        text = "The `tool` tables of the `# /// script` block are ignored: packages come from the operator's index."
        parsed.warnings.append(Fault("code", "ignored", text))
    found = []
    for item in dependencies:
        if len(parsed.faults) >= limits.MAX_FAULTS:
            break
        match = REQUIREMENT.fullmatch(item.strip())
        if match:
            found.append(_normalize_requirement(match))
        else:
            parsed.faults.append(_invalid_requirement(item.strip(), "dependencies: "))
    return found


def _longest_key_parts(text: str) -> int:
    """Return the number of segments in the longest dotted key of a TOML document."""
    longest = points = 0
    for token in _KEY_TOKEN.finditer(text):
        points += token["point"] is not None
        if token["other"] is not None:
            points = 0
        longest = max(longest, points)
    return longest + 1


def _block_fault(text: str) -> Fault:
    return Fault("code", "invalid_requirement", f"Invalid program header: {text}.")


def _check_python(versions: Any, parsed: ParsedRequirements) -> None:
    if versions is None:
        return
    running = platform.python_version()
    try:
        is_supported = isinstance(versions, str) and SpecifierSet(versions).contains(
            running, prereleases=True
        )
    except InvalidSpecifier:
        parsed.faults.append(
            _block_fault(f'`requires-python` is not a valid version range: "{versions[:60]}"')
        )
        return
    if not isinstance(versions, str):
        parsed.faults.append(_block_fault("`requires-python` must be a string"))
    elif not is_supported:
        text = f"The program requires Python {versions[:60]}, but it would run with Python {running}."
        parsed.faults.append(Fault("code", "wrong_python", text))


def normalized_name(name: str) -> str:
    """Return a package name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


# --- Resolving ----------------------------------------------------------------------------------------------

# Variables for package indexes, TLS and proxies, and temporary folders.
FORWARDED_VARIABLES: Final = (
    "UV_CONFIG_FILE UV_DEFAULT_INDEX UV_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL UV_FIND_LINKS UV_NO_INDEX "
    "UV_INDEX_STRATEGY UV_KEYRING_PROVIDER UV_INSECURE_HOST UV_NATIVE_TLS UV_SYSTEM_CERTS "
    "UV_HTTP_TIMEOUT UV_HTTP_RETRIES UV_OFFLINE UV_EXCLUDE_NEWER UV_CACHE_DIR UV_LINK_MODE "
    "HOME XDG_CONFIG_HOME XDG_CONFIG_DIRS TMPDIR NETRC SSL_CERT_FILE SSL_CERT_DIR SSL_CLIENT_CERT "
    "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy"
).split()
# Maps names of pip settings to those of uv.
PIP_VARIABLES: Final = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_NO_INDEX": "UV_NO_INDEX",
    "PIP_CERT": "SSL_CERT_FILE",
}
NO_INDEX: Final = "UV_NO_INDEX"
_INDEXES: Final = ("UV_DEFAULT_INDEX", "UV_INDEX", "UV_INDEX_URL", "UV_EXTRA_INDEX_URL", "UV_NO_INDEX")
_UNREACHABLE: Final = re.compile(
    r"error sending request|tcp connect error|dns error|Request failed after|operation timed out"
    r"|connection (?:refused|reset)|network (?:connectivity )?(?:is|was) (?:unreachable|disabled)|status: 5\d\d",
    re.IGNORECASE,
)
_URL: Final = re.compile(r"(?:url )?[`(]*\b[a-z][a-z0-9+.-]*://[^\s`)]+[`)]*", re.IGNORECASE)
_FOLDER: Final = re.compile(r"`?(?<![\w.])~?/[^\s`'\",;:)]+`?")
_ANSI_STYLE: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True)
class UvResult:
    """The result of a uv command. `output` is its output without addresses and folders, or "" on success."""

    ok: bool
    output: str = ""
    index_unreachable: bool = False
    """Whether the index could not be reached, so that another attempt may succeed."""
    too_large: bool = False
    """Whether the packages were too large, so that what uv has stored of them should be removed."""


def uv_path() -> str:
    """Return the path of uv: the one installed with the service, else the system's. Raise FileNotFoundError."""
    try:
        return uv.find_uv_bin()
    except FileNotFoundError:
        found = shutil.which("uv")
        if found is None:
            raise
        return found


def uv_environment(own: Mapping[str, str], cache: Path) -> dict[str, str]:
    """Return the environment variables for uv. From `own` (this process's variables), only those that configure package
    sources are kept."""
    found = {name: own[name] for name in FORWARDED_VARIABLES if own.get(name)}
    has_index = any(name in found for name in _INDEXES)
    for pip_name, name in PIP_VARIABLES.items():
        if own.get(pip_name) and name not in found and not (has_index and name in _INDEXES):
            found[name] = ",".join(own[pip_name].split()) if name == "UV_FIND_LINKS" else own[pip_name]
    fixed = {
        "PATH": "/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "UV_NO_PROGRESS": "1",
        "UV_PYTHON_DOWNLOADS": "never",  # Programs use the Python version of the service
    }
    return {"UV_CACHE_DIR": str(cache), **found, **fixed}


def run_uv(
    arguments: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str],
    seconds: float,
    prefix: Sequence[str] = (),
    check_alive: Callable[[], None] | None = None,
) -> UvResult:
    """Run `uv <arguments>` in a folder with a time limit in seconds. Files that it creates are world-readable.

    `prefix` is put before the command. `check_alive` is called several times a second; an exception from it stops uv
    and is propagated. A wheel of a few megabytes can unpack to any size, and uv reads the metadata of a wheel into
    memory, so both are limited: uv is stopped when the folder and its cache have grown by ENVIRONMENTS_BYTES.
    """
    # uv has an option for this and, unlike pip, no variable.
    no_index = arguments[0] == "pip" and env.get(NO_INDEX, "").lower() in ("1", "true", "yes", "on")
    with open(folder / "uv.log", "w+b") as log:
        process = subprocess.Popen(
            [*prefix, uv_path(), *arguments, *(["--no-index"] if no_index else [])],
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            umask=0o022,
            start_new_session=True,
        )
        disk_usage = _DiskUsage((folder, Path(env["UV_CACHE_DIR"])))
        try:
            for which, limit in (
                (resource.RLIMIT_DATA, limits.UV_MEMORY_BYTES),
                (resource.RLIMIT_FSIZE, limits.ENVIRONMENTS_BYTES),
            ):
                with suppress(ProcessLookupError):
                    resource.prlimit(process.pid, which, (limit, limit))
            ended = _wait(process, seconds, check_alive, disk_usage)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        log.seek(0)
        text = log.read().decode("utf-8", "replace")
    if disk_usage.exceeded:
        return UvResult(
            False, f"The packages need more than {limits.ENVIRONMENTS_BYTES:,} bytes.", too_large=True
        )
    if not ended:
        return UvResult(False, f"This took longer than {seconds:.0f} s.", index_unreachable=True)
    if process.returncode == -signal.SIGABRT:  # how uv ends when it gets no more memory
        return UvResult(False, "The metadata of the packages needs too much memory.")
    return (
        UvResult(True)
        if process.returncode == 0
        else UvResult(False, clean_output(text), bool(_UNREACHABLE.search(text)))
    )


class _DiskUsage:
    """The growth of some folders. It is measured for at most a tenth of the time."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._next, self._before = 0.0, 0
        self._before = self._measure()

    @property
    def exceeded(self) -> bool:
        """Whether the folders have grown by more than ENVIRONMENTS_BYTES."""
        return self._measure() - self._before > limits.ENVIRONMENTS_BYTES

    def is_exceeded(self) -> bool:
        """Like `exceeded`, but False until it is time to measure again."""
        return time.monotonic() >= self._next and self.exceeded

    def _measure(self) -> int:
        started = time.monotonic()
        size = disk_bytes(self._folders)
        self._next = time.monotonic() + 10 * (time.monotonic() - started)
        return size


def disk_bytes(folders: Sequence[Path]) -> int:
    """Return the bytes on disk of folders. A file with several hard links counts once."""
    seen: dict[tuple[int, int], int] = {}
    for top in folders:
        for folder, _, names in os.walk(top):
            for name in names:
                with suppress(OSError):
                    found = os.lstat(os.path.join(folder, name))
                    seen[found.st_dev, found.st_ino] = found.st_blocks * 512
    return sum(seen.values())


def _wait(
    process: subprocess.Popen[bytes],
    seconds: float,
    check_alive: Callable[[], None] | None,
    disk_usage: _DiskUsage,
) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until and not disk_usage.is_exceeded():
        if check_alive is not None:
            check_alive()
        try:
            process.wait(timeout=max(0.0, min(0.25, until - time.monotonic())))
        except subprocess.TimeoutExpired:
            continue
        return True
    return False


def clean_output(text: str) -> str:
    """Return the output of uv as one paragraph, without addresses, local folders or the derivation steps."""
    lines = [" ".join(line.split()) for line in _ANSI_STYLE.sub("", text).splitlines()]
    lines = [
        line for line in lines if line and not line.startswith(("warning:", "Using ", "Resolved ", "hint:"))
    ]
    messages = [re.sub(r"^(?:error: |cause: |[×╰─▶├│ ]+)+", "", line) for line in lines]
    sentences: list[str] = []
    for line in messages:
        if sentences and line[:1].islower():  # continues the previous one
            sentences[-1] += f" {line}"
        else:
            sentences.append(line)
    message = ". ".join(
        item.rstrip(".:") for item in sentences if not item.startswith("No solution found when")
    )
    message = _FOLDER.sub("a folder of the service", _URL.sub("the package index", message))
    return f"{message.strip()[:2000]}." if message.strip() else "uv did not report a reason."


COMMON: Final = ("requests", "httpx", "pandas", "faker", "pyyaml", "python-dateutil")
"""The libraries that every program has; `requirements-scenarios.lock` pins their versions."""

COMMON_LOCK: Final = Path(__file__).resolve().parents[3] / "requirements-scenarios.lock"
_RESOLVE: Final = (
    "pip compile --only-binary :all: --generate-hashes --no-header --no-annotate --no-emit-index-url "
    "--no-python-downloads requirements.in --output-file requirements.lock"
).split()
_PINNED: Final = re.compile(r"(?m)^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)")
# Maps import names that are often used by mistake to package names in the index.
PACKAGES_BY_MODULE: Final[Mapping[str, str]] = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dateutil": "python-dateutil",
    "dotenv": "python-dotenv",
    "jwt": "pyjwt",
    "pil": "pillow",
    "psycopg2": "psycopg2-binary",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}


@dataclass(frozen=True)
class ResolvedRequirements:
    """The resolved requirements of a program. Without requirements, `lock` and `environment` are "" and the program
    runs with the common libraries of this release. Otherwise the lock includes those too, and `environment` is its
    hash."""

    requirements: list[str] = field(default_factory=list)
    lock: str = ""
    environment: str = ""

    def to_pins(self) -> dict[str, Any]:
        """Return the pins that a version stores."""
        return {"requirements": self.requirements, "lock": self.lock, "environment": self.environment}

    @classmethod
    def from_pins(cls, pins: Mapping[str, Any]) -> ResolvedRequirements:
        """Create an instance from the pins of a version."""
        return cls(list(pins.get("requirements", [])), pins.get("lock", ""), pins.get("environment", ""))


def read(code: str) -> ParsedRequirements:
    """Return the requirements declared in a program; see `requirements_text.read`, which runs in a document process.
    Raise unavailable."""
    try:
        found = document_process.run_cached(
            "webapp.scenarios.services.requirements:in_process",
            code.encode("utf-8", "replace"),
            seconds=limits.SYNTAX_SECONDS,
        )
    except document_process.DocumentError as error:
        text = f"The requirements of the program cannot be read. {error.message}"
        return ParsedRequirements(faults=[Fault("code", "invalid_requirement", text, error.hint)])
    return ParsedRequirements(
        found["requirements"],
        [Fault(**fault) for fault in found["faults"]],
        [Fault(**warning) for warning in found["warnings"]],
    )


def resolve(
    code: str, before: ResolvedRequirements | None = None, *, refresh: bool = False
) -> ResolvedRequirements:
    """Resolve the requirements of a program. If they equal those of `before`, its lock is reused without querying the
    index. Packages that remain keep their versions. `refresh` disables both.

    Queries the index for up to RESOLVE_SECONDS: call this outside of any transaction. Raise validation_error at `code`
    (an invalid requirement, a package that does not exist or has no wheel, an unreachable index) or unavailable (too
    many concurrent resolutions).
    """
    parsed = read(code)
    if parsed.faults:
        raise validation_error(parsed.faults)
    if not parsed.requirements:
        return ResolvedRequirements()
    if before is not None and not refresh and before.requirements == parsed.requirements:
        return before
    keep = before.lock if before is not None and not refresh else ""
    lock = _lock(parsed.requirements, keep or common_lock())
    return ResolvedRequirements(parsed.requirements, lock, lock_digest(lock))


def lock_digest(lock: str) -> str:
    """Return the hash that identifies a lock."""
    return hashlib.sha256(lock.encode()).hexdigest()


def common_lock() -> str:
    """Return the lock of the common libraries."""
    return COMMON_LOCK.read_text("utf-8")


def packages_in(lock: str) -> dict[str, str]:
    """Return the names and versions in a lock, in its order."""
    return {normalized_name(name): version for name, version in _PINNED.findall(lock)}


def cache_folder(data_dir: Path) -> Path:
    """Return the cache folder of uv."""
    return data_dir / "environments" / "cache"


def base_python() -> str:
    """Return the base interpreter of this process's virtual environment, which also runs the programs."""
    return str(Path(getattr(sys, "_base_executable", "") or sys.executable).resolve())


# --- Resolving ----------------------------------------------------------------------------------------------

_resolve_slots: Final = threading.BoundedSemaphore(limits.RESOLVE_AT_ONCE)


@contextmanager
def _resolve_slot() -> Iterator[None]:
    if not _resolve_slots.acquire(timeout=limits.RESOLVE_TURN_SECONDS):
        text = "The requirements of other programs are being resolved. Try again."
        raise ApiError("unavailable", text, headers={"Retry-After": "5"})
    try:
        yield
    finally:
        _resolve_slots.release()


def _lock(declared: list[str], preferred: str) -> str:
    """Return the lock of some requirements and the common libraries, keeping `preferred` versions where possible."""
    cache = cache_folder(current_app.config["SETTINGS"].data_dir)
    env = uv_environment(os.environ, cache)
    with _resolve_slot(), tempfile.TemporaryDirectory(prefix="rowsmith-resolve-") as name:
        folder = Path(name)
        (folder / "requirements.in").write_text("\n".join([*declared, *COMMON]) + "\n", "utf-8")
        # uv prefers the versions that are already in the output file.
        (folder / "requirements.lock").write_text(preferred, "utf-8")
        command = [*_RESOLVE, "--python", base_python()]
        try:
            done = run_uv(command, folder=folder, env=env, seconds=limits.RESOLVE_SECONDS)
        except FileNotFoundError:
            text = "Requirements cannot be resolved here: uv is not installed."
            raise validation_error([Fault("code", "not_resolved", text)]) from None
        if done.too_large:
            shutil.rmtree(cache, ignore_errors=True)  # uv can download it again
        if not done.ok and done.index_unreachable:
            text = (
                f"The requirements could not be resolved: the package index cannot be reached. {done.output}"
            )
            hint = "Try again, or save the program without its requirements."
            raise validation_error([Fault("code", "index_unreachable", text, hint)])
        if not done.ok:
            text = f"The requirements cannot be met. {done.output}"
            raise validation_error([Fault("code", "not_resolved", text, _hint(done.output, declared))])
        return (folder / "requirements.lock").read_text("utf-8")


def _hint(message: str, declared: list[str]) -> str | None:
    """Return a hint for a package that does not exist or has no wheel."""
    missing = re.search(r"([A-Za-z0-9._-]+) was not found in", message)
    if missing:
        name = missing[1].lower()
        if name in sys.stdlib_module_names:
            return f"{missing[1]} is part of Python: import it without requiring it."
        if name in PACKAGES_BY_MODULE:
            return f"Did you mean `{PACKAGES_BY_MODULE[name]}`?"
        return (
            did_you_mean(name, [*COMMON, *PACKAGES_BY_MODULE.values()]) or "Check the spelling of the name."
        )
    if "no usable wheels" in message or "no wheels" in message:
        return (
            "Only packages with a wheel for this machine can be used. Try another version or another package."
        )
    return "Allow more versions, or require fewer packages." if len(declared) > 1 else None
