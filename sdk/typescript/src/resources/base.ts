/** How a resource speaks: what all of them share. */

import {
  Follower,
  type Following,
  type FollowingLog,
  type LogLine,
  type OpenEvents,
  type Progress,
  logLine,
  progress,
} from "../follow.js";
import { type IfMatch, ifMatchHeader } from "../head.js";
import { type Page, Pages } from "../pages.js";
import { ByteStream } from "../streams.js";
import type { Parts } from "../wire/address.js";
import type { Call, Caller } from "../wire/caller.js";
import { Retries } from "../wire/retry.js";

/** How any call is made. */
export interface Calling {
  /** Stops the call, its waits included: it throws the signal's reason. */
  signal?: AbortSignal;
  /** Milliseconds of each wait for the service, in place of the client's. */
  timeout?: number;
}

/** How something is made or started. */
export interface Creating extends Calling {
  /** A key of your own: within 24 hours the call acts once under it. One is made where none is given. */
  idempotencyKey?: string;
}

/** How something is changed. */
export interface Changing extends Calling {
  /** An ETag, or the object as it was read: act only if it is still so, else throw VersionConflict. */
  ifMatch?: IfMatch;
}

/** The follower itself comes again after a break. */
const ONCE = new Retries(0);

/** One kind of object, spoken to by one `Caller`. */
export class Resource {
  /** @internal */
  protected readonly caller: Caller;

  /** @internal */
  constructor(caller: Caller) {
    this.caller = caller;
  }

  /** @internal */
  protected get_(path: string, parts: Parts, how: Calling = {}, query?: object): Promise<any> {
    return this.caller.json("GET", path, { parts, query, ...calling(how) });
  }

  /** @internal */
  protected list_<T>(path: string, parts: Parts, query: object = {}, how: Calling = {}): Pages<T> {
    const fetch = (asked: object): Promise<Page<T>> => this.get_(path, parts, how, asked);
    return new Pages<T>(fetch, query);
  }

  /** A POST that makes or starts something: done once, however often it is sent. @internal */
  protected make_(path: string, parts: Parts, json: unknown, how: Creating = {}): Promise<any> {
    const idempotencyKey = how.idempotencyKey ?? true;
    return this.caller.json("POST", path, { parts, json, idempotencyKey, ...calling(how) });
  }

  /** A POST that takes no Idempotency-Key, mostly because to send it twice does no harm. @internal */
  protected ask_(path: string, parts: Parts, json: unknown, how: Changing = {}, repeatable = true): Promise<any> {
    return this.caller.json("POST", path, { parts, json, repeatable, headers: tag(how), ...calling(how) });
  }

  /** @internal */
  protected change_(method: "PATCH" | "PUT" | "DELETE", path: string, parts: Parts, json: unknown, how: Changing = {}) {
    return this.caller.json(method, path, { parts, json, headers: tag(how), ...calling(how) });
  }

  /** @internal */
  protected delete_(path: string, parts: Parts, how: Changing = {}, query: object = {}): Promise<any> {
    const headers = tag(how);
    return this.caller.json("DELETE", path, { parts, query: query as Call["query"], headers, ...calling(how) });
  }

  /** @internal */
  protected file_(path: string, parts: Parts, how: Calling = {}, query: object = {}): Promise<ByteStream> {
    const open = (headers: Record<string, string>) =>
      this.caller.open("GET", path, { parts, headers, query: query as Call["query"], ...calling(how) });
    return ByteStream.of(open, this.caller.retries, how.signal);
  }

  /** @internal */
  protected progress_(path: string, parts: Parts, how: Following = {}): Follower<Progress> {
    return new Follower(this.#events(path, { parts }, how), progress, this.caller.retries.sleep, how);
  }

  /** @internal */
  protected log_(path: string, parts: Parts, how: FollowingLog = {}): Follower<LogLine> {
    const open = this.#events(path, { parts, query: { follow: true } }, how);
    return new Follower(open, logLine, this.caller.retries.sleep, how, how.after ? String(how.after) : "");
  }

  #events(path: string, call: Call, how: Following): OpenEvents {
    return (lastId, timeout) => {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      if (lastId) headers["Last-Event-ID"] = lastId;
      return this.caller.open("GET", path, { ...call, headers, timeout, signal: how.signal, retries: ONCE });
    };
  }
}

/** What of the options is for the call itself. */
export function calling(how: Calling): Pick<Call, "signal" | "timeout"> {
  return { signal: how.signal, timeout: how.timeout };
}

/** The header for `ifMatch`. */
export function tag(how: Changing): Record<string, string> {
  return ifMatchHeader(how.ifMatch);
}
