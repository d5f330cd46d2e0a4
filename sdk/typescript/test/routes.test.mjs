// The client covers every operation of the service's OpenAPI document, and calls no other route.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Rowsmith } from "@rowsmith/sdk";

import { KEY, gathered } from "./target.mjs";

const DRAFT = { fields: [{ name: "a", type: "email" }] };
// A call for every method; for methods with several routes, a call for each.
const CALLS = {
  templates: {
    list: (one, how) => one.list({ q: "x", sort: "x" }, how).all(),
    get: [(one, how) => one.get("x", how), (one, how) => one.get("x", { version: 1, ...how })],
    create: (one, how) => one.create({ name: "x", ...DRAFT }, how),
    update: (one, how) => one.update("x", {}, how),
    delete: (one, how) => one.delete("x", how),
    restore: (one, how) => one.restore("x", how),
    versions: (one, how) => one.versions("x", how).all(),
    restoreVersion: (one, how) => one.restoreVersion("x", 1, how),
    importSchema: (one, how) => one.importSchema({ content: "x" }, how),
    startImport: (one, how) => one.startImport({ content: "x" }, how),
    getImport: (one, how) => one.getImport("x", how),
    cancelImport: (one, how) => one.cancelImport("x", how),
    compareSchema: (one, how) => one.compareSchema("x", { content: "x" }, how),
    diff: (one, how) => one.diff("x", 1, { to: 2, seed: "s" }, how),
    refreshReferences: (one, how) => one.refreshReferences("x", how),
    preview: [(one, how) => one.preview("x", {}, how), (one, how) => one.preview(DRAFT, {}, how)],
    generate: [(one, how) => one.generate("x", {}, how), (one, how) => one.generate(DRAFT, {}, how)],
    rows: [(one, how) => gathered(one.rows("x", {}, how)), (one, how) => gathered(one.rows(DRAFT, {}, how))],
    answers: (one, how) => one.answers("x", { seed: "s" }, how),
    stream: [(one, how) => one.stream("x", { format: "csv" }, how), (one, how) => one.stream(DRAFT, {}, how)],
    export: (one, how) => one.export("x", {}, how),
    push: (one, how) => one.push("x", {}, how),
    dryRun: (one, how) => one.dryRun("x", {}, how),
    pushPlan: (one, how) => one.pushPlan("x", {}, how),
  },
  datasets: {
    list: (one, how) => one.list({ q: "x", sort: "x" }, how).all(),
    get: [(one, how) => one.get("x", how), (one, how) => one.get("x", { version: 1, ...how })],
    create: (one, how) => one.create({ name: "x", templates: [] }, how),
    update: (one, how) => one.update("x", {}, how),
    delete: (one, how) => one.delete("x", how),
    restore: (one, how) => one.restore("x", how),
    versions: (one, how) => one.versions("x", how).all(),
    restoreVersion: (one, how) => one.restoreVersion("x", 1, how),
    diff: (one, how) => one.diff("x", 1, { to: 2 }, how),
    refreshReferences: (one, how) => one.refreshReferences("x", how),
    preview: (one, how) => one.preview("x", {}, how),
    export: (one, how) => one.export("x", {}, how),
    push: (one, how) => one.push("x", {}, how),
    dryRun: (one, how) => one.dryRun("x", {}, how),
    pushPlan: (one, how) => one.pushPlan("x", {}, how),
  },
  exports: {
    list: (one, how) => one.list({ q: "x", template_id: "x", dataset_id: "x", status: "x" }, how).all(),
    get: (one, how) => one.get("x", how),
    cancel: (one, how) => one.cancel("x", how),
    follow: (one, how) => one.follow("x", how).wait(),
    wait: (one, how) => one.wait("x", how),
    manifest: (one, how) => one.manifest("x", how),
    part: (one, how) => one.part("x", 1, how),
    retry: (one, how) => one.retry("x", how),
    stream: (one, how) => one.stream("x", how),
    answers: (one, how) => one.answers("x", { ...how, format: "csv" }),
  },
  pushes: {
    bad: (one, how) => one.bad("x", how),
    toDatabase: (one, how) => one.toDatabase({ connection_id: "x", table: "t" }, how),
    toEndpoint: (one, how) => one.toEndpoint({ endpoint_id: "x" }, how),
    list: (one, how) =>
      one.list({ q: "x", template_id: "x", dataset_id: "x", connection_id: "x", of_id: "x", status: "x" }, how).all(),
    get: (one, how) => one.get("x", how),
    cancel: (one, how) => one.cancel("x", how),
    follow: (one, how) => one.follow("x", how).wait(),
    wait: (one, how) => one.wait("x", how),
    rows: (one, how) => one.rows("x", { state: "failed", table: "t", values: true }, how).all(),
    log: (one, how) => one.log("x", how),
    followLog: (one, how) => one.followLog("x", how).wait(),
    retry: (one, how) => one.retry("x", {}, how),
    undo: (one, how) => one.undo("x", {}, how),
  },
  connections: {
    list: (one, how) => one.list({ q: "x", type: "x" }, how).all(),
    get: (one, how) => one.get("x", how),
    create: (one, how) => one.create({ name: "x" }, how),
    update: (one, how) => one.update("x", {}, how),
    delete: (one, how) => one.delete("x", how),
    restore: (one, how) => one.restore("x", how),
    verify: (one, how) => one.verify("x", how),
    metadata: (one, how) => one.metadata("x", { refresh: true, entity: "e", q: "x", limit: 3 }, how),
    metadataDocument: (one, how) => one.metadataDocument("x", how),
    uploadMetadataDocument: (one, how) => one.uploadMetadataDocument("x", "<xml/>", how),
    deleteMetadataDocument: (one, how) => one.deleteMetadataDocument("x", how),
    makeTemplates: (one, how) => one.makeTemplates("x", { entities: ["e"] }, how),
    fill: (one, how) => one.fill("x", { rows: 5 }, how),
    subset: (one, how) => one.subset("x", { table: "t" }, how),
    refreshFetched: (one, how) => one.refreshFetched("x", how),
  },
  endpoints: {
    list: (one, how) => one.list({ q: "x", connection_id: "x" }, how).all(),
    get: (one, how) => one.get("x", how),
    create: (one, how) => one.create({ name: "x" }, how),
    update: (one, how) => one.update("x", {}, how),
    delete: (one, how) => one.delete("x", how),
    restore: (one, how) => one.restore("x", how),
  },
  scenarios: {
    list: (one, how) => one.list({ q: "x", sort: "x" }, how).all(),
    get: [(one, how) => one.get("x", how), (one, how) => one.get("x", { version: 1, ...how })],
    create: (one, how) => one.create({ name: "x", code: "" }, how),
    check: (one, how) => one.check({ code: "" }, how),
    replace: (one, how) => one.replace("x", { code: "" }, how),
    update: (one, how) => one.update("x", {}, how),
    refreshRequirements: (one, how) => one.refreshRequirements("x", how),
    delete: (one, how) => one.delete("x", how),
    restore: (one, how) => one.restore("x", how),
    versions: (one, how) => one.versions("x", how).all(),
    restoreVersion: (one, how) => one.restoreVersion("x", 1, how),
    diff: (one, how) => one.diff("x", 1, { to: 2 }, how),
  },
  schedules: {
    list: (one, how) => one.list({ q: "x" }, how).all(),
    create: (one, how) => one.create({ name: "x", cron: "0 2 * * *", repeats: "x" }, how),
    get: (one, how) => one.get("x", how),
    update: (one, how) => one.update("x", { enabled: false }, how),
    delete: (one, how) => one.delete("x", how),
    start: (one, how) => one.start("x", how),
  },
  runs: {
    start: (one, how) => one.start("x", { A: "b" }, how),
    run: (one, how) => one.run("x", { A: "b" }, how),
    rerun: (one, how) => one.rerun("x", "x", {}, how),
    list: [
      (one, how) => one.list({ q: "x", status: "x", trigger: "x", of_id: "x", sort: "x" }, how).all(),
      (one, how) =>
        one.list({ scenario_id: "x", q: "x", status: "x", trigger: "x", of_id: "x", sort: "x" }, how).all(),
    ],
    get: (one, how) => one.get("x", "x", how),
    cancel: (one, how) => one.cancel("x", "x", how),
    log: (one, how) => one.log("x", "x", how),
    followLog: (one, how) => one.followLog("x", "x", how).wait(),
    follow: (one, how) => one.follow("x", "x", how).wait(),
    wait: (one, how) => one.wait("x", "x", how),
  },
  files: {
    list: (one, how) => one.list({ q: "x", folder: "f", sort: "x", run_id: "x" }, how).all(),
    upload: (one, how) => one.upload("f/x", "text", how),
    read: (one, how) => one.read("x", how),
    stream: (one, how) => one.stream("x", how),
    delete: (one, how) => one.delete("x", how),
    restore: (one, how) => one.restore("x", how),
  },
  fields: {
    list: (one, how) => one.list({ q: "x", locale: "de_DE" }, how).all(),
    functions: (one, how) => one.functions({ q: "x" }, how),
    suggest: (one, how) => one.suggest({ name: "x" }, how),
    describe: (one, how) => one.describe({ description: "x" }, how),
  },
  workspace: {
    get: (one, how) => one.get(how),
    update: (one, how) => one.update({}, how),
    delete: (one, how) => one.delete("x", how),
    trash: (one, how) => one.trash({ q: "x", type: "template" }, how).all(),
    usedBy: (one, how) => one.usedBy("x", how),
    usage: (one, how) => one.usage(USAGE, how),
    me: (one, how) => one.me(how),
    sessions: (one, how) => one.sessions({ q: "x" }, how).all(),
    endSessions: (one, how) => one.endSessions(how),
    endSession: (one, how) => one.endSession("x", how),
    audit: (one, how) => one.audit(AUDIT, how).all(),
    auditSeals: (one, how) => one.auditSeals(how).all(),
    auditStream: (one, how) => gathered(one.auditStream(AUDIT, how)),
  },
  members: {
    list: (one, how) => one.list({ q: "x", sort: "email", team_id: "x", user_id: "x" }, how).all(),
    get: (one, how) => one.get("x", how),
    add: (one, how) => one.add({ user_id: "x" }, how),
    update: (one, how) => one.update("x", { role: "viewer" }, how),
    remove: (one, how) => one.remove("x", { everywhere: true, revokeKeys: true, ...how }),
    invitations: (one, how) => one.invitations({ q: "x" }, how).all(),
    invite: (one, how) => one.invite({ email: "a@example.org" }, how),
    resend: (one, how) => one.resend("x", how),
    withdraw: (one, how) => one.withdraw("x", how),
  },
  teams: {
    list: (one, how) => one.list({ q: "x" }, how).all(),
    get: (one, how) => one.get("x", how),
    create: (one, how) => one.create({ name: "x" }, how),
    update: (one, how) => one.update("x", { name: "x" }, how),
    delete: (one, how) => one.delete("x", how),
    restore: (one, how) => one.restore("x", how),
  },
  projects: {
    list: (one, how) => one.list({ q: "x" }, how).all(),
    get: (one, how) => one.get("x", how),
    create: (one, how) => one.create({ name: "x" }, how),
    update: (one, how) => one.update("x", {}, how),
    delete: (one, how) => one.delete("x", how),
    restore: (one, how) => one.restore("x", how),
    move: (one, how) => one.move("x", { objects: ["x"] }, how),
  },
  apiKeys: {
    list: (one, how) => one.list({ q: "x", created_by: "x", unused: true }, how).all(),
    get: (one, how) => one.get("x", how),
    create: (one, how) => one.create({ name: "x" }, how),
    revoke: (one, how) => one.revoke("x", how),
    revokeAll: (one, how) => one.revokeAll("x", how),
  },
  secrets: {
    list: (one, how) => one.list({ q: "x" }, how).all(),
    put: (one, how) => one.put("x", "v", how),
    delete: (one, how) => one.delete("x", how),
  },
  webhooks: {
    list: (one, how) => one.list({ q: "x" }, how).all(),
    get: (one, how) => one.get("x", how),
    create: (one, how) => one.create({ url: "https://x.example", events: ["*"] }, how),
    update: (one, how) => one.update("x", { active: false }, how),
    delete: (one, how) => one.delete("x", how),
    restore: (one, how) => one.restore("x", how),
    newSecret: (one, how) => one.newSecret("x", how),
    test: (one, how) => one.test("x", how),
    deliveries: (one, how) => one.deliveries("x", { status: "failed" }, how).all(),
    delivery: (one, how) => one.delivery("x", "y", how),
    redeliver: (one, how) => one.redeliver("x", "y", how),
  },
  masking: {
    classify: (one, how) => one.classify({ file: "f" }, how),
    keys: (one, how) => one.keys(how),
    rotate: (one, how) => one.rotate(how),
  },
  service: {
    live: (one, how) => one.live(how),
    ready: (one, how) => one.ready(how),
    openapi: (one, how) => one.openapi(how),
  },
};
const AUDIT = {
  ...{ q: "x", action: "a", kind: "k", object_id: "o", user_id: "u", key_id: "k", project_id: "p", address: "a" },
  ...{ since: "s", until: "u", rows_min: 1, rows_max: 2, text: "t" },
};
const USAGE = { by: "key", step: "day", range: "7d", from: "f", to: "t" };
// The same method under another name.
const ALIASES = {
  "GET /fields": "GET /field-types",
  "PUT /templates/{}": "PATCH /templates/{}",
  "PUT /datasets/{}": "PATCH /datasets/{}",
};

/** Record the request of each call, `{call, method, path, query, headers}`, with a response that suits all of them. */
async function tries(how) {
  const asked = [];
  let call = "";
  const fetch = async (url, { method, headers }) => {
    const { pathname, searchParams } = new URL(url);
    asked.push({ call, method, path: pathname, query: searchParams, headers });
    if (headers.Accept === "text/event-stream") {
      return new Response("event: end\ndata: {}\n\n", { headers: { "Content-Type": "text/event-stream" } });
    }
    const body = { id: "x", items: [], next_cursor: null, total: 0, functions: [] };
    return Response.json(body);
  };
  const client = new Rowsmith({ key: KEY, url: "https://x.example", fetch });
  for (const [resource, methods] of Object.entries(CALLS)) {
    for (const [name, calls] of Object.entries(methods)) {
      for (const one of [calls].flat()) {
        call = `${resource}.${name}`;
        await one(client[resource], { ...how });
      }
    }
  }
  return asked;
}

async function document() {
  const url = process.env.SERVICE_API_URL;
  const { paths } = await (await globalThis.fetch(`${url}/openapi.json`)).json();
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path.replace(/\{[^}]*\}/g, "{}")}`,
      method: method.toUpperCase(),
      pattern: new RegExp(`^${path.replace(/[.]/g, "\\.").replace(/\{[^}]*\}/g, "[^/@]+")}$`),
      fixed: path.replace(/\{[^}]*\}/g, "").length,
      operation,
    })),
  );
}

/** Return the operation of a call: of the matching ones, the one with the most literal path segments. */
function operationOf(operations, { method, path }) {
  const fits = operations.filter((one) => one.method === method && one.pattern.test(path.replace("/f/", "/")));
  return fits.sort((a, b) => b.fixed - a.fixed)[0];
}

test("the table above has every method of the client", () => {
  const client = new Rowsmith({ key: KEY, url: "https://x.example" });
  const methods = Object.entries(client).flatMap(([label, resource]) =>
    Object.getOwnPropertyNames(Object.getPrototypeOf(resource))
      .filter((name) => name !== "constructor")
      .map((name) => `${label}.${name}`),
  );
  const known = Object.entries(CALLS).flatMap(([label, calls]) => Object.keys(calls).map((name) => `${label}.${name}`));
  assert.deepEqual(methods.sort(), known.sort());
});

test("every operation can be reached, and none is invented", { skip: !process.env.SERVICE_API_URL }, async () => {
  const operations = await document();
  const asked = await tries({});
  const invented = asked.filter((one) => !operationOf(operations, one)).map((one) => `${one.call}: ${one.method} ${one.path}`);
  assert.deepEqual(invented, []);
  const reached = new Map();
  for (const one of asked) {
    const { name } = operationOf(operations, one);
    reached.set(name, [...(reached.get(name) ?? []), one]);
  }
  const missing = operations.map((one) => one.name).filter((name) => !reached.has(ALIASES[name] ?? name));
  assert.deepEqual(missing, [], "no method for these");
  const untold = [];
  for (const { name, operation } of operations) {
    const calls = reached.get(ALIASES[name] ?? name);
    const told = new Set(calls.flatMap((one) => [...one.query.keys()]));
    for (const parameter of operation.parameters ?? []) {
      if (parameter.in !== "query" || ["cursor", "limit"].includes(parameter.name)) continue;
      if (!told.has(parameter.name)) untold.push(`${name}: ${parameter.name}`);
    }
    for (const one of calls) {
      const carried = "Idempotency-Key" in one.headers;
      if (!ALIASES[name]) assert.equal(carried, Boolean(operation["x-idempotency-key"]), `${one.call}: ${name}`);
    }
  }
  assert.deepEqual(untold, [], "these cannot be given");
});

test("ifMatch is taken wherever the service takes it", { skip: !process.env.SERVICE_API_URL }, async () => {
  const operations = await document();
  const taking = new Set();
  for (const one of await tries({ ifMatch: '"tag"' })) {
    if (one.headers["If-Match"] === '"tag"') taking.add(operationOf(operations, one).name);
  }
  const wanted = operations.filter((one) => one.operation["x-if-match"]).map((one) => one.name);
  assert.deepEqual(wanted.filter((name) => !taking.has(ALIASES[name] ?? name)), []);
});
