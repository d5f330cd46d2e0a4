"""Every number of the service, once, with its source.

"Section 8" is the interface specification's table of limits. Numbers marked "chosen" are ours; the comment
says what they protect. Sizes are bytes, times are seconds, unless the name says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PlanLimits:
    """What one plan allows a workspace."""

    requests_per_minute: int
    rows_per_hour: int
    rows_per_generation: int


# --- Plans (specification, section 8) ---------------------------------------------------------------------
MAX_ROWS_PER_GENERATION: Final = 100_000  # one generate, export, dataset table or push

PLANS: Final = MappingProxyType(
    {
        "free": PlanLimits(60, 10_000, MAX_ROWS_PER_GENERATION),
        "pro": PlanLimits(600, 1_000_000, MAX_ROWS_PER_GENERATION),
        # "Enterprise per contract": these hold until the workspace has numbers of its own.
        "enterprise": PlanLimits(6_000, 100_000_000, 10_000_000),
    }
)
DEMO_PLAN: Final = "enterprise"  # `./rowsmith up` without --plan
# Chosen: the most a workspace's own numbers may say; the request log of a minute lies in memory.
ENTERPRISE_MAX: Final = PlanLimits(60_000, 100_000_000_000, 1_000_000_000)


@dataclass(frozen=True, slots=True)
class Retention:
    """How many days a plan keeps what has ended."""

    log_days: int
    """Lines of runs and pushes."""
    file_days: int
    """Files that exports made."""
    work_days: int
    """Runs with their outputs, pushes with their ledgers, exports."""


# --- Retention ---------------------------------------------------------------------------------------------
# Chosen: logs fill a database first, files a disk; what ended is looked up for a quarter, by paying customers longer.
RETENTION: Final = MappingProxyType(
    {"free": Retention(14, 14, 90), "pro": Retention(90, 30, 365), "enterprise": Retention(90, 90, 730)}
)
DRAIN_ROWS: Final = 2_000  # measured: rows removed in one transaction, which takes some 10 ms
DRAIN_PAUSE_SECONDS: Final = 0.05  # chosen: SQLite's busy handler asks again after 1 to 100 ms
DRAIN_CHUNKS: Final = 50  # chosen: pieces of a run's log removed in one transaction; each has up to 128 kB
DRAIN_WORK: Final = 50  # chosen: runs, pushes or exports looked up at once
DRAIN_SECONDS: Final = 2.0  # chosen: a sweep removes for so long at most, then looks after lost work again

# --- Rates -------------------------------------------------------------------------------------------------
RATE_WINDOW_SECONDS: Final = 60  # section 8: requests per minute
# Chosen: a caller measures when answers reach it, the window when they were decided; this covers the difference.
RATE_MARGIN_SECONDS: Final = 0.1
ROWS_WINDOW_SECONDS: Final = 3_600  # section 8: rows per hour
# Chosen: requests a minute of one address without a credential (sign-in, health, documentation, wrong keys).
ADDRESS_REQUESTS_PER_MINUTE: Final = 600
# Chosen: attempts to create a workspace's epoch while others remove it.
EPOCH_TRIES: Final = 5
# Chosen: the oldest answer about a key that a process believes. The workspace's epoch ends it sooner; this
# bounds what a process that died between its commit and its notice could leave behind.
IDENTITY_MAX_AGE_SECONDS: Final = 60
IDENTITY_CACHE_ENTRIES: Final = 10_000
# Chosen: how long an announced change of rights keeps other processes from remembering what they read.
EPOCH_PENDING_SECONDS: Final = 30
EPOCH_SECONDS: Final = 7 * 86_400
KEY_LAST_USED_SECONDS: Final = 60  # chosen: a key's last use is written at most this often

# --- Bodies and queries ------------------------------------------------------------------------------------
MAX_REQUEST_LINE_BYTES: Final = 8_190  # the most gunicorn can be told to take; RFC 9112 asks for 8,000
MAX_BODY_BYTES: Final = 10 * MB
MAX_UPLOAD_BYTES: Final = 50 * MB  # workspace upload
SCANNER_CONNECT_SECONDS: Final = 5  # chosen
SCANNER_SECONDS: Final = 60  # chosen: clamd unpacks archives, for at most MaxScanTime of its own (120 s)
MAX_FORM_PARTS: Final = 20_000  # chosen: 500 fields with forty names each
MAX_FORM_NAME_CHARS: Final = 2_000  # chosen: of one name; a path of MAX_JSON_DEPTH steps takes some 600
MAX_JSON_DEPTH: Final = 64  # chosen: protects every walk over a body; orjson itself stops at 1,024
# Measured: an object of one member takes 230 bytes and may be written in 8, so 10 MB of them would take 290 MB.
MAX_JSON_CONTAINERS: Final = 400_000  # arrays and objects of one body
MAX_JSON_ELEMENTS: Final = 100_000  # chosen: of an array or object of a body, where its key says nothing else
LARGE_JSON_BYTES: Final = (
    256 * 1024
)  # chosen: the unknown keys of a longer body are counted before it is validated
MAX_FIELD_FAULTS: Final = 1_000  # chosen: of a template's fields; more are not looked for
MAX_COUNTED_FAULTS: Final = 2_000  # chosen: of a body with more faults they are counted, not listed
PAGE_LIMIT_DEFAULT: Final = 20
PAGE_LIMIT_MAX: Final = 100
# Chosen: JSON of the objects on one page of a list; a page with larger objects has fewer of them. As Python's objects
# and the response they take some eight times that.
PAGE_BYTES: Final = 16 * MB
MAX_QUERY_TEXT: Final = 200  # chosen: ?q=
MAX_NAME_CHARS: Final = 200  # chosen: names of templates, keys, projects, teams
MAX_DESCRIPTION_CHARS: Final = 10_000  # chosen
REQUEST_ID_CHARS: Final = 128  # chosen: a longer X-Request-Id is replaced by ours
MAX_FAULT_PATH_CHARS: Final = (
    1_000  # chosen: of the path of a fault, which holds keys that the caller made up
)
MAX_FAULTS: Final = 100  # chosen: most faults listed in one answer

# --- Templates and generation ------------------------------------------------------------------------------
MIN_ROWS: Final = 1
# Chosen: the time on which relative dates of a draft depend that is sent with a seed and neither `now` nor `anchor`. A
# constant, so that the same seed gives the same bytes on every day.
DRAFT_ANCHOR: Final = datetime(2026, 1, 1, tzinfo=UTC)
DEFAULT_QUANTITY: Final = 10
PREVIEW_ROWS: Final = 3  # section 8
MAX_FIELDS: Final = 500
# Chosen: JSON of all templates of a dataset, or of all that the relations of one template reach. Compiled they take
# some three times that.
RELATED_BYTES: Final = 32 * MB
MAX_DATASET_TABLES: Final = 2_000  # chosen: templates of one dataset
MAX_NESTING: Final = 8
MAX_SEED_CHARS: Final = 200
MAX_OFFSET: Final = 2**53  # chosen: row numbers stay exact in JSON readers that hold doubles
MAX_ARRAY_PRODUCT: Final = 10_000  # product of array maxima in one row
MAX_FLAT_COLUMNS: Final = 500  # `arrays: columns`
BLOCK_ROWS: Final = 8_192  # measured: larger blocks win nothing and cost memory
FIRST_BLOCK_ROWS: Final = 256  # measured: first byte in 5 ms
# Chosen: memory of the columns of one block, and the most that one row may take. Twenty ordinary fields take 3 MB in a
# full block; wider rows are made in smaller blocks. Writing a block takes some six times this at worst, which stays
# below the 256 MB that one request may take.
BLOCK_BYTES: Final = 16 * MB
BLOCK_STEP: Final = 4  # chosen: a block that exceeds its budget is made again with so many times fewer rows
BLOCK_GROWTH: Final = 32  # BLOCK_ROWS / FIRST_BLOCK_ROWS: the next block has at most so many times more rows,
# and twice as many once a block has exceeded its budget.
# Chosen: processor time of a request that generates up to MAX_ROWS_PER_GENERATION rows, more in proportion for more of
# them. Twenty ordinary fields take 0.4 s for so many rows. Setting: ROWSMITH_GENERATE_SECONDS.
GENERATE_SECONDS: Final = 30
GENERATE_LEAST_SHARE: Final = 1 / 3  # chosen: of it, for previews and few rows
SLOW_SAMPLE_ROWS: Final = 1_024  # chosen: so many rows, and a quarter of them, tell what a further row takes;
SLOW_SAMPLE_SECONDS: Final = 0.5  # or the quarter by itself, where it takes longer than this
PREVIEW_RECORDS: Final = 10_000  # chosen: objects in arrays of a preview; as many as one row may have
# Chosen: of them so many are free. Beyond that previews have an allowance of their own, as large as the rows per hour.
PREVIEW_FREE_RECORDS: Final = 100
PREVIEW_BYTES: Final = (
    8 * MB
)  # chosen: a preview; as Python's objects, for a page, it takes up to thirty times this
ESTIMATE_BYTES: Final = 32 * MB  # chosen: of an export, written to judge how large the whole will be
BAD_TEXT_CHARS: Final = 30_000  # XLSX_CELL_CHARS: no bad value is too long for a cell of a sheet
ANSWER_BLOCK_ROWS: Final = 65_536  # rows of one piece of an answer key: of them only the bad ones are made
DISTINCT_REPEATS: Final = 2  # measured: related rows are made distinct where each comes so often on average,
DRAWN_REPEATS: Final = 16  # or so often where they were drawn without order
BLOCK_LEAVES: Final = 65_536  # blocks of rows with arrays shrink so that no column in them is longer
MAX_FORMULA_CHARS: Final = 4_000  # chosen: a formula, or a text with {{fields}}
MAX_FORMULA_PARTS: Final = 1_000  # chosen: names, numbers, texts and signs of one formula
MAX_FORMULA_DEPTH: Final = 64  # chosen: keeps every walk over a formula far from Python's own limit
MAX_FORMULA_DIGITS: Final = 18  # digits of a number in a formula: so many always fit in 64 bits
MAX_FORMULA_LIST: Final = 200  # chosen: elements of a list that is written out
MAX_FORMULA_POWER: Final = 62  # of two, the largest that fits in 64 bits
MAX_FORMULA_TEXT: Final = 10_000  # chosen: characters a formula may make of shorter texts
MAX_PATTERN_SIZE: Final = 10_000  # chosen: states of a regular expression in a formula; some 10 ms to compile
MAX_CASES: Final = 100  # chosen: conditions of one field
MAX_AFFIX_CHARS: Final = 200  # chosen: prefix and suffix
MAX_INTEGER: Final = 2**53 - 1  # RFC 8259, section 6: integers that every JSON reader keeps exactly
MAX_PAD_DIGITS: Final = 40  # chosen: leading zeros
MAX_DECIMALS: Final = 12  # chosen: with 18 digits of int64 this leaves a million units
TOTAL_ROWS: Final = 10_000_000  # running totals end here: 33 ms to the last row from a cold start
TOTAL_STEP_ROWS: Final = 8_192  # chosen: a sum is kept at every so many rows, 10 kB a column at most
TOTALS_KEPT: Final = 64  # chosen: columns of which one process keeps the sums
TOTAL_ENDS: Final = 16  # chosen: streams over one column that carry on without counting again
MAX_LOOKBACKS: Final = 1_000  # chosen: columns that one block makes at rows before its own
MAX_COMBINATIONS: Final = 2**62  # of lists: a row number has 63 bits
MAX_LIST_VALUES: Final = 10_000  # chosen: values of a custom list
MAX_TEXT_CHARS: Final = 100_000  # chosen: one generated text
FAKER_POOL: Final = 10_000  # contract: values that one of Faker's methods draws
FAKER_POOL_CHARS: Final = 8_000_000  # chosen: of all values of one pool
FAKER_ARGUMENT_CHARS: Final = 10_000  # chosen: arguments of one method, as JSON
FAKER_LARGEST: Final = 10_000  # chosen: an argument that says how long or how many
FAKER_SECONDS: Final = 30.0  # chosen: processor time for drawing one pool
FAKER_WAIT_SECONDS: Final = 45.0  # below gunicorn's 60: for the process that draws it
FAKER_MEMORY_MB: Final = 768  # chosen: address space of the process that draws it; Faker's own words take 250
FAKER_PROCESSES: Final = 2  # chosen: pools that one process draws at a time
FAKER_POOLS: Final = 64  # chosen: pools, and refusals, that one process remembers
FAKER_CACHE_BYTES: Final = 64 * MB  # chosen: of all of them together
MAX_CODE_CHARS: Final = 128  # chosen: an account number, a password
MAX_CARD_YEARS: Final = 50  # chosen: a card runs out at most so many years after now
MAX_PIXELS: Final = 10_000  # chosen: a picture's width or height
MAX_AGE: Final = 120  # chosen: whole years a person may have
MAX_UNITS: Final = 10**18  # what a number with its decimals may reach, in units of the last one: below 2**63
MAX_LOG_SCALE: Final = 128  # chosen: doublings per standard deviation; far beyond what 64 bits can hold
MAX_POISSON_MEAN: Final = 1_000_000  # chosen: the table of weights then has 23,000 entries
MAX_TRIALS: Final = 10_000_000  # chosen: binomial; its table grows with the root, to 36,000 entries
MAX_RANKS: Final = 2**40  # zipf: a run of ranks then still fits 32 random bits
MAX_PATTERN_CHARS: Final = 1_000  # chosen: length of a regular expression or mask
MAX_PATTERN_PLACES: Final = 2_000  # chosen: longest text a regular expression may make
OPEN_REPEATS: Final = 10  # chosen: * and + and {n,} go so far beyond their least number
MAX_WORDS: Final = 200  # chosen: words, sentences or lines of one text
MAX_RELATED: Final = 100  # chosen: templates that the relations of one template reach, directly or not
MAX_NESTED_FIELDS: Final = (
    5_000  # chosen: fields of all templates that stand inside one another, each where it stands
)
MAX_CHAIN: Final = (
    40  # chosen: fields of which each reads the next; keeps every walk far from Python's own limit
)
MAX_CELL_COST: Final = 10_000  # chosen: cells that may be made for one
KEYS_KEPT: Final = 64  # keys a relation keeps its dealt children for
PARENT_BLOCK: Final = 1_000  # chosen: parents whose children are counted out together; at most 1,023
MAX_CARDINALITY: Final = 100_000  # chosen: children of one parent; a block of parents then has 10**8 at most
MAX_PARENTS: Final = MAX_OFFSET  # a parent's row is a row
CARDINALITY_CACHE_BYTES: Final = 32 * MB  # chosen: where children start, of 16 million parents
FOLD_ROWS: Final = 65_536  # chosen: children held at once while a parent's are summed up

# --- Formats -----------------------------------------------------------------------------------------------
# ECMA-376 leaves these open; they are Excel's ("Excel specifications and limits").
XLSX_SHEET_ROWS: Final = 1_048_576
XLSX_SHEET_COLUMNS: Final = 16_384
XLSX_CELL_CHARS: Final = 32_767  # UTF-16 units
XLSX_SHEET_NAME_CHARS: Final = 31
XLSX_EXACT_INTEGER: Final = 2**53  # a cell's number is an IEEE 754 double
SQL_ROWS_PER_STATEMENT: Final = 100  # chosen: statements of some 20 kB, which every server takes
SQL_MAX_ROWS_PER_STATEMENT: Final = 10_000  # chosen: keeps a statement under MySQL's 16 MB packet
MSSQL_ROWS_PER_STATEMENT: Final = 1_000  # SQL Server, "Table Value Constructor"
ORACLE_LITERAL_BYTES: Final = 4_000  # Oracle Database SQL Language Reference, "Text Literals"
DB2_LITERAL_BYTES: Final = 32_672  # Db2, "SQL and XML limits": character constant
PARQUET_GROUP_ROWS: Final = 65_536  # chosen: a row group is held until it is whole
# Measured: with 16 MB a stream of a million rows of twenty fields makes a process larger by up to 79 MB.
PARQUET_GROUP_BYTES: Final = 8 * MB  # a wide table's row group ends sooner
FORMAT_POOL_BYTES: Final = 32 * MB  # chosen: escaped pools kept in one process
FORMAT_PART_BYTES: Final = 16 * MB  # chosen: a block whose texts are longer is written in halves
FORMAT_PART_PIECES: Final = 512 * 1024  # chosen: likewise; a piece takes 24 bytes while a row is put together

# --- Idempotency-Key ---------------------------------------------------------------------------------------
IDEMPOTENCY_HOURS: Final = 24
IDEMPOTENCY_KEY_CHARS: Final = 255  # chosen, as other payment and cloud APIs
IDEMPOTENCY_WAIT_SECONDS: Final = 5.0  # chosen: a second caller waits so long for the first one's answer
IDEMPOTENCY_POLL_SECONDS: Final = 0.02
# Chosen: past the longest request (a run with wait "true" blocks 5 minutes) an unfinished first call is dead.
IDEMPOTENCY_LOST_SECONDS: Final = 600

# --- Sign-in -----------------------------------------------------------------------------------------------
LOGIN_FAILURES: Final = 10
LOGIN_WINDOW_SECONDS: Final = 300
# Chosen: a refused password is answered this long after it came, several times what it costs to compute, so that what
# is done for known accounts alone (a line in the trail) does not show.
LOGIN_REFUSAL_SECONDS: Final = 0.3
PASSWORD_MIN_CHARS: Final = 10  # chosen; NIST SP 800-63B asks for at least 8
PASSWORD_MAX_CHARS: Final = 256  # NIST SP 800-63B: at least 64 must be possible
PASSWORD_WORD_CHARS: Final = 4  # chosen: shorter words of a name or an address are looked for in no password
PASSWORD_OWN_CHARS: Final = 6  # chosen: so much has to be left of a password without those words
# OWASP Password Storage Cheat Sheet: argon2id with 19 MiB, 2 passes, 1 lane.
ARGON2_MEMORY_KIB: Final = 19_456
ARGON2_PASSES: Final = 2
ARGON2_LANES: Final = 1
ARGON2_AT_ONCE: Final = 4  # chosen: bounds the memory of a burst of sign-ins in one process
SESSION_DAYS: Final = 14  # chosen
SESSION_IDLE_HOURS: Final = 72  # chosen
SESSION_SEEN_SECONDS: Final = 60  # chosen: last_seen_at is written at most this often
# What matters wants a sign-in of the last minutes, or the password once more. Chosen.
FRESH_SIGN_IN_MINUTES: Final = 15
SIGN_IN_LINK_HOURS: Final = 24  # chosen: one-time sign-in link
INVITATION_DAYS: Final = 7  # chosen
INVITATION_MAILS_PER_HOUR: Final = 5  # chosen: of one workspace to one mailbox
INVITATION_MAILS_SECONDS: Final = 3_600
KEY_UNUSED_DAYS: Final = 90  # chosen: a key that nobody used for so long is marked
SIGN_IN_WAIT_SECONDS: Final = (
    600  # chosen: between the two steps of a sign-in, and away at a provider of sign-ins
)
TOTP_STEP_SECONDS: Final = 30  # RFC 6238, 5.2: the recommended time step
TOTP_DRIFT_STEPS: Final = 1  # RFC 6238, 5.2: at most one step for the delay, either way
TOTP_DIGITS: Final = 6  # RFC 4226, 5.3: at least six; what every authenticator shows
TOTP_SECRET_CHARS: Final = 32  # 160 bits in base 32; RFC 4226, 4: recommended
# NIST SP 800-63B, 5.2.2: no more than 100 consecutive failures. Of codes, which only who knows the password may try.
CODE_FAILURES_PER_DAY: Final = 100
CODE_DAY_SECONDS: Final = 86_400
RECOVERY_CODES: Final = 10  # chosen
RECOVERY_CODE_BYTES: Final = 15  # 120 bits; OWASP ASVS 5.0, 6.5.2: from 112 on one round of a hash is enough
OIDC_ANSWER_BYTES: Final = 512 * 1024  # chosen: of a provider of sign-ins; its keys are the longest
OIDC_TIMEOUT_SECONDS: Final = 10  # chosen: a person waits
OIDC_KEPT_SECONDS: Final = 3_600  # chosen: its metadata and keys are believed so long
OIDC_KEYS_AGAIN_SECONDS: Final = (
    30  # chosen: and asked for sooner, at most this often, for a key that is not known
)
OIDC_LEEWAY_SECONDS: Final = 60  # chosen: how far its clock may be from ours
OIDC_ISSUER_CHARS: Final = 500  # chosen: an address
OIDC_TEXT_CHARS: Final = 255  # OpenID Connect Core 1.0, 2: a subject has at most 255 characters
HSTS_SECONDS: Final = 31_536_000  # RFC 6797; a year, as browsers' preload lists ask

# --- Keys --------------------------------------------------------------------------------------------------
KEY_HANDLE_CHARS: Final = 12
KEY_SECRET_BYTES: Final = 32  # 256 bits: a plain hash is enough, no dictionary can reach it
SECRET_KEY_MIN_CHARS: Final = 32

# --- Soft delete, work, leases ------------------------------------------------------------------------------
RESTORE_DAYS: Final = 30
MAX_MOVED: Final = 1_000  # chosen: objects that go from one project to another at once
SHOWN_USES: Final = 100  # chosen: objects of one kind that are named among what uses something
LEASE_SECONDS: Final = 30  # a worker that misses this is taken for dead
BEAT_SECONDS: Final = 5
MAX_ATTEMPTS: Final = 3  # a lost export or push is taken up again at most so often
WORKER_SEEN_SECONDS: Final = 60  # chosen: /health/ready wants a worker's beat as young as this

# --- Logs ---------------------------------------------------------------------------------------------------
HUSHED_KNOWN: Final = (
    500  # chosen: secrets that a process remembers, so that its log holds none; some ms a line
)
HUSHED_COOKIE_CHARS: Final = 12  # chosen: shorter cookies are choices such as a theme
LOG_MESSAGE_CHARS: Final = 8_000  # chosen: of one line of our own log
LOG_TRACE_CHARS: Final = 16_000  # chosen: of a traceback, its end

# --- Operation ----------------------------------------------------------------------------------------------
READY_SECONDS: Final = 1.5  # chosen: a part that does not answer /health/ready by then is said to be slow
METRICS_FLUSH_SECONDS: Final = (
    2.0  # chosen: what a process counts reaches Redis so often; scrapes come every 15 s
)
METRICS_SEEN_SECONDS: Final = 15.0  # chosen: a web process that is silent for so long does not count any more
# Chosen: upper ends of the buckets, in seconds; Prometheus' own, with what a run or a large push needs.
METRICS_REQUEST_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
METRICS_WORK_BUCKETS: Final = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0)
STATUS_WORK: Final = 30  # chosen: pieces of work that are going on, on the status page
STATUS_FAILED: Final = 20  # chosen: failed ones
STATUS_FAILED_DAYS: Final = 7  # chosen: that ended in the last days

# --- Upkeep: backup, restore, doctor, upgrade ----------------------------------------------------------------
UPKEEP_ROWS: Final = 1_000  # chosen: rows of a table that a backup has in memory
UPKEEP_PACKING: Final = (
    1  # zlib's quickest level: most files are packed already, and JSON shrinks to a fifth by it
)
UPKEEP_SNAPSHOTS: Final = 3  # chosen: how often a backup takes another snapshot because files went meanwhile
HOLD_SECONDS: Final = (
    900  # chosen: what a backup that was killed keeps from being removed stays no longer by it
)
UPKEEP_CONNECT_SECONDS: Final = (
    10.0  # chosen: a database that does not answer, or a lock that is not given, by then
)
UPKEEP_PASSPHRASE_CHARS: Final = 12  # chosen: of a passphrase that seals the keys, at least
UPKEEP_SALT_BYTES: Final = 16  # RFC 7914, 12: the length of its own examples and more
UPKEEP_SCRYPT_COST: Final = 2**17  # OWASP Password Storage Cheat Sheet: scrypt with N=2^17, r=8, p=1; 128 MB
UPKEEP_SCRYPT_COST_MAX: Final = 2**20  # chosen: what a backup's file may ask for: 1 GB
# Chosen: differences of two clocks. Leases last 30 s, and workers compare them by their own clocks.
SKEW_WARN_SECONDS: Final = 2.0
SKEW_FAIL_SECONDS: Final = 10.0
REDIS_FULL_SHARE: Final = 0.9  # chosen: of the memory that Redis may use
DISK_FULL_BYTES: Final = 200 * MB  # chosen: with less an export of some size ends in the middle
DISK_SCARCE_BYTES: Final = (
    2_048 * MB
)  # chosen: environments of scenarios and copies of files take some gigabytes
UPKEEP_TOLD: Final = 5  # chosen: things of one kind that are named; the rest is counted

# --- Audit -------------------------------------------------------------------------------------------------
AUDIT_BATCH: Final = 500  # chosen: most entries one transaction takes
AUDIT_WAIT_SECONDS: Final = 30.0  # chosen: a request whose entry is not written by then fails
AUDIT_SEAL_SECONDS: Final = 30.0  # chosen: how often entries are sealed; what is younger may have no seal yet
AUDIT_SEAL_ENTRIES: Final = 1_000  # chosen: entries of one seal, 48 kB of hashes
AUDIT_SEALS_PER_TURN: Final = 20  # chosen: seals of one turn of the sweeper, about a second of work
AUDIT_REMOVED_PER_TURN: Final = (
    10  # chosen: seals whose entries retention removes in one turn: 2,000 entries a second
)
# Chosen: an entry that is older by this than what was sealed before it was put there later. No transaction lasts so
# long, and no clock of ours differs so much.
AUDIT_LATE_SECONDS: Final = 600.0
AUDIT_FAULTS: Final = 20  # chosen: faults of one workspace's chain that are told
AUDIT_WINDOW: Final = 20_000  # chosen: entries that are looked through for what no index finds; some 40 ms
AUDIT_COUNTED: Final = 20_000  # chosen: a search counts no further
AUDIT_TEXT_CHARS: Final = 200  # chosen: a text that is looked for in details
AUDIT_VALUE_CHARS: Final = 200  # chosen: of an old or new value that an entry tells
AUDIT_CHANGES: Final = 50  # chosen: changed keys that an entry tells
# Chosen: days that entries are kept, by plan: least, and most, which holds where a workspace has not said.
AUDIT_DAYS: Final = MappingProxyType({"free": (30, 90), "pro": (30, 365), "enterprise": (30, 3_650)})

# --- Database and Redis ------------------------------------------------------------------------------------
SQLITE_BUSY_MS: Final = 15_000
DB_POOL: Final = 10
DB_POOL_OVERFLOW: Final = 70  # with DB_POOL more than the threads of a web process that do not follow
DB_POOL_WAIT_SECONDS: Final = 15
REDIS_TIMEOUT_SECONDS: Final = 3.0
REDIS_CONNECTIONS: Final = 200

# --- Storage -----------------------------------------------------------------------------------------------
STORAGE_CHUNK_BYTES: Final = 1 * MB  # chosen: the piece a download is read in
STORAGE_PART_BYTES: Final = 8 * MB  # chosen: S3 takes parts of at least 5 MiB and at most 10,000 of them
STORAGE_PARTS_AT_ONCE: Final = (
    2  # chosen: parts of one file on their way; each is in memory until it is stored
)
STORAGE_TIMEOUT_SECONDS: Final = 60

# --- Pages -------------------------------------------------------------------------------------------------
ESTIMATE_ROWS: Final = 8_192  # chosen: an export's size and time are judged by so many rows: some 50 ms
EXPLAIN_ROWS: Final = 1_000  # chosen: how a field's values spread is told from so many rows
COST_TRIES: Final = 4  # chosen: the quickest of so many blocks says what a value costs
EXPLAIN_COST_ROWS: Final = 1_000_000  # chosen: for so many rows the builder says how long a field takes
# Chosen: the export files of a workspace, by its plan. Where a new one needs space, the oldest are removed.
EXPORT_FILES_BYTES: Final = MappingProxyType(
    {"free": 2_048 * MB, "pro": 51_200 * MB, "enterprise": 512_000 * MB}
)
EXPORT_HOLD_BYTES: Final = 16 * MB  # chosen: so much is reserved ahead of what an export has written
EXPORT_ROWS: Final = 200_000  # chosen: from so many rows on the page advises a file made by a worker
USAGE_FOLD_SECONDS: Final = 60.0  # chosen: how often requests are taken over from Redis
USAGE_KEPT_DAYS: Final = (
    400  # chosen: usage by the hour is kept so long: a year and the month to compare it with
)
USAGE_MAX_HOURS: Final = 24 * 31  # chosen: points of a chart by the hour,
USAGE_MAX_DAYS: Final = 366  # and by the day
USAGE_PARTS: Final = (
    50  # chosen: templates, keys, persons, projects that are told one by one; the rest is summed up
)
USAGE_WARN_SHARE: Final = 0.8  # chosen: of a limit, from which on people are warned
LIMIT_WARNING_SECONDS: Final = 3_600  # chosen: between two warnings of one limit of a workspace,
LIMIT_MAIL_SECONDS: Final = 86_400  # and between two of them by mail
BUILDER_ROWS: Final = (
    5  # chosen: rows that the builder's page has in full; the browser asks for the others at once
)
PICKED_TABLES: Final = 300  # chosen: tables that a select of the builder offers; of more, a box searches
DATASET_CHOICES: Final = 100  # chosen: templates that a dataset's page offers; of more, a box searches
PICKED_TEMPLATES: Final = 300  # chosen: templates that the builder offers to pick from, in the order of names
GRID_PAGE_ROWS: Final = 25  # chosen: rows of one page of the builder's grid
ASSET_SECONDS: Final = (
    31_536_000  # chosen: addresses of assets carry a hash, so browsers may keep them for a year
)

# --- Web server --------------------------------------------------------------------------------------------
WEB_WORKERS: Final = 2
# Measured: with 16 and forty log followers a ping waits 1.4 s; an idle thread costs some 60 kB.
WEB_THREADS: Final = 192
WEB_FREE_THREADS: Final = (
    32  # chosen: threads of a web process that no follower and no waiting caller may take
)
# Chosen: a larger array is returned to the system when it is freed. Those of ordinary blocks are smaller: memory that
# is returned has to be asked for again, page by page.
MALLOC_MMAP_BYTES: Final = 4 * MB
MALLOC_TRIM_BYTES: Final = 4 * MB  # chosen: free memory at the end of an arena that is kept
TRIM_BYTES: Final = 8 * MB  # chosen: after an output of so many bytes all that is free is returned: some 5 ms
TRIM_GROWN_BYTES: Final = 32 * MB  # chosen: likewise after a request, where the process has grown by so much
MALLOC_ARENAS: Final = 2  # measured: as fast as glibc's own eight for each processor, and half of the memory
# Chosen: connections of one web process, fewer where the operating system allows fewer open files. Idle ones and
# those with an unfinished request take no thread; at the limit some of them are closed for new ones.
WEB_CONNECTIONS: Final = 2_000
WEB_ROOM_CONNECTIONS: Final = 32  # chosen: closed at a time
WEB_ACCEPT_PAUSE_SECONDS: Final = 0.02  # chosen: after the operating system refused a connection
WEB_HEAD_SECONDS: Final = (
    15.0  # chosen: from the first byte to the end of the headers, TLS handshake included
)
# Chosen: the least speed of a body, 500 bytes a second, and of an answer. Whoever is slower loses the connection.
WEB_BODY_WINDOW_SECONDS: Final = 30.0
WEB_BODY_WINDOW_BYTES: Final = 15_000
WEB_SEND_WINDOW_SECONDS: Final = 60.0
WEB_SEND_WINDOW_BYTES: Final = 30_000
WEB_UNFINISHED_PER_ADDRESS: Final = 64  # chosen: unfinished requests of one address in one web process,
WEB_UNFINISHED_GRACE_SECONDS: Final = 2.0  # chosen: and for so long any number of new ones
MAX_HEADERS_BYTES: Final = 65_536  # chosen: request line and headers together
WEB_BODY_AHEAD_BYTES: Final = 256 * 1024  # chosen: a body up to this arrives before a thread is bound to it
# Chosen: threads of a web process that may wait for the rest of a larger body, in total and of one address.
WEB_BODY_SLOTS: Final = 24
WEB_BODY_SLOTS_PER_ADDRESS: Final = 8
WEB_SLOT_SECONDS: Final = 30.0  # chosen: a request waits so long for such a thread
WEB_SLOT_RETRY_SECONDS: Final = 5  # chosen: Retry-After of a request that is closed for others
# Chosen: a whole answer up to this is sent without a thread if its client reads slowly; /openapi.json has 1.3 MB.
WEB_ANSWER_BYTES: Final = 4 * MB
WEB_HELD_BYTES: Final = 64 * MB  # chosen: unfinished requests and answers in the memory of one web process
WEB_LINGER_SECONDS: Final = (
    2.0  # chosen: a closed connection waits so long for its client to have read the answer
)
WEB_SWEEP_SECONDS: Final = 0.5  # chosen: how often deadlines and limits of connections are checked
FOLLOW_RETRY_SECONDS: Final = 2  # chosen: who finds no place to follow is asked to come again after this

# --- Launcher ----------------------------------------------------------------------------------------------
UP_WORKERS: Final = 2  # chosen: a long push leaves a worker for a short export
UP_RUNNERS: Final = 2  # chosen: runs of scenarios that go on at once on this machine
PART_READY_SECONDS: Final = 120.0  # chosen: a part that is not ready by then is said to hang
PROBE_SECONDS: Final = 2.0  # chosen: one question to a part waits so long
PROBE_PAUSE_SECONDS: Final = 0.05
STOP_SECONDS: Final = 30.0  # streams finish and workers hand back their lease within this
KEEPALIVE_STAY_SECONDS: Final = (
    0.05  # chosen: so long the thread that answered waits for the next request itself
)
HEAD_JOINS_BYTES: Final = 65_536  # chosen: a body's first part up to this goes out in one piece with the head
RESTART_PAUSES: Final = (0.2, 1.0, 2.0, 4.0, 8.0)  # chosen: waits before a part is started again
QUICK_DEATH_SECONDS: Final = 15.0  # chosen: a part that lived shorter than this died at once
LOG_FILE_BYTES: Final = 5 * MB  # chosen: each part's log is turned over at this size, one old one is kept
LOG_CHECK_SECONDS: Final = 5.0
PART_LOG_LINES: Final = 12  # chosen: lines of its log that are shown when a part dies
SOCKET_PATH_BYTES: Final = 100  # sockaddr_un holds 108 bytes on Linux, 104 on macOS

# --- Worker and sweeper ------------------------------------------------------------------------------------
WORKER_BEAT_SECONDS: Final = 5  # chosen: a worker says so often that it is there
# RQ wakes up worker_ttl - 15 seconds after it went to sleep on the queue; that is when it beats.
WORKER_TTL_SECONDS: Final = WORKER_BEAT_SECONDS + 15
CANCEL_POLL_SECONDS: Final = 0.5  # a cancel holds within 6 s: it is looked for twice a second
HAND_BACK_SECONDS: Final = 20  # chosen: a job that has not handed back its lease by then is killed
DOORBELL_SECONDS: Final = 3_600  # chosen: what Redis keeps of a failed ring, for a person who looks
SWEEP_SECONDS: Final = 5.0  # with the lease: a lost piece of work is noticed within 35 s
SWEEPER_LEASE_SECONDS: Final = 15.0
SWEEP_BATCH: Final = 1_000  # chosen: rows looked at in one sweep
RING_AGE_SECONDS: Final = 5  # chosen: younger queued work is left to its own doorbell
PURGE_SECONDS: Final = 3_600.0  # chosen: how often what has run out is removed

# --- Templates and rows over REST -----------------------------------------------------------------------------
# Chosen: every date within a thousand years of now still has a four-digit year.
NOW_YEARS: Final = (1000, 9000)
MAX_LOCALE_CHARS: Final = 20
PLAN_CACHE_ENTRIES: Final = 512  # chosen: compiled templates kept in one process
PLAN_CACHE_BYTES: Final = 16 * MB  # chosen: of the JSON they came from, some five times that in memory
SEED_BYTES: Final = 8  # chosen: a seed we make has so many random bytes
SSE_COMMENT_SECONDS: Final = 15.0  # a comment keeps proxies from closing a silent stream
SSE_POLL_SECONDS: Final = 0.5  # chosen: how often progress is looked up
SSE_MAX_SECONDS: Final = 3_600.0  # chosen: a follower is then asked to come again (Last-Event-ID)
EXPORT_PROGRESS_SECONDS: Final = 1.0  # chosen: rows done are written at most this often
PARTS_FROM_ROWS: Final = 100_000  # an export of more rows than this is made in parts, where that is asked for
PART_MIN_ROWS: Final = 10_000  # chosen: a smaller part costs more to take up than to make
MAX_PARTS: Final = 1_000  # chosen: parts of one export; a manifest of so many has some 300 kB
PARTS_SHOWN: Final = 50  # chosen: parts on one page of an export

# --- Connections and pushes ------------------------------------------------------------------------------
PUSH_CHUNK_ROWS: Final = (
    10_000  # chosen: rows of one transaction at the target; a crash leaves at most one in doubt
)
# Chosen: rows of one transaction, or of one batch over HTTP, in memory; wider rows are sent in smaller chunks.
PUSH_CHUNK_BYTES: Final = 64 * MB
PUSH_FIRST_ROWS: Final = (
    1_000  # chosen: a table's first chunk is small, so that the page shows something at once
)
PUSH_SAME_FAILURES: Final = (
    1_000  # chosen: when so many first rows of a table all fail alike, the table is at fault
)
PUSH_CANARY_ROWS: Final = 10  # chosen: rows of a canary whose number was not said
PUSH_WAITS: Final = (1.0, 2.0, 4.0)  # promise 7: seconds before a lost connection is opened again
PUSH_TARGET_WAITS: Final = (
    1.0,
    2.0,
    4.0,
    8.0,
    15.0,
    30.0,
)  # chosen: seconds between tries of a target that is away
PUSH_HELD_SECONDS: Final = 4.0  # chosen: for a longer wait the worker is released
PUSH_TARGET_WAIT_SECONDS: Final = (
    300  # chosen: a restart takes 5 to 30 s, a failover or an upgrade some minutes
)
PUSH_MOST_TARGET_WAIT_SECONDS: Final = 86_400  # chosen
PUSH_CANCEL_SECONDS: Final = (
    1.0  # chosen: the chunk in hand may end within this before its statement is stopped
)
PUSH_DRAIN_SECONDS: Final = (
    10.0  # chosen: likewise for a worker that was asked to stop; below HAND_BACK_SECONDS
)
PUSH_STUCK_SECONDS: Final = (
    3.0  # chosen: a target that does not even take the cancel is left alone after this
)
PUSH_LINE_SECONDS: Final = 5.0  # chosen: the log tells of progress at most this often
PUSH_LINES: Final = 10_000  # chosen: lines of one push's log; beyond them only how it ends
PUSH_LINE_CHARS: Final = 2_000  # chosen
PUSH_PROGRESS_POINTS: Final = 200  # chosen: points of the rate chart, thinned out when they become more
HTTP_MADE_ROWS: Final = 1_000  # chosen: rows made at once for a push over HTTP
HTTP_SAME_FAILURES: Final = 100  # chosen: PUSH_SAME_FAILURES of a push over HTTP, where each takes a request
HTTP_HEADER_ROWS: Final = (
    1_000_000  # chosen: rows whose values in headers are checked before a push is accepted
)
HTTP_BODY_CHARS: Final = 2_048  # chosen: of what a target answered to one row
PUSH_MESSAGE_CHARS: Final = 1_000  # chosen: of what the target said of one row
PUSH_KEY_CHARS: Final = 200  # chosen: of one key value of one row
PUSH_WINDOW_ROWS: Final = 65_536  # chosen: row numbers looked through at once
METADATA_KEPT_TABLES: Final = 5_000  # chosen: some 50 MB of one process; a table of 20 columns takes 10 kB
PUSH_LOOK_SECONDS: Final = 30.0  # chosen: a dry run may look at its target for so long, all tables together
PUSH_SPOOL_BYTES: Final = 32 * MB  # chosen: captured keys held in memory; the others lie in the storage
HUSHED_CHARS: Final = 4  # chosen: shorter secrets are in any text; they are not taken out of messages
MAX_SECRET_CHARS: Final = 10_000  # chosen: a certificate's key fits
MAX_MASKING_KEYS: Final = 1_000  # chosen: versions of a workspace's masking key, all of which are kept
VAULT_BATCH: Final = 200  # chosen: secrets sealed anew in one transaction
APART_AT_ONCE: Final = 8  # chosen: child processes that ask targets for one web process
APART_ANSWER_BYTES: Final = 64 * MB  # chosen: what such a process answers in all
APART_TURN_SECONDS: Final = 10.0  # chosen: who waits longer for a child's turn is asked to try again
APART_GRACE_SECONDS: Final = (
    2.0  # chosen: the kernel ends a child so long after its time, should its parent not
)
VERIFY_SECONDS: Final = 40.0  # chosen: all stages of a verification; each has a shorter limit of its own
METADATA_SECONDS: Final = 60.0  # chosen: 2,000 tables are read in about one
ODATA_DOCUMENT_BYTES: Final = 32 * MB  # chosen: the largest $metadata of an S/4HANA service has some 10 MB
ODATA_DOCUMENT_ELEMENTS: Final = 600_000  # chosen: 32 MB have some 400,000; keeps their memory below 500 MB
ODATA_BATCH_BYTES: Final = 32 * MB  # chosen: of an answer to a batch of 50 rows
METADATA_PAGE: Final = 200  # chosen: tables told at once where no names are asked for
TARGET_ADDRESSES: Final = 8  # chosen: addresses of one host name that are tried
TARGET_CONNECT_SECONDS: Final = 10.0  # chosen: a database that does not answer by then is said to be away
TARGET_QUERY_SECONDS: Final = 30.0  # chosen: a query for a field, a sample, a look at the catalog
TARGET_SETTLE_SECONDS: Final = (
    20.0  # chosen: how long an old transaction may take to end before it is in doubt
)
TARGET_SILENT_SECONDS: Final = 30.0  # chosen: a server that acknowledges nothing for so long is lost
TARGET_SAVEPOINT_ROWS: Final = 1_000  # chosen: rows that SQLite takes one by one where one of them is refused
# Measured: rows of the shortest and the longest COPY that pays; a COPY costs, beside its rows, as much as so many.
TARGET_PIECE_ROWS: Final = (64, 10_000)
TARGET_PIECE_COST_ROWS: Final = 120
TARGET_READ_ROWS: Final = 10_000  # chosen: rows read at once when keys are listed
SQLITE_FILE_BYTES: Final = 2_048 * MB  # chosen: a workspace's database file grows no further
QUERY_VALUE_BYTES: Final = 16 * MB  # chosen: one text or blob that a user's query computes or returns
QUERY_ROW_BYTES: Final = 32 * MB  # chosen: one row that a query returns
QUERY_ANSWER_BYTES: Final = 64 * MB  # chosen: all rows of a query for a field
QUERY_MEMORY_BYTES: Final = 512 * MB  # chosen: memory of the process that carries out users' queries
QUERY_PROCESSES: Final = 16  # chosen: such processes for one process of ours
QUERY_BATCH_BYTES: Final = (
    4 * MB
)  # chosen: rows that such a process reads at once; fewer rows where they are wide
QUERY_CHUNK_ROWS: Final = 16  # chosen: rows that the driver of PostgreSQL holds at once
QUERY_BATCH_ROWS: Final = (
    2_500  # chosen: of short rows where a driver holds them all, in case wide ones follow
)
QUERY_FIRST_ROWS: Final = 16  # chosen: rows of a query for a field that are read before their width is known
QUERY_STOP_SECONDS: Final = 3.0  # chosen: such a process that has not ended by then is killed
SAMPLE_BYTES: Final = 16 * MB  # chosen: of the first rows of a table; of wide rows there are fewer
HOST_CHARS: Final = 253  # RFC 1035, 2.3.4: of a host name, without the dot that may end it
MAX_ALLOWED_HOSTS: Final = 50  # chosen: hosts that a secret may be sent to
MAX_SQLITE_FILES: Final = 10  # chosen: files of a workspace's SQLite connections
SQLITE_WORKSPACE_BYTES: Final = 8_192 * MB  # chosen: all SQLite files of a workspace together
# Chosen: what one transaction may add to a file. MAX_SQLITE_FILES transactions may be in progress at the same time, so
# none begins unless as many times this is left of SQLITE_WORKSPACE_BYTES.
SQLITE_GROWTH_BYTES: Final = 256 * MB
SQLITE_NAME_CHARS: Final = 100  # chosen; with what SQLite adds it stays below the 255 bytes of file systems
SQLITE_STEPS: Final = 10_000  # steps of SQLite's machine between two looks at the clock: about a millisecond
# Chosen: processor time between two of these looks. One function of a query that works on long values takes longer.
SQLITE_STEP_SECONDS: Final = 5.0
TARGET_LOCK_SECONDS: Final = (
    15.0  # chosen: below TARGET_SETTLE_SECONDS; whoever holds rows for longer is reported
)
TARGET_READER_SECONDS: Final = (
    600.0  # chosen: a reader of keys may stop for so long before the server gives it up
)
MYSQL_STATEMENT_ROWS: Final = 5_000  # measured: longer statements of the bench template are no faster
MYSQL_LEAST_ROWS: Final = (
    25  # measured: shorter ones cost more round trips than they save where rows are refused
)
MYSQL_STATEMENT_BYTES: Final = 4 * MB  # chosen: a quarter of the default max_allowed_packet
MYSQL_STATEMENT_MARGIN: Final = (
    64 * 1024
)  # chosen: what a statement has beside its rows; names are 64 characters
MYSQL_COMMAND_STATEMENTS: Final = 500  # chosen: UPDATE or DELETE statements of one command
MYSQL_KNOWN_ROWS: Final = 200  # chosen: EXISTS questions of one statement
MYSQL_PROOF_ROWS: Final = 3  # chosen: first, middle and last row of a chunk's first batch
STATEMENT_KNOWN_ROWS: Final = 200  # chosen: EXISTS questions of one statement
MSSQL_STATEMENT_BYTES: Final = 4 * MB  # chosen: far below what a batch may hold
DB2_STATEMENT_ROWS: Final = 500  # chosen: Db2 takes long to compile statements of many literals
DB2_STATEMENT_BYTES: Final = MB  # chosen: half of what a statement may have (Db2, "SQL and XML limits")
ORACLE_CONNECTS: Final = (
    16  # chosen: connections that one sign-in may take, redirections of listeners among them
)
MONGODB_SAMPLE_ROWS: Final = 100  # chosen: documents of a collection whose fields are looked at
MONGODB_KNOWN_ROWS: Final = 500  # chosen: sets of values of one question
MONGODB_DOCUMENT_BYTES: Final = (
    16 * 1024 * 1024
)  # MongoDB, "MongoDB Limits and Thresholds": BSON document size
MAX_STATEMENTS: Final = 20  # chosen: SQL statements before a push, and after it
MAX_STATEMENT_CHARS: Final = 10_000  # chosen
MAPPING_FIELDS_NAMED: Final = (
    5  # chosen: so many fields without a column are named beside a column without a field
)
MISFITS_SHOWN: Final = 100  # chosen: values of one column that are listed with the same reason
EXPORT_DB_WAIT_ROWS: Final = 1_000  # the contract: up to so many rows /export/db answers when done
EXPORT_DB_WAIT_SECONDS: Final = 60.0  # chosen: and no later than this
EXPORT_DB_POLL_SECONDS: Final = 0.05  # chosen: how often it looks whether the worker is done
FETCHED_DAYS: Final = 30  # contract: stored answers are used so long
FETCHED_KEYS: Final = 1_000_000  # chosen: keys of one list; a filter chooses among more. 8 to 40 MB
FETCHED_ROWS: Final = 10_000  # chosen: rows that a query may answer
FETCHED_SET_ROWS: Final = 1_000  # chosen: likewise for one set of values of a row
FETCHED_TOLD: Final = 20  # chosen: columns named to somebody who asked for one that is not there
FETCHED_QUESTIONS: Final = 1_000  # chosen: sets of values that one request may ask about
FETCHED_BYTES: Final = 64 * MB  # chosen: of one answer in memory
FETCHED_JSON_BYTES: Final = 8 * MB  # chosen: of what an API answers to one field; all of it is gone through
FETCHED_SAID_CHARS: Final = 200  # chosen: of a path, and of what a target says, in a message
FETCHED_INLINE_BYTES: Final = 64 * 1024  # chosen: larger answers lie in the storage, not in the database
FETCHED_SAVED: Final = 500  # chosen: answers kept in one transaction; other writers wait for it some 50 ms
FETCHED_MEMORY_BYTES: Final = 64 * MB  # chosen: answers of the storage that one process keeps at hand
FETCH_SECONDS: Final = (
    20.0  # chosen: all that one request may wait for connections; a browser waits 30 s and more
)
# Rows taken from real data.
SOURCE_ROWS: Final = 10_000_000  # chosen: of one source
PREVIEW_SOURCE_ROWS: Final = 1_000  # chosen: rows of a connection that a look at a template reads
SOURCE_BYTES: Final = (
    4_096 * MB
)  # chosen: of one source as it lies on the worker's disk while its rows are made
FETCHED_FILES_BYTES: Final = 10_240 * MB  # chosen: what a workspace keeps of rows and values from connections
SOURCE_CACHE_BYTES: Final = 2_048 * MB  # chosen: of sources that one process keeps open for the next request
SOURCE_BLOCK_ROWS: Final = 8_192  # BLOCK_ROWS: rows of one piece of a source
SOURCE_COLUMNS: Final = 2_000  # chosen: of one source
# Chosen: a file may hold one value for all of its rows, so that 446 bytes become gigabytes. Its rows may take so many
# times its size, and so much in any case.
SOURCE_EXPANSION: Final = 100
SOURCE_LEAST_BYTES: Final = 64 * MB
SOURCE_PIECE_BYTES: Final = 4 * MB  # chosen: rows of a source that are decoded at once
SOURCE_CELL_BYTES: Final = 4 * MB  # chosen: one row of a CSV file, one element of a JSON file
SOURCE_SECONDS: Final = 50.0  # below gunicorn's 60: reading a connection's rows for one request
SOURCE_QUERY_CHARS: Final = 20_000  # chosen: subsets nest their queries
SOURCE_KEPT_HOURS: Final = (
    24  # chosen: rows of a connection that no open export and no push needs are removed then
)
SOURCE_SHEET_BYTES: Final = 1_024 * MB  # chosen: a sheet of a workbook, unpacked
SOURCE_STRINGS_BYTES: Final = 256 * MB  # chosen: a workbook's shared texts, which its reader holds in memory
SUBSET_STEPS: Final = 200  # chosen: steps over foreign keys to the tables of one subset
SUBSET_ROUNDS: Final = 8  # chosen: how often the way up goes around a ring of tables: managers of managers
SUBSET_DEPTH: Final = 4  # chosen: steps down to children
# Whole-column leak check: 64-bit digests of distinct real values. Where a column has more, every second of them is
# looked for, then every fourth: what leaks more than a few values is still found, and the report says the share.
LEAK_DIGESTS: Final = 4_000_000  # chosen: 32 MB a column
LEAK_SUBSTRING_CHARS: Final = 5  # contract: of a real value that stands inside another one
LEAK_CODED_CHARS: Final = (
    12  # chosen: likewise inside a token or hash, which has short runs of digits by chance
)
LEAK_DIGITS: Final = 5  # chosen: fewer digits tell nobody
INFER_SAMPLE_ROWS: Final = 200  # chosen: rows of a table that are looked at for shapes and ranges
CLASSIFY_ROWS: Final = 1_000  # chosen: rows of a sample that are looked at for personal values
CLASSIFY_CHARS: Final = 200  # chosen: of a value; what is longer is prose
INFER_FEW: Final = 10  # chosen: fewer values tell nothing
INFER_WORDS: Final = (
    12  # chosen: a column with so many different words, each some times, is a list to choose from
)
INFER_REPEATS: Final = 4  # chosen: how often each of them occurs at least, on average
INFER_WORD_CHARS: Final = 40  # chosen
INFER_SHAPE_CHARS: Final = 40  # chosen: longer texts have no shape
INFER_ROWS: Final = 2_000  # chosen: values looked at where a check wants texts of some length
TEMPLATES_OF_TABLES: Final = 2_000  # chosen: tables of one call; each is a template, compiled and saved
# Imports. What a file holds beyond these is not looked at, and the report says so.
CHECK_CHARS: Final = 10_000  # chosen: of a check constraint that is read
CHECK_PLANS: Final = 5_000  # chosen: combinations of values that are tried to satisfy a check constraint
IMPORT_TEXT_CHARS: Final = MAX_BODY_BYTES  # chosen: a text that stands in a body
IMPORT_ROWS: Final = 10_000  # chosen: rows of JSON and of a sheet that are looked at; of CSV all
IMPORT_TABLES: Final = TEMPLATES_OF_TABLES  # chosen: tables of one import
IMPORT_COLUMNS: Final = 2_000  # chosen: columns of one table that are named in the report
IMPORT_CHOICES: Final = 20  # chosen: different words of a column that are taken over as a list
MOCKAROO_SEQUENTIAL_VALUES: Final = 90  # a formula has at most 200 literal elements; each value takes two
IMPORT_NAME_BYTES: Final = 1_000  # chosen: of a column's name before it is cut to MAX_NAME_CHARS
IMPORT_STATEMENTS: Final = 20_000  # chosen: statements of an SQL script that are looked at
IMPORT_STATEMENT_CHARS: Final = 1_000_000  # chosen: of one statement; 5,000 columns take some 300,000
IMPORT_PROBLEMS: Final = (
    5_000  # chosen: tables and columns that are named in a report because they were left out
)
# Chosen: schemas of JSON Schema, OpenAPI, Avro and Protocol Buffers behind one table, their references followed, and
# behind all of an import; a template holds MAX_NESTED_FIELDS, and 200,000 schemas take a quarter of a second.
IMPORT_TABLE_NODES: Final = 20_000
IMPORT_NODES: Final = 4_000_000
IMPORT_SHEET_BYTES: Final = 128 * MB  # chosen: what is unpacked of one sheet of a workbook,
IMPORT_STRINGS_BYTES: Final = 64 * MB  # and of its texts
IMPORT_SHEET_CELLS: Final = (
    250_000  # measured: cells of a sheet that are looked at; openpyxl reads so many in 4 s
)
IMPORT_CELL_CHARS: Final = 1_000  # chosen: characters of a cell that a sample keeps
IMPORT_ECHO_CHARS: Final = 200_000  # chosen: a pasted text that a page shows again
# --- Documents ---------------------------------------------------------------------------------------------
# Reading an uploaded or fetched document, in a child process (webapp/document_process.py).
# Measured: 50 MB of JSON rows take 920 MB of address space, 50 MB of CSV up to 640 MB, all others less.
DOCUMENT_MEMORY_BYTES: Final = 1_024 * MB
# Promise 26: a request runs for at most 10 s. Measured: 6 MB of YAML take 3 s, 11 MB of $metadata 3 s, others less.
DOCUMENT_CPU_SECONDS: Final = 10
METADATA_CPU_SECONDS: Final = 20  # chosen: of OData and OpenAPI documents; 32 MB of $metadata take 9 s
DOCUMENT_SECONDS: Final = (
    45.0  # chosen: by the clock; a loaded machine gives a process a quarter of a processor
)
DOCUMENT_LEVELS: Final = 100  # chosen: arrays and objects inside one another; real documents have some 30
DOCUMENT_YAML_VALUES: Final = (
    2_000_000  # chosen: values of a YAML document with its aliases; 10 MB have some 700,000
)
DOCUMENT_RESULT_BYTES: Final = 40 * MB  # measured: 11 MB of $metadata with 80,000 properties come to 23 MB
DOCUMENTS_AT_ONCE: Final = 2  # chosen: documents that one process has read at the same time
DOCUMENT_TURN_SECONDS: Final = 10.0  # chosen: a request that waits longer for its turn is asked to try again
DOCUMENT_RETRY_SECONDS: Final = 5  # chosen: Retry-After in that case
DOCUMENT_START_SECONDS: Final = 30.0  # chosen: the server that forks workers imports for some 2 s

# --- HTTP targets -----------------------------------------------------------------------------------------
HTTP_HEADERS: Final = 50  # chosen: headers, or query parameters, of one request template
HTTP_TEMPLATE_BYTES: Final = 100_000  # chosen: of a request template's body
HTTP_CHUNK_ROWS: Final = 50  # promise 1: rows in doubt after a crash, at most
HTTP_BATCH_ROWS: Final = 100_000  # chosen: rows of one request in batch mode, at most
HTTP_PIECE_ROWS: Final = (
    2_000  # chosen: rows of a batch's body that are written at once; more cost memory, fewer time
)
HTTP_PARALLEL: Final = 8  # chosen: requests at once of one push
HTTP_MOST_PARALLEL: Final = 64  # chosen
HTTP_CAPTURES: Final = 20  # chosen: keys taken from one answer
HTTP_ANSWER_BYTES: Final = 1_000_000  # chosen: of the answer to one row
HTTP_LOOK_BYTES: Final = 64 * 1024  # chosen: of the answer to a verification
JSON_PATH_CHARS: Final = 500  # chosen
# Chosen: values that a JSONPath visits in one document, three to five seconds. An answer of HTTP_ANSWER_BYTES has at
# most 500,000 values, which `..` visits once each.
JSON_PATH_VISITS: Final = 2_000_000
VERIFY_STEP_SECONDS: Final = 10.0  # chosen: one request of a verification
DOCUMENT_BYTES: Final = 10 * MB  # the largest body that is taken
MAX_DOCUMENTS: Final = 100  # chosen: uploaded metadata documents of a workspace
DOCUMENT_NODES: Final = 200_000  # chosen: schemas of an OpenAPI document, its references followed
DOCUMENT_SERVERS: Final = 100  # chosen: servers that an OpenAPI document names
DOCUMENT_DEPTH: Final = 12  # chosen: nesting of its schemas; more than templates have
HTTP_HOPS: Final = 5  # chosen: redirects that one request follows
HTTP_URL_CHARS: Final = 8_000  # RFC 9110, 4.1: what every server should be able to take
HTTP_HEADER_CHARS: Final = 8_000  # chosen: of one header, a long token included; servers take 8 to 16 kB
HTTP_READ_BYTES: Final = 64 * 1024  # chosen: of an answer, read at once
HTTP_IDLE_SECONDS: Final = 4.0  # chosen: Node's servers close connections that are idle for 5 s
HTTP_POOL_HOSTS: Final = 4  # chosen: hosts of one session to which connections are kept
HTTP_COOKIES: Final = 100  # chosen: of one session, the latest; browsers keep 50 and more for a host
HTTP_POOL: Final = 8  # chosen: connections kept open to each of them
RETRY_TIMEOUT_SECONDS: Final = (0.1, 300.0)  # chosen: time limit of one attempt, least and most
RETRY_MOST: Final = 10  # chosen: attempts after the first
RETRY_WAIT_SECONDS: Final = 120.0  # chosen: the longest wait before an attempt, whatever the target asks for
TOKEN_SECONDS: Final = 30.0  # the specification's time limit of a request
TOKEN_BYTES: Final = 256 * 1024  # chosen: of a token endpoint's answer
TOKEN_CHARS: Final = 16_000  # chosen: of a token; those that carry groups reach some thousands
TOKEN_EARLY_SECONDS: Final = 60.0  # section 8: a token is kept until so long before its end
TOKEN_DEFAULT_SECONDS: Final = 300.0  # chosen: lifetime of a token whose answer tells none
TOKEN_MOST_SECONDS: Final = 86_400.0  # chosen: a token is kept no longer, whatever its answer tells
TOKEN_REFUSED_SECONDS: Final = 5.0  # chosen: when fresh tokens are refused too, no other is asked for so long
TOKENS: Final = 1_000  # chosen: tokens of one process
TOKEN_LOCK_SECONDS: Final = (
    TOKEN_SECONDS + 10
)  # chosen: one process fetches; others wait at most this long for it
TOKEN_FAILURE_SECONDS: Final = 5.0  # chosen: so long those who waited for a token learn why there is none
# --- AI ---------------------------------------------------------------------------------------------------
AI_TIMEOUT_SECONDS: Final = 60.0  # chosen: of one request, where the connection says nothing; models are slow
AI_SECONDS: Final = (
    120.0  # chosen: what one run may wait for a model; answers so far are kept, asking again goes on
)
AI_ROWS: Final = 20  # chosen: rows of one request; small models lose count of more
AI_MOST_ROWS: Final = 200  # chosen
AI_PARALLEL: Final = 4  # chosen: requests at once; local servers take few
AI_CALLS: Final = 200  # chosen: requests of one run, where the connection says nothing
AI_MOST_CALLS: Final = 100_000  # chosen
AI_TRIES: Final = 3  # chosen: how often a row is asked for whose answer does not fit
AI_MODEL_CHARS: Final = 200  # chosen
AI_PROMPT_CHARS: Final = 20_000  # chosen: of the prompt of one row, values filled in
AI_TEXT_CHARS: Final = 4_000  # chosen: of one value, where the field does not say
AI_CHOICES: Final = 200  # chosen: values to choose from
AI_EXAMPLES: Final = 20  # chosen
AI_ANSWER_BYTES: Final = 4 * MB  # chosen: of the answer to one request, thoughts included
AI_DIGITS: Final = 30  # chosen: of a number that a model writes; larger ones are no values
AI_BROKEN: Final = 50  # chosen: places of an answer where JSON begins and does not end, before it is given up
AI_TOKEN_CHARS: Final = (
    4  # about what a token of English has, where a server does not count (OpenAI's help pages)
)
AI_MODELS_TOLD: Final = 20  # chosen: models named to somebody who asked for one that is not there
AI_DESCRIPTION_CHARS: Final = 4_000  # chosen: of what a template is to be like
AI_FIELDS: Final = 60  # chosen: fields of a described template
AI_SAMPLES: Final = 20  # chosen: values shown to have a type suggested

# --- Scenarios, runs, workspace files ------------------------------------------------------------------------
# Contract: timeout_seconds of a scenario.
MIN_RUN_SECONDS: Final = 60
MAX_RUN_SECONDS: Final = 3_600
DEFAULT_RUN_SECONDS: Final = 900
WAIT_SECONDS: Final = 300  # section 8: blocking run wait
MAX_CODE_BYTES: Final = MB  # chosen: one program
MAX_FILE_NAME_CHARS: Final = (
    255  # chosen: a workspace file's name with its folders, as most file systems have it
)
MAX_WORKSPACE_FILES_BYTES: Final = 1024 * MB  # chosen: all live files of a workspace, the quota
MAX_WORKSPACE_FILES: Final = (
    10_000  # chosen: live files of a workspace; each run's folder names every one of them
)
FILE_PART_BYTES: Final = 255  # ext4, XFS, APFS: one name between two slashes, in UTF-8
FILE_TYPE_CHARS: Final = 127  # RFC 6838, 4.2: of each half of a media type
FILE_ORPHAN_SECONDS: Final = (
    10_800  # chosen: bytes without a row are swept after so long; no upload lasts longer
)
FILE_CACHE_BYTES: Final = (
    2_048 * MB
)  # chosen: files that a worker keeps at hand for runs: two workspaces full
FILE_CACHE_TRIES: Final = (
    5  # chosen: how often a file is asked for again that was replaced or evicted meanwhile
)
FILE_PREVIEW_BYTES: Final = 256 * 1024  # chosen: the head of a file that its page looks at
FILE_PREVIEW_ROWS: Final = 20  # chosen
FILE_PREVIEW_LINES: Final = 60  # chosen: of a text
FILE_PREVIEW_COLUMNS: Final = 40  # chosen
FILE_PREVIEW_CHARS: Final = 200  # chosen: of a cell, or a line
# Chosen: what is unpacked of a workbook's sheet, of its texts and of each other part before its preview is given up.
FILE_PREVIEW_SHEET_BYTES: Final = 2 * MB
FILE_PREVIEW_STRINGS_BYTES: Final = 8 * MB
FILE_PREVIEW_PART_BYTES: Final = MB
MAX_OUTPUT_FILES: Final = 1_000  # chosen: files that are kept of one run
MAX_NAME_TRIES: Final = 100  # chosen: names that are tried for a dropped file whose own is taken by another
MAX_FILES_PER_FORM: Final = 50  # chosen: files that one form sends; each is a descriptor
UPLOAD_FORM_BYTES: Final = MB  # chosen: what an upload has beside its file: names, and what a form carries
WEB_MOST_BODY_BYTES: Final = MAX_UPLOAD_BYTES + UPLOAD_FORM_BYTES  # no route takes a longer body
MAX_VARIABLES: Final = 200  # chosen: variables of a scenario, or parameters of a run
MAX_VARIABLE_NAME_CHARS: Final = 100  # chosen: as long as a secret's name
MAX_VARIABLE_BYTES: Final = 32 * 1024  # chosen: Linux takes 128 kB for one
MAX_VARIABLES_BYTES: Final = 256 * 1024  # chosen: all of them; Linux takes 2 MB with the command line
MAX_REQUIREMENTS: Final = 50  # chosen: packages that one program asks for
MAX_REQUIREMENTS_BLOCK_CHARS: Final = (
    64 * 1024
)  # chosen: of a PEP 723 block; 50 requirements with markers take 16 kB
MAX_REQUIREMENTS_KEY_PARTS: Final = (
    20  # chosen: of a dotted key in it; tomllib's memory grows with their square
)
MAX_REQUIREMENT_CHARS: Final = 300  # chosen: one of them, with its versions and markers
RESOLVE_SECONDS: Final = (
    60.0  # chosen: who saves a program with requirements waits no longer for its packages
)
RESOLVE_AT_ONCE: Final = 2  # chosen: resolutions at once in one web process; the next one waits
RESOLVE_TURN_SECONDS: Final = 10.0  # chosen: who waits longer for a turn is asked to try again
SYNTAX_SECONDS: Final = 5  # chosen: processor time; a program of a megabyte is parsed in about one
DIFF_LINES: Final = (
    4_000  # chosen: changed parts that are longer are shown as replaced whole: difflib is quadratic
)
ENVIRONMENT_POLL_SECONDS: Final = (
    0.1  # chosen: how often a run looks whether another has made its environment
)
ENVIRONMENT_SECONDS: Final = 300.0  # chosen: an environment that is not made by then is given up
ENVIRONMENT_RETRY_SECONDS: Final = (
    60.0  # chosen: so long after a failure the common libraries are not tried again
)
ENVIRONMENTS_BYTES: Final = (
    4 * 1024 * MB
)  # chosen: of all environments; the common libraries take some 200 MB
# Chosen: younger uses keep an environment; the longest run, and as much again for what comes before and after it.
ENVIRONMENT_KEEP_SECONDS: Final = 2 * MAX_RUN_SECONDS
LOG_TAIL_LINES: Final = 200  # chosen: lines of a log that a run's page begins with
LOG_TAIL_CHARS: Final = 16_000  # chosen: and no more than this of them, so that a page stays small
LOG_PIECE_LINES: Final = 500  # chosen: lines of a log that are fetched at once
LOG_PIECE_CHARS: Final = 256 * 1024  # chosen: and no more than this of them
LOG_LINE_CHARS: Final = 4_000  # chosen: of one line on a page; the text has all of it
LOG_HITS: Final = 100  # chosen: lines that a search in a log shows
LOG_HIT_CHARS: Final = 160  # chosen: of each of them
SPARK_RUNS: Final = 16  # chosen: last runs of a scenario whose durations a list draws
SCHEDULE_BATCH: Final = 200  # chosen: due scenarios started in one sweep
SCHEDULE_YEARS: Final = 8  # a schedule for 29 February waits no longer, 2096 to 2104 included
# Chosen: runs of one workspace that go on at once, by plan; more wait, queued, and beyond so many are refused.
RUNS_AT_ONCE: Final = MappingProxyType({"free": 1, "pro": 5, "enterprise": 20})
RUNS_QUEUED: Final = MappingProxyType({"free": 20, "pro": 100, "enterprise": 1_000})
MAX_RUN_DEPTH: Final = (
    5  # chosen: runs below one another that programs start; a program that starts itself ends there
)
MAX_RUNS_OF_RUN: Final = 50  # chosen: runs that one run's program has queued or running at the same time
RUN_QUEUE_RETRY_SECONDS: Final = 30  # chosen: Retry-After where no further run can be queued
RUN_POLL_SECONDS: Final = 0.05  # chosen: how often a runner looks after its program
RUN_GRACE_SECONDS: Final = 5.0  # promise 8: between SIGTERM and SIGKILL of a program
RUN_DRAIN_SECONDS: Final = (
    10.0  # chosen: a stopping runner lets its program go on so long; below HAND_BACK_SECONDS
)
RUN_KEY_MARGIN_SECONDS: Final = (
    120  # chosen: a run's key outlives its time limit by this, should nobody revoke it
)
RUN_USAGE_SECONDS: Final = 1.0  # chosen: how often memory and processor time are measured
RUN_USAGE_SAVED_SECONDS: Final = 2.0  # chosen: and written
RUN_USAGE_POINTS: Final = 200  # chosen: points of the resource chart, thinned out when they become more
RUN_MEMORY_BYTES: Final = 1024 * MB  # chosen: of a run, all its processes together
RUN_PROCESSORS: Final = 2  # chosen: processor time of a run is its time limit so many times
RUN_PROCESSES: Final = 64  # chosen: processes and threads of a run
RUN_FILE_BYTES: Final = 512 * MB  # chosen: of one file that it writes
RUN_TMP_BYTES: Final = 512 * MB  # chosen: of its temporary files and its home
RUN_OUTPUTS_BYTES: Final = 512 * MB  # chosen: of what it leaves behind
RUN_WALL_MARGIN_SECONDS: Final = (
    60  # chosen: the sandbox ends a program so long after its time, should the runner not
)
RUN_LINE_BYTES: Final = 16 * 1024  # chosen: a longer line goes on as the next one
RUN_LOG_BYTES: Final = 64 * MB  # chosen: of a run's log; a program that prints more is stopped
RUN_LOG_LINES: Final = 2_000_000  # chosen: likewise
# Chosen, by plan: the logs of a workspace's runs together. Where a run needs space for its own, the oldest are removed.
RUN_LOGS_BYTES: Final = MappingProxyType({"free": 512 * MB, "pro": 4_096 * MB, "enterprise": 16_384 * MB})
RUN_READ_BYTES: Final = 256 * 1024  # chosen: taken out of a program's pipe at once
RUN_PIPE_BYTES: Final = MB  # the most an unprivileged process may ask for (pipe(7), pipe-max-size)
RUN_FLUSH_SECONDS: Final = 0.05  # chosen: lines are written this long after they were printed
RUN_CHUNK_BYTES: Final = 128 * 1024  # chosen: and sooner when they are so many
RUN_LOG_RETRY_SECONDS: Final = 0.5  # chosen: a database that takes no lines is asked again after this
RUN_DRAINED_SECONDS: Final = 5.0  # chosen: what an ended program left in its pipe is waited for so long
RUN_TEXT_BYTES: Final = MB  # chosen: of a log, read at once for a follower or a download
RUN_MESSAGE_CHARS: Final = 500  # chosen: of a program's last line in a run's error
RUN_CLOSING_SECONDS: Final = 10.0  # chosen: a run that ended without a last line is told as ended after this
RUN_POLLED_SECONDS: Final = 1.0  # chosen: followers look so often where no word comes from Redis
FOLLOW_WAKE_SECONDS: Final = 0.05  # chosen: followers of one log are woken at most this often
FOLLOW_WINDOW_BYTES: Final = (
    4 * MB
)  # chosen: of a followed log that a process keeps at hand for all its followers
FOLLOW_GONE_SECONDS: Final = 1.0  # chosen: how often it is looked whether a silent follower is still there
COMPAT_LIST_ROWS: Final = 5_000  # chosen: the compatible wire has no pages: the newest so many of a list
COMPAT_TABLE_CONNECTIONS: Final = 20  # chosen: databases that one call asks for their tables
COMPAT_OBJECTS: Final = 5_000  # chosen: of one kind in a project, as many as a list holds
# Chosen: what an object holds besides a set's rows, and all objects of one kind in a project. A list answers with them
# whole, and takes some ten times their bytes.
MAX_COMPAT_BYTES: Final = 1 * MB
MAX_COMPAT_LIST_BYTES: Final = 16 * MB
# Chosen, by plan: versions of templates, datasets and scenarios, and requests of exports and pushes, as JSON.
STORED_JSON_BYTES: Final = MappingProxyType({"free": 512 * MB, "pro": 2_048 * MB, "enterprise": 8_192 * MB})
STORED_JSON_SECONDS: Final = 86_400  # chosen: how long the count goes on without being read anew,
STORED_JSON_AGAIN_SECONDS: Final = 60  # and how often it is read anew for a workspace that is at its limit
MAX_SET_ROWS: Final = 10_000  # the hosted service's own limit of a saved set, by its OpenAPI document
MAX_SET_BYTES: Final = 5 * MB  # likewise
MAX_SETS_BYTES: Final = 200 * MB  # chosen: all sets of a workspace; they are stored in the database
KEY_MAP_BATCH: Final = 5_000  # the hosted service's own limit of one write or lookup
KEY_MAP_PAGE: Final = 500  # the hosted service's own limit of a page of entries
KEY_MAP_NAME_CHARS: Final = 100  # chosen: PostgreSQL's index takes 2,704 bytes, and holds two names and a key
KEY_MAP_KEY_CHARS: Final = 300  # chosen: likewise
MAX_KEY_MAP_ENTRIES: Final = 1_000_000  # chosen: of a workspace
KEY_MAP_ENTRY_BYTES: Final = 300  # chosen: what an entry takes of the database, and of the quota of files
COMPAT_LINK_SECONDS: Final = 600  # chosen: a file's signed address; its clients fetch it at once
# --- Mail and webhooks ------------------------------------------------------------------------------------
COURIER_SECONDS: Final = (
    1.0  # chosen: how often it is looked for work that ended, and for what is due to be sent
)
COURIER_BATCH: Final = 200  # chosen: ended pieces of work that are told of in one look
COURIER_STOP_SECONDS: Final = (
    5.0  # chosen: what is on its way at a stop has so long; then it is sent again later
)
MAIL_TIMEOUT_SECONDS: Final = 20.0  # chosen: each answer of the mail server
MAIL_CLAIM_SECONDS: Final = (
    300.0  # chosen: a sender that has not noted the end of a mail by then is taken for dead
)
# Chosen: waits before a mail is tried again; RFC 5321, 4.5.4.1 asks for 30 minutes and 4 to 5 days, which is long for
# word of an export: after some two days it is given up.
MAIL_WAITS: Final = (60, 300, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400)
MAIL_REASON_CHARS: Final = 300  # chosen: of what a mail server says
MAIL_SUBJECT_CHARS: Final = 150  # chosen
MAIL_NAME_CHARS: Final = 80  # chosen: of a name that somebody gave and a mail repeats
MAIL_TEXT_CHARS: Final = 8_000  # chosen: of a mail
MAIL_LINE_CHARS: Final = 72  # chosen; RFC 5322, 2.1.1 asks for at most 78
MAIL_DAYS: Final = 30  # chosen: what was sent is listed so long, without its text
NOTICE_MINUTES: Final = 5  # chosen: shorter work brings no mail, where its starter has said nothing
NOTICE_MOST_MINUTES: Final = 1_440  # chosen
NOTICE_MAILS_PER_HOUR: Final = (
    20  # chosen: mails about ended work to one person; the last one says that it is
)
NOTICE_BROWSER_SECONDS: Final = 15  # chosen: a browser tells of work that took at least so long,
NOTICE_BROWSER_AGE_SECONDS: Final = 600  # chosen: and ended no longer ago than this;
NOTICE_BROWSER_LAG_SECONDS: Final = (
    3  # chosen: longer than the transaction that tells of one piece of work takes
)
NOTICE_BROWSER_ITEMS: Final = 5  # chosen: of each kind at most so many at once
WEBHOOKS: Final = 50  # chosen: webhooks of one workspace
WEBHOOK_SECRET_BYTES: Final = 32  # Standard Webhooks: 24 to 64
WEBHOOK_BOTH_SECONDS: Final = 86_400  # chosen: so long after a new secret the one before signs too
WEBHOOK_TIMEOUT_SECONDS: Final = 15.0  # Standard Webhooks: 15 to 30
WEBHOOK_CLAIM_SECONDS: Final = (
    60.0  # chosen: a sender that has not noted the end of an attempt by then is dead
)
WEBHOOK_ANSWER_BYTES: Final = 4_096  # chosen: of an answer, which is read no further
WEBHOOK_HEAD_CHARS: Final = 200  # chosen: of an answer that is kept
WEBHOOK_WAITS: Final = (
    5,
    30,
    120,
    600,
    1_800,
    7_200,
    18_000,
    36_000,
)  # chosen: waits before attempts: 18 h in all
WEBHOOK_RETRY_AFTER_SECONDS: Final = 3_600  # chosen: the longest wait that a receiver can ask for
WEBHOOK_AT_ONCE: Final = 8  # chosen: deliveries on their way at once in one process,
WEBHOOK_AT_ONCE_EACH: Final = (
    2  # chosen: and of one webhook, so that a slow receiver keeps others from nothing
)
WEBHOOK_FAILURES: Final = 20  # chosen: a webhook is turned off when so many attempts in a row have failed,
WEBHOOK_FAILING_SECONDS: Final = 86_400  # chosen: and none has succeeded for so long
WEBHOOK_TRIES_KEPT: Final = 12  # chosen: attempts of a delivery that are listed one by one
WEBHOOK_DELIVERY_DAYS: Final = 30  # chosen: deliveries are listed so long
