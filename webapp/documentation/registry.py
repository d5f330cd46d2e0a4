"""What the documentation consists of, in the order in which it is read: the one list of its pages.

A page comes from a Markdown file of the project or is written from data (`written`); either way it is Markdown
first, so that it can be read as such, searched, and drawn by one renderer. A file under docs/guide or
docs/reference without its line here fails a test.
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
    """Pages that stand together in the list."""

    title: str
    entries: tuple[Entry, ...]


def _guide(name: str, title: str, about: str) -> Entry:
    return Entry(f"guide/{name}", title, about, f"docs/guide/{name}.md")


def _reference(name: str, title: str, about: str) -> Entry:
    return Entry(f"reference/{name}", title, about, f"docs/reference/{name}.md")


GROUPS: Final = (
    Group(
        "Making rows",
        (
            _guide("start", "Ten-minute start", "From an empty folder to a file, an API call and a push."),
            _guide(
                "relations", "Relations", "References, children by cardinality, totals, rows inside rows."
            ),
            _guide("import", "Files and schemas", "Templates from CSV, SQL, JSON Schema and others."),
            _guide("determinism", "Determinism", "What stays equal, and why: seeds, versions, anchors."),
            _guide("datasets", "Datasets", "Tables generated together: counts, versions, files."),
            _guide("bad-data", "Bad data on purpose", "Wrong values of ten kinds, and the answer key."),
            _guide("outside", "Values from outside", "Existing keys, answers of queries and of APIs."),
            _guide("real-data", "Real data", "Rows out of files and databases, masked, checked, in subsets."),
            _guide("masking", "Masking", "Personal columns found, real values made safe, keys rotated."),
            _guide("ai", "AI", "Values that a model writes, templates from a description."),
        ),
    ),
    Group(
        "Sending rows",
        (
            _guide("sending", "Into tables", "Mapping, dry run, repair and retry, undo."),
            _guide("http", "Over HTTP", "REST, OData and OpenAPI: one row, one request."),
            _guide("pushes", "The ledger", "What holds after a kill, a lost connection or a restart."),
            _guide("notices", "When work ends", "Webhooks, mail and notifications of the browser."),
        ),
    ),
    Group(
        "Programs",
        (
            _guide("scenarios", "Scenarios", "Python programs that the service keeps and runs."),
            _guide("runs", "Runs", "Triggers, live logs, outputs, limits."),
            _guide("files", "Workspace files", "What programs read and leave behind."),
            _guide("python", "Python", "The package rowsmith, in scenarios and outside."),
            _guide("cli", "Command line", "The command rowsmith: rows, pushes, templates in git."),
            _guide("typescript", "TypeScript", "The package for Node, browsers, Deno and Bun."),
            _guide("mcp", "Agents (MCP)", "What an agent can do, and what it cannot."),
            _guide("coming-from-datamaker", "Coming from DataMaker", "What to change, which answers differ."),
        ),
    ),
    Group(
        "Working together",
        (
            _guide("people", "People and projects", "Roles, teams, projects, keys, the trash."),
            _guide("signing-in", "Signing in", "Passwords, OpenID Connect, a second factor, sessions."),
        ),
    ),
    Group(
        "API",
        (
            Entry("api", "API reference", "Every operation with curl, Python and TypeScript.", plain=True),
            Entry("postman.json", "Postman collection", "The same operations, to import.", plain=True),
            Entry("errors", "Error codes", "Every code: its status, when it comes, what to do."),
            Entry("limits", "Limits", "What a plan allows, and what one request may hold."),
        ),
    ),
    Group(
        "Reference",
        (
            Entry(
                "field-types",
                "Field types",
                "Every type with its options and rows made just now.",
                opens=True,
            ),
            _reference("formulas", "Formulas", "The language of derived fields, every function."),
            _reference("exports", "Exports", "Files made by workers, whole or in parts."),
            _reference("connections", "Connections", "Kinds, settings, verification, networks."),
            _reference("http-targets", "HTTP targets", "Authentication, tokens, time limits, retries."),
            _reference("scenarios", "Scenarios", "The objects and calls of scenarios."),
            _reference("runs", "Runs", "The objects and calls of runs."),
            _reference(
                "deviations", "Deviations", "Where Rowsmith deviates from its specification, and why."
            ),
            _reference("secrets", "Secrets", "Named secrets, and the hosts they may be sent to."),
            _reference("sandbox", "Sandbox", "What a program can reach, and what not."),
            _reference("python", "Python package", "Clients, templates, what comes back, errors."),
            _reference("python-api", "Python: Api", "Templates, rows, pushes, scenarios and more."),
            _reference("python-workspace", "Python: workspace", "People, keys, secrets, webhooks."),
            _reference("python-fields", "Python: fields", "A class for each type."),
            _reference("rowsmith-command", "The command rowsmith", "Every command, option and exit code."),
        ),
    ),
    Group(
        "Running the service",
        (
            _reference("cli", "The command ./rowsmith", "Starting, testing, locking, keys."),
            _reference("settings", "Settings", "Every environment variable."),
            _guide(
                "audit", "Audit trail and usage", "Who did what, whether the trail is whole, what was used."
            ),
            _guide("backup", "Backup and upgrade", "Backup, restore, doctor, upgrade, and the way back."),
            _guide(
                "operation", "Operation", "Health, status page, metrics, logs, what is kept for how long."
            ),
            Entry(
                "runbook",
                "When things go wrong",
                "Twelve troubles: symptom, cause, what to do.",
                "docs/runbook.md",
            ),
            _guide("scale", "Beyond one machine", "Several hosts, exports in parts, Spark."),
            Entry("threat-model", "Threats", "Who guards what, and how.", "docs/threat-model.md"),
            Entry("asvs", "ASVS 1 to 8", "OWASP's standard, level 2, by requirement.", "docs/asvs.md"),
            Entry("asvs-9", "ASVS 9 to 17", "The other chapters.", "docs/asvs-9.md"),
            Entry("promises", "Promises", "What holds, and the tests that show it.", "docs/promises.md"),
            Entry("speed", "Speed", "Measured beside other generators.", "docs/speed.md"),
            Entry(
                "speed-types", "Speed by type", "A value of each type, beside Faker.", "docs/speed-types.md"
            ),
            Entry(
                "soak",
                "Hours of load",
                "What is measured under mixed load, and what came of it.",
                "docs/soak.md",
            ),
            Entry("adr", "Decisions", "One page for each thing one would question."),
            Entry("changelog", "Changes", "What a user can notice, newest first.", "CHANGELOG.md"),
        ),
    ),
)
ENTRIES: Final = tuple(entry for group in GROUPS for entry in group.entries)
