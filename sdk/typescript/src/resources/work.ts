import type { Follower, Following, FollowingLog, LogLine, Progress } from "../follow.js";
import type { Pages } from "../pages.js";
import type { ByteStream } from "../streams.js";
import type * as types from "../types.js";
import { type Calling, type Changing, type Creating, Resource, calling } from "./base.js";

const EXPORT = "/exports/{export_id}";
const PUSH = "/pushes/{push_id}";

/** `client.exports`. Create an export with `client.templates.export` or `client.datasets.export`. */
export class Exports extends Resource {
  /** List the exports of the project, newest first. */
  list(
    query?: { q?: string; template_id?: string; dataset_id?: string; status?: string },
    how?: Calling,
  ): Pages<types.ExportOut> {
    return this.list_("/exports", {}, query, how);
  }

  /** Return the current state of an export. */
  get(id: string, how?: Calling): Promise<types.ExportOut> {
    return this.get_(EXPORT, { export_id: id }, how);
  }

  /** Cancel an export. Throws Conflict if it has finished. */
  cancel(id: string, how?: Changing): Promise<types.ExportOut> {
    return this.delete_(EXPORT, { export_id: id }, how);
  }

  /** Follow its counts whenever they change, until it finishes. */
  follow(id: string, how?: Following): Follower<Progress> {
    return this.progress_(`${EXPORT}/events`, { export_id: id }, how);
  }

  /** Wait until the export has finished and return it: check `status`. */
  async wait(id: string, how: Following = {}): Promise<types.ExportOut> {
    await this.follow(id, how).wait();
    return this.get(id, only(how));
  }

  /** Return its rows, and the size, checksum and URL of each part. An export without parts has one part. */
  manifest(id: string, how?: Calling): Promise<types.ManifestOut> {
    return this.get_(`${EXPORT}/manifest`, { export_id: id }, how);
  }

  /** Stream the file of one part; the first is 1. */
  part(id: string, number: number, how?: Calling): Promise<ByteStream> {
    return this.file_(`${EXPORT}/parts/{number}`, { export_id: id, number }, how);
  }

  /** Return its injected invalid cells, their kinds and the original values. Default: one object per line. */
  answers(id: string, how: Calling & { format?: "ndjson" | "csv" | "json" } = {}): Promise<ByteStream> {
    return this.file_(`${EXPORT}/answers`, { export_id: id }, how, { format: how.format ?? "ndjson" });
  }

  /** Create the missing parts of a failed or cancelled export: a new export that keeps the finished parts. */
  retry(id: string, how?: Creating): Promise<types.ExportOut> {
    return this.make_(`${EXPORT}/retry`, { export_id: id }, undefined, how);
  }

  /** Stream the file. After a broken connection the download is resumed. */
  stream(id: string, how?: Calling): Promise<ByteStream> {
    return this.file_(`${EXPORT}/download`, { export_id: id }, how);
  }
}

/** Return what happened to injected invalid rows. */
export interface BadRows {
  bad: number;
  refused: number;
  taken: number;
  unknown: number;
  good_refused: number;
}

/**
 * `client.pushes`. Create a push with `client.templates.push`, `client.datasets.push` or the first two methods here.
 */
export class Pushes extends Resource {
  /** Send `rows`, or rows of `template_id`, to a table. With up to 1,000 rows, waits until they are delivered. */
  toDatabase(request: types.ExportDbInput, how?: Creating): Promise<types.PushOut> {
    return this.make_("/export/db", {}, request, how);
  }

  /** Send `rows`, or rows of `template_id`, to an endpoint. With up to 1,000 rows, waits until they are delivered. */
  toEndpoint(request: types.ExportRestInput, how?: Creating): Promise<types.PushOut> {
    return this.make_("/export/rest", {}, request, how);
  }

  /** List the pushes of the project, newest first; `of_id` lists the retries and undos of a push. */
  list(
    query?: {
      q?: string;
      template_id?: string;
      dataset_id?: string;
      connection_id?: string;
      of_id?: string;
      status?: string;
    },
    how?: Calling,
  ): Pages<types.PushOut> {
    return this.list_("/pushes", {}, query, how);
  }

  /** Return the current state of a push. */
  get(id: string, how?: Calling): Promise<types.PushOut> {
    return this.get_(PUSH, { push_id: id }, how);
  }

  /** Return what happened to its injected invalid rows. */
  bad(id: string, how?: Calling): Promise<BadRows> {
    return this.get_(`${PUSH}/bad`, { push_id: id }, how);
  }

  /** Cancel a push. Committed rows stay. Throws Conflict if it has finished. */
  cancel(id: string, how?: Changing): Promise<types.PushOut> {
    return this.delete_(PUSH, { push_id: id }, how);
  }

  /** Follow its counts whenever they change, until it finishes. */
  follow(id: string, how?: Following): Follower<Progress> {
    return this.progress_(`${PUSH}/events`, { push_id: id }, how);
  }

  /** Wait until the push has finished and return it: check `status` and `counts`. */
  async wait(id: string, how: Following = {}): Promise<types.PushOut> {
    await this.follow(id, how).wait();
    return this.get(id, only(how));
  }

  /** List the outcome of each row; `values` includes the generated values. */
  rows(
    id: string,
    query?: { state?: string; table?: string; values?: boolean },
    how?: Calling,
  ): Pages<types.RowOut> {
    return this.list_(`${PUSH}/rows`, { push_id: id }, query, how);
  }

  /** Return the log so far. */
  log(id: string, how: Calling = {}): Promise<string> {
    return this.caller.text("GET", `${PUSH}/logs`, { parts: { push_id: id }, ...calling(how) });
  }

  /** Follow the log as it is written, until the push finishes. */
  followLog(id: string, how?: FollowingLog): Follower<LogLine> {
    return this.log_(`${PUSH}/logs`, { push_id: id }, how);
  }

  /** Send the rows that did not arrive again, as a new push. */
  retry(id: string, request: types.RetryInput = {}, how?: Creating): Promise<types.PushOut> {
    return this.make_(`${PUSH}/retry`, { push_id: id }, request, how);
  }

  /** Delete the delivered rows by their keys, as a new push. */
  undo(id: string, request: types.UndoInput = {}, how?: Creating): Promise<types.PushOut> {
    return this.make_(`${PUSH}/undo`, { push_id: id }, request, how);
  }
}

/** Return the follow options for a later call, without the timeout, which is used up. */
export function only(how: Following): Calling {
  return how.signal ? { signal: how.signal } : {};
}
