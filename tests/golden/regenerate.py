"""Write the golden hashes anew: `python -m tests.golden.regenerate`.

It writes those of the newest engine; the hashes of earlier engines are never edited. When rows are meant to change, add
an engine: a vocabulary of a new extractor names it (see `plan.ENGINES`), and its hashes go into a folder of their own.
New field types and templates add hashes and change none.
"""

from __future__ import annotations

from pathlib import Path

import orjson

from tests.golden import cases, everywhere
from webapp.engine import ENGINE
from webapp.row_templates.services import compilation

FOLDER = Path(__file__).parent / f"engine-{ENGINE}"


def everything() -> dict[str, dict[str, object]]:
    """What each file holds, by its name."""
    pins = {"engine": ENGINE, "vocabulary": compilation.vocabulary().id}
    found: dict[str, dict[str, object]] = {"types": {**pins, "hashes": cases.type_hashes()}}
    found["everywhere"] = {**pins, "hashes": everywhere.everywhere()}
    for name in cases.templates():
        found[name] = {**pins, "hashes": dict(cases.template_hashes(name))}
    return found


def main() -> None:
    """Write one file for each template and two for the field types, and say what changed."""
    FOLDER.mkdir(exist_ok=True)
    for name, content in everything().items():
        path = FOLDER / f"{name}.json"
        new = orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        old = path.read_bytes() if path.exists() else b""
        path.write_bytes(new)
        print(f"{path.name}: {'as it was' if new == old else 'written'}")


if __name__ == "__main__":
    main()
