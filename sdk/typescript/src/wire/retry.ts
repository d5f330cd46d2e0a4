/** When a call is retried, and after how long. All times are in milliseconds. */

import { ConnectionFailed, type RowsmithError } from "../errors.js";

const FIRST_WAIT = 500;
const MOST_WAIT = 8_000;
/** It would not be understood the next time either. */
const NEVER = [501];
/** The service rejects these requests before it acts. */
const UNTOUCHED = [429, 503];
/** The first attempt is still in progress. */
const IN_PROGRESS = "idempotency_in_progress";

/** Wait, unless the signal is aborted: then it throws the signal's reason. */
export type Sleep = (milliseconds: number, signal?: AbortSignal) => Promise<void>;

/**
 * Up to `times` retries after 429, 5xx and failed connections.
 *
 * The delay doubles from 0.5 s to 8 s, with a random variation of up to a quarter. A longer Retry-After of the server
 * takes precedence. If it exceeds `longestWait`, the error is thrown immediately with its `retryAfter`, and the caller
 * decides.
 */
export class Retries {
  constructor(
    readonly times = 4,
    readonly longestWait = 60_000,
    readonly sleep: Sleep = asleep,
    readonly chance: () => number = Math.random,
  ) {}

  /**
   * Return the milliseconds until the next attempt after attempt number `attempt` (from 0) failed, or undefined for no
   * retry. `repeatable`: the request is safe to repeat.
   */
  wait(attempt: number, error: RowsmithError, repeatable: boolean): number | undefined {
    if (attempt >= this.times || !worthAnother(error, repeatable)) return undefined;
    const backoff = Math.min(FIRST_WAIT * 2 ** attempt, MOST_WAIT) * (0.75 + this.chance() / 2);
    const asked = error.retryAfter ?? 0;
    return asked > this.longestWait ? undefined : Math.max(backoff, asked);
  }
}

function worthAnother(error: RowsmithError, repeatable: boolean): boolean {
  if (error instanceof ConnectionFailed) return repeatable || !error.sent;
  if (error.code === IN_PROGRESS || error.status === 429) return true;
  if (error.status < 500 || NEVER.includes(error.status)) return false;
  return repeatable || UNTOUCHED.includes(error.status);
}

/** Return the milliseconds of a Retry-After header (RFC 9110, 10.2.3), or undefined if it is missing or invalid. */
export function retryAfterOf(text: string | null, now = Date.now()): number | undefined {
  const told = text?.trim();
  if (!told) return undefined;
  if (/^\d+$/.test(told)) return Number(told) * 1000;
  const moment = Date.parse(told);
  return Number.isNaN(moment) ? undefined : Math.max(0, moment - now);
}

const asleep: Sleep = (milliseconds, signal) =>
  new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal?.addEventListener("abort", stop, { once: true });
  });
