"""The context of every page around its content: user, navigation, asset URLs, filters."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import redis
from flask import Blueprint, Flask, Response, current_app, g, request, url_for
from flask_wtf.csrf import generate_csrf
from markupsafe import Markup

from webapp import clock, limits
from webapp.access import tenancy
from webapp.access.actors import Actor
from webapp.access.models import User, Workspace
from webapp.extensions import db
from webapp.rate_limiting import RateLimitResult
from webapp.web import snippets
from webapp.web.routing import route

THEMES: Final = ("light", "dark")


@dataclass(frozen=True, slots=True)
class Link:
    """An entry of the navigation. It is the current one on pages below one of the paths `under`."""

    href: str
    text: str
    icon: str
    under: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Entries of the navigation under one heading; `label` names the group where it has none."""

    label: str
    title: str
    links: tuple[Link, ...]


NAV: Final = (
    Group("Start", "", (Link("/", "Home", "home", ("/starters",)),)),
    Group(
        "Build",
        "Build",
        (
            Link("/templates", "Templates", "template", ("/templates", "/import")),
            Link("/datasets", "Datasets", "dataset", ("/datasets",)),
            Link("/scenarios", "Scenarios", "scenario", ("/scenarios",)),
        ),
    ),
    Group(
        "Connect",
        "Connect",
        (
            Link("/connections", "Connections", "plug", ("/connections",)),
            Link("/endpoints", "Endpoints", "endpoint", ("/endpoints",)),
            Link("/workspace/files", "Files", "file", ("/workspace/files", "/workspace/file")),
        ),
    ),
    Group(
        "Jobs",
        "Jobs",
        (
            Link("/activity", "Activity", "pulse", ("/activity", "/exports", "/pushes", "/runs")),
            Link("/schedules", "Schedules", "clock", ("/schedules",)),
        ),
    ),
    Group(
        "More",
        "",
        (
            Link(
                "/settings",
                "Settings",
                "settings",
                (
                    "/api-keys",
                    "/me",
                    "/usage",
                    "/projects",
                    "/teams",
                    "/members",
                    "/invitations",
                    "/secrets",
                    "/webhooks",
                    "/masking",
                    "/workspace",
                    "/audit",
                    "/trash",
                    "/status",
                ),
            ),
            Link("/docs", "Docs", "book", ("/docs",)),
        ),
    ),
)
# The pages of the settings, by group: address, text, scope that each takes.
SETTINGS: Final = (
    ("You", (("/me", "Profile", "member"),)),
    (
        "Project",
        (
            ("/api-keys", "API keys", "member"),
            ("/secrets", "Secrets", "secrets"),
            ("/webhooks", "Webhooks", "write"),
            ("/trash", "Trash", "member"),
        ),
    ),
    (
        "Workspace",
        (
            ("/workspace", "Workspace", "member"),
            ("/members", "Members", "member"),
            ("/invitations", "Invitations", "admin"),
            ("/teams", "Teams", "member"),
            ("/projects", "Projects", "member"),
            ("/masking/keys", "Masking keys", "secrets"),
            ("/usage", "Limits and usage", "member"),
            ("/audit", "Audit log", "admin"),
            ("/status", "Status", "member"),
        ),
    ),
)
_BRIEF_CHARS: Final = 60


Gauges = Callable[[Actor, RateLimitResult], Mapping[str, Any]]
Running = Callable[[Actor], int]


def init_app(app: Flask, gauges: Gauges, running: Running) -> None:
    """Register the helpers of the templates. `gauges` returns how much of its limits a workspace has used, and
    `running` how many jobs run in a project.

    Addresses of assets have a hash, so browsers may keep them.
    """
    app.get_send_file_max_age = _max_age  # type: ignore[method-assign]  # a hook of Flask
    app.jinja_env.trim_blocks = app.jinja_env.lstrip_blocks = True
    app.jinja_env.globals.update(
        asset=asset, csrf_token=generate_csrf, in_days=in_days, origin=snippets.origin
    )
    app.jinja_env.filters.update(
        ago=ago,
        brief=brief,
        browser=browser,
        count=count,
        duration=duration,
        initials=initials,
        lean=lean,
        size=size,
    )
    app.context_processor(lambda: {"shell": Shell(gauges, running)})


def _max_age(filename: str | None) -> int | None:
    """Return how long a browser may cache a static file: URLs with a hash for a year, others not at all."""
    return limits.ASSET_SECONDS if "v" in request.args else None


class Shell:
    """The frame of a page. Values that need a query are read when the frame is rendered; fragments have no frame."""

    nav = NAV

    def __init__(self, gauges: Gauges, running: Running) -> None:
        self._gauges, self._running = gauges, running

    @property
    def settings(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """The pages of the settings that the user may see, by group."""
        groups = []
        for title, pages in SETTINGS:
            visible = [(href, text) for href, text, scope in pages if self.actor and self.actor.can(scope)]
            if visible:
                groups.append((title, visible))
        return groups

    @property
    def actor(self) -> Actor | None:
        """The signed-in user."""
        return getattr(g, "actor", None)

    @property
    def user(self) -> str:
        """Return the name of the signed-in user; "" without one."""
        return self.actor.user_name if self.actor else ""

    @cached_property
    def email(self) -> str:
        """The e-mail address of the user."""
        found = db.session.get(User, self.actor.user_id) if self.actor and self.actor.user_id else None
        return found.email if found else ""

    @cached_property
    def workspace(self) -> str:
        """The workspace's name."""
        found = db.session.get(Workspace, self.actor.workspace_id) if self.actor else None
        return found.name if found else ""

    @cached_property
    def projects(self) -> list[Any]:
        """The projects that the user can access, by name."""
        return tenancy.accessible_projects(self.actor) if self.actor else []

    @cached_property
    def project(self) -> Any:
        """The current project of the user."""
        project_id = self.actor.project_id if self.actor else None
        return next((item for item in self.projects if item.id == project_id), None)

    @cached_property
    def running(self) -> int:
        """Return how many jobs of the project are queued or running."""
        return self._running(self.actor) if self.actor and self.actor.project_id else 0

    @cached_property
    def near(self) -> str:
        """Return a warning if the workspace has used much of a limit; "" if not, or if Redis is unavailable."""
        rate_limit = getattr(g, "rate_limit", None)
        if self.actor is None or rate_limit is None:
            return ""
        try:
            found = self._gauges(self.actor, rate_limit)
        except redis.RedisError:
            return ""
        warnings = [
            f"{gauge.used:,} of {gauge.limit:,} {name} {'an hour' if name == 'rows' else 'a minute'} are used. "
            f"The limit is fully available again at {gauge.resets_at:%H:%M:%S} UTC."
            for name, gauge in found.items()
            if gauge.near and gauge.resets_at is not None
        ]
        return " ".join(warnings)

    @property
    def theme(self) -> str:
        """Return light, dark, or "" for the setting of the system."""
        chosen = request.cookies.get("theme", "")
        return chosen if chosen in THEMES else ""

    @property
    def keys(self) -> bool:
        """Return whether keyboard shortcuts are enabled."""
        return request.cookies.get("keys") != "off"

    @property
    def rail(self) -> bool | None:
        """Return whether the sidebar is collapsed to icons."""
        return {"on": True, "off": False}.get(request.cookies.get("rail", ""))

    @property
    def current_path(self) -> str:
        """Return the address of the navigation entry of this page; the longest path that fits decides."""
        if request.path == "/":
            return "/"
        path = request.path + "/"
        matches = [
            (len(start), link.href)
            for group in NAV
            for link in group.links
            for start in link.under
            if path.startswith(start + "/")
        ]
        return max(matches)[1] if matches else ""


def asset(name: str) -> str:
    """Return the URL of a file in static/, with a hash of its content."""
    known: dict[str, str] = current_app.extensions.setdefault("rowsmith.assets", {})
    if name not in known or current_app.debug:
        path = Path(str(current_app.static_folder)) / name
        mark = hashlib.blake2b(path.read_bytes(), digest_size=5).hexdigest() if path.is_file() else "0"
        known[name] = url_for("static", filename=name, v=mark)
    return known[name]


def ago(moment: str | datetime) -> str:
    """Return a time (RFC 3339 or aware) relative to now: `3 min ago`, `in 2 days`; a distant one as its date."""
    at = moment if isinstance(moment, datetime) else datetime.fromisoformat(moment)
    seconds = (clock.now() - at).total_seconds()
    distance = abs(seconds)
    if distance < 45:
        return "just now" if seconds >= 0 else "in a moment"
    for unit, size_of, limit in (("min", 60, 3_600), ("h", 3_600, 86_400), ("day", 86_400, 30 * 86_400)):
        if distance < limit:
            number = max(1, round(distance / size_of))
            text = f"{number} {unit}{'s' if unit == 'day' and number > 1 else ''}"
            return f"{text} ago" if seconds > 0 else f"in {text}"
    return f"{at:%Y-%m-%d}"


def in_days(days: int) -> str:
    """Return the time a number of days from now, as RFC 3339 in whole seconds."""
    return str(clock.to_text((clock.now() + timedelta(days=days)).replace(microsecond=0)))


def brief(value: Any, max_chars: int = _BRIEF_CHARS) -> str:
    """Return a JSON value as text of at most `max_chars` characters."""
    if value is None:
        return "none"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def initials(name: str) -> str:
    """Return the first letters of the first and the last word of a name, for the avatar of a user."""
    words = name.replace("@", " ").split() or ["?"]
    return (words[0][0] + (words[-1][0] if len(words) > 1 else words[0][1:2])).upper()


def lean(html: str) -> Markup:
    """Return the HTML of a control without the default attributes of an input: type text, and an empty value."""
    plain = (
        str(html).replace(' type="text" value=""', "").replace(' type="number" value=""', ' type="number"')
    )
    return Markup(plain.replace(' type="text"', ""))  # noqa: S704 - as safe as it came: quotes inside values are escaped


def count(number: int | None) -> str:
    """Return a whole number with thousands separators."""
    return "–" if number is None else f"{number:,}"


def duration(seconds: float | None) -> str:
    """Return a duration in a readable unit."""
    if seconds is None:
        return "–"
    if seconds < 1:
        return "under a second"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5_400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.1f} h"


_BROWSERS: Final = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
_SYSTEMS: Final = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)


def browser(user_agent: str) -> str:
    """Return the browser and the system of a User-Agent header."""
    name = next((label for mark, label in _BROWSERS if mark in user_agent), "")
    system = next((label for mark, label in _SYSTEMS if mark in user_agent), "")
    return " on ".join(filter(None, (name, system))) or brief(user_agent) or "unknown"


def size(number: int | float | None) -> str:
    """Return a number of bytes in a readable unit."""
    if number is None:
        return "–"
    value = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1000
    return ""


# The default icon.

bp = Blueprint("icon", __name__)


@route(bp, "/favicon.ico", scope="public", rate_limited=False, hidden=True)
def show() -> Response:
    """Return the icon that browsers request automatically for JSON or fragments opened as a page."""
    found = Path(str(current_app.static_folder)) / "logo.svg"
    return Response(found.read_bytes(), mimetype="image/svg+xml")
