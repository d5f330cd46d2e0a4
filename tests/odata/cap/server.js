// Plays the gateway in front of the service: CSRF tokens bound to a session cookie, tokens that wear out, a metadata
// document that is not for everyone. `POST /control` changes how it behaves and empties the tables; `GET /control`
// tells what is in them.
const crypto = require("node:crypto");
const http = require("node:http");
const cds = require("@sap/cds");
const express = require("express");
const cov2ap = require("@cap-js-community/odata-v2-adapter");

const COOKIE = "SAP_SESSIONID_TST_100";
const DEFAULTS = {
  csrf: true, // modifying requests need a token
  expire_after: 0, // uses of one token; 0: it stays
  head: true, // false: HEAD is refused
  root: true, // false: the service root gives no token
  metadata: 200, // status of $metadata
  forbid: false, // every modifying request is refused, and not because of its token
  sessions: true, // false: a new session with every request
};
const INSIDE = crypto.randomUUID(); // what the V2 adapter sends on to V4 was let in before
let rules = { ...DEFAULTS };
let sessions = new Map();
let seen = { fetches: 0, writes: 0, refused: 0, last: {} };

const cookieOf = (request) =>
  (request.headers.cookie || "")
    .split(/;\s*/)
    .map((part) => part.split("="))
    .find(([name]) => name === COOKIE)?.[1];

function refuse(response) {
  seen.refused += 1;
  response.set("X-CSRF-Token", "Required").status(403).type("text/plain").send("CSRF token validation failed");
}

function give(request, response) {
  const id = crypto.randomUUID();
  const session = { token: crypto.randomBytes(12).toString("base64url"), uses: 0 };
  sessions.set(id, session);
  seen.fetches += 1;
  response.set("X-CSRF-Token", session.token);
  response.append("Set-Cookie", `${COOKIE}=${id}; path=/; HttpOnly`);
}

function gate(request, response, next) {
  if (request.headers["x-inside"] === INSIDE) return next();
  delete request.headers["x-inside"];
  const root = /^\/odata\/v[24]\/shop\/?$/.test(request.path);
  if (request.path.endsWith("/$metadata") && rules.metadata !== 200) return response.status(rules.metadata).send();
  if (request.method === "HEAD" && !rules.head) return response.status(405).send();
  if (request.method === "HEAD" || request.method === "GET") {
    const asked = (request.headers["x-csrf-token"] || "").toLowerCase() === "fetch";
    if (asked && (rules.root || !root)) give(request, response);
    if (request.method === "HEAD" && root) return response.status(200).send();
    request.headers["x-inside"] = INSIDE;
    return next();
  }
  seen.writes += 1;
  seen.last = { method: request.method, url: request.originalUrl, headers: { ...request.headers } };
  if (rules.forbid) return response.status(403).json({ error: { code: "NOT_YOURS", message: "No authorization for Orders." } });
  if (rules.csrf) {
    const session = rules.sessions ? sessions.get(cookieOf(request)) : undefined;
    if (!session || session.token !== request.headers["x-csrf-token"]) return refuse(response);
    if (rules.expire_after && session.uses >= rules.expire_after) {
      sessions.delete(cookieOf(request));
      return refuse(response);
    }
    session.uses += 1;
  }
  request.headers["x-inside"] = INSIDE;
  next();
}

async function tables() {
  const found = {};
  for (const name of ["Customers", "Orders", "Items", "Stocks", "Tickets"]) {
    found[name] = (await cds.run(`SELECT COUNT(*) AS n FROM shop_${name}`))[0].n;
  }
  const numbers = await cds.run("SELECT COUNT(DISTINCT number) AS n FROM shop_Orders");
  return { ...found, numbers: numbers[0].n, ...seen, sessions: sessions.size };
}

cds.on("bootstrap", (app) => {
  app.get("/control", async (_request, response) => response.json(await tables()));
  app.post("/control", express.json(), async (request, response) => {
    rules = { ...DEFAULTS, ...request.body };
    sessions = new Map();
    seen = { fetches: 0, writes: 0, refused: 0, last: {} };
    for (const name of ["Items", "Orders", "Customers", "Stocks", "Tickets"]) await cds.run(`DELETE FROM shop_${name}`);
    response.json(await tables());
  });
  app.use("/odata", (request, response, next) => {
    // `path` without the mount point would hide the version.
    const whole = Object.create(request, { path: { value: `/odata${request.path}` } });
    gate(whole, response, next);
  });
  app.use(cov2ap.singleton());
});

// Accept only connections from this machine.
const listen = http.Server.prototype.listen;
http.Server.prototype.listen = function (port, ...rest) {
  const done = rest.find((one) => typeof one === "function");
  return done ? listen.call(this, Number(port), "127.0.0.1", done) : listen.call(this, Number(port), "127.0.0.1");
};

module.exports = cds.server;
