"""A connection to Oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from webapp import limits
from webapp.connectors.base import ConnectorError, Target, WriteSpec
from webapp.connectors.oracle import catalog
from webapp.connectors.oracle.connection import OracleLink
from webapp.connectors.schema import Entity
from webapp.connectors.sql.statements import StatementSession
from webapp.engine.formats.sql_dialects import DIALECTS, Dialect


class OracleSession(StatementSession):
    """See `StatementSession`. Oracle opens a transaction with the first change. `open_another` opens a second
    connection."""

    dialect: ClassVar[Dialect] = DIALECTS["oracle"]
    origin: ClassVar[str] = " FROM DUAL"
    marker: ClassVar[str] = ":{}"
    link: OracleLink

    def __init__(self, link: OracleLink, another: Callable[[], OracleLink], read_only: bool) -> None:
        _, ((home,),) = link.query("SELECT SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') FROM DUAL")
        super().__init__(link, f"Oracle {link.version}", home, read_only)
        self._another = another

    def another(self) -> OracleLink:
        """See `StatementSession.another`."""
        return self._another()

    def entities(self, like: str = "") -> list[Entity]:
        """See `StatementSession.entities`."""
        return catalog.entities(lambda text, values: self.link.query(text, values)[1], self.home, like)

    def begin_reading(self, link: Any) -> None:
        """See `StatementSession.begin_reading`."""
        link.rollback()
        link.run("SET TRANSACTION READ ONLY")

    def reading(
        self, link: Any, text: str, values: Sequence[Any], limit: int
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `StatementSession.reading`. A read-only transaction cannot change anything."""
        self.begin_reading(link)
        link.patience(limits.TARGET_QUERY_SECONDS)
        try:
            answer: tuple[list[str], list[Sequence[Any]]] = link.ask(text, values, limit)
            return answer
        finally:
            try:
                link.patience(None)
                link.rollback()
            except ConnectorError:
                pass  # the connection is lost, and the transaction with it

    def execute(self, statement: str) -> None:
        """See `Session.execute`."""
        super().execute(statement)
        self.link.commit()

    def target(self, writing: WriteSpec) -> Target:
        """See `Session.target`."""
        from webapp.connectors.oracle.target import OracleTarget

        self.writable(writing)
        return OracleTarget(self.link, writing)

    def commit_outcome(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `Session.commit_outcome`. Oracle's readers do not wait for writers, so the table is locked
        until they are done."""
        if not {"keys", "rows"} <= commit_token.keys():
            return None
        try:
            wait = int(limits.TARGET_LOCK_SECONDS)
            self.link.run(f"LOCK TABLE {self.table(entity)} IN SHARE MODE WAIT {wait}")
            return super().commit_outcome(entity, commit_token)
        except ConnectorError as error:
            if error.reason != "locked":
                raise
            return None
        finally:
            self.link.rollback()
