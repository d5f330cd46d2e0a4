"""A connection to SQL Server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from webapp import limits
from webapp.connectors.base import ConnectorError, Target, WriteSpec
from webapp.connectors.schema import Entity
from webapp.connectors.sql.statements import StatementSession
from webapp.connectors.sqlserver import catalog
from webapp.connectors.sqlserver.connection import MssqlLink
from webapp.engine.formats.sql_dialects import DIALECTS, Dialect

# A rejected statement does not end the transaction, dates are parsed the same way everywhere, nothing is
# truncated.
SET_UP = (
    "SET XACT_ABORT OFF; SET IMPLICIT_TRANSACTIONS OFF; SET LANGUAGE us_english; SET DATEFORMAT ymd;"
    " SET ANSI_NULLS ON; SET ANSI_PADDING ON; SET ANSI_WARNINGS ON; SET ARITHABORT ON; SET CONCAT_NULL_YIELDS_NULL ON;"
    " SET QUOTED_IDENTIFIER ON; SET NUMERIC_ROUNDABORT OFF; SET TEXTSIZE 2147483647;"
    f" SET LOCK_TIMEOUT {int(limits.TARGET_LOCK_SECONDS * 1000)};"
)


class MssqlSession(StatementSession):
    """See `StatementSession`. `open_another` opens a second connection."""

    dialect: ClassVar[Dialect] = DIALECTS["mssql"]
    locking: ClassVar[str] = " WITH (READCOMMITTEDLOCK)"
    doubled: ClassVar[str] = "%"
    link: MssqlLink

    def __init__(self, link: MssqlLink, another: Callable[[], MssqlLink], read_only: bool) -> None:
        _, ((version, home),) = link.query(
            "SELECT CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(60)), COALESCE(SCHEMA_NAME(), N'dbo')"
        )
        super().__init__(link, f"SQL Server {version}", home, read_only)
        self._another = another

    def another(self) -> MssqlLink:
        """See `StatementSession.another`."""
        return self._another()

    def entities(self, like: str = "") -> list[Entity]:
        """See `StatementSession.entities`."""
        where = ""
        if like:
            text = "N'" + like.lower().replace("'", "''") + "'"
            where = f" AND (LOWER(o.name) = {text} OR LOWER(CONCAT(s.name, N'.', o.name)) = {text})"
        return catalog.entities(lambda query: self.link.query(query)[1], self.home, where)

    def limited(self, names: str, rest: str, limit: int) -> str:
        """See `StatementSession.limited`."""
        return f"SELECT TOP ({limit}) {names} {rest}"

    def begin_reading(self, link: Any) -> None:
        """See `StatementSession.begin_reading`."""
        link.run("BEGIN TRANSACTION")

    def reading(
        self, link: Any, text: str, values: Sequence[Any], limit: int
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `StatementSession.reading`."""
        self.begin_reading(link)
        try:
            answer: tuple[list[str], list[Sequence[Any]]] = link.ask(text, values, limit)
            return answer
        finally:
            try:
                link.run("IF @@TRANCOUNT > 0 ROLLBACK TRANSACTION")
            except ConnectorError:
                pass  # the connection is lost, and the transaction with it

    def permitted(self) -> str:
        """See `StatementSession.permitted`."""
        message = super().permitted()
        _, ((is_allowed,),) = self.link.query("SELECT HAS_PERMS_BY_NAME(DB_NAME(), N'DATABASE', N'CONNECT')")
        if is_allowed == 0:
            raise ConnectorError(
                "The account is not allowed to use the database.",
                reason="no_permission",
                hint="Ask the database owner to grant CONNECT.",
            )
        return message

    def target(self, writing: WriteSpec) -> Target:
        """See `Session.target`."""
        from webapp.connectors.sqlserver.target import MssqlTarget

        self.writable(writing)
        return MssqlTarget(self.link, writing)
