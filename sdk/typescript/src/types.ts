// What the API takes and answers, made from its OpenAPI document by tools/generate.py: do not edit.

/** A schema beside a template. `table`: which one of several; `accept`: the columns that are taken over, by their */
export interface AgainIn {
  format?: "auto" | "csv" | "json" | "ndjson" | "xlsx" | "sql" | "json_schema" | "openapi" | "avro" | "protobuf" | "mockaroo";
  content?: string | null;
  file?: string | null;
  name?: string | null;
  table?: string | null;
  accept?: string[] | null;
}

/** The template, how the schema differs from it, and which columns were taken over (null: none were asked for). */
export interface AgainOut {
  template: TemplateOut;
  table: string;
  format: string;
  columns: ColumnChange[];
  report: ColumnReport[];
  accepted: string[] | null;
}

/** A new key. `scopes` left out: all that the maker's role allows. `project_id` left out: the present one. */
export interface ApiKeyIn {
  name: string;
  scopes?: ("read" | "write" | "generate" | "push" | "run" | "secrets" | "admin")[] | null;
  expires_at?: string | null;
  project_id?: string | null;
}

/** A key without its secret. `prefix` is what can be shown of it; `last_used_address` is where the last call came */
export interface ApiKeyOut {
  id: string;
  name: string;
  prefix: string;
  project_id: string;
  scopes: string[] | null;
  api_version: string;
  created_by: string;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  last_used_address: string | null;
  unused: boolean;
  revoked_at: string | null;
}

/** One action. */
export interface AuditOut {
  id: string;
  at: string;
  action: string;
  object_type: string;
  object_id: string;
  project_id: string | null;
  user_id: string | null;
  key_id: string | null;
  address: string;
  request_id: string;
  rows: number | null;
  details: Record<string, any>;
}

/** A cell that is bad on purpose: its row, counted from 1, field, kind, and the good value behind it. */
export interface BadCell {
  row: number;
  field: string;
  kind: string;
  good: unknown;
}

/** What became of the rows of a push that were bad on purpose: `bad` of those that have their end, which the target */
export interface BadRowsOut {
  bad: number;
  refused: number;
  taken: number;
  unknown: number;
  good_refused: number;
}

/** The field types, and beside them the functions of formulas that fit `q`. */
export interface CatalogueOut {
  items: FieldTypeOut[];
  next_cursor: string | null;
  total: number;
  functions: FunctionOut[];
}

/** A program that is not saved. */
export interface CheckInput {
  /** The Python program, run as main.py: UTF-8, at most 1,048,576 bytes. */
  code: string;
  /** Ask the package index too, as saving does; it may take seconds. */
  resolve?: boolean;
}

/** What saving a program would say. Faults would keep it from being saved, warnings would not. */
export interface CheckOut {
  requirements: string[];
  packages: Record<string, string> | null;
  faults: WarningOut[];
  warnings: WarningOut[];
}

/** One column. `kind`: of what it tells, null where nothing shows a person. `confidence`: 0 to 1, in the kind, or in */
export interface ClassifiedOut {
  name: string;
  kind: string | null;
  sensitive: boolean;
  confidence: number;
  reason: string;
  type: string | null;
  masking: Masking | null;
}

/** A sample: `rows`, or a workspace `file` (`sheet` of a workbook), or the `table` of a connection. Of a file the */
export interface ClassifyIn {
  rows?: Record<string, unknown>[] | null;
  file?: string | null;
  sheet?: string | null;
  connection_id?: string | null;
  table?: string | null;
}

/** The columns, in the sample's order. */
export interface ClassifyOut {
  columns: ClassifiedOut[];
}

/** A scenario's code, and whatever else of it is to change; what is left out stays. */
export interface CodeInput {
  description?: string;
  /** A run is ended after so long. */
  timeout_seconds?: number;
  /** Environment variables of every run, texts by name. */
  env?: Record<string, string>;
  /** Names of workspace secrets that a run gets as variables under their own names. */
  secrets?: string[];
  /** Names of workspace secrets that a run may set. */
  writable_secrets?: string[];
  /** `full`: the internet and the API; `api`: the API alone; `none`: nothing. */
  network?: "full" | "api" | "none";
  schedule?: ScheduleInput | null;
  /** The Python program, run as main.py: UTF-8, at most 1,048,576 bytes. */
  code: string;
  name?: string;
}

/** A column that differs: the template's field, and the one that the schema leads to now. */
export interface ColumnChange {
  column: string;
  change: "added" | "removed" | "changed";
  from: Record<string, any> | null;
  to: Record<string, any> | null;
  state: "green" | "yellow" | "red";
  reason: string;
}

/** What one column came to. `state`: green, every value fits; yellow, look at it; red, the column needs a value */
export interface ColumnReport {
  table: string;
  column: string;
  type: string | null;
  state: "green" | "yellow" | "red";
  reason: string;
}

/** What changes. `settings` are given whole; a secret that comes back as `********` is kept. */
export interface ConnectionChange {
  name?: string | null;
  settings?: Record<string, any> | null;
  connection_string?: string | null;
  environment?: "dev" | "test" | "prod" | null;
  read_only?: boolean | null;
}

/** A new connection. `type` may be called `connection_type`, and a connection string may stand beside it. */
export interface ConnectionIn {
  name: string;
  type?: string | null;
  connection_type?: string | null;
  settings?: Record<string, any>;
  connection_string?: string | null;
  environment?: "dev" | "test" | "prod";
  read_only?: boolean;
  project_id?: string | null;
  team_id?: string | null;
}

/** A connection. Secret parts of its settings are `********`. */
export interface ConnectionOut {
  id: string;
  name: string;
  type: string;
  connection_type: string;
  settings: Record<string, any>;
  environment: string;
  read_only: boolean;
  verification: VerificationOut | null;
  metadata_at: string | null;
  metadata_document: boolean;
  project_id: string;
  team_id: string;
  created_by: string | null;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
}

/** Rows of a push by what became of them; the total is the sum of the others. `undone` were delivered, and taken */
export interface Counts {
  total: number;
  delivered: number;
  failed: number;
  unknown: number;
  pending: number;
  undone: number;
}

/** ``quote``: ``minimal`` quotes what must be, ``all`` every value that is not NULL. ``escape_formulas`` puts a */
export interface CsvOptions {
  delimiter?: "," | ";" | "\t" | "|" | "^" | "~";
  header?: boolean;
  quote?: "minimal" | "all";
  /** Escape values that spreadsheets run as formulas: a ' is put before them. */
  escape_formulas?: boolean;
}

/** What changed from one version to another. */
export interface DatasetDiffOut {
  dataset_id: string;
  from: number;
  to: number;
  dataset: Record<string, any>;
  templates: Record<string, Record<string, any>[]>;
  order: Record<string, string[]> | null;
}

/** All tables of a dataset in one file: XLSX one workbook, SQL one script, every other format a ZIP archive. */
export interface DatasetExportInput {
  /** Stands in for the dataset's own. */
  seed?: string | null;
  /** The time that relative dates depend on, or `present` for the time of the clock. If left out: the dataset's anchor. */
  now?: string | "present" | null;
  /** XLSX: a sheet each. SQL: one script. Else: a file each, zipped. */
  format?: "json" | "csv" | "sql" | "xlsx" | "ndjson" | "parquet";
  /** How CSV is written. */
  csv?: CsvOptions | null;
  /** How SQL is written. */
  sql?: SqlScriptOptions | null;
  /** Arrays in CSV and XLSX: JSON text in one cell, or numbered columns. */
  arrays?: "json" | "columns" | null;
}

/** A new dataset. */
export interface DatasetIn {
  name: string;
  templates: DatasetTable[];
  description?: string;
  /** One is made where none is sent. */
  seed?: string | null;
  /** What relative dates hang on; null: each template's own anchor. */
  anchor?: string | null;
}

/** A dataset as of one version. */
export interface DatasetOut {
  id: string;
  name: string;
  description: string;
  templates: DatasetTableOut[];
  seed: string;
  version: number;
  anchor: string | null;
  project_id: string;
  team_id: string;
  created_by: string | null;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
  warnings: Record<string, string>[];
}

/** What of a dataset can change; what is left out stays. */
export interface DatasetPatch {
  name?: string;
  templates?: DatasetTable[];
  description?: string;
  seed?: string | null;
  anchor?: string | null;
}

/** Three rows of each table. */
export interface DatasetPreviewInput {
  /** Stands in for the dataset's own. */
  seed?: string | null;
  /** The time that relative dates depend on, or `present` for the time of the clock. If left out: the dataset's anchor. */
  now?: string | "present" | null;
}

/** The first three rows of each table, and the seed that makes them again. */
export interface DatasetPreviewOut {
  tables: TablePreview[];
  seed: string;
  warnings: Record<string, string>[];
}

/** All tables of a dataset, parents before their children. */
export interface DatasetPushInput {
  /** Where the rows go. */
  connection_id?: string | null;
  /** Where the rows go, instead of a connection. */
  endpoint_id?: string | null;
  /** Upsert and update find rows by key_columns. */
  mode?: "insert" | "upsert" | "update";
  /** What a failed row does. continue: every row is tried. stop: the first failed row ends the push as failed. stop_when_all_fail: the push ends as failed when the first rows of a table (1,000 of a database, 100 over HTTP) all fail for one reason. */
  on_error?: "continue" | "stop" | "stop_when_all_fail";
  /** How long to wait for a target that cannot be reached or answers no request, in seconds; null: the server's setting TARGET_WAIT_SECONDS. */
  target_wait_seconds?: number | null;
  /** Send nothing: answer three statements and the values that will not fit. */
  dry_run?: boolean;
  /** Send so many rows first (true: ten), and the others only if none was refused. */
  canary?: number | boolean | null;
  /** The connection's name, where it is marked prod. */
  confirm?: string | null;
  /** Make the table where it is missing. */
  create_table?: boolean;
  /** Statements before the rows; admins. */
  before_sql?: string[];
  /** Statements after the rows; admins. */
  after_sql?: string[];
  /** For endpoints and connections that speak HTTP. */
  push_mode?: "per_row" | "batch" | null;
  /** For endpoints and connections that speak HTTP. */
  wrapper_key?: string | null;
  /** For endpoints and connections that speak HTTP. */
  batch_size?: number | null;
  /** For endpoints and connections that speak HTTP. */
  retry?: Record<string, any> | null;
  /** For endpoints and connections that speak HTTP. */
  request_template?: Record<string, any> | null;
  /** For endpoints and connections that speak HTTP. */
  parallel?: number | null;
  /** For endpoints and connections that speak HTTP. */
  rate_per_second?: number | null;
  /** Target by the dataset's table; null leaves the table out. Others go by their names. */
  targets?: Record<string, string | null>;
  /** By table. Column by field; null leaves the field out. Fields that are not named go by their names. */
  mappings?: Record<string, Record<string, string | null>>;
  /** Formulas by table and column. */
  computed?: Record<string, Record<string, string>>;
  /** By table. */
  key_columns?: Record<string, string[]>;
  /** Stands in for the dataset's own. */
  seed?: string | null;
  /** The time that relative dates depend on, or `present` for the time of the clock. If left out: the dataset's anchor. */
  now?: string | "present" | null;
}

/** One table of a dataset: a template, and how many rows of it. */
export interface DatasetTable {
  template_id: string;
  /** Null: as many as its parents bear, else the template's quantity. */
  count?: number | null;
  /** Names the file, sheet or table; null: the template's name. */
  name?: string | null;
}

/** One table of a dataset, and the version of its template that is pinned. */
export interface DatasetTableOut {
  template_id: string;
  count: number | null;
  name: string | null;
  version: number;
}

/** One event on its way to a webhook. `id` is its `webhook-id`. `response_head`: how the last answer began. */
export interface DeliveryOut {
  id: string;
  webhook_id: string;
  event: string;
  object_id: string | null;
  status: "pending" | "delivered" | "failed";
  attempts: number;
  response_status: number | null;
  response_head: string;
  ms: number | null;
  reason: string;
  tries: TryOut[];
  next_attempt_at: string | null;
  created_at: string;
  ended_at: string | null;
}

/** What rows are to be like, in any words. `connection_id`: the model; the project's only one, if not said. Nothing */
export interface DescribeIn {
  description: string;
  connection_id?: string | null;
  quantity?: number;
  save?: boolean;
}

/** What one field came to. `state`: green, as the model had it; yellow, without options that did not fit; red, */
export interface DescribedField {
  field: string;
  type: string;
  state: "green" | "yellow" | "red";
  reason: string;
}

/** A draft of a template, and the template where it was saved. */
export interface DescribedOut {
  name: string;
  quantity: number;
  fields: Field[];
  report: DescribedField[];
  template: TemplateOut | null;
}

/** What changed from one version to another. */
export interface DiffOut {
  template_id: string;
  from: number;
  to: number;
  template: Record<string, any>;
  fields: Record<string, Record<string, any>[]>;
  preview: Record<string, any> | null;
}

/** What was taken over. */
export interface DocumentOut {
  bytes: number;
  sha256: string;
  entities: number;
}

/** Rows of a template that is not saved: its definition, and generate's own keys beside it. */
export interface DraftIn {
  /** Number of rows; the template's quantity when it is left out. */
  count?: number | null;
  /** Output format; `Accept: text/csv` wins over it. */
  format?: "json" | "csv" | "sql" | "xlsx" | "ndjson" | "parquet";
  /** Same seed, same rows; one is made and told when none is sent. */
  seed?: string | null;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** Rows to skip. */
  offset?: number;
  /** Stands in for the template's own. */
  locale?: string | null;
  /** The time that relative dates depend on, or `present` for the time of the clock. If left out: with a seed the template's anchor, otherwise the time of the clock. */
  now?: string | "present" | null;
  /** Rows of related templates, by id: what references choose from and children are dealt out to. */
  rows?: Record<string, number>;
  /** How CSV is written. */
  csv?: CsvOptions | null;
  /** How SQL is written. */
  sql?: SqlOptions | null;
  /** Arrays in CSV and XLSX: JSON text in one cell, or numbered columns. */
  arrays?: "json" | "columns" | null;
  /** Names the file, table or sheet. */
  name?: string;
  description?: string;
  /** Field definitions. */
  fields: Field[];
  /** Number of rows where count says none. */
  quantity?: number | null;
  /** The time that relative dates depend on with a seed and no `now`; 2026-01-01T00:00:00Z if left out. */
  anchor?: string | null;
  /** Real data that the rows are taken from: a workspace file, or a connection's table or query. */
  source?: SourceSpec | null;
  /** Bad values on purpose: a share of the rows, each with one bad cell. */
  invalid?: Invalid | null;
}

/** Three rows of a template that is not saved: its definition, and preview's own keys beside it. */
export interface DraftPreviewIn {
  /** Number of rows; the template's quantity when it is left out. */
  count?: number | null;
  /** Output format; `Accept: text/csv` wins over it. */
  format?: "json" | "csv" | "sql" | "xlsx" | "ndjson" | "parquet";
  /** Same seed, same rows; one is made and told when none is sent. */
  seed?: string | null;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** Rows to skip. */
  offset?: number;
  /** Stands in for the template's own. */
  locale?: string | null;
  /** The time that relative dates depend on, or `present` for the time of the clock. If left out: with a seed the template's anchor, otherwise the time of the clock. */
  now?: string | "present" | null;
  /** Rows of related templates, by id: what references choose from and children are dealt out to. */
  rows?: Record<string, number>;
  /** How CSV is written. */
  csv?: CsvOptions | null;
  /** How SQL is written. */
  sql?: SqlOptions | null;
  /** Arrays in CSV and XLSX: JSON text in one cell, or numbered columns. */
  arrays?: "json" | "columns" | null;
  /** Names the file, table or sheet. */
  name?: string;
  description?: string;
  /** Field definitions. */
  fields: Field[];
  /** Number of rows where count says none. */
  quantity?: number | null;
  /** The time that relative dates depend on with a seed and no `now`; 2026-01-01T00:00:00Z if left out. */
  anchor?: string | null;
  /** Real data that the rows are taken from: a workspace file, or a connection's table or query. */
  source?: SourceSpec | null;
  /** Bad values on purpose: a share of the rows, each with one bad cell. */
  invalid?: Invalid | null;
  /** Ask connections for values that have not been fetched yet; else examples stand for them. */
  fetch?: boolean;
}

/** What would be sent: the statements of three rows of each table (over HTTP their requests), and every value that */
export interface DryRunOut {
  statements?: string[] | null;
  requests?: string[] | null;
  misfits: MisfitOut[];
  checked_rows: number;
  tables: DryTable[];
}

/** The statements of the first rows of one table, or their requests over HTTP. */
export interface DryTable {
  name: string;
  target: string;
  statements?: string[] | null;
  requests?: string[] | null;
}

/** How many sessions ended. */
export interface EndedOut {
  ended: number;
}

/** What an endpoint is made of. `{{field}}` in url, path, headers, query and body is a value of the row. */
export interface EndpointChange {
  name?: string | null;
  method?: "POST" | "PUT" | "PATCH" | "DELETE" | "GET" | null;
  /** A whole address; or else: */
  url?: string | null;
  /** A REST connection, whose address and credentials are used. */
  connection_id?: string | null;
  /** A path on that connection. */
  path?: string | null;
  headers?: Record<string, any> | null;
  /** How row values are written in headers: none (default), rfc8187 or percent. */
  header_encoding?: string | null;
  query_params?: Record<string, any> | null;
  /** Left out: the row itself. */
  body?: Record<string, any> | unknown[] | null;
  /** Of a whole address. */
  auth?: Record<string, any> | null;
  /** Of a whole address. */
  environment?: "dev" | "test" | "prod" | null;
  push_mode?: string | null;
  wrapper_key?: string | null;
  batch_size?: number | null;
  retry?: Record<string, any> | null;
  parallel?: number | null;
  rate_per_second?: number | null;
  capture?: Record<string, any> | null;
  delete_path?: string | null;
  idempotent?: boolean | null;
}

/** A new endpoint. */
export interface EndpointIn {
  name: string;
  method?: "POST" | "PUT" | "PATCH" | "DELETE" | "GET" | null;
  /** A whole address; or else: */
  url?: string | null;
  /** A REST connection, whose address and credentials are used. */
  connection_id?: string | null;
  /** A path on that connection. */
  path?: string | null;
  headers?: Record<string, any> | null;
  /** How row values are written in headers: none (default), rfc8187 or percent. */
  header_encoding?: string | null;
  query_params?: Record<string, any> | null;
  /** Left out: the row itself. */
  body?: Record<string, any> | unknown[] | null;
  /** Of a whole address. */
  auth?: Record<string, any> | null;
  /** Of a whole address. */
  environment?: "dev" | "test" | "prod" | null;
  push_mode?: string | null;
  wrapper_key?: string | null;
  batch_size?: number | null;
  retry?: Record<string, any> | null;
  parallel?: number | null;
  rate_per_second?: number | null;
  capture?: Record<string, any> | null;
  delete_path?: string | null;
  idempotent?: boolean | null;
}

/** An endpoint. Secret parts are `********`. */
export interface EndpointOut {
  id: string;
  name: string;
  method: string;
  url: string | null;
  connection_id: string | null;
  path: string | null;
  headers: Record<string, any>;
  header_encoding: "none" | "rfc8187" | "percent";
  query_params: Record<string, any>;
  body: unknown;
  auth: Record<string, any> | null;
  push_mode: string | null;
  wrapper_key: string | null;
  batch_size: number | null;
  retry: Record<string, any> | null;
  parallel: number | null;
  rate_per_second: number | null;
  capture: Record<string, any> | null;
  delete_path: string | null;
  idempotent: boolean | null;
  environment: string;
  project_id: string;
  team_id: string;
  created_by: string | null;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
}

/** Rows into a table of a database. */
export interface ExportDbInput {
  /** Where the rows go. */
  connection_id?: string | null;
  /** Where the rows go, instead of a connection. */
  endpoint_id?: string | null;
  /** Upsert and update find rows by key_columns. */
  mode?: "insert" | "upsert" | "update";
  /** What a failed row does. continue: every row is tried. stop: the first failed row ends the push as failed. stop_when_all_fail: the push ends as failed when the first rows of a table (1,000 of a database, 100 over HTTP) all fail for one reason. */
  on_error?: "continue" | "stop" | "stop_when_all_fail";
  /** How long to wait for a target that cannot be reached or answers no request, in seconds; null: the server's setting TARGET_WAIT_SECONDS. */
  target_wait_seconds?: number | null;
  /** Send nothing: answer three statements and the values that will not fit. */
  dry_run?: boolean;
  /** Send so many rows first (true: ten), and the others only if none was refused. */
  canary?: number | boolean | null;
  /** The connection's name, where it is marked prod. */
  confirm?: string | null;
  /** Make the table where it is missing. */
  create_table?: boolean;
  /** Statements before the rows; admins. */
  before_sql?: string[];
  /** Statements after the rows; admins. */
  after_sql?: string[];
  /** For endpoints and connections that speak HTTP. */
  push_mode?: "per_row" | "batch" | null;
  /** For endpoints and connections that speak HTTP. */
  wrapper_key?: string | null;
  /** For endpoints and connections that speak HTTP. */
  batch_size?: number | null;
  /** For endpoints and connections that speak HTTP. */
  retry?: Record<string, any> | null;
  /** For endpoints and connections that speak HTTP. */
  request_template?: Record<string, any> | null;
  /** For endpoints and connections that speak HTTP. */
  parallel?: number | null;
  /** For endpoints and connections that speak HTTP. */
  rate_per_second?: number | null;
  /** Table, collection or entity set; left out: the one that has the template's name. */
  target?: string | null;
  /** Column by field; null leaves the field out. Fields that are not named go by their names. */
  mapping?: Record<string, string | null>;
  /** Formulas over the fields, by column. */
  computed?: Record<string, string>;
  /** By which rows are found; left out: the table's primary key. */
  key_columns?: string[];
  /** The rows themselves. */
  rows?: Record<string, any>[] | null;
  /** The template whose rows are sent. */
  template_id?: string | null;
  count?: number | null;
  seed?: string | null;
  /** The time that relative dates depend on, or `present` for the time of the clock. If left out: with a seed the template's anchor, otherwise the time of the clock. */
  now?: string | "present" | null;
  offset?: number;
  locale?: string | null;
  overrides?: Record<string, any>;
  /** Another name of target. */
  table?: string | null;
}

/** An export: one file, made or to be made, or `parts` files of `part_rows` rows each. `leaks` is what the leak */
export interface ExportOut {
  id: string;
  status: string;
  template_id: string | null;
  template_version: number | null;
  dataset_id: string | null;
  dataset_version: number | null;
  format: string;
  count: number;
  offset: number;
  rows_done: number;
  bytes: number | null;
  sha256: string | null;
  file_name: string | null;
  download_url: string | null;
  manifest_url: string;
  answers_url: string | null;
  part_rows: number | null;
  parts: number | null;
  parts_done: number | null;
  of_id: string | null;
  attempt: number;
  seed: string;
  now: string | null;
  pins: ExportPins;
  request: Record<string, any>;
  leaks: LeakReport[] | null;
  error: Record<string, any> | null;
  project_id: string;
  team_id: string;
  created_by: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  cancel_requested_at: string | null;
}

/** What a file was made with. The same pins and the same request give the same bytes. */
export interface ExportPins {
  engine: number;
  seed: string;
  now: string | null;
  vocabulary: string | null;
  template_version: number | null;
  dataset_version: number | null;
  locale: string | null;
  references: ReferencePin[];
  tables: TablePins[];
}

/** Rows to an endpoint, or to a connection that speaks HTTP. */
export interface ExportRestInput {
  /** Where the rows go. */
  connection_id?: string | null;
  /** Where the rows go, instead of a connection. */
  endpoint_id?: string | null;
  /** Upsert and update find rows by key_columns. */
  mode?: "insert" | "upsert" | "update";
  /** What a failed row does. continue: every row is tried. stop: the first failed row ends the push as failed. stop_when_all_fail: the push ends as failed when the first rows of a table (1,000 of a database, 100 over HTTP) all fail for one reason. */
  on_error?: "continue" | "stop" | "stop_when_all_fail";
  /** How long to wait for a target that cannot be reached or answers no request, in seconds; null: the server's setting TARGET_WAIT_SECONDS. */
  target_wait_seconds?: number | null;
  /** Send nothing: answer three statements and the values that will not fit. */
  dry_run?: boolean;
  /** Send so many rows first (true: ten), and the others only if none was refused. */
  canary?: number | boolean | null;
  /** The connection's name, where it is marked prod. */
  confirm?: string | null;
  /** Make the table where it is missing. */
  create_table?: boolean;
  /** Statements before the rows; admins. */
  before_sql?: string[];
  /** Statements after the rows; admins. */
  after_sql?: string[];
  /** For endpoints and connections that speak HTTP. */
  push_mode?: "per_row" | "batch" | null;
  /** For endpoints and connections that speak HTTP. */
  wrapper_key?: string | null;
  /** For endpoints and connections that speak HTTP. */
  batch_size?: number | null;
  /** For endpoints and connections that speak HTTP. */
  retry?: Record<string, any> | null;
  /** For endpoints and connections that speak HTTP. */
  request_template?: Record<string, any> | null;
  /** For endpoints and connections that speak HTTP. */
  parallel?: number | null;
  /** For endpoints and connections that speak HTTP. */
  rate_per_second?: number | null;
  /** Table, collection or entity set; left out: the one that has the template's name. */
  target?: string | null;
  /** Column by field; null leaves the field out. Fields that are not named go by their names. */
  mapping?: Record<string, string | null>;
  /** Formulas over the fields, by column. */
  computed?: Record<string, string>;
  /** By which rows are found; left out: the table's primary key. */
  key_columns?: string[];
  /** The rows themselves. */
  rows?: Record<string, any>[] | null;
  /** The template whose rows are sent. */
  template_id?: string | null;
  count?: number | null;
  seed?: string | null;
  /** The time that relative dates depend on, or `present` for the time of the clock. If left out: with a seed the template's anchor, otherwise the time of the clock. */
  now?: string | "present" | null;
  offset?: number;
  locale?: string | null;
  overrides?: Record<string, any>;
}

/** The files of exports, those in progress included. The oldest are removed when a new one needs space. */
export interface ExportsUsedOut {
  limit_bytes: number;
  used_bytes: number;
}

/** The keys that every field has, whatever its type. */
export interface Field {
  /** Kept through every edit; it seeds the column. */
  id?: string | null;
  name: string;
  type: string;
  options?: Record<string, any>;
  /** Real values of it are masked before they leave. */
  sensitive?: boolean;
  /** How; a value of the same kind, if not said. */
  masking?: Masking | null;
  percent_blank?: number | string;
  /** No two rows alike; a word instead: no two alike in all fields with it. */
  unique?: boolean | string;
  hidden?: boolean;
  locale?: string | null;
  group?: string | null;
  formula?: string | null;
  prefix?: string;
  suffix?: string;
  text_case?: "upper" | "lower" | "title" | "sentence" | null;
  description?: string;
  /** Bad values on purpose among its cells. */
  invalid?: Invalid | null;
  /** Of a template with a source: the column it is taken from, where that is not called like it. */
  column?: string | null;
  [other: string]: unknown;
}

/** One field type. `capacity`: distinct values with default options; null where there is no bound or count. */
export interface FieldTypeOut {
  name: string;
  label: string;
  category: string;
  description: string;
  aliases: string[];
  options_schema: Record<string, any>;
  example: unknown;
  capacity: number | null;
}

/** A workspace file. Without a `project_id` it is shared with the whole workspace. */
export interface FileOut {
  id: string;
  name: string;
  size: number;
  content_type: string;
  sha256: string;
  run_id: string | null;
  project_id: string | null;
  team_id: string | null;
  download_url: string;
  created_by: string | null;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
}

/** The file quota. `used_bytes`: live files; `trash_bytes`: deleted files that can still be restored, the oldest of */
export interface FilesUsedOut {
  limit_bytes: number;
  used_bytes: number;
  trash_bytes: number;
  uploading_bytes: number;
  compat_bytes: number;
  files: number;
  trash_files: number;
}

/** One function of the formula language. `result` is what `example` gives in row 1. */
export interface FunctionOut {
  name: string;
  family: string;
  signature: string;
  description: string;
  example: string;
  result: unknown;
  aliases: string[];
}

/** Rows of a template, in a format. */
export interface GenerateInput {
  /** Number of rows; the template's quantity when it is left out. */
  count?: number | null;
  /** Output format; `Accept: text/csv` wins over it. */
  format?: "json" | "csv" | "sql" | "xlsx" | "ndjson" | "parquet";
  /** Same seed, same rows; one is made and told when none is sent. */
  seed?: string | null;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** Rows to skip. */
  offset?: number;
  /** Stands in for the template's own. */
  locale?: string | null;
  /** The time that relative dates depend on, or `present` for the time of the clock. If left out: with a seed the template's anchor, otherwise the time of the clock. */
  now?: string | "present" | null;
  /** Rows of related templates, by id: what references choose from and children are dealt out to. */
  rows?: Record<string, number>;
  /** How CSV is written. */
  csv?: CsvOptions | null;
  /** How SQL is written. */
  sql?: SqlOptions | null;
  /** Arrays in CSV and XLSX: JSON text in one cell, or numbered columns. */
  arrays?: "json" | "columns" | null;
}

/** What templates are made from. Nothing is saved where `save` is false; `quantity` is that of each template. */
export interface ImportIn {
  format?: "auto" | "csv" | "json" | "ndjson" | "xlsx" | "sql" | "json_schema" | "openapi" | "avro" | "protobuf" | "mockaroo";
  content?: string | null;
  file?: string | null;
  name?: string | null;
  save?: boolean;
  quantity?: number;
}

/** The templates, what each column came to, and the dataset of several. A report without a column tells of a */
export interface ImportOut {
  format: string;
  templates: ImportedTemplate[];
  dataset: DatasetOut | null;
  report: ColumnReport[];
}

/** A template of an import; without an id where it was not saved. */
export interface ImportedTemplate {
  id: string | null;
  name: string;
  quantity: number;
  version: number | null;
  fields: Field[];
}

/** Bad values on purpose: on a field a share of its cells, on a template a share of its rows, each of which then */
export interface Invalid {
  /** 0.01 is one in a hundred, exactly. */
  rate: number | string;
  /** Which kinds, each as often; all that the field can have, if left out. */
  kinds?: ("wrong_type" | "too_long" | "bad_checksum" | "out_of_range" | "bad_format" | "missing" | "duplicate" | "orphan" | "injection" | "unicode_edge")[] | null;
}

/** Whom to invite, into the workspace or one team of it. */
export interface InvitationIn {
  email: string;
  role?: "viewer" | "editor" | "admin" | "owner";
  team_id?: string | null;
}

/** An invitation that can still be accepted. */
export interface InvitationOut {
  id: string;
  email: string;
  role: "viewer" | "editor" | "admin" | "owner";
  team_id: string | null;
  created_by: string | null;
  created_at: string;
  expires_at: string;
}

/** One sensitive column: how many values were looked at, and how many stood unmasked in their own row (0: one would */
export interface LeakColumn {
  column: string;
  source_column: string;
  strategy: string;
  key_version: number;
  values: number;
  survivors: number;
  whole_column: WholeColumn;
}

/** What the leak check saw of one table. */
export interface LeakReport {
  table: string;
  columns: LeakColumn[];
}

/** An Enterprise workspace's own numbers; null: the plan's. */
export interface LimitsIn {
  requests_per_minute?: number | null;
  rows_per_hour?: number | null;
  rows_per_generation?: number | null;
}

/** The limits that hold now. */
export interface LimitsOut {
  requests_per_minute: number;
  rows_per_hour: number;
  rows_per_generation: number;
}

/** The process answers. */
export interface Live {
  status: string;
}

/** What the requirements of a version came to when it was saved: the packages of every run of it. */
export interface LockOut {
  environment: string;
  packages: Record<string, string>;
}

/** What an export is made of, and of which rows. One that was not made in parts has one part. */
export interface ManifestOut {
  export_id: string;
  status: string;
  template_id: string | null;
  template_version: number | null;
  dataset_id: string | null;
  dataset_version: number | null;
  seed: string;
  now: string | null;
  engine: number;
  vocabulary: string | null;
  locale: string | null;
  format: string;
  file_name: string;
  concatenates: boolean;
  offset: number;
  rows: number;
  part_rows: number | null;
  bytes: number | null;
  sha256: string | null;
  download_url: string | null;
  parts: PartOut[];
}

/** How real values of a field are masked. */
export interface Masking {
  /** How a real value becomes another one. */
  strategy: "replace" | "format_preserve" | "tokenize" | "hash" | "shift" | "redact" | "null";
  /** The same value is masked alike in every run; else in this run only. */
  consistent?: boolean;
  /** Fields of one domain mask the same value alike, in every template; the type's name, if not said. */
  domain?: string | null;
  /** The version of the workspace's masking key; the newest, if not said. */
  key_version?: number | null;
  /** The field that tells whose date it is: dates of one person are shifted by the same days. */
  person?: string | null;
}

/** A version of the masking key, without the key. */
export interface MaskingKeyOut {
  version: number;
  created_by: string | null;
  created_at: string;
}

/** The versions, newest first. The newest masks, where a field does not say `key_version`. */
export interface MaskingKeysOut {
  items: MaskingKeyOut[];
}

/** Who is asking, where, and what they may do. */
export interface MeOut {
  kind: string;
  user_id: string | null;
  user_name: string;
  email: string;
  workspace_id: string;
  project_id: string | null;
  team_id: string | null;
  role: string | null;
  workspace_role: string | null;
  scopes: string[] | null;
  key_id: string | null;
  plan: string;
  limits: LimitsOut;
}

/** Somebody who belongs to the workspace already, and the role they get in a team; without `team_id` in the whole */
export interface MemberIn {
  user_id: string;
  role?: "viewer" | "editor" | "admin" | "owner";
  team_id?: string | null;
}

/** A person's role in the workspace, or in one team of it. `two_factor`: whether they have a second factor, which */
export interface MemberOut {
  id: string;
  user_id: string;
  email: string;
  name: string;
  role: "viewer" | "editor" | "admin" | "owner";
  team_id: string | null;
  two_factor: boolean | null;
  created_at: string;
}

/** Another role. */
export interface MemberPatch {
  role: "viewer" | "editor" | "admin" | "owner";
}

/** A value that will not fit its column, or (`row` null) what may bring one. */
export interface MisfitOut {
  table: string;
  column: string;
  field: string | null;
  row: number | null;
  value: unknown;
  reason: string;
  message: string;
  hint: string;
}

/** Objects for a project, by their ids. `related`: what else hangs together with them makes a refusal that names it */
export interface MoveIn {
  objects: string[];
  related?: "refuse" | "take" | "leave";
}

/** One object that lies in the project now. */
export interface MovedOut {
  type: string;
  id: string;
  name: string;
}

/** What moved. */
export interface MovesOut {
  items: MovedOut[];
  total: number;
}

/** The answer to a creation: the only one that holds the key itself. */
export interface NewApiKeyOut {
  id: string;
  name: string;
  prefix: string;
  project_id: string;
  scopes: string[] | null;
  api_version: string;
  created_by: string;
  created_at: string;
  expires_at: string | null;
  last_used_at: string | null;
  last_used_address: string | null;
  unused: boolean;
  revoked_at: string | null;
  key: string;
}

/** The answer to an invitation: the only one that holds its link, to be passed on by the inviter. `mailed`: the */
export interface NewInvitationOut {
  id: string;
  email: string;
  role: "viewer" | "editor" | "admin" | "owner";
  team_id: string | null;
  created_by: string | null;
  created_at: string;
  expires_at: string;
  url: string;
  mailed: boolean;
}

/** The only answer that holds the secret that signs. */
export interface NewWebhookOut {
  id: string;
  scope: "project" | "workspace";
  project_id: string | null;
  team_id: string | null;
  description: string;
  url: string;
  events: string[];
  active: boolean;
  off_reason: string | null;
  failures: number;
  failing_since: string | null;
  old_secret_until: string | null;
  created_by: string | null;
  created_at: string;
  updated_at: string;
  secret: string;
}

/** A file that a run left behind. */
export interface OutputFile {
  name: string;
  size: number;
  file_id: string;
}

/** One part: `rows` rows from row `offset` of the template on, and the file of them once it is made. */
export interface PartOut {
  number: number;
  offset: number;
  rows: number;
  status: string;
  attempt: number;
  rows_done: number;
  bytes: number | null;
  sha256: string | null;
  download_url: string | null;
  error: Record<string, any> | null;
}

/** What a push would write where. `needs_confirmation` is what `confirm` must say. */
export interface PlanOut {
  connection_id: string;
  needs_confirmation: string | null;
  modes: string[];
  create_table: boolean;
  statements: boolean;
  total: number;
  tables: PlannedTable[];
}

/** What one column gets: `state` is field, skipped or missing. */
export interface PlannedColumn {
  column: string;
  state: string;
  field: string | null;
  formula: string | null;
  how: string | null;
  skipped: string | null;
  type: string;
  declared: string;
  nullable: boolean;
  key: boolean;
  unique: boolean;
  max_length: number | null;
  generated: string;
  default: string | null;
  from_parent: number | null;
  misfits: MisfitOut[];
}

/** A field that may be sent. */
export interface PlannedField {
  name: string;
  type: string;
  label: string;
  sensitive: boolean;
}

/** The mapping of one table, with its faults. */
export interface PlannedTable {
  name: string;
  target: string;
  create: boolean;
  mode: string;
  count: number;
  key_columns: string[];
  capture: string[];
  later: string[];
  columns: PlannedColumn[];
  fields: PlannedField[];
  unused: string[];
  faults: Record<string, any>[];
}

/** Three rows of a template or, with `fields`, of an unsaved draft of it. */
export interface PreviewIn {
  /** Same seed, same rows; one is made and told when none is sent. */
  seed?: string | null;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** The time that relative dates depend on, or `present` for the time of the clock. If left out: with a seed the template's anchor, otherwise the time of the clock. */
  now?: string | "present" | null;
  /** Stands in for the template's own. */
  locale?: string | null;
  /** Rows of related templates, by id: what references choose from and children are dealt out to. */
  rows?: Record<string, number>;
  /** Field definitions of an unsaved draft. */
  fields?: Field[] | null;
  /** Real data that the rows are taken from: a workspace file, or a connection's table or query. Of a draft; not said: the template's own. */
  source?: SourceSpec | null;
  /** Bad values on purpose: a share of the rows, each with one bad cell. Of a draft; not said: the template's own. */
  invalid?: Invalid | null;
  /** Ask connections for values that have not been fetched yet; else examples stand for them. Not said: of a saved template, not of a draft. */
  fetch?: boolean | null;
}

/** The first three rows, and the seed that makes them again; of a template with bad values also which cells are */
export interface PreviewOut {
  rows: Record<string, any>[];
  seed: string;
  warnings: Record<string, string>[];
  bad?: BadCell[] | null;
}

/** A new project; `team_id` left out: the team of the present project. */
export interface ProjectIn {
  name: string;
  description?: string;
  team_id?: string | null;
}

/** A project. */
export interface ProjectOut {
  id: string;
  name: string;
  description: string;
  team_id: string;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
}

/** What of a project can change; another `team_id` puts it, with all that lies in it, into that team. */
export interface ProjectPatch {
  name?: string | null;
  description?: string | null;
  team_id?: string | null;
}

/** A deleted file that was removed for good, because an upload needed its space. */
export interface PurgedOut {
  id: string;
  name: string;
  size: number;
}

/** What is sent to one column: a field, or a formula; neither for a key of ours. */
export interface PushColumn {
  column: string;
  field: string | null;
  formula: string | null;
}

/** Rows of a template into a table. */
export interface PushInput {
  /** Where the rows go. */
  connection_id?: string | null;
  /** Where the rows go, instead of a connection. */
  endpoint_id?: string | null;
  /** Upsert and update find rows by key_columns. */
  mode?: "insert" | "upsert" | "update";
  /** What a failed row does. continue: every row is tried. stop: the first failed row ends the push as failed. stop_when_all_fail: the push ends as failed when the first rows of a table (1,000 of a database, 100 over HTTP) all fail for one reason. */
  on_error?: "continue" | "stop" | "stop_when_all_fail";
  /** How long to wait for a target that cannot be reached or answers no request, in seconds; null: the server's setting TARGET_WAIT_SECONDS. */
  target_wait_seconds?: number | null;
  /** Send nothing: answer three statements and the values that will not fit. */
  dry_run?: boolean;
  /** Send so many rows first (true: ten), and the others only if none was refused. */
  canary?: number | boolean | null;
  /** The connection's name, where it is marked prod. */
  confirm?: string | null;
  /** Make the table where it is missing. */
  create_table?: boolean;
  /** Statements before the rows; admins. */
  before_sql?: string[];
  /** Statements after the rows; admins. */
  after_sql?: string[];
  /** For endpoints and connections that speak HTTP. */
  push_mode?: "per_row" | "batch" | null;
  /** For endpoints and connections that speak HTTP. */
  wrapper_key?: string | null;
  /** For endpoints and connections that speak HTTP. */
  batch_size?: number | null;
  /** For endpoints and connections that speak HTTP. */
  retry?: Record<string, any> | null;
  /** For endpoints and connections that speak HTTP. */
  request_template?: Record<string, any> | null;
  /** For endpoints and connections that speak HTTP. */
  parallel?: number | null;
  /** For endpoints and connections that speak HTTP. */
  rate_per_second?: number | null;
  /** Table, collection or entity set; left out: the one that has the template's name. */
  target?: string | null;
  /** Column by field; null leaves the field out. Fields that are not named go by their names. */
  mapping?: Record<string, string | null>;
  /** Formulas over the fields, by column. */
  computed?: Record<string, string>;
  /** By which rows are found; left out: the table's primary key. */
  key_columns?: string[];
  /** Number of rows; the template's quantity when it is left out. */
  count?: number | null;
  /** Same seed, same rows; one is made and told when none is sent. */
  seed?: string | null;
  /** The time that relative dates depend on, or `present` for the time of the clock. If left out: with a seed the template's anchor, otherwise the time of the clock. */
  now?: string | "present" | null;
  /** Rows to skip. */
  offset?: number;
  /** Stands in for the template's own. */
  locale?: string | null;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** Rows of related templates, by id. */
  rows?: Record<string, number>;
}

/** Rows sent to a connection, or to be sent. */
export interface PushOut {
  id: string;
  kind: string;
  of_id: string | null;
  status: string;
  counts: Counts;
  connection_id: string | null;
  endpoint_id: string | null;
  template_id: string | null;
  template_version: number | null;
  dataset_id: string | null;
  dataset_version: number | null;
  target: string;
  mode: string;
  tables: PushTable[];
  seed: string;
  now: string | null;
  offset: number;
  attempt: number;
  progress: number[][];
  pins: ExportPins;
  request: Record<string, any>;
  leaks: LeakReport[] | null;
  waiting: WaitingOut | null;
  error: Record<string, any> | null;
  project_id: string;
  team_id: string;
  created_by: string | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  cancel_requested_at: string | null;
}

/** One table of a push. `from_parent` names columns that take the key of a row of another table of the push, by */
export interface PushTable {
  name: string;
  template_id: string | null;
  template_version: number | null;
  target: string;
  count: number;
  offset: number;
  mode: string;
  key_columns: string[];
  columns: PushColumn[];
  from_parent: Record<string, number>;
  create: boolean;
}

/** Work of one queue, of all workspaces together. `oldest_seconds`: how long the oldest has waited. */
export interface QueueOut {
  waiting: number;
  running: number;
  oldest_seconds: number | null;
}

/** A limit and what is used of it. `next_at`: when the first part of it comes free; `resets_at`: when all of it has, */
export interface RateOut {
  limit: number;
  used: number;
  left: number;
  window_seconds: number;
  next_at: string | null;
  resets_at: string | null;
}

/** `sandbox`: how the runners keep programs apart: bubblewrap, landlock, plain or none, in one text where they */
export interface ReadyOut {
  status: string;
  database?: boolean;
  redis?: boolean;
  storage?: boolean;
  worker?: boolean;
  runner?: boolean;
  sandbox?: string;
  version?: string;
  engine?: number;
  parts?: Record<string, ReadyPart>;
  queues?: Record<string, QueueOut>;
  oldest_lease_seconds?: number | null;
}

/** One part. `state`: ok, missing, slow (no answer in time), behind (the database's schema is older than the */
export interface ReadyPart {
  state: string;
  ms: number;
  kind?: string | null;
  version?: string | null;
  revision?: string | null;
  count?: number | null;
}

/** A template that relations reach: which version of it, and how many rows they reckon with. */
export interface ReferencePin {
  template_id: string;
  version: number;
  rows: number;
}

/** How many answers are not used any more. */
export interface RefreshedOut {
  forgotten: number;
}

/** How to run it again: which version, with which parameters (none: those of the run). */
export interface RerunIn {
  version?: "same" | "newest";
  params?: Record<string, string> | null;
  wait?: true | false | "true" | "false";
}

/** Rows of a push that did not arrive, sent once more; a mapping and overrides may repair them. */
export interface RetryInput {
  /** Which rows. Pending: those that were never sent, because the push failed or was cancelled. */
  states?: ("failed" | "unknown" | "pending")[];
  /** Row numbers from 1, to narrow the retry; of the table `table`. */
  rows?: number[] | null;
  /** Rows of this table alone. */
  table?: string | null;
  /** Instead of the push's own, by field. */
  mapping?: Record<string, string | null>;
  /** Formulas, by column. */
  computed?: Record<string, string>;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** What a failed row does. continue: every row is tried. stop: the first failed row ends the push as failed. stop_when_all_fail: the push ends as failed when the first rows of a table (1,000 of a database, 100 over HTTP) all fail for one reason. */
  on_error?: "continue" | "stop" | "stop_when_all_fail";
  confirm?: string | null;
}

/** The keys that were revoked. */
export interface RevokedOut {
  items: ApiKeyOut[];
  total: number;
}

/** What became of one row. `values` only where they were asked for. */
export interface RowOut {
  table: string;
  row: number;
  state: string;
  attempts: number;
  status_code: number | null;
  code: string;
  native: string;
  column: string | null;
  message: string;
  key: Record<string, any> | null;
  ms: number | null;
  values?: Record<string, any> | null;
}

/** How to run a scenario. `params` become environment variables of its program. `wait`: answer when it has ended, or */
export interface RunIn {
  params?: Record<string, string>;
  wait?: true | false | "true" | "false";
}

/** A run. `error` has a code of docs/reference/runs.md; `usage` are [seconds, bytes of memory, processor time in */
export interface RunOut {
  id: string;
  run_id: string;
  scenario_id: string;
  scenario_version: number;
  of_id: string | null;
  status: string;
  params: Record<string, string>;
  trigger: string;
  exit_code: number | null;
  error: Record<string, any> | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  cancel_requested_at: string | null;
  duration_ms: number | null;
  max_rss_bytes: number | null;
  cpu_ms: number | null;
  rows_generated: number;
  line_count: number;
  log_bytes: number;
  usage: number[][];
  outputs: OutputFile[];
  timeout_seconds: number;
  network: string;
  project_id: string;
  team_id: string;
  created_by: string | null;
}

/** What changed from one version to another; `code` in unified form. */
export interface ScenarioDiffOut {
  scenario_id: string;
  from: number;
  to: number;
  scenario: Record<string, any>;
  requirements: Record<string, string[]>;
  packages: Record<string, Record<string, any>>;
  code: string;
}

/** A new scenario. */
export interface ScenarioInput {
  description?: string;
  /** A run is ended after so long. */
  timeout_seconds?: number;
  /** Environment variables of every run, texts by name. */
  env?: Record<string, string>;
  /** Names of workspace secrets that a run gets as variables under their own names. */
  secrets?: string[];
  /** Names of workspace secrets that a run may set. */
  writable_secrets?: string[];
  /** `full`: the internet and the API; `api`: the API alone; `none`: nothing. */
  network?: "full" | "api" | "none";
  schedule?: ScheduleInput | null;
  name: string;
  /** The Python program, run as main.py: UTF-8, at most 1,048,576 bytes. */
  code: string;
}

/** A scenario as of one version; how it is run is always as it is now. */
export interface ScenarioOut {
  id: string;
  name: string;
  description: string;
  code: string;
  version: number;
  timeout_seconds: number;
  env: Record<string, string>;
  secrets: string[];
  writable_secrets: string[];
  network: "full" | "api" | "none";
  schedule: ScheduleOut | null;
  next_run_at: string | null;
  requirements: string[];
  lock: LockOut | null;
  project_id: string;
  team_id: string;
  created_by: string | null;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
  warnings: WarningOut[];
}

/** What of a scenario can change; what is left out stays. */
export interface ScenarioPatch {
  description?: string;
  /** A run is ended after so long. */
  timeout_seconds?: number;
  /** Environment variables of every run, texts by name. */
  env?: Record<string, string>;
  /** Names of workspace secrets that a run gets as variables under their own names. */
  secrets?: string[];
  /** Names of workspace secrets that a run may set. */
  writable_secrets?: string[];
  /** `full`: the internet and the API; `api`: the API alone; `none`: nothing. */
  network?: "full" | "api" | "none";
  schedule?: ScheduleInput | null;
  name?: string;
  /** The Python program, run as main.py: UTF-8, at most 1,048,576 bytes. */
  code?: string;
}

/** When a scenario runs by itself. */
export interface ScheduleInput {
  /** Five fields: minute, hour, day of month, month, day of week. */
  cron: string;
  /** A name of the IANA database: `Europe/Berlin`. */
  timezone?: string;
  enabled?: boolean;
  /** Parameters of every such run. */
  params?: Record<string, string>;
}

/** When a scenario runs by itself. */
export interface ScheduleOut {
  cron: string;
  timezone: string;
  enabled: boolean;
  params: Record<string, string>;
}

/** A seal: `hash` is what the next one goes on from; its entries are gone where `removed_at` says when. */
export interface SealOut {
  number: number;
  count: number;
  first_id: string;
  last_id: string;
  last_at: string;
  previous: string;
  hash: string;
  sealed_at: string;
  removed_at: string | null;
}

/** A secret's new value, and who may use it. What is left out stays as it is; a new secret needs a value. */
export interface SecretIn {
  value?: string | null;
  allowed_hosts?: string[] | null;
  project_id?: string | null;
}

/** A secret, without its value. `allowed_hosts`: the hosts that connections may send it to; null for any host. */
export interface SecretOut {
  id: string;
  name: string;
  allowed_hosts: string[] | null;
  project_id: string | null;
  created_by: string | null;
  created_at: string;
  updated_at: string;
}

/** One signed-in browser. `how` is how it came: password, link, invitation or oidc; `two_factor`: with a second */
export interface SessionOut {
  id: string;
  address: string;
  user_agent: string;
  how: string;
  two_factor: boolean;
  created_at: string;
  last_seen_at: string;
  expires_at: string;
  current: boolean;
}

/** Switches of a workspace. */
export interface SettingsIn {
  redact_run_logs?: boolean | null;
  require_two_factor?: boolean | null;
  audit_retention_days?: number | null;
}

/** What one project, template, key or person used; `steps` are those in which it was anything. `id` is empty for */
export interface ShareOut {
  id: string;
  name: string;
  rows: number;
  requests: number;
  steps: StepOut[];
}

/** Where the rows of a template come from: a file of the workspace, or a table or query of a connection. */
export interface SourceSpec {
  /** A workspace file: CSV, JSON, NDJSON, XLSX or Parquet, told by its name's ending. */
  file?: string | null;
  /** Of XLSX: the sheet; else the first. */
  sheet?: string | null;
  /** A connection to a database. */
  connection_id?: string | null;
  /** One of its tables, by its primary key. */
  table?: string | null;
  /** Which rows of the table: a condition in the target's own language, as after WHERE. */
  where?: string | null;
  /** A query in the target's own language; let it say an order. */
  query?: string | null;
  /** No more rows than these. */
  limit?: number | null;
}

/** ``table`` may name a schema before a dot; without one it is made from the template's name. */
export interface SqlOptions {
  table?: string | null;
  dialect?: "ansi" | "postgresql" | "mysql" | "mssql" | "oracle" | "db2";
  create_table?: boolean;
  rows_per_statement?: number | null;
}

/** ``table`` may name a schema before a dot; without one it is made from the template's name. */
export interface SqlScriptOptions {
  dialect?: "ansi" | "postgresql" | "mysql" | "mssql" | "oracle" | "db2";
  create_table?: boolean;
  rows_per_statement?: number | null;
}

/** The files of SQLite connections, their journals included. */
export interface SqliteUsedOut {
  limit_bytes: number;
  used_bytes: number;
  limit_files: number;
  files: number;
}

/** How one stage of a verification went. */
export interface StageOut {
  name: string;
  ok: boolean;
  code: string;
  message: string;
  hint: string;
  ms: number;
}

/** An hour or a day, by its beginning. */
export interface StepOut {
  start: string;
  rows: number;
  requests: number;
}

/** How much the workspace stores, and how much it may store. */
export interface StorageOut {
  files: FilesUsedOut;
  sqlite: SqliteUsedOut;
  exports: ExportsUsedOut;
}

/** From which rows of which table, and how far. */
export interface SubsetIn {
  table: string;
  /** Which rows of it: a condition in the target's own language, as after WHERE. */
  where?: string;
  /** No more rows of it than these, the first by its primary key. */
  limit?: number | null;
  /** Tables whose rows come along where they refer to such rows; null: all, []: none. */
  children?: string[] | null;
  /** Steps down to children. */
  depth?: number;
  /** Of the dataset. */
  name?: string | null;
}

/** The dataset that was made, its templates, and what each table holds. */
export interface SubsetOut {
  dataset: DatasetOut;
  templates: TemplateOut[];
  report: SubsetTable[];
}

/** What one table holds of the subset, over which ways, and which of its columns are masked. */
export interface SubsetTable {
  table: string;
  template_id: string;
  rows: number;
  ways: string[];
  sensitive: string[];
}

/** A field, and what is known of it. `sample`: some of its values, which a model is shown where one is asked. */
export interface SuggestIn {
  name: string;
  description?: string;
  sample?: unknown[];
  connection_id?: string | null;
}

/** Types, the likeliest first; at least one. */
export interface SuggestOut {
  suggestions: Suggestion[];
}

/** A type with options to begin with. `source` says what it follows from. */
export interface Suggestion {
  type: string;
  options: Record<string, any>;
  reason: string;
  source: "name" | "sample" | "ai";
}

/** What one table of a dataset's file was made with. */
export interface TablePins {
  name: string;
  template_id: string;
  template_version: number;
  rows: number;
  now: string;
  vocabulary: string;
  locale: string | null;
  references: ReferencePin[];
}

/** The first rows of one table, and how many it has. */
export interface TablePreview {
  name: string;
  template_id: string;
  rows: Record<string, any>[];
  count: number;
}

/** Which tables, by the names that the connection's metadata has. */
export interface TablesIn {
  entities: string[];
  quantity?: number;
}

/** The templates that were made, what each column came to, and for operations of an API their endpoints. */
export interface TablesOut {
  templates: TemplateOut[];
  report: ColumnReport[];
  endpoints: EndpointOut[];
}

/** A team. */
export interface TeamIn {
  name: string;
}

/** A team. */
export interface TeamOut {
  id: string;
  name: string;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
}

/** Rows of a template in a file that workers make. */
export interface TemplateExportInput {
  /** Number of rows; the template's quantity when it is left out. */
  count?: number | null;
  /** Output format; `Accept: text/csv` wins over it. */
  format?: "json" | "csv" | "sql" | "xlsx" | "ndjson" | "parquet";
  /** Same seed, same rows; one is made and told when none is sent. */
  seed?: string | null;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** Rows to skip. */
  offset?: number;
  /** Stands in for the template's own. */
  locale?: string | null;
  /** The time that relative dates depend on, or `present` for the time of the clock. If left out: with a seed the template's anchor, otherwise the time of the clock. */
  now?: string | "present" | null;
  /** Rows of related templates, by id: what references choose from and children are dealt out to. */
  rows?: Record<string, number>;
  /** How CSV is written. */
  csv?: CsvOptions | null;
  /** How SQL is written. */
  sql?: SqlOptions | null;
  /** Arrays in CSV and XLSX: JSON text in one cell, or numbered columns. */
  arrays?: "json" | "columns" | null;
  /** Have more than 100,000 rows made as parts of so many, by workers at once. */
  part_rows?: number | null;
}

/** A new template. */
export interface TemplateIn {
  name: string;
  fields: Field[];
  description?: string;
  quantity?: number;
  locale?: string | null;
  anchor?: string | null;
  source?: SourceSpec | null;
  invalid?: Invalid | null;
}

/** A template as of one version. */
export interface TemplateOut {
  id: string;
  name: string;
  description: string;
  quantity: number;
  fields: Field[];
  version: number;
  locale: string | null;
  anchor: string | null;
  source: Record<string, any> | null;
  invalid: Record<string, any> | null;
  project_id: string;
  team_id: string;
  created_by: string | null;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
  warnings: Record<string, string>[];
  references: TemplateReference[];
}

/** What of a template can change; what is left out stays. */
export interface TemplatePatch {
  name?: string;
  fields?: Field[];
  description?: string;
  quantity?: number;
  locale?: string | null;
  anchor?: string | null;
  source?: SourceSpec | null;
  invalid?: Invalid | null;
}

/** A template that fields reach, directly or through others, as it was when the version was saved. */
export interface TemplateReference {
  template_id: string;
  version: number;
  rows: number;
}

/** Something deleted. It is gone for good at `gone_at`; `restorable`: the caller may have it back until then. */
export interface TrashedOut {
  type: string;
  id: string;
  name: string;
  project_id: string | null;
  deleted_at: string;
  deleted_by: string | null;
  deleted_by_name: string | null;
  gone_at: string;
  days_left: number;
  restorable: boolean;
}

/** One attempt at a delivery. */
export interface TryOut {
  at: string;
  response_status: number | null;
  ms: number | null;
  reason: string;
}

/** Rows of a push, deleted again. */
export interface UndoInput {
  confirm?: string | null;
}

/** An uploaded file. `purged` are the deleted files that were removed for good to make room for it. */
export interface UploadedOut {
  id: string;
  name: string;
  size: number;
  content_type: string;
  sha256: string;
  run_id: string | null;
  project_id: string | null;
  team_id: string | null;
  download_url: string;
  created_by: string | null;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
  purged: PurgedOut[];
}

/** What was used. Rows are those taken of the hour less those given back; requests those that were let in. */
export interface UsageHistoryOut {
  by: string | null;
  step: "hour" | "day";
  start: string;
  end: string;
  rows: number;
  requests: number;
  steps: StepOut[];
  shares: ShareOut[];
}

/** The limits, what is used of them just now, and what was used before. */
export interface UsageOut {
  plan: string;
  requests: RateOut;
  rows: RateOut;
  rows_per_generation: number;
  /** limits of which 80 % are used */
  near: ("requests" | "rows")[];
  storage: StorageOut;
  history: UsageHistoryOut;
}

/** One object that uses another, and how. What `blocks` must be gone before that other can be deleted. `id` and */
export interface UseOut {
  type: string;
  id: string | null;
  name: string | null;
  how: string;
  blocks: boolean;
}

/** What uses an object. */
export interface UsesOut {
  items: UseOut[];
  total: number;
  blocked: boolean;
}

/** How a verification went: `verified` or `failed`, stage by stage. */
export interface VerificationOut {
  status: string;
  stages: StageOut[];
  response: Record<string, any> | null;
  checked_at: string;
}

/** The target cannot be reached or answers no request: since when, how often it was tried, when it is tried next. */
export interface WaitingOut {
  since: string;
  tries: number;
  reason: string;
  message: string;
  next_try_at: string;
  next_try_in_seconds: number;
}

/** What will surprise, and is no reason to refuse. */
export interface WarningOut {
  path: string;
  code: string;
  message: string;
  hint?: string | null;
  position?: number | null;
}

/** A new webhook. `events`: names such as `push.failed`, all of a kind (`push.*`), or `*`. `scope` workspace: of */
export interface WebhookIn {
  url: string;
  events: ("*" | "export.*" | "push.*" | "run.*" | "export.completed" | "export.failed" | "export.cancelled" | "push.completed" | "push.failed" | "push.cancelled" | "run.completed" | "run.failed" | "run.cancelled" | "run.timed_out" | "limit.warning")[];
  description?: string;
  scope?: "project" | "workspace";
}

/** A webhook, without its secret. `off_reason`: why the service turned it off, `gone` or `failing`. `failures`: */
export interface WebhookOut {
  id: string;
  scope: "project" | "workspace";
  project_id: string | null;
  team_id: string | null;
  description: string;
  url: string;
  events: string[];
  active: boolean;
  off_reason: string | null;
  failures: number;
  failing_since: string | null;
  old_secret_until: string | null;
  created_by: string | null;
  created_at: string;
  updated_at: string;
}

/** What of a webhook can change. Turned on again (`active`), its failures are forgotten. */
export interface WebhookPatch {
  url?: string | null;
  events?: ("*" | "export.*" | "push.*" | "run.*" | "export.completed" | "export.failed" | "export.cancelled" | "push.completed" | "push.failed" | "push.cancelled" | "run.completed" | "run.failed" | "run.cancelled" | "run.timed_out" | "limit.warning")[] | null;
  description?: string | null;
  active?: boolean | null;
}

/** Whether real values of the column stand in any row. `kind` is none where that cannot be by design and one would */
export interface WholeColumn {
  kind: string;
  distinct: number;
  share: number;
  found: number;
  expected: number | null;
}

/** The workspace's name, typed to say that it is meant. */
export interface WorkspaceDeletion {
  confirm: string;
}

/** The workspace. */
export interface WorkspaceOut {
  id: string;
  name: string;
  plan: string;
  limits: LimitsOut;
  settings: Record<string, any>;
  created_at: string;
  updated_at: string;
  deleted_at: string | null;
}

/** What of a workspace can change; plan and limits by its owner. */
export interface WorkspacePatch {
  name?: string | null;
  plan?: "free" | "pro" | "enterprise" | null;
  limits?: LimitsIn | null;
  settings?: SettingsIn | null;
}
