"""Workspaces, teams, projects, and who belongs to them."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import CheckConstraint, Index, String, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.models.base import JSON_DOC, Base, Created, InWorkspace, SoftDeleted, Updated, identity, reference

ROLES: Final = ("viewer", "editor", "admin", "owner")  # each may do all that the ones before it may
PLAN_NAMES: Final = tuple(limits.PLANS)


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


class Workspace(Updated, SoftDeleted, Base):
    """The tenant: rates, plan and members are its own; nothing crosses its border.

    `own_limits` holds an Enterprise workspace's own numbers: any of `requests_per_minute`, `rows_per_hour`,
    `rows_per_generation`. `settings` holds switches such as cutting secrets out of run logs.
    """

    __tablename__ = "workspaces"
    __table_args__ = (CheckConstraint(_one_of("plan", PLAN_NAMES), name="plan"),)

    id: Mapped[str] = identity("ws")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    plan: Mapped[str] = mapped_column(String(16), default="free")
    own_limits: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    settings: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)

    @property
    def limits(self) -> limits.PlanLimits:
        """The limits that hold now: the plan's, or for Enterprise the workspace's own where it has them."""
        plan = limits.PLANS[self.plan]
        if self.plan != "enterprise" or not self.own_limits:
            return plan
        return limits.PlanLimits(
            **{name: int(self.own_limits.get(name) or getattr(plan, name)) for name in plan.__slots__}
        )


class Team(Updated, SoftDeleted, InWorkspace, Base):
    """A group of projects and people in a workspace."""

    __tablename__ = "teams"

    id: Mapped[str] = identity("team")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))


class Project(Updated, SoftDeleted, InWorkspace, Base):
    """Where templates, connections and scenarios lie."""

    __tablename__ = "projects"

    id: Mapped[str] = identity("prj")
    team_id: Mapped[str] = reference("teams.id", ondelete="CASCADE")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    description: Mapped[str] = mapped_column(String(limits.MAX_DESCRIPTION_CHARS), default="")


class Membership(Created, InWorkspace, Base):
    """A person's role in a whole workspace (`team_id` NULL) or in one team of it."""

    __tablename__ = "memberships"
    __table_args__ = (
        CheckConstraint(_one_of("role", ROLES), name="role"),
        UniqueConstraint("team_id", "user_id"),
        Index(
            "uq_memberships_workspace_wide",
            "workspace_id",
            "user_id",
            unique=True,
            sqlite_where=text("team_id IS NULL"),
            postgresql_where=text("team_id IS NULL"),
        ),
    )

    id: Mapped[str] = identity("mem")
    team_id: Mapped[str | None] = reference("teams.id", nullable=True, ondelete="CASCADE", index=False)
    user_id: Mapped[str] = reference("users.id", ondelete="CASCADE")
    role: Mapped[str] = mapped_column(String(16))
