/** A response: its headers, and a body that is read in pieces and checked for completeness. */

import { BadAnswer, ConnectionFailed, Timeout } from "../errors.js";

/** Conditions that end an attempt early: silence of the server, or the caller's signal. */
export class Watch {
  readonly #controller = new AbortController();
  readonly #silence: number;
  readonly #given: AbortSignal | undefined;
  readonly #stop = () => this.#controller.abort(this.#given?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #late = false;

  /** `silence`: milliseconds of each wait for the server. */
  constructor(silence: number, given: AbortSignal | undefined) {
    this.#silence = silence;
    this.#given = given;
    if (given?.aborted) this.#stop();
    given?.addEventListener("abort", this.#stop, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Wait for the server. Throws the error that `failed` returns for a failure. */
  async over<T>(waited: () => Promise<T>, told: string, requestId?: string): Promise<T> {
    const seconds = this.#silence / 1000;
    // Timers accept at most 2**31 - 1 ms; a longer one would fire immediately.
    this.#timer = setTimeout(() => this.#ring(), Math.min(this.#silence, 2 ** 31 - 1));
    try {
      return await waited();
    } catch (cause) {
      if (this.#given?.aborted) throw this.#given.reason;
      if (this.#late) {
        throw new Timeout({ code: "timeout", message: `${told}: no data for ${seconds} s.`, requestId }, true);
      }
      const message = `${told}: ${reasonOf(cause)}`;
      throw new ConnectionFailed({ code: "connection_failed", message, requestId, cause }, mayHaveArrived(cause));
    } finally {
      clearTimeout(this.#timer);
    }
  }

  /** Release the connection, if the response was not read to its end, and the caller's signal. */
  end(whole: boolean): void {
    clearTimeout(this.#timer);
    this.#given?.removeEventListener("abort", this.#stop);
    if (!whole) this.#controller.abort();
  }

  #ring(): void {
    this.#late = true;
    this.#controller.abort();
  }
}

/** The response to a request. Read it to the end or close it. */
export class Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly requestId: string | undefined;
  readonly #response: Response;
  readonly #watch: Watch;
  #done = false;

  constructor(response: Response, watch: Watch) {
    this.#response = response;
    this.#watch = watch;
    this.status = response.status;
    this.headers = response.headers;
    this.requestId = response.headers.get("x-request-id") ?? undefined;
  }

  /** The body as it arrives. Throws ConnectionFailed if it ends early, Timeout if nothing arrives. */
  async *pieces(): AsyncGenerator<Uint8Array, void, undefined> {
    if (this.#done) return;
    const reader = this.#response.body?.getReader();
    let seen = 0;
    try {
      while (reader) {
        const piece = await this.#watch.over(() => reader.read(), "The connection was lost during the response", this.requestId);
        if (piece.done) break;
        seen += piece.value.byteLength;
        yield piece.value;
      }
      this.#checkLength(seen);
      this.#end(true);
    } finally {
      this.#end(false);
    }
  }

  /** Return the whole body. */
  async bytes(): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.pieces()) pieces.push(piece);
    return joined(pieces);
  }

  /** Return the whole body as text. */
  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes());
  }

  /** Parse the body as JSON. Throws BadAnswer if it is not JSON. */
  async json(): Promise<unknown> {
    const kind = this.kind;
    const text = await this.text();
    if (kind !== "application/json" && !kind.endsWith("+json")) {
      throw this.#bad(`It is ${kind || "of no type"}, not JSON.`);
    }
    try {
      return JSON.parse(text);
    } catch {
      throw this.#bad("It is not a complete JSON document.");
    }
  }

  /** The media type of the body, without parameters. */
  get kind(): string {
    return (this.headers.get("content-type") ?? "").split(";")[0]!.trim().toLowerCase();
  }

  /** Release the connection, even if the body was not read completely. */
  close(): void {
    this.#end(false);
  }

  #end(whole: boolean): void {
    if (!this.#done) this.#watch.end(whole);
    this.#done = true;
  }

  #checkLength(seen: number): void {
    const told = this.headers.get("content-length");
    // fetch decompresses a compressed body, but its length is that of the compressed one.
    if (told === null || this.headers.has("content-encoding") || !this.#response.body) return;
    if (seen < Number(told)) {
      const message = `The connection was lost during the response: ${seen} of ${told} bytes.`;
      throw new ConnectionFailed({ code: "connection_failed", message, requestId: this.requestId }, true);
    }
  }

  #bad(why: string): BadAnswer {
    const message = `The response is not from the service. ${why}`;
    return new BadAnswer({ code: "bad_answer", message, status: this.status, requestId: this.requestId });
  }
}

/** Concatenate pieces. */
export function joined(pieces: Uint8Array[]): Uint8Array {
  if (pieces.length === 1) return pieces[0]!;
  const whole = new Uint8Array(pieces.reduce((size, piece) => size + piece.byteLength, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole;
}

/** Errors of connections that could not be opened, as Node and Bun name them. */
const NEVER_MADE = [
  "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT",
  "ConnectionRefused", "DEPTH_ZERO_SELF_SIGNED_CERT", "SELF_SIGNED_CERT_IN_CHAIN",
];
const OF_TLS = /^(CERT_|UNABLE_TO_|ERR_TLS_)/;

function mayHaveArrived(error: unknown): boolean {
  const codes = chain(error).map((one) => one.code);
  return !codes.some((code) => NEVER_MADE.includes(code) || OF_TLS.test(String(code)));
}

function reasonOf(error: unknown): string {
  const told = chain(error)
    .map((one) => String(one.message || one.code || ""))
    .filter(Boolean);
  return [...new Set(told)].join(": ") || String(error);
}

/** Yield an error and its causes. For several attempts (of addresses), only the first. */
function chain(error: any): any[] {
  const found = [];
  for (let one = error; one && typeof one === "object" && found.length < 6; one = one.cause ?? one.errors?.[0]) {
    found.push(one);
  }
  return found;
}
