"""What a program says it requires: the comment `# requirements: a, b>=1`, and the block of PEP 723.

Read by hand instead of given to the resolver as it stands, because only packages by name may be asked for: an
address, a folder or an option in such a line would let a program choose where this machine fetches code from.
"""

from __future__ import annotations

import io
import platform
import re
import tokenize
import tomllib
from dataclasses import asdict, dataclass, field
from typing import IO, Any, Final

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from webapp import limits
from webapp.errors import Fault

PROVIDED: Final = frozenset({"rowsmith"})
"""Packages that every program has without asking, and that no index must be asked for."""

_COMMENT: Final = re.compile(r"#\s*requirements[ \t]*:(.*)")
_LATE: Final = re.compile(r"(?m)^#[ \t]*requirements[ \t]*:")
_MORE: Final = re.compile(r"#(?:[ \t]*[-*][ \t]+| {2,}|\t+)(\S.*)")
# The block of PEP 723, by the expression that its specification gives.
_BLOCK: Final = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")

# Parts and points of a dotted key of TOML, blanks, and any other sign.
_KEY_TOKEN: Final = re.compile(
    r"""[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?|[ \t]++|(?P<point>\.)|(?P<other>.)""", re.S
)

_BETWEEN: Final = re.compile(r"[,\s]")  # \s: also line separators of Unicode, which end no line of Python
_NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_EXTRAS: Final = rf"\[[ \t]*(?:{_NAME}(?:[ \t]*,[ \t]*{_NAME})*)?[ \t]*\]"
_VERSION: Final = r"(?:~=|===|==|!=|<=|>=|<|>)[ \t]*[A-Za-z0-9][A-Za-z0-9.*+!_-]*"
_VERSIONS: Final = rf"{_VERSION}(?:[ \t]*,[ \t]*{_VERSION})*"
_MARKER: Final = r"""(?:[A-Za-z0-9_.<>=!~() \t-]|'[^'\\]*'|"[^"\\]*")+"""
# A requirement of PEP 508, by name alone.
ONE: Final = re.compile(
    rf"(?P<name>{_NAME})(?:[ \t]*(?P<extras>{_EXTRAS}))?"
    rf"(?:[ \t]*\([ \t]*(?P<inner>{_VERSIONS})[ \t]*\)|[ \t]*(?P<versions>{_VERSIONS}))?"
    rf"(?:[ \t]*;[ \t]*(?P<marker>{_MARKER}))?"
)


@dataclass
class Said:
    """What a program says: `requirements` as the resolver takes them, and what is wrong with the rest."""

    requirements: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)


def read(code: str) -> Said:
    """The requirements of a program, of its comments and of its block together, each once; nothing is looked up.

    A comment counts at the left margin and above the first statement that is neither an import nor the text that
    describes the program. Names are as PEP 508 has them; faults stand at `code` with their line.
    """
    said = Said()
    code = code.replace("\r\n", "\n").replace("\r", "\n").removeprefix("\ufeff")
    lines, end = _comments(code)
    found: list[str] = []
    for number, text in lines:
        found += _split(text, number, said)
    found += _block(code, said)
    _once(found, said)
    if late := next(
        (one for one in _LATE.finditer(code) if code.count("\n", 0, one.start()) + 1 > end), None
    ):
        line = code.count("\n", 0, late.start()) + 1
        text = f"Line {line} is not read: `# requirements:` counts only above the first statement."
        said.warnings.append(
            Fault("code", "late_requirements", text, "Move it to the beginning of the program.")
        )
    return said


def in_process(file: IO[bytes]) -> dict[str, Any]:
    """What `read` says of a program, as JSON. Runs in a document process."""
    return asdict(read(file.read().decode("utf-8", "replace")))


def _comments(code: str) -> tuple[list[tuple[int, str]], int]:
    """What the comments of the head say, with their lines, and the last line of the head."""
    found: list[tuple[int, str]] = []
    going_on = False
    end = 0
    for number, text in _head(code):
        end = max(end, number)
        if hit := _COMMENT.fullmatch(text):
            said = hit[1].strip()
            going_on = not said or said.endswith(",")
            found.append((number, said))
        elif going_on and found and number == found[-1][0] + 1 and (more := _MORE.fullmatch(text)):
            found.append((number, more[1].strip()))
        else:
            going_on = False
    return found, end


def _head(code: str) -> list[tuple[int, str]]:
    """Comments at the left margin above the first statement but imports and a first text; the last pair is where
    that begins, with an empty text."""
    found: list[tuple[int, str]] = []
    passing = False  # within an import or a text
    number = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            number = token.start[0]
            if token.type == tokenize.COMMENT and token.start[1] == 0:
                found.append((number, token.string.rstrip()))
            elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
                passing = False
            elif token.type in (tokenize.NL, tokenize.COMMENT, tokenize.ENCODING):
                continue
            elif not passing:
                if token.type != tokenize.STRING and token.string not in ("import", "from"):
                    break
                passing = True
    except (tokenize.TokenError, SyntaxError):
        pass  # an unfinished program: what was read up to here counts
    return [*found, (number, "")]


def _split(text: str, line: int, said: Said) -> list[str]:
    """The requirements of one line, between commas or white space; what is none becomes a fault, up to MAX_FAULTS."""
    found: list[str] = []
    place = 0
    while place < len(text) and len(said.faults) < limits.MAX_FAULTS:
        if _BETWEEN.match(text, place):
            place += 1
            continue
        hit = ONE.match(text, place)
        if hit and (hit.end() == len(text) or _BETWEEN.match(text, hit.end())):
            found.append(_plain(hit))
            place = hit.end()
            continue
        end = _BETWEEN.search(text, place)
        word = text[place : end.start() if end else len(text)]
        if word.startswith("-"):  # an option goes with what follows it
            word = text[place:].partition(",")[0].rstrip()
        said.faults.append(_refused(word, f"Line {line}: "))
        place += len(word)
    return found


def _plain(hit: re.Match[str]) -> str:
    versions = re.sub(r"\s+", "", hit["inner"] or hit["versions"] or "")
    marker = f" ; {hit['marker'].strip()}" if hit["marker"] else ""
    return hit["name"] + re.sub(r"\s+", "", hit["extras"] or "") + versions + marker


def _refused(word: str, front: str) -> Fault:
    """Why something is no requirement, by what it seems to be."""
    shown = f'"{word[:80]}"'
    hint = (
        "Write the names of packages, with versions where they matter: `# requirements: tenacity, pandas>=2`."
    )
    if re.match(r"(?i)(-i|--index-url|--extra-index-url|--index|--find-links|-f)\b", word):
        told = f"{shown} cannot be set by a program: packages come from the index that the operator has set."
    elif re.match(r"(?i)(-e|--editable)\b", word):
        told = f"{shown} is an editable installation; only packages of the index can be required."
    elif re.match(r"(?i)(-r|-c|--requirement|--constraint)\b", word):
        told = f"{shown} names another file; requirements stand in the program itself."
    elif word.startswith("-"):
        told = f"{shown} is an option of pip, which cannot be set here."
    elif "://" in word or "@" in word or word.startswith("git+"):
        told = f"{shown} is an address; only packages of the index can be required, by name."
    elif (
        word.startswith((".", "/", "~")) or "/" in word or "\\" in word or word.endswith((".whl", ".tar.gz"))
    ):
        told = f"{shown} is a file or folder; only packages of the index can be required, by name."
    else:
        told = f"{shown} is no requirement."
    return Fault("code", "invalid_requirement", front + told, hint)


def _block(code: str, said: Said) -> list[str]:
    """The `dependencies` of the block of PEP 723; its `requires-python` is checked."""
    blocks = [one for one in _BLOCK.finditer(code) if one["type"] == "script"]
    if not blocks:
        return []
    if len(blocks) > 1:
        said.faults.append(_block_fault("there are several blocks `# /// script`, and only one may be"))
        return []
    content = blocks[0]["content"]
    if len(content) > limits.MAX_REQUIREMENTS_BLOCK_CHARS:
        most = limits.MAX_REQUIREMENTS_BLOCK_CHARS
        said.faults.append(_block_fault(f"the block `# /// script` is longer than {most:,} characters"))
        return []
    text = "\n".join(one.removeprefix("#").removeprefix(" ") for one in content.splitlines())
    if _most_parts(text) > limits.MAX_REQUIREMENTS_KEY_PARTS:
        most = limits.MAX_REQUIREMENTS_KEY_PARTS
        said.faults.append(
            _block_fault(f"the block `# /// script` has a key of more than {most} dotted parts")
        )
        return []
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said.faults.append(_block_fault(f"the block `# /// script` is not TOML: {str(error)[:200]}"))
        return []
    except RecursionError:
        said.faults.append(_block_fault("the block `# /// script` is nested too deeply"))
        return []
    _python(data.get("requires-python"), said)
    wanted = data.get("dependencies", [])
    if not isinstance(wanted, list) or not all(isinstance(one, str) for one in wanted):
        said.faults.append(_block_fault("`dependencies` must be a list of texts"))
        return []
    if "tool" in data:
        text = (
            "Tables `tool` of the block `# /// script` are not read: packages come from the operator's index."
        )
        said.warnings.append(Fault("code", "ignored", text))
    found = []
    for one in wanted:
        if len(said.faults) >= limits.MAX_FAULTS:
            break
        hit = ONE.fullmatch(one.strip())
        if hit:
            found.append(_plain(hit))
        else:
            said.faults.append(_refused(one.strip(), "dependencies: "))
    return found


def _most_parts(text: str) -> int:
    """How many parts the longest dotted key of a TOML document has."""
    most = points = 0
    for token in _KEY_TOKEN.finditer(text):
        points += token["point"] is not None
        if token["other"] is not None:
            points = 0
        most = max(most, points)
    return most + 1


def _block_fault(text: str) -> Fault:
    return Fault("code", "invalid_requirement", f"In the head of the program {text}.")


def _python(wanted: Any, said: Said) -> None:
    if wanted is None:
        return
    running = platform.python_version()
    try:
        fits = isinstance(wanted, str) and SpecifierSet(wanted).contains(running, prereleases=True)
    except InvalidSpecifier:
        said.faults.append(_block_fault(f'`requires-python` is not a range of versions: "{wanted[:60]}"'))
        return
    if not isinstance(wanted, str):
        said.faults.append(_block_fault("`requires-python` must be a text"))
    elif not fits:
        text = f"The program requires Python {wanted[:60]}; here it runs with {running}."
        said.faults.append(Fault("code", "wrong_python", text))


def normal(name: str) -> str:
    """A package's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _once(found: list[str], said: Said) -> None:
    """Keep each once and in order; check that there are not too many, and none is too long."""
    for one in dict.fromkeys(found):
        if len(one) > limits.MAX_REQUIREMENT_CHARS:
            text = f'"{one[:60]}..." is longer than {limits.MAX_REQUIREMENT_CHARS} characters.'
            said.faults.append(Fault("code", "invalid_requirement", text))
        elif normal(re.split(r"[^A-Za-z0-9._-]", one, maxsplit=1)[0]) not in PROVIDED:
            said.requirements.append(one)
    if len(said.requirements) > limits.MAX_REQUIREMENTS:
        text = f"The program requires {len(said.requirements)} packages; at most {limits.MAX_REQUIREMENTS} are taken."
        said.faults.append(Fault("code", "invalid_requirement", text))
