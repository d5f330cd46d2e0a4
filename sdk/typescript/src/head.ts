/** The headers of the response that contained an object, stored outside of the object. */

import { notConfigured } from "./errors.js";

/** Status and headers of a response. */
export interface Head {
  status: number;
  /** Names in lowercase. */
  headers: Record<string, string>;
  /** The ETag of the object, for `ifMatch`. */
  etag: string | undefined;
  requestId: string | undefined;
  /** Whether the request had already been processed with the same Idempotency-Key. */
  replayed: boolean;
}

/** An ETag, or an object as it was read: act only if the object has not changed. */
export type IfMatch = string | object;

const HEADS = new WeakMap<object, Head>();

/** Return the headers of the response that contained `object`; undefined for a copy or a list item. */
export function headOf(object: object): Head | undefined {
  return HEADS.get(object);
}

/** Store the headers of a response and return the response. */
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

/** Return the header for `ifMatch`. Throws for an object without an ETag. */
export function ifMatchHeader(given: IfMatch | undefined): Record<string, string> {
  if (given === undefined) return {};
  const tag = typeof given === "string" ? given : headOf(given)?.etag;
  if (!tag) throw notConfigured("ifMatch: this object came without an ETag; read it with get() first.");
  return { "If-Match": tag };
}
