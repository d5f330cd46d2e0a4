import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";

import * as sdk from "@rowsmith/sdk";

import { GOOD, KEY, Target, answer, doubling, far, refusal } from "./target.mjs";

const ANY = refusal(503, "unavailable");

test("a 503 is tried again, with waits that double", async (t) => {
  const target = (await Target.start(t)).on(ANY, ANY, ANY, answer(200, GOOD));
  const { client, waits } = far(target);
  assert.deepEqual(await client.templates.get("tpl_1"), GOOD);
  assert.equal(target.seen.length, 4);
  assert.equal(waits.length, 3);
  assert.ok(doubling(waits), `${waits}`);
});

test("after as many attempts as were asked for the failure is thrown", async (t) => {
  const target = (await Target.start(t)).on(refusal(500, "internal_error", { request_id: "req_7" }));
  const { client } = far(target, { retries: 2 });
  await assert.rejects(client.templates.get("tpl_1"), (error) => {
    assert.ok(error instanceof sdk.ServerError);
    assert.deepEqual([error.code, error.status, error.requestId], ["internal_error", 500, "req_7"]);
    return true;
  });
  assert.equal(target.seen.length, 3);
});

test("a longer Retry-After wins, in seconds and as a date", async (t) => {
  const date = new Date(Date.now() + 30_000).toUTCString();
  const target = (await Target.start(t)).on(
    refusal(429, "rate_limited", {}, { "Retry-After": "7" }),
    refusal(429, "rate_limited", {}, { "Retry-After": date }),
    answer(200, GOOD),
  );
  const { client, waits } = far(target);
  await client.templates.update("tpl_1", { name: "T" }); // the request was rejected before the service acted, so even a PATCH is sent again
  assert.equal(waits[0], 7_000);
  assert.ok(waits[1] > 27_000 && waits[1] <= 30_000, `${waits[1]}`);
});

test("a Retry-After of more than a minute is thrown at once", async (t) => {
  const target = (await Target.start(t)).on(refusal(429, "quota_exceeded", {}, { "Retry-After": "61" }));
  const { client, waits } = far(target);
  await assert.rejects(client.templates.generate("tpl_1"), (error) => {
    assert.ok(error instanceof sdk.RateLimited);
    assert.equal(error.retryAfter, 61_000);
    return true;
  });
  assert.deepEqual(waits, []);
});

test("a creating call carries one Idempotency-Key over all its attempts, and another the next time", async (t) => {
  const lost = answer(201, GOOD, {}, { cut: "before" });
  const target = (await Target.start(t)).on(lost, refusal(502, "target_failed"), answer(201, GOOD));
  const { client } = far(target);
  const template = { name: "T", fields: [{ name: "a", type: "email" }] };
  await client.templates.create(template);
  await client.templates.create(template);
  await client.templates.create(template, { idempotencyKey: "mine" });
  const keys = target.seen.map((one) => one.headers["idempotency-key"]);
  assert.equal(new Set(keys.slice(0, 3)).size, 1);
  assert.match(keys[0], /^[0-9a-f]{32}$/);
  assert.notEqual(keys[3], keys[0]);
  assert.equal(keys[4], "mine");
  assert.equal(new Set(target.seen.map((one) => one.body)).size, 1);
});

test("an upload is sent again whole", async (t) => {
  const target = (await Target.start(t)).on(answer(201, {}, {}, { cut: "before" }), answer(201, { id: "fil_1" }));
  const { client } = far(target);
  await client.files.upload("in/ä.csv", "a;b\n", { contentType: "text/csv" });
  for (const { headers, body } of target.seen) {
    assert.match(headers["content-type"], /^multipart\/form-data; boundary=/);
    assert.match(body, /name="name"\r\n\r\nin\/ä\.csv\r\n/);
    assert.match(body, /filename="ä\.csv"\r\nContent-Type: text\/csv\r\n\r\na;b\n\r\n/);
  }
  assert.equal(target.seen[0].headers["idempotency-key"], target.seen[1].headers["idempotency-key"]);
});

test("a PATCH that may have arrived is not sent twice", async (t) => {
  const target = (await Target.start(t)).on(answer(200, GOOD, {}, { cut: "before" }), answer(200, GOOD));
  const { client } = far(target);
  await assert.rejects(client.templates.update("tpl_1", { name: "U" }), (error) => {
    assert.ok(error instanceof sdk.ConnectionFailed);
    assert.deepEqual([error.code, error.status, error.sent], ["connection_failed", 0, true]);
    return true;
  });
  assert.equal(target.seen.length, 1);
});

test("a PATCH whose connection was never made is tried again", async () => {
  const placeholder = createServer();
  const port = await new Promise((done) => placeholder.listen(0, "127.0.0.1", () => done(placeholder.address().port)));
  await new Promise((done) => placeholder.close(done));
  const { client, waits } = far({ url: `http://127.0.0.1:${port}` });
  await assert.rejects(client.templates.update("tpl_1", { name: "U" }), (error) => {
    assert.ok(error instanceof sdk.ConnectionFailed);
    assert.equal(error.sent, false);
    return true;
  });
  assert.equal(waits.length, 4);
});

test("an answer that is cut short is asked for again", async (t) => {
  const half = answer(200, '{"id": "tpl', { "Content-Length": "60" }, { cut: "body" });
  const target = (await Target.start(t)).on(half, answer(200, GOOD));
  assert.deepEqual(await far(target).client.templates.get("tpl_1"), GOOD);
});

test("silence ends in Timeout, and a timeout of the call goes before the client's", async (t) => {
  const target = (await Target.start(t)).on(answer(200, {}, {}, { silent: true }));
  let attempts = 0; // counted here, because on a busy machine a request can end before the target has read it
  const fetch = (url, init) => {
    attempts += 1;
    return globalThis.fetch(url, init);
  };
  const { client } = far(target, { retries: 1, fetch });
  await assert.rejects(client.templates.get("tpl_1", { timeout: 60 }), (error) => {
    assert.ok(error instanceof sdk.Timeout && error instanceof sdk.ConnectionFailed);
    assert.equal(error.code, "timeout");
    return true;
  });
  assert.equal(attempts, 2);
});

test("a call ends within its total time", async (t) => {
  const target = (await Target.start(t)).on(answer(200, {}, {}, { silent: true }));
  const { client } = far(target, { retries: 9, timeout: 80, totalTimeout: 700 });
  await assert.rejects(client.templates.get("tpl_1"), sdk.Timeout);
  assert.ok(target.seen.length < 4);
});

test("a signal ends a call, whether it waits for an answer or for its next attempt", { timeout: 30_000 }, async (t) => {
  const target = await Target.start(t);
  const { client } = far(target);
  const reason = new Error("the user went away");
  const controller = new AbortController();
  target.on(() => {
    controller.abort(reason);
    return answer(200, {}, {}, { silent: true });
  });
  await assert.rejects(client.templates.get("tpl_1", { signal: controller.signal }), reason);
  assert.equal(target.seen.length, 1);

  const later = new AbortController();
  target.on(refusal(503, "unavailable", {}, { "Retry-After": "50" }));
  const real = new sdk.Rowsmith({ key: KEY, url: target.url }); // one that really waits, and not for 50 s
  const waiting = real.templates.get("tpl_1", { signal: later.signal });
  setTimeout(() => later.abort(reason), 200);
  await assert.rejects(waiting, reason);
  await assert.rejects(client.templates.get("tpl_1", { signal: AbortSignal.abort(reason) }), reason);
});

test("the codes of the service are classes here", async (t) => {
  const target = await Target.start(t);
  const { client } = far(target, { retries: 0 });
  const expected = [
    [400, "invalid_request", sdk.InvalidRequest],
    [401, "unauthenticated", sdk.Unauthenticated],
    [403, "forbidden", sdk.Forbidden],
    [404, "not_found", sdk.NotFound],
    [409, "in_use", sdk.Conflict],
    [412, "version_conflict", sdk.VersionConflict],
    [413, "payload_too_large", sdk.TooLarge],
    [422, "validation_error", sdk.ValidationError],
    [429, "rate_limited", sdk.RateLimited],
    [500, "internal_error", sdk.ServerError],
    [502, "target_failed", sdk.TargetError],
    [504, "target_timeout", sdk.TargetError],
    [418, "teapot", sdk.RowsmithError],
  ];
  for (const [status, code, kind] of expected) {
    target.on(refusal(status, code, { needs: "x" }, { "X-Request-Id": "req_1" }));
    const error = await client.templates.get("tpl_1").catch((one) => one);
    assert.equal(error.constructor, kind, code);
    assert.equal(error.name, kind.name);
    assert.deepEqual([error.code, error.status, error.details, error.requestId], [code, status, { needs: "x" }, "req_1"]);
    assert.match(error.message, new RegExp(`It is ${code}\\. \\(${code}, status ${status}, request req_1\\)`));
  }
});

test("a validation error tells of every fault", async (t) => {
  const fields = [
    { path: "fields[0].type", code: "unknown_type", message: "There is no type `nmber`.", hint: "Did you mean `number`?" },
    { path: "", code: "x", message: "Odd." },
  ];
  const target = (await Target.start(t)).on(refusal(422, "validation_error", { fields }));
  await assert.rejects(far(target).client.templates.create({ name: "x", fields: [] }), (error) => {
    assert.deepEqual(error.fields, fields);
    assert.match(error.message, /fields\[0\]\.type: There is no type `nmber`\. Did you mean `number`\?/);
    assert.match(error.message, /request: Odd\./);
    return true;
  });
});

test("what is not the service's is a bad answer", async (t) => {
  const target = await Target.start(t);
  const { client } = far(target, { retries: 0 });
  const strange = [
    answer(200, "<html>hello</html>", { "Content-Type": "text/html" }),
    answer(200, '{"id": ', {}),
    answer(302, "", { Location: "https://elsewhere.example" }),
    answer(502, "<html>bad gateway</html>", { "Content-Type": "text/html" }),
  ];
  for (const one of strange) {
    target.on(one);
    const error = await client.templates.get("tpl_1").catch((found) => found);
    assert.ok(error instanceof sdk.BadAnswer, `${one.status}: ${error}`);
    assert.equal(error.code, "bad_answer");
  }
  assert.equal(target.seen.length, strange.length, "a redirect is not followed: the key would go along");
  target.on(answer(404, "nginx", { "Content-Type": "text/plain" }));
  await assert.rejects(client.templates.get("tpl_1"), sdk.NotFound);
});

test("an object is changed only if it is still as it was read", async (t) => {
  const target = (await Target.start(t)).on(
    answer(200, GOOD, { ETag: '"one"' }),
    answer(200, GOOD),
    answer(200, GOOD, { "Idempotent-Replayed": "true" }),
  );
  const { client } = far(target);
  const read = await client.templates.get("tpl_1");
  assert.equal(sdk.headOf(read).etag, '"one"');
  assert.deepEqual(Object.keys(read), Object.keys(GOOD));
  const second = await client.templates.delete("tpl_1", { ifMatch: read });
  assert.equal(target.seen[1].headers["if-match"], '"one"');
  await assert.rejects(async () => client.templates.delete("tpl_1", { ifMatch: second }), { code: "not_configured" });
  assert.equal(sdk.headOf(await client.templates.restore("tpl_1")).replayed, true);
});

test("parts of a path cannot lead to another path", async (t) => {
  const target = (await Target.start(t)).on(answer(200, GOOD));
  const { client } = far(target);
  for (const id of ["", ".", ".."]) await assert.rejects(async () => client.templates.get(id), sdk.NotFound);
  await assert.rejects(async () => client.files.delete("a/../b"), sdk.NotFound);
  await client.templates.get("a/b?c#d");
  await client.files.delete("in/ä b.csv");
  assert.deepEqual(target.seen.map((one) => one.url), ["/templates/a%2Fb%3Fc%23d", "/workspace/files/in/%C3%A4%20b.csv"]);
});

test("a client that cannot work says so when it is made", () => {
  const refused = [
    { url: "https://x.example" },
    { key: KEY },
    { key: KEY, url: "ftp://x.example" },
    { key: KEY, url: "nonsense" },
    { key: KEY, url: "http://rowsmith.example.com" },
    { key: KEY, url: "https://user:pass@x.example" },
    { key: KEY, url: "https://x.example/?a=b" },
    { key: "rws_ä", url: "https://x.example" },
    { key: "rws\nX: y", url: "https://x.example" },
  ];
  const kept = { url: process.env.SERVICE_API_URL, key: process.env.SERVICE_API_KEY };
  delete process.env.SERVICE_API_URL;
  delete process.env.SERVICE_API_KEY;
  try {
    for (const options of refused) {
      assert.throws(() => new sdk.Rowsmith(options), { code: "not_configured" }, JSON.stringify(options));
    }
    process.env.SERVICE_API_URL = "http://[::1]:1/rowsmith/";
    process.env.SERVICE_API_KEY = KEY;
    assert.ok(new sdk.Rowsmith());
  } finally {
    delete process.env.SERVICE_API_URL;
    delete process.env.SERVICE_API_KEY;
    if (kept.url) process.env.SERVICE_API_URL = kept.url;
    if (kept.key) process.env.SERVICE_API_KEY = kept.key;
  }
});

test("key, project and program are told, and no key stands in a printed client", async (t) => {
  const target = (await Target.start(t)).on(answer(200, { ok: true }));
  const { client } = far(target, { project: "prj_2" });
  await client.request("GET", "/me", { query: { a: undefined, b: "ä c", d: true } });
  const { headers, url } = target.seen[0];
  assert.equal(headers.authorization, `Bearer ${KEY}`);
  assert.equal(headers["x-project-id"], "prj_2");
  assert.match(headers["user-agent"], /^rowsmith-typescript\/\d+\.\d+\.\d+ node\//);
  assert.equal(url, "/me?b=%C3%A4+c&d=true");
  const { inspect } = await import("node:util");
  assert.ok(!inspect(client, { depth: 9, showHidden: true }).includes(KEY));
});
