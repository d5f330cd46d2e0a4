"""Dependents of an object: shown before it is deleted, and part of the error if that is rejected.

Each kind of object has a function that finds its dependents. These functions query all domains, so they are defined in
`objects.services.usages`, and `create_app` passes them in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from flask import Flask, current_app

from webapp.access.actors import Actor
from webapp.errors import ApiError


@dataclass(frozen=True, slots=True)
class Use:
    """An object that uses another. `how`: a description. `team_id`: its team; None: no team."""

    type: str
    id: str
    name: str
    how: str
    blocks: bool = False
    team_id: str | None = None


def told(actor: Actor, uses: Iterable[Use]) -> list[dict[str, Any]]:
    """Return usages for the API; objects of teams that the actor is not in have no id and name."""
    return [
        {
            "type": one.type,
            "id": one.id if seen else None,
            "name": one.name if seen else None,
            "how": one.how,
            "blocks": one.blocks,
        }
        for one in uses
        for seen in [one.team_id is None or actor.role_in(one.team_id) is not None]
    ]


def refuse(actor: Actor, uses: Iterable[Use], what: str) -> None:
    """Return `in_use` if some of the dependents block a deletion; those that the actor may not see are only counted."""
    blocking = told(actor, (one for one in uses if one.blocks))
    if not blocking:
        return
    users = [{key: one[key] for key in ("type", "id", "name")} for one in blocking]
    names = [f'{one["type"]} "{one["name"]}"' for one in users if one["name"] is not None][:3]
    more = len(users) - len(names)
    shown = ", ".join(names) + (f" and {more} more" if names and more else "")
    shown = shown or f"{more} {'object' if more == 1 else 'objects'} in other teams"
    raise ApiError(
        "in_use", f"{shown} {'uses' if len(users) == 1 else 'use'} this {what}.", {"used_by": users}
    )


Finder = Callable[[Actor, Any], Iterable[Use]]
_FINDERS: Final = "rowsmith.usages"


def init_app(app: Flask, finders: Mapping[Any, Finder]) -> None:
    """Set the function that finds the uses of an object of each model."""
    app.extensions[_FINDERS] = finders


def of(actor: Actor, found: Any) -> list[Use]:
    """Return what uses an object."""
    finders: Mapping[Any, Finder] = current_app.extensions[_FINDERS]
    return list(finders[type(found)](actor, found))


_ID: Final = re.compile(rb"(?:tpl|dst|scn|con|end)_[0-9A-Za-z]{26}")


def named_in(said: Any) -> set[str]:
    """Return the ids anywhere in a JSON value."""
    return {found.decode() for found in _ID.findall(orjson.dumps(said))}
