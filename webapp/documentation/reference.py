"""Reference pages that are written from data, as Markdown: error codes and limits.

Error codes are `errors.CODES`, with the reason for each and what to do. Limits are the plans, and the limits of
webapp/limits.py that users can reach.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from webapp import limits
from webapp.errors import CODES

_SPECIAL: Final = re.compile(r"([\\*\[<|])")
_CODE: Final = re.compile(r"(`[^`]*`)")


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table. Its cells are already Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def text(plain: str) -> str:
    """Escape a sentence for Markdown, except for code in backticks."""
    pieces = _CODE.split(" ".join(plain.split()))
    return "".join(
        _cell(part) if part.startswith("`") and len(part) > 1 else _SPECIAL.sub(r"\\\1", part)
        for part in pieces
    )


def code(plain: str) -> str:
    """Return a text as inline code for a line or a cell; "" for an empty text, and for line breaks only."""
    one_line = " ".join(plain.splitlines()) if "\n" in plain or "\r" in plain else plain
    if not one_line:
        return ""
    longest = max((len(run) for run in re.findall(r"`+", one_line)), default=0)
    backticks = "`" * (longest + 1)
    padding = " " if one_line[0] in "` " or one_line[-1] in "` " else ""
    return _cell(f"{backticks}{padding}{one_line}{padding}{backticks}")


def _cell(markdown: str) -> str:
    return markdown.replace("|", "\\|")


# --- Error codes --------------------------------------------------------------------------------------------

ADVICE: Final = MappingProxyType(
    {
        # code: (when it comes, what to do)
        "invalid_request": (
            "The body is not JSON, or a header or a part of the URL is malformed.",
            "Correct the request. `details` contains the position of the syntax error.",
        ),
        "unsupported_version": (
            "The header `Api-Version` names a date that is no version.",
            "Send one of `details.known`, or leave the header out: the key then has the version it was made with.",
        ),
        "unauthenticated": (
            "There is no key, or one that was revoked, has expired or never was. `details.reason` says which.",
            "Send `Authorization: Bearer rws_…` with a key that holds.",
        ),
        "forbidden": (
            "The key or the role is known, and may not do this. `details.needs` names the right.",
            "Use a key with that scope, or ask an admin of the workspace for the role.",
        ),
        "https_required": (
            "The request came by plain HTTP to a service that is reached by https.",
            "Use the address with https. The key has been on the wire in the clear: make a new one.",
        ),
        "read_only_connection": (
            "Rows were to be written to a connection that is marked read-only.",
            "Take the mark off the connection, or send to another one.",
        ),
        "target_not_allowed": (
            "The address of a target is in a blocked network.",
            "Use an address of the public internet, or ask your administrator to add the network to"
            " `TARGET_NETWORKS`.",
        ),
        "not_found": (
            "The object does not exist, was deleted, or it belongs to another workspace.",
            "Check the id. What was deleted can be restored from the trash for some days.",
        ),
        "method_not_allowed": (
            "The address exists and does not take this method.",
            "Use a method of the header `Allow`.",
        ),
        "request_timeout": (
            "The headers did not arrive within 15 seconds, or the body arrived at less than 500 bytes per second.",
            "Send the request again over a faster connection. The server closes the slow connection.",
        ),
        "conflict": (
            "The name is taken, or the object is in a state that does not allow this.",
            "Take another name; `details` names the object that has it, or the state.",
        ),
        "in_use": (
            "What was to be deleted is used by others, which `details.used_by` lists.",
            "Change or delete those first.",
        ),
        "run_finished": (
            "An export, a push or a run has ended and can no longer be cancelled.",
            "Nothing: read how it ended.",
        ),
        "idempotency_in_progress": (
            "The first call with this `Idempotency-Key` is still being answered.",
            "Wait as `Retry-After` says and send the same call again: it gets the first one's answer.",
        ),
        "version_conflict": (
            "`If-Match` has an outdated ETag: the object was changed in the meantime.",
            "Read the object again, repeat the change, and send the new ETag.",
        ),
        "payload_too_large": (
            "The body is larger than this address takes; `details.max_bytes` is the limit.",
            "Send a smaller body, or upload a file if there is a route for it.",
        ),
        "uri_too_long": (
            "The address with its query is longer than `details.max_bytes`.",
            "Send the long part in the body, or request less.",
        ),
        "unsupported_media_type": (
            "The body is of a type that this address does not read.",
            "Send JSON with `Content-Type: application/json`, or the type that the API reference names.",
        ),
        "expectation_failed": (
            "The header `Expect` asks for something other than `100-continue`.",
            "Leave the header out.",
        ),
        "validation_error": (
            "The request can be read and has faults. `details.fields` lists all of them, each with its path, code,"
            " message and often a hint.",
            "Correct all values that the paths name.",
        ),
        "row_limit_exceeded": (
            "The request exceeds the number of rows per call; `details.limit` is the maximum.",
            "Ask in pieces with `offset`: the same seed gives the same rows.",
        ),
        "leak_found": (
            "The leak check found a real value in rows taken from real data, before they left. `details` names the "
            "sensitive `column`, the column it was `found_in` and the row, never the value.",
            "Mask the column that shows it as well, or take it out of the template.",
        ),
        "idempotency_mismatch": (
            "This `Idempotency-Key` came before with another request.",
            "Use a new key for a new request.",
        ),
        "driver_missing": (
            "The database driver for this kind of connection is not installed.",
            "Ask your administrator to install the extra in `details`.",
        ),
        "provider_missing": (
            "A field or a call wants a model, and the project has no connection of type `ai`.",
            "Make one; the hint says how. Any server with OpenAI's chat API will do.",
        ),
        "rate_limited": (
            "More requests in a minute than the plan has, or too many wrong passwords or keys.",
            "Wait as `Retry-After` says. The headers `X-RateLimit-*` tell how much is left.",
        ),
        "quota_exceeded": (
            "The rows of the hour, the places for waiting runs, the space for files, or the space for stored JSON"
            " (versions, variables, requests) are used up. `details` has the limit and what is used.",
            "Wait as `Retry-After` says, request fewer rows, or delete files or objects that are no longer needed.",
        ),
        "headers_too_large": (
            "The headers are too many or too long.",
            "Send fewer; a browser's cookies of other services on the same host are the usual cause.",
        ),
        "internal_error": (
            "A fault of the service. It has written down what happened under the answer's `X-Request-Id`.",
            "Try again once. Then send the request id to your administrator.",
        ),
        "not_implemented": (
            "The request uses a part of HTTP that is not understood here, such as a transfer coding.",
            "Send the body plainly, or in chunks.",
        ),
        "target_failed": (
            "A database, an API or a model answered with a refusal. `details` has its own words.",
            "Correct what they say. Verify the connection to see which stage fails.",
        ),
        "token_request_failed": (
            "The token endpoint of a connection with OAuth 2.0 did not issue a token.",
            "Check the endpoint's address, the client's id and its secret.",
        ),
        "csrf_failed": (
            "An OData service refused the CSRF token, also a fresh one.",
            "Verify the connection: it names the cause, which is mostly a lost session cookie or a proxy.",
        ),
        "unavailable": (
            "The service or one of its parts is starting, stopping or too busy.",
            "Try again after `Retry-After`.",
        ),
        "target_timeout": (
            "A target did not answer within its time.",
            "Try again, ask it for less, or raise the time limit of the connection.",
        ),
    }
)
_ERRORS_INTRODUCTION: Final = """\
# Error codes

Every error is one JSON object. Programs go by `code`, which never changes its meaning; messages are for people and may.

```json
{"error": {"code": "validation_error", "message": "fields[3].options.min: must be a number",
  "details": {"fields": [{"path": "fields[3].options.min", "code": "type", "message": "must be a number"}]}}}
```

Answers of 429 and 503 carry `Retry-After` in seconds, and every answer an `X-Request-Id` that finds it in the log of
the service.

"""


def error_codes_page() -> str:
    """Return the page as Markdown: an overview, then a section for each code."""
    rows = [(f"[`{name}`](#{name})", str(status), text(message)) for name, (status, message) in CODES.items()]
    parts = [_ERRORS_INTRODUCTION, table(("Code", "Status", "Message"), rows)]
    for name, (status, message) in CODES.items():
        cause, solution = ADVICE[name]
        parts.append(
            f"\n## {code(name)}\n\n**{status} {HTTPStatus(status).phrase}.** {text(message)}\n\n"
            f"**When.** {text(cause)}\n\n**What to do.** {text(solution)}\n"
        )
    return "".join(parts)


# --- Limits -------------------------------------------------------------------------------------------------


def _bytes(number: float) -> str:
    if number % 1024:
        return f"{number:,.0f} bytes"
    number_in_unit, unit = (number / 1024, "kB") if number < limits.MB else (number / limits.MB, "MB")
    return f"{number_in_unit:,.0f} {unit}"


def _seconds(number: float) -> str:
    if number >= 3_600 and number % 3_600 == 0:
        return f"{number / 3_600:,.0f} h"
    if number >= 60 and number % 60 == 0:
        return f"{number / 60:,.0f} min"
    return f"{number:,.0f} s"


_UNITS: Final[tuple[tuple[str, Callable[[float], str]], ...]] = (
    ("_BYTES", _bytes),
    ("_SECONDS", _seconds),
    ("_DAYS", lambda number: f"{number:,} days"),
    ("_HOURS", lambda number: f"{number:,} h"),
    ("_CHARS", lambda number: f"{number:,} characters"),
)
# Section: what is limited, and the name of its number.
TOLD: Final = {
    "One request": (
        ("A JSON body", "MAX_BODY_BYTES"),
        ("An uploaded file", "MAX_UPLOAD_BYTES"),
        ("How deep JSON may nest", "MAX_JSON_DEPTH"),
        ("Arrays and objects of a JSON body", "MAX_JSON_CONTAINERS"),
        ("Values of a form", "MAX_FORM_PARTS"),
        ("The first line: method, address, query", "MAX_REQUEST_LINE_BYTES"),
        ("Objects of one page of a list, when `limit` is not said", "PAGE_LIMIT_DEFAULT"),
        ("Objects of one page at most", "PAGE_LIMIT_MAX"),
        ("All objects of one page, as JSON; a page of larger ones has fewer", "PAGE_BYTES"),
        ("Characters of a search text (`q`)", "MAX_QUERY_TEXT"),
        ("An `Idempotency-Key`", "IDEMPOTENCY_KEY_CHARS"),
        ("How long a key's first answer is kept", "IDEMPOTENCY_HOURS"),
        ("Requests per minute of one address without a credential", "ADDRESS_REQUESTS_PER_MINUTE"),
        ("Faults listed in one answer", "MAX_FAULTS"),
    ),
    "Templates and rows": (
        ("A name", "MAX_NAME_CHARS"),
        ("A description", "MAX_DESCRIPTION_CHARS"),
        ("Fields of a template", "MAX_FIELDS"),
        ("How deep fields may nest", "MAX_NESTING"),
        ("Rows when no number is said", "DEFAULT_QUANTITY"),
        ("Rows of a preview", "PREVIEW_ROWS"),
        ("A seed", "MAX_SEED_CHARS"),
        ("Elements of all arrays of one row", "MAX_ARRAY_PRODUCT"),
        ("Columns of a table with `arrays: columns`", "MAX_FLAT_COLUMNS"),
        ("A formula", "MAX_FORMULA_CHARS"),
        ("Values of a list", "MAX_LIST_VALUES"),
        ("A regular expression or mask", "MAX_PATTERN_CHARS"),
        ("One generated text", "MAX_TEXT_CHARS"),
        ("Rows with exact running totals", "TOTAL_ROWS"),
        ("Templates that the relations of one template reach", "MAX_RELATED"),
        ("Templates of a dataset", "MAX_DATASET_TABLES"),
        ("All templates of a dataset, or that relations reach, as JSON", "RELATED_BYTES"),
        ("How long what was deleted can be restored", "RESTORE_DAYS"),
    ),
    "Documents": (
        ("Memory for reading a document", "DOCUMENT_MEMORY_BYTES"),
        ("Processor time for reading a document", "DOCUMENT_CPU_SECONDS"),
        (
            "Processor time for reading an OData or OpenAPI document that a target sent",
            "METADATA_CPU_SECONDS",
        ),
        ("Time for reading a document, by the clock", "DOCUMENT_SECONDS"),
        ("How deep JSON and YAML documents may nest", "DOCUMENT_LEVELS"),
        ("Values of a YAML document, its aliases expanded", "DOCUMENT_YAML_VALUES"),
        ("Size of a document", "DOCUMENT_RESULT_BYTES"),
        ("Documents that one process reads at the same time", "DOCUMENTS_AT_ONCE"),
        ("An OpenAPI document", "DOCUMENT_BYTES"),
        ("A `$metadata` document", "ODATA_DOCUMENT_BYTES"),
        ("One SQL statement of an import", "IMPORT_STATEMENT_CHARS"),
        ("Cells of a sheet that an import looks at", "IMPORT_SHEET_CELLS"),
        ("Tables of an import", "IMPORT_TABLES"),
        ("Processor time of a worker for reading a document", "IMPORT_CPU_SECONDS"),
        ("Imports of a workspace that are queued or running", "OPEN_IMPORTS"),
        ("A PEP 723 block of a program", "MAX_REQUIREMENTS_BLOCK_CHARS"),
    ),
    "Files of rows": (
        ("Rows of an XLSX sheet", "XLSX_SHEET_ROWS"),
        ("Columns of an XLSX sheet", "XLSX_SHEET_COLUMNS"),
        ("A cell of an XLSX sheet", "XLSX_CELL_CHARS"),
        ("Rows of one SQL statement, at most", "SQL_MAX_ROWS_PER_STATEMENT"),
    ),
    "Exports in parts": (
        ("Rows up to which an export is one file", "PARTS_FROM_ROWS"),
        ("Rows of a part, at least", "PART_MIN_ROWS"),
        ("Parts of an export", "MAX_PARTS"),
    ),
    "Pushes and connections": (
        ("Rows of one transaction at a database", "PUSH_CHUNK_ROWS"),
        ("Rows in doubt after a crash over HTTP", "HTTP_CHUNK_ROWS"),
        ("Rows of one request in batch mode", "HTTP_BATCH_ROWS"),
        ("Parallel requests of one push", "HTTP_MOST_PARALLEL"),
        ("A request template's body", "HTTP_TEMPLATE_BYTES"),
        ("How long connecting to a database may take", "TARGET_CONNECT_SECONDS"),
        ("How long a query for a field may take", "TARGET_QUERY_SECONDS"),
        ("How long stored answers from outside are used", "FETCHED_DAYS"),
        ("SQL statements before a push, and after it", "MAX_STATEMENTS"),
        ("One secret", "MAX_SECRET_CHARS"),
        ("Hosts that a secret may be sent to", "MAX_ALLOWED_HOSTS"),
        ("A SQLite file", "SQLITE_FILE_BYTES"),
        ("SQLite files of a workspace", "MAX_SQLITE_FILES"),
        ("All SQLite files of a workspace together", "SQLITE_WORKSPACE_BYTES"),
        ("What one transaction adds to a SQLite file", "SQLITE_GROWTH_BYTES"),
    ),
    "Scenarios and runs": (
        ("A program", "MAX_CODE_BYTES"),
        ("Time of a run, at least", "MIN_RUN_SECONDS"),
        ("Time of a run, at most", "MAX_RUN_SECONDS"),
        ("How long a call with `wait` blocks", "WAIT_SECONDS"),
        ("Memory of a run, all its processes together", "RUN_MEMORY_BYTES"),
        ("Processes and threads of a run", "RUN_PROCESSES"),
        ("One file that a run writes", "RUN_FILE_BYTES"),
        ("A run's log", "RUN_LOG_BYTES"),
        ("What a run leaves behind", "RUN_OUTPUTS_BYTES"),
        ("Files kept of one run", "MAX_OUTPUT_FILES"),
        ("Packages that a program asks for", "MAX_REQUIREMENTS"),
        ("Variables of a scenario", "MAX_VARIABLES"),
    ),
    "Workspace files": (
        (
            "All files, saved sets and key maps of a workspace, deleted files included",
            "MAX_WORKSPACE_FILES_BYTES",
        ),
        ("Files of a workspace", "MAX_WORKSPACE_FILES"),
        ("A file's name with its folders", "MAX_FILE_NAME_CHARS"),
    ),
    "People": (
        ("A password, at least", "PASSWORD_MIN_CHARS"),
        ("Wrong passwords before an account waits", "LOGIN_FAILURES"),
        ("A sign-in", "SESSION_DAYS"),
        ("An invitation", "INVITATION_DAYS"),
    ),
}


def value(name: str) -> str:
    """Return a limit of webapp/limits.py with its unit, which is the suffix of its name."""
    number = getattr(limits, name)
    unit = next((formatter for end, formatter in _UNITS if name.endswith(end)), lambda plain: f"{plain:,}")
    return unit(number)


_RETENTION_HEADINGS: Final = (
    "Logs of runs and pushes",
    "Files of exports",
    "Runs, pushes with their ledgers, exports",
)


def limits_page() -> str:
    """Return the page as Markdown."""
    plans = [
        (
            name.capitalize(),
            f"{one.requests_per_minute:,}",
            f"{one.rows_per_hour:,}",
            f"{one.rows_per_generation:,}",
            f"{limits.RUNS_AT_ONCE[name]:,}",
            f"{limits.RUNS_QUEUED[name]:,}",
        )
        for name, one in limits.PLANS.items()
    ]
    headings = (
        "Plan",
        "Requests per minute",
        "Rows per hour",
        "Rows per call",
        "Parallel runs",
        "Runs waiting",
    )
    parts = [
        "# Limits\n\nThe limits of a workspace depend on its plan. A request over a limit gets a "
        "[code](/docs/errors) with the number in `details`, and `Retry-After` where waiting helps.\n\n## Plans\n\n",
        table(headings, plans),
        "\nRequests are counted over any 60 seconds, rows over any hour. The numbers of Enterprise hold until a "
        "contract says others. Previews spend no rows. The page Limits and usage shows what is left, and so do "
        "the headers `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`.\n",
    ]
    stored = limits.STORED_JSON_BYTES.items()
    sizes = ", ".join(f"{size // limits.MB:,} MB on {name.capitalize()}" for name, size in stored)
    parts.append(
        "\n## Definitions and their versions\n\nEvery change of a template, dataset or scenario is a version. All "
        f"versions of a workspace, and the requests of its exports and pushes, take at most {sizes}, as JSON. Beyond "
        "that, saving answers `quota_exceeded`. What was deleted counts until it leaves the trash.\n"
    )
    retention = [
        (name.capitalize(), *(f"{days:,} days" for days in (one.log_days, one.file_days, one.work_days)))
        for name, one in limits.RETENTION.items()
    ]
    parts.append("\n## What is kept, and for how long\n\n" + table(("Plan", *_RETENTION_HEADINGS), retention))
    parts.append("\nCounted from the end of the work. [More of it](/docs/guide/operation).\n")
    for title, rows in TOLD.items():
        limit_rows = [(text(label), value(name)) for label, name in rows]
        parts.append(f"\n## {title}\n\n" + table(("What", "Limit"), limit_rows))
    return "".join(parts)
