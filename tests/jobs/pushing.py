"""Pushes of given rows into a table of a test database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from flask import Flask

from jobs.pushes import push as job
from webapp import storage
from webapp.access.models import Project, Team, Workspace
from webapp.connectors.base import Capabilities, Session
from webapp.connectors.postgresql.connector import PostgresqlConnector
from webapp.connectors.sqlite.connector import SqliteConnector
from webapp.engine import ENGINE
from webapp.extensions import read_session, write_session
from webapp.generation.services.row_makers import SubmittedRows
from webapp.net.gate import Gate
from webapp.pushes.models import Push, PushRange, PushRow
from webapp.pushes.services import planning
from webapp.pushes.services.ledger import read as ledger_read
from webapp.pushes.services.planning import KeySpool, PushJob
from webapp.pushes.services.rows import TableRows

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def rows(count: int, **columns: Callable[[int], Any]) -> pa.Table:
    """Rows with `id` from 1 and a `name`; other columns by functions of the id."""
    result = {"id": lambda i: i, "name": lambda i: f"name {i}", **columns}
    return pa.table({name: [make(i) for i in range(1, count + 1)] for name, make in result.items()})


def table_spec(name: str, given: pa.Table, **more: Any) -> dict[str, Any]:
    """Return a table as stored in `Push.tables`: every column of the rows with the same name."""
    return {
        "name": name,
        "template_id": None,
        "version": None,
        "target": name,
        "count": given.num_rows,
        "offset": 0,
        "mode": "insert",
        "key_columns": ["id"],
        "columns": [{"column": item, "field": item} for item in given.schema.names],
        "capture": [],
        "from_parent": {},
        "later": [],
        "create": False,
        "recipe": 0,
        **more,
    }


class Parents(SubmittedRows):
    """Given rows that refer to rows of another table by their place, as references of templates do."""

    def __init__(self, table: pa.Table, parents: Mapping[str, str]) -> None:
        super().__init__(table, "s", NOW)
        self._parents = parents

    def batch_at(self, rows: Any) -> Any:
        view = super().batch_at(rows)
        view.parent_rows = lambda field: _parents_of(view.column(self._parents[field]))
        return view


def _parents_of(column: pa.Array) -> tuple[Any, Any]:
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return column.fill_null(0).to_numpy(zero_copy_only=False).astype("uint64"), valid


class Pushing:
    """Makes pushes into one target and carries them out in this process."""

    def __init__(self, app: Flask, monkeypatch: Any) -> None:
        self.app = app
        self.makers: dict[str, list[SubmittedRows]] = {}
        self.connect: Callable[[], Session]
        monkeypatch.setattr(planning, "load_push_job", self.order)
        with write_session() as session:
            workspace = Workspace(name="Acme")
            session.add(workspace)
            session.flush()
            team = Team(name="Team", workspace_id=workspace.id)
            session.add(team)
            session.flush()
            project = Project(name="Project", workspace_id=workspace.id, team_id=team.id)
            session.add(project)
            session.flush()
            self.place = {"workspace_id": workspace.id, "team_id": team.id, "project_id": project.id}

    def push(
        self, tables: Sequence[tuple[dict[str, Any], pa.Table]], total: int | None = None, **columns: Any
    ) -> str:
        """A queued push of given rows. `ask` is the request; `parents` the columns of parents' places."""
        ask = columns.pop("ask", {})
        parents = columns.pop("parents", {})
        specs = [spec for spec, _ in tables]
        count = sum(value.num_rows for _, value in tables) if total is None else total
        with write_session() as session:
            push = Push(
                target=specs[0]["name"],
                total=count,
                tables=specs,
                request={"ask": ask},
                pins={"engine": ENGINE},
                **self.place,
                **columns,
            )
            session.add(push)
            session.flush()
            push_id = push.id
        self.makers[push_id] = [Parents(value, parents) for _, value in tables]
        return push_id

    def order(self, push_id: str) -> PushJob:
        """In place of the templates and connections that these pushes have not."""
        with read_session() as session:
            push = session.get_one(Push, push_id)
            first = ledger_read.original_push(session, push)
        result = self.makers[push_id]
        tables = [TableRows(place, spec, result[place]) for place, spec in enumerate(push.tables)]
        folder = planning.keys_folder(first.workspace_id, first.id)
        return PushJob(
            push,
            tables,
            lambda: self.connect(),
            Capabilities(),
            KeySpool(storage.get_storage(self.app), folder),
        )

    def retry(
        self,
        push_id: str,
        states: Sequence[str] = ("failed", "unknown"),
        rows: Sequence[int] = (),
        **columns: Any,
    ) -> str:
        """A queued retry of rows that did not arrive, or (state pending) were never sent; `rows` narrows those."""
        first = self.read(push_id)
        with write_session() as session:
            found = session.query(PushRow).where(PushRow.push_id == push_id, PushRow.state.in_(states)).all()
            spans = [self._pending(session, first, place, rows) for place in range(len(first.tables))]
            spans = spans if "pending" in states else [[] for _ in spans]
            tables = [{**table, "pending": stored} for table, stored in zip(first.tables, spans, strict=True)]
            total = len(found) + sum(map(ledger_read.count_in_spans, spans))
            retry = self._of(first, "retry", total, {"tables": tables, **columns})
            session.add(retry)
            session.flush()
            for row in found:
                row.retried_by = retry.id
            result = retry.id
        self.makers[result] = self.makers[push_id]
        return result

    def _pending(self, session: Any, first: Push, place: int, rows: Sequence[int]) -> list[tuple[int, int]]:
        mine = [(row, row) for row in rows] or [(1, first.tables[place]["count"])]
        return ledger_read.subtract_spans(mine, ledger_read.processed_spans(session, first.id, place))

    def undo(self, push_id: str, **columns: Any) -> str:
        """A queued undo."""
        first = self.read(push_id)
        with write_session() as session:
            undo = self._of(first, "undo", first.delivered, columns)
            session.add(undo)
            session.flush()
            result = undo.id
        self.makers[result] = self.makers[push_id]
        return result

    def _of(self, first: Push, kind: str, total: int, columns: Mapping[str, Any]) -> Push:
        base = {"target": first.target, "tables": first.tables, "pins": first.pins, "request": {"ask": {}}}
        return Push(kind=kind, of_id=first.id, **{**base, "total": total, **columns}, **self.place)

    def do(self, push_id: str) -> Push:
        """Carry a push out, here and now; the row as it then is."""
        job.run(push_id)
        return self.read(push_id)

    def read(self, push_id: str) -> Push:
        with read_session() as session:
            return session.get_one(Push, push_id)

    def ranges(self, push_id: str) -> list[tuple[int, int, int]]:
        with read_session() as session:
            found = session.query(PushRange).where(PushRange.push_id == push_id).order_by(PushRange.table)
            return [(item.table, item.first, item.last) for item in found]


def connect(url: str) -> Session:
    """A session of the kind that an address says."""
    if url.startswith("sqlite:///"):
        folder, _, file = url.removeprefix("sqlite:///").rpartition("/")
        return SqliteConnector(SqliteConnector.Settings(file=file), Gate(), folder).open()
    settings = PostgresqlConnector.Settings(connection_string=url)
    return PostgresqlConnector(settings, Gate(["127.0.0.0/8"])).open()
