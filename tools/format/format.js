// Format the files named on standard input, one a line, in place.
//
// node format.js [--check] < files
//
// Prints the names of files that were (with --check: would be) changed, and of those that cannot be parsed. The exit
// status is 1 if a file cannot be parsed or, with --check, would be changed.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname } from "node:path";
import { createFromBuffer } from "@dprint/formatter";

const require = createRequire(import.meta.url);
const COMMON = { lineWidth: 120, indentWidth: 2 };
const PLUGINS = {
  ".html": ["dprint-plugin-markup/plugin.wasm", {}, ".jinja"],
  ".css": ["dprint-plugin-malva/plugin.wasm", { printWidth: 120 }, ".css"],
  ".js": ["@dprint/typescript/plugin.wasm", {}, ".js"],
};
const loaded = {};

function formatter(extension) {
  if (!loaded[extension]) {
    const [module, options] = PLUGINS[extension];
    loaded[extension] = createFromBuffer(readFileSync(require.resolve(module)));
    loaded[extension].setConfig(COMMON, options);
  }
  return loaded[extension];
}

const check = process.argv.includes("--check");
let failed = false;
for (const path of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const before = readFileSync(path, "utf8");
  try {
    const extension = extname(path);
    const filePath = path.slice(0, -extension.length) + PLUGINS[extension][2];
    const after = formatter(extension).formatText({ filePath, fileText: before });
    if (after !== before) {
      console.log(check ? `would be formatted: ${path}` : `formatted: ${path}`);
      failed ||= check;
      if (!check) writeFileSync(path, after);
    }
  } catch (error) {
    console.log(`cannot be parsed: ${path}: ${error.message ?? error}`);
    failed = true;
  }
}
process.exit(failed ? 1 : 0);
