"""Packages made on the spot, and a folder of them in the place of the package index."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from webapp.scenarios.services import requirements


def wheel(
    folder: Path,
    name: str,
    version: str,
    *,
    needs: tuple[str, ...] = (),
    text: str = "",
    files: dict[str, str] | None = None,
) -> None:
    """A package with one module that knows its version. `files`: more files of the archive, by their paths."""
    more = files or {}
    module = name.replace("-", "_")
    stem = f"{module}-{version}"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    about += "".join(f"Requires-Dist: {need}\n" for need in needs)
    files = {
        f"{module}.py": text or f'VERSION = "{version}"\n',
        f"{stem}.dist-info/METADATA": about,
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        **{path.replace("{stem}", stem): body for path, body in more.items()},
    }
    listed = [*files, f"{stem}.dist-info/RECORD"]
    with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
        for path, body in files.items():
            archive.writestr(path, body)
        archive.writestr(f"{stem}.dist-info/RECORD", "".join(f"{path},,\n" for path in listed))


class Index:
    """A folder of wheels instead of the package index; `common` and `beside` are the common libraries."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str, version: str, **more: object) -> None:
        wheel(self.folder, name, version, **more)  # type: ignore[arg-type]


def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    """An index with two versions of `common` and of `tool`, which requires `beside`; the common libraries are `common`
    in its older version."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    result = Index(folder)
    for version in ("1.0", "2.0"):
        result.add("common", version)
        result.add("tool", version, needs=("beside>=1",))
        result.add("beside", version)
    for name in ("UV_INDEX", "UV_DEFAULT_INDEX", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    lock = tmp_path / "common.lock"
    lock.write_text("common==1.0\n")
    monkeypatch.setattr(requirements, "COMMON", ("common",))
    monkeypatch.setattr(requirements, "COMMON_LOCK", lock)
    return result
