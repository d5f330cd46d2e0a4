"""The hashes of the trail: how entries become a chain. No database here.

    hash(entry n) = SHA-256(hash(entry n-1) as 32 bytes + canonical JSON of entry n)

A seal goes on from the hash of the seal before; the first from 64 zeros. The canonical JSON of an entry has the keys
of `FIELDS`, sorted, without blanks, other characters than ASCII escaped; `at` has six digits after the second.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from webapp import ids

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
_LINK: Final = 48  # bytes: 16 of the entry's id, 32 of its hash
_DIGITS: Final = str.maketrans(ids.ALPHABET, "0123456789abcdefghijklmnopqrstuv")


def canonical(entry: Mapping[str, Any]) -> bytes:
    """An entry (or any mapping of plain values and times) as it is hashed."""
    plain = {name: _moment(value) if isinstance(value, datetime) else value for name, value in entry.items()}
    return json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()


def _moment(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def link(previous: bytes, entry: Mapping[str, Any]) -> bytes:
    """The 32 bytes of an entry's hash."""
    return hashlib.sha256(previous + canonical(entry)).digest()


def seal_hash(seal: Mapping[str, Any]) -> str:
    """The hash of a seal: of all that `SEALED` names, `chain` (the hash of its last entry) among it."""
    return hashlib.sha256(canonical({name: seal[name] for name in SEALED})).hexdigest()


def is_linkable(entry_id: str) -> bool:
    """Whether an id is one of ours: others cannot stand in a seal."""
    return ids.is_id(entry_id, "aud")


def packed(entry_id: str, digest: bytes) -> bytes:
    """One link of a seal: the entry's id and its hash."""
    return int(entry_id.removeprefix(_PREFIX).translate(_DIGITS), 32).to_bytes(16, "big") + digest


def unpacked(links: bytes) -> list[tuple[str, bytes]]:
    """The links of a seal in order: `(entry id, hash)`. ValueError for a length that is none."""
    if len(links) % _LINK:
        raise ValueError("not a whole number of links")
    return [(_id(links[at : at + 16]), links[at + 16 : at + _LINK]) for at in range(0, len(links), _LINK)]


def _id(raw: bytes) -> str:
    return _PREFIX + ids.ulid(int.from_bytes(raw[:6], "big"), raw[6:])
