"""Objects whose every change is a version (specification, section 9): find, read, save, delete and restore them.

Such an object is a head (what lists and searches need) and one row for each version, which never changes. What a
version contains, and how it is validated before it is saved, differs by kind: see templates.py, datasets.py.

Dependents of an object are shown before it is deleted, and are part of the error if that is rejected. Each kind of
object has a function that finds its dependents. These functions query all domains, so they are defined in
`objects.services`, and `create_app` passes them in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar

import orjson
from flask import Flask, current_app
from sqlalchemy import and_, func, select

from webapp import clock, limits, pagination
from webapp.access import tenancy
from webapp.access.actors import Actor, require_scope
from webapp.access.models import User
from webapp.access.tenancy import not_found
from webapp.audit.models import AuditEntry
from webapp.audit.services import audit_log
from webapp.errors import ApiError
from webapp.extensions import db
from webapp.metering import stored_json
from webapp.versioning.models import Version, Versioned


@dataclass(frozen=True, slots=True)
class Dependent:
    """An object that uses another. `how`: a description. `team_id`: its team; None: no team."""

    type: str
    id: str
    name: str
    how: str
    blocks: bool = False
    team_id: str | None = None


def usages_as_json(actor: Actor, uses: Iterable[Dependent]) -> list[dict[str, Any]]:
    """Return usages for the API; objects of teams that the actor is not in have no id and name."""
    return [
        {
            "type": dependent.type,
            "id": dependent.id if visible else None,
            "name": dependent.name if visible else None,
            "how": dependent.how,
            "blocks": dependent.blocks,
        }
        for dependent in uses
        for visible in [dependent.team_id is None or actor.role_in(dependent.team_id) is not None]
    ]


def check_not_in_use(actor: Actor, uses: Iterable[Dependent], what: str) -> None:
    """Raise `in_use` if some of the dependents block a deletion; those that the actor may not see are only counted."""
    blocking = usages_as_json(actor, (use for use in uses if use.blocks))
    if not blocking:
        return
    users = [{key: item[key] for key in ("type", "id", "name")} for item in blocking]
    names = [f'{user["type"]} "{user["name"]}"' for user in users if user["name"] is not None][:3]
    more = len(users) - len(names)
    names_text = ", ".join(names) + (f" and {more} more" if names and more else "")
    names_text = names_text or f"{more} {'object' if more == 1 else 'objects'} in other teams"
    raise ApiError(
        "in_use", f"{names_text} {'uses' if len(users) == 1 else 'use'} this {what}.", {"used_by": users}
    )


DependentsFinder = Callable[[Actor, Any], Iterable[Dependent]]
_FINDERS: Final = "rowsmith.usages"


def init_app(app: Flask, finders: Mapping[Any, DependentsFinder]) -> None:
    """Set the function that finds the uses of an object of each model."""
    app.extensions[_FINDERS] = finders


def find_dependents(actor: Actor, found: Any) -> list[Dependent]:
    """Return what uses an object."""
    finders: Mapping[Any, DependentsFinder] = current_app.extensions[_FINDERS]
    return list(finders[type(found)](actor, found))


_ID: Final = re.compile(rb"(?:tpl|dst|scn|con|end)_[0-9A-Za-z]{26}")


def ids_in(value: Any) -> set[str]:
    """Return the ids anywhere in a JSON value."""
    return {found.decode() for found in _ID.findall(orjson.dumps(value))}


# Deleting objects and restoring them within 30 days.


# --- Versions -----------------------------------------------------------------------------------------------


def soft_delete(actor: Actor, row: Any) -> None:
    """Mark a row deleted, with its audit entry, and commit. Doing it twice changes nothing."""
    if row.deleted_at is None:
        row.deleted_at = clock.now()
        audit_log.record(actor, f"{audit_log.object_type(row)}.delete", row, join=True)
    db.session.commit()


def restore(actor: Actor, row: Any) -> None:
    """Take a deletion back within 30 days, and commit. Error: not_found after that."""
    if row.deleted_at is not None:
        if clock.now() - row.deleted_at > timedelta(days=limits.RESTORE_DAYS):
            raise not_found(type(row).__name__.lower(), row.id)
        row.deleted_at = None
        audit_log.record(actor, f"{audit_log.object_type(row)}.restore", row, join=True)
    db.session.commit()


H = TypeVar("H", bound=Versioned)
V = TypeVar("V", bound=Version)
Spec = Mapping[str, Any]
"""A version's stored spec: the attributes that a caller sets, and `warnings`."""


@dataclass(frozen=True)
class VersionedKind(Generic[H, V]):
    """One kind of them. `as_json(head, version)` is the object as the API shows it; `set_head_columns(head, spec)` sets
    the columns of the head that lists need in addition to name and description."""

    head: type[H]
    version: type[V]
    as_json: Callable[[H, V], dict[str, Any]]
    set_head_columns: Callable[[H, Spec], None]

    @property
    def name(self) -> str:
        """The name of the kind in URLs, messages and the audit log: `template`."""
        return self.head.__name__.lower()

    @property
    def _owner(self) -> Any:
        """The version's column that names its head."""
        return getattr(self.version, f"{self.name}_id")

    def listing(
        self,
        actor: Actor,
        *,
        cursor: str | None = None,
        limit: int = limits.PAGE_LIMIT_DEFAULT,
        q: str | None = None,
        sort: str | None = None,
    ) -> pagination.Page[dict[str, Any]]:
        """Return a page of the project's objects, each complete: newest first, or by `name` or `updated` (`-`:
        descending)."""
        head, version = self.head, self.version
        order = {"name": head.name, "updated": head.updated_at}.get((sort or "").removeprefix("-"))
        is_newest = and_(self._owner == head.id, version.number == head.version)
        columns = (version.spec, version.pins)
        page = pagination.paginate(
            tenancy.listing(actor, head),
            name=head.__tablename__,
            id_column=head.id,
            cursor=cursor,
            limit=limit,
            search=(q, head.name),
            order_column=order,
            descending=sort is None or sort.startswith("-"),
            context=actor.project_id or "",
            sizes=[select(column).where(is_newest).correlate(head).scalar_subquery() for column in columns],
        )
        statement = (
            select(self._owner, version)
            .join(head, is_newest)
            .where(head.id.in_([item.id for item in page.items]))
        )
        newest = {row[0]: row[1] for row in db.session.execute(statement)}
        return pagination.Page(
            [self.as_json(item, newest[item.id]) for item in page.items],
            page.next_cursor,
            page.total,
            page.size,
        )

    def get(
        self, actor: Actor, object_id: str, scope: str = "read", *, lock: bool = False, deleted: bool = False
    ) -> H:
        """Return the head of an object. Errors: not_found, forbidden."""
        return tenancy.get(actor, self.head, object_id, scope, lock=lock, deleted=deleted)

    def version_of(self, head: H, number: int | None = None) -> V:
        """Return one version, or the newest for None. Error: not_found."""
        requested = head.version if number is None else number
        found = None
        if 1 <= requested <= head.version:
            statement = select(self.version).where(self._owner == head.id, self.version.number == requested)
            found = db.session.scalar(statement)
        if found is None:
            raise self.version_not_found(head.id, requested)
        return found

    def version_not_found(self, object_id: str, number: int) -> Exception:
        """Return the `not_found` error of a version that does not exist."""
        return tenancy.not_found(f"{self.name} version", f"{object_id}@v{number}")

    def show(self, head: H, number: int | None = None) -> dict[str, Any]:
        """Return an object in a version (default: the newest) as the API shows it. Error: not_found."""
        return self.as_json(head, self.version_of(head, number))

    def versions(
        self, head: H, *, cursor: str | None = None, limit: int = limits.PAGE_LIMIT_DEFAULT
    ) -> pagination.Page[dict[str, Any]]:
        """Return a page of an object's versions, newest first, each complete."""
        page = pagination.paginate(
            select(self.version).where(self._owner == head.id),
            name=self.version.__tablename__,
            id_column=self.version.number,
            cursor=cursor,
            limit=limit,
            context=head.id,
            sizes=(self.version.spec, self.version.pins),
        )
        return pagination.Page(
            [self.as_json(head, item) for item in page.items], page.next_cursor, page.total
        )

    def history(self, head: H) -> Iterator[tuple[V, str]]:
        """Yield the newest versions, as many as fit on the longest page, each with the name of the user who saved it
        ("" if the user no longer exists). They are loaded one at a time, because they can be large."""
        statement = (
            select(self.version, User)
            .outerjoin(User, User.id == self.version.created_by)
            .where(self._owner == head.id)
            .order_by(self.version.number.desc())
            .limit(limits.PAGE_LIMIT_MAX)
        )
        for version, user in db.session.execute(statement, execution_options={"yield_per": 1}):
            yield version, (user.name or user.email) if user else ""

    def save(
        self,
        actor: Actor,
        head: H,
        spec: dict[str, Any],
        pins: dict[str, Any],
        verb: str,
        moment: datetime,
        columns: Mapping[str, Any] | None = None,
        **details: Any,
    ) -> dict[str, Any]:
        """Save the next version of a locked head, or the first of a new one; commits. Return it as the API shows it.

        `verb` is the action in the audit log (`change`), with `details`; `columns` are further columns of the version.
        """
        stored_json.reserve(actor, spec, pins)
        db.session.add(head)
        head.version = (head.version or 0) + 1
        head.name, head.description = spec["name"], spec["description"]
        self.set_head_columns(head, spec)
        head.updated_at = moment
        db.session.flush()
        version = self.version(
            **{f"{self.name}_id": head.id},
            number=head.version,
            spec=spec,
            pins=pins,
            created_by=actor.user_id,
            created_at=moment,
            **(columns or {}),
        )
        db.session.add(version)
        action = f"{self.name}.{verb}"
        if head.version > 1:
            changed = audit_log.changes_between(self.version_of(head, head.version - 1).spec, spec)
            details = {**details, "changes": {**changed, **details.get("changes", {})}}
        audit_log.record(actor, action, head, join=True, name=head.name, version=head.version, **details)
        db.session.commit()
        return self.as_json(head, version)

    def restore_version(
        self,
        actor: Actor,
        head: H,
        number: int,
        pins: dict[str, Any] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Restore version `number` of a locked head: create a new version with the same content and the same pins,
        which generates the same rows; commits. `pins` replace those of the version; `columns` as for `save`. Error:
        not_found."""
        old = self.version_of(head, number)
        new_pins = old.pins if pins is None else pins
        return self.save(
            actor, head, old.spec, new_pins, "restore_version", clock.now(), columns, restored=number
        )

    def delete(self, actor: Actor, head: H) -> dict[str, Any]:
        """Soft-delete a locked head; commits. Returns it as the API shows it."""
        soft_delete(actor, head)
        return self.show(head)

    def restore(self, actor: Actor, head: H) -> dict[str, Any]:
        """Take a deletion back within 30 days; commits. Returns it as the API shows it. Error: not_found."""
        restore(actor, head)
        return self.show(head)


_RUNS: Final = ("template.generate", "template.export", "template.push", "dataset.export", "dataset.push")


@dataclass(frozen=True, slots=True)
class LastUse:
    """The last use of a template or dataset: when, and how many rows."""

    at: datetime
    rows: int | None


def last_uses(actor: Actor, template_ids: Sequence[str]) -> dict[str, LastUse]:
    """Return the last generation, export or push of each of some templates or datasets that had one, by id."""
    require_scope(actor, "read")
    if not template_ids:
        return {}
    newest = (
        select(func.max(AuditEntry.id))
        .where(
            AuditEntry.workspace_id == actor.workspace_id,
            AuditEntry.object_id.in_(template_ids),
            AuditEntry.action.in_(_RUNS),
        )
        .group_by(AuditEntry.object_id)
    )
    found = db.session.execute(
        select(AuditEntry.object_id, AuditEntry.at, AuditEntry.rows).where(AuditEntry.id.in_(newest))
    )
    return {row.object_id: LastUse(row.at, row.rows) for row in found}
