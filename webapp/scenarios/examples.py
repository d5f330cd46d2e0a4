"""Define the example scenarios: programs that run unchanged with the demo's templates and connection.

They are Python files in the `programs` folder, and a new scenario can start from one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select

from webapp.access.actors import Actor
from webapp.extensions import db
from webapp.scenarios.models import Scenario
from webapp.scenarios.services import requirements, scenarios
from webapp.scenarios.services.requirements import ResolvedRequirements

FOLDER: Final = Path(__file__).with_name("programs")


@dataclass(frozen=True)
class Example:
    """A program and its settings. `locked` contains hashed packages in addition to the common ones, so that seeding
    needs no index; `before` is the file of an earlier version."""

    key: str
    name: str
    description: str
    settings: dict[str, Any] = field(default_factory=dict)
    before: str = ""
    locked: str = ""

    @cached_property
    def code(self) -> str:
        """The source code of the program."""
        return self.file(self.key)

    @staticmethod
    def file(name: str) -> str:
        """Return the source code in a file."""
        return (FOLDER / f"{name}.py").read_text("utf-8")


# The output of `uv pip compile --generate-hashes`. The package has no dependencies.
_TENACITY: Final = """
tenacity==9.2.1 \
    --hash=sha256:9e56f17539296baab7beabb08b92f6ee3d7be92d8be72d763360677c2ad6580e \
    --hash=sha256:a606b5c808d0cded4a359d5b9932d867ff2a6a6b64d37350260fd01bbdf83839
"""
BLANK: Final = Example("blank", "New scenario", "A program of a few lines.")
EXAMPLES: Final = (
    Example(
        "referential_integrity",
        "Customers with their orders",
        "Two templates into one database: every order gets an existing customer, and parents are sent first.",
        {"network": "api", "timeout_seconds": 300},
    ),
    Example(
        "rest_join",
        "Fetch, join, post",
        "Rows fetched over REST, joined in Python and posted as one document, with retries.",
        {"network": "api", "timeout_seconds": 300},
        before="rest_join_first",
        locked=_TENACITY,
    ),
    Example(
        "nightly_csv",
        "Nightly CSV",
        "A dated CSV file among the outputs, at two in the morning once the schedule is turned on.",
        {
            "network": "api",
            "timeout_seconds": 300,
            "env": {"ROWS": "500"},
            "schedule": {"cron": "0 2 * * *", "timezone": "UTC", "enabled": False, "params": {}},
        },
    ),
)


def example(key: str) -> Example:
    """Return the example for a key, or the blank program for an unknown key."""
    return next((item for item in EXAMPLES if item.key == key), BLANK)


def create_missing(actor: Actor) -> None:
    """Create missing examples in the project, complete any that were interrupted, and commit."""
    scenario_names = select(Scenario.name).where(Scenario.project_id == actor.project_id)
    existing = set(db.session.scalars(scenario_names))
    for item in EXAMPLES:
        if item.name not in existing:
            code = item.file(item.before) if item.before else item.code
            scenarios.create(actor, name=item.name, description=item.description, code=code, **item.settings)
        if not item.before:
            continue
        # Its second version has the required packages.
        statement = select(Scenario).where(
            Scenario.project_id == actor.project_id, Scenario.name == item.name, Scenario.deleted_at.is_(None)
        )
        found = db.session.scalar(statement.order_by(Scenario.id).limit(1))
        if found is None or found.version > 1:
            continue
        declared = requirements.read(item.code).requirements
        lock = requirements.common_lock() + item.locked.lstrip("\n")
        resolved = ResolvedRequirements(declared, lock, requirements.lock_digest(lock))
        locked = scenarios.get(actor, found.id, "write", lock=True)
        scenarios.change(actor, locked, {"code": item.code}, (resolved, scenarios.code_warnings(item.code)))


def names() -> Sequence[str]:
    """Return the names of the examples."""
    return [item.name for item in EXAMPLES]
