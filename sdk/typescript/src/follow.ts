/** Following long work by server-sent events, across breaks of the connection, to its end. Times in milliseconds. */

import { ConnectionFailed, RowsmithError, Timeout } from "./errors.js";
import type { Answer } from "./wire/answer.js";
import { type Event, eventsOf } from "./wire/events.js";
import type { Sleep } from "./wire/retry.js";

/** Three of the comments that the service sends into a silent stream: more silence is a dead connection. */
const SILENCE = 45_000;
/** How long a follower tries to come back before it gives up. */
const PATIENCE = 120_000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

/** A line of a log, numbered from 1. */
export interface LogLine {
  number: number;
  text: string;
}

/** What the service tells of the end: `status`, and for runs `exit_code`. */
export interface End {
  status: string;
  exit_code?: number | null;
  [other: string]: unknown;
}

/** Counts and state of work while it goes on. */
export type Progress = Record<string, any>;

/** How to follow. */
export interface Following {
  /** Stops it: the follower throws the signal's reason. */
  signal?: AbortSignal;
  /** Milliseconds after which Timeout is thrown if the work has not ended. */
  timeout?: number;
}

/** How to follow a log. */
export interface FollowingLog extends Following {
  /** The lines after this number alone. */
  after?: number;
}

/** Opens the stream after an event's id ("" for all), with a limit of silence. */
export type OpenEvents = (lastId: string, silence: number) => Promise<Answer>;

/**
 * What is told of a piece of work while it goes on. Iterate it once (`for await`); it ends when the work has ended.
 *
 * Afterwards `end` is what the service told of the end. A connection that breaks is made again and goes on after the
 * last event that came, so that nothing is missed and nothing comes twice. After two minutes without a connection
 * the failure is thrown.
 */
export class Follower<T> implements AsyncIterableIterator<T> {
  /** What was told of the end; undefined before it. */
  end: End | undefined;
  /** The id of the last event that came. */
  lastId: string;
  readonly #open: OpenEvents;
  readonly #madeOf: (event: Event) => T;
  readonly #sleep: Sleep;
  readonly #how: Following;
  readonly #deadline: number;
  readonly #all: AsyncGenerator<T, void, undefined>;

  constructor(open: OpenEvents, madeOf: (event: Event) => T, sleep: Sleep, how: Following = {}, after = "") {
    this.#open = open;
    this.#madeOf = madeOf;
    this.#sleep = sleep;
    this.#how = how;
    this.#deadline = Date.now() + (how.timeout ?? Infinity);
    this.lastId = after;
    this.#all = this.#events();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<T, void>> {
    return this.#all.next();
  }

  /** Stops following; `break` in a loop does it too. */
  return(): Promise<IteratorResult<T, void>> {
    return this.#all.return();
  }

  /** Reads on to the end, and gives what was told of it. */
  async wait(): Promise<End> {
    for await (const _ of this);
    return this.end ?? { status: "unknown" };
  }

  async *#events(): AsyncGenerator<T, void, undefined> {
    let connected = Date.now();
    let wait = FIRST_WAIT;
    for (;;) {
      let answer: Answer | undefined;
      try {
        answer = await this.#open(this.lastId, this.#silence());
        connected = Date.now();
        for await (const event of eventsOf(answer.pieces(), this.lastId)) {
          wait = FIRST_WAIT;
          this.lastId = event.id;
          if (event.name === "end") {
            this.end = JSON.parse(event.data);
            return;
          }
          yield this.#madeOf(event);
          connected = Date.now();
        }
        connected = Date.now(); // a stream that is closed in good order: the service asks to come again
      } catch (error) {
        if (!isWorthAnother(error) || Date.now() - connected > PATIENCE) throw error;
        wait = Math.max(wait, error.retryAfter ?? 0);
      } finally {
        answer?.close();
      }
      this.#inTime(wait);
      await this.#sleep(wait, this.#how.signal);
      wait = Math.min(wait * 2, LONGEST_WAIT);
    }
  }

  #silence(): number {
    this.#inTime(0);
    return Math.min(SILENCE, this.#deadline - Date.now());
  }

  #inTime(wait: number): void {
    if (Date.now() + wait < this.#deadline) return;
    const message = `It had not ended after ${(this.#how.timeout ?? 0) / 1000} s.`;
    throw new Timeout({ code: "timeout", message }, true);
  }
}

/** A line from its event. */
export function logLine(event: Event): LogLine {
  return { number: /^\d+$/.test(event.id) ? Number(event.id) : 0, text: event.data };
}

/** The counts from an event of progress. */
export function progress(event: Event): Progress {
  return JSON.parse(event.data);
}

function isWorthAnother(error: unknown): error is RowsmithError {
  if (!(error instanceof RowsmithError)) return false;
  return error instanceof ConnectionFailed || error.status === 429 || error.status >= 500;
}
