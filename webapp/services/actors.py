"""Who acts, and what they may do.

Every service takes an `Actor` first. It says who, in which workspace and project, with which role, narrowed by
which scopes. Rights are asked in two places only: `require` (here) for a scope in the actor's own project, and
`tenancy.get` for an object, which may lie in another project of the workspace and then counts by the role there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from webapp import limits
from webapp.errors import ApiError

if TYPE_CHECKING:
    from webapp.services.identity import Entry
from webapp.models import ROLES

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
