/** Base classes of all resources. */

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

/** Options of every call. */
export interface Calling {
  /** Aborts the call including its waits: it throws the signal's reason. */
  signal?: AbortSignal;
  /** Timeout in milliseconds for each wait for the service, instead of the client's. */
  timeout?: number;
}

/** Options of calls that create or start something. */
export interface Creating extends Calling {
  /**
   * An Idempotency-Key: calls with the same key within 24 hours take effect once. If none is given, a new one is
   * created.
   */
  idempotencyKey?: string;
}

/** Options of calls that change something. */
export interface Changing extends Calling {
  /** An ETag, or the object as it was read. If the object has changed, the call throws VersionConflict. */
  ifMatch?: IfMatch;
}

/** The follower reconnects on its own. */
const ONCE = new Retries(0);

/** One kind of object, accessed through a `Caller`. */
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

  /** Send a POST that creates or starts something. It takes effect once, however often it is sent. @internal */
  protected make_(path: string, parts: Parts, json: unknown, how: Creating = {}): Promise<any> {
    const idempotencyKey = how.idempotencyKey ?? true;
    return this.caller.json("POST", path, { parts, json, idempotencyKey, ...calling(how) });
  }

  /** Send a POST without Idempotency-Key, usually because repeating it is harmless. @internal */
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

/** Return the options that concern the call itself. */
export function calling(how: Calling): Pick<Call, "signal" | "timeout"> {
  return { signal: how.signal, timeout: how.timeout };
}

/** Return the header for `ifMatch`. */
export function tag(how: Changing): Record<string, string> {
  return ifMatchHeader(how.ifMatch);
}
