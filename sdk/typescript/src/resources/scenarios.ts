import type { Follower, Following, FollowingLog, LogLine, Progress } from "../follow.js";
import type { Pages } from "../pages.js";
import type * as types from "../types.js";
import { type Calling, type Changing, type Creating, Resource, calling } from "./base.js";
import { only } from "./work.js";

const ONE = "/scenarios/{scenario_id}";
const RUN = `${ONE}/runs/{run_id}`;

/** `client.scenarios`. */
export class Scenarios extends Resource {
  /** The scenarios of the project; `q` searches names. */
  list(query?: { q?: string; sort?: string }, how?: Calling): Pages<types.ScenarioOut> {
    return this.list_("/scenarios", {}, query, how);
  }

  /** A scenario as it is now, or as of a version. */
  get(id: string, how: Calling & { version?: number } = {}): Promise<types.ScenarioOut> {
    if (how.version === undefined) return this.get_(ONE, { scenario_id: id }, how);
    return this.get_(`${ONE}@v{number}`, { scenario_id: id, number: how.version }, how);
  }

  /** Make a scenario: `name` and `code`. What its program requires is resolved now. */
  create(scenario: types.ScenarioInput, how?: Creating): Promise<types.ScenarioOut> {
    return this.make_("/scenarios", {}, scenario, how);
  }

  /** Look through a program without saving it. */
  check(request: types.CheckInput, how?: Calling): Promise<types.CheckOut> {
    return this.ask_("/scenarios/check", {}, request, how);
  }

  /** Replace the code, which makes the next version. */
  replace(id: string, request: types.CodeInput, how?: Changing): Promise<types.ScenarioOut> {
    return this.change_("PUT", ONE, { scenario_id: id }, request, how);
  }

  /** Change these parts. */
  update(id: string, changes: types.ScenarioPatch, how?: Changing): Promise<types.ScenarioOut> {
    return this.change_("PATCH", ONE, { scenario_id: id }, changes, how);
  }

  /** Resolve the requirements anew, which makes the next version. */
  refreshRequirements(id: string, how?: Changing): Promise<types.ScenarioOut> {
    return this.ask_(`${ONE}/refresh-requirements`, { scenario_id: id }, undefined, how, false);
  }

  /** Delete a scenario; it can be restored for 30 days. */
  delete(id: string, how?: Changing): Promise<types.ScenarioOut> {
    return this.delete_(ONE, { scenario_id: id }, how);
  }

  /** Take the deletion back. */
  restore(id: string, how?: Calling): Promise<types.ScenarioOut> {
    return this.ask_(`${ONE}/restore`, { scenario_id: id }, undefined, how);
  }

  /** All versions, the newest first. */
  versions(id: string, how?: Calling): Pages<types.ScenarioOut> {
    return this.list_(`${ONE}/versions`, { scenario_id: id }, {}, how);
  }

  /** Make an earlier version the newest. */
  restoreVersion(id: string, version: number, how?: Creating): Promise<types.ScenarioOut> {
    return this.make_(`${ONE}/versions/{number}/restore`, { scenario_id: id, number: version }, undefined, how);
  }

  /** What changed from a version to another (the newest). */
  diff(id: string, version: number, query?: { to?: number }, how?: Calling): Promise<types.ScenarioDiffOut> {
    return this.get_(`${ONE}@v{number}/diff`, { scenario_id: id, number: version }, how, query);
  }
}

/** `client.runs`. */
export class Runs extends Resource {
  /** Run a scenario; answers at once. `params` become environment variables of its program. */
  start(scenarioId: string, params: Record<string, string> = {}, how?: Creating): Promise<types.RunOut> {
    return this.make_(`${ONE}/run`, { scenario_id: scenarioId }, { params, wait: false }, how);
  }

  /** Run a scenario and wait for its end, however long it takes: look at `status` and `exit_code`. */
  async run(
    scenarioId: string,
    params: Record<string, string> = {},
    how: Following & Pick<Creating, "idempotencyKey"> = {},
  ): Promise<types.RunOut> {
    const { idempotencyKey } = how;
    const begun = await this.start(scenarioId, params, { ...only(how), ...(idempotencyKey && { idempotencyKey }) });
    return this.wait(scenarioId, begun.id, how);
  }

  /** Run the same version once more, or the `newest`, with the same parameters or others; answers at once. */
  rerun(scenarioId: string, runId: string, request: types.RerunIn = {}, how?: Creating): Promise<types.RunOut> {
    return this.make_(`${RUN}/rerun`, { scenario_id: scenarioId, run_id: runId }, request, how);
  }

  /** The runs of the project, or of one scenario, newest first; `of_id`: the repetitions of one. */
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

  /** A run as it is now. */
  get(scenarioId: string, runId: string, how?: Calling): Promise<types.RunOut> {
    return this.get_(RUN, { scenario_id: scenarioId, run_id: runId }, how);
  }

  /** Cancel a run. Conflict `run_finished` where it has ended. */
  cancel(scenarioId: string, runId: string, how?: Changing): Promise<types.RunOut> {
    return this.delete_(RUN, { scenario_id: scenarioId, run_id: runId }, how);
  }

  /** What the program has printed so far. */
  log(scenarioId: string, runId: string, how: Calling = {}): Promise<string> {
    const parts = { scenario_id: scenarioId, run_id: runId };
    return this.caller.text("GET", `${RUN}/logs`, { parts, ...calling(how) });
  }

  /** The lines as they are printed, until the run ends. */
  followLog(scenarioId: string, runId: string, how?: FollowingLog): Follower<LogLine> {
    return this.log_(`${RUN}/logs`, { scenario_id: scenarioId, run_id: runId }, how);
  }

  /** State, lines, rows and resources whenever they change, until the run ends. */
  follow(scenarioId: string, runId: string, how?: Following): Follower<Progress> {
    return this.progress_(`${RUN}/events`, { scenario_id: scenarioId, run_id: runId }, how);
  }

  /** The run once it has ended, however it did. */
  async wait(scenarioId: string, runId: string, how: Following = {}): Promise<types.RunOut> {
    await this.follow(scenarioId, runId, how).wait();
    return this.get(scenarioId, runId, only(how));
  }
}
