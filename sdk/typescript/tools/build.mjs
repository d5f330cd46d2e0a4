// Builds dist/esm and dist/cjs from src with the TypeScript compiler.

import { spawnSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const BUILDS = {
  esm: [],
  cjs: ["--module", "CommonJS", "--moduleResolution", "Node10"],
};

rmSync(`${root}/dist`, { recursive: true, force: true });
for (const [name, words] of Object.entries(BUILDS)) {
  const command = [compiler, "--project", root, "--outDir", `${root}/dist/${name}`, ...words];
  const done = spawnSync(process.execPath, command, { stdio: "inherit" });
  if (done.status !== 0) process.exit(done.status ?? 1);
}
// The package contains ES modules, except below this folder.
writeFileSync(`${root}/dist/cjs/package.json`, '{ "type": "commonjs" }\n');
