// The examples in the README and the guide pass the type checker and run unchanged against the service.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const GUIDE = process.env.ROWSMITH_GUIDE ?? join(ROOT, "../../docs/guide/typescript.md");
const PAGES = { README: join(ROOT, "README.md"), guide: GUIDE };
const COMPILER = createRequire(import.meta.url).resolve("typescript/bin/tsc");
// Type declarations for the few parts of Node that the examples use.
const NODE = `
declare module "node:fs" { export function createWriteStream(path: string): unknown; }
declare module "node:stream/promises" { export function pipeline(from: AsyncIterable<unknown>, to: unknown): Promise<void>; }
`;
const OPTIONS = ["--target", "ES2022", "--module", "Node16", "--moduleResolution", "Node16", "--strict"];

function run(folder, ...words) {
  const done = spawnSync(process.execPath, words, { cwd: folder, encoding: "utf8", timeout: 180_000 });
  assert.equal(done.status, 0, done.stdout + done.stderr);
  return done.stdout;
}

/** Create a project folder that has the package installed. */
function project(t) {
  const folder = mkdtempSync(join(tmpdir(), "rowsmith-examples-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, "node_modules/@rowsmith"), { recursive: true });
  symlinkSync(ROOT, join(folder, "node_modules/@rowsmith/sdk"), "dir");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "node.d.ts"), NODE);
  return folder;
}

for (const [page, path] of Object.entries(PAGES)) {
  const skip = (!process.env.SERVICE_API_URL && "SERVICE_API_URL is not set") || (!existsSync(path) && `no ${path}`);
  test(`the examples of the ${page} run one after the other`, { skip }, (t) => {
    const examples = [...readFileSync(path, "utf8").matchAll(/^```ts\n(.*?)^```/gms)].map((found) => found[1]);
    assert.ok(examples.length >= 5);
    const folder = project(t);
    writeFileSync(join(folder, "examples.ts"), examples.join("\n"));
    run(folder, COMPILER, ...OPTIONS, "examples.ts", "node.d.ts");
    const told = run(folder, "examples.js");
    if (page === "README") {
      assert.match(told, /^completed 200$/m);
      assert.match(told, /^not_found 404 /m);
      assert.ok(statSync(join(folder, "customers.csv")).size > 10_000);
    } else {
      for (const line of ["completed 0", "changed in the meantime", "enough"]) assert.ok(told.includes(line), told);
      assert.ok(!/^false$/m.test(told), told);
    }
  });
}

test("types refuse what the API would refuse", (t) => {
  const folder = project(t);
  const program = (line) => {
    writeFileSync(join(folder, "wrong.ts"), `import { Rowsmith } from "@rowsmith/sdk";\nconst c = new Rowsmith();\n${line}\n`);
    return spawnSync(process.execPath, [COMPILER, ...OPTIONS, "--noEmit", "wrong.ts"], { cwd: folder, encoding: "utf8" });
  };
  const good = program('void c.templates.create({ name: "x", fields: [{ name: "a", type: "email" }] });');
  assert.equal(good.status, 0, good.stdout);
  const bad = program(
    'void c.templates.create({ fields: [] });\nvoid c.connections.create({ name: "x", enviroment: "dev" });\n' +
      "const n: number = (await c.templates.get(\"x\")).name;",
  );
  assert.deepEqual([...bad.stdout.matchAll(/wrong\.ts\((\d+),/g)].map((found) => Number(found[1])), [3, 4, 5], bad.stdout);
});
