"""The list of all pages of the documentation, in reading order.

A page comes from a Markdown file of the project or is generated from data (`written`). In both cases it is Markdown
first, so that it can be read as such, searched, and rendered in one way. A file in docs/guide or docs/reference that is
not listed here fails a test.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Entry:
    """One page: its address below /docs, its name in the list of pages, what it is about, and its file below the
    project's folder. Without a file it is written from data, or (`plain`) is no page of Markdown. `opens`: the pages
    below it are listed under it while one of them is read."""

    address: str
    title: str
    about: str
    file: str = ""
    plain: bool = False
    opens: bool = False

    @property
    def href(self) -> str:
        """Its address in the application."""
        return f"/docs/{self.address}"


@dataclass(frozen=True, slots=True)
class Group:
    """A group of pages in the list."""

    title: str
    entries: tuple[Entry, ...]


def _guide(name: str, title: str, about: str) -> Entry:
    return Entry(f"guide/{name}", title, about, f"docs/guide/{name}.md")


def _reference(name: str, title: str, about: str) -> Entry:
    return Entry(f"reference/{name}", title, about, f"docs/reference/{name}.md")


GROUPS: Final = (
    Group(
        "Generate data",
        (
            _guide("start", "Get started", "From an empty folder to a file, an API call and a push."),
            _guide("install", "Install as a package", "The service without a clone, as a Python package."),
            _guide("relations", "Relations", "References, children by cardinality, totals, nested rows."),
            _guide("import", "Import", "Templates from CSV, SQL, JSON Schema and other formats."),
            _guide("determinism", "Determinism", "Reproduce the same data: seeds, versions, anchors."),
            _guide("fill", "Fill a database", "Rows for all tables of a database in one action."),
            _guide("datasets", "Datasets", "Tables generated together: counts, versions, files."),
            _guide("bad-data", "Invalid data", "Ten kinds of errors for negative tests, with an answer key."),
            _guide("outside", "External values", "Values from files, existing keys, queries and APIs."),
            _guide("real-data", "Real data", "Rows from files and databases: masking, leak check, subsets."),
            _guide("masking", "Masking", "Find personal columns, mask real values, rotate keys."),
            _guide("ai", "AI", "Values and templates written by a model."),
        ),
    ),
    Group(
        "Push data",
        (
            _guide("sending", "Push to a database", "Mapping, dry run, retry and undo."),
            _guide("http", "Push over HTTP", "REST, OData and OpenAPI: one request per row."),
            _guide(
                "pushes", "Push results", "Row states, and what happens after a crash or a lost connection."
            ),
            _guide("schedules", "Schedules", "Repeat exports and pushes."),
            _guide("notices", "Notifications", "Webhooks, email and browser notifications."),
        ),
    ),
    Group(
        "Scenarios and clients",
        (
            _guide("scenarios", "Scenarios", "Python programs that Rowsmith stores and runs."),
            _guide("runs", "Runs", "Start runs, follow their logs, outputs and limits."),
            _guide("files", "Workspace files", "Input and output files of scenarios."),
            _guide("python", "Python", "The package rowsmith, in scenarios and other programs."),
            _guide("cli", "Command line", "The command rowsmith: rows, pushes, templates in git."),
            _guide("typescript", "TypeScript", "The package for Node, browsers, Deno and Bun."),
            _guide("mcp", "AI agents (MCP)", "Tools, options and restrictions of the MCP server."),
            _guide(
                "coming-from-datamaker",
                "Migrate from DataMaker",
                "What to change, and which responses differ.",
            ),
        ),
    ),
    Group(
        "People and access",
        (
            _guide("people", "People and projects", "Roles, teams, projects, API keys, the trash."),
            _guide("signing-in", "Sign-in", "Passwords, OpenID Connect, two-factor sign-in, sessions."),
        ),
    ),
    Group(
        "API",
        (
            Entry("api", "API reference", "Every operation with curl, Python and TypeScript.", plain=True),
            Entry(
                "postman.json",
                "Postman collection",
                "The operations of the API as a collection to import.",
                plain=True,
            ),
            Entry("errors", "Error codes", "Every code with its status, its cause and a solution."),
            Entry("limits", "Limits", "Limits of plans and of single requests."),
        ),
    ),
    Group(
        "Reference",
        (
            Entry(
                "field-types",
                "Field types",
                "Every type with its options and sample rows.",
                opens=True,
            ),
            Entry("locales", "Locales", "Ten sample rows for every locale, and missing values.", opens=True),
            _reference(
                "other-generators", "Other generators", "Types for names of Faker, faker-js and Mockaroo."
            ),
            _reference("glossary", "Glossary", "The terms that Rowsmith uses."),
            _reference("formulas", "Formulas", "The formula language and all its functions."),
            _reference("exports", "Exports", "Requests, parts, retry, manifest and quota."),
            _reference("connections", "Connections", "Kinds, settings, verification, networks."),
            _reference("http-targets", "HTTP targets", "Authentication, tokens, timeouts, retries."),
            _reference("scenarios", "Scenarios", "Objects, requests and error codes of scenarios."),
            _reference("runs", "Runs", "Objects, requests, error codes and variables of runs."),
            _reference(
                "deviations", "Deviations", "Where Rowsmith deviates from its specification, and why."
            ),
            _reference("secrets", "Secrets", "Named secrets, and the hosts they may be sent to."),
            _reference("sandbox", "Sandbox", "What a scenario program can access, and its limits."),
            _reference("python", "Python package", "Clients, templates, return values, errors."),
            _reference("python-api", "Python: Api", "Templates, rows, pushes, scenarios and more."),
            _reference("python-workspace", "Python: workspace", "Members, keys, secrets, webhooks."),
            _reference("python-fields", "Python: fields", "One class per field type."),
            _reference("rowsmith-command", "The rowsmith command", "Every command, option and exit status."),
        ),
    ),
    Group(
        "Run the service",
        (
            _reference("cli", "The ./rowsmith command", "Starting, managing and testing a service."),
            _reference("settings", "Settings", "All environment variables."),
            _guide(
                "audit", "Audit log and usage", "Who did what, whether the log is complete, what was used."
            ),
            _guide("backup", "Backup and upgrade", "Backup, restore, doctor and upgrade."),
            _guide(
                "operation",
                "Monitoring and operation",
                "Health checks, status page, metrics, logs, retention.",
            ),
            Entry(
                "runbook", "Runbook", "Twelve problems: symptoms, causes and solutions.", "docs/runbook.md"
            ),
            _guide("scale", "Several machines", "Several hosts, exports in parts, Spark."),
            Entry(
                "threat-model",
                "Threat model",
                "Threats, and the protection against each of them.",
                "docs/threat-model.md",
            ),
            Entry("asvs", "ASVS 1 to 8", "OWASP ASVS level 2, requirement by requirement.", "docs/asvs.md"),
            Entry("asvs-9", "ASVS 9 to 17", "The other chapters of the standard.", "docs/asvs-9.md"),
            Entry(
                "promises",
                "Guarantees",
                "What Rowsmith guarantees, and the tests that verify it.",
                "docs/promises.md",
            ),
            Entry("speed", "Speed", "Benchmarks next to other generators.", "docs/speed.md"),
            Entry(
                "speed-types",
                "Speed by type",
                "The time per value of each type, compared with Faker.",
                "docs/speed-types.md",
            ),
            Entry(
                "soak",
                "Load test",
                "How to test Rowsmith under load for hours, with results.",
                "docs/soak.md",
            ),
            Entry("adr", "Decisions", "Why Rowsmith works as it does.", "docs/adr/README.md"),
            Entry("changelog", "Changelog", "What users can notice, newest first.", "CHANGELOG.md"),
        ),
    ),
)
ENTRIES: Final = tuple(entry for group in GROUPS for entry in group.entries)
