// Builds the package and runs the tests with Node's test runner. Tests that need the service use SERVICE_API_URL and
// SERVICE_API_KEY, and are skipped without them. Arguments select tests by file name without extension.

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const asked = process.argv.slice(2);
const files = readdirSync(`${root}/test`)
  .filter((name) => name.endsWith(".test.mjs") && (!asked.length || asked.includes(name.replace(".test.mjs", ""))))
  .map((name) => `${root}/test/${name}`);

function run(...words) {
  const done = spawnSync(process.execPath, words, { stdio: "inherit", cwd: root });
  if (done.status !== 0) process.exit(done.status ?? 1);
}

run(`${root}/tools/build.mjs`);
run("--test", ...files);
