/** The whole REST API, for programs outside of scenarios: tests, pipelines, tools. */

import { notConfigured } from "./errors.js";
import { ApiKeys, Members, Projects, Secrets, Teams, Workspace } from "./resources/administration.js";
import type { Changing, Creating } from "./resources/base.js";
import { calling, tag } from "./resources/base.js";
import { Fields, Masking, Service } from "./resources/catalogue.js";
import { Datasets } from "./resources/datasets.js";
import { Files } from "./resources/files.js";
import { Runs, Scenarios } from "./resources/scenarios.js";
import { Schedules } from "./resources/schedules.js";
import { Connections, Endpoints } from "./resources/targets.js";
import { Templates } from "./resources/templates.js";
import { Webhooks } from "./resources/webhooks.js";
import { Exports, Pushes } from "./resources/work.js";
import { baseOf } from "./wire/address.js";
import { Caller } from "./wire/caller.js";
import { Retries, type Sleep } from "./wire/retry.js";

/** Options of a client. All times are in milliseconds. */
export interface RowsmithOptions {
  /** Default: SERVICE_API_KEY of the environment. */
  key?: string | undefined;
  /** Default: SERVICE_API_URL of the environment. */
  url?: string | undefined;
  /** Default: the project of the key. */
  project?: string | undefined;
  /** Maximum number of retries after 429, 5xx and failed connections, for calls that are safe to repeat. Default: 4. */
  retries?: number | undefined;
  /** Maximum Retry-After to wait for; a longer one throws the error. Default: 60,000. */
  longestWait?: number | undefined;
  /** Timeout for each wait for the service. Default: 300,000. */
  timeout?: number | undefined;
  /** Timeout for a call with all its attempts. Default: none. */
  totalTimeout?: number | undefined;
  /** A custom `fetch`, for example for a proxy, for custom certificate authorities, or for tests. */
  fetch?: typeof globalThis.fetch | undefined;
  /** A custom wait function, for tests with a fake clock. */
  sleep?: Sleep | undefined;
}

/** Options of `request`. */
export interface Requesting extends Creating, Changing {
  json?: unknown;
  query?: object;
  headers?: Record<string, string>;
}

/** Client for one project of the service. */
export class Rowsmith {
  readonly templates: Templates;
  readonly datasets: Datasets;
  readonly exports: Exports;
  readonly pushes: Pushes;
  readonly connections: Connections;
  readonly endpoints: Endpoints;
  readonly scenarios: Scenarios;
  readonly schedules: Schedules;
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
    this.schedules = new Schedules(caller);
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
   * Call any route, with the same credential, retries and errors as all other methods, and return the JSON of the
   * response. `path` is used unchanged and must be percent-encoded where necessary.
   */
  request<T = any>(method: string, path: string, how: Requesting = {}): Promise<T> {
    const { json, query, idempotencyKey } = how;
    const headers = { ...how.headers, ...tag(how) };
    return this.#caller.json(method, path, { json, query, headers, idempotencyKey, ...calling(how) });
  }
}

/** Return the argument or the environment variable. Throws `not_configured` if both are missing. */
function wanted(name: string, given: string | undefined, variable: string): string {
  const found = (given || environment(variable)).trim();
  if (!found) throw notConfigured(`There is no ${name}: pass it, or set ${variable}.`);
  return found;
}

function environment(variable: string): string {
  try {
    return (globalThis as Record<string, any>).process?.env?.[variable] ?? "";
  } catch {
    return ""; // Deno without permission to read the environment
  }
}
