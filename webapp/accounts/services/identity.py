"""From a credential to an Actor, and the one place in the workspace's window of requests that costs.

An API key is found by its handle. What SQL said about it is remembered in the process under the workspace's
epoch (see `rights`), so a known key costs one hash, one dictionary and one round trip to Redis, which counts the
request and tells whether the memory is still true; rows of a saved template are asked for in that same question
(`Entry`). A browser session is read from SQL each time: it can be
ended, and people click slower than programs call.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final, cast

from flask import current_app
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from webapp import clock, limits
from webapp.accounts import actors
from webapp.accounts.actors import Actor, best
from webapp.accounts.models import ApiKey, BrowserSession, Membership, Project, Team, User, Workspace
from webapp.audit.services import audit_log
from webapp.errors import ApiError
from webapp.extensions import db, reading, redis_client
from webapp.notifications.services import limit_warnings
from webapp.rate_limiting import Passage, RowsAnswer, Windows
from webapp.security import keys
from webapp.usage.services import hourly

_MEMORY: Final = "rowsmith.identities"
_WINDOWS: Final = "rowsmith.windows"
_WINDOW: Final = limits.RATE_WINDOW_SECONDS + limits.RATE_MARGIN_SECONDS


def unauthenticated(reason: str) -> ApiError:
    """401 with its reason: missing, malformed, unknown, expired, revoked."""
    messages = {
        "missing": "Send an API key: `Authorization: Bearer <key>` or `X-API-Key: <key>`.",
        "malformed": "This is not an API key.",
        "unknown": "There is no such API key.",
        "expired": "This API key has expired.",
        "revoked": "This API key has been revoked.",
    }
    headers = {"WWW-Authenticate": 'Bearer realm="rowsmith"'}  # RFC 9110, 11.6.1
    return ApiError("unauthenticated", messages[reason], {"reason": reason}, headers=headers)


def windows() -> Windows:
    """The sliding windows on the application's Redis."""
    found = current_app.extensions.get(_WINDOWS)
    if found is None:
        found = current_app.extensions[_WINDOWS] = Windows(redis_client())
    return cast(Windows, found)


def rate_log(workspace_id: str) -> str:
    """The window of a workspace's requests."""
    return f"rowsmith:{{{workspace_id}}}:requests"


def enter_workspace(actor: Actor, epoch: str = "") -> Passage:
    """One place among the requests of this minute of the actor's workspace."""
    workspace_id, limit = actor.workspace_id, actor.limits.requests_per_minute
    epoch_key = actors.epoch_key(workspace_id)
    passage = windows().enter(rate_log(workspace_id), limit, _WINDOW, epoch_key, epoch, _counted(actor))
    limit_warnings.entered(actor, passage)
    return passage


def _counted(actor: Actor) -> tuple[str, str]:
    """Where in Redis a caller's requests of the hour are counted."""
    field = hourly.field_of(actor.project_id, actor.key_id, actor.user_id)
    return hourly.counts_key(actor.workspace_id), field


def ends(workspace_id: str, rows: str) -> tuple[float | None, float | None, float | None]:
    """When a workspace's requests have left the minute; see `Windows.ends`."""
    return windows().ends(rate_log(workspace_id), rows, _WINDOW)


def enter_address(address: str) -> Passage:
    """One place among an address's requests without a credential of this minute."""
    return windows().enter(
        f"rowsmith:{{{address}}}:requests",
        limits.ADDRESS_REQUESTS_PER_MINUTE,
        _WINDOW,
    )


@dataclass(frozen=True, slots=True)
class Known:
    """What SQL said about one key (in one project) under one epoch."""

    actor: Actor
    secret_hash: str
    api_version: str
    expires: float | None  # seconds since 1970
    dead: bool  # revoked, or its maker disabled, or its workspace deleted
    fault: ApiError | None  # the asked project is none of the workspace's
    epoch: str
    read_at: float  # time.monotonic()

    @property
    def is_outsider(self) -> bool:
        """Whether the key's owner is no member of the workspace."""
        return self.actor.role_for("member") is None


def by_key(text: str, project_id: str, address: str, request_id: str) -> tuple[Actor, Passage, str]:
    """The Actor of an API key, its place in the minute, and the API version of the key.

    `project_id` "" is the key's own. The passage may be a refusal; the caller answers 429 then.
    """
    parts = keys.split_key(text)
    if parts is None:
        raise unauthenticated("malformed")
    handle, secret = parts
    known = _known(handle, project_id)
    passage = _passage(known, secret, known.epoch if known else "", address)
    if passage.stale:
        # Rights, or a template of the workspace, have changed since `known` was read. Edits in parallel may change the
        # epoch again at any moment, so what is read now is not compared with it: it is as new as this request.
        _memory().pop((handle, project_id), None)
        known = _known(handle, project_id)
        passage = _passage(known, secret, "", address)
    assert known is not None
    if known.fault is not None and passage.accepted:
        raise Refused(known.fault, passage)
    _note_use(known.actor.key_id or "", address)
    actor = replace(known.actor, address=address, request_id=request_id)
    return actor, passage, known.api_version


def _passage(known: Known | None, secret: str, epoch: str, address: str) -> Passage:
    """Count a request of a valid key; with `epoch`, only if that is still the workspace's. Error: unauthenticated.

    Requests by the key of a removed member are counted by address: they must not use up the workspace's rate limit.
    """
    if known is None or not keys.matches(secret, known.secret_hash):
        raise unauthenticated("unknown")
    if known.dead:
        raise unauthenticated("revoked")
    if known.expires is not None and known.expires <= clock.epoch():
        raise unauthenticated("expired")
    return enter_address(address) if known.is_outsider else enter_workspace(known.actor, epoch)


class Entry:
    """A request's place in the minute that is asked for with its first rows, in one question.

    Until then the caller is only believed to be who the memory says, so nothing may be written, sent or asked of
    others for them. `passage` is set when they were let in; `epoch` is the one that the memory is of.
    """

    __slots__ = ("_address", "_known", "epoch", "passage")

    def __init__(self, known: Known, address: str) -> None:
        self._known = known
        self._address = address
        self.epoch = known.epoch
        self.passage: Passage | None = None

    def take_rows(self, name: str, rows: int, limit: int) -> RowsAnswer:
        """As `Windows.take_rows`, and the place in the minute. `Anew` where that is refused, or rights changed."""
        actor = self._known.actor
        passage, answer = windows().enter_and_take(
            rate_log(actor.workspace_id),
            actor.limits.requests_per_minute,
            _WINDOW,
            actors.epoch_key(actor.workspace_id),
            self._known.epoch,
            name,
            rows,
            limit,
            _counted(actor),
        )
        if answer is None:
            raise Anew
        self.passage = passage
        limit_warnings.entered(actor, passage)
        _note_use(actor.key_id or "", self._address)
        return answer


class Anew(Exception):
    """The request is to be begun again, its place in the minute asked for first."""


def must_be_counted(actor: Actor) -> None:
    """Call before work that only a request that was let in may cause. `Anew` where that is still to be asked."""
    if actor.entry is not None and actor.entry.passage is None:
        raise Anew


def expected(text: str, project_id: str, address: str, request_id: str) -> tuple[Actor, str] | None:
    """The Actor that a key's text is remembered for, with an `Entry`, and the API version of the key; None where
    `by_key` is to be asked, which tells everything that is wrong."""
    parts = keys.split_key(text)
    known = _remembered(parts[0], project_id) if parts is not None else None
    if (
        parts is None
        or known is None
        or known.dead
        or known.fault
        or not keys.matches(parts[1], known.secret_hash)
    ):
        return None
    if known.expires is not None and known.expires <= clock.epoch():
        return None
    return replace(
        known.actor, address=address, request_id=request_id, entry=Entry(known, address)
    ), known.api_version


class Refused(Exception):
    """A refusal of a caller who was recognised and counted."""

    def __init__(self, error: ApiError, passage: Passage) -> None:
        self.error = error
        self.passage = passage
        super().__init__(str(error))


def _memory() -> dict[tuple[str, str], Known]:
    return cast(dict[tuple[str, str], Known], current_app.extensions.setdefault(_MEMORY, {}))


def _remembered(handle: str, project_id: str) -> Known | None:
    known = _memory().get((handle, project_id))
    fresh = known is not None and time.monotonic() - known.read_at < limits.IDENTITY_MAX_AGE_SECONDS
    return known if fresh else None


def _known(handle: str, project_id: str) -> Known | None:
    known = _remembered(handle, project_id)
    if known is not None:
        return known
    memory = _memory()
    known = _read(handle, project_id)
    # A run's key ends with its run, which a Redis that is away must not put off: it is looked up each time. So is the
    # key of someone who is no member, since only requests that count for the workspace compare the epoch.
    is_remembered = known is not None and known.actor.run_id is None and not known.is_outsider
    if known is not None and is_remembered and actors.may_be_remembered(known.epoch):
        if len(memory) >= limits.IDENTITY_CACHE_ENTRIES:
            memory.clear()  # simple, and rare: it is only a memory
        memory[handle, project_id] = known
    return known


def _read(handle: str, project_id: str) -> Known | None:
    with reading() as session:
        workspace_id = session.scalar(select(ApiKey.workspace_id).where(ApiKey.handle == handle))
    if workspace_id is None:
        return None
    epoch = actors.current(workspace_id)  # before the read: a change in between makes it stale, not wrong
    with reading() as session:
        row = session.execute(
            select(ApiKey, User, Workspace)
            .join(User, User.id == ApiKey.created_by)
            .join(Workspace, Workspace.id == ApiKey.workspace_id)
            .where(ApiKey.handle == handle)
        ).one()
        key, user, workspace = row
        project = session.get(Project, project_id or key.project_id)
        fault = None
        if project is not None and (project.deleted_at or project.workspace_id != workspace.id):
            project = None
        actor = _actor(session, "key", user, workspace, project)
        if project_id and (project is None or actor.role is None):
            fault = ApiError("not_found", "There is no such project.", {"project_id": project_id})
        scopes = None if key.scopes is None else frozenset(key.scopes)
        return Known(
            actor=replace(
                actor,
                key_id=key.id,
                scopes=scopes,
                run_id=key.run_id,
                writable_secrets=frozenset(key.writable_secrets),
            ),
            secret_hash=key.secret_hash,
            api_version=key.api_version,
            expires=key.expires_at.timestamp() if key.expires_at else None,
            dead=(key.revoked_at or user.disabled_at or workspace.deleted_at) is not None,
            fault=fault,
            epoch=epoch,
            read_at=time.monotonic(),
        )


def _actor(session: Session, kind: Any, user: User, workspace: Workspace, project: Project | None) -> Actor:
    members = session.scalars(
        select(Membership)
        .outerjoin(Team, Team.id == Membership.team_id)
        .where(
            Membership.workspace_id == workspace.id, Membership.user_id == user.id, Team.deleted_at.is_(None)
        )
    ).all()
    whole = next((m.role for m in members if m.team_id is None), None)
    teams = {m.team_id: m.role for m in members if m.team_id is not None}
    return Actor(
        kind=kind,
        user_id=user.id,
        user_name=user.name or user.email,
        workspace_id=workspace.id,
        project_id=project.id if project else None,
        team_id=project.team_id if project else None,
        role=best(whole, teams.get(project.team_id)) if project else whole,
        workspace_role=whole,
        plan=workspace.plan,
        limits=workspace.limits,
        team_roles=teams,
    )


def by_user(user_id: str, project_id: str) -> Actor | None:
    """The Actor of somebody who is not here (a schedule runs for them), with the role that they have now in a project;
    None when they may not enter any more, or the project is gone."""
    with reading() as session:
        user, project = session.get(User, user_id), session.get(Project, project_id)
        if user is None or user.disabled_at is not None or project is None or project.deleted_at is not None:
            return None
        workspace = session.get_one(Workspace, project.workspace_id)
        if workspace.deleted_at is not None:
            return None
        actor = _actor(session, "session", user, workspace, project)
    return actor if actor.role is not None else None


def _note_use(key_id: str, address: str) -> None:
    """Have the key's last use and its address written, at most once a minute and process."""
    noted: dict[str, float] = current_app.extensions.setdefault("rowsmith.key_uses", {})
    now = time.monotonic()
    if now - noted.get(key_id, float("-inf")) >= limits.KEY_LAST_USED_SECONDS:
        noted[key_id] = now
        audit_log.touch(key_id, clock.now(), address)


def by_session(token: str, address: str, request_id: str) -> Actor | None:
    """The Actor of a browser session; None when it has ended, expired, idled out, or its user may not enter."""
    now = clock.now()
    with reading() as session:
        row = session.execute(
            select(BrowserSession, User, Workspace)
            .join(User, User.id == BrowserSession.user_id)
            .join(Workspace, Workspace.id == BrowserSession.workspace_id)
            .where(BrowserSession.token_hash == keys.digest(token))
        ).one_or_none()
        if row is None:
            return None
        browser, user, workspace = row
        idle = timedelta(hours=limits.SESSION_IDLE_HOURS)
        if (
            browser.ended_at is not None
            or (user.disabled_at or workspace.deleted_at) is not None
            or browser.expires_at <= now
            or browser.last_seen_at + idle <= now
        ):
            return None
        project = _session_project(session, browser, user)
        actor = _actor(session, "session", user, workspace, project)
    if actor.role_for("member") is None:
        return None
    if now - browser.last_seen_at >= timedelta(seconds=limits.SESSION_SEEN_SECONDS):
        with _quietly() as own:
            own.get_one(BrowserSession, browser.id).last_seen_at = now
    due = bool(workspace.settings.get("require_two_factor")) and not browser.two_factor
    return replace(
        actor, session_id=browser.id, second_factor_due=due, address=address, request_id=request_id
    )


@contextmanager
def _quietly() -> Iterator[Session]:
    with Session(db.engine) as session, session.begin():
        yield session


def _session_project(session: Session, browser: BrowserSession, user: User) -> Project | None:
    """The session's project, or the first one the user reaches when it has none (any more)."""
    reach = select(Membership).where(
        Membership.workspace_id == browser.workspace_id, Membership.user_id == user.id
    )
    members = session.scalars(reach).all()
    teams = [m.team_id for m in members if m.team_id is not None]
    statement = select(Project).where(
        Project.workspace_id == browser.workspace_id, Project.deleted_at.is_(None)
    )
    if not any(m.team_id is None for m in members):
        statement = statement.where(or_(Project.team_id.in_(teams)))
    chosen = session.scalar(statement.where(Project.id == browser.project_id)) if browser.project_id else None
    return chosen or session.scalar(statement.order_by(Project.id).limit(1))
