"""An application whose every route has an object to speak of, made by the cases of the access matrix."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa
from flask import Flask

from tests.cast import Browser, Cast, Program
from tests.pages import filled_with_payloads
from tests.security.matrix import Case, cases, prepares
from webapp.access import actors
from webapp.accounts.services import workspaces
from webapp.extensions import db
from webapp.model_base import Base

# Would run in, or break out of, any context: text, attributes in either quote, a comment, a title, templates.
PAYLOAD: Final = (
    "'\"><x-canary onclick=canary()></x-canary><script>canary()</script><img src=x onerror=canary()>"
    "</title></textarea></style><svg onload=canary()>--><a href=javascript:canary()>{{7*7}}${7*7}"
)
# Columns of free text that people write; a row's own id keeps names apart where they must not be equal.
FREE: Final = frozenset({"name", "description", "title", "file_name"})
LONGEST: Final = 200


class World:
    """The application, everybody, and the names that addresses of the cases use."""

    def __init__(self, app: Flask, cast: Cast) -> None:
        self.app, self.cast = app, cast
        self.cases = cases()
        self.names: dict[str, Any] = {}
        self.unlimited()
        with app.app_context():
            for prepare in prepares():
                self.names.update(prepare(app, cast))
            db.session.remove()

    def unlimited(self) -> None:
        """As many requests as the tests send; a case that puts the workspace on another plan ends it."""
        own = {"plan": "enterprise", "own_limits": {"requests_per_minute": 60_000}}
        with self.app.app_context():
            for workspace in (self.cast.acme, self.cast.mallory_inc):
                workspaces.change_workspace(actors.system_actor(workspace), own)
            db.session.remove()

    def program(self, **headers: str) -> Program:
        """The owner's program."""
        return Program(self.app, self.cast.olivia.key, **headers)

    def person(self) -> Browser:
        """The owner at a browser."""
        return Browser(self.app, self.cast.olivia)

    def reading(self) -> list[Case]:
        """One case for each route that is read."""
        found = {case.rule: case for case in self.cases if case.method == "GET"}
        return list(found.values())

    def writing(self) -> list[Case]:
        """The cases that write, each route once."""
        found = {case.route: case for case in self.cases if case.method != "GET"}
        return list(found.values())

    def fill_with_payloads(self) -> dict[str, str]:
        """Make a payload of every free text that is stored; ids of objects that were made through the API with one."""
        result = filled_with_payloads(self.program(), self.cast)
        with self.app.app_context(), db.engine.begin() as connection:
            for table in Base.metadata.sorted_tables:
                for column in table.columns:
                    if column.name in FREE and isinstance(column.type, sa.String) and "id" in table.c:
                        self._poison(connection, table, column)
        return result

    def _poison(self, connection: sa.Connection, table: sa.Table, column: sa.Column[Any]) -> None:
        named = [
            value for value in self.names.values() if isinstance(value, str)
        ]  # an address may say it by this name
        longest = min(getattr(column.type, "length", None) or LONGEST, LONGEST)
        text = PAYLOAD[: longest - len("team_") - 26]
        change = sa.update(table).where(column.is_not(None), column.not_in(named))
        connection.execute(change.values({column: sa.literal(text) + table.c.id}))
