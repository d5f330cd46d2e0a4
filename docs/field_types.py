"""Writes `docs/reference/types`: the catalogue of field types with rows of each, to be read without a server.

    .venv/bin/python docs/field_types.py            # write it
    .venv/bin/python docs/field_types.py --check    # 1 where it is not what would be written

The text is that of the pages under `/docs/field-types`; only the links lead to files.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference" / "types"
MADE = "<!-- Made by docs/field_types.py from the catalogue. Do not edit. -->\n\n"
_LINK = re.compile(r"\]\(/docs/([a-z-]+)/([a-z_-]+)(#[A-Za-z0-9_-]+)?\)")


def pages() -> dict[str, str]:
    """Every page by the name of its file."""
    from webapp.documentation import field_types

    found = {"README.md": field_types.index(), "every-field.md": field_types.every_field()}
    found |= {f"{one['name']}.md": field_types.family(one) for one in field_types.families()}
    return {name: MADE + _LINK.sub(_to_file, text) for name, text in found.items()}


def _to_file(link: re.Match[str]) -> str:
    folder, page, place = link[1], link[2], link[3] or ""
    near = {"field-types": "", "reference": "../"}.get(folder, f"../../{folder}/")
    return f"]({near}{page}.md{place})"


def differing() -> list[str]:
    """The files that are not as they would be written, and those that would not be."""
    wanted = pages()
    there = {one.name: one.read_text("utf-8") for one in FOLDER.glob("*.md")}
    return sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))


def main() -> int:
    """Write the files, or say which differ."""
    if "--check" in sys.argv[1:]:
        wrong = differing()
        for name in wrong:
            print(f"{(FOLDER / name).relative_to(ROOT)} is not up to date")
        return 1 if wrong else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for one in FOLDER.glob("*.md"):
        if one.name not in wanted:
            one.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(main())
