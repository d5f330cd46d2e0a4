"""An open connection to Oracle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from webapp import limits
from webapp.connectors import oracle_catalog as catalog
from webapp.connectors.base import ConnectorError, Target, Writing
from webapp.connectors.oracle_link import OracleLink
from webapp.connectors.shape import Entity
from webapp.connectors.statement_session import StatementSession
from webapp.engine.formats.sql_dialects import DIALECTS, Dialect


class OracleSession(StatementSession):
    """See `StatementSession`. Oracle opens a transaction with the first change; `another` makes a second connection."""

    dialect: ClassVar[Dialect] = DIALECTS["oracle"]
    origin: ClassVar[str] = " FROM DUAL"
    marker: ClassVar[str] = ":{}"
    link: OracleLink

    def __init__(self, link: OracleLink, another: Callable[[], OracleLink], read_only: bool) -> None:
        _, ((home,),) = link.ask("SELECT SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') FROM DUAL")
        super().__init__(link, f"Oracle {link.version}", home, read_only)
        self._another = another

    def another(self) -> OracleLink:
        """See `StatementSession.another`."""
        return self._another()

    def entities(self, like: str = "") -> list[Entity]:
        """See `StatementSession.entities`."""
        return catalog.entities(lambda text, values: self.link.ask(text, values)[1], self.home, like)

    def begin_reading(self, link: Any) -> None:
        """See `StatementSession.begin_reading`."""
        link.rollback()
        link.run("SET TRANSACTION READ ONLY")

    def reading(
        self, link: Any, text: str, values: Sequence[Any], limit: int
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `StatementSession.reading`: nothing can be changed in a transaction that is read-only."""
        self.begin_reading(link)
        link.patience(limits.TARGET_QUERY_SECONDS)
        try:
            return link.ask(text, values, limit)
        finally:
            try:
                link.patience(None)
                link.rollback()
            except ConnectorError:
                pass  # the connection is gone, and the transaction with it

    def execute(self, statement: str) -> None:
        """See `Session.execute`."""
        super().execute(statement)
        self.link.commit()

    def target(self, writing: Writing) -> Target:
        """See `Session.target`."""
        from webapp.connectors.oracle_target import OracleTarget

        self.writable(writing)
        return OracleTarget(self.link, writing)

    def settled(self, entity: Entity, proof: Mapping[str, Any]) -> bool | None:
        """See `Session.settled`. Oracle's readers wait for nobody, so the table is locked once its writers are done."""
        if not {"keys", "rows"} <= proof.keys():
            return None
        try:
            wait = int(limits.TARGET_LOCK_SECONDS)
            self.link.run(f"LOCK TABLE {self.table(entity)} IN SHARE MODE WAIT {wait}")
            return super().settled(entity, proof)
        except ConnectorError as error:
            if error.reason != "locked":
                raise
            return None
        finally:
            self.link.rollback()
