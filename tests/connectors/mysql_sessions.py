"""What the tests of MySQL and MariaDB share: the server, and an open session."""

from __future__ import annotations

from tests.connectors.kind_mysql import MysqlKind
from tests.connectors.one_kind import only
from tests.connectors.sending import target_of
from webapp.connectors.mysql import catalog as mysql_catalog

MYSQL = mysql_catalog.parse_version("8.0.12")  # before indexes on expressions, which MariaDB does not have


kind = only(MysqlKind)


def target_as_mysql(session, monkeypatch, table, columns, **how):
    """A target that asks the server for nothing that MySQL lacks."""
    monkeypatch.setattr(session, "server", MYSQL)
    return target_of(session, table, columns, **how)
