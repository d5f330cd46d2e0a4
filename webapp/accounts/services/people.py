"""People: accounts, members, invitations."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Select, func, or_, select

from webapp import clock, limits, pagination
from webapp.access import actors, tenancy
from webapp.access.actors import ROLE_RANKS, Actor, require_scope
from webapp.access.models import ApiKey, Invitation, Membership, Team, User, Workspace
from webapp.accounts.services import api_keys
from webapp.accounts.services.identity import rate_limiter
from webapp.audit.services import audit_log
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import db
from webapp.mail import services as mail
from webapp.security import keys, passwords

_EMAIL: Final = re.compile(r"[^@\s\x00-\x1f]{1,64}@[^@\s\x00-\x1f]{1,255}")


def normalize_email(email: str, path: str = "email") -> str:
    """Return an e-mail address as account name: lower case, without surrounding whitespace. Error: validation_error."""
    email = email.strip().lower()
    if not _EMAIL.fullmatch(email):
        raise validation_error([Fault(path, "wrong_form", "This is not an e-mail address.")])
    return email


def password_faults(password: str, path: str = "password", about: Sequence[str] = ()) -> list[Fault]:
    """Return why a password is not allowed: too short, too long, a repeated character, or easy to guess. `about`:
    public information about the user, such as name and address. Returns at most one error."""
    low, high = limits.PASSWORD_MIN_CHARS, limits.PASSWORD_MAX_CHARS
    if len(password) < low:
        return [Fault(path, "too_short", f"A password must have at least {low} characters.")]
    if len(password) > high:
        return [Fault(path, "too_long", f"A password must have at most {high} characters.")]
    if len(set(password)) < 4:
        return [Fault(path, "invalid", "A password must have more than a few different characters.")]
    if passwords.is_common(password):
        text = "This password is too common or has been leaked. Choose a different one, such as several random words."
        return [Fault(path, "not_allowed", text)]
    if passwords.is_obvious(password, about):
        text = (
            "The password must not consist of your name, your e-mail address, or the name of the service or workspace."
            " Use a few unrelated words."
        )
        return [Fault(path, "not_allowed", text)]
    return []


def check_password(password: str, path: str = "password", about: Sequence[str] = ()) -> None:
    """Raise validation_error for a password that is not allowed; see `password_faults`."""
    if faults := password_faults(password, path, about):
        raise validation_error(faults)


def create_user(actor: Actor, email: str, *, name: str = "", password: str | None = None) -> User:
    """Create an account without memberships; commits. Only the service itself can do this; users are invited.

    Errors: forbidden, validation_error, conflict (the address has an account).
    """
    if actor.kind != "system":
        raise ApiError("forbidden", "New accounts need an invitation.", {"needs": "operator"})
    user = add_user(email, name, password)
    db.session.commit()
    return user


def add_user(email: str, name: str, password: str | None, workspace: str = "") -> User:
    """Create an account in the caller's transaction. `workspace`: the name of the workspace that the user joins.
    Errors: validation_error, conflict."""
    email = normalize_email(email)
    if password is not None:
        check_password(password, about=(email, name, workspace))
    if find_user(email) is not None:
        raise ApiError("conflict", "This address already has an account.", {"email": email})
    stored = passwords.hash_password(password) if password is not None else None
    user = User(email=email, name=name.strip(), password_hash=stored)
    db.session.add(user)
    db.session.flush()
    return user


def find_user(email: str) -> User | None:
    """Return the account of an address, or None."""
    return db.session.scalar(select(User).where(User.email == email.strip().lower()))


def add_member(actor: Actor, user: User, role: str, *, team_id: str | None = None) -> Membership:
    """Add a user to the workspace, or to one team; commits. Error: conflict if they are a member already."""
    require_scope(actor, "admin")
    _check_rank(actor, role)
    member = _add_member(actor.workspace_id, user, role, team_id)
    audit_log.record(actor, "member.add", user, join=True, role=role, team_id=team_id)
    actors.announce_permission_change(db.session(), actor.workspace_id)
    db.session.commit()
    return member


def _add_member(workspace_id: str, user: User, role: str, team_id: str | None) -> Membership:
    if _membership(workspace_id, user.id, team_id) is not None:
        raise ApiError("conflict", "This user is already a member.", {"user_id": user.id})
    member = Membership(workspace_id=workspace_id, user_id=user.id, role=role, team_id=team_id)
    db.session.add(member)
    db.session.flush()
    return member


def _membership(workspace_id: str, user_id: str, team_id: str | None) -> Membership | None:
    return db.session.scalar(
        select(Membership).where(
            Membership.workspace_id == workspace_id,
            Membership.user_id == user_id,
            Membership.team_id.is_(None) if team_id is None else Membership.team_id == team_id,
        )
    )


def _check_rank(actor: Actor, *roles: str) -> None:
    """Reject giving, removing or changing a role above the actor's own."""
    own_role = actor.workspace_role or "viewer"
    for role in roles:
        if ROLE_RANKS[role] > ROLE_RANKS[own_role]:
            raise ApiError("forbidden", f"Only an {role} can do this.", {"needs": role, "role": role})


def change_role(actor: Actor, member: Membership, role: str) -> None:
    """Change the role of a member, effective from their next request on; commits.

    Errors: forbidden, conflict (the workspace would have no owner left).
    """
    require_scope(actor, "admin")
    _check_rank(actor, role, member.role)
    if member.role == "owner" and role != "owner":
        _check_other_owner(member)
    old_role, member.role = member.role, role
    audit_log.record(
        actor,
        "member.change",
        ("user", member.user_id),
        join=True,
        role={"from": old_role, "to": role},
        team_id=member.team_id,
    )
    actors.announce_permission_change(db.session(), actor.workspace_id)
    db.session.commit()


def remove_members(actor: Actor, members: Sequence[Membership]) -> None:
    """Remove memberships, and with them the permissions of the users' keys, in the caller's transaction. Errors as
    `change_role`."""
    require_scope(actor, "admin")
    _check_rank(actor, *(member.role for member in members))
    for member in members:
        if member.role == "owner":
            _check_other_owner(member)
        db.session.delete(member)
        audit_log.record(
            actor,
            "member.remove",
            ("user", member.user_id),
            join=True,
            role=member.role,
            team_id=member.team_id,
        )
    actors.announce_permission_change(db.session(), actor.workspace_id)


def _check_other_owner(member: Membership) -> None:
    if member.team_id is not None:
        return
    # Two owners who remove each other's role at the same time are processed one after the other.
    db.session.get_one(Workspace, member.workspace_id, with_for_update=True)
    others = select(func.count()).where(
        Membership.workspace_id == member.workspace_id,
        Membership.team_id.is_(None),
        Membership.role == "owner",
        Membership.id != member.id,
    )
    if not db.session.scalar(others):
        raise ApiError("conflict", "This is the last owner of the workspace.", {"id": member.id})


def invite(actor: Actor, email: str, role: str, *, team_id: str | None = None) -> tuple[Invitation, str]:
    """Create an invitation and return it with its token, which is shown only once. Sends an e-mail if mail is
    configured; commits.

    Errors: forbidden, validation_error, conflict (already a member, or an open invitation exists).
    """
    require_scope(actor, "admin")
    _check_rank(actor, role)
    email = normalize_email(email)
    if (
        team_id is not None
        and db.session.scalar(tenancy.listing(actor, Team).where(Team.id == team_id)) is None
    ):
        raise validation_error([Fault("team_id", "unknown", "There is no such team in this workspace.")])
    user = find_user(email)
    if user is not None and _membership(actor.workspace_id, user.id, team_id) is not None:
        raise ApiError("conflict", "This user is already a member.", {"email": email})
    same = Invitation.team_id.is_(None) if team_id is None else Invitation.team_id == team_id
    if db.session.scalar(open_invitations(actor.workspace_id).where(Invitation.email == email, same)):
        raise ApiError("conflict", "This address already has an open invitation.", {"email": email})
    _count_invitation_mail(actor.workspace_id, email)
    token, token_hash = keys.new_token(os.urandom)
    invitation = Invitation(
        workspace_id=actor.workspace_id,
        team_id=team_id,
        email=email,
        role=role,
        token_hash=token_hash,
        created_by=actor.user_id,
        expires_at=clock.now() + timedelta(days=limits.INVITATION_DAYS),
    )
    db.session.add(invitation)
    db.session.flush()
    audit_log.record(actor, "invitation.create", invitation, join=True, role=role, team_id=team_id)
    _send_invitation(actor, invitation, token)
    db.session.commit()
    return invitation, token


def _count_invitation_mail(workspace_id: str, email: str) -> None:
    """Count an invitation e-mail to a mailbox. `name+tag@domain` is the mailbox `name@domain` (RFC 5233, subaddress).

    Error: rate_limited if the workspace has reached its limit for an hour.
    """
    if not mail.is_configured():
        return
    name, _, domain = email.rpartition("@")
    mailbox = f"{name.partition('+')[0] or name}@{domain}".casefold()
    hashed = hashlib.blake2b(mailbox.encode("utf-8", "replace"), digest_size=12).hexdigest()
    limit, window = limits.INVITATION_MAILS_PER_HOUR, limits.INVITATION_MAILS_SECONDS
    result = rate_limiter().hit(f"rowsmith:invitation-mails:{workspace_id}:{hashed}", limit, window)
    if not result.accepted:
        wait = max(1, math.ceil(result.reset - clock.epoch()))
        raise ApiError(
            "rate_limited",
            f"At most {limit} invitation e-mails an hour can be sent to {email}. Try again in {wait} s.",
            {"limit": limit, "retry_after": wait},
            headers={"Retry-After": str(wait)},
        )


def _send_invitation(actor: Actor, invitation: Invitation, token: str) -> None:
    """Add the invitation e-mail to the outbox if mail is configured, in the caller's transaction."""
    place = mail.single_line(db.session.get_one(Workspace, invitation.workspace_id).name)
    if invitation.team_id is not None:
        place = f"the team {mail.single_line(db.session.get_one(Team, invitation.team_id).name)} of {place}"
    message = mail.MailContent(
        kind="invitation",
        recipient=invitation.email,
        subject=f"You are invited to {place}",
        paragraphs=[
            f"{mail.single_line(actor.user_name)} invites you to {place} on Rowsmith, a test data service.",
            f"The link works once, until {invitation.expires_at:%Y-%m-%d %H:%M} UTC. Your role: {invitation.role}.",
        ],
        link=("Accept the invitation", mail.absolute_url(f"/invitations/accept/{token}")),
        reason="If you were not expecting this invitation, you can ignore this e-mail.",
    )
    mail.enqueue(db.session, message, workspace_id=invitation.workspace_id, about=invitation.id)


def resend(actor: Actor, invitation: Invitation) -> str:
    """Replace the token of a locked invitation, which makes its old link invalid and restarts its lifetime; commits.

    Errors: forbidden, conflict if it was accepted or closed in the meantime, rate_limited.
    """
    require_scope(actor, "admin")
    _check_rank(actor, invitation.role)
    if invitation.accepted_at is not None or invitation.revoked_at is not None:
        raise ApiError(
            "conflict",
            "This invitation was already accepted or closed. Create a new one.",
            {"id": invitation.id},
        )
    _count_invitation_mail(invitation.workspace_id, invitation.email)
    token, invitation.token_hash = keys.new_token(os.urandom)
    invitation.expires_at = clock.now() + timedelta(days=limits.INVITATION_DAYS)
    audit_log.record(actor, "invitation.resend", invitation, join=True)
    _send_invitation(actor, invitation, token)
    db.session.commit()
    return token


def open_invitations(workspace_id: str) -> Select[Invitation]:
    """Return a select of the workspace's invitations that can still be accepted."""
    return select(Invitation).where(
        Invitation.workspace_id == workspace_id,
        Invitation.accepted_at.is_(None),
        Invitation.revoked_at.is_(None),
        Invitation.expires_at > clock.now(),
    )


def revoke_invitation(actor: Actor, invitation: Invitation) -> None:
    """Close an open invitation; commits."""
    require_scope(actor, "admin")
    if invitation.revoked_at is None and invitation.accepted_at is None:
        invitation.revoked_at = clock.now()
        audit_log.record(actor, "invitation.revoke", invitation, join=True)
    db.session.commit()


def invitation_by_token(token: str, *, lock: bool = False) -> Invitation:
    """Return an open invitation. Error: not_found for an unknown, used, revoked or expired one."""
    statement = select(Invitation).where(
        Invitation.token_hash == keys.digest(token),
        or_(Invitation.accepted_at.is_(None)),
        Invitation.revoked_at.is_(None),
        Invitation.expires_at > clock.now(),
    )
    if lock:
        statement = statement.with_for_update()
    found = db.session.scalar(statement)
    if found is None:
        raise ApiError("not_found", "This invitation is no longer valid. Ask for a new one.")
    return found


def accept_invitation(invitation: Invitation, user: User) -> Membership:
    """Add a user to the workspace as described in an invitation, in the caller's transaction."""
    invitation.accepted_at = clock.now()
    found = _membership(invitation.workspace_id, user.id, invitation.team_id)
    if found is None:
        found = _add_member(invitation.workspace_id, user, invitation.role, invitation.team_id)
    actors.announce_permission_change(db.session(), invitation.workspace_id)
    return found


def rename_self(actor: Actor, name: str) -> None:
    """Change one's own name; commits."""
    user = db.session.get_one(User, actor.user_id, with_for_update=True)
    changes = audit_log.changes_between({"name": user.name}, {"name": name.strip()})
    user.name, user.updated_at = name.strip(), clock.now()
    audit_log.record(actor, "user.change", user, join=True, changes=changes)
    actors.announce_permission_change(db.session(), actor.workspace_id)
    db.session.commit()


def disable_user(actor: Actor, user: User) -> None:
    """Close an account, and commit: its sessions and keys end, what it created stays. For operators."""
    if actor.kind != "system":
        raise ApiError("forbidden", "Only the operator can close accounts.", {"needs": "operator"})
    user.disabled_at = user.disabled_at or clock.now()
    workspace_ids = select(Membership.workspace_id).where(Membership.user_id == user.id).distinct()
    for workspace_id in db.session.scalars(workspace_ids).all():
        audit_log.record(actor, "user.disable", user, join=True, workspace_id=workspace_id)
        actors.announce_permission_change(db.session(), workspace_id)
    db.session.commit()


# Members of a workspace: users with their roles in the workspace and in its teams.

SORT_COLUMNS: Final[Mapping[str, Any]] = {"email": User.email, "name": User.name, "since": User.id}


@dataclass(frozen=True, slots=True)
class Person:
    """A member with their roles: in the whole workspace (None: only in teams), and in teams with the teams'
    names. `keys`: the number of their valid keys; only for admins."""

    user: User
    workspace_membership: Membership | None
    teams: Sequence[tuple[Membership, str]]
    keys: int


def listing(actor: Actor) -> Select[Membership]:
    """Return a select of the memberships that the actor can see, without those of deleted teams."""
    return (
        tenancy.listing(actor, Membership)
        .join(User, User.id == Membership.user_id)
        .outerjoin(Team, Team.id == Membership.team_id)
        .where(Team.deleted_at.is_(None))
    )


def name_matches(text: str | None) -> Any:
    """Return a condition: a user's name or address contains the text, ignoring case; true for an empty text."""
    text_to_find = (text or "").strip()
    return or_(pagination.contains(User.email, text_to_find), pagination.contains(User.name, text_to_find))


def list_people(
    actor: Actor,
    *,
    q: str | None = None,
    sort: str | None = None,
    team_id: str | None = None,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
) -> pagination.Page[Person]:
    """Return a page of the users of the workspace, by address or by `sort`: a key of SORTS, descending with `-`."""
    memberships = listing(actor)
    if team_id is not None:
        memberships = memberships.where(Membership.team_id == team_id)
    statement = select(User).where(
        User.id.in_(memberships.with_only_columns(Membership.user_id)), name_matches(q)
    )
    page = pagination.paginate(
        statement,
        name="people",
        id_column=User.id,
        cursor=cursor,
        limit=limit,
        order_column=SORT_COLUMNS[(sort or "email").removeprefix("-")],
        descending=(sort or "").startswith("-"),
        context=f"{actor.workspace_id} {actor.user_id} {q} {team_id}",
    )
    ids = [item.id for item in page.items]
    rows = db.session.execute(
        listing(actor)
        .add_columns(Team.name)
        .where(Membership.user_id.in_(ids))
        .order_by(func.lower(Team.name))
    ).all()
    key_counts: dict[str, int] = {}
    if actor.can("admin"):
        counts = (
            api_keys.listing(actor)
            .with_only_columns(ApiKey.created_by, func.count())
            .where(ApiKey.created_by.in_(ids), ApiKey.revoked_at.is_(None))
            .group_by(ApiKey.created_by)
        )
        key_counts = {row[0]: row[1] for row in db.session.execute(counts)}
    persons = [
        Person(
            user,
            next(
                (member for member, _ in rows if member.user_id == user.id and member.team_id is None), None
            ),
            [
                (member, team)
                for member, team in rows
                if member.user_id == user.id and member.team_id is not None
            ],
            key_counts.get(user.id, 0),
        )
        for user in page.items
    ]
    return pagination.Page(persons, page.next_cursor, page.total)


def add(actor: Actor, user_id: str, role: str, team_id: str | None) -> Membership:
    """Give a member of the workspace a role in a team, or (None) in the whole workspace, and commit.

    Errors: forbidden, not_found (no such member or team), conflict if they already have a role there.
    """
    require_scope(actor, "admin")
    existing = tenancy.listing(actor, Membership).where(Membership.user_id == user_id).limit(1)
    if "\0" in user_id or db.session.scalar(existing) is None:
        raise tenancy.not_found("person", user_id)
    if team_id is not None:
        tenancy.get(actor, Team, team_id, "admin", lock=True)
    return add_member(actor, db.session.get_one(User, user_id), role, team_id=team_id)


def remove(actor: Actor, member: Membership, *, everywhere: bool = False, revoke_keys: bool = False) -> int:
    """Remove a locked membership, or with `everywhere` all that the user has in the workspace, and with
    `revoke_keys` their keys; commits. Returns how many keys that were.

    Errors: forbidden, conflict (the workspace would have no owner left).
    """
    require_scope(actor, "admin")
    memberships = [member]
    if everywhere:
        all_memberships = tenancy.listing(actor, Membership).where(Membership.user_id == member.user_id)
        memberships = list(db.session.scalars(all_memberships.order_by(Membership.id).with_for_update()))
    remove_members(actor, memberships)
    revoked = api_keys.revoke_all_in_transaction(actor, member.user_id) if revoke_keys else []
    db.session.commit()
    return len(revoked)
