/**
 * Client for Rowsmith: test data from one template, as rows, files, pushes into databases and APIs, and scenario runs.
 * Uses only `fetch`: Node 18 and newer, browsers, Deno, Bun.
 */

export { Rowsmith, type Requesting, type RowsmithOptions } from "./client.js";
export {
  BadAnswer,
  Conflict,
  ConnectionFailed,
  type Fault,
  Forbidden,
  InvalidRequest,
  NotFound,
  RateLimited,
  RowsmithError,
  ServerError,
  TargetError,
  Timeout,
  TooLarge,
  Unauthenticated,
  ValidationError,
  VersionConflict,
} from "./errors.js";
export { type End, Follower, type Following, type FollowingLog, type LogLine, type Progress } from "./follow.js";
export { type Head, type IfMatch, headOf } from "./head.js";
export { type Page, Pages } from "./pages.js";
export type { Calling, Changing, Creating } from "./resources/base.js";
export type { Content, Uploading } from "./resources/files.js";
export type { Which } from "./resources/templates.js";
export { ByteStream, type Row, RowStream } from "./streams.js";
export type * from "./types.js";
export { VERSION } from "./version.js";
