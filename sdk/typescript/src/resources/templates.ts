import type { Pages } from "../pages.js";
import { ByteStream, type Row, RowStream } from "../streams.js";
import type * as types from "../types.js";
import type { Parts } from "../wire/address.js";
import type { Answer } from "../wire/answer.js";
import { type Calling, type Changing, type Creating, Resource, calling } from "./base.js";

const ONE = "/templates/{template_id}";
/** What a template gives that says no quantity. */
const DEFAULT_ROWS = 10;

/** The id of a saved template, or a template itself. */
export type Which = string | (Partial<types.DraftIn> & Pick<types.DraftIn, "fields">);

/** `client.templates`. */
export class Templates extends Resource {
  /** The templates of the project; `q` searches names. */
  list(query?: { q?: string; sort?: string }, how?: Calling): Pages<types.TemplateOut> {
    return this.list_("/templates", {}, query, how);
  }

  /** A template as it is now, or as of a version. */
  get(id: string, how: Calling & { version?: number } = {}): Promise<types.TemplateOut> {
    if (how.version === undefined) return this.get_(ONE, { template_id: id }, how);
    return this.get_(`${ONE}@v{number}`, { template_id: id, number: how.version }, how);
  }

  /** Save a template. ValidationError with every fault. */
  create(template: types.TemplateIn, how?: Creating): Promise<types.TemplateOut> {
    return this.make_("/templates", {}, template, how);
  }

  /** Make the next version with these parts changed. */
  update(id: string, changes: types.TemplatePatch, how?: Changing): Promise<types.TemplateOut> {
    return this.change_("PATCH", ONE, { template_id: id }, changes, how);
  }

  /** Make templates from a text, rows or a schema (`content`), or from a workspace file (`file`). */
  importSchema(request: types.ImportIn, how?: Creating): Promise<types.ImportOut> {
    return this.make_("/import", {}, request, how);
  }

  /** How a changed schema differs from a template; with `accept`, take these columns over. */
  compareSchema(id: string, request: types.AgainIn, how?: Calling): Promise<types.AgainOut> {
    return this.ask_(`${ONE}/import`, { template_id: id }, request, how);
  }

  /** Delete a template; it can be restored for 30 days. */
  delete(id: string, how?: Changing): Promise<types.TemplateOut> {
    return this.delete_(ONE, { template_id: id }, how);
  }

  /** Take the deletion back. */
  restore(id: string, how?: Calling): Promise<types.TemplateOut> {
    return this.ask_(`${ONE}/restore`, { template_id: id }, undefined, how);
  }

  /** All versions, the newest first, each a whole template. */
  versions(id: string, how?: Calling): Pages<types.TemplateOut> {
    return this.list_(`${ONE}/versions`, { template_id: id }, {}, how);
  }

  /** Make an earlier version the newest. */
  restoreVersion(id: string, version: number, how?: Creating): Promise<types.TemplateOut> {
    return this.make_(`${ONE}/versions/{number}/restore`, { template_id: id, number: version }, undefined, how);
  }

  /** What changed from a version to another (the newest). */
  diff(id: string, version: number, query?: { to?: number; seed?: string }, how?: Calling): Promise<types.DiffOut> {
    return this.get_(`${ONE}@v{number}/diff`, { template_id: id, number: version }, how, query);
  }

  /** Make a version that refers to the newest versions of other templates. */
  refreshReferences(id: string, how?: Calling): Promise<types.TemplateOut> {
    return this.ask_(`${ONE}/refresh-references`, { template_id: id }, undefined, how, false);
  }

  /** The first three rows; none are spent. */
  preview(template: Which, request: types.PreviewIn = {}, how?: Calling): Promise<types.PreviewOut> {
    const [path, parts, body] = asked("preview", template, request);
    return this.ask_(path, parts, body, how);
  }

  /** Rows as an array; `count` of them. For very many use `rows`. */
  generate<T extends object = Row>(
    template: Which,
    request: Omit<types.GenerateInput, "format"> = {},
    how?: Calling,
  ): Promise<T[]> {
    const [path, parts, body] = asked("generate", template, { ...request, format: "json" });
    return this.ask_(path, parts, body, how);
  }

  /** Which cells are bad on purpose in the rows of a saved template, of which kind, and the good values. */
  answers<T extends object = Row>(
    id: string,
    request: Omit<types.GenerateInput, "format"> = {},
    how?: Calling,
  ): Promise<T[]> {
    const [path, parts, body] = asked("answers", id, { ...request, format: "json" });
    return this.ask_(path, parts, body, how);
  }

  /** Rows one after the other, in constant memory; goes on by itself where the connection breaks. */
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

  /** The bytes of a file in any `format`, as they are made. */
  stream(template: Which, request: types.GenerateInput = {}, how: Calling = {}): Promise<ByteStream> {
    const [path, parts, body] = asked("generate", template, request);
    return ByteStream.of(() => this.#open(path, parts, body, how), this.caller.retries, how.signal);
  }

  /** Have a file made by a worker; see `client.exports` for waiting and downloading. */
  export(id: string, request: types.TemplateExportInput = {}, how?: Creating): Promise<types.ExportOut> {
    return this.make_(`${ONE}/exports`, { template_id: id }, request, how);
  }

  /** Send rows to a connection or an endpoint; see `client.pushes` for waiting. */
  push(id: string, request: types.PushInput, how?: Creating): Promise<types.PushOut> {
    return this.make_(`${ONE}/push`, { template_id: id }, request, how);
  }

  /** What a push would send for the first three rows, and what may not fit; nothing is sent. */
  dryRun(id: string, request: types.PushInput, how?: Creating): Promise<types.DryRunOut> {
    return this.make_(`${ONE}/push`, { template_id: id }, { ...request, dry_run: true }, how);
  }

  /** Which field goes into which column, and how that was found. */
  pushPlan(id: string, request: types.PushInput, how?: Calling): Promise<types.PlanOut> {
    return this.ask_(`${ONE}/push/plan`, { template_id: id }, request, how);
  }

  #open(path: string, parts: Parts, json: object, how: Calling): Promise<Answer> {
    return this.caller.open("POST", path, { parts, json, repeatable: true, ...calling(how) });
  }
}

/** Path, its parts, and body. */
function asked(what: string, template: Which, request: object): [string, Parts, Record<string, unknown>] {
  if (typeof template === "string") return [`${ONE}/${what}`, { template_id: template }, { ...request }];
  return [`/${what}`, {}, { ...template, ...request }];
}
