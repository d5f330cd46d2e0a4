"""Users, workspaces, members, browser sessions, sign-in links, invitations, API keys. Tokens are stored as hashes."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    ForeignKey,
    Index,
    LargeBinary,
    String,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.model_base import (
    ID_CHARS,
    JSON_DOC,
    Base,
    CreatedAtMixin,
    ProjectMixin,
    SoftDeleteMixin,
    UpdatedAtMixin,
    WorkspaceMixin,
    foreign_key_column,
    id_column,
)

ROLES: Final = ("viewer", "editor", "admin", "owner")  # each has all permissions of the ones before it
PLAN_NAMES: Final = tuple(limits.PLANS)


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


class Workspace(UpdatedAtMixin, SoftDeleteMixin, Base):
    """The tenant: it has its own limits, plan and members, and is isolated from other workspaces.

    `own_limits` has the custom limits of an Enterprise workspace: any of `requests_per_minute`, `rows_per_hour`,
    `rows_per_generation`. `settings` has options such as redacting secrets in run logs.
    """

    __tablename__ = "workspaces"
    __table_args__ = (CheckConstraint(_one_of("plan", PLAN_NAMES), name="plan"),)

    id: Mapped[str] = id_column("ws")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    plan: Mapped[str] = mapped_column(String(16), default="free")
    own_limits: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)
    settings: Mapped[dict[str, Any]] = mapped_column(JSON_DOC, default=dict)

    @property
    def limits(self) -> limits.PlanLimits:
        """The effective limits: those of the plan, or custom limits of an Enterprise workspace."""
        plan = limits.PLANS[self.plan]
        if self.plan != "enterprise" or not self.own_limits:
            return plan
        return limits.PlanLimits(
            **{name: int(self.own_limits.get(name) or getattr(plan, name)) for name in plan.__slots__}
        )


class Team(UpdatedAtMixin, SoftDeleteMixin, WorkspaceMixin, Base):
    """A group of projects and people in a workspace."""

    __tablename__ = "teams"

    id: Mapped[str] = id_column("team")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))


class Project(UpdatedAtMixin, SoftDeleteMixin, WorkspaceMixin, Base):
    """A project, which contains templates, connections and scenarios."""

    __tablename__ = "projects"

    id: Mapped[str] = id_column("prj")
    team_id: Mapped[str] = foreign_key_column("teams.id", ondelete="CASCADE")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    description: Mapped[str] = mapped_column(String(limits.MAX_DESCRIPTION_CHARS), default="")


class Membership(CreatedAtMixin, WorkspaceMixin, Base):
    """The role of a user in a whole workspace (`team_id` NULL) or in one of its teams."""

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

    id: Mapped[str] = id_column("mem")
    team_id: Mapped[str | None] = foreign_key_column(
        "teams.id", nullable=True, ondelete="CASCADE", index=False
    )
    user_id: Mapped[str] = foreign_key_column("users.id", ondelete="CASCADE")
    role: Mapped[str] = mapped_column(String(16))


HASH_CHARS = 64  # a SHA-256 in hexadecimal


class User(UpdatedAtMixin, Base):
    """A user. `email` is the account name, in lower case. Passwords are stored separately; without one, users sign in
    by link."""

    __tablename__ = "users"

    id: Mapped[str] = id_column("usr")
    email: Mapped[str] = mapped_column(String(320), unique=True)
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS), default="")
    password_hash: Mapped[str | None] = mapped_column(String(200))
    disabled_at: Mapped[datetime | None]


class BrowserSession(CreatedAtMixin, Base):
    """A browser session. The cookie contains the token, the row its hash, so deleting the row ends the session."""

    __tablename__ = "browser_sessions"

    id: Mapped[str] = id_column("ses")
    token_hash: Mapped[str] = mapped_column(String(HASH_CHARS), unique=True)
    user_id: Mapped[str] = foreign_key_column("users.id", ondelete="CASCADE")
    workspace_id: Mapped[str] = foreign_key_column("workspaces.id", ondelete="CASCADE")
    project_id: Mapped[str | None] = foreign_key_column(
        "projects.id", nullable=True, ondelete="SET NULL", index=False
    )
    address: Mapped[str] = mapped_column(String(64), default="")
    user_agent: Mapped[str] = mapped_column(String(200), default="")
    last_seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    how: Mapped[str] = mapped_column(String(16), default="")
    """How the session started: password, link, invitation, oidc; "" for sessions older than this column."""
    two_factor: Mapped[bool] = mapped_column(Boolean, default=False)
    """Whether a second factor was verified, by us or (according to its settings) by the provider."""


class SignInLink(CreatedAtMixin, Base):
    """A one-time link that signs its user in. A used link is only kept as a record."""

    __tablename__ = "sign_in_links"

    id: Mapped[str] = id_column("lnk")
    token_hash: Mapped[str] = mapped_column(String(HASH_CHARS), unique=True)
    user_id: Mapped[str] = foreign_key_column("users.id", ondelete="CASCADE")
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class Invitation(CreatedAtMixin, WorkspaceMixin, Base):
    """An invitation of one e-mail address to a workspace or one team, with the role that the user will have."""

    __tablename__ = "invitations"
    __table_args__ = (CheckConstraint(f"role IN ({', '.join(repr(role) for role in ROLES)})", name="role"),)

    id: Mapped[str] = id_column("inv")
    token_hash: Mapped[str] = mapped_column(String(HASH_CHARS), unique=True)
    team_id: Mapped[str | None] = foreign_key_column(
        "teams.id", nullable=True, ondelete="CASCADE", index=False
    )
    email: Mapped[str] = mapped_column(String(320))
    role: Mapped[str] = mapped_column(String(16))
    created_by: Mapped[str | None] = foreign_key_column(
        "users.id", nullable=True, ondelete="SET NULL", index=False
    )
    expires_at: Mapped[datetime]
    accepted_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


# Sign-in methods in addition to passwords: accounts at OpenID Connect providers, and second factors.


class Identity(CreatedAtMixin, Base):
    """A user's account at a provider, identified by issuer and subject (OpenID Connect Core 1.0, section 2: the pair is
    unique and never reassigned). `email` is the one that the provider sent when the account was linked."""

    __tablename__ = "identities"
    __table_args__ = (UniqueConstraint("issuer", "subject"),)

    id: Mapped[str] = id_column("idn")
    user_id: Mapped[str] = foreign_key_column("users.id", ondelete="CASCADE")
    issuer: Mapped[str] = mapped_column(String(limits.OIDC_ISSUER_CHARS))
    subject: Mapped[str] = mapped_column(String(limits.OIDC_TEXT_CHARS))
    email: Mapped[str] = mapped_column(String(320))
    last_used_at: Mapped[datetime]


class SecondFactor(CreatedAtMixin, Base):
    """A user's authenticator app. It is active from `confirmed_at` on; before that, it is being set up. `last_step` is
    the time step of the last accepted code: codes of this and earlier steps are rejected (RFC 6238, 5.2)."""

    __tablename__ = "second_factors"

    user_id: Mapped[str] = mapped_column(
        String(ID_CHARS), ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    last_step: Mapped[int] = mapped_column(BigInteger, default=0)
    confirmed_at: Mapped[datetime | None]


class RecoveryCode(CreatedAtMixin, Base):
    """A recovery code, which replaces the authenticator once. Shown when it is created; stored as a hash."""

    __tablename__ = "recovery_codes"
    __table_args__ = (UniqueConstraint("user_id", "code_hash"),)

    id: Mapped[str] = id_column("rec")
    user_id: Mapped[str] = foreign_key_column("users.id", ondelete="CASCADE", index=False)
    code_hash: Mapped[str] = mapped_column(String(HASH_CHARS))
    used_at: Mapped[datetime | None]


# API keys. The secret is shown once and stored as a hash; the handle identifies the row.


class ApiKey(CreatedAtMixin, ProjectMixin, Base):
    """An API key. It has the current permissions of the user who created it, limited by `scopes` if any are set."""

    __tablename__ = "api_keys"

    id: Mapped[str] = id_column("key")
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS))
    handle: Mapped[str] = mapped_column(String(limits.KEY_HANDLE_CHARS), unique=True)
    secret_hash: Mapped[str] = mapped_column(String(HASH_CHARS))
    scopes: Mapped[list[Any] | None] = mapped_column(JSON_DOC)  # NULL: all permissions of the user's role
    created_by: Mapped[str] = foreign_key_column("users.id", ondelete="CASCADE")
    api_version: Mapped[str] = mapped_column(String(10))  # the newest version when the key was created
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    last_used_address: Mapped[str | None] = mapped_column(String(64))
    revoked_at: Mapped[datetime | None]
    run_id: Mapped[str | None] = foreign_key_column("runs.id", nullable=True, ondelete="CASCADE")
    """The run that the key was created for. Such a key is not listed, and is revoked with the end of the run."""
    writable_secrets: Mapped[list[Any]] = mapped_column(JSON_DOC, default=list)
    """Secrets that the key of a run can set, regardless of its creator's role."""


API_VERSIONS: Final = ("2026-11-21",)  # oldest first


NEWEST_VERSION: Final = API_VERSIONS[-1]
