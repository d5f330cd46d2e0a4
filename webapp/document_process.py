"""Read documents that users upload, paste or point to in a child process, with limits on what reading may cost.

A document may crash a parser, or make it take gigabytes or minutes. `run` therefore calls a function by its dotted
name in a process of its own, and returns what the function returns, as JSON. Three kinds of processes take part:

- The server, `python -m webapp.document_process`, is started by the first call of a process. It imports the modules
  that are asked for, has one thread and never reads a document, so that it can be forked at any time.
- The worker, forked for each document, reads it under the limits and ends.
- The supervisor, forked between the two, ends the worker when its time is over and reports how it ended.

All of them end with the process that started the server.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import logging
import math
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final, NoReturn

import orjson

from webapp import limits
from webapp.errors import ApiError

log = logging.getLogger(__name__)

_ROOT: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What the server gets of our environment: the way to Python, to libraries and to temporary files. No secrets.
_PASSED_ON: Final = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ", "TMPDIR")
# One thread and few arenas: the address space is what is limited, and each thread reserves 64 MB of it.
_SETTINGS: Final = {
    "OPENBLAS_NUM_THREADS": "1", "ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": str(limits.MALLOC_ARENAS),
}  # fmt: skip
_NAME_BYTES: Final = 512  # of a module's name in a request to the server
_STATUS: Final = struct.Struct("<ii")  # how the worker ended, and whether its time was over
_JSON, _BYTES, _LIMIT, _REJECTED, _BUG = b"j", b"b", b"l", b"r", b"x"  # kinds of a worker's answer
_PR_SET_PDEATHSIG: Final = 1  # prctl(2)

_turns = threading.BoundedSemaphore(limits.DOCUMENTS_AT_ONCE)
_lock = threading.Lock()
_server: tuple[subprocess.Popen[bytes], socket.socket] | None = None


class DocumentError(Exception):
    """A document that cannot be read within the limits. The message says which limit, `hint` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


def run(
    function: str,
    document: bytes | IO[bytes],
    arguments: Mapping[str, Any] | None = None,
    seconds: int = limits.DOCUMENT_CPU_SECONDS,
) -> Any:
    """Call `function`, such as `"package.module:name"`, in a process of its own and return its result.

    The function gets the document as a binary file, positioned at its beginning, and `arguments` by name. These must
    be JSON, and its result JSON or bytes. `seconds` is the processor time that it may take. The position of
    a `document` that is a file is undefined afterwards.

    Raises `DocumentError` where a limit is exceeded or the worker crashes. An `ApiError` of the function is raised
    here. Error: unavailable, where too many documents are being read.
    """
    module, _, name = function.partition(":")
    request = orjson.dumps({"module": module, "name": name, "seconds": seconds, "arguments": dict(arguments or {})})
    if not _turns.acquire(timeout=limits.DOCUMENT_TURN_SECONDS):
        text = "Too many documents are being read at the moment. Try again."
        raise ApiError("unavailable", text, headers={"Retry-After": str(limits.DOCUMENT_RETRY_SECONDS)})
    try:
        with contextlib.ExitStack() as stack:
            descriptor = stack.enter_context(_on_disk(document))
            return _result(function, *_exchanged(module, request, descriptor), seconds)
    finally:
        _turns.release()


@contextlib.contextmanager
def _on_disk(document: bytes | IO[bytes]) -> Iterator[int]:
    """The descriptor of a document: its own, or that of a copy where it is in memory."""
    if not isinstance(document, bytes | bytearray):
        try:
            descriptor = document.fileno()  # before it is flushed: a spooled file moves to the disk by this
        except io.UnsupportedOperation:  # it is in memory
            document.seek(0)
        else:
            document.flush()
            yield descriptor
            return
    with tempfile.TemporaryFile() as copy:
        if isinstance(document, bytes | bytearray):
            copy.write(document)
        else:
            shutil.copyfileobj(document, copy)
        copy.flush()
        yield copy.fileno()


def check_depth(value: Any, most: int = limits.DOCUMENT_LEVELS) -> None:
    """Raise `DocumentError` where arrays and objects are nested more than `most` levels deep.

    Walks level by level instead of recursively, so any depth is safe.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        if not level:
            return
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    if level:
        raise too_deep(most)


def too_deep(most: int = limits.DOCUMENT_LEVELS) -> DocumentError:
    """The error for a document that is nested more than `most` levels deep."""
    return DocumentError(f"The document is nested more than {most} levels deep.", "Flatten it.")


# --- The process that asks ----------------------------------------------------------------------------------


def _exchanged(module: str, request: bytes, document: int) -> tuple[bytes, int, bool]:
    """What a worker answers to a request, its wait status, and whether it was ended because its time was over."""
    ours, theirs = socket.socketpair()
    with ours:
        ours.settimeout(limits.DOCUMENT_SECONDS + limits.DOCUMENT_START_SECONDS)
        with theirs:
            _ask(module, [theirs.fileno(), document])
        answer = bytearray()
        try:
            ours.sendall(request)
            ours.shutdown(socket.SHUT_WR)
            while piece := ours.recv(limits.MB):
                answer += piece
        except ConnectionError:
            pass  # the processes were ended from outside: the status is missing
        except TimeoutError:
            _stop()  # a server that does not fork any more
    if len(answer) < _STATUS.size:
        raise ApiError("unavailable", "Reading the document was interrupted. Try again.", headers={"Retry-After": "5"})
    status, late = _STATUS.unpack(answer[-_STATUS.size :])
    del answer[-_STATUS.size :]
    return bytes(answer), status, bool(late)


def _ask(module: str, descriptors: list[int]) -> None:
    """Have the server fork a worker that talks through the first descriptor and reads the second."""
    with _lock:
        for attempt in range(2):  # a server that was ended from outside is replaced
            channel = _started()
            try:
                socket.send_fds(channel, [module.encode()], descriptors)
                if channel.recv(1):
                    return
            except OSError:
                if attempt:
                    raise
            _stop()
    raise ApiError("unavailable", "The process that reads documents cannot be started.", headers={"Retry-After": "5"})


def _started() -> socket.socket:
    """The channel to the server of this process, started where it is not running."""
    global _server
    if _server is None:
        ours, theirs = socket.socketpair()
        ours.settimeout(limits.DOCUMENT_START_SECONDS)
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-m", "webapp.document_process"],
                stdin=theirs,
                stdout=subprocess.DEVNULL,
                cwd=_ROOT,
                env={**{name: os.environ[name] for name in _PASSED_ON if name in os.environ}, **_SETTINGS},
                start_new_session=True,
            )
        _server = process, ours
    return _server[1]


def _stop() -> None:
    """End the server of this process, if there is one. Its workers end with it."""
    global _server
    if _server is not None:
        process, channel = _server
        _server = None
        channel.close()
        process.kill()
        process.wait()


def _forget() -> None:
    """In a forked process: the server is its parent's."""
    global _server, _lock, _turns
    if _server is not None:
        process, channel = _server
        _server = None
        channel.close()
        process.returncode = 0  # it is not a child of this process, so there is nothing to wait for
    _lock = threading.Lock()
    _turns = threading.BoundedSemaphore(limits.DOCUMENTS_AT_ONCE)


atexit.register(_stop)
os.register_at_fork(after_in_child=_forget)


def _result(function: str, answer: bytes, status: int, late: bool, seconds: int) -> Any:
    if late:
        text = f"The document takes more than {limits.DOCUMENT_SECONDS:g} s to read."
        raise DocumentError(text, "Split it into smaller documents, or try again when there is less load.")
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGXCPU:
        text = f"The document needs more than {seconds} s of processor time to read."
        raise DocumentError(text, "Split it into smaller documents.")
    if code != 0:
        log.error("document: the worker for %s ended with %s", function, code)
        text = "The document cannot be read: it makes the parser crash."
        raise DocumentError(text, "It may be nested too deeply or need too much memory. Split or simplify it.")
    kind, told = answer[:1], answer[1:]
    if kind == _BYTES:
        return told
    if kind == _JSON:
        return orjson.loads(told)
    if kind == _LIMIT:
        raise DocumentError(*orjson.loads(told))
    if kind == _REJECTED:
        raise ApiError(**orjson.loads(told))
    log.error("document: %s failed\n%s", function, told.decode("utf-8", "replace"))
    text = "The document cannot be read because of an error in Rowsmith, which has been logged."
    raise DocumentError(text, "Report it to the operator of this service.")


# --- The server ---------------------------------------------------------------------------------------------


def serve(channel: socket.socket) -> None:
    """Fork a worker for each request, until the process that asks is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the process that asks
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors are not waited for
    while True:
        module, descriptors, _, _ = socket.recv_fds(channel, _NAME_BYTES, 2)
        if not module:
            return
        channel.send(b".")
        if module.decode() not in sys.modules:
            importlib.import_module(module.decode())
            gc.collect()
            gc.freeze()  # so that workers do not copy what they never change
        if os.fork() == 0:
            channel.close()
            _supervise(*descriptors)
        for one in descriptors:
            os.close(one)


def _supervise(connection: int, document: int) -> NoReturn:
    """Fork the worker, wait for it, and report how it ended. Never returns."""
    late = False
    try:
        _die_with_parent()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        worker = os.fork()
        if worker == 0:
            _work(connection, document)

        def end(*_: Any) -> None:
            nonlocal late
            late = True
            os.kill(worker, signal.SIGKILL)

        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, limits.DOCUMENT_SECONDS)
        status = os.waitpid(worker, 0)[1]
        with socket.socket(fileno=connection) as reply:
            reply.sendall(_STATUS.pack(status, late))
    except BaseException:
        traceback.print_exc()
    os._exit(0)


def _work(connection: int, document: int) -> NoReturn:
    """Read one document and answer. Never returns."""
    _die_with_parent()
    reply = socket.socket(fileno=connection)
    request = bytearray()
    while piece := reply.recv(limits.MB):
        request += piece
    asked = orjson.loads(request)
    function = getattr(importlib.import_module(asked["module"]), asked["name"])
    _limit(asked["seconds"])
    with contextlib.suppress(BrokenPipeError):  # nobody waits any more
        reply.sendall(_answer(function, document, asked["arguments"]))
    os._exit(0)


def _limit(seconds: int) -> None:
    """Hold this process to the limits. The address space counts, from what it is now on."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
    if sys.platform.startswith("linux"):
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        most = used + limits.DOCUMENT_MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _answer(function: Any, document: int, arguments: Mapping[str, Any]) -> bytes:
    """The kind of an answer, then what it says."""
    try:
        with open(document, "rb") as file:
            file.seek(0)
            result = function(file, **arguments)
        answer = _BYTES + result if isinstance(result, bytes) else _JSON + orjson.dumps(result)
        if len(answer) > limits.DOCUMENT_RESULT_BYTES:
            text = f"What the document describes takes more than {limits.DOCUMENT_RESULT_BYTES // limits.MB} MB."
            return _limited(text, "Split it into smaller documents.")
        return answer
    except DocumentError as error:
        return _limited(error.message, error.hint)
    except ApiError as error:
        told = {name: getattr(error, name) for name in ("code", "message", "details", "status", "headers")}
        return _REJECTED + orjson.dumps(told)
    except MemoryError:
        pass  # what the frames hold is released before anything else is done
    except RecursionError:
        return _limited("The document is nested too deeply to read.", "Flatten it.")
    except Exception:
        return _BUG + traceback.format_exc()[-limits.LOG_TRACE_CHARS :].encode("utf-8", "replace")
    text = f"The document needs more than {limits.DOCUMENT_MEMORY_BYTES // limits.MB} MB of memory to read."
    return _limited(text, "Split it into smaller documents.")


def _limited(message: str, hint: str) -> bytes:
    return _LIMIT + orjson.dumps([message, hint])


def _die_with_parent() -> None:
    """Have the kernel end this process when its parent ends."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)


if __name__ == "__main__":
    # As the module that workers import, so that both know the same classes.
    importlib.import_module("webapp.document_process").serve(socket.socket(fileno=0))
