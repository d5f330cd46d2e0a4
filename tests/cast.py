"""The people of the tests, each with a meaning, and ways to speak to the service as one of them.

Workspace **Acme** (plan Enterprise) has the teams Blue (projects Main and Side) and Red (project Red). Of it are

- Olivia, its owner; Adam, an admin; Edith, an editor; Victor, a viewer: each of the whole workspace;
- Tessa, an editor who is only in team Blue, and sees nothing of Red.

Workspace **Mallory Inc** (plan Free) belongs to Mallory: she is its owner, and has no permissions at Acme. Nora has an
account without memberships. All except Nora have an API key, for the project Main or for Mallory's project.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from webapp.access import actors
from webapp.access.models import User
from webapp.accounts.services import api_keys, sign_in, workspaces
from webapp.accounts.services import people as accounts_people
from webapp.accounts.services.sign_in import Visitor
from webapp.extensions import db

PASSWORD = "a horse of another colour"
VERSION = "2026-11-21"


@dataclass(frozen=True)
class Person:
    """A user: their account, and one of their API keys."""

    name: str
    user_id: str
    email: str
    workspace_id: str
    key: str = ""
    key_id: str = ""


@dataclass(frozen=True)
class Cast:
    """Everybody, and where they are."""

    acme: str
    mallory_inc: str
    blue: str
    red: str
    main: str
    side: str
    red_project: str
    mallorys: str
    people: dict[str, Person] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Person:
        try:
            return self.people[name]
        except KeyError:
            raise AttributeError(name) from None


def gather() -> Cast:
    """Make everybody, in an application context on an empty database."""
    system = actors.system_actor()
    users = {}
    stored = None
    for name in ("olivia", "adam", "edith", "victor", "tessa", "mallory", "nora"):
        user = accounts_people.create_user(
            system, f"{name}@example.org", name=name.title(), password=None if stored else PASSWORD
        )
        stored = stored or user.password_hash  # hashed once: argon2 is slow on purpose
        user.password_hash = stored
        db.session.commit()
        users[name] = user
    acme = workspaces.create_workspace(system, "Acme", plan="enterprise", owner=users["olivia"])
    other = workspaces.create_workspace(system, "Mallory Inc", plan="free", owner=users["mallory"])
    here, there = actors.system_actor(acme.id), actors.system_actor(other.id)
    blue, red = workspaces.create_team(here, "Blue"), workspaces.create_team(here, "Red")
    main = workspaces.create_project(here, "Main", team_id=blue.id)
    side = workspaces.create_project(here, "Side", team_id=blue.id)
    red_project = workspaces.create_project(here, "Red", team_id=red.id)
    mallorys = workspaces.create_project(there, "Mine", team_id=workspaces.create_team(there, "Only").id)
    for name, role in (("adam", "admin"), ("edith", "editor"), ("victor", "viewer")):
        accounts_people.add_member(here, users[name], role)
    accounts_people.add_member(here, users["tessa"], "editor", team_id=blue.id)
    found: dict[str, Person] = {}
    for name, user in users.items():
        workspace = there if name == "mallory" else here
        project = mallorys if name == "mallory" else main
        found[name] = _person(name, user, workspace, None if name == "nora" else project.id)
    return Cast(acme.id, other.id, blue.id, red.id, main.id, side.id, red_project.id, mallorys.id, found)


def _person(name: str, user: User, where: actors.Actor, project_id: str | None) -> Person:
    if project_id is None:
        return Person(name, user.id, user.email, where.workspace_id)
    key, text = api_keys.create(
        where, f"{name}'s key", api_version=VERSION, project_id=project_id, user_id=user.id
    )
    return Person(name, user.id, user.email, where.workspace_id, text, key.id)


class Program:
    """A program that holds a key: `api(cast.edith).post("/projects", json={...})`."""

    def __init__(self, app: Flask, key: str, **headers: str) -> None:
        self._client = app.test_client(use_cookies=False)
        self.headers = {**({"Authorization": f"Bearer {key}"} if key else {}), **headers}

    def open(self, method: str, path: str, **how: Any) -> TestResponse:
        headers = {**self.headers, **how.pop("headers", {})}
        return self._client.open(path, method=method, headers=headers, **how)

    def get(self, path: str, **how: Any) -> TestResponse:
        return self.open("GET", path, **how)

    def post(self, path: str, **how: Any) -> TestResponse:
        return self.open("POST", path, **how)

    def patch(self, path: str, **how: Any) -> TestResponse:
        return self.open("PATCH", path, **how)

    def put(self, path: str, **how: Any) -> TestResponse:
        return self.open("PUT", path, **how)

    def delete(self, path: str, **how: Any) -> TestResponse:
        return self.open("DELETE", path, **how)


_AS_WRITTEN = re.compile(r"(<(pre|textarea|script|style)\b.*?</\2\s*>)", re.S | re.I)
_TAG = re.compile(r"(<[a-zA-Z/!](?:[^<>\"']|\"[^\"]*\"|'[^']*')*>)")
_BREAK = re.compile(r"\s*\n\s*")
_TAG_END = re.compile(r"\s+(/?>)$")
_RUN = re.compile(r"\s*\n\s*|  +")  # a line break or the indentation of a line
_RUN_BEFORE = re.compile(f"^(?:{_RUN.pattern})")
_RUN_AFTER = re.compile(f"(?:{_RUN.pattern})$")


def on_one_line(html: str) -> str:
    """HTML without the line breaks and indentation of its templates, as far as a browser shows the same.

    Texts in `pre`, `textarea`, `script` and `style` stay as they are.
    """
    parts = _AS_WRITTEN.split(html)
    return "".join(
        _compact(part) if place % 3 == 0 else part for place, part in enumerate(parts) if place % 3 != 2
    )


def _compact(html: str) -> str:
    parts = _TAG.split(html)  # a text, a tag, a text, ...
    for place, part in enumerate(parts):
        if place % 2:
            parts[place] = _TAG_END.sub(r"\1", _BREAK.sub(" ", part))
            continue
        if "\n" not in part and "  " not in part:
            continue
        before, after = "".join(parts[place - 1 : place]), "".join(parts[place + 1 : place + 2])
        if _RUN.fullmatch(part):
            part = ""
        if not before.startswith("</"):
            part = _RUN_BEFORE.sub("", part)
        if after.startswith("</"):
            part = _RUN_AFTER.sub("", part)
        parts[place] = _RUN.sub(" ", part)
    return "".join(parts)


class _Reading:
    """A response whose text is on one line if it is a page."""

    @cached_property  # a test looks at the text many times
    def text(self) -> str:
        text: str = super().text  # type: ignore[misc]  # mixed into a response of werkzeug
        return on_one_line(text) if self.mimetype == "text/html" else text  # type: ignore[attr-defined]


def session_token(app: Flask, person: Person) -> str:
    """Start a browser session and return its token."""
    with app.app_context():
        user = db.session.get_one(User, person.user_id)
        return sign_in.create_session(user, Visitor("127.0.0.1", "tests", "req"), "test")


class Browser:
    """A person at a browser, signed in unless said otherwise. Forms carry the CSRF token.

    `token`: of a browser session of theirs; without one, there is a new session.
    """

    ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

    def __init__(self, app: Flask, person: Person | None = None, token: str = "") -> None:
        self.client: FlaskClient = app.test_client()
        wrapper = self.client.response_wrapper
        self.client.response_wrapper = type("Page", (_Reading, wrapper), {})
        self.app = app
        if person is not None:
            token = token or session_token(app, person)
            with self.client.session_transaction() as cookie:
                cookie["sid"] = token
                cookie.permanent = True

    def get(self, path: str, **how: Any) -> TestResponse:
        headers = {"Accept": self.ACCEPT, **how.pop("headers", {})}
        return self.client.get(path, headers=headers, **how)

    def csrf(self) -> str:
        """A token of this browser's session, as a page would hold it."""
        from flask import session
        from flask_wtf.csrf import generate_csrf

        with self.client.session_transaction() as cookie:
            stored = dict(cookie)
        with self.app.test_request_context():
            session.update(stored)
            token = generate_csrf()
            raw = session["csrf_token"]
        with self.client.session_transaction() as cookie:
            cookie["csrf_token"] = raw
        return token

    def submit(
        self, path: str, data: dict[str, Any] | None = None, method: str = "POST", **how: Any
    ) -> TestResponse:
        """Send a form; `method` other than POST goes as a form can send it."""
        headers = {"Accept": self.ACCEPT, "Origin": "http://localhost", **how.pop("headers", {})}
        if method != "POST":
            path += ("&" if "?" in path else "?") + f"_method={method}"
        form = {"csrf_token": self.csrf(), **(data or {})}
        return self.client.post(path, data=form, headers=headers, **how)
