/**
 * Following long work through server-sent events to its end, reconnecting when a connection breaks. Times are in
 * milliseconds.
 */

import { ConnectionFailed, RowsmithError, Timeout } from "./errors.js";
import type { Answer } from "./wire/answer.js";
import { type Event, eventsOf } from "./wire/events.js";
import type { Sleep } from "./wire/retry.js";

/**
 * Three intervals of the comments that the service sends into an idle stream. After a longer silence the connection
 * counts as broken.
 */
const SILENCE = 45_000;
/** How long a follower tries to reconnect before it gives up. */
const PATIENCE = 120_000;
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

/** A line of a log, numbered from 1. */
export interface LogLine {
  number: number;
  text: string;
}

/** The final event: `status`, and for runs `exit_code`. */
export interface End {
  status: string;
  exit_code?: number | null;
  [other: string]: unknown;
}

/** Counts and status of running work. */
export type Progress = Record<string, any>;

/** Options for following work. */
export interface Following {
  /** Stops following: the follower throws the signal's reason. */
  signal?: AbortSignal;
  /** Milliseconds after which Timeout is thrown if the work has not finished. */
  timeout?: number;
}

/** Options for following a log. */
export interface FollowingLog extends Following {
  /** Only lines after this number. */
  after?: number;
}

/** Opens the stream after an event's ID ("" for all), with a timeout for silence. */
export type OpenEvents = (lastId: string, silence: number) => Promise<Answer>;

/**
 * The events of running work. Iterate it once (`for await`); it ends when the work has finished.
 *
 * Afterwards `end` contains the final event. After a broken connection the follower reconnects and continues after the
 * last received event, so no event is missed or repeated. If it cannot reconnect within two minutes, the error is
 * thrown.
 */
export class Follower<T> implements AsyncIterableIterator<T> {
  /** The final event; undefined before it arrives. */
  end: End | undefined;
  /** The ID of the last received event. */
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

  /** Stop following. `break` in a loop does the same. */
  return(): Promise<IteratorResult<T, void>> {
    return this.#all.return();
  }

  /** Read to the end and return the final event. */
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
        connected = Date.now(); // the service closed the stream in an orderly way and expects the client to reconnect
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
    const message = `It did not finish within ${(this.#how.timeout ?? 0) / 1000} s.`;
    throw new Timeout({ code: "timeout", message }, true);
  }
}

/** Return the log line of an event. */
export function logLine(event: Event): LogLine {
  return { number: /^\d+$/.test(event.id) ? Number(event.id) : 0, text: event.data };
}

/** Return the counts of a progress event. */
export function progress(event: Event): Progress {
  return JSON.parse(event.data);
}

function isWorthAnother(error: unknown): error is RowsmithError {
  if (!(error instanceof RowsmithError)) return false;
  return error instanceof ConnectionFailed || error.status === 429 || error.status >= 500;
}
