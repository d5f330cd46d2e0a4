"""Who acts, and what they may do.

Every service takes an `Actor` first. It says who, in which workspace and project, with which role, narrowed by
which scopes. Rights are asked in two places only: `require` (here) for a scope in the actor's own project, and
`tenancy.get` for an object, which may lie in another project of the workspace and then counts by the role there.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

import redis
from sqlalchemy import event
from sqlalchemy.orm import Session

from webapp import limits
from webapp.accounts.models import ROLES
from webapp.errors import ApiError
from webapp.extensions import redis_client

if TYPE_CHECKING:
    from webapp.accounts.services.identity import Entry


# scope: the least role that has it. The first group counts in a project, the second in the workspace as a whole.
PROJECT_SCOPES: Final[Mapping[str, str]] = MappingProxyType(
    {"read": "viewer", "write": "editor", "generate": "editor", "push": "editor", "run": "editor"}
)
WORKSPACE_SCOPES: Final[Mapping[str, str]] = MappingProxyType(
    # `owner` is no scope of its own: it is `admin` asked of an owner (the plan, deletion of the workspace).
    {"member": "viewer", "secrets": "admin", "admin": "admin", "owner": "owner"}
)
# What a key may be narrowed to. `member` (see the workspace one is in) counts as `read`.
KEY_SCOPES: Final = ("read", "write", "generate", "push", "run", "secrets", "admin")
_AS_KEY_SCOPE: Final = {"owner": "admin", "member": "read"}

RANK: Final = {role: rank for rank, role in enumerate(ROLES)}


def best(*roles: str | None) -> str | None:
    """The highest of some roles; None where there is none."""
    held = [role for role in roles if role is not None]
    return max(held, key=RANK.__getitem__) if held else None


@dataclass(frozen=True, slots=True)
class Actor:
    """One caller of one request. `role` is the role in `project_id`; None where there is no project."""

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
    """The run whose program calls, by the key that was made for it."""
    writable_secrets: frozenset[str] = frozenset()
    """Secrets that this run may set, whatever its maker's role."""
    second_factor_due: bool = False
    """The workspace requires a second factor, and this session has seen none."""
    address: str = ""
    request_id: str = ""
    entry: Entry | None = field(default=None, compare=False, repr=False)
    """A place in the minute that is still to be asked for, together with rows; see `identity.Entry`."""

    def role_in(self, team_id: str | None) -> str | None:
        """The role in a team's projects: the better of the workspace's and the team's. None: not a member."""
        return best(self.workspace_role, self.team_roles.get(team_id) if team_id else None)

    def role_for(self, scope: str, team_id: str | None = None) -> str | None:
        """The role that counts for a scope: in that team (default: the actor's own), or in the workspace."""
        if scope == "member":
            return best(self.workspace_role, *self.team_roles.values())
        if scope in WORKSPACE_SCOPES:
            return self.workspace_role
        return self.role_in(team_id) if team_id else self.role

    def lacks(self, scope: str, team_id: str | None = None) -> dict[str, str] | None:
        """What is missing for a scope, as details of a `forbidden`; None when nothing is."""
        least = PROJECT_SCOPES.get(scope) or WORKSPACE_SCOPES[scope]
        role = self.role_for(scope, team_id)
        if role is None or RANK[role] < RANK[least]:
            return {"needs": scope, "role": least}
        key_scope = _AS_KEY_SCOPE.get(scope, scope)
        if self.scopes is not None and key_scope not in self.scopes:
            return {"needs": scope, "scope": key_scope}
        return None

    def can(self, scope: str, team_id: str | None = None) -> bool:
        """Whether the actor has a scope."""
        return self.lacks(scope, team_id) is None


def require(actor: Actor, scope: str, team_id: str | None = None) -> None:
    """`forbidden` with `details.needs` unless the actor has the scope."""
    missing = actor.lacks(scope, team_id)
    if missing is None:
        return
    if "scope" in missing:
        raise ApiError("forbidden", f"This key has not the scope `{missing['scope']}`.", missing)
    raise ApiError("forbidden", f"This needs the role {missing['role']} or a higher one.", missing)


def system(workspace_id: str = "", project_id: str | None = None, team_id: str | None = None) -> Actor:
    """The service itself: the command line, seeding, the sweeper. May do everything in that workspace."""
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


# The workspace's epoch: how every process learns at once that somebody's rights changed.
#
# A process remembers what it read about a key together with the epoch it read it under, and asks Redis for the
# epoch in the same round trip that counts the request. So remembering costs nothing, and forgetting is immediate.
#
# A change announces itself before its commit (the epoch becomes `pending`, which nobody remembers anything under)
# and again after it (a fresh epoch). If the changing process dies in between, `pending` runs out and whoever asks
# next makes a fresh epoch. Redis emptied: the epoch is gone, everything is read again.

_PENDING: Final = "pending:"
_INFO: Final = "rowsmith.rights"


def epoch_key(workspace_id: str) -> str:
    """Where a workspace's epoch lies in Redis."""
    return f"rowsmith:{{{workspace_id}}}:epoch"


def changing(session: Session, workspace_id: str) -> None:
    """Call before a change to keys, roles, members, projects or plan in `session` is committed.

    Fails with RedisError when Redis is away: a change that cannot be announced is not made.
    """
    redis_client().set(
        epoch_key(workspace_id), _PENDING + secrets.token_hex(8), ex=limits.EPOCH_PENDING_SECONDS
    )
    waiting: set[str] = session.info.setdefault(_INFO, set())
    if not event.contains(session, "after_commit", _changed):
        # Not `once`: SQLAlchemy takes a second such listener of the same session for the first, which is spent.
        event.listen(session, "after_commit", _changed)
        event.listen(session, "after_rollback", _changed)
    waiting.add(workspace_id)


def current(workspace_id: str) -> str:
    """The present epoch, made when there is none."""
    client, key = redis_client(), epoch_key(workspace_id)
    for _ in range(limits.EPOCH_TRIES):
        found = client.get(key)
        if found is not None:
            return found.decode()
        fresh = secrets.token_hex(8)
        if client.set(key, fresh, nx=True, ex=limits.EPOCH_SECONDS):
            return fresh
    raise redis.ConnectionError("the epoch does not hold still")


def may_be_remembered(epoch: str) -> bool:
    """Whether what is read under this epoch may be kept: not while a change is under way."""
    return not epoch.startswith(_PENDING)


def _changed(session: Session) -> None:
    """After commit or rollback: a fresh epoch for every workspace announced."""
    for workspace_id in session.info.pop(_INFO, set()):
        # If Redis is away just now, `pending` runs out by itself.
        with suppress(redis.RedisError):
            redis_client().set(epoch_key(workspace_id), secrets.token_hex(8), ex=limits.EPOCH_SECONDS)
