import assert from "node:assert/strict";
import { test } from "node:test";

import * as sdk from "@rowsmith/sdk";

import { GOOD, KEY, Target, answer, far, gathered, refusal } from "./target.mjs";

const PINS = { "X-Seed": "s", "X-Now": "2026-01-01T00:00:00Z", "X-Template-Version": "1", "X-Engine": "1", "X-Vocabulary": "1" };
const lines = (from, to) => Array.from({ length: to - from + 1 }, (_, n) => `{"id": ${from + n}}\n`).join("");
const ndjson = (body, more = {}, pins = PINS) =>
  answer(200, body, { "Content-Type": "application/x-ndjson", ...pins }, more);
const events = (body, more = {}) => answer(200, body, { "Content-Type": "text/event-stream" }, more);

test("rows go on after a break under the same seed and moment, none missing and none twice", async (t) => {
  const target = (await Target.start(t)).on(
    ndjson(`${lines(1, 3)}{"id": 4`, { cut: "body" }),
    ndjson("", { cut: "before" }),
    ndjson(lines(4, 6)),
  );
  const { client } = far(target);
  const rows = client.templates.rows("tpl_1", { count: 6, offset: 10 });
  assert.deepEqual((await gathered(rows)).map((row) => row.id), [1, 2, 3, 4, 5, 6]);
  const bodies = target.seen.map((one) => JSON.parse(one.body));
  assert.deepEqual(bodies[0], { count: 6, offset: 10, format: "ndjson" });
  assert.deepEqual(bodies[2], { count: 3, offset: 13, format: "ndjson", seed: "s", now: PINS["X-Now"] });
  assert.deepEqual([rows.seed, rows.now, rows.version, rows.seen], ["s", PINS["X-Now"], "1", 6]);
});

test("rows of a template that says its own quantity go on too", async (t) => {
  const target = (await Target.start(t)).on(
    ndjson(lines(1, 2), { cut: "body" }),
    answer(200, GOOD),
    ndjson(lines(3, 6)),
  );
  assert.equal((await gathered(far(target).client.templates.rows("tpl_1"))).length, 6);
  assert.equal(JSON.parse(target.seen[2].body).count, 4);
});

test("rows are not mixed from two versions of a template", async (t) => {
  const target = (await Target.start(t)).on(
    ndjson(lines(1, 2), { cut: "body" }),
    ndjson(lines(3, 6), {}, { ...PINS, "X-Template-Version": "2" }),
  );
  const rows = far(target).client.templates.rows("tpl_1", { count: 6 });
  await assert.rejects(gathered(rows), sdk.VersionConflict);
});

test("a loop that is left lets go of the connection", { timeout: 20_000 }, async (t) => {
  const target = (await Target.start(t)).on(ndjson(lines(1, 1_000), { endless: true }));
  const { client } = far(target);
  for await (const row of client.templates.rows("tpl_1", { count: 10 ** 9 })) {
    if (row.id === 2) break;
  }
  await target.left;
});

test("a signal ends a stream of rows", async (t) => {
  const target = (await Target.start(t)).on(ndjson(lines(1, 1_000), { endless: true }));
  const controller = new AbortController();
  const rows = far(target).client.templates.rows("tpl_1", { count: 10 ** 9 }, { signal: controller.signal });
  const reason = new Error("enough");
  await assert.rejects(async () => {
    for await (const row of rows) if (row.id === 5) controller.abort(reason);
  }, reason);
});

test("a file goes on after a break where it can be had in parts", async (t) => {
  const whole = { "Content-Type": "text/csv", ETag: '"abc"', "Accept-Ranges": "bytes" };
  const target = (await Target.start(t)).on(
    answer(200, "a;b\n1;", { ...whole, "Content-Length": "10" }, { cut: "body" }),
    answer(206, "2\n3\n", { ...whole, "Content-Range": "bytes 6-9/10" }),
  );
  const { client } = far(target);
  assert.equal(new TextDecoder().decode(await client.files.read("a.csv")), "a;b\n1;2\n3\n");
  assert.equal(target.seen[1].headers.range, "bytes=6-");
  assert.equal(target.seen[1].headers["if-range"], '"abc"');
});

test("a file that was replaced meanwhile is not put together from two", async (t) => {
  const head = (tag) => ({ ETag: tag, "Accept-Ranges": "bytes" });
  const target = (await Target.start(t)).on(
    answer(200, "old", { ...head('"old"'), "Content-Length": "10" }, { cut: "body" }),
    answer(200, "new", head('"new"')),
  );
  await assert.rejects(far(target).client.files.read("a"), sdk.VersionConflict);
});

test("a file is a stream of the platform", async (t) => {
  const target = (await Target.start(t)).on(answer(200, "x".repeat(300_000), { "Content-Type": "text/csv", ...PINS }));
  const stream = await far(target).client.templates.stream("tpl_1", { format: "csv" });
  assert.deepEqual([stream.seed, stream.version], ["s", "1"]);
  assert.equal((await new Response(stream.readable()).text()).length, 300_000);
});

test("a log is followed across breaks, and no line comes twice", async (t) => {
  const target = (await Target.start(t)).on(
    events("id: 1\nevent: log\ndata: one\n\nid: 2\nevent: log\ndata: two\n\nid: 3\nevent: log\ndata: cut o", { cut: "body" }),
    refusal(503, "unavailable"),
    events(": still here\n\nid: 3\r\nevent: log\r\ndata: drei ä\r\n\r\n"),
    events('id: 4\nevent: log\ndata:\n\nevent: end\ndata: {"status": "failed", "exit_code": 3}\n\n'),
  );
  const { client } = far(target);
  const log = client.runs.followLog("scn_1", "run_1");
  assert.deepEqual(await gathered(log), [
    { number: 1, text: "one" },
    { number: 2, text: "two" },
    { number: 3, text: "drei ä" },
    { number: 4, text: "" },
  ]);
  assert.deepEqual(log.end, { status: "failed", exit_code: 3 });
  assert.deepEqual(target.seen.map((one) => one.headers["last-event-id"]), [undefined, "2", "2", "3"]);
  assert.ok(target.seen.every((one) => one.url === "/scenarios/scn_1/runs/run_1/logs?follow=true"));
});

test("a log can be begun after a line, and a wrong id is not asked for again and again", async (t) => {
  const target = (await Target.start(t)).on(refusal(404, "not_found"));
  await assert.rejects(far(target).client.pushes.followLog("psh_1", { after: 41 }).wait(), sdk.NotFound);
  assert.equal(target.seen.length, 1);
  assert.equal(target.seen[0].headers["last-event-id"], "41");
});

test("waiting ends in time", async (t) => {
  const target = (await Target.start(t)).on(events("event: progress\ndata: {}\n\n", { cut: "body" }));
  const client = new sdk.Rowsmith({ key: KEY, url: target.url });
  await assert.rejects(client.exports.wait("exp_1", { timeout: 300 }), sdk.Timeout);
  const reason = new Error("no more");
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), 50);
  await assert.rejects(client.exports.wait("exp_1", { signal: controller.signal }), reason);
});

test("a stream of one byte at a time is read as one", async () => {
  const text = 'data: {"a": "ä€😀"}\r\n\r\ndata: x\rdata: y\r\revent: end\ndata: {"status": "completed"}\n\n';
  const bytes = new TextEncoder().encode(text);
  const body = () =>
    new ReadableStream({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
        controller.close();
      },
    });
  const fetch = async () => new Response(body(), { headers: { "Content-Type": "text/event-stream" } });
  const client = new sdk.Rowsmith({ key: KEY, url: "https://x.example", fetch });
  const found = await gathered(client.runs.followLog("scn_1", "run_1"));
  assert.deepEqual(found.map((one) => one.text), ['{"a": "ä€😀"}', "x\ny"]);
});

test("a list fetches its pages", async (t) => {
  const page = (request) => {
    const query = new URL(request.url, "http://x").searchParams;
    const from = Number(query.get("cursor") ?? 0);
    const size = Number(query.get("limit"));
    const items = Array.from({ length: Math.min(size, 250 - from) }, (_, n) => ({ id: from + n }));
    return answer(200, { items, next_cursor: from + size < 250 ? String(from + size) : null, total: 250 });
  };
  const target = (await Target.start(t)).on(page);
  const list = far(target).client.templates.list({ q: "x" });
  assert.equal((await list.all()).length, 250);
  assert.deepEqual(target.seen.map((one) => one.url), [
    "/templates?limit=100&q=x", "/templates?limit=100&q=x&cursor=100", "/templates?limit=100&q=x&cursor=200",
  ]);
  assert.equal(await list.total(), 250);
  assert.deepEqual(await list.first(), { id: 0 });
  let seen = 0;
  for await (const _ of list) if (++seen === 101) break;
  assert.equal(target.seen.length, 3 + 2 + 2);
});

test("very many rows take no more memory than few", async () => {
  const count = 400_000;
  const block = new TextEncoder().encode('{"id": 1, "text": "0123456789012345678901234567890123456789"}\n'.repeat(1000));
  let left = count / 1000;
  const fetch = async () => {
    const body = new ReadableStream({
      pull: (controller) => (left-- > 0 ? controller.enqueue(block) : controller.close()),
    });
    return new Response(body, { headers: PINS });
  };
  const client = new sdk.Rowsmith({ key: KEY, url: "https://x.example", fetch });
  let seen = 0;
  let most = 0;
  for await (const row of client.templates.rows("tpl_1", { count })) {
    seen += row.id;
    if (seen % 20_000 === 0) most = Math.max(most, process.memoryUsage().heapUsed);
  }
  assert.equal(seen, count);
  assert.ok(most < 120e6, `${most / 1e6} MB for ${(count * 62) / 1e6} MB of rows`);
});
