/** When a call is made once more, and after how long. All times in milliseconds. */

import { ConnectionFailed, type RowsmithError } from "../errors.js";

const FIRST_WAIT = 500;
const MOST_WAIT = 8_000;
/** It will not be understood the next time either. */
const NEVER = [501];
/** The service refuses so before it acts. */
const UNTOUCHED = [429, 503];
/** Our own first attempt is still at work. */
const IN_PROGRESS = "idempotency_in_progress";

/** Waits, unless the signal is aborted: then it throws the signal's reason. */
export type Sleep = (milliseconds: number, signal?: AbortSignal) => Promise<void>;

/**
 * At most `times` more attempts after 429, 5xx and failed connections.
 *
 * The waits double from 0.5 s to 8 s, a quarter more or less by chance. A longer Retry-After of the server wins; if
 * it asks for more than `longestWait`, the failure is thrown at once, with its `retryAfter`, and the program decides.
 */
export class Retries {
  constructor(
    readonly times = 4,
    readonly longestWait = 60_000,
    readonly sleep: Sleep = asleep,
    readonly chance: () => number = Math.random,
  ) {}

  /**
   * Milliseconds until the next attempt after attempt number `attempt` (from 0) failed so; undefined: no more.
   * `repeatable`: carrying the request out twice does no harm.
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

/** What a Retry-After header asks for (RFC 9110, 10.2.3); undefined where it says nothing. */
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
