"""Read documents of users in a child process, with limits on memory and time.

A document may crash a parser, or make it use gigabytes or minutes. Therefore `run` calls a function by its
dotted name in a separate process, and returns its result as JSON. Three kinds of processes take part:

- The server, `python -m webapp.document_process`, is started by the first call in a process. It imports the
requested modules, has one thread and never reads a document, so it can be forked at any time.
- The worker, which is forked for each document, reads it within the limits and exits.
- The supervisor, which is forked between the two, reports how the worker ended, and kills it when the calling
process closes the connection: at the time limit, or because it ended.

All of them end when the process that started the server ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import logging
import math
import os
import resource
import select
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, Final, NoReturn

import orjson

from webapp import limits
from webapp.errors import ApiError
from webapp.fork_server import ForkServer, die_with_parent, serve

log = logging.getLogger(__name__)

_STATUS: Final = struct.Struct("<i")  # how the worker ended
_JSON, _BYTES, _LIMIT, _REJECTED, _BUG = b"j", b"b", b"l", b"r", b"x"  # kinds of a worker's response
_slots = threading.BoundedSemaphore(limits.DOCUMENTS_AT_ONCE)
_server: Final = ForkServer("webapp.document_process")
_CACHED_RESULTS: Final = 512
_CACHED_RESULT_BYTES: Final = 4_096
_result_cache: Final[OrderedDict[tuple[str, bytes], Any]] = OrderedDict()
_result_cache_lock: Final = threading.Lock()
_TICK_SECONDS: Final = 0.5


class DocumentError(Exception):
    """A document that cannot be read within the limits. The message names the limit, `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message, self.hint = message, hint


def run(
    function: str,
    document: bytes | IO[bytes],
    arguments: Mapping[str, Any] | None = None,
    seconds: int = limits.DOCUMENT_CPU_SECONDS,
    elapsed: float = limits.DOCUMENT_SECONDS,
    tick: Callable[[], None] | None = None,
) -> Any:
    """Call `function`, such as `"package.module:name"`, in a separate process, and return its result.

    The function gets the document as a binary file, positioned at its beginning, and `arguments` by name. The
    arguments must be JSON, and the result JSON or bytes. `seconds` limits the CPU time, `elapsed` the time by
    the clock. `tick` is called about twice a second while the document is read; if it raises, reading stops.
    If `document` is a file, its position is undefined afterwards.

    Raises `DocumentError` if a limit is exceeded or the worker crashes. An `ApiError` of the function is
    raised here. Error: unavailable, if too many documents are being read.
    """
    module, _, name = function.partition(":")
    request = orjson.dumps(
        {"module": module, "name": name, "seconds": seconds, "arguments": dict(arguments or {})}
    )
    if not _slots.acquire(timeout=limits.DOCUMENT_TURN_SECONDS):
        text = "Too many documents are being read at the moment. Try again."
        raise ApiError("unavailable", text, headers={"Retry-After": str(limits.DOCUMENT_RETRY_SECONDS)})
    try:
        with contextlib.ExitStack() as stack:
            descriptor = stack.enter_context(_file_descriptor(document))
            return _result(function, *_exchange(module, request, descriptor, elapsed, tick), seconds)
    finally:
        _slots.release()


def run_cached(function: str, document: bytes, seconds: int = limits.DOCUMENT_CPU_SECONDS) -> Any:
    """Call `run`, and remember small results (JSON) of the latest documents in this process. They must not be changed.

    The function must depend on the document only.
    """
    key = function, hashlib.sha256(document).digest()
    with _result_cache_lock:
        if key in _result_cache:
            _result_cache.move_to_end(key)
            return _result_cache[key]
    found = run(function, document, seconds=seconds)
    if len(orjson.dumps(found)) <= _CACHED_RESULT_BYTES:
        with _result_cache_lock:
            _result_cache[key] = found
            while len(_result_cache) > _CACHED_RESULTS:
                _result_cache.popitem(last=False)
    return found


@contextlib.contextmanager
def _file_descriptor(document: bytes | IO[bytes]) -> Iterator[int]:
    """Yield the descriptor of a document, or of a temporary copy if it is in memory."""
    if not isinstance(document, bytes | bytearray):
        try:
            descriptor = document.fileno()  # before flushing: this moves a spooled file to disk
        except io.UnsupportedOperation:  # the file is in memory
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


def check_depth(value: Any, max_levels: int = limits.DOCUMENT_LEVELS) -> None:
    """Raise `DocumentError` if arrays and objects are nested more than `max_levels` levels deep.

    Walks level by level instead of recursively, so any depth is safe.
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(max_levels):
        if not level:
            return
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    if level:
        raise nesting_error(max_levels)


def nesting_error(max_levels: int = limits.DOCUMENT_LEVELS) -> DocumentError:
    """Return the error for a document that is nested more than `max_levels` levels deep."""
    return DocumentError(f"The document is nested more than {max_levels} levels deep.", "Flatten it.")


# --- In the calling process ---------------------------------------------------------------------------------


def _exchange(
    module: str, request: bytes, document: int, elapsed: float, tick: Callable[[], None] | None
) -> tuple[bytes, int]:
    """Send a request to a worker, and return its response and its wait status. Raises `DocumentError` at the
    time limit."""
    connection, worker_end = socket.socketpair()
    with connection:
        connection.settimeout(elapsed)
        with worker_end:
            if not _server.fork(module, [worker_end.fileno(), document]):
                text = "The process that reads documents could not be started."
                raise ApiError("unavailable", text, headers={"Retry-After": "5"})
        answer = bytearray()
        deadline = time.monotonic() + elapsed
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            while True:
                left = deadline - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                connection.settimeout(min(left, _TICK_SECONDS) if tick else left)
                try:
                    piece = connection.recv(limits.MB)
                except TimeoutError:
                    if tick:
                        tick()
                    continue
                if not piece:
                    break
                answer += piece
        except ConnectionError:
            pass  # the processes were killed: the status is missing
        except TimeoutError:
            text = f"Reading the document takes more than {elapsed:g} s."
            hint = "Split it into smaller documents, or try again when the system is less busy."
            raise DocumentError(text, hint) from None
    if len(answer) < _STATUS.size:
        raise ApiError(
            "unavailable", "Reading the document was interrupted. Try again.", headers={"Retry-After": "5"}
        )
    (status,) = _STATUS.unpack(answer[-_STATUS.size :])
    del answer[-_STATUS.size :]
    return bytes(answer), status


def _reset_slots() -> None:
    """Reset the semaphore in a forked process: its slots belong to the parent."""
    global _slots
    _slots = threading.BoundedSemaphore(limits.DOCUMENTS_AT_ONCE)


os.register_at_fork(after_in_child=_reset_slots)


def _result(function: str, answer: bytes, status: int, seconds: int) -> Any:
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGXCPU:
        text = f"Reading the document takes more than {seconds} s of CPU time."
        raise DocumentError(text, "Split it into smaller documents.")
    if code != 0:
        log.error("document: the worker for %s ended with %s", function, code)
        text = "The document could not be read because it crashes the parser."
        raise DocumentError(
            text, "It may be nested too deeply or need too much memory. Split or simplify it."
        )
    kind, content = answer[:1], answer[1:]
    if kind == _BYTES:
        return content
    if kind == _JSON:
        return orjson.loads(content)
    if kind == _LIMIT:
        raise DocumentError(*orjson.loads(content))
    if kind == _REJECTED:
        raise ApiError(**orjson.loads(content))
    log.error("document: %s failed\n%s", function, content.decode("utf-8", "replace"))
    text = "The document could not be read because of an internal error, which has been logged."
    raise DocumentError(text, "Report it to your administrator.")


# --- The server ---------------------------------------------------------------------------------------------


def _supervise(connection: int, document: int) -> NoReturn:
    """Fork the worker, wait for it, and report how it ended. Never returns."""
    try:
        die_with_parent()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        worker = os.fork()
        if worker == 0:
            _run_worker(connection, document)
        threading.Thread(target=_kill_when_closed, args=(connection, worker), daemon=True).start()
        status = os.waitpid(worker, 0)[1]
        os.write(connection, _STATUS.pack(status))
    except BrokenPipeError:
        pass  # the caller is no longer waiting
    except BaseException:
        traceback.print_exc()
    os._exit(0)


def _kill_when_closed(connection: int, worker: int) -> None:
    """Kill the worker when the caller closes its end of the connection."""
    closed = select.poll()
    closed.register(connection, 0)  # only POLLHUP, which is always reported
    closed.poll()
    os.kill(worker, signal.SIGKILL)


def _run_worker(connection: int, document: int) -> NoReturn:
    """Read one document and send the result. Never returns."""
    die_with_parent()
    reply = socket.socket(fileno=connection)
    request = bytearray()
    while piece := reply.recv(limits.MB):
        request += piece
    parameters = orjson.loads(request)
    function = getattr(importlib.import_module(parameters["module"]), parameters["name"])
    _set_limits(parameters["seconds"])
    with contextlib.suppress(BrokenPipeError):  # the caller is no longer waiting
        reply.sendall(_response(function, document, parameters["arguments"]))
    os._exit(0)


def _set_limits(seconds: int) -> None:
    """Limit this process. The address space may grow by the memory limit from its current size."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 1))
    if sys.platform.startswith("linux"):
        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
        max_bytes = used + limits.DOCUMENT_MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (max_bytes, max_bytes))


def _response(function: Any, document: int, arguments: Mapping[str, Any]) -> bytes:
    """Return the kind of a response, and its content."""
    try:
        with open(document, "rb") as file:
            file.seek(0)
            result = function(file, **arguments)
        answer = _BYTES + result if isinstance(result, bytes) else _JSON + orjson.dumps(result)
        if len(answer) > limits.DOCUMENT_RESULT_BYTES:
            text = (
                f"The content of the document is larger than {limits.DOCUMENT_RESULT_BYTES // limits.MB} MB."
            )
            return _limit_response(text, "Split it into smaller documents.")
        return answer
    except DocumentError as error:
        return _limit_response(error.message, error.hint)
    except ApiError as error:
        fields = {name: getattr(error, name) for name in ("code", "message", "details", "status", "headers")}
        return _REJECTED + orjson.dumps(fields)
    except MemoryError:
        pass  # leave this block first, so that the frames release their memory
    except RecursionError:
        return _limit_response("The document is nested too deeply to read.", "Flatten it.")
    except Exception:
        return _BUG + traceback.format_exc()[-limits.LOG_TRACE_CHARS :].encode("utf-8", "replace")
    text = f"Reading the document takes more than {limits.DOCUMENT_MEMORY_BYTES // limits.MB} MB of memory."
    return _limit_response(text, "Split it into smaller documents.")


def _limit_response(message: str, hint: str) -> bytes:
    return _LIMIT + orjson.dumps([message, hint])


if __name__ == "__main__":
    # Import the module by name, so that classes have the same identity as in workers.
    serve(socket.socket(fileno=0), importlib.import_module("webapp.document_process")._supervise)
