/** A single call: a request with its attempts, and the response or the error. */

import { BadAnswer, ConnectionFailed, RowsmithError, notConfigured, refusal } from "../errors.js";
import { remember } from "../head.js";
import { VERSION } from "../version.js";
import { type Parts, pathOf, queryOf } from "./address.js";
import { Answer, Watch } from "./answer.js";
import { Retries, retryAfterOf } from "./retry.js";

/** RFC 9110, 9.2.2. */
const SAFE_TWICE = ["GET", "HEAD", "PUT", "DELETE"];

/** The request and its options. */
export interface Call {
  parts?: Parts;
  query?: object | undefined;
  /** A JSON body. */
  json?: unknown;
  /** Any other body that can be sent again. */
  body?: Blob | FormData;
  headers?: Record<string, string>;
  /** true: create an Idempotency-Key that is used for all attempts. */
  idempotencyKey?: string | boolean | undefined;
  /** The request is safe to repeat, if its method does not imply that. */
  repeatable?: boolean | undefined;
  /** Milliseconds of each wait for the server. */
  timeout?: number | undefined;
  signal?: AbortSignal | undefined;
  retries?: Retries;
}

/** Options of a caller. */
export interface Setup {
  base: string;
  headers: Record<string, string>;
  retries: Retries;
  timeout: number;
  totalTimeout: number | undefined;
  fetch: typeof globalThis.fetch;
}

/** Makes calls to one service with one credential. */
export class Caller {
  readonly base: string;
  readonly retries: Retries;
  readonly #headers: Record<string, string>;
  readonly #timeout: number;
  readonly #totalTimeout: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor(setup: Setup) {
    this.base = setup.base;
    this.retries = setup.retries;
    this.#timeout = setup.timeout;
    this.#totalTimeout = setup.totalTimeout ?? Infinity;
    this.#fetch = setup.fetch;
    this.#headers = { ...agent(), ...setup.headers };
    for (const [name, value] of Object.entries(this.#headers)) {
      if (!/^[\x20-\x7e]*$/.test(value)) {
        throw notConfigured(`The value of the header ${name} contains characters that headers cannot contain.`);
      }
    }
  }

  /** Return the JSON of the response; undefined for 204. */
  json(method: string, path: string, call: Call = {}): Promise<any> {
    return this.#attempts(method, path, call, async (answer) => {
      if (answer.status === 204) return void (await answer.bytes());
      return remember(await answer.json(), answer.status, answer.headers);
    });
  }

  /** Return the text of the response. */
  text(method: string, path: string, call: Call = {}): Promise<string> {
    return this.#attempts(method, path, call, (answer) => answer.text());
  }

  /** Return the bytes of the response. */
  bytes(method: string, path: string, call: Call = {}): Promise<Uint8Array> {
    return this.#attempts(method, path, call, (answer) => answer.bytes());
  }

  /** Return the response before its body is read. Throws RowsmithError for every 4xx and 5xx response. */
  open(method: string, path: string, call: Call = {}): Promise<Answer> {
    return this.#attempts(method, path, call, async (answer) => answer);
  }

  async #attempts<T>(method: string, path: string, call: Call, read: (answer: Answer) => Promise<T>): Promise<T> {
    const url = this.base + pathOf(path, call.parts) + queryOf(call.query);
    const request = this.#request(method, call);
    const retries = call.retries ?? this.retries;
    const repeatable = call.repeatable ?? (SAFE_TWICE.includes(method) || Boolean(call.idempotencyKey));
    const begun = Date.now();
    for (let attempt = 0; ; attempt++) {
      const left = Math.max(1, this.#totalTimeout - (Date.now() - begun));
      const watch = new Watch(Math.min(call.timeout ?? this.#timeout, left), call.signal);
      let wait: number | undefined;
      try {
        return await read(await this.#sent(url, request, watch));
      } catch (error) {
        watch.end(false);
        if (!(error instanceof RowsmithError)) throw error;
        wait = retries.wait(attempt, error, repeatable);
        if (wait === undefined || Date.now() - begun + wait > this.#totalTimeout) throw error;
      }
      await retries.sleep(wait, call.signal);
    }
  }

  #request(method: string, call: Call): RequestInit {
    const headers: Record<string, string> = { ...this.#headers, ...call.headers };
    if (call.idempotencyKey) {
      headers["Idempotency-Key"] = call.idempotencyKey === true ? newKey() : call.idempotencyKey;
    }
    // A browser's cookies belong to a user's session, so only the key is sent. It is not sent to a redirect target.
    const request: RequestInit = { method, headers, redirect: "manual", credentials: "omit" };
    if (call.body !== undefined) request.body = call.body;
    else if (call.json !== undefined) {
      headers["Content-Type"] = "application/json";
      request.body = JSON.stringify(call.json);
    }
    return request;
  }

  async #sent(url: string, request: RequestInit, watch: Watch): Promise<Answer> {
    const fetch = this.#fetch;
    const sent = () => fetch(url, { ...request, signal: watch.signal });
    const answer = new Answer(await watch.over(sent, `${this.base} did not respond`), watch);
    if (answer.status >= 200 && answer.status < 300) return answer;
    throw await refused(answer);
  }
}

async function refused(answer: Answer): Promise<RowsmithError> {
  const { status, requestId } = answer;
  if (status < 400) {
    // Browsers report a redirect only as status 0.
    answer.close();
    const where = JSON.stringify(answer.headers.get("location") ?? "elsewhere");
    const message = `The response redirects to ${where}, and the key is not sent there. Use that address instead.`;
    return new BadAnswer({ code: "bad_answer", message, status, requestId });
  }
  const retryAfter = retryAfterOf(answer.headers.get("retry-after"));
  let body: unknown;
  try {
    body = await answer.json();
  } catch (error) {
    if (!(error instanceof RowsmithError)) throw error;
    body = error instanceof ConnectionFailed ? "half an answer" : answer.kind;
  }
  return refusal(status, body, requestId, retryAfter);
}

/**
 * Return 128 random bits. Does not use `randomUUID`, which browsers only have over https and Node 18 not under this
 * name.
 */
function newKey(): string {
  const bytes = new Uint8Array(16);
  if (globalThis.crypto?.getRandomValues) globalThis.crypto.getRandomValues(bytes);
  else for (let at = 0; at < bytes.length; at++) bytes[at] = Math.floor(Math.random() * 256);
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Browsers set their own User-Agent, and a custom one would need a CORS preflight. */
function agent(): Record<string, string> {
  const world = globalThis as Record<string, any>;
  if (typeof world.document !== "undefined" || typeof world.WorkerGlobalScope !== "undefined" && !world.Deno) {
    return {};
  }
  const node = world.process?.versions?.node;
  const runtime = world.Deno ? "deno" : world.Bun ? "bun" : node ? `node/${node}` : "other";
  return { "User-Agent": `rowsmith-typescript/${VERSION} ${runtime}` };
}
