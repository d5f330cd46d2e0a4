"""Seals of the audit log: entries are chained by hashes after they are written, so that writers never wait.

The database marks each entry as pending in the transaction that adds it. A seal covers a batch of pending entries in
the order of their ids, and removes the marks in the same transaction. So an entry that is committed late is sealed
late, and none is missed. The sweeper calls this.

`verify` hashes every entry again and compares the hash with the chain. Errors are reported in the order of the chain: a
changed, missing or inserted entry, and a seal that was changed or removed at the end. Entries without a seal
(`limits.AUDIT_SEAL_SECONDS`) cannot be verified, and are counted.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

from flask import current_app
from sqlalchemy import ColumnElement, and_, delete, func, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from webapp import clock, ids, limits, storage
from webapp.access.models import Workspace
from webapp.audit.models import AuditEntry, AuditHead, AuditPending, AuditSeal
from webapp.extensions import READ_ONLY_OPTION, affected_row_count, db, read_session, write_session
from webapp.metering import hourly

log = logging.getLogger(__name__)

GENESIS: Final = "0" * 64
FIELDS: Final = (
    "id",
    "at",
    "workspace_id",
    "action",
    "object_type",
    "object_id",
    "project_id",
    "user_id",
    "key_id",
    "address",
    "request_id",
    "rows",
    "details",
)
SEALED: Final = (
    "workspace_id",
    "number",
    "count",
    "first_id",
    "last_id",
    "last_at",
    "previous",
    "chain",
    "sealed_at",
)
_PREFIX: Final = "aud_"
_LINK_BYTES: Final = 48  # bytes: 16 of the entry's id, 32 of its hash
_DIGITS: Final = str.maketrans(ids.ALPHABET, "0123456789abcdefghijklmnopqrstuv")


def canonical(entry: Mapping[str, Any]) -> bytes:
    """Return the bytes of an entry (or any mapping of plain values and times) that are hashed."""
    serializable = {
        name: value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        if isinstance(value, datetime)
        else value
        for name, value in entry.items()
    }
    return json.dumps(serializable, sort_keys=True, separators=(",", ":")).encode()


def link_hash(previous: bytes, entry: Mapping[str, Any]) -> bytes:
    """Return the 32 bytes of an entry's hash."""
    return hashlib.sha256(previous + canonical(entry)).digest()


def seal_hash(seal: Mapping[str, Any]) -> str:
    """Return the hash of a seal over the columns in `SEALED`, including `chain`, the hash of its last entry."""
    return hashlib.sha256(canonical({name: seal[name] for name in SEALED})).hexdigest()


def is_linkable(entry_id: str) -> bool:
    """Return whether an id has our format: other ids cannot be sealed."""
    return ids.is_id(entry_id, "aud")


def pack_link(entry_id: str, digest: bytes) -> bytes:
    """Return one link of a seal: the entry's id and its hash."""
    return int(entry_id.removeprefix(_PREFIX).translate(_DIGITS), 32).to_bytes(16, "big") + digest


def unpack_links(links: bytes) -> list[tuple[str, bytes]]:
    """Return the links of a seal in order: `(entry id, hash)`. ValueError for an invalid length."""
    if len(links) % _LINK_BYTES:
        raise ValueError("not a whole number of links")
    return [
        (_entry_id(links[at : at + 16]), links[at + 16 : at + _LINK_BYTES])
        for at in range(0, len(links), _LINK_BYTES)
    ]


def _entry_id(raw: bytes) -> str:
    return _PREFIX + ids.ulid(int.from_bytes(raw[:6], "big"), raw[6:])


COLUMNS: Final = tuple(getattr(AuditEntry, name) for name in FIELDS)
_ANCHOR_BYTES: Final = 4_096


def seal_all(now: datetime, maximum: int = limits.AUDIT_SEALS_PER_TURN) -> int:
    """Seal the pending entries of every workspace, in at most `maximum` seals. Returns the number of seals."""
    with read_session() as session:
        workspace_ids = session.scalars(select(AuditPending.workspace_id).distinct()).all()
    count = 0
    for workspace_id in workspace_ids:
        if count >= maximum:
            break
        count += seal(workspace_id, now, maximum - count)
    return count


def seal(workspace_id: str, now: datetime, maximum: int = limits.AUDIT_SEALS_PER_TURN) -> int:
    """Seal the pending entries of one workspace, in at most `maximum` seals, and save its head in the storage. Return
    the number of seals."""
    count, after = 0, ""
    while count < maximum:
        with read_session() as session:
            statement = select(AuditPending.entry_id).where(
                AuditPending.workspace_id == workspace_id, AuditPending.entry_id > after
            )
            statement = statement.order_by(AuditPending.entry_id).limit(limits.AUDIT_SEAL_ENTRIES)
            pending = session.scalars(statement).all()
            entries = _read_entries(session, workspace_id, pending)
            head = session.get(AuditHead, workspace_id)
            sealed: set[str] = set()
            latest = None
            if head is not None:
                sealed = _sealed_before(session, head, [entry["id"] for entry in entries])
                conditions = (AuditSeal.workspace_id == workspace_id, AuditSeal.number == head.number)
                latest = session.scalar(select(AuditSeal.last_at).where(*conditions))
        if not pending:
            break
        after = pending[-1]
        fresh = [entry for entry in entries if entry["id"] not in sealed]
        if not _write_seal(workspace_id, head, fresh, sealed, now, latest):
            break
        count += bool(fresh)
    if count:
        store_head(workspace_id)
    return count


def _read_entries(session: Session, workspace_id: str, entry_ids: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the existing entries by id. A missing one was deleted: it stays pending, and `verify` reports it."""
    found = read_entries(session, workspace_id, [entry_id for entry_id in entry_ids if is_linkable(entry_id)])
    return [found[item] for item in sorted(found)]


def read_entries(
    session: Session, workspace_id: str, entry_ids: Sequence[str]
) -> dict[str, Mapping[Any, Any]]:
    """Return entries in their hashed form, by id. Their items are accessible by column and by name, hence `Any`."""
    statement = select(*COLUMNS).where(entries_condition(workspace_id, entry_ids))
    return {row["id"]: row for row in session.execute(statement).mappings()}


def entries_condition(workspace_id: str, entry_ids: Sequence[str]) -> ColumnElement[bool]:
    """Return the condition for entries of a workspace by id. The workspace column is in a function, so that SQLite uses
    the index of the ids and not the one of the workspace, which would read all its entries."""
    return and_(AuditEntry.id.in_(entry_ids), func.coalesce(AuditEntry.workspace_id, "") == workspace_id)


def _sealed_before(session: Session, head: AuditHead, entry_ids: list[str]) -> set[str]:
    """Return the ids that already have a seal: if a table was restored row by row, all its entries are pending."""
    candidates = {entry_id for entry_id in entry_ids if entry_id <= head.last_id}
    if not candidates:
        return set()
    statement = select(AuditSeal.links).where(
        AuditSeal.workspace_id == head.workspace_id,
        AuditSeal.links.is_not(None),
        AuditSeal.first_id <= max(candidates),
        AuditSeal.last_id >= min(candidates),
    )
    found: set[str] = set()
    for links in session.scalars(statement):
        found |= candidates & {name for name, _ in unpack_links(links or b"")}
    return found


def _write_seal(
    workspace_id: str,
    head: AuditHead | None,
    entries: list[Mapping[str, Any]],
    sealed: set[str],
    now: datetime,
    latest: datetime | None,
) -> bool:
    """Write one seal. Return False if another sweeper has written it in the meantime."""
    new_seal = None
    if entries:
        digest, links = bytes.fromhex(head.hash if head else GENESIS), []
        for entry in entries:
            digest = link_hash(digest, entry)
            links.append(pack_link(entry["id"], digest))
        newest = max(entry["at"] for entry in entries)
        values = {
            "workspace_id": workspace_id,
            "number": (head.number if head else 0) + 1,
            "count": len(entries),
            "first_id": entries[0]["id"],
            "last_id": entries[-1]["id"],
            "last_at": max(newest, latest) if latest else newest,
            "previous": head.hash if head else GENESIS,
            "chain": digest.hex(),
            "sealed_at": now,
        }
        new_seal = AuditSeal(**values, hash=seal_hash(values), links=b"".join(links))
    try:
        with write_session() as session:
            locked_head = session.get(AuditHead, workspace_id, with_for_update=True)
            if (locked_head.number if locked_head else 0) != (head.number if head else 0):
                return False
            if new_seal is not None:
                session.add(new_seal)
                if locked_head is None:
                    locked_head = AuditHead(workspace_id=workspace_id, removed=0)
                    session.add(locked_head)
                locked_head.number, locked_head.hash = new_seal.number, new_seal.hash
                locked_head.last_id = max(locked_head.last_id or "", new_seal.last_id)
                hourly.add_rows(session, entries)
            entry_ids = [item["id"] for item in entries] + sorted(sealed)
            session.execute(
                delete(AuditPending).where(
                    AuditPending.workspace_id == workspace_id, AuditPending.entry_id.in_(entry_ids)
                )
            )
    except IntegrityError:
        return False  # another process was first, or the workspace was deleted
    return True


# --- The head in storage ------------------------------------------------------------------------------------


def anchor_key(workspace_id: str) -> str:
    """Return where the head of a workspace's chain is stored, in addition to the database."""
    return f"audit/{workspace_id}/head.json"


def stored_head(workspace_id: str) -> dict[str, Any] | None:
    """Return the head in the storage: `{number, hash}`; None without one."""
    try:
        raw = b"".join(storage.get_storage(current_app).get(anchor_key(workspace_id), 0, _ANCHOR_BYTES))
    except storage.MissingError:
        return None
    try:
        data = json.loads(raw)
        return {"number": int(data["number"]), "hash": str(data["hash"])}
    except (ValueError, KeyError, TypeError):
        return {"number": 0, "hash": "unreadable"}


def store_head(workspace_id: str, *, replace: bool = False) -> bool:
    """Save the head of a chain in storage. Return False without writing if the saved head does not match the chain and
    needs attention. `replace`: overwrite it in any case."""
    with read_session() as session:
        head = session.get(AuditHead, workspace_id)
        saved = None if replace else stored_head(workspace_id)
        if head is None or not head.number:
            return False
        if saved is not None and not has_seal(session, workspace_id, saved["number"], saved["hash"]):
            log.error(
                "the audit log of %s does not contain its saved head; run ./rowsmith audit verify",
                workspace_id,
            )
            return False
        data = {"number": head.number, "hash": head.hash, "sealed_at": clock.to_text(clock.now())}
    storage.get_storage(current_app).put(anchor_key(workspace_id), [json.dumps(data).encode()])
    return True


def has_seal(session: Session, workspace_id: str, number: int, hash: str) -> bool:
    """Return whether a workspace's chain has a seal with this number and hash."""
    statement = select(AuditSeal.hash).where(
        AuditSeal.workspace_id == workspace_id, AuditSeal.number == number
    )
    return session.scalar(statement) == hash


# --- Retention ----------------------------------------------------------------------------------------------


def retention_days(workspace: Workspace) -> int:
    """Return how many days a workspace keeps its entries: its setting, within the limits of its plan."""
    minimum, maximum = limits.AUDIT_DAYS[workspace.plan]
    setting = workspace.settings.get("audit_retention_days")
    return maximum if setting is None else min(max(int(setting), minimum), maximum)


def remove_expired(now: datetime, maximum: int = limits.AUDIT_REMOVED_PER_TURN) -> int:
    """Remove entries that are older than their workspaces keep them: whole seals, from the beginning. The seals stay,
    without their links. Return the number of seals, at most `maximum`."""
    with read_session() as session:
        workspaces = session.scalars(select(Workspace)).all()
    removed = 0
    for workspace in workspaces:
        if removed >= maximum:
            break
        removed += _remove_seals(
            workspace, now - timedelta(days=retention_days(workspace)), maximum - removed, now
        )
    return removed


def _remove_seals(workspace: Workspace, before: datetime, maximum: int, now: datetime) -> int:
    with write_session() as session:
        head = session.get(AuditHead, workspace.id, with_for_update=True)
        if head is None:
            return 0
        statement = (
            select(AuditSeal)
            .where(
                AuditSeal.workspace_id == workspace.id,
                AuditSeal.number > head.removed,
                AuditSeal.number <= head.removed + maximum,
                AuditSeal.last_at < before,
            )
            .order_by(AuditSeal.number)
        )
        seals = session.scalars(statement).all()
        if not seals:
            return 0
        head.removed, head.removed_until = seals[-1].number, seals[-1].last_at
        session.flush()  # from here on the triggers allow their deletion
        removed = 0
        for seal in seals:
            names = [name for name, _ in unpack_links(seal.links or b"")]
            removed += affected_row_count(
                session.execute(delete(AuditEntry).where(entries_condition(workspace.id, names)))
            )
        numbers = [seal.number for seal in seals]
        session.execute(
            update(AuditSeal)
            .where(AuditSeal.workspace_id == workspace.id, AuditSeal.number.in_(numbers))
            .values(links=None, removed_at=now)
            .execution_options(synchronize_session=False)
        )
        details = {
            "seals": [numbers[0], numbers[-1]],
            "entries": removed,
            "until": clock.to_text(head.removed_until),
        }
        session.add(_new_entry(workspace.id, "audit.remove", now, details))
    return len(numbers)


def _new_entry(workspace_id: str, action: str, now: datetime, details: dict[str, Any]) -> AuditEntry:
    return AuditEntry(
        id=ids.new("aud"),
        at=now,
        workspace_id=workspace_id,
        action=action,
        object_type="workspace",
        object_id=workspace_id,
        details=details,
    )


def accept_chain(workspace_id: str, now: datetime) -> None:
    """Accept the current chain as valid, for example after a backup was restored: save its head over the saved one, and
    record an entry about it."""
    before = stored_head(workspace_id)
    with write_session() as session:
        session.add(_new_entry(workspace_id, "audit.anchor", now, {"before": before}))
    seal(workspace_id, now)
    store_head(workspace_id, replace=True)


# --- Workspaces that are removed ----------------------------------------------------------------------------


def allow_deletion(session: Session, workspace_id: str, now: datetime) -> None:
    """Allow the deletion of the entries of a workspace that is about to be deleted."""
    head = session.get(AuditHead, workspace_id) or AuditHead(workspace_id=workspace_id)
    head.removed_until = now + timedelta(days=36_500)
    session.add(head)


def delete_orphans(session: Session) -> None:
    """Delete the heads of workspaces that no longer exist, their copies in storage, and pending marks of entries that
    were written after the deletion."""
    orphaned = select(AuditHead.workspace_id).where(AuditHead.workspace_id.not_in(select(Workspace.id)))
    for workspace_id in session.scalars(orphaned).all():
        storage.get_storage(current_app).delete(anchor_key(workspace_id))
        session.execute(delete(AuditPending).where(AuditPending.workspace_id == workspace_id))
        session.execute(delete(AuditHead).where(AuditHead.workspace_id == workspace_id))


# --- Verification -------------------------------------------------------------------------------------------

_MAX_DELAY: Final = timedelta(seconds=limits.AUDIT_LATE_SECONDS)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A mismatch: its seal, its entry ("" if it concerns no single entry), and a message."""

    seal: int
    entry_id: str
    message: str


@dataclass(slots=True)
class VerificationReport:
    """The result for one workspace: the number of checked seals and entries, entries without a seal, and errors."""

    workspace_id: str
    seals: int = 0
    entries: int = 0
    removed: int = 0
    unsealed: int = 0
    head: str = ""
    mismatches: list[Mismatch] = field(default_factory=list)


def verify(workspace_id: str, saved: dict[str, Any] | None = None) -> VerificationReport:
    """Verify the whole chain of a workspace in one snapshot. `saved`: a head `{number, hash}` that was saved elsewhere,
    in addition to the one in storage. At most `limits.AUDIT_FAULTS` errors are reported."""
    report = VerificationReport(workspace_id)
    heads = [head for head in (stored_head(workspace_id), saved) if head is not None]
    with Session(db.engine, autoflush=False) as session:
        # One snapshot, although other processes write entries and retention removes them.
        options: dict[str, Any] = {READ_ONLY_OPTION: True}
        if db.engine.dialect.name != "sqlite":
            options["isolation_level"] = "REPEATABLE READ"
        session.connection(execution_options=options)
        found = _ChainVerifier(session, report).mismatches(heads)
        report.mismatches = list(islice(found, limits.AUDIT_FAULTS))
    return report


class _ChainVerifier:
    """One walk along a workspace's chain."""

    def __init__(self, session: Session, report: VerificationReport) -> None:
        self._session, self._report = session, report
        self._workspace_id = report.workspace_id
        self._latest: datetime | None = None
        self._head = session.get(AuditHead, report.workspace_id)
        self._removed = self._head.removed if self._head else 0

    def mismatches(self, heads: list[dict[str, Any]]) -> Iterator[Mismatch]:
        """Yield all mismatches, in order."""
        yield from self._check_seals()
        yield from self._check_end(heads)
        yield from self._unsealed_entries()

    def _check_seals(self) -> Iterator[Mismatch]:
        condition = AuditSeal.workspace_id == self._workspace_id
        numbers = self._session.scalars(
            select(AuditSeal.number).where(condition).order_by(AuditSeal.number)
        ).all()
        previous, expected = GENESIS, 1
        for number in numbers:
            seal = self._session.get_one(AuditSeal, (self._workspace_id, number))
            self._session.expunge(seal)
            if number != expected:
                yield Mismatch(expected, "", f"Seal {expected} is missing; the next one is {number}.")
            elif seal.previous != previous:
                yield Mismatch(number, "", f"Seal {number} does not continue the previous seal.")
            yield from self._check_entries(seal)
            if seal.hash != seal_hash({name: getattr(seal, name) for name in SEALED}):
                yield Mismatch(number, "", f"Seal {number} was changed.")
            previous, expected = seal.hash, number + 1
            self._latest = seal.last_at
            self._report.seals += 1
        self._report.head = f"{expected - 1}:{previous}" if numbers else ""

    def _check_entries(self, seal: AuditSeal) -> Iterator[Mismatch]:
        if seal.removed_at is not None and seal.links is None:
            self._report.removed += seal.count
            if seal.number > self._removed:
                yield Mismatch(
                    seal.number, "", f"The entries of seal {seal.number} were removed, but not by retention."
                )
            return
        try:
            links = unpack_links(seal.links or b"")
        except ValueError:
            links = []
        if len(links) != seal.count:
            yield Mismatch(
                seal.number, "", f"Seal {seal.number} lists {len(links)} entries instead of {seal.count}."
            )
        entries = read_entries(self._session, self._workspace_id, [name for name, _ in links])
        digest = bytes.fromhex(seal.previous)
        for name, expected in links:
            entry = entries.get(name)
            self._report.entries += entry is not None
            if entry is None:
                yield Mismatch(seal.number, name, "This entry is missing: it was deleted.")
            elif link_hash(digest, entry) != expected:
                yield Mismatch(
                    seal.number,
                    name,
                    "This entry does not match its seal: the entry or its position was changed.",
                )
            elif self._latest is not None and entry["at"] < self._latest - _MAX_DELAY:
                at, latest = clock.to_text(entry["at"]), clock.to_text(self._latest)
                yield Mismatch(
                    seal.number, name, f"This entry has the time {at}, but was added after {latest}."
                )
            digest = expected
        if digest.hex() != seal.chain:
            yield Mismatch(seal.number, "", f"The hashes in seal {seal.number} were changed.")

    def _check_end(self, heads: list[dict[str, Any]]) -> Iterator[Mismatch]:
        """Check that nothing was cut off: the chain reaches its head and includes every stored head."""
        head = self._head
        number, hash = self._report.head.split(":") if self._report.head else ("0", "")
        last_number = int(number)
        if (head.number if head else 0, head.hash if head else "") != (last_number, hash):
            yield Mismatch(
                last_number,
                "",
                f"The chain ends at seal {last_number}; its head is seal {head.number if head else 0}.",
            )
        for saved in heads:
            if not has_seal(self._session, self._workspace_id, saved["number"], saved["hash"]):
                yield Mismatch(
                    last_number,
                    "",
                    f"The chain does not contain the saved head, seal {saved['number']}.",
                )
        if head is None or not head.removed:
            return
        # Retention records in the audit log itself what it has removed.
        statement = (
            select(AuditEntry.details)
            .where(AuditEntry.workspace_id == self._workspace_id, AuditEntry.action == "audit.remove")
            .order_by(AuditEntry.at.desc(), AuditEntry.id.desc())
            .limit(1)
        )
        details = self._session.scalar(statement) or {}
        if (details.get("seals") or [0, 0])[1] != head.removed:
            message = f"Entries up to seal {head.removed} are missing, but no entry records their removal by retention."
            yield Mismatch(head.removed, "", message)

    def _unsealed_entries(self) -> Iterator[Mismatch]:
        """Return entries without a seal: those of the last seconds are pending, others were not written by Rowsmith."""
        condition = AuditEntry.workspace_id == self._workspace_id
        noted = select(AuditPending.entry_id).where(AuditPending.workspace_id == self._workspace_id)
        pending = set(self._session.scalars(noted))
        existing = set(self._session.scalars(noted.join(AuditEntry, AuditEntry.id == AuditPending.entry_id)))
        self._report.unsealed = len(existing)
        for name in sorted(pending - existing):
            yield Mismatch(0, name, "This entry is missing: it was deleted before it was sealed.")
        total = self._session.scalar(select(func.count()).select_from(AuditEntry).where(condition)) or 0
        if total == self._report.entries + len(existing):
            return
        sealed = self._sealed_ids()
        names = self._session.scalars(
            select(AuditEntry.id).where(condition).order_by(AuditEntry.id).execution_options(yield_per=5_000)
        )
        for name in names:
            if name not in pending and name not in sealed:
                yield Mismatch(0, name, "This entry is not in any seal: it was not written by the service.")

    def _sealed_ids(self) -> set[str]:
        statement = select(AuditSeal.links).where(
            AuditSeal.workspace_id == self._workspace_id, AuditSeal.links.is_not(None)
        )
        found: set[str] = set()
        for links in self._session.scalars(statement.execution_options(yield_per=10)):
            assert links is not None  # by the condition
            found.update(name for name, _ in unpack_links(links[: len(links) // 48 * 48]))
        return found
