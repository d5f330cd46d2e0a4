"""Generate `rowsmith.fields` and `rowsmith.types` from the service, and the reference of the package from its
docstrings.

.venv/bin/python sdk/python/tools/generate.py [--check]

Run it with the Python environment of the service. `--check` writes nothing and lists the files that would
change.
"""

from __future__ import annotations

import base64
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "src" / "rowsmith"
REFERENCE = HERE.parents[2] / "docs" / "reference"
sys.path[:0] = [str(HERE), str(HERE.parents[2]), str(PACKAGE.parent)]

import field_modules  # noqa: E402
import reference  # noqa: E402
import type_module  # noqa: E402


def document() -> dict[str, Any]:
    """Return the OpenAPI document of the application without opening any connection."""
    from webapp import create_app
    from webapp.config import Settings
    from webapp.web import openapi

    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            database_url=f"sqlite:///{folder}/none.db",
            redis_url="redis://127.0.0.1:1/0",
            secret_key=secrets.token_urlsafe(32),
            vault_keys=(base64.b64encode(secrets.token_bytes(32)).decode(),),
            data_dir=Path(folder),
        )
        return openapi.build(create_app(settings), "0")


def files(described: Mapping[str, Any]) -> dict[Path, str]:
    """Return every generated file with its formatted text. `described` is the OpenAPI document."""
    from webapp.row_templates.services import catalogue

    out = {
        PACKAGE / "fields" / name: text for name, text in field_modules.modules(catalogue.entries()).items()
    }
    out[PACKAGE / "types.py"] = type_module.module(described)
    pages = {REFERENCE / f"{name}.md": text for name, text in reference.pages().items()}
    return {**_formatted(out), **pages}


def changed(described: Mapping[str, Any]) -> list[Path]:
    """Return the files that are out of date, including obsolete ones."""
    wanted = files(described)
    there = {*(PACKAGE / "fields").glob("*.py"), *PACKAGE.glob("types.py")}
    there |= set(REFERENCE.glob("python*.md"))
    differing = [
        path for path, text in wanted.items() if path not in there or path.read_text("utf-8") != text
    ]
    return sorted({*differing, *(there - set(wanted))})


def main(arguments: list[str]) -> int:
    """Write the files, or with `--check` only report."""
    described = document()
    stale = changed(described)
    for path in stale:
        print(path.relative_to(HERE.parents[2]))
    if "--check" in arguments:
        return 1 if stale else 0
    wanted = files(described)
    for path in stale:
        if path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path], encoding="utf-8")
        else:
            path.unlink()
    return 0


def _formatted(texts: Mapping[Path, str]) -> dict[Path, str]:
    """Format the texts with ruff and the package's settings, all together in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        places = {path: Path(folder) / path.parent.name / path.name for path in texts}
        for path, place in places.items():
            place.parent.mkdir(exist_ok=True)
            place.write_text(texts[path], encoding="utf-8")
        settings = HERE.parent / "pyproject.toml"
        for task in (["check", "--fix-only", "--select", "I,RUF022", "--ignore-noqa"], ["format"]):
            command = [
                sys.executable,
                "-m",
                "ruff",
                *task,
                "--quiet",
                "--no-cache",
                "--config",
                str(settings),
                folder,
            ]
            subprocess.run(command, check=True)
        return {path: place.read_text("utf-8") for path, place in places.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
