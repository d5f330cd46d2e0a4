/** The head of the answer that an object came in, remembered beside the object. */

import { notConfigured } from "./errors.js";

/** What stood before the body of an answer. */
export interface Head {
  status: number;
  /** Names in small letters. */
  headers: Record<string, string>;
  /** The name of the object's state, for `ifMatch`. */
  etag: string | undefined;
  requestId: string | undefined;
  /** Whether the request had been carried out before, under the same Idempotency-Key. */
  replayed: boolean;
}

/** An ETag, or an object as it was read: act only if it is still so. */
export type IfMatch = string | object;

const HEADS = new WeakMap<object, Head>();

/** The head of the answer that `object` is; undefined for a copy, or an item of a list. */
export function headOf(object: object): Head | undefined {
  return HEADS.get(object);
}

/** Note the head of an answer; gives the answer back. */
export function remember(answer: unknown, status: number, headers: Headers): unknown {
  if (typeof answer === "object" && answer !== null) HEADS.set(answer, read(status, headers));
  return answer;
}

function read(status: number, given: Headers): Head {
  const headers: Record<string, string> = {};
  given.forEach((value, name) => (headers[name] = value));
  return {
    status,
    headers,
    etag: headers.etag,
    requestId: headers["x-request-id"],
    replayed: headers["idempotent-replayed"] === "true",
  };
}

/** The header for `ifMatch`. Throws for an object that came without an ETag. */
export function ifMatchHeader(given: IfMatch | undefined): Record<string, string> {
  if (given === undefined) return {};
  const tag = typeof given === "string" ? given : headOf(given)?.etag;
  if (!tag) throw notConfigured("ifMatch: this object came without an ETag; read it with get() first.");
  return { "If-Match": tag };
}
