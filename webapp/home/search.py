"""Search over objects, actions, field types and the documentation, for the search box of every page.

A name fits if every word of the query begins one of its words, is inside it, or is one of its words with a single
typing error. The last four hundred objects are compared with typing errors; of the others, those that contain the
query. Only the first words of a query and of a name are compared, so that long names cannot occupy the process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from flask import Flask
from markupsafe import Markup, escape
from sqlalchemy import String, literal, union_all

from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.connections.models import Connection, Endpoint
from webapp.datasets.models import Dataset
from webapp.documentation import pages
from webapp.documentation import search as documentation
from webapp.extensions import db
from webapp.files.models import WorkspaceFile
from webapp.pagination import contains
from webapp.row_templates.models import Template
from webapp.row_templates.services import catalogue
from webapp.scenarios.models import Scenario
from webapp.starters.catalogue import STARTERS

_OBJECTS: Final = (
    ("Template", Template, "/templates/", "template"),
    ("Dataset", Dataset, "/datasets/", "dataset"),
    ("Scenario", Scenario, "/scenarios/", "scenario"),
    ("Connection", Connection, "/connections/", "plug"),
    ("Endpoint", Endpoint, "/endpoints/", "endpoint"),
    ("File", WorkspaceFile, "/workspace/file/", "file"),
)
Part = Literal["all", "fast", "docs"]
_RECENT: Final = 400  # objects of each kind that are compared with typing errors
_QUERY_WORDS: Final = 8  # different words of a query that are compared; chosen
_NAME_WORDS: Final = 16  # different words of a name that are compared; chosen
_MAX_OBJECTS: Final = 6
_MAX_OTHERS: Final = 4
_WORD: Final = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One result: where it leads, its icon, its name with the words marked, and what it is."""

    href: str
    icon: str
    name: Markup
    what: str


@dataclass(frozen=True, slots=True)
class Group:
    """Results of one kind."""

    title: str
    hits: tuple[SearchResult, ...]


@dataclass(frozen=True, slots=True)
class Action:
    """Something to do or a page to open, the words that find it in addition to its name, and the scope it takes."""

    name: str
    href: str
    icon: str
    scope: str
    keywords: str = ""


ACTIONS: Final = (
    Action("New template", "/templates/new", "plus", "write", "create add blank"),
    Action(
        "Import a file or schema", "/import", "upload", "write", "csv sql json openapi excel ddl mockaroo"
    ),
    Action("Generate a template with AI", "/templates/describe", "spark", "write", "describe model"),
    Action("Mask real data", "/templates/masked", "mask", "write", "anonymize copy personal"),
    Action("New dataset", "/datasets/new", "plus", "write", "create add tables"),
    Action(
        "Connect a database or API",
        "/connections/new",
        "plug",
        "write",
        "new connection postgresql mysql odata rest",
    ),
    Action("New endpoint", "/endpoints/new", "plus", "write", "request http"),
    Action("New scenario", "/scenarios/new", "plus", "write", "program python script"),
    Action("Upload a file", "/workspace/files", "upload", "write", "files"),
    Action("Open starters", "/starters", "template", "read", "examples samples shop crm hr iot sap payments"),
    Action("Show failed jobs", "/activity?status=failed&days=0", "alert", "read", "errors activity"),
    Action("Show running jobs", "/activity?status=running", "pulse", "read", "activity exports pushes runs"),
    Action("Create an API key", "/api-keys", "key", "member", "token secret"),
    Action("Invite a member", "/invitations", "users", "admin", "people team"),
    Action("Profile and theme", "/me", "user", "member", "password dark light settings keyboard"),
    Action("Secrets", "/secrets", "key", "secrets", "settings"),
    Action("Webhooks", "/webhooks", "link", "write", "notifications settings"),
    Action("Trash", "/trash", "trash", "member", "deleted restore undo"),
    Action("Limits and usage", "/usage", "gauge", "member", "plan quota rows"),
    Action("Audit log", "/audit", "list", "admin", "history trail"),
    Action("Status", "/status", "pulse", "member", "health workers"),
)


def search(app: Flask, actor: Actor, q: str, part: Part = "all") -> list[Group]:
    """Return the results for a query, by kind; for an empty one the actions. With `>` in front, only actions.

    The first search in the documentation reads all of it, so a page requests it separately: `part` is `docs`, or
    `fast` for everything else.
    """
    only_actions = q.lstrip().startswith(">")
    words = query_words(q)
    has_words = bool(words) and not only_actions
    groups = []
    if has_words and part != "docs":
        groups.append(Group("Objects", _objects(actor, q.strip(), words)))
    if part != "docs":
        actions = _actions(actor, words)
        groups.append(Group("Actions", actions[:_MAX_OTHERS] if has_words else actions))
    if has_words and part != "docs":
        types = [
            SearchResult(
                f"/docs/reference/field-types#{found['name']}",
                "hash",
                highlight(found["label"], words),
                "Field type",
            )
            for found in catalogue.search(q)[:_MAX_OTHERS]
        ]
        groups.append(Group("Field types", tuple(types)))
    if has_words and part != "fast":
        docs = [
            SearchResult(found.href, "book", found.heading, f"Docs: {found.page}")
            for found in documentation.search(app, q)
            if "/field-types" not in found.href
        ][:_MAX_OTHERS]
        if not docs:
            ranked = ((rank(page.title, words), page) for page in pages.all_pages().values())
            matches = sorted(
                ((score, page) for score, page in ranked if score is not None), key=lambda pair: pair[0]
            )
            docs = [
                SearchResult(page.href, "book", highlight(page.title, words), "Docs")
                for _, page in matches[:_MAX_OTHERS]
            ]
        groups.append(Group("Docs", tuple(docs)))
    return [group for group in groups if group.hits]


def query_words(q: str) -> list[str]:
    """Return the words of a query that are compared with names."""
    return _distinct_words(q, _QUERY_WORDS)


def _distinct_words(text: str, limit: int) -> list[str]:
    """Return the first `limit` different words of a text in lower case."""
    return list(dict.fromkeys(_WORD.findall(text.casefold())))[:limit]


def rank(name: str, words: Sequence[str]) -> int | None:
    """Return how well a name fits all words, 0 best; None if it does not. See the module."""
    low = name.casefold()
    parts = _distinct_words(name, _NAME_WORDS)
    worst = 0
    for word in words:
        if word in parts:
            score = 0
        elif any(part.startswith(word) for part in parts):
            score = 1
        elif word in low:
            score = 2
        elif any(
            catalogue.is_near_match(word, part) or catalogue.is_near_match(word, part[: len(word)])
            for part in parts
        ):
            score = 3
        else:
            return None
        worst = max(worst, score)
    return worst


def _objects(actor: Actor, text: str, words: Sequence[str]) -> tuple[SearchResult, ...]:
    selects = []
    for index, (_, model, _, _) in enumerate(_OBJECTS):
        table: Any = model
        statement = tenancy.listing(actor, table).with_only_columns(
            literal(index).label("kind"),
            table.id.label("id"),
            table.name.cast(String).label("name"),
            maintain_column_froms=True,
        )
        # Each in a subquery of its own: SQLite takes a LIMIT only at the end of a union.
        recent = statement.order_by(table.id.desc()).limit(_RECENT).subquery()
        matching = (
            statement.where(contains(table.name, text)).order_by(table.id.desc()).limit(_RECENT).subquery()
        )
        selects += [recent.select(), matching.select()]
    found: dict[str, tuple[int, int, str]] = {}
    for kind, object_id, name in db.session.execute(union_all(*selects)):
        score = rank(name, words)
        if score is not None:
            found[object_id] = (score, kind, name)
    best = sorted(found.items(), key=lambda pair: (pair[1][0], len(pair[1][2]), pair[1][2].casefold()))
    return tuple(
        SearchResult(
            f"{_OBJECTS[kind][2]}{object_id}", _OBJECTS[kind][3], highlight(name, words), _OBJECTS[kind][0]
        )
        for object_id, (_, kind, name) in best[:_MAX_OBJECTS]
    )


def _actions(actor: Actor, words: Sequence[str]) -> tuple[SearchResult, ...]:
    every = [
        *ACTIONS,
        *(
            Action(
                f"Open the starter {starter.name}",
                f"/starters/{starter.key}",
                starter.icon,
                "read",
                starter.about,
            )
            for starter in STARTERS.values()
        ),
    ]
    allowed = [action for action in every if actor.can(action.scope)]
    if not words:
        return tuple(SearchResult(action.href, action.icon, escape(action.name), "") for action in allowed)
    matches = []
    for action in allowed:
        score = rank(action.name, words)
        more = rank(f"{action.name} {action.keywords}", words)
        if score is not None or more is not None:
            matches.append((score if score is not None else 4 + (more or 0), action))
    return tuple(
        SearchResult(action.href, action.icon, highlight(action.name, words), "")
        for _, action in sorted(matches, key=lambda pair: pair[0])
    )


def highlight(name: str, words: Iterable[str]) -> Markup:
    """Return a name as HTML with the words marked where they occur."""
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    pieces = re.split(f"({pattern})", name, flags=re.IGNORECASE) if pattern else [name]
    return Markup("").join(
        Markup("<mark>{}</mark>").format(piece) if index % 2 else escape(piece)
        for index, piece in enumerate(pieces)
    )
