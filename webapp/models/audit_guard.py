"""What the database itself holds of the trail: entries and seals are added and never changed, nor taken away before
retention has said so; an entry is noted as not yet sealed the moment it is added.

The triggers speak of tables of the trail alone: SQLite checks every trigger when any table is renamed, as migrations
do. A migration that makes `audit_entries` or `audit_seals` anew has to make these anew too; tests/models tells.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import DDL, MetaData, event

_REMOVED: Final = (
    "SELECT 1 FROM audit_heads WHERE workspace_id = OLD.workspace_id AND removed_until >= OLD.{at}"
)
_SEALED: Final = (
    "workspace_id",
    "number",
    "count",
    "first_id",
    "last_id",
    "last_at",
    "previous",
    "chain",
    "hash",
    "sealed_at",
)


def _sqlite() -> list[str]:
    def refused(name: str, when: str, message: str) -> str:
        return f"CREATE TRIGGER {name} {when} BEGIN SELECT RAISE(ABORT, '{message}'); END"

    return [
        "CREATE TRIGGER audit_entries_pending AFTER INSERT ON audit_entries BEGIN INSERT OR IGNORE INTO"
        " audit_pending (workspace_id, entry_id) VALUES (NEW.workspace_id, NEW.id); END",
        refused("audit_entries_fixed", "BEFORE UPDATE ON audit_entries", "audit entries are never changed"),
        refused(
            "audit_entries_kept",
            f"BEFORE DELETE ON audit_entries WHEN NOT EXISTS ({_REMOVED.format(at='at')})",
            "audit entries are removed by retention alone",
        ),
        refused(
            "audit_seals_fixed",
            f"BEFORE UPDATE OF {', '.join(_SEALED)} ON audit_seals",
            "seals of the audit trail are never changed",
        ),
        refused(
            "audit_seals_kept",
            f"BEFORE DELETE ON audit_seals WHEN NOT EXISTS ({_REMOVED.format(at='last_at')})",
            "seals of the audit trail stay",
        ),
    ]


def _postgresql() -> list[str]:
    def function(name: str, body: str) -> str:
        return f"CREATE FUNCTION {name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} END $$"

    def kept(at: str, message: str) -> str:
        return (
            f"IF NOT EXISTS ({_REMOVED.format(at=at)}) THEN RAISE EXCEPTION '{message}'; END IF; RETURN OLD;"
        )

    same = " AND ".join(f"NEW.{name} = OLD.{name}" for name in _SEALED)
    whole = "audit entries are removed by retention alone"
    return [
        function(
            "audit_entries_pending",
            "INSERT INTO audit_pending (workspace_id, entry_id) VALUES (NEW.workspace_id, NEW.id)"
            " ON CONFLICT DO NOTHING; RETURN NULL;",
        ),
        function("audit_entries_fixed", "RAISE EXCEPTION 'audit entries are never changed';"),
        function("audit_entries_kept", kept("at", whole)),
        function("audit_entries_whole", f"RAISE EXCEPTION '{whole}';"),
        function(
            "audit_seals_fixed",
            f"IF NOT ({same}) THEN RAISE EXCEPTION 'seals of the audit trail are never changed'; END IF;"
            " RETURN NEW;",
        ),
        function("audit_seals_kept", kept("last_at", "seals of the audit trail stay")),
        *(
            f"CREATE TRIGGER {name} {when} ON {table} FOR EACH {each} EXECUTE FUNCTION {name}()"
            for name, when, table, each in (
                ("audit_entries_pending", "AFTER INSERT", "audit_entries", "ROW"),
                ("audit_entries_fixed", "BEFORE UPDATE", "audit_entries", "ROW"),
                ("audit_entries_kept", "BEFORE DELETE", "audit_entries", "ROW"),
                ("audit_entries_whole", "BEFORE TRUNCATE", "audit_entries", "STATEMENT"),
                ("audit_seals_fixed", "BEFORE UPDATE", "audit_seals", "ROW"),
                ("audit_seals_kept", "BEFORE DELETE", "audit_seals", "ROW"),
            )
        ),
    ]


STATEMENTS: Final = {"sqlite": _sqlite(), "postgresql": _postgresql()}
FUNCTIONS: Final = (
    "entries_pending",
    "entries_fixed",
    "entries_kept",
    "entries_whole",
    "seals_fixed",
    "seals_kept",
)


def attach(metadata: MetaData) -> None:
    """Have them made with the tables, and PostgreSQL's functions dropped with them."""
    for dialect, statements in STATEMENTS.items():
        for text in statements:
            event.listen(metadata, "after_create", DDL(text.replace("%", "%%")).execute_if(dialect=dialect))
    for name in FUNCTIONS:
        drop = DDL(f"DROP FUNCTION IF EXISTS audit_{name}()").execute_if(dialect="postgresql")
        event.listen(metadata, "after_drop", drop)
