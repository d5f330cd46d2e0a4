"""From a credential to an Actor, and the rate limit of its workspace.

An API key is found by its handle. The process caches the database row of a key under the workspace's epoch
(see `access.actors`), so a cached key costs one hash, one dictionary lookup and one round trip to Redis, which counts
the request and says whether the cache entry is still valid. A browser session is read from the database every time.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, cast

from flask import Flask, current_app
from sqlalchemy import or_, select, update
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from webapp import clock, limits
from webapp.access import actors
from webapp.access.actors import Actor, highest_role
from webapp.access.models import ApiKey, BrowserSession, Membership, Project, Team, User, Workspace
from webapp.audit.services import audit_log
from webapp.errors import ApiError
from webapp.extensions import db, read_session, redis_client, write_session
from webapp.metering import hourly, limit_warnings
from webapp.rate_limiting import RateLimiter, RateLimitResult
from webapp.security import keys

_CACHE: Final = "rowsmith.identities"
_RATE_LIMITER: Final = "rowsmith.rate_limiter"
_WINDOW: Final = limits.RATE_WINDOW_SECONDS + limits.RATE_MARGIN_SECONDS


def unauthenticated_error(reason: str) -> ApiError:
    """Return the error 401 with its reason: missing, malformed, unknown, expired, revoked."""
    messages = {
        "missing": "Send an API key: `Authorization: Bearer <key>` or `X-API-Key: <key>`.",
        "malformed": "The API key is malformed.",
        "unknown": "The API key is invalid.",
        "expired": "This API key has expired.",
        "revoked": "This API key has been revoked.",
    }
    headers = {"WWW-Authenticate": 'Bearer realm="rowsmith"'}  # RFC 9110, 11.6.1
    return ApiError("unauthenticated", messages[reason], {"reason": reason}, headers=headers)


def rate_limiter() -> RateLimiter:
    """Return the rate limiter on the application's Redis."""
    limiter = current_app.extensions.get(_RATE_LIMITER)
    if limiter is None:
        limiter = current_app.extensions[_RATE_LIMITER] = RateLimiter(redis_client())
    return cast(RateLimiter, limiter)


def request_window_key(workspace_id: str) -> str:
    """Return the name of the rate limit window of a workspace's requests."""
    return f"rowsmith:{{{workspace_id}}}:requests"


def count_request(actor: Actor, epoch: str = "") -> RateLimitResult:
    """Count a request in the rate limit window of the actor's workspace, unless the epoch is no longer `epoch`."""
    workspace_id, limit = actor.workspace_id, actor.limits.requests_per_minute
    usage = (
        hourly.counts_key(workspace_id),
        hourly.counts_field(actor.project_id, actor.key_id, actor.user_id),
    )
    epoch_key = actors.epoch_key(workspace_id)
    result = rate_limiter().hit(request_window_key(workspace_id), limit, _WINDOW, epoch_key, epoch, usage)
    limit_warnings.check_requests(actor, result)
    return result


def rate_limit_reset_times(workspace_id: str, rows: str) -> tuple[float | None, float | None, float | None]:
    """Return when a workspace's requests have left the rate limit window; see `RateLimiter.reset_times`."""
    return rate_limiter().reset_times(request_window_key(workspace_id), rows, _WINDOW)


def count_anonymous_request(address: str) -> RateLimitResult:
    """Count a request without a valid credential in the rate limit window of its address."""
    log = f"rowsmith:{{{address}}}:requests"
    return rate_limiter().hit(log, limits.ADDRESS_REQUESTS_PER_MINUTE, _WINDOW)


@dataclass(frozen=True, slots=True)
class CachedKey:
    """An API key (in one project), as read from the database under an epoch."""

    actor: Actor
    secret_hash: str
    api_version: str
    expires: float | None  # seconds since 1970
    is_invalid: bool  # revoked, its owner disabled, or its workspace deleted
    is_outsider: bool  # its owner is no longer a member of the workspace
    fault: ApiError | None  # the requested project is not in the workspace
    epoch: str
    read_at: float  # time.monotonic()


def authenticate_key(
    text: str, project_id: str, address: str, request_id: str
) -> tuple[Actor, RateLimitResult, str]:
    """Return the Actor of an API key, the result of the rate limit, and the API version of the key.

    `project_id` "" means the key's own. The caller responds with 429 if the rate limit is exceeded.
    """
    parts = keys.split_key(text)
    if parts is None:
        raise unauthenticated_error("malformed")
    handle, secret = parts
    key = _load_key(handle, project_id)
    epoch = key.epoch if key is not None and not key.is_outsider else None
    result = _count_key_request(key, secret, epoch or "", address)
    if result.stale:
        # Permissions, or a template of the workspace, have changed since the key was read. Parallel edits can change
        # the epoch at any moment, so what is read now is not compared with it: it is as new as this request.
        epoch = None
        _cache().pop((handle, project_id), None)
        key = _load_key(handle, project_id)
        result = _count_key_request(key, secret, "", address)
    assert key is not None
    if key.fault is not None and result.accepted:
        raise RejectedRequestError(key.fault, result)
    _record_use(key.actor.key_id or "", address)
    actor = replace(key.actor, address=address, request_id=request_id, epoch=epoch)
    return actor, result, key.api_version


def _count_key_request(key: CachedKey | None, secret: str, epoch: str, address: str) -> RateLimitResult:
    """Count a request of a valid key; with `epoch`, only if that is still the workspace's. Error: unauthenticated.

    Requests by the key of a removed member are counted by address: they must not use up the workspace's rate limit.
    """
    if key is None or not keys.matches(secret, key.secret_hash):
        raise unauthenticated_error("unknown")
    if key.is_invalid:
        raise unauthenticated_error("revoked")
    if key.expires is not None and key.expires <= clock.epoch():
        raise unauthenticated_error("expired")
    return count_anonymous_request(address) if key.is_outsider else count_request(key.actor, epoch)


class RejectedRequestError(Exception):
    """The request of a known caller is rejected after it was counted."""

    def __init__(self, error: ApiError, rate_limit: RateLimitResult) -> None:
        self.error = error
        self.rate_limit = rate_limit
        super().__init__(str(error))


def _cache() -> dict[tuple[str, str], CachedKey]:
    return cast(dict[tuple[str, str], CachedKey], current_app.extensions.setdefault(_CACHE, {}))


def _load_key(handle: str, project_id: str) -> CachedKey | None:
    cache = _cache()
    key = cache.get((handle, project_id))
    if key is not None and time.monotonic() - key.read_at < limits.IDENTITY_MAX_AGE_SECONDS:
        return key
    key = _read_key(handle, project_id)
    # The key of a run ends with the run even while Redis is unavailable, so it is read every time. So is the key of
    # someone who is not a member, because only requests that count for the workspace compare the epoch.
    is_cacheable = key is not None and key.actor.run_id is None and not key.is_outsider
    if key is not None and is_cacheable and actors.is_cacheable(key.epoch):
        if len(cache) >= limits.IDENTITY_CACHE_ENTRIES:
            cache.clear()
        cache[handle, project_id] = key
    return key


def _read_key(handle: str, project_id: str) -> CachedKey | None:
    with read_session() as session:
        workspace_id = session.scalar(select(ApiKey.workspace_id).where(ApiKey.handle == handle))
    if workspace_id is None:
        return None
    epoch = actors.current_epoch(
        workspace_id
    )  # before the query: a concurrent change makes it outdated, not wrong
    with read_session() as session:
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
        actor = _build_actor(session, "key", user, workspace, project)
        if project_id and (project is None or actor.role is None):
            fault = ApiError("not_found", "Project not found.", {"project_id": project_id})
        scopes = None if key.scopes is None else frozenset(key.scopes)
        return CachedKey(
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
            is_invalid=(key.revoked_at or user.disabled_at or workspace.deleted_at) is not None,
            is_outsider=actor.role_for("member") is None,
            fault=fault,
            epoch=epoch,
            read_at=time.monotonic(),
        )


def _build_actor(
    session: Session, kind: Any, user: User, workspace: Workspace, project: Project | None
) -> Actor:
    members = session.scalars(
        select(Membership)
        .outerjoin(Team, Team.id == Membership.team_id)
        .where(
            Membership.workspace_id == workspace.id, Membership.user_id == user.id, Team.deleted_at.is_(None)
        )
    ).all()
    workspace_role = next((m.role for m in members if m.team_id is None), None)
    teams = {m.team_id: m.role for m in members if m.team_id is not None}
    return Actor(
        kind=kind,
        user_id=user.id,
        user_name=user.name or user.email,
        workspace_id=workspace.id,
        project_id=project.id if project else None,
        team_id=project.team_id if project else None,
        role=highest_role(workspace_role, teams.get(project.team_id)) if project else workspace_role,
        workspace_role=workspace_role,
        plan=workspace.plan,
        limits=workspace.limits,
        team_roles=teams,
    )


def actor_of_user(user_id: str, project_id: str) -> Actor | None:
    """Return the Actor of a user without a request, such as for a scheduled run, with their current role in a project;
    None if they no longer have access, or the project is deleted."""
    with read_session() as session:
        user, project = session.get(User, user_id), session.get(Project, project_id)
        if user is None or user.disabled_at is not None or project is None or project.deleted_at is not None:
            return None
        workspace = session.get_one(Workspace, project.workspace_id)
        if workspace.deleted_at is not None:
            return None
        actor = _build_actor(session, "session", user, workspace, project)
    return actor if actor.role is not None else None


def _record_use(key_id: str, address: str) -> None:
    """Save when and from where the key was last used, at most once per minute and process."""
    noted: dict[str, float] = current_app.extensions.setdefault("rowsmith.key_uses", {})
    now = time.monotonic()
    if now - noted.get(key_id, float("-inf")) >= limits.KEY_LAST_USED_SECONDS:
        noted[key_id] = now
        audit_log.write_later(_save_last_use, key_id, clock.now(), address)


def authenticate_session(token: str, address: str, request_id: str) -> Actor | None:
    """Return the Actor of a browser session; None if it has ended or expired, or its user no longer has access."""
    now = clock.now()
    with read_session() as session:
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
        actor = _build_actor(session, "session", user, workspace, project)
    if actor.role_for("member") is None:
        return None
    if now - browser.last_seen_at >= timedelta(seconds=limits.SESSION_LAST_SEEN_SECONDS):
        with _independent_session() as own_session:
            own_session.get_one(BrowserSession, browser.id).last_seen_at = now
    two_factor_due = bool(workspace.settings.get("require_two_factor")) and not browser.two_factor
    return replace(
        actor, session_id=browser.id, second_factor_due=two_factor_due, address=address, request_id=request_id
    )


@contextmanager
def _independent_session() -> Iterator[Session]:
    with Session(db.engine) as session, session.begin():
        yield session


def _session_project(session: Session, browser: BrowserSession, user: User) -> Project | None:
    """Return the project of the session, or else the first one that the user has access to."""
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


def _save_last_use(app: Flask, key_id: str, at: datetime, address: str) -> None:
    """Save when and from where a key was last used."""
    older = or_(ApiKey.last_used_at.is_(None), ApiKey.last_used_at < at)
    used = {"last_used_at": at, "last_used_address": address[:64]}
    statement = update(ApiKey).where(ApiKey.id == key_id, older).values(**used)
    # If this fails, it is saved a minute later.
    with contextlib.suppress(SQLAlchemyError), app.app_context(), write_session() as session:
        session.execute(statement, execution_options={"synchronize_session": False})
