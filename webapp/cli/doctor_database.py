"""Database checks of the doctor: connection, revision, integrity, clock, and references to external data such as keys
and vocabularies."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import sqlalchemy as sa

from webapp import limits
from webapp.backup import backup, database
from webapp.backup.backup import create_engine
from webapp.cli.findings import FAIL, OK, WARN, Check, Finding, Installation
from webapp.extensions import READ_ONLY_OPTION
from webapp.security.sealing import Vault


@contextmanager
def read_connection(patient: Installation) -> Iterator[sa.Connection]:
    """Open a read-only connection."""
    database_engine = create_engine(patient.settings.sqlalchemy_url)
    try:
        with database_engine.connect().execution_options(**{READ_ONLY_OPTION: True}) as connection:
            yield connection
    finally:
        database_engine.dispose()


def check_connection(patient: Installation) -> Iterator[Finding]:
    """Check the connection and the revision."""
    settings = patient.settings
    if settings is None:
        yield Finding(WARN, "database", "Not checked, because the settings are invalid.")
        return
    if settings.is_sqlite and not os.path.exists(path := sa.make_url(settings.sqlalchemy_url).database or ""):
        yield Finding(WARN, "database", f"The file {path} does not exist yet.", _create_command(patient))
        return
    try:
        with read_connection(patient) as connection:
            found = database.revision(connection)
            patient.results["database"] = found
    except sa.exc.DBAPIError as error:
        reason = str(error.orig).strip().splitlines()[-1]
        url = sa.make_url(settings.sqlalchemy_url).render_as_string(hide_password=True)
        yield Finding(
            FAIL, "database", f"{url} does not respond: {reason}.", "start it, or correct DATABASE_URL"
        )
        return
    head = database.newest_revision()
    if found is None:
        yield Finding(WARN, "database", "The database has no tables yet.", _create_command(patient))
    elif found == head:
        yield Finding(OK, "database", f"The database responds and is at revision {found}.")
    elif database.is_known_revision(found):
        message = f"The database is at revision {found}, but this release needs {head}."
        yield Finding(FAIL, "database", message, f"./rowsmith upgrade{patient.data_dir_option}")
    else:
        message = f"The database is at revision {found} of a newer release; this release knows up to {head}."
        yield Finding(FAIL, "database", message, "install the newer release, or restore a backup of this one")


def _create_command(patient: Installation) -> str:
    return (
        f"./rowsmith up{patient.data_dir_option} creates them"
        if patient.settings.is_sqlite
        else "./rowsmith migrate"
    )


def check_integrity(patient: Installation) -> Iterator[Finding]:
    """Check pages, foreign keys and indexes."""
    if not patient.results.get("database"):
        return
    restore_command = "./rowsmith restore FILE --force-empty, with the last good backup"
    with read_connection(patient) as connection:
        if patient.settings.is_sqlite:
            problems = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(limits.UPKEEP_LISTED)
            if list(problems) != ["ok"]:
                yield Finding(
                    FAIL, "integrity", f"The database file is damaged: {problems[0]}.", restore_command
                )
            if broken:
                message = "; ".join(f"{row[0]} row {row[1]} to {row[2]}" for row in broken)
                yield Finding(FAIL, "integrity", f"Rows refer to missing rows: {message}.", restore_command)
            if list(problems) == ["ok"] and not broken:
                yield Finding(OK, "integrity", "Pages, indexes and references are intact.")
            return
        bad = connection.exec_driver_sql(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid WHERE NOT i.indisvalid "
            "UNION SELECT conname FROM pg_constraint WHERE NOT convalidated"
        ).scalars()
        names = ", ".join(bad)
        if names:
            yield Finding(
                FAIL,
                "integrity",
                f"Indexes or constraints are not valid: {names}.",
                "REINDEX, or ALTER TABLE ... VALIDATE CONSTRAINT",
            )
        else:
            yield Finding(OK, "integrity", "Indexes and constraints are valid.")


def check_clock(patient: Installation) -> Iterator[Finding]:
    """Compare its clock with that of this machine."""
    if patient.results.get("database") is None or patient.settings.is_sqlite:
        return
    with read_connection(patient) as connection:
        started = time.time()
        database_time = float(
            connection.exec_driver_sql("SELECT extract(epoch FROM clock_timestamp())").scalar_one()
        )
        yield clock_skew_finding("PostgreSQL", database_time - (started + time.time()) / 2)


def clock_skew_finding(owner: str, seconds: float) -> Finding:
    """Report the difference between two clocks, which matters for leases and rate limits."""
    difference = abs(seconds)
    state = (
        FAIL
        if difference >= limits.SKEW_FAIL_SECONDS
        else WARN
        if difference >= limits.SKEW_WARN_SECONDS
        else OK
    )
    message = f"{owner}'s clock and this machine's differ by {difference:.1f} s."
    return Finding(
        state, "clock", message, "" if state == OK else "set both by NTP (timedatectl set-ntp true)"
    )


def check_vault_keys(patient: Installation) -> Iterator[Finding]:
    """Check that the key ring can encrypt, and decrypt stored secrets."""
    settings = patient.settings
    if settings is None:
        return
    if not settings.vault_keys and patient.results.get("database") is None:
        return  # both are created at the first start
    if not settings.vault_keys:
        message = "VAULT_KEYS is not set: connections with a password cannot be saved or used."
        yield Finding(FAIL, "keys", message, "set VAULT_KEYS, or restore the keys.env of the data folder")
        return
    ring = backup.current_key_ring(settings)
    vault = Vault(ring)
    assert vault.open(vault.seal("canary")) == "canary"
    opened, lost = 0, 0
    if patient.results.get("database"):
        with read_connection(patient) as connection:
            opened, lost = backup.count_secrets(connection, ring)
    if lost:
        message = f"{lost} of {lost + opened} stored secrets cannot be decrypted: their key is missing."
        yield Finding(
            FAIL,
            "keys",
            message,
            "append the older key to VAULT_KEYS, or set those secrets again",
        )
    else:
        yield Finding(
            OK, "keys", f"{len(ring)} key(s) in the ring; they can decrypt all {opened} stored secrets."
        )


def check_vocabularies(patient: Installation) -> Iterator[Finding]:
    """Check for pinned vocabularies that are missing."""
    if patient.results.get("database") != database.newest_revision():
        return
    from webapp import create_app
    from webapp.extensions import db
    from webapp.row_templates.services import vocabularies

    with create_app(patient.settings, routes=False).app_context():
        try:
            pinned, stored = vocabularies.count_pins(), vocabularies.stored_sizes()
            missing = [
                item for item in pinned if item not in stored and not vocabularies.local_path(item).exists()
            ]
        finally:
            db.engine.dispose()
    for item in missing:
        message = f"Vocabulary {item} is pinned by {pinned[item]:,} template versions but missing."
        yield Finding(
            FAIL, "vocabularies", message, f"./rowsmith vocab install {item}{patient.data_dir_option}"
        )
    if not missing:
        message = f"All {len(pinned)} pinned vocabularies are available."
        if len(pinned) == 1:
            message = "The pinned vocabulary is available."
        yield Finding(OK, "vocabularies", message)


def check_secret_hosts(patient: Installation) -> Iterator[Finding]:
    """Check whether named secrets can be sent to any host."""
    if patient.results.get("database") != database.newest_revision():
        return
    table = sa.table("secrets", sa.column("name"), sa.column("allowed_hosts"))
    anywhere = sa.select(sa.func.count()).where(table.c.name.is_not(None), table.c.allowed_hosts.is_(None))
    with read_connection(patient) as connection:
        count = connection.execute(anywhere).scalar_one()
    if count:
        message = f"Editors can send {count} named {'secret' if count == 1 else 'secrets'} to any host."
        yield Finding(WARN, "secrets", message, "set the allowed hosts under Settings, Secrets")
    else:
        yield Finding(OK, "secrets", "Every named secret is restricted to certain hosts.")


CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    ("database", check_connection),
    ("integrity", check_integrity),
    ("clock", check_clock),
    ("keys", check_vault_keys),
    ("vocabularies", check_vocabularies),
    ("secrets", check_secret_hosts),
)
