// Inputs and outputs of the API, generated from its OpenAPI document by tools/generate.py: do not edit.

/** A schema to compare with a template. */
export interface AgainIn {
  format?: "auto" | "csv" | "json" | "ndjson" | "xlsx" | "sql" | "json_schema" | "openapi" | "avro" | "protobuf" | "mockaroo";
  content?: string | null;
  file?: string | null;
  name?: string | null;
  table?: string | null;
  accept?: string[] | null;
}

/** The template, its differences from the schema, and the applied columns (null: none were requested). */
export interface AgainOut {
  template: TemplateOut;
  table: string;
  format: string;
  columns: ColumnChange[];
  report: ColumnReport[];
  accepted: string[] | null;
}

/** A new key. */
export interface ApiKeyIn {
  name: string;
  scopes?: ("read" | "write" | "generate" | "push" | "run" | "secrets" | "admin")[] | null;
  expires_at?: string | null;
  project_id?: string | null;
}

/** A key without its secret. */
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

/** An audit entry. */
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

/** An injected invalid cell: its row, counted from 1, field, kind, and the original value. */
export interface BadCell {
  row: number;
  field: string;
  kind: string;
  good: unknown;
}

/** The outcome of injected invalid rows. */
export interface BadRowsOut {
  bad: number;
  refused: number;
  taken: number;
  unknown: number;
  good_refused: number;
}

/** The field types, and the functions of formulas that match `q`. */
export interface CatalogueOut {
  items: FieldTypeOut[];
  next_cursor: string | null;
  total: number;
  functions: FunctionOut[];
}

/** An unsaved program. */
export interface CheckInput {
  /** The Python program, run as main.py: UTF-8, at most 1,048,576 bytes. */
  code: string;
  /** Also query the package index, as saving does. This can take seconds. */
  resolve?: boolean;
}

/** The result of checking a program. Errors prevent saving, warnings do not. */
export interface CheckOut {
  requirements: string[];
  packages: Record<string, string> | null;
  faults: WarningOut[];
  warnings: WarningOut[];
}

/** One column. */
export interface ClassifiedOut {
  name: string;
  kind: string | null;
  sensitive: boolean;
  confidence: number;
  reason: string;
  type: string | null;
  masking: Masking | null;
  options: Record<string, unknown> | null;
}

/** A sample: `rows`, a workspace `file` (`sheet` of a workbook), or the `table` of a connection. */
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

/** A scenario's code, and optional further changes; keys that are left out keep their values. */
export interface CodeInput {
  description?: string;
  /** Time limit of a run in seconds. */
  timeout_seconds?: number;
  /** Environment variables of every run: text values by name. */
  env?: Record<string, string>;
  /** Names of workspace secrets that a run gets as variables with the same names. */
  secrets?: string[];
  /** Names of workspace secrets that a run may set. */
  writable_secrets?: string[];
  /** `full`: the internet and the API; `api`: only the API; `none`: no network. */
  network?: "full" | "api" | "none";
  schedule?: ScheduleInput | null;
  /** The Python program, run as main.py: UTF-8, at most 1,048,576 bytes. */
  code: string;
  name?: string;
}

/** A column that differs: the template's field, and the field that results from the schema. */
export interface ColumnChange {
  column: string;
  change: "added" | "removed" | "changed";
  from: Record<string, any> | null;
  to: Record<string, any> | null;
  state: "green" | "yellow" | "red";
  reason: string;
}

/** The result for one column. */
export interface ColumnReport {
  table: string;
  column: string;
  type: string | null;
  state: "green" | "yellow" | "red";
  confidence?: "high" | "check" | "unknown";
  reason: string;
}

/** The changes. `settings` must be complete; a secret sent back as `********` is kept. */
export interface ConnectionChange {
  name?: string | null;
  settings?: Record<string, any> | null;
  connection_string?: string | null;
  environment?: "dev" | "test" | "prod" | null;
  read_only?: boolean | null;
}

/** A new connection. */
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

/** Rows of a push by outcome; the total is the sum of the others. */
export interface Counts {
  total: number;
  delivered: number;
  failed: number;
  unknown: number;
  pending: number;
  undone: number;
}

/** ``quote``: ``minimal`` quotes only values that need it, ``all`` every value that is not NULL. */
export interface CsvOptions {
  delimiter?: "," | ";" | "\t" | "|" | "^" | "~";
  header?: boolean;
  quote?: "minimal" | "all";
  /** Escape values that spreadsheets run as formulas by putting a ' before them. */
  escape_formulas?: boolean;
}

/** The changes from one version to another. */
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
  /** Replaces the seed of the dataset. */
  seed?: string | null;
  /** The reference time for relative dates, or `present` for the current time. Default: the dataset's anchor. */
  now?: string | "present" | null;
  /** XLSX: one sheet per table. SQL: one script. Otherwise: one file per table in a ZIP archive. */
  format?: "json" | "csv" | "sql" | "xlsx" | "ndjson" | "parquet";
  /** Format of CSV files. */
  csv?: CsvOptions | null;
  /** Format of SQL files. */
  sql?: SqlScriptOptions | null;
  /** Arrays in CSV and XLSX: JSON text in one cell, or numbered columns. */
  arrays?: "json" | "columns" | null;
}

/** A new dataset. */
export interface DatasetIn {
  name: string;
  templates: DatasetTable[];
  description?: string;
  /** If left out, a new one is created. */
  seed?: string | null;
  /** Reference time for relative dates; null: each template's own anchor. */
  anchor?: string | null;
}

/** A version of a dataset. */
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

/** The properties of a dataset that can be changed; keys that are left out keep their values. */
export interface DatasetPatch {
  name?: string;
  templates?: DatasetTable[];
  description?: string;
  seed?: string | null;
  anchor?: string | null;
}

/** Three rows of each table. */
export interface DatasetPreviewInput {
  /** Replaces the seed of the dataset. */
  seed?: string | null;
  /** The reference time for relative dates, or `present` for the current time. Default: the dataset's anchor. */
  now?: string | "present" | null;
}

/** The first three rows of each table, and the seed that reproduces them. */
export interface DatasetPreviewOut {
  tables: TablePreview[];
  seed: string;
  warnings: Record<string, string>[];
}

/** All tables of a dataset, parents before their children. */
export interface DatasetPushInput {
  /** The target connection. */
  connection_id?: string | null;
  /** The target endpoint, instead of a connection. */
  endpoint_id?: string | null;
  /** Upsert and update identify rows by key_columns. */
  mode?: "insert" | "upsert" | "update";
  /** Effect of a failed row. continue: every row is sent. stop: the first failed row fails the push. stop_when_all_fail: the push fails if the first rows of a table (1,000 in a database, 100 over HTTP) all fail for the same reason. */
  on_error?: "continue" | "stop" | "stop_when_all_fail";
  /** How many seconds to wait for a target that is unreachable or does not respond; null: the server setting TARGET_WAIT_SECONDS. */
  target_wait_seconds?: number | null;
  /** Send nothing. Return three statements and the values that do not fit. */
  dry_run?: boolean;
  /** Send this number of rows first (true: 10), and the other rows only if none of these was rejected. */
  canary?: number | boolean | null;
  /** The connection's name. Required if the connection is marked as prod. */
  confirm?: string | null;
  /** Create the table if it does not exist. */
  create_table?: boolean;
  /** Statements to run before the rows; admins only. */
  before_sql?: string[];
  /** Statements to run after the rows; admins only. */
  after_sql?: string[];
  /** Only for endpoints and HTTP connections. */
  push_mode?: "per_row" | "batch" | null;
  /** Only for endpoints and HTTP connections. */
  wrapper_key?: string | null;
  /** Only for endpoints and HTTP connections. */
  batch_size?: number | null;
  /** Only for endpoints and HTTP connections. */
  retry?: Record<string, any> | null;
  /** Only for endpoints and HTTP connections. */
  request_template?: Record<string, any> | null;
  /** Only for endpoints and HTTP connections. */
  parallel?: number | null;
  /** Only for endpoints and HTTP connections. */
  rate_per_second?: number | null;
  /** Target by the dataset's table; null leaves the table out. Other tables are mapped by name. */
  targets?: Record<string, string | null>;
  /** By table. Column by field; null leaves the field out. Other fields are mapped by name. */
  mappings?: Record<string, Record<string, string | null>>;
  /** Formulas by table and column. */
  computed?: Record<string, Record<string, string>>;
  /** By table. */
  key_columns?: Record<string, string[]>;
  /** Replaces the seed of the dataset. */
  seed?: string | null;
  /** The reference time for relative dates, or `present` for the current time. Default: the dataset's anchor. */
  now?: string | "present" | null;
  /** Leave out tables that cannot be generated or sent, and those whose rows need a row of such a table, instead of rejecting the push. The push lists them in `skipped` with the reason. */
  skip_faulty_tables?: boolean;
}

/** One table of a dataset: a template and its number of rows. */
export interface DatasetTable {
  template_id: string;
  /** Null: the number of rows that results from its parents, otherwise the template's quantity. */
  count?: number | null;
  /** Name of the file, sheet or table; null: the template's name. */
  name?: string | null;
}

/** One table of a dataset, and the version of its template. */
export interface DatasetTableOut {
  template_id: string;
  count: number | null;
  name: string | null;
  version: number;
}

/** A delivery of an event to a webhook. */
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

/** A description of the rows in any words. */
export interface DescribeIn {
  description: string;
  connection_id?: string | null;
  quantity?: number;
  save?: boolean;
}

/** The result for one field. */
export interface DescribedField {
  field: string;
  type: string;
  state: "green" | "yellow" | "red";
  reason: string;
}

/** A draft of a template, and the template if it was saved. */
export interface DescribedOut {
  name: string;
  quantity: number;
  fields: Field[];
  report: DescribedField[];
  template: TemplateOut | null;
}

/** The changes from one version to another. */
export interface DiffOut {
  template_id: string;
  from: number;
  to: number;
  template: Record<string, any>;
  fields: Record<string, Record<string, any>[]>;
  preview: Record<string, any> | null;
}

/** The imported document. */
export interface DocumentOut {
  bytes: number;
  sha256: string;
  entities: number;
}

/** Rows of an unsaved template: its definition, in addition to the keys of generate. */
export interface DraftIn {
  /** Number of rows. Default: the template's quantity. */
  count?: number | null;
  /** Output format; `Accept: text/csv` takes precedence. */
  format?: "json" | "csv" | "sql" | "xlsx" | "ndjson" | "parquet";
  /** The same seed produces the same rows. If left out, a new one is created and returned. */
  seed?: string | null;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** Number of rows to skip. */
  offset?: number;
  /** Replaces the template's locale. */
  locale?: string | null;
  /** The reference time for relative dates, or `present` for the current time. Default: with a seed the template's anchor, otherwise the current time. */
  now?: string | "present" | null;
  /** Number of rows of related templates, by ID; used for references and cardinalities. */
  rows?: Record<string, number>;
  /** Format of CSV files. */
  csv?: CsvOptions | null;
  /** Format of SQL files. */
  sql?: SqlOptions | null;
  /** Arrays in CSV and XLSX: JSON text in one cell, or numbered columns. */
  arrays?: "json" | "columns" | null;
  /** Name of the file, table or sheet. */
  name?: string;
  description?: string;
  /** Field definitions. */
  fields: Field[];
  /** Number of rows if `count` is not set. */
  quantity?: number | null;
  /** The time that relative dates depend on with a seed and no `now`; 2026-01-01T00:00:00Z if left out. */
  anchor?: string | null;
  /** Source of the rows: a workspace file, or a connection's table or query. */
  source?: SourceSpec | null;
  /** Invalid data: a share of the rows, each with one invalid cell. */
  invalid?: Invalid | null;
}

/** Three rows of an unsaved template: its definition, in addition to the keys of preview. */
export interface DraftPreviewIn {
  /** Number of rows. Default: the template's quantity. */
  count?: number | null;
  /** Output format; `Accept: text/csv` takes precedence. */
  format?: "json" | "csv" | "sql" | "xlsx" | "ndjson" | "parquet";
  /** The same seed produces the same rows. If left out, a new one is created and returned. */
  seed?: string | null;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** Number of rows to skip. */
  offset?: number;
  /** Replaces the template's locale. */
  locale?: string | null;
  /** The reference time for relative dates, or `present` for the current time. Default: with a seed the template's anchor, otherwise the current time. */
  now?: string | "present" | null;
  /** Number of rows of related templates, by ID; used for references and cardinalities. */
  rows?: Record<string, number>;
  /** Format of CSV files. */
  csv?: CsvOptions | null;
  /** Format of SQL files. */
  sql?: SqlOptions | null;
  /** Arrays in CSV and XLSX: JSON text in one cell, or numbered columns. */
  arrays?: "json" | "columns" | null;
  /** Name of the file, table or sheet. */
  name?: string;
  description?: string;
  /** Field definitions. */
  fields: Field[];
  /** Number of rows if `count` is not set. */
  quantity?: number | null;
  /** The time that relative dates depend on with a seed and no `now`; 2026-01-01T00:00:00Z if left out. */
  anchor?: string | null;
  /** Source of the rows: a workspace file, or a connection's table or query. */
  source?: SourceSpec | null;
  /** Invalid data: a share of the rows, each with one invalid cell. */
  invalid?: Invalid | null;
  /** Fetch missing values from connections; otherwise sample values are used. */
  fetch?: boolean;
}

/** What would be sent: the statements or HTTP requests of three rows per table, and values that do not fit. */
export interface DryRunOut {
  statements?: string[] | null;
  requests?: string[] | null;
  misfits: MisfitOut[];
  checked_rows: number;
  tables: DryTable[];
}

/** The statements for the first rows of a table, or their HTTP requests. */
export interface DryTable {
  name: string;
  target: string;
  statements?: string[] | null;
  requests?: string[] | null;
}

/** Number of ended sessions. */
export interface EndedOut {
  ended: number;
}

/** The definition of an endpoint. `{{field}}` in url, path, headers, query and body is a value of the row. */
export interface EndpointChange {
  name?: string | null;
  method?: "POST" | "PUT" | "PATCH" | "DELETE" | "GET" | null;
  /** A complete URL, as an alternative to connection_id and path. */
  url?: string | null;
  /** A REST connection, whose URL and credentials are used. */
  connection_id?: string | null;
  /** A path on that connection. */
  path?: string | null;
  headers?: Record<string, any> | null;
  /** How row values are encoded in headers: none (default), rfc8187 or percent. */
  header_encoding?: string | null;
  query_params?: Record<string, any> | null;
  /** Default: the row. */
  body?: Record<string, any> | unknown[] | null;
  /** Only with url. */
  auth?: Record<string, any> | null;
  /** Only with url. */
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
  /** A complete URL, as an alternative to connection_id and path. */
  url?: string | null;
  /** A REST connection, whose URL and credentials are used. */
  connection_id?: string | null;
  /** A path on that connection. */
  path?: string | null;
  headers?: Record<string, any> | null;
  /** How row values are encoded in headers: none (default), rfc8187 or percent. */
  header_encoding?: string | null;
  query_params?: Record<string, any> | null;
  /** Default: the row. */
  body?: Record<string, any> | unknown[] | null;
  /** Only with url. */
  auth?: Record<string, any> | null;
  /** Only with url. */
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

/** Rows for a table of a database. */
export interface ExportDbInput {
  /** The target connection. */
  connection_id?: string | null;
  /** The target endpoint, instead of a connection. */
  endpoint_id?: string | null;
  /** Upsert and update identify rows by key_columns. */
  mode?: "insert" | "upsert" | "update";
  /** Effect of a failed row. continue: every row is sent. stop: the first failed row fails the push. stop_when_all_fail: the push fails if the first rows of a table (1,000 in a database, 100 over HTTP) all fail for the same reason. */
  on_error?: "continue" | "stop" | "stop_when_all_fail";
  /** How many seconds to wait for a target that is unreachable or does not respond; null: the server setting TARGET_WAIT_SECONDS. */
  target_wait_seconds?: number | null;
  /** Send nothing. Return three statements and the values that do not fit. */
  dry_run?: boolean;
  /** Send this number of rows first (true: 10), and the other rows only if none of these was rejected. */
  canary?: number | boolean | null;
  /** The connection's name. Required if the connection is marked as prod. */
  confirm?: string | null;
  /** Create the table if it does not exist. */
  create_table?: boolean;
  /** Statements to run before the rows; admins only. */
  before_sql?: string[];
  /** Statements to run after the rows; admins only. */
  after_sql?: string[];
  /** Only for endpoints and HTTP connections. */
  push_mode?: "per_row" | "batch" | null;
  /** Only for endpoints and HTTP connections. */
  wrapper_key?: string | null;
  /** Only for endpoints and HTTP connections. */
  batch_size?: number | null;
  /** Only for endpoints and HTTP connections. */
  retry?: Record<string, any> | null;
  /** Only for endpoints and HTTP connections. */
  request_template?: Record<string, any> | null;
  /** Only for endpoints and HTTP connections. */
  parallel?: number | null;
  /** Only for endpoints and HTTP connections. */
  rate_per_second?: number | null;
  /** Table, collection or entity set. Default: the one that matches the template's name. */
  target?: string | null;
  /** Column by field; null leaves the field out. Other fields are mapped by name. */
  mapping?: Record<string, string | null>;
  /** Formulas over the fields, by column. */
  computed?: Record<string, string>;
  /** Columns that identify a row. Default: the table's primary key. */
  key_columns?: string[];
  /** The rows to send, instead of rows of a template. */
  rows?: Record<string, any>[] | null;
  /** The template whose rows are sent. */
  template_id?: string | null;
  count?: number | null;
  seed?: string | null;
  /** The reference time for relative dates, or `present` for the current time. Default: with a seed the template's anchor, otherwise the current time. */
  now?: string | "present" | null;
  offset?: number;
  locale?: string | null;
  overrides?: Record<string, any>;
  /** Alias of target. */
  table?: string | null;
}

/** An export: one file, or `parts` files of `part_rows` rows each. */
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

/** The values with which a file was generated. The same values and the same request produce the same bytes. */
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

/** Rows for an endpoint or an HTTP connection. */
export interface ExportRestInput {
  /** The target connection. */
  connection_id?: string | null;
  /** The target endpoint, instead of a connection. */
  endpoint_id?: string | null;
  /** Upsert and update identify rows by key_columns. */
  mode?: "insert" | "upsert" | "update";
  /** Effect of a failed row. continue: every row is sent. stop: the first failed row fails the push. stop_when_all_fail: the push fails if the first rows of a table (1,000 in a database, 100 over HTTP) all fail for the same reason. */
  on_error?: "continue" | "stop" | "stop_when_all_fail";
  /** How many seconds to wait for a target that is unreachable or does not respond; null: the server setting TARGET_WAIT_SECONDS. */
  target_wait_seconds?: number | null;
  /** Send nothing. Return three statements and the values that do not fit. */
  dry_run?: boolean;
  /** Send this number of rows first (true: 10), and the other rows only if none of these was rejected. */
  canary?: number | boolean | null;
  /** The connection's name. Required if the connection is marked as prod. */
  confirm?: string | null;
  /** Create the table if it does not exist. */
  create_table?: boolean;
  /** Statements to run before the rows; admins only. */
  before_sql?: string[];
  /** Statements to run after the rows; admins only. */
  after_sql?: string[];
  /** Only for endpoints and HTTP connections. */
  push_mode?: "per_row" | "batch" | null;
  /** Only for endpoints and HTTP connections. */
  wrapper_key?: string | null;
  /** Only for endpoints and HTTP connections. */
  batch_size?: number | null;
  /** Only for endpoints and HTTP connections. */
  retry?: Record<string, any> | null;
  /** Only for endpoints and HTTP connections. */
  request_template?: Record<string, any> | null;
  /** Only for endpoints and HTTP connections. */
  parallel?: number | null;
  /** Only for endpoints and HTTP connections. */
  rate_per_second?: number | null;
  /** Table, collection or entity set. Default: the one that matches the template's name. */
  target?: string | null;
  /** Column by field; null leaves the field out. Other fields are mapped by name. */
  mapping?: Record<string, string | null>;
  /** Formulas over the fields, by column. */
  computed?: Record<string, string>;
  /** Columns that identify a row. Default: the table's primary key. */
  key_columns?: string[];
  /** The rows to send, instead of rows of a template. */
  rows?: Record<string, any>[] | null;
  /** The template whose rows are sent. */
  template_id?: string | null;
  count?: number | null;
  seed?: string | null;
  /** The reference time for relative dates, or `present` for the current time. Default: with a seed the template's anchor, otherwise the current time. */
  now?: string | "present" | null;
  offset?: number;
  locale?: string | null;
  overrides?: Record<string, any>;
}

/** The files of exports, including those in progress. The oldest are removed when a new one needs space. */
export interface ExportsUsedOut {
  limit_bytes: number;
  used_bytes: number;
}

/** The keys that fields of all types have. */
export interface Field {
  /** ID that seeds the column; it stays the same when the field is edited. */
  id?: string | null;
  name: string;
  type: string;
  options?: Record<string, any>;
  /** Source values are masked before they are output. */
  sensitive?: boolean;
  /** Masking strategy. Default: a value of the same kind. */
  masking?: Masking | null;
  percent_blank?: number | string;
  /** All values are different. With a label: fields with the same label are unique in combination. */
  unique?: boolean | string;
  hidden?: boolean;
  locale?: string | null;
  group?: string | null;
  formula?: string | null;
  prefix?: string;
  suffix?: string;
  text_case?: "upper" | "lower" | "title" | "sentence" | null;
  description?: string;
  /** Invalid data in the cells of the field. */
  invalid?: Invalid | null;
  /** For a template with a source: the column with the values. Default: the column with the field's name. */
  column?: string | null;
  [other: string]: unknown;
}

/** A field type. `capacity`: number of distinct values with default options; null if it is unlimited or unknown. */
export interface FieldTypeOut {
  name: string;
  label: string;
  category: string;
  description: string;
  aliases: string[];
  options_schema: Record<string, any>;
  example: unknown;
  capacity: number | null;
  lacks: string | null;
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

/** The file quota. */
export interface FilesUsedOut {
  limit_bytes: number;
  used_bytes: number;
  trash_bytes: number;
  uploading_bytes: number;
  compat_bytes: number;
  files: number;
  trash_files: number;
}

/** Which tables to fill, and with how many rows. */
export interface FillInput {
  /** Names of tables in the connection's metadata. Default: all tables. */
  tables?: string[] | null;
  /** Number of rows for each table. A table whose unique columns or parents have fewer values gets as many rows as they allow. */
  rows?: number;
  /** `equal`: each table gets `rows` rows. `proportional`: the table with the most rows gets `rows`, and the others in proportion to the rows that they have; of tables without rows, those that others refer to get fewer. `existing`: each table gets as many rows as it has, and tables without rows are skipped. */
  row_counts?: "equal" | "proportional" | "existing";
  /** Tables that have rows: `add` adds rows, `use` leaves them as they are. Rows of other tables refer to the existing rows of tables that are not filled. */
  existing?: "add" | "use";
  /** The same seed produces the same rows. Default: a new one, which is returned. */
  seed?: string | null;
  /** Effect of a failed row; see the push of a dataset. */
  on_error?: "continue" | "stop" | "stop_when_all_fail";
  /** How many seconds to wait for a database that is unreachable; null: the server setting TARGET_WAIT_SECONDS. */
  target_wait_seconds?: number | null;
  /** The connection's name, if it is marked as prod. */
  confirm?: string | null;
  /** Create the templates and the dataset, and return the plan of the push without sending a row. */
  dry_run?: boolean;
}

/** A fill: its dataset, its tables, and the push that sends their rows (a dry run has a plan instead). */
export interface FillOut {
  dataset_id: string;
  seed: string;
  tables: FilledTable[];
  skipped: SkippedEntity[];
  report: ColumnReport[];
  push: PushOut | null;
  plan: PlanOut | null;
}

/** A table that is filled: its template, its number of rows, and why that is fewer than requested, or "". */
export interface FilledTable {
  table: string;
  template_id: string;
  rows: number;
  note: string;
}

/** A function of the formula language. `result` is the result of `example` in row 1. */
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
  /** Number of rows. Default: the template's quantity. */
  count?: number | null;
  /** Output format; `Accept: text/csv` takes precedence. */
  format?: "json" | "csv" | "sql" | "xlsx" | "ndjson" | "parquet";
  /** The same seed produces the same rows. If left out, a new one is created and returned. */
  seed?: string | null;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** Number of rows to skip. */
  offset?: number;
  /** Replaces the template's locale. */
  locale?: string | null;
  /** The reference time for relative dates, or `present` for the current time. Default: with a seed the template's anchor, otherwise the current time. */
  now?: string | "present" | null;
  /** Number of rows of related templates, by ID; used for references and cardinalities. */
  rows?: Record<string, number>;
  /** Format of CSV files. */
  csv?: CsvOptions | null;
  /** Format of SQL files. */
  sql?: SqlOptions | null;
  /** Arrays in CSV and XLSX: JSON text in one cell, or numbered columns. */
  arrays?: "json" | "columns" | null;
}

/** What to create templates from. With `save` false nothing is saved; `quantity` is that of each template. */
export interface ImportIn {
  format?: "auto" | "csv" | "json" | "ndjson" | "xlsx" | "sql" | "json_schema" | "openapi" | "avro" | "protobuf" | "mockaroo";
  content?: string | null;
  file?: string | null;
  name?: string | null;
  save?: boolean;
  wait?: boolean;
  import_id?: string | null;
  types?: string[];
  quantity?: number;
}

/** An import that a worker does. */
export interface ImportJobOut {
  id: string;
  status: "queued" | "running" | "completed" | "failed" | "cancelled" | "timed_out";
  name: string;
  save: boolean;
  tables: number;
  tables_done: number;
  error: Record<string, any> | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  result: ImportOut | null;
}

/** The templates, the result for each column, and the dataset if there are several. */
export interface ImportOut {
  format: string;
  templates: ImportedTemplate[];
  dataset: DatasetOut | null;
  report: ColumnReport[];
}

/** A template of an import; without an ID if it was not saved. */
export interface ImportedTemplate {
  id: string | null;
  name: string;
  quantity: number;
  version: number | null;
  fields: Field[];
}

/** Invalid data: on a field a share of its cells, on a template a share of its rows, each with one invalid cell. */
export interface Invalid {
  /** 0.01 = exactly 1 % of rows. */
  rate: number | string;
  /** Kinds of errors, in equal parts. Default: all that apply to the field. */
  kinds?: ("wrong_type" | "too_long" | "bad_checksum" | "out_of_range" | "bad_format" | "missing" | "duplicate" | "orphan" | "injection" | "unicode_edge")[] | null;
}

/** The user to invite to the workspace or to a team. */
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

/** A new schedule: what it repeats, and when. */
export interface JobScheduleIn {
  name: string;
  /** Minute, hour, day of month, month, day of week: `30 6 * * 1-5` is 06:30 from Monday to Friday. */
  cron: string;
  /** IANA name, for example Europe/Berlin. */
  timezone?: string;
  enabled?: boolean;
  /** Whether each job uses a new seed, and so has different rows. Otherwise all jobs use the seed of the request. */
  new_seed?: boolean;
  /** Of a push: whether the rows of the previous push are deleted first, by their keys. */
  undo_previous?: boolean;
  kind?: "export" | "push" | null;
  template_id?: string | null;
  dataset_id?: string | null;
  /** The body of `POST /templates/{id}/exports` or `POST /templates/{id}/push`, or of the same routes of a dataset. */
  request?: Record<string, any>;
  /** ID of an export or a push, instead of `kind`, `template_id`, `dataset_id` and `request`. */
  repeats?: string | null;
}

/** A schedule of an export or a push. */
export interface JobScheduleOut {
  id: string;
  name: string;
  kind: "export" | "push";
  template_id: string | null;
  dataset_id: string | null;
  request: Record<string, any>;
  cron: string;
  timezone: string;
  enabled: boolean;
  new_seed: boolean;
  undo_previous: boolean;
  next_run_at: string | null;
  last_run_at: string | null;
  last_job_id: string | null;
  problem: Record<string, any> | null;
  project_id: string;
  team_id: string;
  saved_by: string | null;
  created_at: string;
  updated_at: string;
}

/** The properties of a schedule that can be changed. Its jobs then start with your permissions. */
export interface JobSchedulePatch {
  name?: string | null;
  cron?: string | null;
  timezone?: string | null;
  enabled?: boolean | null;
  /** Whether each job uses a new seed, and so has different rows. Otherwise all jobs use the seed of the request. */
  new_seed?: boolean | null;
  /** Of a push: whether the rows of the previous push are deleted first, by their keys. */
  undo_previous?: boolean | null;
  request?: Record<string, any> | null;
}

/** One sensitive column. */
export interface LeakColumn {
  column: string;
  source_column: string;
  strategy: string;
  key_version: number;
  values: number;
  survivors: number;
  whole_column: WholeColumn;
}

/** The result of the leak check for one table. `unmasked`: the columns that have the values of the source. */
export interface LeakReport {
  table: string;
  columns: LeakColumn[];
  unmasked?: string[];
}

/** Custom limits of an Enterprise workspace; null: the limits of the plan. */
export interface LimitsIn {
  requests_per_minute?: number | null;
  rows_per_hour?: number | null;
  rows_per_generation?: number | null;
}

/** The current limits. */
export interface LimitsOut {
  requests_per_minute: number;
  rows_per_hour: number;
  rows_per_generation: number;
}

/** The process responds. */
export interface Live {
  status: string;
}

/** The resolved requirements of a version: the packages of every run of it. */
export interface LockOut {
  environment: string;
  packages: Record<string, string>;
}

/** The contents of an export: its rows and parts. An export without parts has one part. */
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

/** How source values of a field are masked. */
export interface Masking {
  /** Masking strategy. */
  strategy: "replace" | "format_preserve" | "tokenize" | "hash" | "shift" | "redact" | "null";
  /** The same value is masked in the same way in every run; otherwise only within a run. */
  consistent?: boolean;
  /** Fields of the same domain mask the same value in the same way, in every template. Default: the type's name. */
  domain?: string | null;
  /** Version of the workspace's masking key. Default: the newest. */
  key_version?: number | null;
  /** Field that identifies the person: all dates of a person are shifted by the same number of days. */
  person?: string | null;
}

/** A version of the masking key, without the key. */
export interface MaskingKeyOut {
  version: number;
  created_by: string | null;
  created_at: string;
}

/** The versions, newest first. The newest is used unless a field sets `key_version`. */
export interface MaskingKeysOut {
  items: MaskingKeyOut[];
}

/** The caller: user, workspace, project and permissions. */
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

/** An existing member, and a new role in a team, or without `team_id` in the whole workspace. */
export interface MemberIn {
  user_id: string;
  role?: "viewer" | "editor" | "admin" | "owner";
  team_id?: string | null;
}

/** A user's role in the workspace or in a team. */
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

/** The new role. */
export interface MemberPatch {
  role: "viewer" | "editor" | "admin" | "owner";
}

/** A value that does not fit its column, or (`row` null) a reason why values may not fit. */
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

/** IDs of objects to move to a project. */
export interface MoveIn {
  objects: string[];
  related?: "refuse" | "take" | "leave";
}

/** An object that is now in the project. */
export interface MovedOut {
  type: string;
  id: string;
  name: string;
}

/** The moved objects. */
export interface MovesOut {
  items: MovedOut[];
  total: number;
}

/** The response to the creation, the only one that contains the key. */
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

/** The response to an invitation, the only one that contains its link, which the inviter passes on. */
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

/** The only response that contains the signing secret. */
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

/** A file that a run stored. */
export interface OutputFile {
  name: string;
  size: number;
  file_id: string;
}

/** One part: `rows` rows from row `offset` of the template on, and its file once it exists. */
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

/** What a push would write, and where. `needs_confirmation` is the required value of `confirm`. */
export interface PlanOut {
  connection_id: string;
  needs_confirmation: string | null;
  modes: string[];
  create_table: boolean;
  statements: boolean;
  total: number;
  tables: PlannedTable[];
  skipped: SkippedTable[];
}

/** The content of a column: `state` is field, skipped or missing. */
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

/** A field that can be sent. */
export interface PlannedField {
  name: string;
  type: string;
  label: string;
  sensitive: boolean;
}

/** The mapping of a table, with its errors. */
export interface PlannedTable {
  name: string;
  target: string;
  create: boolean;
  mode: string;
  count: number;
  note: string;
  key_columns: string[];
  capture: string[];
  later: string[];
  unchecked: string[];
  columns: PlannedColumn[];
  fields: PlannedField[];
  unused: string[];
  faults: Record<string, any>[];
}

/** Three rows of a template or, with `fields`, of an unsaved draft of it. */
export interface PreviewIn {
  /** The same seed produces the same rows. If left out, a new one is created and returned. */
  seed?: string | null;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** The reference time for relative dates, or `present` for the current time. Default: with a seed the template's anchor, otherwise the current time. */
  now?: string | "present" | null;
  /** Replaces the template's locale. */
  locale?: string | null;
  /** Number of rows of related templates, by ID; used for references and cardinalities. */
  rows?: Record<string, number>;
  /** Field definitions of an unsaved draft. */
  fields?: Field[] | null;
  /** Source of the rows: a workspace file, or a connection's table or query. Only for a draft. Default: the value stored with the template. */
  source?: SourceSpec | null;
  /** Invalid data: a share of the rows, each with one invalid cell. Only for a draft. Default: the value stored with the template. */
  invalid?: Invalid | null;
  /** Fetch missing values from connections; otherwise sample values are used. Default: true for a saved template, false for a draft. */
  fetch?: boolean | null;
}

/** The first three rows, the seed that reproduces them, and the injected invalid cells, if any. */
export interface PreviewOut {
  rows: Record<string, any>[];
  seed: string;
  warnings: Record<string, string>[];
  bad?: BadCell[] | null;
}

/** A new project. Without `team_id`: the team of the current project. */
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

/** The properties of a project that can be changed. */
export interface ProjectPatch {
  name?: string | null;
  description?: string | null;
  team_id?: string | null;
}

/** A deleted file that was removed permanently because an upload needed its space. */
export interface PurgedOut {
  id: string;
  name: string;
  size: number;
}

/** The content of a column: a field, or a formula; neither for a generated key. */
export interface PushColumn {
  column: string;
  field: string | null;
  formula: string | null;
}

/** Rows of a template for a table. */
export interface PushInput {
  /** The target connection. */
  connection_id?: string | null;
  /** The target endpoint, instead of a connection. */
  endpoint_id?: string | null;
  /** Upsert and update identify rows by key_columns. */
  mode?: "insert" | "upsert" | "update";
  /** Effect of a failed row. continue: every row is sent. stop: the first failed row fails the push. stop_when_all_fail: the push fails if the first rows of a table (1,000 in a database, 100 over HTTP) all fail for the same reason. */
  on_error?: "continue" | "stop" | "stop_when_all_fail";
  /** How many seconds to wait for a target that is unreachable or does not respond; null: the server setting TARGET_WAIT_SECONDS. */
  target_wait_seconds?: number | null;
  /** Send nothing. Return three statements and the values that do not fit. */
  dry_run?: boolean;
  /** Send this number of rows first (true: 10), and the other rows only if none of these was rejected. */
  canary?: number | boolean | null;
  /** The connection's name. Required if the connection is marked as prod. */
  confirm?: string | null;
  /** Create the table if it does not exist. */
  create_table?: boolean;
  /** Statements to run before the rows; admins only. */
  before_sql?: string[];
  /** Statements to run after the rows; admins only. */
  after_sql?: string[];
  /** Only for endpoints and HTTP connections. */
  push_mode?: "per_row" | "batch" | null;
  /** Only for endpoints and HTTP connections. */
  wrapper_key?: string | null;
  /** Only for endpoints and HTTP connections. */
  batch_size?: number | null;
  /** Only for endpoints and HTTP connections. */
  retry?: Record<string, any> | null;
  /** Only for endpoints and HTTP connections. */
  request_template?: Record<string, any> | null;
  /** Only for endpoints and HTTP connections. */
  parallel?: number | null;
  /** Only for endpoints and HTTP connections. */
  rate_per_second?: number | null;
  /** Table, collection or entity set. Default: the one that matches the template's name. */
  target?: string | null;
  /** Column by field; null leaves the field out. Other fields are mapped by name. */
  mapping?: Record<string, string | null>;
  /** Formulas over the fields, by column. */
  computed?: Record<string, string>;
  /** Columns that identify a row. Default: the table's primary key. */
  key_columns?: string[];
  /** Number of rows. Default: the template's quantity. */
  count?: number | null;
  /** The same seed produces the same rows. If left out, a new one is created and returned. */
  seed?: string | null;
  /** The reference time for relative dates, or `present` for the current time. Default: with a seed the template's anchor, otherwise the current time. */
  now?: string | "present" | null;
  /** Number of rows to skip. */
  offset?: number;
  /** Replaces the template's locale. */
  locale?: string | null;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** Number of rows of related templates, by ID. */
  rows?: Record<string, number>;
}

/** Rows that are sent, or were sent, to a connection. */
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
  skipped: SkippedTable[];
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

/** One table of a push. */
export interface PushTable {
  name: string;
  template_id: string | null;
  template_version: number | null;
  target: string;
  count: number;
  note: string;
  offset: number;
  mode: string;
  key_columns: string[];
  columns: PushColumn[];
  from_parent: Record<string, number>;
  create: boolean;
}

/** Work in a queue, all workspaces. `oldest_seconds`: how long the oldest entry has waited. */
export interface QueueOut {
  waiting: number;
  running: number;
  oldest_seconds: number | null;
}

/** A limit and its current use. */
export interface RateOut {
  limit: number;
  used: number;
  left: number;
  window_seconds: number;
  next_at: string | null;
  resets_at: string | null;
}

/** The sandbox and the oldest lease. */
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

/** A component. */
export interface ReadyPart {
  state: string;
  ms: number;
  kind?: string | null;
  version?: string | null;
  revision?: string | null;
  count?: number | null;
}

/** A template that is reached through relations: its version, and the number of rows used in calculations. */
export interface ReferencePin {
  template_id: string;
  version: number;
  rows: number;
}

/** Number of values that were removed from the cache. */
export interface RefreshedOut {
  forgotten: number;
}

/** How to run it again: the version, and the parameters (default: those of the run). */
export interface RerunIn {
  version?: "same" | "newest";
  params?: Record<string, string> | null;
  wait?: true | false | "true" | "false";
}

/** Rows of a push that were not delivered and are sent again. A mapping and overrides can correct them. */
export interface RetryInput {
  /** Which rows to send. pending: rows that were never sent because the push failed or was cancelled. */
  states?: ("failed" | "unknown" | "pending")[];
  /** Row numbers from 1 in the table `table`, to limit the retry. */
  rows?: number[] | null;
  /** Only rows of this table. */
  table?: string | null;
  /** Replaces the push's own values, by field. */
  mapping?: Record<string, string | null>;
  /** Formulas, by column. */
  computed?: Record<string, string>;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** Effect of a failed row. continue: every row is sent. stop: the first failed row fails the push. stop_when_all_fail: the push fails if the first rows of a table (1,000 in a database, 100 over HTTP) all fail for the same reason. */
  on_error?: "continue" | "stop" | "stop_when_all_fail";
  confirm?: string | null;
}

/** The revoked keys. */
export interface RevokedOut {
  items: ApiKeyOut[];
  total: number;
}

/** The outcome of a row. `values` only if they were requested. */
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

/** How to run a scenario. */
export interface RunIn {
  params?: Record<string, string>;
  wait?: true | false | "true" | "false";
}

/** A run. */
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

/** The changes from one version to another; `code` is a unified diff. */
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
  /** Time limit of a run in seconds. */
  timeout_seconds?: number;
  /** Environment variables of every run: text values by name. */
  env?: Record<string, string>;
  /** Names of workspace secrets that a run gets as variables with the same names. */
  secrets?: string[];
  /** Names of workspace secrets that a run may set. */
  writable_secrets?: string[];
  /** `full`: the internet and the API; `api`: only the API; `none`: no network. */
  network?: "full" | "api" | "none";
  schedule?: ScheduleInput | null;
  name: string;
  /** The Python program, run as main.py: UTF-8, at most 1,048,576 bytes. */
  code: string;
}

/** A version of a scenario. The run settings are always the current ones. */
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

/** The properties of a scenario that can be changed; keys that are left out keep their values. */
export interface ScenarioPatch {
  description?: string;
  /** Time limit of a run in seconds. */
  timeout_seconds?: number;
  /** Environment variables of every run: text values by name. */
  env?: Record<string, string>;
  /** Names of workspace secrets that a run gets as variables with the same names. */
  secrets?: string[];
  /** Names of workspace secrets that a run may set. */
  writable_secrets?: string[];
  /** `full`: the internet and the API; `api`: only the API; `none`: no network. */
  network?: "full" | "api" | "none";
  schedule?: ScheduleInput | null;
  name?: string;
  /** The Python program, run as main.py: UTF-8, at most 1,048,576 bytes. */
  code?: string;
}

/** When a scenario runs automatically. */
export interface ScheduleInput {
  /** Five fields: minute, hour, day of month, month, day of week. */
  cron: string;
  /** A name in the IANA time zone database: `Europe/Berlin`. */
  timezone?: string;
  enabled?: boolean;
  /** Parameters of every scheduled run. */
  params?: Record<string, string>;
}

/** When a scenario runs automatically. */
export interface ScheduleOut {
  cron: string;
  timezone: string;
  enabled: boolean;
  params: Record<string, string>;
}

/** A seal. `hash` is the start of the next seal; if `removed_at` is set, its entries have been removed. */
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

/** A secret's value, and who may use it. Keys that are left out keep their values; a new secret needs a value. */
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

/** A browser session. */
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

/** Settings of a workspace. */
export interface SettingsIn {
  redact_run_logs?: boolean | null;
  require_two_factor?: boolean | null;
  audit_retention_days?: number | null;
}

/** The usage of a project, template, key or user. */
export interface ShareOut {
  id: string;
  name: string;
  rows: number;
  requests: number;
  steps: StepOut[];
}

/** A table that is left out, and the reason. */
export interface SkippedEntity {
  table: string;
  code: string;
  message: string;
  hint: string;
}

/** A table that is left out of the push, with the reason. */
export interface SkippedTable {
  name: string;
  code: string;
  message: string;
  hint: string;
}

/** Source of the rows of a template: a workspace file, or a table or query of a connection. */
export interface SourceSpec {
  /** A workspace file: CSV, JSON, NDJSON, XLSX or Parquet, detected by the file name extension. */
  file?: string | null;
  /** For XLSX: the sheet. Default: the first. */
  sheet?: string | null;
  /** A connection to a database. */
  connection_id?: string | null;
  /** A table of the connection, read by its primary key. */
  table?: string | null;
  /** Optional filter for the table: a condition in the target's query language (the part after WHERE). */
  where?: string | null;
  /** A query in the target's query language, with an ORDER BY clause. */
  query?: string | null;
  /** Maximum number of rows. */
  limit?: number | null;
}

/** ``table`` can have a schema before a dot. Default: derived from the template's name. */
export interface SqlOptions {
  table?: string | null;
  dialect?: "ansi" | "postgresql" | "mysql" | "mssql" | "oracle" | "db2";
  create_table?: boolean;
  rows_per_statement?: number | null;
}

/** ``table`` can have a schema before a dot. Default: derived from the template's name. */
export interface SqlScriptOptions {
  dialect?: "ansi" | "postgresql" | "mysql" | "mssql" | "oracle" | "db2";
  create_table?: boolean;
  rows_per_statement?: number | null;
}

/** The files of SQLite connections, including their journals. */
export interface SqliteUsedOut {
  limit_bytes: number;
  used_bytes: number;
  limit_files: number;
  files: number;
}

/** The result of one stage of a verification. */
export interface StageOut {
  name: string;
  ok: boolean;
  code: string;
  message: string;
  hint: string;
  ms: number;
}

/** The export or push that a schedule has started. */
export interface StartedOut {
  kind: "export" | "push";
  job_id: string;
}

/** An hour or a day, identified by its start. */
export interface StepOut {
  start: string;
  rows: number;
  requests: number;
}

/** The used and the maximum storage of the workspace. */
export interface StorageOut {
  files: FilesUsedOut;
  sqlite: SqliteUsedOut;
  exports: ExportsUsedOut;
}

/** The start rows and the depth of a subset. */
export interface SubsetIn {
  table: string;
  /** Optional filter: a condition in the target's query language (the part after WHERE). */
  where?: string;
  /** Maximum number of rows, the first by primary key. */
  limit?: number | null;
  /** Tables whose rows are included if they refer to included rows; null: all, []: none. */
  children?: string[] | null;
  /** Depth of child rows. */
  depth?: number;
  /** Name of the dataset. */
  name?: string | null;
}

/** The created dataset, its templates, and the contents of each table. */
export interface SubsetOut {
  dataset: DatasetOut;
  templates: TemplateOut[];
  report: SubsetTable[];
}

/** The rows of one table in the subset, the relations they were found by, and its masked columns. */
export interface SubsetTable {
  table: string;
  template_id: string;
  rows: number;
  ways: string[];
  sensitive: string[];
}

/** A field and what is known about it. `sample`: some of its values, which a model gets to see if one is used. */
export interface SuggestIn {
  name: string;
  description?: string;
  sample?: unknown[];
  connection_id?: string | null;
}

/** Types, best match first; at least one. */
export interface SuggestOut {
  suggestions: Suggestion[];
}

/** A type with suggested options. `source` says what the suggestion is based on. */
export interface Suggestion {
  type: string;
  options: Record<string, any>;
  reason: string;
  source: "name" | "sample" | "ai";
}

/** The values with which one table of a dataset's file was generated. `note` says why it has fewer rows than */
export interface TablePins {
  name: string;
  template_id: string;
  template_version: number;
  rows: number;
  note: string;
  now: string;
  vocabulary: string;
  locale: string | null;
  references: ReferencePin[];
}

/** The first rows of a table, and its number of rows. */
export interface TablePreview {
  name: string;
  template_id: string;
  rows: Record<string, any>[];
  count: number;
}

/** Names of tables in the connection's metadata. */
export interface TablesIn {
  entities: string[];
  quantity?: number;
}

/** The created templates, the result for each column, and for operations of an API their endpoints. */
export interface TablesOut {
  templates: TemplateOut[];
  report: ColumnReport[];
  endpoints: EndpointOut[];
  skipped: SkippedEntity[];
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

/** Rows of a template in a file that is created in the background. */
export interface TemplateExportInput {
  /** Number of rows. Default: the template's quantity. */
  count?: number | null;
  /** Output format; `Accept: text/csv` takes precedence. */
  format?: "json" | "csv" | "sql" | "xlsx" | "ndjson" | "parquet";
  /** The same seed produces the same rows. If left out, a new one is created and returned. */
  seed?: string | null;
  /** Fixed values by field name. */
  overrides?: Record<string, any>;
  /** Number of rows to skip. */
  offset?: number;
  /** Replaces the template's locale. */
  locale?: string | null;
  /** The reference time for relative dates, or `present` for the current time. Default: with a seed the template's anchor, otherwise the current time. */
  now?: string | "present" | null;
  /** Number of rows of related templates, by ID; used for references and cardinalities. */
  rows?: Record<string, number>;
  /** Format of CSV files. */
  csv?: CsvOptions | null;
  /** Format of SQL files. */
  sql?: SqlOptions | null;
  /** Arrays in CSV and XLSX: JSON text in one cell, or numbered columns. */
  arrays?: "json" | "columns" | null;
  /** Rows per part, for more than 100,000 rows. Several workers create the parts. */
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

/** A version of a template. */
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

/** The properties of a template that can be changed; keys that are left out keep their values. */
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

/** A template that fields refer to, directly or indirectly, as it was when the version was saved. */
export interface TemplateReference {
  template_id: string;
  version: number;
  rows: number;
}

/** A deleted object. It is removed permanently at `gone_at`; `restorable`: the caller can restore it until then. */
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

/** Parameters of an undo, which deletes the rows that a push delivered. */
export interface UndoInput {
  confirm?: string | null;
}

/** An uploaded file. `purged` are deleted files that were permanently removed to free space for it. */
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

/** The usage. Rows are counted rows minus returned ones; requests are accepted requests. */
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

/** The limits, their current use, and the past usage. */
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

/** An object that uses another one, and how. */
export interface UseOut {
  type: string;
  id: string | null;
  name: string | null;
  how: string;
  blocks: boolean;
}

/** The objects that use an object. */
export interface UsesOut {
  items: UseOut[];
  total: number;
  blocked: boolean;
}

/** The result of a verification: `verified` or `failed`, stage by stage. */
export interface VerificationOut {
  status: string;
  stages: StageOut[];
  response: Record<string, any> | null;
  checked_at: string;
}

/** The target is unreachable: since when, the number of attempts, and the time of the next attempt. */
export interface WaitingOut {
  since: string;
  tries: number;
  reason: string;
  message: string;
  next_try_at: string;
  next_try_in_seconds: number;
}

/** A problem that does not prevent saving. */
export interface WarningOut {
  path: string;
  code: string;
  message: string;
  hint?: string | null;
  position?: number | null;
}

/** A new webhook. */
export interface WebhookIn {
  url: string;
  events: ("*" | "export.*" | "push.*" | "run.*" | "export.completed" | "export.failed" | "export.cancelled" | "push.completed" | "push.failed" | "push.cancelled" | "run.completed" | "run.failed" | "run.cancelled" | "run.timed_out" | "limit.warning")[];
  description?: string;
  scope?: "project" | "workspace";
}

/** A webhook, without its secret. */
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

/** The properties of a webhook that can be changed. Turning it on again (`active`) resets its failures. */
export interface WebhookPatch {
  url?: string | null;
  events?: ("*" | "export.*" | "push.*" | "run.*" | "export.completed" | "export.failed" | "export.cancelled" | "push.completed" | "push.failed" | "push.cancelled" | "run.completed" | "run.failed" | "run.cancelled" | "run.timed_out" | "limit.warning")[] | null;
  description?: string | null;
  active?: boolean | null;
}

/** Whether real values of the column occur in any row. */
export interface WholeColumn {
  kind: string;
  distinct: number;
  share: number;
  found: number;
  expected: number | null;
}

/** The workspace's name, as confirmation. */
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

/** The properties of a workspace that can be changed; plan and limits only by its owner. */
export interface WorkspacePatch {
  name?: string | null;
  plan?: "free" | "pro" | "enterprise" | null;
  limits?: LimitsIn | null;
  settings?: SettingsIn | null;
}
