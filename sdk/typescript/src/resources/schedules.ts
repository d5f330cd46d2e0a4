/** Schedules: exports and pushes that are repeated. */

import type { Pages } from "../pages.js";
import type * as types from "../types.js";
import { type Calling, type Changing, type Creating, Resource } from "./base.js";

const ONE = "/schedules/{schedule_id}";

/** `client.schedules`. */
export class Schedules extends Resource {
  /** List the schedules of exports and pushes of the project, newest first; `q` searches names. */
  list(query?: { q?: string }, how?: Calling): Pages<types.JobScheduleOut> {
    return this.list_("/schedules", {}, query, how);
  }

  /** Create a schedule of a `kind` with a `request`, or of an earlier export or push (`repeats`). */
  create(schedule: types.JobScheduleIn, how?: Creating): Promise<types.JobScheduleOut> {
    return this.make_("/schedules", {}, schedule, how);
  }

  /** Return a schedule. */
  get(id: string, how?: Calling): Promise<types.JobScheduleOut> {
    return this.get_(ONE, { schedule_id: id }, how);
  }

  /** Change a schedule, or turn it on or off (`enabled`). */
  update(id: string, changes: types.JobSchedulePatch, how?: Changing): Promise<types.JobScheduleOut> {
    return this.change_("PATCH", ONE, { schedule_id: id }, changes, how);
  }

  /** Delete a schedule. Its jobs stay. */
  delete(id: string, how?: Changing): Promise<types.JobScheduleOut> {
    return this.delete_(ONE, { schedule_id: id }, how);
  }

  /** Start a job of a schedule now, in addition to those that are due. */
  start(id: string, how?: Creating): Promise<types.StartedOut> {
    return this.make_(`${ONE}/start`, { schedule_id: id }, undefined, how);
  }
}
