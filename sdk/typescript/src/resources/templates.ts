import type { Pages } from "../pages.js";
import { ByteStream, type Row, RowStream } from "../streams.js";
import type * as types from "../types.js";
import type { Parts } from "../wire/address.js";
import type { Answer } from "../wire/answer.js";
import { type Calling, type Changing, type Creating, Resource, calling } from "./base.js";

const ONE = "/templates/{template_id}";
/** Number of rows of a template without a quantity. */
const DEFAULT_ROWS = 10;

/** The ID of a saved template, or a template itself. */
export type Which = string | (Partial<types.DraftIn> & Pick<types.DraftIn, "fields">);

/** `client.templates`. */
export class Templates extends Resource {
  /** List the templates of the project; `q` searches names. */
  list(query?: { q?: string; sort?: string }, how?: Calling): Pages<types.TemplateOut> {
    return this.list_("/templates", {}, query, how);
  }

  /** Return the current template, or a version of it. */
  get(id: string, how: Calling & { version?: number } = {}): Promise<types.TemplateOut> {
    if (how.version === undefined) return this.get_(ONE, { template_id: id }, how);
    return this.get_(`${ONE}@v{number}`, { template_id: id, number: how.version }, how);
  }

  /** Save a template. Throws ValidationError with all errors. */
  create(template: types.TemplateIn, how?: Creating): Promise<types.TemplateOut> {
    return this.make_("/templates", {}, template, how);
  }

  /** Create a new version with these changes. */
  update(id: string, changes: types.TemplatePatch, how?: Changing): Promise<types.TemplateOut> {
    return this.change_("PATCH", ONE, { template_id: id }, changes, how);
  }

  /** Create templates from a text, rows or a schema (`content`), or from a workspace file (`file`). */
  importSchema(request: types.ImportIn, how?: Creating): Promise<types.ImportOut> {
    return this.make_("/import", {}, request, how);
  }

  /** Let a worker read a large document. Follow the import with `getImport`. */
  startImport(request: types.ImportIn, how?: Creating): Promise<types.ImportJobOut> {
    return this.make_("/import", {}, { ...request, wait: false }, how);
  }

  /** Return an import that a worker does: its progress, and its `result` when it is completed. */
  getImport(id: string, how?: Calling): Promise<types.ImportJobOut> {
    return this.get_("/imports/{import_id}", { import_id: id }, how);
  }

  /** Cancel an import that has not finished. Templates that it has saved stay. */
  cancelImport(id: string, how?: Calling): Promise<types.ImportJobOut> {
    return this.delete_("/imports/{import_id}", { import_id: id }, how);
  }

  /** Compare a changed schema with a template. `accept` applies the changes of these columns. */
  compareSchema(id: string, request: types.AgainIn, how?: Calling): Promise<types.AgainOut> {
    return this.ask_(`${ONE}/import`, { template_id: id }, request, how);
  }

  /** Delete a template. It can be restored for 30 days. */
  delete(id: string, how?: Changing): Promise<types.TemplateOut> {
    return this.delete_(ONE, { template_id: id }, how);
  }

  /** Restore a deleted object. */
  restore(id: string, how?: Calling): Promise<types.TemplateOut> {
    return this.ask_(`${ONE}/restore`, { template_id: id }, undefined, how);
  }

  /** List all versions, newest first, each as a complete template. */
  versions(id: string, how?: Calling): Pages<types.TemplateOut> {
    return this.list_(`${ONE}/versions`, { template_id: id }, {}, how);
  }

  /** Make an earlier version the newest. */
  restoreVersion(id: string, version: number, how?: Creating): Promise<types.TemplateOut> {
    return this.make_(`${ONE}/versions/{number}/restore`, { template_id: id, number: version }, undefined, how);
  }

  /** Return the changes from a version to another one (default: the newest). */
  diff(id: string, version: number, query?: { to?: number; seed?: string }, how?: Calling): Promise<types.DiffOut> {
    return this.get_(`${ONE}@v{number}/diff`, { template_id: id, number: version }, how, query);
  }

  /** Create a version that refers to the newest versions of other templates. */
  refreshReferences(id: string, how?: Calling): Promise<types.TemplateOut> {
    return this.ask_(`${ONE}/refresh-references`, { template_id: id }, undefined, how, false);
  }

  /** Return the first three rows. They do not count toward the quota. */
  preview(template: Which, request: types.PreviewIn = {}, how?: Calling): Promise<types.PreviewOut> {
    const [path, parts, body] = asked("preview", template, request);
    return this.ask_(path, parts, body, how);
  }

  /** Return `count` rows as an array. For many rows use `rows`. */
  generate<T extends object = Row>(
    template: Which,
    request: Omit<types.GenerateInput, "format"> = {},
    how?: Calling,
  ): Promise<T[]> {
    const [path, parts, body] = asked("generate", template, { ...request, format: "json" });
    return this.ask_(path, parts, body, how);
  }

  /** Return the injected invalid cells in the rows of a saved template: their kinds and the original values. */
  answers<T extends object = Row>(
    id: string,
    request: Omit<types.GenerateInput, "format"> = {},
    how?: Calling,
  ): Promise<T[]> {
    const [path, parts, body] = asked("answers", id, { ...request, format: "json" });
    return this.ask_(path, parts, body, how);
  }

  /** Iterate over rows in constant memory. Continues automatically after a broken connection. */
  rows<T extends object = Row>(
    template: Which,
    request: Omit<types.GenerateInput, "format"> = {},
    how: Calling = {},
  ): RowStream<T> {
    const [path, parts, body] = asked("generate", template, { ...request, format: "ndjson" });
    return new RowStream<T>({
      ask: (changes) => this.#open(path, parts, { ...body, ...changes }, how),
      offset: Number(body.offset ?? 0),
      total: async () => {
        const counted = body.count ?? body.quantity;
        if (counted !== undefined && counted !== null) return Number(counted);
        return typeof template === "string" ? (await this.get(template, how)).quantity : DEFAULT_ROWS;
      },
      retries: this.caller.retries,
      signal: how.signal,
    });
  }

  /** Stream the bytes of a file in any `format` as they are generated. */
  stream(template: Which, request: types.GenerateInput = {}, how: Calling = {}): Promise<ByteStream> {
    const [path, parts, body] = asked("generate", template, request);
    return ByteStream.of(() => this.#open(path, parts, body, how), this.caller.retries, how.signal);
  }

  /** Create a file in the background; see `client.exports` for waiting and downloading. */
  export(id: string, request: types.TemplateExportInput = {}, how?: Creating): Promise<types.ExportOut> {
    return this.make_(`${ONE}/exports`, { template_id: id }, request, how);
  }

  /** Send rows to a connection or an endpoint; see `client.pushes` for waiting. */
  push(id: string, request: types.PushInput, how?: Creating): Promise<types.PushOut> {
    return this.make_(`${ONE}/push`, { template_id: id }, request, how);
  }

  /** Return what a push would send for the first three rows, and possible problems. Nothing is sent. */
  dryRun(id: string, request: types.PushInput, how?: Creating): Promise<types.DryRunOut> {
    return this.make_(`${ONE}/push`, { template_id: id }, { ...request, dry_run: true }, how);
  }

  /** Return the mapping of fields to columns, and how it was found. */
  pushPlan(id: string, request: types.PushInput, how?: Calling): Promise<types.PlanOut> {
    return this.ask_(`${ONE}/push/plan`, { template_id: id }, request, how);
  }

  #open(path: string, parts: Parts, json: object, how: Calling): Promise<Answer> {
    return this.caller.open("POST", path, { parts, json, repeatable: true, ...calling(how) });
  }
}

/** Return the path, its parts, and the body of a request. */
function asked(what: string, template: Which, request: object): [string, Parts, Record<string, unknown>] {
  if (typeof template === "string") return [`${ONE}/${what}`, { template_id: template }, { ...request }];
  return [`/${what}`, {}, { ...template, ...request }];
}
