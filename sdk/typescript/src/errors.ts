/**
 * Errors of the package. Match on the class or on `code`, never on the message.
 *
 * For the codes of the service, see its reference. The package itself uses these codes if there is no response from the
 * service: `connection_failed`, `timeout`, `bad_answer`, `not_configured`.
 */

/** The properties of an error. */
export interface Failure {
  code: string;
  message: string;
  status?: number;
  details?: Record<string, any>;
  requestId?: string | undefined;
  retryAfter?: number | undefined;
  cause?: unknown;
}

/** Base class of all failed calls. */
export class RowsmithError extends Error {
  /** Stable error code; see the reference of the service. */
  readonly code: string;
  /** The HTTP status, 0 without a response. */
  readonly status: number;
  /** Further information from the service. */
  readonly details: Record<string, any>;
  /** Quote this ID when you ask for help. */
  readonly requestId: string | undefined;
  /** Milliseconds that the server asks the client to wait. */
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

/** 400: the request cannot be parsed. */
export class InvalidRequest extends RowsmithError {}
/** 401: the key is missing, unknown, expired or revoked; see `details.reason`. */
export class Unauthenticated extends RowsmithError {}
/** 403: the key lacks a permission; see `details.needs`. */
export class Forbidden extends RowsmithError {}
/** 404: the object does not exist for this key. */
export class NotFound extends RowsmithError {}
/** 409: a name is taken, an object is in use, or a run has finished. */
export class Conflict extends RowsmithError {}
/** 412: the object has changed since it was read (see `ifMatch`). */
export class VersionConflict extends RowsmithError {}
/** 413: the body is larger than the service accepts. */
export class TooLarge extends RowsmithError {}
/** 429: too many requests, or the hourly row quota is used up (`quota_exceeded`). See `retryAfter`. */
export class RateLimited extends RowsmithError {}
/** 502 or 504: a database or an API behind a connection failed. */
export class TargetError extends RowsmithError {}
/** Any other 5xx error. Quote `requestId`. */
export class ServerError extends RowsmithError {}
/** The response did not come from the service: a proxy's HTML page, an incomplete document, or a redirect. */
export class BadAnswer extends RowsmithError {}

/** One error in a request: its path, code and message, and an optional hint. */
export interface Fault {
  path: string;
  code: string;
  message: string;
  hint?: string | null;
}

/** 422: the request is invalid. `fields` contains all errors. */
export class ValidationError extends RowsmithError {
  /** The errors of single fields; empty if the error does not concern single fields. */
  get fields(): Fault[] {
    return faultsOf(this.details);
  }
}

/** There was no response. `sent` says whether the request may have reached the service and been processed. */
export class ConnectionFailed extends RowsmithError {
  readonly sent: boolean;

  constructor(failure: Failure, sent: boolean) {
    super(failure);
    this.sent = sent;
  }
}

/** There was no complete response within the time limit. */
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

/** Return the error for a 4xx or 5xx response. `body` is its JSON; anything else results in `bad_answer`. */
export function refusal(
  status: number,
  body: unknown,
  requestId: string | undefined,
  retryAfter: number | undefined,
): RowsmithError {
  const about = isObject(body) ? body.error : undefined;
  if (!isObject(about) || typeof about.code !== "string") {
    const message = `The response has status ${status} and is not from the service: ${glimpse(body)}`;
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

/** Return the error for a configuration problem, which is thrown before anything is sent. */
export function notConfigured(message: string): RowsmithError {
  return new RowsmithError({ code: "not_configured", message });
}

function told(failure: Failure): string {
  const parts = [failure.code];
  if (failure.status) parts.push(`status ${failure.status}`);
  if (failure.requestId) parts.push(`request ${failure.requestId}`);
  const lines = [`${failure.message || "The call failed."} (${parts.join(", ")})`];
  for (const fault of faultsOf(failure.details)) {
    lines.push(`  ${fault.path || "request"}: ${fault.message}${fault.hint ? ` ${fault.hint}` : ""}`);
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
