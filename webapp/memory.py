"""Configure memory allocation of a process with many threads, so that it does not keep much more than it uses.

Both default allocators keep memory that a thread has freed: Arrow's mimalloc has a heap per thread, and glibc up to
eight arenas per processor. A web process has hundreds of threads, of which few are active, so after some minutes with
the load of docs/soak.md, mimalloc kept 265 MB, of which 13 to 32 were in use.
"""

from __future__ import annotations

import ctypes
import os
import time
from typing import Final

from webapp import limits

_M_ARENA_MAX: Final = -8  # mallopt(3); the numbers are glibc's malloc.h
_M_MMAP_THRESHOLD: Final = -3
_M_TRIM_THRESHOLD: Final = -1
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

_lowest_resident_bytes = float("inf")
"""The fewest resident bytes so far."""
_resident_bytes_after_trim = 0
"""Resident bytes after the last trim."""
_trimmed_at = float("-inf")


def configure_malloc() -> None:
    """Let Arrow ask glibc, and glibc have `limits.MALLOC_ARENAS` and return large arrays to the system as soon as they
    are freed. Without a threshold of ours glibc raises its own to the largest array freed so far, up to 32 MB, and
    keeps arrays below it. To be called before pyarrow is imported and before threads begin; forked processes inherit
    it.

    Values of the environment variables ARROW_DEFAULT_MEMORY_POOL, MALLOC_ARENA_MAX and MALLOC_MMAP_THRESHOLD_ take
    precedence. Does nothing if the C library is not glibc.
    """
    library = _glibc()
    if library is None:
        return
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if "MALLOC_ARENA_MAX" not in os.environ:
        library.mallopt(_M_ARENA_MAX, limits.MALLOC_ARENAS)
    if "MALLOC_MMAP_THRESHOLD_" not in os.environ:
        library.mallopt(_M_MMAP_THRESHOLD, limits.MALLOC_MMAP_BYTES)
        library.mallopt(_M_TRIM_THRESHOLD, limits.MALLOC_TRIM_BYTES)


def trim() -> None:
    """Return freed memory to the system if the process has grown by `limits.TRIM_GROWN_BYTES`. To be called when the
    objects of a request are gone.

    A request may take much memory for a short answer, and thousands of small pieces that are freed stay in the arenas.
    What another request still uses stays resident, so the size after a trim alone says too little: a process that is
    larger than it was trims again every second.
    """
    global _lowest_resident_bytes, _resident_bytes_after_trim, _trimmed_at
    resident, now = _resident_bytes(), time.monotonic()
    has_grown = resident > _resident_bytes_after_trim + limits.TRIM_GROWN_BYTES
    if has_grown or (
        resident > _lowest_resident_bytes + limits.TRIM_GROWN_BYTES
        and now > _trimmed_at + limits.TRIM_SECONDS
    ):
        library = _glibc()
        if library is not None:
            library.malloc_trim(0)
        resident = _resident_bytes_after_trim = _resident_bytes()
        _trimmed_at = now
    _lowest_resident_bytes = min(_lowest_resident_bytes, resident)


def _resident_bytes() -> int:
    """Return the resident bytes of this process; 0 if /proc is not available."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0


def _glibc() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    return library if hasattr(library, "gnu_get_libc_version") else None
