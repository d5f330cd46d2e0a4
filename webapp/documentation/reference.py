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
        # code: (cause, solution)
        "invalid_request": (
            "The body is not JSON, or a header or a part of the URL is malformed.",
            "Correct the request. `details` contains the position of the syntax error.",
        ),
        "unsupported_version": (
            "The header `Api-Version` contains an unknown version.",
            (
                "Send one of the versions in `details.known`. Without the header, the version from the key's creation "
                "is used."
            ),
        ),
        "unauthenticated": (
            "The API key is missing, revoked, expired or unknown. `details.reason` says which.",
            "Send `Authorization: Bearer rws_…` with a valid key.",
        ),
        "forbidden": (
            "The key or role is valid but does not allow this. `details.needs` names the missing scope or role.",
            "Use a key with that scope, or ask a workspace admin for the role.",
        ),
        "https_required": (
            "The request was sent over plain HTTP, but the service requires HTTPS.",
            "Use the HTTPS address. The key was sent unencrypted, so replace it.",
        ),
        "read_only_connection": (
            "The request would write to a connection that is marked as read-only.",
            "Clear *Read-only* on the connection, or use another connection.",
        ),
        "target_not_allowed": (
            "The address of a target is in a blocked network.",
            "Use a public address, or ask your administrator to add the network to `TARGET_NETWORKS`.",
        ),
        "not_found": (
            "The object does not exist, was deleted, or belongs to another workspace.",
            "Check the ID. Deleted objects can be restored from the trash for a few days.",
        ),
        "method_not_allowed": (
            "The resource does not support this HTTP method.",
            "Use one of the methods in the `Allow` header.",
        ),
        "request_timeout": (
            "The headers did not arrive within 15 seconds, or the body arrived at less than 500 bytes per second.",
            "Send the request again over a faster connection. The server closes the slow connection.",
        ),
        "conflict": (
            "The name is already in use, or the state of the object does not allow this.",
            "Use another name. `details` contains the object with that name, or the state.",
        ),
        "in_use": (
            "Other objects, listed in `details.used_by`, use the object that should be deleted.",
            "Change or delete those objects first.",
        ),
        "run_finished": (
            "The export, push or run has finished, so it cannot be canceled.",
            "Nothing. Read its result instead.",
        ),
        "idempotency_in_progress": (
            "The first request with this `Idempotency-Key` is still in progress.",
            "Wait for the time in `Retry-After`, then repeat the request. It returns the first response.",
        ),
        "version_conflict": (
            "`If-Match` has an outdated ETag: the object was changed in the meantime.",
            "Read the object again, repeat the change, and send the new ETag.",
        ),
        "payload_too_large": (
            "The body is too large. `details.max_bytes` is the limit.",
            "Send a smaller body, or upload a file if there is a route for it.",
        ),
        "uri_too_long": (
            "The URL is longer than `details.max_bytes`.",
            "Send long values in the body, or request less.",
        ),
        "unsupported_media_type": (
            "The content type of the body is not supported here.",
            "Send JSON with `Content-Type: application/json`, or the type listed in the API reference.",
        ),
        "expectation_failed": (
            "The `Expect` header asks for something other than `100-continue`.",
            "Omit the header.",
        ),
        "validation_error": (
            (
                "The request contains invalid values. `details.fields` lists all of them, each with its path, code, "
                "message and often a hint."
            ),
            "Correct all listed values.",
        ),
        "row_limit_exceeded": (
            "The request exceeds the number of rows per call. `details.limit` is the maximum.",
            "Send several requests with `offset`. The same seed produces the same rows.",
        ),
        "leak_found": (
            (
                "The leak check found an original value in rows based on real data, before they were sent. `details` "
                "contains the sensitive `column`, the column it was `found_in` and the row, but never the value."
            ),
            "Mask the column in which it was found as well, or remove that column from the template.",
        ),
        "idempotency_mismatch": (
            "This `Idempotency-Key` was already used for a different request.",
            "Use a new key for each new request.",
        ),
        "driver_missing": (
            "The database driver for this kind of connection is not installed.",
            "Ask your administrator to install the extra in `details`.",
        ),
        "provider_missing": (
            "A field or request needs an AI model, but the project has no connection of type `ai`.",
            "Create one, as described in the hint. Any server with an OpenAI-compatible chat API works.",
        ),
        "rate_limited": (
            "Too many requests for the plan, or too many failed sign-ins or invalid keys.",
            "Wait for the time in `Retry-After`. The `X-RateLimit-*` headers contain the remaining requests.",
        ),
        "quota_exceeded": (
            (
                "The hourly rows, the queue of runs, the storage for files, or the storage for JSON (versions, "
                "variables, requests) is used up. `details` contains the limit and the usage."
            ),
            (
                "Wait for the time in `Retry-After`, request fewer rows, or delete files or objects that are no "
                "longer needed."
            ),
        ),
        "headers_too_large": (
            "The headers are too many or too large.",
            "Send fewer headers. Cookies of other services on the same host are the usual cause.",
        ),
        "internal_error": (
            "An error in the service. Its details are in the log, under the `X-Request-Id` of the response.",
            "Try again once. If it fails again, send the request ID to your administrator.",
        ),
        "not_implemented": (
            "The request uses a feature of HTTP that is not supported, such as a transfer coding.",
            "Send the body without an encoding, or in chunks.",
        ),
        "target_failed": (
            "A database, API or AI model rejected the request or failed. `details` contains its message.",
            "Fix the cause in that message. Verify the connection to see which step fails.",
        ),
        "token_request_failed": (
            "The OAuth 2.0 token endpoint of a connection did not issue a token.",
            "Check the endpoint URL, the client ID and the client secret.",
        ),
        "csrf_failed": (
            "An OData service rejected the CSRF token, even after it was renewed.",
            "Verify the connection. It names the cause, which is usually a lost session cookie or a proxy.",
        ),
        "unavailable": (
            "The service or one of its components is starting, stopping or overloaded.",
            "Try again after the time in `Retry-After`.",
        ),
        "target_timeout": (
            "A target did not respond in time.",
            "Try again, request less data, or increase the timeout of the connection.",
        ),
    }
)
_ERRORS_INTRODUCTION: Final = """\
# Error codes

Every error is a JSON object. Check `code` in programs: its meaning never changes. Messages are for
people and can change.

```json
{"error": {"code": "validation_error", "message": "fields[3].options.min: must be a number",
  "details": {"fields": [{"path": "fields[3].options.min", "code": "type", "message": "must be a number"}]}}}
```

Responses with status 429 and 503 have `Retry-After` in seconds. Every response has an `X-Request-Id`, which is also
written to the log of the service.

"""


def error_codes_page() -> str:
    """Return the page as Markdown: an overview, then a section for each code."""
    rows = [(f"[`{name}`](#{name})", str(status), text(message)) for name, (status, message) in CODES.items()]
    parts = [_ERRORS_INTRODUCTION, table(("Code", "Status", "Message"), rows)]
    for name, (status, message) in CODES.items():
        cause, solution = ADVICE[name]
        parts.append(
            f"\n## {code(name)}\n\n**{status} {HTTPStatus(status).phrase}.** {text(message)}\n\n"
            f"**Cause.** {text(cause)}\n\n**Solution.** {text(solution)}\n"
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
# Section: what is limited, and the name of the limit.
DOCUMENTED_LIMITS: Final = {
    "Requests": (
        ("Size of a JSON body", "MAX_BODY_BYTES"),
        ("Size of an uploaded file", "MAX_UPLOAD_BYTES"),
        ("Nesting depth of a JSON body", "MAX_JSON_DEPTH"),
        ("Arrays and objects of a JSON body", "MAX_JSON_CONTAINERS"),
        ("Fields of a form", "MAX_FORM_PARTS"),
        ("Request line: method, path and query", "MAX_REQUEST_LINE_BYTES"),
        ("Default page size (`limit`)", "PAGE_LIMIT_DEFAULT"),
        ("Maximum page size (`limit`)", "PAGE_LIMIT_MAX"),
        ("Size of a page as JSON; a page of large objects contains fewer of them", "PAGE_BYTES"),
        ("Length of a search text (`q`)", "MAX_QUERY_TEXT"),
        ("Length of an `Idempotency-Key`", "IDEMPOTENCY_KEY_CHARS"),
        ("Retention of the response for an `Idempotency-Key`", "IDEMPOTENCY_HOURS"),
        ("Unauthenticated requests per minute and IP address", "ADDRESS_REQUESTS_PER_MINUTE"),
        ("Errors listed in one response", "MAX_FAULTS"),
    ),
    "Templates and rows": (
        ("Length of a name", "MAX_NAME_CHARS"),
        ("Length of a description", "MAX_DESCRIPTION_CHARS"),
        ("Fields of a template", "MAX_FIELDS"),
        ("Nesting depth of fields", "MAX_NESTING"),
        ("Default number of rows", "DEFAULT_QUANTITY"),
        ("Rows of a preview", "PREVIEW_ROWS"),
        ("Length of a seed", "MAX_SEED_CHARS"),
        ("Array elements per row", "MAX_ARRAY_PRODUCT"),
        ("Columns of a table with `arrays: columns`", "MAX_FLAT_COLUMNS"),
        ("Length of a formula", "MAX_FORMULA_CHARS"),
        ("Values in a list", "MAX_LIST_VALUES"),
        ("Length of a regular expression or mask", "MAX_PATTERN_CHARS"),
        ("Length of a generated text", "MAX_TEXT_CHARS"),
        ("Rows with exact running totals", "TOTAL_ROWS"),
        ("Templates reachable through the relations of one template", "MAX_RELATED"),
        ("Templates in a dataset", "MAX_DATASET_TABLES"),
        (
            "Size of all templates of a dataset, or of those reachable through relations, as JSON",
            "RELATED_BYTES",
        ),
        ("Time in which deleted objects can be restored", "RESTORE_DAYS"),
    ),
    "Documents": (
        ("Memory for reading a document", "DOCUMENT_MEMORY_BYTES"),
        ("Processor time for reading a document", "DOCUMENT_CPU_SECONDS"),
        (
            "Processor time for reading an OData or OpenAPI document that a target sent",
            "METADATA_CPU_SECONDS",
        ),
        ("Elapsed time for reading a document", "DOCUMENT_SECONDS"),
        ("Nesting depth of JSON and YAML documents", "DOCUMENT_LEVELS"),
        ("Values in a YAML document, with aliases expanded", "DOCUMENT_YAML_VALUES"),
        ("Size of the result of reading a document", "DOCUMENT_RESULT_BYTES"),
        ("Documents read at the same time by one process", "DOCUMENTS_AT_ONCE"),
        ("Size of an OpenAPI document", "DOCUMENT_BYTES"),
        ("Size of a `$metadata` document", "ODATA_DOCUMENT_BYTES"),
        ("Length of one SQL statement in an import", "IMPORT_STATEMENT_CHARS"),
        ("Cells per sheet that an import examines", "IMPORT_SHEET_CELLS"),
        ("Tables per import", "IMPORT_TABLES"),
        ("Processor time of a worker for reading a document", "IMPORT_CPU_SECONDS"),
        ("Queued and running imports per workspace", "OPEN_IMPORTS"),
        ("Length of the PEP 723 block of a program", "MAX_REQUIREMENTS_BLOCK_CHARS"),
    ),
    "Files of rows": (
        ("Rows per XLSX sheet", "XLSX_SHEET_ROWS"),
        ("Columns per XLSX sheet", "XLSX_SHEET_COLUMNS"),
        ("Length of a cell in an XLSX sheet", "XLSX_CELL_CHARS"),
        ("Maximum rows per SQL statement", "SQL_MAX_ROWS_PER_STATEMENT"),
    ),
    "Exports in parts": (
        ("Rows up to which an export is always one file", "PARTS_FROM_ROWS"),
        ("Minimum rows per part", "PART_MIN_ROWS"),
        ("Parts per export", "MAX_PARTS"),
    ),
    "Pushes and connections": (
        ("Rows per database transaction", "PUSH_CHUNK_ROWS"),
        ("Rows with an unknown result after a crash (HTTP targets)", "HTTP_CHUNK_ROWS"),
        ("Rows per request in batch mode", "HTTP_BATCH_ROWS"),
        ("Parallel requests per push", "HTTP_MAX_PARALLEL"),
        ("Size of a request template's body", "HTTP_TEMPLATE_BYTES"),
        ("Timeout for connecting to a database", "TARGET_CONNECT_SECONDS"),
        ("Timeout for a field's query", "TARGET_QUERY_SECONDS"),
        ("Time for which stored external values are used", "FETCHED_DAYS"),
        ("SQL statements before a push, and after it", "MAX_STATEMENTS"),
        ("Length of a secret", "MAX_SECRET_CHARS"),
        ("Allowed hosts per secret", "MAX_ALLOWED_HOSTS"),
        ("Size of a SQLite file", "SQLITE_FILE_BYTES"),
        ("SQLite files per workspace", "MAX_SQLITE_FILES"),
        ("Total size of the SQLite files of a workspace", "SQLITE_WORKSPACE_BYTES"),
        ("Growth of a SQLite file per transaction", "SQLITE_GROWTH_BYTES"),
    ),
    "Scenarios and runs": (
        ("Size of a program", "MAX_CODE_BYTES"),
        ("Minimum time limit of a run", "MIN_RUN_SECONDS"),
        ("Maximum time limit of a run", "MAX_RUN_SECONDS"),
        ("Maximum time that a request with `wait` waits", "WAIT_SECONDS"),
        ("Memory of a run (all processes)", "RUN_MEMORY_BYTES"),
        ("Processes and threads of a run", "RUN_PROCESSES"),
        ("Size of a file that a run writes", "RUN_FILE_BYTES"),
        ("Size of a run's log", "RUN_LOG_BYTES"),
        ("Total size of a run's output files", "RUN_OUTPUTS_BYTES"),
        ("Output files per run", "MAX_OUTPUT_FILES"),
        ("Packages required by a program", "MAX_REQUIREMENTS"),
        ("Variables per scenario", "MAX_VARIABLES"),
    ),
    "Workspace files": (
        (
            "Total size of files, saved sets and key maps of a workspace, including deleted files",
            "MAX_WORKSPACE_FILES_BYTES",
        ),
        ("Files per workspace", "MAX_WORKSPACE_FILES"),
        ("Length of a file's path", "MAX_FILE_NAME_CHARS"),
    ),
    "People": (
        ("Minimum length of a password", "PASSWORD_MIN_CHARS"),
        ("Failed sign-ins before an account is locked for a while", "LOGIN_FAILURES"),
        ("Lifetime of a session", "SESSION_DAYS"),
        ("Lifetime of an invitation", "INVITATION_DAYS"),
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
            f"{plan.requests_per_minute:,}",
            f"{plan.rows_per_hour:,}",
            f"{plan.rows_per_generation:,}",
            f"{limits.RUNS_AT_ONCE[name]:,}",
            f"{limits.RUNS_QUEUED[name]:,}",
        )
        for name, plan in limits.PLANS.items()
    ]
    headings = (
        "Plan",
        "Requests per minute",
        "Rows per hour",
        "Rows per call",
        "Parallel runs",
        "Queued runs",
    )
    parts = [
        "# Limits\n\nThe limits of a workspace depend on its plan. A request that exceeds a limit fails with "
        "an [error code](/docs/errors) and the limit in `details`. `Retry-After` is set if waiting helps.\n\n"
        "## Plans\n\n",
        table(headings, plans),
        "\nRequests are counted in a sliding window of 60 seconds, rows in a sliding window of one hour. Enterprise "
        "limits are defaults that a contract can change. Previews do not count. The remaining requests and rows "
        "are shown on the page Limits and usage, and in the headers `X-RateLimit-Limit`, `X-RateLimit-Remaining` "
        "and `X-RateLimit-Reset`.\n",
    ]
    stored = limits.STORED_JSON_BYTES.items()
    sizes = ", ".join(f"{size // limits.MB:,} MB on {name.capitalize()}" for name, size in stored)
    parts.append(
        "\n## Definitions and their versions\n\nEvery change of a template, dataset or scenario creates a version. "
        f"The total size of all versions in a workspace and of the requests of its exports and pushes is limited to "
        f"{sizes}, as JSON. Beyond that, saving fails with `quota_exceeded`. Deleted objects count until they are "
        "removed from the trash.\n"
    )
    retention = [
        (name.capitalize(), *(f"{days:,} days" for days in (item.log_days, item.file_days, item.work_days)))
        for name, item in limits.RETENTION.items()
    ]
    parts.append("\n## Retention\n\n" + table(("Plan", *_RETENTION_HEADINGS), retention))
    parts.append(
        "\nCounted from the end of the run, push or export. See [operation](/docs/guide/operation).\n"
    )
    for title, rows in DOCUMENTED_LIMITS.items():
        limit_rows = [(text(label), value(name)) for label, name in rows]
        parts.append(f"\n## {title}\n\n" + table(("What", "Limit"), limit_rows))
    return "".join(parts)
