/** The whole REST API, for programs outside: tests, pipelines, tools. */

import { notConfigured } from "./errors.js";
import { ApiKeys, Members, Projects, Secrets, Teams, Workspace } from "./resources/administration.js";
import type { Changing, Creating } from "./resources/base.js";
import { calling, tag } from "./resources/base.js";
import { Fields, Masking, Service } from "./resources/catalogue.js";
import { Datasets } from "./resources/datasets.js";
import { Files } from "./resources/files.js";
import { Runs, Scenarios } from "./resources/scenarios.js";
import { Connections, Endpoints } from "./resources/targets.js";
import { Templates } from "./resources/templates.js";
import { Webhooks } from "./resources/webhooks.js";
import { Exports, Pushes } from "./resources/work.js";
import { baseOf } from "./wire/address.js";
import { Caller } from "./wire/caller.js";
import { Retries, type Sleep } from "./wire/retry.js";

/** How a client is set up. All times are milliseconds. */
export interface RowsmithOptions {
  /** SERVICE_API_KEY of the environment if not given. */
  key?: string | undefined;
  /** SERVICE_API_URL of the environment if not given. */
  url?: string | undefined;
  /** The project, if it is not that of the key. */
  project?: string | undefined;
  /** More attempts after 429, 5xx and failed connections, where that can do no harm: 4. */
  retries?: number | undefined;
  /** A Retry-After of more than this is not waited for, but thrown: 60,000. */
  longestWait?: number | undefined;
  /** Bounds each wait for the service: 300,000. */
  timeout?: number | undefined;
  /** Bounds a call with all its attempts; none if not given. */
  totalTimeout?: number | undefined;
  /** Another `fetch`: through a proxy, with authorities of your own, in a test. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Another way to wait, for tests with a clock of their own. */
  sleep?: Sleep | undefined;
}

/** How any route is called by `request`. */
export interface Requesting extends Creating, Changing {
  json?: unknown;
  query?: object;
  headers?: Record<string, string>;
}

/** A way into one project of the service. */
export class Rowsmith {
  readonly templates: Templates;
  readonly datasets: Datasets;
  readonly exports: Exports;
  readonly pushes: Pushes;
  readonly connections: Connections;
  readonly endpoints: Endpoints;
  readonly scenarios: Scenarios;
  readonly runs: Runs;
  readonly files: Files;
  readonly fields: Fields;
  readonly masking: Masking;
  readonly workspace: Workspace;
  readonly members: Members;
  readonly teams: Teams;
  readonly projects: Projects;
  readonly apiKeys: ApiKeys;
  readonly secrets: Secrets;
  readonly webhooks: Webhooks;
  readonly service: Service;
  readonly #caller: Caller;

  constructor(options: RowsmithOptions = {}) {
    const headers: Record<string, string> = {
      Authorization: `Bearer ${wanted("key", options.key, "SERVICE_API_KEY")}`,
    };
    if (options.project) headers["X-Project-Id"] = options.project;
    const caller = new Caller({
      base: baseOf(wanted("url", options.url, "SERVICE_API_URL")),
      headers,
      retries: new Retries(options.retries, options.longestWait, options.sleep),
      timeout: options.timeout ?? 300_000,
      totalTimeout: options.totalTimeout,
      fetch: options.fetch ?? ((input, init) => globalThis.fetch(input, init)),
    });
    this.#caller = caller;
    this.templates = new Templates(caller);
    this.datasets = new Datasets(caller);
    this.exports = new Exports(caller);
    this.pushes = new Pushes(caller);
    this.connections = new Connections(caller);
    this.endpoints = new Endpoints(caller);
    this.scenarios = new Scenarios(caller);
    this.runs = new Runs(caller);
    this.files = new Files(caller);
    this.fields = new Fields(caller);
    this.masking = new Masking(caller);
    this.workspace = new Workspace(caller);
    this.members = new Members(caller);
    this.teams = new Teams(caller);
    this.projects = new Projects(caller);
    this.apiKeys = new ApiKeys(caller);
    this.secrets = new Secrets(caller);
    this.webhooks = new Webhooks(caller);
    this.service = new Service(caller);
  }

  /**
   * Any route, with the credential, the retries and the errors of all others: the JSON of its answer.
   * `path` is taken as it is, percent-encoded where that is needed.
   */
  request<T = any>(method: string, path: string, how: Requesting = {}): Promise<T> {
    const { json, query, idempotencyKey } = how;
    const headers = { ...how.headers, ...tag(how) };
    return this.#caller.json(method, path, { json, query, headers, idempotencyKey, ...calling(how) });
  }
}

/** What was given, or the variable of the environment. Throws `not_configured` where there is neither. */
function wanted(name: string, given: string | undefined, variable: string): string {
  const found = (given || environment(variable)).trim();
  if (!found) throw notConfigured(`There is no ${name}: give it, or set ${variable}.`);
  return found;
}

function environment(variable: string): string {
  try {
    return (globalThis as Record<string, any>).process?.env?.[variable] ?? "";
  } catch {
    return ""; // Deno without leave to read its environment
  }
}
