"""Routes shared by objects with versions: list, delete and restore, versions, pins.

The kinds have different contents of versions, and different routes for creating, reading, changing and comparing: see
templates.py and datasets.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal

from flask import Blueprint, Response, flash, g, url_for
from pydantic import Field

from webapp import limits
from webapp.access.actors import Actor
from webapp.versioning import services
from webapp.versioning.services import H, VersionedKind
from webapp.web.inputs import ListQuery, Query
from webapp.web.responses import ListOf, Output, check_if_match, reply
from webapp.web.routing import route

CONFLICT_ERRORS: Final = ("version_conflict",)
SAVE_ERRORS: Final = (
    "quota_exceeded",
)  # of a route that saves a version, which count toward the storage of a workspace
CHANGE_ERRORS: Final = (*CONFLICT_ERRORS, *SAVE_ERRORS)
Description = Annotated[str, Field(max_length=limits.MAX_DESCRIPTION_CHARS)]


class SortedQuery(ListQuery):
    """`sort`: `name` or `updated`, backwards with `-`; newest first without."""

    sort: Literal["name", "-name", "updated", "-updated"] | None = None


class PageQuery(Query):
    """Which page of a list that has no search."""

    cursor: str | None = None
    limit: Annotated[int, Field(ge=1, le=limits.PAGE_LIMIT_MAX)] = limits.PAGE_LIMIT_DEFAULT


class OtherQuery(Query):
    """The other version (default: the newest)."""

    to: Annotated[int, Field(ge=1)] | None = None


def get_matching_head(actor: Actor, kind: VersionedKind[H, Any], object_id: str) -> H:
    """Return the head, locked for a change, after checking If-Match. Errors: not_found, forbidden, version_conflict."""
    head = kind.get(actor, object_id, "write", lock=True)
    check_if_match(kind.show(head))
    return head


def declare_list(
    bp: Blueprint,
    kind: VersionedKind[Any, Any],
    returns: type[Output],
    last_runs: Callable[[Actor, list[str]], Mapping[str, Any]] = services.last_uses,
) -> None:
    """Declare the list of a kind, whose endpoints begin with the blueprint's name; `last_runs` returns the latest
    activity of some objects for pages, by id."""
    plural = bp.name

    @route(
        bp, f"/{plural}", scope="read", query=SortedQuery, returns=ListOf(returns),
        summary=f"List the {plural} of the project, newest first.",
    )  # fmt: skip
    def index(actor: Actor, query: SortedQuery) -> Response:
        page = kind.listing(actor, cursor=query.cursor, limit=query.limit, q=query.q, sort=query.sort)
        ids = [item["id"] for item in page.items]
        context: dict[str, Any] = {"runs": last_runs(actor, ids)} if g.face == "person" else {}
        return reply(page.as_dict(dict), template=f"{plural}/list.html", block="list", query=query, **context)


def declare_deletion(bp: Blueprint, kind: VersionedKind[Any, Any], returns: type[Output]) -> None:
    """Declare how one of a kind is deleted, and restored."""
    path, name = f"/{bp.name}/<{kind.name}_id>", kind.name

    @route(
        bp, path, ["DELETE"], scope="write", returns=returns, errors=CONFLICT_ERRORS,
        summary=f"Delete a {name}. It can be restored for 30 days.",
    )  # fmt: skip
    def delete(actor: Actor, **address: Any) -> Response:
        deleted = kind.delete(actor, get_matching_head(actor, kind, address[f"{name}_id"]))
        if g.face == "person":  # the category of the message contains the URL of its Undo button
            flash(f"{name.title()} {deleted['name']} deleted", url_for(".restore", **address))
        return reply(deleted, redirect_to=url_for(".index"))

    @route(
        bp, f"{path}/restore", ["POST"], scope="write", returns=returns,
        summary=f"Restore a {name}.",
    )  # fmt: skip
    def restore(actor: Actor, **address: Any) -> Response:
        head = kind.get(actor, address[f"{name}_id"], "write", lock=True, deleted=True)
        restored = kind.restore(actor, head)
        return reply(restored, redirect_to=url_for(".show", **address), send_etag=True)


def declare_versions(
    bp: Blueprint, kind: VersionedKind[Any, Any], returns: type[Output], *, summary: str
) -> None:
    """Declare the list of versions and the restoring of an earlier one; `summary` describes the latter."""
    path, name = f"/{bp.name}/<{kind.name}_id>", kind.name

    @route(
        bp, f"{path}/versions", scope="read", query=PageQuery, returns=ListOf(returns),
        summary=f"List a {name}'s versions, newest first, each as a complete {name}.",
    )  # fmt: skip
    def versions(actor: Actor, query: PageQuery, **address: str) -> Response:
        page = kind.versions(kind.get(actor, *address.values()), cursor=query.cursor, limit=query.limit)
        return reply(page.as_dict(dict))

    @route(
        bp, f"{path}/versions/<int:number>/restore", ["POST"], scope="write", returns=returns, idempotent=True,
        errors=CHANGE_ERRORS, summary=summary,
    )  # fmt: skip
    def restore_version(actor: Actor, number: int, **address: Any) -> Response:
        restored = kind.restore_version(
            actor, get_matching_head(actor, kind, address[f"{kind.name}_id"]), number
        )
        return reply(restored, redirect_to=url_for(".show", **address), send_etag=True)


def declare_refresh(
    bp: Blueprint,
    kind: VersionedKind[H, Any],
    returns: type[Output],
    refresh: Callable[[Actor, H], dict[str, Any]],
    *,
    summary: str,
) -> None:
    """Declare how what a version pins is brought up to date: `refresh` a locked head, and what that does in words."""

    @route(
        bp, f"/{bp.name}/<{kind.name}_id>/refresh-references", ["POST"], scope="write", returns=returns,
        errors=("validation_error", *SAVE_ERRORS), summary=summary,
    )  # fmt: skip
    def refresh_references(actor: Actor, **address: Any) -> Response:
        current = refresh(actor, kind.get(actor, address[f"{kind.name}_id"], "write", lock=True))
        return reply(current, redirect_to=url_for(".show", **address), send_etag=True)
