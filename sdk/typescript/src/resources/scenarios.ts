import type { Follower, Following, FollowingLog, LogLine, Progress } from "../follow.js";
import type { Pages } from "../pages.js";
import type * as types from "../types.js";
import { type Calling, type Changing, type Creating, Resource, calling } from "./base.js";
import { only } from "./work.js";

const ONE = "/scenarios/{scenario_id}";
const RUN = `${ONE}/runs/{run_id}`;

/** `client.scenarios`. */
export class Scenarios extends Resource {
  /** List the scenarios of the project; `q` searches names. */
  list(query?: { q?: string; sort?: string }, how?: Calling): Pages<types.ScenarioOut> {
    return this.list_("/scenarios", {}, query, how);
  }

  /** Return the current scenario, or a version of it. */
  get(id: string, how: Calling & { version?: number } = {}): Promise<types.ScenarioOut> {
    if (how.version === undefined) return this.get_(ONE, { scenario_id: id }, how);
    return this.get_(`${ONE}@v{number}`, { scenario_id: id, number: how.version }, how);
  }

  /** Create a scenario: `name` and `code`. The program's requirements are resolved immediately. */
  create(scenario: types.ScenarioInput, how?: Creating): Promise<types.ScenarioOut> {
    return this.make_("/scenarios", {}, scenario, how);
  }

  /** Check a program without saving it. */
  check(request: types.CheckInput, how?: Calling): Promise<types.CheckOut> {
    return this.ask_("/scenarios/check", {}, request, how);
  }

  /** Replace the code, which creates a new version. */
  replace(id: string, request: types.CodeInput, how?: Changing): Promise<types.ScenarioOut> {
    return this.change_("PUT", ONE, { scenario_id: id }, request, how);
  }

  /** Change the given keys. */
  update(id: string, changes: types.ScenarioPatch, how?: Changing): Promise<types.ScenarioOut> {
    return this.change_("PATCH", ONE, { scenario_id: id }, changes, how);
  }

  /** Resolve the requirements again, which creates a new version. */
  refreshRequirements(id: string, how?: Changing): Promise<types.ScenarioOut> {
    return this.ask_(`${ONE}/refresh-requirements`, { scenario_id: id }, undefined, how, false);
  }

  /** Delete a scenario. It can be restored for 30 days. */
  delete(id: string, how?: Changing): Promise<types.ScenarioOut> {
    return this.delete_(ONE, { scenario_id: id }, how);
  }

  /** Restore a deleted object. */
  restore(id: string, how?: Calling): Promise<types.ScenarioOut> {
    return this.ask_(`${ONE}/restore`, { scenario_id: id }, undefined, how);
  }

  /** List all versions, newest first. */
  versions(id: string, how?: Calling): Pages<types.ScenarioOut> {
    return this.list_(`${ONE}/versions`, { scenario_id: id }, {}, how);
  }

  /** Make an earlier version the newest. */
  restoreVersion(id: string, version: number, how?: Creating): Promise<types.ScenarioOut> {
    return this.make_(`${ONE}/versions/{number}/restore`, { scenario_id: id, number: version }, undefined, how);
  }

  /** Return the changes from a version to another one (default: the newest). */
  diff(id: string, version: number, query?: { to?: number }, how?: Calling): Promise<types.ScenarioDiffOut> {
    return this.get_(`${ONE}@v{number}/diff`, { scenario_id: id, number: version }, how, query);
  }
}

/** `client.runs`. */
export class Runs extends Resource {
  /** Start a run and return immediately. `params` become environment variables of the program. */
  start(scenarioId: string, params: Record<string, string> = {}, how?: Creating): Promise<types.RunOut> {
    return this.make_(`${ONE}/run`, { scenario_id: scenarioId }, { params, wait: false }, how);
  }

  /** Run a scenario and wait until it finishes, however long it takes. Check `status` and `exit_code`. */
  async run(
    scenarioId: string,
    params: Record<string, string> = {},
    how: Following & Pick<Creating, "idempotencyKey"> = {},
  ): Promise<types.RunOut> {
    const { idempotencyKey } = how;
    const begun = await this.start(scenarioId, params, { ...only(how), ...(idempotencyKey && { idempotencyKey }) });
    return this.wait(scenarioId, begun.id, how);
  }

  /** Run the same version again, or the `newest`, with the same or other parameters. Returns immediately. */
  rerun(scenarioId: string, runId: string, request: types.RerunIn = {}, how?: Creating): Promise<types.RunOut> {
    return this.make_(`${RUN}/rerun`, { scenario_id: scenarioId, run_id: runId }, request, how);
  }

  /** List the runs of the project or of a scenario, newest first; `of_id` lists the re-runs of a run. */
  list(
    query: {
      scenario_id?: string;
      q?: string;
      status?: string;
      trigger?: string;
      of_id?: string;
      sort?: string;
    } = {},
    how?: Calling,
  ): Pages<types.RunOut> {
    const { scenario_id, ...rest } = query;
    if (scenario_id === undefined) return this.list_("/runs", {}, rest, how);
    return this.list_(`${ONE}/runs`, { scenario_id }, rest, how);
  }

  /** Return the current state of a run. */
  get(scenarioId: string, runId: string, how?: Calling): Promise<types.RunOut> {
    return this.get_(RUN, { scenario_id: scenarioId, run_id: runId }, how);
  }

  /** Cancel a run. Throws Conflict `run_finished` if it has finished. */
  cancel(scenarioId: string, runId: string, how?: Changing): Promise<types.RunOut> {
    return this.delete_(RUN, { scenario_id: scenarioId, run_id: runId }, how);
  }

  /** Return the output of the program so far. */
  log(scenarioId: string, runId: string, how: Calling = {}): Promise<string> {
    const parts = { scenario_id: scenarioId, run_id: runId };
    return this.caller.text("GET", `${RUN}/logs`, { parts, ...calling(how) });
  }

  /** Follow the lines as they are printed, until the run finishes. */
  followLog(scenarioId: string, runId: string, how?: FollowingLog): Follower<LogLine> {
    return this.log_(`${RUN}/logs`, { scenario_id: scenarioId, run_id: runId }, how);
  }

  /** Follow status, lines, rows and resources whenever they change, until the run finishes. */
  follow(scenarioId: string, runId: string, how?: Following): Follower<Progress> {
    return this.progress_(`${RUN}/events`, { scenario_id: scenarioId, run_id: runId }, how);
  }

  /** Wait until the run has finished and return it, whatever its status. */
  async wait(scenarioId: string, runId: string, how: Following = {}): Promise<types.RunOut> {
    await this.follow(scenarioId, runId, how).wait();
    return this.get(scenarioId, runId, only(how));
  }
}
