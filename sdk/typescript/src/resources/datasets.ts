import type { Pages } from "../pages.js";
import type * as types from "../types.js";
import { type Calling, type Changing, type Creating, Resource } from "./base.js";

const ONE = "/datasets/{dataset_id}";

/** `client.datasets`: several related templates. */
export class Datasets extends Resource {
  /** List the datasets of the project; `q` searches names. */
  list(query?: { q?: string; sort?: string }, how?: Calling): Pages<types.DatasetOut> {
    return this.list_("/datasets", {}, query, how);
  }

  /** Return the current dataset, or a version of it. */
  get(id: string, how: Calling & { version?: number } = {}): Promise<types.DatasetOut> {
    if (how.version === undefined) return this.get_(ONE, { dataset_id: id }, how);
    return this.get_(`${ONE}@v{number}`, { dataset_id: id, number: how.version }, how);
  }

  /** Save a dataset: `name`, and `templates` with a `template_id` and an optional `count` each. */
  create(dataset: types.DatasetIn, how?: Creating): Promise<types.DatasetOut> {
    return this.make_("/datasets", {}, dataset, how);
  }

  /** Create a new version with these changes. */
  update(id: string, changes: types.DatasetPatch, how?: Changing): Promise<types.DatasetOut> {
    return this.change_("PATCH", ONE, { dataset_id: id }, changes, how);
  }

  /** Delete a dataset. It can be restored for 30 days. */
  delete(id: string, how?: Changing): Promise<types.DatasetOut> {
    return this.delete_(ONE, { dataset_id: id }, how);
  }

  /** Restore a deleted object. */
  restore(id: string, how?: Calling): Promise<types.DatasetOut> {
    return this.ask_(`${ONE}/restore`, { dataset_id: id }, undefined, how);
  }

  /** List all versions, newest first. */
  versions(id: string, how?: Calling): Pages<types.DatasetOut> {
    return this.list_(`${ONE}/versions`, { dataset_id: id }, {}, how);
  }

  /** Make an earlier version the newest. */
  restoreVersion(id: string, version: number, how?: Creating): Promise<types.DatasetOut> {
    return this.make_(`${ONE}/versions/{number}/restore`, { dataset_id: id, number: version }, undefined, how);
  }

  /** Return the changes from a version to another one (default: the newest). */
  diff(id: string, version: number, query?: { to?: number }, how?: Calling): Promise<types.DatasetDiffOut> {
    return this.get_(`${ONE}@v{number}/diff`, { dataset_id: id, number: version }, how, query);
  }

  /** Create a version with the newest versions of its templates. */
  refreshReferences(id: string, how?: Calling): Promise<types.DatasetOut> {
    return this.ask_(`${ONE}/refresh-references`, { dataset_id: id }, undefined, how, false);
  }

  /** Return the first rows of every table, with matching references. They do not count toward the quota. */
  preview(id: string, request: types.DatasetPreviewInput = {}, how?: Calling): Promise<types.DatasetPreviewOut> {
    return this.ask_(`${ONE}/preview`, { dataset_id: id }, request, how);
  }

  /** Create a file with all tables in the background; see `client.exports`. */
  export(id: string, request: types.DatasetExportInput = {}, how?: Creating): Promise<types.ExportOut> {
    return this.make_(`${ONE}/exports`, { dataset_id: id }, request, how);
  }

  /** Send all tables to a connection, parents first; see `client.pushes`. */
  push(id: string, request: types.DatasetPushInput, how?: Creating): Promise<types.PushOut> {
    return this.make_(`${ONE}/push`, { dataset_id: id }, request, how);
  }

  /** Return what a push would send for the first three rows of each table. Nothing is sent. */
  dryRun(id: string, request: types.DatasetPushInput, how?: Creating): Promise<types.DryRunOut> {
    return this.make_(`${ONE}/push`, { dataset_id: id }, { ...request, dry_run: true }, how);
  }

  /** Return the mapping of fields to columns for each table. */
  pushPlan(id: string, request: types.DatasetPushInput, how?: Calling): Promise<types.PlanOut> {
    return this.ask_(`${ONE}/push/plan`, { dataset_id: id }, request, how);
  }
}
