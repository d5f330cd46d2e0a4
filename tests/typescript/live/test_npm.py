"""The package's own tests, by Node's runner, with every test of them run against a running service."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.typescript.live.conftest import Package


def test_the_package_is_built_and_all_its_tests_pass(package: Package):
    done = package.npm("test")
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    counts = dict(re.findall(r"^. (pass|fail|skipped|cancelled) (\d+)$", done.stdout, re.M))
    assert int(counts["pass"]) >= 50
    assert (counts["fail"], counts["skipped"], counts["cancelled"]) == ("0", "0", "0"), done.stdout[-8000:]


def test_the_package_that_would_be_published_works_in_a_fresh_place(package: Package, tmp_path: Path):
    packed = package.npm("pack", "--json", "--pack-destination", str(tmp_path))
    assert packed.returncode == 0, packed.stderr[-2000:]
    (archive,) = tmp_path.glob("*.tgz")
    (tmp_path / "package.json").write_text(json.dumps({"private": True}))
    words = ("install", "--offline", "--no-audit", "--no-fund", "--prefix", str(tmp_path), str(archive))
    installed = package.npm(*words)
    assert installed.returncode == 0, installed.stderr[-2000:]
    assert sorted(path.name for path in (tmp_path / "node_modules").iterdir() if path.name[0] != ".") == [
        "@rowsmith"
    ]

    readme = (package.folder / "README.md").read_text("utf-8")
    example = re.findall(r"^```ts\n(.*?)^```", readme, re.M | re.S)[0]
    (tmp_path / "first.mjs").write_text(example)  # it has no types in it
    done = subprocess.run(
        ["node", "first.mjs"],
        cwd=tmp_path,
        env=package.env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.fullmatch(r"5 \S+@\S+\n", done.stdout)


def test_a_built_folder_is_installed_as_the_readme_says(package: Package, tmp_path: Path):
    built = package.npm("run", "build")
    assert built.returncode == 0, built.stdout + built.stderr
    (tmp_path / "package.json").write_text(json.dumps({"private": True}))
    words = (
        "install",
        "--offline",
        "--no-audit",
        "--no-fund",
        "--prefix",
        str(tmp_path),
        str(package.folder),
    )
    installed = package.npm(*words)
    assert installed.returncode == 0, installed.stderr[-2000:]
    program = "const { Rowsmith } = require('@rowsmith/sdk'); console.log(typeof Rowsmith)"
    done = subprocess.run(
        ["node", "-e", program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "function\n"), done.stderr[-2000:]
