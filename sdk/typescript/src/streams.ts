/** Streams of rows and files, read in pieces and resumed after a broken connection. */

import { BadAnswer, ConnectionFailed, VersionConflict } from "./errors.js";
import { type Answer, joined } from "./wire/answer.js";
import { rowsOf } from "./wire/events.js";
import type { Retries } from "./wire/retry.js";

/** A row: its values by field name. */
export type Row = Record<string, any>;

/** Requests rows again, with these keys of the request changed. */
export type AskRows = (changes: Record<string, unknown>) => Promise<Answer>;

/** The input of a row stream. */
export interface RowSource {
  ask: AskRows;
  offset: number;
  /** The total number of rows; undefined if it is unknown. */
  total: () => Promise<number | undefined>;
  retries: Retries;
  signal: AbortSignal | undefined;
}

/**
 * An iterator over rows (`for await`), in constant memory. Iterate it once.
 *
 * After a broken connection the missing rows are requested with the same seed and time, since a row's values depend on
 * nothing else. `seed`, `now` and `version` are known with the first row.
 */
export class RowStream<T extends object = Row> implements AsyncIterableIterator<T> {
  seed: string | undefined;
  now: string | undefined;
  version: string | undefined;
  /** Number of rows received so far. */
  seen = 0;
  readonly #source: RowSource;
  readonly #rows: AsyncGenerator<T, void, undefined>;
  #pins: string | undefined;

  constructor(source: RowSource) {
    this.#source = source;
    this.#rows = this.#all();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T, void>> {
    return this.#rows.next();
  }

  /** Stop reading and discard the rest. `break` in a loop does the same. */
  return(): Promise<IteratorResult<T, void>> {
    return this.#rows.return();
  }

  async *#all(): AsyncGenerator<T, void, undefined> {
    const { ask, retries, offset, signal } = this.#source;
    let changes: Record<string, unknown> = {};
    for (let attempt = 0; ; attempt++) {
      let wait: number | undefined;
      let total: number | undefined;
      let answer: Answer | undefined;
      try {
        answer = await ask(changes);
        this.#remember(answer);
        for await (const lines of rowsOf(answer.pieces())) {
          attempt = 0;
          for (const line of lines) {
            const row = rowOf<T>(line, answer);
            this.seen += 1;
            yield row;
          }
        }
        return;
      } catch (error) {
        if (!(error instanceof ConnectionFailed)) throw error;
        wait = retries.wait(attempt, error, true);
        total = wait === undefined ? undefined : await this.#source.total();
        if (wait === undefined || total === undefined) throw error;
      } finally {
        answer?.close();
      }
      if (this.seen >= total) return; // everything except the end of the response had arrived
      changes = { seed: this.seed, now: this.now, offset: offset + this.seen, count: total - this.seen };
      await retries.sleep(wait, signal);
    }
  }

  #remember({ headers, requestId }: Answer): void {
    const pins = ["x-template-version", "x-vocabulary", "x-engine"].map((name) => headers.get(name)).join("\n");
    if (this.#pins !== undefined && pins !== this.#pins) {
      const message = "The template was changed while its rows were read. Start again.";
      throw new VersionConflict({ code: "version_conflict", message, status: 412, requestId });
    }
    this.#pins = pins;
    this.seed = headers.get("x-seed") ?? undefined;
    this.now = headers.get("x-now") ?? undefined;
    this.version = headers.get("x-template-version") ?? undefined;
  }
}

function rowOf<T>(line: string, answer: Answer): T {
  try {
    return JSON.parse(line);
  } catch {
    const message = "The response is not from the service. A line is not valid JSON.";
    throw new BadAnswer({ code: "bad_answer", message, status: answer.status, requestId: answer.requestId });
  }
}

/** Opens a file, with headers that can request the rest of it. */
export type OpenFile = (headers: Record<string, string>) => Promise<Answer>;

/**
 * A file that is streamed in pieces (`for await`). Read it to the end or `cancel()` it.
 *
 * After a broken connection the rest is requested if the response supports ranges (RFC 9110, 14). If rows were
 * generated, `seed`, `now` and `version` reproduce the same bytes.
 */
export class ByteStream implements AsyncIterable<Uint8Array> {
  readonly headers: Headers;
  readonly seed: string | undefined;
  readonly now: string | undefined;
  readonly version: string | undefined;
  #answer: Answer;
  readonly #open: OpenFile;
  readonly #retries: Retries;
  readonly #signal: AbortSignal | undefined;

  private constructor(answer: Answer, open: OpenFile, retries: Retries, signal: AbortSignal | undefined) {
    this.#answer = answer;
    this.#open = open;
    this.#retries = retries;
    this.#signal = signal;
    this.headers = answer.headers;
    this.seed = answer.headers.get("x-seed") ?? undefined;
    this.now = answer.headers.get("x-now") ?? undefined;
    this.version = answer.headers.get("x-template-version") ?? undefined;
  }

  /** @internal */
  static async of(open: OpenFile, retries: Retries, signal: AbortSignal | undefined): Promise<ByteStream> {
    return new ByteStream(await open({}), open, retries, signal);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    const tag = this.headers.get("etag") ?? "";
    const inParts = this.headers.get("accept-ranges") === "bytes" && tag.startsWith('"');
    let seen = 0;
    for (let attempt = 0; ; attempt++) {
      try {
        for await (const piece of this.#answer.pieces()) {
          seen += piece.byteLength;
          attempt = 0;
          yield piece;
        }
        return;
      } catch (error) {
        if (!(error instanceof ConnectionFailed) || !inParts) throw error;
        const wait = this.#retries.wait(attempt, error, true);
        if (wait === undefined) throw error;
        await this.#retries.sleep(wait, this.#signal);
      } finally {
        this.#answer.close();
      }
      this.#answer = await this.#rest(seen, tag);
    }
  }

  /** Return the whole content. */
  async bytes(): Promise<Uint8Array> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this) pieces.push(piece);
    return joined(pieces);
  }

  /** Return the whole content as text. */
  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes());
  }

  /** Return a platform stream, for `Response`, `pipeTo`, `Readable.fromWeb` and others. */
  readable(): ReadableStream<Uint8Array> {
    const pieces = this[Symbol.asyncIterator]();
    return new ReadableStream<Uint8Array>({
      async pull(controller) {
        const piece = await pieces.next();
        if (piece.done) controller.close();
        else controller.enqueue(piece.value);
      },
      cancel: async () => {
        this.cancel();
        await pieces.return();
      },
    });
  }

  /** Stop reading and discard the rest. */
  cancel(): void {
    this.#answer.close();
  }

  async #rest(seen: number, tag: string): Promise<Answer> {
    if (seen === 0) return this.#open({});
    const answer = await this.#open({ Range: `bytes=${seen}-`, "If-Range": tag });
    if (answer.status === 206) return answer;
    answer.close();
    const message = "The file was replaced while it was read. Start again.";
    throw new VersionConflict({ code: "version_conflict", message, status: 412, requestId: answer.requestId });
  }
}
