import type { Follower, Following, FollowingLog, LogLine, Progress } from "../follow.js";
import type { Pages } from "../pages.js";
import type { ByteStream } from "../streams.js";
import type * as types from "../types.js";
import { type Calling, type Changing, type Creating, Resource, calling } from "./base.js";

const EXPORT = "/exports/{export_id}";
const PUSH = "/pushes/{push_id}";

/** `client.exports`. An export is made by `client.templates.export` and `client.datasets.export`. */
export class Exports extends Resource {
  /** The exports of the project, newest first. */
  list(
    query?: { q?: string; template_id?: string; dataset_id?: string; status?: string },
    how?: Calling,
  ): Pages<types.ExportOut> {
    return this.list_("/exports", {}, query, how);
  }

  /** An export as it is now. */
  get(id: string, how?: Calling): Promise<types.ExportOut> {
    return this.get_(EXPORT, { export_id: id }, how);
  }

  /** Cancel an export. Conflict where it has ended. */
  cancel(id: string, how?: Changing): Promise<types.ExportOut> {
    return this.delete_(EXPORT, { export_id: id }, how);
  }

  /** Its counts whenever they change, until it ends. */
  follow(id: string, how?: Following): Follower<Progress> {
    return this.progress_(`${EXPORT}/events`, { export_id: id }, how);
  }

  /** The export once it has ended, however it did: look at `status`. */
  async wait(id: string, how: Following = {}): Promise<types.ExportOut> {
    await this.follow(id, how).wait();
    return this.get(id, only(how));
  }

  /** What it is made of: its rows, and the size, checksum and address of each part; of one file, one part. */
  manifest(id: string, how?: Calling): Promise<types.ManifestOut> {
    return this.get_(`${EXPORT}/manifest`, { export_id: id }, how);
  }

  /** The file of one part, from number 1 on, as it comes. */
  part(id: string, number: number, how?: Calling): Promise<ByteStream> {
    return this.file_(`${EXPORT}/parts/{number}`, { export_id: id, number }, how);
  }

  /** Which of its cells are bad on purpose, of which kind, and the good values; an object a line, if not said. */
  answers(id: string, how: Calling & { format?: "ndjson" | "csv" | "json" } = {}): Promise<ByteStream> {
    return this.file_(`${EXPORT}/answers`, { export_id: id }, how, { format: how.format ?? "ndjson" });
  }

  /** Have the missing parts of one that failed or was cancelled made: a new export, which keeps the others. */
  retry(id: string, how?: Creating): Promise<types.ExportOut> {
    return this.make_(`${EXPORT}/retry`, { export_id: id }, undefined, how);
  }

  /** The file, as it comes; after a break the rest is asked for. */
  stream(id: string, how?: Calling): Promise<ByteStream> {
    return this.file_(`${EXPORT}/download`, { export_id: id }, how);
  }
}

/** What became of rows that were bad on purpose. */
export interface BadRows {
  bad: number;
  refused: number;
  taken: number;
  unknown: number;
  good_refused: number;
}

/** `client.pushes`. A push is made by `client.templates.push`, `client.datasets.push` and the first two here. */
export class Pushes extends Resource {
  /** Send `rows`, or rows of `template_id`, into a table. Up to 1,000 rows it answers when they are there. */
  toDatabase(request: types.ExportDbInput, how?: Creating): Promise<types.PushOut> {
    return this.make_("/export/db", {}, request, how);
  }

  /** Send `rows`, or rows of `template_id`, to an endpoint. Up to 1,000 rows it answers when they are there. */
  toEndpoint(request: types.ExportRestInput, how?: Creating): Promise<types.PushOut> {
    return this.make_("/export/rest", {}, request, how);
  }

  /** The pushes of the project, newest first; `of_id`: the retries and undos of one. */
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

  /** A push as it is now. */
  get(id: string, how?: Calling): Promise<types.PushOut> {
    return this.get_(PUSH, { push_id: id }, how);
  }

  /** What became of its rows that were bad on purpose. */
  bad(id: string, how?: Calling): Promise<BadRows> {
    return this.get_(`${PUSH}/bad`, { push_id: id }, how);
  }

  /** Cancel a push; what was committed stays. Conflict where it has ended. */
  cancel(id: string, how?: Changing): Promise<types.PushOut> {
    return this.delete_(PUSH, { push_id: id }, how);
  }

  /** Its counts whenever they change, until it ends. */
  follow(id: string, how?: Following): Follower<Progress> {
    return this.progress_(`${PUSH}/events`, { push_id: id }, how);
  }

  /** The push once it has ended, however it did: look at `status` and `counts`. */
  async wait(id: string, how: Following = {}): Promise<types.PushOut> {
    await this.follow(id, how).wait();
    return this.get(id, only(how));
  }

  /** What became of each row; `values` makes the rows again. */
  rows(
    id: string,
    query?: { state?: string; table?: string; values?: boolean },
    how?: Calling,
  ): Pages<types.RowOut> {
    return this.list_(`${PUSH}/rows`, { push_id: id }, query, how);
  }

  /** The log so far. */
  log(id: string, how: Calling = {}): Promise<string> {
    return this.caller.text("GET", `${PUSH}/logs`, { parts: { push_id: id }, ...calling(how) });
  }

  /** The lines of the log as they are written, until the push ends. */
  followLog(id: string, how?: FollowingLog): Follower<LogLine> {
    return this.log_(`${PUSH}/logs`, { push_id: id }, how);
  }

  /** Send the rows that did not arrive once more: a push of its own. */
  retry(id: string, request: types.RetryInput = {}, how?: Creating): Promise<types.PushOut> {
    return this.make_(`${PUSH}/retry`, { push_id: id }, request, how);
  }

  /** Delete the rows that arrived, by their keys: a push of its own. */
  undo(id: string, request: types.UndoInput = {}, how?: Creating): Promise<types.PushOut> {
    return this.make_(`${PUSH}/undo`, { push_id: id }, request, how);
  }
}

/** Of how to follow, what is for a call after it: not the time, which is used up. */
export function only(how: Following): Calling {
  return how.signal ? { signal: how.signal } : {};
}
