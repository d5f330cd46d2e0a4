"""Who belongs to a workspace: people with their role in the whole of it and in its teams, added, and taken away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Select, func, or_, select

from webapp import limits
from webapp.extensions import db
from webapp.models import ApiKey, Membership, Team, User
from webapp.services import api_keys, paging, people, tenancy
from webapp.services.actors import Actor, require

SORTS: Final[Mapping[str, Any]] = {"email": User.email, "name": User.name, "since": User.id}


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody with all their places: in the whole workspace (None: in none but teams), and in teams with the teams'
    names. `keys` is how many keys of theirs work; told to admins alone."""

    user: User
    whole: Membership | None
    teams: Sequence[tuple[Membership, str]]
    keys: int


def listing(actor: Actor) -> Select[tuple[Membership]]:
    """A select of the memberships that the actor sees; those of deleted teams are none."""
    return (
        tenancy.listing(actor, Membership)
        .join(User, User.id == Membership.user_id)
        .outerjoin(Team, Team.id == Membership.team_id)
        .where(Team.deleted_at.is_(None))
    )


def found_by(text: str | None) -> Any:
    """A condition: the text is in a person's name or address, without regard to case; true for none."""
    wanted = (text or "").strip()
    return or_(paging.contains(User.email, wanted), paging.contains(User.name, wanted))


def people_of(
    actor: Actor,
    *,
    q: str | None = None,
    sort: str | None = None,
    team_id: str | None = None,
    cursor: str | None = None,
    limit: int = limits.PAGE_LIMIT_DEFAULT,
) -> paging.Page[Person]:
    """A page of the people of the workspace, by address or as `sort` says: a key of SORTS, backwards with `-`."""
    mine = listing(actor)
    if team_id is not None:
        mine = mine.where(Membership.team_id == team_id)
    statement = select(User).where(User.id.in_(mine.with_only_columns(Membership.user_id)), found_by(q))
    page = paging.page(
        statement,
        name="people",
        identity=User.id,
        cursor=cursor,
        limit=limit,
        order=SORTS[(sort or "email").removeprefix("-")],
        descending=(sort or "").startswith("-"),
        context=f"{actor.workspace_id} {actor.user_id} {q} {team_id}",
    )
    return paging.Page(_persons(actor, page.items), page.next_cursor, page.total)


def _persons(actor: Actor, users: Sequence[User]) -> list[Person]:
    ids = [one.id for one in users]
    rows = db.session.execute(
        listing(actor).add_columns(Team.name).where(Membership.user_id.in_(ids)).order_by(func.lower(Team.name))
    ).all()
    held = _key_counts(actor, ids) if actor.can("admin") else {}
    return [
        Person(
            user,
            next((member for member, _ in rows if member.user_id == user.id and member.team_id is None), None),
            [(member, team) for member, team in rows if member.user_id == user.id and member.team_id is not None],
            held.get(user.id, 0),
        )
        for user in users
    ]


def _key_counts(actor: Actor, user_ids: Sequence[str]) -> dict[str, int]:
    statement = (
        api_keys.listing(actor)
        .with_only_columns(ApiKey.created_by, func.count())
        .where(ApiKey.created_by.in_(user_ids), ApiKey.revoked_at.is_(None))
        .group_by(ApiKey.created_by)
    )
    return {row[0]: row[1] for row in db.session.execute(statement)}


def add(actor: Actor, user_id: str, role: str, team_id: str | None) -> Membership:
    """Give somebody who belongs to the workspace already a role in a team, or (None) in the whole of it; commits.

    Errors: forbidden, not_found (nobody of the workspace, or no such team), conflict when they have one there.
    """
    require(actor, "admin")
    known = tenancy.listing(actor, Membership).where(Membership.user_id == user_id).limit(1)
    if "\0" in user_id or db.session.scalar(known) is None:
        raise tenancy.not_found("person", user_id)
    if team_id is not None:
        tenancy.get(actor, Team, team_id, "admin", lock=True)
    return people.add_member(actor, db.session.get_one(User, user_id), role, team_id=team_id)


def remove(actor: Actor, member: Membership, *, everywhere: bool = False, revoke_keys: bool = False) -> int:
    """Take a locked membership away, or with `everywhere` all that the person has in the workspace, and with
    `revoke_keys` their keys; commits. Returns how many keys that were.

    Errors: forbidden, conflict (the workspace would have no owner left).
    """
    require(actor, "admin")
    gone = [member]
    if everywhere:
        whole = tenancy.listing(actor, Membership).where(Membership.user_id == member.user_id)
        gone = list(db.session.scalars(whole.order_by(Membership.id).with_for_update()))
    people.remove_members(actor, gone)
    revoked = api_keys.end_all(actor, member.user_id) if revoke_keys else []
    db.session.commit()
    return len(revoked)
