// A server that returns configured responses and records requests.

import { createServer } from "node:http";
import { Readable } from "node:stream";

import { Rowsmith } from "@rowsmith/sdk";

export const KEY = "rws_test_secretsecretsecret";
export const GOOD = { id: "tpl_1", name: "T", version: 1, quantity: 6 };

/** A response. `cut` is where the connection is reset: "before" its headers or within its "body". */
export const answer = (status, body = {}, headers = {}, more = {}) => ({ status, body, headers, ...more });

export const refusal = (status, code, details = {}, headers = {}) =>
  answer(status, { error: { code, message: `It is ${code}.`, details } }, headers);

export class Target {
  seen = [];
  /** Resolves when the latest response has ended, on either side. */
  left;
  #rules = [];

  static async start(t) {
    const target = new Target();
    target.server = createServer((request, response) => target.#came(request, response));
    await new Promise((resolve) => target.server.listen(0, "127.0.0.1", resolve));
    target.url = `http://127.0.0.1:${target.server.address().port}`;
    t.after(() => {
      target.server.closeAllConnections();
      return new Promise((resolve) => target.server.close(resolve));
    });
    return target;
  }

  /** Respond in this order and repeat the last response. A response may be a function of the request. */
  on(...rules) {
    this.#rules = rules;
    return this;
  }

  async #came(request, response) {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const { method, url, headers } = request;
    const seen = { method, url, headers, body: Buffer.concat(pieces).toString() };
    this.seen.push(seen);
    const rule = this.#rules.length > 1 ? this.#rules.shift() : this.#rules[0];
    this.#answer(typeof rule === "function" ? rule(seen) : rule, request, response);
  }

  #answer({ status, body, headers, cut, silent, endless }, request, response) {
    this.left = new Promise((resolve) => response.once("close", resolve));
    if (silent) return;
    if (cut === "before") return void request.socket.resetAndDestroy();
    const raw = typeof body === "string" ? body : JSON.stringify(body);
    response.writeHead(status, { "Content-Type": "application/json", ...headers });
    if (endless) return void Readable.from(forever(raw)).pipe(response);
    if (cut !== "body") return void response.end(raw);
    response.flushHeaders();
    response.write(raw, () => request.socket.resetAndDestroy());
  }
}

function* forever(piece) {
  for (;;) yield piece;
}

/** Create a client of the target that records its delays instead of waiting. */
export function far(target, options = {}) {
  const waits = [];
  const sleep = async (milliseconds, signal) => {
    signal?.throwIfAborted();
    waits.push(milliseconds);
  };
  const client = new Rowsmith({ key: KEY, url: target.url, timeout: 5_000, sleep, ...options });
  return { client, waits };
}

/** Return whether each delay doubles, plus or minus a quarter. */
export function doubling(waits) {
  return waits.every((wait, at) => Math.abs(wait - 500 * 2 ** at) <= 500 * 2 ** at * 0.25 + 1);
}

export async function gathered(iterable) {
  const found = [];
  for await (const one of iterable) found.push(one);
  return found;
}
