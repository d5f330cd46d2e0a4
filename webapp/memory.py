"""How a process of many threads asks for memory, so that it does not hold much more than it uses.

Both allocators that are here by themselves keep for a thread what it gave back: Arrow's own, mimalloc, has a heap for
each, and glibc up to eight arenas for each processor. A web process has threads by the hundred and work for a few, so
after some minutes of the load of docs/soak.md mimalloc held 265 MB, of which 13 to 32 were in use.
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

from webapp import limits

_M_ARENA_MAX: Final = -8  # mallopt(3); the number is glibc's malloc.h


def settle() -> None:
    """Let Arrow ask glibc, and glibc have `limits.MALLOC_ARENAS`. To be called before pyarrow is imported and before
    threads begin; forked processes inherit it.

    What the environment says with ARROW_DEFAULT_MEMORY_POOL or MALLOC_ARENA_MAX holds. Where the C library is not
    glibc nothing is done.
    """
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if "MALLOC_ARENA_MAX" not in os.environ:
        library.mallopt(_M_ARENA_MAX, limits.MALLOC_ARENAS)
