"""A connection to Db2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from webapp import limits
from webapp.connectors.base import ConnectorError, Target, WriteSpec
from webapp.connectors.db2 import catalog
from webapp.connectors.schema import Entity
from webapp.connectors.sql.statements import StatementSession
from webapp.engine.formats.sql_dialects import DIALECTS, Dialect

if TYPE_CHECKING:
    from webapp.connectors.db2.connection import Db2Link


class Db2Session(StatementSession):
    """See `StatementSession`. `open_another` opens a second connection; `schema` is the default schema."""

    dialect: ClassVar[Dialect] = DIALECTS["db2"]
    origin: ClassVar[str] = " FROM SYSIBM.SYSDUMMY1"
    marker: ClassVar[str] = "?"
    link: Db2Link

    def __init__(
        self, link: Db2Link, another: Callable[[], Db2Link], read_only: bool, schema: str | None = None
    ) -> None:
        name, version = link.server
        if not name.startswith("DB2/"):  # DB2 without a slash is z/OS, AS is IBM i: their catalogs differ
            raise ConnectorError(
                f"The server is {name} {version}, not Db2 for Linux, UNIX and Windows.",
                reason="unsupported",
                hint="Connect to a server of this product.",
            )
        _set_up(link, schema)
        _, ((home,),) = link.query("SELECT RTRIM(CURRENT SCHEMA) FROM SYSIBM.SYSDUMMY1")
        super().__init__(link, f"Db2 {version}", home, read_only)
        self._another, self._schema = another, schema

    def another(self) -> Db2Link:
        """See `StatementSession.another`."""
        link = self._another()
        _set_up(link, self._schema)
        return link

    def entities(self, like: str = "") -> list[Entity]:
        """See `StatementSession.entities`."""
        return catalog.entities(lambda text, values: self.link.query(text, values)[1], self.home, like)

    def begin_reading(self, link: Any) -> None:
        """See `StatementSession.begin_reading`."""
        link.begin()

    def reading(
        self, link: Any, text: str, values: Sequence[Any], limit: int
    ) -> tuple[list[str], list[Sequence[Any]]]:
        """See `StatementSession.reading`."""
        self.begin_reading(link)
        try:
            answer: tuple[list[str], list[Sequence[Any]]] = link.ask(
                text, values, limit, limits.TARGET_QUERY_SECONDS
            )
            return answer
        finally:
            try:
                link.rollback()
            except ConnectorError:
                pass  # the connection is lost, and the transaction with it

    def target(self, writing: WriteSpec) -> Target:
        """See `Session.target`."""
        from webapp.connectors.db2.target import Db2Target

        self.writable(writing)
        return Db2Target(self.link, writing)

    def commit_outcome(self, entity: Entity, commit_token: Mapping[str, Any]) -> bool | None:
        """See `Session.commit_outcome`. Db2's readers see the last committed state without waiting, so the
        table is locked until its writers are done."""
        if not {"keys", "rows"} <= commit_token.keys():
            return None
        self.link.begin()
        try:
            self.link.run(f"LOCK TABLE {self.table(entity)} IN SHARE MODE")
            return super().commit_outcome(entity, commit_token)
        except ConnectorError as error:
            if error.reason != "locked":
                raise
            return None
        finally:
            try:
                self.link.rollback()
            except ConnectorError:
                pass  # the connection is lost, and the lock with it


def _set_up(link: Db2Link, schema: str | None) -> None:
    """Set the lock timeout and the default schema."""
    link.run(f"SET CURRENT LOCK TIMEOUT {int(limits.TARGET_LOCK_SECONDS)}")
    if schema:
        link.run("SET CURRENT SCHEMA = '" + schema.replace("'", "''") + "'")
