"""The packages as they would be published: built, and installed where nothing else is.

The build tool is downloaded from the package index; without an index, the tests are skipped with the reason.
"""

from __future__ import annotations

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import uv

from webapp.paths import ROOT

NAMES = {"python": "rowsmith", "mcp": "rowsmith_mcp", "spark": "rowsmith_spark"}
SECONDS = 300


def called(*command: object, cwd: Path, **env: str) -> str:
    """What a program printed, which saw nothing of this process's environment but PATH and where it stores things."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "HOME": str(cwd), **env},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel of each package of sdk/."""
    folder, program = tmp_path_factory.mktemp("wheels"), uv.find_uv_bin()
    tools = folder / "tools"
    called(program, "venv", "--quiet", "--python", sys.executable, tools, cwd=folder)
    words = [program, "pip", "install", "--quiet", "--python", tools, "hatchling"]
    had = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    if had.returncode:
        pytest.skip(f"hatchling cannot be had: {had.stderr.strip()[-300:]}")
    found = {}
    for name in NAMES:
        how = [
            "--wheel",
            "--quiet",
            "--offline",
            "--no-build-isolation",
            "--python",
            tools / "bin" / "python",
        ]
        called(program, "build", *how, "--out-dir", folder / name, ROOT / "sdk" / name, cwd=folder)
        (found[name],) = (folder / name).glob("*.whl")
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_wheel_holds_every_module_the_licence_and_what_it_is(wheels, name):
    source = ROOT / "sdk" / name / "src"
    with zipfile.ZipFile(wheels[name]) as archive:
        inside = {item for item in archive.namelist() if ".dist-info/" not in item}
        about = {item.partition("/")[2]: item for item in archive.namelist() if ".dist-info/" in item}
        metadata = archive.read(about["METADATA"]).decode()
    modules = {str(path.relative_to(source)) for path in source.rglob("*.py")}
    assert inside == modules | {f"{NAMES[name]}/py.typed"}
    assert "licenses/LICENSE" in about
    assert (ROOT / "sdk" / name / "README.md").read_text("utf-8").strip() in metadata


def test_the_wheel_works_in_a_fresh_place(wheels, origin, cast, sdk, tmp_path):
    fresh, program = tmp_path / "fresh", uv.find_uv_bin()
    called(program, "venv", "--quiet", "--python", sys.executable, fresh, cwd=tmp_path)
    words = ["pip", "install", "--quiet", "--offline", "--no-index", "--python", fresh]
    called(program, *words, wheels["python"], cwd=tmp_path)
    env = {"SERVICE_API_URL": origin, "SERVICE_API_KEY": cast.edith.key}

    readme = (ROOT / "sdk" / "python" / "README.md").read_text("utf-8")
    example = re.findall(r"^```python\n(.*?)^```", readme, re.M | re.S)[0]
    assert re.fullmatch(
        r"100 \S+@\S+\n", called(fresh / "bin" / "python", "-c", example, cwd=tmp_path, **env)
    )

    sdk().templates.create({"name": "People", "fields": [{"name": "id", "type": "row_number"}]})
    command = fresh / "bin" / "rowsmith"
    assert called(command, "generate", "People", "-n", "2", "-f", "csv", cwd=tmp_path, **env) == "id\n1\n2\n"
    assert called(command, "--version", cwd=tmp_path).startswith("rowsmith ")
