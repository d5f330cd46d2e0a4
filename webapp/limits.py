"""Define all limits of the service in one place.

A comment names the source of a limit: "section 8" is the table of limits in the interface specification, "contract"
and "promise" refer to the product's documented guarantees, and "measured" to a benchmark. Limits without a source are
our own choice. Sizes are in bytes and times in seconds, unless the name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """Rate limits and quotas of one plan, per workspace."""

    requests_per_minute: int
    rows_per_hour: int
    rows_per_generation: int


# --- Plans (specification, section 8) ---------------------------------------------------------------------
MAX_ROWS_PER_GENERATION: Final = 100_000  # applies to one generate request, export, dataset table or push

PLANS: Final = MappingProxyType(
    {
        "free": PlanLimits(60, 10_000, MAX_ROWS_PER_GENERATION),
        "pro": PlanLimits(600, 1_000_000, MAX_ROWS_PER_GENERATION),
        # "Enterprise per contract": these are the defaults for a workspace without custom limits.
        "enterprise": PlanLimits(6_000, 100_000_000, 10_000_000),
    }
)
DEMO_PLAN: Final = "enterprise"  # the plan of `./rowsmith up` without --plan
# The highest limits that a workspace can be given. The request log of one minute is kept in memory.
ENTERPRISE_MAX: Final = PlanLimits(60_000, 100_000_000_000, 1_000_000_000)


@dataclass(frozen=True, slots=True)
class Retention:
    """How many days finished work is kept, per plan."""

    log_days: int
    """Log lines of runs and pushes."""
    file_days: int
    """Export files."""
    work_days: int
    """Runs with their output files, pushes with their row ledgers, and exports."""


# --- Retention ---------------------------------------------------------------------------------------------
# Logs fill a database first and files fill a disk. Finished work is kept for at least a quarter, longer on
# paid plans.
RETENTION: Final = MappingProxyType(
    {"free": Retention(14, 14, 90), "pro": Retention(90, 30, 365), "enterprise": Retention(90, 90, 730)}
)
RETENTION_BATCH_ROWS: Final = 2_000  # measured: rows deleted in one transaction of about 10 ms
RETENTION_PAUSE_SECONDS: Final = 0.05  # SQLite's busy handler tries again after 1 to 100 ms
RETENTION_BATCH_CHUNKS: Final = 50  # chunks of a run's log deleted in one transaction; each has up to 128 kB
RETENTION_BATCH_WORK: Final = 50  # runs, pushes or exports fetched per query
# Time limit for deleting in one sweep, before the next check for lost work.
RETENTION_TURN_SECONDS: Final = 2.0

# --- Rates -------------------------------------------------------------------------------------------------
RATE_WINDOW_SECONDS: Final = 60  # section 8: requests per minute
# A client measures when it receives a response, the rate limiter when it made the decision. This covers the
# difference.
RATE_MARGIN_SECONDS: Final = 0.1
ROWS_WINDOW_SECONDS: Final = 3_600  # section 8: rows per hour
# Requests per minute from one IP address without valid credentials: sign-in, health checks, documentation,
# invalid keys.
ADDRESS_REQUESTS_PER_MINUTE: Final = 600
# Attempts to create the epoch of a workspace while other processes delete it.
EPOCH_ATTEMPTS: Final = 5
# How long a process caches an authenticated API key. A new epoch of the workspace invalidates the entry
# earlier; this limit covers a process that died after its commit and before it published the change.
IDENTITY_MAX_AGE_SECONDS: Final = 60
IDENTITY_CACHE_ENTRIES: Final = 10_000
# How long an announced change of permissions keeps other processes from caching what they read.
EPOCH_PENDING_SECONDS: Final = 30
EPOCH_SECONDS: Final = 7 * 86_400
KEY_LAST_USED_SECONDS: Final = 60  # the last use of a key is written at most this often

# --- Bodies and queries ------------------------------------------------------------------------------------
MAX_REQUEST_LINE_BYTES: Final = 8_190  # gunicorn's maximum; RFC 9112 recommends at least 8,000
MAX_BODY_BYTES: Final = 10 * MB
MAX_UPLOAD_BYTES: Final = 50 * MB  # a file uploaded to the workspace
SCANNER_CONNECT_SECONDS: Final = 5
SCANNER_SECONDS: Final = 60  # clamd unpacks archives and has its own limit, MaxScanTime (120 s)
MAX_FORM_PARTS: Final = 20_000  # 500 fields with 40 inputs each
MAX_FORM_NAME_CHARS: Final = 2_000  # name of one input; a path of MAX_JSON_DEPTH steps has about 600
MAX_JSON_DEPTH: Final = 64  # protects all recursive functions over a body; orjson itself stops at 1,024
# Arrays and objects in one body. Measured: an object with one member takes 230 bytes of memory and 8 bytes
# of JSON, so 10 MB of them would take 290 MB.
MAX_JSON_CONTAINERS: Final = 400_000
# Elements of one array or object, unless the schema limits it separately.
MAX_JSON_ELEMENTS: Final = 100_000
# In larger bodies, unknown keys are counted before validation.
LARGE_JSON_BYTES: Final = 256 * 1024
MAX_FIELD_FAULTS: Final = 1_000  # errors collected from the fields of a template, before the check stops
MAX_COUNTED_FAULTS: Final = 2_000  # in a body with more errors, they are counted but not listed
PAGE_LIMIT_DEFAULT: Final = 20
PAGE_LIMIT_MAX: Final = 100
# JSON of all objects on one page of a list. A page with larger objects contains fewer of them. As Python
# objects, with the response, they take about eight times as much memory.
PAGE_BYTES: Final = 16 * MB
MAX_QUERY_TEXT: Final = 200  # the search text ?q=
MAX_NAME_CHARS: Final = 200  # names of templates, keys, projects and teams
MAX_DESCRIPTION_CHARS: Final = 10_000
REQUEST_ID_CHARS: Final = 128  # a longer X-Request-Id is replaced by a generated one
MAX_FAULT_PATH_CHARS: Final = 1_000  # path of an error, which contains keys sent by the client
MAX_FAULTS: Final = 100  # errors listed in one response

# --- Templates and generation ------------------------------------------------------------------------------
MIN_ROWS: Final = 1
# Reference date for relative dates in an unsaved template that is sent with a seed but without `now` or
# `anchor`. It is constant so that the same seed produces the same bytes on every day.
DRAFT_ANCHOR: Final = datetime(2026, 1, 1, tzinfo=UTC)
DEFAULT_QUANTITY: Final = 10
PREVIEW_ROWS: Final = 3  # section 8
MAX_FIELDS: Final = 500
# JSON of all templates of a dataset, or of all templates related to one template. Compiled, they take about
# three times as much.
RELATED_BYTES: Final = 32 * MB
MAX_DATASET_TABLES: Final = 2_000  # templates in one dataset
MAX_NESTING: Final = 8
MAX_SEED_CHARS: Final = 200
MAX_OFFSET: Final = 2**53  # row numbers stay exact in JSON parsers that use doubles
MAX_ARRAY_PRODUCT: Final = 10_000  # product of the maximum lengths of all arrays in one row
MAX_FLAT_COLUMNS: Final = 500  # `arrays: columns`
BLOCK_ROWS: Final = 8_192  # measured: larger blocks are no faster and use more memory
FIRST_BLOCK_ROWS: Final = 256  # measured: the first byte is sent after 5 ms
# Memory for the columns of one block, and the maximum size of one row. Twenty ordinary fields take 3 MB in
# a full block; wider rows are generated in smaller blocks. Writing a block takes up to six times as much,
# which stays below the 256 MB available to one request.
BLOCK_BYTES: Final = 16 * MB
COMPOSED_BYTES: Final = 2 * MB  # texts of a column in parts, if all were the longest; else they are measured
BLOCK_STEP: Final = 4  # a block that exceeds BLOCK_BYTES is generated again with this many times fewer rows
# BLOCK_ROWS / FIRST_BLOCK_ROWS: the maximum growth from one block to the next. After a block has exceeded
# BLOCK_BYTES, blocks grow by a factor of two at most.
BLOCK_GROWTH: Final = 32
# Processor time for a request of up to MAX_ROWS_PER_GENERATION rows; larger requests get proportionally
# more. Twenty ordinary fields take 0.4 s for this number of rows. Setting: ROWSMITH_GENERATE_SECONDS.
GENERATE_SECONDS: Final = 30
GENERATE_MIN_SHARE: Final = 1 / 3  # minimum share of that time, for previews and small requests
# The time per row is measured on this many rows and on a quarter of them, or on the quarter only if it
# takes longer than SLOW_SAMPLE_SECONDS.
SLOW_SAMPLE_ROWS: Final = 1_024
SLOW_SAMPLE_SECONDS: Final = 0.5
PREVIEW_RECORDS: Final = 10_000  # array elements that are objects in one preview; as many as one row can have
# Elements per preview that do not count toward the quota. Further elements count toward a separate quota
# for previews, which is as large as the rows per hour.
PREVIEW_FREE_RECORDS: Final = 100
# Output of one preview. As Python objects for a page it takes up to thirty times as much memory.
PREVIEW_BYTES: Final = 8 * MB
ESTIMATE_BYTES: Final = 32 * MB  # sample of an export that is written to estimate its total size
BAD_TEXT_CHARS: Final = 30_000  # XLSX_CELL_CHARS: every invalid value fits into a spreadsheet cell
# Rows per block of an answer key; only rows with invalid data are generated.
ANSWER_BLOCK_ROWS: Final = 65_536
# Measured: a block of related rows is reduced to its distinct rows if each row occurs this often on average.
# RANDOM_REPEATS applies if the rows were drawn in random order.
DISTINCT_REPEATS: Final = 2
RANDOM_REPEATS: Final = 16
BLOCK_LEAVES: Final = 65_536  # blocks of rows with arrays shrink until no column in them is longer than this
MAX_FORMULA_CHARS: Final = 4_000  # a formula, or a text with {{fields}}
MAX_FORMULA_PARTS: Final = 1_000  # tokens of one formula
MAX_FORMULA_DEPTH: Final = 64  # keeps recursive functions over a formula far below Python's recursion limit
MAX_FORMULA_DIGITS: Final = 18  # digits of a number in a formula; 18 always fit in 64 bits
MAX_FORMULA_LIST: Final = 200  # elements of a list literal
MAX_FORMULA_POWER: Final = 62  # the largest power of two that fits in 64 bits
MAX_FORMULA_TEXT: Final = 10_000  # characters of a text that a formula builds from shorter ones
MAX_PATTERN_SIZE: Final = 10_000  # states of a regular expression in a formula; takes about 10 ms to compile
MAX_CASES: Final = 100  # conditions of one field
MAX_AFFIX_CHARS: Final = 200  # prefix and suffix
MAX_INTEGER: Final = 2**53 - 1  # RFC 8259, section 6: integers that every JSON parser reads exactly
MAX_PAD_DIGITS: Final = 40  # leading zeros
MAX_DECIMALS: Final = 12  # with the 18 digits of int64, this leaves a million units
TOTAL_ROWS: Final = 10_000_000  # running totals end here: 33 ms to compute the last row with empty caches
TOTAL_STEP_ROWS: Final = 8_192  # a checkpoint of the sum is kept at this interval; at most 10 kB per column
CACHED_TOTALS: Final = 64  # columns whose sums one process caches
TOTAL_ENDS: Final = 16  # streams over one column that continue without recalculating the sum
MAX_LOOKBACK_COLUMNS: Final = 1_000  # columns that one block generates for rows before its first row
MAX_COMBINATIONS: Final = 2**62  # combinations of list values; a row number has 63 bits
MAX_LIST_VALUES: Final = 10_000  # values of a custom list
MAX_TEXT_CHARS: Final = 100_000  # one generated text
FAKER_POOL: Final = 10_000  # contract: values drawn from one Faker method
FAKER_POOL_CHARS: Final = 8_000_000  # all values of one pool
FAKER_ARGUMENT_CHARS: Final = 10_000  # arguments of one method, as JSON
FAKER_MAX_ARGUMENT: Final = 10_000  # an argument that sets a length or a count
FAKER_SECONDS: Final = 30.0  # processor time for drawing one pool
FAKER_WAIT_SECONDS: Final = 45.0  # waiting for the process that draws a pool; less than gunicorn's 60
FAKER_MEMORY_MB: Final = 768  # address space of that process; Faker's word lists take 250
FAKER_PROCESSES: Final = 2  # pools that one process draws at the same time
FAKER_POOLS: Final = 64  # pools and errors cached in one process
FAKER_CACHE_BYTES: Final = 64 * MB  # all cached pools
MAX_CODE_CHARS: Final = 128  # an account number or a password
MAX_CARD_YEARS: Final = 50  # years until a card expires
MAX_PIXELS: Final = 10_000  # width or height of an image
MAX_AGE: Final = 120  # age of a person in whole years
MAX_UNITS: Final = 10**18  # maximum of a decimal number, in units of its last digit; less than 2**63
MAX_LOG_SCALE: Final = 128  # doublings per standard deviation; far more than 64 bits can hold
MAX_POISSON_MEAN: Final = 1_000_000  # the table of weights then has 23,000 entries
# Binomial; the size of its table grows with the square root, up to 36,000 entries.
MAX_TRIALS: Final = 10_000_000
MAX_RANKS: Final = 2**40  # zipf: a range of ranks still fits in 32 random bits
MAX_PATTERN_CHARS: Final = 1_000  # length of a regular expression or mask
MAX_PATTERN_PLACES: Final = 2_000  # longest text that a regular expression can generate
OPEN_REPEATS: Final = 10  # maximum of *, + and {n,}: this many more than their minimum
MAX_WORDS: Final = 200  # words, sentences or lines of one text
# Templates related to one template, directly or indirectly. A table of a large schema reaches hundreds.
MAX_RELATED: Final = 1_000
MAX_NESTED_FIELDS: Final = 5_000  # fields of all nested templates, counted once per use
# Length of a chain of fields that read one another; keeps recursion far below Python's limit.
MAX_CHAIN: Final = 40
MAX_CELL_COST: Final = 10_000  # cells generated to calculate a single cell
CACHED_RELATION_KEYS: Final = 64  # keys for which a relation caches the assignment of its children
PARENT_BLOCK: Final = 1_000  # parents whose children are counted together; at most 1,023
MAX_CARDINALITY: Final = 100_000  # children of one parent; a block of parents then has at most 10**8
MAX_PARENTS: Final = MAX_OFFSET  # the number of a parent is a row number
CARDINALITY_CACHE_BYTES: Final = 32 * MB  # positions of the first children of 16 million parents
FOLD_ROWS: Final = 65_536  # children in memory while the values of a parent are aggregated

# --- Formats -----------------------------------------------------------------------------------------------
# ECMA-376 does not define these limits; they are those of Excel ("Excel specifications and limits").
XLSX_SHEET_ROWS: Final = 1_048_576
XLSX_SHEET_COLUMNS: Final = 16_384
XLSX_CELL_CHARS: Final = 32_767  # UTF-16 code units
XLSX_SHEET_NAME_CHARS: Final = 31
XLSX_EXACT_INTEGER: Final = 2**53  # numbers in cells are IEEE 754 doubles
SQL_ROWS_PER_STATEMENT: Final = 100  # statements of about 20 kB, which every server accepts
SQL_MAX_ROWS_PER_STATEMENT: Final = 10_000  # keeps statements below MySQL's 16 MB packet
MSSQL_ROWS_PER_STATEMENT: Final = 1_000  # SQL Server, "Table Value Constructor"
ORACLE_LITERAL_BYTES: Final = 4_000  # Oracle Database SQL Language Reference, "Text Literals"
DB2_LITERAL_BYTES: Final = 32_672  # Db2, "SQL and XML limits": character constant
PARQUET_GROUP_ROWS: Final = 65_536  # a row group stays in memory until it is complete
# Row groups of wide tables have fewer rows. Measured: with 16 MB, a stream of a million rows with twenty
# fields increases the memory of a process by up to 79 MB.
PARQUET_GROUP_BYTES: Final = 8 * MB
FORMAT_POOL_BYTES: Final = 32 * MB  # escaped pools cached in one process
FORMAT_PART_BYTES: Final = 16 * MB  # a block with longer texts is written in two halves
# Also for the number of pieces; each takes 24 bytes while a row is assembled.
FORMAT_PART_PIECES: Final = 256 * 1024

# --- Idempotency-Key ---------------------------------------------------------------------------------------
IDEMPOTENCY_HOURS: Final = 24
IDEMPOTENCY_KEY_CHARS: Final = 255  # the same as in other payment and cloud APIs
IDEMPOTENCY_WAIT_SECONDS: Final = 5.0  # how long a repeated request waits for the response to the first one
IDEMPOTENCY_POLL_SECONDS: Final = 0.02
# The longest request (a run with wait "true") blocks for 5 minutes. A first request that has not finished
# after this time is considered lost.
IDEMPOTENCY_LOST_SECONDS: Final = 600

# --- Sign-in -----------------------------------------------------------------------------------------------
LOGIN_FAILURES: Final = 10
LOGIN_WINDOW_SECONDS: Final = 300
# Response time to a wrong password: several times what hashing takes, so that additional work for existing
# accounts (an audit entry) cannot be measured.
LOGIN_REFUSAL_SECONDS: Final = 0.3
PASSWORD_MIN_CHARS: Final = 10  # NIST SP 800-63B requires at least 8
PASSWORD_MAX_CHARS: Final = 256  # NIST SP 800-63B: at least 64 must be possible
PASSWORD_WORD_CHARS: Final = 4  # shorter words of a name or an address are allowed in passwords
PASSWORD_OWN_CHARS: Final = 6  # characters that must remain when these words are removed
# OWASP Password Storage Cheat Sheet: argon2id with 19 MiB, 2 passes, 1 lane.
ARGON2_MEMORY_KIB: Final = 19_456
ARGON2_PASSES: Final = 2
ARGON2_LANES: Final = 1
ARGON2_AT_ONCE: Final = 4  # parallel hashes; limits the memory of one process during many sign-ins
SESSION_DAYS: Final = 14
SESSION_IDLE_HOURS: Final = 72
SESSION_LAST_SEEN_SECONDS: Final = 60  # last_seen_at is written at most this often
# Sensitive actions require a sign-in within this time, or the password again.
FRESH_SIGN_IN_MINUTES: Final = 15
SIGN_IN_LINK_HOURS: Final = 24  # one-time sign-in link
INVITATION_DAYS: Final = 7
INVITATION_MAILS_PER_HOUR: Final = 5  # from one workspace to one mailbox
INVITATION_MAILS_SECONDS: Final = 3_600
KEY_UNUSED_DAYS: Final = 90  # a key that has not been used for this time is marked
SIGN_IN_WAIT_SECONDS: Final = 600  # between the two steps of a sign-in, and at an identity provider
TOTP_STEP_SECONDS: Final = 30  # RFC 6238, 5.2: the recommended time step
TOTP_DRIFT_STEPS: Final = 1  # RFC 6238, 5.2: at most one time step for the network delay, in both directions
TOTP_DIGITS: Final = 6  # RFC 4226, 5.3: at least six; all authenticator apps show six
TOTP_SECRET_CHARS: Final = 32  # 160 bits in base 32, as RFC 4226, 4 recommends
# NIST SP 800-63B, 5.2.2: no more than 100 consecutive failures. Only a user who knows the password can try
# codes.
CODE_FAILURES_PER_DAY: Final = 100
CODE_DAY_SECONDS: Final = 86_400
RECOVERY_CODES: Final = 10
# 120 bits; OWASP ASVS 5.0, 6.5.2: from 112 bits on, one round of a hash is enough.
RECOVERY_CODE_BYTES: Final = 15
OIDC_RESPONSE_BYTES: Final = 512 * 1024  # response of an identity provider; the key set is the largest
OIDC_TIMEOUT_SECONDS: Final = 10  # a user is waiting
OIDC_CACHE_SECONDS: Final = 3_600  # how long metadata and keys are cached
# Keys are fetched earlier for an unknown key id, but at most this often.
OIDC_KEYS_REFRESH_SECONDS: Final = 30
OIDC_LEEWAY_SECONDS: Final = 60  # allowed clock difference
OIDC_ISSUER_CHARS: Final = 500  # a URL
OIDC_TEXT_CHARS: Final = 255  # OpenID Connect Core 1.0, 2: a subject has at most 255 characters
HSTS_SECONDS: Final = 31_536_000  # RFC 6797; one year, as browser preload lists require

# --- Keys --------------------------------------------------------------------------------------------------
KEY_HANDLE_CHARS: Final = 12
KEY_SECRET_BYTES: Final = 32  # 256 bits: a plain hash is enough, because dictionary attacks are impossible
SECRET_KEY_MIN_CHARS: Final = 32

# --- Soft delete, work, leases ------------------------------------------------------------------------------
RESTORE_DAYS: Final = 30
MAX_MOVED: Final = 1_000  # objects moved from one project to another in one request
LISTED_USES: Final = 100  # objects of one kind listed as dependents
LEASE_SECONDS: Final = 30  # a worker that does not renew its lease within this time is considered lost
LEASE_RENEWAL_SECONDS: Final = 5  # interval for renewing a lease
MAX_ATTEMPTS: Final = 3  # how often an export or push is started, including restarts after a lost worker
# /health/ready requires a worker heartbeat that is not older than this.
WORKER_HEARTBEAT_MAX_AGE_SECONDS: Final = 60

# --- Logs ---------------------------------------------------------------------------------------------------
REDACTED_SECRETS: Final = 500  # secrets that a process remembers to redact them; takes a few ms per log line
REDACTED_COOKIE_MIN_CHARS: Final = 12  # shorter cookies are preferences, such as the theme
LOG_MESSAGE_CHARS: Final = 8_000  # one line of the service's log
LOG_TRACE_CHARS: Final = 16_000  # the end of a traceback

# --- Operation ----------------------------------------------------------------------------------------------
# A component that does not answer /health/ready within this time is reported as slow.
READY_SECONDS: Final = 1.5
# How often a process sends its counts to Redis; Prometheus scrapes every 15 s.
METRICS_FLUSH_SECONDS: Final = 2.0
METRICS_MAX_AGE_SECONDS: Final = 15.0  # a web process that is silent for this time is no longer counted
# Upper bounds of the histogram buckets, in seconds: Prometheus's defaults, extended for runs and large
# pushes.
METRICS_REQUEST_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
METRICS_WORK_BUCKETS: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0)
STATUS_WORK: Final = 30  # running jobs on the status page
STATUS_FAILED: Final = 20  # failed jobs on the status page
STATUS_FAILED_DAYS: Final = 7  # age of these failed jobs

# --- Upkeep: backup, restore, doctor, upgrade ----------------------------------------------------------------
BACKUP_ROWS_IN_MEMORY: Final = 1_000  # rows of a table that a backup keeps in memory
# Zlib's fastest level: most files are compressed already, and JSON shrinks to a fifth.
BACKUP_COMPRESSION_LEVEL: Final = 1
# How often a backup takes a new snapshot because files were deleted in the meantime.
BACKUP_SNAPSHOT_ATTEMPTS: Final = 3
BACKUP_HOLD_SECONDS: Final = 900  # how long a killed backup keeps files from being deleted
BACKUP_CONNECT_SECONDS: Final = 10.0  # timeout for connecting to a database and for acquiring a lock
BACKUP_PASSPHRASE_MIN_CHARS: Final = 12  # minimum length of a passphrase that encrypts the keys
BACKUP_SALT_BYTES: Final = 16  # RFC 7914, 12: at least as long as in its examples
BACKUP_SCRYPT_COST: Final = 2**17  # OWASP Password Storage Cheat Sheet: scrypt with N=2^17, r=8, p=1; 128 MB
BACKUP_SCRYPT_MAX_COST: Final = 2**20  # maximum that a backup file can request: 1 GB
# Differences between two clocks. Leases expire after 30 s, and each worker compares them with its own
# clock.
SKEW_WARN_SECONDS: Final = 2.0
SKEW_FAIL_SECONDS: Final = 10.0
REDIS_FULL_SHARE: Final = 0.9  # share of the memory that Redis may use
DISK_FULL_BYTES: Final = 200 * MB  # with less free space, a medium-sized export does not fit
DISK_SCARCE_BYTES: Final = 2_048 * MB  # environments of scenarios and copies of files take a few gigabytes
UPKEEP_LISTED: Final = 5  # items of one kind that are listed by name; the others are counted

# --- Audit -------------------------------------------------------------------------------------------------
AUDIT_BATCH: Final = 500  # entries written in one transaction
AUDIT_WAIT_SECONDS: Final = 30.0  # a request fails if its audit entry is not written within this time
AUDIT_SEAL_SECONDS: Final = 30.0  # how often entries are sealed; newer entries may not have a seal yet
AUDIT_SEAL_ENTRIES: Final = 1_000  # entries per seal, with 48 kB of hashes
AUDIT_SEALS_PER_TURN: Final = 20  # seals per run of the sweeper, about one second of work
AUDIT_REMOVED_PER_TURN: Final = 10  # seals whose entries retention deletes per run: 2,000 entries per second
# An entry that is this much older than the entries sealed before it was inserted later. No transaction
# takes this long, and the clocks of the servers do not differ this much.
AUDIT_LATE_SECONDS: Final = 600.0
AUDIT_FAULTS: Final = 20  # errors reported for the hash chain of one workspace
AUDIT_WINDOW: Final = 20_000  # entries scanned for a filter without an index; takes about 40 ms
AUDIT_MAX_COUNT: Final = 20_000  # a search stops counting here
AUDIT_TEXT_CHARS: Final = 200  # search text for details
AUDIT_VALUE_CHARS: Final = 200  # old or new value in an entry
AUDIT_CHANGES: Final = 50  # changed keys in an entry
# Days that entries are kept, by plan: minimum and maximum. The maximum is the default.
AUDIT_DAYS: Final = MappingProxyType({"free": (30, 90), "pro": (30, 365), "enterprise": (30, 3_650)})

# --- Database and Redis ------------------------------------------------------------------------------------
SQLITE_BUSY_MS: Final = 15_000
DB_POOL: Final = 10
# Together with DB_POOL, more than the threads of a web process that do not follow streams.
DB_POOL_OVERFLOW: Final = 70
DB_POOL_WAIT_SECONDS: Final = 15
DB_IDLE_TRANSACTION_SECONDS: Final = 60  # PostgreSQL ends a transaction without a statement for this time
REDIS_TIMEOUT_SECONDS: Final = 3.0
REDIS_CONNECTIONS: Final = 200

# --- Storage -----------------------------------------------------------------------------------------------
STORAGE_CHUNK_BYTES: Final = 1 * MB  # downloads are read in chunks of this size
STORAGE_PART_BYTES: Final = 8 * MB  # S3 accepts parts of at least 5 MiB, and at most 10,000 of them
# Parts of one file uploaded in parallel; each stays in memory until it is stored.
STORAGE_PARTS_AT_ONCE: Final = 2
STORAGE_TIMEOUT_SECONDS: Final = 60

# --- Pages -------------------------------------------------------------------------------------------------
ESTIMATE_ROWS: Final = 8_192  # rows generated to estimate the size and duration of an export: about 50 ms
EXPLAIN_ROWS: Final = 1_000  # rows generated to show the distribution of a field
COST_BLOCKS: Final = 4  # number of blocks that are timed to find the cost of a value; the fastest counts
EXPLAIN_COST_ROWS: Final = 1_000_000  # the builder shows how long a field takes for this number of rows
# Total size of the export files of a workspace, by plan. The oldest files are deleted to make space for a
# new one.
EXPORT_FILES_BYTES: Final = MappingProxyType(
    {"free": 2_048 * MB, "pro": 51_200 * MB, "enterprise": 512_000 * MB}
)
EXPORT_HOLD_BYTES: Final = 16 * MB  # space reserved in advance while an export is written
EXPORT_ROWS: Final = 200_000  # from this number of rows on, the page recommends an export in the background
USAGE_FLUSH_SECONDS: Final = 60.0  # how often request counts are moved from Redis to the database
# How long hourly usage is kept: a year, and the month before it for comparison.
USAGE_RETENTION_DAYS: Final = 400
USAGE_MAX_HOURS: Final = 24 * 31  # points of a chart by the hour
USAGE_MAX_DAYS: Final = 366  # points of a chart by the day
USAGE_PARTS: Final = 50  # templates, keys, users and projects listed separately; the others are summed up
USAGE_WARN_SHARE: Final = 0.8  # share of a limit at which users are warned
LIMIT_WARNING_SECONDS: Final = 3_600  # time between two warnings about the same limit of a workspace
LIMIT_MAIL_SECONDS: Final = 86_400  # time between two e-mails about it
BUILDER_ROWS: Final = 50  # rows of data in the builder's grid
TYPE_SAMPLES: Final = 4  # rows that the type picker shows of a type
BUILDER_COLUMNS: Final = 40  # columns of the grid; of a template with more fields, it shows a part
BUILDER_SECONDS: Final = 3.0  # processor time in which the errors of a draft's fields are looked for
BUILDER_LIST_FROM: Final = 60  # number of fields from which the builder starts with its list
BUILDER_QUANTITY: Final = 1_000  # default number of rows of a template that is created in the builder
DRAFT_REVISIONS: Final = 100  # changes of a draft that can be undone
# Revisions of one draft, if all have the size of the newest: of a template of 8 MB, one change can be undone.
DRAFT_BYTES: Final = 16 * 1024 * 1024
# Drafts of one user in a workspace; a new one replaces the one that was changed longest ago.
MAX_DRAFTS: Final = 200
# Arrays and objects of a draft's JSON: nested fields have three levels each, and options a few more.
DRAFT_LEVELS: Final = 8 * MAX_NESTING
DRAFT_TYPING_SECONDS: Final = 4  # changes of the same input within this time are one step of undo
# Tables offered in a select element of the builder; with more, a search box is shown.
SELECT_TABLES: Final = 300
DATASET_CHOICES: Final = 100  # templates offered on the page of a dataset; others are found by their names
DATASET_CARDS: Final = 40  # tables that the diagram of a dataset shows; others are found by their names
DATASET_LINES: Final = 50  # tables on a page of the table view of a dataset
DATASET_SAMPLE_ROWS: Final = 10  # rows of a table that the page of a dataset shows
# Versions of templates whose columns and relations a process remembers.
DATASET_CONTENTS_CACHED: Final = 4_000
SELECT_TEMPLATES: Final = 300  # templates offered in the builder, ordered by name
ASSET_SECONDS: Final = 31_536_000  # URLs of assets contain a hash, so browsers may cache them for a year

# --- Web server --------------------------------------------------------------------------------------------
WEB_WORKERS: Final = 2
# Measured: with 16 threads and 40 followed logs, a ping waits 1.4 s. An idle thread takes about 60 kB.
WEB_THREADS: Final = 192
# Threads of a web process reserved for requests that neither follow a stream nor wait.
WEB_FREE_THREADS: Final = 32
# Larger arrays are returned to the operating system when they are freed. Arrays of ordinary blocks are
# smaller, because returned memory must be requested again, page by page.
MALLOC_MMAP_BYTES: Final = 4 * MB
MALLOC_TRIM_BYTES: Final = 4 * MB  # free memory that is kept at the end of an arena
# After a request that has increased the memory of a process by this much, all free memory is returned, which takes
# about 5 ms.
TRIM_GROWN_BYTES: Final = 32 * MB
TRIM_SECONDS: Final = 1  # between two trims of a process that has not grown since the last one
MALLOC_ARENAS: Final = 2  # measured: as fast as glibc's default of eight per processor, with half the memory
# Connections of one web process; fewer if the operating system allows fewer open files. Idle connections
# and unfinished requests take no thread; at the limit, some of them are closed for new ones.
WEB_CONNECTIONS: Final = 2_000
WEB_CLOSED_CONNECTIONS: Final = 32  # connections closed at a time
WEB_ACCEPT_PAUSE_SECONDS: Final = 0.02  # pause after the operating system has refused a connection
WEB_HEAD_SECONDS: Final = 15.0  # from the first byte to the end of the headers, including the TLS handshake
# Minimum transfer rate of a request body and of a response: 500 bytes per second. Slower connections are
# closed.
WEB_BODY_WINDOW_SECONDS: Final = 30.0
WEB_BODY_WINDOW_BYTES: Final = 15_000
WEB_SEND_WINDOW_SECONDS: Final = 60.0
WEB_SEND_WINDOW_BYTES: Final = 30_000
WEB_UNFINISHED_PER_ADDRESS: Final = 64  # unfinished requests from one IP address in one web process
WEB_UNFINISHED_GRACE_SECONDS: Final = 2.0  # younger requests do not count toward that limit
MAX_HEADERS_BYTES: Final = 65_536  # request line and headers together
# A body up to this size is received before a thread handles the request.
WEB_BODY_AHEAD_BYTES: Final = 256 * 1024
# Threads of a web process that may wait for the rest of a larger body, in total and per IP address.
WEB_BODY_SLOTS: Final = 24
WEB_BODY_SLOTS_PER_ADDRESS: Final = 8
WEB_SLOT_SECONDS: Final = 30.0  # how long a request waits for such a thread
WEB_SLOT_RETRY_SECONDS: Final = 5  # Retry-After of a request that is rejected because too many are unfinished
# A complete response up to this size is sent to a slow client without a thread; /openapi.json has 1.3 MB.
WEB_BUFFERED_RESPONSE_BYTES: Final = 4 * MB
WEB_BUFFER_BYTES: Final = 64 * MB  # unfinished requests and responses in the memory of one web process
# How long the server waits after closing, so that the client can read the response.
WEB_LINGER_SECONDS: Final = 2.0
WEB_SWEEP_SECONDS: Final = 0.5  # how often deadlines and limits of connections are checked
FOLLOW_RETRY_SECONDS: Final = 2  # Retry-After if no slot is free for following a stream

# --- Launcher ----------------------------------------------------------------------------------------------
UP_WORKERS: Final = 2  # at most; a short export can start during a long push
UP_RUNNERS: Final = 2  # at most; scenario runs in parallel on this machine
PART_READY_SECONDS: Final = 120.0  # a process that is not ready within this time is reported as hanging
PART_NEEDED_SECONDS: Final = 0.2  # how often a part that starts on demand asks whether it is needed
PROBE_SECONDS: Final = 2.0  # timeout of one health check of a process
PROBE_PAUSE_SECONDS: Final = 0.05
STOP_SECONDS: Final = 30.0  # time for streams to finish and for workers to release their leases
KEEPALIVE_WAIT_SECONDS: Final = 0.05  # how long the thread waits for the next request on the same connection
# The first part of a body up to this size is sent together with the headers.
HEADERS_WITH_BODY_BYTES: Final = 65_536
RESTART_PAUSES: Final = (0.2, 1.0, 2.0, 4.0, 8.0)  # seconds before a process is restarted
START_FAILURE_SECONDS: Final = 15.0  # a process that ran for a shorter time has failed to start
LOG_FILE_BYTES: Final = 5 * MB  # log files are rotated at this size; one old file is kept
LOG_CHECK_SECONDS: Final = 5.0
PART_LOG_LINES: Final = 12  # log lines that are shown when a process dies
SOCKET_PATH_BYTES: Final = 100  # sockaddr_un holds 108 bytes on Linux, 104 on macOS

# --- Worker and sweeper ------------------------------------------------------------------------------------
WORKER_HEARTBEAT_SECONDS: Final = 5  # heartbeat interval of a worker
# RQ wakes up worker_ttl - 15 seconds after it started to wait for the queue, and sends the heartbeat then.
WORKER_TTL_SECONDS: Final = WORKER_HEARTBEAT_SECONDS + 15
# A cancellation takes effect within 6 s; workers check for it twice a second.
CANCEL_POLL_SECONDS: Final = 0.5
RELEASE_SECONDS: Final = 20  # a job that has not released its lease within this time is killed
FAILED_JOB_SECONDS: Final = 3_600  # how long Redis keeps failed notifications, for troubleshooting
SWEEP_SECONDS: Final = 5.0  # together with the lease: lost work is detected within 35 s
SWEEPER_LEASE_SECONDS: Final = 15.0
SWEEP_BATCH: Final = 1_000  # rows processed in one sweep
QUEUED_AGE_SECONDS: Final = 5  # newer queued work is left to its own notification
PURGE_SECONDS: Final = 3_600.0  # how often expired data is deleted

# --- Templates and rows over REST -----------------------------------------------------------------------------
# Every date within a thousand years of now still has a four-digit year.
NOW_YEARS: Final = (1000, 9000)
MAX_LOCALE_CHARS: Final = 20
PLAN_CACHE_ENTRIES: Final = 512  # compiled templates cached in one process
PLAN_CACHE_BYTES: Final = 16 * MB  # size of their JSON
COMPILED_SIZE_FACTOR: Final = 5  # a compiled template takes about this many times the memory of its JSON
SEED_BYTES: Final = 8  # random bytes of a generated seed
SSE_COMMENT_SECONDS: Final = 15.0  # a comment keeps proxies from closing an idle stream
SSE_POLL_SECONDS: Final = 0.5  # how often the progress is read
SSE_MAX_SECONDS: Final = 3_600.0  # after this time, a client must reconnect (Last-Event-ID)
EXPORT_PROGRESS_SECONDS: Final = 1.0  # the number of finished rows is written at most this often
# A file of this many rows is generated by as many processes as there are processors, in parts that stay in memory
# until they are read.
PARALLEL_FROM_ROWS: Final = 100_000
PARALLEL_PART_BYTES: Final = 4 * MB
PARALLEL_PART_ROWS: Final = 65_536
PARTS_FROM_ROWS: Final = 100_000  # an export of more rows is split into parts if this is requested
PART_MIN_ROWS: Final = 10_000  # starting a smaller part takes longer than generating it
MAX_PARTS: Final = 1_000  # parts of one export; its manifest then has about 300 kB
LISTED_PARTS: Final = 50  # parts on one page of an export

# --- Connections and pushes ------------------------------------------------------------------------------
PUSH_CHUNK_ROWS: Final = 10_000  # rows per transaction at the target; after a crash, at most one is in doubt
# Memory for the rows of one transaction, or of one batch over HTTP. Wider rows are sent in smaller chunks.
PUSH_CHUNK_BYTES: Final = 64 * MB
PUSH_FIRST_ROWS: Final = 1_000  # the first chunk of a table is small, so that the page soon shows progress
PUSH_SAME_FAILURES: Final = 1_000  # if this many first rows fail for the same reason, the table is the cause
PUSH_CANARY_ROWS: Final = 10  # default number of canary rows
PUSH_RECONNECT_SECONDS: Final = (1.0, 2.0, 4.0)  # promise 7: seconds before a lost connection is opened again
# Seconds between attempts while a target is unavailable.
PUSH_TARGET_RETRY_SECONDS: Final = (
    1.0,
    2.0,
    4.0,
    8.0,
    15.0,
    30.0,
)
PUSH_WORKER_WAIT_SECONDS: Final = 4.0  # for longer waits, the worker is released
PUSH_TARGET_WAIT_SECONDS: Final = 300  # a restart takes 5 to 30 s, a failover or an upgrade some minutes
PUSH_MAX_TARGET_WAIT_SECONDS: Final = 86_400
PUSH_CANCEL_SECONDS: Final = 1.0  # time for the current chunk to finish before its statement is cancelled
PUSH_DRAIN_SECONDS: Final = 10.0  # the same for a worker that is stopping; less than RELEASE_SECONDS
# Time after which a target that does not accept the cancellation is abandoned.
PUSH_CANCEL_TIMEOUT_SECONDS: Final = 3.0
PUSH_LINE_SECONDS: Final = 5.0  # progress is logged at most this often
PUSH_LINES: Final = 10_000  # log lines of one push; after that, only its result is logged
PUSH_LINE_CHARS: Final = 2_000
PUSH_PROGRESS_POINTS: Final = 200  # points of the rate chart, thinned out if there are more
HTTP_BLOCK_ROWS: Final = 1_000  # rows generated in one block for a push over HTTP
HTTP_SAME_FAILURES: Final = 100  # PUSH_SAME_FAILURES for a push over HTTP, where each row takes a request
HTTP_HEADER_ROWS: Final = 1_000_000  # rows whose header values are checked before a push is accepted
HTTP_BODY_CHARS: Final = 2_048  # response of a target to one row
PUSH_MESSAGE_CHARS: Final = 1_000  # error message of a target for one row
PUSH_KEY_CHARS: Final = 200  # one key value of one row
PUSH_WINDOW_ROWS: Final = 65_536  # row numbers searched in one step
METADATA_CACHED_TABLES: Final = 5_000  # about 50 MB in one process; a table with 20 columns takes 10 kB
# Time that a dry run may spend reading from its target, for all tables together.
DRY_RUN_READ_SECONDS: Final = 30.0
PUSH_SPOOL_BYTES: Final = 32 * MB  # captured keys in memory; the others are in file storage
REDACTED_SECRET_MIN_CHARS: Final = 4  # shorter secrets occur in any text; they are not redacted
MAX_SECRET_CHARS: Final = 10_000  # large enough for the key of a certificate
MAX_MASKING_KEYS: Final = 1_000  # versions of a workspace's masking key, all of which are kept
VAULT_BATCH: Final = 200  # secrets encrypted again in one transaction
CHILD_PROCESSES: Final = 8  # child processes that connect to targets for one web process
CHILD_RESPONSE_BYTES: Final = 64 * MB  # total response of such a process
CHILD_QUEUE_SECONDS: Final = 10.0  # a request that waits longer for a child process gets a Retry-After
# The kernel kills a child process this long after its time limit if its parent does not.
CHILD_GRACE_SECONDS: Final = 2.0
VERIFY_SECONDS: Final = 40.0  # all stages of a verification; each stage has a shorter time limit
METADATA_SECONDS: Final = 60.0  # 2,000 tables are read in about one second
ODATA_DOCUMENT_BYTES: Final = 32 * MB  # the largest $metadata of an S/4HANA service has about 10 MB
ODATA_DOCUMENT_ELEMENTS: Final = 600_000  # 32 MB contain about 400,000; keeps the memory below 500 MB
ODATA_BATCH_BYTES: Final = 32 * MB  # response to a batch of 50 rows
METADATA_PAGE: Final = 200  # tables returned if no names are requested
TARGET_ADDRESSES: Final = 8  # IP addresses of one host name that are tried
# A database that does not answer within this time is reported as unavailable.
TARGET_CONNECT_SECONDS: Final = 10.0
TARGET_QUERY_SECONDS: Final = 30.0  # a query for a field, a sample or the catalog
# How long an old transaction may take to finish before its outcome is in doubt.
TARGET_SETTLE_SECONDS: Final = 20.0
# A server that acknowledges nothing for this time is considered lost.
TARGET_UNACKNOWLEDGED_SECONDS: Final = 30.0
TARGET_SAVEPOINT_ROWS: Final = 1_000  # rows that SQLite inserts one by one after one of them was rejected
# Measured: minimum and maximum rows of an efficient COPY. The fixed cost of a COPY is the cost of
# TARGET_PIECE_COST_ROWS rows.
TARGET_PIECE_ROWS: Final = (64, 10_000)
TARGET_PIECE_COST_ROWS: Final = 120
TARGET_READ_ROWS: Final = 10_000  # rows per fetch when keys are listed
SQLITE_FILE_BYTES: Final = 2_048 * MB  # maximum size of a workspace's database file
QUERY_VALUE_BYTES: Final = 16 * MB  # one text or blob that a user's query computes or returns
QUERY_ROW_BYTES: Final = 32 * MB  # one row that a query returns
QUERY_RESULT_BYTES: Final = 64 * MB  # all rows of a query for a field
QUERY_MEMORY_BYTES: Final = 512 * MB  # memory of the child process that runs users' queries
QUERY_PROCESSES: Final = 16  # such processes per web process or worker
QUERY_BATCH_BYTES: Final = 4 * MB  # rows that such a process reads in one step; fewer rows if they are wide
QUERY_CHUNK_ROWS: Final = 16  # rows that the PostgreSQL driver keeps in memory
# For short rows, if a driver keeps all rows in memory and wide ones may follow.
QUERY_BATCH_ROWS: Final = 2_500
QUERY_FIRST_ROWS: Final = 16  # rows of a query for a field that are read before their width is known
QUERY_STOP_SECONDS: Final = 3.0  # such a process is killed if it has not stopped within this time
SAMPLE_BYTES: Final = 16 * MB  # first rows of a table; fewer if they are wide
HOST_CHARS: Final = 253  # RFC 1035, 2.3.4: a host name without the trailing dot
MAX_ALLOWED_HOSTS: Final = 50  # hosts that a secret may be sent to
MAX_SQLITE_FILES: Final = 10  # files of a workspace's SQLite connections
SQLITE_WORKSPACE_BYTES: Final = 8_192 * MB  # all SQLite files of a workspace together
# What one transaction may add to a file. MAX_SQLITE_FILES transactions can be in progress at the same time,
# so a transaction starts only if this much is left of SQLITE_WORKSPACE_BYTES for each of them.
SQLITE_GROWTH_BYTES: Final = 256 * MB
SQLITE_NAME_CHARS: Final = 100  # with SQLite's suffixes, it stays below the 255 bytes of file systems
# Steps of SQLite's virtual machine between two checks of the time limit: about a millisecond.
SQLITE_STEPS: Final = 10_000
# Processor time between two of these checks. A single SQL function on long values can take longer.
SQLITE_STEP_SECONDS: Final = 5.0
# Less than TARGET_SETTLE_SECONDS; a session that holds locks for longer is reported.
TARGET_LOCK_SECONDS: Final = 15.0
# How long a reader of keys may pause before the server closes its connection.
TARGET_READER_SECONDS: Final = 600.0
MYSQL_STATEMENT_ROWS: Final = 5_000  # measured: longer statements of the benchmark template are no faster
# Measured: with rejected rows, shorter statements cost more round trips than they save.
MYSQL_MIN_ROWS: Final = 25
MYSQL_STATEMENT_BYTES: Final = 4 * MB  # a quarter of the default max_allowed_packet
# The part of a statement that is not row data; names have up to 64 characters.
MYSQL_STATEMENT_MARGIN: Final = 64 * 1024
MYSQL_COMMAND_STATEMENTS: Final = 500  # UPDATE or DELETE statements per command
MYSQL_KNOWN_ROWS: Final = 200  # EXISTS subqueries per statement
MYSQL_PROOF_ROWS: Final = 3  # the first, middle and last row of a chunk's first batch
STATEMENT_KNOWN_ROWS: Final = 200  # EXISTS subqueries per statement
MSSQL_STATEMENT_BYTES: Final = 4 * MB  # far below the maximum size of a batch
DB2_STATEMENT_ROWS: Final = 500  # Db2 takes long to compile statements with many literals
DB2_STATEMENT_BYTES: Final = MB  # half of the maximum length of a statement (Db2, "SQL and XML limits")
ORACLE_CONNECTS: Final = 16  # connections for one sign-in, including redirections by listeners
MONGODB_SAMPLE_ROWS: Final = 100  # documents of a collection that are read to detect its fields
MONGODB_KNOWN_ROWS: Final = 500  # sets of values per query
# MongoDB, "MongoDB Limits and Thresholds": BSON document size.
MONGODB_DOCUMENT_BYTES: Final = 16 * 1024 * 1024
MAX_STATEMENTS: Final = 20  # SQL statements before a push, and after it
MAX_STATEMENT_CHARS: Final = 10_000
MAPPING_FIELDS_NAMED: Final = 5  # unmapped fields that are listed next to a column without a field
LISTED_MISFITS: Final = 100  # values of one column that are listed with the same reason
# Contract: up to this number of rows, /export/db responds when the push is done.
EXPORT_DB_WAIT_ROWS: Final = 1_000
EXPORT_DB_WAIT_SECONDS: Final = 30.0  # but after this time at the latest; clients often give up after 60 s
EXPORT_DB_POLL_SECONDS: Final = 0.05  # how often it checks whether the worker is done
FETCHED_DAYS: Final = 30  # contract: how long stored responses are used
FETCHED_KEYS: Final = 1_000_000  # keys in one list, 8 to 40 MB; use a filter to choose from more
FETCHED_ROWS: Final = 10_000  # rows that a query may return
FETCHED_SET_ROWS: Final = 1_000  # rows for one set of parameter values
FETCHED_LISTED_COLUMNS: Final = 20  # available columns listed in the error message for an unknown one
FETCHED_PARAMETER_SETS: Final = 1_000  # sets of parameter values per request
FETCHED_BYTES: Final = 64 * MB  # one response in memory
FETCHED_JSON_BYTES: Final = 8 * MB  # response of an API for one field; all of it is searched
FETCHED_MESSAGE_CHARS: Final = 200  # a path or a message of the target, in an error message
FETCHED_INLINE_BYTES: Final = 64 * 1024  # larger responses are in file storage, not in the database
FETCHED_BATCH: Final = 500  # responses stored in one transaction; other writers wait for about 50 ms
FETCHED_MEMORY_BYTES: Final = 64 * MB  # responses from file storage cached in one process
FETCH_SECONDS: Final = 20.0  # total time that a request may wait for connections; browsers wait 30 s or more
SOURCE_ROWS: Final = 10_000_000  # one source
PREVIEW_SOURCE_ROWS: Final = 1_000  # rows of a connection that a preview of a template reads
SOURCE_BYTES: Final = 4_096 * MB  # one source on the worker's disk while its rows are generated
FETCHED_FILES_BYTES: Final = 10_240 * MB  # stored rows and values from connections, per workspace
SOURCE_CACHE_BYTES: Final = 2_048 * MB  # sources that one process keeps open for the next request
SOURCE_BLOCK_ROWS: Final = 8_192  # BLOCK_ROWS: rows per block of a source
SOURCE_COLUMNS: Final = 2_000  # columns of one source
# A file can store one value for all of its rows, so that 446 bytes become gigabytes. Its rows may take this
# many times its size, but at least SOURCE_MIN_EXPANDED_BYTES.
SOURCE_EXPANSION: Final = 100
SOURCE_MIN_EXPANDED_BYTES: Final = 64 * MB
SOURCE_PIECE_BYTES: Final = 4 * MB  # rows of a source that are decoded in one step
SOURCE_CELL_BYTES: Final = 4 * MB  # one row of a CSV file, or one element of a JSON file
# Time for reading the rows of a connection in one request; less than gunicorn's 60.
SOURCE_SECONDS: Final = 50.0
SOURCE_QUERY_CHARS: Final = 20_000  # subsets nest their queries
# Rows of a connection that no open export or push needs are deleted after this time.
SOURCE_RETENTION_HOURS: Final = 24
SOURCE_SHEET_BYTES: Final = 1_024 * MB  # an unpacked sheet of a workbook
SOURCE_STRINGS_BYTES: Final = 256 * MB  # shared strings of a workbook, which the reader keeps in memory
SUBSET_STEPS: Final = 200  # foreign keys followed to the tables of one subset
# How often circular references are followed to parents, such as managers of managers.
SUBSET_ROUNDS: Final = 8
SUBSET_DEPTH: Final = 4  # levels of child rows
# The leak check compares 64-bit digests of the distinct original values of a column; these are 32 MB. For a
# column with more values, it samples every second digest, then every fourth, and so on. This still finds
# anything but a few leaked values, and the report shows the share that was checked.
LEAK_DIGESTS: Final = 4_000_000
LEAK_SUBSTRING_CHARS: Final = 5  # contract: part of an original value inside a masked value
LEAK_CODED_CHARS: Final = 12  # the same inside a token or hash, where short runs of digits occur by chance
LEAK_DIGITS: Final = 5  # fewer digits do not identify anyone
INFER_SAMPLE_ROWS: Final = 200  # rows of a table that are analyzed for patterns and ranges
CLASSIFY_ROWS: Final = 1_000  # rows of a sample that are searched for personal data
CLASSIFY_CHARS: Final = 200  # longer values are treated as prose
INFER_MIN_VALUES: Final = 10  # fewer values are not enough to detect a type
INFER_WORDS: Final = 12  # a column with at most this many distinct, repeated words becomes a custom list
INFER_REPEATS: Final = 4  # minimum average number of occurrences of each of these words
INFER_WORD_CHARS: Final = 40
INFER_SHAPE_CHARS: Final = 40  # longer texts have no pattern
# Generated values that are checked if a CHECK constraint limits the length of a text.
INFER_ROWS: Final = 2_000
TEMPLATES_OF_TABLES: Final = 2_000  # tables per request; each becomes a template, which is compiled and saved
# Processor time for creating the templates of tables; 500 tables with 20 related ones each take about 15 s.
TABLES_SECONDS: Final = 60.0
CHECK_CHARS: Final = 10_000  # length of a CHECK constraint that is parsed
CHECK_PLANS: Final = 5_000  # combinations of values that are tried to satisfy a CHECK constraint
IMPORT_TEXT_CHARS: Final = MAX_BODY_BYTES  # a text in a request body
IMPORT_ROWS: Final = 10_000  # rows of JSON or of a sheet that are analyzed; CSV files are read completely
IMPORT_TABLES: Final = TEMPLATES_OF_TABLES  # tables per import
IMPORT_COLUMNS: Final = 2_000  # columns of one table that are listed in the report
IMPORT_CHOICES: Final = 20  # distinct words of a column that become a custom list
# A formula has at most 200 literal elements, and each value takes two.
MOCKAROO_SEQUENTIAL_VALUES: Final = 90
IMPORT_NAME_BYTES: Final = 1_000  # name of a column before it is cut to MAX_NAME_CHARS
IMPORT_STATEMENTS: Final = 20_000  # statements of an SQL script that are parsed
IMPORT_STATEMENT_CHARS: Final = 1_000_000  # one statement; 5,000 columns take about 300,000
IMPORT_PROBLEMS: Final = 5_000
IMPORT_VISITS: Final = 1_000_000  # as DOCUMENT_VISITS, for the JSON Schemas of one import
IMPORT_SHEET_BYTES: Final = 128 * MB  # one unpacked sheet of a workbook
IMPORT_STRINGS_BYTES: Final = 64 * MB  # the unpacked shared strings of a workbook
IMPORT_SHEET_CELLS: Final = 250_000  # measured: openpyxl reads this many cells of a sheet in 4 s
IMPORT_CELL_CHARS: Final = 1_000  # characters of a cell that a sample keeps
UNDO_COUNT_SECONDS: Final = 3.0  # for counting rows of tables without a key before a push
IMPORT_IN_REQUEST_BYTES: Final = 64_000  # larger documents of the import page are read by a worker
# Of an import that a worker reads. Measured: 2,000 tables of SQL with 24 columns each take 50 s, an OpenAPI
# document with 1,100 operations 60 s.
IMPORT_CPU_SECONDS: Final = 300
IMPORT_SECONDS: Final = 900.0  # elapsed time
OPEN_IMPORTS: Final = 20  # imports of a workspace that are queued or running
IMPORT_HOURS: Final = 24  # how long the document and the result of such an import are kept
IMPORT_DAYS: Final = 7  # after which an import is deleted that no worker took
IMPORT_ECHO_CHARS: Final = 200_000  # pasted text that is shown again on a page
# --- Documents ---------------------------------------------------------------------------------------------
# Uploaded and fetched documents are parsed in a child process (webapp/document_process.py). Measured: 50 MB
# of JSON rows take 920 MB of address space, 50 MB of CSV up to 640 MB, other formats less.
DOCUMENT_MEMORY_BYTES: Final = 1_024 * MB
# Promise 26: a request runs for at most 10 s. Measured: 6 MB of YAML take 3 s, 11 MB of $metadata 3 s,
# other formats less.
DOCUMENT_CPU_SECONDS: Final = 10
METADATA_CPU_SECONDS: Final = 20  # OData and OpenAPI documents; 32 MB of $metadata take 9 s
DOCUMENT_SECONDS: Final = 45.0  # elapsed time; on a busy machine a process gets a quarter of a processor
DOCUMENT_LEVELS: Final = 100  # nesting of arrays and objects; real documents have about 30 levels
# Values of a YAML document with aliases expanded; 10 MB have about 700,000.
DOCUMENT_YAML_VALUES: Final = 2_000_000
# Measured: the result for 11 MB of $metadata with 80,000 properties has 23 MB.
DOCUMENT_RESULT_BYTES: Final = 40 * MB
DOCUMENTS_AT_ONCE: Final = 2  # documents that one process parses at the same time
DOCUMENT_TURN_SECONDS: Final = 10.0  # a request that waits longer is rejected with a Retry-After
DOCUMENT_RETRY_SECONDS: Final = 5  # that Retry-After
DOCUMENT_START_SECONDS: Final = 30.0  # the server that forks the child processes takes about 2 s for imports

# --- HTTP targets -----------------------------------------------------------------------------------------
HTTP_HEADERS: Final = 50  # headers, or query parameters, of one request template
HTTP_TEMPLATE_BYTES: Final = 100_000  # body of a request template
HTTP_CHUNK_ROWS: Final = 50  # promise 1: maximum number of rows in doubt after a crash
HTTP_BATCH_ROWS: Final = 100_000  # maximum number of rows per request in batch mode
# Rows written to the body of a batch in one step: more use memory, fewer take longer.
HTTP_BODY_ROWS: Final = 2_000
HTTP_PARALLEL: Final = 8  # default number of parallel requests of one push
HTTP_MAX_PARALLEL: Final = 64  # maximum number
HTTP_CAPTURES: Final = 20  # keys captured from one response
HTTP_RESPONSE_BYTES: Final = 1_000_000  # response to one row
VERIFY_RESPONSE_BYTES: Final = 64 * 1024  # response to a verification
JSON_PATH_CHARS: Final = 500
# Values that a JSONPath visits in one document; takes three to five seconds. A response of
# HTTP_RESPONSE_BYTES has at most 500,000 values, which `..` visits once each.
JSON_PATH_VISITS: Final = 2_000_000
VERIFY_STEP_SECONDS: Final = 10.0  # one request of a verification
DOCUMENT_BYTES: Final = 50 * MB  # as uploads; the OpenAPI document of GitHub has 13 MB
MAX_DOCUMENTS: Final = 100  # uploaded metadata documents of a workspace
# Schemas of a document that are visited while valid values are searched, references each time: about 5 s a million.
DOCUMENT_VISITS: Final = 2_500_000
# Those of one operation or table. Beyond them, only required properties are generated.
SCHEMA_VISITS: Final = 100_000
DOCUMENT_SERVERS: Final = 100  # servers listed in an OpenAPI document
DOCUMENT_DEPTH: Final = 12  # nesting of its schemas; more than templates allow
HTTP_HOPS: Final = 5  # redirects that one request follows
HTTP_URL_CHARS: Final = 8_000  # RFC 9110, 4.1: every server should support this length
HTTP_HEADER_CHARS: Final = 8_000  # one header, including a long token; servers accept 8 to 16 kB
HTTP_READ_BYTES: Final = 64 * 1024  # a response is read in chunks of this size
HTTP_IDLE_SECONDS: Final = 4.0  # Node.js servers close idle connections after 5 s
HTTP_POOL_HOSTS: Final = 4  # hosts of one session with open connections
HTTP_COOKIES: Final = 100  # the latest cookies of one session; browsers keep 50 or more per host
HTTP_POOL: Final = 8  # open connections per host
RETRY_TIMEOUT_SECONDS: Final = (0.1, 300.0)  # minimum and maximum timeout of one attempt
MAX_RETRIES: Final = 10  # attempts after the first
RETRY_WAIT_SECONDS: Final = 120.0  # the longest wait before an attempt, even if the target requests more
TOKEN_SECONDS: Final = 30.0  # specification: timeout of a request
TOKEN_BYTES: Final = 256 * 1024  # response of a token endpoint
TOKEN_CHARS: Final = 16_000  # a token; tokens that contain groups reach several thousand
TOKEN_EARLY_SECONDS: Final = 60.0  # section 8: a token is used until this long before it expires
TOKEN_DEFAULT_SECONDS: Final = 300.0  # lifetime of a token if the response does not contain one
TOKEN_MAX_SECONDS: Final = 86_400.0  # a token is not used longer, even if the response says so
# If a new token is rejected too, no other token is requested for this time.
TOKEN_REFUSED_SECONDS: Final = 5.0
TOKENS: Final = 1_000  # tokens cached in one process
# One process requests a token; other processes wait at most this long for it.
TOKEN_LOCK_SECONDS: Final = TOKEN_SECONDS + 10
# How long the reason for a failed token request is returned to waiting requests.
TOKEN_FAILURE_SECONDS: Final = 5.0
# --- AI ---------------------------------------------------------------------------------------------------
AI_TIMEOUT_SECONDS: Final = 60.0  # default for one request; models are slow
# Total wait for a model in one request; received responses are stored for the next attempt.
AI_SECONDS: Final = 120.0
AI_ROWS: Final = 20  # rows per request; small models lose count with more
AI_MAX_ROWS: Final = 200
AI_PARALLEL: Final = 4  # parallel requests; local servers handle few
AI_CALLS: Final = 200  # default number of requests per generation
AI_MAX_CALLS: Final = 100_000
AI_ATTEMPTS: Final = 3  # attempts for a row whose response is invalid
AI_MODEL_CHARS: Final = 200
AI_PROMPT_CHARS: Final = 20_000  # prompt of one row after substitution
AI_TEXT_CHARS: Final = 4_000  # default length of one value
AI_CHOICES: Final = 200  # values to choose from
AI_EXAMPLES: Final = 20
AI_RESPONSE_BYTES: Final = 4 * MB  # response to one request, including reasoning
AI_DIGITS: Final = 30  # digits of a number from a model; longer ones are invalid
AI_JSON_ATTEMPTS: Final = 50  # attempts to find valid JSON in a response
# Estimate for servers that do not report token counts (OpenAI help center, for English).
AI_TOKEN_CHARS: Final = 4
AI_LISTED_MODELS: Final = 20  # available models listed in the error message for an unknown one
AI_DESCRIPTION_CHARS: Final = 4_000  # description of a template to generate
AI_FIELDS: Final = 60  # fields of a generated template
AI_SAMPLES: Final = 20  # values sent for a type suggestion

# --- Scenarios, runs, workspace files ------------------------------------------------------------------------
# Contract: timeout_seconds of a scenario.
MIN_RUN_SECONDS: Final = 60
MAX_RUN_SECONDS: Final = 3_600
DEFAULT_RUN_SECONDS: Final = 900
WAIT_SECONDS: Final = 300  # section 8: waiting for a run to finish
MAX_CODE_BYTES: Final = MB  # the code of one scenario
MAX_FILE_NAME_CHARS: Final = 255  # name of a workspace file with its folders, as in most file systems
MAX_WORKSPACE_FILES_BYTES: Final = 1024 * MB  # quota for all files of a workspace that are not deleted
# Files of a workspace that are not deleted; the folder of each run links to all of them.
MAX_WORKSPACE_FILES: Final = 10_000
FILE_PART_BYTES: Final = 255  # ext4, XFS, APFS: a name between two slashes, in UTF-8
FILE_TYPE_CHARS: Final = 127  # RFC 6838, 4.2: each half of a media type
# Stored bytes without a database row are deleted after this time; no upload takes longer.
FILE_ORPHAN_SECONDS: Final = 10_800
FILE_CACHE_BYTES: Final = 2_048 * MB  # files that a worker caches for runs: enough for two full workspaces
FILE_CACHE_ATTEMPTS: Final = 5  # attempts to read a file that was replaced or evicted in the meantime
FILE_PREVIEW_BYTES: Final = 256 * 1024  # the beginning of a file that is read for its preview
FILE_PREVIEW_ROWS: Final = 20
FILE_PREVIEW_LINES: Final = 60  # lines of a text
FILE_PREVIEW_COLUMNS: Final = 40
FILE_PREVIEW_CHARS: Final = 200  # one cell or line
# Unpacked size of the sheet, the shared strings and each other part of a workbook. A workbook with larger
# parts has no preview.
FILE_PREVIEW_SHEET_BYTES: Final = 2 * MB
FILE_PREVIEW_STRINGS_BYTES: Final = 8 * MB
FILE_PREVIEW_PART_BYTES: Final = MB
MAX_OUTPUT_FILES: Final = 1_000  # files that are kept of one run
MAX_NAME_ATTEMPTS: Final = 100  # names that are tried for an uploaded file if its own name is taken
MAX_FILES_PER_FORM: Final = 50  # files in one form; each takes a file descriptor
UPLOAD_FORM_BYTES: Final = MB  # size of an upload form without the file
WEB_MAX_BODY_BYTES: Final = MAX_UPLOAD_BYTES + UPLOAD_FORM_BYTES  # no route accepts a larger body
MAX_VARIABLES: Final = 200  # variables of a scenario, or parameters of a run
MAX_VARIABLE_NAME_CHARS: Final = 100  # the same as for the name of a secret
MAX_VARIABLE_BYTES: Final = 32 * 1024  # Linux accepts 128 kB for one variable
MAX_VARIABLES_BYTES: Final = 256 * 1024  # all variables; Linux accepts 2 MB including the command line
MAX_REQUIREMENTS: Final = 50  # packages required by one scenario
MAX_REQUIREMENTS_BLOCK_CHARS: Final = 64 * 1024  # a PEP 723 block; 50 requirements with markers take 16 kB
# Parts of a dotted key in it; the memory of tomllib grows with their square.
MAX_REQUIREMENTS_KEY_PARTS: Final = 20
MAX_REQUIREMENT_CHARS: Final = 300  # one requirement with its versions and markers
RESOLVE_SECONDS: Final = 60.0  # saving a scenario waits this long for the resolution of its requirements
RESOLVE_AT_ONCE: Final = 2  # parallel resolutions in one web process; further ones wait
RESOLVE_TURN_SECONDS: Final = 10.0  # a request that waits longer gets a Retry-After
SYNTAX_SECONDS: Final = 5  # processor time; parsing a megabyte of code takes about one second
DIFF_LINES: Final = 4_000  # longer changed sections are shown as replaced: difflib takes quadratic time
# How often a run checks whether another run has created its environment.
ENVIRONMENT_POLL_SECONDS: Final = 0.1
ENVIRONMENT_SECONDS: Final = 300.0  # time limit for creating an environment
ENVIRONMENT_RETRY_SECONDS: Final = 60.0  # wait after a failed installation of the common libraries
# All environments; the common libraries take about 200 MB. A single one cannot take more either.
ENVIRONMENTS_BYTES: Final = 4 * 1024 * MB
# Memory of uv, which reads the metadata of packages. It usually takes 30 to 300 MB.
UV_MEMORY_BYTES: Final = 2 * 1024 * MB
# An environment that was used within this time is kept: the longest run, and the same again for preparation
# and completion.
ENVIRONMENT_KEEP_SECONDS: Final = 2 * MAX_RUN_SECONDS
LOG_TAIL_LINES: Final = 200  # log lines that the page of a run shows first
LOG_TAIL_CHARS: Final = 16_000  # and at most this many characters, which keeps the page small
LOG_PIECE_LINES: Final = 500  # log lines per fetch
LOG_PIECE_CHARS: Final = 256 * 1024  # and at most this many characters
LOG_LINE_CHARS: Final = 4_000  # characters of one line on a page; the download has the full line
LOG_HITS: Final = 100  # lines shown for a search in a log
LOG_HIT_CHARS: Final = 160  # characters of each of these lines
SPARK_RUNS: Final = 16  # latest runs of a scenario whose durations are shown in a list
SCHEDULE_BATCH: Final = 200  # due scenarios, and due schedules of exports and pushes, started in one sweep
MAX_SCHEDULES: Final = 200  # schedules of exports and pushes of a workspace
# Starting a push asks its target, which may take a minute to answer. Workspaces whose schedules start at the same time,
# each one after the other, and how long a workspace has its turn.
SCHEDULE_THREADS: Final = 8
SCHEDULE_TURN_SECONDS: Final = 60.0
MAX_CRON_CHARS: Final = 120  # of a cron expression
MAX_TIMEZONE_CHARS: Final = 64  # of the name of a time zone
SCHEDULE_YEARS: Final = 8  # the longest gap for 29 February, such as 2096 to 2104
# Running and queued runs of one workspace, by plan. Further runs are rejected.
RUNS_AT_ONCE: Final = MappingProxyType({"free": 1, "pro": 5, "enterprise": 20})
RUNS_QUEUED: Final = MappingProxyType({"free": 20, "pro": 100, "enterprise": 1_000})
MAX_RUN_DEPTH: Final = 5  # nesting of runs that start other runs; stops a scenario that starts itself
MAX_RUNS_OF_RUN: Final = 50  # queued or running runs that were started by one run
RUN_QUEUE_RETRY_SECONDS: Final = 30  # Retry-After if the queue of a workspace is full
RUN_POLL_SECONDS: Final = 0.05  # how often a runner checks its process
RUN_GRACE_SECONDS: Final = 5.0  # promise 8: between SIGTERM and SIGKILL
# How long a runner that is stopping lets its process continue; less than RELEASE_SECONDS.
RUN_DRAIN_SECONDS: Final = 10.0
# The API key of a run expires this long after its time limit, if it is not revoked earlier.
RUN_KEY_MARGIN_SECONDS: Final = 120
RUN_USAGE_SECONDS: Final = 1.0  # how often memory and processor time are measured
RUN_USAGE_SAVED_SECONDS: Final = 2.0  # how often they are saved
RUN_USAGE_POINTS: Final = 200  # points of the resource chart, thinned out if there are more
RUN_MEMORY_BYTES: Final = 1024 * MB  # all processes of a run together
RUN_PROCESSORS: Final = 2  # processor time of a run: its time limit times this number
RUN_PROCESSES: Final = 64  # processes and threads of a run
RUN_FILE_BYTES: Final = 512 * MB  # one file written by a run
RUN_TMP_BYTES: Final = 512 * MB  # temporary files and the home directory of a run
RUN_OUTPUTS_BYTES: Final = 512 * MB  # output files of a run
# The sandbox stops a process this long after its time limit, if the runner does not.
RUN_WALL_MARGIN_SECONDS: Final = 60
RUN_LINE_BYTES: Final = 16 * 1024  # longer lines are split
RUN_LOG_BYTES: Final = 64 * MB  # log of a run; a run that prints more is stopped
RUN_LOG_LINES: Final = 2_000_000  # the same for lines
# Logs of all runs of a workspace, by plan. The oldest logs are deleted to make space for a new one.
RUN_LOGS_BYTES: Final = MappingProxyType({"free": 512 * MB, "pro": 4_096 * MB, "enterprise": 16_384 * MB})
RUN_READ_BYTES: Final = 256 * 1024  # bytes read from the pipe of a process in one call
RUN_PIPE_BYTES: Final = MB  # maximum for an unprivileged process (pipe(7), pipe-max-size)
RUN_FLUSH_SECONDS: Final = 0.05  # lines are saved this long after they were printed
RUN_CHUNK_BYTES: Final = 128 * 1024  # or earlier, when this many bytes have been printed
RUN_LOG_RETRY_SECONDS: Final = 0.5  # wait after the database rejected log lines
RUN_DRAINED_SECONDS: Final = 5.0  # how long the remaining output of a finished process is awaited
RUN_TEXT_BYTES: Final = MB  # part of a log read per query for a follower or a download
RUN_MESSAGE_CHARS: Final = 500  # last output line in the error of a run
RUN_CLOSING_SECONDS: Final = 10.0  # a run without a final log line is reported as finished after this time
RUN_FALLBACK_POLL_SECONDS: Final = 1.0  # polling interval of followers if Redis sends no notification
FOLLOW_WAKE_SECONDS: Final = 0.05  # followers of one log are woken at most this often
FOLLOW_WINDOW_BYTES: Final = 4 * MB  # part of a followed log that a process caches for all its followers
# How often the server checks whether an idle follower is still connected.
FOLLOW_DISCONNECT_POLL_SECONDS: Final = 1.0
# The compatible API has no pagination: a list returns the newest objects only.
COMPAT_LIST_ROWS: Final = 5_000
COMPAT_TABLE_CONNECTIONS: Final = 20  # databases whose tables are read in one call
COMPAT_OBJECTS: Final = 5_000  # objects of one kind in a project; the same as the size of a list
# One object without the rows of a set, and all objects of one kind in a project. A list returns complete
# objects and takes about ten times their size in memory.
MAX_COMPAT_BYTES: Final = 1 * MB
MAX_COMPAT_LIST_BYTES: Final = 16 * MB
# JSON of all versions of templates, datasets and scenarios, and of the requests of exports and pushes, by
# plan.
STORED_JSON_BYTES: Final = MappingProxyType({"free": 512 * MB, "pro": 2_048 * MB, "enterprise": 8_192 * MB})
STORED_JSON_SECONDS: Final = 86_400  # how often this total is recalculated
STORED_JSON_FULL_SECONDS: Final = 60  # and how often for a workspace that has reached its limit
MAX_SET_ROWS: Final = 10_000  # limit of a saved set in the OpenAPI document of the hosted service
MAX_SET_BYTES: Final = 5 * MB  # limit of a saved set in the same document
MAX_SETS_BYTES: Final = 200 * MB  # all sets of a workspace; they are stored in the database
KEY_MAP_BATCH: Final = 5_000  # limit of the hosted service for one write or lookup
KEY_MAP_PAGE: Final = 500  # limit of the hosted service for a page of entries
# An index entry of PostgreSQL has at most 2,704 bytes, for two names and a key.
KEY_MAP_NAME_CHARS: Final = 100
KEY_MAP_KEY_CHARS: Final = 300  # for the same reason
MAX_KEY_MAP_ENTRIES: Final = 1_000_000  # per workspace
# An entry in the database and its indexes, in addition to its texts. All of it counts toward the quota for files.
KEY_MAP_ENTRY_BYTES: Final = 200
COMPAT_LINK_SECONDS: Final = 600  # lifetime of a signed download URL; clients use it immediately
# --- Mail and webhooks ------------------------------------------------------------------------------------
NOTIFIER_POLL_SECONDS: Final = 1.0  # how often the notifier checks for finished work and due deliveries
NOTIFIER_BATCH: Final = 200  # finished jobs handled per check
NOTIFIER_STOP_SECONDS: Final = 5.0  # time to finish deliveries before a stop; the others are sent later
MAIL_TIMEOUT_SECONDS: Final = 20.0  # each response of the mail server
# A sender that has not recorded the result within this time is considered lost.
MAIL_CLAIM_SECONDS: Final = 300.0
# Seconds before the next attempt to send an e-mail. RFC 5321, 4.5.4.1 recommends 30 minutes, for 4 to 5
# days. That is long for a notification: Rowsmith gives up after about two days.
MAIL_RETRY_SECONDS: Final = (60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400)
MAIL_REASON_CHARS: Final = 300  # message of a mail server
MAIL_SUBJECT_CHARS: Final = 150
MAIL_NAME_CHARS: Final = 80  # name chosen by a user that an e-mail contains
MAIL_TEXT_CHARS: Final = 8_000  # text of an e-mail
MAIL_LINE_CHARS: Final = 72  # RFC 5322, 2.1.1 recommends at most 78
MAIL_DAYS: Final = 30  # how long sent e-mails are listed, without their text
NOTICE_MINUTES: Final = 5  # default: no e-mail is sent about shorter jobs
NOTICE_MAX_MINUTES: Final = 1_440
NOTICE_MAILS_PER_HOUR: Final = 20  # e-mails about finished jobs to one user; the last one mentions the limit
NOTICE_BROWSER_SECONDS: Final = 15  # the browser shows a notification for a job that took at least this long
NOTICE_BROWSER_AGE_SECONDS: Final = 600  # and finished within this time
NOTICE_BROWSER_LAG_SECONDS: Final = 3  # longer than the transaction that records the end of a job
NOTICE_BROWSER_ITEMS: Final = 5  # notifications of each kind per response
WEBHOOKS: Final = 50  # webhooks of one workspace
WEBHOOK_SECRET_BYTES: Final = 32  # Standard Webhooks: 24 to 64
WEBHOOK_ROTATION_SECONDS: Final = 86_400  # how long the old secret also signs payloads after a rotation
WEBHOOK_TIMEOUT_SECONDS: Final = 15.0  # Standard Webhooks: 15 to 30
# A sender that has not recorded the result within this time is considered lost.
WEBHOOK_CLAIM_SECONDS: Final = 60.0
WEBHOOK_RESPONSE_BYTES: Final = 4_096  # part of a response that is read
WEBHOOK_STORED_CHARS: Final = 200  # part of a response that is stored
# Seconds before each further attempt; 18 hours in total.
WEBHOOK_RETRY_SECONDS: Final = (
    5,
    30,
    120,
    600,
    1_800,
    7_200,
    18_000,
    36_000,
)
WEBHOOK_RETRY_AFTER_SECONDS: Final = 3_600  # the longest wait that a receiver can request
WEBHOOK_PARALLEL: Final = 8  # parallel deliveries of one process
# Parallel deliveries of one webhook, so that a slow receiver does not block the others.
WEBHOOK_PARALLEL_EACH: Final = 2
WEBHOOK_FAILURES: Final = 20  # a webhook is disabled after this many consecutive failures
WEBHOOK_FAILING_SECONDS: Final = 86_400  # if no delivery has succeeded for this time
WEBHOOK_LISTED_ATTEMPTS: Final = 12  # attempts of a delivery that are listed
WEBHOOK_DELIVERY_DAYS: Final = 30  # how long deliveries are listed
