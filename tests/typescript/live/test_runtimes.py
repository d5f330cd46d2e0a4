"""The same program on Node, Deno, Bun and in Chromium, by both builds of the package, against a running service.

Deno, Bun and the oldest Node that is promised come from npm by runtimes/package-lock.json; the tests of one that cannot
be had are skipped.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.typescript.live.conftest import Package, installed
from webapp.paths import ROOT

RUNTIMES = ROOT / "tests" / "typescript" / "runtimes"
PROGRAMS = ("walk.mjs", "run.mjs", "run.cjs")
SECONDS = 180
PLACES = {
    "node18": "node-linux-*/bin/node",
    "deno": "@deno/linux-*/deno",
    "bun": "@oven/bun-linux-*/bin/bun",
}
DENO = ("run", "--quiet", "--no-lock", "--allow-net", "--allow-env", "--allow-read")
SEEN = {
    "same": True, "lines": 2001, "once": True, "whole": True, "log": True, "end": "completed", "rows": 20,
    "missing": [True, "not_found", 404], "aborted": "enough",
}  # fmt: skip


@pytest.fixture(scope="module")
def built(package: Package) -> Package:
    """The package with both builds."""
    done = package.npm("run", "build")
    assert done.returncode == 0, done.stdout + done.stderr
    return package


@pytest.fixture(scope="module")
def folder(built: Package) -> Path:
    """A program's folder, which has the package installed."""
    result = built.folder.parent / "program"
    (result / "node_modules" / "@rowsmith").mkdir(parents=True)
    (result / "node_modules" / "@rowsmith" / "sdk").symlink_to(built.folder)
    wants = {"private": True, "dependencies": {"@rowsmith/sdk": "*"}}
    (result / "package.json").write_text(json.dumps(wants))
    for name in PROGRAMS:
        shutil.copy(RUNTIMES / name, result)
    return result


@pytest.fixture(scope="module")
def command() -> Callable[[str], list[str]]:
    """`command("bun")`: what runs a program on it."""

    def find(name: str) -> list[str]:
        if name == "node":
            return ["node"]
        packages = installed(RUNTIMES, "runtimes") / "node_modules"
        found = sorted(packages.glob(PLACES[name]))
        if not found:
            pytest.skip(f"npm brings no {name} for this machine")
        return [str(found[0]), *(DENO if name == "deno" else ())]

    return find


@pytest.mark.parametrize("program", ["run.mjs", "run.cjs"], ids=["modules", "commonjs"])
@pytest.mark.parametrize("runtime", ["node", "node18", "deno", "bun"])
def test_a_program_does_the_same_on_every_runtime(
    runtime: str, program: str, built: Package, folder: Path, command: Callable[[str], list[str]]
):
    done = subprocess.run(
        [*command(runtime), program], cwd=folder, env=built.env, capture_output=True, text=True, check=False,
        timeout=SECONDS, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert found.pop("first")["id"] == 1
    assert found == SEEN


# --- Browsers -----------------------------------------------------------------------------------------------

IN_A_PAGE = """async (options) => {
  const sdk = await import("/of-tests/sdk/index.js");
  const { walk } = await import("/of-tests/walk.mjs");
  return await walk(sdk, options);
}"""
FROM_ELSEWHERE = """async (options) => {
  const { Rowsmith } = await import("/of-tests/sdk/index.js");
  const client = new Rowsmith({ ...options, retries: 0 });
  return await client.templates.list().first().catch((error) => [error.name, error.code]);
}"""


def test_the_oldest_node_that_is_promised_is_the_one_that_is_tried(command: Callable[[str], list[str]]):
    engines = json.loads((ROOT / "sdk" / "typescript" / "package.json").read_text())["engines"]
    done = subprocess.run([*command("node18"), "--version"], capture_output=True, text=True, check=True)
    assert engines["node"] == f">={done.stdout.removeprefix('v').partition('.')[0]}"


@pytest.fixture
def page_at(chromium: Any, built: Package) -> Iterator[Callable[[str], Any]]:
    """`page_at(origin)`: an empty page of that origin, with the package loaded."""
    context = chromium.new_context()

    def serve(route: Any) -> None:
        path = route.request.url.partition("/of-tests/")[2]
        if not path:
            route.fulfill(body="<!doctype html><title>Page</title>", content_type="text/html")
            return
        of_package = path.startswith("sdk/")
        file = built.folder / "dist/esm" / path.removeprefix("sdk/") if of_package else RUNTIMES / path
        route.fulfill(body=file.read_text("utf-8"), content_type="text/javascript")

    context.route("**/of-tests/**", serve)

    def opened(origin: str) -> Any:
        page = context.new_page()
        page.goto(f"{origin}/of-tests/")
        return page

    yield opened
    context.close()


def test_a_page_of_the_services_own_origin_does_the_same(page_at: Callable[[str], Any], built: Package):
    url, key = built.env["SERVICE_API_URL"], built.env["SERVICE_API_KEY"]
    found = page_at(url).evaluate(IN_A_PAGE, {"url": url, "key": key})
    assert found.pop("first")["id"] == 1
    assert found == SEEN


def test_a_page_of_another_origin_gets_no_answer(page_at: Callable[[str], Any], built: Package):
    url, key = built.env["SERVICE_API_URL"], built.env["SERVICE_API_KEY"]
    elsewhere = "http://127.0.0.1:4999"
    assert page_at(elsewhere).evaluate(FROM_ELSEWHERE, {"url": url, "key": key}) == [
        "ConnectionFailed",
        "connection_failed",
    ]
