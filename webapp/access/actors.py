"""Actors and their permissions: roles, scopes, and the epoch that expires cached permissions.

Every service takes an `Actor` first: the user, workspace, project, role, and the scopes of an API key. Permissions are
checked in two places only: `require_scope` (here) for a scope in the actor's own project, and `tenancy.get` for an
object, which can be in another project of the workspace, where another role may apply.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

import redis
from sqlalchemy import event
from sqlalchemy.orm import Session

from webapp import limits
from webapp.access.models import ROLES
from webapp.errors import ApiError
from webapp.extensions import redis_client

# The lowest role that has each scope: in a project, and in the workspace as a whole.
PROJECT_SCOPES: Final[Mapping[str, str]] = MappingProxyType(
    {"read": "viewer", "write": "editor", "generate": "editor", "push": "editor", "run": "editor"}
)
WORKSPACE_SCOPES: Final[Mapping[str, str]] = MappingProxyType(
    # `owner` is not a separate scope: it is `admin`, limited to owners (the plan, deletion of the workspace).
    {"member": "viewer", "secrets": "admin", "admin": "admin", "owner": "owner"}
)
# Scopes of API keys. `member` (see one's own workspace) requires `read`.
KEY_SCOPES: Final = ("read", "write", "generate", "push", "run", "secrets", "admin")
_AS_KEY_SCOPE: Final = {"owner": "admin", "member": "read"}

ROLE_RANKS: Final = {role: rank for rank, role in enumerate(ROLES)}


def highest_role(*roles: str | None) -> str | None:
    """Return the highest of some roles; None without any."""
    present = [role for role in roles if role is not None]
    return max(present, key=ROLE_RANKS.__getitem__) if present else None


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller of a request. `role` is the role in `project_id`; None without a project."""

    kind: Literal["key", "session", "system"]
    user_id: str | None
    user_name: str
    workspace_id: str
    project_id: str | None
    team_id: str | None
    role: str | None
    workspace_role: str | None
    plan: str
    limits: limits.PlanLimits
    team_roles: Mapping[str, str] = field(default_factory=dict)
    scopes: frozenset[str] | None = None  # None: all that the role allows
    key_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None
    """The scenario run that the API key was created for."""
    writable_secrets: frozenset[str] = frozenset()
    """Secrets that this run can set, regardless of its creator's role."""
    second_factor_due: bool = False
    """The workspace requires a second factor, and this session did not use one."""
    address: str = ""
    request_id: str = ""
    epoch: str | None = field(default=None, compare=False, repr=False)
    """The workspace's epoch, if the rate limiter has confirmed it for this request; see below."""

    def role_in(self, team_id: str | None) -> str | None:
        """Return the role in a team's projects: the higher of workspace and team role. None: not a member."""
        return highest_role(self.workspace_role, self.team_roles.get(team_id) if team_id else None)

    def role_for(self, scope: str, team_id: str | None = None) -> str | None:
        """Return the role that applies to a scope: in that team (default: the actor's own), or in the workspace."""
        if scope == "member":
            return highest_role(self.workspace_role, *self.team_roles.values())
        if scope in WORKSPACE_SCOPES:
            return self.workspace_role
        return self.role_in(team_id) if team_id else self.role

    def missing_permission(self, scope: str, team_id: str | None = None) -> dict[str, str] | None:
        """Return what is missing for a scope, as details of a `forbidden` error; None if nothing is."""
        required = PROJECT_SCOPES.get(scope) or WORKSPACE_SCOPES[scope]
        role = self.role_for(scope, team_id)
        if role is None or ROLE_RANKS[role] < ROLE_RANKS[required]:
            return {"needs": scope, "role": required}
        key_scope = _AS_KEY_SCOPE.get(scope, scope)
        if self.scopes is not None and key_scope not in self.scopes:
            return {"needs": scope, "scope": key_scope}
        return None

    def can(self, scope: str, team_id: str | None = None) -> bool:
        """Return whether the actor has a scope."""
        return self.missing_permission(scope, team_id) is None


def require_scope(actor: Actor, scope: str, team_id: str | None = None) -> None:
    """Raise `forbidden` with `details.needs` unless the actor has the scope."""
    missing = actor.missing_permission(scope, team_id)
    if missing is None:
        return
    if "scope" in missing:
        raise ApiError("forbidden", f"This key is missing the `{missing['scope']}` scope.", missing)
    raise ApiError("forbidden", f"This requires the {missing['role']} role or higher.", missing)


def system_actor(workspace_id: str = "", project_id: str | None = None, team_id: str | None = None) -> Actor:
    """Return the actor of the service itself (command line, sweeper), with all permissions in that workspace."""
    return Actor(
        kind="system",
        user_id=None,
        user_name="system",
        workspace_id=workspace_id,
        project_id=project_id,
        team_id=team_id,
        role="owner",
        workspace_role="owner",
        plan="enterprise",
        limits=limits.ENTERPRISE_MAX,
    )


# The workspace's epoch invalidates cached permissions in all processes immediately.
#
# A process caches what it reads about a key together with the epoch. The rate limiter compares the epoch in the same
# round trip that counts the request, so validating the cache costs nothing.
#
# A change is announced before its commit (the epoch becomes `pending`, under which nothing is cached) and again after
# it (a new epoch). If the process dies in between, `pending` expires and the next reader creates a new epoch. When
# Redis is emptied, the epoch is lost and everything is read again.

_PENDING: Final = "pending:"
_CHANGED_WORKSPACES: Final = "rowsmith.rights"


def epoch_key(workspace_id: str) -> str:
    """Return the Redis key of a workspace's epoch."""
    return f"rowsmith:{{{workspace_id}}}:epoch"


def announce_permission_change(session: Session, workspace_id: str) -> None:
    """Call before a change to keys, roles, members, projects or plan in `session` is committed.

    Raises RedisError if Redis is unavailable: a change that cannot be announced must not be committed.
    """
    redis_client().set(
        epoch_key(workspace_id), _PENDING + secrets.token_hex(8), ex=limits.EPOCH_PENDING_SECONDS
    )
    waiting: set[str] = session.info.setdefault(_CHANGED_WORKSPACES, set())
    if not event.contains(session, "after_commit", _renew_epochs):
        # Not `once`: SQLAlchemy would treat a second listener of the same session as the first, which has already run.
        event.listen(session, "after_commit", _renew_epochs)
        event.listen(session, "after_rollback", _renew_epochs)
    waiting.add(workspace_id)


def current_epoch(workspace_id: str) -> str:
    """Return the current epoch. Create one if there is none."""
    client, key = redis_client(), epoch_key(workspace_id)
    for _ in range(limits.EPOCH_ATTEMPTS):
        found = client.get(key)
        if found is not None:
            assert isinstance(found, bytes)
            return found.decode()
        fresh = secrets.token_hex(8)
        if client.set(key, fresh, nx=True, ex=limits.EPOCH_SECONDS):
            return fresh
    raise redis.ConnectionError("the epoch keeps changing")


def is_cacheable(epoch: str) -> bool:
    """Return whether data read under this epoch can be cached, which is not the case during a change."""
    return not epoch.startswith(_PENDING)


def _renew_epochs(session: Session) -> None:
    """Set a new epoch for every announced workspace, after commit or rollback."""
    for workspace_id in session.info.pop(_CHANGED_WORKSPACES, set()):
        # If Redis is unavailable, `pending` expires by itself.
        with suppress(redis.RedisError):
            redis_client().set(epoch_key(workspace_id), secrets.token_hex(8), ex=limits.EPOCH_SECONDS)
