"""Parse the requirements of a program: the comment `# requirements: a, b>=1`, and the PEP 723 block.

The lines are parsed here instead of being passed to the resolver, because only package names are allowed: an address, a
folder or an option in such a line would let a program choose where this machine fetches code from.
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
"""Packages that every program has without declaring them, and that are never requested from an index."""

_COMMENT: Final = re.compile(r"#\s*requirements[ \t]*:(.*)")
_LATE: Final = re.compile(r"(?m)^#[ \t]*requirements[ \t]*:")
_MORE: Final = re.compile(r"#(?:[ \t]*[-*][ \t]+| {2,}|\t+)(\S.*)")
# The PEP 723 block, matched with the regular expression from the specification.
_BLOCK: Final = re.compile(r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$")

# Segments and dots of a dotted TOML key, whitespace, and any other character.
_KEY_TOKEN: Final = re.compile(
    r"""[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?|[ \t]++|(?P<point>\.)|(?P<other>.)""", re.S
)

_BETWEEN: Final = re.compile(
    r"[,\s]"
)  # \s also matches Unicode line separators, which do not end a line in Python
_NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_EXTRAS: Final = rf"\[[ \t]*(?:{_NAME}(?:[ \t]*,[ \t]*{_NAME})*)?[ \t]*\]"
_VERSION: Final = r"(?:~=|===|==|!=|<=|>=|<|>)[ \t]*[A-Za-z0-9][A-Za-z0-9.*+!_-]*"
_VERSIONS: Final = rf"{_VERSION}(?:[ \t]*,[ \t]*{_VERSION})*"
_MARKER: Final = r"""(?:[A-Za-z0-9_.<>=!~() \t-]|'[^'\\]*'|"[^"\\]*")+"""
# A PEP 508 requirement with only a name.
ONE: Final = re.compile(
    rf"(?P<name>{_NAME})(?:[ \t]*(?P<extras>{_EXTRAS}))?"
    rf"(?:[ \t]*\([ \t]*(?P<inner>{_VERSIONS})[ \t]*\)|[ \t]*(?P<versions>{_VERSIONS}))?"
    rf"(?:[ \t]*;[ \t]*(?P<marker>{_MARKER}))?"
)


@dataclass
class Said:
    """The parsed requirements of a program: `requirements` in the resolver's format, and the faults of the others."""

    requirements: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)


def read(code: str) -> Said:
    """Return the requirements in a program's comments and block, without duplicates. Nothing is looked up.

    A comment counts if it is at the left margin and above the first statement that is neither an import nor the module
    docstring. Names follow PEP 508. Faults have the path `code` and include the line.
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
        (item for item in _LATE.finditer(code) if code.count("\n", 0, item.start()) + 1 > end), None
    ):
        line = code.count("\n", 0, late.start()) + 1
        text = f"Line {line} is not read: `# requirements:` counts only above the first statement."
        said.warnings.append(
            Fault("code", "late_requirements", text, "Move it to the beginning of the program.")
        )
    return said


def in_process(file: IO[bytes]) -> dict[str, Any]:
    """Return the result of `read` as JSON. Runs in a document process."""
    return asdict(read(file.read().decode("utf-8", "replace")))


def _comments(code: str) -> tuple[list[tuple[int, str]], int]:
    """Return the requirement comments of the head with their lines, and the last line of the head."""
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
    """Return the comments at the left margin above the first statement that is neither an import nor the module
    docstring. The last pair is the position of that statement, with an empty text."""
    found: list[tuple[int, str]] = []
    passing = False  # Within an import or a docstring
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
        pass  # An unfinished program: what was parsed up to here counts
    return [*found, (number, "")]


def _split(text: str, line: int, said: Said) -> list[str]:
    """Split a line into requirements at commas and whitespace. Invalid ones become faults, up to MAX_FAULTS."""
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
        if word.startswith("-"):  # An option and its argument are reported together
            word = text[place:].partition(",")[0].rstrip()
        said.faults.append(_refused(word, f"Line {line}: "))
        place += len(word)
    return found


def _plain(hit: re.Match[str]) -> str:
    versions = re.sub(r"\s+", "", hit["inner"] or hit["versions"] or "")
    marker = f" ; {hit['marker'].strip()}" if hit["marker"] else ""
    return hit["name"] + re.sub(r"\s+", "", hit["extras"] or "") + versions + marker


def _refused(word: str, front: str) -> Fault:
    """Return the reason why a text is not a valid requirement."""
    shown = f'"{word[:80]}"'
    hint = (
        "Write the names of packages, with versions where they matter: `# requirements: tenacity, pandas>=2`."
    )
    if re.match(r"(?i)(-i|--index-url|--extra-index-url|--index|--find-links|-f)\b", word):
        message = (
            f"{shown} cannot be set by a program: packages come from the index that the operator has set."
        )
    elif re.match(r"(?i)(-e|--editable)\b", word):
        message = f"{shown} is an editable installation; only packages of the index can be required."
    elif re.match(r"(?i)(-r|-c|--requirement|--constraint)\b", word):
        message = f"{shown} names another file; list the requirements in the program itself."
    elif word.startswith("-"):
        message = f"{shown} is an option of pip, which cannot be set here."
    elif "://" in word or "@" in word or word.startswith("git+"):
        message = f"{shown} is an address; only packages of the index can be required, by name."
    elif (
        word.startswith((".", "/", "~")) or "/" in word or "\\" in word or word.endswith((".whl", ".tar.gz"))
    ):
        message = f"{shown} is a file or folder; only packages of the index can be required, by name."
    else:
        message = f"{shown} is no requirement."
    return Fault("code", "invalid_requirement", front + message, hint)


def _block(code: str, said: Said) -> list[str]:
    """Return the `dependencies` of the PEP 723 block, after checking its `requires-python`."""
    blocks = [item for item in _BLOCK.finditer(code) if item["type"] == "script"]
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
    text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in content.splitlines())
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
    if not isinstance(wanted, list) or not all(isinstance(item, str) for item in wanted):
        said.faults.append(_block_fault("`dependencies` must be a list of texts"))
        return []
    if "tool" in data:
        text = (
            "Tables `tool` of the block `# /// script` are not read: packages come from the operator's index."
        )
        said.warnings.append(Fault("code", "ignored", text))
    found = []
    for item in wanted:
        if len(said.faults) >= limits.MAX_FAULTS:
            break
        hit = ONE.fullmatch(item.strip())
        if hit:
            found.append(_plain(hit))
        else:
            said.faults.append(_refused(item.strip(), "dependencies: "))
    return found


def _most_parts(text: str) -> int:
    """Return the number of segments in the longest dotted key of a TOML document."""
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
    """Return a package name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _once(found: list[str], said: Said) -> None:
    """Remove duplicates, keeping the order, and check the number and lengths of requirements."""
    for fromkey in dict.fromkeys(found):
        if len(fromkey) > limits.MAX_REQUIREMENT_CHARS:
            text = f'"{fromkey[:60]}..." is longer than {limits.MAX_REQUIREMENT_CHARS} characters.'
            said.faults.append(Fault("code", "invalid_requirement", text))
        elif normal(re.split(r"[^A-Za-z0-9._-]", fromkey, maxsplit=1)[0]) not in PROVIDED:
            said.requirements.append(fromkey)
    if len(said.requirements) > limits.MAX_REQUIREMENTS:
        text = f"The program requires {len(said.requirements)} packages; at most {limits.MAX_REQUIREMENTS} are taken."
        said.faults.append(Fault("code", "invalid_requirement", text))
