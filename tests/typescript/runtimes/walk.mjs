// What a program does with the package, the same wherever JavaScript runs: `walk(sdk, options)` answers what it saw.

const FIELDS = [
  { name: "id", type: "row_number" },
  { name: "email", type: "email", unique: true },
];

export async function walk(sdk, options) {
  const client = new sdk.Rowsmith(options);
  const template = await client.templates.create({ name: "Everywhere", fields: FIELDS });
  const how = { count: 2_000, seed: "s" };
  const rows = await client.templates.generate(template.id, how);
  const streamed = [];
  for await (const row of client.templates.rows(template.id, how)) streamed.push(row);
  const csv = await (await client.templates.stream(template.id, { ...how, format: "csv" })).text();

  const key = { idempotencyKey: `everywhere-${template.id}` };
  const ids = [];
  for (let turn = 0; turn < 2; turn++) ids.push((await client.templates.create({ name: "Once", fields: FIELDS }, key)).id);

  const name = `everywhere/${template.id}.txt`;
  const text = "ä0123456789".repeat(5_000);
  await client.files.upload(name, new Blob([text]), { contentType: "text/plain" });
  const read = new TextDecoder().decode(await client.files.read(name));

  const file = `everywhere_${template.id.toLowerCase()}.db`;
  const base = await client.connections.create({ name: "Everywhere", type: "sqlite", settings: { file } });
  const order = { connection_id: base.id, target: "people", count: 20, create_table: true };
  const push = await client.templates.push(template.id, order);
  const numbers = [];
  const log = client.pushes.followLog(push.id, { timeout: 60_000 });
  for await (const line of log) numbers.push(line.number);

  const missing = await client.templates.get("tpl_00000000000000000000000000").catch((error) => error);
  const controller = new AbortController();
  controller.abort(new Error("enough"));
  const aborted = await client.templates.get(template.id, { signal: controller.signal }).catch((error) => error);
  const listed = [];
  for await (const one of client.pushes.rows(push.id)) listed.push(one.state);
  return {
    same: JSON.stringify(rows) === JSON.stringify(streamed),
    first: rows[0],
    lines: csv.trim().split(/\r?\n/).length,
    once: ids[0] === ids[1],
    whole: read === text,
    log: numbers.length > 0 && numbers.every((number, at) => number === at + 1),
    end: log.end.status,
    rows: listed.length,
    missing: [missing instanceof sdk.NotFound, missing.code, missing.status],
    aborted: aborted.message,
  };
}
