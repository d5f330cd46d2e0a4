"""Templates as files: read, written so that a version control system shows what changed, and nothing else."""

from __future__ import annotations

import json
import os
import re
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Optional, Union

from rowsmith.cli.problems import NOT_FOUND, REFUSED, Problem

HEAD: Final = ("id", "name", "description", "quantity", "locale", "anchor", "source", "invalid", "fields")
"""Keys of a file, in their order; all others of a template are volatile, and left out."""
BODY: Final = HEAD[1:]
"""Keys that a template is made of."""
COMMON: Final[Mapping[str, Any]] = {
    "sensitive": False,
    "masking": None,
    "percent_blank": 0,
    "unique": False,
    "hidden": False,
    "locale": None,
    "group": None,
    "formula": None,
    "prefix": "",
    "suffix": "",
    "text_case": None,
    "description": "",
    "invalid": None,
    "column": None,
}
"""Keys that every field has, and what they are where a file does not say them."""
KNOWN: Final = ".rowsmith"
"""The folder, beside the files, of what was last seen of the service; it says of itself that git leaves it out."""


@dataclass(frozen=True)
class File:
    """A template's file. `body` is what the service takes: the keys of `BODY` that the file has."""

    path: Path
    id: Optional[str]
    body: dict[str, Any]


def read(path: Path) -> File:
    """A file. Problem where there is none, or it holds no template."""
    try:
        found = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise Problem("not_found", f"There is no file {path}.", NOT_FOUND) from None
    except ValueError as error:
        raise Problem("bad_file", f"{path} is no JSON: {error}", REFUSED) from None
    if not isinstance(found, dict) or not isinstance(found.get("fields"), list) or not found.get("name"):
        raise Problem("bad_file", f"{path} is no template: it wants a name and fields.", REFUSED)
    known = {"$schema", *HEAD, *VOLATILE}
    strange = sorted(set(found) - known)
    if strange:
        raise Problem("bad_file", f"{path}: there is no such key here: {', '.join(strange)}.", REFUSED)
    body = {key: found[key] for key in BODY if key in found}
    return File(path, found.get("id"), body)


VOLATILE: Final = frozenset(
    "version project_id team_id created_by created_at updated_at deleted_at warnings references".split()
)
"""Keys of an answer that say nothing of what a template is."""


def tried(path: Path) -> Optional[File]:
    """The same; None for a file that is something else."""
    try:
        return read(path)
    except (Problem, OSError):
        return None


def found_in(paths: Iterable[Path]) -> list[File]:
    """The files of these names, and of all `*.json` in these folders. Problem that tells all that cannot be read."""
    files: list[File] = []
    faults: list[Problem] = []
    for path in paths:
        for one in sorted(path.glob("*.json")) if path.is_dir() else [path]:
            found = _read_or_not(one)
            (faults if isinstance(found, Problem) else files).append(found)  # type: ignore[arg-type]
    if faults:
        raise faults[0] if len(faults) == 1 else _together(faults)
    seen: dict[str, Path] = {}
    for file in files:
        if file.id and file.id in seen:
            raise Problem("bad_file", f"{file.path} and {seen[file.id]} have the same id {file.id}.", REFUSED)
        seen[file.id or ""] = file.path
    return files


def _read_or_not(path: Path) -> Union[File, Problem]:
    try:
        return read(path)
    except Problem as problem:
        return problem


def _together(faults: list[Problem]) -> Problem:
    hints = [one.message for one in faults]
    return Problem("bad_file", f"{len(faults)} files cannot be read:", faults[0].exit, hints)


def text_of(template: Mapping[str, Any]) -> str:
    """A template as its file: keys in one order, two spaces, a line for each value, nothing volatile."""
    kept = {key: template[key] for key in HEAD if template.get(key) is not None}
    kept["fields"] = [_field(one) for one in template["fields"]]
    return json.dumps(kept, indent=2, ensure_ascii=False) + "\n"


def _field(field: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: field[key] for key in ("id", "name", "type") if field.get(key) is not None}
    options = dict(field.get("options") or {})
    if isinstance(options.get("fields"), list):
        options["fields"] = [_field(one) for one in options["fields"]]
    if options:
        kept["options"] = options
    more = {key: field[key] for key, usual in COMMON.items() if key in field and field[key] != usual}
    return {**kept, **more}


def walk(fields: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Every field, those inside others too."""
    for field in fields:
        yield field
        inner = (field.get("options") or {}).get("fields")
        yield from walk(inner if isinstance(inner, list) else ())


def path_for(template: Mapping[str, Any], folder: Path, there: Iterable[File]) -> Path:
    """Where a template goes: the file that has its id already, else one of its name."""
    taken = {}
    for file in there:
        if file.id == template["id"]:
            return file.path
        taken[file.path.name] = file.id
    name = f"{slug(template['name'])}.json"
    if name in taken or (folder / name).exists():
        name = f"{slug(template['name'])}-{template['id'][-6:].lower()}.json"
    return folder / name


def slug(name: str) -> str:
    """A name as a file can bear it on any system."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60].strip("-") or "template"


def write(path: Path, template: Mapping[str, Any]) -> bool:
    """Write a template's file, whole or not at all; False where it says the same already."""
    data = text_of(template).encode()
    if path.exists() and path.read_bytes() == data:
        return False
    write_whole(path, [data])
    return True


def write_whole(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file, which appears when it is whole."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


class Seen:
    """Which version of each template a folder's files come from, as this clone last saw it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / KNOWN
        try:
            found = json.loads((self.folder / "versions.json").read_text("utf-8"))
        except (OSError, ValueError):
            found = {}
        self.versions: dict[str, int] = found if isinstance(found, dict) else {}

    def note(self, template: Mapping[str, Any]) -> None:
        """The file says what this version says."""
        self.versions[template["id"]] = template["version"]

    def save(self) -> None:
        """Keep it."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / ".gitignore").write_text("*\n")
        data = json.dumps(dict(sorted(self.versions.items())), indent=2) + "\n"
        write_whole(self.folder / "versions.json", [data.encode()])
