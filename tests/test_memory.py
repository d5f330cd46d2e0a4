"""Memory of the web server: the effect of allocator settings, in separate processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import SECRET_KEY
from webapp import limits
from webapp.paths import ROOT

# Threads that all ask at the same time, so that glibc gives each an arena while it may; then how many there are.
ARENAS = """
import ctypes, os, re, tempfile, threading
from webapp import memory

if os.environ.get("SETTLED"):
    memory.configure_malloc()
library = ctypes.CDLL(None)
library.malloc.restype, library.fopen.restype = ctypes.c_void_p, ctypes.c_void_p
together = threading.Barrier(64)

def ask():
    together.wait()
    library.malloc(ctypes.c_size_t(1_000))
    together.wait()

threads = [threading.Thread(target=ask) for _ in range(64)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
with tempfile.NamedTemporaryFile() as file:
    stream = ctypes.c_void_p(library.fopen(file.name.encode(), b"w"))
    library.malloc_info(0, stream)
    library.fclose(stream)
    print(len(re.findall(rb"<heap nr", file.read())))
"""
POOL = """
import runpy, sys
runpy.run_path("gunicorn.conf.py")
assert "pyarrow" not in sys.modules
import pyarrow
print(pyarrow.default_memory_pool().backend_name)
"""

glibc = pytest.mark.skipif(
    not sys.platform.startswith("linux") or "CS_GNU_LIBC_VERSION" not in os.confstr_names,
    reason="it is glibc that has arenas",
)


def told(program: str, **settings: str) -> str:
    """What a program prints that has nothing but these settings."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **settings}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@glibc
def test_threads_share_a_few_arenas():
    assert int(told(ARENAS)) > limits.MALLOC_ARENAS
    assert int(told(ARENAS, SETTLED="1")) <= limits.MALLOC_ARENAS


# Small blocks keep their arena if the last one is not freed, with any threshold.
GROWN = """
from webapp import limits, memory

memory.trim()
before = memory._resident_bytes()
pieces = [bytes(2_000) for _ in range(4 * limits.TRIM_GROWN_BYTES // 2_000)]
last = bytes(2_000)
del pieces
kept = memory._resident_bytes() - before
memory.trim()
print(kept > limits.TRIM_GROWN_BYTES, memory._resident_bytes() - before < limits.TRIM_GROWN_BYTES)
"""


@glibc
def test_freed_memory_is_returned_when_a_process_has_grown():
    assert told(GROWN) == "True True"


# What a second request uses while the first one ends is free when the second one ends, and the process has not grown.
TOGETHER = """
import time
from webapp import limits, memory

memory.trim()
before = memory._resident_bytes()
pieces = [bytes(2_000) for _ in range(4 * limits.TRIM_GROWN_BYTES // 2_000)]
last = bytes(2_000)
memory.trim()
del pieces
kept = memory._resident_bytes() - before
time.sleep(limits.TRIM_SECONDS * 1.1)
memory.trim()
print(kept > limits.TRIM_GROWN_BYTES, memory._resident_bytes() - before < limits.TRIM_GROWN_BYTES)
"""


@glibc
def test_memory_of_requests_that_overlapped_is_returned():
    assert told(TOGETHER) == "True True"


@glibc
def test_a_configured_number_of_arenas_is_used():
    assert int(told(ARENAS, SETTLED="1", MALLOC_ARENA_MAX="4")) in (3, 4)


@glibc
@pytest.mark.parametrize(
    ("expected", "found"), [({}, "system"), ({"ARROW_DEFAULT_MEMORY_POOL": "mimalloc"}, "mimalloc")]
)
def test_the_web_server_makes_arrow_use_the_c_library_unless_configured_otherwise(tmp_path, expected, found):
    settings = {
        "SECRET_KEY": SECRET_KEY,
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "ROWSMITH_DATA_DIR": str(tmp_path),
    }
    assert told(POOL, DATABASE_URL=f"sqlite:///{tmp_path}/rowsmith.db", **settings, **expected) == found
