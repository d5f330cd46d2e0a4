/**
 * What goes wrong. Match on the class or on `code`, never on the message.
 *
 * Codes of the service stand in its reference. Codes that are made here, where the service did not answer:
 * `connection_failed`, `timeout`, `bad_answer`, `not_configured`.
 */

/** What a failure is made of. */
export interface Failure {
  code: string;
  message: string;
  status?: number;
  details?: Record<string, any>;
  requestId?: string | undefined;
  retryAfter?: number | undefined;
  cause?: unknown;
}

/** Every failure of a call. */
export class RowsmithError extends Error {
  /** Stable; the reference of the service lists all. */
  readonly code: string;
  /** The HTTP status, 0 where there was no answer. */
  readonly status: number;
  /** What the service tells beside the code. */
  readonly details: Record<string, any>;
  /** What to quote when asking for help. */
  readonly requestId: string | undefined;
  /** Milliseconds that the server asks to wait. */
  readonly retryAfter: number | undefined;

  constructor(failure: Failure) {
    super(told(failure), failure.cause === undefined ? undefined : { cause: failure.cause });
    this.name = new.target.name;
    this.code = failure.code;
    this.status = failure.status ?? 0;
    this.details = failure.details ?? {};
    this.requestId = failure.requestId;
    this.retryAfter = failure.retryAfter;
  }
}

/** 400: the request cannot be read. */
export class InvalidRequest extends RowsmithError {}
/** 401: no key, or one that is unknown, expired or revoked; `details.reason` says which. */
export class Unauthenticated extends RowsmithError {}
/** 403: the key may not do that; `details.needs` says what it lacks. */
export class Forbidden extends RowsmithError {}
/** 404: there is no such object for this key. */
export class NotFound extends RowsmithError {}
/** 409: a name is taken, an object is in use, a run has ended. */
export class Conflict extends RowsmithError {}
/** 412: the object has changed since it was read (see `ifMatch`). */
export class VersionConflict extends RowsmithError {}
/** 413: the body is larger than the service takes. */
export class TooLarge extends RowsmithError {}
/** 429: too many requests, or the rows of the hour are used up (`quota_exceeded`). See `retryAfter`. */
export class RateLimited extends RowsmithError {}
/** 502 and 504 of a database or an API behind a connection, as the service met it. */
export class TargetError extends RowsmithError {}
/** Any other 5xx. Quote `requestId`. */
export class ServerError extends RowsmithError {}
/** The answer is not one of the service: HTML of a proxy, half a document, a redirect. */
export class BadAnswer extends RowsmithError {}

/** One fault of a request: where it is, what is wrong, perhaps what was meant. */
export interface Fault {
  path: string;
  code: string;
  message: string;
  hint?: string | null;
}

/** 422: the request has faults. `fields` has all of them. */
export class ValidationError extends RowsmithError {
  /** The faults; empty where the refusal is not about single fields. */
  get fields(): Fault[] {
    return faultsOf(this.details);
  }
}

/** No answer. `sent` says whether the request may have reached the service and have been carried out. */
export class ConnectionFailed extends RowsmithError {
  readonly sent: boolean;

  constructor(failure: Failure, sent: boolean) {
    super(failure);
    this.sent = sent;
  }
}

/** No answer, or no end of it, in the time given. */
export class Timeout extends ConnectionFailed {}

const BY_STATUS: Record<number, new (failure: Failure) => RowsmithError> = {
  400: InvalidRequest,
  401: Unauthenticated,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  412: VersionConflict,
  413: TooLarge,
  422: ValidationError,
  429: RateLimited,
};
const TARGET_CODES = ["target_failed", "token_request_failed", "csrf_failed", "target_timeout"];
const OF_PROXIES_TOO = [401, 403, 404, 413, 429];

/** The error for an answer of 4xx or 5xx; `body` is its JSON, anything else makes `bad_answer`. */
export function refusal(
  status: number,
  body: unknown,
  requestId: string | undefined,
  retryAfter: number | undefined,
): RowsmithError {
  const about = isObject(body) ? body.error : undefined;
  if (!isObject(about) || typeof about.code !== "string") {
    const message = `The answer has status ${status} and is not the service's: ${glimpse(body)}`;
    const kind = (OF_PROXIES_TOO.includes(status) && BY_STATUS[status]) || BadAnswer;
    return new kind({ code: "bad_answer", message, status, requestId, retryAfter });
  }
  const details = isObject(about.details) ? about.details : {};
  const kind = TARGET_CODES.includes(about.code)
    ? TargetError
    : (BY_STATUS[status] ?? (status >= 500 ? ServerError : RowsmithError));
  const message = String(about.message ?? "");
  return new kind({
    code: about.code,
    message,
    status,
    details,
    requestId: requestId ?? details.request_id,
    retryAfter,
  });
}

/** What is thrown before anything is sent. */
export function notConfigured(message: string): RowsmithError {
  return new RowsmithError({ code: "not_configured", message });
}

function told(failure: Failure): string {
  const parts = [failure.code];
  if (failure.status) parts.push(`status ${failure.status}`);
  if (failure.requestId) parts.push(`request ${failure.requestId}`);
  const lines = [`${failure.message || "The call failed."} (${parts.join(", ")})`];
  for (const fault of faultsOf(failure.details)) {
    lines.push(`  ${fault.path || "the whole"}: ${fault.message}${fault.hint ? ` ${fault.hint}` : ""}`);
  }
  return lines.join("\n");
}

function faultsOf(details: Record<string, any> | undefined): Fault[] {
  const found = details?.fields;
  return Array.isArray(found) ? found.filter(isObject).map((one) => one as unknown as Fault) : [];
}

function isObject(value: unknown): value is Record<string, any> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function glimpse(body: unknown): string {
  const text = (typeof body === "string" ? body : (JSON.stringify(body) ?? "")).split(/\s+/).join(" ").trim();
  return text ? JSON.stringify(text.slice(0, 100)) : "empty";
}
