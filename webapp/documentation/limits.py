"""The page of limits: the plans, and the limits of webapp/limits.py that users can reach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from webapp import limits
from webapp.documentation.markdown import table, text


def _bytes(number: float) -> str:
    if number % 1024:
        return f"{number:,.0f} bytes"
    whole, unit = (number / 1024, "kB") if number < limits.MB else (number / limits.MB, "MB")
    return f"{whole:,.0f} {unit}"


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
    unit = next((told for end, told in _UNITS if name.endswith(end)), lambda plain: f"{plain:,}")
    return unit(number)


_KEPT: Final = ("Logs of runs and pushes", "Files of exports", "Runs, pushes with their ledgers, exports")


def _kept() -> list[tuple[str, ...]]:
    """Return how long each plan keeps finished work."""
    return [
        (name.capitalize(), *(f"{days:,} days" for days in (one.log_days, one.file_days, one.work_days)))
        for name, one in limits.RETENTION.items()
    ]


def page() -> str:
    """The page as Markdown."""
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
    heads = ("Plan", "Requests per minute", "Rows per hour", "Rows per call", "Parallel runs", "Runs waiting")
    parts = [
        "# Limits\n\nThe limits of a workspace depend on its plan. A request over a limit gets a "
        "[code](/docs/errors) with the number in `details`, and `Retry-After` where waiting helps.\n\n## Plans\n\n",
        table(heads, plans),
        "\nRequests are counted over any 60 seconds, rows over any hour. The numbers of Enterprise hold until a "
        "contract says others. Previews spend no rows. The page Limits and usage shows what is left, and so do "
        "the headers `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`.\n",
    ]
    stored = limits.STORED_JSON_BYTES.items()
    most = ", ".join(f"{size // limits.MB:,} MB on {name.capitalize()}" for name, size in stored)
    parts.append(
        "\n## Definitions and their versions\n\nEvery change of a template, dataset or scenario is a version. All "
        f"versions of a workspace, and the requests of its exports and pushes, take at most {most}, as JSON. Beyond "
        "that, saving answers `quota_exceeded`. What was deleted counts until it leaves the trash.\n"
    )
    parts.append("\n## What is kept, and for how long\n\n" + table(("Plan", *_KEPT), _kept()))
    parts.append("\nCounted from the end of the work. [More of it](/docs/guide/operation).\n")
    for title, rows in TOLD.items():
        told = [(text(what), value(name)) for what, name in rows]
        parts.append(f"\n## {title}\n\n" + table(("What", "Limit"), told))
    return "".join(parts)
