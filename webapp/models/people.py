"""Users, and the ways in: browser sessions, one-time sign-in links, invitations. Tokens lie here as hashes only."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Boolean, CheckConstraint, String
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.models.base import Base, Created, InWorkspace, Updated, identity, reference
from webapp.models.tenancy import ROLES

HASH_CHARS = 64  # a SHA-256 in hexadecimal


class User(Updated, Base):
    """A person. `email` is kept in lower case and is the account name. No password: only links let in."""

    __tablename__ = "users"

    id: Mapped[str] = identity("usr")
    email: Mapped[str] = mapped_column(String(320), unique=True)
    name: Mapped[str] = mapped_column(String(limits.MAX_NAME_CHARS), default="")
    password_hash: Mapped[str | None] = mapped_column(String(200))
    disabled_at: Mapped[datetime | None]


class BrowserSession(Created, Base):
    """One signed-in browser. The cookie holds the token, the row its hash, so ending the row ends the session."""

    __tablename__ = "browser_sessions"

    id: Mapped[str] = identity("ses")
    token_hash: Mapped[str] = mapped_column(String(HASH_CHARS), unique=True)
    user_id: Mapped[str] = reference("users.id", ondelete="CASCADE")
    workspace_id: Mapped[str] = reference("workspaces.id", ondelete="CASCADE")
    project_id: Mapped[str | None] = reference("projects.id", nullable=True, ondelete="SET NULL", index=False)
    address: Mapped[str] = mapped_column(String(64), default="")
    user_agent: Mapped[str] = mapped_column(String(200), default="")
    last_seen_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]
    how: Mapped[str] = mapped_column(String(16), default="")
    """How it began: password, link, invitation, oidc; "" of sessions before this was kept."""
    two_factor: Mapped[bool] = mapped_column(Boolean, default=False)
    """Whether a second factor was seen, here or (as its settings say) by the provider."""


class SignInLink(Created, Base):
    """A one-time link that signs its user in. Used once, then only a trace."""

    __tablename__ = "sign_in_links"

    id: Mapped[str] = identity("lnk")
    token_hash: Mapped[str] = mapped_column(String(HASH_CHARS), unique=True)
    user_id: Mapped[str] = reference("users.id", ondelete="CASCADE")
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class Invitation(Created, InWorkspace, Base):
    """An open door for one e-mail address into a workspace or one team, with the role it will have."""

    __tablename__ = "invitations"
    __table_args__ = (CheckConstraint(f"role IN ({', '.join(repr(role) for role in ROLES)})", name="role"),)

    id: Mapped[str] = identity("inv")
    token_hash: Mapped[str] = mapped_column(String(HASH_CHARS), unique=True)
    team_id: Mapped[str | None] = reference("teams.id", nullable=True, ondelete="CASCADE", index=False)
    email: Mapped[str] = mapped_column(String(320))
    role: Mapped[str] = mapped_column(String(16))
    created_by: Mapped[str | None] = reference("users.id", nullable=True, ondelete="SET NULL", index=False)
    expires_at: Mapped[datetime]
    accepted_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
