"""Templates as files: read, and written so that a version control system shows only actual changes."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Optional, Union

from rowsmith.cli.problems import NOT_FOUND, REFUSED, Problem
from rowsmith.streams import replacing

HEAD: Final = ("id", "name", "description", "quantity", "locale", "anchor", "source", "invalid", "fields")
"""Keys of a file in their order. All other keys of a template are volatile and left out."""
BODY: Final = HEAD[1:]
"""Keys that define a template."""
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
"""Common keys of a field with their default values."""
KNOWN: Final = ".rowsmith"
"""Folder, next to the files, for the last known state of the service. It contains a .gitignore that excludes
it."""


@dataclass(frozen=True)
class File:
    """A template file. `body` is the service's input: the keys of `BODY` that the file contains."""

    path: Path
    id: Optional[str]
    body: dict[str, Any]


def read(path: Path) -> File:
    """Read a file. Raise Problem if it does not exist or does not contain a template."""
    try:
        found = json.loads(path.read_text("utf-8-sig"))
    except FileNotFoundError:
        raise Problem("not_found", f"There is no file {path}.", NOT_FOUND) from None
    except ValueError as error:
        raise Problem("bad_file", f"{path} is not valid JSON: {error}", REFUSED) from None
    if not isinstance(found, dict) or not isinstance(found.get("fields"), list) or not found.get("name"):
        raise Problem("bad_file", f"{path} is not a template: `name` and `fields` are required.", REFUSED)
    known = {"$schema", *HEAD, *VOLATILE}
    strange = sorted(set(found) - known)
    if strange:
        raise Problem("bad_file", f"{path}: unknown keys: {', '.join(strange)}.", REFUSED)
    body = {key: found[key] for key in BODY if key in found}
    return File(path, found.get("id"), body)


VOLATILE: Final = frozenset(
    "version project_id team_id created_by created_at updated_at deleted_at warnings references".split()
)
"""Response keys that are not part of the template."""


def read_or_none(path: Path) -> Optional[File]:
    """Read a file, or return None if it is not a template."""
    try:
        return read(path)
    except (Problem, OSError):
        return None


def read_all(paths: Iterable[Path]) -> list[File]:
    """Return the given files, and all `*.json` files in the given folders. Raise Problem with all files that
    cannot be read."""
    files: list[File] = []
    faults: list[Problem] = []
    for path in paths:
        for item in sorted(path.glob("*.json")) if path.is_dir() else [path]:
            found = _read_or_not(item)
            if isinstance(found, Problem):
                faults.append(found)
            else:
                files.append(found)
    if faults:
        raise faults[0] if len(faults) == 1 else _together(faults)
    seen: dict[str, Path] = {}
    for file in files:
        if file.id and file.id in seen:
            raise Problem("bad_file", f"{file.path} and {seen[file.id]} have the same ID {file.id}.", REFUSED)
        seen[file.id or ""] = file.path
    return files


def _read_or_not(path: Path) -> Union[File, Problem]:
    try:
        return read(path)
    except Problem as problem:
        return problem


def _together(faults: list[Problem]) -> Problem:
    hints = [fault.message for fault in faults]
    return Problem("bad_file", f"{len(faults)} files cannot be read:", faults[0].exit, hints)


def text_of(template: Mapping[str, Any]) -> str:
    """Format a template as a file: keys in a fixed order, two spaces, one line per value, no volatile keys."""
    kept = {key: template[key] for key in HEAD if template.get(key) is not None}
    kept["fields"] = [_field(field) for field in template["fields"]]
    return json.dumps(kept, indent=2, ensure_ascii=False) + "\n"


def _field(field: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: field[key] for key in ("id", "name", "type") if field.get(key) is not None}
    options = dict(field.get("options") or {})
    if isinstance(options.get("fields"), list):
        options["fields"] = [_field(item) for item in options["fields"]]
    if options:
        kept["options"] = options
    more = {key: field[key] for key, usual in COMMON.items() if key in field and field[key] != usual}
    return {**kept, **more}


def walk(fields: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield every field, including nested ones."""
    for field in fields:
        yield field
        inner = (field.get("options") or {}).get("fields")
        yield from walk(inner if isinstance(inner, list) else ())


def path_for(template: Mapping[str, Any], folder: Path, there: Iterable[File]) -> Path:
    """Return the path for a template: the file that already has its ID, otherwise one with its name."""
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
    """Return a file name that is valid on every operating system."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60].strip("-") or "template"


def write(path: Path, template: Mapping[str, Any]) -> bool:
    """Write a template's file atomically. Return False if the content is unchanged."""
    data = text_of(template).encode()
    if path.exists() and path.read_bytes() == data:
        return False
    write_atomically(path, [data])
    return True


def write_atomically(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file atomically."""
    with replacing(path) as file:
        for piece in pieces:
            file.write(piece)


class KnownVersions:
    """Return the version of each template in a folder, as this clone last saw it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / KNOWN
        try:
            found = json.loads((self.folder / "versions.json").read_text("utf-8"))
        except (OSError, ValueError):
            found = {}
        self.versions: dict[str, int] = found if isinstance(found, dict) else {}

    def note(self, template: Mapping[str, Any]) -> None:
        """Record that a file corresponds to a version."""
        self.versions[template["id"]] = template["version"]

    def save(self) -> None:
        """Keep it."""
        self.folder.mkdir(exist_ok=True)
        (self.folder / ".gitignore").write_text("*\n")
        data = json.dumps(dict(sorted(self.versions.items())), indent=2) + "\n"
        write_atomically(self.folder / "versions.json", [data.encode()])
