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

import contextlib
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
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final, NoReturn

import orjson

from webapp import limits
from webapp.errors import ApiError
from webapp.fork_server import ForkServer, die_with_parent, serve

log = logging.getLogger(__name__)

_STATUS: Final = struct.Struct("<ii")  # how the worker ended, and whether its time was over
_JSON, _BYTES, _LIMIT, _REJECTED, _BUG = b"j", b"b", b"l", b"r", b"x"  # kinds of a worker's answer
_turns = threading.BoundedSemaphore(limits.DOCUMENTS_AT_ONCE)
_server: Final = ForkServer("webapp.document_process")


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
    request = orjson.dumps(
        {"module": module, "name": name, "seconds": seconds, "arguments": dict(arguments or {})}
    )
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
            if not _server.ask(module, [theirs.fileno(), document]):
                text = "The process that reads documents cannot be started."
                raise ApiError("unavailable", text, headers={"Retry-After": "5"})
        answer = bytearray()
        try:
            ours.sendall(request)
            ours.shutdown(socket.SHUT_WR)
            while piece := ours.recv(limits.MB):
                answer += piece
        except ConnectionError:
            pass  # the processes were ended from outside: the status is missing
        except TimeoutError:
            _server.stop()  # it does not fork any more
    if len(answer) < _STATUS.size:
        raise ApiError(
            "unavailable", "Reading the document was interrupted. Try again.", headers={"Retry-After": "5"}
        )
    status, late = _STATUS.unpack(answer[-_STATUS.size :])
    del answer[-_STATUS.size :]
    return bytes(answer), status, bool(late)


def _forget() -> None:
    """In a forked process: the turns are its parent's."""
    global _turns
    _turns = threading.BoundedSemaphore(limits.DOCUMENTS_AT_ONCE)


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
        raise DocumentError(
            text, "It may be nested too deeply or need too much memory. Split or simplify it."
        )
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


def _supervise(connection: int, document: int) -> NoReturn:
    """Fork the worker, wait for it, and report how it ended. Never returns."""
    late = False
    try:
        die_with_parent()
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
    die_with_parent()
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
            text = (
                f"What the document describes takes more than {limits.DOCUMENT_RESULT_BYTES // limits.MB} MB."
            )
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


if __name__ == "__main__":
    # As the module that workers import, so that both know the same classes.
    serve(socket.socket(fileno=0), importlib.import_module("webapp.document_process")._supervise)
