"""Verify the audit log: hash every entry again and compare the hash with the chain.

Errors are reported in the order of the chain: a changed, missing or inserted entry, and a seal that was changed or
removed at the end. Entries without a seal (`limits.AUDIT_SEAL_SECONDS`) cannot be verified, and are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from webapp import clock, limits
from webapp.audit.models import AuditEntry, AuditHead, AuditPending, AuditSeal
from webapp.audit.services import seals as audit_seals
from webapp.extensions import READS, db

_LATE: Final = timedelta(seconds=limits.AUDIT_LATE_SECONDS)


@dataclass(frozen=True, slots=True)
class Misfit:
    """Something that does not fit: in which seal, which entry ("": none in particular), and what."""

    seal: int
    entry_id: str
    message: str


@dataclass(slots=True)
class Report:
    """The result for one workspace: the number of checked seals and entries, entries without a seal, and errors."""

    workspace_id: str
    seals: int = 0
    entries: int = 0
    removed: int = 0
    unsealed: int = 0
    head: str = ""
    misfits: list[Misfit] = field(default_factory=list)


def verify(workspace_id: str, kept: dict[str, Any] | None = None) -> Report:
    """Verify the whole chain of a workspace in one snapshot. `kept`: a head `{number, hash}` that was saved elsewhere,
    in addition to the one in storage. At most `limits.AUDIT_FAULTS` errors are reported."""
    report = Report(workspace_id)
    heads = [head for head in (audit_seals.kept_head(workspace_id), kept) if head is not None]
    with Session(db.engine, autoflush=False) as session:
        # All of it as of one moment, while others write and retention removes.
        options: dict[str, Any] = {READS: True}
        if db.engine.dialect.name != "sqlite":
            options["isolation_level"] = "REPEATABLE READ"
        session.connection(execution_options=options)
        found = _Chain(session, report).misfits(heads)
        report.misfits = list(islice(found, limits.AUDIT_FAULTS))
    return report


class _Chain:
    """One walk along a workspace's chain."""

    def __init__(self, session: Session, report: Report) -> None:
        self._session, self._report = session, report
        self._workspace_id = report.workspace_id
        self._latest: datetime | None = None
        self._head = session.get(AuditHead, report.workspace_id)
        self._removed = self._head.removed if self._head else 0

    def misfits(self, heads: list[dict[str, Any]]) -> Iterator[Misfit]:
        """All that does not fit, in order."""
        yield from self._seals()
        yield from self._end(heads)
        yield from self._others()

    def _seals(self) -> Iterator[Misfit]:
        own = AuditSeal.workspace_id == self._workspace_id
        numbers = self._session.scalars(select(AuditSeal.number).where(own).order_by(AuditSeal.number)).all()
        previous, expected = audit_seals.GENESIS, 1
        for number in numbers:
            seal = self._session.get_one(AuditSeal, (self._workspace_id, number))
            self._session.expunge(seal)
            if number != expected:
                yield Misfit(expected, "", f"Seal {expected} is missing; the next one is {number}.")
            elif seal.previous != previous:
                yield Misfit(number, "", f"Seal {number} does not continue the previous seal.")
            yield from self._entries(seal)
            if seal.hash != audit_seals.seal_hash({name: getattr(seal, name) for name in audit_seals.SEALED}):
                yield Misfit(number, "", f"Seal {number} was changed.")
            previous, expected = seal.hash, number + 1
            self._latest = seal.last_at
            self._report.seals += 1
        self._report.head = f"{expected - 1}:{previous}" if numbers else ""

    def _entries(self, seal: AuditSeal) -> Iterator[Misfit]:
        if seal.removed_at is not None and seal.links is None:
            self._report.removed += seal.count
            if seal.number > self._removed:
                yield Misfit(
                    seal.number, "", f"The entries of seal {seal.number} were taken away, not by retention."
                )
            return
        try:
            links = audit_seals.unpacked(seal.links or b"")
        except ValueError:
            links = []
        if len(links) != seal.count:
            yield Misfit(
                seal.number, "", f"Seal {seal.number} names {len(links)} entries and not {seal.count}."
            )
        there = audit_seals.read(self._session, self._workspace_id, [name for name, _ in links])
        digest = bytes.fromhex(seal.previous)
        for name, told in links:
            entry = there.get(name)
            self._report.entries += entry is not None
            if entry is None:
                yield Misfit(seal.number, name, "This entry is missing: it was deleted.")
            elif audit_seals.link(digest, entry) != told:
                yield Misfit(
                    seal.number, name, "This entry is not what was sealed: it or its place was changed."
                )
            elif self._latest is not None and entry["at"] < self._latest - _LATE:
                at, latest = clock.to_text(entry["at"]), clock.to_text(self._latest)
                yield Misfit(seal.number, name, f"This entry is of {at} and was added after {latest}.")
            digest = told
        if digest.hex() != seal.chain:
            yield Misfit(seal.number, "", f"The hashes in seal {seal.number} were changed.")

    def _end(self, heads: list[dict[str, Any]]) -> Iterator[Misfit]:
        """Check that nothing was cut off: the chain reaches its head and includes every stored head."""
        head = self._head
        number, hash = self._report.head.split(":") if self._report.head else ("0", "")
        last = int(number)
        if (head.number if head else 0, head.hash if head else "") != (last, hash):
            yield Misfit(
                last, "", f"The chain ends at seal {last}; its head is seal {head.number if head else 0}."
            )
        for kept in heads:
            if not audit_seals.holds(self._session, self._workspace_id, kept["number"], kept["hash"]):
                yield Misfit(
                    last, "", f"The chain does not hold the head that was kept, seal {kept['number']}."
                )
        if head is not None and head.removed:
            yield from self._retention(head)

    def _retention(self, head: AuditHead) -> Iterator[Misfit]:
        """Retention says in the trail itself what it has removed."""
        statement = (
            select(AuditEntry.details)
            .where(AuditEntry.workspace_id == self._workspace_id, AuditEntry.action == "audit.remove")
            .order_by(AuditEntry.at.desc(), AuditEntry.id.desc())
            .limit(1)
        )
        said = self._session.scalar(statement) or {}
        if (said.get("seals") or [0, 0])[1] != head.removed:
            message = (
                f"Entries up to seal {head.removed} are gone, and no entry says that retention removed them."
            )
            yield Misfit(head.removed, "", message)

    def _others(self) -> Iterator[Misfit]:
        """Return entries without a seal: those of the last seconds are pending, others were not written by Rowsmith."""
        own = AuditEntry.workspace_id == self._workspace_id
        noted = select(AuditPending.entry_id).where(AuditPending.workspace_id == self._workspace_id)
        pending = set(self._session.scalars(noted))
        there = set(self._session.scalars(noted.join(AuditEntry, AuditEntry.id == AuditPending.entry_id)))
        self._report.unsealed = len(there)
        for name in sorted(pending - there):
            yield Misfit(0, name, "This entry is missing: it was deleted before it was sealed.")
        total = self._session.scalar(select(func.count()).select_from(AuditEntry).where(own)) or 0
        if total == self._report.entries + len(there):
            return
        sealed = self._sealed()
        names = self._session.scalars(
            select(AuditEntry.id).where(own).order_by(AuditEntry.id).execution_options(yield_per=5_000)
        )
        for name in names:
            if name not in pending and name not in sealed:
                yield Misfit(0, name, "This entry is in no seal: it was not written by the service.")

    def _sealed(self) -> set[str]:
        statement = select(AuditSeal.links).where(
            AuditSeal.workspace_id == self._workspace_id, AuditSeal.links.is_not(None)
        )
        found: set[str] = set()
        for links in self._session.scalars(statement.execution_options(yield_per=10)):
            assert links is not None  # by the condition
            found.update(name for name, _ in audit_seals.unpacked(links[: len(links) // 48 * 48]))
        return found
