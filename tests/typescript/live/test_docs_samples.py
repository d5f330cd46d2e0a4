"""The TypeScript samples of the API reference: typed as the package wants it, and asking for their operations."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from flask import Flask

from tests.cast import Browser, Cast
from tests.typescript.conftest import PACKAGE
from tests.typescript.live.conftest import installed
from tests.views.samples import Shown, shown

SECONDS = 180
# What Node's own types would say of the few things of Node that the samples name.
NODE = """
declare const process: { env: Record<string, string | undefined> };
declare module "node:fs" {
  export function createWriteStream(path: string): unknown;
  export function readFileSync(path: string): Uint8Array;
}
declare module "node:stream/promises" {
  export function pipeline(from: AsyncIterable<unknown>, to: unknown): Promise<void>;
}
"""
# Returns data that fits all methods, and records the requests of each sample in one line.
ASKED = """
import { appendFileSync } from "node:fs";
const asked = [];
globalThis.fetch = async (url, { method, headers, body }) => {
  asked.push({ method, path: new URL(url).pathname, body: typeof body === "string" ? body : null });
  if (headers.Accept === "text/event-stream") {
    return new Response("event: end\\ndata: {}\\n\\n", { headers: { "Content-Type": "text/event-stream" } });
  }
  return Response.json({ id: "x", items: [], next_cursor: null, total: 0, functions: [] });
};
console.log = () => {};
for (const name of process.argv.slice(2)) {
  asked.length = 0;
  await import(`./${name}.js`);
  appendFileSync("asked.jsonl", JSON.stringify(asked) + "\\n");
}
"""


@pytest.fixture
def samples(app: Flask, cast: Cast) -> list[Shown]:
    return shown(Browser(app, cast.olivia))


@pytest.fixture
def folder(tmp_path: Path, samples: list[Shown]) -> Path:
    """A program of all samples, compiled against the package."""
    packages = installed(PACKAGE, "typescript") / "node_modules"
    sdk = tmp_path / "node_modules" / "@rowsmith" / "sdk"
    sdk.mkdir(parents=True)
    for name in ("package.json", "tsconfig.json", "src", "tools"):
        (shutil.copytree if (PACKAGE / name).is_dir() else shutil.copy)(PACKAGE / name, sdk / name)
    (sdk / "node_modules").symlink_to(packages)
    run(sdk, "tools/build.mjs")
    (tmp_path / "package.json").write_text('{ "type": "module" }')
    (tmp_path / "node.d.ts").write_text(NODE)
    for number, sample in enumerate(samples):
        (tmp_path / f"s{number}.ts").write_text(sample.samples["typescript"] + "\n")
    settings = {
        "target": "ES2022",
        "module": "Node16",
        "moduleResolution": "Node16",
        "strict": True,
        "types": [],
    }
    settings |= {"lib": ["ES2022", "DOM", "DOM.Iterable"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": settings, "include": ["*.ts"]}))
    run(tmp_path, str(packages / "typescript" / "bin" / "tsc"), "--project", ".")
    return tmp_path


def run(folder: Path, *words: str) -> None:
    node = shutil.which("node") or "node"
    done = subprocess.run(
        [node, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS,
        env={"PATH": os.environ.get("PATH", ""), "HOME": str(folder), "ROWSMITH_KEY": "rws_x_y"},
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]


def test_every_sample_is_typed_and_asks_for_its_operation(folder: Path, samples: list[Shown]):
    (folder / "asked.mjs").write_text(ASKED)
    (folder / "metadata.xml").write_text("<xml/>")
    run(folder, "asked.mjs", *(f"s{number}" for number in range(len(samples))))
    lines = (folder / "asked.jsonl").read_text().splitlines()
    assert len(lines) == len(samples)
    for sample, line in zip(samples, lines, strict=True):
        method, path = sample.key.split(" ")
        fits = re.compile(re.sub(r"\\\{\w+\\\}", "[^/@]+", re.escape(path)))
        request = json.loads(line)
        assert len(request) == 1, (sample.key, request)
        assert request[0]["method"] == method, sample.key
        assert fits.fullmatch(request[0]["path"]), (sample.key, request)
