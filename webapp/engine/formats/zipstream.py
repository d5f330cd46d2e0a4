"""A ZIP archive (APPNOTE.TXT 6.3) written front to back, with nothing that depends on time or machine but deflate.

Sizes of a streamed entry follow its data, and take eight bytes in the directory if four are too few. The
local header stays plain then, since Excel offers to repair files whose local headers have the 64-bit extra field.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from types import ModuleType
from typing import Any

deflater: ModuleType
try:
    from isal import isal_zlib

    deflater = isal_zlib
except ImportError:  # the same format, more slowly
    deflater = zlib

_LEVEL = 1
_RAW_DEFLATE = -15
_DEFLATED = 8
_DATE, _TIME = 0x0021, 0  # 1980-01-01, the first day of ZIP's calendar
_UTF8, _SIZES_FOLLOW = 0x0800, 0x0008
_VERSION, _VERSION_64 = 20, 45
_MAX32 = 0xFFFFFFFF


@dataclass(slots=True)
class _Entry:
    name: bytes
    offset: int
    flags: int
    crc: int = 0
    packed: int = 0
    size: int = 0


class ZipStream:
    """Entries one after another: `open`, `write` ... `close`; then `finish`. Each returns bytes to send."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._at = 0
        self._deflate: Any = None

    def add_entry(self, name: str, data: bytes) -> bytes:
        """Return a complete small entry."""
        deflate = deflater.compressobj(_LEVEL, _DEFLATED, _RAW_DEFLATE)
        packed = deflate.compress(data) + deflate.flush()
        entry = self._begin(name, 0)
        entry.crc, entry.packed, entry.size = deflater.crc32(data), len(packed), len(data)
        return self._advance(self._local_header(entry) + packed)

    def open(self, name: str) -> bytes:
        """The start of a streamed entry."""
        self._deflate = deflater.compressobj(_LEVEL, _DEFLATED, _RAW_DEFLATE)
        return self._advance(self._local_header(self._begin(name, _SIZES_FOLLOW)))

    def write(self, data: bytes | memoryview) -> bytes:
        """Add to the entry; return what the compressor has ready."""
        entry = self._entries[-1]
        entry.crc = deflater.crc32(data, entry.crc)
        entry.size += len(data)
        return self._packed(self._deflate.compress(data))

    def close(self) -> bytes:
        """The end of the entry."""
        rest = self._packed(self._deflate.flush())
        entry = self._entries[-1]
        sizes = "<IIQQ" if max(entry.packed, entry.size) > _MAX32 else "<IIII"
        return rest + self._advance(struct.pack(sizes, 0x08074B50, entry.crc, entry.packed, entry.size))

    def finish(self) -> bytes:
        """The directory."""
        start = self._at
        directory = b"".join(map(self._directory_entry, self._entries))
        count, size = len(self._entries), len(directory)
        end = b""
        if start > _MAX32:
            end = struct.pack(
                "<IQHHIIQQQQ", 0x06064B50, 44, _VERSION_64, _VERSION_64, 0, 0, count, count, size, start
            )
            end += struct.pack("<IIQI", 0x07064B50, 0, start + size, 1)
        tail = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, count, count, size, min(start, _MAX32), 0)
        return self._advance(directory + end + tail)

    def _begin(self, name: str, flags: int) -> _Entry:
        self._entries.append(_Entry(name.encode(), self._at, flags | _UTF8))
        return self._entries[-1]

    def _packed(self, data: bytes) -> bytes:
        self._entries[-1].packed += len(data)
        return self._advance(data)

    def _advance(self, data: bytes) -> bytes:
        self._at += len(data)
        return data

    @staticmethod
    def _local_header(entry: _Entry) -> bytes:
        fields = (
            0x04034B50,
            _VERSION,
            entry.flags,
            _DEFLATED,
            _TIME,
            _DATE,
            entry.crc,
            entry.packed,
            entry.size,
        )
        return struct.pack("<IHHHHHIIIHH", *fields, len(entry.name), 0) + entry.name

    @staticmethod
    def _directory_entry(entry: _Entry) -> bytes:
        wide = [value for value in (entry.size, entry.packed, entry.offset) if value > _MAX32]
        extra = struct.pack(f"<HH{len(wide)}Q", 1, 8 * len(wide), *wide) if wide else b""
        version = _VERSION_64 if wide else _VERSION
        packed, size, offset = (min(value, _MAX32) for value in (entry.packed, entry.size, entry.offset))
        fields = (0x02014B50, version, version, entry.flags, _DEFLATED, _TIME, _DATE, entry.crc, packed, size)
        rest = (len(entry.name), len(extra), 0, 0, 0, 0, offset)
        return struct.pack("<IHHHHHHIII", *fields) + struct.pack("<HHHHHII", *rest) + entry.name + extra
