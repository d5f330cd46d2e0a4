"""The documentation as programs that read it want it: its list of pages as Markdown, and /llms.txt (llmstxt.org)."""

from __future__ import annotations

from webapp.documentation import registry

BLURB = (
    "Rowsmith makes test data. One template of typed fields becomes rows: in files, over REST, in databases, REST APIs"
    " and OData services, or in Python programs that run on its workers. The same version and seed give the same bytes."
)


def listing(origin: str = "") -> str:
    """Every page with its address as Markdown, by group."""
    parts = []
    for group in registry.GROUPS:
        parts.append(f"\n## {group.title}\n\n")
        parts += [f"- [{one.title}]({origin}{_address(one)}): {one.about}\n" for one in group.entries]
    return "".join(parts)


def _address(entry: registry.Entry) -> str:
    return entry.href if entry.plain else f"{entry.href}.md"


def front() -> str:
    """The first page as Markdown."""
    return f"# Rowsmith: documentation\n\n{BLURB}\n{listing()}"


def llms_txt(origin: str) -> str:
    """/llms.txt: title, blurb, and links to the pages as Markdown."""
    return (
        f"# Rowsmith\n\n> {BLURB}\n\n"
        f"[{origin}/docs]({origin}/docs) is the documentation for people; each of its pages is Markdown at its address"
        f" with `.md`. [{origin}/openapi.json]({origin}/openapi.json) describes the API for machines.\n"
        f"{listing(origin)}"
    )
