// The installed package: both builds, no dependencies, only features of Node 18.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const require = createRequire(import.meta.url);

function sources(folder, end) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((one) => {
    const path = `${folder}/${one.name}`;
    if (one.isDirectory()) return sources(path, end);
    return path.endsWith(end) ? [{ path, text: readFileSync(join(ROOT, path), "utf8") }] : [];
  });
}

test("modules and CommonJS load, and have the same in them", async () => {
  const esm = await import("@rowsmith/sdk");
  const cjs = require("@rowsmith/sdk");
  assert.match(require.resolve("@rowsmith/sdk"), /dist\/cjs\/index\.js$/);
  assert.deepEqual(Object.keys(cjs).sort(), Object.keys(esm).sort());
  assert.notEqual(cjs.Rowsmith, esm.Rowsmith);
  const client = new cjs.Rowsmith({ key: "rws_a_b", url: "https://x.example", fetch: async () => Response.json({ id: "x" }) });
  return client.templates.get("x").then((found) => assert.deepEqual(found, { id: "x" }));
});

test("the version is that of the package", async () => {
  assert.equal((await import("@rowsmith/sdk")).VERSION, manifest.version);
});

test("the package needs nothing when it runs", () => {
  assert.equal(manifest.dependencies, undefined);
  assert.equal(manifest.peerDependencies, undefined);
  for (const { path, text } of sources("dist", ".js")) {
    for (const [, from] of text.matchAll(/(?:from|require\(|import\()\s*"([^"]+)"/g)) {
      assert.ok(from.startsWith("."), `${path} takes ${from}`);
    }
  }
});

test("the lock file names no registry", () => {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8"));
  for (const [name, one] of Object.entries(lock.packages)) {
    assert.equal(one.resolved, undefined, name);
    if (name) assert.match(one.integrity, /^sha512-/, name);
  }
});

test("what is published is the build, its types, the README and the licence", () => {
  const done = spawnSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: ROOT, encoding: "utf8" });
  assert.equal(done.status, 0, done.stderr);
  const files = JSON.parse(done.stdout)[0].files.map((one) => one.path);
  const stray = files.filter((path) => !/^(dist\/(esm|cjs)\/.*\.(js|d\.ts|json)|README\.md|LICENSE|package\.json)$/.test(path));
  assert.deepEqual(stray, []);
  for (const path of ["dist/esm/index.js", "dist/esm/index.d.ts", "dist/cjs/index.js", "dist/cjs/index.d.ts"]) {
    assert.ok(files.includes(path), path);
  }
});

// Added in Node 19 or later, or not available in all of Node, browsers, Deno and Bun.
const TOO_NEW = [
  "AbortSignal.any", "AbortSignal.timeout", "Promise.withResolvers", "Promise.try", "Array.fromAsync", "ReadableStream.from",
  "Object.groupBy", "Map.groupBy", ".toSorted(", ".toReversed(", ".toSpliced(", ".findLast(", ".with(", "structuredClone",
  "new File(", "navigator.", "openAsBlob", "Symbol.dispose", "Symbol.asyncDispose", "crypto.subtle", "randomUUID(", "Buffer.",
  "Response.json(", "import.meta", "for await (const piece of response.body",
];

test("nothing is used that Node 18 does not have", () => {
  for (const { path, text } of sources("dist/esm", ".js")) {
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, "");
    for (const name of TOO_NEW) assert.ok(!code.includes(name), `${path} uses ${name}`);
  }
});

test("it works where what came after Node 18 is missing", () => {
  const program = `
    for (const name of ["crypto", "File", "navigator", "WebSocket", "CustomEvent"]) {
      Object.defineProperty(globalThis, name, { value: undefined, configurable: true });
    }
    delete AbortSignal.any; delete AbortSignal.timeout; delete Promise.withResolvers; delete Array.fromAsync;
    delete ReadableStream.from; delete ReadableStream.prototype[Symbol.asyncIterator];
    const { Rowsmith } = await import("@rowsmith/sdk");
    const keys = [];
    const fetch = async (url, init) => {
      keys.push(init.headers["Idempotency-Key"]);
      return new Response('{"id": 1}\\n{"id": 2}\\n', { headers: { "Content-Type": "application/json" } });
    };
    const client = new Rowsmith({ key: "rws_a_b", url: "https://x.example", fetch });
    const controller = new AbortController();
    for await (const row of client.templates.rows("tpl_1", { count: 2 }, { signal: controller.signal })) console.log(row.id);
    await client.templates.push("tpl_1", {}).catch((error) => console.log(error.code));
    console.log(/^[0-9a-f]{32}$/.test(keys[1]));
  `;
  const done = spawnSync(process.execPath, ["--input-type=module", "--eval", program], { cwd: ROOT, encoding: "utf8" });
  assert.equal(done.stdout, "1\n2\nbad_answer\ntrue\n", done.stderr);
});
