"""What people sign in with beside passwords: accounts at a provider of OpenID Connect, and second factors."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, ForeignKey, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from webapp import limits
from webapp.models.base import ID_CHARS, Base, Created, identity, reference
from webapp.models.people import HASH_CHARS


class Identity(Created, Base):
    """Somebody's account at a provider: who comes with this issuer and subject is this user (OpenID Connect Core 1.0,
    2: the two together never mean anybody else). `email` is as it was told when they were linked."""

    __tablename__ = "identities"
    __table_args__ = (UniqueConstraint("issuer", "subject"),)

    id: Mapped[str] = identity("idn")
    user_id: Mapped[str] = reference("users.id", ondelete="CASCADE")
    issuer: Mapped[str] = mapped_column(String(limits.OIDC_ISSUER_CHARS))
    subject: Mapped[str] = mapped_column(String(limits.OIDC_TEXT_CHARS))
    email: Mapped[str] = mapped_column(String(320))
    last_used_at: Mapped[datetime]


class SecondFactor(Created, Base):
    """A person's authenticator. It counts from `confirmed_at` on; before, it is being set up. `last_step` is the time
    step of the last code that was taken: neither it nor an earlier one is taken again (RFC 6238, 5.2)."""

    __tablename__ = "second_factors"

    user_id: Mapped[str] = mapped_column(
        String(ID_CHARS), ForeignKey("users.id", ondelete="CASCADE"), primary_key=True
    )
    sealed: Mapped[bytes] = mapped_column(LargeBinary)
    last_step: Mapped[int] = mapped_column(BigInteger, default=0)
    confirmed_at: Mapped[datetime | None]


class RecoveryCode(Created, Base):
    """A code that stands for the authenticator once. Shown when it was made; here lies its hash."""

    __tablename__ = "recovery_codes"
    __table_args__ = (UniqueConstraint("user_id", "code_hash"),)

    id: Mapped[str] = identity("rec")
    user_id: Mapped[str] = reference("users.id", ondelete="CASCADE", index=False)
    code_hash: Mapped[str] = mapped_column(String(HASH_CHARS))
    used_at: Mapped[datetime | None]
