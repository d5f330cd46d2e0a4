"""What of the reader's own the samples name: the newest object of each kind that she sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from webapp.extensions import db
from webapp.models import (
    ApiKey,
    Connection,
    Dataset,
    Endpoint,
    Export,
    Membership,
    Push,
    Run,
    Scenario,
    Team,
    Template,
    WorkspaceFile,
)
from webapp.services import tenancy
from webapp.services.actors import Actor

# The mark's kind -> the table, and the scope that its list takes.
KINDS: Final[Mapping[str, tuple[Any, str]]] = {
    "KEY": (ApiKey, "member"),
    "CONNECTION": (Connection, "read"),
    "DATASET": (Dataset, "read"),
    "ENDPOINT": (Endpoint, "read"),
    "EXPORT": (Export, "read"),
    "FILE": (WorkspaceFile, "read"),
    "MEMBER": (Membership, "member"),
    "PUSH": (Push, "read"),
    "RUN": (Run, "read"),
    "SCENARIO": (Scenario, "read"),
    "TEAM": (Team, "member"),
    "TEMPLATE": (Template, "read"),
}


def ids(actor: Actor, kinds: set[str]) -> dict[str, str]:
    """The ids by kind; none where the reader has nothing of it, or may not see it."""
    found = {"PROJECT": actor.project_id} if actor.project_id else {}
    for kind in kinds & set(KINDS):
        model, scope = KINDS[kind]
        if not actor.can(scope):
            continue
        listed = tenancy.listing(actor, model)
        if model is Connection:
            listed = listed.where(Connection.of_endpoint.is_(False))
        elif model is ApiKey:
            listed = listed.where(ApiKey.created_by == actor.user_id, ApiKey.run_id.is_(None))
        elif model is Run:
            there = tenancy.listing(actor, Scenario).with_only_columns(Scenario.id)
            listed = listed.where(Run.scenario_id.in_(there))
        newest = db.session.scalars(listed.order_by(model.id.desc()).limit(1)).first()
        if newest is not None:
            found[kind] = newest.id
    if "RUN" in found:  # a run goes with its own scenario
        found["SCENARIO"] = db.session.get_one(Run, found["RUN"]).scenario_id
    return found
