// The client against a real service, at SERVICE_API_URL with the key SERVICE_API_KEY.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, describe, test } from "node:test";

import { Conflict, Forbidden, NotFound, Rowsmith, Unauthenticated, ValidationError, VersionConflict, headOf } from "@rowsmith/sdk";

import { gathered } from "./target.mjs";

const FIELDS = [
  { name: "id", type: "row_number" },
  { name: "email", type: "email", unique: true },
  { name: "age", type: "number", options: { min: 18, max: 99 } },
];

describe("against the service", { skip: !process.env.SERVICE_API_URL && "SERVICE_API_URL is not set" }, () => {
  const client = process.env.SERVICE_API_URL ? new Rowsmith() : undefined;
  let template;

  before(async () => {
    template = await client.templates.create({ name: "TypeScript", quantity: 25, fields: FIELDS });
  });
  after(async () => {
    await client.templates.delete(template.id);
  });

  test("rows are the same by every way under the same seed", async () => {
    const rows = await client.templates.generate(template.id, { count: 50, seed: "s" });
    assert.equal(rows.length, 50);
    assert.deepEqual(await gathered(client.templates.rows(template.id, { count: 50, seed: "s" })), rows);
    const file = await client.templates.stream(template.id, { count: 50, seed: "s", format: "csv" });
    assert.equal(file.seed, "s");
    assert.equal((await file.text()).trim().split(/\r?\n/).length, 51);
    const preview = await client.templates.preview(template.id, { seed: "s" });
    assert.deepEqual(preview.rows, rows.slice(0, 3));
    assert.deepEqual(await client.templates.generate({ fields: FIELDS, count: 2 }).then((found) => found.length), 2);
  });

  test("rows from an offset are those of the whole", async () => {
    const pins = { seed: "s", now: "2026-01-01T00:00:00Z" };
    const all = await client.templates.generate(template.id, { count: 40, ...pins });
    assert.deepEqual(await client.templates.generate(template.id, { count: 10, offset: 30, ...pins }), all.slice(30));
  });

  test("a broken stream of the service's own rows is made whole", async () => {
    const wanted = await client.templates.generate(template.id, { count: 3_000, seed: "s" });
    let breaks = 0;
    const fetch = async (url, init) => {
      const response = await globalThis.fetch(url, init);
      if (breaks >= 2 || !url.endsWith("/generate")) return response;
      breaks += 1;
      let left = 40_000;
      const cut = new TransformStream({
        transform(piece, controller) {
          controller.enqueue(piece.subarray(0, left));
          left -= piece.byteLength;
          if (left <= 0) controller.error(new TypeError("terminated"));
        },
      });
      return new Response(response.body.pipeThrough(cut), response);
    };
    const broken = new Rowsmith({ fetch, sleep: async () => {} });
    assert.deepEqual(await gathered(broken.templates.rows(template.id, { count: 3_000, seed: "s" })), wanted);
    assert.equal(breaks, 2);
  });

  test("versions, changes and their conflicts", async () => {
    const read = await client.templates.get(template.id);
    const changed = await client.templates.update(read.id, { description: "new" }, { ifMatch: read });
    assert.equal(changed.version, read.version + 1);
    await assert.rejects(client.templates.update(read.id, { description: "newer" }, { ifMatch: read }), VersionConflict);
    assert.equal((await client.templates.get(read.id, { version: read.version })).description, "");
    assert.equal((await client.templates.versions(read.id).all()).length, changed.version);
    assert.ok(await client.templates.diff(read.id, read.version));
    const restored = await client.templates.restoreVersion(read.id, read.version);
    assert.equal(restored.version, changed.version + 1);
  });

  test("under one Idempotency-Key something is made once", async () => {
    const how = { idempotencyKey: `ts-${Date.now()}` };
    const one = await client.templates.create({ name: "Once", fields: FIELDS }, how);
    const two = await client.templates.create({ name: "Once", fields: FIELDS }, how);
    assert.equal(one.id, two.id);
    assert.deepEqual([headOf(one).replayed, headOf(two).replayed], [false, true]);
    await client.templates.delete(one.id);
  });

  test("refusals are errors of their kind", async () => {
    await assert.rejects(client.templates.get("tpl_00000000000000000000000000"), NotFound);
    await assert.rejects(new Rowsmith({ key: "rws_x_y" }).templates.list().first(), Unauthenticated);
    await assert.rejects(client.templates.create({ name: "x", fields: [{ name: "a", type: "nmber" }] }), (error) => {
      assert.ok(error instanceof ValidationError);
      assert.match(error.fields[0].path, /^fields\[0\]/);
      assert.match(error.requestId, /./);
      return true;
    });
    const narrow = await client.apiKeys.create({ name: "ts", scopes: ["read"] });
    const reader = new Rowsmith({ key: narrow.key });
    await assert.rejects(reader.templates.create({ name: "x", fields: FIELDS }), Forbidden);
    assert.ok(await reader.workspace.me());
    await client.apiKeys.revoke(narrow.id);
    await assert.rejects(reader.workspace.me(), Unauthenticated);
  });

  test("an export is waited for and read whole", async () => {
    const begun = await client.templates.export(template.id, { count: 2_000, format: "csv", seed: "s" });
    const done = await client.exports.wait(begun.id, { timeout: 60_000 });
    assert.equal(done.status, "completed");
    const bytes = await (await client.exports.stream(done.id)).bytes();
    assert.equal(createHash("sha256").update(bytes).digest("hex"), done.sha256);
    await assert.rejects(client.exports.cancel(done.id), Conflict);
  });

  test("a file of the service goes on after a break", async () => {
    const name = `ts/${Date.now()}.txt`;
    const text = "0123456789".repeat(20_000);
    const made = await client.files.upload(name, new Blob([text]), { contentType: "text/plain" });
    assert.equal(made.sha256, createHash("sha256").update(text).digest("hex"));
    await assert.rejects(client.files.upload(name, "other", { onlyNew: true }), VersionConflict);
    let breaks = 0;
    const fetch = async (url, init) => {
      const response = await globalThis.fetch(url, init);
      if (breaks++) return response;
      let left = 50_000;
      const cut = new TransformStream({
        transform(piece, controller) {
          controller.enqueue(piece.subarray(0, left));
          left -= piece.byteLength;
          if (left <= 0) controller.error(new TypeError("terminated"));
        },
      });
      return new Response(response.body.pipeThrough(cut), response);
    };
    const broken = new Rowsmith({ fetch, sleep: async () => {} });
    assert.equal(new TextDecoder().decode(await broken.files.read(name)), text);
    assert.equal(breaks, 2);
    assert.equal((await client.files.delete(name)).id, made.id);
    await client.files.restore(made.id);
    await client.files.delete(name);
  });

  test("rows go into a database, and each has its end", async () => {
    const shop = await client.connections.create({ name: "TS", type: "sqlite", settings: { file: `ts${Date.now()}.db` } });
    const request = { connection_id: shop.id, target: "people", count: 30, create_table: true };
    const push = await client.templates.push(template.id, request);
    const done = await client.pushes.wait(push.id, { timeout: 60_000 });
    assert.equal(done.status, "completed", JSON.stringify(done.error));
    assert.equal(done.counts.delivered, 30);
    assert.equal((await client.pushes.rows(done.id).all()).length, 30);
    assert.equal((await gathered(client.pushes.followLog(done.id))).length > 0, true);
    const rows = [{ id: 1000, email: "a@example.org", age: 20 }];
    const atOnce = await client.pushes.toDatabase({ connection_id: shop.id, table: "people", rows });
    assert.equal(atOnce.counts.delivered, 1);
    await client.connections.delete(shop.id);
  });

  test("a scenario runs, its log is followed, and its end is told", { timeout: 180_000 }, async () => {
    const code = 'import os, time\nfor n in range(3):\n    print(os.environ["WORD"], n, flush=True)\n    time.sleep(0.2)\n';
    const scenario = await client.scenarios.create({ name: "TS", code });
    const run = await client.runs.start(scenario.id, { WORD: "ä" });
    const log = client.runs.followLog(scenario.id, run.id, { timeout: 150_000 });
    const lines = await gathered(log);
    assert.deepEqual(lines.map((line) => line.number), lines.map((_, at) => at + 1));
    const printed = lines.filter((line) => !line.text.startsWith("rowsmith: ")); // the error about the environment
    assert.deepEqual(printed.map((line) => line.text), ["ä 0", "ä 1", "ä 2"]);
    assert.deepEqual([log.end.status, log.end.exit_code], ["completed", 0]);
    assert.ok((await client.runs.log(scenario.id, run.id)).endsWith("ä 0\nä 1\nä 2\n"));
    const last = lines[lines.length - 1];
    assert.deepEqual(await gathered(client.runs.followLog(scenario.id, run.id, { after: last.number - 1 })), [last]);
    const again = await client.runs.run(scenario.id, { WORD: "b" }, { timeout: 150_000 });
    assert.deepEqual([again.status, again.exit_code], ["completed", 0]);
    assert.equal(await client.runs.list({ scenario_id: scenario.id }).total(), 2);
    await client.scenarios.delete(scenario.id);
  });

  test("secrets, pages and the catalogue", async () => {
    await client.secrets.put("ts_token", "s3cret");
    assert.ok((await client.secrets.list().all()).some((one) => one.name === "ts_token"));
    await client.secrets.delete("ts_token");
    const types = await client.fields.list().all();
    assert.equal(types.length, await client.fields.list().total());
    assert.ok(types.length > 100);
    assert.ok((await client.fields.functions()).length > 5);
    const entries = await gathered(client.workspace.auditStream({ action: "template.create" }));
    assert.ok(entries.every((one) => one.action));
    assert.equal((await client.service.live()).status, "ok");
  });
});
